"""`dibber ring model --validate`: the model against published figures of SCI and GigaRing, and
against Dibber's own ring nodes in simulation (rtl.py).
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
from collections.abc import Iterator
from typing import Any

from dibber_cli import output
from dibber_cli.ring import rtl
from dibber_cli.ring.commands import FILES
from dibber_cli.ring.model import Model
from dibber_cli.ring.parameters import Parameters, checked, load

# Kaczynski, "GigaRing Performance Analysis", Cray Research: simulated figures.
GIGARING_HALF = 916.0  # MB/s, one node sends
GIGARING_FULL = 2 * 819.0  # MB/s, both send
GIGARING_ECHO = 462.0  # ns from a data packet to its echo, no wire
GIGARING_METRE = 5.0  # ns more for each metre of wire on that way


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes
    ----------
    name     : what was compared
    value    : of the model
    expected : the other figure
    unit     : of both
    rule     : "within" a share of `expected`, "above" or "below" it
    share    : of `expected`, for "within"
    """

    name: str
    value: float
    expected: float
    unit: str
    rule: str = "within"
    share: float = 0.05

    @property
    def good(self) -> bool:
        if self.rule == "within":
            return abs(self.value - self.expected) <= self.share * abs(self.expected)
        return self.value > self.expected if self.rule == "above" else self.value < self.expected

    @property
    def limit(self) -> str:
        return f"within {100 * self.share:g} %" if self.rule == "within" else self.rule

    def figures(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "good": self.good}


def _run(parameters: Parameters, **changes: Any) -> dict[str, Any]:
    """The figures of a run; a key is written table__key."""
    named = {key.replace("__", "."): value for key, value in changes.items()}
    return Model(parameters.changed(named)).run()


# SCI ----------------------------------------------------------------------------------------------


def bound(parameters: Parameters, data_share: float) -> float:
    """Payload in MB/s at which all links of a ring of any size are full, for uniform traffic.

    A packet crosses half of the links on average, and its echo the other half. So a node may send
    2 / nodes of its link's symbols, and all nodes together 2 bytes of payload for each byte of a
    packet with its echo (after Scott, Goodman, Vernon, ISCA 1992).
    """
    separator = parameters.packet["separator_symbols"]
    payload = parameters.packet["payload_bytes"]
    data, address = (parameters.symbols(size) + separator for size in (payload, 0))
    packet = data_share * data + (1 - data_share) * address
    echo = parameters.packet["echo_symbols"] + separator
    return 2 * data_share * payload / (packet + echo) * parameters.ring["symbol_mhz"]


def _data_share(parameters: Parameters, result: dict[str, Any]) -> float:
    """Share of data packets that a run had: the model chooses them at random."""
    count = result["total"]["mbps"] * result["measure_us"] / parameters.packet["payload_bytes"]
    return count / result["total"]["packets"]


def sci(quick: bool = False) -> Iterator[Row]:
    """Saturation against the closed form; starvation without flow control, and its price."""
    ring = load(FILES / "sci.toml")
    short = 40.0 if quick else 200.0
    for nodes in (4,) if quick else (2, 4, 8, 16, 64):
        for share in (0.0, 0.6):
            free = _run(
                ring,
                ring__nodes=nodes,
                ring__go_bits=False,
                workload__short_share=share,
                run__measure_us=short,
            )
            kind = "60 % address packets" if share else "data packets"
            name = f"SCI {nodes} nodes, {kind}, no go bits: saturation"
            yield Row(name, free["total"]["mbps"], bound(ring, _data_share(ring, free)), "MB/s")
        if nodes > 2:
            held = _run(ring, ring__nodes=nodes, run__measure_us=short)
            name = f"SCI {nodes} nodes, go bits have a price"
            yield Row(name, held["total"]["mbps"], free["total"]["mbps"], "MB/s", "below")
    yield from _starved(ring, short)
    if not quick:
        yield from _hot_sender(ring)


