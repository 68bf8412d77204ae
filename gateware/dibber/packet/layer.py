"""The packet layer: from the engines to the link's channels, and back."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C, LANE
from dibber.packet.acknowledge import Acknowledger
from dibber.packet.linked_receiver import LinkedPacketReceiver
from dibber.packet.linked_transmitter import LinkedPacketTransmitter
from dibber.packet.progress import Storing
from dibber.packet.packet_receiver import PacketReceiver
from dibber.packet.packet_transmitter import PacketTransmitter

class PacketLayer(LiteXModule):
    """Both directions of a card's packets, and the acknowledgements that join them.

    Parameters
    ----------
    data_width : bits of payload lines and of the slots' lines
    address_bits : see DepositReceiver
    places     : packets of a lane that the port keeps, as in Departed; 0 with two links
    bulk_width : bits of a word of channel BULK, 32 or 64, or 256 for a bonded port; 32 with two
                 links
    links      : of the card, 1 or 2

    Attributes
    ----------
    packets          : Endpoint(send_layout), in       lane BULK; with two links linked_send_layout
    payload_in       : Endpoint(payload_layout), in    payload to send
    slots            : list of slot_port(data_width), master   for the headers of lane BULK, by link
    express          : Endpoint(express_layout), in    lane EXPRESS
    express_slot     : slot_port(data_width), master
    deposits         : Endpoint(deposit_layout), out   lane BULK
    payload_out      : Endpoint(payload_layout), out   received payload
    deposit_done     : Endpoint(deposit_done_layout), in
    stored           : Record, in                      of lane BULK, see ScatterEngine
    deposit_open     : Signal(), in                    the packet of the last `deposit_done` has not
                       landed, and must not be acknowledged yet
    express_deposits, express_payload, express_done, express_open : the same of lane EXPRESS
    inbox_freed      : Signal(), in                    one cycle: a slot of the inbox is free again
    forget           : Signal(), in                    one cycle: forget the flows of all other
                       nodes (see Sequencer)
    sinks            : list of Endpoint(word_layout), in    from the link: CONTROL, EXPRESS and BULK;
                       with two links a list of two such lists; of a bonded port as it has them
    sources          : list of Endpoint(word_layout), out   to the link, in the same way
    scouts           : Endpoint(scout_layout), in     scouts and answers to send
    scouts_came      : Endpoint(scout_layout), out    received scouts and answers
    route            : Record(route_write_layout), in an entry of the route table
    flow_reset       : Record(flow_reset_layout), in
    flow_rewind      : Record(flow_rewind_layout), in
    acked            : list of Record(acked_layout), in and out   as in FlowTable
    judging          : Record, out                    as in FlowTable
    changed, naked, works : Record(flow_event_layout), out   as in FlowTable
    left             : Record, in and out         of `flow`: `psn` and `valid` of its last packet
                       that left, as in Departed; `vain` as in FlowTable
    kept             : list of Signal(), in      by enum lane, as in FlowGate
    keeps, gone      : lists of Signal(places), in   by enum lane, as in Departed
    storing          : Signal(NODES), out         one cycle: payload of lane BULK is being stored;
                       one bit for each node with packets here
    refusals         : Endpoint(refusal_layout), out
    node_id          : Signal(16), in
    counters         : dict of pulses by their names in the interface description
    """
    def __init__(self, data_width, address_bits=64, places=0, bulk_width=32, links=1):
        assert links == 1 or (places == 0 and bulk_width == 32)
        self.places  = places
        self.node_id = Signal(16)

        # # #

        if links == 1:
            self.transmitter = transmitter = PacketTransmitter(data_width, places, bulk_width)
            self.receiver    = receiver    = PacketReceiver(data_width, address_bits, bulk_width)
        else:
            self.transmitter = transmitter = LinkedPacketTransmitter(data_width)
            self.receiver    = receiver    = LinkedPacketReceiver(data_width, address_bits)
        self.acknowledger = acknowledger = Acknowledger()

        self.packets          = transmitter.packets
        self.payload_in       = transmitter.payload
        self.slots            = [transmitter.slot] if links == 1 else transmitter.slots
        self.express          = transmitter.expresses
        self.express_slot     = transmitter.express_slot
        self.deposits         = receiver.deposits
        self.payload_out      = receiver.payload
        self.deposit_done     = acknowledger.lanes[LANE.BULK].done
        self.deposit_open     = acknowledger.open[LANE.BULK]
        self.express_deposits = receiver.express_deposits
        self.express_payload  = receiver.express_payload
        self.express_done     = acknowledger.lanes[LANE.EXPRESS].done
        self.express_open     = acknowledger.open[LANE.EXPRESS]
        self.inbox_freed      = receiver.inbox_freed
        self.forget           = receiver.forget
        self.sinks            = receiver.sinks
        self.sources          = transmitter.sources
        self.kept             = transmitter.flows.kept
        self.keeps            = [departed.keeps for departed in transmitter.departed]
        self.gone             = [departed.gone for departed in transmitter.departed]
        self.scouts           = transmitter.scouts
        self.scouts_came      = receiver.scouts
        self.route            = transmitter.route
        self.flow_reset       = transmitter.flows.reset
        self.flow_rewind      = transmitter.flows.rewind
        self.acked            = transmitter.flows.acked
        self.judging          = transmitter.flows.judging
        self.changed          = transmitter.flows.changed
        self.naked            = transmitter.flows.naked
        self.works            = transmitter.flows.works
        self.left             = left = Record(
            [("flow", log2_int(C.LANES*C.NODES)), ("psn", 16), ("valid", 1), ("vain", 1)])
        self.refusals = transmitter.flows.refusals
        self.counters = {
            **transmitter.counters, **receiver.counters, **acknowledger.counters}
        self.comb += [
            transmitter.node_id.eq(self.node_id),
            receiver.node_id.eq(self.node_id),
            receiver.acks.connect(transmitter.flows.acks),
            acknowledger.source.connect(transmitter.acks),
            transmitter.ack_hold.eq(acknowledger.hold),
        ]
        lane = left.flow[log2_int(C.NODES):]
        departed = transmitter.departed if links == 1 else [
            transmitter.departed[LANE.EXPRESS], transmitter.left]
        self.comb += [
            transmitter.flows.vain.flow.eq(left.flow),
            left.vain.eq(transmitter.flows.vain.vain),
            *[last.node.eq(left.flow) for last in departed],
            *[
                getattr(left, name).eq(
                    Array([getattr(last, name) for last in departed])[lane])
                for name in ("psn", "valid")],
        ]

        self.stored = Record([("line", 1), ("last", 1)])
        if links == 1:
            self.store   = store = Storing()
            self.storing = store.moves
            alive        = store.alive
            self.comb += [
                store.entered.eq(receiver.bulk.entered),
                store.line.eq(self.stored.line),
                store.last.eq(self.stored.last),
            ]
        else:
            self.storing = receiver.storing
            alive        = receiver.alive
            self.comb += receiver.stored.eq(self.stored)
        self.comb += acknowledger.lanes[LANE.BULK].alive.eq(alive)
        for told, teller in zip(acknowledger.lanes, receiver.lanes):
            self.comb += [
                getattr(told, name).eq(getattr(teller, name))
                for name in ("started", "repeat", "gap", "asked", "absent")]
