"""What a command needs before it is taken: a free slot, and room for its completion."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.layouts import slot_free_layout

COUNT_BITS = 32  # of the doorbells' counts
SLOT_BITS  = log2_int(C.SLOTS)

# Helpers ------------------------------------------------------------------------------------------

def cq_open_layout():
    """In a cycle with `strobe`: a completion queue of 2**`size` entries is opened, or `closed`."""
    return [("strobe", 1), ("endpoint", log2_int(C.ENDPOINTS)), ("size", 5), ("closed", 1)]

def bits_of(endpoints, endpoint, strobe=1):
    """One-hot, a bit for each endpoint: `endpoint`, in a cycle with `strobe`."""
    return Cat(*[strobe & (endpoint == n) for n in range(endpoints)])

def if_present(endpoints, number, strobe):
    """`strobe`, if a card with `endpoints` endpoints, a power of two, has endpoint `number`."""
    return strobe & (number[log2_int(endpoints):log2_int(C.ENDPOINTS)] == 0) if endpoints < C.ENDPOINTS else strobe

# Slots In Use -------------------------------------------------------------------------------------

class SlotsInUse(LiteXModule):
    """A bit for each slot that is in use. The bits are registers, so that one slot can be taken and
    two can be freed in one cycle.

    Attributes
    ----------
    use   : Record(slot_free_layout), in            the slot is in use from the next cycle on; wins
            over `frees`
    frees : list of 2 Record(slot_free_layout), in  the slot is free from the next cycle on
    words : list of Signal(SLOTS), out              one word for each endpoint
    """
    def __init__(self, endpoints):
        self.use   = use = Record(slot_free_layout())
        self.frees = [Record(slot_free_layout()) for _ in range(2)]
        self.words = [Signal(C.SLOTS, name=f"word{n}") for n in range(endpoints)]

        # # #

        def slots(event, n):
            slot = bits_of(C.SLOTS, event.tag[:SLOT_BITS])
            return slot & Replicate(event.strobe & (event.tag[SLOT_BITS:] == n), C.SLOTS)
        for n, word in enumerate(self.words):
            freed = reduce(or_, [slots(free, n) for free in self.frees])
            self.sync += word.eq((word & ~freed) | slots(use, n))

# Queue Room ---------------------------------------------------------------------------------------

class QueueRoom(LiteXModule):
    """How many more commands each completion queue has room for.

    HEAD and CQ_CONSUMER count from different starts; `base` is the difference. HEAD - base -
    CQ_CONSUMER completions are written or owed, and not read yet. An invalid consumer count makes
    this number too large, and so is treated as a full queue.

    Attributes
    ----------
    open   : Record(cq_open_layout), in
    look   : Record, in        count the unread completions of `endpoint`, from its HEAD, PRODUCER
             and CQ_CONSUMER. With `skips` HEAD becomes PRODUCER, and no command was taken. With
             `opens` the queue becomes empty
    void   : Signal, in        a bit for each endpoint: drop the look at it that is under way
    takes  : Signal, in        a bit for each endpoint: a command is taken; it comes with `void`
    opened : Signal, out       a bit for each endpoint: it has a queue
    credit : list of Signal(2), out  how many commands there is room for; 2 means two or more
    found  : Signal, out       a bit for each endpoint, for one cycle: its credit is not 0 any more

    Cycles: 3 from `look` to `credit`.
    """
    def __init__(self, endpoints):
        number      = log2_int(C.ENDPOINTS)
        self.open   = open_ = Record(cq_open_layout())
        self.look   = look  = Record([("strobe", 1), ("endpoint", number), ("head", COUNT_BITS), ("producer", COUNT_BITS),
            ("consumer", COUNT_BITS), ("skips", 1), ("opens", 1)])
        self.void   = void   = Signal(endpoints)
        self.takes  = takes  = Signal(endpoints)
        self.opened = opened = Signal(endpoints)
        self.credit = credit = [Signal(2, name=f"credit{n}") for n in range(endpoints)]
        self.found  = found  = Signal(endpoints)

        # # #

        # No reset reaches these memories: an entry is written before `opened` makes it count.
        bases, sizes = Memory(COUNT_BITS, endpoints, name="queue_base"), Memory(5, endpoints, name="queue_size")
        base,  size  = bases.get_port(async_read=True), sizes.get_port(async_read=True)
        rebase, open_size = bases.get_port(write_capable=True), sizes.get_port(write_capable=True)
        self.specials += bases, sizes, base, size, rebase, open_size
        self.comb += [
            open_size.adr.eq(open_.endpoint),
            open_size.dat_w.eq(open_.size),
            open_size.we.eq(open_.strobe),
        ]

        # First stage: commands since the base; or the count to subtract for a new base.
        moves = look.skips | look.opens
        since = Record([("judge", 1), ("rebase", 1), ("endpoint", number), ("count", COUNT_BITS), ("end", COUNT_BITS),
            ("consumer", COUNT_BITS)])
        self.comb += base.adr.eq(look.endpoint)
        self.sync += [
            since.judge.eq(look.strobe & ~moves & ~(void >> look.endpoint)[0]),
            since.rebase.eq(look.strobe & moves),
            since.endpoint.eq(look.endpoint),
            since.count.eq(look.head - base.dat_r),
            since.end.eq(look.producer),
            since.consumer.eq(look.consumer),
            If(look.opens,
                since.count.eq(look.consumer),
                since.end.eq(look.head),
            ),
        ]
        self.comb += [
            rebase.adr.eq(since.endpoint),
            rebase.dat_w.eq(since.end - since.count),
            rebase.we.eq(since.rebase),
        ]

        # Second stage: unread completions, and the index of the queue's last entry.
        unread = Record([("judge", 1), ("endpoint", number), ("count", COUNT_BITS), ("last", log2_int(C.QUEUE_MAX_ENTRIES))])
        self.comb += size.adr.eq(since.endpoint)
        self.sync += [
            unread.judge.eq(since.judge & ~(void >> since.endpoint)[0]),
            unread.endpoint.eq(since.endpoint),
            unread.count.eq(since.count - since.consumer),
            unread.last.eq(Cat(*[size.dat_r > n for n in range(len(unread.last))])),
        ]

        # Third stage: room.
        room, more = Signal(), Signal()
        self.comb += [
            room.eq((unread.count & ~unread.last) == 0),
            more.eq(unread.count != unread.last),
        ]
        for n in range(endpoints):
            judged = Signal()
            self.comb += [
                judged.eq(unread.judge & (unread.endpoint == n) & ~void[n]),
                found[n].eq(judged & room & (credit[n] == 0)),
            ]
            self.sync += [
                If(judged, credit[n].eq(Mux(room, Cat(~more, more), 0))),
                If(takes[n] & (credit[n] != 0), credit[n].eq(credit[n] - 1)),
                If(open_.strobe & (open_.endpoint == n),
                    opened[n].eq(~open_.closed),
                    credit[n].eq(0),
                ),
            ]
