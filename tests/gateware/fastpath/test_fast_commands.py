# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from migen import *

from dibber.deposit.fetch import flat_source_lines
from dibber.interface.description import C, COMMAND, FAST_KIND, OPCODE, WALK
from dibber.fastpath.fast_commands import FastCommands
from dibber.endpoint.slots import Slots

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive
from tests.gateware.fastpath.fast_slots import (
    ASK_FAULTS,
    ATOMIC_FAULTS,
    BLOCK,
    COUNT,
    EDGES,
    FAULTS,
    INLINE_FAULTS,
    LIST_EDGES,
    LIST_FAULTS,
    NODE_ID,
    PUT_FAULTS,
    atomic,
    entries,
    get,
    head,
    inline,
    judge,
    listed,
    listed_get,
    put,
    put_word,
    some_slot,
    word,
)

DIGEST = ("node", "endpoint", "slot", "cookie", "length", "solicit")
FIELDS = ("kind", "atomic", "generation", "lane") + DIGEST

# Bench --------------------------------------------------------------------------------------------


def head_bytes(data_width):
    """{line of the head: its bytes of the slot that are read with it}; up to 128 bits all of them.
    At 256 bits key and block are in the first line, which is read again for them.
    """
    width, spans = data_width // 8, {}
    for offset in (0, 4, 8, 12, 32, 36):
        begin = offset if data_width == 256 else offset // width * width
        end = offset + 4 if data_width == 256 else begin + width
        spans.setdefault(offset // width, set()).update(range(begin, end))
    return spans


@passive
def owner(port, data_width, slots, rng, busy):
    """Serves the slots of a dict, and overwrites the head's bytes of a line that was read."""
    size, pipe = data_width // 8, [0, 0]
    while True:
        yield port.ready.eq(int(rng.random() < busy))
        yield port.dat_r.eq(pipe.pop(0))
        yield
        value = rng.getrandbits(data_width)
        if (yield port.valid) and (yield port.ready):
            number, line = divmod((yield port.adr), C.SLOT_BYTES // size)
            slot, at = slots[divmod(number, C.SLOTS)], line * size
            value = int.from_bytes(slot[at : at + size], "little")
            for byte in sorted(head_bytes(data_width).get(line, ())):
                slot[byte] = rng.getrandbits(8)
        pipe.append(value)


@passive
def contexts(dut, rng, log, quick):
    """Answers each put at random, and notes (its fields, the answer)."""
    while True:
        yield dut.put.ready.eq(0)
        yield
        while not (yield dut.put.valid):
            yield
        fields = {}
        for name in FIELDS:
            fields[name] = yield getattr(dut.put, name)
        answer = rng.choice([(1, 0), (0, 1), (0, 0)])
        for _ in range(0 if quick else rng.randrange(6)):
            yield
            assert (yield dut.put.valid)
        yield dut.taken.eq(answer[0])
        yield dut.missed.eq(answer[1])
        yield dut.put.ready.eq(1)
        yield
        for name in FIELDS:
            assert (yield getattr(dut.put, name)) == fields[name]
        log.append((fields, answer))


@passive
def table(dut, rng, entered, busy):
    """Takes entries of the table of gets under way: the last one of each context."""
    names = ("context", "key", "node", "granted")
    while True:
        yield dut.expect.ready.eq(int(rng.random() < busy))
        yield
        if (yield dut.expect.valid) and (yield dut.expect.ready):
            fields = []
            for name in names:
                fields.append((yield getattr(dut.expect, name)))
            entered[(yield dut.expect.context) & 1023] = dict(zip(names, fields))


def offer(dut, endpoint, slot):
    """Offer a command; returns (taken, missed, digest) of its verdict, and the cycles until then. A
    digest is its fields, or None.
    """
    yield from drive(dut.offer, valid=1, endpoint=endpoint, slot=slot)
    yield
    for cycles in range(2000):
        if (yield dut.verdict.strobe):
            assert (yield dut.offer.ready) and (yield dut.verdict.endpoint) == endpoint
            yield dut.offer.valid.eq(0)
            digest = None
            if (yield dut.digest.strobe):
                digest = {}
                for name in DIGEST:
                    digest[name] = yield getattr(dut.digest, name)
            return ((yield dut.verdict.taken), (yield dut.verdict.missed), digest), cycles
        assert not (yield dut.offer.ready) and not (yield dut.digest.strobe)
        yield
    raise AssertionError("no verdict")


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_what_the_control_program_would_send_is_put_and_all_else_missed(data_width, seed):
    rng, dut = random.Random(seed), FastCommands(data_width)
    slots, log, entered = {}, [], {}
    seen = {
        "put": 0,
        "inline": 0,
        "get": 0,
        "atomic": 0,
        "missed": 0,
        "full": 0,
        "digest": 0,
        "by a list": 0,
        "entered": 0,
        "left out": 0,
    }

    def bench():
        yield dut.node_id.eq(NODE_ID)
        for n in range(1400):
            endpoint, number = rng.randrange(C.ENDPOINTS), rng.randrange(C.SLOTS)
            slots[endpoint, number] = slot = some_slot(rng)
            enable = [int(rng.random() < 0.95) for _ in range(4)]
            full = int(rng.random() < 0.2)
            key = word(slot, COMMAND["target"].offset + WALK["key"].offset)
            opcode, by_list = slot[0], bool(slot[2] & (C.LIST | C.LIST << 4))
            fast = rng.getrandbits(8) | (rng.random() < 0.95) << endpoint
            yield dut.enable.put_inline.eq(enable[0])
            yield dut.enable.put.eq(enable[1])
            yield dut.enable.get.eq(enable[2])
            yield dut.enable.atomic.eq(enable[3])
            yield dut.full.eq(full)
            entered.clear()
            generation = rng.getrandbits(6)
            yield dut.generation.eq(generation)
            yield dut.fast.eq(fast)
            expected = judge(slot, *enable) if fast >> endpoint & 1 else None
            waits = (
                full
                and fast >> endpoint & 1
                and opcode == OPCODE.GET
                and judge(slot, *enable, walks_too=False)
            )
            in_short = judge(slot, True, False)
            (*got, digest), _ = yield from offer(dut, endpoint, number)
            got = tuple(got)
            entry = entered.pop(endpoint * C.SLOTS + number, None)
            assert not entered
            if opcode == OPCODE.GET and got == (1, 0):
                assert entry == dict(
                    context=endpoint * C.SLOTS + number | generation << 10,
                    key=key,
                    node=expected["node"],
                    granted=1,
                )
                seen["entered"] += 1
            else:
                assert not entry or not entry["granted"]
                seen["left out"] += entry is not None
            if waits:
                assert got == (0, 0) and not log
                seen["full"] += 1
            elif expected is None:
                assert got == (0, 1) and not log
                seen["missed"] += 1
            else:
                ((fields, answer),) = log
                assert fields == dict(
                    expected, endpoint=endpoint, slot=number, generation=generation
                )
                assert got == answer
                seen["by a list"] += by_list and expected["kind"] == FAST_KIND.PUT
                seen[
                    "put"
                    if expected["lane"]
                    else "inline"
                    if not expected["kind"]
                    else "atomic"
                    if expected["atomic"]
                    else "get"
                ] += 1
                log.clear()
            if in_short and got == (0, 1):
                assert digest == {
                    name: dict(in_short, endpoint=endpoint, slot=number)[name] for name in DIGEST
                }
                seen["digest"] += 1
            else:
                assert digest is None
            for _ in range(rng.randrange(1, 4)):
                yield

    run_simulation(
        dut,
        [
            bench(),
            contexts(dut, rng, log, False),
            owner(dut.slot, data_width, slots, rng, 0.6),
            table(dut, rng, entered, 0.7),
        ],
    )
    assert min(seen.values()) > 20, seen


def test_the_own_node_is_missed_and_one_that_has_only_its_low_bits_is_not():
    rng, dut = random.Random(1), FastCommands(64)
    slots, log = {}, []

    def bench():
        yield dut.enable.put_inline.eq(1)
        yield dut.fast.eq(1)
        for node_id, missed in [
            (NODE_ID, True),
            (NODE_ID + C.NODES, False),
            (NODE_ID | 0x8000, False),
        ]:
            yield dut.node_id.eq(node_id)
            slots[0, 0] = slot = inline(rng)
            put_word(slot, 4, NODE_ID)
            yield from offer(dut, 0, 0)
            assert bool(log) != missed
            log.clear()

    run_simulation(
        dut, [bench(), contexts(dut, rng, log, True), owner(dut.slot, 64, slots, rng, 1.0)]
    )


def test_each_fault_alone_is_missed_and_what_is_just_good_is_not(seed):
    rng, dut = random.Random(seed), FastCommands(64)
    slots, log = {}, []
    cases = [
        (make, name, fault, good)
        for make, faults, good in (
            (inline, FAULTS | INLINE_FAULTS, False),
            (put, FAULTS | PUT_FAULTS, False),
            (put, EDGES, True),
            (get, FAULTS | PUT_FAULTS | ASK_FAULTS, False),
            (get, EDGES, True),
            (listed, LIST_FAULTS, False),
            (listed, LIST_EDGES, True),
            (listed_get, LIST_FAULTS | ASK_FAULTS, False),
            (listed_get, LIST_EDGES, True),
            (atomic, FAULTS | ATOMIC_FAULTS, False),
        )
        for name, fault in faults.items()
    ]
    every = (True, True, True, True)

    def bench():
        yield dut.node_id.eq(NODE_ID)
        yield dut.enable.raw_bits().eq(15)
        yield dut.expect.ready.eq(1)
        yield dut.fast.eq(0xFF)
        for make, name, change, good in 3 * cases:
            slots[1, 2] = slot = make(rng)
            assert judge(slot, *every)
            change(rng, slot)
            yield from offer(dut, 1, 2)
            assert len(log) == good == bool(judge(slot, *every) or log), name
            log.clear()
            yield

    run_simulation(
        dut, [bench(), contexts(dut, rng, log, True), owner(dut.slot, 64, slots, rng, 1.0)]
    )


class Joined(Module):
    """With the shared memory of slots."""

    def __init__(self, data_width):
        self.submodules.slots = Slots(data_width, 2, 0, favourite=1, endpoints=1, sets=1, slots=1)
        self.submodules.commands = FastCommands(data_width)
        self.comb += self.commands.slot.connect(self.slots.readers[1])


def walks(rng, opcode):
    """A put or get of one level at the source and three at the target."""
    slot = head(rng, opcode, 90)
    slot[1] = 0
    slot[2] = 0x31
    for walk, block, counts in (("source", 10, [9]), ("target", 90, [1, 1, 1])):
        put_word(slot, BLOCK[walk], block)
        for n, count in enumerate(counts):
            put_word(slot, COUNT[walk] + 4 * n, count)
    return slot


def flat(rng):
    """A put whose walks are a block alone."""
    slot = head(rng, OPCODE.PUT, 90)
    put_word(slot, BLOCK["source"], 90)
    put_word(slot, BLOCK["target"], 90)
    return slot


def by_list(rng):
    """A put of elements that a list names, from a block alone."""
    slot = flat(rng)
    entries(slot, "target", 4)
    return slot


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("answer", ["taken", "missed"])
def test_what_the_send_engine_needs_of_a_put_is_shown_to_it(data_width, answer):
    """Its lines, each in the cycle in which it is on the port; and whether no job will come."""
    rng, dut = random.Random(2), Joined(data_width)
    commands, port, size = dut.commands, dut.slots.port, data_width // 8
    wanted, shown, drops = flat_source_lines(data_width), [], []

    @passive
    def watch():
        while True:
            yield
            begin, lines = (yield commands.glance.begin), (yield commands.glance.lines)
            for n, line in enumerate(wanted):
                if lines >> n & 1:
                    shown.append((line, (yield commands.slot.dat_r).to_bytes(size, "little")))
                    assert begin == (line == 0) and (yield commands.glance.slot) == 0 == (
                        yield commands.glance.endpoint
                    )
            if (yield commands.offer.ready):
                drops.append((yield commands.glance.drop))

    def finish_when(signal):
        for _ in range(40):
            if (yield signal):
                return
            yield
        assert False

    def bench():
        yield commands.node_id.eq(NODE_ID)
        yield commands.enable.raw_bits().eq(15)
        yield commands.fast.eq(1)
        for slot in (flat(rng), inline(rng)):
            for line in range(C.SLOT_BYTES // size):
                yield from drive(
                    port,
                    we=1,
                    be=2**size - 1,
                    adr=line,
                    dat_w=int.from_bytes(slot[line * size : line * size + size], "little"),
                )
                yield
            yield port.we.eq(0)
            yield from drive(commands.offer, valid=1, endpoint=0, slot=0)
            yield from finish_when(commands.put.valid)
            for _ in range(3):
                yield
            yield commands.put.ready.eq(1)
            yield getattr(commands, answer).eq(1)
            yield
            yield commands.put.ready.eq(0)
            yield from finish_when(commands.offer.ready)
            yield commands.offer.valid.eq(0)
            yield
            if len(drops) == 1:
                assert sorted(shown) == sorted(
                    (line, bytes(slot[line * size : line * size + size])) for line in wanted
                )

    run_simulation(dut, [bench(), watch()])
    assert drops == [int(answer == "missed"), 1]


@pytest.mark.parametrize("data_width, head_cycles", [(64, 5), (128, 4), (256, 4)])
def test_cycles_to_a_put_and_to_its_verdict(data_width, head_cycles):
    """`others`: another reader was the last one."""
    rng, dut = random.Random(1), Joined(data_width)
    commands = dut.commands
    port = dut.slots.port
    size = data_width // 8

    def measure(slot, others, cycles):
        for line in range(C.SLOT_BYTES // size):
            yield from drive(
                port,
                we=1,
                be=2**size - 1,
                adr=line,
                dat_w=int.from_bytes(slot[line * size : line * size + size], "little"),
            )
            yield
        yield port.we.eq(0)
        yield dut.slots.readers[0].valid.eq(others)
        yield
        yield dut.slots.readers[0].valid.eq(0)
        yield from drive(commands.offer, valid=1, endpoint=0, slot=0)
        yield
        for _ in range(cycles):
            assert not (yield commands.put.valid)
            yield
        assert (yield commands.put.valid)
        yield commands.put.ready.eq(1)
        yield commands.taken.eq(1)
        yield
        assert not (yield commands.verdict.strobe)
        yield commands.put.ready.eq(0)
        yield
        assert (
            (yield commands.verdict.strobe)
            and (yield commands.verdict.taken)
            and (yield commands.offer.ready)
        )
        yield commands.offer.valid.eq(0)
        yield

    def bench():
        yield commands.node_id.eq(NODE_ID)
        yield commands.enable.raw_bits().eq(15)
        yield commands.expect.ready.eq(1)
        yield commands.fast.eq(1)
        for _ in range(3):
            yield from measure(inline(rng), 1, head_cycles + 1)
            yield from measure(inline(rng), 0, head_cycles)
            yield from measure(atomic(rng), 0, head_cycles)
            yield from measure(flat(rng), 0, head_cycles + 2)
            # Two blocks, four counts, and their bits: of 9, 1, 1, 1.
            for opcode in (OPCODE.PUT, OPCODE.GET):
                yield from measure(walks(rng, opcode), 0, head_cycles + 4 * (2 + 4) + 4 + 1 + 1 + 1)
            # Two blocks; an index list has no count.
            yield from measure(by_list(rng), 0, head_cycles + 4 * 2)

    run_simulation(dut, bench())
