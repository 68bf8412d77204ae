"""Requests of the bridge: bus accesses become memory requests of one DW on the PHY's stream."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from dibber.host import tlp
from dibber.host.transmitter import ReplyComposer, TLPAssembler
from dibber.layouts import completion_layout

def request_layout():
    """A memory request of one DW: a write of `dat`, or a read with `tag`. `adr` counts DWs."""
    return stream.EndpointDescription([("write", 1), ("adr", 30), ("dat", 32), ("tag", 8)])

# Bus Requester ------------------------------------------------------------------------------------

class BusRequester(LiteXModule):
    """Turn each load and store of a bus into a memory request, one at a time.

    A store is acknowledged when the PHY has taken its TLP, a load when its completion has come. So
    the requests keep the order of the bus. A load that is refused gives all ones, as the root
    complex of a PC does. If a master gives up a load, a later answer to it is dropped.

    Parameters
    ----------
    data_width : 64 or 128

    Attributes
    ----------
    bus         : wishbone.Interface, in         32 bits, word addresses below 4 GiB; `sel` is
                  ignored, all bytes are accessed
    source      : Endpoint(request_layout), out
    marked      : Signal, in                     the PHY has taken the write
    completions : Endpoint(completion_layout), in   valid only
    """
    def __init__(self, data_width):
        lanes            = data_width//32
        self.bus         = bus         = wishbone.Interface(data_width=32, adr_width=30)
        self.source      = source      = stream.Endpoint(request_layout())
        self.marked      = Signal()
        self.completions = completions = stream.Endpoint(completion_layout(data_width))

        # # #

        # The tag distinguishes an answer from one to a load that the master gave up.
        tag  = Signal(8)
        word = Signal(32)
        self.comb += [
            source.last.eq(1),
            source.tag.eq(tag),
            Case(completions.lower[2:2 + log2_int(lanes)],
                {n: word.eq(completions.dat[32*n:32*n + 32]) for n in range(lanes)}),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            NextValue(source.adr, bus.adr),
            NextValue(source.dat, bus.dat_w),
            NextValue(source.write, bus.we),
            If(bus.cyc & bus.stb, NextState("ORDER"))
        )
        fsm.act("ORDER",
            source.valid.eq(1),
            If(source.ready,
                NextState("LOAD"),
                If(source.write, NextState("STORE"))
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

# Root Transmitter ---------------------------------------------------------------------------------

class RootTransmitter(LiteXModule):
    """Send requests and completions over one stream; completions have priority.

    It does what TLPTransmitter does for a card, but a request always has one DW and a 3-DW header.

    Parameters
    ----------
    data_width : 64 or 128
    endianness : of payload DWs: "little" or "big" (see tlp.py)

    Attributes
    ----------
    requests : Endpoint(request_layout), in
    replies  : Endpoint(reply_layout), in
    source   : Endpoint(phy_layout), out
    marked   : Signal, out       the PHY takes the last beat of a write

    Cycles: as many as the TLPs have beats; 1 from `requests` to the source, 2 from `replies`.
    """
    def __init__(self, data_width, endianness):
        self.composer  = composer  = ReplyComposer(data_width)
        self.assembler = assembler = TLPAssembler(data_width, endianness)
        self.requests  = request   = stream.Endpoint(request_layout())
        self.replies   = composer.sink
        self.source    = assembler.source
        self.marked    = assembler.marked

        # # #

        reply, sink = composer.source, assembler.sink
        locked  = Signal()  # between the first beat and the last line of a TLP
        held    = Signal()
        answers = Signal()
        header  = sink.header
        self.comb += [
            answers.eq(Mux(locked, held, reply.valid)),
            sink.valid.eq(Mux(answers, reply.valid, request.valid)),
            reply.ready.eq(answers & sink.ready),
            request.ready.eq(~answers & sink.ready),
            sink.last.eq(reply.last | ~answers),
            sink.dat.eq(reply.dat),
            header.eq(reply.header),
            sink.shift.eq(reply.shift),
            sink.dwords.eq(reply.dwords),
            # The DW is always in lane 0, for each address.
            If(~answers,
                sink.dat[:32].eq(request.dat),
                sink.shift.eq(1),
                sink.dwords.eq(Mux(request.write, 4, 3)),
                sink.mark.eq(request.write),
                header[:32].eq(1 | tlp.TYPE_MEMORY << 24),
                header[30].eq(request.write),
                header[32:64].eq(0xf),
                header[40:48].eq(request.tag),
                header[64:96].eq(Cat(Constant(0, 2), request.adr)),
            ),
        ]
        self.sync += [
            If(assembler.begun,
                locked.eq(1),
                held.eq(answers),
            ),
            If(sink.valid & sink.ready,
                locked.eq(~sink.last),
                held.eq(answers),
            ),
        ]
