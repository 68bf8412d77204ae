"""The acknowledger: cumulative, coalesced, refusals first, nothing of an old flow, lanes apart."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from migen import *

from dibber.interface.description import C, LANE, PACKET_FLAG, STATUS
from dibber.packet.acknowledge import Acknowledger

from tests.gateware.models.compiled import run_simulation

FIELDS = ("node", "incarnation", "ack", "psn", "flags", "reason", "refusals")


LANES = pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))


def about(lane):
    return PACKET_FLAG.EXPRESS if lane == LANE.EXPRESS else 0


class Bench:
    """Events go to `lane`."""

    def __init__(self, lane=LANE.BULK):
        self.dut, self.acks, self.ready = Acknowledger(), [], True
        self.lane = lane
        self.counts = dict.fromkeys(self.dut.counters, 0)

    @passive
    def _count(self):
        while True:
            yield
            for name, pulse in self.dut.counters.items():
                self.counts[name] += yield pulse

    @passive
    def _take(self):
        while True:
            ready = int(self.ready)
            yield self.dut.source.ready.eq(ready)
            yield
            if ready and (yield self.dut.source.valid):
                values = []
                for name in FIELDS:
                    values.append((yield getattr(self.dut.source, name)))
                self.acks.append(tuple(values))

    def event(self, name, node, value=None):
        event = getattr(self.dut.lanes[self.lane], name)
        yield event.strobe.eq(1)
        yield event.node.eq(node)
        if value is not None:
            yield (event.token if name == "asked" else event.incarnation).eq(value)
        yield
        yield event.strobe.eq(0)

    def absent(self, node, incarnation, psn):
        yield self.dut.lanes[self.lane].absent.psn.eq(psn)
        yield from self.event("absent", node, incarnation)

    def done(self, node, incarnation, psn, reason=None, patience=20):
        """Report a deposit's end; returns whether it was taken in time."""
        done = self.dut.lanes[self.lane].done
        for name, value in dict(
            node=node,
            incarnation=incarnation,
            psn=psn,
            refused=int(reason is not None),
            reason=reason or 0,
            valid=1,
        ).items():
            yield getattr(done, name).eq(value)
        taken = False
        while patience and not taken:
            yield
            taken = bool((yield done.ready))
            patience -= 1
        yield done.valid.eq(0)
        return taken

    def settle(self, cycles=12):
        for _ in range(cycles):
            yield

    def run(self, process):
        run_simulation(self.dut, [self._take(), self._count(), process])


@LANES
def test_each_deposit_is_acknowledged_when_there_is_time(lane):
    bench = Bench(lane)

    def process():
        for node in range(C.NODES):
            yield from bench.event("started", node, 100 + node)
            for psn in range(2):
                yield from bench.done(node, 100 + node, psn)
                yield from bench.settle()

    bench.run(process())
    assert bench.acks == [
        (node, 100 + node, psn, 0, about(lane), 0, 0) for node in range(C.NODES) for psn in range(2)
    ]


def test_acknowledgements_coalesce_to_one_a_node():
    bench = Bench()

    def process():
        bench.ready = False
        yield from bench.event("started", 3, 1)
        yield from bench.event("started", 9, 1)
        for psn in range(20):
            yield from bench.done(3, 1, psn)
            yield from bench.done(9, 1, psn)
        bench.ready = True
        yield from bench.settle()

    bench.run(process())
    # The first was waiting at the output already.
    assert bench.acks == [(3, 1, 0, 0, 0, 0, 0), (3, 1, 19, 0, 0, 0, 0), (9, 1, 19, 0, 0, 0, 0)]