def _starved(ring: Parameters, short: float) -> Iterator[Row]:
    """All nodes are busy and none sends to node 0. So no packet is taken off there, and the others
    leave it no gap.
    """
    shares = {}
    for go in (False, True):
        run = _run(ring, ring__go_bits=go, workload__targets=[1, 2, 3], run__measure_us=short)
        sent = [node["sent_mbps"] for node in run["by_node"]]
        shares[go] = 100 * sent[0] / (sum(sent) / len(sent))
    name = "SCI 4 nodes, none sends to node 0: its part of a fair share"
    yield Row(f"{name}, no go bits", shares[False], 1.0, "%", "below")
    yield Row(f"{name}, go bits", shares[True], 50.0, "%", "above")


def _hot_sender(ring: Parameters) -> Iterator[Row]:
    """Node 0 sends all it can, the others a little."""
    raw = {**ring.raw, "ring": {**ring.raw["ring"], "nodes": 16}}
    hot = {**ring.raw["workload"][0], "sources": [0]}
    cold = {**hot, "sources": list(range(1, 16)), "offered_mbps": 25.0}
    del cold["outstanding"]
    rate, wait = {}, {}
    for go in (False, True):
        raw["ring"]["go_bits"] = go
        run = Model(checked({**raw, "workload": [hot, cold]})).run()
        rate[go] = run["by_node"][0]["sent_mbps"]
        wait[go] = sum(node["until_echo"]["mean_ns"] for node in run["by_node"][1:]) / 15
    name = "SCI 16 nodes, hot sender, go bits"
    yield Row(f"{name} hold it back: payload", rate[True], rate[False], "MB/s", "below")
    yield Row(f"{name} help the others: mean time", wait[True], wait[False], "ns", "below")


# GigaRing -----------------------------------------------------------------------------------------


def gigaring(quick: bool = False) -> Iterator[Row]:
    """The published figures. The first and the third were used to fit a term each."""
    ring = load(FILES / "gigaring.toml")
    if quick:
        ring = ring.changed({"run.measure_us": 100.0})
    half = _run(ring)["total"]["mbps"]
    yield Row("GigaRing half duplex, blocks of 1 kiloword", half, GIGARING_HALF, "MB/s")
    full = _run(ring, workload__sources="all", workload__block_bytes=16384)["total"]["mbps"]
    yield Row("GigaRing full duplex, blocks of 2 kilowords", full, GIGARING_FULL, "MB/s")
    trips = {}
    for metres in (0.0, 100.0):
        alone = _run(
            ring,
            workload__kind="message",
            workload__block_bytes=256,
            workload__outstanding=1,
            ring__wire_m=metres,
        )
        trips[metres] = alone["total"]["round_trip"]["mean_ns"]
    name = "GigaRing unloaded, 0 m: last symbol to echo"
    yield Row(name, trips[0.0], GIGARING_ECHO, "ns")
    slope = (trips[100.0] - trips[0.0]) / 200  # the packet's wire and the echo's
    yield Row("GigaRing unloaded, each metre on the way", slope, GIGARING_METRE, "ns")
    if not quick:
        yield from _blocks(ring, half)


def _blocks(ring: Parameters, peak: float) -> Iterator[Row]:
    """The shape of the curve over the size of a block, with one block at a time."""
    at = {
        words: _run(ring, workload__block_bytes=8 * words, workload__outstanding=1)["total"]["mbps"]
        for words in (32, 1024)
    }
    name = "GigaRing one block at a time"
    yield Row(f"{name}: 1 kiloword above 90 % of the peak", at[1024], 0.9 * peak, "MB/s", "above")
    yield Row(f"{name}: 32 words below 50 %", at[32], 0.5 * peak, "MB/s", "below")


# All ----------------------------------------------------------------------------------------------


def rows(quick: bool = False) -> list[Row]:
    """All comparisons; `quick`: a sample of each kind."""
    return [*sci(quick), *gigaring(quick), *(Row(*row) for row in rtl.rows(quick))]


def show(found: list[Row]) -> None:
    output.table(
        ["comparison", "model", "expected", "%", "unit", "rule", ""],
        [
            [
                row.name,
                f"{row.value:.4g}",
                f"{row.expected:.4g}",
                f"{100 * (row.value / row.expected - 1):+.1f}",
                row.unit,
                row.limit,
                "good" if row.good else "WRONG",
            ]
            for row in found
        ],
        group=6,
    )
    wrong = sum(not row.good for row in found)
    print(f"{len(found)} rows, {wrong} wrong")
