"""The transmitter alone: legal TLPs with every byte in place, whole, and without a bubble."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from cocotbext.pcie.core.tlp import CplStatus, TlpType

from dibber.host.transmitter import TLPTransmitter

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.host.tlps import PHYS, from_beats, lines_of, offer, written

# Driving ------------------------------------------------------------------------------------------


def transmit(
    data_width, endianness, writes=(), reads=(), posts=(), replies=(), stalls=0.0, seed=1, gate=None
):
    """Offer packets, each (lines, parameters), at the four sinks at once.

    `gate(cycle)` gives `enable` and `discard` of a cycle.
    Returns [(cycle of the first beat, cycle of the last, Tlp)], the cycles of `marked`, and with
    `gate` the cycle in which each first beat was offered and the number of requests that were
    dropped.
    """
    dut = shared(TLPTransmitter, data_width, endianness)
    rng = random.Random(seed)
    total = sum(map(len, (writes, reads, posts, replies)))
    sent, marks, offered, dropped = [], [], [], [0]

    def feed(endpoint, packets):
        for lines, params in packets:
            yield from offer(endpoint, lines, **params)

    def phy():
        beats, started, cycle, shown = [], 0, 0, None
        yield dut.id.eq(0x0300)
        while len(sent) + dropped[0] < total:
            yield dut.source.ready.eq(rng.random() >= stalls)
            if gate is not None:
                enable, discard = gate(cycle)
                yield dut.enable.eq(enable)
                yield dut.discard.eq(discard)
            yield
            cycle += 1
            if gate is not None:
                dropped[0] += yield dut.dropped
                if not beats and shown is None and (yield dut.source.valid):
                    shown = cycle
            assert cycle < 10000
            if (yield dut.source.valid) and (yield dut.source.ready):
                started = started if beats else cycle
                beats.append(
                    (
                        (yield dut.source.dat),
                        (yield dut.source.be),
                        (yield dut.source.first),
                        (yield dut.source.last),
                    )
                )
                if beats[-1][3]:
                    sent.append((started, cycle, from_beats(beats, data_width, endianness)))
                    offered.append(shown)
                    beats, shown = [], None
            if (yield dut.marked):
                marks.append(cycle)

    run_simulation(
        dut,
        [
            phy(),
            feed(dut.writes, writes),
            feed(dut.reads, reads),
            feed(dut.posts, posts),
            feed(dut.replies, replies),
        ],
    )
    return (sent, marks) if gate is None else (sent, marks, offered, dropped[0])


def a_write(data_width, address, data, mark=0):
    return lines_of(address, data, data_width), dict(address=address, length=len(data), mark=mark)


def a_read(address, length, tag):
    return [None], dict(address=address, length=length, tag=tag)


def base(rng):
    return rng.choice([0, 0xFFF0_0000, 0x1_0000_0000, 0xFFFF_FFFF_0000_0000])


# Bytes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, endianness", [(64, "little"), (128, "big"), (256, "big")])
def test_a_write_of_any_offset_and_length_is_byte_exact(data_width, endianness, seed):
    rng, writes = random.Random(seed), []
    for offset in range(data_width // 8 if data_width > 64 else 16):
        for length in range(1, 41):
            writes.append(a_write(data_width, base(rng) + 0x4560 + offset, rng.randbytes(length)))
    sent, _ = transmit(data_width, endianness, writes)
    for (lines, params), (_, _, tlp) in zip(writes, sent, strict=True):
        address, data = written(tlp)
        assert (address, len(data)) == (params["address"], params["length"])
        assert lines_of(address, data, data_width) == lines
        assert tlp.fmt_type == (TlpType.MEM_WRITE_64 if address >> 32 else TlpType.MEM_WRITE)
        assert int(tlp.requester_id) == 0x0300 and tlp.attr == 0 and tlp.tc == 0
        assert (tlp.last_be == 0) == (tlp.length == 1)


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_long_writes_under_stalls_are_byte_exact(data_width, endianness, seed):
    rng, writes = random.Random(seed), []
    for length in (63, 128, 255, 256, 512):
        writes.append(a_write(data_width, base(rng) + rng.randrange(256), rng.randbytes(length)))
    sent, _ = transmit(data_width, endianness, writes, stalls=0.4, seed=seed)
    for (lines, params), (_, _, tlp) in zip(writes, sent, strict=True):
        address, data = written(tlp)
        assert (address, lines_of(address, data, data_width)) == (params["address"], lines)


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_reads_ask_for_their_bytes(data_width, endianness, seed):
    rng, reads = random.Random(seed), []
    for tag, length in enumerate((1, 2, 3, 4, 5, 8, 64, 511, 512, 4096)):
        offset = 0 if length == 4096 else rng.randrange(256)
        reads.append(a_read(base(rng) + offset, length, 0x80 + tag))
    sent, _ = transmit(data_width, endianness, reads=reads, stalls=0.2, seed=seed)
    for (_, params), (_, _, tlp) in zip(reads, sent, strict=True):
        assert tlp.fmt_type == (
            TlpType.MEM_READ_64 if params["address"] >> 32 else TlpType.MEM_READ
        )
        assert tlp.address + tlp.get_first_be_offset() == params["address"]
        assert tlp.get_be_byte_count() == params["length"] and tlp.tag == params["tag"]


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_replies_carry_the_request_back(data_width, endianness):
    data = bytes(range(20))
    reply = dict(requester=0x1234, tag=0xA5, attr=7, tc=5, status=0, length=5, count=19, lower=0x15)
    refusal = dict(requester=0x0008, tag=1, attr=0, tc=0, status=1, length=0, count=4, lower=0)
    sent, _ = transmit(
        data_width, endianness, replies=[(lines_of(0x14, data, data_width), reply), ([0], refusal)]
    )
    first, second = (tlp for _, _, tlp in sent)
    assert first.fmt_type == TlpType.CPL_DATA and bytes(first.data) == data
    assert (int(first.requester_id), int(first.completer_id)) == (0x1234, 0x0300)
    assert (first.tag, first.attr, first.tc, first.status) == (0xA5, 7, 5, CplStatus.SC)
    assert (first.byte_count, first.lower_address) == (19, 0x15)
    assert (
        second.fmt_type == TlpType.CPL and second.status == CplStatus.UR and second.byte_count == 4
    )


# Cycles -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address, size, by_width",
    [
        (0x1000, 8, (3, 2, 1)),  # 3-DW header
        (0x1_0000_1000, 8, (3, 2, 1)),  # 4-DW header
        (0x100C, 8, (3, 2, 1)),  # in two lines of 128 bits
        (0x1_0000_100C, 8, (3, 2, 1)),
        (0x1018, 8, (3, 2, 1)),  # the last lanes of a line of 256 bits
        (0x1_0000_1003, 8, (4, 2, 1)),  # 3 DWs
        (0x100C, 4, (2, 1, 1)),
        (0x1004, 256, (34, 17, 9)),
    ],
)
@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_writes_leave_without_a_bubble(data_width, address, size, by_width):
    count = 50 if size <= 8 else 4
    beats = by_width[(64, 128, 256).index(data_width)]
    sent, _ = transmit(data_width, "big", [a_write(data_width, address, bytes(size))] * count)
    assert [last - first + 1 for first, last, _ in sent] == [beats] * count
    assert [b[0] - a[0] for a, b in zip(sent, sent[1:])] == [beats] * (count - 1)


@pytest.mark.parametrize("address, beats", [(0x101C, 1), (0x1_0000_101F, 1), (0x1018, 9)])
def test_a_write_whose_first_beat_has_bytes_of_two_lines_takes_one_cycle_more(address, beats):
    size = 8 if beats == 1 else 256
    sent, _ = transmit(256, "big", [a_write(256, address, bytes(size))] * 10)
    assert [last - first + 1 for first, last, _ in sent] == [beats] * 10
    assert [b[0] - a[0] for a, b in zip(sent, sent[1:])] == [beats + 1] * 9


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_small_reads_and_writes_take_turns_without_a_bubble(data_width):
    writes = [a_write(data_width, 0x1_0000_1000 + 8 * n, bytes(8)) for n in range(25)]
    reads = [a_read(0x1_0000_2000 + 8 * n, 8, n) for n in range(25)]
    sent, _ = transmit(data_width, "little", writes, reads)
    kinds = [tlp.fmt_type for _, _, tlp in sent]
    assert all(a != b for a, b in zip(kinds, kinds[1:]))
    assert all(b[0] == a[1] + 1 for a, b in zip(sent, sent[1:]))


# Choice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_posts_and_replies_go_first_and_every_stream_keeps_its_order(data_width, endianness, seed):
    writes = [a_write(data_width, 0x10000 + n * 64, bytes(40)) for n in range(8)]
    reads = [a_read(0x20000 + n * 64, 64, n) for n in range(8)]
    posts = [a_write(data_width, 0x1_0003_0000 + n * 64, bytes(32)) for n in range(4)]
    replies = [
        ([0] * max(1, 128 // data_width), dict(requester=8, tag=n, length=4, count=16, lower=0))
        for n in range(4)
    ]
    sent, _ = transmit(data_width, endianness, writes, reads, posts, replies, stalls=0.3, seed=seed)

    def kind(tlp):
        if tlp.fmt_type == TlpType.CPL_DATA:
            return "reply"
        return {1: "write", 2: "read", 3: "post"}[tlp.address >> 16 & 0xF]

    order = [
        (kind(tlp), tlp.tag if kind(tlp) in ("reply", "read") else tlp.address >> 6 & 0x3FF)
        for _, _, tlp in sent
    ]
    for name, count in (("write", 8), ("read", 8), ("post", 4), ("reply", 4)):
        assert [n for k, n in order if k == name] == list(range(count))
    assert [k for k, _ in order[:4]] == ["post"] * 4
    assert [k for k, _ in order[4:8]] == ["reply"] * 4


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_marked_pulses_with_the_last_beat_of_marked_writes(data_width, endianness, seed):
    writes = [
        a_write(data_width, 0x1000 + 17 * n, bytes(1 + 7 * n), mark=n in (0, 3, 4, 9))
        for n in range(10)
    ]
    sent, marks = transmit(
        data_width, endianness, writes, reads=[a_read(0, 4, 0)] * 4, stalls=0.5, seed=seed
    )
    ends = [last for _, last, tlp in sent if tlp.fmt_type == TlpType.MEM_WRITE]
    assert marks == [ends[n] for n in (0, 3, 4, 9)]


# Bus Mastering ------------------------------------------------------------------------------------


def lateness(data_width):
    """Cycles from `enable` to the last first beat that may be offered: the gate, the assembler, its
    output. At 256 bits also the cycle for a first line that leaves with the second one.
    """
    return 4 if data_width == 256 else 3


def mixture(data_width, rng):
    """Packets for all four sinks. The write of number n lies at 0x10000 + 256*n."""
    writes = [
        a_write(
            data_width,
            0x10000 + 256 * n + rng.randrange(16),
            rng.randbytes(rng.choice((1, 8, 40, 200))),
            mark=rng.randrange(2),
        )
        for n in range(20)
    ]
    reads = [a_read(0x20000 + n * 64, 64, n) for n in range(20)]
    posts = [a_write(data_width, 0x1_0003_0000 + n * 64, bytes(32)) for n in range(8)]
    replies = [
        ([0] * max(1, 128 // data_width), dict(requester=8, tag=n, length=4, count=16, lower=0))
        for n in range(12)
    ]
    return writes, reads, posts, replies


def spells(rng, cycles, discards):
    """Values of (enable, discard) by cycle: spells of random length, and at the end all may
    leave.
    """
    values, enable = [], 1
    while len(values) < cycles:
        discard = int(not enable and discards and rng.random() < 0.7)
        values += [(enable, discard)] * rng.choice((1, 2, 5, 30, 60))
        enable ^= 1
    return lambda cycle: values[cycle] if cycle < len(values) else (1, 0)


@pytest.mark.fault
@pytest.mark.parametrize("discards", [False, True])
@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_no_request_begins_while_bus_mastering_is_off_and_what_has_begun_ends_whole(
    data_width, endianness, discards, seed
):
    for run in range(4):
        rng = random.Random(f"{seed} {run} {data_width} {endianness}")
        gate = spells(rng, 1200, discards)
        writes, reads, posts, replies = mixture(data_width, rng)
        sent, marks, offered, dropped = transmit(
            data_width,
            endianness,
            writes,
            reads,
            posts,
            replies,
            stalls=0.3,
            seed=rng.randrange(1000),
            gate=gate,
        )
        if not discards:
            assert dropped == 0 and len(sent) == len(writes) + len(reads) + len(posts) + len(
                replies
            )
        # A completion may leave at any time.
        for (_, _, tlp), cycle in zip(sent, offered, strict=True):
            assert tlp.fmt_type == TlpType.CPL_DATA or any(
                gate(at)[0] for at in range(max(cycle - lateness(data_width), 0), cycle)
            )
        # Each write that left is whole, and they are in their order.
        numbers = []
        for _, _, tlp in sent:
            if tlp.fmt_type == TlpType.MEM_WRITE and tlp.address < 0x20000:
                address, data = written(tlp)
                numbers.append((address - 0x10000) // 256)
                lines, params = writes[numbers[-1]]
                assert (address, len(data), lines_of(address, data, data_width)) == (
                    params["address"],
                    params["length"],
                    lines,
                )
        assert numbers == sorted(set(numbers))
        # A write with a mark has one, whether it left or was dropped.
        assert len(marks) == sum(params["mark"] for _, params in writes)


@pytest.mark.fault
@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_completions_leave_while_bus_mastering_is_off(data_width, endianness, seed):
    writes, reads, posts, replies = mixture(data_width, random.Random(seed))
    sent, _, _, _ = transmit(
        data_width,
        endianness,
        writes,
        reads,
        posts,
        replies,
        stalls=0.2,
        seed=seed,
        gate=lambda cycle: (int(cycle > 500), 0),
    )
    kinds = [tlp.fmt_type for _, _, tlp in sent]
    begun = kinds.index(next(kind for kind in kinds if kind != TlpType.CPL_DATA))
    assert begun == len(replies) and sent[begun][0] > 500 > sent[begun - 1][1]
