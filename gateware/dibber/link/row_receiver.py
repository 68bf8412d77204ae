"""Row receiver: rows of the bonded link become the packets of each channel."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import chunk_layout, row_layout
from dibber.link.rows import (BAD_BIT, CONTROL_ROW, DATA_ROW, ENDS_BIT, LANES, T_END, T_FLOW,
    T_NONCE, T_PING, T_PONG, T_RESUME, T_START, WORDS)
from dibber.link.symbols import nonce_crc

# Rows ---------------------------------------------------------------------------------------------

class RowDecoder(LiteXModule):
    """Decode the kind of each row, and move its words to the low end.

    Parameters
    ----------
    channels : number of virtual channels

    Attributes
    ----------
    sink  : Endpoint(row_layout(4)), in   without backpressure
    valid : Signal(), out   there is a row; exactly one of the next nine signals is 1
    is_data, is_start, is_resume, is_end, is_flow, is_nonce, is_ping, is_pong, is_wrong : Signal(),
            out   `is_wrong`: synchronisation headers, type, CRC-8 or a field cannot be so
    data    : Signal(256), out  words of the packet, from place 0 on
    octets  : Signal(16), out   octets 1 and 2 of a control word
    channel : Signal(channels), out   one-hot: the channel of START, RESUME or END
    words   : Signal(4), out    words of the packet in this row
    ends    : Signal(), out     the packet ends in this row
    bad     : Signal(), out     with `ends`: it must be dropped
    routed  : Signal(), out     with `is_start`: prefix words stand before the header

    Cycles: 1; a row a cycle.
    """
    def __init__(self, channels):
        self.sink    = sink = stream.Endpoint(row_layout(LANES))
        self.valid   = Signal()
        self.data    = Signal(32*WORDS)
        self.octets  = Signal(16)
        self.channel = Signal(channels)
        self.words   = Signal(4)
        self.ends    = Signal()
        self.bad     = Signal()
        self.routed  = Signal()

        # # #

        first, second = sink.data[8:16], sink.data[16:24]
        control = Signal()
        ends    = second[ENDS_BIT]
        packet  = Signal()  # the fields of START, RESUME or END can be so
        zero    = Signal()  # octet 2 is 0
        self.comb += [
            sink.ready.eq(1),
            control.eq((sink.header == CONTROL_ROW)
                & (sink.data[24:32] == nonce_crc(sink.data[8:24]))),
            packet.eq((first[:4] < channels) & ~first[7] & (second[6:] == 0) & (second[:4] < WORDS)
                & (ends | (second[:6] == 0))),
            zero.eq(second == 0),
        ]
        is_kind = lambda kind: control & (sink.data[:8] == kind)
        kinds = {
            "data":   sink.header == DATA_ROW,
            "start":  is_kind(T_START) & packet,
            "resume": is_kind(T_RESUME) & packet & (first[4:] == 0),
            "end":    is_kind(T_END) & packet & ends & (first[4:] == 0),
            "flow":   is_kind(T_FLOW) & zero,
            "nonce":  is_kind(T_NONCE),
            "ping":   is_kind(T_PING) & zero,
            "pong":   is_kind(T_PONG) & zero,
        }
        known = Signal(len(kinds))
        self.comb += known.eq(Cat(*kinds.values()))
        self.is_wrong = Signal()
        self.sync += [
            self.valid.eq(sink.valid),
            self.is_wrong.eq(sink.valid & (known == 0)),
            self.data.eq(Mux(known[0], sink.data, sink.data[32:])),
            self.octets.eq(sink.data[8:24]),
            *[self.channel[n].eq(first[:4] == n) for n in range(channels)],
            self.ends.eq(~known[0] & ends),
            self.bad.eq(second[BAD_BIT]),
            self.words.eq(Mux(known[0], WORDS, Mux(ends, second[:4], WORDS - 1))),
            self.routed.eq(first[4:7] != 0),
        ]
        for n, name in enumerate(kinds):
            kind = Signal(name=f"is_{name}")
            setattr(self, f"is_{name}", kind)
            self.sync += kind.eq(sink.valid & known[n])

# Receiver -----------------------------------------------------------------------------------------

class RowReceiver(LiteXModule):
    """Extract the packets of each channel from the rows.

    An error ends all begun packets as bad in the same cycle: a wrong row, a START inside a packet
    of its own channel, a row of data or an END that does not continue the last row's packet, the
    loss of the link. A RESUME of a channel without a begun packet is no error: its packet was ended
    here, and the sender cannot know. The rows behind it are ignored until the next START or RESUME.

    The route of a packet with a prefix does not end here; it is not begun.

    Parameters
    ----------
    channels : number of virtual channels, 2 to 4

    Attributes
    ----------
    sink    : Endpoint(row_layout(4)), in
    sources : list of Endpoint(chunk_layout()), out   without backpressure. A chunk that ends a
              packet early has no words
    up      : Signal(), in       packets are accepted
    misrouted : Signal(), out    one cycle for each packet with a prefix
    decoder : RowDecoder         its flow, nonce, ping and pong rows are used by other blocks

    Cycles: 1 to `sources`; a row a cycle.
    """
    def __init__(self, channels):
        self.decoder = decoder = RowDecoder(channels)
        self.sink    = decoder.sink
        self.sources = sources = [stream.Endpoint(chunk_layout()) for _ in range(channels)]
        self.up      = Signal()
        self.misrouted = Signal()

        # # #

        active       = Signal(channels)  # one-hot: channel of the last packet row; 0 after an end
        begun        = Signal(channels)
        packet       = Signal()          # START, RESUME or END
        start_clash  = Signal()          # START inside a packet of its own channel
        stray_row    = Signal()          # a row that continues nothing, while packets are begun
        ends_all_bad = Signal()
        self.comb += [
            packet.eq(decoder.is_start | decoder.is_resume | decoder.is_end),
            start_clash.eq(decoder.is_start & ((begun & decoder.channel) != 0)),
            stray_row.eq((begun != 0) & ((decoder.is_data & (active == 0))
                | (decoder.is_end & (active != decoder.channel)))),
            ends_all_bad.eq(decoder.is_wrong | start_clash | stray_row | ~self.up),
            self.misrouted.eq(self.up & decoder.is_start & decoder.routed),
        ]
        for n, source in enumerate(sources):
            begins = Signal(name=f"begins{n}")
            adds   = Signal(name=f"adds{n}")
            self.comb += [
                begins.eq(decoder.is_start & decoder.channel[n] & ~decoder.routed & ~ends_all_bad),
                adds.eq(begins | (begun[n] & Mux(decoder.is_data, active[n],
                    (decoder.is_resume | decoder.is_end) & decoder.channel[n]))),
                source.first.eq(begins),
                source.data.eq(decoder.data),
                If(ends_all_bad,
                    source.valid.eq(begun[n]),
                    source.last.eq(1),
                    source.bad.eq(1)
                ).Else(
                    source.valid.eq(adds),
                    source.last.eq(decoder.ends),
                    source.bad.eq(decoder.ends & decoder.bad),
                    source.words.eq(decoder.words)
                ),
            ]
            self.sync += If(source.valid, begun[n].eq(~source.last))
        self.sync += [
            If(packet, active.eq(Mux(decoder.ends, 0, decoder.channel))),
            If(ends_all_bad, active.eq(0)),
        ]
