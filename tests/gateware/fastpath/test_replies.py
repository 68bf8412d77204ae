"""Replies to atomics of other nodes: each is put once or goes to the control program, and commands
have their turn.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections import Counter

from migen import *

from dibber.interface.description import C, FAST_KIND, LANE
from dibber.fastpath.replies import Replies

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, source

REPLY = ("node", "slot", "word")
COMMAND = (
    "kind",
    "atomic",
    "generation",
    "lane",
    "node",
    "endpoint",
    "slot",
    "cookie",
    "length",
    "solicit",
)


def some_command(rng, n):
    return dict(
        kind=rng.choice([FAST_KIND.PUT, FAST_KIND.ASK, FAST_KIND.ANSWER]),
        atomic=rng.randrange(2),
        generation=rng.getrandbits(6),
        lane=rng.randrange(2),
        node=rng.randrange(C.NODES),
        endpoint=rng.randrange(C.ENDPOINTS),
        slot=rng.randrange(C.SLOTS),
        cookie=n,
        length=rng.getrandbits(32),
        solicit=rng.randrange(2),
    )


@passive
def contexts(dut, rng, log, seen):
    """Judges what is put, after some cycles in which it stays as it is."""
    while True:
        yield dut.put.ready.eq(0)
        yield
        if not (yield dut.put.valid):
            continue
        fields = []
        for _ in range(rng.randrange(2, 6)):
            assert (yield dut.put.valid)
            said = {}
            for name in COMMAND:
                said[name] = yield getattr(dut.put, name)
            fields.append(said)
            yield
        assert all(said == fields[0] for said in fields)
        taken = rng.randrange(2)
        yield dut.taken.eq(taken)
        yield dut.put.ready.eq(1)
        yield
        log.append((fields[0], taken))
        seen[fields[0]["kind"] == FAST_KIND.REPLY, taken] += 1


def test_a_reply_is_put_once_or_left_to_the_program_in_its_order(seed):
    rng, dut, log, left, seen, retried = random.Random(seed), Replies(), [], [], Counter(), set()
    replies = [dict(node=rng.randrange(C.NODES), slot=n % C.SLOTS, word=n) for n in range(300)]
    commands = [some_command(rng, n) for n in range(300)]

    @passive
    def allow():
        while True:
            yield dut.enable.eq(int(rng.random() < 0.8))
            for _ in range(rng.randrange(1, 40)):
                yield

    @passive
    def program():
        """Has some offered again, and takes them at last."""
        while True:
            yield dut.source.ready.eq(0)
            yield dut.again.eq(0)
            yield
            if not (yield dut.source.valid):
                continue
            said = []
            for name in REPLY:
                said.append((yield getattr(dut.source, name)))
            assert (yield dut.twice) == (said[-1] in retried)
            for _ in range(rng.randrange(5)):
                yield
                assert (yield dut.source.valid) and (yield dut.source.word) == said[-1]
            if said[-1] not in retried and rng.random() < 0.5:
                retried.add(said[-1])
                yield dut.again.eq(1)
            else:
                left.append(tuple(said))
                yield dut.source.ready.eq(1)
            yield

    def put():
        return [said for said, taken in log if said["kind"] == FAST_KIND.REPLY and taken]

    run_simulation(
        dut,
        [
            finish(lambda: len(put()) + len(left) == len(replies) and len(log) >= 300, 30000),
            allow(),
            contexts(dut, rng, log, seen),
            source(dut.sink, replies, rng, 0.3),
            source(dut.commands, commands, rng, 0.3),
            program(),
        ],
    )
    offered = [said for said, _ in log if said["kind"] == FAST_KIND.REPLY]
    words = [said["cookie"] for said in offered]
    assert words == sorted(words) and all(
        n == 1 or n == 2 and word in retried for word, n in Counter(words).items()
    )
    for said in offered:
        reply = replies[said["cookie"]]
        assert said == dict(
            kind=FAST_KIND.REPLY,
            atomic=0,
            generation=0,
            lane=LANE.EXPRESS,
            node=reply["node"],
            endpoint=C.INBOX,
            slot=reply["slot"],
            cookie=reply["word"],
            length=0,
            solicit=0,
        )
    taken = {said["cookie"] for said in put()}
    assert left == [
        tuple(reply[name] for name in REPLY) for reply in replies if reply["word"] not in taken
    ]
    others = [said for said, _ in log if said["kind"] != FAST_KIND.REPLY]
    assert others == commands[: len(others)]
    assert min(seen.values()) > 30 and len(retried - taken) > 10 and len(retried & taken) > 10, (
        seen,
        len(retried),
    )
    assert len(taken) == len(put()) and len(set(left) | taken) == len(left) + len(taken)


def test_neither_side_waits_for_more_than_one_of_the_other():
    rng, dut, log = random.Random(1), Replies(), []
    items = lambda n: [some_command(rng, i) for i in range(n)]

    def bench():
        yield dut.enable.eq(1)
        yield from finish(lambda: len(log) == 60, 1000)

    def all_taken():
        while True:
            yield dut.put.ready.eq(0)
            yield dut.taken.eq(1)
            yield
            if (yield dut.put.valid):
                yield dut.put.ready.eq(1)
                yield
                log.append((yield dut.put.kind) == FAST_KIND.REPLY)

    run_simulation(
        dut,
        [
            bench(),
            passive(all_taken)(),
            source(dut.commands, items(100), rng),
            source(dut.sink, [dict(node=1, slot=n % C.SLOTS, word=n) for n in range(100)], rng),
        ],
    )
    assert all(log[n] != log[n + 1] for n in range(4, 55)), log
