#!/usr/bin/env python3
"""The simulated switch: its serial PHYs turned into ports of a Verilog module.

    python boards/sim_switch.py --ports 4 --clock 125e6 --output DIRECTORY

writes `dibber_switch.v`, the initial contents of memories if there are any, and `dibber_switch.f`,
the list of Verilog files for Verilator. A file whose text would not change is left alone.

Ports of `dibber_switch`; those of serial port n are the card's of boards/sim.py with a number:

    sys_clk, sys_rst
    identity[32]                                   in    constant; different for each switch
    serial{n}_tx_data[32], serial{n}_tx_k[4]       out   four symbols, the first in the low bits
    serial{n}_tx_ready                             in    takes them
    serial{n}_rx_valid, serial{n}_rx_data[32], serial{n}_rx_k[4]                      in
    serial{n}_rx_code_error[4], serial{n}_rx_disparity_error[4]                       in
    serial{n}_rx_signal                            in    the receiver sees a signal
    registers_{adr[20],dat_w[32],be[4],we,re}      in    line port of bank `switch`, in words
    registers_dat_r[32]                            out   2 cycles after `registers_re`, otherwise 0
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gateware")]

from migen import *

from litex.gen import *

from boards.sim import write_verilog
from dibber.common.elaboration import elaborate_quickly
from dibber.fabric.switch.switch import Switch

PORTS = (4, 8, 16)

# Switch -------------------------------------------------------------------------------------------

class SimSwitch(LiteXModule):
    """The switch and its pins. `ios` is the set of signals that become pins."""
    def __init__(self, ports: int, clock_hz: float) -> None:
        self.cd_sys = ClockDomain()
        self.switch = switch = Switch(ports, clock_hz)
        self.ios    = {self.cd_sys.clk, self.cd_sys.rst}

        # # #

        def pin(signal: Signal, name: str) -> Signal:
            """The signal under the pin's name."""
            signal.name_override = name
            self.ios.add(signal)
            return signal

        pin(switch.identity, "identity")
        for n, port in enumerate(switch.ports):
            for name in ["ready", "data", "k"]:
                pin(getattr(port.serial_tx, name), f"serial{n}_tx_{name}")
            for name in ["valid", "data", "k", "code_error", "disparity_error"]:
                pin(getattr(port.serial_rx, name), f"serial{n}_rx_{name}")
        self.comb += switch.signals.eq(Cat(*[
            pin(Signal(), f"serial{n}_rx_signal") for n in range(ports)]))
        for name in ["adr", "dat_w", "be", "we", "re", "dat_r"]:
            pin(getattr(switch.port, name), f"registers_{name}")

# Build --------------------------------------------------------------------------------------------

def generate(output: pathlib.Path, ports: int, clock_hz: float) -> None:
    """Write the Verilog of a switch into the directory `output`."""
    switch = SimSwitch(ports, clock_hz)
    write_verilog(output, switch, switch.ios, "dibber_switch")

def main() -> None:
    elaborate_quickly()
    parser = argparse.ArgumentParser(description="Generate the Verilog of the simulated switch.")
    parser.add_argument("--ports",  type=int, choices=PORTS, default=4, help="number of ports")
    parser.add_argument("--clock",  type=float, default=125e6, help="frequency of sys_clk in Hz")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="directory to write to")
    args = parser.parse_args()
    generate(args.output, args.ports, args.clock)

if __name__ == "__main__":
    main()
