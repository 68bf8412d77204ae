"""Receiver of TLPs: from the PHY's stream to lines, requests and completions."""

# SPDX-License-Identifier: BSD-2-Clause

from math import ceil, log2

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from litepcie.common import phy_layout

from dibber.host import tlp
from dibber.host.tlp_header import HeaderDecoder, HeaderFields
from dibber.layouts import FLAW_LENGTH, FLAW_STATUS, raw_completion_layout

# Beats --------------------------------------------------------------------------------------------

class Beats(LiteXModule):
    """The beats of TLPs, and where in a TLP each of them stands.

    Parameters
    ----------
    sink  : Endpoint(phy_layout), in
    lanes : DWs of a beat

    Attributes
    ----------
    more        : Signal(), in; above 4 lanes: the header in this beat says that the TLP makes more
                  lines than it has beats
    valid       : Signal(), out; `current` is a beat
    current, previous : Signal, out; the present beat, and the one before it. With 2 lanes the
                  header is complete with the second beat
    body        : Signal(), out; the header was taken
    header_done : Signal(), out; this beat completes the header
    flush       : Signal(), out; the cycle after the last beat
    has_header  : Signal(), out; with `flush`: the TLP had a complete header
    ending      : Signal(), out; in this cycle the TLP's last line leaves, and it is known whether
                  the TLP is good. It is the flush cycle, or the one after it with `more`
    late        : Signal(), out; above 4 lanes: that cycle after the flush cycle
    """
    def __init__(self, sink, lanes):
        self.valid       = valid       = Signal()
        self.current     = current     = Signal(32*lanes)
        self.previous    = previous    = Signal(32*lanes)
        self.body        = body        = Signal()
        self.header_done = header_done = Signal()
        self.flush       = flush       = Signal()
        self.has_header  = has_header  = Signal()
        self.ending      = flush

        # # #

        last   = Signal()
        second = Signal()  # 2 lanes: the first beat was taken
        if lanes > 4:
            self.more   = more = Signal()
            self.late   = late = Signal()
            self.ending = Signal()
            more_held   = Signal()
            halts       = Signal()
            self.comb += [
                halts.eq(valid & last & Mux(header_done, more, more_held)),
                self.ending.eq(Mux(more_held, late, flush)),
            ]
            self.sync += [
                late.eq(flush & more_held),
                If(header_done, more_held.eq(more)),
            ]
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

# Lines --------------------------------------------------------------------------------------------

class LineCutter(LiteXModule):
    """Cut the payload of a TLP into lines.

    A line leaves with the beat in which it ends; a last part leaves in the flush cycle. A beat with
    header DWs never makes a line. So the flush cycle, which may hold the first beat of the next TLP,
    is always free. At 256 bits line n leaves in the cycle after beat n, because it may need the
    beats before and after: of each the four DWs that are near. One line more than beats leaves after
    the flush cycle.

    Parameters
    ----------
    header, fields : HeaderDecoder, HeaderFields
    done           : Signal, in; the beat completes the header
    slot           : Signal, in; a line may leave in this cycle
    window         : value; bytes of the beats around this cycle, in memory order
    lanes          : DWs of a line
    address_bits   : of a line

    Attributes
    ----------
    line         : Signal(), out; a line leaves
    last         : value; it is the last one of its TLP
    dat, be, adr : Signal, out; of the line
    """
    def __init__(self, header, fields, done, slot, window, lanes, address_bits):
        self.line = line = Signal()
        self.dat  = dat  = Signal(32*lanes)
        self.be   = be   = Signal(4*lanes)
        self.adr  = adr  = Signal(address_bits)

        # # #

        line_dws  = Signal(12)  # DWs from the start of the line to the end of the payload
        first     = Signal()    # the first line has not left yet
        self.last = line_dws <= lanes
        self.comb += [
            line.eq(slot & fields.is_lines & ~fields.is_bad & (line_dws != 0)),
            Case(
                fields.shift,
                {s: dat.eq(window[32*(lanes - s):32*(2*lanes - s)]) for s in range(lanes + 1)}),
        ]
        for n in range(lanes):
            self.comb += If((line_dws > n) & (~first | (fields.first_lane <= n)),
                be[4*n:4*n + 4].eq(0xf),
                If(first & (fields.first_lane == n),
                    be[4*n:4*n + 4].eq(fields.request.first_be)
                ).Elif(~fields.single & (line_dws == n + 1),
                    be[4*n:4*n + 4].eq(fields.request.last_be)
                )
            )
        self.sync += [
            If(line,
                line_dws.eq(Mux(line_dws > lanes, line_dws - lanes, 0)),
                adr.eq(adr + 1),
                first.eq(0),
            ),
            If(done,
                line_dws.eq(header.lane + header.length),
                adr.eq(header.offset[log2_int(lanes):]),
                first.eq(1),
            ),
        ]

