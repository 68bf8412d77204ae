"""The checks of PCIe boards on small designs: one that is right, and each mistake that they are
there to find.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import re

import bitstream
import crossings
import flow
import netlist
import pytest
import xilinx
from litex.build.generic_platform import IOStandard, Pins, Subsignal
from litex.build.xilinx import Xilinx7SeriesPlatform
from litex.gen import *
from litex.soc.interconnect import stream
from migen import *
from migen.genlib.cdc import MultiReg
from migen.genlib.resetsync import AsyncResetSynchronizer

from boards.xilinx import CRG, JTAG_PATHS

_io = [
    ("clk200", 0, Subsignal("p", Pins("A1")), Subsignal("n", Pins("A2"))),
    ("clk50", 0, Pins("A3"), IOStandard("LVCMOS33")),
    ("pin", 0, Pins("B1"), IOStandard("LVCMOS33")),
    ("out", 0, Pins("D1 D2 D3 D4 D5 D6 D7 D8"), IOStandard("LVCMOS33")),
]

# Designs ------------------------------------------------------------------------------------------


class Good(LiteXModule):
    """A clock of a PLL and one of a pin, a FIFO and a flag between them, a bit for a debugger."""

    def __init__(self, platform):
        self.crg = CRG(platform, 100e6)
        self.cd_other = ClockDomain()
        self.fifo = stream.ClockDomainCrossing(
            [("data", 8)], "sys", "other", 8, with_common_rst=True
        )
        pads, clk50 = platform.lookup_request("clk200"), platform.request("clk50")
        self.pin = platform.request("pin")
        self.out = platform.request("out")
        self.flag = Signal()
        flag = Signal()

        # # #

        platform.add_period_constraint(pads.p, 5)
        platform.add_period_constraint(clk50, 20)
        platform.add_false_path_constraints(self.crg.cd_sys.clk, self.cd_other.clk)
        platform.add_platform_command(JTAG_PATHS)
        self.specials += [
            AsyncResetSynchronizer(self.cd_other, ~self.crg.pll.locked),
            MultiReg(self.flag, flag, "other"),
        ]
        self.specials += Instance("BSCANE2", p_JTAG_CHAIN=1, i_TDO=self.flag)
        data, pin = Signal(8), Signal()
        self.specials += MultiReg(self.pin, pin)
        self.sync += [
            data.eq(data + 1),
            self.flag.eq(~self.flag ^ pin),
        ]
        self.comb += [
            self.cd_other.clk.eq(clk50),
            self.fifo.sink.valid.eq(1),
            self.fifo.sink.data.eq(data),
            self.fifo.source.ready.eq(flag),
        ]
        self.sync.other += If(self.fifo.source.valid, self.out.eq(self.fifo.source.data))


class Bad(Good):
    """The same with a mistake in each of five places."""

    def __init__(self, platform):
        Good.__init__(self, platform)
        count = Signal(2)
        bare = Signal()
        binary = Signal(2)
        gated = Signal()
        early = Signal()

        # # #

        self.sync += count.eq(count + self.flag)
        self.sync.other += bare.eq(count[0] ^ count[1])
        mixed = Signal()
        self.comb += mixed.eq(self.flag & count[1])
        self.specials += [MultiReg(count, binary, "other"), MultiReg(mixed, gated, "other")]
        first, second, other = Signal(), Signal(), Signal()
        first.attr |= {"mr_ff", "keep"}
        self.sync.other += [first.eq(self.flag), second.eq(first), other.eq(~first ^ second)]
        self.sync.other += early.eq(bare ^ binary[0] ^ binary[1] ^ gated ^ other)
        self.sync.other += If(early, self.out.eq(0))
        self.specials += Instance("BSCANE2", p_JTAG_CHAIN=2, i_TDO=count[0] & self.flag)


def made(folder, design):
    """Netlist and constraints of a design; `folder` is below build/, for Yosys sees nothing
    elsewhere.
    """
    platform = Xilinx7SeriesPlatform("xc7a100t-fgg484-2", _io, toolchain="vivado")
    sources, _ = bitstream.generate(folder, "small", platform, design(platform))
    xilinx.synthesize(folder, "small", sources)
    return (
        netlist.Netlist(json.loads((folder / "netlist.json").read_text()), "small"),
        (folder / "small.xdc").read_text(),
    )


@pytest.fixture(scope="module")
def good():
    return made(flow.BUILD / "tests" / "good", Good)


# Crossings ----------------------------------------------------------------------------------------


def report(design, text):
    return crossings.report(design, crossings.Constraints(text))


def test_each_crossing_is_listed_with_its_synchroniser(good):
    lines, wrong = report(*good)
    assert wrong == []
    assert {line for line in lines if line.startswith("clock")} == {
        "clock clk200_p",
        "clock clk50",
        "clock sys_clk",
    }
    kinds = {line.split()[0] for line in lines}
    assert kinds == {"clock", "MultiReg", "AsyncResetSynchronizer", "AsyncFIFO", "BSCANE2"}
    assert any(line.startswith("AsyncFIFO") and line.endswith("8 bits") for line in lines)


@pytest.mark.parametrize(
    "pattern, complaint",
    [
        (r"create_clock .*clk50", "clock clk50 has no period"),
        (r"create_clock .*clk200", "has no period"),
        (r"set_clock_groups", "no set_clock_groups"),
        (r"set_false_path .*BSCANE2", "no line of the XDC for BSCANE2"),
    ],
)
def test_a_line_of_the_xdc_that_is_missing_is_found(good, pattern, complaint):
    design, text = good
    without = re.sub(rf"^{pattern}.*$", "", text, flags=re.M)
    assert without != text
    _, wrong = report(design, without)
    assert wrong and all(complaint in line for line in wrong)


@pytest.mark.parametrize(
    "pattern, complaint",
    [
        (r"set_false_path .*mr_ff", "no line of the XDC for MultiRegs"),
        (r"set_false_path .*ars_ff1", "no line of the XDC for resets"),
    ],
)
def test_a_false_path_that_is_missing_is_found_where_no_group_has_it(good, pattern, complaint):
    design, text = good
    _, wrong = report(design, re.sub(rf"^(?:{pattern}|set_clock_groups).*$", "", text, flags=re.M))
    assert any(complaint in line for line in wrong)


def test_bare_crossings_are_found():
    _, wrong = report(*made(flow.BUILD / "tests" / "bad", Bad))
    assert sum("takes it bare" in line and line.startswith("bad_bare:") for line in wrong) == 1
    assert sum("several bits that are no Gray count" in line for line in wrong) == 2
    assert sum("logic in front of it" in line for line in wrong) == 1
    assert sum("read by more than its second" in line for line in wrong) == 1
    assert sum("no register straight into TDO" in line for line in wrong) == 1
    assert len(wrong) == 6


# Cells --------------------------------------------------------------------------------------------

SEEDED = """
(* blackbox *) module strange(input d, output q); endmodule
module seeded(input clk, input en, input d, input e, output reg latch, output twice, output q,
    input [3:0] a, input [3:0] b, input [3:0] c, output [7:0] words);
