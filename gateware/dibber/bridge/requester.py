# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""From a Wishbone bus to memory requests of one DW."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from dibber.layouts import completion_layout, read_layout, write_layout

# Bus Requester ------------------------------------------------------------------------------------

class BusRequester(LiteXModule):
    """Turn each load and store of a bus into one memory request, one at a time.

    A store is acknowledged when the PHY has taken its TLP, a load when its completion has come: what the bus
    does leaves in that order. A load that is refused gives all ones, as a PC's root complex answers. A master
    that gives up before its load is answered is not told of that answer later.

    Parameters
    ----------
    data_width : 64 or 128

    Attributes
    ----------
    bus         : wishbone.Interface, in         32 bits, addressing words; `sel` is taken for all ones
    writes      : Endpoint(write_layout), out
    marked      : Signal, in                     the write has been taken by the PHY
    reads       : Endpoint(read_layout), out
    completions : Endpoint(completion_layout), in   valid only
    """
    def __init__(self, data_width):
        lanes            = data_width//32
        self.bus         = bus         = wishbone.Interface(data_width=32, adr_width=30)
        self.writes      = writes      = stream.Endpoint(write_layout(data_width))
        self.marked      = Signal()
        self.reads       = reads       = stream.Endpoint(read_layout())
        self.completions = completions = stream.Endpoint(completion_layout(data_width))

        # # #

        # The tag tells the answer from that to a load which the master gave up.
        tag     = Signal(8)
        address = Cat(Constant(0, 2), bus.adr)
        word    = Signal(32)
        self.comb += [
            writes.address.eq(address),
            writes.length.eq(4),
            writes.mark.eq(1),
            writes.last.eq(1),
            writes.dat.eq(Replicate(bus.dat_w, lanes)),
            reads.address.eq(address),
            reads.length.eq(4),
            reads.last.eq(1),
            reads.tag.eq(tag),
            Case(completions.lower[2:2 + log2_int(lanes)],
                {n: word.eq(completions.dat[32*n:32*n + 32]) for n in range(lanes)}),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            If(bus.cyc & bus.stb,
                writes.valid.eq(bus.we),
                reads.valid.eq(~bus.we),
                If(writes.valid & writes.ready, NextState("STORE")),
                If(reads.valid & reads.ready, NextState("LOAD")),
            )
        )
        fsm.act("STORE",
            If(self.marked,
                bus.ack.eq(1),
                NextState("IDLE")
            )
        )
        fsm.act("LOAD",
            NextValue(bus.dat_r, Mux(completions.status == 0, word, 2**32 - 1)),
            If(completions.valid & (completions.tag == tag),
                NextState("LOADED")
            ).Elif(~bus.cyc,
                NextValue(tag, tag + 1),
                NextState("IDLE")
            )
        )
        fsm.act("LOADED",
            bus.ack.eq(1),
            NextValue(tag, tag + 1),
            NextState("IDLE")
        )
