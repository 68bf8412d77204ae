"""One port of the link: everything between a serial PHY and the packet layer."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import word_layout
from dibber.link.peer import LinkPeer, RoundTrip
from dibber.link.link_receiver import LinkReceiver
from dibber.link.slack import SlackBuffer
from dibber.link.symbols import HEAR_BIT
from dibber.link.training import LinkDiagnosis, LinkTraining
from dibber.link.link_transmitter import LinkTransmitter
from dibber.common.pulses import Pulses
from dibber.common.places import Skid

# Depths of the slack buffers by channel. The part above the high mark takes the words that come
# after STOP. The part below it keeps the packet layer busy from GO until words come again. BULK
# runs at the link's rate and has 384 words below the mark. Of these, 192 are left when it sends GO,
# more than the round trip of 50 m of cable takes. The other channels have packets of at most 48
# words; EXPRESS has room for two of them before STOP. CONTROL is always drained at once and stays
# empty. 256 is the smallest depth; up to 512 words fit in one block RAM of the ECP5.
SLACK_WORDS = (256, 256, 512, 256)

class PacketDropper(LiteXModule):
    """Drop packets that come while a link is not UP. A packet that has begun before goes on.

    Attributes
    ----------
    sink, source : Endpoint(word_layout)
    up           : Signal(), in

    Cycles: 0.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(word_layout())
        self.source = source = stream.Endpoint(word_layout())
        self.up     = Signal()

        # # #

        inside = Signal()  # words of the packet have gone to the source
        rest   = Signal()  # the rest of the packet is dropped
        drops  = Signal()
        self.comb += [
            drops.eq(rest | (~inside & ~self.up)),
            sink.connect(source, omit={"valid", "ready"}),
            source.valid.eq(sink.valid & ~drops),
            sink.ready.eq(source.ready | drops),
        ]
        self.sync += If(sink.valid & sink.ready,
            inside.eq(~sink.last & ~drops),
            rest.eq(~sink.last & drops)
        )

