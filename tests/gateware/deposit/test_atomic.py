# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.gen import *

from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.regions import RegionTable
from dibber.interface.description import ATOMIC, C, COMMAND, MESSAGE, OPCODE, REPLY, RIGHT, STATUS

from tests.gateware.models.command import put_member
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, sink, source
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.slots import serve_slots, write_slots

BASE, LENGTH = 2**40 + 0x1000, 0x100
BOTH = RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
REGIONS = (  # key, base, rights
    (1, BASE, BOTH),
    (2, BASE, 15 - RIGHT.REMOTE_READ),
    (3, BASE, 15 - RIGHT.REMOTE_WRITE),
    (4, BASE + 2, BOTH),
)


def atomic(opcode, offset=0, length=8, key=1, operand=0, compare=0, mask=0):
    """The slot of an atomic command."""
    slot = bytearray(C.SLOT_BYTES)
    put_member(slot, COMMAND, 0, "opcode", opcode)
    put_member(slot, COMMAND, 0, "length", length)
    for name, value in dict(
        key=key, offset=offset, operand=operand, compare=compare, mask=mask
    ).items():
        put_member(slot, ATOMIC, 0, name, value)
    return bytes(slot)


def changed(opcode, old, size, operand=0, compare=0, mask=0):
    """The value after; None where nothing is written."""
    ones = 2 ** (8 * size) - 1
    return {
        OPCODE.FETCH_ADD: lambda: (old + operand) & ones,
        OPCODE.SWAP: lambda: operand & ones,
        OPCODE.COMPARE_SWAP: lambda: operand & ones if (old ^ compare) & ones == 0 else None,
        OPCODE.MASKED_SWAP: lambda: (old & ~mask | operand & mask) & ones,
    }[opcode]()


class Unit(LiteXModule):
    def __init__(self, data_width):
        self.regions = RegionTable()
        self.atomic = AtomicUnit(data_width, timeout=100, quarantine=1000)
        self.comb += self.atomic.lookup.connect(self.regions.ports[0])


def run(slots, data_width, seed, memory, fault=None, latency=(5, 40), busy=0.8, forget=None):
    """Execute the commands one after another on `memory`, a dict address -> byte; returns the
    replies, (status, value), in the order of their ends, HostWrite and HostRead.

    forget : function (completions asked for so far, ends) -> whether the asker is gone
    """
    dut, random = Unit(data_width), Random(seed)
    unit = dut.atomic
    writes = HostWrite(unit.writes, unit.marked, random, 256, busy)
    read = HostRead(
        unit.reads,
        unit.completions,
        lambda address: writes.memory.get(address, memory(address)),
        random,
        latency,
        split=False,
        fault=fault,
    )
    got, queue, ends = [], [], []
    inbox = {(C.INBOX, n): slot for n, slot in enumerate(slots)}
    request = lambda n, kind: dict(node=n % C.NODES, slot=n, word=kind | 0x9E3779 * n % 2**24 << 8)
    names = ("node", "slot", "word")

    @passive
    def replies():
        """At each end the reply is there, and the rest of the slot as it was."""
        while True:
            yield
            while len(got) < len(ends):
                said = dict(zip(names, ends[len(got)]))
                reply = inbox[C.INBOX, said["slot"]]
                assert said == request(said["slot"], MESSAGE.ATOMIC_REPLY)
                assert reply[16:] == slots[said["slot"]][16:] and not any(reply[12:16])
                got.append(
                    tuple(
                        int.from_bytes(reply[m.offset : m.offset + m.size], "little")
                        for m in (REPLY["status"], REPLY["value"])
                    )
                )

    def bench():
        for key, base, rights in REGIONS:
            for name, value in dict(
                index=key, key=key, base=base, length=LENGTH, rights=rights, valid=1, write=1
            ).items():
                yield getattr(dut.regions, name).eq(value)
            yield
        yield dut.regions.write.eq(0)
        queue.extend(request(n, MESSAGE.ATOMIC) for n in range(len(slots)))
        if forget is None:
            yield from finish(lambda: len(got) == len(slots), 400 * len(slots) + 400)
        else:
            yield from forget(unit, got)

    run_simulation(
        dut,
        [
            bench(),
            writes.run(),
            read.run(),
            source(unit.sink, growing(queue), random),
            serve_slots(unit.slot, data_width, inbox, random, busy),
            write_slots(unit.reply, data_width, inbox, random, busy),
            sink(unit.done, names, ends, random, busy),
            replies(),
        ],
    )
    assert forget or [slot for _, slot, _ in ends] == list(range(len(slots)))
    return got, writes, read


