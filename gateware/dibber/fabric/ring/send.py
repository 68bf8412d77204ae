"""The send buffer of one channel: packets stay until their echo is there."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import value_of
from dibber.fabric.ring.words import (ACCEPTED, ADDRESS_BITS, BUSY_A, BUSY_B, GRANT, LOST, ORDER,
    STATUS_BITS)
from dibber.layouts import word_layout
from dibber.packet.route import HOP_BITS, TURN_BITS

SLOTS     = 4
SLOT_BITS = 2

# Acceptances in a row after which one more packet may be SENT.
GROWTH = 8

# A retry without a grant happens after one to two of these periods.
RETRY_CYCLES = 32768

def nodes_onward(turn, size):
    """Statements, and the signal that they set: how many nodes onward a route's turn leads.

    A turn below the ring's size is this number, whatever the addresses are: so a route stays right
    when another node becomes the scrubber. A turn of 16 - k leads k nodes back, if it is not below
    the size. Another turn leads to no node: its result is 15, which is not below the size either.
    """
    nodes = Signal(TURN_BITS)
    sums  = Signal(TURN_BITS + 2)
    return [
        sums.eq(turn + size),
        If(turn < size,
            nodes.eq(turn)
        ).Elif(sums > (1 << TURN_BITS),
            nodes.eq(sums)
        ).Else(
            nodes.eq((1 << TURN_BITS) - 1)
        ),
    ], nodes

class SendSlot:
    """What is known of one packet.

    used    : it has a place in the buffer
    filled  : it waits for its turn
    sent    : its echo is awaited
    waiting : it was refused, and its grant is awaited
    doomed  : with `sent`: an earlier packet was refused, so its echo will be ORDER
    aged    : with `waiting`: it waits for a whole retry period
    turn    : its target is so many nodes onward, modulo the size of the ring
    """
    def __init__(self, n, pointer_bits):
        self.used    = Signal(name=f"used{n}")
        self.filled  = Signal(name=f"filled{n}")
        self.sent    = Signal(name=f"sent{n}")
        self.waiting = Signal(name=f"waiting{n}")
        self.doomed  = Signal(name=f"doomed{n}")
        self.aged    = Signal(name=f"aged{n}")
        self.bad     = Signal(name=f"bad{n}")
        self.turn    = Signal(TURN_BITS, name=f"turn{n}")
        self.start   = Signal(pointer_bits, name=f"start{n}")
        self.words   = Signal(pointer_bits, name=f"words{n}")
        self.open    = self.filled | self.sent | self.waiting

# Send Buffer --------------------------------------------------------------------------------------

class RingSend(LiteXModule):
    """Keep the packets of one channel, offer the next one that may go, and hear what became of it.

    A packet may go if it is filled and the limit allows one more SENT packet. No earlier packet to
    the same target may be waiting or doomed. Buffer space is freed in the order of the packets.

    A packet without a route goes to the other node of a ring of two. A packet whose target is not
    on the ring is dropped.

    Parameters
    ----------
    packet_words : the largest packet, without its ring prefix; a longer one is cut as bad
    depth        : of the buffer, a power of two

    Attributes
    ----------
    sink    : Endpoint(word_layout), in
    up      : Signal(), in    packets may begin at the sink; when it falls, a begun one is dropped
    address : Signal(ADDRESS_BITS), in
    size    : Signal(5), in   nodes of the ring
    offer   : Signal(), out   a packet may go; valid with the next four until `begin`
    head    : Signal(), out   no earlier packet to its target awaits its end
    target  : Signal(ADDRESS_BITS), out
    slot    : Signal(SLOT_BITS), out
    bad     : Signal(), out   it ends as bad
    begin   : Signal(), in    the offered packet begins: its words are read
    next_   : Signal(), in    `data` is taken; not in the cycle of `begin` nor in the next one
    data    : Signal(32), out
    last    : Signal(), out   `data` is the packet's last word
    event   : Record(valid, status, slot, source), in   an echo of `slot`, or a grant of `source`
    retry   : Signal(), in    pulse, once in RETRY_CYCLES
    flush   : Signal(), in    while the node is not UP: packets that are filled or waiting are lost
    begun   : Signal(), out   words of a packet were taken, and its last one was not
    waits   : Signal(), out   a packet is waiting
    refused : Signal(), out   pulse: BUSY or ORDER
    lost    : Signal(), out   pulse: a packet's end is not known
    kept    : Signal(), out   a slot keeps a packet
    keeps   : Signal(SLOTS), out  one-hot: the word that is taken is the last one of a packet, which
              this slot keeps
    gone    : Signal(SLOTS), out  pulse: the slot's packet was accepted, refused for good or dropped,
              or no echo came
    flushed : Signal(3), out  packets that are dropped in this cycle by `flush`, or because `up`
              fell before their last word came
    dropped : Signal(2), out  packets without a route or a target on this ring, in this cycle

    Cycles: 2 from a packet's last word to `offer`.
    """
    def __init__(self, packet_words, depth):
        assert depth >= packet_words and depth & (depth - 1) == 0
        bits = log2_int(depth)
        self.sink    = sink = stream.Endpoint(word_layout())
        self.up      = Signal()
        self.address = Signal(ADDRESS_BITS)
        self.size    = Signal(5)
        self.offer   = Signal()
        self.head    = Signal()
        self.target  = Signal(ADDRESS_BITS)
        self.slot    = Signal(SLOT_BITS)
        self.bad     = Signal()
        self.begin   = Signal()
        self.next_   = Signal()
        self.data    = Signal(32)
        self.last    = Signal()
        self.event   = event = Record(
            [("valid", 1), ("status", STATUS_BITS), ("slot", SLOT_BITS), ("source", ADDRESS_BITS)])
        self.retry   = Signal()
        self.flush   = Signal()
        self.begun   = begun = Signal()
        self.waits   = Signal()
        self.refused = Signal()
        self.lost    = Signal()
        self.kept    = Signal()
        self.keeps   = Signal(SLOTS)
        self.gone    = Signal(SLOTS)
        self.flushed = Signal(max=SLOTS + 2)
        self.dropped = Signal(2)

        # # #

        slots = [SendSlot(n, bits + 1) for n in range(SLOTS)]
        self.slots = slots

        # Words In ---------------------------------------------------------------------------------
        memory = Memory(32, depth, name="ring_send")
        writer = memory.get_port(write_capable=True)
        reader = memory.get_port()
        self.specials += memory, writer, reader
        write    = Signal(bits + 1)  # where the next word goes
        start    = Signal(bits + 1)  # where the packet began
        tail     = Signal(bits + 1)  # the oldest word that is still needed
        level    = Signal(bits + 1)
        count    = Signal(bits + 1)  # words of the packet
        newest   = Signal(SLOT_BITS)
        skipping = Signal()   # the rest of a packet is taken and dropped
        routed   = Signal()   # the sink's word is a prefix word
        wrong    = Signal()   # the packet has no way on this ring
        turn     = Signal(TURN_BITS)
        free     = Signal()   # a slot
        room     = Signal()
        reset_in = Signal()   # a packet begins inside a packet: its sender was reset
        takes    = Signal()
        stores   = Signal()
        too_long = Signal()
        cut      = Signal()   # such a packet's old part ends as bad
        ends     = Signal()   # a packet is whole: its slot is filled
        absent   = Signal()   # the chosen packet's target is not on the ring
        falls    = Signal()   # the node is not UP any more: what came of a packet is dropped
        to_nodes, nodes = nodes_onward(sink.data[:TURN_BITS], self.size)
        self.comb += [
            free.eq(~reduce(or_, [slots[n].used & (newest == n) for n in range(SLOTS)])),
            level.eq(write - tail),
            room.eq(level != depth),
            reset_in.eq(begun & sink.first),
            routed.eq(sink.first & (sink.prefix != 0)),
            *to_nodes,
            wrong.eq(sink.first & Mux(sink.prefix == 0,
                self.size != 2,
                (sink.prefix != 1) | (sink.data[8:8 + HOP_BITS] != 0) | sink.last)),
            sink.ready.eq(Mux(skipping & ~sink.first, 1,
                self.up & ~reset_in & free & (room | routed | wrong))),
            takes.eq(sink.valid & sink.ready),
            stores.eq(takes & ~skipping & ~routed & ~wrong | takes & sink.first & ~routed & ~wrong),
            too_long.eq(stores & (count == packet_words - 1) & ~sink.last),
            cut.eq(sink.valid & self.up & reset_in),
            ends.eq((stores & (sink.last | too_long)) | (cut & (count != 0))),
            falls.eq(~self.up & begun & ~ends),
            self.dropped.eq((takes & wrong) + absent),
            writer.adr.eq(write[:bits]),
            writer.dat_w.eq(sink.data),
            writer.we.eq(stores),
        ]
        self.sync += [
            If(takes,
                skipping.eq(~sink.last & (skipping & ~sink.first | wrong | too_long)),
                begun.eq(~sink.last & ~wrong & ~too_long & (sink.first | begun)),
                If(sink.first, turn.eq(Mux(routed, nodes, 1))),
            ),
            If(stores,
                write.eq(write + 1),
                count.eq(count + 1),
            ),
            If(ends,
                start.eq(write + stores),
                count.eq(0),
                newest.eq(newest + 1),
            ),
            If(cut, begun.eq(0)),
            If(falls,
                begun.eq(0),
                skipping.eq(1),
                write.eq(start),
                count.eq(0),
            ),
        ]

        # Slots ------------------------------------------------------------------------------------
        oldest    = Signal(SLOT_BITS)
        releases  = Signal()
        released  = Signal(bits + 1)  # words of the oldest packet
        age       = [Signal(SLOT_BITS, name=f"age{n}") for n in range(SLOTS)]
        for n in range(SLOTS):
            self.comb += age[n].eq(n - oldest)
        def earlier(m, n):
            """Slot m is older than slot n, and has the same target."""
            return slots[m].used & (age[m] < age[n]) & (slots[m].turn == slots[n].turn)
        def any_earlier(n, condition):
            return reduce(or_, [
                earlier(m, n) & condition(slots[m]) for m in range(SLOTS) if m != n])
        refusal = Signal()
        flushes = Signal()
        open_slots = Signal(SLOTS)
        was_open   = Signal(SLOTS)
        self.sync += was_open.eq(open_slots)
        self.comb += [
            open_slots.eq(Cat(*[slot.open for slot in slots])),
            self.kept.eq(open_slots != 0),
            self.gone.eq(was_open & ~open_slots),
            self.keeps.eq(Cat(*[stores & sink.last & (newest == n) for n in range(SLOTS)])),
            refusal.eq(
                (event.status == BUSY_A) | (event.status == BUSY_B) | (event.status == ORDER)),
            releases.eq(reduce(or_, [(oldest == n) & slot.used & ~slot.open
                for n, slot in enumerate(slots)])),
            released.eq(reduce(or_, [
                Mux(oldest == n, slot.words, 0) for n, slot in enumerate(slots)])),
            self.waits.eq(reduce(or_, [slot.waiting for slot in slots])),
            self.refused.eq(event.valid & refusal),
            self.lost.eq(event.valid & (event.status == LOST)),
            flushes.eq(self.flush & ~self.up),
            self.flushed.eq(sum(
                [flushes & (slot.filled | slot.waiting) for slot in slots], falls)),
        ]
        self.sync += If(releases,
            oldest.eq(oldest + 1),
            tail.eq(tail + released),
        )
        grant_turn = Signal(TURN_BITS)
        self.comb += grant_turn.eq(Mux(event.source >= self.address,
            event.source - self.address, event.source + self.size - self.address))
        hit_turn = Signal(TURN_BITS)  # of the slot whose echo came
        hit_age  = Signal(SLOT_BITS)
        self.comb += [
            hit_turn.eq(reduce(or_, [
                Mux(event.slot == n, slot.turn, 0) for n, slot in enumerate(slots)])),
            hit_age.eq(reduce(or_, [Mux(event.slot == n, age[n], 0) for n in range(SLOTS)])),
        ]
        for n, slot in enumerate(slots):
            mine = event.valid & (event.status != GRANT) & (event.slot == n)
            self.sync += [
                If(ends & (newest == n),
                    slot.used.eq(1),
                    slot.filled.eq(1),
                    slot.sent.eq(0),
                    slot.waiting.eq(0),
                    slot.doomed.eq(0),
                    slot.start.eq(start),
                    slot.words.eq(count + stores),
                    slot.turn.eq(Mux(sink.first & takes, 1, turn)),
                    slot.bad.eq(reset_in | sink.bad | too_long),
                ),
                If(releases & (oldest == n), slot.used.eq(0)),
                If((self.begin | absent) & (self.slot == n),
                    slot.filled.eq(0),
                    slot.sent.eq(self.begin),
                    slot.doomed.eq(0),
                ),
                If(mine & slot.sent,
                    slot.sent.eq(0),
                    slot.doomed.eq(0),
                    slot.filled.eq(event.status == ORDER),
                    slot.waiting.eq((event.status == BUSY_A) | (event.status == BUSY_B)),
                    slot.aged.eq(0),
                ),
                If(event.valid & refusal & slot.sent & (slot.turn == hit_turn) & (age[n] > hit_age),
                    slot.doomed.eq(1)
                ),
                If(slot.waiting & (
                    (event.valid & (event.status == GRANT) & (grant_turn == slot.turn)) |
                    (self.retry & slot.aged) | ~self.up),
                    slot.waiting.eq(0),
                    slot.filled.eq(1)
                ).Elif(self.retry & slot.waiting,
                    slot.aged.eq(1)
                ),
                If(flushes,
                    slot.filled.eq(0),
                    slot.waiting.eq(0)
                ),
            ]

        # Limit ------------------------------------------------------------------------------------
        limit  = Signal(max=SLOTS + 1, reset=SLOTS)
        flying = Signal(max=SLOTS + 1)
        streak = Signal(max=GROWTH)
        self.comb += flying.eq(sum([slot.sent for slot in slots[1:]], slots[0].sent))
        self.sync += If(event.valid,
            If(refusal,
                streak.eq(0),
                # Of the refusals of one burst, only that of the first packet counts.
                If((event.status != ORDER) & (limit != 1), limit.eq(limit >> 1))
            ).Elif(event.status == ACCEPTED,
                streak.eq(streak + 1),
                If((streak == GROWTH - 1) & (limit != SLOTS), limit.eq(limit + 1))
            ),
        )

        # Choice -----------------------------------------------------------------------------------
        # It is a cycle old, so it does not count after a change of a slot.
        may      = Signal(SLOTS)
        is_head  = Signal(SLOTS)
        by_age   = [Signal(SLOTS, name=f"at_age{n}") for n in range(SLOTS)]  # one-hot
        choice   = Signal(SLOTS)
        chosen   = Signal()  # valid
        changes  = Signal()
        of       = lambda values: value_of(choice, values)
        for n, slot in enumerate(slots):
            self.comb += [
                may[n].eq(slot.filled & ~any_earlier(n, lambda s: s.waiting | s.doomed)),
                is_head[n].eq(~any_earlier(n, lambda s: s.open)),
            ]
            self.comb += by_age[n].eq(Cat(*[age[m] == n for m in range(SLOTS)]) & may)
        self.comb += [
            choice.eq(by_age[3]),
            *[If(by_age[n] != 0, choice.eq(by_age[n])) for n in (2, 1, 0)],
            changes.eq(event.valid | self.retry | self.begin | absent | ~self.up),
        ]
        pick_start = Signal(bits)
        pick_words = Signal(bits + 1)
        picked_turn = Signal(TURN_BITS)
        place   = Signal(ADDRESS_BITS + 1)  # of the target, without the way round
        on_ring = Signal()
        self.comb += [
            picked_turn.eq(of([slot.turn for slot in slots])),
            place.eq(self.address + picked_turn),
        ]
        self.sync += [
            chosen.eq((may != 0) & (flying < limit) & ~changes),
            self.slot.eq(of([Constant(n, SLOT_BITS) for n in range(SLOTS)])),
            self.head.eq((choice & is_head) != 0),
            self.target.eq(Mux(place >= self.size, place - self.size, place)),
            on_ring.eq(picked_turn < self.size),
            self.bad.eq(of([slot.bad for slot in slots])),
            pick_start.eq(of([slot.start[:bits] for slot in slots])),
            pick_words.eq(of([slot.words for slot in slots])),
        ]
        self.comb += [
            self.offer.eq(chosen & ~event.valid & ~self.retry & self.up & on_ring),
            absent.eq(chosen & ~event.valid & ~self.retry & self.up & ~on_ring),
        ]

        # Words Out --------------------------------------------------------------------------------
        read = Signal(bits)
        left = Signal(bits + 1)
        self.comb += [
            reader.adr.eq(Mux(self.begin, pick_start, read + self.next_)),
            self.data.eq(reader.dat_r),
            self.last.eq(left == 1),
        ]
        self.sync += [
            read.eq(reader.adr),
            If(self.begin,
                left.eq(pick_words)
            ).Elif(self.next_,
                left.eq(left - 1)
            ),
        ]
