# SPDX-License-Identifier: BSD-2-Clause

import pytest
from migen import *

from dibber.interface.description import C, DOORBELL
from dibber.endpoint.doorbells import EndpointPages
from dibber.endpoint.slots import Slots

from tests.gateware.models.lines import LineDriver

PRODUCER = C.DOORBELL_OFFSET + DOORBELL["COMMAND_PRODUCER"].offset
CQ = C.DOORBELL_OFFSET + DOORBELL["CQ_CONSUMER"].offset
EQ = C.DOORBELL_OFFSET + DOORBELL["EQ_CONSUMER"].offset
HEAD = C.DOORBELL_OFFSET + DOORBELL["COMMAND_HEAD"].offset
PROGRAM = C.DOORBELL_OFFSET + DOORBELL["PROGRAM"].offset


class Window(Module):
    """The endpoints' window with the slots behind it."""

    def __init__(self, data_width, endpoints=C.ENDPOINTS):
        self.submodules.pages = EndpointPages(data_width, endpoints)
        self.submodules.slots = Slots(data_width, readers=1, writers=0, present=endpoints)
        master, slave = self.pages.slots, self.slots.port
        self.comb += [
            getattr(slave, name).eq(getattr(master, name))
            for name in ["adr", "dat_w", "be", "we", "re"]
        ]
        self.comb += master.dat_r.eq(slave.dat_r)


def lookups(pages):
    return [*pages.producer, pages.cq_consumer, pages.eq_consumer]


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_each_endpoint_has_its_own_doorbells_and_slots(data_width, endpoints):
    dut = Window(data_width, endpoints)
    driver = LineDriver(dut.pages.port)

    dut.comb += dut.pages.head.count.eq(7000 + dut.pages.head.endpoint)

    def bench():
        for n in range(endpoints):
            page = n * C.ENDPOINT_STRIDE
            yield from driver.write(page + PRODUCER, 1000 + n)
            yield from driver.write(page + CQ, 2000 + n)
            yield from driver.write(page + EQ, 3000 + n)
            yield from driver.write(page, 4000 + n)
            yield from driver.write(page + C.DOORBELL_OFFSET - 4, 5000 + n)
        for n in range(endpoints):
            page = n * C.ENDPOINT_STRIDE
            assert (yield from driver.read(page + PRODUCER)) == 1000 + n
            assert (yield from driver.read(page + CQ)) == 2000 + n
            assert (yield from driver.read(page + EQ)) == 3000 + n
            assert (yield from driver.read(page + HEAD)) == 7000 + n
            assert (yield from driver.read(page)) == 4000 + n
            assert (yield from driver.read(page + C.DOORBELL_OFFSET - 4)) == 5000 + n
            for counts, look in zip((1000, 1000, 2000, 3000), lookups(dut.pages), strict=True):
                yield look.endpoint.eq(n)
                yield
                assert (yield look.count) == counts + n

    run_simulation(dut, bench())


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_each_page_tells_of_the_program_while_the_doorbells_are_held_in_reset(data_width):
    dut = Window(data_width)
    driver = LineDriver(dut.pages.port)
    reset = Signal()
    ResetInserter()(dut.pages.doorbells)
    dut.comb += dut.pages.doorbells.reset.eq(reset)

    dut.comb += dut.pages.doorbells.held.eq(reset)

    def clear():
        for n in [*range(C.ENDPOINTS), 0]:
            yield dut.pages.doorbells.index.eq(n)
            yield

    def bench():
        yield from driver.write(3 * C.ENDPOINT_STRIDE + PRODUCER, 99)
        yield dut.pages.program.halts.eq(0xA5)
        yield dut.pages.program.ready.eq(1)
        for held in [0, 1]:
            yield reset.eq(held)
            if held:
                yield from clear()
            for n in range(C.ENDPOINTS):
                yield from driver.write(n * C.ENDPOINT_STRIDE + PROGRAM, 7)
                assert (yield from driver.read(n * C.ENDPOINT_STRIDE + PROGRAM)) == 0x1A5
                assert (yield from driver.read(n * C.ENDPOINT_STRIDE + PROGRAM + 4)) == 0
                for place in PRODUCER, CQ, EQ:
                    yield from driver.write(n * C.ENDPOINT_STRIDE + place, 99)
        yield reset.eq(0)
        yield
        for n in range(C.ENDPOINTS):
            for place in PRODUCER, CQ, EQ:
                assert (yield from driver.read(n * C.ENDPOINT_STRIDE + place)) == 0

    run_simulation(dut, bench())


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_doorbells_are_kept_by_bytes_and_ring_in_the_next_cycle(data_width):
    dut = Window(data_width)
    driver = LineDriver(dut.pages.port)
    rung = dut.pages.rung
    words = {}

    def bench():
        for enables in range(16):
            for place in PRODUCER, CQ, EQ, HEAD:
                n, value = (5 * enables + place) % C.ENDPOINTS, 0x11111111 * enables ^ place << 20
                yield from driver.write(n * C.ENDPOINT_STRIDE + place, value, enables)
                yield
                rings = bool(enables) and place == PRODUCER
                assert (yield rung.strobe) == rings and (not rings or (yield rung.endpoint) == n)
                mask = sum(0xFF << 8 * i for i in range(4) if enables >> i & 1)
                words[n, place] = words.get((n, place), 0) & ~mask | value & mask
                yield
                assert not (yield rung.strobe)
        for (n, place), value in words.items():
            assert (yield from driver.read(n * C.ENDPOINT_STRIDE + place)) == (
                0 if place == HEAD else value
            )

    run_simulation(dut, bench())


def test_only_command_producer_writes_are_counted():
    dut = Window(128)
    driver = LineDriver(dut.pages.port)
    rings = []

    @passive
    def count():
        while True:
            rings.append((yield dut.pages.counters["DOORBELLS"]))
            yield

    def bench():
        for address in [PRODUCER, CQ, EQ, 0, PRODUCER, 3 * C.ENDPOINT_STRIDE + PRODUCER]:
            yield from driver.write(address, 1)
        for _ in range(4):
            yield

    run_simulation(dut, [bench(), count()])
    assert sum(rings) == 3


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4, 2])
def test_beyond_the_last_endpoint_is_nothing(endpoints):
    """No page of those that there are changes, whatever is written to the others, and those tell of
    nothing.
    """
    dut = Window(64, endpoints)
    driver = LineDriver(dut.pages.port)
    pages = [n * C.ENDPOINT_STRIDE for n in range(endpoints)]
    beyond = [n * C.ENDPOINT_STRIDE for n in range(endpoints, C.ENDPOINTS + 1)]
    places = [0, C.DOORBELL_OFFSET - 4, PRODUCER, CQ, EQ]
    rings = []

    @passive
    def count():
        while True:
            rings.append((yield dut.pages.counters["DOORBELLS"]))
            yield

    def bench():
        yield dut.pages.program.ready.eq(1)
        for page in pages:
            for place in places:
                yield from driver.write(page + place, page + place + 1)
        for page in beyond:
            for place in [*places, HEAD, PROGRAM]:
                yield from driver.write(page + place, 0xFFFFFFFF)
        for page in pages:
            for place in places:
                assert (yield from driver.read(page + place)) == page + place + 1
        for page in beyond:
            for place in [*places, HEAD, PROGRAM]:
                assert (yield from driver.read(page + place)) == 0

    run_simulation(dut, [bench(), count()])
    assert sum(rings) == endpoints
