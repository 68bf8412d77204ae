"""From the bytes of a transfer to packets."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, PACKET_FLAG, STATUS
from dibber.layouts import job_end_layout, payload_layout, send_layout
from dibber.common.places import Place, Row

from dibber.deposit.checksum import Checksum
from dibber.deposit.epochs import watch_port
from dibber.deposit.packer import dense_layout

# Layout -------------------------------------------------------------------------------------------

def transfer_layout():
    """A transfer to be cut into packets, from `skip` on; `length` bytes are to come.

    `flags` are those of its last packet; with a `status` that is not OK it ends before it starts.
    """
    return stream.EndpointDescription(
        [("node", 8), ("incarnation", 8), ("epoch", 4), ("psn", 16), ("flags", 8), ("levels", 3),
         ("endpoint", 8), ("slot", 8), ("tag", 10), ("skip", 32), ("length", 32), ("status", 8),
         ("response", 1), ("indirect", 1), ("target", 8), ("message", 32)])

# Packetizer ---------------------------------------------------------------------------------------

class Packetizer(LiteXModule):
    """Cut a transfer's bytes into packets, at all multiples of PACKET_PAYLOAD.

    A packet is told of before its payload is here, so that its header is on its way meanwhile. A
    transfer of 0 bytes is one packet without payload.

    A transfer that fails has no last packet: the one that was told of is made void by
    `payload.error`. Nothing is told of a transfer whose walk fails at its first piece. One that is
    stale when it ends is REWOUND, whatever else it is; its packets find out for themselves.

    Attributes
    ----------
    transfers : Endpoint(transfer_layout), in
    begins    : Endpoint([("good", 1)]), in     of each transfer for which there is a line: its
                walk's first piece is there, and
                                                is `good`
    watch     : watch_port(), out               the transfer that is being cut, to `Epochs`
    sink      : Endpoint(dense_layout), in      nothing for transfers of 0 bytes or with a status
    payload   : Endpoint(payload_layout), out
    packets   : Endpoint(send_layout), out      before the packet's first line
    done      : Endpoint(job_end_layout), out

    Cycles: a line a cycle, from packet to packet too; 2 between transfers; 2 from `begins` to
    `packets`, and from a packet's last line to the next one; 10 from the last line to `done`, where
    the checksum is awaited.
    """
    def __init__(self, data_width):
        self.transfers = transfers = stream.Endpoint(transfer_layout())
        self.begins    = begins    = stream.Endpoint([("good", 1)])
        self.watch     = watch     = watch_port()
        self.sink      = sink      = stream.Endpoint(dense_layout(data_width))
        self.payload   = payload   = stream.Endpoint(payload_layout(data_width))
        self.packets   = stream.Endpoint(send_layout())
        self.done      = done      = stream.Endpoint(job_end_layout())

        # # #

        width = data_width//8
        lines = C.PACKET_PAYLOAD//width

        self.queue = queue = Place(send_layout())
        self.ended = ended = Row([("tag", 10), ("status", 8), ("psn", 16), ("node", 4), ("summed", 1)], 2)
        self.comb += queue.source.connect(self.packets)

        # Packet: `rest` bytes of the transfer are to come from its start on. `line` is its next
        # line's place. That a line was the packet's last is heard a cycle later by those of many
        # bits, which show the next packet's meanwhile.
        line    = Signal(max=lines)
        rest    = Signal(32)
        skip    = Signal(32)
        psn     = Signal(16)
        moves   = Signal()
        to_come = Signal(32)
        place   = Signal(32)
        number  = Signal(16)
        busy    = Signal()
        free    = Signal()
        fresh   = Signal()  # it is the transfer's first
        known   = Signal()  # it was told of
        tell    = Signal()
        final   = Signal()  # it is the transfer's last, if that does not fail
        room    = Signal()  # a line may go
        failed  = Signal()
        close   = Signal()  # the packet ends with this line
        empty   = Signal()
        push    = Signal()
        finish  = Signal()
        taken   = Signal()
        self.comb += [
            failed.eq(sink.status != STATUS.OK),
            close.eq(sink.last | (line == lines - 1)),
            free.eq(queue.sink.ready & ended.sink.ready),
            taken.eq(sink.valid & sink.ready),

            # `final`'s two comparisons are made side by side: none waits for which it is.
            number.eq(psn + moves),
            place.eq(skip + Mux(moves, C.PACKET_PAYLOAD, 0)),
            to_come.eq(rest - Mux(moves, C.PACKET_PAYLOAD, 0)),
            final.eq(Mux(moves, rest <= 2*C.PACKET_PAYLOAD, rest <= C.PACKET_PAYLOAD)),

            # A line that has nothing to make void goes no further.
            tell.eq(busy & ~known & (~fresh | (begins.valid & begins.good)) & ~(sink.valid & failed)),
            room.eq(busy & (~sink.last | ended.sink.ready) & (known | (tell & queue.sink.ready) | failed)),
            payload.valid.eq(room & sink.valid & (~failed | known)),
            payload.dat.eq(sink.dat),
            payload.bytes.eq(sink.bytes),
            payload.last.eq(close),
            payload.error.eq(failed),
            sink.ready.eq(room & (payload.ready | (failed & ~known))),
            begins.ready.eq(taken & sink.last),

            empty.eq(~busy & transfers.valid & (transfers.status == STATUS.OK) &
                (transfers.length == 0) & free),
            push.eq(empty | tell),
            finish.eq(empty | (taken & sink.last) |
                (~busy & transfers.valid & (transfers.status != STATUS.OK) & free)),
            transfers.ready.eq(finish),

            queue.sink.valid.eq(push),
            queue.sink.last.eq(1),
            transfers.connect(queue.sink,
                keep={"node", "incarnation", "epoch", "levels", "endpoint", "slot", "indirect", "target", "message"}),
            If(busy,
                queue.sink.psn.eq(number),
                queue.sink.skip.eq(place),
                queue.sink.length.eq(Mux(final, to_come, C.PACKET_PAYLOAD)),
            ).Else(
                queue.sink.psn.eq(transfers.psn),
                queue.sink.skip.eq(0),
                queue.sink.length.eq(0),
            ),
            queue.sink.flags.eq(
                Mux(queue.sink.psn == 0, PACKET_FLAG.FIRST, 0) |
                Mux(transfers.response, PACKET_FLAG.RESPONSE, 0) |
                Mux(busy & ~final, 0, transfers.flags | PACKET_FLAG.LAST)),

            ended.sink.valid.eq(finish),
            ended.sink.last.eq(1),
            ended.sink.tag.eq(transfers.tag),
            ended.sink.node.eq(transfers.node),
            ended.sink.psn.eq(queue.sink.psn + (empty | (taken & close & ~failed))),
            ended.sink.status.eq(Mux(watch.stale, STATUS.REWOUND, Mux(busy, sink.status, transfers.status))),
            ended.sink.summed.eq(busy),

            watch.valid.eq(transfers.valid),
            watch.leave.eq(finish),
            *[getattr(watch, name).eq(getattr(transfers, name)) for name in ("node", "incarnation", "epoch")],
        ]
        self.sync += [
            moves.eq(taken & close),
            rest.eq(to_come),
            skip.eq(place),
            psn.eq(number),
            If(~busy,
                busy.eq(transfers.valid & (transfers.status == STATUS.OK) & (transfers.length != 0)),
                rest.eq(transfers.length),
                skip.eq(transfers.skip),
                psn.eq(transfers.psn),
                line.eq(0),
                fresh.eq(1),
                known.eq(0),
            ).Elif(taken,
                line.eq(line + 1),
                known.eq(~close),
                If(close, fresh.eq(0)),
                If(sink.last, busy.eq(0))
            ).Elif(tell & queue.sink.ready,
                known.eq(1)
            )
        ]

        # End. Checksums that wait belong to ends that wait, so that there is room for them.
        self.checksum = checksum = Checksum(data_width, depth=4)
        summed        = ended.source.summed
        self.comb += [
            checksum.valid.eq(taken),
            checksum.last.eq(sink.last),
            checksum.dat.eq(sink.dat),
            checksum.bytes.eq(sink.bytes),
            ended.source.connect(done, keep={"tag", "status", "psn", "node"}),
            done.last.eq(1),
            done.valid.eq(ended.source.valid & (~summed | checksum.source.valid)),
            # The sum of nothing is 0.
            done.checksum.eq(Mux(summed, checksum.source.checksum, 0xffff)),
            ended.source.ready.eq(done.valid & done.ready),
            checksum.source.ready.eq(ended.source.ready & summed),
        ]
