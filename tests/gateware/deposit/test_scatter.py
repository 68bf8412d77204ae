"""Scatter: bytes land where the packet says and nowhere else, and are reported after they
landed.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.expected import ExpectedTable
from dibber.deposit.regions import RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.interface.description import C, LANE, PACKET_FLAG, RIGHT, STATUS

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.walk import Walk, pieces, touched

BASE, LENGTH, KEY = 2**36 + 0x123, 100000, 0xABCD07
DONE = ("node", "psn", "refused", "reason", "incarnation", "lane")
ARRIVAL = ("node", "endpoint", "interrupt", "value", "length", "key", "response", "is_message")


class Receiver(LiteXModule):
    """Scatter and its tables."""

    def __init__(self, data_width):
        self.regions = RegionTable(ports=1)
        self.expected = ExpectedTable()
        self.engine = ScatterEngine(data_width)
        self.comb += [
            self.engine.lookup.connect(self.regions.ports[0]),
            self.engine.expected.connect(self.expected.port),
        ]


def region(
    table, index=7, key=KEY, base=BASE, length=LENGTH, rights=RIGHT.REMOTE_WRITE, owner=0, valid=1
):
    for name, value in dict(
        index=index,
        key=key,
        base=base,
        length=length,
        rights=rights,
        owner=owner,
        valid=valid,
        write=1,
    ).items():
        yield getattr(table, name).eq(value)
    yield
    yield table.write.eq(0)
    yield


def incarnation_of(node):
    return (node + 100) % 256


class Packet:
    """A deposit packet: `walk` is relative to the region; `good` is None or the bytes before it was
    cut, whole blocks.
    """

    def __init__(
        self,
        psn,
        data,
        offset=0,
        block=0,
        strides=(),
        counts=(),
        skip=0,
        key=KEY,
        flags=0,
        source=1,
        notice=0,
        total=None,
        good=None,
        context=0,
    ):
        self.psn, self.data, self.good = psn, data, good
        self.walk = Walk(
            BASE + offset, BASE, BASE + LENGTH, block, strides, counts, len(data), skip
        )
        self.fields = dict(
            source=source,
            incarnation=incarnation_of(source),
            flags=flags,
            psn=psn,
            levels=len(strides),
            key=key,
            context=context,
            offset=offset % 2**48,
            skip=skip,
            block=block,
            length=len(data),
            notice=notice,
            notice_length=len(data) if total is None else total,
            notice_endpoint=3,
            **{f"stride{i}": (strides + (0, 0, 0))[i] % 2**64 for i in range(3)},
            **{f"count{i}": (counts + (0, 0, 0))[i] for i in range(3)},
        )

    def lines(self, width):
        data = self.data if self.good is None else self.data[: self.good]
        result = []
        for at in range(0, len(data), width):
            part = data[at : at + width]
            result.append(
                dict(
                    dat=int.from_bytes(part, "little"),
                    bytes=len(part),
                    error=0,
                    last=int(self.good is None and at + width >= len(data)),
                )
            )
        if self.good is not None:
            result.append(dict(dat=0, bytes=width, error=1, last=1))
        return result

    def blocks(self, width):
        """Its lines, block by block."""
        lines, per_block = self.lines(width), C.BLOCK_BYTES // width
        return [lines[at : at + per_block] for at in range(0, len(lines), per_block)]

    def bytes_by_address(self):
        return dict(zip(touched(self.walk), self.data))


def run(
    packets,
    expect_done,
    data_width=64,
    seed=1,
    busy=1.0,
    max_payload=256,
    cycles=6000,
    settle=60,
    rights=RIGHT.REMOTE_WRITE,
    arrival_busy=1.0,
    owner=0,
    gets=(),
):
    """`gets`: (context, node, key) of those under way."""
    dut = shared(Receiver, data_width)
    engine = dut.engine
    random = Random(seed)
    host = HostWrite(engine.writes, engine.marked, random, max_payload, busy)
    done, arrivals, landed = [], [], []
    ready = [False]

    def set_up():
        yield engine.max_payload.eq(max_payload)
        yield from region(dut.regions, rights=rights, owner=owner)
        for context, node, key in gets:
            for name, value in dict(context=context, node=node, key=key, valid=1, write=1).items():
                yield getattr(dut.expected, name).eq(value)
            yield
            yield dut.expected.write.eq(0)
        ready[0] = True
        yield from finish(lambda: len(done) >= expect_done, cycles)
        for _ in range(settle):
            yield

    def after_set_up(items):
        while not ready[0]:
            yield None
        yield from items

    def blocks():
        """The lines of a block come without gaps."""
        for block in (b for p in packets for b in p.blocks(data_width // 8)):
            while random.random() >= busy:
                for _ in block:
                    yield None
            yield from block

    @passive
    def watch():
        while True:
            yield
            # `open` until it has landed, which one packet at most has not of which is told.
            told = len(done) - len(landed)
            assert (yield engine.open) <= told <= 1
            if (yield engine.landing.landed):
                landed.append(host.landed)

    run_simulation(
        dut,
        [
            set_up(),
            host.run(),
            watch(),
            source(engine.deposits, after_set_up([p.fields for p in packets]), random, busy),
            source(engine.payload, after_set_up(blocks()), random),
            sink(engine.done, DONE, done, random, busy),
            sink(engine.arrivals, ARRIVAL, arrivals, random, arrival_busy),
        ],
    )
    host.landed_at = landed
    assert all(
        (incarnation, lane) == (incarnation_of(node), LANE.BULK)
        for node, _, _, _, incarnation, lane in done
    )
    return host, [d[:4] for d in done], arrivals


def random_packet(random, psn):
    levels = random.randrange(4)
    block = random.choice([1, 3, 8, 8, 16, 40, 300])
    counts = tuple(random.choice([1, 2, 4, 7]) for _ in range(levels))
    strides = tuple(
        random.choice([block, 24, random.randint(block, 700)]) * random.choice([1, 1, -1])
        for _ in range(levels)
    )
    total = random.randint(1, 700)
    skip = 0
    if levels:
        total = block
        for count in counts:
            total *= count
        skip = random.choice([0, random.randrange(total)])
    length = min(total - skip, random.randint(1, 700))
    return Packet(
        psn, random.randbytes(length), 30000 + random.randrange(5000), block, strides, counts, skip
    )


def check_memory(host, packets):
    expected = {}
    for packet in packets:
        expected.update(packet.bytes_by_address())
    assert host.memory == expected


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("busy, max_payload", [(1.0, 256), (0.6, 128)])
def test_random_packets_are_byte_exact(data_width, busy, max_payload):
    random = Random(max_payload + data_width)
    packets = [random_packet(random, n) for n in range(14)]
    host, done, arrivals = run(
        packets, len(packets), data_width, busy=busy, max_payload=max_payload
    )
    check_memory(host, packets)
    assert done == [(1, p.psn, 0, STATUS.OK) for p in packets]
    assert [(a, n) for a, n, _ in host.tlps] == [
        (p.address, p.length) for packet in packets for p in pieces(packet.walk, max_payload)
    ]
    assert arrivals == []
    assert all(landed > n for n, landed in enumerate(host.landed_at)), (
        "open no more before it had landed"
    )


REFUSED = [
    (dict(key=KEY + 0x100), STATUS.REMOTE_BAD_KEY),
    (dict(key=KEY + 1), STATUS.REMOTE_BAD_KEY),
    (dict(offset=LENGTH - 31), STATUS.REMOTE_BOUNDS),
    (dict(offset=2**48 - 8), STATUS.REMOTE_BOUNDS),
    (dict(block=32, strides=(64,), counts=(0,)), STATUS.REMOTE_BAD_HEADER),
    (dict(block=0, strides=(64,), counts=(1,)), STATUS.REMOTE_BAD_HEADER),
    (dict(block=8, strides=(64, 1), counts=(4, 0)), STATUS.REMOTE_BAD_HEADER),
    (dict(block=8, strides=(64, 1, 1), counts=(4, 1, 0)), STATUS.REMOTE_BAD_HEADER),
]


def test_what_is_not_granted_is_refused():
    """Nothing is written, the reason is reported, no notice comes, and each next packet is checked
    again.
    """
    packets, expected = [], []
    for n, (fields, reason) in enumerate(REFUSED):
        packets += [
            Packet(2 * n, bytes(32), flags=PACKET_FLAG.NOTICE | PACKET_FLAG.LAST, **fields),
            Packet(2 * n + 1, b"good", offset=9 + 4 * n),
        ]
        expected += [(1, 2 * n, 1, reason), (1, 2 * n + 1, 0, 0)]
    host, done, arrivals = run(packets, len(packets))
    assert done == expected
    check_memory(host, packets[1::2])
    assert arrivals == []


def test_a_region_without_the_right_is_refused():
    host, done, _ = run([Packet(0, bytes(32)), Packet(1, b"")], 2, rights=15 - RIGHT.REMOTE_WRITE)
    assert done == [(1, n, 1, STATUS.REMOTE_NOT_PERMITTED) for n in range(2)]
    assert host.memory == {}


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_walk_that_leaves_the_region_stops_there(data_width):
    random = Random(3)
    bad = Packet(0, random.randbytes(400), offset=20, block=8, strides=(-4,), counts=(50,))
    good = Packet(1, random.randbytes(40), offset=500)
    host, done, _ = run([bad, good], 2, data_width)
    assert done == [(1, 0, 1, STATUS.REMOTE_BOUNDS), (1, 1, 0, 0)]
    assert all(BASE <= a < BASE + LENGTH for a in host.memory)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_packet_that_is_cut_short_reports_nothing(data_width):
    """Bytes of good blocks may be written, later ones not; the next packet is whole."""
    random, packets, allowed, needed = Random(data_width), [], {}, {}
    for n, good in enumerate((0, 256, 512)):
        cut = Packet(
            n,
            random.randbytes(700),
            64 + 10000 * n,
            8,
            (24,),
            (100,),
            flags=PACKET_FLAG.NOTICE | PACKET_FLAG.LAST,
            good=good,
        )
        after = Packet(n + 10, random.randbytes(90), 5000 + 10000 * n, 8, (24,), (100,))
        packets += [cut, after]
        allowed.update(list(cut.bytes_by_address().items())[:good])
        needed.update(after.bytes_by_address())
    host, done, arrivals = run(packets, 3, data_width)
    assert done == [(1, n + 10, 0, 0) for n in range(3)] and arrivals == []
    assert host.memory.items() <= (allowed | needed).items()
    assert needed.items() <= host.memory.items()


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("length", [5, 200])
def test_a_packet_of_one_piece_that_is_cut_short_writes_nothing(length, data_width):
    """Its piece is the first and the last one: what drops the packet must not carry the piece's
    bytes.
    """
    random = Random(length)
    packets = []
    for n in range(3):
        packets += [
            Packet(n, random.randbytes(length), 0x1000 * n + 0xDD, good=0),
            Packet(n + 10, random.randbytes(90), 0x1000 * n + 0x4DD),
        ]
    host, done, _ = run(packets, 3, data_width)
    assert done == [(1, n + 10, 0, 0) for n in range(3)]
    assert host.memory == {
        address: byte for p in packets[1::2] for address, byte in p.bytes_by_address().items()
    }


def test_refused_and_cut_short_reports_nothing():
    host, done, _ = run([Packet(0, bytes(300), key=1, good=256), Packet(1, b"x")], 1)
    assert done == [(1, 1, 0, 0)]


@pytest.mark.parametrize("arrival_busy", [1.0, 0.02])
def test_notices_come_after_their_bytes(arrival_busy):
    flags = PACKET_FLAG.NOTICE | PACKET_FLAG.LAST
    packets = [
        Packet(
            n,
            bytes([n]) * 8 * (n % 3),
            100 * n,
            flags=flags | (PACKET_FLAG.INTERRUPT if n % 2 else 0),
            notice=n + 1000,
        )
        for n in range(24)
    ]
    host, done, arrivals = run(packets, 24, busy=0.5, arrival_busy=arrival_busy, settle=1500)
    assert done == [(1, n, 0, 0) for n in range(24)]
    assert arrivals == [(1, 3, n % 2, n + 1000, 8 * (n % 3), KEY, 0, 0) for n in range(24)]
    marks = [sum(1 for p in packets[: n + 1] if p.data) for n in range(24)]
    assert all(landed >= m for landed, m in zip(host.landed_at, marks))


def test_no_notice_for_a_transfer_that_was_refused_in_part():
    last = PACKET_FLAG.NOTICE | PACKET_FLAG.LAST
    packets = [
        Packet(0, bytes(8), key=1, total=16),
        Packet(9, bytes(8), source=2, flags=last, total=16, notice=1),
        Packet(1, bytes(8), flags=last, total=16, notice=2),
        Packet(2, bytes(8), flags=last, total=16, notice=3),
    ]
    _, done, arrivals = run(packets, 4)
    assert [d[2] for d in done] == [1, 0, 0, 0]
    assert [a[3] for a in arrivals] == [1, 3]


OWNER = 5
CONTEXT = OWNER * C.SLOTS + 9
RESPONSES = [
    # Packet, and what the get's table and region say of it.
    (dict(), STATUS.OK),
    (dict(context=CONTEXT + 1), STATUS.REMOTE_NOT_PERMITTED),  # no such get
    (dict(context=CONTEXT + 256), STATUS.REMOTE_NOT_PERMITTED),
    # a former get of the same slot
    (dict(context=CONTEXT + 1024), STATUS.REMOTE_NOT_PERMITTED),
    (dict(source=3), STATUS.REMOTE_NOT_PERMITTED),  # asked of another node
    (dict(source=1 + 256), STATUS.REMOTE_NOT_PERMITTED),
    (dict(context=CONTEXT + 2), STATUS.REMOTE_NOT_PERMITTED),  # for another region
    (dict(context=CONTEXT + C.SLOTS), STATUS.REMOTE_NOT_PERMITTED),  # of another endpoint
    (dict(key=KEY + 0x100, context=CONTEXT + 3), STATUS.REMOTE_BAD_KEY),
    (dict(flags=0), STATUS.REMOTE_NOT_PERMITTED),  # not a response
    (dict(offset=LENGTH - 7, context=CONTEXT + 4), STATUS.REMOTE_BOUNDS),
    (dict(offset=LENGTH - 8), STATUS.OK),
]
GETS = [
    (CONTEXT, 1, KEY),
    (CONTEXT + 3, 1, KEY),
    (CONTEXT + 4, 1, KEY),
    (CONTEXT + 2, 1, KEY + 0x100),
    (CONTEXT + C.SLOTS, 1, KEY),
]


def responses(last=0):
    return [
        Packet(
            n,
            bytes([n + 1]) * 8,
            **{**dict(flags=PACKET_FLAG.RESPONSE | last, context=CONTEXT, offset=8 * n), **fields},
        )
        for n, (fields, _) in enumerate(RESPONSES)
    ]


def test_an_answer_lands_where_its_get_said_and_nowhere_else():
    packets = responses()
    host, done, _ = run(packets, len(packets), rights=RIGHT.LOCAL_WRITE, owner=OWNER, gets=GETS)
    assert [reason for _, _, _, reason in done] == [reason for _, reason in RESPONSES]
    check_memory(host, [p for p, (_, reason) in zip(packets, RESPONSES) if reason == STATUS.OK])


@pytest.mark.parametrize(
    "wrong, reason",
    [
        (dict(offset=LENGTH - 7), STATUS.REMOTE_BOUNDS),
        (dict(key=KEY + 0x100), STATUS.REMOTE_BAD_KEY),
    ],
)
def test_one_refused_packet_of_an_answer_spoils_the_rest_and_no_other(wrong, reason):
    """Its last packet too, although that begins a new round of PSNs. No packet spoils the answer of
    another node.
    """
    flags = PACKET_FLAG.RESPONSE
    last = flags | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE
    foreign = dict(flags=flags, context=CONTEXT, source=2, offset=LENGTH - 7)
    packets = [
        Packet(1, bytes(8), **foreign),
        Packet(2, bytes(8), flags=flags, context=CONTEXT),
        Packet(3, bytes(8), **{**dict(flags=flags, context=CONTEXT, offset=8), **wrong}),
        *[
            Packet(4 + n, bytes(8), flags=flags, context=CONTEXT + 4, offset=8 * n)
            for n in range(4)
        ],
        Packet(
            8,
            bytes(8),
            flags=last | PACKET_FLAG.FIRST,
            context=CONTEXT,
            offset=16,
            total=24,
            notice=CONTEXT << 16,
        ),
        Packet(
            9,
            bytes(8),
            flags=last,
            context=CONTEXT + 4,
            offset=32,
            total=40,
            notice=CONTEXT + 4 << 16,
        ),
    ]
    _, done, arrivals = run(packets, len(packets), rights=RIGHT.LOCAL_WRITE, owner=OWNER, gets=GETS)
    refused = STATUS.REMOTE_NOT_PERMITTED
    assert [d[3] for d in done] == [refused, 0, reason, 0, 0, 0, 0, refused, 0]
    assert [a[3] for a in arrivals] == [CONTEXT + 4 << 16]


def test_an_answer_needs_the_right_to_write_for_its_own_endpoint():
    packets = responses()
    for rights in (15 - RIGHT.LOCAL_WRITE, RIGHT.REMOTE_WRITE):
        host, done, _ = run(packets[:1], 1, rights=rights, owner=OWNER, gets=GETS)
        assert done == [(1, 0, 1, STATUS.REMOTE_NOT_PERMITTED)] and host.memory == {}


def test_the_last_packet_of_an_answer_ends_the_get():
    flags = PACKET_FLAG.RESPONSE
    packets = [
        Packet(0, bytes(32), flags=flags, context=CONTEXT, total=64),
        Packet(
            1,
            bytes(32),
            32,
            flags=flags | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE,
            context=CONTEXT,
            total=64,
            notice=CONTEXT << 16,
        ),
    ]
    host, done, arrivals = run(packets, 2, rights=RIGHT.LOCAL_WRITE, owner=OWNER, gets=GETS)
    assert arrivals == [(1, 3, 0, CONTEXT << 16, 64, KEY, 1, 0)]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_write_follows_its_block_line_by_line(data_width):
    """The last line of 256 bytes leaves a few cycles after the last line of the same bytes without
    a header came.
    """
    lines, when = C.BLOCK_BYTES * 8 // data_width, {}
    for n in (1, lines):
        packet = Packet(0, bytes(n * data_width // 8), -BASE % 4096)
        when[n] = run([packet], 1, data_width)[0].cycles[0]
    assert when[lines] - when[1] == lines - 1


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_line_a_cycle(data_width):
    """Aligned 8-byte elements: a TLP each cycle within a packet, and little between packets."""
    packets = [
        Packet(n, bytes(range(200)) * 4, 8 - BASE % 8, 8, (24,), (300,), flags=0) for n in range(3)
    ]
    host, done, _ = run(packets, 3, data_width)
    assert len(host.tlps) == 300
    for n in range(3):
        first, last = host.cycles[100 * n], host.cycles[100 * n + 99]
        assert last - first == 99
    assert host.cycles[100] - host.cycles[99] <= 4
    assert host.cycles[200] - host.cycles[199] <= 4
