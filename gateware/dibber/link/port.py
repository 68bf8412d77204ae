# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""One port of the link: all between a serial PHY and the packet layer."""

from migen import *

from litex.gen import *

from dibber.link.framing import LinkReceiver, LinkTransmitter
from dibber.link.slack import SlackBuffer
from dibber.link.symbols import HEAR_BIT
from dibber.link.training import LinkTraining
from dibber.packet.pulses import Pulses

class LinkPort(LiteXModule):
    """Framing, flow control, slack and training of one port.

    Parameters
    ----------
    channels    : number of virtual channels, up to 4
    slack_words : depth of each channel's slack buffer

    Attributes
    ----------
    serial_tx : Endpoint(serial_tx_layout), out
    serial_rx : Endpoint(serial_rx_layout), in
    sinks     : list of Endpoint(word_layout), in    packets to send, by channel
    sources   : list of Endpoint(word_layout), out   packets received, by channel
    signal    : Signal(), in          the transceiver sees a signal
    state     : Signal(4), out        enum link_state
    stopped   : Signal(channels), out channels that the other end stopped
    counters  : dict of pulses: CODE_ERRORS and DISPARITY_ERRORS (words with errors, while not DOWN),
                SLACK_OVERFLOW, STOPS_SENT, STOPS_RECEIVED, STOPPED_CYCLES, LINK_LOST

    Cycles: 1 from `sinks` to `serial_tx`; 4 from a word and its successor on `serial_rx` to `sources`.
    """
    def __init__(self, channels=2, slack_words=512):
        assert channels <= 4
        self.signal  = Signal()
        self.stopped = Signal(channels)

        # # #

        self.transmitter = transmitter = LinkTransmitter(channels)
        self.receiver    = receiver    = LinkReceiver(channels)
        self.training    = training    = LinkTraining()
        slack = [SlackBuffer(slack_words) for _ in range(channels)]
        for n, buffer in enumerate(slack):
            self.add_module(f"slack{n}", buffer)

        self.serial_tx = transmitter.source
        self.serial_rx = receiver.sink
        self.sinks     = transmitter.sinks
        self.sources   = [buffer.source for buffer in slack]
        self.state     = training.state

        stops = Cat(*[buffer.stop for buffer in slack])
        self.comb += [
            training.signal.eq(self.signal),
            training.heard.eq(receiver.heard),
            training.flow.eq(receiver.flow),
            receiver.hunt.eq(training.hunt),
            receiver.up.eq(training.up),
            transmitter.up.eq(training.up),
            transmitter.go.eq(~self.stopped),
            transmitter.flow[:channels].eq(stops),
            transmitter.flow[HEAR_BIT].eq(training.hear),
            *[source.connect(buffer.sink) for source, buffer in zip(receiver.sources, slack)],
            *[source.channel.eq(n) for n, source in enumerate(self.sources)],
        ]

        # What the other end told last; without a link, nothing goes.
        before = Signal(channels)
        self.sync += [
            If(receiver.heard, self.stopped.eq(receiver.flow[:channels])),
            before.eq(stops),
        ]
        told   = [receiver.heard & receiver.flow[n] & ~self.stopped[n] for n in range(channels)]
        rising = [buffer.stop & ~before[n] for n, buffer in enumerate(slack)]
        self.stops_sent     = Pulses(*rising)
        self.stops_received = Pulses(*told)
        self.overflow       = Pulses(*[buffer.overflow for buffer in slack])
        self.counters = {
            "CODE_ERRORS":      receiver.code_error,
            "DISPARITY_ERRORS": receiver.disparity_error,
            "SLACK_OVERFLOW":   self.overflow.pulse,
            "STOPS_SENT":       self.stops_sent.pulse,
            "STOPS_RECEIVED":   self.stops_received.pulse,
            "STOPPED_CYCLES":   transmitter.waits,
            "LINK_LOST":        training.lost,
        }
