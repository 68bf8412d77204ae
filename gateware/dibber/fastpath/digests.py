"""Digests of inline puts: the control program reads one word for such a put, and writes two."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.coding import PriorityEncoder

from litex.gen import *

from dibber.interface.description import C
from dibber.layouts import digest_layout

# Put Digests --------------------------------------------------------------------------------------

class PutDigests(LiteXModule):
    """Keeps what the fast path read of inline puts that are for the control program.

    There is at most one digest for each endpoint: that of its next command. The cookie of a command
    is kept by its slot. One digest that is able to start is shown, and endpoints take turns. It is
    shown until its endpoint is not able any more, or until `skip`.

    Parameters
    ----------
    endpoints : how many, a power of two

    Attributes
    ----------
    digest : Record(digest_layout), in
    able   : Signal(endpoints), in     the next command may be taken; its digest may be shown
    gone   : Signal(endpoints), in     the next command is another one now, or there is none
    known  : Signal(endpoints), out    there is a digest of the next command
    skip   : Signal(), in              show the next digest, if there is another one
    valid  : Signal(), out             `shown` is a digest
    shown  : Record, out
    ask    : Signal, in                an endpoint
    found  : Record, out               digest of endpoint `ask`, in the same cycle, able or not
    tag    : Signal, in                endpoint * SLOTS + slot
    cookie : Signal(32), out           cookie of the command `tag`, a cycle later
    start, end : Record, in            `strobe` for one cycle: an inline put of an endpoint starts,
                 ends
    busy   : Signal(endpoints), out    a bit for each endpoint that has such puts under way

    Cycles: 1 from `digest` and `able` to `valid` if it is the endpoint's turn, else 2.
    """
    def __init__(self, endpoints=C.ENDPOINTS):
        number      = log2_int(endpoints)
        layout      = [(name, bits) for name, bits in digest_layout() if name not in ("strobe", "endpoint", "cookie")]
        self.digest = digest = Record(digest_layout())
        self.able   = able   = Signal(endpoints)
        self.gone   = gone   = Signal(endpoints)
        self.known  = known  = Signal(endpoints)
        self.skip   = Signal()
        self.valid  = valid  = Signal()
        self.shown  = shown  = Record(layout + [("endpoint", number)])
        self.ask    = ask    = Signal(number)
        self.found  = found  = Record(layout)
        self.tag    = tag    = Signal(log2_int(endpoints*C.SLOTS))
        self.cookie = cookie = Signal(32)
        self.start  = start  = Record([("strobe", 1), ("endpoint", number)])
        self.end    = end    = Record([("strobe", 1), ("endpoint", number)])
        self.busy   = busy   = Signal(endpoints)

        # # #

        # Digests ----------------------------------------------------------------------------------

        words   = Memory(len(found), endpoints, name="put_digest")
        cookies = Memory(32, endpoints*C.SLOTS, name="put_cookie")
        enter, show, give = words.get_port(write_capable=True), words.get_port(async_read=True), words.get_port(async_read=True)
        keep, recall      = cookies.get_port(write_capable=True), cookies.get_port(mode=READ_FIRST)
        self.specials += words, cookies, enter, show, give, keep, recall
        self.comb += [
            enter.we.eq(digest.strobe),
            enter.adr.eq(digest.endpoint),
            enter.dat_w.eq(Cat(*[getattr(digest, name) for name, _ in layout])),
            keep.we.eq(digest.strobe),
            keep.adr.eq(Cat(digest.slot, digest.endpoint)),
            keep.dat_w.eq(digest.cookie),
            recall.adr.eq(tag),
            cookie.eq(recall.dat_r),
            give.adr.eq(ask),
            found.raw_bits().eq(give.dat_r),
        ]

        # Turns ------------------------------------------------------------------------------------

        # Round robin, from the digest that was shown last.
        ready     = Signal(endpoints)
        turn      = Signal(number)
        self.next = following = PriorityEncoder(2*endpoints)
        self.comb += [
            ready.eq(known & able),
            following.i.eq(Cat(ready & Cat(0, *[turn < n for n in range(1, endpoints)]), ready)),
            valid.eq((ready >> turn)[0]),
            show.adr.eq(turn),
            Cat(*[getattr(shown, name) for name, _ in layout]).eq(show.dat_r),
            shown.endpoint.eq(turn),
        ]
        self.sync += [
            known.eq((known & ~gone) | (digest.strobe << digest.endpoint)),
            If((~valid | self.skip) & ~following.n, turn.eq(following.o[:number])),
        ]

        # Puts Under Way ---------------------------------------------------------------------------

        for n in range(endpoints):
            count = Signal(max=C.SLOTS + 1)
            self.comb += busy[n].eq(count != 0)
            self.sync += count.eq(count + (start.strobe & (start.endpoint == n)) - (end.strobe & (end.endpoint == n)))
