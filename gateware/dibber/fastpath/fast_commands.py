"""The commands that need no control program: read, and checked as it would check them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.expected import TAG
from dibber.deposit.fetch import flat_source_lines
from dibber.fastpath.asks import TAGS
from dibber.interface.description import C, COMMAND, FAST_KIND, FLAG, LANE, OPCODE, WALK
from dibber.layouts import digest_layout, expect_layout, fast_put_layout, glance_layout, offer_layout, request_layout, slot_port, verdict_layout

LENGTH_BITS = C.FAST_LENGTH.bit_length()
assert C.FAST_LENGTH == 2**LENGTH_BITS - 1

def walk_dword(walk, name):
    """Number in the slot of the first 32-bit word of a walk's member."""
    return (COMMAND[walk].offset + WALK[name].offset)//4

# Product ------------------------------------------------------------------------------------------

class Product(LiteXModule):
    """The product of some numbers, or that it is too large for the length of a fast put.

    A factor of 0 may follow when it is too large already; but a product of 0 is no length of such a
    put either.

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
        # the former product; its highest bit says that more was shifted out
        shifts = Signal(LENGTH_BITS + 1)
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
    """Reads an offered slot, and gives on what is a put, a get or an atomic without a fault. What
    it read of an inline put without a fault that missed all the same is not lost: the control
    program finds it in `digest`.

    The checks are those of firmware/express.c, put.c, get.c and atomic.c; a get's are a put's but
    for the flags. What fails one is `missed`, and so are commands that ask for more than hardware
    does: other opcodes, flags FENCE and CHECKSUM, puts and gets of no bytes or of more than
    FAST_LENGTH. Each word is read once, for the slot's owner may write it again at any time.

    A get's answer may be let in before the get is taken, and is no longer when it was not.

    By turns with commands it looks at gets of other nodes, in slots of the INBOX. Their answers are
    puts from there. The checks are those of firmware/get.c, of opcode, levels, walks and offset;
    flags and node are those of the asker, and mean nothing here.

    Parameters
    ----------
    data_width : bits of a line
    endpoints  : of the card

    Attributes
    ----------
    offer   : Endpoint(offer_layout), in     taken with the verdict
    verdict : Record(verdict_layout), out
    request : Endpoint(request_layout), in   taken with its verdict
    answered : Signal(), out                 which is, in the cycle of its `ready`: 1, it is
               answered; 0, it is for the control
                                             program, also when it would have to wait
    slot    : slot_port(data_width), master
    enable  : Record, in                     opcodes that may be taken: `put_inline`, `put`, `get`,
              `atomic`; `get`: others' requests too
    fast    : Signal(endpoints), in          a bit for each endpoint whose commands may be taken
    node_id : Signal(16), in
    generation : Signal(6), in               of a context, as it is when its command's first line
                 comes
    put     : Endpoint(fast_put_layout), out
    digest  : Record(digest_layout), out     `strobe` in the cycle of the verdict
    taken, missed : Signal(), in             what became of it, in the cycle of its `ready`;
                    neither: it must wait
    coming  : Signal(), out                  what `put` shows stays, and may be offered
    glance  : Record(glance_layout()), out   what comes from the slot, for who would read it next
    full    : Signal(), in                   `put` would have to wait for other gets and atomics, 2
              cycles behind its fields
    expect  : Endpoint(expect_layout), out

    Cycles, with a slot port that grants at once: 5 from the offer to an inline put (64 bits) or 4
    (128 bits), 1 from its answer to the verdict; an atomic as long. A put whose walks are a block
    alone takes 2 more. Others and gets take 4 more for each block and each count of their walks,
    and as many as the counts have bits; a get that was not taken 1. When others read slots, too,
    each of these words takes 1 more, and all lines before them 1. A request that comes when no
    command is on offer is seen a cycle later.
    """
    def __init__(self, data_width, endpoints=C.ENDPOINTS):
        self.offer   = offer   = stream.Endpoint(offer_layout())
        self.verdict = verdict = Record(verdict_layout())
        self.slot    = slot    = slot_port(data_width)
        self.request  = request = stream.Endpoint(request_layout())
        self.answered = Signal()
        self.enable  = enable  = Record([("put_inline", 1), ("put", 1), ("get", 1), ("atomic", 1)])
        self.fast    = fast    = Signal(endpoints)
        self.node_id = node_id = Signal(16)
        self.generation = Signal(6)
        self.put     = put     = stream.Endpoint(fast_put_layout())
        self.digest  = digest  = Record(digest_layout())
        self.taken   = Signal()
        self.missed  = Signal()
        self.full    = Signal()
        self.coming  = Signal()
        self.glance  = glance  = Record(glance_layout())
        self.expect  = expect  = stream.Endpoint(expect_layout())

        # # #

        width      = data_width//8
        lines_bits = log2_int(C.SLOT_BYTES//width)
        lane_bits  = log2_int(data_width//32)

        # Turns ------------------------------------------------------------------------------------

        guest   = Signal()  # a request is looked at, not a command
        present = Signal()
        judged  = Signal()
        self.comb += [
            present.eq(Mux(guest, request.valid, offer.valid)),
            verdict.strobe.eq(judged & ~guest),
            offer.ready.eq(verdict.strobe),
            request.ready.eq(judged & guest),
        ]
        self.sync += If(judged,
            guest.eq(request.valid & ~guest)
        ).Elif(~present,
            guest.eq(request.valid)
        )

        # Lines ------------------------------------------------------------------------------------

        # Those that every put has, from the first on, and behind them those of the blocks, for
        # walks that are a block alone: they are asked for one after the other, while what came
        # first is looked at. Then one at a time.
        head   = sorted({(COMMAND[name].offset)//width for name in ("opcode", "node", "length", "cookie")}
            | {walk_dword("target", "offset")*4//width})
        dword  = Signal(max=C.SLOT_BYTES//4)   # of a walk
        ask    = Signal()
        walks  = Signal()                      # the head is here
        sides  = [walk_dword(walk, "block")*4//width for walk in ("target", "source")]
        # What the send engine needs of them comes too, while they wait for their place in the flow.
        wanted = flat_source_lines(data_width)
        lines  = head + sides + [line for line in wanted if line not in head + sides]
        asked  = Signal(max=len(lines) + 1)
        coming = [Record([("valid", 1), ("walks", 1), ("line", len(asked))]) for _ in range(2)]
        came   = coming[1]
        line   = Signal(lines_bits)
        self.comb += [
            Case(asked, {n: line.eq(number) for n, number in enumerate(lines)}),
            If(walks, line.eq(dword[lane_bits:])),
            slot.valid.eq(ask),
            slot.adr.eq(Cat(line, put.slot, put.endpoint)),
        ]
        self.sync += [
            coming[0].valid.eq(slot.valid & slot.ready),
            coming[0].walks.eq(walks),
            coming[0].line.eq(asked),
            came.eq(coming[0]),
            If(slot.valid & slot.ready & ~walks, asked.eq(asked + 1)),
            If(judged, asked.eq(0)),
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
        far    = Signal()   # this card's number is none that a node can have
        there  = Signal()   # a node that can be, and flags that a fast command can have
        plain  = Signal()   # nothing that a fast put cannot have
        asks   = Signal()   # nor a get or an atomic
        known  = FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
        nodes  = log2_int(C.NODES)
        self.sync += far.eq(node_id[nodes:] != 0)
        self.comb += [
            there.eq(((flags & (0xff ^ known)) == 0) & (node[nodes:] == 0) & ((node[:nodes] != node_id[:nodes]) | far)),
            plain.eq(there & ((flags & (FLAG.NOTICE | FLAG.INTERRUPT)) != FLAG.INTERRUPT)),
            asks.eq(there & ((flags & (FLAG.NOTICE | FLAG.INTERRUPT)) == 0)),
        ]

        inline  = Signal()      # a plain inline put, its length aside
        walked  = Signal()      # a plain put or get, or a get of another node
        flat    = Signal()      # neither walk has levels
        bulk    = Signal()      # one whose bytes go from here: no get of this node
        atomic  = Signal()      # its length aside
        operand = Signal()      # a length for that
        short   = Signal()      # a length for the one
        fits    = Signal()      # and for the other
        source_levels = Signal(4)
        target_levels = Signal(4)
        last    = Signal(33)    # the first byte behind a contiguous target, low word and carry
        at_end  = Signal()      # its carry leaves the 48 bits of an offset
        near    = Signal()      # the offset is one of 48 bits
        self.sync += [
            If(came.valid & ~came.walks & (came.line < len(head)),
                Case(came.line, {
                    head.index(COMMAND["opcode"].offset//width): [
                        inline.eq(plain & ~guest & (opcode == OPCODE.PUT_INLINE) & (levels == 0)),
                        walked.eq((levels[2:4] == 0) & (levels[6:8] == 0) & Mux(guest, (opcode == OPCODE.GET) & enable.get,
                            (plain & (opcode == OPCODE.PUT) & enable.put) | (asks & (opcode == OPCODE.GET) & enable.get))),
                        bulk.eq(guest | (opcode == OPCODE.PUT)),
                        atomic.eq(asks & ~guest & (opcode[2:] == OPCODE.FETCH_ADD >> 2) & (levels == 0) & enable.atomic),
                        flat.eq(levels == 0),
                        source_levels.eq(levels[:4]),
                        target_levels.eq(levels[4:]),
                        put.node.eq(Mux(guest, request.node, node)),
                        put.generation.eq(self.generation),
                        put.solicit.eq((flags & FLAG.SOLICIT) != 0),
                    ]}),
                Case(came.line, {
                    head.index(COMMAND["length"].offset//width): [
                        short.eq(length <= C.INLINE_BYTES),
                        operand.eq((length == 4) | (length == 8)),
                        fits.eq((length != 0) & (length[LENGTH_BITS:] == 0)),
                        put.length.eq(length),
                        put.cookie.eq(Mux(guest, request.word, of(COMMAND["cookie"]))),
                    ]}),
                last.eq(low + put.length),
                at_end.eq(high[:16] == 0xffff),
                near.eq(high[16:] == 0),
            )
        ]
        self.comb += [
            If(guest,
                put.kind.eq(FAST_KIND.ANSWER)
            ).Elif(atomic | (walked & ~bulk),
                put.kind.eq(FAST_KIND.ASK)
            ).Else(
                put.kind.eq(FAST_KIND.PUT)
            ),
            put.atomic.eq(atomic),
            put.lane.eq(Mux(walked & bulk, LANE.BULK, LANE.EXPRESS)),
            put.endpoint.eq(Mux(guest, C.INBOX, offer.endpoint)),
            put.slot.eq(Mux(guest, request.slot, offer.slot)),
        ]

        # Walks ------------------------------------------------------------------------------------

        self.product = product = Product()
        source  = Signal()    # the second walk
        block   = Signal()    # its block is wanted, not a count
        level   = Signal(2)
        leaves  = Signal()
        same    = Signal()    # the first block is the length
        word_of = lambda walk: slot.dat_r[32*(walk_dword(walk, "block") % 2**lane_bits):][:32]
        self.comb += [
            Case(dword[:lane_bits], {n: product.word.eq(slot.dat_r[32*n:32*n + 32]) for n in range(data_width//32)}),
            If(source,
                dword.eq(Mux(block, walk_dword("source", "block"), walk_dword("source", "count") + level))
            ).Else(
                dword.eq(Mux(block, walk_dword("target", "block"), walk_dword("target", "count") + level))
            )
        ]
        # Without levels the sender adds a packet's place to the offset, which must not begin again
        # at 0.
        self.sync += leaves.eq((target_levels == 0) & at_end & last[32] & (last[:32] != 0))

        # Gets -------------------------------------------------------------------------------------

        # The key of the target lies beside its block.
        key = walk_dword("target", "key")
        assert key >> lane_bits == walk_dword("target", "block") >> lane_bits
        entered = Signal()
        self.comb += [
            expect.last.eq(1),
            expect.context.eq(Cat(offer.slot, offer.endpoint, Constant(0, TAG - TAGS), put.generation)),
            expect.node.eq(put.node),
            expect.key.eq(slot.dat_r[32*(key % 2**lane_bits):][:32]),
        ]

        # Flow -------------------------------------------------------------------------------------

        verdict_taken  = Signal()
        verdict_missed = Signal()
        self.fsm = fsm = FSM(reset_state="HEAD")
        fsm.act("HEAD",
            ask.eq(present & (asked != len(head + sides))),
            NextValue(verdict_taken, 0),
            NextValue(verdict_missed, 1),
            NextValue(source, 0),
            NextValue(block, 1),
            NextValue(level, 0),
            NextValue(entered, 0),
            If(came.valid & (came.line == len(head) - 1),
                NextState("VERDICT"),
                If((high[16:] == 0) & (guest | (fast >> offer.endpoint)[0]),
                    If(inline & short & enable.put_inline, NextState("PUT")),
                    If(atomic & operand, NextState("PUT")),
                    If(walked & fits, NextState("ASK"), If(flat & bulk, NextState("SIDES"))),
                )
            )
        )
        fsm.act("SIDES",
            self.coming.eq(1),
            ask.eq(asked != len(lines)),
            If(came.valid,
                NextValue(same, word_of("target") == put.length),
                If(came.line == len(head + sides) - 1,
                    NextState("VERDICT"),
                    If(same & (word_of("source") == put.length) & ~leaves, NextState("PUT"))
                )
            )
        )
        fsm.act("ASK",
            walks.eq(1),
            ask.eq(1),
            If(slot.ready, NextState("WORD"))
        )
        word = came.valid & came.walks
        fsm.act("WORD",
            walks.eq(1),
            product.first.eq(word & block),
            product.times.eq(word & ~block),
            If(word,
                NextValue(block, 0),
                If(~block, NextValue(level, level + 1)),
                NextState("PRODUCT"),
                If(block & ~source & ~bulk,
                    If(self.full,
                        NextValue(verdict_missed, 0),
                        NextState("VERDICT")
                    ).Else(
                        expect.valid.eq(1),
                        expect.granted.eq(1),
                        NextValue(entered, expect.ready),
                        # It was the program's turn.
                        If(~expect.ready,
                            NextValue(block, 1),
                            NextState("ASK")
                        )
                    )
                )
            )
        )
        fsm.act("PRODUCT",
            If(~product.busy,
                If(level != Mux(source, source_levels, target_levels),
                    NextState("ASK")
                ).Elif(product.over | (product.result != put.length[:LENGTH_BITS]) | leaves,
                    NextState("VERDICT"),
                    If(entered, NextState("FORGET"))
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
            ask.eq((put.lane == LANE.BULK) & flat & (asked != len(lines))),
            NextValue(verdict_taken, self.taken),
            NextValue(verdict_missed, self.missed),
            If(put.ready,
                NextState("VERDICT"),
                If(entered & ~self.taken, NextState("FORGET"))
            )
        )
        fsm.act("FORGET",
            expect.valid.eq(1),
            If(expect.ready, NextState("VERDICT"))
        )
        # Many wait for a verdict, as far as the engines' notices: what it needs is done before.
        fsm.act("VERDICT",
            judged.eq(1),
            NextState("HEAD")
        )
        self.comb += [
            glance.begin.eq(came.valid & ~came.walks & (came.line == 0)),
            # What comes behind a verdict is not of who is looked at then.
            glance.lines.eq(Cat(*[came.valid & ~came.walks & (came.line == lines.index(line))
                & (1 if line in head else ~fsm.ongoing("HEAD")) for line in wanted])),
            glance.drop.eq(judged & ~(verdict_taken & (put.lane == LANE.BULK))),
            glance.endpoint.eq(put.endpoint),
            glance.slot.eq(put.slot),
            glance.response.eq(guest),
            verdict.taken.eq(verdict_taken),
            verdict.missed.eq(verdict_missed),
            verdict.endpoint.eq(offer.endpoint),
            self.answered.eq(verdict_taken),
            digest.strobe.eq(verdict.strobe & verdict.missed & inline & short & near),
            *[getattr(digest, name).eq(getattr(put, name))
                for name in ["endpoint", "slot", "node", "solicit", "length", "cookie"]],
        ]
