"""Packetizer: the bytes of a transfer are cut into packets."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, PACKET_FLAG, STATUS
from dibber.layouts import job_end_layout, node_bits, payload_layout, send_layout
from dibber.common.places import Place, Row

from dibber.deposit.checksum import Checksum
from dibber.deposit.epochs import watch_port
from dibber.deposit.packer import dense_layout
from dibber.packet.split import LINKS, linked_send_layout

# Layout -------------------------------------------------------------------------------------------

def transfer_layout(links=1):
    """A transfer to be cut into packets, from `skip` on; `length` is the bytes from there.

    `flags` are those of its last packet. With a `status` other than OK it ends before it starts.
    With two links it is a part of a job (`JobTurns`): `more` parts follow, so its last packet has
    neither LAST nor these flags.
    """
    part = [] if links == 1 else [("more", 1), ("link", log2_int(LINKS))]
    return stream.EndpointDescription(
        [("node", 8), ("incarnation", 8), ("epoch", 4), ("psn", 16), ("flags", 8), ("levels", 3),
         ("endpoint", 8), ("slot", 8), ("tag", 10), ("skip", 32), ("length", 32), ("status", 8),
         ("response", 1), ("indirect", 1), ("target", 8), ("message", 32), *part])

# Packetizer ---------------------------------------------------------------------------------------

class Packetizer(LiteXModule):
    """Cut the bytes of a transfer into packets, at all multiples of PACKET_PAYLOAD.

    A packet is announced at `packets` before its payload is here, so that its header can leave
    meanwhile. A transfer of 0 bytes is one packet without payload.

    A transfer that fails has no last packet: the packet that was announced is made void by
    `payload.error`. If the walk fails at its first piece, no packet is announced. A transfer that
    is stale at its end has the status REWOUND, before every other status; the flow drops its
    packets.

    Parameters
    ----------
    data_width : bits of a payload line
    links      : of the card, 1 or 2

    Attributes
    ----------
    transfers : Endpoint(transfer_layout), in
    begins    : Endpoint([("good", 1)]), in     for each transfer with bytes: the first piece of its
                walk has come, and it is `good`
    watch     : watch_port(), out               the transfer that is being cut, to `Epochs`
    sink      : Endpoint(dense_layout), in      no lines for transfers of 0 bytes or with a status
    payload   : Endpoint(payload_layout), out
    packets   : Endpoint(send_layout), out      before the packet's first line; with two links
                Endpoint(linked_send_layout)
    done      : Endpoint(job_end_layout), out

    Cycles: one line a cycle, also from packet to packet; 2 between transfers; 2 from `begins` to
    `packets`, and from a packet's last line to the next packet; 10 from the last line to `done`,
    which waits for the checksum.
    """
    def __init__(self, data_width, links=1):
        layout = send_layout() if links == 1 else linked_send_layout()
        self.transfers = transfers = stream.Endpoint(transfer_layout(links))
        self.begins    = begins    = stream.Endpoint([("good", 1)])
        self.watch     = watch     = watch_port()
        self.sink      = sink      = stream.Endpoint(dense_layout(data_width))
        self.payload   = payload   = stream.Endpoint(payload_layout(data_width))
        self.packets   = stream.Endpoint(layout)
        self.done      = done      = stream.Endpoint(job_end_layout())

        # # #

        width = data_width//8
        lines = C.PACKET_PAYLOAD//width

        self.queue = queue = Place(layout)
        self.ended = ended = Row(
            [("tag", 10), ("status", 8), ("psn", 16), ("node", node_bits()), ("summed", 1)], 2)
        self.comb += queue.source.connect(self.packets)

        # Packet. `bytes_left`, `skip` and `psn` are wide, so they are updated one cycle after the
        # packet's last line. In that cycle (`packet_ended`) the next packet's values are computed
        # from the old ones: `bytes_left_now`, `skip_now`, `psn_now`. `line` is the position of the
        # next line in its packet.
        line           = Signal(max=lines)
        bytes_left     = Signal(32)
        skip           = Signal(32)
        psn            = Signal(16)
        packet_ended   = Signal()
        bytes_left_now = Signal(32)
        skip_now       = Signal(32)
        psn_now        = Signal(16)
        busy           = Signal()
        free           = Signal()
        first_packet   = Signal()  # first packet of the transfer
        announced      = Signal()
        announce       = Signal()
        last_packet    = Signal()  # the transfer's last packet, if the transfer does not fail
        may_pass       = Signal()  # a line may pass
        failed         = Signal()
        packet_ends    = Signal()  # the packet ends with this line
        empty_transfer = Signal()
        push           = Signal()
        transfer_ends  = Signal()
        taken          = Signal()
        goes_on        = busy & ~last_packet  # packets of the same job follow
        if links > 1:
            goes_on = goes_on | transfers.more
        self.comb += [
            failed.eq(sink.status != STATUS.OK),
            packet_ends.eq(sink.last | (line == lines - 1)),
            free.eq(queue.sink.ready & ended.sink.ready),
            taken.eq(sink.valid & sink.ready),

            # Both comparisons are made in parallel, before it is known which one is needed.
            psn_now.eq(psn + packet_ended),
            skip_now.eq(skip + Mux(packet_ended, C.PACKET_PAYLOAD, 0)),
            bytes_left_now.eq(bytes_left - Mux(packet_ended, C.PACKET_PAYLOAD, 0)),
            last_packet.eq(
                Mux(
                    packet_ended, bytes_left <= 2*C.PACKET_PAYLOAD,
                    bytes_left <= C.PACKET_PAYLOAD)),

            # The error line of a packet that was not announced goes no further.
            announce.eq(
                busy & ~announced & (
                    ~first_packet | (begins.valid & begins.good)) & ~(sink.valid & failed)),
            may_pass.eq(
                busy & (~sink.last | ended.sink.ready) &
                (announced | (announce & queue.sink.ready) | failed)),
            payload.valid.eq(may_pass & sink.valid & (~failed | announced)),
            payload.dat.eq(sink.dat),
            payload.bytes.eq(sink.bytes),
            payload.last.eq(packet_ends),
            payload.error.eq(failed),
            sink.ready.eq(may_pass & (payload.ready | (failed & ~announced))),
            begins.ready.eq(taken & sink.last),

            empty_transfer.eq(~busy & transfers.valid & (transfers.status == STATUS.OK) &
                (transfers.length == 0) & free),
            push.eq(empty_transfer | announce),
            transfer_ends.eq(empty_transfer | (taken & sink.last) |
                (~busy & transfers.valid & (transfers.status != STATUS.OK) & free)),
            transfers.ready.eq(transfer_ends),

            queue.sink.valid.eq(push),
            queue.sink.last.eq(1),
            transfers.connect(queue.sink,
                keep={
                    "node", "incarnation", "epoch", "levels", "endpoint", "slot", "indirect",
                    "target", "message", *([] if links == 1 else ["link"])}),
            If(busy,
                queue.sink.psn.eq(psn_now),
                queue.sink.skip.eq(skip_now),
                queue.sink.length.eq(Mux(last_packet, bytes_left_now, C.PACKET_PAYLOAD)),
            ).Else(
                queue.sink.psn.eq(transfers.psn),
                queue.sink.skip.eq(0),
                queue.sink.length.eq(0),
            ),
            queue.sink.flags.eq(
                Mux(queue.sink.psn == 0, PACKET_FLAG.FIRST, 0) |
                Mux(transfers.response, PACKET_FLAG.RESPONSE, 0) |
                Mux(goes_on, 0, transfers.flags | PACKET_FLAG.LAST)),

            ended.sink.valid.eq(transfer_ends),
            ended.sink.last.eq(1),
            ended.sink.tag.eq(transfers.tag),
            ended.sink.node.eq(transfers.node),
            ended.sink.psn.eq(queue.sink.psn + (empty_transfer | (taken & packet_ends & ~failed))),
            ended.sink.status.eq(
                Mux(watch.stale, STATUS.REWOUND, Mux(busy, sink.status, transfers.status))),
            ended.sink.summed.eq(busy),

            watch.valid.eq(transfers.valid),
            watch.leave.eq(transfer_ends),
            *[
                getattr(watch, name).eq(getattr(transfers, name))
                for name in ("node", "incarnation", "epoch")],
        ]
        self.sync += [
            packet_ended.eq(taken & packet_ends),
            bytes_left.eq(bytes_left_now),
            skip.eq(skip_now),
            psn.eq(psn_now),
            If(~busy,
                busy.eq(
                    transfers.valid & (transfers.status == STATUS.OK) & (transfers.length != 0)),
                bytes_left.eq(transfers.length),
                skip.eq(transfers.skip),
                psn.eq(transfers.psn),
                line.eq(0),
                first_packet.eq(1),
                announced.eq(0),
            ).Elif(taken,
                line.eq(line + 1),
                announced.eq(~packet_ends),
                If(packet_ends, first_packet.eq(0)),
                If(sink.last, busy.eq(0))
            ).Elif(announce & queue.sink.ready,
                announced.eq(1)
            )
        ]

        # End. Each waiting checksum belongs to a waiting end, so there is room for it.
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
            # The checksum of no bytes: the complement of 0.
            done.checksum.eq(Mux(summed, checksum.source.checksum, 0xffff)),
            ended.source.ready.eq(done.valid & done.ready),
            checksum.source.ready.eq(ended.source.ready & summed),
        ]
