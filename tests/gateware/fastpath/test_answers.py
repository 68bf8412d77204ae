"""Answers that end asks of the fast path: offered with what they say, and everything else goes on
in its order.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections import Counter

import pytest
from migen import *

from dibber.interface.description import C, MESSAGE, REPLY, STATUS
from dibber.fastpath.answers import Answers

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.slots import serve_slots

WIDTHS = pytest.mark.parametrize("data_width", [64, 128, 256])


def reply(value, status):
    slot = bytearray(random.Random(value).randbytes(C.SLOT_BYTES))
    for name, what in (("value", value), ("status", status)):
        slot[REPLY[name].offset : REPLY[name].offset + REPLY[name].size] = what.to_bytes(
            REPLY[name].size, "little"
        )
    return bytes(slot)


def word(kind, tag, generation, rest=0):
    return kind | tag // C.SLOTS << 8 | tag << 16 | rest << 24 | generation << 26


@WIDTHS
@pytest.mark.parametrize("busy", [1.0, 0.4])
def test_what_may_end_an_ask_is_offered_and_all_else_passes(data_width, busy, seed):
    rng = random.Random(f"{seed} {data_width} {busy}")
    dut = Answers(data_width)
    slots = {(C.INBOX, n): b"" for n in range(C.SLOTS)}
    items, offers, left, freed = [], [], [], []
    for n in range(300):
        node, tag, generation, slot = (
            rng.randrange(C.NODES),
            rng.randrange(256),
            rng.randrange(64),
            n % C.SLOTS,
        )
        what = rng.choice(["message", "message", "response", "response", "notice"])
        kind = rng.choice(
            [MESSAGE.GET, MESSAGE.ATOMIC_REPLY, rng.randrange(256)]
            + 5 * [MESSAGE.ATOMIC_REPLY if what == "message" else MESSAGE.GET]
        )
        rest = rng.choice([0, 0, 0, 1, 2])
        far = rng.choice([0, 0, 0, 0, 1 << rng.randrange(4, 16)])
        status, value = (
            rng.choice(6 * [STATUS.OK] + [STATUS.REMOTE_BOUNDS, 1 << rng.randrange(32)]),
            rng.getrandbits(64),
        )
        item = dict(
            node=node | far,
            endpoint=rng.randrange(256),
            interrupt=rng.randrange(2),
            value=word(kind, tag, generation, rest),
            length=rng.getrandbits(32),
            key=rng.getrandbits(32),
            slot=slot,
            is_message=int(what == "message"),
            response=int(what == "response"),
        )
        atomic = what == "message"
        good = (
            not far
            and not rest
            and (
                kind == MESSAGE.ATOMIC_REPLY and status == STATUS.OK
                if atomic
                else what == "response" and kind == MESSAGE.GET
            )
        )
        mine = good and rng.random() < 0.6
        items.append((item, slot, reply(value, status)))
        if good:
            offers.append(
                (
                    dict(node=node, tag=tag, generation=generation, atomic=int(atomic)),
                    value if atomic else None,
                    mine,
                )
            )
        if not mine:
            left.append(item)
        elif atomic:
            freed.append(slot)

    fields = list(items[0][0])
    passed, seen, given = [], [], []

    def arrivals():
        for item, slot, content in items:
            slots[C.INBOX, slot] = content
            yield item

    @passive
    def decide():
        while True:
            yield dut.answer.ready.eq(0)
            yield
            while not (yield dut.answer.valid):
                yield
            while rng.random() > busy:
                yield
            said, value, mine = offers[len(seen)]
            for name, expected in said.items():
                assert (yield getattr(dut.answer, name)) == expected
            assert value is None or (yield dut.answer.value) == value
            seen.append(mine)
            yield dut.mine.eq(int(mine))
            yield dut.answer.ready.eq(1)
            yield

    def bench():
        yield dut.enable.get.eq(1)
        yield dut.enable.atomic.eq(1)
        yield from finish(
            lambda: (
                len(passed) == len(left) and len(seen) == len(offers) and len(given) == len(freed)
            ),
            60000,
        )
        for _ in range(50):
            yield

    run_simulation(
        dut,
        [
            bench(),
            decide(),
            source(dut.sink, arrivals(), rng, busy),
            sink(dut.source, fields, passed, rng, busy),
            sink(dut.free, ("slot",), given, rng, busy),
            serve_slots(dut.slot, data_width, slots, rng, busy),
        ],
    )
    assert passed == [tuple(item[name] for name in fields) for item in left]
    assert [slot for (slot,) in given] == freed
    assert min(Counter(seen)[True], Counter(seen)[False], len(freed)) > 10


@WIDTHS
def test_nothing_is_offered_that_is_not_enabled(data_width):
    rng, dut, passed = random.Random(1), Answers(data_width), []
    items = [
        dict(value=word(MESSAGE.GET, 5, 1), response=1, is_message=0),
        dict(value=word(MESSAGE.ATOMIC_REPLY, 5, 1), response=0, is_message=1),
    ]

    @passive
    def watch():
        while True:
            yield
            assert not (yield dut.answer.valid) and not (yield dut.slot.valid)

    run_simulation(
        dut,
        [
            finish(lambda: len(passed) == 2, 100),
            watch(),
            source(dut.sink, items, rng),
            sink(dut.source, ("value",), passed, rng),
        ],
    )
    assert [value for (value,) in passed] == [item["value"] for item in items]
