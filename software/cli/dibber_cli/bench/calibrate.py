"""`calibrate`: cost of copies on this machine's CPU, the source of the constants in the profiles'
table [benchmark].

calibrate.c measures. Its values beyond the constants of bench/cpu.py show how well that model fits.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import statistics
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dibber_cli import output, paths
from dibber_cli.bench import cpu
from dibber_cli.bench.pattern import Pattern
from dibber_cli.errors import CommandError
from dibber_cli.profile import Profile

SOURCE = Path(__file__).with_suffix(".c")
MIB = 128  # working set
FAR = 16  # from this stride on, 8-byte elements lie in lines that are not adjacent
COUNT = 4096  # elements for the model
# Which side is strided.
KINDS = {"gather": (True, False), "scatter": (False, True), "both": (True, True)}


def measure(mib: int = MIB) -> dict[tuple[int, int, str], float]:
    """{(element bytes, stride in elements, kind): nanoseconds an element}"""
    program = paths.BUILD / "bench" / "calibrate"
    program.parent.mkdir(parents=True, exist_ok=True)
    commands: tuple[list[str | Path], ...] = (
        ["cc", "-O2", "-std=c11", "-o", program, SOURCE],
        [program, str(mib)],
    )
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise CommandError(f"there is no {command[0]}", "install a C compiler") from None
        if done.returncode:
            raise CommandError(f"{command[0]}: {done.stderr.strip()}")
    lines = (line.split() for line in done.stdout.splitlines())
    return {(int(size), int(stride), kind): float(ns) for size, stride, kind, ns in lines}


def constants(measured: Mapping[tuple[int, int, str], float], line_bytes: int) -> dict[str, float]:
    """The constants of bench/cpu.py, by their names in a Profile."""
    elements = line_bytes // 8  # of 8 bytes in a line
    line = measured[8, 1, "both"] * elements / 2  # one loaded, one stored

    def far(kind: str) -> float:
        return statistics.median(
            ns - line / elements
            for (size, stride, k), ns in measured.items()
            if size == 8 and stride >= FAR and k == kind
        )

    return {
        "copy_element_ns": measured[1, 1, "both"],
        "copy_line_ns": line,
        "copy_far_load_ns": far("gather"),
        "copy_far_store_ns": far("scatter"),
    }


def modelled(profile: Profile, size: int, stride: int, kind: str) -> float:
    """Nanoseconds for each element by the model. Adjacent elements are also copied one by one, as
    calibrate.c does.
    """
    pitches = (size * stride if strided else size for strided in KINDS[kind])
    source, target = (Pattern(size, ((COUNT, pitch),), COUNT * pitch) for pitch in pitches)
    return cpu.copy_ns(profile, source, target) / COUNT


def show(profile: Profile, mib: int = MIB) -> dict[str, float]:
    """Measure, and print the constants and the fit of the model."""
    measured = measure(mib)
    found: dict[str, Any] = constants(measured, profile.line)
    fitted = dataclasses.replace(profile, **found)
    print(f"{_processor()}, last-level cache {_last_level_cache()}, working set {mib} MiB\n")
    for size in (8, 64):
        output.table(
            [
                f"{size}-byte elements, stride",
                *(h for kind in KINDS for h in (f"{kind} ns", "model")),
            ],
            [
                [
                    stride,
                    *(
                        f"{ns:.2f}"
                        for kind in KINDS
                        for ns in (
                            measured[size, stride, kind],
                            modelled(fitted, size, stride, kind),
                        )
                    ),
                ]
                for stride in dict.fromkeys(s for e, s, _ in measured if e == size)
            ],
        )
        print()
    output.table(
        ["[benchmark]", "here", f"in {profile.name}"],
        [[name, f"{value:.2f}", f"{getattr(profile, name):.2f}"] for name, value in found.items()],
    )
    return found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "processor without a name"


def _last_level_cache() -> str:
    sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return f"{sizes[-1].read_text(encoding='utf-8').strip()}iB" if sizes else "of unknown size"
