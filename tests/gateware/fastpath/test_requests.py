"""Gets are offered to the fast path and checked there, atomics are executed; whatever is left is
the program's, in the order in
which it came."""

# SPDX-License-Identifier: BSD-2-Clause

import random
import struct

import pytest
from migen import *

from dibber.interface.description import C, FAST_KIND, INLINE, LANE, MESSAGE, OPCODE
from dibber.fastpath.fast_commands import FastCommands
from dibber.fastpath.requests import Requests

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish, sink, source
from tests.gateware.fastpath.fast_slots import (
    FAULTS,
    LIST_FAULTS,
    NODE_ID,
    PUT_FAULTS,
    inline,
    levels_are_known,
    listed,
    put,
    put_word,
    walks_are_good,
    word,
)
from tests.gateware.fastpath.test_fast_commands import offer, owner

ARRIVAL = ("value", "node", "is_message", "response", "slot", "endpoint")


def some_arrival(rng, n):
    """`n` tells which one it is, in a part of `value` that means nothing."""
    is_message = int(rng.random() < 0.8)
    kind = rng.choice([MESSAGE.GET, MESSAGE.GET, MESSAGE.GET_FAILED, MESSAGE.ATOMIC, MESSAGE.READY])
    node = rng.choice([0, 1, 5, 15, 16, 255])
    asks = is_message and node < C.NODES
    return dict(
        value=n << 16 | kind,
        node=node,
        is_message=is_message,
        response=int(not is_message and rng.random() < 0.5),
        slot=rng.randrange(C.SLOTS),
        endpoint=rng.randrange(256),
        get=int(asks and kind == MESSAGE.GET),
        atomic=int(asks and kind == MESSAGE.ATOMIC),
    )


def test_what_is_not_taken_reaches_the_program_once_in_the_order_in_which_it_came(seed):
    rng, dut, got, offers, atomics, retried = random.Random(seed), Requests(), [], [], [], set()
    sent = [some_arrival(rng, n) for n in range(1200)]

    @passive
    def look():
        """Takes some of the offers, after some cycles in which they stay as they are."""
        while True:
            yield dut.offer.ready.eq(0)
            yield
            if not (yield dut.offer.valid):
                continue
            fields = []
            for _ in range(rng.randrange(1, 6)):
                assert (yield dut.offer.valid)
                fields.append(
                    ((yield dut.offer.word), (yield dut.offer.node), (yield dut.offer.slot))
                )
                yield
            assert len(set(fields)) == 1
            taken = rng.randrange(2)
            yield dut.taken.eq(taken)
            yield dut.offer.ready.eq(1)
            yield
            offers.append((*fields[0], taken))

    @passive
    def program():
        """Has some gets offered again, and takes what it is shown at last."""
        while True:
            yield dut.source.ready.eq(0)
            yield dut.again.eq(0)
            yield
            if not (yield dut.source.valid) or rng.random() < 0.5:
                continue
            fields = []
            for name in ARRIVAL:
                fields.append((yield getattr(dut.source, name)))
            is_get = fields[2] and fields[0] & 0xFF == MESSAGE.GET and fields[1] < C.NODES
            assert (yield dut.twice) == (fields[0] in retried)
            if is_get and fields[0] not in retried and rng.random() < 0.5:
                retried.add(fields[0])
                yield dut.again.eq(1)
            else:
                got.append(tuple(fields))
                yield dut.source.ready.eq(1)
            yield

    run_simulation(
        dut,
        [
            finish(lambda: len(got) + sum(o[3] for o in offers) + len(atomics) == len(sent), 60000),
            source(dut.sink, sent, rng),
            program(),
            look(),
            sink(dut.atomics, ("word", "node", "slot"), atomics, rng, 0.3),
        ],
    )
    gets, adds = (
        [a for a in sent if a["is_message"] and a["value"] & 0xFF == kind and a["node"] < C.NODES]
        for kind in (MESSAGE.GET, MESSAGE.ATOMIC)
    )
    taken = {word for word, _, _, answered in offers if answered}
    told, again = [], []  # offers of each get, the first and another
    for question, node, slot, _ in offers:
        (again if question in {first for first, *_ in told} else told).append(
            (question, node, slot)
        )
    assert told == [(a["value"], a["node"], a["slot"]) for a in gets]
    assert {word for word, *_ in again} == retried and again == [
        offer for offer in told if offer[0] in retried
    ]
    assert atomics == [(a["value"], a["node"], a["slot"]) for a in adds]
    assert got == [
        tuple(a[f] for f in ARRIVAL) for a in sent if a["value"] not in taken and a not in adds
    ]
    assert (
        50 < len(taken) < len(gets) - 25 and len(retried & taken) > 10 and len(retried - taken) > 10
    )
    assert len([offer for offer in offers if offer[3]]) == len(taken)


# Checks -------------------------------------------------------------------------------------------

FIELDS = ("kind", "lane", "node", "endpoint", "slot", "cookie", "length")


def judge_get(slot, request):
    """Fields of the answer to another node's get, or None; as get.c, get_asked."""
    length = word(slot, 8)
    (offset,) = struct.unpack_from("<Q", slot, INLINE["offset"].offset)
    if (
        slot[0] != OPCODE.GET
        or not levels_are_known(slot[2])
        or not 0 < length <= C.FAST_LENGTH
        or offset >= 2**48
        or not walks_are_good(slot, slot[2], length, offset)
    ):
        return None
    return dict(
        kind=FAST_KIND.ANSWER,
        lane=LANE.BULK,
        node=request["node"],
        endpoint=C.INBOX,
        slot=request["slot"],
        cookie=request["word"],
        length=word(slot, 8),
    )


