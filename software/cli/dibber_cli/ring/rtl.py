"""The model beside Dibber's ring nodes in Verilator: the same workload in both.

The bench of bare nodes (tests/gateware/fabric/ring_bench.py) is built when it is needed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from dibber_cli import paths
from dibber_cli.errors import CommandError
from dibber_cli.ring.commands import FILES
from dibber_cli.ring.model import Model
from dibber_cli.ring.parameters import Parameters, checked, load

BENCH = paths.ROOT / "tests" / "gateware" / "fabric" / "ring_bench.py"
DELAY = 17  # words of both transceivers and a cable of 0 m, at 125 MHz
NODE = 3  # cycles from word to word in a node
MEGABYTES = 500.0  # of a word in each cycle, in a second
CYCLE_NS = 8
# Bits of the bench's channels: BULK; BULK and spare.
BULK, PAIR_CHANNELS = 0b0100, 0b1100


@dataclasses.dataclass(frozen=True)
class Case:
    """A workload.

    Attributes
    ----------
    nodes   : of the ring
    pattern : uniform, next, single (node 0 alone, to the node across) or hot (all to node 0)
    words   : of a packet, without START, prefix and END
    least   : words of the shortest packet; sizes are uniform from `least` to `words`. 0: all equal
    load    : words a cycle that each node offers; 1: as many as it can
    take    : words a cycle that the client behind a node takes
    rings   : 2: a pair. Two nodes of a pair send on two channels, because one has a word a cycle
    """

    nodes: int
    pattern: str = "uniform"
    words: int = 72
    least: int = 0
    load: float = 1.0
    take: float = 1.0
    rings: int = 1

    @property
    def name(self) -> str:
        load = "full load" if self.load >= 1 else f"load {self.load:g}"
        words = f"{self.least} to {self.words}" if self.least else self.words
        slow = "" if self.take >= 1 else f", taken at {self.take:g}"
        pair = ", pair" if self.rings == 2 else ""
        return f"RTL {self.nodes} nodes{pair}, {self.pattern}, {words} words, {load}{slow}"

    @property
    def settles(self) -> bool:
        """The mean latency does not depend on the phase between nodes. Two nodes with equal packets
        at full load keep the phase that they happen to have, and with it their latency. So do some
        nodes whose packets are all refused once.
        """
        if self.take < 1:
            return False
        return self.least > 0 or self.load < 1 or self.nodes > 2 or self.pattern != "uniform"


# 72 words are a packet with 256 bytes of payload, 16 one with 32 bytes.
CASES = [
    *(Case(nodes, words=words) for nodes in (2, 4, 8) for words in (72, 16, 300)),
    *(Case(nodes, words=108, least=36) for nodes in (2, 4, 8)),
    *(Case(nodes, pattern) for nodes in (2, 4, 8) for pattern in ("single", "hot")),
    *(Case(nodes, load=load) for nodes, load in ((2, 0.5), (4, 0.2), (8, 0.1))),
    *(Case(nodes, "hot", take=0.5) for nodes in (2, 4, 8)),
    Case(8, "next"),
]
CASES += [
    *(Case(nodes, rings=2) for nodes in (2, 4, 8)),
    *(Case(nodes, words=108, least=36, rings=2) for nodes in (4, 8)),
    *(Case(nodes, load=load, rings=2) for nodes, load in ((2, 0.8), (4, 0.4), (8, 0.3))),
]
QUICK = [Case(2, words=108, least=36), Case(4, words=16), Case(8), Case(4, rings=2)]

PATTERNS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "next": {"pattern": "next"},
    "single": {"pattern": "opposite", "sources": [0]},
    "hot": {"pattern": "hot-receiver"},
}


def bench(case: Case, cycles: int) -> dict[str, Any]:
    """What the gateware does. Raises CommandError."""
    if not BENCH.exists():
        raise CommandError(f"there is no {BENCH}: --validate needs the whole tree")
    words = [
        *(["pair", f"channels={PAIR_CHANNELS if case.nodes == 2 else BULK}"] * (case.rings == 2)),
        f"nodes={case.nodes}",
        f"pattern={case.pattern}",
        f"words={case.words}",
        f"least_words={case.least or case.words}",
        f"load={case.load}",
        f"take={case.take}",
        f"cycles={cycles}",
        f"delay={DELAY}",
    ]
    folder = pathlib.Path(sys.executable).parent
    done = subprocess.run(
        [sys.executable, "-P", BENCH, *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PATH": f"{folder}:{os.environ.get('PATH', '')}"},
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise CommandError(f"the bench of ring nodes failed: {last[0]}") from None
    if found["failed"]:
        raise CommandError(f"the bench of ring nodes found a fault: {case.name}")
    if case.rings == 2:
        found["throughput"] = found["throughput"][0]  # no cable is cut
    return found


def parameters(case: Case, cycles: int, offered: float) -> Parameters:
    """The Parameters of a case.

    offered : words a cycle that each node sends, for a load below 1
    """
    raw = load(FILES / "dibber.toml").raw
    size = 4 * case.words
    workload = {"kind": "message", "channel": 2, "block_bytes": size, **PATTERNS[case.pattern]}
    if case.pattern == "hot":
        workload["sources"] = list(range(1, case.nodes))
    if case.least:
        workload["least_bytes"] = 4 * case.least
    if case.load < 1:
        workload |= {"offered_mbps": offered * MEGABYTES, "spacing": "uniform"}
    else:
        workload["outstanding"] = 200  # more than both buffers hold
    workloads = [workload]
    ring = {**raw["ring"], "nodes": case.nodes, "wire_m": 0.0}
    if case.rings == 2:
        ring |= {"rings": 2, "choose": "front"}
    if case.rings == 2 and case.nodes == 2:
        workloads.append({**workload, "channel": 3})
        for each in workloads if case.load < 1 else []:
            each["offered_mbps"] /= 2
    return checked(
        {
            **raw,
            "name": case.name,
            "ring": ring,
            "node": {**raw["node"], "pass_symbols": DELAY + NODE},
            # The bench counts whole packets: 3 words are START, prefix and END. A sink takes the
            # prefix and then a word in each cycle.
            "packet": {"payload_bytes": size, "overhead_symbols": 3, "echo_symbols": 2},
            "client": {
                "send_mbps": MEGABYTES,
                # In a pair, the choice of a ring takes a cycle more.
                "send_ns": CYCLE_NS * case.rings,
                # Two channels of a pair are taken at once.
                "receive_mbps": case.take * MEGABYTES * len(workloads),
            },
            "workload": workloads,
            "run": {"warmup_us": 40.0, "measure_us": cycles * CYCLE_NS / 1e3},
        }
    )


def rows(quick: bool = False) -> Iterator[tuple]:
    """The fields of a validate.Row: throughput and mean latency of each case."""
    cycles = 100_000 if quick else 150_000
    for case in QUICK if quick else CASES:
        real = bench(case, cycles)
        offered = real["throughput"] / case.nodes
        total = Model(parameters(case, cycles, offered)).run()["total"]
        throughput = total["mbps"] / MEGABYTES
        latency = total["crossing"]["mean_ns"] / CYCLE_NS
        # With a load below 1 the throughput is what the bench sent: nothing to compare.
        if case.load >= 1:
            yield f"{case.name}: throughput", throughput, real["throughput"], "words/cycle"
        if case.settles:
            mean = real["latency"]["mean"]
            yield f"{case.name}: latency", latency, mean, "cycles", "within", 0.1
