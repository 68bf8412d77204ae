"""From a stream of TLPs to the block's requests (RQ) and completions (CC)."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from litepcie.common import phy_layout

from dibber.host import tlp
from dibber.phy.ultrascale.streams import RQ_BYTE_ENABLES, RQ_NUMBER, axis_layout

# Requests that the block may hold. Its own room is smaller; a write waits when there are more.
MOST = 255

# Number of a posted request in its sequence number; all other requests have 0.
POSTED = 1

# Whole Packets ------------------------------------------------------------------------------------

class WholePackets(LiteXModule):
    """Pass on a TLP when all of it is there. The block asks for a packet without gaps.

    Parameters
    ----------
    data_width : bits
    depth      : beats, more than the longest TLP has

    Attributes
    ----------
    sink, source : Endpoint(phy_layout)

    Cycles: 2 from the last beat at `sink` to the first one at `source`.
    """
    def __init__(self, data_width, depth):
        self.fifo   = fifo   = stream.SyncFIFO(phy_layout(data_width), depth, buffered=True)
        self.sink   = fifo.sink
        self.source = source = stream.Endpoint(phy_layout(data_width))

        # # #

        whole = Signal(max=depth + 2)  # TLPs whose last beat is there
        self.comb += [
            fifo.source.connect(source, omit={"valid", "ready"}),
            source.valid.eq(fifo.source.valid & (whole != 0)),
            fifo.source.ready.eq(source.ready & (whole != 0)),
        ]
        self.sync += whole.eq(whole + (fifo.sink.valid & fifo.sink.ready & fifo.sink.last) -
            (source.valid & source.ready & source.last))

def report_layout():
    return [("valid", 1), ("number", 4)]

# Departure ----------------------------------------------------------------------------------------

class Departure(LiteXModule):
    """Sort TLPs into requests and completions, and keep their order where it counts.

    The block sends what comes on RQ in its order, and what comes on CC in its order. Between both
    it keeps none. So a completion waits here until the block has reported each write before it.
    What comes behind the completion waits too.

    A request has a header of 4 DWs, a completion one of 3 DWs. So a descriptor takes the place of
    the header, and the payload does not move.

    Parameters
    ----------
    data_width : 128 or 256
    user       : dict of the bits of `user`, see streams
    reports    : sequence numbers that the block can report in a cycle
    depth      : beats that can wait, more than the longest TLP has

    Attributes
    ----------
    sink    : Endpoint(phy_layout), in
    rq, cc  : Endpoint(axis_layout), out
    reports : list of Record(report_layout()), in   a request has left, or no completion can pass it
              any more

    Cycles: 2 from a TLP's last beat at `sink` to its first one at `rq` or `cc`.
    """
    def __init__(self, data_width, user, reports=1, depth=64):
        assert data_width in (128, 256)
        self.buffer  = buffer = WholePackets(data_width, depth)
        self.sink    = buffer.sink
        self.rq      = rq = stream.Endpoint(axis_layout(data_width, user["rq"]))
        self.cc      = cc = stream.Endpoint(axis_layout(data_width, user["cc"]))
        self.reports = [Record(report_layout()) for _ in range(reports)]

        # # #

        beat  = buffer.source
        begun = Signal()  # the first beat of the TLP has left
        dw0, dw1, dw2, dw3 = (beat.dat[32*n:32*n + 32] for n in range(4))
        data  = dw0[30]
        keep  = Cat(*[beat.be[4*n] for n in range(data_width//32)])

        # Order ------------------------------------------------------------------------------------

        under_way  = Signal(max=MOST + 1)  # posted requests that the block has not reported
        completion = Signal()              # the TLP is one
        kind       = Signal()
        allowed    = Signal()
        self.comb += [
            completion.eq(Mux(begun, kind, dw0[24:29] == tlp.TYPE_COMPLETION)),
            allowed.eq(begun | Mux(completion, under_way == 0, under_way < MOST)),
            rq.valid.eq(beat.valid & allowed & ~completion),
            cc.valid.eq(beat.valid & allowed & completion),
            beat.ready.eq(allowed & Mux(completion, cc.ready, rq.ready)),
        ]
        step     = Signal()
        more     = Signal(max=MOST + 2)
        reported = Signal(max=reports + 1)
        self.comb += [
            step.eq(beat.valid & beat.ready),
            # A request counts from its first beat on, because the block may report it early.
            more.eq(under_way + (step & ~begun & ~completion & data)),
            reported.eq(sum(report.valid & (report.number == POSTED) for report in self.reports)),
        ]
        self.sync += [
            If(step,
                begun.eq(~beat.last),
                kind.eq(completion),
            ),
            # A report without a request changes nothing.
            under_way.eq(Mux(more < reported, 0, more - reported)),
        ]

        # Descriptors (PG156 and PG213: "Requester Request", "Completer Completion") ----------------

        attributes = [dw0[20:23], dw0[12:14], dw0[18]]  # traffic class, attributes
        request = Cat(
            Constant(0, 2), dw3[2:], dw2,                      # address
            dw0[0:10], dw0[0:10] == 0,                         # DWs
            data, Constant(0, 3), dw0[14],                     # MEMORY_READ, MEMORY_WRITE; poisoned
            Constant(0, 16), dw1[8:16], Constant(0, 16), Constant(0, 1),  # the block knows its ID
            *attributes, Constant(0, 1))
        answer = Cat(
            dw2[0:7], Constant(0, 9), dw1[0:12], dw1[0:12] == 0, Constant(0, 3),
            dw0[0:10], Constant(0, 1), dw1[13:16], dw0[14], Constant(0, 1), dw2[16:32],
            dw2[8:16], Constant(0, 16), Constant(0, 1),
            *attributes, Constant(0, 1))
        self.comb += [
            rq.last.eq(beat.last),
            rq.keep.eq(keep),
            rq.data.eq(beat.dat),
            cc.last.eq(beat.last),
            cc.keep.eq(keep),
            cc.data.eq(beat.dat),
            If(~begun,
                rq.data[:128].eq(request),
                rq.user[RQ_BYTE_ENABLES].eq(dw1[0:8]),
                If(data, rq.user[RQ_NUMBER:RQ_NUMBER + 4].eq(POSTED)),
                cc.data[:96].eq(answer),
            ),
        ]
