#!/usr/bin/env python3
"""Measure the activity of each part of a card, and write activity.txt.

    python hw/sim/changed/measure.py [--profile gen2x4]

Pins are recorded in the runs of `dibber sim --speed`. A card replays them and counts the cycles in
which each unit of its logic has work. Make firmware, library and simulator first; it takes some
minutes. The file is committed, because making it in each build would take a second build of the
card and these runs. It has names, so it also serves a changed gateware; an old file costs some
speed. Measure again when `dibber sim --speed` became slower and the gateware has new blocks.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import subprocess
import sys
import tempfile

SIM = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SIM))

import build  # noqa: E402
from changed import activity  # noqa: E402
from dibber_cli import profile  # noqa: E402
from dibber_cli.bench import speed  # noqa: E402

HEAD = """# How busy the units of a card are: prefix of their names, level in each run.
# Written by hw/sim/changed/measure.py; see activity.py.
"""


def counts(program, machine, pins, cycles):
    """The number of first cycles of a recording in which each unit had work."""
    command = [str(program), machine.path, str(pins), "0", str(cycles)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # It ends with a line of JSON, after the card was destroyed.
    return [int(line) for line in output.splitlines() if line[0] != "{"]


def shares(program, machine, seed):
    """For each unit its share of cycles with work, in each run."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        pins = pathlib.Path(folder) / "card0.pins"
        record = ("--record", folder)
        start, _ = speed.simulate(machine, seed, speed.Sleeper, (), record)
        for name, kind, points in speed.runs():
            print(f"activity: {name}", flush=True)
            cycles, _ = speed.simulate(machine, seed, kind, points, record)
            before = counts(program, machine, pins, start)
            after = counts(program, machine, pins, cycles)
            found.append([(b - a) / (cycles - start) for a, b in zip(before, after)])
    return list(zip(*found))


def main():
    parser = argparse.ArgumentParser(description="Measure how busy each part of a card is.")
    parser.add_argument("--profile", default="gen2x4", help="of the card and its machine")
    parser.add_argument("--seed", type=int, default=1, help="of the runs")
    args = parser.parse_args()
    variant = build.Variant(unoptimised=True, counted=True)
    program = build.build_card(args.profile, "2", "dibber-replay", variant)
    card = build.BUILD / f"card{build.card_of(args.profile).name}"
    names = (card / "counted" / "units.txt").read_text()
    measured = {}
    for unit, found in zip(
        names.splitlines(), shares(program, profile.load(args.profile), args.seed), strict=True
    ):
        for name in unit.split():
            levels = activity.levels_of(found)
            measured[name] = activity.busiest({levels, measured.get(name, levels)})
    activity.FILE.write_text(HEAD + "".join(f"{line}\n" for line in activity.lines(measured)))
    print(f"{activity.FILE}: {len(measured)} names")


if __name__ == "__main__":
    main()
