# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The commands that need no control program: read, and checked as it would check them."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, COMMAND, FLAG, LANE, OPCODE, WALK
from dibber.layouts import digest_layout, fast_put_layout, offer_layout, slot_port, verdict_layout

LENGTH_BITS = C.FAST_LENGTH.bit_length()
assert C.FAST_LENGTH == 2**LENGTH_BITS - 1

def walk_dword(walk, name):
    """Number in the slot of the first 32-bit word of a walk's member."""
    return (COMMAND[walk].offset + WALK[name].offset)//4

# Product ------------------------------------------------------------------------------------------

class Product(LiteXModule):
    """The product of some numbers, or that it is too large for the length of a fast put.

    A factor of 0 may follow when it is too large already; but a product of 0 is no length of such a put either.

    Attributes
    ----------
    word   : Signal(32), in
    first  : Signal(), in     one cycle: begin with `word`
    times  : Signal(), in     one cycle: go on with `word`
    busy   : Signal(), out
    result : Signal(LENGTH_BITS), out
    over   : Signal(), out    it did not fit

    Cycles: 1 for the first number, 1 and as many as it has bits for others.
    """
    def __init__(self):
        self.word   = word   = Signal(32)
        self.first  = Signal()
        self.times  = Signal()
        self.busy   = Signal()
        self.result = result = Signal(LENGTH_BITS)
        self.over   = over   = Signal()

        # # #

        # A bit of the number a cycle, the lowest first.
        number = Signal(32)
        shifts = Signal(LENGTH_BITS + 1)  # the former product; its highest bit says that more was shifted out
        total  = Signal(LENGTH_BITS + 1)
        self.comb += [
            self.busy.eq(number != 0),
            total.eq(result + shifts[:-1]),
        ]
        self.sync += [
            If(self.busy,
                number.eq(number >> 1),
                shifts.eq(Cat(0, shifts[:-2], shifts[-2] | shifts[-1])),
                If(number[0],
                    result.eq(total),
                    If(total[-1] | shifts[-1], over.eq(1)),
                )
            ),
            If(self.first,
                result.eq(word),
                over.eq(word[LENGTH_BITS:] != 0),
            ),
            If(self.times,
                number.eq(word),
                shifts.eq(result),
                result.eq(0),
            ),
        ]

# Fast Commands ------------------------------------------------------------------------------------

