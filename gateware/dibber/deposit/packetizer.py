# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""From the bytes of a transfer to packets."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, PACKET_FLAG, STATUS
from dibber.layouts import job_done_layout, payload_layout, send_layout

from dibber.deposit.packer import dense_layout

# Layout -------------------------------------------------------------------------------------------

def transfer_layout():
    """A transfer to be cut into packets, from `skip` on; `length` bytes are to come.

    `flags` are those of its last packet; with a `status` that is not OK it ends before it starts.
    """
    return stream.EndpointDescription(
        [("node", 16), ("incarnation", 8), ("psn", 16), ("flags", 8), ("levels", 2),
         ("endpoint", 8), ("slot", 8), ("tag", 8), ("skip", 32), ("length", 32), ("status", 8)])

# Packetizer ---------------------------------------------------------------------------------------

class Packetizer(LiteXModule):
    """Cut a transfer's bytes into packets of PACKET_PAYLOAD bytes, the last one shorter.

    A transfer of 0 bytes is one packet without payload. A transfer that fails has no last packet: the
    one that is open, if it has any line, is made void by `payload.error`.

    Attributes
    ----------
    transfers : Endpoint(transfer_layout), in
    sink      : Endpoint(dense_layout), in      nothing for transfers of 0 bytes or with a status
    payload   : Endpoint(payload_layout), out
    packets   : Endpoint(send_layout), out      valid after the packet's last line was taken
    done      : Endpoint(job_done_layout), out

    Cycles: a line a cycle, from packet to packet too; 2 between transfers; 1 from last line to `packets`.
    """
    def __init__(self, data_width):
        self.transfers = transfers = stream.Endpoint(transfer_layout())
        self.sink      = sink      = stream.Endpoint(dense_layout(data_width))
        self.payload   = payload   = stream.Endpoint(payload_layout(data_width))
        self.packets   = stream.Endpoint(send_layout())
        self.done      = stream.Endpoint(job_done_layout())

        # # #

        width = data_width//8
        lines = C.PACKET_PAYLOAD//width

        self.queue = queue = stream.SyncFIFO(send_layout(), 2)
        self.ended = ended = stream.SyncFIFO(job_done_layout(), 2)
        self.comb += [
            queue.source.connect(self.packets),
            ended.source.connect(self.done),
        ]

        # Packet: `line` lines of it have left, `rest` bytes of the transfer are to come from its start on.
        line    = Signal(max=lines)
        rest    = Signal(32)
        skip    = Signal(32)
        psn     = Signal(16)
        busy    = Signal()
        free    = Signal()
        final   = Signal()  # the transfer's last packet
        failed  = Signal()
        close   = Signal()  # the packet ends with this line
        empty   = Signal()
        push    = Signal()
        finish  = Signal()
        self.comb += [
            final.eq(rest <= C.PACKET_PAYLOAD),
            failed.eq(sink.status != STATUS.OK),
            close.eq(sink.last | (line == lines - 1)),
            free.eq(queue.sink.ready & ended.sink.ready),

            # A line that has nothing to make void goes no further.
            payload.valid.eq(busy & sink.valid & (~close | free) & ~(failed & (line == 0))),
            payload.dat.eq(sink.dat),
            payload.bytes.eq(sink.bytes),
            payload.last.eq(close),
            payload.error.eq(failed),
            sink.ready.eq(busy & (~close | free) & (payload.ready | (failed & (line == 0)))),

            empty.eq(~busy & transfers.valid & (transfers.status == STATUS.OK) &
                (transfers.length == 0) & free),
            push.eq(empty | (sink.valid & sink.ready & close & ~failed)),
            finish.eq(empty | (sink.valid & sink.ready & sink.last) |
                (~busy & transfers.valid & (transfers.status != STATUS.OK) & free)),
            transfers.ready.eq(finish),

            queue.sink.valid.eq(push),
            queue.sink.last.eq(1),
            transfers.connect(queue.sink, keep={"node", "incarnation", "levels", "endpoint", "slot"}),
            If(busy,
                queue.sink.psn.eq(psn),
                queue.sink.skip.eq(skip),
                queue.sink.length.eq(Mux(final, rest, C.PACKET_PAYLOAD)),
            ).Else(
                queue.sink.psn.eq(transfers.psn),
                queue.sink.skip.eq(0),
                queue.sink.length.eq(0),
            ),
            queue.sink.flags.eq(
                Mux(queue.sink.psn == 0, PACKET_FLAG.FIRST, 0) |
                Mux(busy & ~final, 0, transfers.flags | PACKET_FLAG.LAST)),

            ended.sink.valid.eq(finish),
            ended.sink.last.eq(1),
            ended.sink.tag.eq(transfers.tag),
            ended.sink.psn.eq(queue.sink.psn + push),
            ended.sink.status.eq(Mux(busy, sink.status, transfers.status)),
        ]
        self.sync += [
            If(~busy,
                busy.eq(transfers.valid & (transfers.status == STATUS.OK) & (transfers.length != 0)),
                rest.eq(transfers.length),
                skip.eq(transfers.skip),
                psn.eq(transfers.psn),
                line.eq(0),
            ).Elif(sink.valid & sink.ready,
                line.eq(line + 1),
                If(close,
                    line.eq(0),
                    psn.eq(psn + 1),
                    skip.eq(skip + C.PACKET_PAYLOAD),
                    rest.eq(rest - C.PACKET_PAYLOAD),
                ),
                If(sink.last, busy.eq(0))
            )
        ]
