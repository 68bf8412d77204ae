"""The netlist is the design: in simulation the core after synthesis equals its RTL, TLP by TLP and
cycle by cycle.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json

import flow
import pytest
from dibber.interface.description import STATUS
from dibber_cli import paths
from libdibber import Walk

from tests.system.pair import Pair, Side

PROFILE = "gen2x1"  # 64 bits at 125 MHz
SIZE = 8192
NOTICE = 7
# Elements of 8 bytes, and of 3 and 4 at odd addresses: (block, offset, levels) of source and
# target.
PUTS = [
    ((8, 0, ((64, 24),)), (8, 64, ((64, 40),))),
    ((3, 5, ((4, 7), (11, 100))), (4, 4099, ((33, 9),))),
]


class PatientPair(Pair):
    """A netlist takes ten times as long as RTL."""

    def _answer(self, node, timeout=3600):
        return super()._answer(node, timeout)


def put(side, node, source, target):
    """Status of a put to endpoint 1 of `node`."""
    side.endpoint.put_strided(Walk(*source), Walk(*target), node=node, notice=NOTICE, endpoint=1)
    return side.completion()


def scenario(options):
    """Load the firmware, which is read back; puts both ways at once, by the fast path and by the
    control program, and their bytes.

    Returns each TLP with its time, the statistics of cards and cables, and whether exactly all
    bytes arrived.
    """
    trace = flow.fresh(flow.BUILD / "tests" / "netlist") / "tlps"
    right = []
    with PatientPair(
        PROFILE, options=["--threads", "1", "--tlp-trace", str(trace), *options]
    ) as pair:
        keys = [pair.together(*[(Side.register, name, SIZE)] * 2) for name in ("source", "target")]
        for fast, (source, target) in enumerate(PUTS):
            pair.together(*[(Side.fast_path, bool(fast))] * 2)
            pair.together(*[(Side.fill, "source", 10 * fast + node) for node in range(2)])
            pair.together(*[(Side.fill, "target", None, 0xEE)] * 2)
            statuses = pair.together(
                *[
                    (put, 1 - node, (keys[0][node], *source), (keys[1][1 - node], *target))
                    for node in range(2)
                ]
            )
            notices = [event[0] for event in pair.together((Side.event,), (Side.event,))]
            sources, targets = [
                pair.together((Side.read, name), (Side.read, name)) for name in ("source", "target")
            ]
            right.append(
                (
                    statuses,
                    notices,
                    [
                        expected(sources[1 - node], source, target) == targets[node]
                        for node in range(2)
                    ],
                )
            )
        for pipe in pair.pipes:
            pipe.send(None)
        for process in pair.processes:
            process.join(600)
        pair.simulator.stop()
        stats = json.loads(pair.simulator.stats.read_text())
    return (
        trace.read_bytes(),
        {name: value for name, value in stats.items() if "second" not in name},
        right,
    )


def expected(memory, source, target):
    """The target's memory after a put."""
    payload = b"".join(memory[at : at + source[0]] for at in Walk(0, *source).blocks())
    found = bytearray(b"\xee" * SIZE)
    for n, at in enumerate(Walk(0, *target).blocks()):
        found[at : at + target[0]] = payload[n * target[0] : (n + 1) * target[0]]
    return bytes(found)


# Runs ---------------------------------------------------------------------------------------------


@pytest.fixture
def with_gates(monkeypatch):
    """scenario() with a list of gates on both cards."""
    monkeypatch.setattr(
        paths, "simulator", lambda profile: paths.BUILD / "sim" / "dibber-sim-gates"
    )
    return lambda gates: scenario(["--device", str(gates)])


@pytest.fixture(scope="module")
def rtl():
    return scenario([])


def test_the_rtl_is_right(rtl):
    tlps, stats, right = rtl
    assert right == [([STATUS.OK] * 2, [NOTICE] * 2, [True] * 2)] * len(PUTS)
    assert len(tlps) > 500_000 and stats["cycles"] > 100_000


def test_the_netlist_does_the_same_tlp_by_tlp_and_cycle_by_cycle(rtl, with_gates):
    tlps, stats, right = with_gates(flow.BUILD / "core-64.gates")
    assert right == rtl[2]
    assert stats == rtl[1]
    assert tlps == rtl[0]


def mutant():
    """The list with one LUT stuck at 0, the one in front of the register of the first bit to the
    host.
    """
    lines = (flow.BUILD / "core-64.gates").read_text().splitlines()
    words = [line.split() for line in lines]
    pin = next(w[2] for w in words if w[:2] == ["output", "pcie_tx_dat"])
    data = next(w[3] for w in words if w[0] == "ff" and w[2] == pin)
    at = next(n for n, w in enumerate(words) if w[0] == "lut" and w[2] == data)
    lines[at] = " ".join(["lut", "0000", *words[at][2:]])
    return "\n".join(lines) + "\n"


def test_a_lut_that_is_stuck_is_found(with_gates, tmp_path):
    (tmp_path / "mutant.gates").write_text(mutant())
    with pytest.raises(RuntimeError, match="is not a Dibber card: BAR 0 begins with"):
        with_gates(tmp_path / "mutant.gates")
