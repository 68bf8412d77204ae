"""BAR 0: its windows, and the engine that answers the host's reads."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host import tlp
from dibber.interface import C
from dibber.interface.register_bank import line_port

# Windows ------------------------------------------------------------------------------------------

# name: (base, size) in bytes. A size is a power of two, at least 4 KiB, and each base is a multiple
# of its size. So a TLP, which cannot cross 4 KiB, lies in one window.
def bar_windows(sram_bytes):
    """The windows of a card whose control program has `sram_bytes` of SRAM."""
    return {
        "host"      : (C.HOST_BASE,         0x1000),
        "msix"      : (C.MSIX_TABLE_BASE,   0x1000),
        "firmware"  : (C.FIRMWARE_BASE,     sram_bytes),
        "endpoints" : (C.ENDPOINT_BASE,     C.ENDPOINTS*C.ENDPOINT_STRIDE),
    }

# BAR Decoder --------------------------------------------------------------------------------------

class BARDecoder(LiteXModule):
    """Distribute the host's writes to the windows, and answer its reads.

    A write always reaches its port one cycle after it came. A line is read in a cycle without a
    write. Requests are answered in order. A read outside all windows, and a request that is no
    memory read, get a completion with Unsupported Request.

    A read is answered in parts, cut at multiples of 128 bytes. This is the read completion boundary
    of all devices but root complexes (PCIe Base 3.0, 2.3.1.1), and the smallest maximum payload.
    All bytes of the requested DWs are returned, also those that are not enabled (they are don't
    care). `be` of the port tells which DWs of a line are read, because a neighbouring register may
    have read effects.

    Parameters
    ----------
    data_width : 64, 128 or 256
    bar_size   : bytes of BAR 0
    windows    : as returned by bar_windows()

    Attributes
    ----------
    writes   : Endpoint(line_layout), in       valid only
    requests : Endpoint(request_layout), in
    replies  : Endpoint(reply_layout), out     the lines of one completion come without gaps
    ports    : dict name -> line_port(data_width); `adr` counts from the window's start. `dat_r`
               must be 0 in cycles without a read

    Cycles: 7 from a request of one line to its reply, if there is no write.
    """
    def __init__(self, data_width, bar_size, windows):
        lanes        = data_width//32
        lane_bits    = log2_int(lanes)
        offset_bits  = log2_int(bar_size) - 2
        address_bits = offset_bits - lane_bits
        chunk_dws    = 32
        self.writes   = writes   = stream.Endpoint(tlp.line_layout(data_width, address_bits))
        self.requests = requests = stream.Endpoint(tlp.request_layout(offset_bits))
        self.replies  = replies  = stream.Endpoint(tlp.reply_layout(data_width))
        self.ports    = {name: line_port(data_width) for name in windows}

        # # #

        # Ports ------------------------------------------------------------------------------------
        issue    = Signal()               # a line is to be read
        read_adr = Signal(address_bits)
        read_be  = Signal(data_width//8)
        target   = Signal(address_bits)
        self.comb += target.eq(Mux(writes.valid, writes.adr, read_adr))
        adr      = Signal(address_bits)
        dat_w    = Signal(data_width)
        be       = Signal(data_width//8)
        self.sync += [
            adr.eq(target),
            dat_w.eq(writes.dat),
            be.eq(Mux(writes.valid, writes.be, read_be)),
        ]
        for name, (base, size) in windows.items():
            assert base % size == 0 and base + size <= bar_size
            port       = self.ports[name]
            size_bits  = log2_int(size) - 2 - lane_bits
            hit        = Signal(name=f"hit_{name}")
            within     = lambda adr: adr[size_bits:] == base//size if size < bar_size else 1
            self.comb += [
                hit.eq(within(target)),
                port.adr.eq(adr[:size_bits]),
                port.dat_w.eq(dat_w),
                port.be.eq(be),
            ]
            self.sync += [
                port.we.eq(hit & writes.valid),
                port.re.eq(hit & issue & ~writes.valid),
            ]

        # Request ----------------------------------------------------------------------------------
        # PCIe Base 3.0, 2.3.1.1: byte count and lower address follow from the byte enables. A read
        # of no bytes (a flush) counts as one byte.
        request    = Record(requests.description.payload_layout)
        offset     = Signal(offset_bits)  # DW
        dws_left   = Signal(11)           # DWs
        bytes_left = Signal(13)           # bytes
        lower_bits = Signal(2)
        length     = Signal(11)
        unused     = Signal(3)
        self.comb += [
            length.eq(Cat(requests.length, requests.length == 0)),
            If(requests.length == 1,
                If(requests.first_be == 0,
                    unused.eq(3)
                ).Else(
                    unused.eq(tlp.lowest(requests.first_be) + tlp.above(requests.first_be))
                )
            ).Else(
                unused.eq(tlp.lowest(requests.first_be) + tlp.above(requests.last_be))
            )
        ]

        # Chunk ------------------------------------------------------------------------------------
        chunk           = Signal(6)  # DWs of this completion
        dws_to_read     = Signal(6)  # DWs from the start of the line to be read to the chunk's end
        first           = Signal()
        first_lane      = offset[:lane_bits]
        dws_to_boundary = Signal(6)
        self.comb += dws_to_boundary.eq(chunk_dws - offset[:5])
        for n in range(lanes):
            self.comb += read_be[4*n:4*n + 4].eq(
                Replicate((dws_to_read > n) & (~first | (first_lane <= n)), 4))

        # A line arrives 3 cycles after its issue: one to the port, two in it.
        lines   = stream.SyncFIFO([("dat", data_width)], chunk_dws//lanes)
        self.submodules += lines
        in_flight  = Signal(3)
        self.sync += in_flight.eq(Cat(issue & ~writes.valid, in_flight[:2]))
        self.comb += [
            lines.sink.valid.eq(in_flight[2]),
            lines.sink.dat.eq(reduce(or_, [port.dat_r for port in self.ports.values()])),
        ]

        # Engine -----------------------------------------------------------------------------------
        to_send = Signal(6)  # DWs from the start of the line to be sent to the chunk's end
        self.comb += [
            replies.requester.eq(request.requester),
            replies.tag.eq(request.tag),
            replies.attr.eq(request.attr),
            replies.tc.eq(request.tc),
            replies.count.eq(bytes_left),
            replies.lower.eq(Cat(lower_bits, offset[:5])),
            replies.dat.eq(lines.source.dat),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            requests.ready.eq(1),
            NextValue(offset, requests.offset),
            NextValue(dws_left, length),
            If(requests.memory,
                NextValue(bytes_left, Cat(0, 0, length) - unused),
                NextValue(lower_bits, tlp.lowest(requests.first_be)),
            ).Else(
                # 2.2.9: any other completion has a byte count of 4 and a lower address of 0.
                NextValue(bytes_left, 4),
                NextValue(lower_bits, 0),
                NextValue(offset, 0),
            ),
            [NextValue(getattr(request, f[0]), getattr(requests, f[0])) for f in request.layout],
            If(requests.valid,
                If(requests.refused,
                    NextState("REFUSE")
                ).Else(
                    NextState("CHUNK")
                )
            )
        )
        fsm.act("REFUSE",
            replies.valid.eq(1),
            replies.last.eq(1),
            replies.status.eq(tlp.STATUS_UNSUPPORTED),
            If(replies.ready, NextState("IDLE"))
        )
        fsm.act("CHUNK",
            NextValue(chunk, Mux(dws_left < dws_to_boundary, dws_left, dws_to_boundary)),
            NextValue(
                dws_to_read,
                first_lane + Mux(dws_left < dws_to_boundary, dws_left, dws_to_boundary)),
            NextValue(
                to_send, first_lane + Mux(dws_left < dws_to_boundary, dws_left, dws_to_boundary)),
            NextValue(read_adr, offset[lane_bits:]),
            NextValue(first, 1),
            NextState("READ")
        )
        fsm.act("READ",
            issue.eq(1),
            If(~writes.valid,
                NextValue(first, 0),
                NextValue(dws_to_read, dws_to_read - lanes),
                If(dws_to_read <= lanes,
                    NextState("ARRIVE")
                ).Else(
                    NextValue(read_adr, read_adr + 1)
                )
            )
        )
        fsm.act("ARRIVE",
            If(in_flight == 0, NextState("SEND"))
        )
        fsm.act("SEND",
            replies.valid.eq(1),
            replies.length.eq(chunk),
            replies.last.eq(to_send <= lanes),
            If(replies.ready,
                lines.source.ready.eq(1),
                NextValue(to_send, to_send - lanes),
                If(replies.last, NextState("NEXT"))
            )
        )
        fsm.act("NEXT",
            NextValue(lower_bits, 0),
            NextValue(offset, offset + chunk),
            NextValue(dws_left, dws_left - chunk),
            NextValue(bytes_left, bytes_left - (Cat(0, 0, chunk) - lower_bits)),
            If(dws_left == chunk,
                NextState("IDLE")
            ).Else(
                NextState("CHUNK")
            )
        )
