# SPDX-License-Identifier: BSD-2-Clause

from random import Random
from types import SimpleNamespace

import pytest
from migen import *

from dibber.interface.description import C, ENTRY, MCP
from dibber.layouts import SHOWN, shown_layout
from dibber.mcp.control_registers import POSTS, ControlRegisters

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, source
from tests.gateware.models.lines import LineDriver


class Bench(Module):
    """The registers beside doorbells and a clock that the test sets."""

    def __init__(self, endpoints=C.ENDPOINTS):
        signals = lambda name: [Signal(32, name=f"{name}{n}") for n in range(endpoints)]
        self.pages = SimpleNamespace(**{name: signals(name) for name in ["producer", "head"]})
        self.cycles = Signal(64)
        self.host = Record(shown_layout())
        self.submodules.registers = self.r = ControlRegisters(self.host, self.cycles, endpoints)
        for look, counts in (self.r.producer, self.pages.producer), (self.r.head, self.pages.head):
            self.comb += look.count.eq(
                Array(counts + [0] * (C.ENDPOINTS - endpoints))[look.endpoint]
            )
        self.driver = LineDriver(self.r.port)

    def write(self, name, value, index=0):
        yield from self.driver.write(MCP[name].offset + 4 * index, value)

    def read(self, name, index=0):
        return (yield from self.driver.read(MCP[name].offset + 4 * index))

    def event(self, name):
        field = next(f for f in MCP["EVENTS"].fields if f.name == name)
        return (yield from self.read("EVENTS")) >> field.lsb & 1


def offer(sink, /, **fields):
    """Put one entry into a stream and wait until it is taken."""
    for name, value in fields.items():
        yield getattr(sink, name).eq(value)
    yield sink.valid.eq(1)
    yield
    while not (yield sink.ready):
        yield
    yield sink.valid.eq(0)
    yield


def record_of(record, names, strobe, seen):
    """Append a tuple of the fields `names` in each cycle with `strobe`."""

    @passive
    def watch():
        while True:
            if (yield getattr(record, strobe)):
                values = []
                for name in names:
                    values.append((yield getattr(record, name)))
                seen.append(tuple(values))
            yield

    return watch()


def test_commands_that_are_pending_are_shown_and_orders_about_them_told():
    dut = Bench()
    take, skip, free = [], [], []

    def bench():
        assert not (yield from dut.event("command"))
        yield dut.pages.producer[3].eq(2)
        yield dut.pages.head[3].eq(1)
        yield dut.r.pending.eq(1 << 3)
        yield dut.r.room.eq(0xA5)
        yield
        assert (yield from dut.event("command"))
        assert (yield from dut.read("COMMAND_PENDING")) == 1 << 3
        assert (yield from dut.read("PRODUCER", 3)) == 2
        assert (yield from dut.read("HEAD", 3)) == 1
        assert (yield from dut.read("QUEUE_ROOM")) == 0xA5
        yield from dut.write("COMMAND_TAKE", 5)
        yield from dut.write("COMMAND_SKIP", 6)
        yield from dut.write("SLOT_FREE", 31 | 6 << 8)
        yield from dut.write("POST_START", 7 | 9 << 8 | 1 << 17)
        yield from dut.write("POST_START", 7 | 9 << 8)
        yield
        yield

    run_simulation(
        dut,
        [
            bench(),
            record_of(dut.r.take, ["endpoint"], "strobe", take),
            record_of(dut.r.skip, ["endpoint"], "strobe", skip),
            record_of(dut.r.free, ["tag"], "strobe", free),
        ],
    )
    assert take == [(5,)] and skip == [(6,)]
    assert free == [(6 * C.SLOTS + 31,), (7 * C.SLOTS + 9,)]


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
def test_the_program_is_told_how_many_endpoints_there_are_and_nothing_of_the_others(endpoints):
    dut, skip = Bench(endpoints), []

    def bench():
        assert (yield from dut.read("ENDPOINTS")) == endpoints
        for name in ("producer", "head"):
            for signal in getattr(dut.pages, name):
                yield signal.eq(0xFFFFFFFF)
        yield dut.r.pending.eq(2**endpoints - 1)
        yield dut.r.room.eq(2**endpoints - 1)
        yield
        for name in ("PRODUCER", "HEAD"):
            for n in range(C.ENDPOINTS):
                assert (yield from dut.read(name, n)) == (0xFFFFFFFF if n < endpoints else 0)
        for name in ("COMMAND_PENDING", "QUEUE_ROOM"):
            assert (yield from dut.read(name)) == 2**endpoints - 1
        for n in range(C.ENDPOINTS):
            yield from dut.write("COMMAND_SKIP", n)
        yield
        yield

    run_simulation(dut, [bench(), record_of(dut.r.skip, ["endpoint"], "strobe", skip)])
    assert skip == [(n,) for n in range(endpoints)]


