"""Traffic in both directions under faults of every kind: nothing hangs, no byte is wrong, and all
faults are counted.

    python tests/soak/faults.py --runs 1000 --seed 1 [--json] [--batch N]

Each run starts the traffic of fault_traffic.py shortly before a fault, waits for its end and checks
it. A simulator process serves a batch of runs of one group, because it gets the times of its faults
at its start. The same seed gives the same runs; --batch repeats one alone.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import json
import random
import sys
import threading

import libdibber
import numpy as np
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import paths, profile
from dibber_cli.link import measure
from dibber_cli.link.side import Ends
from dibber_cli.link.status import read
from dibber_cli.pipe import quiet
from dibber_cli.simulator import Pair

from tests.soak import fault_traffic
from tests.soak.batches import Soak

BATCH = 25  # runs of a simulator process
FIRST = 3000  # µs; after this time both cards are loaded
ROOM = 380  # µs from the end of a fault to the next one's start: replay and reading of counters

# Counters that are checked, and the counts that a run's faults must give, summed over both cards.
COUNTERS = (
    "code_errors",
    "disparity_errors",
    "header_crc_error",
    "payload_crc_error",
    "packet_truncated",
    "packet_gap",
    "naks_sent",
    "link_lost",
    "link_trained",
    "stops_received",
    "slack_overflow",
    "packet_stale",
    "packet_duplicate",
)
SYMBOLS = ("code_errors", "disparity_errors")
DAMAGED = ("header_crc_error", "payload_crc_error", "packet_truncated")


@dataclasses.dataclass
class Fault:
    """kind: of KINDS. begin, until: µs. option: of the simulator, or "". direction: 0 or 1, or None
    for both.
    """

    kind: str
    begin: float = 0
    until: float = 0
    option: str = ""
    direction: int = None


# Kinds --------------------------------------------------------------------------------------------


def scheduled(choice, begin):
    """A fault that the cable has for a time."""
    kind = choice.choices(
        ("noise", "unplug", "truncated", "stop", "injected", "long unplug"), (22, 24, 20, 16, 16, 2)
    )[0]
    direction = choice.choice((0, 1))
    if kind == "injected":
        return Fault(kind, begin, begin, "", direction)
    name, lasts = {
        "noise": ("noise", choice.uniform(0.05, 3)),
        "unplug": ("unplugged", choice.uniform(2, 50)),
        "truncated": ("unplugged", choice.uniform(0.01, 0.1)),
        "stop": ("stop", choice.uniform(5, 60)),
        "long unplug": ("unplugged", choice.choice((1000, 1000, 2000, 10_000))),
    }[kind]
    both = "unplug" in kind and choice.random() < 0.7
    text = f"{name}:{begin:.3f}:{begin + lasts:.3f}" + ("" if both else f":{direction}")
    return Fault(kind, begin, begin + lasts, text, None if both else direction)


def uncounted(kind, counted):
    """The counters of a run that are missing or too many, as a sentence; "" if all is well."""
    symbols, damaged = (sum(counted[name] for name in names) for names in (SYMBOLS, DAMAGED))
    missed = counted["packet_gap"] + counted["naks_sent"]
    if kind in ("unplug", "long unplug"):
        return "" if counted["link_lost"] else "a pulled cable is not in LINK_LOST"
    if kind in ("noise", "truncated"):
        return "" if symbols else "no code or disparity error"
    if kind == "stop":
        return (
            ""
            if counted["stops_received"] and not symbols and not damaged
            else "no STOP, or an error"
        )
    if kind == "injected":
        return (
            ""
            if not symbols and damaged <= 3 and not counted["link_lost"]
            else "an injected error is counted elsewhere"
        )
    if kind == "bit errors":
        return (
            ""
            if symbols or not (damaged or missed)
            else "a damaged packet without code or disparity error"
        )
    return "" if not symbols else "a restart makes code errors"


# Runs ---------------------------------------------------------------------------------------------


def counters(side):
    return {name: side.card.read_register(f"COUNT_{name.upper()}") for name in COUNTERS}


def change(before, after):
    return {
        name: sum((a[name] - b[name]) & 0xFFFFFFFF for a, b in zip(after, before))
        for name in COUNTERS
    }


def inject(side):
    side.card.write_register("LINK_COMMAND", measure.field("LINK_COMMAND", error=1))


def diagnosis(ends):
    """State of links and control programs, for a run that hangs."""
    return ends.both(
        lambda side: {
            "link": read(side.card)["state"],
            "mcp": side.card.read_register("MCP_STATE"),
            "now_us": side.now() // 1000,
            **{k: v for k, v in counters(side).items() if v},
        }
    )


def one(ends, keys, choice, number, fault, following=float("inf")):
    """One run: (faults found, counters' change), or None if its fault came before its traffic.

    following : time of the next fault, µs. If the traffic lasts until then, the counts of the two
                faults cannot be separated. Then there is no change, and only bytes and notices are
                checked.
    """
    plans = [fault_traffic.plan(choice, number) for _ in range(2)]
    begin = int(1000 * (fault.begin - choice.uniform(2, 40)))
    after = int(1000 * (fault.until + 60)) if fault.begin else 0
    tasks = []
    for n in range(2):
        before = (
            (int(1000 * fault.begin), inject)
            if fault.kind == "injected" and fault.direction == n
            else None
        )
        tasks.append(
            lambda side, n=n, before=before: fault_traffic.traffic(
                side, plans[n], keys[1 - n], len(plans[1 - n].inline), begin, before, after
            )
        )
    ends.both(fault_traffic.reset)
    counted = ends.both(counters)
    found = ends.both(*tasks)
    if fault.begin and any(f["begin"] > 1000 * fault.begin for f in found):
        return None
    faults = fault_traffic.check(ends.sides, plans, found)
    if any(f["hang"] for f in found):
        return [*faults, json.dumps(diagnosis(ends))], None
    counted = change(counted, ends.both(counters))
    if max(ends.both(lambda side: side.now())) > 1000 * following:
        return faults, {}
    missing = uncounted(fault.kind, counted)
    return faults + [missing] * bool(missing), counted


# Restart ------------------------------------------------------------------------------------------

BULK = 48 << 10


def restart(ends, keys, choice, number):
    """One card restarts while bulk goes both ways; then traffic as in one().

    It gets another control program, or it is opened again, which resets it. At that time a receive
    waits for a message of the card.
    """
    victim, pause = choice.choice((0, 1)), choice.uniform(3, 120) * 1000
    opens = choice.random() < 0.5
    back = threading.Event()
    sent = np.frombuffer(choice.randbytes(BULK), np.uint8)

    def room(side):
        side.bulk = libdibber.alloc(BULK)
        side.bulk[:] = fault_traffic.FILL
        side.data = libdibber.alloc(BULK)
        side.data[:] = sent
        side.regions = [
            side.endpoint.register(side.bulk, RIGHT.REMOTE_WRITE),
            side.endpoint.register(side.data, RIGHT.LOCAL_READ),
        ]
        return side.regions[0].key

    def blast(side):
        for n in range(3):
            side.endpoint.put(
                side.regions[1].key,
                n * BULK // 3,
                bulk[1 - side.node],
                n * BULK // 3,
                BULK // 3,
                node=1 - side.node,
                tag=n,
            )
        if side.node != victim:
            return survive(side)
        side.sleep(int(pause))
        side.endpoint.close()
        for region in (*side.regions, side.region):
            region.close()
        if opens:
            side.card.close()
            side.card = libdibber.Card(side.uri)
            side.card.set_node(side.node)
        side.card.load_firmware(str(paths.FIRMWARE))
        side.endpoint = side.card.endpoint(1)
        back.set()
        return {}

    def survive(side):
        """Every put ends, with a status that is possible when its target goes away."""
        begin, ended = side.now(), {}
        side.endpoint.receive(side.regions[0].key, 0, 64, node=victim, endpoint=1, tag=3)
        # Time goes on for one that comes only while somebody is there.
        while len(ended) < 4 and side.now() < begin + fault_traffic.LIMIT or not back.is_set():
            side.endpoint.wait(fault_traffic.STEP)
            ended |= {done.tag: STATUS.name_of(done.status) for done in side.endpoint.poll()}
            side.endpoint.poll_events()
        for region in side.regions:
            region.close()
        return ended

    bulk = ends.both(room)
    # One that watches has the simulator look at each turn for one that comes.
    with libdibber.Card(ends.sides[victim].uri, observe=True):
        ended = ends.both(blast)[1 - victim]
    new = ends.both(
        *[
            (lambda side: fault_traffic.offer(side, side.node))
            if n == victim
            else (lambda side: keys[side.node])
            for n in range(2)
        ]
    )
    keys[victim] = new[victim]
    faults = [] if len(ended) == 4 else [f"after a restart card {1 - victim} hangs: {ended}"]
    faults += [f"a receive ended as {ended[3]}"] * (ended.get(3) not in (None, "PEER_RESTARTED"))
    faults += [
        f"after a restart a put ended as {status}"
        for status in ended.values()
        if status not in ("OK", "PEER_RESTARTED", "REMOTE_BAD_KEY", "REMOTE_NOT_PERMITTED")
    ]
    landed = [side.bulk.copy() for side in ends.sides]
    found, counted = one(ends, keys, choice, number, Fault("restart"))
    for n, side in enumerate(ends.sides):
        wrong = int(((side.bulk != sent) & (side.bulk != fault_traffic.FILL)).sum())
        if wrong:
            faults.append(f"card {n}: {wrong} bytes are neither sent nor as before")
        if (side.bulk != landed[n]).any():
            faults.append(f"card {n}: a packet from before the restart landed long after it")
    return faults + found, counted


# Batches ------------------------------------------------------------------------------------------


def batch(seed, number, runs):
    """Yields (kind, faults, counted) of each run of a batch. Every fourth batch has bit errors,
    every fourth restarts.
    """
    choice = random.Random(f"{seed}/{number}")
    group = ("scheduled", "bit errors", "scheduled", "restart")[number % 4]
    faults, options = [Fault(group)] * runs, []
    if group == "scheduled":
        at, faults = FIRST, []
        for _ in range(runs):
            faults.append(scheduled(choice, at))
            at = faults[-1].until + ROOM
        options = [f"--fault={fault.option}" for fault in faults if fault.option]
    elif group == "bit errors":
        options = ["--ber", f"{choice.choice((3e-6, 1e-5, 3e-5))}"]
    with (
        Pair(profile.load("gen2x4"), seed=choice.getrandbits(32), options=options) as pair,
        Ends(pair.uris) as ends,
    ):
        ends.both(measure.wait_up)
        keys = ends.both(lambda side: fault_traffic.offer(side, side.node))
        for n, fault in enumerate(faults):
            following = [later.begin for later in faults[n + 1 :] if later.begin]
            result = (
                restart(ends, keys, choice, n + 1)
                if group == "restart"
                else one(ends, keys, choice, n + 1, fault, *following[:1])
            )
            if result is None:
                continue
            yield fault.kind, *result
            if result[1] is None:
                return  # the run hangs


def main():
    soak = Soak("Traffic in both directions under faults of every kind.", BATCH)
    for kind, counted in soak.runs(batch):
        soak.kinds[kind].update(hangs=int(counted is None), **(counted or {}))
    return soak.report(
        [
            "kind",
            "runs",
            "hangs",
            "failed",
            "code",
            "disparity",
            "damaged",
            "NAKs",
            "link lost",
            "STOPs",
        ],
        lambda kind, c: (
            kind,
            c["runs"],
            c["hangs"],
            c["failed"],
            c["code_errors"],
            c["disparity_errors"],
            sum(c[name] for name in DAMAGED),
            c["naks_sent"],
            c["link_lost"],
            c["stops_received"],
        ),
        "no hang, no wrong byte, each notice once and in order, every error counted",
    )


if __name__ == "__main__":
    sys.exit(quiet(main))
