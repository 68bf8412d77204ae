"""Cards of a build for 64 nodes, with numbers that are spread over 0 … 63, through real switches.

    DIBBER_NODES=64 python tests/soak/nodes.py --shape tree:16 --seed 1 [--json]

Needs `make NODES=64 firmware library`, the simulator of the profile and the switches, all with
NODES=64. All cards map the network. Then each puts bytes into each other card, in lane EXPRESS and
in lane BULK, gets other bytes from there, and adds to a word of it. Ends with 1 when a transfer
does not end OK, when a byte or a sum is wrong, or when the control program and the fast path have
not both worked.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys
import time

import libdibber
import numpy as np
from dibber.interface.description import RIGHT, STATUS, C
from dibber_cli import numbers, paths, profile, topology
from dibber_cli.link import side as sides
from dibber_cli.map import survey
from dibber_cli.pipe import quiet
from dibber_cli.simulator import Network

SHORT, LONG = 48, 6000  # bytes of a put in lane EXPRESS, and in lane BULK: of two packets
PLACE = 8192  # bytes for a card in each other card's region: short, long, and those for gets
LONG_AT, GET_AT, SUM_AT = 64, 6144, 7680
GET = 1500  # bytes
PATIENCE_NS = 200_000_000
START_SECONDS = 1200  # until all cards are ready, with a simulator that is compiled without -O


def spread(cards):
    """Numbers of so many cards, over all of 0 … NODES - 1; both ends are among them."""
    return [n * (C.NODES - 1) // (cards - 1) for n in range(cards)]


def payload(seed, source, target):
    """What a card puts into another one: SHORT + LONG bytes."""
    return np.random.default_rng((seed, source, target)).integers(0, 256, SHORT + LONG, np.uint8)


def finish(side, count):
    """Statuses of so many commands."""
    found = []
    while len(found) < count and side.endpoint.wait(PATIENCE_NS):
        found += [entry.status for entry in side.endpoint.poll(32)]
    return found


def prepare(nodes):
    """A step: a region with a place for each card, and one for what others get; its keys."""

    def step(side):
        rights = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
        side.target = side.endpoint.register(libdibber.alloc(C.NODES * PLACE), rights)
        side.source = side.endpoint.register(libdibber.alloc(C.NODES * PLACE), rights)
        side.target.memory[:] = 0
        side.source.memory[:] = 0
        # The control program of each second card works for itself.
        if nodes.index(side.node) % 2:
            side.card.write_register("FAST_PATH", 0)
        return side.target.key, side.source.key

    return step


def exchange(seed, nodes, keys):
    """A step: all transfers of a card to all others; statuses by kind."""

    def step(side):
        own, found = side.node, {"inline": [], "put": [], "get": [], "add": []}
        others = [node for node in nodes if node != own]
        for node in others:
            data, place = payload(seed, own, node), node * PLACE
            side.source.memory[place : place + SHORT + LONG] = data
            side.source.memory[place + GET_AT : place + GET_AT + GET] = data[:GET]
        side.sleep(2_000)
        for node in others:
            target, source = keys[node]
            place = own * PLACE
            data = payload(seed, own, node)
            side.endpoint.put_inline(data[:SHORT].tobytes(), target, place, node=node)
            found["inline"] += finish(side, 1)
            side.endpoint.put(
                side.source.key,
                node * PLACE + SHORT,
                target,
                place + LONG_AT,
                LONG,
                node=node,
            )
            found["put"] += finish(side, 1)
            side.endpoint.get(
                source, place + GET_AT, side.target.key, node * PLACE + GET_AT, GET, node=node
            )
            found["get"] += finish(side, 1)
            side.endpoint.fetch_add(target, SUM_AT, 1 + own, node=node)
            found["add"] += finish(side, 1)
        return found

    return step


def compare(seed, nodes):
    """A step: what is wrong in a card's memory, as sentences."""

    def step(side):
        side.sleep(10_000)
        wrong, memory = [], side.target.memory
        for node in nodes:
            if node == side.node:
                continue
            place, came = node * PLACE, payload(seed, node, side.node)
            if not (memory[place : place + SHORT] == came[:SHORT]).all():
                wrong.append(f"inline put from {node} to {side.node}")
            if not (memory[place + LONG_AT : place + LONG_AT + LONG] == came[SHORT:]).all():
                wrong.append(f"put from {node} to {side.node}")
            if not (memory[place + GET_AT : place + GET_AT + GET] == came[:GET]).all():
                wrong.append(f"get from {node} by {side.node}")
        total = int.from_bytes(memory[SUM_AT : SUM_AT + 8].tobytes(), "little")
        if total != sum(1 + node for node in nodes if node != side.node):
            wrong.append(f"sum at {side.node}: {total}")
        counts = {
            name: side.card.read_register(f"COUNT_{name}")
            for name in ("FAST_COMPLETIONS", "PACKET_WRONG_NODE", "PACKET_MISROUTED")
        }
        return wrong, counts

    return step


def run(shape, seed, profile_name):
    """The result as plain data."""
    nodes, sides.START_SECONDS = spread(topology.named(shape).cards), START_SECONDS
    wall, options = time.monotonic(), ["--preload", str(paths.FIRMWARE)]
    failures, statuses = [], {}
    with (
        Network(profile.load(profile_name), shape, seed=seed, options=options) as simulated,
        sides.Ends(simulated.uris, nodes) as ends,
    ):
        maps = ends.both(lambda side: survey(side.card, 2, True))
        for one in maps:
            if one["hosts"] != nodes or one["unreachable"] or one["conflicts"]:
                failures.append(f"map of node {one['own']}: {one['hosts']}")
        keys = dict(zip(nodes, ends.both(prepare(nodes)), strict=True))
        for node, found in zip(nodes, ends.both(exchange(seed, nodes, keys)), strict=True):
            for kind, ended in found.items():
                names = [STATUS.name_of(status) for status in ended]
                if names != ["OK"] * (len(nodes) - 1):
                    failures.append(f"node {node}, {kind}: {names}")
                statuses[kind] = statuses.get(kind, 0) + names.count("OK")
        counts = {}
        for wrong, counted in ends.both(compare(seed, nodes)):
            failures += wrong
            for name, value in counted.items():
                counts[name] = counts.get(name, 0) + value
    expected = len(nodes) * (len(nodes) - 1) * len(statuses)
    if not 0 < counts["FAST_COMPLETIONS"] < expected or counts["PACKET_WRONG_NODE"]:
        failures.append(f"counters: {counts}")
    return {
        "shape": shape,
        "seed": seed,
        "nodes": nodes,
        "ok": statuses,
        "counters": counts,
        "failures": failures[:20],
        "wall_seconds": round(time.monotonic() - wall, 1),
        "pass": not failures,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", default="tree:16", help="a topology by name, with switches")
    parser.add_argument("--profile", default="gen2x1")
    parser.add_argument("--seed", type=numbers.whole(*numbers.SEEDS), default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = run(arguments.shape, arguments.seed, arguments.profile)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print(
            f"nodes: {len(result['nodes'])} cards, nodes {result['nodes']}, through "
            f"{result['shape']}: OK {result['ok']}, counters {result['counters']}, "
            f"{len(result['failures'])} failures, {result['wall_seconds']} s"
        )
        print("\n".join(result["failures"]))
    return 0 if result["pass"] else 1


if __name__ == "__main__":
    sys.exit(quiet(main))
