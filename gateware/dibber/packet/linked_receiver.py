"""The receiver of packets of a card with two links. docs/design/two-links.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.pulses import Pulses
from dibber.interface.description import C, LANE
from dibber.layouts import HOP_BITS, ack_layout, scout_layout
from dibber.packet.header import flag
from dibber.packet.join import FlowTurns, PacketJoiner
from dibber.packet.merge import PacketMerger
from dibber.packet.packet_receiver import ControlReceiver, DepositReceiver
from dibber.packet.progress import ARRIVING, Storing
from dibber.packet.sequence import SequencerPair
from dibber.packet.split import LINKS

# Acknowledgements of a link that wait, while the flow table takes those of the other link.
ACKS = 4

# What a lane tells the acknowledger.
TOLD = ("started", "repeat", "gap", "asked", "absent")

# Bulk Receivers -----------------------------------------------------------------------------------

class BulkReceivers(LiteXModule):
    """Lane BULK of both links: a DepositReceiver for each, one memory of flows, and the joiner.

    At most one header is judged in a cycle, so the events of both receivers go to one acknowledger.

    Parameters
    ----------
    data_width, address_bits : see DepositReceiver

    Attributes
    ----------
    receivers : list of 2 DepositReceiver, by link
    deposits, payload : as of a DepositReceiver
    started, repeat, gap, asked, absent : as of a DepositReceiver, of both
    entered   : list of 2 Record, out   as of a DepositReceiver
    passed    : Record, out    in a cycle with `strobe`: the joiner lets a packet of `link` pass that
                has payload
    forget    : Signal(), in
    """
    def __init__(self, data_width, address_bits=64):
        self.sequencer  = sequencers = SequencerPair()
        self.receivers  = receivers  = [
            DepositReceiver(data_width, LANE.BULK, address_bits, sequencer=port) for port in sequencers.ports]
        self.submodules += receivers
        self.turns      = turns      = FlowTurns()
        self.joiner     = joiner     = PacketJoiner(data_width, address_bits)
        self.deposits   = joiner.deposit
        self.payload    = joiner.payload
        self.forget     = sequencers.forget
        self.entered    = [receiver.entered for receiver in receivers]
        self.passed     = passed     = Record([("strobe", 1), ("link", log2_int(LINKS))])

        # # #

        judged = Signal()  # link 0 has its verdict in this cycle
        first, second = receivers
        self.comb += [
            judged.eq(first.checker.at_crc & first.checker.room),
            first.may.eq(turns.may[0]),
            second.may.eq(turns.may[1] & ~judged),
            turns.left.eq(joiner.left),
            passed.strobe.eq(
                joiner.deposit.valid & joiner.deposit.ready & (joiner.deposit.length != 0)),
            passed.link.eq(joiner.link),
        ]
        for n, receiver in enumerate(receivers):
            self.comb += [
                turns.asks[n].eq(receiver.checker.at_crc),
                turns.nodes[n].eq(receiver.checker.fields["source"]),
                turns.enters[n].eq(receiver.enters),
                joiner.whole[n].eq(receiver.whole),
                receiver.deposits.connect(joiner.deposits[n]),
                receiver.payload.connect(joiner.payloads[n]),
            ]
        for name in TOLD:
            events = [getattr(receiver, name) for receiver in receivers]
            told   = Record(events[0].layout)
            setattr(self, name, told)
            self.comb += [
                told.eq(events[0]),
                If(events[1].strobe, told.eq(events[1])),
            ]

# Packet Receiver ----------------------------------------------------------------------------------

class LinkedPacketReceiver(LiteXModule):
    """Everything between both links and the engines that write host memory.

    A scout that came by link 1 has this link in its way back. So its answer leaves by this link.

    Parameters
    ----------
    data_width, address_bits : as PacketReceiver

    Attributes
    ----------
    sinks    : list of 2 lists of Endpoint(word_layout), by link and enum channel
    acks     : Endpoint(ack_layout), out
    bulk     : BulkReceivers
    storing, alive : Signal(NODES), out   as Storing
    stored   : Record, in   `line`, `last`: a line of payload is stored
    the others : as PacketReceiver
    """
    def __init__(self, data_width, address_bits=64):
        self.node_id = Signal(16)
        self.acks    = acks   = stream.Endpoint(ack_layout())
        self.scouts  = scouts = stream.Endpoint(scout_layout())
        self.forget  = Signal()
        self.stored  = stored = Record([("line", 1), ("last", 1)])
        self.storing = Signal(C.NODES)
        self.alive   = Signal(C.NODES)

        # # #

        controls = [ControlReceiver() for _ in range(LINKS)]
        self.submodules += controls
        self.merger  = merger  = PacketMerger()
        self.express = express = DepositReceiver(data_width, LANE.EXPRESS, address_bits)
        self.bulk    = bulk    = BulkReceivers(data_width, address_bits)
        self.lanes   = [express, bulk]
        self.sinks   = [
            [control.sink, merged, receiver.sink]
            for control, merged, receiver in zip(controls, merger.sinks, bulk.receivers)]
        self.deposits         = bulk.deposits
        self.payload          = bulk.payload
        self.express_deposits = express.deposits
        self.express_payload  = express.payload
        self.inbox_freed      = express.freed
        receivers = [express, *bulk.receivers]
        checkers  = [receiver.checker for receiver in [*controls, *receivers]]
        self.comb += [
            merger.source.connect(express.sink),
            *[lane.forget.eq(self.forget) for lane in self.lanes],
            *[checker.node_id.eq(self.node_id) for checker in checkers],
        ]

        # Channel CONTROL --------------------------------------------------------------------------
        # An acknowledgement that finds no place is lost, as on the link. The next one covers it, or
        # shows that it is missing.
        self.add_acks([control.source for control in controls])
        other = self.take_turns([control.scouts for control in controls], scouts)
        self.comb += If(other & ~controls[1].scouts.reply, scouts.back[HOP_BITS].eq(1))

        # What Is Being Stored ---------------------------------------------------------------------
        self.order = order = stream.SyncFIFO([("link", log2_int(LINKS))], ARRIVING)
        self.comb += [
            order.sink.valid.eq(bulk.passed.strobe),
            order.sink.link.eq(bulk.passed.link),
            order.source.ready.eq(stored.line & stored.last),
        ]
        stores = [Storing() for _ in range(LINKS)]
        self.submodules += stores
        for n, (store, entered) in enumerate(zip(stores, bulk.entered)):
            self.comb += [
                store.entered.eq(entered),
                # Packets of the other link wait meanwhile, and their sources are told so, too.
                store.line.eq(stored.line),
                store.last.eq(stored.last & (order.source.link == n)),
            ]
        self.comb += [
            self.storing.eq(stores[0].moves | stores[1].moves),
            self.alive.eq(stores[0].alive | stores[1].alive),
        ]

        # Counters ---------------------------------------------------------------------------------
        of_lanes = lambda name: [getattr(receiver, name) for receiver in receivers]
        of_all   = lambda name: [getattr(checker, name) for checker in checkers]
        self.pulses = pulses = {
            "PACKETS_RECEIVED":  Pulses(
                *[control.checker.good for control in controls], *of_lanes("received"),
                *[receiver.asked.strobe for receiver in receivers], bits=4),
            "BYTES_RECEIVED":    Pulses(*of_lanes("accepted_words"), bits=11, most=LINKS),
            "HEADER_CRC_ERROR":  Pulses(*of_all("crc_error"), bits=4),
            "PAYLOAD_CRC_ERROR": Pulses(*of_lanes("payload_crc_error")),
            "PACKET_TRUNCATED":  Pulses(*of_all("truncated"), *of_lanes("truncated"), bits=5),
            "PACKET_WRONG_NODE": Pulses(*of_all("wrong_node"), bits=4),
            "PACKET_STALE":      Pulses(*of_lanes("stale")),
            "PACKET_DUPLICATE":  Pulses(*of_lanes("duplicate")),
            "PACKET_GAP":        Pulses(*of_lanes("missed")),
            "SCOUT_NO_ROOM":     Pulses(*[control.no_room for control in controls]),
        }
        self.submodules += list(pulses.values())
        self.counters = {
            **{name: counter.pulse for name, counter in pulses.items()},
            "MESSAGE_NO_ROOM": express.no_room,
            "NAKS_RECEIVED":   acks.valid & acks.ready & flag(acks.flags, "NAK"),
        }

    def add_acks(self, sources):
        """The acknowledgements of both links, in turns."""
        rows = [stream.SyncFIFO(ack_layout(), ACKS) for _ in sources]
        self.submodules += rows
        self.comb += [source.connect(row.sink) for source, row in zip(sources, rows)]
        self.take_turns([row.source for row in rows], self.acks)

    def take_turns(self, sources, sink):
        """Connect the streams of both links with one, by turns. Returns a Signal(): that of link 1
        is at the sink.
        """
        turn  = Signal()
        other = Signal()
        self.comb += [
            other.eq(sources[1].valid & (turn | ~sources[0].valid)),
            If(other,
                sources[1].connect(sink)
            ).Else(
                sources[0].connect(sink)
            ),
        ]
        self.sync += If(sink.valid & sink.ready, turn.eq(~other))
        return other
