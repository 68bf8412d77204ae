# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A card on its host bridge as a program, and LiteX's own client at the other end of the UART.

    python tests/boards/wire.py FOLDER

writes the card's Verilog into the folder: the bytes of the UART and the words of the serial PHY are its ports.
"""

import pathlib
import struct
import subprocess
import sys

ROOT  = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT/"build"/"tests"/"bridged_card"
BENCH = pathlib.Path(__file__).resolve().parent/"wire.cc"
TOP   = "bridged_card"

# Verilog ------------------------------------------------------------------------------------------

def generate(folder):
    """A process of its own calls this: Migen's names depend on what was elaborated before in the same one."""
    sys.path[:0] = [str(ROOT), str(ROOT/"gateware")]
    from migen import ClockDomain, Signal
    from litex.gen import LiteXModule
    from litex.gen.fhdl.verilog import convert
    from litex.soc.interconnect import stream
    from boards.bridged import BridgedCard
    from boards.sim import SourceList
    from dibber.interface.generate import write_if_changed
    from dibber.layouts import serial_rx_layout, serial_tx_layout

    class Ports(LiteXModule):
        """Two streams whose signals are ports of the Verilog."""
        def __init__(self, name, sink, source):
            self.sink, self.source, self.signal = stream.Endpoint(sink), stream.Endpoint(source), Signal()
            self.ios = set()
            for side, endpoint in [("tx", self.sink), ("rx", self.source)]:
                for field in ["valid", "ready", *[f[0] for f in endpoint.description.payload_layout]]:
                    signal = getattr(endpoint, field)
                    signal.name_override = f"{name}_{side}_{field}"
                    self.ios.add(signal)

    platform = SourceList()
    top      = LiteXModule()
    top.cd_sys = ClockDomain()
    top.uart   = Ports("uart", [("data", 8)], [("data", 8)])
    top.serial = Ports("serial", serial_tx_layout(), serial_rx_layout())
    top.card   = BridgedCard(platform, top.uart, top.serial, 80e6)
    ios        = top.uart.ios | top.serial.ios | {top.cd_sys.clk, top.cd_sys.rst}
    output     = convert(top, ios, name=TOP, regular_comb=False)
    for name, contents in output.data_files.items():
        write_if_changed(folder/name, contents)
    text = "\n".join(line for line in output.main_source.splitlines() if not line.lstrip().startswith("//"))
    write_if_changed(folder/f"{TOP}.v", text + "\n")
    write_if_changed(folder/f"{TOP}.f", "\n".join([str(folder/f"{TOP}.v"), *platform.sources]) + "\n")


def build():
    """The path of the bench program, built anew only when its sources changed."""
    from card import run, verilated
    BUILD.mkdir(parents=True, exist_ok=True)
    run(sys.executable, __file__, BUILD)
    return verilated(BUILD, TOP, BUILD/f"{TOP}.f", BENCH)

# Client -------------------------------------------------------------------------------------------

class Wire:
    """What LiteX's client takes for a serial port. What is written leaves with the next read or `wait`."""
    def __init__(self, program):
        self.bench   = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pending = bytearray()

    def exchange(self, count, cycles):
        """Send what was written, let `cycles` pass, and return `count` bytes that came."""
        self.bench.stdin.write(struct.pack("<III", len(self.pending), count, cycles) + self.pending)
        self.bench.stdin.flush()
        self.pending.clear()
        answer = self.bench.stdout.read(count)
        assert len(answer) == count, "the card did not answer"
        return answer

    def inWaiting(self):
        return 0

    def write(self, data):
        self.pending += bytes(data)
        return len(data)

    def read(self, count):
        return self.exchange(count, 0)

    def wait(self, cycles):
        self.exchange(0, cycles)

    def close(self):
        self.bench.stdin.close()
        self.bench.wait(10)


def client(wire):
    """LiteX's client of the UART bridge, at our wire in place of a serial port."""
    from litex.tools.remote.comm_uart import CommUART
    comm = CommUART("loop://")
    comm.port.close()
    comm.port = wire
    return comm


if __name__ == "__main__":
    generate(pathlib.Path(sys.argv[1]).resolve())
