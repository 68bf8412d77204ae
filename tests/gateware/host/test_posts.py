"""Posts and interrupts, through the whole host interface."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial
import random

import pytest

from cocotbext.pcie.core.tlp import TlpType

from dibber.interface import C

from tests.gateware.host import tlps
from tests.gateware.host.tlps import WIDTHS, Bench, offer, read, write, written

BAR = 0xFE00_0000


def set_vector(bench, vector, address, data, masked=0):
    entry = (
        address.to_bytes(8, "little") + data.to_bytes(4, "little") + masked.to_bytes(4, "little")
    )
    bench.send(write(BAR + C.MSIX_TABLE_BASE + 16 * vector, entry))


def set_mask(bench, vector, masked):
    bench.send(write(BAR + C.MSIX_TABLE_BASE + 16 * vector + 12, masked.to_bytes(4, "little")))


def post(bench, address, data, vector=0, interrupt=0):
    yield from offer(
        bench.dut.posts,
        [int.from_bytes(data, "little")],
        address=address,
        vector=vector,
        interrupt=interrupt,
    )


def pause(cycles):
    for _ in range(cycles):
        yield


def sent(bench):
    """(address, bytes) of the card's writes in order."""
    return [
        written(tlp)
        for _, _, tlp in bench.received
        if tlp.fmt_type in (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
    ]


def pending(bench, tag):
    return [
        int.from_bytes(tlp.data, "little")
        for _, _, tlp in bench.received
        if tlp.fmt_type == TlpType.CPL_DATA and tlp.tag == tag
    ]


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_an_interrupt_follows_its_entry(data_width, endianness, seed):
    rng = random.Random(seed)
    bench = Bench(data_width, endianness, stalls=0.3, seed=seed)
    vectors = [(0xFEE0_0000 + 4 * n, 0x4000 + n) for n in range(C.VECTORS - 1)] + [
        (0x12_0000_1004, 0xABCD1234)
    ]
    for n, (address, data) in enumerate(vectors):
        set_vector(bench, n, address, data)
    expected = []

    def scenario(bench):
        yield from pause(80)
        for n in range(12):
            address, entry = 0x8_0000_0000 + 32 * n, rng.randbytes(32)
            vector, raise_ = rng.randrange(C.VECTORS), rng.random() < 0.7
            yield from post(bench, address, entry, vector, raise_)
            expected.append((address, entry))
            if raise_:
                expected.append((vectors[vector][0], vectors[vector][1].to_bytes(4, "little")))

    bench.run(scenario)
    assert sent(bench) == expected
    assert bench.count["POSTS"] == 12 and bench.count["INTERRUPTS"] == len(expected) - 12


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_message_beyond_narrow_addresses_is_not_sent_and_holds_up_nobody(
    data_width, endianness, monkeypatch
):
    monkeypatch.setattr(tlps, "HostInterface", partial(tlps.HostInterface, address_bits=32))
    bench = Bench(data_width, endianness)
    vectors = [0x4000_1000, 2**32 + 0x4000_1000, 2**63, 0xFFFF_FFFC]
    for n, address in enumerate(vectors):
        set_vector(bench, n, address, n)

    def scenario(bench):
        yield from pause(60)
        for n in [1, 0, 2, 3, 1, 0]:
            yield from post(bench, 0x1000, bytes(32), n, 1)

    bench.run(scenario)
    assert [address for address, _ in sent(bench)] == [0x1000] * 2 + [vectors[0]] + [0x1000] * 2 + [
        vectors[3]
    ] + [0x1000] * 2 + [vectors[0]]
    assert bench.count["POSTS"] == 6 and bench.count["INTERRUPTS"] == 3


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_masked_interrupt_is_pending_and_leaves_once_when_unmasked(data_width, endianness):
    bench = Bench(data_width, endianness)
    for n in range(3):
        set_vector(bench, n, 0xFEE0_0000, n, masked=1)

    def scenario(bench):
        yield from pause(40)
        for vector in (1, 2, 1, 0):
            yield from post(bench, 0x1000, bytes(32), vector, vector != 0)
        yield from pause(60)
        bench.send(read(BAR + C.MSIX_PBA_BASE, 4, tag=1))
        set_mask(bench, 1, 0)
        yield from pause(60)
        bench.send(read(BAR + C.MSIX_PBA_BASE, 8, tag=2))

    bench.run(scenario)
    assert pending(bench, 1) == [0b110] and pending(bench, 2) == [0b100]
    assert sent(bench) == [(0x1000, bytes(32))] * 4 + [(0xFEE0_0000, b"\x01\0\0\0")]


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_nothing_is_raised_while_msix_is_off(data_width, endianness):
    bench = Bench(data_width, endianness)
    set_vector(bench, 0, 0xFEE0_0000, 7)

    def scenario(bench):
        yield bench.phy.msix_enable.eq(0)
        yield from pause(40)
        yield from post(bench, 0x1000, bytes(32), 0, 1)
        yield from pause(60)
        assert sent(bench) == [(0x1000, bytes(32))]
        yield bench.phy.msix_enable.eq(1)

    bench.run(scenario)
    assert sent(bench) == [(0x1000, bytes(32)), (0xFEE0_0000, b"\x07\0\0\0")]


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_vector_beyond_the_table_raises_nothing(data_width, endianness):
    bench = Bench(data_width, endianness)
    for n in range(C.VECTORS):
        set_vector(bench, n, 0xFEE0_0000, n)

    def scenario(bench):
        yield from pause(80)
        yield from post(bench, 0x1000, bytes(32), C.VECTORS, 1)
        yield from post(bench, 0x2000, bytes(32), 0xFF, 1)

    bench.run(scenario)
    assert sent(bench) == [(0x1000, bytes(32)), (0x2000, bytes(32))]


def open_queues(bench, vectors):
    for vector in vectors:
        yield bench.dut.open.vector.eq(vector)
        yield bench.dut.open.strobe.eq(1)
        yield
    yield bench.dut.open.strobe.eq(0)


def halt(bench):
    yield bench.dut.halted.eq(1)
    yield
    yield bench.dut.halted.eq(0)


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_halt_raises_each_vector_that_was_opened_since_the_last_one_once(
    data_width, endianness, seed
):
    rng = random.Random(seed)
    bench = Bench(data_width, endianness, stalls=0.3, seed=seed)
    expected = []
    for n in range(C.VECTORS):
        set_vector(bench, n, 0xFEE0_0000, n)

    def scenario(bench):
        yield from pause(80)
        yield from halt(bench)
        for _ in range(12):
            opened = rng.choices(range(C.VECTORS), k=rng.randrange(6))
            yield from open_queues(bench, opened)
            yield from pause(rng.randrange(3))
            yield from halt(bench)
            expected.extend(sorted(set(opened)))
            yield from pause(200)

    bench.run(scenario)
    assert sent(bench) == [(0xFEE0_0000, n.to_bytes(4, "little")) for n in expected]
    assert bench.count["INTERRUPTS"] == len(expected) and bench.count["POSTS"] == 0


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_halt_waits_for_nobody_and_what_it_raises_for_the_host(data_width, endianness):
    """Masked vectors stay pending; so does everything while PCIe takes nothing, beside a post that
    is under way.
    """
    bench = Bench(data_width, endianness)
    for n in range(3):
        set_vector(bench, n, 0xFEE0_0000, n, masked=n == 1)

    def scenario(bench):
        yield from pause(40)
        bench.stalls = 1.0
        yield from open_queues(bench, (0, 1, 2))
        yield from post(bench, 0x1000, bytes(32), 2, 1)
        yield from pause(40)
        yield from halt(bench)
        yield from open_queues(bench, (2,))
        yield from pause(40)
        yield from halt(bench)
        bench.send(read(BAR + C.MSIX_PBA_BASE, 4, tag=1))
        yield from pause(40)
        bench.stalls = 0.0
        yield from pause(100)
        set_mask(bench, 1, 0)

    bench.run(scenario)
    assert pending(bench, 1) == [0b111]
    first, *messages = sent(bench)
    vectors = [data[0] for _, data in messages]
    assert first == (0x1000, bytes(32)) and vectors[-1] == 1
    assert set(vectors[:-1]) == {0, 2} and vectors.count(0) == 1, (
        "two halts may be one interrupt while the first one waits"
    )


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_the_table_reads_back_as_written_and_starts_masked(data_width, endianness):
    bench = Bench(data_width, endianness)
    bench.send(read(BAR + C.MSIX_TABLE_BASE, 64, tag=0))
    set_vector(bench, 2, 0x1122334455667788, 0x99AABBCC, masked=1)
    bench.send(write(BAR + C.MSIX_TABLE_BASE + 16 * 2 + 9, b"\x42"))
    bench.send(read(BAR + C.MSIX_TABLE_BASE + 16 * 2, 16, tag=1))
    bench.send(read(BAR + C.MSIX_TABLE_BASE + 0x400, 16, tag=2))
    bench.run()
    reset, entry, beyond = (bytes(tlp.data) for _, _, tlp in bench.received)
    assert [reset[16 * n + 12] & 1 for n in range(4)] == [1] * 4
    assert entry == bytes.fromhex("8877665544332211cc42aa9901000000")
    assert beyond == bytes(16)


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_host_and_sender_at_the_table_at_once_read_each_its_own(data_width, endianness, seed):
    """The host reads all of the table and writes a vector that is masked, while others are
    raised.
    """
    rng = random.Random(seed)
    bench = Bench(data_width, endianness)
    vectors = [(0xFEE0_0000 + 4 * n, rng.getrandbits(32)) for n in range(C.VECTORS)]
    for n, (address, data) in enumerate(vectors):
        set_vector(bench, n, address, data, masked=n == 0)
    raised = []

    def scenario(bench):
        yield from pause(80)
        for n in range(24):
            bench.send(
                read(BAR + C.MSIX_TABLE_BASE, 16 * C.VECTORS, tag=1),
                *[
                    write(BAR + C.MSIX_TABLE_BASE, vectors[0][0].to_bytes(8, "little"))
                    for _ in range(rng.randrange(4))
                ],
            )
            for _ in range(rng.randrange(1, 3)):
                raised.append(rng.randrange(1, C.VECTORS))
                yield from post(bench, 0x1000, bytes(32), raised[-1], 1)
                yield from pause(rng.randrange(6))

    bench.run(scenario)
    table = b"".join(
        address.to_bytes(8, "little")
        + data.to_bytes(4, "little")
        + int(n == 0).to_bytes(4, "little")
        for n, (address, data) in enumerate(vectors)
    )
    reads = [bytes(tlp.data) for _, _, tlp in bench.received if tlp.fmt_type == TlpType.CPL_DATA]
    assert b"".join(reads) == table * 24
    assert [written for written in sent(bench) if written[0] != 0x1000] == [
        (vectors[n][0], vectors[n][1].to_bytes(4, "little")) for n in raised
    ]


def kinds(bench):
    return [
        "answer"
        if tlp.fmt_type == TlpType.CPL_DATA
        else "post"
        if tlp.address == 0x1000
        else "message"
        for _, _, tlp in bench.received
    ]


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
@pytest.mark.parametrize("delay", [0, 14])
def test_a_mask_that_the_host_has_read_back_holds(data_width, endianness, delay):
    """Once the read behind the mask's write is answered, no message of that vector may follow."""
    bench = Bench(data_width, endianness, seed=delay, stalls=0.5)
    set_vector(bench, 0, 0xFEE0_0000, 1)

    def scenario(bench):
        yield from pause(30)
        set_mask(bench, 0, 1)
        bench.send(read(BAR + C.MSIX_TABLE_BASE + 12, 4, tag=1))
        yield from pause(delay)
        yield from post(bench, 0x1000, bytes(32), 0, 1)

    bench.run(scenario, settle=40)
    assert "message" not in kinds(bench) or kinds(bench).index("message") < kinds(bench).index(
        "answer"
    )


def test_an_answer_does_not_overtake_a_message_that_waits():
    # with 64 bits the post would still be waiting, and the message not begun
    bench = Bench(128, "little")
    set_vector(bench, 0, 0xFEE0_0000, 1)

    def scenario(bench):
        yield from pause(30)
        bench.stalls = 1.0
        yield from post(bench, 0x1000, bytes(32), 0, 1)
        yield from pause(30)
        set_mask(bench, 0, 1)
        bench.send(read(BAR + C.MSIX_TABLE_BASE + 12, 4, tag=1))
        yield from pause(40)
        bench.stalls = 0.0

    bench.run(scenario)
    assert kinds(bench) == ["post", "message", "answer"]