def memory(address):
    return (address * 0x9E3779B1 >> 13) & 0xFF


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_random_operations_on_few_words(data_width, seed):
    """What each finds is what the one before left, and not one other byte is written."""
    random = Random(seed)
    model = {BASE + n: memory(BASE + n) for n in range(32)}
    slots, expected, written = [], [], set()
    for _ in range(32):
        size = random.choice([4, 8])
        offset = random.randrange(0, 32, size)
        where = range(BASE + offset, BASE + offset + size)
        old = sum(model[a] << 8 * n for n, a in enumerate(where))
        opcode = random.choice(
            [OPCODE.FETCH_ADD, OPCODE.SWAP, OPCODE.COMPARE_SWAP, OPCODE.MASKED_SWAP]
        )
        words = dict(
            operand=random.getrandbits(64),
            mask=random.getrandbits(64),
            compare=random.choice([old, old | 1 << 40, random.getrandbits(64)]),
        )
        slots.append(atomic(opcode, offset, size, **words))
        expected.append((STATUS.OK, old))
        new = changed(opcode, old, size, **words)
        if new is not None:
            model.update(zip(where, new.to_bytes(size, "little")))
            written |= set(where)
    got, writes, _ = run(slots, data_width, seed, memory)
    assert got == expected
    assert writes.memory == {address: model[address] for address in written}
    assert all(mark for _, _, mark in writes.tlps)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_what_may_not_be_done_is_refused_with_its_reason(data_width):
    add = OPCODE.FETCH_ADD
    cases = [
        (atomic(OPCODE.PUT), STATUS.REMOTE_BAD_HEADER),
        (atomic(OPCODE.MASKED_SWAP + 1), STATUS.REMOTE_BAD_HEADER),
        (atomic(add, key=9), STATUS.REMOTE_BAD_KEY),
        (atomic(add, key=2), STATUS.REMOTE_NOT_PERMITTED),
        (atomic(add, key=3), STATUS.REMOTE_NOT_PERMITTED),
        (atomic(add, length=2), STATUS.REMOTE_ALIGNMENT),
        (atomic(add, length=12), STATUS.REMOTE_ALIGNMENT),
        (atomic(add, offset=4), STATUS.REMOTE_ALIGNMENT),
        (atomic(add, offset=2, length=4), STATUS.REMOTE_ALIGNMENT),
        (atomic(add, key=4), STATUS.REMOTE_ALIGNMENT),
        (atomic(add, offset=LENGTH), STATUS.REMOTE_BOUNDS),
        (atomic(add, offset=2**64 - 8), STATUS.REMOTE_BOUNDS),
        (atomic(add, offset=LENGTH - 2, key=4), STATUS.REMOTE_BOUNDS),
        (atomic(add, offset=LENGTH - 2, key=4, length=4), STATUS.REMOTE_BOUNDS),
    ]
    good = [
        (atomic(add, offset=LENGTH - 8), STATUS.OK),
        (atomic(add, offset=LENGTH - 4, length=4), STATUS.OK),
        (atomic(add, offset=LENGTH - 6, length=4, key=4), STATUS.OK),
    ]
    got, writes, read = run([slot for slot, _ in cases + good], data_width, 1, memory)
    assert [status for status, _ in got] == [status for _, status in cases + good]
    assert all(value == 0 for status, value in got if status != STATUS.OK)
    assert len(read.issued) == len(writes.tlps) == len(good)


def test_a_read_that_fails_writes_nothing_and_an_owed_answer_holds_nobody_up():
    fate = {BASE: "error", BASE + 8: 300}  # the second comes 200 cycles after its time
    slots = (
        [atomic(OPCODE.FETCH_ADD, 8 * n, operand=1) for n in (0, 1, 2)]
        + [atomic(OPCODE.PUT)] * 20
        + [atomic(OPCODE.FETCH_ADD, 24, operand=1)]
    )
    got, writes, read = run(slots, 64, 1, memory, fault=fate.get)
    assert [status for status, _ in got] == [STATUS.REMOTE_READ_ERROR] * 3 + [
        STATUS.REMOTE_BAD_HEADER
    ] * 20 + [STATUS.OK]
    assert [address for address, _, _ in read.issued] == [BASE, BASE + 8, BASE + 24]
    assert [address for address, _, _ in writes.tlps] == [BASE + 24]


def test_an_operation_that_nobody_waits_for_is_finished_without_an_end():
    def forget(unit, got):
        while not (yield unit.reads.valid):
            yield
        yield unit.forget.eq(1)
        yield
        yield unit.forget.eq(0)
        yield from finish(lambda: got, 400)

    slots = [atomic(OPCODE.FETCH_ADD, 8 * n, operand=1) for n in (0, 1)]
    got, writes, _ = run(slots, 64, 1, memory, forget=forget)
    assert [address for address, _, _ in writes.tlps] == [BASE, BASE + 8]
    assert got == [(STATUS.OK, sum(memory(BASE + 8 + n) << 8 * n for n in range(8)))]
