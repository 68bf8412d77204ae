"""The receiver alone: every byte where its address says, and nothing of a bad TLP."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from cocotbext.pcie.core.tlp import CplStatus, TlpType

from dibber.host.bar import bar_windows
from dibber.layouts import FLAW_LENGTH, FLAW_POISON, FLAW_STATUS
from dibber.host.receiver import TLPReceiver

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.host.tlps import (
    PHYS,
    WIDTHS,
    completion,
    lines_of,
    read,
    to_beats,
    to_dwords,
    write,
)

BAR_SIZE = 0x100000
WINDOWS = bar_windows(0x10000)
BASE = WINDOWS["endpoints"][0]

# Driving ------------------------------------------------------------------------------------------


def receive(data_width, endianness, packets, gaps=0.0, seed=1):
    """Give TLPs (or lists of beats) to a receiver; return what came out of it.

    (writes as [(byte address, value)], requests, completion lines, unsupported, malformed)
    """
    dut = shared(
        TLPReceiver, data_width, endianness, BAR_SIZE, tuple(WINDOWS.values()), read_depth=8
    )
    rng = random.Random(seed)
    size = data_width // 8
    beats = []
    for packet in packets:
        beats += (
            packet
            if isinstance(packet, list)
            else to_beats(to_dwords(packet, endianness), data_width)
        )
    writes, requests, lines, pulses = [], [], [], [0, 0]

    def process():
        yield dut.requests.ready.eq(1)
        rest = 80  # the longest TLP's lines and more
        while rest:
            yield dut.sink.valid.eq(0)
            shown = None
            if beats and rng.random() >= gaps:
                shown = dat, be, first, last = beats.pop(0)
                yield dut.sink.valid.eq(1)
                yield dut.sink.dat.eq(dat)
                yield dut.sink.last.eq(last)
            elif not beats:
                rest -= 1
            yield
            # Only at 256 bits a TLP may have more lines than beats.
            if not (yield dut.sink.ready):
                assert data_width == 256
                if shown:
                    beats.insert(0, shown)
            pulses[0] += yield dut.unsupported
            pulses[1] += yield dut.malformed
            if (yield dut.writes.valid):
                adr, dat, be = (yield dut.writes.adr), (yield dut.writes.dat), (yield dut.writes.be)
                writes.extend(
                    (adr * size + n, dat >> 8 * n & 0xFF) for n in range(size) if be >> n & 1
                )
            if (yield dut.requests.valid):
                request = {}
                for field in (
                    "tag",
                    "requester",
                    "length",
                    "offset",
                    "first_be",
                    "last_be",
                    "attr",
                    "tc",
                    "memory",
                    "refused",
                ):
                    request[field] = yield getattr(dut.requests, field)
                requests.append(request)
            if (yield dut.completions.valid):
                line = {}
                for field in ("dat", "last", "tag", "status", "lower", "count", "bytes", "flaw"):
                    line[field] = yield getattr(dut.completions, field)
                lines.append(line)

    run_simulation(dut, process())
    return writes, requests, lines, *pulses


def stores(address, data):
    return [(address % BAR_SIZE + n, byte) for n, byte in enumerate(data)]


def high(rng):
    """Where the host may have put the BAR: below 4 GiB or above."""
    return rng.choice([0xFE00_0000, 0x12_3450_0000, 0xFFFF_FF00_0000_0000])


# Writes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_write_of_any_offset_and_length_is_byte_exact(data_width, endianness, seed):
    rng, tlps, expected = random.Random(seed), [], []
    for offset in range(data_width // 8 if data_width > 64 else 16):
        for length in range(1, 41):
            address, data = high(rng) + BASE + offset, rng.randbytes(length)
            tlps.append(write(address, data))
            expected += stores(address, data)
    writes, _, _, unsupported, malformed = receive(data_width, endianness, tlps)
    assert writes == expected
    assert (unsupported, malformed) == (0, 0)


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_long_writes_with_gaps_are_byte_exact(data_width, endianness, seed):
    rng, tlps, expected = random.Random(seed), [], []
    for length, spread in ((64, 64), (127, 64), (256, 64), (505, 4), (512, 1)):
        address, data = high(rng) + BASE + rng.randrange(spread), rng.randbytes(length)
        tlps.append(write(address, data))
        expected += stores(address, data)
    assert receive(data_width, endianness, tlps, gaps=0.3, seed=seed)[0] == expected


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_sparse_byte_enables_of_one_dword_are_kept(data_width, endianness):
    tlp = write(BASE + 4, b"\x11\x22\x33\x44")
    tlp.first_be = 0b1010
    assert receive(data_width, endianness, [tlp])[0] == [(BASE + 5, 0x22), (BASE + 7, 0x44)]


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_a_write_of_no_bytes_writes_nothing(data_width, endianness):
    tlp = write(BASE + 4, b"\x11\x22\x33\x44")
    tlp.first_be = 0
    writes, _, _, unsupported, malformed = receive(data_width, endianness, [tlp])
    assert writes == [] and (unsupported, malformed) == (0, 0)


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_a_digest_is_not_taken_for_payload(data_width, endianness):
    tlp = write(BASE + 8, bytes(range(8)))
    tlp.td = True
    beats = to_beats(to_dwords(tlp, endianness) + [0x5A5A5A5A], data_width)
    writes, _, _, _, malformed = receive(data_width, endianness, [beats, write(BASE, b"\x01")])
    assert writes == stores(BASE + 8, bytes(range(8))) + [(BASE, 1)] and malformed == 0


# Completions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_completions_come_as_lines_with_their_bytes(data_width, endianness, seed):
    rng, tlps, expected = random.Random(seed), [], []
    for n in range(40):
        lower, count = rng.randrange(128), rng.choice([1, 3, 4, 8, 17, 64, 200, 512, 4096])
        carried = min(count, 128 - lower)
        data = rng.randbytes(carried)
        tlps.append(completion(n, lower, count, data))
        lines = lines_of(lower, data, data_width)
        for i, line in enumerate(lines):
            expected.append((line, i == len(lines) - 1, n, 0, lower, count, carried))
    _, _, lines, _, malformed = receive(data_width, endianness, tlps, gaps=0.2, seed=seed)
    assert malformed == 0 and len(lines) == len(expected)
    size = data_width // 8
    done = 0
    for got, want in zip(lines, expected):
        dat, last, tag, status, lower, count, carried = want
        assert (got["last"], got["tag"], got["status"]) == (last, tag, status)
        assert (got["lower"], got["count"] or 4096, got["bytes"]) == (lower, count, carried)
        # Lanes outside the completion's bytes are don't care.
        start = lower % size if done == 0 else 0
        stop = min(size, lower % size + carried - done * size)
        mask = (1 << 8 * stop) - (1 << 8 * start)
        assert got["dat"] & mask == dat & mask
        done = 0 if last else done + 1


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_an_error_completion_is_one_beat_with_its_status(data_width, endianness):
    _, _, lines, _, malformed = receive(
        data_width,
        endianness,
        [completion(9, 0x10, 64, b"", CplStatus.CA), completion(3, 0, 4, b"abcd")],
    )
    assert [(l["tag"], l["status"], l["last"], l["bytes"]) for l in lines] == [
        (9, 4, 1, 0),
        (3, 0, 1, 4),
    ]
    assert malformed == 0


# Requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_reads_carry_what_the_answer_needs(data_width, endianness):
    tlp = read(0xFE00_0000 + BASE + 6, 31, tag=0xA5, requester=0x1234)
    tlp.tc = 5
    tlp.attr = 3
    wide = read(0x1_FE00_0000, 4096, tag=1)
    _, requests, _, _, malformed = receive(data_width, endianness, [tlp, wide])
    assert malformed == 0
    assert requests == [
        dict(
            tag=0xA5,
            requester=0x1234,
            length=9,
            offset=(BASE + 4) // 4,
            first_be=0b1100,
            last_be=0b0001,
            attr=3,
            tc=5,
            memory=1,
            refused=0,
        ),
        dict(
            tag=1,
            requester=8,
            length=0,
            offset=0,
            first_be=15,
            last_be=15,
            attr=0,
            tc=0,
            memory=1,
            refused=0,
        ),
    ]


# Bad TLPs -----------------------------------------------------------------------------------------


def changed(tlp, **fields):
    for name, value in fields.items():
        setattr(tlp, name, value)
    return tlp


def cut(tlp, endianness, data_width):
    """All but the last beat of a TLP, which ends where it should not."""
    beats = to_beats(to_dwords(tlp, endianness), data_width)[:-1]
    return beats[:-1] + [beats[-1][:3] + (True,)]


def longer(tlp, endianness, data_width):
    return to_beats(to_dwords(tlp, endianness) + [0] * 8, data_width)


MALFORMED = {
    "poisoned write": lambda *_: changed(write(BASE, bytes(16)), ep=True),
    "write over 4 KiB": lambda *_: write(BASE + 0xFF8, bytes(16)),
    "read over 4 KiB": lambda *_: read(BASE + 0xFF8, 16),
    "payload too long": lambda *_: write(BASE, bytes(516)),
    "last enables of one DW": lambda *_: changed(write(BASE, bytes(4)), last_be=3),
    "no last enables": lambda *_: changed(write(BASE, bytes(16)), last_be=0),
    "no first enables": lambda *_: changed(read(BASE, 16), first_be=0),
    "locked completion": lambda *_: changed(
        completion(1, 0, 16, bytes(16)), fmt_type=TlpType.CPL_LOCKED_DATA
    ),
    "prefix": lambda *_: [(0x80000000, 0xFFFF, 1, 0), (0, 0xFFFF, 0, 1)],
    "undefined type": lambda *_: [(0x1D000000, 0xFFFF, 1, 0), (0, 0xFFFF, 0, 1)],
    "write cut short": lambda w, e: cut(write(BASE, bytes(40)), e, w),
    "write with more": lambda w, e: longer(write(BASE, bytes(40)), e, w),
    "read with payload": lambda w, e: longer(read(BASE, 4), e, w),
}


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_a_malformed_tlp_is_counted_and_leaves_nothing(data_width, endianness):
    packets, expected = [], []
    for n, (name, make) in enumerate(MALFORMED.items()):
        packets += [
            make(data_width, endianness),
            write(BASE + n, name.encode()),
            read(BASE, 8, tag=n),
        ]
        expected += stores(BASE + n, name.encode())
    writes, requests, lines, unsupported, malformed = receive(data_width, endianness, packets)
    assert writes == expected
    assert [r["tag"] for r in requests] == list(range(len(MALFORMED)))
    assert lines == []
    assert (unsupported, malformed) == (0, len(MALFORMED))


# name: (completion of tag 1, its flaw)
FLAWED = {
    "poisoned": (lambda *_: changed(completion(1, 0, 16, bytes(16)), ep=True), FLAW_POISON),
    "success without data": (
        lambda *_: changed(completion(1, 0, 16, b"", CplStatus.UR), status=CplStatus.SC),
        FLAW_STATUS,
    ),
    "data without success": (
        lambda *_: changed(completion(1, 0, 16, bytes(16)), status=CplStatus.UR),
        FLAW_STATUS,
    ),
    "more than asked for": (lambda *_: completion(1, 3, 9, bytes(17)), FLAW_LENGTH),
    "too long": (lambda *_: completion(1, 0, 4096, bytes(516)), FLAW_LENGTH),
    "cut short": (lambda w, e: cut(completion(1, 0, 64, bytes(64)), e, w), FLAW_LENGTH),
    "cut after the header": (
        lambda w, e: cut(completion(1, 0, w // 8, bytes(w // 8)), e, w),
        FLAW_LENGTH,
    ),
    "with more": (lambda w, e: longer(completion(1, 0, 64, bytes(64)), e, w), FLAW_LENGTH),
    "error with more": (
        lambda w, e: longer(completion(1, 0, 64, b"", CplStatus.UR), e, w),
        FLAW_LENGTH,
    ),
}


@pytest.mark.fault
@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_a_completion_that_contradicts_itself_is_passed_on_without_data_and_with_its_flaw(
    data_width, endianness
):
    packets = []
    for n, (make, _) in enumerate(FLAWED.values()):
        packets += [make(data_width, endianness), completion(100 + n, 4 * n, 16, bytes(range(16)))]
    *_, lines, unsupported, malformed = receive(data_width, endianness, packets)
    flaws = [line for line in lines if line["tag"] == 1]
    assert [line["flaw"] for line in flaws] == [flaw for _, flaw in FLAWED.values()]
    assert all(line["last"] and line["status"] != 0 and line["bytes"] == 0 for line in flaws)
    assert {line["tag"] for line in lines if line["tag"] != 1} == set(range(100, 100 + len(FLAWED)))
    assert all(
        (line["flaw"], line["status"], line["bytes"]) == (0, 0, 16)
        for line in lines
        if line["tag"] != 1
    )
    assert (unsupported, malformed) == (0, len(FLAWED) - 1), "poison is no contradiction"


def nonposted(fmt_type, **fields):
    return changed(read(BASE, 4, tag=7), fmt_type=fmt_type, **fields)


# name: (request, whether it gets an answer)
UNSUPPORTED = {
    "read of no window": (read(0x50000, 4, tag=7), True),
    "write of no window": (write(0x50000, bytes(4)), False),
    "locked read": (nonposted(TlpType.MEM_READ_LOCKED), True),
    "I/O read": (nonposted(TlpType.IO_READ), True),
    "I/O write": (nonposted(TlpType.IO_WRITE, data=bytes(4)), True),
    "configuration read": (nonposted(TlpType.CFG_READ_0), True),
    "configuration write": (nonposted(TlpType.CFG_WRITE_1, data=bytes(4)), True),
    "fetch and add": (nonposted(TlpType.FETCH_ADD_64, data=bytes(4)), True),
    "swap": (nonposted(TlpType.SWAP, data=bytes(4)), True),
    "compare and swap": (nonposted(TlpType.CAS, data=bytes(8), length=2), True),
    "message": ([0x34000000, 0x00080019, 0, 0], False),
}


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_an_unsupported_request_is_counted_and_refused(data_width, endianness):
    packets, expected = [], []
    for n, (name, (bad, _)) in enumerate(UNSUPPORTED.items()):
        packets += [to_beats(list(bad), data_width) if isinstance(bad, list) else bad]
        packets += [write(BASE + n, name.encode())]
        expected += stores(BASE + n, name.encode())
    writes, requests, _, unsupported, malformed = receive(data_width, endianness, packets)
    assert writes == expected
    assert [(r["tag"], r["refused"]) for r in requests] == [(7, 1)] * sum(
        a for _, a in UNSUPPORTED.values()
    )
    assert (unsupported, malformed) == (len(UNSUPPORTED), 0)


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_rubbish_never_desynchronises(data_width, endianness, seed):
    rng = random.Random(seed)
    packets = []
    for _ in range(60):
        if rng.random() < 0.5:
            dwords = [rng.getrandbits(32) for _ in range(rng.randrange(1, 24))]
            if rng.random() < 0.5:  # half of them look like requests or completions
                dwords[0] = rng.choice([0x00, 0x20, 0x40, 0x60, 0x0A, 0x4A]) << 24 | rng.randrange(
                    1, 20
                )
        else:
            packets.append(
                rng.choice([*MALFORMED.values(), *[make for make, _ in FLAWED.values()]])(
                    data_width, endianness
                )
            )
            continue
        packets.append(to_beats(dwords, data_width))
    good = read(BASE + 64, 8, tag=0x77)
    writes, requests, _, _, malformed = receive(
        data_width, endianness, packets + [good], gaps=0.1, seed=seed
    )
    assert requests[-1] | dict(requester=8) == dict(
        tag=0x77,
        requester=8,
        length=2,
        offset=(BASE + 64) // 4,
        first_be=15,
        last_be=15,
        attr=0,
        tc=0,
        memory=1,
        refused=0,
    )
    assert malformed >= 30
