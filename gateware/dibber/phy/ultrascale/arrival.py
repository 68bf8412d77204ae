"""From the block's requests (CQ) and completions (RC) to one stream of TLPs."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from litepcie.common import phy_layout

from dibber.host import tlp
from dibber.phy.ultrascale.streams import (
    CAS, CQ_DISCONTINUE, CQ_FIRST_BE, CQ_LAST_BE, FETCH_ADD, IO_READ, IO_WRITE, MEMORY_READ,
    MEMORY_WRITE, RC_DISCONTINUE, RC_NORMAL, RC_POISONED, READ_LOCKED, SWAP, axis_layout)

# Status of a completion that the block made up, because it has no other: Completer Abort
# (PCIe Base 3.0, table 2-29).
STATUS_ABORT = 0b100

class Arrival(LiteXModule):
    """Make one stream of TLPs of what the block received, in the order in which it shows it.

    The block begins a completion when all posted requests that came before it have left on CQ
    (PG156 and PG213, "Receive Transaction Ordering"). Here one packet is taken at a time, and
    nothing waits between the block and the one stream. So no completion passes a posted request.
    If both have a packet, they take turns.

    A descriptor of CQ becomes a header of 4 DWs, one of RC a header of 3 DWs, in its place. So the
    payload does not move.

    | from the block | becomes |
    |---|---|
    | memory request, atomic operation, locked read | the same TLP |
    | I/O request | a locked read without payload: the card refuses both |
    | message, configuration | nothing. The card does not ask the block for them |
    | completion with an error code but "poisoned" | one without payload, with its status or Completer Abort |
    | a packet with `discontinue` at its end | a TLP with a beat too many, which the receiver counts as malformed |

    Parameters
    ----------
    data_width : 128 or 256
    user       : dict of the bits of `user`, see streams

    Attributes
    ----------
    cq, rc : Endpoint(axis_layout), in
    source : Endpoint(phy_layout), out. The requester of a completion is 0: the block has compared
             it with the card's ID, which it does not show

    Cycles: 1
    """
    def __init__(self, data_width, user):
        assert data_width in (128, 256)
        self.cq     = cq = stream.Endpoint(axis_layout(data_width, user["cq"]))
        self.rc     = rc = stream.Endpoint(axis_layout(data_width, user["rc"]))
        self.pipe   = pipe = stream.PipeValid(phy_layout(data_width))
        self.source = pipe.source

        # # #

        # Turns ------------------------------------------------------------------------------------

        REQUEST, COMPLETION = 0, 1
        begun, granted, choice = Signal(), Signal(), Signal()
        out   = pipe.sink
        valid, last, ready, step = Signal(), Signal(), Signal(), Signal()
        data, keep = Signal(data_width), Signal(data_width//32)
        damaged = Signal()
        self.comb += [
            If(begun,
                choice.eq(granted)
            ).Elif(granted == REQUEST,
                choice.eq(rc.valid)
            ).Else(
                choice.eq(~cq.valid)
            ),
            If(choice == COMPLETION,
                valid.eq(rc.valid), last.eq(rc.last), data.eq(rc.data), keep.eq(rc.keep),
                damaged.eq(rc.user[RC_DISCONTINUE]),
                rc.ready.eq(ready),
            ).Else(
                valid.eq(cq.valid), last.eq(cq.last), data.eq(cq.data), keep.eq(cq.keep),
                damaged.eq(cq.user[CQ_DISCONTINUE]),
                cq.ready.eq(ready),
            ),
            step.eq(valid & ready),
        ]
        self.sync += If(step, begun.eq(~last), granted.eq(choice))

        # Headers ----------------------------------------------------------------------------------

        d0, d1, d2, d3 = (data[32*n:32*n + 32] for n in range(4))
        # Of a request and of a completion.
        request, answer   = Signal(128), Signal(96)
        types             = Signal(5)
        payload           = Signal()  # the request has some
        alone, alone_next = Signal(), Signal()  # only the header of this packet is passed on
        drop,  drop_next  = Signal(), Signal()  # nothing of it is
        kind              = d2[11:15]
        code              = d0[12:16]
        refused           = Signal()  # the completion has no payload to be used
        status            = Signal(3)
        self.comb += [
            types.eq(tlp.TYPE_MEMORY),
            If(choice == REQUEST,
                Case(kind, {
                    MEMORY_READ  : [],
                    MEMORY_WRITE : payload.eq(1),
                    FETCH_ADD    : [types.eq(tlp.TYPE_FETCH_ADD), payload.eq(1)],
                    SWAP         : [types.eq(tlp.TYPE_SWAP), payload.eq(1)],
                    CAS          : [types.eq(tlp.TYPE_CAS), payload.eq(1)],
                    READ_LOCKED  : types.eq(tlp.TYPE_READ_LOCKED),
                    IO_READ      : [types.eq(tlp.TYPE_READ_LOCKED), alone_next.eq(1)],
                    IO_WRITE     : [types.eq(tlp.TYPE_READ_LOCKED), alone_next.eq(1)],
                    "default"    : drop_next.eq(1),
                })
            ).Else(
                alone_next.eq(refused)
            ),
            refused.eq((code != RC_NORMAL) & (code != RC_POISONED) | (d1[11:14] != tlp.STATUS_SUCCESS)),
            status.eq(d1[11:14]),
            If(refused & (d1[11:14] == tlp.STATUS_SUCCESS), status.eq(STATUS_ABORT)),
            request.eq(Cat(
                d2[0:10], Constant(0, 2), d3[28:30], Constant(0, 4),
                d3[30], Constant(0, 1), d3[25:28], Constant(0, 1),
                types, Constant(1, 1), payload, Constant(0, 1),
                cq.user[CQ_FIRST_BE], cq.user[CQ_LAST_BE], d3[0:8], d2[16:32],
                d1, Constant(0, 2), d0[2:32])),
            answer.eq(Cat(
                Mux(refused, 0, d1[0:10]), Constant(0, 2), d2[28:30],
                (d1[14] | (code == RC_POISONED)) & ~refused, Constant(0, 3),
                d2[30], Constant(0, 1), d2[25:28], Constant(0, 1),
                Constant(tlp.TYPE_COMPLETION, 5), Constant(0, 1), ~refused & (d1[0:11] != 0), Constant(0, 1),
                d0[16:28], Constant(0, 1), status, d2[8:24],
                d0[0:7], Constant(0, 1), d2[0:8], Constant(0, 16))),
        ]

        # Beats ------------------------------------------------------------------------------------

        surplus = Signal()  # a damaged packet gets one more beat
        passed  = Signal()  # the beat goes on
        self.comb += [
            passed.eq(Mux(begun, ~alone & ~drop, ~drop_next)),
            ready.eq(~surplus & (out.ready | ~passed)),
            out.valid.eq(surplus | (valid & passed)),
            out.first.eq(~begun & ~surplus),
            out.last.eq(surplus | (~begun & alone_next) | (last & ~damaged)),
            out.dat.eq(data),
            *[out.be[4*n:4*n + 4].eq(Replicate(keep[n], 4)) for n in range(data_width//32)],
            If(~begun,
                If(choice == COMPLETION, out.dat[:96].eq(answer)).Else(out.dat[:128].eq(request)),
                If(alone_next,
                    *[out.be[4*n:4*n + 4].eq(Mux((choice == REQUEST) | (n < 3), 0xf, 0) if n < 4 else 0)
                        for n in range(data_width//32)]
                ),
            ),
            If(surplus, out.be.eq(2**len(out.be) - 1)),
        ]
        self.sync += [
            If(step & ~begun, alone.eq(alone_next), drop.eq(drop_next)),
            If(surplus,
                If(out.ready, surplus.eq(0))
            ).Elif(step & last & damaged,
                # Of a packet whose header was all, the last beat was not passed on.
                surplus.eq(Mux(begun, ~alone & ~drop, ~alone_next & ~drop_next)),
            ),
        ]