def test_an_inline_put_is_shown_in_one_word_started_by_one_write_and_completed_by_another():
    dut, take, sent, free = Bench(), [], [], []
    digests = [
        dict(endpoint=6, slot=29, node=11, solicit=1, length=64, cookie=0xFEDCBA98),
        dict(endpoint=2, slot=3, node=1, solicit=0, length=0, cookie=0x01234567),
    ]
    shown = lambda d: (
        d["length"] << 11
        | d["solicit"] << 18
        | d["node"] << 19
        | d["slot"] << 23
        | d["endpoint"] << 28
        | 1 << 31
    )
    none = 1 << 31 | 0x3FF  # the rest holds only with a put
    entries = []

    def bench():
        yield dut.r.entries.ready.eq(0)
        for digest in digests:
            for name, value in digest.items():
                yield getattr(dut.r.digest, name).eq(value)
            yield dut.r.digest.strobe.eq(1)
            yield
        yield dut.r.digest.strobe.eq(0)
        yield dut.r.pending.eq(1 << 6 | 1 << 2 | 1 << 5)
        yield dut.r.express_space.eq(1)
        assert (yield from dut.read("EVENTS")) & none == 1, (
            "all that is pending, as long as the fast path may not take it"
        )
        yield from dut.write("FAST_ENDPOINTS", 0xFF)
        assert (yield from dut.read("COMMAND_PENDING")) == 1 << 5
        assert (yield from dut.read("EVENTS")) == shown(digests[1]) | 1
        yield dut.r.express_space.eq(0)
        yield
        assert (yield from dut.read("EVENTS")) & none == 1, "without a place for its packet"
        yield dut.r.express_space.eq(1)
        yield
        yield from dut.write("PUT_PASS", 0)
        assert (yield from dut.read("EVENTS")) == shown(digests[0]) | 1
        for digest, psn in zip(digests, (0x1234, 0x5678)):
            yield from dut.write(
                "PUT_START", psn | 0xAB << 16 | 5 << 24 | digest["endpoint"] << 28 | 1 << 31
            )
            yield dut.r.pending.eq((yield dut.r.pending) & ~(1 << digest["endpoint"]))
            yield
            assert (yield from dut.read("FAST_BUSY")) >> digest["endpoint"] & 1
        assert (yield from dut.read("EVENTS")) & none == 1
        for digest, status in zip(reversed(digests), (0, 0x5A)):
            yield from dut.write("POST_PUT", shown(digest) | status)
            assert not (yield from dut.read("FAST_BUSY")) >> digest["endpoint"] & 1
        # With nothing of the puts, nor of what was written for another entry.
        yield from dut.write("POST_KEY", 0x99)
        yield dut.r.entries.ready.eq(1)
        for digest, status in zip(reversed(digests), (0, 0x5A)):
            yield
            while not (yield dut.r.entries.valid):
                yield
            entry = {}
            for name in ["queue", "interrupt", "cookie", "length", "node", "kind", "status", "key"]:
                entry[name] = yield getattr(dut.r.entries, name)
            entries.append(entry)

    run_simulation(
        dut,
        [
            bench(),
            record_of(dut.r.take, ["endpoint"], "strobe", take),
            record_of(
                dut.r.express,
                ["endpoint", "slot", "node", "length", "psn", "incarnation", "epoch", "message"],
                "valid",
                sent,
            ),
            record_of(dut.r.free, ["tag"], "strobe", free),
        ],
    )
    assert take == [(6,), (2,)]
    assert sent == [(6, 29, 11, 64, 0x1234, 0xAB, 5, 0), (2, 3, 1, 0, 0x5678, 0xAB, 5, 0)]
    assert free == [(2 * C.SLOTS + 3,), (6 * C.SLOTS + 29,)]
    assert entries == [
        dict(
            queue=2,
            interrupt=0,
            cookie=0x01234567,
            length=0,
            node=1,
            kind=ENTRY.COMPLETION,
            status=0,
            key=0,
        ),
        dict(
            queue=6,
            interrupt=1,
            cookie=0xFEDCBA98,
            length=64,
            node=11,
            kind=ENTRY.COMPLETION,
            status=0x5A,
            key=0,
        ),
    ]