class FastCommands(LiteXModule):
    """Reads an offered slot, and gives on what is a put without a fault. What it read of an inline put without a fault
    that missed all the same is not lost: the control program finds it in `digest`.

    The checks are those of firmware/express.c and put.c. What fails one is `missed`, and so are commands that
    ask for more than hardware does: other opcodes, flags FENCE and CHECKSUM, puts of no bytes or of more than FAST_LENGTH. Each
    word is read once, for the slot's owner may write it again at any time.

    Parameters
    ----------
    data_width : bits of a line

    Attributes
    ----------
    offer   : Endpoint(offer_layout), in     taken with the verdict
    verdict : Record(verdict_layout), out
    slot    : slot_port(data_width), master
    enable  : Record, in                     opcodes that may be taken: `put_inline`, `put`
    fast    : Signal(8), in                  a bit for each endpoint whose commands may be taken
    node_id : Signal(16), in
    put     : Endpoint(fast_put_layout), out
    digest  : Record(digest_layout), out     `strobe` in the cycle of the verdict
    taken, missed : Signal(), in             what became of it, in the cycle of its `ready`; neither: it must wait

    Cycles, with a slot port that grants at once: 5 from the offer to an inline put (64 bits) or 4 (128 bits), 1 from its answer
    to the verdict. Other puts take 4 more for each block and each count of their walks, and as many as the counts have bits.
    When others read slots, too, each of these words takes 1 more, and all lines before them 1.
    """
    def __init__(self, data_width):
        self.offer   = offer   = stream.Endpoint(offer_layout())
        self.verdict = verdict = Record(verdict_layout())
        self.slot    = slot    = slot_port(data_width)
        self.enable  = enable  = Record([("put_inline", 1), ("put", 1)])
        self.fast    = fast    = Signal(C.ENDPOINTS)
        self.node_id = node_id = Signal(16)
        self.put     = put     = stream.Endpoint(fast_put_layout())
        self.digest  = digest  = Record(digest_layout())
        self.taken   = Signal()
        self.missed  = Signal()

        # # #

        width      = data_width//8
        lines_bits = log2_int(C.SLOT_BYTES//width)
        lane_bits  = log2_int(data_width//32)

        # Lines ------------------------------------------------------------------------------------

        # Those that every put has, from the first on: they are asked for one after the other. Then one at a time.
        head   = sorted({(COMMAND[name].offset)//width for name in ("opcode", "node", "length", "cookie")}
            | {walk_dword("target", "offset")*4//width})
        dword  = Signal(max=C.SLOT_BYTES//4)   # of a walk
        ask    = Signal()
        walks  = Signal()                      # the head is here
        asked  = Signal(max=len(head) + 1)
        coming = [Record([("valid", 1), ("line", len(asked))]) for _ in range(2)]
        came   = coming[1]
        line   = Signal(lines_bits)
        self.comb += [
            Case(asked, {n: line.eq(number) for n, number in enumerate(head)}),
            If(walks, line.eq(dword[lane_bits:])),
            slot.valid.eq(ask),
            slot.adr.eq(Cat(line, offer.slot, offer.endpoint)),
        ]
        self.sync += [
            coming[0].valid.eq(slot.valid & slot.ready),
            coming[0].line.eq(asked),
            came.eq(coming[0]),
            If(slot.valid & slot.ready & ~walks, asked.eq(asked + 1)),
            If(verdict.strobe, asked.eq(0)),
        ]

        # Head -------------------------------------------------------------------------------------

        def of(struct, offset=0, bits=None):
            """Bits of the line of a member, in the cycle in which it is there."""
            start = 8*(struct.offset + offset)
            return slot.dat_r[start % data_width:][:bits or 8*struct.size]

        opcode = of(COMMAND["opcode"])
        flags  = of(COMMAND["flags"])
        levels = of(COMMAND["levels"])
        node   = of(COMMAND["node"], bits=32)       # and reserved0, which makes it too large
        length = of(COMMAND["length"])
        low    = of(COMMAND["target"], WALK["offset"].offset, 32)
        high   = of(COMMAND["target"], WALK["offset"].offset + 4, 32)
        plain  = Signal()   # nothing that a fast put cannot have
        known  = FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
        self.comb += plain.eq(((flags & (0xff ^ known)) == 0)
            & ((flags & (FLAG.NOTICE | FLAG.INTERRUPT)) != FLAG.INTERRUPT)
            & (node[log2_int(C.NODES):] == 0) & (node[:16] != node_id))

        inline  = Signal()      # a plain inline put, its length aside
        bulk    = Signal()      # a plain put
        short   = Signal()      # a length for the one
        fits    = Signal()      # and for the other
        source_levels = Signal(4)
        target_levels = Signal(4)
        last    = Signal(33)    # the first byte behind a contiguous target, low word and carry
        at_end  = Signal()      # its carry leaves the 48 bits of an offset
        near    = Signal()      # the offset is one of 48 bits
        self.sync += [
            If(came.valid & ~walks,
                Case(came.line, {
                    head.index(COMMAND["opcode"].offset//width): [
                        inline.eq(plain & (opcode == OPCODE.PUT_INLINE) & (levels == 0)),
                        bulk.eq(plain & (opcode == OPCODE.PUT) & (levels[2:4] == 0) & (levels[6:8] == 0) & enable.put),
                        source_levels.eq(levels[:4]),
                        target_levels.eq(levels[4:]),
                        put.node.eq(node),
                        put.solicit.eq((flags & FLAG.SOLICIT) != 0),
                    ]}),
                Case(came.line, {
                    head.index(COMMAND["length"].offset//width): [
                        short.eq(length <= C.INLINE_BYTES),
                        fits.eq((length != 0) & (length[LENGTH_BITS:] == 0)),
                        put.length.eq(length),
                        put.cookie.eq(of(COMMAND["cookie"])),
                    ]}),
                last.eq(low + put.length),
                at_end.eq(high[:16] == 0xffff),
                near.eq(high[16:] == 0),
            )
        ]
        self.comb += [
            put.lane.eq(Mux(bulk, LANE.BULK, LANE.EXPRESS)),
            put.endpoint.eq(offer.endpoint),
            put.slot.eq(offer.slot),
        ]

        # Walks ------------------------------------------------------------------------------------

        self.product = product = Product()
        source  = Signal()    # the second walk
        block   = Signal()    # its block is wanted, not a count
        level   = Signal(2)
        leaves  = Signal()
        self.comb += [
            Case(dword[:lane_bits], {n: product.word.eq(slot.dat_r[32*n:32*n + 32]) for n in range(data_width//32)}),
            If(source,
                dword.eq(Mux(block, walk_dword("source", "block"), walk_dword("source", "count") + level))
            ).Else(
                dword.eq(Mux(block, walk_dword("target", "block"), walk_dword("target", "count") + level))
            )
        ]
        # Without levels the sender adds a packet's place to the offset, which must not begin again at 0.
        self.sync += leaves.eq((target_levels == 0) & at_end & last[32] & (last[:32] != 0))

        # Flow -------------------------------------------------------------------------------------

        verdict_taken  = Signal()
        verdict_missed = Signal()
        self.fsm = fsm = FSM(reset_state="HEAD")
        fsm.act("HEAD",
            ask.eq(offer.valid & (asked != len(head))),
            NextValue(verdict_taken, 0),
            NextValue(verdict_missed, 1),
            NextValue(source, 0),
            NextValue(block, 1),
            NextValue(level, 0),
            If(came.valid & (came.line == len(head) - 1),
                NextState("VERDICT"),
                If((high[16:] == 0) & (fast >> offer.endpoint)[0],
                    If(inline & short & enable.put_inline, NextState("PUT")),
                    If(bulk & fits, NextState("ASK")),
                )
            )
        )
        fsm.act("ASK",
            walks.eq(1),
            ask.eq(1),
            If(slot.ready, NextState("WORD"))
        )
        fsm.act("WORD",
            walks.eq(1),
            product.first.eq(came.valid & block),
            product.times.eq(came.valid & ~block),
            If(came.valid,
                NextValue(block, 0),
                If(~block, NextValue(level, level + 1)),
                NextState("PRODUCT")
            )
        )
        fsm.act("PRODUCT",
            If(~product.busy,
                If(level != Mux(source, source_levels, target_levels),
                    NextState("ASK")
                ).Elif(product.over | (product.result != put.length[:LENGTH_BITS]) | leaves,
                    NextState("VERDICT")
                ).Elif(source,
                    NextState("PUT")
                ).Else(
                    NextValue(source, 1),
                    NextValue(block, 1),
                    NextValue(level, 0),
                    NextState("ASK")
                )
            )
        )
        fsm.act("PUT",
            put.valid.eq(1),
            NextValue(verdict_taken, self.taken),
            NextValue(verdict_missed, self.missed),
            If(put.ready, NextState("VERDICT"))
        )
        fsm.act("VERDICT",
            verdict.strobe.eq(1),
            offer.ready.eq(1),
            NextState("HEAD")
        )
        self.comb += [
            verdict.taken.eq(verdict_taken),
            verdict.missed.eq(verdict_missed),
            verdict.endpoint.eq(offer.endpoint),
            digest.strobe.eq(verdict.strobe & verdict.missed & inline & short & near),
            *[getattr(digest, name).eq(getattr(put, name))
                for name in ["endpoint", "slot", "node", "solicit", "length", "cookie"]],
        ]
