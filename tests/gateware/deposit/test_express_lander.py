"""EXPRESS packets: deposits land byte-exact, messages in the inbox, arrivals after what they tell
of.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.express_lander import ExpressLander
from dibber.deposit.regions import RegionTable
from dibber.interface.description import C, CHANNEL, LANE, PACKET, PACKET_FLAG, RIGHT, STATUS
from dibber.packet.packet_receiver import PacketReceiver

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, sink, source, whole
from tests.gateware.models.flows import opened
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.packet import Packet as WirePacket, encode

BASE, LENGTH, KEY = 2**36 + 0x123, 100000, 0xABCD07
DONE = ("node", "psn", "incarnation", "refused", "reason", "lane")
ARRIVAL = (
    "node",
    "endpoint",
    "interrupt",
    "value",
    "length",
    "key",
    "is_message",
    "response",
    "slot",
)
LAST = PACKET_FLAG.LAST | PACKET_FLAG.EXPRESS
NOTICE = PACKET_FLAG.NOTICE | LAST


class Engine(LiteXModule):
    """The lander and its region table."""

    def __init__(self, data_width):
        self.regions = RegionTable(ports=1)
        self.lander = ExpressLander(data_width)
        self.comb += self.lander.lookup.connect(self.regions.ports[0])


def region(table, rights=RIGHT.REMOTE_WRITE, length=LENGTH):
    for name, value in dict(
        index=7, key=KEY, base=BASE, length=length, rights=rights, valid=1, write=1
    ).items():
        yield getattr(table, name).eq(value)
    yield
    yield table.write.eq(0)
    yield


class Packet:
    """A deposit, or with `word` a message; `cut`: its block is not good."""

    def __init__(
        self, psn, data, offset=0, key=KEY, flags=LAST, notice=0, word=None, cut=False, node=1
    ):
        self.psn, self.data, self.cut, self.word = psn, data, cut and data != b"", word
        self.address = BASE + offset
        message = word is not None
        self.fields = dict(
            source=node,
            incarnation=psn % 100,
            psn=psn,
            flags=flags,
            is_message=int(message),
            key=word if message else key,
            offset=offset % 2**48,
            length=len(data),
            notice=notice,
            notice_length=len(data),
            notice_endpoint=3,
        )

    def lines(self, width):
        if self.cut:
            return [dict(dat=0, bytes=width, error=1, last=1)]
        return [
            dict(
                dat=int.from_bytes(self.data[at : at + width], "little"),
                bytes=len(self.data[at : at + width]),
                error=0,
                last=int(at + width >= len(self.data)),
            )
            for at in range(0, len(self.data), width)
        ]


class Bench:
    def __init__(
        self,
        packets,
        data_width=64,
        seed=1,
        busy=1.0,
        rights=RIGHT.REMOTE_WRITE,
        arrival_busy=1.0,
        free_after=None,
        delay=(0, 20),
        length=LENGTH,
    ):
        """`free_after`: cycles after which the control program frees a message's slot, None for
        never.
        """
        self.dut = dut = shared(Engine, data_width)
        lander = dut.lander
        self.random = random = Random(seed)
        self.size = data_width // 8
        self.host = HostWrite(lander.writes, lander.marked, random, 128, busy, delay)
        self.done, self.arrivals, self.ready = [], [], []
        self.inbox = {}  # slot -> bytearray
        self.messages = []  # (word, content) at each arrival
        self.landed = []  # marks when each packet had landed
        self.freed = 0

        def after(items):
            while not self.ready:
                yield None
            yield from items

        def set_up():
            yield from region(dut.regions, rights, length)
            self.ready.append(1)

        self.processes = [
            set_up(),
            self.host.run(),
            self._inbox(busy),
            self._watch(),
            source(lander.deposits, after([p.fields for p in packets]), random, busy),
            whole(lander.payload, [packet.lines(self.size) for packet in packets], random, busy),
            sink(lander.done, DONE, self.done, random, busy),
            sink(lander.arrivals, ARRIVAL, self.arrivals, random, arrival_busy),
        ]
        if free_after is not None:
            self.processes.append(self._free(free_after))

    @passive
    def _inbox(self, busy):
        slot = self.dut.lander.slot
        while True:
            yield slot.ready.eq(int(self.random.random() < busy))
            yield
            if (yield slot.valid) and (yield slot.ready):
                assert (yield slot.be) == 2**self.size - 1
                number, line = divmod((yield slot.adr), C.SLOT_BYTES // self.size)
                dat = yield slot.dat_w
                assert number // C.SLOTS == C.INBOX
                content = self.inbox.setdefault(number % C.SLOTS, bytearray(C.SLOT_BYTES))
                content[line * self.size : line * self.size + self.size] = dat.to_bytes(
                    self.size, "little"
                )

    @passive
    def _watch(self):
        while True:
            yield
            self.freed += yield self.dut.lander.inbox_freed
            told = len(self.done) - len(self.landed)
            assert (yield self.dut.lander.open) <= told <= 1
            if (yield self.dut.lander.landing.landed):
                self.landed.append(self.host.landed)
            for arrival in self.arrivals[len(self.messages) :]:
                self.messages.append(
                    (arrival[3], bytes(self.inbox[arrival[8]])) if arrival[6] else None
                )

    @passive
    def _free(self, delay):
        free, n = self.dut.lander.free, 0
        while True:
            if n < len(self.messages):
                for _ in range(delay):
                    yield
                if self.messages[n]:
                    yield free.strobe.eq(1)
                    yield free.slot.eq(self.arrivals[n][8])
                    yield
                    yield free.strobe.eq(0)
                n += 1
            yield

    def run(self, expect_done, cycles=6000, settle=60):
        def wait():
            yield from finish(lambda: len(self.done) >= expect_done, cycles)
            for _ in range(settle):
                yield

        run_simulation(self.dut, [*self.processes, wait()])
        return self


def random_packet(random, psn):
    if random.random() < 0.25:
        return Packet(
            psn,
            random.randbytes(C.MESSAGE_BYTES),
            word=random.getrandbits(32),
            cut=random.random() < 0.2,
        )
    return Packet(
        psn,
        random.randbytes(random.choice([0, 1, 3, 8, 8, 16, 17, 40, 63, 64])),
        random.choice(
            [
                4096 * random.randrange(4) - BASE % 4096 + 4096 + random.randint(-70, 10),
                random.randrange(5000),
            ]
        ),
        flags=random.choice([LAST, NOTICE, NOTICE | PACKET_FLAG.INTERRUPT]),
        notice=random.getrandbits(32),
        key=random.choice([KEY] * 5 + [KEY + 0x100]),
        cut=random.random() < 0.1,
    )


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("busy", [1.0, 0.5])
def test_random_packets_land_in_order(data_width, busy, seed):
    random = Random(seed + data_width)
    packets = [random_packet(random, n) for n in range(60)]
    ended = [p for p in packets if not p.cut]
    bench = Bench(packets, data_width, seed, busy, free_after=5).run(len(ended))
    assert bench.done == [
        (
            1,
            p.psn,
            p.psn % 100,
            int(p.word is None and p.fields["key"] != KEY),
            STATUS.REMOTE_BAD_KEY if p.word is None and p.fields["key"] != KEY else 0,
            LANE.EXPRESS,
        )
        for p in ended
    ]

    # Memory: each write stays in its page, and the bytes are those of the packets in their order.
    memory, tlps, arrivals, messages = {}, [], [], []
    for p in ended:
        if p.word is not None:
            arrivals.append((1, 0, 0, p.word, 128, p.word, 1, 0))
            messages.append((p.word, p.data))
        elif p.fields["key"] == KEY:
            memory.update({p.address + i: byte for i, byte in enumerate(p.data)})
            split = min(len(p.data), -p.address % 4096 or 4096)
            parts = [(p.address, split), (p.address + split, len(p.data) - split)]
            tlps += [
                (*part, int(part == [x for x in parts if x[1]][-1])) for part in parts if part[1]
            ]
            if p.fields["flags"] & PACKET_FLAG.NOTICE:
                arrivals.append(
                    (
                        1,
                        3,
                        int(bool(p.fields["flags"] & PACKET_FLAG.INTERRUPT)),
                        p.fields["notice"],
                        len(p.data),
                        KEY,
                        0,
                        0,
                    )
                )
    assert bench.host.memory == memory
    assert bench.host.tlps == tlps
    assert [arrival[:-1] for arrival in bench.arrivals] == arrivals
    assert [message for message in bench.messages if message] == messages
    assert bench.freed == len(messages)

    # Nothing has landed before the writes of all packets up to it have landed.
    written, marks = 0, []
    for p in ended:
        written += p.word is None and p.fields["key"] == KEY and p.data != b""
        marks.append(written)
    assert all(landed >= mark for landed, mark in zip(bench.landed, marks))


@pytest.mark.parametrize(
    "fields, length, reason",
    [
        (dict(key=KEY + 0x100), 8, STATUS.REMOTE_BAD_KEY),
        (dict(key=KEY + 1), 0, STATUS.REMOTE_BAD_KEY),
        (dict(offset=LENGTH - 7), 8, STATUS.REMOTE_BOUNDS),
        (dict(offset=LENGTH - 63), 64, STATUS.REMOTE_BOUNDS),
        (dict(offset=2**48 - 1), 64, STATUS.REMOTE_BOUNDS),
        (dict(offset=LENGTH - 8), 8, STATUS.OK),
        (dict(offset=LENGTH + 5), 0, STATUS.OK),
    ],
)
def test_what_is_not_granted_is_refused_and_the_next_is_judged_anew(fields, length, reason):
    packets = [Packet(0, bytes(length), flags=NOTICE, **fields), Packet(1, b"good", 9)]
    bench = Bench(packets).run(2)
    assert [(d[1], d[3], d[4]) for d in bench.done] == [
        (0, int(reason != STATUS.OK), reason),
        (1, 0, STATUS.OK),
    ]
    assert len(bench.arrivals) == int(reason == STATUS.OK)
    assert set(bench.host.memory) == set(range(BASE + 9, BASE + 13)) | (
        set(range(packets[0].address, packets[0].address + length))
        if reason == STATUS.OK
        else set()
    )


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_write_may_end_with_its_page_and_is_split_one_byte_later(data_width):
    end = -BASE % 4096
    packets = [
        Packet(n, bytes(range(length)), end + beyond - length)
        for n, (length, beyond) in enumerate(
            (length, beyond) for length in (1, 8, 64) for beyond in (0, 1)
        )
    ]
    bench = Bench(packets, data_width).run(len(packets))
    assert bench.host.tlps == [
        (BASE + end - 1, 1, 1),
        (BASE + end, 1, 1),
        (BASE + end - 8, 8, 1),
        (BASE + end - 7, 7, 0),
        (BASE + end, 1, 1),
        (BASE + end - 64, 64, 1),
        (BASE + end - 63, 63, 0),
        (BASE + end, 1, 1),
    ]


def test_a_region_without_the_right_is_refused():
    bench = Bench([Packet(0, bytes(8)), Packet(1, b"")], rights=15 - RIGHT.REMOTE_WRITE).run(2)
    assert [d[3:5] for d in bench.done] == [
        (1, STATUS.REMOTE_NOT_PERMITTED)
    ] * 2 and bench.host.memory == {}


def test_messages_take_the_lowest_free_slot():
    """All slots in order; those that came free before the last ones, lowest first."""
    packets = [Packet(n, bytes([n]) * 128, word=n) for n in range(C.SLOTS + 3)]
    bench = Bench(packets)

    def free():
        yield from finish(lambda: len(bench.arrivals) == 20, 2000)
        for slot in (17, 2, 2, 9, 31):  # one twice, and one that was never in use
            yield bench.dut.lander.free.strobe.eq(1)
            yield bench.dut.lander.free.slot.eq(slot)
            yield
        yield bench.dut.lander.free.strobe.eq(0)

    bench.processes.append(free())
    bench.run(len(packets))
    slots = [arrival[8] for arrival in bench.arrivals]
    assert slots[:20] == list(range(20))
    assert sorted(slots[20:]) == sorted([2, 9, 17, *range(20, 32)])
    rest = [slot for slot in slots[20:] if slot != 20]  # a message was under way
    assert rest == sorted(rest)
    assert bench.freed == 3


def test_arrivals_that_wait_hold_the_packets_and_none_is_lost(seed):
    packets = [
        Packet(n, bytes(8), 8 * n, flags=NOTICE, notice=n)
        if n % 2
        else Packet(n, bytes([n]) * 128, word=n)
        for n in range(60)
    ]
    bench = Bench(packets, seed=seed, arrival_busy=0.02, free_after=0).run(
        len(packets), cycles=20000, settle=3000
    )
    assert [arrival[3] for arrival in bench.arrivals] == list(range(60))


# From the Link ------------------------------------------------------------------------------------


class Way(LiteXModule):
    """From the link's words to the host's writes."""

    def __init__(self, data_width):
        self.engine = engine = Engine(data_width)
        self.receiver = receiver = PacketReceiver(data_width)
        opened(receiver)
        lander = engine.lander
        self.comb += [
            receiver.express_deposits.connect(lander.deposits),
            receiver.express_payload.connect(lander.payload),
            receiver.inbox_freed.eq(lander.inbox_freed),
            lander.slot.ready.eq(1),
            lander.done.ready.eq(1),
            lander.writes.ready.eq(1),
        ]
        self.sync += lander.marked.eq(lander.writes.valid & lander.writes.mark)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_latency_of_eight_bytes_and_of_a_message(data_width, seed, figure):
    """From the packet's last word at the receiver to the write's first line, or to the arrival."""
    dut = Way(data_width)
    flags = PACKET_FLAG.EXPRESS | PACKET_FLAG.FIRST | PACKET_FLAG.LAST
    words = {
        "put": encode(
            WirePacket(target=0, source=1, flags=flags, key=KEY, offset=5, payload=bytes(range(8)))
        ),
        "message": encode(
            WirePacket(target=0, source=2, kind=PACKET.MESSAGE, flags=flags, payload=bytes(128))
        ),
    }
    seen = {}

    def send():
        yield from region(dut.engine.regions)
        link = dut.receiver.sinks[CHANNEL.EXPRESS]
        for name, event in (
            ("put", dut.engine.lander.writes.valid),
            ("message", dut.engine.lander.arrivals.valid),
        ):
            for n, word in enumerate(words[name]):
                yield link.valid.eq(1)
                yield link.data.eq(word)
                yield link.first.eq(int(n == 0))
                yield link.last.eq(int(n == len(words[name]) - 1))
                yield
            yield link.valid.eq(0)
            cycles = 0
            while not (yield event):
                yield
                cycles += 1
                assert cycles < 60
            seen[name] = cycles

    run_simulation(dut, [send()])
    assert figure(
        f"express-landing-{data_width}", seen["put"], "cycles from last word to write", at_most=6
    )
    assert figure(
        f"message-landing-{data_width}",
        seen["message"],
        "cycles from last word to arrival",
        at_most=24,
    )
