"""Transfers through a network of switches while cables are pulled, switches lose their power, and
bits are wrong: each ends as it must, and no byte is wrong.

    python tests/soak/torus.py --shape torus:4x4 --packets 100000 --seed 1 [--faults N] [--kill]
    [--json]

Each card keeps puts to random cards under way, each of a packet. All faults end after 3 ms at most,
so a route of each transfer comes back within the 40 ms of the replay, and each transfer must end
OK. With --kill, a switch is then off for good. Transfers between two cards must end OK if each of
the two knows a route to the other that does not pass this switch, and with TIMEOUT otherwise.

The longest gap is that between the ends of two transfers of one card while faults come and go. The
same seed gives the same run. Needs the switches of `make switches`.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import dataclasses
import json
import random
import sys
import time

import libdibber
import numpy as np
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import numbers, topology
from dibber_cli.bench import cuts
from dibber_cli.pipe import quiet

from tests.system.network import opened

FIRST_US = 1000  # and for each switch …
EACH_SWITCH_US = 400  # … so long all cards wait until they know their routes
EVERY_US = 250  # between two faults, on average
LONGEST_US = 3000  # of a fault
ERROR_RATE = 1e-5  # of a bad cable
SIZE = 64  # bytes of a transfer: one packet
UNDER_WAY = 8  # of a card
PATIENCE_NS = 200_000_000  # a transfer that takes longer hangs
SETTLE_NS = 10_000
FILL = 0xEE
KILL_EACH = 2  # transfers to each card after the kill
AFTER_US = 5000  # from the end of the last fault to the kill, and …
EACH_PACKET_US = 1.0  # … for each packet of a card

# Faults -------------------------------------------------------------------------------------------


def first_us(network):
    """When the transfers and the faults begin."""
    return FIRST_US + EACH_SWITCH_US * len(network.switches)


def plan(shape, count, seed):
    """(lines of the simulator's --at, {kind: number}, when the last one ends) of `count` faults."""
    network, source = topology.named(shape), random.Random(seed)
    inner = [n for n, ends in enumerate(network.cables) if all("switch" in end for end in ends)]
    lines, kinds, begin = [], {}, float(first_us(network))
    busy = {}  # until when a unit or cable has a fault
    while len(lines) < 2 * count:
        begin += source.expovariate(1 / EVERY_US)
        length = source.uniform(20, LONGEST_US)
        kind = source.choice(["pull", "off", "errors"])
        if kind == "off":
            name, end = f"switch{source.randrange(len(network.switches))}", "on"
        else:
            name = f"cable{source.choice(inner)}"
            end = "plug"
        if busy.get(name, 0) > begin:
            continue
        busy[name] = begin + length
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind == "errors":
            lines += [
                (begin, f"errors {name} {ERROR_RATE:g}"),
                (begin + length, f"errors {name} 0"),
            ]
        else:
            lines += [(begin, f"{kind} {name}"), (begin + length, f"{end} {name}")]
    lines.sort()
    return [f"{when:.3f} {what}" for when, what in lines], kinds, max(busy.values(), default=begin)


# Transfers ----------------------------------------------------------------------------------------


def payloads(seed, node, count):
    """The bytes of the first transfers of a card, an array of (count, SIZE)."""
    return np.random.default_rng((seed, node)).integers(0, 256, (count, SIZE), np.uint8)


@dataclasses.dataclass
class Share:
    """The transfers of a card: the target of each, its status, and when it began and ended (ns)."""

    targets: list
    statuses: list = dataclasses.field(default_factory=list)
    began: list = dataclasses.field(default_factory=list)
    ended: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        count = len(self.targets)
        self.statuses, self.began, self.ended = [None] * count, [0] * count, [0] * count

    def gap(self, count):
        """The longest time (ns) between the ends of two of the first `count` transfers, one after
        the other, or 0.
        """
        ended = sorted(end for end in self.ended[:count] if end)
        return max((after - before for before, after in zip(ended, ended[1:])), default=0)


def send(side, share, keys, first):
    """Put all of a share, UNDER_WAY at once. `first`: number of its first place in the target."""
    issued = ended = 0
    while ended < len(share.targets):
        while issued < len(share.targets) and issued - ended < UNDER_WAY:
            target, place = share.targets[issued], (first + issued) * SIZE
            offset = (side.node * side.places + first + issued) * SIZE
            share.began[issued] = side.now()
            try:
                if issued % 2:
                    data = side.source.memory[place : place + SIZE].tobytes()
                    side.endpoint.put_inline(data, keys[target], offset, node=target, tag=issued)
                else:
                    side.endpoint.put(
                        side.source.key, place, keys[target], offset, SIZE, node=target, tag=issued
                    )
            except libdibber.DibberError as error:
                # Slots are used in a circle, and an old transfer still has the next one.
                if error.name != "AGAIN":
                    raise
                break
            issued += 1
        if not side.endpoint.wait(PATIENCE_NS):
            break
        for entry in side.endpoint.poll(32):
            share.statuses[entry.tag] = entry.status
            share.ended[entry.tag] = side.now()
            ended += 1
    return share


def until(side, when_us):
    """Let time go on until `when_us`."""
    left = when_us * 1000 - side.now()
    if left > 0:
        side.sleep(left)
    return left


# Run ----------------------------------------------------------------------------------------------


def wrong_bytes(side, shares, seed):
    """(source, index, status) of transfers that ended OK and whose bytes are not there, that ended
    otherwise and left other bytes than theirs, or that were for another card and left bytes here.
    """
    found = []
    memory = side.target.memory.reshape(-1, side.places, SIZE)
    for node, share in enumerate(shares):
        right = (memory[node] == payloads(seed, node, side.places)).all(axis=1)
        empty = (memory[node] == FILL).all(axis=1)
        for index, (target, status) in enumerate(zip(share.targets, share.statuses)):
            # What was for other cards must not be here.
            ok = right[index] if target == side.node and status == STATUS.OK else empty[index]
            if not ok and not (target == side.node and right[index]):
                found.append((node, index, status))
    return found


def reaches(shape, known, source, target, dead):
    """Whether a route that `source` knows to `target` does not pass the switch `dead`."""
    for turns in known[source].get(target, ()):
        entered, end = cuts.path(topology.named(shape), source, turns)
        if end == target and dead not in {unit for unit, _ in entered}:
            return True
    return False


def run(shape, packets, faults, seed, kill):
    """The result as plain data."""
    cards = topology.named(shape).cards
    events, kinds, last_us = plan(shape, faults, seed)
    kill_us = round(last_us + AFTER_US + EACH_PACKET_US * packets / cards)
    source = random.Random(seed + 1)
    dead = f"switch{source.randrange(len(topology.named(shape).switches))}"
    if kill:
        events.append(f"{kill_us} off {dead}")
    each = packets // cards
    shares = [
        Share([source.choice([m for m in range(cards) if m != n]) for _ in range(each)])
        for n in range(cards)
    ]
    after = [
        Share([m for m in range(cards) if m != n for _ in range(KILL_EACH * kill)])
        for n in range(cards)
    ]
    options = [word for line in events for word in ("--at", line)]
    wall = time.monotonic()
    failures = []
    with opened(shape, seed=seed, options=options) as network:
        maps = network.map()
        known = {
            one["own"]: {
                r["node"]: [t for t in r["routes"] if t is not None] for r in one["routes"]
            }
            for one in maps
        }
        if any(len(of_card) != cards - 1 for of_card in known.values()):
            raise SystemExit(f"torus: not all cards were found: {known}")

        def prepare(side):
            side.places = each + len(after[0].targets)
            side.source = side.endpoint.register(
                libdibber.alloc(side.places * SIZE), RIGHT.LOCAL_READ
            )
            side.source.memory[:] = payloads(seed, side.node, side.places).ravel()
            side.target = side.endpoint.register(
                libdibber.alloc(cards * side.places * SIZE),
                RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE,
            )
            side.target.memory[:] = FILL
            return side.target.key

        keys = network.together(prepare)
        start_us = first_us(topology.named(shape))
        late = network.together(lambda side: until(side, start_us))
        if min(late) < 0:
            raise SystemExit(f"torus: the map took {-min(late) / 1000:.0f} us too long")
        network.together(lambda side: send(side, shares[side.node], keys, 0))
        if kill:
            late = network.together(lambda side: until(side, kill_us + SETTLE_NS // 1000))
            if min(late) < 0:
                raise SystemExit(f"torus: the switch was off {-min(late) / 1000:.0f} us too early")
            network.together(lambda side: send(side, after[side.node], keys, each))
        network.together(lambda side: side.sleep(SETTLE_NS))
        for first, one, other in zip(shares, after, range(cards)):
            first.targets += one.targets
            first.statuses += one.statuses
            first.began += one.began
            first.ended += one.ended
        bad = network.together(lambda side: wrong_bytes(side, shares, seed))
    failures += [f"wrong bytes: {one}" for of_card in bad for one in of_card]
    counted = {}
    for node, share in enumerate(shares):
        for index, (target, status) in enumerate(zip(share.targets, share.statuses)):
            name = "none" if status is None else STATUS.name_of(status)
            counted[name] = counted.get(name, 0) + 1
            must = STATUS.OK
            if index >= each and not (
                reaches(shape, known, node, target, dead)
                and reaches(shape, known, target, node, dead)
            ):
                must = STATUS.TIMEOUT
            if status != must:
                failures.append(f"card {node}, transfer {index} to {target}: {name}")
    times = [
        end - begin
        for share in shares
        for begin, end, status in zip(share.began, share.ended, share.statuses)
        if status == STATUS.OK
    ]
    return {
        "shape": shape,
        "seed": seed,
        "transfers": sum(len(share.targets) for share in shares),
        "statuses": counted,
        "faults": kinds,
        "killed": dead if kill else None,
        "longest_us": round(max(times, default=0) / 1000, 1),
        "gap_us": round(max(share.gap(each) for share in shares) / 1000, 1),
        "ended_us": round(max(max(share.ended) for share in shares) / 1000),
        "failures": failures[:20],
        "wall_seconds": round(time.monotonic() - wall, 1),
        "pass": not failures,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", default="torus:4x4", help="a topology by name, with switches")
    parser.add_argument("--packets", type=numbers.whole(1, 10**7), default=100_000)
    parser.add_argument("--faults", type=numbers.whole(0, 10_000), default=60)
    parser.add_argument("--seed", type=numbers.whole(*numbers.SEEDS), default=1)
    parser.add_argument("--kill", action="store_true", help="at last a switch is off for good")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cards = topology.named(arguments.shape).cards
    if arguments.packets < cards:
        parser.error(f"--packets {arguments.packets}: each of the {cards} cards sends one or more")
    result = run(
        arguments.shape, arguments.packets, arguments.faults, arguments.seed, arguments.kill
    )
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print(
            f"torus: {result['transfers']} transfers through {result['shape']}: "
            f"{result['statuses']}, faults {result['faults']}, longest "
            f"{result['longest_us']:g} us, longest gap of a card {result['gap_us']:g} us, "
            f"{len(result['failures'])} failures, "
            f"{result['wall_seconds']} s"
        )
        print("\n".join(result["failures"]))
    return 0 if result["pass"] else 1


if __name__ == "__main__":
    sys.exit(quiet(main))
