"""Which source may fill a channel's receive FIFO next: two ages of sources that were refused."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.common.one_hot import lowest_one, number_of
from dibber.fabric.ring.words import ADDRESS_BITS, BUSY_A, BUSY_B, ORDER, STATUS_BITS

# Grants whose packets may be on their way at once.
GRANTS = 3

# The source that comes first moves by so many addresses with each turn, because those that are
# served last may miss the next turn.
STEP = 5

# Cycles after which a set is cleared if none of its grants was used: its sources are gone.
EXPIRY_CYCLES = 65536

class RingReservation(LiteXModule):
    """Accept a packet, or refuse it and reserve room for its source's retry.

    A source that was refused is in one of two sets, the older or the younger one. Sources of the
    older set get *grants*, in the order of their addresses from a start that moves, while there is
    room for one more largest packet than there are grants. When the older set is empty, the younger
    one becomes the older one. So a source waits for at most two packets of each other source.

    Parameters
    ----------
    packet_words : the largest packet
    depth        : of the receive FIFO, in words
    nodes        : most nodes of a ring
    expiry       : cycles, as EXPIRY_CYCLES

    Attributes
    ----------
    level   : Signal, in    words in the receive FIFO
    ask     : Signal(), in  a packet for this channel begins
    source  : Signal(ADDRESS_BITS), in   with `ask`
    head    : Signal(), in  with `ask`: it is the first packet that its source wants accepted
    taking  : Signal(), in  a packet for this channel is being taken or refused
    clear   : Signal(), in  forget everything: the ring is not UP
    accept  : Signal(), out   in the cycle of `ask`
    status  : Signal(STATUS_BITS), out   in the cycle of `ask`: of the echo, if it is not accepted
    grant   : Record(valid, ready, source), out   a grant to send
    waiting : Signal(), out   a source has a reservation
    expired : Signal(), out   pulse

    Cycles: 0 from `ask` to `accept`; 2 from a change of `level` to `grant`.
    """
    def __init__(self, packet_words, depth, nodes=16, expiry=EXPIRY_CYCLES):
        assert depth >= packet_words + 4
        self.level   = Signal(max=depth + 3)
        self.ask     = Signal()
        self.source  = Signal(ADDRESS_BITS)
        self.head    = Signal()
        self.taking  = Signal()
        self.clear   = Signal()
        self.accept  = Signal()
        self.status  = Signal(STATUS_BITS)
        self.grant   = grant = Record([("valid", 1), ("ready", 1), ("source", ADDRESS_BITS)])
        self.waiting = Signal()
        self.expired = Signal()

        # # #

        older    = Signal(nodes)
        younger  = Signal(nodes)
        granted  = Signal(nodes)  # part of `older`
        age      = Signal()       # the older set has age B
        grants   = Signal(max=GRANTS + 1)  # bits in `granted`
        # Room for so many largest packets; a margin for words on their way into the FIFO.
        rooms    = Signal(GRANTS + 1)
        fits     = Signal()  # a packet without a grant would leave room for all that are granted
        one_hot  = Signal(nodes)
        in_older, in_younger, has_grant = Signal(), Signal(), Signal()
        self.comb += [
            one_hot.eq(1 << self.source),
            in_older.eq((older & one_hot) != 0),
            in_younger.eq((younger & one_hot) != 0),
            has_grant.eq((granted & one_hot) != 0),
            *[rooms[n].eq(self.level <= depth - 4 - packet_words*(n + 1) if
                depth - 4 >= packet_words*(n + 1) else 0) for n in range(GRANTS + 1)],
            fits.eq(reduce(or_, [(grants == n) & rooms[n] for n in range(GRANTS + 1)])),
            self.waiting.eq((older | younger) != 0),
        ]

        # Decision ---------------------------------------------------------------------------------
        reserved = Signal()
        blocked  = Signal()  # an earlier packet of this source awaits its retry
        self.comb += [
            reserved.eq(in_older | in_younger),
            blocked.eq(reserved & ~self.head),
            self.accept.eq(~blocked & (has_grant | (fits & (in_older | ~self.waiting)))),
            If(blocked,
                self.status.eq(ORDER)
            ).Elif((in_older | ~self.waiting) ^ age,
                self.status.eq(BUSY_A)
            ).Else(
                self.status.eq(BUSY_B)
            ),
        ]

        # Grants -----------------------------------------------------------------------------------
        # While a packet is being taken, its room is not in `level` yet. One that is refused must
        # have its echo sent before its grant.
        start   = Signal(ADDRESS_BITS)  # the source that comes first in this turn
        above   = Signal(nodes)         # those that want one, from that source upwards
        wants   = Signal(nodes)
        chosen  = Signal(nodes)
        number  = Signal(ADDRESS_BITS)
        gives   = Signal()
        quiet   = Signal()
        self.comb += [
            wants.eq(older & ~granted),
            above.eq(Cat(*[wants[n] & (start <= n) for n in range(nodes)])),
            chosen.eq(Mux(above != 0, lowest_one(above), lowest_one(wants))),
            number.eq(number_of(chosen)),
            quiet.eq(~self.ask & ~self.taking),
            gives.eq(quiet & (wants != 0) & fits & (grants != GRANTS) & ~grant.valid),
        ]
        self.sync += [
            If(grant.ready, grant.valid.eq(0)),
            If(gives,
                grant.valid.eq(1),
                grant.source.eq(number),
                granted.eq(granted | chosen),
                grants.eq(grants + 1),
            ),
        ]

        # Sets -------------------------------------------------------------------------------------
        timer = Signal(max=expiry)
        self.comb += self.expired.eq((timer == expiry - 1) & quiet & ~gives)
        self.sync += [
            If(timer != expiry - 1, timer.eq(timer + 1)),
            If((granted == 0) | gives | (self.ask & self.accept) | self.expired, timer.eq(0)),
            If(self.ask,
                If(self.accept,
                    older.eq(older & ~one_hot),
                    younger.eq(younger & ~one_hot),
                    granted.eq(granted & ~one_hot),
                    grants.eq(grants - has_grant),
                ).Elif(~reserved,
                    If(self.waiting,
                        younger.eq(younger | one_hot)
                    ).Else(
                        older.eq(one_hot)
                    ),
                ),
            ).Elif(self.expired,
                older.eq(0),
                granted.eq(0),
                grants.eq(0),
            ).Elif(older == 0,
                older.eq(younger),
                younger.eq(0),
                If(younger != 0,
                    age.eq(~age),
                    start.eq(start + STEP)
                ),
            ),
            If(self.clear,
                older.eq(0),
                younger.eq(0),
                granted.eq(0),
                grants.eq(0),
                grant.valid.eq(0),
            ),
        ]
