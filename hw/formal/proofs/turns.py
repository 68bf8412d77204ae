"""Commands in their turn: each has a free slot, and room for its completion."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import C
from dibber.endpoint import room as room_design, turns as design

from harness import Harness, Mutant, Property, implies, inner

ENDPOINTS, SLOT_BITS = 2, 1
COUNT_BITS, SIZE     = 8, 4    # the longest queue has 2^SIZE entries

class Turns(Harness):
    """The block with any doorbells. The control program takes shown commands, and opens and skips
    an endpoint's queue while the endpoint is not on the fast path. The fast path answers its offer.
    The reader reads owed completions.

    Beside it stand one endpoint and one slot of the solver's choice: whether the slot is in use,
    and the completions that were not read.
    """
    def __init__(self):
        super().__init__()
        C.SLOTS, C.QUEUE_MAX_ENTRIES = 2**SLOT_BITS, 2**SIZE
        for module in (room_design, design):
            module.SLOT_BITS, module.COUNT_BITS = SLOT_BITS, COUNT_BITS
        self.block = block = design.CommandTurns(ENDPOINTS)
        take, skip, open_, offer, verdict = block.take, block.skip, block.open, block.offer, block.verdict
        endpoint = self.constant("endpoint", log2_int(ENDPOINTS))
        slot     = self.constant("slot", SLOT_BITS)
        bits     = log2_int(ENDPOINTS)
        producers, consumers = ([self.free(f"{name}{n}", COUNT_BITS) for n in range(ENDPOINTS)] for name in ("producer", "consumer"))
        self.comb += [
            block.producer.count.eq(Array(producers)[block.producer.endpoint]),
            block.cq_consumer.count.eq(Array(consumers)[block.cq_consumer.endpoint]),
            block.rung.strobe.eq(self.free("rung")),
            block.rung.endpoint.eq(self.free("rung_endpoint", bits)),
            block.heads[0].endpoint.eq(endpoint),
        ]
        for name, record in (("take", take), ("skip", skip), ("open", open_)):
            self.comb += [
                record.strobe.eq(self.free(name)),
                record.endpoint.eq(self.free(f"{name}_endpoint", bits)),
            ]
        self.comb += [
            open_.size.eq(self.free("size", 5)),
            open_.closed.eq(self.free("closed")),
            block.fast.eq(self.free("fast", ENDPOINTS)),
            block.again.eq(self.free("again")),
            offer.ready.eq(self.free("ready")),
            verdict.strobe.eq(self.free("verdict")),
            verdict.taken.eq(self.free("taken")),
            verdict.missed.eq(self.free("missed")),
            verdict.endpoint.eq(offer.endpoint),
        ]
        for n, free in enumerate(block.frees):
            self.comb += [
                free.strobe.eq(self.free(f"free{n}")),
                free.tag.eq(self.free(f"free{n}_tag", bits + SLOT_BITS)),
            ]

        def mine(record):
            return record.strobe & (record.endpoint == endpoint)
        def bit(mask, number):
            signal = Signal()
            self.comb += signal.eq(mask >> number)
            return signal

        # The fast path: an offer waits for its verdict from its `ready` on, which may be the same
        # cycle.
        awaited = Signal()
        self.sync += [
            If(offer.valid & offer.ready, awaited.eq(1)),
            If(verdict.strobe, awaited.eq(0)),
        ]
        outside = [bit(block.fast, record.endpoint) | ((offer.valid | awaited) & (offer.endpoint == record.endpoint))
            for record in (skip, open_)]
        self.assume("one_verdict", implies(verdict.strobe, awaited | (offer.valid & offer.ready)))
        self.assume("still_fast",  implies(verdict.strobe & verdict.taken, bit(block.fast, offer.endpoint)))
        # The program: one store a cycle.
        self.assume("one_store",   ~((take.strobe & (skip.strobe | open_.strobe)) | (skip.strobe & open_.strobe)))
        self.assume("take_shown",  implies(take.strobe, bit(block.pending, take.endpoint)))
        self.assume("skip_apart",  implies(skip.strobe, ~outside[0]))
        self.assume("open_apart",  implies(open_.strobe, ~outside[1]))
        self.assume("size",        open_.size <= SIZE)

        # The endpoint, its slot, its queue.
        head     = Signal(COUNT_BITS)
        consumer = Signal(COUNT_BITS)
        offered  = Signal()
        shown    = Signal()
        self.comb += [
            head.eq(block.heads[0].count),
            consumer.eq(Array(consumers)[endpoint]),
            offered.eq((offer.valid | awaited) & (offer.endpoint == endpoint)),
            shown.eq(bit(block.pending, endpoint)),
        ]
        queue  = Signal()
        used   = Signal()
        room   = Signal(SIZE + 1)
        owed   = Signal(SIZE + 2)   # completions that were not read
        taken  = Signal()
        read   = Signal(COUNT_BITS)
        where  = Signal(SLOT_BITS)
        freed  = Signal()
        before = self.before(consumer, COUNT_BITS)
        self.comb += [
            where.eq(Mux(offered, offer.slot, head)),
            taken.eq(mine(take) | (verdict.strobe & verdict.taken & offered)),
            read.eq(consumer - before),
            freed.eq((block.frees[0].strobe & (block.frees[0].tag == Cat(slot, endpoint)))
                | (block.frees[1].strobe & (block.frees[1].tag == Cat(slot, endpoint)))),
        ]
        self.sync += [
            If(freed, used.eq(0)),
            If(taken & (where == slot), used.eq(1)),
            owed.eq(owed - read + taken),
            If(mine(open_),
                queue.eq(~open_.closed),
                room.eq(1 << open_.size),
                owed.eq(0),
            ),
        ]
        self.assume("reads_owed", implies(queue, read <= owed))
        self.assume("reads_before", implies(mine(open_), read == 0))
        self.prove("slot_free",   implies(queue & (shown | offered) & (where == slot), ~used))
        self.prove("has_room",    implies(queue & (shown | offered), owed < room))
        self.prove("in_order",    implies(offered, queue & (offer.slot == head[:SLOT_BITS])))
        self.prove("not_both",    ~(shown & offered))

        # The registers about the endpoint agree with its state. Each change makes lookups void.
        queues   = block.queues
        looking, late, took, following, known, able, next_able, to_take, to_skip, to_open = (inner(block, name) for name in (
            "looking", "late", "took", "following", "known", "able", "next_able", "to_take", "to_skip", "to_open"))
        since, unread, bases, sizes = (inner(queues, name) for name in ("since", "unread", "bases", "sizes"))
        base, size = bases.get_port(async_read=True), sizes.get_port(async_read=True)
        self.specials += base, size
        word, credit, start = Signal(2**SLOT_BITS), Signal(2), Signal(COUNT_BITS)
        takes, skips, opens = bit(to_take, endpoint), bit(to_skip, endpoint), bit(to_open, endpoint)
        mine_looked, ahead, settled = Signal(), Signal(), Signal()
        self.comb += [
            base.adr.eq(endpoint),
            size.adr.eq(endpoint),
            word.eq(Array(block.slots.words)[endpoint]),
            credit.eq(Array(queues.credit)[endpoint]),
            start.eq(Mux(since.rebase & (since.endpoint == endpoint), since.end - since.count, base.dat_r)),
            mine_looked.eq(looking.valid & (looking.endpoint == endpoint)),
            ahead.eq(looking.ahead & looking.known),
            settled.eq(~takes & ~skips & ~opens),
        ]

        def wide(value, bits=COUNT_BITS + 1):
            signal = Signal(bits)
            self.comb += signal.eq(value)
            return signal
        after    = wide(head + 1, COUNT_BITS)
        expected = wide(head + takes - start - before, COUNT_BITS)
        counted  = wide(since.count - since.consumer, COUNT_BITS)

        self.lemma("offered",   inner(block, "offered") == (offer.valid | awaited))
        self.lemma("waits",     ~(offer.valid & awaited))
        self.lemma("queue",     queue == bit(queues.opened, endpoint))
        self.lemma("shown",     implies(bit(able, endpoint) | offered, settled))
        self.lemma("looks",     implies(mine_looked, (looking.take == takes) & (looking.skip == skips)
            & (looking.open == opens) & (looking.queue == queue)))
        self.lemma("ahead",     implies(looking.valid & looking.ahead, (offer.valid | awaited)
            & (looking.endpoint == offer.endpoint) & implies(looking.known, known)))
        self.lemma("head",      implies(mine_looked, looking.head == Mux(ahead, following, head)))
        self.lemma("known",     implies(known, offer.valid | awaited))
        self.lemma("following", implies(known & offered, following == after))
        self.lemma("next",      implies(next_able, known))

        # Slots.
        tag = Cat(slot, endpoint)
        setting = (took.strobe & (took.endpoint == endpoint) & (head[:SLOT_BITS] == slot)) | (late.strobe & (late.tag == tag))
        self.lemma("used",      implies(used, (word >> slot)[0] | setting))
        for n, free in enumerate(inner(block, "freed")):
            self.lemma(f"freed{n}", implies(used & free.strobe & (free.tag == tag), setting))
        self.lemma("took",      implies(took.strobe & (took.endpoint == endpoint), takes))
        self.lemma("late",      implies(late.strobe, ~(offer.valid | awaited)))
        # The slot of a taken offer waits for two others at most, and HEAD does not come back to it
        # meanwhile.
        late_endpoint = late.tag[SLOT_BITS:SLOT_BITS + bits]
        mine_late     = late.strobe & (late.tag[SLOT_BITS:] == endpoint)
        age           = Signal(2)
        self.sync += age.eq(Mux(late.strobe, age + 1, 0))
        self.lemma("fresh_take", implies(took.strobe, ~bit(able, took.endpoint)
            & ~(looking.valid & (looking.endpoint == took.endpoint))))
        self.lemma("late_age",  implies(late.strobe, (age != 3) & implies(age == 2, ~took.strobe)))
        late_looked = looking.valid & (looking.endpoint == late_endpoint)
        self.lemma("late_first", implies(late.strobe & (age == 0), ~late_looked
            & implies(took.strobe, took.endpoint != late_endpoint)))
        self.lemma("late_next", implies(late.strobe & (age == 1) & took.strobe, (took.endpoint == late_endpoint)
            & ~bit(able, ~late_endpoint)))
        self.lemma("late_move", implies(late.strobe & late_looked & (looking.take | looking.skip), ~took.strobe))
        self.lemma("late_head", implies(mine_late & (~takes | took.strobe & (took.endpoint == endpoint)),
            head[:SLOT_BITS] != late.tag[:SLOT_BITS]))
        self.lemma("seen",      implies(mine_looked & settled & (looking.head[:SLOT_BITS] == slot)
            & ~(looking.slots >> slot)[0], ~used))
        self.lemma("able",      implies(bit(able, endpoint) & queue & (head[:SLOT_BITS] == slot), ~used))
        self.lemma("second",    implies(next_able & offered & queue & (following[:SLOT_BITS] == slot), ~used))

        # Room.
        self.lemma("limit",     implies(queue, (room == wide(1 << size.dat_r, SIZE + 1)) & (size.dat_r <= SIZE)
            & (owed <= room)))
        self.lemma("opened",    implies(queue & opens, owed == 0))
        self.lemma("rebase",    implies(since.rebase & (since.endpoint == endpoint), ~mine_looked))
        self.lemma("consumer",  implies(looking.endpoint == endpoint, looking.consumer == before))
        self.lemma("owed",      implies(queue & ~opens, owed == expected))
        self.lemma("since",     implies(queue & since.judge & (since.endpoint == endpoint), settled & ~since.rebase
            & (since.count == wide(head - base.dat_r, COUNT_BITS)) & (counted >= owed)))
        self.lemma("unread",    implies(queue & unread.judge & (unread.endpoint == endpoint), settled
            & (unread.count >= owed) & (unread.last == wide(room - 1, SIZE))))
        self.lemma("credit",    implies(queue, wide(owed + credit) <= room))
        self.lemma("looked",    implies(queue & mine_looked, wide(owed + looking.credit) <= room))
        self.lemma("able_room", implies(queue & bit(able, endpoint), owed < room))
        self.lemma("next_room", implies(queue & next_able & offered, wide(owed + 1) < room))


PROPERTIES = [
    Property("commands-in-turn", "endpoint/turns", "no command is shown while its slot is in use, none without room for its completion",
        f"{ENDPOINTS} endpoints × {2**SLOT_BITS} slots, counts of {COUNT_BITS} bits", "Turns", k=1, mutants=[
            Mutant("the second command needs room for one", "dibber.endpoint.turns",
                "Mux(looking.ahead, looking.credit[1], looking.credit != 0)", "(looking.credit != 0)", depth=24),
            Mutant("a look that was overtaken counts", "dibber.endpoint.turns",
                "looking.valid.eq(~(void >> look)[0])", "looking.valid.eq(1)", depth=24),
            Mutant("nobody waits to set a slot's bit", "dibber.endpoint.turns",
                "If(~took.strobe, late.strobe.eq(0))", "late.strobe.eq(0)", depth=24),
            Mutant("a skip leaves the queue's base", "dibber.endpoint.room",
                "since.rebase.eq(look.strobe & moves)", "since.rebase.eq(look.strobe & look.opens)", depth=24),
            Mutant("offered although it has just left the fast path", "dibber.endpoint.turns",
                "judge & ready & (to_offer >> looking.endpoint)[0]", "judge & ready & looking.queue", depth=24),
    ]),
]
