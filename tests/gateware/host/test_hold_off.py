"""Interrupts that are held: which ones, how long, and that none is lost."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial
from random import Random

import pytest

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.hold_off import HoldOffModel

from dibber.host.hold_off import HoldOff
from dibber.interface import C

from tests.gateware.host import tlps
from tests.gateware.host.test_posts import pause, post, sent, set_vector
from tests.gateware.host.tlps import WIDTHS, Bench

UNIT = 16


def settings_of(random):
    """(vector, count, time); some vectors are not in the table, some counts and times are 0."""
    count = random.choice([0, 1, 2, 3, 7, 255])
    time = random.choice([0, 1, 2, 5, 40, 2**12 - 1])
    return random.choice([*range(C.VECTORS), *range(C.VECTORS), C.VECTORS, 255]), count, time


@pytest.mark.parametrize("rate", [0.02, 0.3, 1.0])
def test_the_block_does_what_the_model_does(rate, seed):
    """`rate`: chance of a request in a cycle in which one may come."""
    random = Random(f"{seed} {rate}")
    dut, model = HoldOff(unit=UNIT), HoldOffModel(UNIT)
    kept = due_seen = 0

    def bench():
        nonlocal kept, due_seen
        request = None
        model.cycle()  # in which the first inputs are set
        for cycle in range(12_000):
            may = request is None and random.random() < rate
            # At times one vector gets all, so that counts up to 255 are reached.
            favourite = 2 if cycle // 1500 % 2 else random.randrange(C.VECTORS)
            request = favourite if may else None
            settings = settings_of(random) if random.random() < 0.005 else None
            opened = random.randrange(C.VECTORS) if random.random() < 0.002 else None
            yield dut.request.eq(request is not None)
            yield dut.vector.eq(random.randrange(C.VECTORS) if request is None else request)
            yield dut.set.strobe.eq(settings is not None)
            for name, value in zip(("vector", "count", "time"), settings or settings_of(random)):
                yield getattr(dut.set, name).eq(value)
            yield dut.open.strobe.eq(opened is not None)
            yield dut.open.vector.eq(random.randrange(C.VECTORS) if opened is None else opened)
            yield
            # These are the outputs of the cycle whose inputs were set above.
            keep, due = model.cycle(request, settings, opened)
            if request is not None:
                assert (yield dut.keep) == keep, f"cycle {cycle}"
                kept += keep
            assert (yield dut.due) == sum(1 << n for n in due), f"cycle {cycle}"
            due_seen += len(due)

    run_simulation(dut, bench())
    assert kept and due_seen


def bench_of(data_width, endianness, monkeypatch, **options):
    """A HostInterface with hold-off, whose vector n has the message 0xFEE00000 + 4n."""
    monkeypatch.setattr(tlps, "HostInterface", partial(tlps.HostInterface, hold_off=True))
    bench = Bench(data_width, endianness, **options)
    for n in range(C.VECTORS):
        set_vector(bench, n, 0xFEE0_0000 + 4 * n, n)
    return bench


def hold(bench, vector, count, time):
    """Write register HOLD_OFF."""
    settings = bench.dut.hold_off
    for name, value in (("vector", vector), ("count", count), ("time", time), ("strobe", 1)):
        yield getattr(settings, name).eq(value)
    yield
    yield settings.strobe.eq(0)


def messages(bench):
    """Vectors of the messages in order."""
    return [data[0] for address, data in sent(bench) if address >= 0xFEE0_0000]


ENTRIES = 0x1000  # where the entries of vector n go: 32n bytes behind


def entry_of(vector):
    return ENTRIES + 32 * vector


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_every_count_th_interrupt_is_sent_at_once(data_width, endianness, monkeypatch):
    bench = bench_of(data_width, endianness, monkeypatch)

    def scenario(bench):
        yield from pause(80)
        yield from hold(bench, 3, 4, 2**12 - 1)
        for n in range(12):
            yield from post(bench, 0x1000 + 32 * n, bytes(32), 3, 1)
            yield from post(bench, 0x8000, bytes(32), 1, n == 5)

    bench.run(scenario)
    assert messages(bench) == [3, 1, 3, 3]
    assert bench.count["POSTS"] == 24 and bench.count["INTERRUPTS"] == 4


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
@pytest.mark.parametrize("stalls", [0.0, 0.6])
def test_held_interrupts_are_sent_once_and_within_their_time(
    data_width, endianness, stalls, monkeypatch, seed
):
    """Random posts. The time counts from the first entry that no message follows. The slack is what
    a post and the messages of all vectors may take.
    """
    random = Random(seed)
    bench = bench_of(data_width, endianness, monkeypatch, stalls=stalls, seed=seed)
    times = {vector: random.randrange(1, 5) for vector in range(C.VECTORS)}

    def scenario(bench):
        yield from pause(80)
        for vector, time in times.items():
            yield from hold(bench, vector, 0, time)
        for _ in range(60):
            vector = random.randrange(C.VECTORS)
            yield from post(bench, entry_of(vector), bytes(32), vector, 1)
            yield from pause(random.choice([0, 0, 3, 40, 200]))

    bench.run(scenario, cycles=30_000, settle=6 * C.HOLD_OFF_UNIT)
    slack = 60 if stalls == 0 else 300
    since = {}  # vector: when the first entry left that waits for a message
    for _, end, tlp in bench.received:
        for vector, time in times.items():
            if tlp.address == entry_of(vector):
                since.setdefault(vector, end)
            elif tlp.address == 0xFEE0_0000 + 4 * vector and vector in since:
                assert end - since.pop(vector) <= time * C.HOLD_OFF_UNIT + slack
    assert not since, "interrupts were lost"
    assert bench.count["INTERRUPTS"] < bench.count["POSTS"] == 60


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
@pytest.mark.parametrize("how", ["settings", "open"])
def test_what_is_held_is_sent_when_settings_change_or_a_queue_is_opened(
    data_width, endianness, how, monkeypatch
):
    bench = bench_of(data_width, endianness, monkeypatch)

    def scenario(bench):
        yield from pause(80)
        yield from hold(bench, 2, 0, 2**12 - 1)
        yield from post(bench, 0x1000, bytes(32), 2, 1)
        yield from pause(300)
        assert messages(bench) == []
        if how == "open":
            yield bench.dut.open.vector.eq(2)
            yield bench.dut.open.strobe.eq(1)
            yield
            yield bench.dut.open.strobe.eq(0)
        else:
            yield from hold(bench, 2, 0, 0)
        yield from pause(100)
        assert messages(bench) == [2]
        # Hold-off is off now.
        yield from post(bench, 0x1000, bytes(32), 2, 1)

    bench.run(scenario)
    assert messages(bench) == [2, 2]


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_a_masked_vector_that_is_due_stays_pending_and_a_halt_is_not_held(
    data_width, endianness, monkeypatch
):
    bench = bench_of(data_width, endianness, monkeypatch)
    set_vector(bench, 1, 0xFEE0_0004, 1, masked=1)

    def scenario(bench):
        yield from pause(100)
        for vector in (1, 2):
            yield bench.dut.open.vector.eq(vector)
            yield bench.dut.open.strobe.eq(1)
            yield
        yield bench.dut.open.strobe.eq(0)
        yield from hold(bench, 1, 0, 1)
        yield from hold(bench, 2, 0, 2**12 - 1)
        yield from post(bench, 0x1000, bytes(32), 1, 1)
        yield from pause(2 * C.HOLD_OFF_UNIT)
        assert messages(bench) == []
        yield bench.dut.halted.eq(1)
        yield
        yield bench.dut.halted.eq(0)
        yield from pause(60)
        assert messages(bench) == [2]
        set_vector(bench, 1, 0xFEE0_0004, 1, masked=0)

    bench.run(scenario)
    assert messages(bench) == [2, 1]