def test_host_registers_are_looked_up():
    dut = Bench()
    dut.comb += [dut.host.value.eq(0x1000 | dut.host.index), dut.host.clock_hz.eq(125_000_000)]

    def bench():
        for number, name in enumerate(SHOWN):
            assert (yield from dut.read(name)) == 0x1000 + number
        assert (yield from dut.read("CLOCK_HZ")) == 125_000_000
        assert (yield from dut.read("IDENTITY")) == 0

    run_simulation(dut, bench())


def test_the_timer_fires_once_the_clock_reaches_it_even_across_its_wrap():
    dut = Bench()

    def bench():
        yield dut.cycles.eq(0xFFFF_FFF0)
        for _ in range(4):
            yield
        assert not (yield from dut.event("timer")), "nobody has set it yet"
        yield from dut.write("TIMER", 0x10)
        for _ in range(4):
            yield
        assert not (yield from dut.event("timer"))
        yield dut.cycles.eq(0x1_0000_0010)
        for _ in range(4):
            yield
        assert (yield from dut.event("timer"))
        yield from dut.write("TIMER", 0x20)
        assert not (yield from dut.event("timer"))

    run_simulation(dut, bench())


def test_a_job_leaves_in_one_cycle_with_all_its_fields():
    dut, jobs = Bench(), []
    names = [
        "slot",
        "endpoint",
        "epoch",
        "response",
        "indirect",
        "target_levels",
        "target",
        "message",
        "psn",
        "incarnation",
        "node",
        "length",
        "skip",
        "tag",
    ]

    def bench():
        yield dut.r.job_space.eq(7)
        yield
        assert (yield from dut.read("JOB_SPACE")) == 7
        for n in range(4):
            yield from dut.write(
                "JOB_SLOT",
                n
                | 5 << 7
                | 3 << 15
                | (n & 1) << 19
                | (n >> 1 & 1) << 20
                | (n + 3) << 21
                | (31 - n) << 24,
            )
            yield from dut.write("JOB_MESSAGE", 0xABC00000 + n)
            yield from dut.write("JOB_FLOW", 100 + n | 7 << 16 | 9 << 24)
            yield from dut.write("JOB_LENGTH", 1000 + n)
            yield from dut.write("JOB_SKIP", 4096 * n)
            yield from dut.write("JOB_START", 0x380 + n)
        yield
        yield

    run_simulation(dut, [bench(), record_of(dut.r.jobs, names, "valid", jobs)])
    assert jobs == [
        (
            n,
            5,
            3,
            n & 1,
            n >> 1 & 1,
            n + 3,
            31 - n,
            0xABC00000 + n,
            100 + n,
            7,
            9,
            1000 + n,
            4096 * n,
            0x380 + n,
        )
        for n in range(4)
    ]


