"""For comparison, on the same host model: LitePCIe's DMA as released, contiguous and with a
descriptor for each element.

It has no cable: its reader ends, and its writer begins, at a stream in the card. So its values show
the limits of PCIe and the DMA, and stand beside a bound without a link. It is built for 64 bits,
the width at which its DMA is exact, and every profile runs it at that width.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

from dibber_cli import paths
from dibber_cli.bench.bound import PAGE, Bound, Side, bound, bound_of_writes
from dibber_cli.errors import CommandError
from dibber_cli.profile import Profile

PROGRAM = "litepcie-rate"
WIDTH = 64  # bits
TABLE = 256  # descriptors that its table holds
BYTES = 256 * 1024  # of the contiguous transfer
ADDRESS = 0x100_0000  # its target: 3-DW headers
NO_CABLE = 1e15  # bits a second
NOTES = (
    f"LitePCIe's DMA: {WIDTH} bits wide in every profile (at 128 its writer hangs on 8-byte "
    f"elements); host to card "
    "or card to host, no cable",
    f"LitePCIe with a descriptor for each of {TABLE} elements: its table is full before it starts",
)


def why_not(element: int, stride: int) -> str | None:
    """The reason why its writer cannot write elements of that size and stride; None if it can."""
    if element % (WIDTH // 8):
        return f"its DMA moves whole words of {WIDTH // 8} bytes"
    if any((ADDRESS + i * stride) % PAGE + element > PAGE for i in range(TABLE)):
        return f"an element crosses {PAGE} bytes, where its DMA does not cut"
    return None


def check() -> None:
    """Raise CommandError if LitePCIe's design is not built. Benchmarks call this before they
    measure.
    """
    if not _binary().exists():
        raise CommandError(f"{_binary()} is not built", "run 'make reference'")


def _binary() -> Path:
    return paths.BUILD / "sim" / PROGRAM


def _run(profile: Profile, *words: object) -> float:
    check()
    done = subprocess.run(
        [str(_binary()), profile.path, *map(str, words), f"card.data_width={WIDTH}"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        raise CommandError(f"{PROGRAM}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    if not result["finished"] or result["words_wrong"]:
        raise CommandError(
            f"{PROGRAM} {' '.join(map(str, words))}: not finished, or wrong words: {result}"
        )
    return result["bytes_per_second"]


def _without_cable(profile: Profile) -> Profile:
    return dataclasses.replace(profile, data_width=WIDTH, link_rate=NO_CABLE, mtu=0)


def _point(
    profile: Profile, series: str, x: Any, x_unit: str, rate: float, length: int, best: Bound
) -> dict[str, Any]:
    return {
        "series": series,
        "x": x,
        "x_unit": x_unit,
        "value": round(rate / 1e6, 1),
        "unit": "MB/s",
        "bound": round(best.value / 1e6, 1),
        "bound_by": best.name,
        "cycles": round(length / rate * profile.clock_hz),
        "cpu_percent": 0.0,
    }


def contiguous(profile: Profile, seed: int, x_unit: str, x: Any = 1) -> dict[str, Any]:
    """A point of the report: the slower of its reader and its writer, one descriptor for all."""
    rate = min(_run(profile, half, BYTES, f"seed={seed}") for half in ("read", "write"))
    side = Side(BYTES, address=ADDRESS)
    return _point(
        profile, "litepcie-dma", x, x_unit, rate, BYTES, bound(_without_cable(profile), side, side)
    )


def descriptors(
    profile: Profile,
    seed: int,
    element: int,
    stride: int,
    x: Any,
    x_unit: str,
    series: str = "litepcie-descriptors",
) -> dict[str, Any]:
    """A point of the report: its writer with a table full of descriptors, one for each element."""
    reason = why_not(element, stride)
    if reason:
        return {
            "series": series,
            "x": x,
            "x_unit": x_unit,
            "value": None,
            "unit": "MB/s",
            "bound": None,
            "bound_by": None,
            "cycles": None,
            "cpu_percent": None,
            "not_possible": reason,
        }
    length = TABLE * element
    rate = _run(profile, "write", length, f"element={element}", f"stride={stride}", f"seed={seed}")
    # Adjacent elements also have a TLP each: for the bound there is always a gap.
    target = Side(element, ((TABLE, max(stride, 2 * element)),), ADDRESS)
    return _point(
        profile, series, x, x_unit, rate, length, bound_of_writes(_without_cable(profile), target)
    )
