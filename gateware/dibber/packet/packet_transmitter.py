"""The transmitter of packets: from the engines to all channels of the link."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C, CHANNEL, LANE
from dibber.layouts import word_layout
from dibber.link.row_packer import sealed_line_layout
from dibber.packet.bulk import BulkTransmitter
from dibber.packet.control import ControlExit, ControlTransmitter
from dibber.packet.express_transmitter import ExpressTransmitter
from dibber.packet.flow_table import FlowTable
from dibber.packet.line_seal import LineRouter
from dibber.packet.progress import Departed
from dibber.common.pulses import Pulses
from dibber.packet.route import Router, route_write_layout
from dibber.common.places import Skid

# Packet Transmitter -------------------------------------------------------------------------------

class PacketTransmitter(LiteXModule):
    """Everything between the engines and the link, in the direction of sending.

    Parameters
    ----------
    data_width : bits of payload lines and of the slots' lines
    places     : packets of a lane that the port keeps, as in Departed
    bulk_width : bits of a word of channel BULK, 32 or 64. With 256 all channels are lines with CRCs
                 for a bonded port

    Attributes
    ----------
    packets       : Endpoint(send_layout), in       lane BULK
    payload       : Endpoint(payload_layout), in    lane BULK
    expresses     : Endpoint(express_layout), in    lane EXPRESS
    acks          : Endpoint(ack_layout), in
    ack_hold      : Signal(), in                    hold back the last word of the acknowledgement
                    at `acks`; without it the receiver drops the packet. Must not rise during this
                    word
    scouts        : Endpoint(scout_layout), in
    route         : Record(route_write_layout), in  an entry of the route table
    slot          : slot_port(data_width), master   for headers of lane BULK
    express_slot  : slot_port(data_width), master   for lane EXPRESS
    node_id       : Signal(16), in
    sources       : list of Endpoint(word_layout), by enum channel: CONTROL, EXPRESS, BULK. That of
                    BULK has `bulk_width`. By lines all are Endpoint(sealed_line_layout())
    flows         : FlowTable: the state of all flows that start here
    departed      : list of Departed, by enum lane
    sending       : list of modules that are reset when the sending side is halted: all but those
                    for acknowledgements
    counters      : dict of events: PACKETS_SENT, BYTES_SENT, ACKS_SENT, PACKETS_WITHDRAWN
    """
    def __init__(self, data_width, places=0, bulk_width=32):
        self.ack_hold = Signal()
        self.node_id  = Signal(16)

        # # #

        self.flows   = flows   = FlowTable(keeps=places > 0)
        lines = bulk_width == 256
        self.express = express = ExpressTransmitter(data_width, lines)
        self.bulk    = bulk    = BulkTransmitter(data_width, bulk_width)
        self.control = control = ControlTransmitter(lines)
        self.route   = Record(route_write_layout())
        self.acks    = control.acks
        self.scouts  = control.scouts
        # The routers of reset modules are reset too, so that none stays within a packet. The route
        # tables are kept.
        widths  = {CHANNEL.CONTROL: 32, CHANNEL.EXPRESS: 32, CHANNEL.BULK: bulk_width}
        layouts = {
            channel: sealed_line_layout() if lines else word_layout(width)
            for channel, width in widths.items()}
        routers = [LineRouter() if lines else Router(widths[channel]) for channel in range(3)]
        # Skid buffers: `ready` depends on the route and on the link, so a sender sees a stall one
        # cycle later. A line of CONTROL goes without one: see ControlExit.
        gates = {part: Skid(layouts[channel]) for channel, part in (
            (CHANNEL.CONTROL, control), (CHANNEL.EXPRESS, express), (CHANNEL.BULK, bulk))
            if not (lines and channel == CHANNEL.CONTROL)}
        self.submodules += gates.values()
        self.departed = departed = [Departed(places) for _ in range(C.LANES)]
        self.submodules += departed
        self.sending = [
            flows, express, bulk, *departed, gates[express], gates[bulk], routers[CHANNEL.EXPRESS],
            routers[CHANNEL.BULK]]
        self.packets       = bulk.packets
        self.payload       = bulk.payload
        self.slot          = bulk.slot
        self.expresses     = express.sink
        self.express_slot  = express.slot
        self.exit = way_out = ControlExit(layouts[CHANNEL.CONTROL])
        self.comb += [
            way_out.scout.eq(control.scout),
            way_out.hold.eq(self.ack_hold),
            control.left.eq(way_out.left),
        ]
        for channel, router in enumerate(routers):
            self.add_module(f"router{channel}", router)
        self.comb += [
            *[router.write.eq(self.route) for router in routers],
            *[part.node_id.eq(self.node_id) for part in (control, express, bulk)],
            routers[CHANNEL.CONTROL].given.eq(control.scout),
            routers[CHANNEL.CONTROL].route.eq(control.route),
        ]
        if lines:
            self.sources = self.connect_lines(routers, gates)
        else:
            self.sources = self.connect_words(routers, gates)
        for lane, part in (LANE.EXPRESS, express), (LANE.BULK, bulk):
            self.comb += [
                part.flow.connect(flows.sinks[lane]),
                flows.sources[lane].connect(part.passed),
                part.reset.eq(flows.begins),
            ]

        # `ended` is the last word, or line, as the link takes it.
        for lane, channel, part, under_way in (
                (LANE.EXPRESS, CHANNEL.EXPRESS, express, express.under_way),
                (LANE.BULK, CHANNEL.BULK, bulk, bulk.send.under_way)):
            word    = self.sources[channel]
            is_lane = lambda flow: flow[log2_int(C.NODES):] == lane
            self.comb += [
                departed[lane].begin.strobe.eq(under_way.begin),
                departed[lane].begin.node.eq(part.passed.node),
                departed[lane].begin.psn.eq(part.passed.psn),
                departed[lane].begin.counts.eq(~part.passed.question),
                departed[lane].ended.eq(word.valid & word.ready & word.last),
                departed[lane].bad.eq(word.bad),
                departed[lane].reset.eq(flows.reset),
                departed[lane].reset.strobe.eq(flows.reset.strobe & is_lane(flows.reset.flow)),
                departed[lane].rewind.eq(flows.rewind),
                departed[lane].rewind.strobe.eq(flows.rewind.strobe & is_lane(flows.rewind.flow)),
            ]

        # The link takes one word a cycle from all channels together, so these events cannot
        # coincide for long.
        self.packets_sent = packets_sent = Pulses(
            control.left, control.sent, express.sent, bulk.sent)
        self.words_sent   = words_sent   = Pulses(
            express.word_sent, bulk.word_sent, bits=6 if lines else 3, most=bulk_width//32)
        self.withdrawn    = withdrawn    = Pulses(express.withdrawn, bulk.withdrawn)
        self.counters = {
            "PACKETS_SENT":      packets_sent.pulse,
            "BYTES_SENT":        words_sent.pulse,
            "ACKS_SENT":         control.left,
            "PACKETS_WITHDRAWN": withdrawn.pulse,
        }

    def connect_words(self, routers, gates):
        """Words go through gate and router. Returns the sources of all channels."""
        control, express, bulk, way_out = self.control, self.express, self.bulk, self.exit
        self.comb += [
            *[part.source.connect(gate.sink) for part, gate in gates.items()],
            gates[control].source.connect(way_out.sink),
            *[source.connect(router.sink) for source, router in zip(
                (way_out.source, gates[express].source, gates[bulk].source), routers)],
            routers[CHANNEL.CONTROL].node.eq(way_out.sink.data),
            # The first word of an express packet is at the router in the cycle after its gate.
            routers[CHANNEL.EXPRESS].node.eq(
                Mux(express.under_way.busy, express.under_way.flow, express.under_way.node)),
            # Valid from the cycle after the gate; no word of the packet is at the router before.
            routers[CHANNEL.BULK].node.eq(bulk.send.under_way.flow),
        ]
        return [router.source for router in routers]

    def connect_lines(self, routers, gates):
        """Lines get their route from their target, and go through a gate. Returns the sources of
        all channels.
        """
        parts = [self.control, self.express, self.bulk]
        ends  = [self.exit, *[gates[part] for part in parts[1:]]]
        self.comb += [
            statement for part, router, end in zip(parts, routers, ends) for statement in (
                part.source.connect(router.sink), router.source.connect(end.sink))]
        return [end.source for end in ends]