def test_the_ends_of_jobs_are_read_in_order_and_dropped_by_pop():
    dut = Bench()

    def bench():
        yield from offer(dut.r.job_done, tag=0x301, status=0, psn=10, checksum=0xDDF2)
        yield from offer(dut.r.job_done, tag=2, status=24, psn=11, checksum=0)
        assert (yield from dut.event("job_done"))
        assert (yield from dut.read("JOB_DONE")) == 0x301 | 10 << 16
        assert (yield from dut.read("JOB_CHECKSUM")) == 0xDDF2
        yield from dut.write("JOB_DONE_POP", 0)
        assert (yield from dut.read("JOB_DONE")) == 2 | 24 << 10 | 11 << 16
        yield from dut.write("JOB_DONE_POP", 0)
        assert not (yield from dut.event("job_done"))

    run_simulation(dut, bench())


def test_acknowledged_nodes_stay_marked_until_ones_are_written():
    dut = Bench()
    dut.comb += dut.r.acked.psn.eq(40 + dut.r.acked.flow)

    def bench():
        for node in [2, 5]:
            yield from drive(dut.r.changed, strobe=1, flow=node)
            yield
        yield dut.r.changed.strobe.eq(0)
        yield
        assert (yield from dut.event("ack"))
        assert (yield from dut.read("ACKED_CHANGED")) == 1 << 2 | 1 << 5
        yield from dut.write("ACKED_CHANGED", 1 << 2)
        assert (yield from dut.read("ACKED_CHANGED")) == 1 << 5
        for flow in 0, 2, 31:
            assert (yield from dut.read("ACKED", flow)) == 40 + flow
        yield from drive(dut.r.changed, strobe=1, flow=5)  # in the very cycle of the clearing write
        yield from dut.write("ACKED_CHANGED", 1 << 5)
        yield dut.r.changed.strobe.eq(0)
        yield
        assert (yield from dut.event("ack")), "an acknowledgement was lost"

    run_simulation(dut, bench())


def test_what_the_timers_ask_for_is_shown_until_ones_are_written():
    dut = Bench()
    dut.comb += [
        dut.r.left.psn.eq(0x1200 + dut.r.left.flow),
        dut.r.left.valid.eq(dut.r.left.flow[0]),
        dut.r.left.vain.eq(dut.r.left.flow[4]),
    ]

    def bench():
        for flow in 0, 15, 16, 31:
            assert (yield from dut.read("LEFT", flow)) == 0x1200 + flow | (flow & 1) << 16 | (
                flow >> 4
            ) << 17
        assert (yield from dut.read("SEND_MOVED")) == (yield from dut.read("PEER_WORKS")) == 0
        yield from drive(dut.r.works, strobe=1, flow=18)
        yield dut.r.storing.eq(1 << 3 | 1 << 15)
        yield dut.r.send_moved.eq(1)
        yield
        yield dut.r.works.strobe.eq(0)
        yield dut.r.storing.eq(0)
        yield dut.r.send_moved.eq(0)
        yield
        assert (yield from dut.read("SEND_MOVED")) == 1
        assert (yield from dut.read("PEER_WORKS")) == 1 << 18 | 1 << 15 | 1 << 3
        yield from dut.write("SEND_MOVED", 1)
        yield from dut.write("PEER_WORKS", 1 << 18 | 1 << 3)
        assert (yield from dut.read("SEND_MOVED")) == 0
        assert (yield from dut.read("PEER_WORKS")) == 1 << 15

    run_simulation(dut, bench())


