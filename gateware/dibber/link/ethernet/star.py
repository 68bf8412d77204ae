"""A port with several peers behind one MAC: an Ethernet switch is between them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.common.one_hot import lowest_one, value_of
from dibber.common.pulses import Pulses
from dibber.interface.description import CHANNEL, LINK_REASON, LINK_STATE
from dibber.interface.ethernet import ETHERNET_KIND, ETHERNET_STATE
from dibber.link.ethernet.buffer import PacketReader
from dibber.link.ethernet.departure import WAIT_PERIODS, Departure, PacketMerge
from dibber.link.ethernet.frames import BROADCAST, payload_units, priorities_of
from dibber.link.ethernet.receiver import FrameParser, StatusReader
from dibber.link.ethernet.sender import Packer
from dibber.link.ethernet.slot import NUMBER_LSB, PeerSlot
from dibber.link.ethernet.steer import PeerTable, Steer
from dibber.link.ethernet.transmitter import FrameBuilder, FrameScheduler, held_channels
from dibber.link.peer import RoundTrip
from dibber.layouts import TURN_BITS

# Units in a slot's buffers by channel: docs/design/ethernet.md. A packet waits until all of it is
# there. BULK has room for two of the longest packets of 530 units.
BUFFER_UNITS = (64, 256, 2048, 64)
# Units that may wait for the MAC, for all peers. BULK has the longest packet, and the next one.
QUEUE_UNITS  = (64, 128, 1088, 64)
# Cycles between STATUS frames to a peer, and between hellos: 26 µs at 156.25 MHz.
PERIOD_CYCLES = 4096

class EthernetStar(LiteXModule):
    """EthernetPort with several peers: docs/design/ethernet.md.

        sinks ─▶ steer ─▶ packers ─▶ departures ─▶ scheduler ─▶ builder ─▶ frame_tx
        sources ◀─ readers ◀─ merges ◀─ slots ◀─ parser ◀─ frame_rx

    Parameters
    ----------
    peers : of other cards, 2 to 15
    patience : periods that a packet waits for its peer's credit
    the others : as of EthernetPort; `buffers` are those of each slot

    Attributes
    ----------
    number : Signal(4), in   own node number
    the others : as of EthernetPort. `state` is the best one of all peers. `peer`, `peer_mac` and
        `round_trip` are of the lowest slot in use. LINK_TRAINED and LINK_LOST count sessions; those
        that end in the same cycle count once.
        `slack_high` is of the fullest slot

    Cycles: as of EthernetPort. A prefix word takes one more.
    """
    def __init__(self, peers, channels=4, mtu=9000, vlan=None, priority=0, buffers=BUFFER_UNITS,
                 queues=QUEUE_UNITS, period=PERIOD_CYCLES, patience=WAIT_PERIODS, bulk_width=32,
                 obeys=False):
        assert 2 <= peers < 1 << TURN_BITS
        assert 2 <= channels <= 4
        assert 72 <= mtu <= 9216
        assert vlan is None or 0 <= vlan <= 4094
        limit  = payload_units(mtu)
        depths = buffers[:channels]
        queues = [(min(limit, depth, buffer), depth)
            for depth, buffer in zip(queues[:channels], depths)]

        priorities = priorities_of(priority, channels)

        self.bulk_width = bulk_width
        if obeys:
            self.paused = Signal(8)
            held = held_channels(self.paused, vlan, priorities)
        self.mac        = Signal(48)
        self.nonce      = Signal(16)
        self.number     = Signal(TURN_BITS)
        self.signal     = Signal()
        self.test       = Signal()
        self.retrain    = Signal()
        self.state      = Signal(4)
        self.reason     = Signal(4)
        self.up         = Signal()
        self.peer_mac   = Signal(48)
        self.peer       = Signal(16)
        self.peer_known = Signal()
        self.stopped    = Signal(channels)
        self.measure    = measure = RoundTrip()
        self.ping       = measure.start
        self.round_trip = measure.round_trip

        # # #

        # Slots ------------------------------------------------------------------------------------
        self.parser = parser = FrameParser(vlan)
        self.said   = said   = StatusReader()
        self.frame_rx = parser.sink
        slots  = [PeerSlot(depths, period) for _ in range(peers)]
        knowns, ups, matches = Signal(peers), Signal(peers), Signal(peers)
        named  = Signal(peers)
        takes  = Signal(peers)  # one-hot: the slot that a STATUS frame without a slot takes
        heard  = Signal()       # the frame has HEARD: it is no hello
        for n, slot in enumerate(slots):
            self.add_module(f"slot{n}", slot)
            training = slot.training
            self.comb += [
                training.signal.eq(self.signal),
                training.test.eq(self.test),
                training.mac.eq(self.mac),
                training.nonce.eq(self.nonce),
                training.sender.eq(parser.source),
                training.said_nonce.eq(said.nonce),
                training.said_session.eq(said.their_session),
                training.said_state.eq(said.state),
                training.heard.eq(said.heard),
                training.heard_session.eq(parser.session),
                training.status.eq(said.whole & ((matches[n] & heard) | takes[n])),
                training.retrain.eq(self.retrain),
                slot.own_number.eq(self.number),
                knowns[n].eq(training.known),
                ups[n].eq(training.up),
                matches[n].eq(slot.matches),
                named[n].eq(slot.named),
                slot.taken.eq(Reduce("OR", [
                    other.named & other.training.known &
                    (other.number == said.state[NUMBER_LSB:])
                    for other in slots if other is not slot])),
            ]
        self.comb += [
            heard.eq((said.state & ETHERNET_STATE.HEARD) != 0),
            takes.eq(Mux(matches == 0, lowest_one(~knowns), 0)),
        ]

        # State ------------------------------------------------------------------------------------
        shown = Signal(peers)  # the slot whose values are shown
        first = slots[0].training
        self.comb += [
            self.up.eq(ups != 0),
            self.peer_known.eq(knowns != 0),
            shown.eq(Mux(self.up, lowest_one(ups), lowest_one(knowns))),
            self.peer.eq(value_of(shown, [slot.training.peer for slot in slots])),
            self.peer_mac.eq(Mux(self.peer_known,
                value_of(shown, [slot.training.peer_mac for slot in slots]), BROADCAST)),
            If(self.up,
                self.state.eq(LINK_STATE.UP),
                self.reason.eq(LINK_REASON.NONE)
            ).Elif(self.peer_known,
                self.state.eq(LINK_STATE.ALIGN),
                self.reason.eq(LINK_REASON.NOT_HEARD)
            ).Else(
                self.state.eq(first.state),
                self.reason.eq(first.reason)
            ),
        ]

        # Received DATA ----------------------------------------------------------------------------
        is_data, is_status = Signal(), Signal()
        takers   = Signal(peers)  # one-hot: the slot in whose session the frame that starts is
        accepted = Signal(peers)  # likewise, until the frame ends
        stranger = Signal()
        got      = Signal(peers)  # a good DATA frame has ended
        self.comb += [
            is_data.eq(parser.start & (parser.kind == ETHERNET_KIND.DATA)),
            is_status.eq(parser.start & (parser.kind == ETHERNET_KIND.STATUS)),
            parser.mac.eq(self.mac),
            said.start.eq(is_status),
            said.other.eq(parser.start),
            *[getattr(said, name).eq(getattr(parser, name))
                for name in ["unit", "data", "end", "good"]],
            got.eq(Mux(parser.end & parser.good, accepted, 0)),
        ]
        self.sync += If(parser.start,
            accepted.eq(Mux(is_data, takers, 0)),
            stranger.eq(is_data & (takers == 0)),
        )
        for n, slot in enumerate(slots):
            in_session = matches[n] & (parser.session == slot.training.session)
            self.comb += [
                takers[n].eq(in_session & ups[n]),
                slot.got_data.eq(got[n]),
            ]
            for c, (receiver, limit) in enumerate(zip(slot.receivers, slot.limits)):
                self.comb += [
                    receiver.start.eq(is_data & takers[n] & (parser.channel == c)),
                    parser.fragment.connect(receiver.fragment, omit={"ready"}),
                    *[getattr(receiver, name).eq(getattr(parser, name))
                        for name in ["position", "unit", "data", "end", "good"]],
                    # A hello has no credits. Its header has session 0, as the first session.
                    limit.came.eq((said.whole & heard & in_session) |
                        (got[n] & (parser.credit_channel == c))),
                    limit.offered.eq(
                        Mux(said.whole, said.offered[16*c:16*c + 16], parser.credit)),
                ]
                # The fields of a frame are valid until the next one's header, some cycles later.
                self.sync += receiver.told.eq(
                    said.whole & heard & in_session & (parser.channel == c))

        # Channels ---------------------------------------------------------------------------------
        self.table     = table     = PeerTable(peers)
        self.scheduler = scheduler = FrameScheduler(channels)
        self.builder   = builder   = FrameBuilder(vlan, priorities)
        self.frame_tx  = builder.source
        self.sinks, self.sources = [], []
        packers, departures, steers = [], [], []
        chosen = Signal(channels)  # one-hot: the channel whose frame is sent
        begins = Signal()          # a DATA frame begins
        beat   = Signal(max=period)
        self.sync += If(beat == period - 1, beat.eq(0)).Else(beat.eq(beat + 1))
        self.comb += [
            table.number.eq(self.number),
            table.ups.eq(ups),
            table.named.eq(named),
            *[number.eq(slot.number) for number, slot in zip(table.numbers, slots)],
        ]
        for c, queue in enumerate(queues):
            # Sent.
            width  = bulk_width if c == CHANNEL.BULK else 32
            packer = Packer(*queue, targets=peers + 1, width=width)
            departure = Departure(peers, patience)
            steer = Steer(table, peers, loops=c == CHANNEL.CONTROL, width=width)
            self.add_module(f"steer{c}", steer)
            self.add_module(f"packer{c}", packer)
            self.add_module(f"departure{c}", departure)
            steers.append(steer)
            packers.append(packer)
            departures.append(departure)
            self.sinks.append(steer.sink)
            allowed = Signal(name=f"allowed{c}")
            self.comb += [
                steer.source.connect(packer.sink),
                packer.target.eq(steer.target),
                packer.abandon.eq(steer.abandon),
                packer.up.eq(1),
                steer.open.eq(packer.open),
                packer.fragments.connect(departure.fragments),
                packer.units.connect(departure.units),
                departure.ups.eq(ups),
                departure.busy.eq(chosen[c]),
                departure.wants.eq(builder.units.ready),
                departure.sends.eq(begins & scheduler.choice[c]),
                departure.allowed.eq(allowed),
                departure.tick.eq(beat == period - 1),
                allowed.eq(value_of(packer.fragments.target[:peers],
                    [slot.limits[c].allowed for slot in slots])),
                scheduler.may[c].eq(departure.waits & allowed & ~held[c] if obeys else
                    departure.waits & allowed),
            ]
            self.sync += self.stopped[c].eq(departure.waits & ~allowed)
            for n, slot in enumerate(slots):
                self.comb += [
                    slot.limits[c].units.eq(packer.fragments.units),
                    slot.limits[c].sends.eq(departure.sends & packer.fragments.target[n]),
                ]

            # Received.
            arrivals = [slot.receivers[c].source for slot in slots]
            if c == CHANNEL.CONTROL:
                arrivals.append(departure.loop)
            else:
                self.comb += departure.loop.ready.eq(1)
            merge, reader = PacketMerge(len(arrivals)), PacketReader(width)
            self.add_module(f"merge{c}", merge)
            self.add_module(f"reader{c}", reader)
            self.sources.append(reader.source)
            self.comb += [
                *[arrival.connect(sink) for arrival, sink in zip(arrivals, merge.sinks)],
                merge.source.connect(reader.sink),
                reader.up.eq(1),
                reader.source.channel.eq(c),
            ]

        # STATUS -----------------------------------------------------------------------------------
        age     = Signal(max=period)
        hello   = Signal()       # a hello is due, and no STATUS frame
        due     = Signal(peers)
        pick    = Signal(peers)  # one-hot: whose STATUS frame goes next
        asks    = Signal()       # the STATUS frame has PING
        answers = Signal()       # the STATUS frame has PONG
        asked   = Signal(peers)  # one-hot: whose ping is answered
        pinged  = Signal(peers)  # one-hot: where a ping goes
        begins_status = Signal()
        status_goes = ((pick != 0) | hello) & ~held[CHANNEL.CONTROL] if obeys else None
        of_pick = lambda name: value_of(pick, [getattr(slot.training, name) for slot in slots])
        of_peer = Cat(*[slot.training.of_peer for slot in slots])
        self.comb += [
            pinged.eq(lowest_one(ups)),
            *[due[n].eq(knowns[n] & (slot.schedule.due | (measure.pong.valid & asked[n]) |
                (measure.ping.valid & ~measure.pong.valid & pinged[n])))
                for n, slot in enumerate(slots)],
            begins_status.eq(~builder.busy & (status_goes if obeys else (pick != 0) | hello)),
            asks.eq(measure.ping.valid & ~measure.pong.valid & ((pick & pinged) != 0)),
            answers.eq(measure.pong.valid & ((pick & asked) != 0)),
            measure.ping.ready.eq(begins_status & asks),
            # The peer may have left.
            measure.pong.ready.eq((begins_status & answers) | ((asked & knowns) == 0)),
            measure.heard_ping.eq((of_peer != 0) & ((said.state & ETHERNET_STATE.PING) != 0)),
            measure.heard_pong.eq((of_peer != 0) & ((said.state & ETHERNET_STATE.PONG) != 0)),
            measure.number.eq(Mux(measure.heard_pong, said.pong, said.ping)),
            *[slot.schedule.sent.eq(begins_status & pick[n]) for n, slot in enumerate(slots)],
            *[slot.schedule.stopped.eq(self.stopped) for slot in slots],
        ]
        self.sync += [
            If(begins_status & hello,
                age.eq(0)
            ).Elif(age != period - 1,
                age.eq(age + 1)
            ),
            pick.eq(Mux(begins_status, 0, lowest_one(due))),
            hello.eq(~begins_status & (age == period - 1) & (due == 0)),
            If(measure.heard_ping, asked.eq(of_peer)),
        ]

        # Frames -----------------------------------------------------------------------------------
        target = Signal(peers)  # one-hot: the peer of the fragment that goes next
        sent_to = Signal(peers) # likewise, of the DATA frame that is sent
        of_choice = lambda name: value_of(
            scheduler.choice, [getattr(packer.fragments, name) for packer in packers])
        of_target = lambda name: value_of(target, [getattr(slot.training, name) for slot in slots])
        tells   = Signal(channels)  # one-hot: the channel that the header names
        position  = lambda slot: value_of(tells, [limit.position for limit in slot.limits])
        self.comb += [
            begins.eq((~builder.busy & ~status_goes if obeys else
                ~builder.busy & (pick == 0) & ~hello) & (scheduler.choice != 0)),
            scheduler.sent.eq(begins),
            target.eq(of_choice("target")),
            builder.mac.eq(self.mac),
            builder.begins_data.eq(begins),
            builder.begins_status.eq(begins_status),
            If(begins,
                builder.peer_mac.eq(of_target("peer_mac")),
                builder.session.eq(of_target("peer_session"))
            ).Else(
                builder.peer_mac.eq(Mux(pick == 0, BROADCAST, of_pick("peer_mac"))),
                builder.session.eq(of_pick("peer_session"))
            ),
            *[getattr(builder.fragment, name).eq(of_choice(name))
                for name in ["units", "half", "starts", "ends", "bad"]],
            tells.eq(Mux(begins, scheduler.choice,
                value_of(pick, [slot.schedule.turn for slot in slots]))),
            builder.channel.eq(value_of(tells, range(channels))),
            builder.position.eq(
                value_of(Mux(begins, target, pick), [position(slot) for slot in slots])),
            builder.state.eq(Cat(
                self.nonce, of_pick("session"),
                Cat(of_pick("known"), asks, answers, of_pick("up"), self.number),
                of_pick("peer"), measure.ping.number, measure.pong.number)),
            builder.units.valid.eq(value_of(chosen, [packer.units.valid for packer in packers])),
            builder.units.data.eq(value_of(chosen, [packer.units.data for packer in packers])),
        ]
        credit = Signal(16)
        self.comb += [
            *[slot.schedule.told.eq(builder.told & sent_to[n]) for n, slot in enumerate(slots)],
            builder.credits.eq(value_of(pick,
                [Cat(*[receiver.credit for receiver in slot.receivers]) for slot in slots])),
            builder.credit_channel.eq(value_of(sent_to, [slot.schedule.channel for slot in slots])),
            Case(builder.credit_channel, {c: credit.eq(value_of(sent_to,
                [slot.receivers[c].credit for slot in slots])) for c in range(channels)}),
            builder.credit.eq(credit),
        ]
        self.sync += [
            If(begins, chosen.eq(scheduler.choice), sent_to.eq(target)),
            If(builder.ends, chosen.eq(0)),
        ]

        # Counters ---------------------------------------------------------------------------------
        # The slots are looked at in turn.
        looks   = Signal(peers, reset=1)
        trained = Signal()
        lost    = Signal()
        self.sync += looks.eq(Cat(looks[-1], looks[:-1]))
        self.comb += [
            trained.eq(Reduce("OR", [slot.training.trained for slot in slots])),
            lost.eq(Reduce("OR", [slot.training.lost for slot in slots])),
        ]
        self.slack_high = []
        for c, depth in enumerate(depths):
            units = Signal(8, name=f"slack_high{c}")
            level = Signal(log2_int(depth) + 1)
            high  = Signal(log2_int(depth) + 1)
            self.comb += [
                level.eq(value_of(looks, [slot.receivers[c].level for slot in slots])),
                units.eq(Mux(high[1:] > 255, 255, high[1:])),
            ]
            self.sync += [
                If(level > high, high.eq(level)),
                If(trained & (ups == 0), high.eq(0)),
            ]
            self.slack_high.append(units)
        any_of = lambda name: Reduce("OR",
            [getattr(receiver, name) for slot in slots for receiver in slot.receivers])
        self.misrouted = Pulses(*[steer.misrouted for steer in steers])
        self.frame_counters = {
            "FRAMES_SENT":     begins_status | begins,
            "FRAMES_RECEIVED": (said.whole & ((matches != 0) | (takes != 0))) | any_of("taken"),
            "FRAMES_FOREIGN":  parser.foreign,
            "FRAMES_STRANGER": (parser.end & parser.good & stranger) |
                (said.whole & (matches == 0) & (takes == 0)),
            "FRAMES_BAD":      parser.bad | any_of("short") |
                (parser.end & parser.good & said.short),
            "FRAMES_GAP":      any_of("gap"),
            "FRAMES_LATE":     any_of("late"),
            "FRAMES_NO_ROOM":  any_of("no_room") |
                Reduce("OR", [departure.refused for departure in departures]),
        }
        self.counters = {
            "CODE_ERRORS":      self.frame_counters["FRAMES_BAD"],
            "DISPARITY_ERRORS": Constant(0),
            "SLACK_OVERFLOW":   any_of("no_room"),
            "STOPS_SENT":       Constant(0),
            "STOPS_RECEIVED":   Constant(0),
            "STOPPED_CYCLES":   self.stopped != 0,
            "STOPPING_CYCLES":  Constant(0),
            "LINK_TRAINED":     trained,
            "LINK_LOST":        lost,
            "WORDS_RECEIVED":   Constant(0),
            "PACKET_MISROUTED": self.misrouted.pulse,
        }
