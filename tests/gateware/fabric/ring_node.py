"""Write the Verilog of a bench's node: `python ring_node.py DIRECTORY ring`, or `ring_pair`."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys
from functools import reduce
from operator import or_


from migen import *

from litex.gen import *

from boards.sim import write_verilog
from dibber.common.elaboration import elaborate_quickly
from dibber.fabric.ring.pair import RingPairPort
from dibber.fabric.ring.port import RingPort

CHANNELS = 4


class Node(LiteXModule):
    """A port, and its pins. `ios` is the set of these."""

    def __init__(self, port):
        self.cd_sys = ClockDomain()
        self.port = port
        self.ios = {self.cd_sys.clk, self.cd_sys.rst}
        for n in range(CHANNELS):
            for name in ["valid", "ready", "data", "first", "last", "bad", "prefix"]:
                self.pin(getattr(port.sinks[n], name), f"sink{n}_{name}")
            for name in ["valid", "ready", "data", "first", "last", "bad"]:
                self.pin(getattr(port.sources[n], name), f"source{n}_{name}")
        for name in ["nonce", "retrain", "ping"]:
            self.pin(getattr(port, name), name)
        for name in ["up", "address", "size", "round_trip", "stopped"]:
            self.watch(getattr(port, name), name)
        for name, pulse in port.events.items():
            self.watch(pulse, f"did_{name.lower()}")

    def pin(self, signal, name):
        signal.name_override = name
        self.ios.add(signal)

    def watch(self, value, name):
        """A pin of its own for what the node also uses inside."""
        copy = Signal(value_bits_sign(value)[0], name_override=name)
        self.comb += copy.eq(value)
        self.ios.add(copy)

    def lanes(self, port, number=""):
        """The pins of a cable."""
        for name in ["ready", "valid", "data", "k"]:
            self.pin(getattr(port.serial_tx, name), f"tx{number}_{name}")
        for name in ["valid", "data", "k", "code_error", "disparity_error"]:
            self.pin(getattr(port.serial_rx, name), f"rx{number}_{name}")
        self.pin(port.signal, f"signal{number}")


class RingNode(Node):
    """A ring port with its default sizes."""

    def __init__(self):
        super().__init__(RingPort())
        port = self.port
        self.lanes(port)
        event = port.numbers.event
        for name in ["valid", "status", "channel", "slot"]:
            self.watch(getattr(event, name), f"event_{name}")
        self.watch(port.sender.begin, "leaves")
        self.watch(port.output.level, "bypass_level")
        for name in ["SLACK_OVERFLOW", "LINK_LOST", "CODE_ERRORS", "PACKET_MISROUTED"]:
            self.watch(port.counters[name], f"count_{name.lower()}")


class RingPairNode(Node):
    """A pair. The spare channel has room for packets with 256 bytes of payload, as BULK has: one
    channel has one word a cycle, and two channels fill both rings.
    """

    def __init__(self):
        sizes = dict(packet_words=(64, 64, 1088, 128), send_words=(256, 256, 4096, 512))
        super().__init__(RingPairPort(**sizes, receive_words=(256, 256, 4096, 512)))
        port = self.port
        for number, cable in enumerate(port.cables):
            self.lanes(cable, number)
        for number, node in enumerate(port.nodes):
            for name in ["valid", "status"]:
                self.watch(getattr(node.numbers.event, name), f"event{number}_{name}")
        for name in ["folded", "balanced"]:
            self.watch(getattr(port, name), name)
        slots = [s.open for node in port.nodes for b in node.buffers for s in b.slots]
        self.watch(reduce(or_, slots), "open")
        self.watch(port.counters["SLACK_OVERFLOW"], "count_slack_overflow")


if __name__ == "__main__":
    elaborate_quickly()
    name = sys.argv[2]
    node = {"ring": RingNode, "ring_pair": RingPairNode}[name]()
    write_verilog(pathlib.Path(sys.argv[1]), node, node.ios, f"{name}_node")
