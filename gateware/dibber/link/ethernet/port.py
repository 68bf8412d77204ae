"""A port over Ethernet: everything between the frame streams of a MAC and the packet layer."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.ethernet import ETHERNET_STATE
from dibber.link.ethernet.frames import payload_units, priorities_of
from dibber.link.ethernet.receiver import FrameReceiver
from dibber.link.ethernet.training import EthernetTraining
from dibber.link.ethernet.transmitter import FrameTransmitter
from dibber.link.peer import RoundTrip

# Units in the receive buffers by channel: docs/design/ethernet.md. BULK has what 10 Gb/s bring in
# 3 µs, two frames of the longest packet, and 256 units that the other end does not know of yet.
BUFFER_UNITS = (256, 512, 2048, 64)
# Units that may wait for the MAC. BULK has the longest packet of 530 units, and the next one.
QUEUE_UNITS  = (64, 128, 1088, 64)
# Cycles between STATUS frames: 13 µs at 156.25 MHz. A STATUS frame takes 84 bytes of the wire.
PERIOD_CYCLES = 2048

class EthernetPort(LiteXModule):
    """The sibling of LinkPort over Ethernet: docs/design/port.md and docs/design/ethernet.md.

        sinks ─▶ packers ─▶ scheduler ─▶ frames ─▶ frame_tx
        sources ◀─ readers ◀─ buffers ◀─ parser ◀─ frame_rx

    Parameters
    ----------
    channels : number of virtual channels, 2 to 4
    mtu      : bytes of a frame's payload, 72 to 9216; the header is part of it
    vlan     : identifier of the VLAN tag that each frame has, 0 to 4094; None: no tag
    priority : of the tag, 0 to 7 (IEEE 802.1Q, PCP); or one for each channel
    buffers  : units in the receive buffer of each channel, powers of two
    queues   : units that may wait for the MAC, for each channel
    period   : cycles between STATUS frames
    bulk_width : bits of a word of channel BULK, 32 or 64. The others have 32
    obeys    : the port has `paused`, because its MAC reads frames of priority-based flow control

    Attributes
    ----------
    frame_tx  : Endpoint(frame_layout), out   once a frame has begun, `valid` stays until its end
    frame_rx  : Endpoint(frame_layout), in    without backpressure; other stations' frames too
    mac       : Signal(48), in   own address, byte 0 of the wire in bits 7:0
    peer_mac  : Signal(48), out  address of the other end; all ones if it is not known
    signal    : Signal(), in     the MAC can send and receive
    paused    : Signal(8), in    with `obeys`: no frame of this priority may begin. Frames without
                a tag have priority 0
    frame_counters : dict of pulses, names of enum ethernet_counter
    round_trip : Signal(32), out  cycles from the beginning of a STATUS frame with a ping to the end
                of the one with its pong, minus four. Both frames are stored on their way
    the others : as of LinkPort. `slack_high` counts units of 16 bytes, up to 255. Of the counters,
                CODE_ERRORS are FRAMES_BAD, SLACK_OVERFLOW are FRAMES_NO_ROOM, STOPPED_CYCLES wait
                for credit; events of symbols and of STOP do not exist

    Cycles: 5 from a packet's last word on `sinks` to the first word of its frame; 7 from a frame's
    last word on `frame_rx` to the first word on `sources`. Both ways a word a cycle.
    """
    def __init__(self, channels=4, mtu=9000, vlan=None, priority=0, buffers=BUFFER_UNITS,
                 queues=QUEUE_UNITS, period=PERIOD_CYCLES, bulk_width=32, obeys=False):
        assert 2 <= channels <= 4
        assert 72 <= mtu <= 9216
        assert vlan is None or 0 <= vlan <= 4094
        limit  = payload_units(mtu)
        depths = buffers[:channels]
        # A fragment never waits for more credit than a buffer of the other end has.
        queues = [(min(limit, depth, buffer), depth)
            for depth, buffer in zip(queues[:channels], depths)]

        self.receiver    = receiver    = FrameReceiver(depths, vlan, bulk_width)
        self.transmitter = transmitter = FrameTransmitter(
            depths, queues, period, vlan, priorities_of(priority, channels), obeys, bulk_width)
        self.training    = training    = EthernetTraining(period)
        self.measure     = measure     = RoundTrip()

        self.bulk_width = bulk_width
        if obeys:
            self.paused = transmitter.paused
        self.frame_tx   = transmitter.source
        self.frame_rx   = receiver.sink
        self.sinks      = transmitter.sinks
        self.sources    = receiver.sources
        self.mac        = Signal(48)
        self.nonce      = Signal(16)
        self.signal     = training.signal
        self.test       = training.test
        self.retrain    = training.retrain
        self.state      = training.state
        self.reason     = training.reason
        self.up         = training.up
        self.peer_mac   = training.peer_mac
        self.peer       = training.peer
        self.peer_known = training.known
        self.stopped    = transmitter.stopped
        self.ping       = measure.start
        self.round_trip = measure.round_trip

        # # #

        self.comb += [
            receiver.mac.eq(self.mac),
            receiver.peer.eq(training.peer_mac),
            receiver.session.eq(training.session),
            receiver.up.eq(training.up),
            receiver.clear.eq(training.clear),

            training.mac.eq(self.mac),
            training.nonce.eq(self.nonce),
            training.status.eq(receiver.status),
            training.sender.eq(receiver.sender),
            training.said_nonce.eq(receiver.nonce),
            training.said_session.eq(receiver.their_session),
            training.said_state.eq(receiver.state),
            training.heard.eq(receiver.heard),
            training.heard_session.eq(receiver.heard_session),
            training.alive.eq(receiver.alive),
            training.got_data.eq(receiver.got_data),

            *[getattr(transmitter, name).eq(getattr(training, name))
                for name in ["peer_mac", "session", "peer", "peer_session", "known", "up",
                    "clear"]],
            transmitter.mac.eq(self.mac),
            transmitter.nonce.eq(self.nonce),
            transmitter.credit_came.eq(receiver.credit_came),
            *[credit.eq(now) for credit, now in zip(transmitter.credits, receiver.credits)],
            *[value.eq(came)
                for value, came in zip(transmitter.credit_values, receiver.credit_values)],

            measure.heard_ping.eq(training.of_peer & ((receiver.state & ETHERNET_STATE.PING) != 0)),
            measure.heard_pong.eq(training.of_peer & ((receiver.state & ETHERNET_STATE.PONG) != 0)),
            measure.number.eq(Mux(measure.heard_pong, receiver.pong, receiver.ping)),
            measure.ping.connect(transmitter.ping),
            measure.pong.connect(transmitter.pong),
        ]

        # Counters ---------------------------------------------------------------------------------
        self.slack_high = []
        for n, level in enumerate(receiver.levels):
            units = Signal(8, name=f"slack_high{n}")
            high  = Signal(len(level))
            self.comb += units.eq(Mux(high[1:] > 255, 255, high[1:]))
            self.sync += If(training.trained | (level > high), high.eq(level))
            self.slack_high.append(units)
        self.frame_counters = {"FRAMES_SENT": transmitter.frame_sent, **receiver.counters}
        self.counters       = {
            "CODE_ERRORS":      receiver.counters["FRAMES_BAD"],
            "DISPARITY_ERRORS": Constant(0),
            "SLACK_OVERFLOW":   receiver.counters["FRAMES_NO_ROOM"],
            "STOPS_SENT":       Constant(0),
            "STOPS_RECEIVED":   Constant(0),
            "STOPPED_CYCLES":   transmitter.stopped != 0,
            "STOPPING_CYCLES":  Constant(0),
            "LINK_TRAINED":     training.trained,
            "LINK_LOST":        training.lost,
            "WORDS_RECEIVED":   Constant(0),
            "PACKET_MISROUTED": Constant(0),
        }
