"""BAR 0 behind an AXI-lite interface."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host.bar import BARDecoder

RESPONSE_OKAY, RESPONSE_DECERR = 0, 3  # AXI, A3.4.4

# AXI-Lite BAR -------------------------------------------------------------------------------------

class AXILiteBAR(LiteXModule):
    """Take stores and loads of 32 bits from an AXI-lite interface, and reach the windows of BAR 0.

    A store is answered when it has reached its port, which takes it at once. A load is answered in
    order. A load outside of all windows reads as ones, with a decode error.

    Parameters
    ----------
    data_width   : of the ports, 64 or 128
    address_bits : of the interface, at least those of `bar_size`; an address above BAR 0 is outside
                   of all windows
    bar_size     : bytes of BAR 0
    windows      : as returned by bar_windows()

    Attributes
    ----------
    aw, w, ar   : Endpoint, in    AXI-lite's channels: ("addr"), ("data", "strb"), ("addr")
    b, r        : Endpoint, out   ("resp"), ("data", "resp")
    ports       : dict name -> line_port(data_width)
    ask         : Signal(), out   a load has its value
    landed      : Signal(), in    from the cycle after `ask` on: the load may be answered
    unsupported : Signal(), out   one cycle for each access outside of all windows

    Cycles: 1 from a store to its response, a store every 2 cycles; 10 for a load, plus those until
    `landed`.
    """
    def __init__(self, data_width, address_bits, bar_size, windows):
        lane_bits   = log2_int(data_width//32)
        offset_bits = log2_int(bar_size)
        self.aw     = aw = stream.Endpoint([("addr", address_bits)])
        self.w      = w  = stream.Endpoint([("data", 32), ("strb", 4)])
        self.b      = b  = stream.Endpoint([("resp", 2)])
        self.ar     = ar = stream.Endpoint([("addr", address_bits)])
        self.r      = r  = stream.Endpoint([("data", 32), ("resp", 2)])
        self.bar    = bar = BARDecoder(data_width, bar_size, windows)
        self.ports  = bar.ports
        self.ask    = Signal()
        self.landed = Signal()
        self.unsupported = Signal()

        # # #

        def served(address):
            inside = address[offset_bits:] == 0 if address_bits > offset_bits else 1
            return inside & Reduce("OR", [
                address[log2_int(size):offset_bits] == base//size for base, size in windows.values()])

        # Stores -----------------------------------------------------------------------------------

        stores       = Signal()
        store_served = Signal()
        load_refused = Signal()
        self.comb += [
            stores.eq(aw.valid & w.valid & ~b.valid),
            aw.ready.eq(stores),
            w.ready.eq(stores),
            store_served.eq(served(aw.addr)),
            bar.writes.valid.eq(stores & store_served),
            bar.writes.adr.eq(aw.addr[2 + lane_bits:]),
            bar.writes.dat.eq(Replicate(w.data, data_width//32)),
            # A product would be cut to the bits of its factors: IEEE 1364-2005, 5.4.1.
            bar.writes.be.eq(w.strb << Cat(Constant(0, 2), aw.addr[2:2 + lane_bits])),
        ]
        self.sync += [
            If(b.ready, b.valid.eq(0)),
            If(stores,
                b.valid.eq(1),
                b.resp.eq(Mux(store_served, RESPONSE_OKAY, RESPONSE_DECERR)),
            ),
            self.unsupported.eq((stores & ~store_served) | load_refused),
        ]

        # Loads ------------------------------------------------------------------------------------

        requests, replies = bar.requests, bar.replies
        word = Signal(32)
        lane = Signal(lane_bits)
        self.comb += [
            Case(lane, {n: word.eq(replies.dat[32*n:32*n + 32]) for n in range(data_width//32)}),
            requests.offset.eq(ar.addr[2:]),
            requests.length.eq(1),
            requests.first_be.eq(0xf),
            requests.memory.eq(1),
            requests.refused.eq(~served(ar.addr)),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            requests.valid.eq(ar.valid),
            # An unsupported store in the same cycle is counted first: one pulse is one access.
            If(stores & ~store_served, requests.valid.eq(0)),
            ar.ready.eq(requests.valid & requests.ready),
            NextValue(lane, ar.addr[2:2 + lane_bits]),
            If(ar.ready,
                load_refused.eq(requests.refused),
                NextState("LOAD")
            )
        )
        fsm.act("LOAD",
            replies.ready.eq(1),
            NextValue(r.data, Mux(replies.status == 0, word, 2**32 - 1)),
            NextValue(r.resp, Mux(replies.status == 0, RESPONSE_OKAY, RESPONSE_DECERR)),
            If(replies.valid,
                self.ask.eq(1),
                NextState("LANDED")
            )
        )
        fsm.act("LANDED",
            If(self.landed, NextState("ANSWER"))
        )
        fsm.act("ANSWER",
            r.valid.eq(1),
            If(r.ready, NextState("IDLE"))
        )
