"""The header of a received TLP: what it says, whether it is allowed, and what is kept of it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.host import tlp
from dibber.layouts import FLAW_BITS, FLAW_LENGTH, FLAW_POISON, FLAW_STATUS, raw_completion_layout

# TLP Header ---------------------------------------------------------------------------------------

class HeaderDecoder(LiteXModule):
    """What a header says, and whether the card serves it. Combinational.

    Parameters
    ----------
    dws         : value; the DWs of the header, in the order of the wire
    lanes       : DWs of a beat
    offset_bits : of a DW in the decoded address space
    in_aperture : Signal, in; a request is to BAR 2. None: there is no BAR 2
    bar_size, windows, bar_base, space, max_payload, aperture : see receiver.TLPReceiver

    Attributes
    ----------
    dw0, dw1, dw2, type_, quad, data, first_be, last_be : fields of the header
    length, count  : DWs of the payload; bytes that a completion's request still expects
    total          : DWs of the whole TLP
    memory, completion, message : its kind
    refused        : a non-posted request that the card does not serve
    served         : its address belongs to a window
    bad            : the TLP is malformed
    flaw           : what is wrong with a completion
    carried        : bytes of a completion, if it is not the last of its request
    offset, lane   : place of the first DW: in the address space, in its line
    """
    def __init__(
        self, dws, lanes, offset_bits, bar_size, windows, bar_base, space, max_payload, aperture,
        in_aperture=None):
        self.length     = length     = Signal(11)
        self.count      = count      = Signal(13)
        self.total      = total      = Signal(12)
        self.memory     = memory     = Signal()
        self.completion = completion = Signal()
        self.message    = message    = Signal()
        self.refused    = refused    = Signal()
        self.served     = served     = Signal()
        self.bad        = bad        = Signal()
        self.flaw       = flaw       = Signal(FLAW_BITS)
        self.carried    = carried    = Signal(13)
        self.lane       = lane       = Signal(log2_int(lanes))

        # # #

        dw0, dw1, dw2, dw3 = (dws[32*n:32*n + 32] for n in range(4))
        fmt, type_ = dw0[29:32], dw0[24:29]
        quad, data = fmt[0], fmt[1]
        first_be, last_be = dw1[0:4], dw1[4:8]
        low = Signal(32)  # low half of the address
        self.comb += [
            length.eq(Cat(dw0[0:10], dw0[0:10] == 0)),
            low.eq(Mux(quad, dw3, dw2)),
            count.eq(Cat(dw1[0:12], dw1[0:12] == 0)),
        ]

        # PCIe Base 3.0, 2.2.1: a TLP that is not in table 2-3 is malformed. So are prefixes (fmt
        # 1xx), because the card does not announce them.
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
        offset = low[2:2 + offset_bits]
        if aperture:
            hit    = Signal()
            offset = Signal(offset_bits)
            self.sync += hit.eq(in_aperture)
            self.comb += offset.eq(Mux(hit, Cat(low[2:log2_int(aperture)], 1), low[2:log2_int(bar_size)]))
        in_bar = low[log2_int(bar_size):log2_int(space)] == bar_base//bar_size if space else 1
        self.comb += served.eq(in_bar & Reduce("OR",
            [
                offset[log2_int(size) - 2:] == base//size if size < bar_size else 1
                for base, size in windows] + ([hit] if aperture else [])))

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
        self.comb += [
            # 2.2.9: data must not exceed the request, and must come exactly with success. 2.7.2.2:
            # poisoned data are not used.
            If(data & ((length > max_payload//4) | ((count + dw2[0:2] + 3)[2:] < length)),
                flaw.eq(FLAW_LENGTH)
            ),
            If(data == (dw1[13:16] != tlp.STATUS_SUCCESS), flaw.eq(FLAW_STATUS)),
            If(data & dw0[14], flaw.eq(FLAW_POISON)),
        ]
        self.comb += [
            carried.eq(Cat(0, 0, length) - dw2[0:2]),
            total.eq(3 + quad + dw0[15] + Mux(data, length, 0)),  # bit 15: a digest DW follows
            lane.eq(Mux(completion, dw2, low)[2:2 + log2_int(lanes)]),
        ]
        self.dw0, self.dw1, self.dw2 = dw0, dw1, dw2
        self.type_, self.quad, self.data = type_, quad, data
        self.first_be, self.last_be, self.offset = first_be, last_be, offset


class HeaderFields(LiteXModule):
    """The fields of a header that are kept while its payload passes.

    Parameters
    ----------
    header      : HeaderDecoder
    done        : Signal, in; the beat completes the header
    step        : value; the beat follows the header
    lanes       : DWs of a beat
    offset_bits : of a DW in the decoded address space

    Attributes
    ----------
    is_lines      : payload that goes on as lines
    is_write, is_request, is_completion, is_refused, is_bad : Signal, out
    beats_match   : header and beats agree so far
    shift         : DWs by which lines are behind the beats
    first_lane    : lane of the first DW
    single        : the payload is one DW
    request       : Record(request_layout)
    answer        : Record(raw_completion_layout)
    """
    def __init__(self, header, done, step, lanes, offset_bits):
        self.is_lines      = Signal()
        self.is_write      = Signal()
        self.is_request    = Signal()
        self.is_completion = Signal()
        self.is_refused    = Signal()
        self.is_bad        = Signal()
        self.beats_match   = Signal()
        self.shift         = Signal(tlp.shift_bits(32*lanes))
        self.first_lane    = Signal(log2_int(lanes))
        self.single        = Signal()
        self.request       = request = Record(tlp.request_layout(offset_bits).payload_layout)
        self.answer        = answer  = Record(raw_completion_layout(32*lanes).param_layout)

        # # #

        h           = header
        dw0, dw1, dw2 = h.dw0, h.dw1, h.dw2
        header_dws  = max(4, lanes)  # DWs of the beats that have the header
        dws_left    = Signal(12)  # DWs that are still to come
        self.sync += [
            If(done,
                self.is_write.eq(h.memory & h.data & h.served),
                self.is_lines.eq((h.memory & h.data & h.served) | (h.completion & h.data & (h.flaw == 0))),
                self.is_request.eq((h.memory & ~h.data) | h.refused),
                self.is_completion.eq(h.completion),
                self.is_refused.eq(h.message | h.refused | (h.memory & ~h.served)),
                self.is_bad.eq(h.bad),
                self.beats_match.eq(h.total <= header_dws),
                dws_left.eq(Mux(h.total <= header_dws, 0, h.total - header_dws)),
                self.shift.eq(h.lane + Mux(h.quad, 0, 1)),
                self.first_lane.eq(h.lane),
                self.single.eq(h.length == 1),
                request.requester.eq(dw1[16:32]),
                request.tag.eq(dw1[8:16]),
                request.attr.eq(Cat(dw0[12:14], dw0[18])),
                request.tc.eq(dw0[20:23]),
                request.length.eq(dw0[0:10]),
                request.first_be.eq(h.first_be),
                request.last_be.eq(h.last_be),
                request.memory.eq(h.memory | (h.type_ == tlp.TYPE_READ_LOCKED)),
                request.refused.eq(h.refused | ~h.served),
                request.offset.eq(h.offset),
                answer.tag.eq(dw2[8:16]),
                answer.status.eq(Mux(h.flaw != 0, tlp.STATUS_UNSUPPORTED, dw1[13:16])),
                answer.lower.eq(dw2[0:7]),
                answer.count.eq(h.count),
                answer.bytes.eq(Mux(h.data & (h.flaw == 0), Mux(h.count < h.carried, h.count, h.carried), 0)),
                answer.requester.eq(dw2[16:32]),
                answer.modified.eq(dw1[12]),
                answer.flaw.eq(h.flaw),
            ).Elif(step,
                self.beats_match.eq((dws_left != 0) & (dws_left <= lanes)),
                dws_left.eq(Mux(dws_left > lanes, dws_left - lanes, 0)),
            )
        ]
