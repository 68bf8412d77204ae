"""A bank of registers: what each kind keeps, tells and answers."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import ClockDomain
from migen.fhdl.tools import list_signals, list_targets

from dibber.interface.description import MCP
from dibber.interface.generate import silent
from dibber.interface.register_bank import RegisterBank
from dibber.interface.schema import Register, bank

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.lines import LineDriver

# A line of 128 bits with nothing to read, and one in which it has neighbours that are read.
BANK = bank(
    "bank",
    "",
    Register("KEPT", "wk", "", count=3, reset=0x12345678),
    Register("STARTS", "wo", ""),
    Register("BOTH", "rw", "", reset=0x9ABCDEF0),
    Register("MORE", "wk", ""),
    Register("SHOWN", "ro", ""),
    Register("BITS", "w1c", ""),
)
WORDS = [(r, i) for r in BANK.registers for i in range(r.count)]
KINDS = ("wk", "rw")  # that are kept


@pytest.mark.parametrize("data_width", [32, 64, 128, 256])
def test_what_is_kept_is_kept_by_bytes_and_only_what_can_be_read_is_answered(data_width):
    dut = RegisterBank(BANK, data_width)
    port = LineDriver(dut.port)
    rng = Random(data_width)
    kept = {(r.name, i): r.reset for r, i in WORDS if r.access in KINDS}

    def bench():
        yield dut.status["SHOWN"][0].eq(0x600DCAFE)
        for turn in range(200):
            register, index = rng.choice(WORDS)
            name, address = register.name, register.offset + 4 * index
            value, enables = rng.getrandbits(32), rng.choice([0xF, rng.randrange(16)])
            yield from port.write(address, value, enables)
            yield
            if register.access in KINDS:
                mask = sum(0xFF << 8 * b for b in range(4) if enables >> b & 1)
                kept[name, index] = kept[name, index] & ~mask | value & mask
                assert (yield dut.strobe[name][index]) == (enables != 0)
                assert (yield dut.written[name][index]) == kept[name, index]
            elif register.access == "wo":
                assert (yield dut.strobe[name][index]) == (enables == 0xF)
            for key, held in kept.items():
                assert (yield dut.storage[key[0]][key[1]]) == held
            register, index = rng.choice(WORDS)
            answer = {"BOTH": kept["BOTH", 0], "SHOWN": 0x600DCAFE}.get(register.name, 0)
            assert (yield from port.read(register.offset + 4 * index)) == answer, register.name

    run_simulation(dut, bench())


# A register without a writer, registers that are also kept in flip-flops, and one whose bits are
# all only in memory.
READ_BACK = bank(
    "bank",
    "",
    Register("CONSTANT", "ro", "", count=5),
    Register("BOTH", "rw", "", count=6),
    Register("STARTS", "wo", ""),
    Register("SET", "rw", "", reset=0x8000001F),
    Register("KEPT", "wk", ""),
    Register("BITS", "w1c", ""),
    Register("LAST", "rw", "", count=2),
)
READ_BACK_WORDS = {r.offset // 4 + i: r for r in READ_BACK.registers for i in range(r.count)}


@pytest.mark.parametrize("data_width", [32, 64, 128, 256])
def test_what_is_read_back_from_memory_is_as_from_registers_and_so_is_a_reset_in_the_middle(
    data_width,
):
    dut = RegisterBank(READ_BACK, data_width, readback=True)
    dut.clock_domains.cd_sys = ClockDomain("sys")
    port = dut.port
    rng = Random(data_width)
    lanes = data_width // 32
    lines = max(READ_BACK_WORDS) // lanes + 1
    fresh = {
        word: 0xC0DE0000 + word if r.access == "ro" else r.reset
        for word, r in READ_BACK_WORDS.items()
        if r.access in ("ro", "rw")
    }
    held = dict(fresh)
    wrote = [held] * 2  # what was held one and two cycles ago
    due = [0, 0]  # `dat_r` of the cycles to come
    seen = {"read": 0, "write": 0, "both": 0, "idle": 0, "read behind a write": 0, "reset": 0}
    asked = [word for word, r in READ_BACK_WORDS.items() if r.access == "rw" and not r.reset]
    index, value = dut.readback.look_up(asked)

    def bench():
        nonlocal held
        for word, status in enumerate(dut.status["CONSTANT"]):
            yield status.eq(fresh[word])
        last = None
        for _ in range(3000):
            kind = rng.choice(["read", "read", "write", "both", "idle"])
            line = rng.choice(
                [rng.randrange(lines), last[1] if last else 0, lines + rng.randrange(lines), 64]
            )
            data = rng.getrandbits(data_width)
            be = rng.choice(
                [
                    2 ** (data_width // 8) - 1,
                    rng.getrandbits(data_width // 8),
                    0xF << 4 * rng.randrange(lanes),
                ]
            )
            look = rng.randrange(len(asked))
            yield port.adr.eq(line)
            yield port.dat_w.eq(data)
            yield port.be.eq(be)
            yield port.we.eq(kind in ("write", "both"))
            yield port.re.eq(kind in ("read", "both"))  # which is not taken beside a write
            yield index.eq(look)
            yield
            assert (yield port.dat_r) == due.pop(0)
            assert (yield value) == wrote.pop(0)[asked[look]]
            seen[kind] += 1
            seen["read behind a write"] += (kind, last) == ("read", ("write", line))
            due.append(
                sum(held.get(line * lanes + lane, 0) << 32 * lane for lane in range(lanes))
                if kind == "read"
                else 0
            )
            if kind in ("write", "both"):
                held = dict(held)
                for lane in range(lanes):
                    word = line * lanes + lane
                    if word in held and READ_BACK_WORDS[word].access == "rw":
                        mask = sum(0xFF << 8 * b for b in range(4) if be >> 4 * lane + b & 1)
                        held[word] = held[word] & ~mask | data >> 32 * lane & mask
            wrote.append(held)
            last = kind, line
            if rng.random() < 0.02:
                seen["reset"] += 1
                yield port.we.eq(0)
                yield port.re.eq(0)
                yield dut.cd_sys.rst.eq(1)
                for _ in range(rng.choice([1, 2, 3 * lines])):
                    yield
                yield dut.cd_sys.rst.eq(0)
                for _ in range(lines + 1):
                    yield
                held, due[:], last = fresh, [0, 0], None
                wrote[:] = [held] * 2
        assert min(seen.values()) > 20, seen

    run_simulation(dut, bench())


def test_of_indexed_registers_the_one_that_is_read_is_looked_up():
    of = bank(
        "bank",
        "",
        Register("BEFORE", "ro", ""),
        Register("MANY", "ro", "", count=5),
        Register("AFTER", "ro", ""),
    )
    dut = RegisterBank(of, indexed=("MANY",))
    port = LineDriver(dut.port)

    # An answer for each index, of those too that there are not.
    dut.comb += dut.status["MANY"][0].eq(0x40000000 | dut.index["MANY"])

    def bench():
        yield dut.status["BEFORE"][0].eq(1)
        yield dut.status["AFTER"][0].eq(2)
        for word in (0, 6, 3, *range(8), 6, 1, 0):
            answer = {0: 1, 6: 2, 7: 0}.get(word, 0x40000000 | word - 1)
            assert (yield from port.read(4 * word)) == answer, word

    run_simulation(dut, bench())


@pytest.mark.parametrize(
    "of, data_width, lines",
    [
        (BANK, 32, {4, 6, 7}),
        (BANK, 64, {2, 3}),
        (BANK, 128, {1}),
        (
            MCP,
            32,
            {
                r.offset // 4 + i
                for r in MCP.registers
                if r.access in ("ro", "rw", "w1c")
                for i in range(r.count)
            },
        ),
    ],
    ids=["32", "64", "128", "mcp"],
)
def test_a_line_with_nothing_to_read_has_no_part_in_the_answer(of, data_width, lines):
    dut = RegisterBank(of, data_width)
    sources = list_signals(
        [s for s in dut.get_fragment().sync["sys"] if dut.port.dat_r in list_targets(s)]
    )
    names = {s.backtrace[-1][0] for s in sources}
    assert {name for name in names if name.startswith("asked")} == {f"asked{n}" for n in lines}
    held = {id(s) for r in of.registers if r.access == "wk" for s in dut.storage[r.name]}
    assert held and not held & {id(s) for s in sources}


def test_the_header_tells_which_registers_are_silent():
    words = silent(BANK)
    assert words == [0b00101111]
    assert {r.name for r, i in WORDS if words[0] >> r.offset // 4 + i & 1} == {
        "KEPT",
        "STARTS",
        "MORE",
    }
