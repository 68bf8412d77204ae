# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from migen import *

from dibber.interface.description import C
from dibber.endpoint.turns import CommandTurns

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive

COUNT = 0xFFFFFFE0  # counts start here, so that they wrap
LATE = 64  # cycles after which what can be shown must be


class Model:
    """An endpoint: its counts, the slots in use, its completion queue."""

    def __init__(self):
        self.producer = self.head = self.consumer = COUNT
        self.busy = set()
        self.entries = 0  # of the queue; 0: there is none
        self.owed = 0  # completions that were not read, written or not

    @property
    def slot(self):
        return self.head % C.SLOTS

    @property
    def room(self):
        return self.owed < self.entries

    @property
    def able(self):
        return self.producer != self.head and (
            not self.entries or (self.slot not in self.busy and self.room)
        )

    def ring(self, count):
        self.producer = (self.producer + count) % 2**32

    def take(self):
        self.busy.add(self.slot)
        self.head = (self.head + 1) % 2**32
        if self.entries:
            self.owed += 1


def strobe(record, **fields):
    """For one cycle, which is the one in which this returns."""
    yield from drive(record, strobe=1, **fields)
    yield
    yield record.strobe.eq(0)


def new(endpoints=C.ENDPOINTS):
    """The block beside doorbells: `rings` and `reads`; `moved` are all that was taken."""
    dut = CommandTurns(endpoints)
    dut.rings, dut.reads, dut.moved, rung = (
        [Signal(32, name=f"{name}{n}") for n in range(endpoints)]
        for name in ("ring", "read", "head", "rung")
    )
    for n, (ring, old, head) in enumerate(zip(dut.rings, rung, dut.moved)):
        port = dut.counts.get_port(async_read=True)
        dut.specials += port
        dut.sync += old.eq(ring)
        dut.comb += [
            If(ring != old, dut.rung.strobe.eq(1), dut.rung.endpoint.eq(n)),
            port.adr.eq(n),
            head.eq(port.dat_r),
        ]
    dut.comb += [
        dut.producer.count.eq(Array(dut.rings)[dut.producer.endpoint]),
        dut.cq_consumer.count.eq(Array(dut.reads)[dut.cq_consumer.endpoint]),
    ]
    return dut


def until(condition, limit=LATE):
    """Cycles from the one in which this is called until the expression is true."""
    for cycles in range(limit):
        if (yield condition):
            return cycles
        yield
    raise AssertionError(f"not within {limit} cycles")


# All at once --------------------------------------------------------------------------------------


