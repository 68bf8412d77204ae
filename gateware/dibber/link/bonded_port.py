"""The port of the bonded link: everything between four lanes and the packet layer."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.pulses import Pulses
from dibber.interface.description import CHANNEL
from dibber.layouts import chunk_layout
from dibber.link.bonding import MARKER_PERIOD_ROWS, LaneDeskew, LaneMarkers
from dibber.link.peer import LinkPeer, RoundTrip
from dibber.link.row_packer import RowPacker, sealed_line_layout
from dibber.link.row_receiver import RowReceiver
from dibber.link.row_transmitter import PacketGate, RowTransmitter
from dibber.link.rows import LANES
from dibber.link.scrambler import RowDescrambler, RowScrambler
from dibber.link.slack import SlackBuffer
from dibber.link.symbols import HEAR_BIT
from dibber.link.training import LinkDiagnosis, LinkTraining

# Rows that may come after STOP: docs/design/bonded-link.md, headroom.
HEADROOM_ROWS = 103

# Lines of BULK that wait for the lanes. They keep the lanes busy for 25 cycles, while the next
# packet's header is gathered and goes through the CRC.
AHEAD_LINES = 16

# Depths of the slack buffers by channel.
SLACK_ROWS = (256, 256, 512, 256)

# Wiring -------------------------------------------------------------------------------------------

def attach_lanes(link, phy):
    """Connect a BondedPort with the transceivers of its lanes. There is no test equipment.

    phy : `sink` (row_layout(4)), `sources` (list of four block_layout), `locked` (Signal(4)) and
          `signal`, 1 while all receivers see one

    Returns a list of statements.
    """
    return [
        link.tx.connect(phy.sink),
        *[source.connect(lane) for source, lane in zip(phy.sources, link.lanes)],
        link.locked.eq(phy.locked),
        link.signal.eq(phy.signal),
    ]

# Port ---------------------------------------------------------------------------------------------

class BondedPort(LiteXModule):
    """The sibling of LinkPort for four lanes in 64b/66b: docs/design/port.md. Its streams to the
    packet layer are lines with CRCs and chunks in place of words.

    Parameters
    ----------
    channels   : number of virtual channels, 2 to 4
    slack_rows : depth of the slack buffers, by channel
    sunk       : channels whose chunks are always taken at once; they have no slack buffer
    period     : rows from one row of markers to the next

    Attributes
    ----------
    tx        : Endpoint(row_layout(4)), out           to the lanes; `ready` sets the pace
    lanes     : list of four Endpoint(block_layout), in   blocks of each lane, without backpressure
    locked    : Signal(4), in                          the lane has its block lock
    sinks     : list of Endpoint(sealed_line_layout()), in   packets to send, by channel
    sources   : list of Endpoint(chunk_layout()), out  received packets, by channel
    deskew    : LaneDeskew, for its state and pulses
    signal, test, retrain, state, reason, up, stopped, nonce, peer, peer_known, ping, slack_high :
                as LinkPort; `slack_high` in units of 4 rows
    round_trip: Signal(32), out   as LinkPort, but with the stages between the row's transmitter and
                the lanes of both ends
    counters  : dict of pulses, as LinkPort: CODE_ERRORS are wrong rows except in DOWN,
                WORDS_RECEIVED are rows

    Cycles: 4 from `sinks` to `tx`, 5 on BULK, without the wait for a row of the lanes; 5 from the
    last block of a row on `lanes` to `sources` through an empty slack buffer, 4 for a channel in
    `sunk`.
    """
    bulk_width = 256  # as PacketLayer has it: lines with CRCs, and chunks

    def __init__(self, channels=4, slack_rows=SLACK_ROWS, sunk=(), period=MARKER_PERIOD_ROWS):
        depths = slack_rows[:channels]
        assert max(depths) < 1024
        self.signal  = Signal()
        self.stopped = Signal(channels)

        # # #

        gates   = [PacketGate() for _ in range(channels)]
        packers = [RowPacker() for _ in range(channels)]
        self.submodules += gates + packers
        self.transmitter = transmitter = RowTransmitter([packer.source for packer in packers])
        self.scrambler   = scrambler   = RowScrambler(LANES)
        self.markers     = markers     = LaneMarkers(LANES, period)
        self.deskew      = deskew      = LaneDeskew(LANES, period=period)
        self.descrambler = descrambler = RowDescrambler(LANES)
        self.receiver    = receiver    = RowReceiver(channels)
        self.training    = training    = LinkTraining()
        self.diagnosis   = diagnosis   = LinkDiagnosis()
        self.peering     = peering     = LinkPeer()
        self.measure     = measure     = RoundTrip()
        slack = {
            n: SlackBuffer(rows, HEADROOM_ROWS, chunk_layout())
            for n, rows in enumerate(depths) if n not in sunk}
        for n, buffer in slack.items():
            self.add_module(f"slack{n}", buffer)
        of_slack = lambda name: [
            getattr(slack[n], name) if n in slack else 0 for n in range(channels)]

        self.tx         = markers.source
        self.lanes      = deskew.sinks
        self.locked     = deskew.locked
        self.sinks      = [gate.sink for gate in gates]
        self.sources    = [
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

        # Rows -------------------------------------------------------------------------------------
        rows    = receiver.decoder
        stops   = Signal(channels)
        present = Signal()  # rows of one sender come
        self.comb += [
            transmitter.source.connect(scrambler.sink),
            scrambler.source.connect(markers.sink),
            deskew.source.connect(descrambler.sink, omit={"ready"}),
            descrambler.source.connect(receiver.sink, omit={"ready"}),
            present.eq(self.signal & deskew.aligned),
            *[stops[n].eq(stop) for n, stop in enumerate(of_slack("stop"))],
            receiver.up.eq(training.up),
            transmitter.up.eq(training.up),
            transmitter.go.eq(~self.stopped),
            transmitter.flow[:channels].eq(stops),
            transmitter.flow[HEAR_BIT].eq(training.hear),
            *[receiver.sources[n].connect(buffer.sink) for n, buffer in slack.items()],
        ]
        # What waits behind the gate is dropped with the link, as what the packer holds.
        waiting = [gate.source for gate in gates]
        if channels > CHANNEL.BULK:
            self.ahead = ahead = stream.SyncFIFO(sealed_line_layout(), AHEAD_LINES)
            self.comb += gates[CHANNEL.BULK].source.connect(ahead.sink)
            waiting[CHANNEL.BULK] = ahead.source
        for gate, line, packer, front in zip(gates, waiting, packers, transmitter.fronts):
            self.comb += [
                line.connect(packer.sink, omit={"ready"}),
                line.ready.eq(packer.sink.ready | ~training.up),
                gate.up.eq(training.up),
                packer.front.eq(front),
                packer.clear.eq(~training.up),
            ]

        # The state in the other end's last flow row. While the link is not UP nothing is sent.
        self.sync += If(rows.is_flow, self.stopped.eq(rows.octets[:channels]))

        # Training ---------------------------------------------------------------------------------
        self.comb += [
            training.signal.eq(present),
            training.heard.eq(rows.is_flow),
            training.flow.eq(rows.octets[:8]),
            training.told.eq(transmitter.told),
            training.known.eq(peering.peer_known & ~peering.loopback),
            diagnosis.state.eq(training.state),
            diagnosis.signal.eq(self.signal),
            diagnosis.loopback.eq(peering.loopback),
            diagnosis.silenced.eq(training.silenced),
            diagnosis.retrain.eq(training.retrain),
            diagnosis.word.eq(rows.valid),
            diagnosis.faulty.eq(rows.is_wrong),
        ]

        # The Other End ----------------------------------------------------------------------------
        self.comb += [
            transmitter.nonce.eq(self.nonce),
            peering.heard.eq(rows.is_nonce),
            peering.said.eq(rows.octets),
            peering.forget.eq(training.hunt),
            measure.heard_ping.eq(rows.is_ping),
            measure.heard_pong.eq(rows.is_pong),
            measure.number.eq(rows.octets[:8]),
            measure.ping.connect(transmitter.ping),
            measure.pong.connect(transmitter.pong),
        ]

        # Counters ---------------------------------------------------------------------------------
        is_trained    = Signal()  # not DOWN: rows should be without errors
        stops_before  = Signal(channels)
        rising        = Signal(channels)
        stop_received = Signal(channels)
        overflows     = Signal(channels)
        trained       = Signal()
        self.comb += is_trained.eq(~training.hunt)
        self.sync += [
            stops_before.eq(stops),
            rising.eq(stops & ~stops_before),
            stop_received.eq(Mux(rows.is_flow, rows.octets[:channels] & ~self.stopped, 0)),
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
            "CODE_ERRORS":      rows.is_wrong & is_trained,
            "DISPARITY_ERRORS": Constant(0),
            "SLACK_OVERFLOW":  self.overflow.pulse,
            "STOPS_SENT":      self.stops_sent.pulse,
            "STOPS_RECEIVED":  self.stops_received.pulse,
            "STOPPED_CYCLES":  transmitter.waits,
            "STOPPING_CYCLES": training.up & (transmitter.told[:channels] != 0),
            "LINK_TRAINED":    training.trained,
            "LINK_LOST":       training.lost,
            "WORDS_RECEIVED":  rows.valid & is_trained,
            "PACKET_MISROUTED": receiver.misrouted,
        }