class LinkPort(LiteXModule):
    """Framing, flow control, slack buffers and training of one port.

    Parameters
    ----------
    channels    : number of virtual channels, 2 to 4
    slack_words : depth of the slack buffers: a list by channel, or one number for all
    sunk        : channels whose words are always taken at once; they have no slack buffer
    drops       : a packet that comes while the link is not UP is dropped. Otherwise it waits

    Attributes
    ----------
    serial_tx : Endpoint(serial_tx_layout), out
    serial_rx : Endpoint(serial_rx_layout), in
    sinks     : list of Endpoint(word_layout), in    packets to send, by channel
    sources   : list of Endpoint(word_layout), out   received packets, by channel
    signal    : Signal(), in          the transceiver detects a signal
    test      : Signal(), in          stay in TEST: no packets
    retrain   : Signal(), in          pulse: go DOWN and train again; the packet layer is not reset
    state     : Signal(4), out        enum link_state
    reason    : Signal(4), out        enum link_reason
    up        : Signal(), out         the state is UP
    stopped   : Signal(channels), out channels that the other end has stopped
    nonce     : Signal(16), in        sent to the other end; if it comes back the link is looped
                back, unless it is 0
    peer      : Signal(16), out       nonce of the other end
    peer_known: Signal(), out         it was received since the state was DOWN
    ping      : Signal(), in          pulse: measure `round_trip` round_trip: Signal(32), out
                cycles through both transceivers and the cable, both ways; see RoundTrip for what is
                subtracted. 0 from `ping` until it is known slack_high: list of Signal(8), out
                highest levels since the state became UP, in units of 4 words
    counters  : dict of pulses: CODE_ERRORS and DISPARITY_ERRORS (words with errors, except in
                DOWN), SLACK_OVERFLOW, STOPS_SENT, STOPS_RECEIVED, STOPPED_CYCLES, STOPPING_CYCLES,
                LINK_TRAINED, LINK_LOST, WORDS_RECEIVED, PACKET_MISROUTED

    Cycles: 1 from `sinks` to `serial_tx`; 3 from a word's successor on `serial_rx` to `sources`
    through an empty slack buffer, 2 for a channel in `sunk`.
    """
    routed = False  # whether packets with a prefix are received, as in a switch

    @staticmethod
    def make_buffers(depths):
        """The slack buffers of channels: `depths` is a dict of channel -> words. A subclass may
        return other blocks with the attributes of SlackBuffer.
        """
        return {n: SlackBuffer(words) for n, words in depths.items()}

    def __init__(self, channels=4, slack_words=SLACK_WORDS, sunk=(), drops=False):
        depths = [slack_words]*channels if isinstance(slack_words, int) else slack_words[:channels]
        assert max(depths) < 1024
        self.signal  = Signal()
        self.stopped = Signal(channels)

        # # #

        self.transmitter = transmitter = LinkTransmitter(channels)
        self.receiver    = receiver    = LinkReceiver(channels, self.routed)
        self.training    = training    = LinkTraining()
        self.diagnosis   = diagnosis   = LinkDiagnosis()
        self.peering     = peering     = LinkPeer()
        self.measure     = measure     = RoundTrip()
        # Skid buffers: the arbiter's grant depends on all channels, so a channel sees a stall one
        # cycle later.
        pipes = [Skid(word_layout()) for _ in range(channels)]
        self.submodules += pipes
        self.submodules += (droppers := [PacketDropper() for _ in range(channels if drops else 0)])
        offered = [pipe.source for pipe in pipes]
        if drops:
            self.comb += [
                statement for pipe, dropper in zip(pipes, droppers) for statement in (
                    pipe.source.connect(dropper.sink), dropper.up.eq(training.up))]
            offered = [dropper.source for dropper in droppers]
        self.comb += [source.connect(sink) for source, sink in zip(offered, transmitter.sinks)]
        slack = self.make_buffers({n: words for n, words in enumerate(depths) if n not in sunk})
        for n, buffer in slack.items():
            self.add_module(f"slack{n}", buffer)
        of_slack = lambda name: [
            getattr(slack[n], name) if n in slack else 0 for n in range(channels)]

        self.serial_tx = transmitter.source
        self.serial_rx = receiver.sink
        self.sinks     = [pipe.sink for pipe in pipes]
        self.sources   = [
            slack[n].source if n in slack else source for n, source in enumerate(receiver.sources)]
        self.test       = training.test
        self.retrain    = training.retrain
        self.state      = training.state
        self.reason     = diagnosis.reason
        self.up         = training.up
        self.nonce      = peering.nonce
        self.peer       = peering.peer
        self.peer_known = peering.peer_known
        self.ping       = measure.start
        self.round_trip = measure.round_trip

        # Packets ----------------------------------------------------------------------------------
        words = receiver.decoder
        stops = Signal(channels)
        self.comb += [
            *[stops[n].eq(stop) for n, stop in enumerate(of_slack("stop"))],
            receiver.up.eq(training.up),
            transmitter.up.eq(training.up),
            transmitter.go.eq(~self.stopped),
            transmitter.flow[:channels].eq(stops),
            transmitter.flow[HEAR_BIT].eq(training.hear),
            *[receiver.sources[n].connect(buffer.sink) for n, buffer in slack.items()],
            *[buffer.source.channel.eq(n) for n, buffer in slack.items()],
        ]

        # The state in the other end's last flow word. While the link is not UP nothing is sent.
        self.sync += If(words.is_flow, self.stopped.eq(words.data[8:8 + channels]))

        # Training ---------------------------------------------------------------------------------
        self.comb += [
            training.signal.eq(self.signal),
            training.heard.eq(words.is_flow),
            training.flow.eq(words.data[8:16]),
            training.told.eq(transmitter.told),
            training.known.eq(peering.peer_known & ~peering.loopback),
            # Also in TEST, because the words of a loopback may have another alignment.
            words.hunt.eq(training.hunt | training.test),
            diagnosis.state.eq(training.state),
            diagnosis.signal.eq(self.signal),
            diagnosis.loopback.eq(peering.loopback),
            diagnosis.silenced.eq(training.silenced),
            diagnosis.retrain.eq(training.retrain),
            diagnosis.word.eq(words.valid),
            diagnosis.faulty.eq(words.code_error | words.disparity_error),
            diagnosis.inverted.eq(words.inverted),
        ]

        # The Other End ----------------------------------------------------------------------------
        self.comb += [
            transmitter.nonce.eq(self.nonce),
            peering.heard.eq(words.is_nonce),
            peering.said.eq(words.data[8:24]),
            peering.forget.eq(training.hunt),
            measure.heard_ping.eq(words.is_ping),
            measure.heard_pong.eq(words.is_pong),
            measure.number.eq(words.data[8:16]),
            measure.ping.connect(transmitter.ping),
            measure.pong.connect(transmitter.pong),
        ]

        # Counters ---------------------------------------------------------------------------------
        is_trained    = Signal()  # not DOWN: words should be without errors
        stops_before  = Signal(channels)
        rising        = Signal(channels)
        stop_received = Signal(channels)
        overflows     = Signal(channels)
        trained       = Signal()
        self.comb += is_trained.eq(~training.hunt)
        self.sync += [
            stops_before.eq(stops),
            rising.eq(stops & ~stops_before),
            stop_received.eq(Mux(words.is_flow, words.data[8:8 + channels] & ~self.stopped, 0)),
            *[overflows[n].eq(overflow) for n, overflow in enumerate(of_slack("overflow"))],
            trained.eq(training.trained),
        ]
        self.slack_high = []
        for n in range(channels):
            high  = Signal(10)
            units = Signal(8, name=f"slack_high{n}")
            self.comb += units.eq(high[2:])
            if n in slack:
                self.sync += If(trained | (slack[n].level > high), high.eq(slack[n].level))
            self.slack_high.append(units)
        self.stops_sent     = Pulses(*rising)
        self.stops_received = Pulses(*stop_received)
        self.overflow       = Pulses(*overflows)
        self.counters       = {
            "CODE_ERRORS":      words.code_error & is_trained,
            "DISPARITY_ERRORS": words.disparity_error & is_trained,
            "SLACK_OVERFLOW":   self.overflow.pulse,
            "STOPS_SENT":       self.stops_sent.pulse,
            "STOPS_RECEIVED":   self.stops_received.pulse,
            "STOPPED_CYCLES":   transmitter.waits,
            "STOPPING_CYCLES":  training.up & (transmitter.told[:channels] != 0),
            "LINK_TRAINED":     training.trained,
            "LINK_LOST":        training.lost,
            "WORDS_RECEIVED":   words.valid & is_trained,
            "PACKET_MISROUTED": receiver.misrouted,
        }
