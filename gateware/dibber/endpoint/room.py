"""Room for a command: its slot, and the place of its completion."""

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
    """A completion queue of 2^`size` entries is opened, or it is `closed`, in a cycle with
    `strobe`.
    """
    return [("strobe", 1), ("endpoint", log2_int(C.ENDPOINTS)), ("size", 5), ("closed", 1)]

def bits_of(endpoints, endpoint, strobe=1):
    """A bit for each endpoint: that of `endpoint`, with `strobe`."""
    return Cat(*[strobe & (endpoint == n) for n in range(endpoints)])

def if_present(endpoints, number, strobe):
    """`strobe`, if a card of so many endpoints, a power of two, has that of a number below
    ENDPOINTS.
    """
    return strobe & (number[log2_int(endpoints):log2_int(C.ENDPOINTS)] == 0) if endpoints < C.ENDPOINTS else strobe

# Slots In Use -------------------------------------------------------------------------------------

class SlotsInUse(LiteXModule):
    """A bit for each slot. They are registers, so that one is taken and two are freed in any cycle.

    Attributes
    ----------
    use   : Record(slot_free_layout), in            from the next cycle on it is in use; goes before
            `frees`
    frees : list of 2 Record(slot_free_layout), in  it is not
    words : list of Signal(SLOTS), out              of each endpoint
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
    """How many commands each completion queue has room for.

    HEAD and CQ_CONSUMER count from different starts; `base` is the difference. A queue has HEAD -
    base - CQ_CONSUMER completions that were not read yet, those that are only owed included. A
    consumer that counts backwards, or ahead of what there is, makes this too large: such a queue is
    full.

    Attributes
    ----------
    open   : Record(cq_open_layout), in
    look   : Record, in        an endpoint, its HEAD, PRODUCER and CQ_CONSUMER: to count what is
             there; with `skips` its
                               HEAD becomes PRODUCER without commands being taken, with `opens` its
                               queue is empty
    void   : Signal, in        a bit for each endpoint: the look at it that is under way counts no
             more
    takes  : Signal, in        a bit for each endpoint: a command is taken; `void` too
    opened : Signal, out       a bit for each endpoint: it has a queue
    credit : list of Signal(2), out  commands that there is room for, at least; 2 are two or more
    found  : Signal, out       a bit for each endpoint, for one cycle: there is credit again

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

        # What was not reset with `opened` is written before it is read.
        bases, sizes = Memory(COUNT_BITS, endpoints, name="queue_base"), Memory(5, endpoints, name="queue_size")
        base,  size  = bases.get_port(async_read=True), sizes.get_port(async_read=True)
        rebase, open_size = bases.get_port(write_capable=True), sizes.get_port(write_capable=True)
        self.specials += bases, sizes, base, size, rebase, open_size
        self.comb += [
            open_size.adr.eq(open_.endpoint),
            open_size.dat_w.eq(open_.size),
            open_size.we.eq(open_.strobe),
        ]

        # Commands since the base; or what to subtract from a count to get a new base.
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

        # Those not read yet, and the last place as a number.
        unread = Record([("judge", 1), ("endpoint", number), ("count", COUNT_BITS), ("last", log2_int(C.QUEUE_MAX_ENTRIES))])
        self.comb += size.adr.eq(since.endpoint)
        self.sync += [
            unread.judge.eq(since.judge & ~(void >> since.endpoint)[0]),
            unread.endpoint.eq(since.endpoint),
            unread.count.eq(since.count - since.consumer),
            unread.last.eq(Cat(*[size.dat_r > n for n in range(len(unread.last))])),
        ]

        # Room.
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
