"""A ring node: the port between the packet layer and a ring."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one, number_of, value_of
from dibber.common.places import BypassedFIFO
from dibber.common.pulses import Pulses
from dibber.fabric.ring.election import RingElection
from dibber.fabric.ring.numbers import RingNumbers
from dibber.fabric.ring.output import RingOutput
from dibber.fabric.ring.reservation import RingReservation
from dibber.fabric.ring.send import RETRY_CYCLES, SLOT_BITS, SLOTS, RingSend
from dibber.fabric.ring.transit import RingTransit, ring_symbols_layout
from dibber.fabric.ring.words import (ACCEPTED, ADDRESS_BITS, BUSY_A, BUSY_B, GRANT, NUMBER_BITS,
    STATUS_BITS, resume_word, ring_word, start_word)
from dibber.layouts import word_layout
from dibber.link.link_receiver import WordDecoder
from dibber.link.symbols import K_END, K_END_BAD
from dibber.link.training import LinkDiagnosis, LinkTraining

# By channel. CONTROL and EXPRESS have packets of at most 48 words. BULK has 4096 bytes of payload,
# 16 block CRCs, and at most 18 words of header, extension and CRC.
PACKET_WORDS  = (64, 64, 1088, 64)
SEND_WORDS    = (256, 256, 4096, 256)
RECEIVE_WORDS = (256, 256, 4096, 256)

# The largest packet with START, prefix, END and idle, and steps that the transmitter does not take.
BYPASS_WORDS = 2048

# Sender -------------------------------------------------------------------------------------------

class RingSender(LiteXModule):
    """Choose the channel that sends next, and make a packet's words of its buffer.

    CONTROL goes first, then the lowest channel. After a packet of any channel except CONTROL, the
    channels behind it go first once, also if packets of CONTROL come between.

    Parameters
    ----------
    buffers : list of RingSend, by channel

    Attributes
    ----------
    up      : Signal(), in
    address : Signal(ADDRESS_BITS), in
    free    : Signal(), in           another packet may be SENT
    number  : Signal(NUMBER_BITS), in
    card    : Signal(ADDRESS_BITS), out   the target, as the buffers know it
    place   : Signal(ADDRESS_BITS), in    in the same cycle: its address on this ring
    begin   : Signal(), out          a packet leaves
    channel : Signal(2), out         with `begin`
    slot    : Signal(SLOT_BITS), out with `begin`
    source  : Endpoint(ring_symbols_layout), out
    urgent  : Signal(), out          START of a packet of CONTROL is at the source

    Cycles: 0 from a buffer's `offer` to START at the source.
    """
    def __init__(self, buffers):
        channels = len(buffers)
        self.up      = Signal()
        self.address = Signal(ADDRESS_BITS)
        self.free    = Signal()
        self.number  = Signal(NUMBER_BITS)
        self.card    = Signal(ADDRESS_BITS)
        self.place   = Signal(ADDRESS_BITS)
        self.begin   = Signal()
        self.channel = Signal(2)
        self.slot    = Signal(SLOT_BITS)
        self.source  = source = stream.Endpoint(ring_symbols_layout())
        self.urgent  = Signal()

        # # #

        offers = Signal(channels)
        behind = Signal(channels)  # channels that go first now
        first  = Signal(channels)  # those that offer, of the channels to choose from
        choice = Signal(channels)  # one-hot
        active = Signal(channels)
        inside = Signal()
        prefix = Signal()          # the prefix comes next
        ending = Signal()          # END comes next
        bad    = Signal()
        prefix_word = Signal(32)
        of     = lambda mask, name: value_of(mask, [getattr(buffer, name) for buffer in buffers])
        head   = Signal()
        statements, word = ring_word(
            self.place, self.address, self.number, Cat(Constant(0, 2), head))
        self.comb += [
            self.card.eq(of(choice, "target")),
            head.eq(of(choice, "head")),
            offers.eq(Cat(*[buffer.offer for buffer in buffers])),
            first.eq(offers),
            If(~offers[0] & ((offers & behind) != 0), first.eq(offers & behind)),
            choice.eq(lowest_one(first)),
            self.channel.eq(number_of(choice)),
            self.slot.eq(of(choice, "slot")),
            self.urgent.eq(~inside & choice[0]),
            *statements,
            source.k.eq(~inside | ending),
            If(~inside,
                source.valid.eq((offers != 0) & self.free & self.up),
                source.data.eq(start_word(self.channel))
            ).Else(
                source.valid.eq(1),
                If(prefix,
                    source.data.eq(prefix_word)
                ).Elif(ending,
                    source.data.eq(Mux(bad, K_END_BAD, K_END))
                ).Else(
                    source.data.eq(of(active, "data"))
                ),
            ),
            self.begin.eq(~inside & source.valid & source.ready),
            *[buffer.begin.eq(self.begin & choice[n]) for n, buffer in enumerate(buffers)],
            *[buffer.next_.eq(inside & ~prefix & ~ending & source.ready & active[n])
                for n, buffer in enumerate(buffers)],
        ]
        self.sync += [
            If(self.begin,
                active.eq(choice),
                inside.eq(1),
                prefix.eq(1),
                ending.eq(0),
                prefix_word.eq(word),
                bad.eq(of(choice, "bad")),
                # CONTROL leaves `behind` as it is. Otherwise EXPRESS would go first again, and BULK
                # would wait for as long as both have packets.
                *[If(choice[n], behind.eq((1 << channels) - (2 << n))) for n in range(1, channels)],
            ).Elif(inside & source.ready,
                prefix.eq(0),
                ending.eq(~prefix & of(active, "last")),
                If(ending, inside.eq(0)),
            ),
            If(~self.up, inside.eq(0)),
        ]

# Pairs --------------------------------------------------------------------------------------------

class RingPairs(LiteXModule):
    """Send grants: RESUME and an echo word. One to this node itself goes round the ring.

    Attributes
    ----------
    grants  : list of Record(valid, ready, source), in   by channel
    address : Signal(ADDRESS_BITS), in
    up      : Signal(), in
    ping    : Signal(), in    pulse: send one to this node itself, on channel 0
    pinged  : Signal(), out   pulse: it leaves
    source  : Endpoint(ring_symbols_layout), out
    """
    def __init__(self, grants):
        channels = len(grants)
        self.address = Signal(ADDRESS_BITS)
        self.up      = Signal()
        self.ping    = Signal()
        self.pinged  = Signal()
        self.source  = source = stream.Endpoint(ring_symbols_layout())

        # # #

        due     = Signal()
        valid   = Signal(channels)
        choice  = Signal(channels)
        second  = Signal()
        channel = Signal(2)
        target  = Signal(ADDRESS_BITS)
        statements, word = ring_word(
            target, self.address, Constant(0, NUMBER_BITS), Constant(GRANT, STATUS_BITS))
        self.comb += [
            valid.eq(Cat(*[grant.valid for grant in grants])),
            choice.eq(lowest_one(valid)),
            channel.eq(number_of(choice)),
            *statements,
            source.valid.eq(second | ((due | (valid != 0)) & self.up)),
            source.k.eq(~second),
            source.data.eq(Mux(second, word, resume_word(Mux(due, 0, channel)))),
            self.pinged.eq(source.ready & ~second & due),
            *[grant.ready.eq(source.ready & ~second & ~due & choice[n])
                for n, grant in enumerate(grants)],
        ]
        self.sync += [
            If(source.ready,
                second.eq(~second),
                If(~second,
                    due.eq(0),
                    target.eq(self.address),
                    If(~due, target.eq(value_of(choice, [grant.source for grant in grants])))
                ),
            ),
            If(self.ping, due.eq(1)),
            If(~self.up,
                due.eq(0),
                second.eq(0)
            ),
        ]

# Ring Port ----------------------------------------------------------------------------------------

class RingPort(LiteXModule):
    """A node of a ring, with the interface of LinkPort: docs/design/port.md.

    Parameters
    ----------
    packet_words  : most words of a packet, by channel
    send_words    : depths of the send buffers, by channel, powers of two
    receive_words : depths of the receive FIFOs, by channel
    bypass_words  : depth of the bypass FIFO; more than the largest packet and 4
    view          : RingView: how the layer above numbers the cards; by default as the ring does

    Attributes
    ----------
    As LinkPort, and:
    buffers       : list of RingSend, by channel
    address, size : Signal, out   of this node; nodes of the ring, 0 if unknown
    scrubber      : Signal(), out
    places        : packets of a channel that the port keeps
    kept          : list of Signal(), out   by channel: as RingSend
    keeps, gone   : lists of Signal(places), out   by channel: as RingSend
    events        : dict of pulses that have no counter: SENT, ACCEPTED, REFUSED, LOST, DROPPED,
                    FLUSHED, SCRUBBED, EXPIRED, GO_SET, STALLED (cycles)
    `stopped` has the channels of which a packet waits for its grant. `round_trip` is the way round
    the ring.

    Cycles: docs/design/ring.md.
    """
    places = SLOTS

    def __init__(self, packet_words=PACKET_WORDS, send_words=SEND_WORDS,
        receive_words=RECEIVE_WORDS, bypass_words=BYPASS_WORDS, view=None):
        channels = len(packet_words)
        assert bypass_words > max(packet_words) + 4
        self.signal     = Signal()
        self.stopped    = Signal(channels)
        self.ping       = Signal()
        self.round_trip = Signal(32)

        # # #

        self.decoder   = decoder   = WordDecoder(channels, tagged=True)
        self.training  = training  = LinkTraining()
        self.diagnosis = diagnosis = LinkDiagnosis()
        self.election  = election  = RingElection()
        self.transit   = transit   = RingTransit(decoder, packet_words)
        self.output    = output    = RingOutput(bypass_words)
        self.numbers   = numbers   = RingNumbers()
        buffers = [RingSend(words, depth) for words, depth in zip(packet_words, send_words)]
        self.submodules += buffers
        self.buffers   = buffers
        self.sender    = sender    = RingSender(buffers)
        fifos   = [BypassedFIFO([("data", 32), ("bad", 1)], depth) for depth in receive_words]
        self.submodules += fifos
        rooms   = [
            RingReservation(words, depth) for words, depth in zip(packet_words, receive_words)]
        self.submodules += rooms
        self.pairs     = pairs     = RingPairs([room.grant for room in rooms])

        self.serial_tx  = output.source
        self.serial_rx  = decoder.sink
        self.sinks      = [buffer.sink for buffer in buffers]
        self.kept       = [buffer.kept for buffer in buffers]
        self.keeps      = [buffer.keeps for buffer in buffers]
        self.gone       = [buffer.gone for buffer in buffers]
        self.sources    = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.test       = training.test
        self.retrain    = Signal()
        self.state      = training.state
        self.reason     = diagnosis.reason
        self.up         = up = training.up
        self.nonce      = election.nonce
        self.peer       = election.peer
        self.peer_known = election.peer_known
        self.address    = election.address
        self.size       = election.size
        self.scrubber   = election.scrubber

        # Training ---------------------------------------------------------------------------------
        self.comb += [
            training.signal.eq(self.signal),
            training.heard.eq(decoder.is_flow),
            training.flow.eq(decoder.data[8:16]),
            training.told.eq(output.told),
            training.known.eq(election.known & (view.agrees if view else 1)),
            training.retrain.eq(self.retrain | output.overflow & up),
            decoder.hunt.eq(training.hunt | training.test),
            diagnosis.state.eq(training.state),
            diagnosis.signal.eq(self.signal),
            diagnosis.loopback.eq(election.loopback),
            diagnosis.silenced.eq(training.silenced),
            diagnosis.retrain.eq(self.retrain),
            diagnosis.word.eq(decoder.valid),
            diagnosis.faulty.eq(decoder.code_error | decoder.disparity_error),
            diagnosis.inverted.eq(decoder.inverted),
            election.aligned.eq(~training.hunt & ~training.test),
            election.up.eq(up),
            election.lost.eq(training.lost),
            election.came.eq(transit.housekeep),
            transit.keep.eq(election.keep),
        ]

        # The Ring ---------------------------------------------------------------------------------
        self.comb += [
            transit.up.eq(up),
            transit.address.eq(election.address),
            transit.scrubber.eq(election.scrubber),
            output.push.eq(transit.push),
            output.idle.eq(transit.idle),
            output.go.eq(transit.go),
            output.scrubber.eq(election.scrubber),
            # The scrubber begins to say WHOLE; all others repeat it.
            output.whole.eq(Mux(election.scrubber, election.closed & ~training.hunt, up)),
            output.up.eq(up),
            sender.source.connect(output.own),
            output.urgent.eq(sender.urgent),
            pairs.source.connect(output.pairs),
            election.single.connect(output.single),
        ]

        # Receive ----------------------------------------------------------------------------------
        take = transit.take
        for n, (fifo, room, source) in enumerate(zip(fifos, rooms, self.sources)):
            self.comb += [
                fifo.sink.valid.eq(take.valid & take.channel[n]),
                fifo.sink.data.eq(take.data),
                fifo.sink.first.eq(take.first),
                fifo.sink.last.eq(take.last),
                fifo.sink.bad.eq(take.bad),
                fifo.source.connect(source),
                source.channel.eq(n),
                room.level.eq(fifo.level),
                room.ask.eq(transit.ask.valid & transit.ask.channel[n]),
                room.source.eq(transit.ask.source),
                room.head.eq(transit.ask.head),
                room.taking.eq(transit.taking[n]),
                room.clear.eq(~up),
            ]
        channel_of = lambda name: value_of(
            transit.ask.channel, [getattr(room, name) for room in rooms])
        self.comb += [
            transit.accept.eq(channel_of("accept")),
            transit.refusal.eq(channel_of("status")),
            pairs.address.eq(election.address),
            pairs.up.eq(up),
            pairs.ping.eq(self.ping),
        ]

        # Send -------------------------------------------------------------------------------------
        retry  = Signal(max=RETRY_CYCLES)
        event  = numbers.event
        is_own = Signal()  # a grant that this node sent to itself: the answer to a ping
        self.sync += retry.eq(retry + 1)
        self.comb += [
            is_own.eq(transit.answer.valid & (transit.answer.status == GRANT) &
                (transit.answer.source == election.address)),
            numbers.answer.eq(transit.answer),
            numbers.answer.valid.eq(transit.answer.valid & ~is_own),
            numbers.up.eq(up),
            numbers.begin.eq(sender.begin),
            numbers.channel.eq(sender.channel),
            numbers.slot.eq(sender.slot),
            sender.up.eq(up),
            sender.address.eq(election.address),
            sender.free.eq(numbers.free),
            sender.number.eq(numbers.number),
        ]
        granter = Signal(ADDRESS_BITS)  # the node whose grant came, as the buffers know it
        if view:
            self.comb += [
                view.card.eq(sender.card),
                sender.place.eq(view.place),
                view.source.eq(event.source),
                granter.eq(view.sender),
            ]
        else:
            self.comb += [
                sender.place.eq(sender.card),
                granter.eq(event.source),
            ]
        for n, buffer in enumerate(buffers):
            self.comb += [
                buffer.up.eq(up),
                buffer.address.eq(view.address if view else election.address),
                buffer.size.eq(view.size if view else election.size),
                buffer.retry.eq(retry == 0),
                buffer.event.valid.eq(event.valid & (event.channel == n)),
                buffer.event.status.eq(event.status),
                buffer.event.slot.eq(event.slot),
                buffer.event.source.eq(granter),
                self.stopped[n].eq(buffer.waits),
            ]

        # The Way Round ----------------------------------------------------------------------------
        cycles  = Signal(32)
        waiting = Signal()
        self.sync += [
            cycles.eq(cycles + 1),
            If(waiting & is_own,
                waiting.eq(0),
                self.round_trip.eq(cycles)
            ),
            If(pairs.pinged,
                waiting.eq(1),
                cycles.eq(0)
            ),
            If(self.ping, self.round_trip.eq(0)),
        ]

        # Counters ---------------------------------------------------------------------------------
        trained   = Signal()
        is_trained = Signal()
        refusals  = Signal()  # a packet is refused here
        misrouted = Pulses(
            transit.misrouted, *[buffer.dropped for buffer in buffers], bits=5)
        dropped   = Pulses(*[buffer.dropped for buffer in buffers], bits=5)
        flushed   = Pulses(*[buffer.flushed for buffer in buffers], bits=6)
        self.submodules.misroutes = misrouted
        self.submodules += dropped, flushed
        self.comb += [
            is_trained.eq(~training.hunt),
            refusals.eq(transit.ask.valid & ~transit.accept),
        ]
        self.sync += trained.eq(training.trained)
        self.slack_high = []
        for n, fifo in enumerate(fifos):
            high  = Signal.like(fifo.level)
            units = Signal(8, name=f"slack_high{n}")
            self.comb += units.eq(Mux(high[2:] > 255, 255, high[2:]))
            self.sync += If(trained | (fifo.level > high), high.eq(fifo.level))
            self.slack_high.append(units)
        self.counters = {
            "CODE_ERRORS":      decoder.code_error & is_trained,
            "DISPARITY_ERRORS": decoder.disparity_error & is_trained,
            "SLACK_OVERFLOW":   output.overflow & up,
            "STOPS_SENT":       refusals,
            "STOPS_RECEIVED":   event.valid & ((event.status == BUSY_A) | (event.status == BUSY_B)),
            "STOPPED_CYCLES":   up & (self.stopped != 0),
            "STOPPING_CYCLES":  reduce(or_, [room.waiting for room in rooms]),
            "LINK_TRAINED":     training.trained,
            "LINK_LOST":        training.lost,
            "WORDS_RECEIVED":   decoder.valid & is_trained,
            "PACKET_MISROUTED": misrouted.pulse,
        }
        any_buffer = lambda name: reduce(or_, [getattr(buffer, name) for buffer in buffers])
        self.events = {
            "SENT":     sender.begin,
            "ACCEPTED": event.valid & (event.status == ACCEPTED),
            "REFUSED":  any_buffer("refused"),
            "LOST":     any_buffer("lost"),
            "DROPPED":  dropped.pulse,
            "FLUSHED":  flushed.pulse,
            "SCRUBBED": transit.scrubbed,
            "EXPIRED":  reduce(or_, [room.expired for room in rooms]),
            "GO_SET":   output.go_set & up,
            "STALLED":  output.stalled,
        }