@passive
def contexts(dut, rng, log, quick=False):
    """Answers each put at random, and notes (its fields, the answer)."""
    while True:
        yield dut.put.ready.eq(0)
        yield
        while not (yield dut.put.valid):
            yield
        answer = rng.choice([(1, 0), (0, 1), (0, 0)])
        for _ in range(0 if quick else rng.randrange(6)):
            yield
        yield dut.taken.eq(answer[0])
        yield dut.missed.eq(answer[1])
        yield dut.put.ready.eq(1)
        yield
        fields = {}
        for name in FIELDS:
            fields[name] = yield getattr(dut.put, name)
        log.append((fields, answer))


def ask(dut, request):
    """Offer a request; returns whether it is answered, and the cycles until then."""
    yield from drive(dut.request, valid=1, **request)
    yield
    for cycles in range(4000):
        if (yield dut.request.ready):
            yield dut.request.valid.eq(0)
            return (yield dut.answered), cycles
        yield
    raise AssertionError("no verdict")


def some_get(rng):
    make, spoils = rng.choice([(put, FAULTS | PUT_FAULTS), (listed, LIST_FAULTS)])
    slot = make(rng)
    slot[0], slot[1] = OPCODE.GET, rng.randrange(256)
    put_word(slot, 4, rng.getrandbits(32))  # the asker's: any
    if rng.random() < 0.4:
        faults = {name: fault for name, fault in spoils.items() if name not in FREE_TO_ASK}
        faults[rng.choice(sorted(faults))](rng, slot)
    return slot


FREE_TO_ASK = {"checksum", "fence", "unknown flag", "interrupt", "node", "own node", "reserved"}


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_gets_of_others_are_looked_at_by_turns_with_commands(data_width, seed):
    rng, dut = random.Random(seed), FastCommands(data_width)
    slots, log = {}, []
    seen = {"answered": 0, "missed": 0, "waits": 0, "commands": 0}
    busy = [1, 1]

    def commands():
        yield dut.node_id.eq(NODE_ID)
        yield dut.enable.raw_bits().eq(7)
        yield dut.fast.eq(0xFF)
        while busy[0]:
            endpoint, number = rng.randrange(C.ENDPOINTS), rng.randrange(C.SLOTS)
            slots[endpoint, number] = slot = inline(rng)
            node, length = word(slot, 4), word(slot, 8)
            (*got, _), _ = yield from offer(dut, endpoint, number)
            [(fields, answer)] = [entry for entry in log if entry[0]["kind"] == FAST_KIND.PUT]
            log[:] = [entry for entry in log if entry[0]["kind"] != FAST_KIND.PUT]
            assert tuple(got) == answer
            assert [fields[name] for name in ("lane", "node", "endpoint", "slot", "length")] == [
                LANE.EXPRESS,
                node,
                endpoint,
                number,
                length,
            ]
            seen["commands"] += 1
            for _ in range(rng.choice([1, 1, 1, 40])):
                yield

    def requests():
        for n in range(300):
            request = dict(
                node=rng.randrange(C.NODES),
                slot=rng.randrange(C.SLOTS),
                word=rng.getrandbits(24) << 8 | MESSAGE.GET,
            )
            slots[C.INBOX, request["slot"]] = slot = some_get(rng)
            expected = judge_get(slot, request)
            before = seen["commands"]
            got, _ = yield from ask(dut, request)
            assert seen["commands"] - before <= 2, "two commands before it"
            answers = [entry for entry in log if entry[0]["kind"] == FAST_KIND.ANSWER]
            if expected:
                ((fields, answer),) = answers
                log.remove(answers[0])
                assert fields == expected and got == answer[0]
                seen["answered" if got else "missed" if answer[1] else "waits"] += 1
            else:
                assert not got and not answers
                seen["missed"] += 1
            for _ in range(rng.choice([1, 1, 60])):
                yield
        busy[0] = 0

    run_simulation(
        dut,
        [
            requests(),
            commands(),
            contexts(dut, rng, log),
            owner(dut.slot, data_width, slots, rng, 0.6),
        ],
    )
    assert min(seen.values()) > 30, seen


def test_a_host_that_allows_no_gets_has_none_answered():
    rng, dut = random.Random(1), FastCommands(64)
    slots, answers = {(C.INBOX, 3): some_get(rng)}, []
    while not judge_get(slots[C.INBOX, 3], dict(node=1, slot=3, word=1)):
        slots[C.INBOX, 3] = some_get(rng)
    kept = bytes(slots[C.INBOX, 3])

    def bench():
        for allowed in (3, 7):
            slots[C.INBOX, 3] = bytearray(kept)
            yield dut.enable.raw_bits().eq(allowed)
            got, _ = yield from ask(dut, dict(node=1, slot=3, word=MESSAGE.GET))
            assert bool(answers) == (allowed == 7)
            yield

    run_simulation(
        dut, [bench(), contexts(dut, rng, answers, True), owner(dut.slot, 64, slots, rng, 1.0)]
    )