@LANES
def test_what_tells_of_a_packet_that_is_open_is_held_until_it_has_landed(lane):
    """And nothing else is: what was looked up before, what is told when it has landed, and what
    waits while the next packet is open.
    """
    bench = Bench(lane)

    def told(psn, hold):
        """Wait until the acknowledgement of `psn` is at the output."""
        source = bench.dut.source
        for _ in range(20):
            if (yield source.valid) and (yield source.ack) == psn:
                break
            yield
        else:
            assert False, f"{psn} is not told"
        assert (yield bench.dut.hold) == hold

    def process():
        bench.ready = False
        open_ = bench.dut.open[lane]
        yield from bench.event("started", 3, 1)
        yield from bench.done(3, 1, 0)
        yield from told(0, 0)
        # The packet behind that is open now.
        yield from bench.done(3, 1, 1)
        yield open_.eq(1)
        yield from bench.settle()
        yield from told(0, 0)
        bench.ready = True
        yield
        bench.ready = False
        yield from told(1, 1)
        yield from bench.settle()
        yield from told(1, 1)
        yield open_.eq(0)
        yield
        yield open_.eq(1)
        yield
        yield from told(1, 0)
        yield from bench.settle()
        yield from told(1, 0)

    bench.run(process())


@LANES
def test_a_question_is_answered_with_what_is_held_and_its_token(lane):
    """Of a node that started nothing, of one whose packets are done, together with an
    acknowledgement, and two in one answer.
    """
    bench = Bench(lane)

    def process():
        yield from bench.event("asked", 5, 0x1234)
        yield from bench.settle()
        yield from bench.event("started", 3, 77)
        yield from bench.event("asked", 3, 1)
        yield from bench.settle()
        yield from bench.done(3, 77, 0)
        yield from bench.settle()
        bench.ready = False
        yield from bench.event("asked", 3, 2)
        yield from bench.event("asked", 3, 3)
        yield from bench.done(3, 77, 1)
        yield from bench.event("asked", 3, 4)
        bench.ready = True
        yield from bench.settle()
        yield from bench.event("repeat", 3)
        yield from bench.settle()

    bench.run(process())
    first = about(lane) | PACKET_FLAG.FIRST
    assert bench.acks == [
        (5, 0, 0xFFFF, 0x1234, first, 0, 0),
        (3, 77, 0xFFFF, 1, first, 0, 0),
        (3, 77, 0, 0, about(lane), 0, 0),
        (3, 77, 0, 2, first, 0, 0),
        (3, 77, 1, 4, first, 0, 0),
        (3, 77, 1, 0, about(lane), 0, 0),
    ]


@LANES
def test_a_refusal_goes_twice_before_any_acknowledgement_that_covers_it_and_none_is_lost(lane):
    bench, taken = Bench(lane), []

    def process():
        bench.ready = False
        yield from bench.event("started", 3, 1)
        yield from bench.done(3, 1, 0)
        yield from bench.settle()
        for psn in range(1, 7):
            taken.append((yield from bench.done(3, 1, psn, reason=STATUS.REMOTE_BOUNDS)))
        bench.ready = True
        for _ in range(2):
            yield from bench.settle()
        yield from bench.event("repeat", 3)
        yield from bench.done(3, 1, 5, reason=STATUS.REMOTE_BOUNDS)
        yield from bench.done(3, 1, 6)
        yield from bench.settle()

    bench.run(process())
    assert taken == [True] * 4 + [False] * 2, "refusals hold the engine when four wait"
    refusal = lambda psn: (
        3,
        1,
        psn,
        psn,
        PACKET_FLAG.REFUSED | about(lane),
        STATUS.REMOTE_BOUNDS,
        psn,
    )
    assert bench.acks == [
        (3, 1, 0, 0, about(lane), 0, 0),
        *[refusal(psn) for psn in range(1, 5) for _ in range(2)],
        (3, 1, 4, 0, about(lane), 0, 4),
        refusal(5),
        refusal(5),
        (3, 1, 6, 0, about(lane), 0, 5),
    ]
    assert bench.counts["PACKET_REFUSED"] == 5


