"""TAP, debug transport, debug module and VexRiscv together, at the JTAG pins."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from dibber.debug.hart import NOWHERE
from dibber.debug.tap import IDENTITY

from tests.gateware.debug.debugger import (
    ABSTRACTCS,
    ACKHAVERESET,
    ACTIVE,
    ALLHALTED,
    ALLHAVERESET,
    ALLRUNNING,
    ALLUNAVAIL,
    COMMAND,
    DCSR,
    DMCONTROL,
    DMSTATUS,
    DPC,
    EBREAKM,
    HALTREQ,
    MCAUSE,
    MEPC,
    MSCRATCH,
    MSTATUS,
    NDMRESET,
    SBADDRESS0,
    SBCS,
    SBDATA0,
    TDATA1,
    TDATA2,
    TSELECT,
    CommandFailed,
)

EBREAK = 0x0010_0073
ILLEGAL_INSTRUCTION = 2
T0, T3, A0, A1, RA, S1 = 5, 28, 10, 11, 1, 9
BREAK, TRIGGER, REQUEST, STEPPED = 1, 2, 3, 4


def started(debugger):
    debugger.write(DMCONTROL, ACTIVE)
    debugger.ask("h", 0)
    debugger.ask("n", 0x800)  # 1024 to empty the instruction cache
    return debugger


def consistent(debugger):
    """Nothing of the program was skipped or done twice: what its registers say of each other, at
    the head of its loop.
    """
    count = debugger.gpr(T0)
    assert debugger.gpr(A0) == (count + 100 if count else 0)
    assert debugger.gpr(A1) == 2 * debugger.gpr(A0)
    return count


def test_the_tap_identifies_itself_and_bypasses(debugger):
    assert debugger.scan(0x01, 32) == IDENTITY and IDENTITY & 1
    assert debugger.scan(0x1F, 8, 0b1011_0110) == 0b0110_1100, "one bit late"
    assert debugger.scan(0x0A, 8, 0xFF) == 0xFE, "an unknown instruction bypasses"
    assert debugger.scan(0x10, 32) & 0x3FF == 7 << 4 | 1, "seven address bits, version 0.13"


def test_the_debug_module_says_what_it_is(debugger):
    assert debugger.read(DMCONTROL) == 0, "nothing is active before a debugger comes"
    status = started(debugger).read(DMSTATUS)
    assert status & 0xFF == 0x82, "version 0.13, authenticated"
    assert status & ALLRUNNING and not status & ALLHALTED
    assert debugger.read(ABSTRACTCS) == 1, "one data register, no program buffer"
    assert debugger.read(0x12) == 0 and debugger.read(0x7F) == 0


def test_registers_keep_what_a_debugger_writes_and_all_others_stay(debugger, seed):
    rng = random.Random(seed)
    started(debugger).halt()
    expected = [debugger.gpr(n) for n in range(32)]
    for n in rng.sample(range(32), 12):
        expected[n] = (
            rng.choice([0, 0xFFFF_FFFF, 0x800, 0x7FF, 0xFFFF_F800, rng.getrandbits(32)]) if n else 0
        )
        debugger.gpr(n, expected[n])
    debugger.register(MSCRATCH, 0x800F_FF80)
    debugger.register(MCAUSE, 3)
    assert debugger.register(MSCRATCH) == 0x800F_FF80
    assert debugger.register(MSTATUS) >> 11 & 3 == 3, "machine mode"
    assert debugger.register(MCAUSE) == 3
    assert [debugger.gpr(n) for n in range(32)] == expected


@pytest.mark.parametrize("number", [0x1020, 0x7B2, 0x7C0, 0xC000, 0x100, 0x1FFF])
def test_registers_that_are_not_there_are_exceptions(debugger, number):
    started(debugger).halt()
    with pytest.raises(CommandFailed) as failed:
        debugger.register(number)
    assert failed.value.error == 3
    debugger.gpr(T0)


def test_commands_that_cannot_be_done_say_why_and_the_first_reason_stays(debugger):
    started(debugger)
    with pytest.raises(CommandFailed) as failed:
        debugger.gpr(T0)
    assert failed.value.error == 4, "the hart runs"
    debugger.halt()
    for word in [
        3 << 20 | 1 << 17 | 0x1005,  # 64 bits
        2 << 20 | 1 << 18 | 0x1005,  # the program buffer
        2 << 20 | 1 << 19 | 1 << 17 | 0x1005,  # post-increment
        2 << 24,
    ]:  # access memory
        with pytest.raises(CommandFailed) as failed:
            debugger.command(word)
        assert failed.value.error == 2, f"{word:08x}"
    debugger.command(2 << 20 | 0xFFFF)  # nothing to transfer
    with pytest.raises(CommandFailed):
        debugger.register(0xF14, 1)  # mhartid is read-only
    debugger.write(COMMAND, 2 << 20 | 1 << 17 | 0xFFFF)
    debugger.write(COMMAND, 9 << 24)  # ignored
    assert debugger.read(ABSTRACTCS) >> 8 & 7 == 3
    debugger.write(ABSTRACTCS, 7 << 8)
    assert debugger.read(ABSTRACTCS) >> 8 & 7 == 0


def test_steps_go_where_the_program_goes_and_do_each_instruction_once(debugger, at):
    debugger.write(DMCONTROL, ACTIVE)
    debugger.write(DMCONTROL, HALTREQ | ACTIVE)
    debugger.ask("h", 0)
    debugger.halt()
    assert debugger.register(DPC) == 0, "before its first instruction"
    seen = []
    for _ in range(40):
        # What a debugger does that takes its breakpoint out for a step: the caches are stale each
        # time.
        debugger.memory(at("word") + 32, 0)
        debugger.step()
        assert debugger.cause() == STEPPED
        seen.append(debugger.register(DPC))
    loop = [
        at("loop") + 4,
        at("called"),
        at("called") + 4,
        at("called") + 8,
        at("back"),
        at("back") + 4,
        at("back") + 8,
        at("loop"),
    ]
    first = seen.index(at("loop")) + 1
    assert seen[first:] == (loop * 5)[: len(seen) - first]
    assert debugger.gpr(T0) == (len(seen) - first + 7) // 8


def test_ebreak_in_memory_halts_the_hart_when_asked_for_and_is_a_trap_otherwise(debugger, at):
    started(debugger).halt()
    debugger.register(DCSR, EBREAKM)
    old = debugger.memory(at("called"))
    debugger.memory(at("called"), EBREAK)
    for _ in range(3):
        before = debugger.gpr(T0)
        debugger.resume()
        debugger.until(ALLHALTED)
        assert debugger.register(DPC) == at("called") and debugger.cause() == BREAK
        assert debugger.gpr(RA) == at("back")
        debugger.memory(at("called"), old)
        debugger.step()
        assert debugger.register(DPC) == at("called") + 4 and debugger.cause() == STEPPED
        debugger.memory(at("called"), EBREAK)
    assert debugger.gpr(T0) == before + 1
    debugger.register(DCSR, 0)
    trapped(debugger, at)


def trapped(debugger, at):
    """The program resumes, and comes to its own handler by the ebreak at `called`."""
    debugger.resume()
    debugger.ask("n", 4000)  # the instruction cache is emptied meanwhile, a line a cycle
    debugger.halt()
    assert debugger.gpr(S1) == ILLEGAL_INSTRUCTION
    assert debugger.register(MEPC) == NOWHERE + at("called")
    assert debugger.gpr(RA) == at("back"), "and its registers are its own"


def test_ebreak_is_a_trap_when_the_debugger_has_gone(debugger, at):
    started(debugger).halt()
    debugger.register(DCSR, EBREAKM)
    debugger.memory(at("called"), EBREAK)
    debugger.write(DMCONTROL, 0)
    debugger.write(DMCONTROL, ACTIVE)
    trapped(debugger, at)


def test_triggers_halt_before_the_instruction_at_their_address(debugger, at):
    started(debugger).halt()
    debugger.register(DCSR, EBREAKM)
    for n in range(4):
        debugger.register(TSELECT, n)
        assert debugger.register(TSELECT) == (n if n < 2 else 1), "there are two"
    execute = 2 << 28 | 1 << 27 | 1 << 12 | 1 << 6 | 1 << 2
    for n, symbol in enumerate(["back", "called"]):
        debugger.register(TSELECT, n)
        debugger.register(TDATA2, at(symbol))
        debugger.register(TDATA1, execute)
        assert debugger.register(TDATA1) == execute and debugger.register(TDATA2) == at(symbol)
    debugger.register(TDATA1, execute | 1)
    assert debugger.register(TDATA1) == execute, "it matches no loads"
    debugger.register(TSELECT, 0)
    assert debugger.register(TDATA2) == at("back")
    debugger.register(TDATA1, 0)
    debugger.resume()
    debugger.until(ALLHALTED)
    assert debugger.register(DPC) == at("called") and debugger.cause() == TRIGGER
    assert debugger.gpr(A0) + 1 == debugger.gpr(T0) + 100, "not yet executed"
    debugger.register(TSELECT, 1)
    debugger.register(TDATA1, 0)
    debugger.resume()
    debugger.ask("n", 200)
    assert debugger.read(DMSTATUS) & ALLRUNNING


def test_memory_is_reached_in_all_sizes_and_while_the_hart_runs(debugger, at):
    word = at("word")
    started(debugger)
    first = debugger.memory(word)
    debugger.memory(word + 4, 0x5566_7788)
    assert debugger.memory(word) > first, "the program runs"
    debugger.halt()
    assert debugger.gpr(T3) == 0x1122_3344, "the cache of a program that runs is its own"
    debugger.memory(word + 4, 0x5566_7788)
    debugger.resume()
    debugger.ask("n", 4000)
    debugger.halt()
    assert debugger.gpr(T3) == 0x5566_7788
    debugger.memory(word + 5, 0x99, size=0)
    debugger.memory(word + 6, 0xAABB, size=1)
    assert debugger.memory(word + 4) == 0xAABB_9988
    assert (
        debugger.memory(word + 6, size=1) & 0xFFFF == 0xAABB
        and debugger.memory(word + 7, size=0) & 0xFF == 0xAA
    )
    assert debugger.memory(0x4000_0000) == 0, "nothing is there, and nothing hangs"


def test_a_run_of_words_takes_one_scan_each(debugger, program):
    started(debugger)
    debugger.write(SBCS, 1 << 20 | 1 << 16 | 1 << 15 | 2 << 17)
    debugger.write(SBADDRESS0, 0)
    assert [debugger.read(SBDATA0) for _ in range(20)] == program[0][:20]
    debugger.write(SBCS, 1 << 16 | 2 << 17)
    debugger.write(SBADDRESS0, 0x2000)
    for n in range(8):
        debugger.write(SBDATA0, 0x1000_0001 * n)
    assert debugger.read(SBADDRESS0) == 0x2020
    assert [debugger.memory(0x2000 + 4 * n) for n in range(8)] == [
        0x1000_0001 * n for n in range(8)
    ]


@pytest.mark.parametrize("address, size, error", [(0x1002, 2, 3), (0x1001, 1, 3), (0x1000, 3, 4)])
def test_accesses_that_the_bus_cannot_do_are_refused(debugger, address, size, error):
    started(debugger)
    debugger.write(SBCS, size << 17 | 1 << 20)
    debugger.write(SBADDRESS0, address)
    assert debugger.read(SBCS) >> 12 & 7 == error
    debugger.write(SBCS, 2 << 17 | 7 << 12)
    assert debugger.read(SBCS) >> 12 & 7 == 0
    assert debugger.memory(0) != 0


def test_a_reset_from_the_host_or_the_debugger_is_seen_and_can_be_halted_at(debugger):
    debugger.write(DMCONTROL, ACTIVE)
    assert debugger.read(DMSTATUS) & ALLUNAVAIL, "the host holds it"
    debugger.ask("h", 0)
    debugger.write(DMCONTROL, ACTIVE | ACKHAVERESET)
    assert not debugger.read(DMSTATUS) & (ALLUNAVAIL | ALLHAVERESET)
    debugger.halt()
    debugger.ask("h", 1)
    debugger.ask("h", 0)
    status = debugger.read(DMSTATUS)
    assert status & ALLHAVERESET and status & ALLRUNNING, "the host's reset lets it go"
    debugger.write(DMCONTROL, ACTIVE | NDMRESET | HALTREQ)
    assert debugger.ask("n", 1) == 2, "asked for; the card would do it"
    debugger.ask("h", 1)
    debugger.write(DMCONTROL, ACTIVE | HALTREQ)
    assert debugger.ask("n", 1) == 0
    debugger.ask("h", 0)
    debugger.until(ALLHALTED)
    assert debugger.ask("n", 1) == 1
    assert debugger.register(DPC) == 0 and debugger.cause() == REQUEST


def test_nothing_is_lost_or_done_twice_however_often_the_hart_is_halted(debugger, at, seed):
    """At cycles of no choosing, resumed and stepped; then all registers must agree."""
    rng = random.Random(seed)
    started(debugger)
    last = 0
    for n in range(60):
        debugger.ask("n", rng.randint(0, 40))
        debugger.halt()
        for _ in range(rng.randint(0, 3)):
            debugger.step()
        if n % 4 == 0:
            while debugger.register(DPC) != at("loop"):
                debugger.step()
            count = consistent(debugger)
            assert count > last and debugger.memory(at("word")) == count
            last = count
        if n % 3 == 0:
            debugger.memory(at("word") + 32, n)
        debugger.resume()
