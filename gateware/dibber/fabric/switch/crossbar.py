"""One channel of the switch: every input can reach every output."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.fabric.switch.input import SwitchInput
from dibber.fabric.switch.output import SwitchOutput

class Crossbar(LiteXModule):
    """All inputs and outputs of one channel. The channels of a switch share nothing here.

    A packet goes from input i to output (i + turn) modulo `ports`. It keeps the output until its
    last word, so packets never mix. Inputs that want the same output have turns.

    Parameters
    ----------
    ports : 2, 4, 8 or 16
    guest : one more input behind those of the ports, without a port of its own: its packets go to
            output `turn`

    Attributes
    ----------
    sinks    : list of Endpoint(word_layout), in    by port, then that of the guest; the first word of
               a packet is an order
    sources  : list of Endpoint(word_layout), out   by port; `prefix` is valid on the first word
    down     : Signal(ports), in    the link of a port is not UP
    disabled : Signal(ports), in    a port is disabled
    tick     : Signal(), in         an eighth of the limit went by
    stuck    : Signal(ports), out   as SwitchOutput, by port
    inputs   : list of SwitchInput: their `passed`, `bad` and `drop`
    outputs  : list of SwitchOutput: their `sent`

    Cycles: 3 from an order to the packet's first word at `sources`; 1 for each word after it.
    """
    def __init__(self, ports, guest=False):
        numbers = [*range(ports)] + [0]*guest
        self.inputs  = inputs  = [SwitchInput(ports, number) for number in numbers]
        self.outputs = outputs = [SwitchOutput([one.lane for one in inputs]) for _ in range(ports)]
        for n, one in enumerate(inputs):
            self.add_module(f"input{n}", one)
        for n, output in enumerate(outputs):
            self.add_module(f"output{n}", output)
        self.sinks    = [one.sink for one in inputs]
        self.sources  = [one.source for one in outputs]
        self.down     = Signal(ports)
        self.disabled = Signal(ports)
        self.tick     = Signal()
        self.stuck    = Signal(ports)

        # # #

        self.comb += [
            self.stuck.eq(Cat(*[output.stuck for output in outputs])),
            *[output.request.eq(Cat(*[one.request[n] for one in inputs]))
                for n, output in enumerate(outputs)],
        ]
        for n, one in enumerate(inputs):
            self.comb += [
                one.down.eq(self.down),
                one.disabled.eq(self.disabled),
                one.stuck.eq(self.stuck),
                one.tick.eq(self.tick),
                one.granted.eq(reduce(or_, [output.grant[n] for output in outputs])),
                one.taken.eq(reduce(or_, [output.grant[n] & output.free for output in outputs])),
            ]