def test_arrivals_and_refusals_carry_their_fields():
    dut, again = Bench(), []
    came = [
        dict(node=9, endpoint=4, interrupt=1, value=0xCAFE, length=4097, key=0x105),
        dict(node=2, endpoint=0, interrupt=0, slot=31, is_message=1, response=0),
        dict(node=3, is_message=0, response=1),
    ]

    @passive
    def watch():
        while True:
            yield
            if (yield dut.r.arrivals_again):
                again.append((yield dut.r.arrivals.node))

    def bench():
        assert (yield from dut.read("ACKED", 7)) == 0
        yield from offer(dut.r.refusals, flow=19, psn=0x1234, reason=13)
        assert (yield from dut.read("ACKED", 7)) == 1 << 16, "whichever flow the refusal is of"
        assert (yield from dut.event("arrival")) and (yield from dut.event("refusal"))
        assert (yield from dut.read("ARRIVAL")) == 9 | 4 << 8 | 1 << 24
        assert (yield from dut.read("ARRIVAL_VALUE")) == 0xCAFE
        assert (yield from dut.read("ARRIVAL_LENGTH")) == 4097
        assert (yield from dut.read("ARRIVAL_KEY")) == 0x105
        assert (yield from dut.read("REFUSAL")) == 0x1234 | 13 << 16 | 19 << 24
        yield from dut.write("ARRIVAL_POP", 0)
        assert (yield from dut.read("ARRIVAL")) == 2 | 31 << 16 | 1 << 25
        yield from dut.write("ARRIVAL_AGAIN", 0)
        yield dut.r.arrivals_twice.eq(1)
        yield
        assert (yield from dut.read("ARRIVAL")) == 2 | 31 << 16 | 1 << 25 | 1 << 27 and again == [2]
        yield dut.r.arrivals_twice.eq(0)
        yield from dut.write("ARRIVAL_POP", 0)
        assert (yield from dut.read("ARRIVAL")) & ~(0xFF << 16) == 3 | 1 << 26
        yield from dut.write("ARRIVAL_POP", 0)
        yield from dut.write("REFUSAL_POP", 0)
        assert (yield from dut.read("EVENTS")) == 0

    run_simulation(dut, [bench(), watch(), source(dut.r.arrivals, came, Random(1))])


def test_posts_wait_in_order_while_space_counts_down():
    dut, seen = Bench(), []
    names = ["queue", "cookie", "length", "node", "kind", "status", "key", "interrupt"]

    def bench():
        for n in range(POSTS):
            assert (yield from dut.read("POST_SPACE")) == POSTS - n
            yield from dut.write("POST_COOKIE", 0xC0000000 + n)
            yield from dut.write("POST_LENGTH", 0x1000 + n)
            yield from dut.write("POST_WHAT", n | 2 << 16 | 3 << 24)
            yield from dut.write("POST_KEY", 0x500 + n)
            yield from dut.write("POST_START", n | (n & 1) << 16)
        assert (yield from dut.read("POST_SPACE")) == 0
        yield dut.r.entries.ready.eq(1)
        for _ in range(POSTS + 2):
            yield
            if (yield dut.r.entries.valid):
                entry = []
                for name in names:
                    entry.append((yield getattr(dut.r.entries, name)))
                seen.append(tuple(entry))

    run_simulation(dut, bench())
    assert seen == [
        (n, 0xC0000000 + n, 0x1000 + n, n, 2, 3, 0x500 + n, n & 1) for n in range(POSTS)
    ]


def test_queues_are_opened_and_closed_in_one_cycle():
    dut, seen = Bench(), []

    def bench():
        yield from dut.write("QUEUE_BASE_LOW", 0x1000)
        yield from dut.write("QUEUE_BASE_HIGH", 2)
        yield from dut.write("QUEUE_OPEN", 15 | 16 << 8 | 6 << 16)
        yield from dut.write("QUEUE_CLOSE", 9)
        yield
        yield

    names = ["queue", "closed", "base", "size", "vector"]
    run_simulation(dut, [bench(), record_of(dut.r.queue, names, "strobe", seen)])
    assert seen[0] == (15, 0, 0x2_0000_1000, 16, 6)
    assert seen[1][:2] == (9, 1)