reg one, two;
reg [7:0] few[0:15];
reg [7:0] many[0:15];
always @(posedge clk) begin
    few[a] <= b;
    many[a] <= b;
    if (d) many[b] <= c;
    if (e) many[c] <= a;
end
assign words = few[c] ^ many[a + b];
always @(posedge clk) begin one <= d; two <= e; end
always @(*) if (en) latch = d;
assign twice = one;
assign twice = two;
strange strange(.d(d), .q(q));
endmodule
"""


def test_a_latch_a_memory_of_flipflops_a_second_driver_and_a_black_box_are_found():
    folder = flow.fresh(flow.BUILD / "tests" / "seeded")
    (folder / "seeded.v").write_text(SEEDED)
    count = xilinx.synthesize(folder, "seeded", ["seeded.v"])
    assert xilinx.unknown_cells(count) == ["black box strange"]
    assert any("latch" in line for line in xilinx.latches(folder, count))
    assert xilinx.flipflop_memories(folder) == ["memory of flip-flops seeded/many"]
    assert len(xilinx.drivers(folder)) == 1


def test_what_does_not_fit_is_said():
    assert xilinx.misfits(
        {"lut6": 63_401, "ff": 5, "ramb36": 135, "dsp48": 0}, ["XC7A100T", "XC7A200T"]
    ) == ["63401 lut6 on an XC7A100T, which has 63400"]