@pytest.mark.fault
@LANES
def test_a_packet_of_a_flow_that_is_not_held_is_told_twice_and_counts_as_no_refusal(lane):
    """One waits at a time, beside the refusals; those that come meanwhile are not told."""
    bench = Bench(lane)

    def process():
        yield from bench.absent(5, 77, 0x1234)
        yield from bench.settle()
        bench.ready = False
        yield from bench.event("started", 3, 1)
        yield from bench.done(3, 1, 0)
        yield from bench.settle()
        for psn in range(1, 5):
            yield from bench.done(3, 1, psn, reason=STATUS.REMOTE_BOUNDS)
        yield from bench.absent(6, 8, 9)
        yield from bench.absent(7, 1, 1)
        bench.ready = True
        for _ in range(3):
            yield from bench.settle()
        yield from bench.done(3, 1, 5, reason=STATUS.REMOTE_BOUNDS)
        yield from bench.settle()

    bench.run(process())
    refused = PACKET_FLAG.REFUSED | about(lane)
    strange = lambda node, incarnation, psn: (
        node,
        incarnation,
        psn,
        psn,
        refused,
        STATUS.PEER_RESTARTED,
        0,
    )
    refusal = lambda psn: (3, 1, psn, psn, refused, STATUS.REMOTE_BOUNDS, psn)
    assert bench.acks == [
        *[strange(5, 77, 0x1234)] * 2,
        (3, 1, 0, 0, about(lane), 0, 0),
        *[refusal(psn) for psn in range(1, 5) for _ in range(2)],
        *[strange(6, 8, 9)] * 2,
        *[refusal(5)] * 2,
    ]
    assert bench.counts["PACKET_REFUSED"] == 5


def test_the_end_of_a_deposit_of_an_old_flow_acknowledges_nothing():
    bench = Bench()

    def process():
        yield from bench.event("started", 3, 7)
        yield from bench.done(3, 7, 0)
        yield from bench.settle()
        yield from bench.event("started", 3, 8)
        yield from bench.done(3, 7, 1)
        yield from bench.done(3, 7, 0, reason=STATUS.REMOTE_BAD_KEY)
        yield from bench.settle()
        # Asked again before anything of the new flow is done: nothing is.
        yield from bench.event("repeat", 3)
        yield from bench.settle()

    bench.run(process())
    assert bench.acks == [(3, 7, 0, 0, 0, 0, 0), (3, 8, 0xFFFF, 0, 0, 0, 0)]


@LANES
def test_refusals_are_counted_from_the_start_of_their_flow(lane):
    """A start meets the end of a refused deposit of the old flow, and of one of another node, in
    the same cycle.
    """
    bench = Bench(lane)
    done = bench.dut.lanes[lane].done

    def process():
        for node in (3, 4):
            yield from bench.event("started", node, 7)
            for psn in range(2):
                yield from bench.done(node, 7, psn, reason=STATUS.REMOTE_BOUNDS)
                yield from bench.settle()
        bench.acks.clear()
        for node, incarnation in ((3, 8), (5, 1)):
            # `done` stands for this cycle alone, that of the start.
            yield done.node.eq(3 if node == 3 else 4)
            yield done.psn.eq(2)
            yield done.refused.eq(1)
            yield done.valid.eq(1)
            yield from bench.event("started", node, incarnation)
            yield done.valid.eq(0)
            yield from bench.settle()
        for node, incarnation in ((3, 8), (4, 7), (5, 1)):
            yield from bench.event("repeat", node)
            yield from bench.settle()
            yield from bench.done(node, incarnation, 9, reason=STATUS.REMOTE_BOUNDS)
            yield from bench.settle()

    bench.run(process())
    numbers = [
        (node, incarnation, flags & PACKET_FLAG.REFUSED != 0, refusals)
        for node, incarnation, _, _, flags, _, refusals in bench.acks
    ]
    assert numbers == [
        *[(3, 7, True, 3)] * 2,
        *[(4, 7, True, 3)] * 2,
        (3, 8, False, 0),
        *[(3, 8, True, 1)] * 2,
        (4, 7, False, 3),
        *[(4, 7, True, 4)] * 2,
        (5, 1, False, 0),
        *[(5, 1, True, 1)] * 2,
    ]


def test_a_duplicate_is_acknowledged_with_what_is_done_and_not_with_what_it_names():
    bench = Bench()

    def process():
        yield from bench.event("started", 5, 1)
        yield from bench.done(5, 1, 0)
        yield from bench.settle()
        yield from bench.event("repeat", 5)
        yield from bench.settle()

    bench.run(process())
    assert bench.acks == [(5, 1, 0, 0, 0, 0, 0)] * 2


