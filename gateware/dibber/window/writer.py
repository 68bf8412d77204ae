"""Commands of the window's endpoint: puts of closed stream buffers, gets and atomics of loads."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import ATOMIC, C, COMMAND, DOORBELL, INLINE, OPCODE, STATUS, WALK
from dibber.layouts import entry_layout
from dibber.window.layouts import (LINE_BITS, LINE_BYTES, OWNER_BITS, PAGE_BITS, SLOT_BITS,
    closed_layout, fault_layout, line_write_layout, load_layout, page_layout)

# A late completion of a command is taken for one of the present life if as many lives lie between.
LIFE_BITS = 8

# Runs ---------------------------------------------------------------------------------------------

class LowestOne(LiteXModule):
    """`number` of the lowest 1 of `bits`; their count if all are 0. Groups of 8 keep it shallow."""
    def __init__(self, count):
        self.bits   = bits   = Signal(count)
        self.number = number = Signal(max=count + 1)

        # # #

        found = Constant(count, len(number))
        for n in reversed(range(count//8)):
            group, place = Signal(8), Signal(3)
            self.comb += [
                group.eq(bits[8*n:8*n + 8]),
                *[If(group[m], place.eq(m)) for m in reversed(range(8))],
            ]
            chosen = Signal(len(number))
            self.comb += chosen.eq(Mux(group != 0, Cat(place, Constant(n, len(number) - 3)), found))
            found = chosen
        self.comb += number.eq(found)

class FirstRun(LiteXModule):
    """The lowest run of ones in `mask`, and the mask without it.

    Example: of 0b0011_0110 the run starts at 1, stops at 3, and 0b0011_0000 is left.

    Attributes
    ----------
    mask  : Signal(64), in
    start : Signal(6), out   the run's first bit
    stop  : Signal(7), out   the bit after its last one
    left  : Signal(64), out
    """
    def __init__(self, bits=LINE_BYTES):
        self.mask  = mask  = Signal(bits)
        self.start = start = Signal(max=bits)
        self.stop  = stop  = Signal(max=bits + 1)
        self.left  = left  = Signal(bits)

        # # #

        # A run ends where a 1 is below a 0. Below the lowest run there is no 1, so it ends first.
        self.begins = begins = LowestOne(bits)
        self.ends   = ends   = LowestOne(bits)
        self.comb += [
            begins.bits.eq(mask),
            ends.bits.eq(Cat(0, *[mask[n] & ~mask[n + 1] for n in range(bits - 1)])),
            start.eq(begins.number),
            stop.eq(ends.number),
            left.eq(mask & Cat(*[stop <= n for n in range(bits)])),
        ]

# Command Writer -----------------------------------------------------------------------------------

def dword(struct, name, offset=0):
    """Number in the slot of the 32-bit word at a member."""
    return (struct[name].offset + offset)//4

class CommandWriter(LiteXModule):
    """Fill slots of the window's endpoint, ring its doorbell, and take its completions.

    It writes to the endpoint's pages as a process would. A stream buffer becomes a PUT_INLINE for
    each run of stored bytes, lowest first. A load becomes a GET into 64 bytes of the scratch page,
    which belong to its slot, or a FETCH_ADD. A load is taken in turn before buffers.

    The page is looked up for each buffer and load. A store without mapping or right is dropped, a
    load is refused.

    While the control program is halted, the block is in reset: a halt sets the endpoint's counts to
    0, and forgets its commands.

    The endpoint's counts are also those that the host writes to its doorbell page. A host that opens
    the endpoint writes CQ_CONSUMER: then a new *life* of the window begins, without commands. The
    cookie of a command has the number of its life, so late completions of a former life end nothing.

    Parameters
    ----------
    data_width : 64, 128 or 256
    endpoint   : number of the window's endpoint

    Attributes
    ----------
    enable   : Signal(), in     without it all pages are unmapped
    rung, renewed : Signal(), in   one cycle: the host writes COMMAND_PRODUCER, or CQ_CONSUMER
    counts   : Signal(64), in   with these, both values
    closed   : Endpoint(closed_layout), in      taken when the buffer is not needed any more
    mask, at, dat : see StreamBuffers
    load     : Endpoint(load_layout), in        accepted when a slot is free for it
    page     : Signal, out      to PageTable
    found    : Record(page_layout), in          the entry of `page` of the cycle before
    scratch_key : Signal(32), in
    refused  : Signal(), out    one cycle: the accepted load is refused
    sent     : Signal(), out    one cycle: its command is written to slot `slot`
    is_atomic : Signal(), out   with `sent`
    slot     : Signal(5), out
    writes   : Endpoint(line_write_layout), out   to the pages of all endpoints
    ends     : Endpoint(entry_layout), in     completions; always ready
    used     : Signal(SLOTS), out    slots whose commands have not ended
    ended    : Signal(SLOTS), out    one cycle: the command of this slot has ended
    loaded   : Record, out      in a cycle with `strobe` the load in `slot` has ended with `status`
               and, if it was an atomic, `value`
    forbidden, refusal : Record(fault_layout), out    a buffer or load without right; a command that
               failed
    unmapped, misshaped, packet : Signal(), out   one cycle: a buffer or load without page; an atomic
               load that has no operand's shape; a put
    status   : Signal(8), out        of a `refusal`

    Cycles: of a buffer with one run 6, and 1 for each line of the slot; see docs/design/window.md.
    """
    def __init__(self, data_width, endpoint):
        width     = data_width//8
        lanes     = data_width//32
        width_bits = log2_int(width)
        self.enable   = enable  = Signal()
        self.rung     = rung    = Signal()
        self.renewed  = renewed = Signal()
        self.counts   = counts  = Signal(64)
        self.closed   = closed  = stream.Endpoint(closed_layout())
        self.mask     = Signal(LINE_BYTES)
        self.at       = at      = Signal(log2_int(LINE_BYTES//width))
        self.dat      = dat     = Signal(2*data_width)
        self.load     = load    = stream.Endpoint(load_layout())
        self.found    = found   = Record(page_layout())
        self.scratch_key = scratch_key = Signal(32)
        self.refused  = refused = Signal()
        self.sent     = sent    = Signal()
        self.is_atomic = is_atomic = Signal()
        self.writes   = writes  = stream.Endpoint(line_write_layout(data_width))
        self.ends     = ends    = stream.Endpoint(entry_layout())
        self.used     = used    = Signal(C.SLOTS)
        self.ended    = ended   = Signal(C.SLOTS)
        self.loaded   = loaded  = Record(
            [("strobe", 1), ("slot", SLOT_BITS), ("status", 8), ("value", 64)])
        self.unmapped  = unmapped  = Signal()
        self.forbidden = forbidden = Record(fault_layout())
        self.refusal   = refusal   = Record(fault_layout())
        self.status    = Signal(8)
        self.misshaped = misshaped = Signal()
        self.packet    = Signal()

        # # #

        # Counts -----------------------------------------------------------------------------------

        producer = Signal(32)
        consumer = Signal(32)
        told     = Signal(reset=1)   # the doorbell has `consumer`
        life     = Signal(LIFE_BITS)
        self.slot = slot = producer[:SLOT_BITS]
        take     = Signal()   # the slot is used from the next cycle on
        free     = Signal()
        self.comb += free.eq(~(used >> slot)[0])

        # What is looked up ------------------------------------------------------------------------

        line    = Signal(len(closed.line))
        loads   = Signal()                 # a load, not a buffer
        first   = Signal(LINE_BITS)        # of the load
        count   = Signal(LINE_BITS + 1)
        rest    = Signal(LINE_BYTES)       # bytes of the buffer that are not sent yet
        page    = Record(page_layout())
        self.page = Signal(len(line) - (PAGE_BITS - LINE_BITS))

        # Checks: `beyond`, the page's last byte has no offset of 48 bits.
        beyond  = Signal()
        allowed = Signal()
        operand = Signal()   # 4 or 8 bytes, naturally aligned
        self.comb += [
            operand.eq(((count == 4) & (first[:2] == 0)) | ((count == 8) & (first[:3] == 0))),
            beyond.eq((page.offset[PAGE_BITS:] == 2**(48 - PAGE_BITS) - 1) &
                (page.offset[:PAGE_BITS] != 0)),
            allowed.eq(Mux(loads, page.load, page.store) & ~beyond),
        ]

        # Runs -------------------------------------------------------------------------------------

        self.run = run = FirstRun()
        start    = Signal(LINE_BITS)
        stop     = Signal(LINE_BITS + 1)
        left     = Signal(LINE_BYTES)
        length   = Signal(LINE_BITS + 1)
        offset   = Signal(48)
        self.comb += run.mask.eq(rest)

        # Slot -------------------------------------------------------------------------------------

        # Words of the slot by their numbers. A put writes only those that the card reads of an
        # inline put; a load writes all, so that nothing of an older command goes to the other node.
        opcode = Signal(8)
        self.comb += opcode.eq(
            Mux(loads, Mux(page.atomic, OPCODE.FETCH_ADD, OPCODE.GET), OPCODE.PUT_INLINE))
        near   = loads & ~page.atomic   # the target is the scratch page
        only   = lambda condition, value: Mux(condition, value, 0)
        words  = {
            dword(COMMAND, "opcode"): opcode,
            dword(COMMAND, "node"):   page.node,
            dword(COMMAND, "length"): length,
            dword(COMMAND, "cookie"): Cat(slot, loads, life),
            dword(INLINE, "key"):     Mux(near, scratch_key, page.key),
            dword(INLINE, "block"):   length,
            dword(INLINE, "offset"):  Mux(near, Cat(first, slot), offset[:32]),
            dword(INLINE, "offset", 4): Mux(near, 0, offset[32:]),
            dword(COMMAND, "source") + WALK["key"].offset//4:        only(near, page.key),
            dword(COMMAND, "source") + WALK["block"].offset//4:      only(near, length),
            dword(COMMAND, "source") + WALK["offset"].offset//4:     only(near, offset[:32]),
            dword(COMMAND, "source") + WALK["offset"].offset//4 + 1: only(near, offset[32:]),
        }
        added   = dword(ATOMIC, "operand")
        addend  = Cat(page.addend, Replicate(page.addend[-1], 48))
        for n in range(2):
            words[added + n] = Mux(page.atomic, addend[32*n:32*n + 32], words.get(added + n, 0))
        lines   = C.SLOT_BYTES//width
        filled  = {n//lanes for n in words}
        needed  = sorted({dword(INLINE, name)//lanes for name in ("head", "key", "offset")}
            | {dword(COMMAND, name)//lanes for name in ("opcode", "length")})
        data    = INLINE["data"].offset//width

        asks     = Signal()
        put_line = Signal(max=lines + 1)
        line_dat = Signal(data_width)
        values   = {
            n: Cat(*[_padded(words.get(n*lanes + lane, 0)) for lane in range(lanes)])
            for n in filled}
        shifted  = Signal(data_width)
        data_end = Signal(max=lines + 1)
        self.comb += [
            self.page.eq(Mux(asks, line, closed.line)[PAGE_BITS - LINE_BITS:]),
            # Bytes behind the run are not sent: the length counts.
            at.eq(start[width_bits:] + put_line - data),
            Case(start[:width_bits], {n: shifted.eq(dat[8*n:8*n + data_width]) for n in range(width)}),
            data_end.eq(data + ((length + width - 1) >> width_bits)),
            Case(put_line, {
                **{n: line_dat.eq(value) for n, value in values.items()},
                "default": line_dat.eq(0)}),
            If(~loads & (put_line >= data), line_dat.eq(shifted)),
        ]

        # Pages of the endpoint, in lines.
        pages    = endpoint*C.ENDPOINT_STRIDE//width
        bells    = (endpoint*C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET)//width
        assert DOORBELL["COMMAND_PRODUCER"].offset == 0 and DOORBELL["CQ_CONSUMER"].offset == 4

        # One register, so that `writes` does not depend on the memories.
        out = stream.PipeValid(line_write_layout(data_width))
        self.submodules += out
        write = out.sink
        self.comb += out.source.connect(writes)

        # States -----------------------------------------------------------------------------------

        after = {line: following for line, following in zip(needed, [*needed[1:], data])}
        self.fsm = fsm = ResetInserter()(FSM(reset_state="IDLE"))
        self.comb += fsm.reset.eq(renewed)
        fsm.act("IDLE",
            NextValue(loads, 0),
            NextValue(rest, self.mask),
            NextValue(line, closed.line),
            load.ready.eq(free),
            If(load.valid & free,
                NextValue(loads, 1),
                NextValue(line, load.line),
                NextValue(first, load.start),
                NextValue(count, load.bytes),
                NextState("ASK")
            ).Elif(closed.valid,
                NextState("LOOK")
            ).Elif(~told,
                NextState("TELL")
            )
        )
        # A load's page is known one cycle later.
        fsm.act("ASK",
            asks.eq(1),
            NextState("LOOK")
        )
        fsm.act("LOOK",
            NextValue(page.raw_bits(), found.raw_bits()),
            NextState("CHECK")
        )
        fsm.act("CHECK",
            NextValue(start, first),
            NextValue(stop, first + count),
            unmapped.eq(~(page.valid & enable)),
            forbidden.strobe.eq(page.valid & enable & ~allowed),
            misshaped.eq(page.valid & enable & allowed & loads & page.atomic & ~operand),
            If(unmapped | forbidden.strobe | misshaped,
                refused.eq(loads),
                closed.ready.eq(~loads),
                NextState("IDLE")
            ).Elif(loads,
                NextState("PLACE")
            ).Else(
                NextState("RUN")
            )
        )
        fsm.act("RUN",
            NextValue(start, run.start),
            NextValue(stop, run.stop),
            NextValue(left, run.left),
            NextState("PLACE")
        )
        fsm.act("PLACE",
            NextValue(length, stop - start),
            NextValue(offset, page.offset + Cat(start, line[:PAGE_BITS - LINE_BITS])),
            NextValue(put_line, 0),
            # No slot is free while the room of the completions is not known.
            write.valid.eq(~free & ~told),
            write.adr.eq(bells),
            write.dat.eq(Cat(producer, consumer)),
            write.be.eq(0xf0),
            If(free,
                NextValue(rest, left),
                NextState("SLOT")
            )
        )
        fsm.act("SLOT",
            write.valid.eq(1),
            write.adr.eq(pages + Cat(put_line[:log2_int(lines)], slot)),
            write.dat.eq(line_dat),
            write.be.eq(2**width - 1),
            If(write.ready,
                NextValue(put_line, put_line + 1),
                If(loads,
                    If(put_line == lines - 1, NextState("BELL"))
                ).Else(
                    Case(put_line,
                        {n: NextValue(put_line, following) for n, following in after.items()}),
                    If((put_line >= data) & (put_line + 1 == data_end), NextState("BELL"))
                )
            )
        )
        fsm.act("BELL",
            write.valid.eq(1),
            write.adr.eq(bells),
            write.dat.eq(Cat((producer + 1)[:32], consumer)),
            write.be.eq(0xff),
            If(write.ready,
                take.eq(1),
                sent.eq(loads),
                self.packet.eq(~loads),
                NextState("IDLE"),
                If(~loads,
                    closed.ready.eq(rest == 0),
                    If(rest != 0, NextState("RUN"))
                )
            )
        )
        fsm.act("TELL",
            write.valid.eq(1),
            write.adr.eq(bells),
            write.dat.eq(Cat(producer, consumer)),
            write.be.eq(0xf0),
            If(write.ready, NextState("IDLE"))
        )
        self.comb += is_atomic.eq(page.atomic)

        # Completions ------------------------------------------------------------------------------

        owners   = Memory(OWNER_BITS, C.SLOTS, name="window_owners")
        own, whose = owners.get_port(write_capable=True), owners.get_port(async_read=True)
        self.specials += owners, own, whose
        ends_slot = ends.cookie[:SLOT_BITS]
        known     = Signal()
        living    = Signal()  # the completion is of this life
        self.comb += [
            own.adr.eq(slot),
            own.dat_w.eq(page.owner),
            own.we.eq(take),
            whose.adr.eq(ends_slot),
            ends.ready.eq(1),
            living.eq(ends.valid & (ends.cookie[SLOT_BITS + 1:SLOT_BITS + 1 + LIFE_BITS] == life)),
            # A process that writes into the window's slots may make up a completion.
            known.eq(living & (used >> ends_slot)[0]),
            ended.eq(Mux(known, 1 << ends_slot, 0)),
            loaded.strobe.eq(known & ends.cookie[SLOT_BITS]),
            loaded.slot.eq(ends_slot),
            loaded.status.eq(ends.status),
            loaded.value.eq(Cat(ends.length, ends.key)),
            refusal.strobe.eq(known & (ends.status != STATUS.OK)),
            refusal.owner.eq(whose.dat_r),
            self.status.eq(ends.status),
            forbidden.owner.eq(page.owner),
        ]
        rings = write.valid & write.ready & ~fsm.ongoing("SLOT")
        self.sync += [
            used.eq((used & ~ended) | Mux(take, 1 << slot, 0)),
            If(take, producer.eq(producer + 1)),
            If(rings, told.eq(1)),
            If(living,
                consumer.eq(consumer + 1),
                told.eq(0),
            ),
            If(rung, producer.eq(counts[:32])),
            If(renewed,
                used.eq(0),
                consumer.eq(counts[32:]),
                # A doorbell that is on its way still has the former count.
                told.eq(0),
                life.eq(life + 1),
            ),
        ]

def _padded(word):
    """32 bits of an expression."""
    signal = Constant(word, 32) if isinstance(word, int) else word
    return signal[:32] if len(signal) >= 32 else Cat(signal, Constant(0, 32 - len(signal)))
