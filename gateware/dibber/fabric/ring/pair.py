"""A pair of rings that go opposite ways, behind one port. docs/design/ring-pair.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.pulses import Pulses
from dibber.fabric.ring.fold import FOLD_CYCLES, HOLD_CYCLES, RingCable
from dibber.fabric.ring.merge import RingMerge
from dibber.fabric.ring.port import (BYPASS_WORDS, PACKET_WORDS, RECEIVE_WORDS, SEND_WORDS,
    RingPort)
from dibber.fabric.ring.send import SLOTS
from dibber.fabric.ring.view import RingView
from dibber.fabric.ring.way import RingRest, RingWay
from dibber.layouts import word_layout

class RingPairPort(LiteXModule):
    """Two nodes of two rings, with the interface of a port, and two cables.

    Parameters
    ----------
    packet_words, send_words, receive_words, bypass_words : as RingPort, of each node;
        `bypass_words` is a power of two
    fold_cycles, hold_cycles : as RingCable

    Attributes
    ----------
    As LinkPort, but for `serial_tx` and `serial_rx`, and:
    cables        : list of 2 RingCable with these two and `signal`: NEXT, PREVIOUS. NEXT
                    sends ring 0
    signal        : Signal(), out   a signal is at one of the cables
    scrubber      : Signal(), out   of ring 0, or of ring 1 while ring 0 is not UP
    address, size : Signal, out   common address of this card; cards, 0 if unknown
    folded        : Signal(), out   the port is UP, and both rings are one folded ring
    balanced      : Signal(), out   both rings are UP and not folded
    places, kept, keeps, gone : as RingPort, of both nodes together
    nodes         : list of 2 RingPort
    events        : dict of pulses that have no counter, of both nodes together: as RingPort, and
                    MOVED (a packet takes another ring than the last one of its channel), FOLDED (a
                    fold was made or opened). FLUSHED: a packet on a ring that is cut was dropped
    Bit 0 of `nonce` is not used. WORDS_RECEIVED and STOPPED_CYCLES count cycles in which at least
    one node counts.

    Cycles: docs/design/ring-pair.md.
    """
    places = 2*SLOTS

    def __init__(self, packet_words=PACKET_WORDS, send_words=SEND_WORDS,
        receive_words=RECEIVE_WORDS, bypass_words=BYPASS_WORDS, fold_cycles=FOLD_CYCLES,
        hold_cycles=HOLD_CYCLES):
        channels = len(packet_words)
        self.signal     = Signal()
        self.scrubber   = Signal()
        self.nonce      = Signal(16)
        self.peer       = Signal(16)
        self.peer_known = Signal()
        self.test       = Signal()
        self.retrain    = Signal()
        self.ping       = Signal()
        self.round_trip = Signal(32)
        self.state      = Signal(4)
        self.reason     = Signal(4)
        self.up         = up = Signal()
        self.stopped    = Signal(channels)
        self.address    = Signal(4)
        self.size       = Signal(5)
        self.folded     = Signal()
        self.balanced   = Signal()

        # # #

        views  = [RingView(ring) for ring in range(2)]
        nodes  = [
            RingPort(packet_words, send_words, receive_words, bypass_words, view) for view in views]
        cables = [RingCable(fold_cycles, hold_cycles) for _ in range(2)]
        rests  = [RingRest(channels, bypass_words) for _ in range(2)]
        merges = [RingMerge(2*words) for words in receive_words]
        self.views, self.nodes, self.cables, self.rests = views, nodes, cables, rests
        self.submodules += views + nodes + cables + rests + merges
        self.way = way = RingWay(channels)
        self.sinks   = way.sinks
        self.sources = [stream.Endpoint(word_layout()) for _ in range(channels)]
        self.kept    = [nodes[0].kept[n] | nodes[1].kept[n] for n in range(channels)]
        self.keeps   = [Cat(*[node.keeps[n] for node in nodes]) for n in range(channels)]
        self.gone    = [Cat(*[node.gone[n] for node in nodes]) for n in range(channels)]

        # Cables -----------------------------------------------------------------------------------
        ups = Signal(2)
        for n, cable in enumerate(cables):
            sender, receiver, other = nodes[n], nodes[1 - n], cables[1 - n]
            self.comb += [
                sender.serial_tx.connect(cable.node_tx),
                cable.node_rx.connect(receiver.serial_rx),
                receiver.signal.eq(cable.node_signal),
                cable.any_up.eq(nodes[0].up | nodes[1].up),
                cable.other_alive.eq(other.alive),
                # If both could fold, NEXT does.
                cable.other_folded.eq(other.folded | (other.turns if n else 0)),
            ]

        # Nonces and Numbers -----------------------------------------------------------------------
        for ring, (node, view) in enumerate(zip(nodes, views)):
            other = nodes[1 - ring]
            view.connect(node.election, other.election, node.up, views[1 - ring], other.up)
            self.comb += [
                node.nonce.eq(Cat(Constant(ring, 1), self.nonce[1:])),
                # A nonce of 0 or 1 makes no scrubber.
                If(self.nonce[1:] == 0, node.nonce.eq(0)),
                node.test.eq(self.test),
                node.retrain.eq(self.retrain),
                node.ping.eq(self.ping),
                ups[ring].eq(node.up & (~view.folded | other.up)),
            ]
        self.twin = twin = RingTwin()
        self.comb += [
            twin.nonce.eq(nodes[0].nonce),
            twin.heard.eq(nodes[1].election.heard.valid),
            twin.heard_nonce.eq(nodes[1].election.heard.nonce),
            twin.up.eq(nodes[0].up),
            nodes[0].election.mark.eq(twin.found),
        ]

        # Packets ----------------------------------------------------------------------------------
        # If the cards get other numbers, what waits for a card has lost its way.
        kept_address = Signal(4)
        kept_size    = Signal(5)
        changed      = Signal()
        self.sync += If(up, kept_address.eq(self.address), kept_size.eq(self.size))
        self.comb += [
            up.eq(ups != 0),
            self.signal.eq(cables[0].signal | cables[1].signal),
            self.scrubber.eq(Mux(ups[0], nodes[0].scrubber, nodes[1].scrubber)),
            changed.eq(~up & reduce(or_, [view.agrees &
                ((view.address != kept_address) | (view.size != kept_size)) for view in views])),
            way.ups.eq(ups),
            way.folded.eq(self.folded),
            way.address.eq(self.address),
            way.size.eq(self.size),
            way.last.eq(views[0].last),
            self.folded.eq((ups == 3) & views[0].folded),
            self.balanced.eq((ups == 3) & ~views[0].folded),
            self.address.eq(Mux(ups[0], views[0].address, views[1].address)),
            self.size.eq(Mux(ups[0], views[0].size, views[1].size)),
        ]
        for ring, (node, rest) in enumerate(zip(nodes, rests)):
            event = node.numbers.event
            self.comb += [
                rest.up.eq(node.up),
                rest.size.eq(views[ring].total),
                rest.other_up.eq(ups[1 - ring]),
                *[getattr(rest.event, name).eq(getattr(event, name))
                    for name in ("valid", "channel", "status", "slot")],
            ]
            for n, buffer in enumerate(node.buffers):
                slots = way.slots[ring][n]
                self.comb += [
                    way.sources[ring][n].connect(node.sinks[n]),
                    slots.begun.eq(buffer.begun),
                    slots.open.eq(Cat(*[slot.open for slot in buffer.slots])),
                    *[getattr(slots, f"turn{slot}").eq(buffer.slots[slot].turn)
                        for slot in range(len(buffer.slots))],
                    way.gone[ring][n].eq(rest.gone[n]),
                    buffer.flush.eq(rest.flush | changed),
                ]
        for n, merge in enumerate(merges):
            for ring, node in enumerate(nodes):
                take = node.transit.take
                self.comb += [
                    merge.begins[ring].eq(take.valid & take.first & take.channel[n]),
                    node.sources[n].connect(merge.sinks[ring]),
                ]
            self.comb += [
                merge.source.connect(self.sources[n], omit={"channel"}),
                self.sources[n].channel.eq(n),
            ]

        # State ------------------------------------------------------------------------------------
        # Of the node that is not UP, if the port is not UP.
        shown = lambda name: Mux(
            ~nodes[0].up | ups[0], getattr(nodes[0], name), getattr(nodes[1], name))
        was_up = Signal()
        self.sync += was_up.eq(up)
        self.comb += [
            If(ups == 2,
                self.state.eq(nodes[1].state),
                self.reason.eq(nodes[1].reason)
            ).Else(
                self.state.eq(shown("state")),
                self.reason.eq(shown("reason"))
            ),
            self.peer_known.eq(nodes[0].peer_known | nodes[1].peer_known),
            self.peer.eq(Cat(Constant(0, 1),
                Mux(nodes[0].peer_known, nodes[0].peer[1:], nodes[1].peer[1:]))),
            self.round_trip.eq(Mux(ups[0], nodes[0].round_trip, nodes[1].round_trip)),
            self.stopped.eq(nodes[0].stopped | nodes[1].stopped),
        ]
        self.slack_high = []
        for one, other in zip(*[node.slack_high for node in nodes]):
            high = Signal(8)
            self.comb += high.eq(Mux(one > other, one, other))
            self.slack_high.append(high)

        # Counters ---------------------------------------------------------------------------------
        def both(pulses):
            """As many pulses as both nodes have, though both may lose 16 packets at once."""
            sums = Pulses(*pulses, bits=7)
            self.submodules += sums
            return sums.pulse
        self.counters = {
            name: both([node.counters[name] for node in nodes])
            for name in ("CODE_ERRORS", "DISPARITY_ERRORS", "SLACK_OVERFLOW", "STOPS_SENT",
                "STOPS_RECEIVED", "PACKET_MISROUTED")}
        self.counters |= {
            name: nodes[0].counters[name] | nodes[1].counters[name]
            for name in ("STOPPED_CYCLES", "STOPPING_CYCLES", "WORDS_RECEIVED")}
        self.counters |= {
            "LINK_TRAINED": up & ~was_up,
            "LINK_LOST":    ~up & was_up,
        }
        self.events = {
            name: both([node.events[name] for node in nodes])
            for name in nodes[0].events if name != "STALLED"}
        self.events |= {
            "STALLED": reduce(or_, [node.events["STALLED"] for node in nodes]),
            "MOVED":   way.moves,
            "FOLDED":  both([cable.turns for cable in cables]),
        }

# Twin ---------------------------------------------------------------------------------------------

class RingTwin(LiteXModule):
    """Find out whether both nodes of a card are on one ring: node 1 hears the nonce of node 0.

    A node that is not UP sends its nonce once in some 50 cycles, directly before its NUMBER. So
    the scrubber knows this before its NUMBER comes back.

    Attributes
    ----------
    nonce : Signal(16), in   of node 0
    heard, heard_nonce : Signal, in   a nonce came to node 1
    up    : Signal(), in    of node 0
    found : Signal(), out   kept while `up`
    """
    memory_cycles = 1024

    def __init__(self):
        self.nonce       = Signal(16)
        self.heard       = Signal()
        self.heard_nonce = Signal(16)
        self.up          = Signal()
        self.found       = Signal()

        # # #

        timer = Signal(max=self.memory_cycles)
        self.comb += self.found.eq(timer != 0)
        self.sync += [
            If(self.heard & (self.heard_nonce == self.nonce),
                timer.eq(self.memory_cycles - 1)
            ).Elif((timer != 0) & ~self.up,
                timer.eq(timer - 1)
            ),
        ]