# Queue --------------------------------------------------------------------------------------------

class EntryQueue(LiteXModule):
    """The entries of TLPs that are not judged yet. They leave an entry a cycle when they are
    committed.

    Parameters
    ----------
    width : bits of an entry
    depth : entries, a power of two. The writer never has more under way

    Attributes
    ----------
    push, din : Signal, in; write an entry
    commit    : Signal(), in; the entries of the TLP, including this cycle's, may leave
    discard   : Signal(), in; drop them
    replace   : Signal(), in; drop those before this cycle's, which is the only one of its TLP
    valid     : Signal(), out
    dout      : Signal, out

    Cycles: 2 from `commit` to `valid`.
    """
    def __init__(self, width, depth):
        self.push    = Signal()
        self.din     = Signal(width)
        self.commit  = Signal()
        self.discard = Signal()
        self.replace = Signal()
        self.valid   = Signal()
        self.dout    = Signal(width)

        # # #

        storage   = Memory(width, depth)
        wr        = storage.get_port(write_capable=True)
        rd        = storage.get_port()
        self.specials += storage, wr, rd
        produce   = Signal(max=depth)
        committed = Signal(max=depth)
        consume   = Signal(max=depth)
        readable  = Signal()
        produced  = Signal(max=depth)
        self.comb += [
            wr.adr.eq(Mux(self.replace, committed, produce)),
            wr.dat_w.eq(self.din),
            wr.we.eq(self.push),
            produced.eq(wr.adr + self.push),
            rd.adr.eq(consume),
            readable.eq(consume != committed),
            self.dout.eq(rd.dat_r),
        ]
        self.sync += [
            produce.eq(Mux(self.discard, committed, produced)),
            If(self.commit, committed.eq(produced)),
            consume.eq(consume + readable),
            self.valid.eq(readable),
        ]

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

        # Beats and Lines --------------------------------------------------------------------------
        self.beats = beats = Beats(sink, lanes)
        body, ending, has_header = beats.valid & beats.body, beats.ending, beats.has_header
        dws = Cat(beats.previous, beats.current) if lanes == 2 else beats.current
        self.header = header = HeaderDecoder(dws, lanes, offset_bits, bar_size, windows, bar_base, space, max_payload,
            aperture, self.in_aperture if aperture else None)
        self.fields = fields = HeaderFields(header, beats.header_done, body, lanes, offset_bits)
        slot   = Signal()
        around = Cat(beats.previous, beats.current)
        if lanes > 4:
            lines_end = Signal(12)
            before    = Signal(128)
            around    = Cat(before, beats.previous, beats.current[:128])
            self.comb += [
                lines_end.eq(header.lane + header.length + lanes - 1),
                beats.more.eq(header.data & (lines_end[lane_bits:] > (header.total + lanes - 1)[lane_bits:])),
            ]
            self.sync += If(beats.valid | beats.flush | beats.late, before.eq(beats.previous[-128:]))
        self.comb += slot.eq(body | beats.flush | beats.late if lanes > 4 else body | beats.flush)
        self.cutter = cutter = LineCutter(header, fields, beats.header_done, slot, tlp.payload_bytes(around, endianness),
            lanes, address_bits)

        # Queue ------------------------------------------------------------------------------------
        # An entry is a line of a write, a line of a completion, or a request.
        self.fifo     = fifo = stream.SyncFIFO(
            tlp.request_layout(offset_bits), read_depth, buffered=True)
        self.requests = fifo.source
        requests      = fifo.sink
        request, answer = fields.request, fields.answer
        good          = Signal()
        # The length of a completion differs from its beats: it becomes one entry with a flaw.
        length_wrong  = Signal()
        self.comb += [
            good.eq(ending & has_header & fields.beats_match & ~fields.is_bad),
            length_wrong.eq(ending & has_header & fields.is_completion & ~fields.beats_match),
        ]
        self.sync += [
            self.malformed.eq(
                ending &
                (
                    ~good |
                    (
                        fields.is_completion &
                        ((answer.flaw == FLAW_LENGTH) | (answer.flaw == FLAW_STATUS))))),
            # A read without room would be lost; see `read_depth` for why there is always room.
            self.unsupported.eq((good & fields.is_refused) | (requests.valid & ~requests.ready)),
        ]
        info_bits  = max(data_width//8 + address_bits, len(answer.raw_bits()))
        entry      = Record([("write", 1), ("request", 1), ("last", 1),
                             ("dat", data_width), ("info", info_bits)])
        out        = Record(entry.layout)
        answer_out = Record(answer.layout)
        self.comb += [
            *[getattr(answer_out, name).eq(getattr(answer, name)) for name, *_ in answer.layout],
            If(length_wrong,
                answer_out.status.eq(tlp.STATUS_UNSUPPORTED),
                answer_out.bytes.eq(0),
                answer_out.flaw.eq(FLAW_LENGTH)
            )
        ]
        # The queue never holds more than the longest TLP: while the lines of one TLP leave, the
        # next TLP needs as many beats as it makes lines.
        depth      = 2**ceil(log2(max_payload//4/lanes + 3))
        self.queue = queue = EntryQueue(len(entry.raw_bits()), depth)
        req_head   = Cat(*[getattr(request, f[0]) for f in request.layout[:-1]])
        self.comb += [
            queue.push.eq(cutter.line | length_wrong |
                (ending & (fields.is_request | (fields.is_completion & ~fields.is_lines)))),
            queue.commit.eq(good | length_wrong),
            queue.discard.eq(ending & ~good & ~length_wrong),
            queue.replace.eq(length_wrong),
            queue.din.eq(entry.raw_bits()),
            out.raw_bits().eq(queue.dout),
            entry.write.eq(fields.is_write),
            entry.request.eq(fields.is_request),
            entry.last.eq(cutter.last | ~fields.is_lines | length_wrong),
            entry.dat.eq(Mux(fields.is_request, req_head, cutter.dat)),
            If(fields.is_completion,
                entry.info.eq(answer_out.raw_bits())
            ).Elif(fields.is_request,
                entry.info.eq(request.offset)
            ).Else(
                entry.info.eq(Cat(cutter.be, cutter.adr))
            ),
        ]

        # Sort -------------------------------------------------------------------------------------
        self.comb += [
            writes.valid.eq(queue.valid & out.write),
            writes.dat.eq(out.dat),
            Cat(writes.be, writes.adr).eq(out.info),
            completions.valid.eq(queue.valid & ~out.write & ~out.request),
            completions.last.eq(out.last),
            completions.dat.eq(out.dat),
            Cat(*[getattr(completions, f[0]) for f in answer.layout]).eq(out.info),
            requests.valid.eq(queue.valid & out.request),
            Cat(*[getattr(requests, f[0]) for f in request.layout[:-1]]).eq(out.dat),
            requests.offset.eq(out.info),
        ]
