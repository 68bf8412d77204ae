"""Reads offered commands, checks them as the control program would, and hands on the valid ones."""

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

def head_lines(data_width):
    """The lines of a slot that each put, get and atomic has, in their order."""
    width = data_width//8
    return sorted({COMMAND[name].offset//width for name in ("opcode", "node", "length", "cookie")}
        | {walk_dword("target", "offset")*4//width})

# Product ------------------------------------------------------------------------------------------

class Product(LiteXModule):
    """The product of some numbers, and whether it exceeds the length of a fast put.

    `over` stays 1 even if a factor of 0 follows. This is right, because a fast put of 0 bytes does
    not exist either.

    Attributes
    ----------
    word   : Signal(32), in
    first  : Signal(), in     one cycle: begin with `word`
    times  : Signal(), in     one cycle: go on with `word`
    busy   : Signal(), out
    result : Signal(LENGTH_BITS), out
    over   : Signal(), out    the product is too large

    Cycles: 1 for the first number; for each other number 1, and 1 for each of its bits.
    """
    def __init__(self):
        self.word   = word   = Signal(32)
        self.first  = Signal()
        self.times  = Signal()
        self.busy   = Signal()
        self.result = result = Signal(LENGTH_BITS)
        self.over   = over   = Signal()

        # # #

        # Shift and add: one bit of the number a cycle, the lowest first.
        number = Signal(32)
        # The former product, shifted. Its highest bit says that a 1 was shifted out.
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

# Command Head -------------------------------------------------------------------------------------

class CommandHead(LiteXModule):
    """Checks those lines of a slot that each put, get and atomic has, as they arrive.

    Parameters
    ----------
    data_width : bits of a line
    slot       : slot_port(data_width), whose `dat_r` is read
    came       : Record, `valid` in the cycle in which line number `line` of the head arrives,
                 unless `walks`
    guest      : Signal(), the slot has a request of another node
    request    : Endpoint(request_layout), that request
    put        : Endpoint(fast_put_layout); node, generation, solicit, length and cookie are written
                 here
    enable, node_id, generation : see FastCommands

    Attributes
    ----------
    lines   : the head's lines, in the order in which they must arrive
    inline  : Signal(), out   a valid inline put; its length is not checked yet
    walked  : Signal(), out   a valid put or get, or a get of another node
    flat    : Signal(), out   neither walk has levels
    bulk    : Signal(), out   bytes leave this card: a put, or a get of another node
    atomic  : Signal(), out   a valid atomic; its length is not checked yet
    operand : Signal(), out   the length is one of an atomic
    short   : Signal(), out   the length is one of an inline put
    fits    : Signal(), out   the length is one of a fast put or get
    source_levels, target_levels : Signal(4), out
    in_range : expression     the target's offset has no more than 48 bits; valid while its line
               arrives
    near    : Signal(), out   as `in_range`, from the next cycle on
    wraps   : Signal(), out   a target without levels would exceed the 48 bits of an offset
    """
    def __init__(self, data_width, slot, came, guest, request, put, enable, node_id, generation):
        width      = data_width//8
        self.lines = lines = head_lines(data_width)
        self.inline        = inline        = Signal()
        self.walked        = walked        = Signal()
        self.flat          = flat          = Signal()
        self.bulk          = bulk          = Signal()
        self.atomic        = atomic        = Signal()
        self.operand       = operand       = Signal()
        self.short         = short         = Signal()
        self.fits          = fits          = Signal()
        self.source_levels = source_levels = Signal(4)
        self.target_levels = target_levels = Signal(4)
        self.near          = near          = Signal()
        self.wraps         = Signal()

        # # #

        def of(struct, offset=0, bits=None):
            """Bits of a member, in the cycle in which its line arrives."""
            start = 8*(struct.offset + offset)
            return slot.dat_r[start % data_width:][:bits or 8*struct.size]

        def known_levels(side):
            """Strides alone, or an index list over at most LIST_LEVELS strides."""
            assert C.LIST == C.LEVELS + 1 and C.LIST_LEVELS == C.LEVELS - 1
            return ~side[-1] & (side[:-1] != C.LIST + C.LEVELS)

        opcode = of(COMMAND["opcode"])
        flags  = of(COMMAND["flags"])
        levels = of(COMMAND["levels"])
        node   = of(COMMAND["node"], bits=32)       # with reserved0, which must be 0
        length = of(COMMAND["length"])
        low    = of(COMMAND["target"], WALK["offset"].offset, 32)
        high   = of(COMMAND["target"], WALK["offset"].offset + 4, 32)
        no_id  = Signal()   # this card's number is not a valid node
        valid  = Signal()   # the node is valid, and so are the flags of a fast command
        plain  = Signal()   # valid as a put
        asks   = Signal()   # valid as a get or an atomic
        known  = FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT
        nodes  = log2_int(C.NODES)
        self.sync += no_id.eq(node_id[nodes:] != 0)
        self.comb += [
            valid.eq(((flags & (0xff ^ known)) == 0) & (node[nodes:] == 0) & ((node[:nodes] != node_id[:nodes]) | no_id)),
            plain.eq(valid & ((flags & (FLAG.NOTICE | FLAG.INTERRUPT)) != FLAG.INTERRUPT)),
            asks.eq(valid & ((flags & (FLAG.NOTICE | FLAG.INTERRUPT)) == 0)),
        ]

        last    = Signal(33)    # end of a contiguous target: low word and carry
        at_end  = Signal()      # with that carry the end exceeds the 48 bits of an offset
        self.sync += [
            If(came.valid & ~came.walks & (came.line < len(lines)),
                Case(came.line, {
                    lines.index(COMMAND["opcode"].offset//width): [
                        inline.eq(plain & ~guest & (opcode == OPCODE.PUT_INLINE) & (levels == 0)),
                        walked.eq(known_levels(levels[:4]) & known_levels(levels[4:]) & Mux(guest, (opcode == OPCODE.GET) & enable.get,
                            (plain & (opcode == OPCODE.PUT) & enable.put) | (asks & (opcode == OPCODE.GET) & enable.get))),
                        bulk.eq(guest | (opcode == OPCODE.PUT)),
                        atomic.eq(asks & ~guest & (opcode[2:] == OPCODE.FETCH_ADD >> 2) & (levels == 0) & enable.atomic),
                        flat.eq(levels == 0),
                        source_levels.eq(levels[:4]),
                        target_levels.eq(levels[4:]),
                        put.node.eq(Mux(guest, request.node, node)),
                        put.generation.eq(generation),
                        put.solicit.eq((flags & FLAG.SOLICIT) != 0),
                    ]}),
                Case(came.line, {
                    lines.index(COMMAND["length"].offset//width): [
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
        self.in_range = high[16:] == 0
        # Without levels the sender adds a packet's position to the offset. The sum must not wrap.
        self.sync += self.wraps.eq((target_levels == 0) & at_end & last[32] & (last[:32] != 0))

# Fast Commands ------------------------------------------------------------------------------------

class FastCommands(LiteXModule):
    """Reads the slot of an offered command, and hands on each valid put, get or atomic.

    The checks are those of firmware/express.c, put.c, get.c and atomic.c. A get has the checks of a
    put, with other flags. A command is `missed` if it fails a check, or if it asks for more than
    hardware does: other opcodes, flags FENCE and CHECKSUM, puts and gets of 0 bytes or of more than
    FAST_LENGTH, more than FAST_LENGTH bytes at one entry of an index list. Each word is read once, because the slot's owner may write it again at any time.

    A valid inline put may be missed, too, for example because its flow is not armed. The control
    program finds what was read of it in `digest`.

    A get is entered in the table of gets under way before it is taken. If it is not taken, its
    entry is removed again.

    In turn with commands the block looks at gets of other nodes, in slots of the INBOX. The answer
    to such a get is a put from there. Its opcode, levels, walks and offset are checked as in
    firmware/get.c. Its flags and node are those of the asking node, and are not used.

    To add an opcode that hardware executes: decode it in CommandHead, give it a `kind` in enum
    fast_kind, let Contexts make its order, and let Completer end it.

    Parameters
    ----------
    data_width : bits of a line
    endpoints  : of the card

    Attributes
    ----------
    offer   : Endpoint(offer_layout), in     taken with the verdict
    verdict : Record(verdict_layout), out
    request : Endpoint(request_layout), in   taken with its verdict
    answered : Signal(), out                 verdict of `request`, in the cycle of its `ready`. 1:
               the fast path answers it. 0: it is for the control program
    slot    : slot_port(data_width), master
    enable  : Record, in                     opcodes that may be taken: `put_inline`, `put`, `get`,
              `atomic`; `get`: others' requests too
    fast    : Signal(endpoints), in          a bit for each endpoint whose commands may be taken
    node_id : Signal(16), in
    generation : Signal(6), in               of a get's context; used when the command's first line
                 arrives
    put     : Endpoint(fast_put_layout), out
    digest  : Record(digest_layout), out     `strobe` in the cycle of the verdict
    taken, missed : Signal(), in             result of `put`, in the cycle of its `ready`; neither:
                    offer it again
    coming  : Signal(), out                  `put` is stable, and may be offered soon
    glance  : Record(glance_layout()), out   the slot's lines as they arrive, for the send engine
    full    : Signal(), in                   `put` would have to wait for other gets and atomics; 2
              cycles after its fields
    expect  : Endpoint(expect_layout), out

    Cycles, with a slot port that grants at once: 5 from the offer to an inline put (64 bits) or 4
    (128 bits), 1 from its answer to the verdict; an atomic as long. A put whose walks are a block
    alone takes 2 more. Others and gets take 4 more for each block and each count of their walks,
    and as many as the counts have bits; an index list has no count. A get that was not taken takes 1
    more. When others read slots, too, each of these words takes 1 more, and all lines before them 1.
    A request that comes when no command is on offer is seen a cycle later.
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

        guest   = Signal()  # the block looks at a request, not at a command
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

        # Lines are read in this order: those that each put needs (`head`); then those with the
        # blocks of the walks (`sides`), for walks without levels. The reads are pipelined: the next
        # line is requested while the first ones are checked. Words of counts follow one at a time.
        head   = head_lines(data_width)
        dword  = Signal(max=C.SLOT_BYTES//4)   # the wanted word of a walk
        ask    = Signal()
        walks  = Signal()                      # words of walks are read; the head has arrived
        sides  = [walk_dword(walk, "block")*4//width for walk in ("target", "source")]
        # While a put waits for its PSN, the lines are read that the send engine needs.
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

        self.head = checks = CommandHead(data_width, slot, came, guest, request, put, enable, node_id, self.generation)
        walked, flat, bulk, atomic = checks.walked, checks.flat, checks.bulk, checks.atomic
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
        source  = Signal()    # the walk is the source's, not the target's
        block   = Signal()    # the word is the walk's block, not a count
        level   = Signal(2)
        levels  = Signal(4)   # of the walk
        listed  = levels[log2_int(C.LIST)]
        unfit   = Signal()    # the walk has no bytes, or its bytes are not the length
        same    = Signal()    # the target's block is the length
        word_of = lambda walk: slot.dat_r[32*(walk_dword(walk, "block") % 2**lane_bits):][:32]
        self.comb += [
            levels.eq(Mux(source, checks.source_levels, checks.target_levels)),
            # With an index list the product is the bytes at one entry, and the length gives the
            # number of entries.
            unfit.eq(Mux(listed, product.result == 0, product.result != put.length[:LENGTH_BITS])),
            Case(dword[:lane_bits], {n: product.word.eq(slot.dat_r[32*n:32*n + 32]) for n in range(data_width//32)}),
            If(source,
                dword.eq(Mux(block, walk_dword("source", "block"), walk_dword("source", "count") + level))
            ).Else(
                dword.eq(Mux(block, walk_dword("target", "block"), walk_dword("target", "count") + level))
            )
        ]

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

        # States -----------------------------------------------------------------------------------

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
                If(checks.in_range & (guest | (fast >> offer.endpoint)[0]),
                    If(checks.inline & checks.short & enable.put_inline, NextState("PUT")),
                    If(atomic & checks.operand, NextState("PUT")),
                    If(walked & checks.fits, NextState("ASK"), If(flat & bulk, NextState("SIDES"))),
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
                    If(same & (word_of("source") == put.length) & ~checks.wraps, NextState("PUT"))
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
                        # The program entered a get in this cycle: read the word again.
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
                If(level != levels[:len(level)],
                    NextState("ASK")
                ).Elif(product.over | unfit | checks.wraps,
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
        # The verdict feeds long paths, as far as the engines' notices. So it is computed before.
        fsm.act("VERDICT",
            judged.eq(1),
            NextState("HEAD")
        )
        self.comb += [
            glance.begin.eq(came.valid & ~came.walks & (came.line == 0)),
            # Lines that arrive after a verdict are not of the command that is looked at then.
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
            digest.strobe.eq(verdict.strobe & verdict.missed & checks.inline & checks.short & checks.near),
            *[getattr(digest, name).eq(getattr(put, name))
                for name in ["endpoint", "slot", "node", "solicit", "length", "cookie"]],
        ]
