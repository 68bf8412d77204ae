"""The asks of each node, and the way into the table of gets under way."""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections import Counter

from migen import *

from dibber.interface.description import C
from dibber.layouts import expect_layout
from dibber.fastpath.asks import PLACES, TAGS, Asks, ExpectWriter

from tests.gateware.models.compiled import run_simulation


def test_asks_are_taken_leave_and_end_in_any_order(seed):
    """Against a plain list of places; taking one node's happens beside changes of others and of the
    same.
    """
    rng, dut, count = random.Random(seed), Asks(), Counter()
    nodes = [[None] * PLACES for _ in range(C.NODES)]  # [tag, waits]
    used = [0, 3, 15]

    def bench():
        for node in range(C.NODES):  # what a memory holds first does not matter
            yield dut.clear.node.eq(node)
            yield dut.clear.strobe.eq(1)
            yield
        yield dut.clear.strobe.eq(0)
        yield
        take = change = shown = None  # of this cycle; `shown` of the one before
        node, look, rest = 0, 0, 0
        for cycle in range(6000):
            yield
            found = {}
            for name in ("alive", "waits", "left", "over", "tag0", "tag1"):
                found[name] = yield getattr(dut.found, name)
            assert (yield dut.some) == any(nodes[look])
            if shown:
                _, room, asks = shown
                assert (yield dut.room) == room
                for n, ask in enumerate(asks):
                    assert (found["alive"] >> n & 1, found["waits"] >> n & 1) == (
                        ask is not None,
                        bool(ask and ask[1]),
                    )
                    assert ask is None or found[f"tag{n}"] == ask[0]
            before, shown = (
                shown,
                (look, not all(nodes[node]), [ask and list(ask) for ask in nodes[look]]),
            )

            # What is done in this cycle.
            if take:
                nodes[take[0]][nodes[take[0]].index(None)] = [take[1], False]
                count["taken"] += 1
            if change:
                of, place, end = change
                count["ended" if end else "left"] += 1
                count["popped"] += end and not nodes[of][place][1]
                if end:
                    nodes[of][place] = None
                else:
                    nodes[of][place][1] = True

            # And in the next one. A change is of what was looked at two cycles before, and none
            # since.
            rest, change, take = 0 if change else rest + 1, None, None
            there = [n for n, ask in enumerate(before[2]) if ask] if before and rest > 2 else []
            if there and rng.random() < 0.7:
                place = rng.choice(there)
                change = (before[0], place, before[2][place][1] or rng.random() < 0.2)
                for name, value in dict(
                    node=before[0],
                    place=place,
                    end=int(change[2]),
                    left=found["left"],
                    over=found["over"],
                ).items():
                    yield getattr(dut.change, name).eq(value)
            node, look = rng.choice(used), rng.choice(used)
            # A place that comes free in the last cycle is free.
            if None in nodes[node] and rng.random() < 0.4:
                take = (node, rng.randrange(1 << TAGS))
                yield dut.take.tag.eq(take[1])
            yield dut.take.node.eq(node)
            yield dut.take.strobe.eq(int(take is not None))
            yield dut.change.strobe.eq(int(change is not None))
            yield dut.look.eq(look)

    run_simulation(dut, bench())
    assert all(count[what] > 50 for what in ("taken", "left", "ended", "popped")), count


def test_each_entry_is_written_once_and_the_programs_at_once(seed):
    rng, dut, count = random.Random(seed), ExpectWriter(), Counter()
    fields = [name for name, *_ in expect_layout().payload_layout]

    def entry():
        return dict(
            context=rng.randrange(1 << 16),
            key=rng.getrandbits(32),
            node=rng.randrange(16),
            granted=rng.randrange(2),
        )

    def drive(record, strobe, values):
        yield getattr(record, strobe).eq(int(values is not None))
        for name, value in (values or {}).items():
            yield getattr(record, name).eq(value)

    def bench():
        enter, program, gone, since = None, None, None, 0
        for cycle in range(4000):
            program = None if program else rng.choice([None, entry()])
            enter = enter or rng.choice([None, None, entry()])
            forget = (
                dict(tag=rng.randrange(1 << TAGS)) if since > 2 and rng.random() < 0.4 else None
            )
            since = 0 if forget else since + 1
            yield from drive(dut.program, "we", program)
            yield from drive(dut.enter, "valid", enter)
            yield from drive(dut.forget, "strobe", forget)
            yield
            written = {}
            for name in fields:
                written[name] = yield getattr(dut.write, name)
            entered = (yield dut.enter.ready) and enter
            assert (yield dut.write.we) == bool(program or gone or entered)
            if program:
                assert written == program and not entered
            elif gone:
                assert (written["context"], written["granted"]) == (gone["tag"], 0) and not entered
                gone = None
            elif enter:
                assert entered and written == enter
                enter = None
            count["late"] += bool(gone)
            count["entered"] += bool(entered)
            if forget:
                assert not gone, "two wait"
                gone = forget

    run_simulation(dut, bench())
    assert count["late"] > 100 and count["entered"] > 500, count
