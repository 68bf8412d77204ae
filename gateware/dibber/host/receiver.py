"""Receiver of TLPs: from the PHY's stream to lines, requests and completions."""

# SPDX-License-Identifier: BSD-2-Clause

from math import ceil, log2

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from litepcie.common import phy_layout

from dibber.host import tlp
from dibber.layouts import FLAW_BITS, FLAW_LENGTH, FLAW_POISON, FLAW_STATUS, raw_completion_layout

# TLP Receiver -------------------------------------------------------------------------------------

class TLPReceiver(LiteXModule):
    """Take each TLP that the PHY delivers, without backpressure.

    Up to 128 bits `sink.ready` is constant 1. This works because a TLP of B beats makes at most B
    entries of the queue behind it, and the queue is read at one entry a cycle by consumers that
    never stall. At 256 bits the header shares its beat with payload. So a TLP whose bytes lie across
    a line's end may make B + 1 lines. Then `sink.ready` is 0 for the one cycle after it.

    A TLP is checked as a whole (kind, addresses, byte enables, its length against its beats) before
    it is passed on: its entries are written to the queue, but its last beat commits them. A
    completion that contradicts itself is passed on without data and with the reason in `flaw`, so
    that the read that waits for it ends at once. The order of arrival is kept, so a read never
    passes an earlier write.

    `first` and `be` of the PHY are not used: the 7-series PHY gives no `first` at 64 bits, and its
    128-bit aligner clears `be` of header DWs. So a last beat with too few DWs is not noticed.

    Parameters
    ----------
    data_width  : 64, 128 or 256
    endianness  : of payload DWs: "little" or "big" (see tlp.py)
    bar_size    : bytes of BAR 0, a power of two
    bar_base    : address of BAR 0, a multiple of its size; for PHYs that also deliver requests to
                  other addresses, which are unsupported
    space       : bytes of the decoded address space; higher address bits are ignored
    windows     : [(base, size)] in bytes: the parts of BAR 0 that are served; all others are
                  unsupported
    max_payload : bytes; a longer TLP is malformed
    aperture    : bytes of BAR 2, a power of two above `bar_size`; 0: there is none. Addresses have one
                  more bit, which tells the BAR
    read_depth  : reads of the host that can wait. The PHY may return a read's credit as soon as it
                  is taken, so credits do not bound them. The requester's tags do: 8 bits, 256 reads

    Attributes
    ----------
    sink        : Endpoint(phy_layout), in
    writes      : Endpoint(line_layout), out         valid only
    requests    : Endpoint(request_layout), out      reads, and all requests that get Unsupported
                  Request
    completions : Endpoint(raw_completion_layout), out   valid only
    unsupported : Signal, out    one pulse for each request that the card does not serve
    malformed   : Signal, out    one pulse for each TLP that is dropped because it contradicts
                  itself

    Cycles: 4 from a TLP's last beat to its first line; one more if it makes more lines than beats.
    """
    def __init__(
        self, data_width, endianness, bar_size, windows, bar_base=0, space=None, max_payload=512,
        read_depth=256, aperture=0):
        lanes        = data_width//32
        lane_bits    = log2_int(lanes)
        offset_bits  = log2_int(bar_size) - 2          # of a DW in BAR 0
        if aperture:
            assert not space and aperture > bar_size
            offset_bits = log2_int(aperture) - 1       # and the highest bit: it is in BAR 2
            self.in_aperture = Signal()
        address_bits = offset_bits - lane_bits         # of a line in BAR 0
        self.sink        = sink        = stream.Endpoint(phy_layout(data_width))
        self.writes      = writes      = stream.Endpoint(tlp.line_layout(data_width, address_bits))
        self.completions = completions = stream.Endpoint(raw_completion_layout(data_width))
        self.unsupported = Signal()
        self.malformed   = Signal()

        # # #

        # Beats ------------------------------------------------------------------------------------
        # `current` is the present beat, `previous` the one before it. With 64 bits the header is
        # complete with the second beat. `flush` is the cycle after the last beat.
        valid       = Signal()
        last        = Signal()
        current     = Signal(data_width)
        previous    = Signal(data_width)
        second      = Signal()  # 64 bits: the first beat was taken
        body        = Signal()  # the header was taken
        header_done = Signal()  # this beat completes the header
        flush       = Signal()
        has_header  = Signal()  # with flush: the TLP had a complete header
        # In this cycle the TLP's last line leaves, and it is known whether the TLP is good. It is
        # the flush cycle, or the one after it if the TLP makes more lines than beats.
        ending      = flush
        if lanes > 4:
            ending    = Signal()
            more      = Signal()  # the header in this beat says that there are more lines than beats
            more_held = Signal()
            late      = Signal()
            halts     = Signal()
            self.comb += halts.eq(valid & last & Mux(header_done, more, more_held))
        self.comb += [
            sink.ready.eq(~halts if lanes > 4 else 1),
            header_done.eq(valid & ~body & (second if lanes == 2 else 1)),
        ]
        self.sync += [
            valid.eq(sink.valid & sink.ready if lanes > 4 else sink.valid),
            last.eq(sink.last),
            current.eq(sink.dat),
            flush.eq(valid & last),
            If(valid,
                previous.eq(current),
                second.eq(~last),
                body.eq(~last & (body | header_done)),
                has_header.eq(body | header_done),
            ),
        ]

        # Header -----------------------------------------------------------------------------------
        dws = Cat(previous, current) if lanes == 2 else current
        dw0, dw1, dw2, dw3 = (dws[32*n:32*n + 32] for n in range(4))
        fmt, type_ = dw0[29:32], dw0[24:29]
        quad, data = fmt[0], fmt[1]
        length     = Signal(11)
        low        = Signal(32)  # low half of the address
        count      = Signal(13)
        self.comb += [
            length.eq(Cat(dw0[0:10], dw0[0:10] == 0)),
            low.eq(Mux(quad, dw3, dw2)),
            count.eq(Cat(dw1[0:12], dw1[0:12] == 0)),
        ]

        # PCIe Base 3.0, 2.2.1: a TLP that is not in table 2-3 is malformed. So are prefixes (fmt
        # 1xx), because the card does not announce them.
        memory     = Signal()
        completion = Signal()
        message    = Signal()
        refused    = Signal()  # a non-posted request that the card does not serve
        self.comb += [
            memory.eq(~fmt[2] & (type_ == tlp.TYPE_MEMORY)),
            completion.eq(~fmt[2] & ~quad & (type_ == tlp.TYPE_COMPLETION)),
            message.eq(~fmt[2] & quad & (type_[3:5] == 0b10)),
            If(~fmt[2],
                Case(type_, {
                    tlp.TYPE_READ_LOCKED : refused.eq(~data),
                    tlp.TYPE_IO          : refused.eq(~quad),
                    tlp.TYPE_CONFIG_0    : refused.eq(~quad),
                    tlp.TYPE_CONFIG_1    : refused.eq(~quad),
                    tlp.TYPE_FETCH_ADD   : refused.eq(data),
                    tlp.TYPE_SWAP        : refused.eq(data),
                    tlp.TYPE_CAS         : refused.eq(data),
                    "default"            : refused.eq(0),
                })
            ),
        ]
        served = Signal()
        offset = low[2:2 + offset_bits]
        if aperture:
            hit    = Signal()
            offset = Signal(offset_bits)
            self.sync += hit.eq(self.in_aperture)
            self.comb += offset.eq(Mux(hit, Cat(low[2:log2_int(aperture)], 1), low[2:log2_int(bar_size)]))
        in_bar = low[log2_int(bar_size):log2_int(space)] == bar_base//bar_size if space else 1
        self.comb += served.eq(in_bar & Reduce("OR",
            [
                offset[log2_int(size) - 2:] == base//size if size < bar_size else 1
                for base, size in windows] + ([hit] if aperture else [])))

        first_be, last_be = dw1[0:4], dw1[4:8]
        bad = Signal()
        self.comb += [
            bad.eq(~(memory | completion | message | refused)),
            # 2.2.7.1: poisoned data is not used.
            If(data & dw0[14] & ~completion, bad.eq(1)),
            If(data & (length > max_payload//4) & ~completion, bad.eq(1)),
            If(memory,
                # 2.2.7: no request crosses 4 KiB. 2.2.5: byte enables of one and of several DWs.
                If(low[2:12] + length > 1024, bad.eq(1)),
                If(length == 1,
                    If(last_be != 0, bad.eq(1))
                ).Elif((first_be == 0) | (last_be == 0),
                    bad.eq(1)
                ),
            ),
        ]
        flaw = Signal(FLAW_BITS)
        self.comb += [
            # 2.2.9: data must not exceed the request, and must come exactly with success. 2.7.2.2:
            # poisoned data are not used.
            If(data & ((length > max_payload//4) | ((count + dw2[0:2] + 3)[2:] < length)),
                flaw.eq(FLAW_LENGTH)
            ),
            If(data == (dw1[13:16] != tlp.STATUS_SUCCESS), flaw.eq(FLAW_STATUS)),
            If(data & dw0[14], flaw.eq(FLAW_POISON)),
        ]

        carried = Signal(13)  # bytes of a completion, if it is not the last of its request
        total   = Signal(12)  # DWs
        lane    = Signal(lane_bits)
        self.comb += [
            carried.eq(Cat(0, 0, length) - dw2[0:2]),
            total.eq(3 + quad + dw0[15] + Mux(data, length, 0)),  # bit 15: a digest DW follows
            lane.eq(Mux(completion, dw2, low)[2:2 + lane_bits]),
        ]

        header_dws = max(4, lanes)  # DWs of the beats that have the header
        if lanes > 4:
            lines_end = Signal(12)
            self.comb += [
                lines_end.eq(lane + length + lanes - 1),
                more.eq(data & (lines_end[lane_bits:] > (total + lanes - 1)[lane_bits:])),
                ending.eq(Mux(more_held, late, flush)),
            ]
            self.sync += [
                late.eq(flush & more_held),
                If(header_done, more_held.eq(more)),
            ]

        # Fields of the header that are kept while the payload passes.
        is_lines      = Signal()  # payload that goes on as lines
        is_write      = Signal()
        is_request    = Signal()
        is_completion = Signal()
        is_refused    = Signal()
        is_bad        = Signal()
        beats_match   = Signal()  # header and beats agree so far
        dws_left      = Signal(12)  # DWs that are still to come
        line_dws      = Signal(12)  # DWs from the start of the line to the end of the payload
        first         = Signal()    # the first line has not left yet
        shift         = Signal(tlp.shift_bits(data_width))
        first_lane    = Signal(lane_bits)
        adr           = Signal(address_bits)
        request       = Record(tlp.request_layout(offset_bits).payload_layout)
        answer        = Record(raw_completion_layout(data_width).param_layout)
        single        = Signal()
        self.sync += [
            If(header_done,
                is_write.eq(memory & data & served),
                is_lines.eq((memory & data & served) | (completion & data & (flaw == 0))),
                is_request.eq((memory & ~data) | refused),
                is_completion.eq(completion),
                is_refused.eq(message | refused | (memory & ~served)),
                is_bad.eq(bad),
                beats_match.eq(total <= header_dws),
                dws_left.eq(Mux(total <= header_dws, 0, total - header_dws)),
                shift.eq(lane + Mux(quad, 0, 1)),
                first_lane.eq(lane),
                single.eq(length == 1),
                request.requester.eq(dw1[16:32]),
                request.tag.eq(dw1[8:16]),
                request.attr.eq(Cat(dw0[12:14], dw0[18])),
                request.tc.eq(dw0[20:23]),
                request.length.eq(dw0[0:10]),
                request.first_be.eq(first_be),
                request.last_be.eq(last_be),
                request.memory.eq(memory | (type_ == tlp.TYPE_READ_LOCKED)),
                request.refused.eq(refused | ~served),
                request.offset.eq(offset),
                answer.tag.eq(dw2[8:16]),
                answer.status.eq(Mux(flaw != 0, tlp.STATUS_UNSUPPORTED, dw1[13:16])),
                answer.lower.eq(dw2[0:7]),
                answer.count.eq(count),
                answer.bytes.eq(Mux(data & (flaw == 0), Mux(count < carried, count, carried), 0)),
                answer.requester.eq(dw2[16:32]),
                answer.modified.eq(dw1[12]),
                answer.flaw.eq(flaw),
            ).Elif(valid & body,
                beats_match.eq((dws_left != 0) & (dws_left <= lanes)),
                dws_left.eq(Mux(dws_left > lanes, dws_left - lanes, 0)),
            )
        ]

        # Lines ------------------------------------------------------------------------------------
        # A line leaves with the beat in which it ends; a last part leaves in the flush cycle. A
        # beat with header DWs never makes a line. So the flush cycle, which may hold the first
        # beat of the next TLP, is always free. At 256 bits line n leaves in the cycle after beat n,
        # because it may need the beats before and after: of each the four DWs that are near. One
        # line more than beats leaves after the flush cycle.
        slot   = Signal()
        around = Cat(previous, current)
        if lanes > 4:
            before = Signal(128)
            around = Cat(before, previous, current[:128])
            self.sync += If(valid | flush | late, before.eq(previous[-128:]))
        window = tlp.payload_bytes(around, endianness)
        dat    = Signal(data_width)
        be     = Signal(data_width//8)
        self.comb += [
            slot.eq((valid & body) | flush | late if lanes > 4 else (valid & body) | flush),
            Case(
                shift,
                {s: dat.eq(window[32*(lanes - s):32*(2*lanes - s)]) for s in range(lanes + 1)}),
        ]
        for n in range(lanes):
            self.comb += If((line_dws > n) & (~first | (first_lane <= n)),
                be[4*n:4*n + 4].eq(0xf),
                If(first & (first_lane == n),
                    be[4*n:4*n + 4].eq(request.first_be)
                ).Elif(~single & (line_dws == n + 1),
                    be[4*n:4*n + 4].eq(request.last_be)
                )
            )
        line = Signal()
        self.comb += line.eq(slot & is_lines & ~is_bad & (line_dws != 0))
        self.sync += [
            If(line,
                line_dws.eq(Mux(line_dws > lanes, line_dws - lanes, 0)),
                adr.eq(adr + 1),
                first.eq(0),
            ),
            If(header_done,
                line_dws.eq(lane + length),
                adr.eq(offset[lane_bits:]),
                first.eq(1),
            ),
        ]

        # Queue ------------------------------------------------------------------------------------
        # An entry is a line of a write, a line of a completion, or a request.
        self.fifo     = fifo = stream.SyncFIFO(
            tlp.request_layout(offset_bits), read_depth, buffered=True)
        self.requests = fifo.source
        requests      = fifo.sink
        good          = Signal()
        # The length of a completion differs from its beats: it becomes one entry with a flaw.
        length_wrong        = Signal()
        self.comb += [
            good.eq(ending & has_header & beats_match & ~is_bad),
            length_wrong.eq(ending & has_header & is_completion & ~beats_match),
        ]
        self.sync += [
            self.malformed.eq(
                ending &
                (
                    ~good |
                    (
                        is_completion &
                        ((answer.flaw == FLAW_LENGTH) | (answer.flaw == FLAW_STATUS))))),
            # A read without room would be lost; see `read_depth` for why there is always room.
            self.unsupported.eq((good & is_refused) | (requests.valid & ~requests.ready)),
        ]
        info_bits = max(len(be) + address_bits, len(answer.raw_bits()))
        entry     = Record([("write", 1), ("request", 1), ("last", 1),
                            ("dat", data_width), ("info", info_bits)])
        answer_out      = Record(answer.layout)
        self.comb += [
            *[getattr(answer_out, name).eq(getattr(answer, name)) for name, *_ in answer.layout],
            If(length_wrong,
                answer_out.status.eq(tlp.STATUS_UNSUPPORTED),
                answer_out.bytes.eq(0),
                answer_out.flaw.eq(FLAW_LENGTH)
            )
        ]
        push      = Signal()
        commit    = Signal()
        discard   = Signal()
        req_head  = Cat(*[getattr(request, f[0]) for f in request.layout[:-1]])
        self.comb += [
            push.eq(line | length_wrong | (ending & (is_request | (is_completion & ~is_lines)))),
            commit.eq(good | length_wrong),
            discard.eq(ending & ~good & ~length_wrong),
            entry.write.eq(is_write),
            entry.request.eq(is_request),
            entry.last.eq((line_dws <= lanes) | ~is_lines | length_wrong),
            entry.dat.eq(Mux(is_request, req_head, dat)),
            If(is_completion,
                entry.info.eq(answer_out.raw_bits())
            ).Elif(is_request,
                entry.info.eq(request.offset)
            ).Else(
                entry.info.eq(Cat(be, adr))
            ),
        ]
        # The queue never holds more than the longest TLP: while the lines of one TLP leave, the
        # next TLP needs as many beats as it makes lines.
        depth     = 2**ceil(log2(max_payload//4/lanes + 3))
        storage   = Memory(len(entry.raw_bits()), depth)
        wr        = storage.get_port(write_capable=True)
        rd        = storage.get_port()
        self.specials += storage, wr, rd
        produce   = Signal(max=depth)
        committed = Signal(max=depth)
        consume   = Signal(max=depth)
        readable  = Signal()
        out_valid = Signal()
        out       = Record(entry.layout)
        produced  = Signal(max=depth)
        self.comb += [
            wr.adr.eq(Mux(length_wrong, committed, produce)),
            wr.dat_w.eq(entry.raw_bits()),
            wr.we.eq(push),
            produced.eq(wr.adr + push),
            rd.adr.eq(consume),
            readable.eq(consume != committed),
            out.raw_bits().eq(rd.dat_r),
        ]
        self.sync += [
            produce.eq(Mux(discard, committed, produced)),
            If(commit, committed.eq(produced)),
            consume.eq(consume + readable),
            out_valid.eq(readable),
        ]

        # Sort -------------------------------------------------------------------------------------
        self.comb += [
            writes.valid.eq(out_valid & out.write),
            writes.dat.eq(out.dat),
            Cat(writes.be, writes.adr).eq(out.info),
            completions.valid.eq(out_valid & ~out.write & ~out.request),
            completions.last.eq(out.last),
            completions.dat.eq(out.dat),
            Cat(*[getattr(completions, f[0]) for f in answer.layout]).eq(out.info),
            requests.valid.eq(out_valid & out.request),
            Cat(*[getattr(requests, f[0]) for f in request.layout[:-1]]).eq(out.dat),
            requests.offset.eq(out.info),
        ]
