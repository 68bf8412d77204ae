"""The send engine of a card with two links: jobs go through it packet by packet, and nothing of
their packets changes but the order.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.job_turns import JobTurns
from dibber.deposit.regions import RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send_engine import SendEngine
from dibber.interface.description import FLAG, PACKET_FLAG, STATUS
from dibber.layouts import send_layout

from tests.gateware.models import deposit_path
from tests.gateware.models.command import command
from tests.gateware.models.cut import cut
from tests.gateware.models.deposit_path import LENGTH, PUTS, Path, expected_memory

FAR = 3  # node behind link 1; the others are behind link 0


class Sender(LiteXModule):
    """JobTurns and the engine, as one engine; `links` has the link of each packet."""

    def __init__(self, data_width, tags):
        self.turns = turns = JobTurns()
        self.engine = engine = SendEngine(data_width, tags=tags, timeout=1200, links=2)
        self.jobs, self.done = turns.sink, turns.done
        self.packets = stream.Endpoint(send_layout())
        self.link = engine.packets.link
        came = Signal()
        self.comb += [
            turns.homes.eq(1 << FAR),
            turns.room.eq(3),
            came.eq(engine.packets.valid & engine.packets.ready),
            turns.came.eq(Mux(came, 1 << engine.packets.link, 0)),
            turns.parts.connect(engine.jobs),
            engine.done.connect(turns.ends),
            engine.packets.connect(self.packets, omit={"link"}),
        ]
        for name in ("lookup", "slot", "epochs", "max_request", "extended_tags", "reads"):
            setattr(self, name, getattr(engine, name))
        self.completions, self.payload = engine.completions, engine.payload


class LinkedPair(LiteXModule):
    def __init__(self, data_width, tags):
        self.regions = RegionTable()
        self.send = Sender(data_width, tags)
        self.scatter = ScatterEngine(data_width)
        self.comb += [
            self.send.lookup.connect(self.regions.ports[0]),
            self.scatter.lookup.connect(self.regions.ports[1]),
        ]


@pytest.fixture(autouse=True)
def linked(monkeypatch):
    monkeypatch.setattr(deposit_path, "Pair", LinkedPair)


def sent(path, node):
    """(psn, flags, skip, length) of all packets to a node."""
    return [(p[2], p[3], p[7], p[8]) for p in path.packets if p[0] == node]


def expected(length, psn, flags, skip=0):
    packets = cut(length, skip)
    return [
        (
            (psn + n) % 2**16,
            (flags | PACKET_FLAG.LAST if n == len(packets) - 1 else 0)
            | (PACKET_FLAG.FIRST if (psn + n) % 2**16 == 0 else 0),
            *packet,
        )
        for n, packet in enumerate(packets)
    ]


def test_puts_of_one_packet_are_as_with_one_link():
    jobs = [
        (command(s, t, n, node=1, flags=FLAG.NOTICE, endpoint=4, notice=n), {}) for s, t, n in PUTS
    ]
    path = Path(jobs, 64).run(lambda p: len(p.arrivals) == len(PUTS))
    assert path.writes.memory == expected_memory(PUTS)
    assert path.ended == [(n, STATUS.OK, 10 * n + 1) for n in range(len(PUTS))]


@pytest.mark.parametrize("data_width, busy", [(64, 1.0), (128, 0.6)])
def test_long_jobs_of_both_links_alternate(data_width, busy):
    near = ((1, 3, 600, (1000,), (16,)), (2, 0, 48, (56, 1200), (20, 10)), 9600)
    far = ((1, 70000, 0, (), ()), (2, 300000, 0, (), ()), 4096 * 3 + 5)
    jobs = [
        (command(*near, flags=FLAG.NOTICE, notice=9), dict(psn=65535)),
        (command(*far, node=FAR), dict(psn=40, node=FAR, skip=4096, incarnation=0)),
    ]
    path = Path(jobs, data_width, busy=busy).run(lambda p: len(p.done) == 6 and len(p.ended) == 2)
    last = PACKET_FLAG.NOTICE
    assert sent(path, 1) == expected(9600, 65535, last)
    assert sent(path, FAR) == expected(4096 * 3 + 5, 40, 0, 4096)
    assert [p[0] for p in path.packets][:4] in ([1, FAR, 1, FAR], [FAR, 1, FAR, 1])
    assert sorted(path.ended) == [(0, STATUS.OK, 2), (1, STATUS.OK, 43)]
    near_memory, far_memory = expected_memory([near]), expected_memory([far])
    start = min(far_memory) + 4096
    assert path.writes.memory == near_memory | {
        at: value for at, value in far_memory.items() if at >= start
    }


def test_a_job_that_leaves_its_region_fails_at_its_packet():
    """Two packets of the job are sent whole; the third one reaches behind the region."""
    offset = LENGTH - 2 * 4096 - 100
    put = ((1, offset, 0, (), ()), (2, 0, 0, (), ()), 5 * 4096)
    jobs = [
        (command(*put, flags=FLAG.NOTICE), dict(psn=7)),
        (
            command((1, 0, 0, (), ()), (2, 400000, 0, (), ()), 20, node=FAR),
            dict(psn=3, node=FAR, incarnation=0),
        ),
    ]
    path = Path(jobs, 64).run(lambda p: len(p.ended) == 2)
    assert sorted(path.ended) == [(0, STATUS.BOUNDS, 9), (1, STATUS.OK, 4)]
    assert [p for p in sent(path, 1) if p[0] < 9] == [(7, 0, 0, 4096), (8, 0, 4096, 4096)]
    assert not any(p[1] & PACKET_FLAG.NOTICE for p in sent(path, 1))
