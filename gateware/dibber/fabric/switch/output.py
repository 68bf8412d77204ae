"""One channel of one output of the switch: which input has it, and the word that leaves."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one
from dibber.fabric.switch.input import lane_layout
from dibber.layouts import word_layout

# Turn ---------------------------------------------------------------------------------------------

class PacketTurn(LiteXModule):
    """Round robin among inputs, a packet at a time. The grant is a register and stays until `end`.

    Parameters
    ----------
    clients : how many

    Attributes
    ----------
    request : Signal(clients), in
    closed  : Signal(), in            grant to nobody
    end     : Signal(), in            the holder's packet ends
    grant   : Signal(clients), out    one-hot or 0: the first requesting client behind the former
              holder

    Cycles: 1 from `request` or `end` to `grant`. A client whose packet ends does not request in the
    same cycle.
    """
    def __init__(self, clients):
        self.request = request = Signal(clients)
        self.closed  = Signal()
        self.end     = Signal()
        self.grant   = grant = Signal(clients)

        # # #

        # Clients with a higher number than the last holder come before those with a lower one.
        above  = Signal(clients)
        later  = Signal(clients)  # requests above the last holder
        choice = Signal(clients)
        self.comb += [
            later.eq(request & above),
            choice.eq(Mux(later != 0, lowest_one(later), lowest_one(request))),
        ]
        self.sync += [
            If(self.end, grant.eq(0)),
            If(((grant == 0) | self.end) & ~self.closed,
                grant.eq(choice),
                If(request != 0,
                    above.eq(Cat(*[choice[:n] != 0 if n else 0 for n in range(clients)])),
                ),
            ),
        ]

# Switch Output ------------------------------------------------------------------------------------

class SwitchOutput(LiteXModule):
    """Take the packets of one input after the other, and register their words.

    A packet that its input cuts ends with one more word, which is bad. This word waits until the
    register is free. Meanwhile no other packet begins. A cut packet of which no word came leaves
    nothing.

    Parameters
    ----------
    lanes : list of Record(lane_layout), of all inputs. They are used as they are, because a copy
            for each output would make the Verilog of 16 ports four times as long

    Attributes
    ----------
    request : Signal(ports), in    inputs with a packet for this output
    grant   : Signal(ports), out   one-hot: the input whose words are taken
    free    : Signal(), out        the register takes a word
    stuck   : Signal(), out        a packet was cut while the register was not free, and it has not
              been free since
    source  : Endpoint(word_layout), out   `prefix` is the number of prefix words that are left
    sent    : Signal(), out        the last word of a packet leaves

    Cycles: 1 from `request` to `grant`, 1 from a word to `source`; a word a cycle.
    """
    def __init__(self, lanes):
        ports        = len(lanes)
        self.request = Signal(ports)
        self.free    = free = Signal()
        self.stuck   = Signal()
        self.source  = source = stream.Endpoint(word_layout())
        self.sent    = Signal()

        # # #

        self.turn  = turn  = PacketTurn(ports)
        self.grant = grant = turn.grant

        # The lane of the granted input.
        lane    = Record(lane_layout())
        begun   = Signal()  # a word of the packet came, and its last word did not
        cutting = Signal()  # the bad word of a cut packet waits for the register
        takes   = Signal()
        self.comb += [
            *[getattr(lane, name).eq(reduce(or_, [
                Mux(grant[n], getattr(one, name), 0) for n, one in enumerate(lanes)]))
                for name, _ in lane_layout()],
            free.eq(~source.valid | source.ready),
            takes.eq(lane.valid & free),
            turn.request.eq(self.request),
            turn.end.eq((takes & lane.last) | lane.cut),
            # In the next cycle the register is free for the cut word, or the output is stuck. Then
            # its inputs request nothing.
            turn.closed.eq(lane.cut),
            self.sent.eq(source.valid & source.ready & source.last),
        ]
        self.sync += [
            If(free,
                source.valid.eq(lane.valid | cutting),
                source.first.eq(~begun),
                source.last.eq(lane.last | cutting),
                source.bad.eq(lane.bad | cutting),
                source.data.eq(lane.data),
                source.prefix.eq(lane.behind),
                begun.eq((begun | lane.valid) & ~(lane.valid & lane.last) & ~cutting),
                cutting.eq(0),
                self.stuck.eq(0),
            ),
            If(lane.cut,
                cutting.eq(begun),
                self.stuck.eq(~free)
            ),
        ]
