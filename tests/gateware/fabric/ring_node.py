"""Write the Verilog of a ring node for the bench: `python ring_node.py DIRECTORY`."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "gateware")]

from migen import *

from litex.gen import *

from boards.sim import write_verilog
from dibber.fabric.ring.port import RingPort

CHANNELS = 4


class RingNode(LiteXModule):
    """A ring port with its default sizes, and its pins. `ios` is the set of these."""

    def __init__(self):
        self.cd_sys = ClockDomain()
        self.port = port = RingPort()
        self.ios = {self.cd_sys.clk, self.cd_sys.rst}

        def pin(signal, name):
            signal.name_override = name
            self.ios.add(signal)

        def watch(value, name):
            """A pin of its own for what the node also uses inside."""
            copy = Signal(value_bits_sign(value)[0], name_override=name)
            self.comb += copy.eq(value)
            self.ios.add(copy)

        for name in ["ready", "valid", "data", "k"]:
            pin(getattr(port.serial_tx, name), f"tx_{name}")
        for name in ["valid", "data", "k", "code_error", "disparity_error"]:
            pin(getattr(port.serial_rx, name), f"rx_{name}")
        for n in range(CHANNELS):
            for name in ["valid", "ready", "data", "first", "last", "bad", "prefix"]:
                pin(getattr(port.sinks[n], name), f"sink{n}_{name}")
            for name in ["valid", "ready", "data", "first", "last", "bad"]:
                pin(getattr(port.sources[n], name), f"source{n}_{name}")
        for name in ["signal", "nonce", "retrain", "ping"]:
            pin(getattr(port, name), name)
        for name in ["up", "address", "size", "round_trip", "stopped"]:
            watch(getattr(port, name), name)
        event = port.numbers.event
        for name in ["valid", "status", "channel", "slot"]:
            watch(getattr(event, name), f"event_{name}")
        watch(port.sender.begin, "leaves")
        watch(port.output.level, "bypass_level")
        for name, pulse in port.events.items():
            watch(pulse, f"did_{name.lower()}")
        for name in ["SLACK_OVERFLOW", "LINK_LOST", "CODE_ERRORS", "PACKET_MISROUTED"]:
            watch(port.counters[name], f"count_{name.lower()}")


if __name__ == "__main__":
    node = RingNode()
    write_verilog(pathlib.Path(sys.argv[1]), node, node.ios, "ring_node")
