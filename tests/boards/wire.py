"""Cards on their host bridges as a program, each behind a pseudo-terminal that libdibber opens as
`uart:PORT`.

    python tests/boards/wire.py FOLDER

writes the card's Verilog into the folder: the bytes of the UART and the words of the serial PHY are
its ports.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "tests" / "bridged_card"
BENCH = pathlib.Path(__file__).resolve().parent / "wire.cc"
TOP = "bridged_card"
CLOCK_HZ = 64e6  # of the card on ECPIX-5

# Verilog ------------------------------------------------------------------------------------------


def generate(folder):
    """A process of its own calls this: Migen's names depend on what was elaborated before in the
    same one.
    """
    sys.path[:0] = [str(ROOT), str(ROOT / "gateware")]
    from dibber.common.elaboration import elaborate_quickly
    from dibber.host.flash import flash_pads
    from dibber.interface.generate import write_if_changed
    from dibber.layouts import serial_rx_layout, serial_tx_layout
    from litex.gen import LiteXModule
    from litex.gen.fhdl.verilog import convert
    from litex.soc.interconnect import stream
    from migen import ClockDomain, Signal

    from boards.bridged import BridgedCard
    from boards.sim import SourceList

    class Ports(LiteXModule):
        """Two streams whose signals are ports of the Verilog."""

        def __init__(self, name, sink, source):
            self.sink, self.source, self.signal = (
                stream.Endpoint(sink),
                stream.Endpoint(source),
                Signal(reset=1),
            )
            self.ios = set()
            for side, endpoint in [("tx", self.sink), ("rx", self.source)]:
                for field in [
                    "valid",
                    "ready",
                    *[f[0] for f in endpoint.description.payload_layout],
                ]:
                    signal = getattr(endpoint, field)
                    signal.name_override = f"{name}_{side}_{field}"
                    self.ios.add(signal)

    elaborate_quickly()
    platform = SourceList()
    top = LiteXModule()
    top.cd_sys = ClockDomain()
    top.uart = Ports("uart", [("data", 8)], [("data", 8)])
    top.serial = Ports("serial", serial_tx_layout(), serial_rx_layout())
    flash = flash_pads(CLOCK_HZ / 4)
    for name in ["cs_n", "clk", "mosi", "miso"]:
        getattr(flash, name).name_override = f"flash_{name}"
    top.card = BridgedCard(platform, top.uart, top.serial, CLOCK_HZ, "ecpix5", flash)
    ios = top.uart.ios | top.serial.ios | set(flash.flatten()) | {top.cd_sys.clk, top.cd_sys.rst}
    output = convert(top, ios, name=TOP, regular_comb=False)
    for name, contents in output.data_files.items():
        write_if_changed(folder / name, contents)
    text = "\n".join(
        line for line in output.main_source.splitlines() if not line.lstrip().startswith("//")
    )
    write_if_changed(folder / f"{TOP}.v", text + "\n")
    write_if_changed(
        folder / f"{TOP}.f", "\n".join([str(folder / f"{TOP}.v"), *platform.sources]) + "\n"
    )


def fingerprint():
    """CRC-32 of all sources of the Verilog, because elaboration takes longer than some tests."""
    crc = 0
    for path in sorted(
        [
            *(ROOT / "gateware").rglob("*.py"),
            *(ROOT / "boards").glob("*.py"),
            pathlib.Path(__file__),
        ]
    ):
        crc = zlib.crc32(path.read_bytes(), crc)
    return f"{crc:08x}"


def build():
    """The path of the bench program, built anew only when its sources changed."""
    from tests.gateware.mcp.card import run, verilated

    BUILD.mkdir(parents=True, exist_ok=True)
    stamp = BUILD / "sources"
    if not stamp.exists() or stamp.read_text() != fingerprint():
        run(sys.executable, __file__, BUILD)
        stamp.write_text(fingerprint())
    # it runs for longer than it compiles
    return verilated(
        BUILD, TOP, BUILD / f"{TOP}.f", BENCH, "-O1", (ROOT / "hw" / "sim" / "flash").iterdir()
    )


# Cards --------------------------------------------------------------------------------------------


class Wire:
    """Running cards. One is in loopback on its serial port; two are connected to each other.

    Attributes
    ----------
    ports : the path of each one's terminal
    uris  : what libdibber opens
    """

    def __init__(self, program, cards=1):
        self.bench = subprocess.Popen(
            [program, str(cards)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ports = [self.bench.stdout.readline().strip() for _ in range(cards)]
        # A simulation beside other work may answer late.
        self.uris = [f"uart:{port}?timeout=10000" for port in self.ports]

    def close(self):
        self.bench.stdin.close()
        self.bench.wait(600)
        self.bench.stdout.close()


if __name__ == "__main__":
    generate(pathlib.Path(sys.argv[1]).resolve())