def test_flows_are_armed_and_claimed_and_what_they_had_is_shown():
    dut = Bench()
    arms, claims, pops = [], [], []

    @passive
    def watch():
        while True:
            if (yield dut.r.claim_pop):
                pops.append(1)
            yield

    def bench():
        for name, value in dict(
            psn=0x1234,
            entries=31,
            entry_psn=0x4321,
            tag=0x13E,
            ended=1,
            solicit=0,
            kind=2,
            cookie=0xABCD,
            length=0x3FFFFF,
        ).items():
            yield getattr(dut.r.claimed, name).eq(value)
        yield dut.r.fast_busy.eq(0x81)
        yield dut.r.fast_active.eq(1 << 17)
        events = *dut.r.fast_moved, dut.r.given
        for event, flow in zip(events, (2, 18, 19), strict=True):
            yield from drive(event, strobe=1, flow=flow)
        yield
        for event in events:
            yield event.strobe.eq(0)
        yield
        assert (yield from dut.event("given"))
        assert (yield from dut.read("GIVEN")) == 1 << 19
        yield from dut.write("GIVEN", 1 << 19)
        assert not (yield from dut.event("given"))
        assert (yield from dut.read("FAST_MOVED")) == 1 << 18 | 1 << 2
        assert (yield from dut.read("FAST_ACTIVE")) == 1 << 17
        assert (yield from dut.read("FAST_BUSY")) == 0x81
        assert (yield from dut.read("CLAIM_STATE")) == 0x1234 | 31 << 16
        assert (yield from dut.read("CLAIM_ENTRY")) == 0x4321 | 0x13E << 16 | 1 << 26 | 2 << 28
        assert (yield from dut.read("CLAIM_COOKIE")) == 0xABCD
        assert (yield from dut.read("CLAIM_LENGTH")) == 0x3FFFFF
        yield from dut.write("ARM_PLACE", 0x8765 | 0x42 << 16 | 9 << 24)
        yield from dut.write("FLOW_ARM", 25 | 11 << 8)
        yield from dut.write("FLOW_CLAIM", 9)
        yield from dut.write("CLAIM_POP", 0)
        yield from dut.write("FAST_OPCODES", 0b10101)
        yield from dut.write("FAST_ENDPOINTS", 0xC3)
        yield
        assert (
            (yield dut.r.fast_enable.put_inline)
            and not (yield dut.r.fast_enable.put)
            and (yield dut.r.fast_enable.event)
        )
        assert not (yield dut.r.fast_enable.get) and (yield dut.r.fast_enable.atomic)
        assert (yield dut.r.fast_endpoints) == 0xC3

    run_simulation(
        dut,
        [
            bench(),
            watch(),
            record_of(dut.r.arm, ["flow", "epoch", "psn", "incarnation"], "strobe", arms),
            record_of(dut.r.claim, ["flow"], "strobe", claims),
        ],
    )
    assert arms == [(25, 11, 0x8765, 0x42)] and claims == [(9,)] and pops == [1]


def test_a_region_is_entered_in_one_cycle_with_all_its_fields():
    dut, seen = Bench(), []

    @passive
    def watch():
        names = ["index", "key", "base", "length", "rights", "owner", "valid"]
        while True:
            if (yield dut.r.region.we):
                entry = []
                for name in names:
                    entry.append((yield getattr(dut.r.region, name)))
                seen.append(tuple(entry))
            yield

    def bench():
        for name, value in [
            ("REGION_KEY", 0x307),
            ("REGION_BASE_LOW", 0x1000),
            ("REGION_BASE_HIGH", 1),
            ("REGION_LENGTH_LOW", 0x2000),
            ("REGION_LENGTH_HIGH", 0),
            ("REGION_ACCESS", 9 | 6 << 4 | 1 << 12),
            ("REGION_WRITE", 7),
        ]:
            yield from dut.write(name, value)
        yield
        yield

    run_simulation(dut, [bench(), watch()])
    assert seen == [(7, 0x307, 0x1_0000_1000, 0x2000, 9, 6, 1)]