@LANES
@pytest.mark.parametrize("restarted", [False, True])
def test_a_gap_is_told_once_and_forgotten_with_its_flow(restarted, lane):
    bench = Bench(lane)

    def process():
        yield from bench.event("started", 5, 1)
        yield from bench.done(5, 1, 0)
        yield from bench.settle()
        bench.ready = False
        yield from bench.done(5, 1, 1)
        yield from bench.settle()
        yield from bench.event("gap", 5)
        if restarted:
            yield from bench.event("started", 5, 2)
        bench.ready = True
        yield from bench.settle()
        yield from bench.event("repeat", 5)
        yield from bench.settle()

    bench.run(process())
    nak = PACKET_FLAG.NAK
    told = (
        [(5, 2, 0xFFFF, 0, 0, 0)] * 2 if restarted else [(5, 1, 1, 0, nak, 0), (5, 1, 1, 0, 0, 0)]
    )
    assert bench.acks == [
        (node, i, ack, psn, flags | about(lane), reason, 0)
        for node, i, ack, psn, flags, reason in [(5, 1, 0, 0, 0, 0), (5, 1, 1, 0, 0, 0)] + told
    ]
    assert bench.counts["NAKS_SENT"] == int(not restarted)


def test_a_flow_may_start_with_a_gap():
    """A first message that found no room."""
    bench = Bench(LANE.EXPRESS)

    def process():
        yield from bench.event("started", 5, 1)
        yield from bench.done(5, 1, 0)
        yield from bench.settle()
        lane = bench.dut.lanes[bench.lane]
        yield lane.gap.strobe.eq(1)
        yield lane.gap.node.eq(5)
        yield from bench.event("started", 5, 9)
        yield lane.gap.strobe.eq(0)
        yield from bench.settle()

    bench.run(process())
    express = PACKET_FLAG.EXPRESS
    assert bench.acks == [
        (5, 1, 0, 0, express, 0, 0),
        (5, 9, 0xFFFF, 0, express | PACKET_FLAG.NAK, 0, 0),
    ]


def test_lanes_take_turns_and_know_nothing_of_each_other():
    bench = Bench()

    def process():
        bench.ready = False
        for bench.lane in (LANE.BULK, LANE.EXPRESS):
            for node in (2, 7):
                yield from bench.event("started", node, 10 + bench.lane)
                yield from bench.done(node, 10 + bench.lane, 5 + bench.lane)
                yield from bench.settle()
        yield from bench.event("gap", 7)
        yield from bench.done(2, 10 + LANE.BULK, 9)  # the other lane's incarnation
        yield from bench.settle()
        bench.ready = True
        yield from bench.settle()

    bench.run(process())
    bulk, express = (
        (10 + LANE.BULK, 5 + LANE.BULK, 0, 0, 0, 0),
        (10, 5, 0, PACKET_FLAG.EXPRESS, 0, 0),
    )
    nak = (10, 5, 0, PACKET_FLAG.EXPRESS | PACKET_FLAG.NAK, 0, 0)
    assert bench.acks == [(2, *bulk), (2, *express), (7, *bulk), (7, *nak)]


@LANES
def test_a_node_that_is_to_hear_that_its_packet_is_being_stored_is_told_again_what_is_acknowledged(
    lane,
):
    """One of which nothing is done yet, and one of which two are."""
    bench = Bench(lane)

    def process():
        yield from bench.event("started", 4, 7)
        yield from bench.event("started", 6, 8)
        for psn in range(2):
            yield from bench.done(6, 8, psn)
        yield from bench.settle(30)
        bench.acks.clear()
        yield bench.dut.lanes[lane].alive.eq(1 << 4 | 1 << 6)
        yield
        yield bench.dut.lanes[lane].alive.eq(0)
        yield from bench.settle(30)

    bench.run(process())
    assert bench.acks == [(4, 7, 0xFFFF, 0, about(lane), 0, 0), (6, 8, 1, 0, about(lane), 0, 0)]
