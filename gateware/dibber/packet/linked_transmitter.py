"""The transmitter of packets of a card with two links. docs/design/two-links.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import Skid
from dibber.common.pulses import Pulses
from dibber.interface.description import C, CHANNEL, LANE
from dibber.layouts import word_layout
from dibber.packet.bulk import BulkTransmitter
from dibber.packet.control import ControlExit, ControlTransmitter
from dibber.packet.express_transmitter import ExpressTransmitter
from dibber.packet.flow_table import FlowTable
from dibber.packet.gate_turns import GateTurns
from dibber.packet.progress import Departed
from dibber.packet.route import Router, link_of, route_write_layout
from dibber.packet.split import LINKS, PacketSplitter

# Packet Transmitter -------------------------------------------------------------------------------

class LinkedPacketTransmitter(LiteXModule):
    """Everything between the engines and both links, in the direction of sending.

    CONTROL and EXPRESS have one transmitter for both links; the route of each packet says which link
    takes it. BULK has a transmitter for each link. Its packets take this link, also if their route
    has changed since their job came.

    Parameters
    ----------
    data_width : bits of payload lines and of the slots' lines

    Attributes
    ----------
    packets  : Endpoint(linked_send_layout), in   lane BULK
    slots    : list of 2 slot_port(data_width), master   for headers of lane BULK, by link
    splitter : PacketSplitter; `room`, `reserve` and `cancel` are those of JobTurns
    came     : Signal(2), out       as in JobTurns
    homes    : Signal(NODES), out   by node: the link of its route
    sources  : list of 2 lists of Endpoint(word_layout), by link and enum channel
    left     : Record, in and out   `node` of a BULK flow: `psn` and `valid` of its last packet that
               left, as in Departed
    departed : list of Departed: of EXPRESS, and of BULK by link
    the others : as in PacketTransmitter
    """
    def __init__(self, data_width):
        self.ack_hold = Signal()
        self.node_id  = Signal(16)
        self.homes    = Signal(C.NODES)
        self.came     = Signal(LINKS)
        self.route    = Record(route_write_layout())
        self.left     = Record([("node", log2_int(C.NODES)), ("psn", 16), ("valid", 1)])

        # # #

        self.flows    = flows    = FlowTable()
        self.express  = express  = ExpressTransmitter(data_width)
        self.bulks    = bulks    = [BulkTransmitter(data_width) for _ in range(LINKS)]
        self.control  = control  = ControlTransmitter()
        self.splitter = splitter = PacketSplitter(data_width)
        self.turns    = turns    = GateTurns()
        self.acks, self.scouts = control.acks, control.scouts
        self.submodules += bulks
        parts    = [express, *bulks]
        routers  = {part: Router(links=LINKS) for part in (control, *parts)}
        gates    = {part: Skid(word_layout()) for part in (control, *parts)}
        departed = {part: Departed() for part in parts}
        self.departed = list(departed.values())
        for blocks in routers, gates, departed:
            self.submodules += list(blocks.values())
        self.sending = [
            flows, *parts, *self.departed, splitter, turns, *[gates[part] for part in parts],
            *[routers[part] for part in parts]]
        self.packets      = splitter.packets
        self.payload      = splitter.payload
        self.slots        = [bulk.slot for bulk in bulks]
        self.expresses    = express.sink
        self.express_slot = express.slot

        # Channel CONTROL --------------------------------------------------------------------------
        self.exit = way_out = ControlExit(word_layout())
        self.comb += [
            gates[control].source.connect(way_out.sink),
            way_out.scout.eq(control.scout),
            way_out.hold.eq(self.ack_hold),
            control.left.eq(way_out.left),
            way_out.source.connect(routers[control].sink),
            routers[control].node.eq(way_out.sink.data),
            routers[control].given.eq(control.scout),
            routers[control].route.eq(control.route),
        ]

        # Links ------------------------------------------------------------------------------------
        self.sources = [[stream.Endpoint(word_layout()) for _ in range(3)] for _ in range(LINKS)]
        for n, bulk in enumerate(bulks):
            self.comb += [
                routers[bulk].source.connect(self.sources[n][CHANNEL.BULK]),
                routers[bulk].node.eq(bulk.send.under_way.flow),
                splitter.sources[n].connect(bulk.packets),
                splitter.payloads[n].connect(bulk.payload),
                # The packet's last line has left the buffer.
                splitter.left[n].eq(
                    bulk.send.fsm.before_entering("IDLE") & ~bulk.send.fsm.ongoing("ASK")),
                self.came[n].eq(splitter.sources[n].valid & splitter.sources[n].ready),
            ]
        for channel, part in (CHANNEL.CONTROL, control), (CHANNEL.EXPRESS, express):
            router = routers[part]
            ends   = [self.sources[n][channel] for n in range(LINKS)]
            self.comb += [
                *[router.source.connect(end, omit={"valid", "ready"}) for end in ends],
                *[end.valid.eq(router.source.valid & (router.link == n))
                    for n, end in enumerate(ends)],
                router.source.ready.eq(Mux(router.link, ends[1].ready, ends[0].ready)),
            ]
        self.comb += [
            # As in PacketTransmitter.
            routers[express].node.eq(
                Mux(express.under_way.busy, express.under_way.flow, express.under_way.node)),
            *[gates[part].source.connect(routers[part].sink) for part in parts],
            *[part.source.connect(gate.sink) for part, gate in gates.items()],
            *[part.node_id.eq(self.node_id) for part in gates],
            *[router.write.eq(self.route) for router in routers.values()],
        ]
        # The routes are kept when the sending side is halted, and so are these.
        bit = Signal(C.NODES)
        self.comb += bit.eq(1 << self.route.node)
        self.sync += If(self.route.strobe,
            self.homes.eq(Mux(link_of(self.route.route), self.homes | bit, self.homes & ~bit))
        )

        # Gates ------------------------------------------------------------------------------------
        self.comb += [
            express.flow.connect(flows.sinks[LANE.EXPRESS]),
            flows.sources[LANE.EXPRESS].connect(express.passed),
            *[bulk.flow.connect(sink) for bulk, sink in zip(bulks, turns.sinks)],
            *[source.connect(bulk.passed) for bulk, source in zip(bulks, turns.sources)],
            turns.flow.connect(flows.sinks[LANE.BULK]),
            flows.sources[LANE.BULK].connect(turns.passed),
            turns.question.eq(flows.asking[LANE.BULK]),
            *[part.reset.eq(flows.begins) for part in parts],
        ]

        # What Has Left ----------------------------------------------------------------------------
        is_lane = lambda flow, lane: flow[log2_int(C.NODES):] == lane
        for part, leaves in departed.items():
            lane      = LANE.EXPRESS if part is express else LANE.BULK
            under_way = part.under_way if part is express else part.send.under_way
            word      = routers[part].source
            self.comb += [
                leaves.begin.strobe.eq(under_way.begin),
                leaves.begin.node.eq(part.passed.node),
                leaves.begin.psn.eq(part.passed.psn),
                leaves.begin.counts.eq(~part.passed.question),
                leaves.ended.eq(word.valid & word.ready & word.last),
                leaves.bad.eq(word.bad),
                leaves.reset.eq(flows.reset),
                leaves.reset.strobe.eq(flows.reset.strobe & is_lane(flows.reset.flow, lane)),
                leaves.rewind.eq(flows.rewind),
                leaves.rewind.strobe.eq(flows.rewind.strobe & is_lane(flows.rewind.flow, lane)),
            ]
        # A flow has packets in both only if its route changed without a rewind.
        first, second = [departed[bulk] for bulk in bulks]
        by_second = Signal()
        self.comb += [
            first.node.eq(self.left.node),
            second.node.eq(self.left.node),
            by_second.eq(
                second.valid & (~first.valid | (self.homes >> self.left.node)[0])),
            self.left.psn.eq(Mux(by_second, second.psn, first.psn)),
            self.left.valid.eq(first.valid | second.valid),
        ]

        # Counters ---------------------------------------------------------------------------------
        self.packets_sent = packets_sent = Pulses(
            control.left, control.sent, *[part.sent for part in parts], bits=4)
        self.words_sent   = words_sent   = Pulses(
            *[part.word_sent for part in parts], bits=4, most=LINKS)
        self.withdrawn    = withdrawn    = Pulses(*[part.withdrawn for part in parts])
        self.counters = {
            "PACKETS_SENT":      packets_sent.pulse,
            "BYTES_SENT":        words_sent.pulse,
            "ACKS_SENT":         control.left,
            "PACKETS_WITHDRAWN": withdrawn.pulse,
        }