def test_orders_leave_in_one_cycle_with_all_their_fields():
    dut = Bench()
    express, resets, rewinds, inbox, expect = [], [], [], [], []

    def bench():
        yield dut.r.express_space.eq(5)
        yield
        assert (yield from dut.read("EXPRESS_SPACE")) == 5
        for name, value in [
            ("EXPRESS_FLOW", 0x1234 | 7 << 16 | 9 << 24),
            ("EXPRESS_MESSAGE", 0xFEED0003),
            ("EXPRESS_START", 31 | 8 << 8 | 64 << 16 | 11 << 24 | 1 << 28),
            ("FLOW_RESET", 17 | 0x42 << 8),
            ("FLOW_REWIND", 18 | 5 << 8),
            ("INBOX_FREE", 30),
            ("EXPECT_KEY", 0x10203),
            ("EXPECT_WRITE", 0xC2FF | 6 << 16 | 1 << 24),
        ]:
            yield from dut.write(name, value)
        yield
        yield

    r = dut.r
    run_simulation(
        dut,
        [
            bench(),
            record_of(
                r.express,
                [
                    "psn",
                    "incarnation",
                    "node",
                    "word",
                    "slot",
                    "endpoint",
                    "length",
                    "epoch",
                    "message",
                ],
                "valid",
                express,
            ),
            record_of(r.flow_reset, ["flow", "incarnation"], "strobe", resets),
            record_of(r.flow_rewind, ["flow", "epoch"], "strobe", rewinds),
            record_of(r.inbox_free, ["slot"], "strobe", inbox),
            record_of(r.expect, ["context", "node", "valid", "key"], "we", expect),
        ],
    )
    assert express == [(0x1234, 7, 9, 0xFEED0003, 31, 8, 64, 11, 1)]
    assert resets == [(17, 0x42)] and rewinds == [(18, 5)] and inbox == [(30,)]
    assert expect == [(0xC2FF, 6, 1, 0x10203)]


def test_missing_packets_stay_marked_by_flow():
    dut = Bench()

    def bench():
        for flow in 31, 0:
            yield from drive(dut.r.naked, strobe=1, flow=flow)
            yield
        yield dut.r.naked.strobe.eq(0)
        yield
        assert (yield from dut.event("nak"))
        assert (yield from dut.read("NAKED")) == 1 << 31 | 1
        yield from dut.write("NAKED", 1 << 31 | 1)
        assert not (yield from dut.event("nak"))

    run_simulation(dut, bench())


def test_a_change_of_the_link_stays_marked_until_one_is_written():
    dut = Bench()

    def bench():
        yield
        for up in [1, 0]:
            assert not (yield from dut.event("link"))
            yield dut.r.link_up.eq(up)
            yield
            yield
            assert (yield from dut.event("link"))
            assert (yield from dut.read("LINK")) == up
            yield from dut.write("LINK_CHANGED", 1)

    run_simulation(dut, bench())


def test_an_atomic_that_is_to_be_replied_to_is_read_and_offered_again_or_dropped():
    dut, seen = Bench(), []

    @passive
    def watch():
        while True:
            yield
            for name in ("replies_again", "replies.ready"):
                part = dut.r.replies_again if name == "replies_again" else dut.r.replies.ready
                if (yield part):
                    seen.append(name)

    def bench():
        assert not (yield from dut.event("atomic"))
        for name, value in dict(node=15, slot=13, word=0x11223304, valid=1).items():
            yield getattr(dut.r.replies, name).eq(value)
        yield
        assert (yield from dut.event("atomic"))
        assert (yield from dut.read("ATOMIC_DONE")) == 13 << 8 | 15
        assert (yield from dut.read("ATOMIC_WORD")) == 0x11223304
        yield from dut.write("ATOMIC_AGAIN", 0)
        yield dut.r.replies_twice.eq(1)
        yield
        assert (yield from dut.read("ATOMIC_DONE")) == 1 << 16 | 13 << 8 | 15
        yield from dut.write("ATOMIC_POP", 0)
        yield dut.r.replies.valid.eq(0)
        yield
        yield
        assert seen == ["replies_again", "replies.ready"]
        assert not (yield from dut.event("atomic"))

    run_simulation(dut, [bench(), watch()])


def test_that_the_host_wrote_into_the_sram_stays_known_until_it_is_cleared():
    dut = Bench()

    def bench():
        assert (yield from dut.read("SRAM_WRITTEN")) == 0
        yield dut.r.written.eq(1)
        yield
        yield dut.r.written.eq(0)
        for _ in range(2):
            assert (yield from dut.read("SRAM_WRITTEN")) == 1
        yield from dut.write("SRAM_WRITTEN", 1)
        assert (yield from dut.read("SRAM_WRITTEN")) == 0

    run_simulation(dut, bench())