class Everybody:
    """Hosts, the fast path and the control program, each at random, and what they may expect to
    see.

    What is set in one cycle is seen by the block in the next one, and has its effect on outputs in
    the one behind it; `effects` are those.
    """

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.endpoints = endpoints = len(dut.moved)
        self.models = [Model() for _ in range(endpoints)]
        for n, model in enumerate(self.models):
            model.consumer += n
        self.effects = []
        self.fast = self.missed = 0
        self.offer = None  # (endpoint, slot) without a verdict
        self.answer = None  # the cycle of its verdict
        # offers to others while this one could have been offered
        self.passed = [0] * endpoints
        # cycles in which a next command could have been shown
        self.waited = [0] * endpoints
        self.lacked = [0] * endpoints  # cycles in which room could have been shown
        self.calm = [0] * endpoints  # cycles since this HEAD moved
        self.left = [0] * endpoints  # cycles since the endpoint left `fast`
        self.quiet = [0] * endpoints  # until this cycle nobody rings
        self.moved = None  # (endpoint, cycle) of what makes `pending` fall
        self.offers = self.taken = self.full = self.held = self.agains = 0

    def bit(self, mask, n):
        return mask >> n & 1

    # What is shown

    def check(self):
        dut, models = self.dut, self.models
        pending, room = (yield dut.pending), (yield dut.room)
        if (yield dut.offer.valid):
            where = (yield dut.offer.endpoint), (yield dut.offer.slot)
            n, slot = where
            if self.offer is None:
                assert (
                    models[n].entries
                    and models[n].able
                    and slot == models[n].slot
                    and not self.bit(self.missed, n)
                )
                self.offer = where
                self.offers += 1
                for i in range(self.endpoints):
                    self.passed[i] += 1
                self.passed[n] = 0
            assert self.offer == where
        for n, model in enumerate(models):
            mine = self.offer is not None and self.offer[0] == n
            to_try = self.bit(self.fast, n) and model.entries and not self.bit(self.missed, n)
            if self.bit(pending, n):
                assert model.able and not mine, n
                assert not to_try or self.left[n] < 2, f"{n} was not offered"
            if self.bit(room, n):
                assert model.room
            shown = mine or self.bit(pending, n) or (to_try and self.offer is not None)
            self.waited[n] = self.waited[n] + 1 if model.able and not shown else 0
            self.lacked[n] = self.lacked[n] + 1 if model.room and not self.bit(room, n) else 0
            self.calm[n] += 1
            self.left[n] = 0 if self.bit(self.fast, n) else self.left[n] + 1
            if not (model.able and to_try):
                self.passed[n] = 0
            assert (
                self.waited[n] < LATE and self.lacked[n] < LATE and self.passed[n] <= self.endpoints
            )
            head = yield dut.moved[n]
            assert head == model.head or self.calm[n] < 40
            self.full += bool(model.entries and not model.room)
            self.held += model.slot in model.busy
        return pending

    # What is done

    def hosts(self, now):
        n = self.rng.randrange(self.endpoints)
        model = self.models[n]
        if (
            now >= self.quiet[n]
            and (model.producer - model.head) % 2**32 < 80
            and self.rng.random() < 0.15
        ):
            model.ring(self.rng.choice([1, 1, 2, 5, 32, 64]))
            yield self.dut.rings[n].eq(model.producer)
        n = self.rng.randrange(self.endpoints)
        model = self.models[n]
        if model.owed and self.rng.random() < 0.3:
            count = self.rng.randint(1, model.owed)
            model.owed -= count
            model.consumer = (model.consumer + count) % 2**32
            yield self.dut.reads[n].eq(model.consumer)

    def fast_path(self, now):
        dut, rng = self.dut, self.rng
        yield dut.offer.ready.eq(0)
        yield dut.verdict.strobe.eq(0)
        if self.offer is None:
            return
        if self.answer is None:
            if rng.random() < 0.5:
                yield dut.offer.ready.eq(1)
                self.answer = now + rng.randint(1, 15)
        elif now >= self.answer:
            n = self.offer[0]
            taken = self.bit(self.fast, n) and rng.random() < 0.7
            miss = not taken and (rng.random() < 0.5 or not self.bit(self.fast, n))
            yield from drive(dut.verdict, strobe=1, taken=int(taken), missed=int(miss), endpoint=n)
            self.answer = None

            def effect():
                self.offer = None
                self.missed |= int(miss) << n
                if taken:
                    self.models[n].take()
                    self.calm[n] = 0
                    self.taken += 1

            self.effects.append(effect)

    def frees(self, now):
        rng = self.rng
        busy = 0.08 if now // 512 % 2 else 0.01
        tags = [(n, slot) for n, model in enumerate(self.models) for slot in sorted(model.busy)]
        rng.shuffle(tags)
        for free in self.dut.frees:
            yield free.strobe.eq(0)
            if tags and rng.random() < busy:
                n, slot = tags.pop()
                self.models[n].busy.discard(slot)
                yield from drive(free, strobe=1, tag=n * C.SLOTS + slot)

    def program(self, now, pending):
        """Take or skip what is shown, open and close queues, give endpoints to the fast path and
        back, have it look again.
        """
        dut, rng = self.dut, self.rng
        yield dut.again.eq(0)
        for record in (dut.take, dut.skip, dut.open):
            yield record.strobe.eq(0)
        n = rng.randrange(self.endpoints)
        model = self.models[n]
        what = rng.random()
        mine = self.offer is not None and self.offer[0] == n
        alone = not self.bit(self.fast, n) and self.left[n] > 20 and not mine
        if what < 0.25 and self.bit(pending, n) and self.moved != (n, now - 1):
            self.moved = n, now
            yield from drive(dut.take, strobe=1, endpoint=n)
            self.move(n, model.take)
        elif what < 0.26 and alone:
            self.moved = n, now
            yield from drive(dut.skip, strobe=1, endpoint=n)
            self.move(n, lambda: setattr(model, "head", model.producer))
            self.quiet[n] = now + 40  # what is rung meanwhile may be skipped or not
        elif what < 0.28 and alone and not model.owed:
            closed, size = bool(model.entries), rng.randrange(6)
            self.moved = n, now
            yield from drive(dut.open, strobe=1, endpoint=n, size=size, closed=int(closed))

            def effect():
                model.entries = 0 if closed else 2**size
                model.owed = 0
                self.calm[n] = 0

            self.effects.append(effect)
        elif what < (0.285 if self.bit(self.fast, n) else 0.31):
            self.fast ^= 1 << n
            yield dut.fast.eq(self.fast)
        elif what < 0.32:
            yield dut.again.eq(1)
            self.agains += self.missed != 0

            def effect(missed=self.missed):
                self.missed &= ~missed

            self.effects.append(effect)

    def move(self, n, function):
        def effect():
            function()
            self.missed &= ~(1 << n)
            self.calm[n] = 0

        self.effects.append(effect)

    def run(self, cycles):
        for n, model in enumerate(self.models):
            yield self.dut.rings[n].eq(model.producer)
            yield self.dut.reads[n].eq(model.consumer)
        for n in range(self.endpoints):
            yield from strobe(self.dut.skip, endpoint=n)
        for _ in range(LATE):
            yield
        for now in range(cycles):
            pending = yield from self.check()
            due = self.effects
            self.effects = []
            for effect in due:
                effect()
            yield from self.hosts(now)
            yield from self.fast_path(now)
            yield from self.frees(now)
            yield from self.program(now, pending)
            yield


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
def test_whatever_happens_only_what_may_be_taken_is_shown_and_all_of_it_in_time(seed, endpoints):
    everybody = Everybody(new(endpoints), random.Random(seed))
    run_simulation(everybody.dut, [everybody.run(48000 // endpoints)])
    assert (
        everybody.offers > 50
        and everybody.taken > 20
        and everybody.full > 100
        and everybody.held > 1000
        and everybody.agains > 5
    )


# One at a time ------------------------------------------------------------------------------------


def boot(dut, size, fast=0, n=3):
    """Endpoint `n` has a queue of 2^size entries."""
    yield dut.fast.eq(fast << n)
    yield from strobe(dut.open, endpoint=n, size=size, closed=0)
    for _ in range(LATE):
        yield


def ring(dut, count, n=3):
    """Returns in the cycle in which the doorbell is seen."""
    yield dut.rings[n].eq(count)
    yield


def accept(dut):
    """Returns in the cycle in which the offer is taken: (endpoint, slot)."""
    yield dut.offer.ready.eq(1)
    yield
    yield dut.offer.ready.eq(0)
    assert (yield dut.offer.valid)
    return (yield dut.offer.endpoint), (yield dut.offer.slot)


def answer(dut, cycles, n=3, **verdict):
    """Returns in the cycle of the verdict, `cycles` behind that of `accept`."""
    for _ in range(cycles - 1):
        yield
    yield from strobe(dut.verdict, **{"endpoint": n, "taken": 0, "missed": 0, **verdict})


def test_a_doorbell_is_offered_three_cycles_later_and_the_next_command_two_behind_a_verdict():
    dut = new()

    def bench():
        yield from boot(dut, 8, fast=1)
        yield from ring(dut, 40)
        assert (yield from until(dut.offer.valid)) == 3
        for slot in range(32):
            assert (yield from accept(dut)) == (3, slot)
            yield from answer(dut, 9, taken=1)
            if slot < 31:
                assert (yield from until(dut.offer.valid)) == 2
                assert (yield dut.moved[3]) == slot + 1
        for _ in range(LATE):
            yield
            assert not (yield dut.offer.valid), "all slots are in use"
        yield from strobe(dut.frees[1], tag=3 * C.SLOTS)
        assert (yield from until(dut.offer.valid)) <= 6
        assert (yield from accept(dut)) == (3, 0)

    run_simulation(dut, bench())


def test_a_verdict_that_comes_before_the_next_command_is_known_costs_time_and_nothing_else():
    dut = new()

    def bench():
        yield from boot(dut, 8, fast=1)
        yield from ring(dut, 30)
        for n in range(30):
            yield from until(dut.offer.valid)
            assert (yield from accept(dut)) == (3, n)
            yield from answer(dut, 1 + n % 9, taken=1)
            yield
        for _ in range(LATE):
            yield
            assert not (yield dut.offer.valid)
        assert (yield dut.moved[3]) == 30

    run_simulation(dut, bench())


def test_what_was_missed_shows_until_it_is_taken_and_what_must_wait_is_offered_again():
    dut = new()

    def bench():
        yield from boot(dut, 8, fast=1)
        yield from ring(dut, 3)
        for _ in range(3):
            yield from until(dut.offer.valid)
            assert (yield from accept(dut)) == (3, 0)
            yield from answer(dut, 5)
            yield
        yield from until(dut.offer.valid)
        assert (yield from accept(dut)) == (3, 0)
        yield from answer(dut, 5, missed=1)
        assert (yield from until(dut.pending == 1 << 3)) <= 5
        yield from strobe(dut.take, endpoint=3)
        yield
        assert (yield dut.pending) == 0
        assert (yield from until(dut.offer.valid)) <= 10
        assert (yield from accept(dut)) == (3, 1), "only one was missed"
        yield from answer(dut, 5, missed=1)
        assert (yield from until(dut.pending == 1 << 3)) <= 5
        yield dut.again.eq(1)
        yield
        yield dut.again.eq(0)
        yield
        assert (yield dut.pending) == 0
        assert (yield from until(dut.offer.valid)) <= 10
        assert (yield from accept(dut)) == (3, 1), "it is looked at again"
        # When the endpoint leaves the fast path its offer is answered before the program sees it.
        yield dut.fast.eq(0)
        for _ in range(LATE):
            yield
            assert (yield dut.pending) == 0
        yield from answer(dut, 1, missed=1)
        assert (yield from until(dut.pending == 1 << 3)) <= 5

    run_simulation(dut, bench())


def test_a_slot_that_is_freed_at_once_is_free():
    """The program may end a command in the cycle after it took it, with another free beside."""
    dut = new()

    def bench():
        yield from boot(dut, 8)
        yield from ring(dut, 70)
        for n in range(70):
            assert (yield from until(dut.pending[3])) <= 10
            yield from strobe(dut.take, endpoint=3)
            if n % 2:
                # That of the former command, too.
                yield from drive(dut.frees[1], strobe=1, tag=3 * C.SLOTS + (n - 1) % C.SLOTS)
                yield from strobe(dut.frees[0], tag=3 * C.SLOTS + n % C.SLOTS)
                yield dut.frees[1].strobe.eq(0)
            yield
        for _ in range(LATE):
            yield
        assert (yield dut.pending) == 0 and (yield dut.moved[3]) == 70

    run_simulation(dut, bench())


@pytest.mark.parametrize("cycle", range(6))
def test_a_reset_in_any_cycle_takes_everything_back(cycle):
    """As a halt does: from its first cycle on each entry is cleared, more than once."""
    dut = ResetInserter()(new())

    def bench():
        for n in range(C.ENDPOINTS):
            yield from ring(dut, 40 + n, n)
            yield from strobe(dut.skip, endpoint=n)
        for _ in range(LATE):
            yield
        for n, head in enumerate(dut.moved):
            assert (yield head) == 40 + n
            yield dut.rings[n].eq(80 + n)
        yield from strobe(dut.skip, endpoint=0)
        for _ in range(cycle):
            yield
        yield dut.reset.eq(1)
        yield dut.held.eq(1)
        for n in range(2 * C.ENDPOINTS):
            yield dut.index.eq(n)
            yield dut.rings[n % C.ENDPOINTS].eq(0)
            yield
        yield dut.held.eq(0)
        yield dut.reset.eq(0)
        for _ in range(LATE):
            yield
            assert not (yield dut.pending)
            for head in dut.moved:
                assert (yield head) == 0

    run_simulation(dut, bench())


def test_a_full_queue_holds_commands_and_so_does_a_consumer_that_cannot_be():
    dut, first = new(), 0xFFFFFFFE

    def steady(room):
        """For a while it may be otherwise."""
        for _ in range(LATE):
            yield
        for _ in range(LATE):
            assert (yield dut.room[3]) == room == (yield dut.pending[3])
            yield

    def bench():
        yield dut.reads[3].eq(first)
        yield from boot(dut, 1)
        yield from ring(dut, 10)
        for n in range(2):
            yield from until(dut.pending[3])
            yield from strobe(dut.take, endpoint=3)
            yield
        assert (yield dut.room) == 0
        yield from steady(0)
        for consumer, room in [(1, 1), (2, 1), (3, 0), (0, 0), (-1, 0), (1 << 31, 0), (1, 1)]:
            yield dut.reads[3].eq((first + consumer) % 2**32)
            yield from steady(room)
        # Nothing is owed for what is skipped.
        yield from strobe(dut.skip, endpoint=3)
        yield
        assert (yield dut.pending) == 0
        yield from until(dut.moved[3] == 10)
        yield from ring(dut, 11)
        yield from steady(1)
        yield from strobe(dut.open, endpoint=3, closed=1)
        for _ in range(LATE):
            yield
        assert (yield dut.room) == 0 and (yield dut.pending) == 1 << 3, (
            "without a queue nothing is asked for"
        )

    run_simulation(dut, bench())


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
def test_endpoints_take_turns_and_what_is_taken_in_one_cycle_is_in_use(endpoints):
    """Of all but one the fast path takes commands, and in the same cycle the program those of the
    last.
    """
    dut, others = new(endpoints), range(endpoints - 1)

    def bench():
        for n in range(endpoints):
            yield from boot(dut, 8, n=n)
            yield from ring(dut, 40, n=n)
        yield dut.fast.eq(2 ** len(others) - 1)
        for slot in range(C.SLOTS):
            got = []
            for _ in others:
                yield from until(dut.offer.valid)
                got.append((yield from accept(dut)))
                for _ in range(8):
                    yield
                mine = (yield dut.pending) >> len(others) & 1
                yield from drive(dut.take, strobe=mine, endpoint=len(others))
                yield from answer(dut, 1, n=got[-1][0], taken=1)
                yield dut.take.strobe.eq(0)
                yield
            assert sorted(got) == [(n, slot) for n in others]
        for _ in range(LATE):
            yield
            assert not (yield dut.offer.valid) and not (yield dut.pending), "all slots are in use"
        assert (yield dut.moved[len(others)]) == C.SLOTS

    run_simulation(dut, bench())
