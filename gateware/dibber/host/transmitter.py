"""Transmitter of TLPs: from writes, reads and replies to the PHY's stream."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from litepcie.common import phy_layout

from dibber.host import tlp
from dibber.layouts import read_layout, write_layout

# Request Composer ---------------------------------------------------------------------------------

class RequestComposer(LiteXModule):
    """Make the header of a memory request, beside its lines. One cycle.

    The header has 3 DWs below 4 GiB and 4 DWs above (PCIe Base 3.0, 2.2.4.1: an address below 4 GiB
    must use the 3-DW form). Relaxed ordering and no-snoop are off.

    Parameters
    ----------
    data_width : 64, 128 or 256
    write      : True for memory writes, False for memory reads
    quads      : each header has 4 DWs, because what follows makes a descriptor of it

    Attributes
    ----------
    sink   : Endpoint(write_layout or read_layout), in
    source : Endpoint(tlp_layout), out
    id     : Signal(16), in    requester ID
    """
    def __init__(self, data_width, write, quads=False):
        lane_bits   = log2_int(data_width//32)
        self.sink   = sink = stream.Endpoint(write_layout(data_width) if write else read_layout())
        self.pipe   = pipe = stream.PipeValid(tlp.tlp_layout(data_width))
        self.source = pipe.source
        self.id     = Signal(16)

        # # #

        # PCIe Base 3.0, 2.2.5: a request of one DW uses the first byte enables; the last are 0.
        offset      = sink.address[0:2]
        whole_dws   = sink.length[2:]
        partial_dws = Signal(2)   # DWs at both ends that are not counted in `whole_dws`
        end_offset  = Signal(2)
        dwords      = Signal(11)
        single      = Signal()
        first_be    = Signal(4)
        last_be     = Signal(4)
        quad        = Signal()
        # `single` does not use the sum `dwords`, which is late in its cycle.
        self.comb += [
            Case(Cat(offset, sink.length[0:2]), {n: [
                partial_dws.eq((n%4 + n//4 + 3)//4),
                end_offset.eq(n%4 + n//4),
            ] for n in range(16)}),
            dwords.eq(whole_dws + partial_dws),
            single.eq(
                ((whole_dws == 0) & (partial_dws == 1)) | ((whole_dws == 1) & (partial_dws == 0))),
            Case(offset, {n: first_be.eq((0xf << n) & 0xf) for n in range(4)}),
            Case(end_offset, {n: last_be.eq(0xf >> (4 - n)%4) for n in range(4)}),
            quad.eq(1 if quads else sink.address[32:] != 0),
        ]
        low    = Cat(Constant(0, 2), sink.address[2:32])
        header = pipe.sink.header
        self.comb += [
            pipe.sink.valid.eq(sink.valid),
            sink.ready.eq(pipe.sink.ready),
            header[0:10].eq(dwords),
            header[24:29].eq(tlp.TYPE_MEMORY),
            header[29:32].eq((tlp.FMT_DATA if write else 0) | Mux(quad, tlp.FMT_QUAD, 0)),
            If(single,
                header[32:36].eq(first_be & last_be),
            ).Else(
                header[32:36].eq(first_be),
                header[36:40].eq(last_be),
            ),
            header[48:64].eq(self.id),
            If(quad,
                header[64:96].eq(sink.address[32:]),
                header[96:128].eq(low),
            ).Else(
                header[64:96].eq(low),
            ),
            pipe.sink.shift.eq(sink.address[2:2 + lane_bits] + Mux(quad, 0, 1)),
        ]
        if write:
            self.comb += [
                pipe.sink.last.eq(sink.last),
                pipe.sink.dat.eq(sink.dat),
                pipe.sink.mark.eq(sink.mark),
                pipe.sink.dwords.eq(dwords + Mux(quad, 4, 3)),
            ]
        else:
            self.comb += [
                pipe.sink.last.eq(1),
                header[40:48].eq(sink.tag),
                pipe.sink.dwords.eq(Mux(quad, 4, 3)),
            ]

# Reply Composer -----------------------------------------------------------------------------------

class ReplyComposer(LiteXModule):
    """Make the header of a completion, beside its lines (PCIe Base 3.0, 2.2.9). One cycle.

    Attributes
    ----------
    sink   : Endpoint(reply_layout), in
    source : Endpoint(tlp_layout), out
    id     : Signal(16), in    completer ID
    """
    def __init__(self, data_width):
        lane_bits   = log2_int(data_width//32)
        self.sink   = sink = stream.Endpoint(tlp.reply_layout(data_width))
        self.pipe   = pipe = stream.PipeValid(tlp.tlp_layout(data_width))
        self.source = pipe.source
        self.id     = Signal(16)

        # # #

        header = pipe.sink.header
        self.comb += [
            pipe.sink.valid.eq(sink.valid),
            pipe.sink.last.eq(sink.last),
            sink.ready.eq(pipe.sink.ready),
            header[0:6].eq(sink.length),
            header[12:14].eq(sink.attr[0:2]),
            header[18].eq(sink.attr[2]),
            header[20:23].eq(sink.tc),
            header[24:29].eq(tlp.TYPE_COMPLETION),
            header[29:32].eq(Mux(sink.length != 0, tlp.FMT_DATA, 0)),
            header[32:44].eq(sink.count),
            header[45:48].eq(sink.status),
            header[48:64].eq(self.id),
            header[64:71].eq(sink.lower),
            header[72:80].eq(sink.tag),
            header[80:96].eq(sink.requester),
            pipe.sink.dat.eq(sink.dat),
            pipe.sink.shift.eq(sink.lower[2:2 + lane_bits] + 1),
            pipe.sink.dwords.eq(sink.length + 3),
        ]

# Assembler ----------------------------------------------------------------------------------------

class TLPAssembler(LiteXModule):
    """Join header and lines to beats of the PHY, without a bubble between TLPs.

    A TLP takes as many cycles as it has beats. Up to 128 bits it never has more lines than beats:
    its last lines leave with the beats in which they end. At 256 bits the first beat has the header
    and the first payload DWs, which may come from two lines. Then the first line is taken in a cycle
    of its own.

    Attributes
    ----------
    sink   : Endpoint(tlp_layout), in
    source : Endpoint(phy_layout), out
    begun  : Signal, out    a TLP's first beat leaves, before its first line is taken
    marked : Signal, out    the last beat of a TLP with `mark` is being taken
    """
    def __init__(self, data_width, endianness):
        lanes       = data_width//32
        beat_layout = phy_layout(data_width).payload_layout + [("mark", 1)]
        self.sink   = sink   = stream.Endpoint(tlp.tlp_layout(data_width))
        self.source = source = stream.Endpoint(phy_layout(data_width))
        self.begun  = Signal()
        self.marked = Signal()
        self.pipe   = pipe   = stream.PipeValid(beat_layout)

        # # #

        # With 64 bits the header takes two beats, `opening` and `head`; with more bits only `head`.
        # Payload may start in the last DWs of `head`, so the first line is taken there.
        body    = Signal()  # the header has left
        opening = Signal()
        head    = Signal()
        step    = Signal()
        beat    = pipe.sink
        self.comb += step.eq(beat.valid & beat.ready)
        if lanes == 2:
            opened = Signal()
            self.comb += [
                opening.eq(~body & ~opened),
                head.eq(~body & opened),
                self.begun.eq(step & opening),
            ]
            self.sync += If(step, opened.eq(opening))
        else:
            self.comb += head.eq(~body)

        # At 256 bits a beat has parts of the line of its number and of a neighbour. With a small
        # shift it is the line before. With a large one it is the line after, if there is one,
        # so the first line is taken before the header leaves.
        header_dws = max(4, lanes)  # DWs of the beats that have the header
        early      = 0              # the first line of a TLP is taken, and no beat leaves
        if lanes > 4:
            early = Signal()
            taken = Signal()        # the first line was taken early
            self.comb += early.eq(head & ~taken & (sink.shift > 4) & ~sink.last)
            self.sync += [
                If(early & sink.valid & sink.ready, taken.eq(1)),
                If(step & head, taken.eq(0)),
            ]

        more_lines = Signal()             # more lines of this TLP come from the sink
        dws_left   = Signal(11)           # DWs of this TLP that have not left
        shift      = Signal(tlp.shift_bits(data_width))
        mark       = Signal()
        previous   = Signal(data_width)   # the line before the one at the sink
        if lanes > 4:
            self.comb += [
                # A TLP that has taken all of its lines needs no other one for its header.
                beat.valid.eq((sink.valid & ~early) | (body & ~more_lines)),
                sink.ready.eq((beat.ready & (head | (body & more_lines))) | early),
            ]
        else:
            self.comb += [
                beat.valid.eq(sink.valid | (body & ~more_lines)),
                sink.ready.eq(beat.ready & (head | (body & more_lines))),
            ]
        self.sync += [
            If(sink.valid & sink.ready,
                previous.eq(sink.dat),
                more_lines.eq(~sink.last),
            ),
            If(step & head,
                body.eq(sink.dwords > header_dws),
                dws_left.eq(sink.dwords - header_dws),
                shift.eq(sink.shift),
                mark.eq(sink.mark),
            ),
            If(step & body,
                body.eq(dws_left > lanes),
                dws_left.eq(dws_left - lanes),
            ),
        ]

        window  = tlp.payload_bytes(Cat(previous, sink.dat), endianness)
        payload = Signal(data_width)
        if lanes > 4:
            self.comb += self.wide_beat(beat, payload, window, body, taken, shift, mark, dws_left)
        else:
            self.comb += self.narrow_beat(beat, payload, window, body, opening, head, shift, mark, dws_left)
        self.comb += [
            pipe.source.connect(source, omit={"mark"}),
            self.marked.eq(source.valid & source.ready & source.last & pipe.source.mark),
        ]

    def narrow_beat(self, beat, payload, window, body, opening, head, shift, mark, dws_left):
        """The beat at 64 and 128 bits."""
        sink       = self.sink
        data_width = len(payload)
        lanes      = data_width//32

        # The choice of the next TLP is late in its cycle. Of the first line, only the header's
        # fourth DW depends on it.
        fourth  = Signal(32, name="fourth")
        return [
            Case(shift, {s: payload.eq(window[32*s:32*(s + lanes)]) for s in range(lanes + 1)}),
            Case(
                sink.shift,
                {
                    s: fourth.eq(window[32*(s + lanes - 1):32*(s + lanes)])
                    for s in range(1, lanes + 1)}),
            beat.first.eq(opening if lanes == 2 else head),
            beat.mark.eq(Mux(body, mark, sink.mark)),
            If(body,
                beat.last.eq(dws_left <= lanes),
                beat.dat.eq(payload),
                [beat.be[4*n:4*n + 4].eq(Replicate(dws_left > n, 4)) for n in range(lanes)],
            ).Else(
                beat.last.eq(head & (sink.dwords <= 4)),
                beat.dat.eq(sink.header[128 - data_width:]),
                beat.be.eq(2**len(beat.be) - 1),
                If(opening,
                    beat.dat.eq(sink.header[:data_width])
                ).Elif(~sink.header[29],  # 3-DW header: the fourth DW is payload, if there is any
                    beat.dat[-32:].eq(fourth),
                    beat.be[-4:].eq(Replicate(sink.dwords > 3, 4)),
                ),
            ),
        ]

    def wide_beat(self, beat, payload, window, body, taken, shift, mark, dws_left):
        """The beat at 256 bits. DW i of beat n is DW 8n + i + shift - 4 of the lines, counted from
        lane 0 of the first one.
        """
        sink    = self.sink
        dws     = lambda start: window[32*start:32*(start + 8)]
        present = Signal(len(shift))  # shift of the TLP whose beat leaves
        first   = Signal(len(window)//2)
        return [
            present.eq(Mux(body, shift, sink.shift)),
            Case(present, {
                # The line before is in the low half of the window, the line of the beat above.
                **{s: [payload.eq(dws(s + 4))] for s in range(5)},
                # The line of the beat is in the low half, or at the sink if it is the only one.
                **{s: [payload.eq(dws(s - 4)), If(~body & ~taken, payload.eq(first))] for s in range(5, 9)},
            }),
            Case(present, {s: first.eq(window[32*(s + 4):]) for s in range(5, 9)}),
            beat.first.eq(~body),
            beat.mark.eq(Mux(body, mark, sink.mark)),
            If(body,
                beat.last.eq(dws_left <= 8),
                beat.dat.eq(payload),
                [beat.be[4*n:4*n + 4].eq(Replicate(dws_left > n, 4)) for n in range(8)],
            ).Else(
                beat.last.eq(sink.dwords <= 8),
                beat.dat.eq(Cat(sink.header, payload[128:])),
                If(~sink.header[29], beat.dat[96:128].eq(payload[96:128])),
                [beat.be[4*n:4*n + 4].eq(Replicate(sink.dwords > n, 4)) for n in range(8)],
            ),
        ]

# TLP Transmitter ----------------------------------------------------------------------------------

class TLPTransmitter(LiteXModule):
    """Send whole TLPs of four kinds over one stream.

    Priority: posts, replies, then writes and reads in turns. Posts come first, because a completion
    must not pass a posted write that came before it (PCIe Base 3.0, 2.4.1): what the host has read
    must not run ahead of a queue entry or an interrupt. A source should offer the lines of a TLP
    without gaps, because the other sources wait for its last line.

    While `enable` is 0 no request begins. Posts, writes and reads wait, and replies pass them (PCIe
    Base 3.0, 7.5.1.1: Bus Master Enable does not affect completions). A TLP that has begun is
    completed. With `discard`, requests that may not begin are dropped, each as a whole. A dropped
    write with `mark` pulses `marked`, because its source waits for this.

    Parameters
    ----------
    data_width : 64, 128 or 256
    endianness : of payload DWs: "little" or "big" (see tlp.py)
    quads      : see RequestComposer

    Attributes
    ----------
    writes  : Endpoint(write_layout), in
    reads   : Endpoint(read_layout), in
    posts   : Endpoint(write_layout), in
    replies : Endpoint(reply_layout), in
    source  : Endpoint(phy_layout), out
    marked  : Signal, out       the PHY takes the last beat of a write or post with `mark`
    id      : Signal(16), in    requester and completer ID
    enable  : Signal, in        requests may begin; 1 if not driven
    discard : Signal, in        requests that may not begin are dropped
    waits   : Signal, out       a request waits because it may not begin
    dropped : Signal, out       one cycle for each dropped request

    Cycles: as many as the TLPs have beats; 2 from a sink to the source.
    """
    def __init__(self, data_width, endianness, quads=False):
        self.posts_composer   = RequestComposer(data_width, write=True, quads=quads)
        self.replies_composer = ReplyComposer(data_width)
        self.writes_composer  = RequestComposer(data_width, write=True, quads=quads)
        self.reads_composer   = RequestComposer(data_width, write=False, quads=quads)
        self.assembler = assembler = TLPAssembler(data_width, endianness)
        self.posts     = self.posts_composer.sink
        self.replies   = self.replies_composer.sink
        self.writes    = self.writes_composer.sink
        self.reads     = self.reads_composer.sink
        self.source    = assembler.source
        self.marked    = Signal()
        self.id        = Signal(16)
        self.enable    = Signal(reset=1)
        self.discard   = Signal()
        self.waits     = Signal()
        self.dropped   = Signal()

        # # #

        composers = [
            self.posts_composer, self.replies_composer, self.writes_composer, self.reads_composer]
        self.comb += [c.id.eq(self.id) for c in composers]

        POST, REPLY, WRITE, READ = range(4)
        post, reply, write, read = (stream.Endpoint(tlp.tlp_layout(data_width)) for _ in range(4))
        choice    = Signal(2)
        granted   = Signal(2)
        locked    = Signal()  # between the first beat and the last line of a TLP
        read_turn = Signal()  # reads have priority over writes
        self.comb += [
            If(locked,
                choice.eq(granted)
            ).Elif(post.valid,
                choice.eq(POST)
            ).Elif(reply.valid,
                choice.eq(REPLY)
            ).Elif(write.valid & ~(read_turn & read.valid),
                choice.eq(WRITE)
            ).Else(
                choice.eq(READ)
            ),
            Case(
                choice,
                {
                    n: source.connect(assembler.sink)
                    for n, source in enumerate([post, reply, write, read])}),
        ]

        # Bus Mastering ----------------------------------------------------------------------------

        # A request passes if requests are enabled, or if the assembler has begun it.
        requests_open = Signal(reset=1)
        # The assembler has begun a request, and its last line is still to come.
        request_begun = Signal()
        marks         = Signal(2)  # requests with `mark` whose last line is in the assembler
        # Requests may be dropped now: no mark of the PHY can come in the same cycle.
        dropping = Signal()
        waits    = Signal(3)
        # At most one in a cycle, so that a counter can count them.
        drop   = [Signal(name=f"drop{n}") for n in range(3)]
        ends   = Signal(3)  # the dropped line is the last of its request
        marked = Signal(3)
        self.comb += [
            self.replies_composer.source.connect(reply),
            request_begun.eq(locked & (granted != REPLY)),
            dropping.eq(self.discard & ~requests_open & ~request_begun & (marks == 0)),
        ]
        sources = [composer.source for composer in composers]
        for n, (kind, gate) in enumerate([(POST, post), (WRITE, write), (READ, read)]):
            source   = sources[kind]
            may_pass = Signal()
            # Part of the request was dropped: its rest is dropped too, whatever `enable` is.
            dropping_rest = Signal()
            dropped       = Signal()  # the request's line may be dropped in this cycle
            self.comb += [
                may_pass.eq((requests_open & ~dropping_rest) | (locked & (granted == kind))),
                source.connect(gate, omit={"valid", "ready"}),
                gate.valid.eq(source.valid & may_pass),
                dropped.eq((dropping | dropping_rest) & ~reduce(or_, drop[:n], 0)),
                source.ready.eq(Mux(may_pass, gate.ready, dropped)),
                waits[n].eq(source.valid & ~may_pass),
                drop[n].eq(waits[n] & dropped),
                ends[n].eq(drop[n] & source.last),
                marked[n].eq(ends[n] & source.mark),
            ]
            self.sync += If(drop[n], dropping_rest.eq(~source.last))
        self.comb += [
            self.marked.eq(assembler.marked | (marked != 0)),
            self.dropped.eq(ends != 0),
        ]
        self.sync += [
            requests_open.eq(self.enable),
            self.waits.eq(waits != 0),
            marks.eq(
                marks +
                (
                    assembler.sink.valid & assembler.sink.ready & assembler.sink.last &
                    assembler.sink.mark) -
                assembler.marked),
        ]
        # Choice -----------------------------------------------------------------------------------

        self.sync += [
            If(assembler.begun,
                locked.eq(1),
                granted.eq(choice),
            ),
            If(assembler.sink.valid & assembler.sink.ready,
                locked.eq(~assembler.sink.last),
                granted.eq(choice),
                If(choice == WRITE, read_turn.eq(1)),
                If(choice == READ,  read_turn.eq(0)),
            )
        ]
