"""The host reads and writes BAR 0, through the whole host interface."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from cocotbext.pcie.core.tlp import CplStatus, TlpType

from dibber.host.bar import bar_windows

from tests.gateware.host.tlps import WIDTHS, Bench, read, write

WINDOWS = bar_windows(0x10000)

BASE = 0x4_FE00_0000  # where the host has put the BAR

# Reads --------------------------------------------------------------------------------------------


def answers(bench, tag):
    """The completions with `tag` joined: (bytes asked for, number of completions).

    Asserts what PCIe Base 3.0, 2.3.1.1, asks of split completions.
    """
    tlps = [
        tlp for _, _, tlp in bench.received if tlp.tag == tag and tlp.fmt_type == TlpType.CPL_DATA
    ]
    left = tlps[0].byte_count
    data = b""
    for n, tlp in enumerate(tlps):
        assert tlp.status == CplStatus.SC and tlp.byte_count == left
        assert (tlp.lower_address == 0) if n else True
        skip = tlp.lower_address % 4
        part = bytes(tlp.data)[skip : skip + left]
        if n < len(tlps) - 1:  # ends at a read completion boundary
            assert (tlp.lower_address + len(part)) % 128 == 0
        assert len(tlp.data) <= 128
        data += part
        left -= len(part)
    assert left == 0
    return data, len(tlps)


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_reads_of_any_size_and_place_return_what_was_written(data_width, endianness, seed):
    bench = Bench(data_width, endianness, gaps=0.2, stalls=0.3, seed=seed)
    rng = random.Random(seed)
    cases = [
        (0, 1),
        (3, 1),
        (4, 4),
        (0x7C, 8),
        (0x40, 64),
        (0x3C, 8),
        (0x1FE, 64),
        (0x7D, 128),
        (0x80, 128),
        (0x2FD, 5),
        (0x104, 300),
    ]
    content = {}
    for name in bench.memory:
        content[name] = rng.randbytes(1024)
        bench.memory[name].update(enumerate(content[name]))
    wanted = {}
    for tag, (offset, length) in enumerate(cases):
        name = rng.choice(list(bench.memory))
        wanted[tag] = content[name][offset : offset + length]
        bench.send(read(BASE + WINDOWS[name][0] + offset, length, tag=tag))
    bench.run()
    for tag, data in wanted.items():
        got, completions = answers(bench, tag)
        first, last = cases[tag][0] // 128, (cases[tag][0] + len(data) - 1) // 128
        assert got == data and completions == last - first + 1


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_read_of_no_bytes_is_answered(data_width, endianness):
    bench = Bench(data_width, endianness)
    flush = read(BASE + WINDOWS["endpoints"][0] + 8, 4, tag=9)
    flush.first_be = 0
    bench.send(flush)
    bench.run()
    ((_, _, tlp),) = bench.received
    assert (tlp.tag, tlp.length, tlp.byte_count, tlp.lower_address) == (9, 1, 1, 8)


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_only_the_dwords_asked_for_are_marked_read(data_width, endianness):
    """So that a register that changes when it is read is left alone when its neighbour is."""
    bench = Bench(data_width, endianness)
    bench.send(read(BASE + 0x34, 4, tag=0), read(BASE + 0x38, 12, tag=1))
    bench.run()
    size = data_width // 8
    dwords = [
        (adr * size + n) // 4 * 4
        for name, adr, be in bench.reads
        for n in range(0, size, 4)
        if be >> n & 1
    ]
    assert dwords == [0x34, 0x38, 0x3C, 0x40]


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_what_is_in_no_window_is_refused_and_the_next_read_works(data_width, endianness):
    bench = Bench(data_width, endianness)
    base, size = WINDOWS["firmware"]
    # the control program's memory, which ends there on a card with so much of it
    behind = BASE + base + size
    bench.memory["host"].update(enumerate(b"DIBR"))
    bench.send(read(behind + 2, 5, tag=1), write(BASE + 0x5000, bytes(8)), read(BASE, 4, tag=2))
    bench.run()
    refused, good = (tlp for _, _, tlp in bench.received)
    assert (refused.fmt_type, refused.status, refused.tag) == (TlpType.CPL, CplStatus.UR, 1)
    assert (refused.byte_count, refused.lower_address) == (5, 2)
    assert (good.tag, bytes(good.data)) == (2, b"DIBR")
    assert bench.stores == [] and bench.count["TLP_UNSUPPORTED"] == 2


# Writes against reads -----------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_read_sees_every_write_that_came_before_it(data_width, endianness, seed):
    rng = random.Random(seed)
    bench = Bench(data_width, endianness, stalls=0.2, seed=seed)
    base = BASE + WINDOWS["firmware"][0]
    wanted = {}
    for tag in range(8):
        data = rng.randbytes(rng.choice([16, 64, 256]))
        wanted[tag] = data[-8:]  # the last bytes to arrive
        bench.send(
            write(base + 0x1000 * tag, data), read(base + 0x1000 * tag + len(data) - 8, 8, tag=tag)
        )
    bench.run()
    assert {tag: answers(bench, tag)[0] for tag in wanted} == wanted


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_posted_writes_never_wait_with_all_queues_full_and_reads_in_flight(data_width, endianness):
    """The PHY takes nothing from the card: 32 reads of the host wait, every source of the card is
    stuck,
    and writes and completions come without a gap. Bench asserts in every cycle that `ready` is 1.
    """
    bench = Bench(data_width, endianness, stalls=1.0)
    bench.memory["host"].update(enumerate(bytes(range(64))))
    dut = bench.dut
    bench.send(*[read(BASE + 4 * (n % 16), 4, tag=n) for n in range(32)])
    data = bytes(range(64))
    for n in range(12):
        bench.send(write(BASE + WINDOWS["endpoints"][0] + 64 * n, data))
        bench.send(write(BASE + WINDOWS["endpoints"][0] + 0x1000, n.to_bytes(4, "little")))
    offered = len(bench.queue)

    def scenario(bench):
        for endpoint, fields in (
            (dut.writes, dict(address=0x1000, length=8)),
            (dut.reads, dict(address=0, length=64)),
        ):
            yield endpoint.valid.eq(1)
            yield endpoint.last.eq(1)
            for name, value in fields.items():
                yield getattr(endpoint, name).eq(value)
        yield dut.posts.valid.eq(1)
        yield
        while bench.queue:
            yield
        assert bench.cycle <= offered + 2, "a beat was not taken at once"
        assert (
            bench.received == []
            and (yield dut.writes.ready) == (yield dut.reads.ready) == (yield dut.posts.ready) == 0
        )
        for _ in range(20):
            yield
        assert len(bench.stores) == 12 * 68
        yield dut.writes.valid.eq(0)
        yield dut.reads.valid.eq(0)
        yield dut.posts.valid.eq(0)
        bench.stalls = 0.0
        while len([1 for _, _, tlp in bench.received if tlp.fmt_type == TlpType.CPL_DATA]) < 32:
            yield

    bench.run(scenario)
    assert [answers(bench, n)[0] for n in range(32)] == [
        bytes(range(4 * (n % 16), 4 * (n % 16) + 4)) for n in range(32)
    ]


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_an_idle_card_answers_a_read_in_a_fixed_time(data_width, figure):
    bench = Bench(data_width, "little")
    bench.send(read(0xFE000000, 4))
    bench.run()
    cycles = bench.received[0][0]
    assert figure(f"bar_read_cycles_{data_width}", cycles, "cycles", at_most=24)
