"""Which command is offered next, and which ones the control program may take."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *
from migen.genlib.coding import PriorityEncoder

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.endpoint.room import COUNT_BITS, SLOT_BITS, QueueRoom, SlotsInUse, bits_of, cq_open_layout
from dibber.interface.description import C
from dibber.layouts import count_layout, offer_layout, slot_free_layout, verdict_layout

# Helpers ------------------------------------------------------------------------------------------

def command_layout():
    """In a cycle with `strobe`: an event of the next command of `endpoint`."""
    return [("strobe", 1), ("endpoint", log2_int(C.ENDPOINTS))]

# Command Turns ------------------------------------------------------------------------------------

class CommandTurns(LiteXModule):
    """Finds commands that can be taken: their slot is free, and there is room for their completion.

    The scanner looks at one endpoint a cycle. An endpoint with an event comes first, else the next
    one in turn. While a command is on offer, the scanner also looks at the command behind it. So
    that command can be offered at once when the first one is taken.

    An endpoint without a completion queue shows its next command in `pending`, even if the slot is
    in use. Its commands are never offered. The control program takes only commands that `pending`
    shows. After a change of `fast` or `again` it reads `pending` again before it takes one.

    Parameters
    ----------
    endpoints : how many, a power of two up to ENDPOINTS. No other endpoint is taken, skipped or
                opened

    Attributes
    ----------
    producer, cq_consumer : Record(count_layout), `endpoint` out, `count` in   doorbells
    rung    : Record(command_layout), in              `producer` of this endpoint changes in this
              cycle
    heads   : list of 2 Record(count_layout), in and out   HEAD: how many commands were taken
    held    : Signal, in                              the block is in reset: HEAD of endpoint
              `index` becomes 0, from the second cycle of the reset on
    index   : Signal, in
    take    : Record(command_layout), in              the control program takes the next command
    skip    : Record(command_layout), in              HEAD becomes PRODUCER; no completion is owed
    frees   : list of 2 Record(slot_free_layout), in
    open    : Record(cq_open_layout), in              the queue's count starts at `cq_consumer`
    fast    : Signal(endpoints), in                   a bit for each endpoint whose commands are
              offered before the control program sees them
    again   : Signal, in                              commands that were missed are offered again
    offer   : Endpoint(offer_layout), out             the next offer comes after its verdict
    verdict : Record(verdict_layout), in              of the accepted offer; `taken` acts as `take`
    pending : Signal(endpoints), out                  a bit for each endpoint whose next command is
              for the control program
    room    : Signal(endpoints), out                  a bit for each endpoint that has a completion
              queue with room for one more

    Cycles: 3 from `rung` to the offer; 2 from a verdict to the next offer, and 9 from offer to
    offer. `pending` falls one cycle after `take`, `skip` and `open`. It shows the next command 7
    cycles after them, 3 after `rung`, 4 after a missed offer, 5 after `frees`; each other event
    meanwhile costs one more. `heads` follow after 4, or 1 after a verdict. A completion that was
    read is seen within 16, or 32 if other events never end.
    """
    def __init__(self, endpoints=C.ENDPOINTS):
        self.producer    = Record(count_layout())
        self.cq_consumer = Record(count_layout())
        self.rung        = rung    = Record(command_layout())
        self.heads       = [Record(count_layout()) for _ in range(2)]
        self.held        = Signal()
        self.index       = Signal(log2_int(C.ENDPOINTS))
        self.take        = take    = Record(command_layout())
        self.skip        = skip    = Record(command_layout())
        self.frees       = [Record(slot_free_layout()) for _ in range(2)]
        self.open        = open_   = Record(cq_open_layout())
        self.fast        = fast    = Signal(endpoints)
        self.again       = Signal()
        self.offer       = offer   = stream.Endpoint(offer_layout())
        self.verdict     = verdict = Record(verdict_layout())
        self.pending     = pending = Signal(endpoints)
        self.room        = room    = Signal(endpoints)

        # # #

        def only(endpoint, strobe=1):
            return bits_of(endpoints, endpoint, strobe)
        def later_than(endpoint):
            return Cat(0, *[endpoint < n for n in range(1, endpoints)])

        self.slots  = slots  = SlotsInUse(endpoints)
        self.queues = queues = QueueRoom(endpoints)
        opened      = queues.opened

        # One read port for each reader. No reset reaches the memory.
        self.counts = counts = Memory(COUNT_BITS, C.ENDPOINTS, name="heads")
        write_head  = counts.get_port(write_capable=True)
        self.specials += counts, write_head
        def head_of(endpoint):
            port = counts.get_port(async_read=True)
            self.specials += port
            self.comb += port.adr.eq(endpoint)
            return port.dat_r
        self.comb += [look.count.eq(head_of(look.endpoint)) for look in self.heads]

        # State: work for each endpoint, and what is known of the next commands.
        urgent    = Signal(endpoints)  # an event: look at the endpoint soon
        to_take   = Signal(endpoints)  # HEAD must move by one
        to_skip   = Signal(endpoints)  # HEAD must become PRODUCER
        to_open   = Signal(endpoints)  # the queue must become empty
        able      = Signal(endpoints)  # the next command has its slot and its room
        missed    = Signal(endpoints)  # the offer was missed: the command is for the program
        to_offer  = Signal(endpoints)  # offer the next command when it is able
        offered   = Signal()           # a command is on offer, or waits for its verdict
        following = Signal(COUNT_BITS) # HEAD behind the offered command
        known     = Signal()           # `following` is valid
        next_able = Signal()           # as `able`, for the command at `following`
        fresh     = Signal()           # the offer began in this cycle

        # Events -----------------------------------------------------------------------------------

        void    = queues.void  # looks at this endpoint that are under way are dropped
        taken   = Signal()
        moving  = Signal()
        opens   = Signal()
        looking = Record([("valid", 1), ("endpoint", len(take.endpoint)), ("head", COUNT_BITS), ("producer", COUNT_BITS),
            ("consumer", COUNT_BITS), ("slots", C.SLOTS), ("take", 1), ("skip", 1), ("open", 1),
            ("queue", 1), ("credit", 2), ("ahead", 1), ("known", 1)])
        freed   = [Record(slot_free_layout()) for _ in self.frees]
        self.sync += [later.eq(free) for later, free in zip(freed, self.frees)]
        self.comb += [
            taken.eq(verdict.strobe & verdict.taken),
            to_offer.eq(fast & opened & ~missed),
            void.eq(only(take.endpoint, take.strobe) | only(skip.endpoint, skip.strobe) | only(open_.endpoint, open_.strobe)
                | only(offer.endpoint, verdict.strobe) | only(looking.endpoint, moving | opens)),
            queues.takes.eq(only(take.endpoint, take.strobe) | only(offer.endpoint, taken)),
            queues.open.eq(open_),
        ]

        # The slot of a command that was taken. The control program may free it in the next cycle,
        # so its slot goes first. The slot of a taken offer waits, and delays the next offer.
        took = Record(command_layout())
        late = Record(slot_free_layout())
        self.sync += [
            took.eq(take),
            If(~took.strobe, late.strobe.eq(0)),
            If(taken, late.raw_bits().eq(Cat(1, offer.slot[:SLOT_BITS], offer.endpoint))),
        ]
        self.comb += [
            slots.use.strobe.eq(took.strobe | late.strobe),
            slots.use.tag.eq(Mux(took.strobe,
                Cat(head_of(took.endpoint)[:SLOT_BITS], took.endpoint), late.tag)),
            *[gone.eq(free) for gone, free in zip(slots.frees, freed)],
        ]

        # Look -------------------------------------------------------------------------------------

        # Round robin among endpoints with events. So that all others are looked at too, one of them
        # joins every second cycle.
        self.first = first = PriorityEncoder(2*endpoints)
        calls = Signal(endpoints)
        share = Signal()
        turn  = Signal(max=endpoints)
        look  = Signal(len(take.endpoint))  # the endpoint to read
        again = Signal(endpoints)
        called = first.o[:len(turn)]
        self.comb += [
            calls.eq(urgent | only(rung.endpoint, rung.strobe)),
            first.i.eq(Cat(calls & later_than(look), calls)),
        ]
        self.sync += [
            share.eq(~share),
            look.eq(Mux(first.n, turn, called)),
            If(first.n | share, turn.eq(turn + 1)),
            urgent.eq((calls & ~only(called)) | only(turn, share & ~first.n) | again | void | queues.found
                | reduce(or_, [only(free.tag[SLOT_BITS:], free.strobe) for free in freed])),
        ]

        # Read; the outputs of the wide multiplexers are registered.
        ahead = Signal()
        self.comb += [
            ahead.eq(offered & (offer.endpoint == look)),
            self.producer.endpoint.eq(look),
            self.cq_consumer.endpoint.eq(look),
        ]
        self.sync += [
            looking.valid.eq(~(void >> look)[0]),
            looking.endpoint.eq(look),
            looking.head.eq(Mux(ahead & known, following, head_of(look))),
            looking.producer.eq(self.producer.count),
            looking.consumer.eq(self.cq_consumer.count),
            looking.slots.eq(Array(slots.words)[look]),
            looking.take.eq((to_take >> look)[0]),
            looking.skip.eq((to_skip >> look)[0]),
            looking.open.eq((to_open >> look)[0]),
            looking.queue.eq((opened >> look)[0]),
            looking.credit.eq(Array(queues.credit)[look]),
            looking.ahead.eq(ahead),
            looking.known.eq(known),
        ]

        # Judge, or move.
        moves = Signal()
        judge = Signal()
        ready = Signal()
        after = Signal(COUNT_BITS)
        self.comb += [
            moves.eq(looking.valid & (looking.take | looking.skip)),
            moving.eq(moves & ~taken),  # HEADs are written one at a time
            opens.eq(looking.valid & looking.open & ~looking.take & ~looking.skip),
            judge.eq(looking.valid & ~looking.take & ~looking.skip & ~looking.open),
            after.eq(looking.head + 1),
            ready.eq((looking.producer != looking.head) & (~looking.queue | (~(looking.slots >> looking.head[:SLOT_BITS])[0]
                & Mux(looking.ahead, looking.credit[1], looking.credit != 0)))),
            again.eq(only(looking.endpoint, moves | opens | (judge & looking.ahead & ~looking.known))
                | only(offer.endpoint, fresh)),
        ]

        # HEAD -------------------------------------------------------------------------------------

        value = Signal(COUNT_BITS)
        self.comb += [
            # 0 in reset
            value.eq(Mux(taken, following, Mux(looking.take, after, looking.producer))),
            write_head.we.eq(moving | (taken & known) | self.held),
            write_head.adr.eq(Mux(self.held, self.index, Mux(taken, offer.endpoint, looking.endpoint))),
            write_head.dat_w.eq(value),
            queues.look.strobe.eq((judge & ~(looking.ahead & looking.known)) | (moving & ~looking.take) | opens),
            queues.look.endpoint.eq(looking.endpoint),
            queues.look.head.eq(looking.head),
            queues.look.producer.eq(looking.producer),
            queues.look.consumer.eq(looking.consumer),
            queues.look.skips.eq(moving),
            queues.look.opens.eq(opens),
        ]
        self.sync += [
            to_take.eq((to_take & ~only(looking.endpoint, moving & looking.take))
                | only(take.endpoint, take.strobe) | only(offer.endpoint, taken & ~known)),
            to_skip.eq((to_skip & ~only(looking.endpoint, moving & ~looking.take)) | only(skip.endpoint, skip.strobe)),
            to_open.eq((to_open & ~only(looking.endpoint, opens) & ~only(open_.endpoint, open_.strobe))
                | only(open_.endpoint, open_.strobe & ~open_.closed)),
        ]

        # Next commands ----------------------------------------------------------------------------

        for n in range(endpoints):
            self.sync += [
                If(judge & ~looking.ahead & (looking.endpoint == n), able[n].eq(ready)),
                If(void[n], able[n].eq(0)),
                If(taken & known & (offer.endpoint == n), able[n].eq(next_able)),
                If(self.again, missed[n].eq(0)),
                If(verdict.strobe & verdict.missed & (offer.endpoint == n), missed[n].eq(1)),
                If((take.strobe & (take.endpoint == n)) | (skip.strobe & (skip.endpoint == n)), missed[n].eq(0)),
            ]
        self.sync += [
            If(judge & looking.ahead,
                If(looking.known,
                    next_able.eq(ready)
                ).Else(
                    following.eq(after),
                    known.eq(1)
                )
            ),
            If((void >> offer.endpoint)[0],
                known.eq(0),
                next_able.eq(0),
            ),
        ]

        # Offer ------------------------------------------------------------------------------------

        # Round robin. If no command is known to be able, the one that is being judged is offered at
        # once.
        self.pick  = pick = PriorityEncoder(2*endpoints)
        candidates = Signal(endpoints)
        idle       = Signal()
        direct     = Signal()
        begins     = Signal()
        chosen     = pick.o[:log2_int(endpoints)]
        self.comb += [
            candidates.eq(able & to_offer),
            pick.i.eq(Cat(candidates & later_than(offer.endpoint), candidates)),
            idle.eq(~offered & ~(late.strobe & took.strobe)),
            direct.eq(judge & ready & (to_offer >> looking.endpoint)[0]),
            begins.eq(idle & (~pick.n | direct)),
            pending.eq(able & ~to_offer & ~only(offer.endpoint, offered)),
            room.eq(opened & Cat(*[credit != 0 for credit in queues.credit])),
        ]
        self.sync += [
            fresh.eq(begins),
            If(offer.ready, offer.valid.eq(0)),
            If(verdict.strobe, offered.eq(0)),
            If(begins,
                offered.eq(1),
                offer.valid.eq(1),
                If(pick.n,
                    offer.endpoint.eq(looking.endpoint),
                    offer.slot.eq(looking.head[:SLOT_BITS]),
                ).Else(
                    offer.endpoint.eq(chosen),
                    offer.slot.eq(head_of(chosen)[:SLOT_BITS]),
                )
            ),
        ]
