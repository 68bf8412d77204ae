"""Set-up of a walker: the position of a walk after its first `skip` bytes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import FAULT_BITS, FAULT_LIST, FAULT_READ, list_base_layout, list_order_layout, walk_layout

ENTRY = log2_int(C.LIST_ENTRY_BYTES)

# Layout -------------------------------------------------------------------------------------------

def start_layout(address_bits=64):
    """A walk and its state at the first byte after `skip`.

    address   : bus address of this byte
    run       : bytes from there to the end of its block
    over      : the nest has no such byte: it ends before `skip` bytes, or with `fault` (see
                `piece_layout`) its index list has no such entry
    joinable  : adjacent blocks of level 0 may be merged into one run
    base0…2   : start address of the current block of each level
    left0…2   : blocks of each level that follow the current one
    listed    : the bases of level 2 come from an index list, one whenever levels 0 and 1 have ended
    exhausted : the list's first entry was also its last one
    spent     : levels 0 and 1 have ended (left0 and left1 are 0)
    """
    return stream.EndpointDescription(
        [("low", address_bits), ("high", address_bits), ("block", 32), ("length", 32),
         ("stride0", address_bits), ("stride1", address_bits), ("stride2", address_bits),
         ("count0", 32), ("count1", 32),
         ("address", address_bits), ("run", 32), ("over", 1), ("fault", FAULT_BITS),
         ("joinable", 1),
         ("listed", 1), ("exhausted", 1), ("spent", 1),
         ("base0", address_bits), ("base1", address_bits), ("base2", address_bits),
         ("left0", 32), ("left1", 32), ("left2", 32)])

# Skip ---------------------------------------------------------------------------------------------

class Skip(LiteXModule):
    """Compute the counters and addresses of a walk after `skip` bytes.

    It has one serial divider and one serial multiplier (shift and add). `skip` is divided by the
    block, this quotient by count 0, and the next quotient by count 1. The remainders are the byte
    within the block and the indices; then the indices are multiplied by the strides. Example:
    block 8, count0 3, skip 37: 37 = (1*3 + 1)*8 + 5, so index 1 in level 1, 1 in level 0, byte 5.

    With an index list the last quotient is the index of the list's first entry. The same divisions
    of the last byte's position give the index of its last entry. The entries are then ordered from
    the reader. Meanwhile the sums are made relative to 0; the first base is added when it arrives.

    Parameters
    ----------
    address_bits : width of addresses, strides and their sums, 64 or 32

    Attributes
    ----------
    sink   : Endpoint(walk_layout), in    block and the counts of the used levels must not be 0
    source : Endpoint(start_layout), out
    order  : Endpoint(list_order_layout), out  the entries to read
    base   : Endpoint(list_base_layout), in    the first base of the ordered walk
    begun  : Signal(), out    the first base was taken, and its walk is still in this block

    Cycles from sink to source: 1 if skip is 0; 3 if levels is 0. Otherwise 1, plus 34 a level for
    the divisions, plus 2 and the bits of its index (at most 32) a level for the products. One level
    and index 255 take 46 cycles; three levels take at most 209. With a list: 36, plus 34 a stride,
    until the order; the same again before if skip is not 0; then 5 from the first base.
    """
    def __init__(self, address_bits=64):
        self.sink   = sink   = stream.Endpoint(walk_layout(address_bits))
        self.source = source = stream.Endpoint(start_layout(address_bits))
        self.order  = order  = stream.Endpoint(list_order_layout(address_bits))
        self.base   = first  = stream.Endpoint(list_base_layout(address_bits))
        self.begun  = Signal()

        # # #

        walk     = Record([(n, w) for n, w in walk_layout(address_bits).payload_layout])
        index    = [Signal(32) for _ in range(3)]
        base     = [Signal(address_bits, name=f"base{n}") for n in range(3)]
        # Bytes to skip in the first block; before the division: bytes to skip in the whole walk.
        block_offset = Signal(32)
        past_end     = Signal()
        fault        = Signal(FAULT_BITS)

        # List: the entries `first_entry` to `last_entry` are read, or as many as there are.
        first_entry    = Signal(32)
        # Before its division, `last_entry` holds the last byte's position, first without `skip`.
        last_entry     = Signal(33)
        dividing_last  = Signal()  # the dividend is the last byte's position
        list_too_short = Signal()  # the list ends before `last_entry`
        exhausted      = Signal()
        last_divisor   = Signal()

        # Divider: the quotient grows into the bits that the dividend leaves.
        quotient  = Signal(32)
        remainder = Signal(32)
        divisor   = Signal(32)
        step      = Signal(6)
        shifted   = Signal(33)
        trial     = Signal(34)
        self.comb += [
            shifted.eq(Cat(quotient[31], remainder)),
            trial.eq(shifted - divisor),
        ]

        # Multiplier: adds the shifted stride where the index has a one.
        level        = Signal(2)
        total        = Signal(address_bits)  # in the end the address of the first byte
        sum_         = Signal(address_bits)
        multiplicand = Signal(address_bits)
        multiplier   = Signal(32)

        stride         = Array([walk.stride0, walk.stride1, walk.stride2])
        count          = Array([walk.count0,  walk.count1,  walk.count2])
        index_         = Array(index)
        start          = Signal(address_bits)
        quotient_limit = Signal(32)  # the quotient must be below this count
        entries_after  = Signal(33)
        self.comb += [
            sum_.eq(total + multiplicand),
            quotient_limit.eq(count[Mux(walk.listed & last_divisor, 2, level)]),
            last_divisor.eq(level == Mux(walk.listed, walk.levels, walk.levels - 1)),
            start.eq(Mux(sink.listed, 0, sink.address)),
            order.address.eq(walk.stride2 + Cat(Constant(0, ENTRY), first_entry)),
            # Entries after the first one: last_entry - first_entry, or count2 - 1 - first_entry.
            # The lowest bit of both terms makes the carry of the subtraction.
            entries_after.eq(
                Cat(~list_too_short, Mux(list_too_short, walk.count2, last_entry[:32])) +
                Cat(~list_too_short, ~first_entry)),
            order.more.eq(entries_after[1:]),
            order.origin.eq(walk.address),
            order.last.eq(1),
        ]

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            sink.ready.eq(1),
            *[
                NextValue(getattr(walk, n), getattr(sink, n))
                for n, _ in walk_layout(address_bits).payload_layout],
            *[NextValue(i, 0) for i in index],
            *[NextValue(b, start) for b in base],
            NextValue(total, start),
            NextValue(block_offset, sink.skip),
            NextValue(past_end, 0),
            NextValue(fault, 0),
            NextValue(first_entry, 0),
            NextValue(last_entry, sink.length - 1),
            NextValue(dividing_last, 0),
            NextValue(exhausted, 0),
            NextValue(quotient, sink.skip),
            NextValue(remainder, 0),
            NextValue(divisor, sink.block),
            NextValue(step, 0),
            NextValue(level, 0),
            If(sink.valid,
                If(sink.skip == 0,
                    NextState("READY"),
                    If(sink.listed, NextState("END"))
                ).Elif((sink.levels == 0) & ~sink.listed,
                    NextState("CONTIGUOUS")
                ).Else(
                    NextState("DIVIDE")
                )
            )
        )
        fsm.act("CONTIGUOUS",
            NextValue(multiplicand, block_offset),
            NextState("ADDRESS")
        )
        fsm.act("DIVIDE",
            NextValue(step, step + 1),
            If(trial[33],
                NextValue(remainder, shifted),
                NextValue(quotient, Cat(0, quotient[:31]))
            ).Else(
                NextValue(remainder, trial),
                NextValue(quotient, Cat(1, quotient[:31]))
            ),
            If(step == 31, NextState("DIVIDED"))
        )
        fsm.act("DIVIDED",
            # After `level` divisions by counts, the remainder is the index of level `level` - 1.
            NextValue(step, 0),
            NextValue(remainder, 0),
            If(~dividing_last,
                If(level == 0, NextValue(block_offset, remainder)),
                If(level == 1, NextValue(index[0], remainder)),
                If(level == 2, NextValue(index[1], remainder)),
            ),
            NextValue(divisor, quotient_limit),
            NextValue(level, level + 1),
            NextState("DIVIDE"),
            If(last_divisor,
                If(dividing_last,
                    NextValue(list_too_short, quotient >= quotient_limit)
                ).Else(
                    NextValue(past_end, quotient >= quotient_limit)
                ),
                If(~walk.listed,
                    NextValue(index_[level], quotient),
                    NextValue(level, level),
                    NextState("INDEX")
                ).Elif(dividing_last,
                    NextValue(last_entry, quotient),
                    NextState("LIMIT")
                ).Else(
                    NextValue(first_entry, quotient),
                    NextState("END")
                )
            )
        )

        # List: position of the last byte, entries in the region, order to the reader.
        fsm.act("END",
            NextValue(dividing_last, 1),
            NextValue(last_entry, walk.skip + last_entry),
            NextState("SATURATE")
        )
        fsm.act("SATURATE",
            # A position of 2**32 or more lies behind every list, and so does this one.
            NextValue(quotient, Mux(last_entry[32], 2**32 - 1, last_entry)),
            NextValue(remainder, 0),
            NextValue(divisor, walk.block),
            NextValue(level, 0),
            NextState("DIVIDE")
        )
        fsm.act("LIMIT",
            # An empty list is too short. (If skip is 0, entry 0 was not divided for.)
            If(past_end | (walk.count2 == 0),
                NextValue(past_end, 1),
                NextValue(fault, FAULT_LIST),
                NextState("READY")
            ).Else(
                NextState("ORDER")
            )
        )
        fsm.act("ORDER",
            order.valid.eq(1),
            NextValue(level, walk.levels - 1),
            If(order.ready,
                NextState("INDEX"),
                If((walk.levels == 0) | (walk.skip == 0),
                    NextState("FIRST")
                )
            )
        )
        fsm.act("INDEX",
            NextValue(multiplicand, stride[level]),
            NextValue(multiplier, index_[level]),
            NextState("MULTIPLY")
        )
        fsm.act("MULTIPLY",
            NextValue(multiplicand, Cat(0, multiplicand[:address_bits - 1])),
            NextValue(multiplier, multiplier[1:]),
            If(multiplier[0], NextValue(total, sum_)),
            If(multiplier == 0,
                *[If(level == i, NextValue(base[i], total)) for i in range(3)],
                NextValue(level, level - 1),
                NextState("INDEX"),
                If(level == 0,
                    NextValue(multiplicand, block_offset),
                    NextState("ADDRESS"),
                    If(walk.listed, NextState("FIRST"))
                )
            )
        )

        # First base of the list: it is added to the sums, level 1 first.
        fsm.act("FIRST",
            first.ready.eq(1),
            NextValue(base[2], first.base),
            NextValue(multiplicand, first.base),
            NextValue(total, base[1]),
            NextValue(exhausted, first.last),
            If(first.valid,
                If(first.error,
                    NextValue(past_end, 1),
                    NextValue(fault, FAULT_READ)
                ),
                *([If(first.far, NextValue(past_end, 1))] if address_bits < 64 else []),
                NextState("BASE1")
            )
        )
        fsm.act("BASE1",
            NextValue(total, sum_),
            NextState("NEXT")
        )
        fsm.act("NEXT",
            NextValue(base[1], total),
            NextValue(total, base[0]),
            NextState("BASE0")
        )
        fsm.act("BASE0",
            NextValue(total, sum_),
            NextValue(multiplicand, block_offset),
            NextState("ADDRESS")
        )

        # Address of the first byte, for each walk with a skip or a list.
        fsm.act("ADDRESS",
            NextValue(base[0], total),
            NextValue(total, sum_),
            NextState("READY")
        )
        fsm.act("READY",
            source.valid.eq(1),
            source.last.eq(1),
            If(source.ready, NextState("IDLE"))
        )
        self.comb += [
            *[getattr(source, n).eq(getattr(walk, n)) for n in (
                "low", "high", "block", "length", "stride0", "stride1", "stride2", "count0",
                "count1")],
            # A missing level counts as one block, so that the list's next entry follows at once.
            *[If(walk.levels <= i, getattr(source, f"count{i}").eq(1)) for i in range(2)],
            source.address.eq(total),
            source.over.eq(past_end),
            source.fault.eq(fault),
            source.listed.eq(walk.listed & (fault != FAULT_LIST)),
            source.exhausted.eq(exhausted),
            self.begun.eq(
                source.listed & (fsm.ongoing("BASE1") | fsm.ongoing("NEXT") | fsm.ongoing("BASE0") |
                fsm.ongoing("ADDRESS") | fsm.ongoing("READY"))),
            source.joinable.eq(walk.stride0 == walk.block),
            *[getattr(source, f"base{i}").eq(base[i]) for i in range(3)],
            # Without levels the block is endless. `count + ~index` is count - 1 - index; for a
            # missing level (count 1, index 0) it is 0.
            source.run.eq(
                Mux((walk.levels == 0) & ~walk.listed, 2**32 - 1, walk.block - block_offset)),
            *[
                getattr(source, f"left{i}").eq(getattr(source, f"count{i}") + ~index[i])
                for i in range(2)],
            source.left2.eq(Mux(walk.levels > 2, walk.count2 + ~index[2], 0)),
            source.spent.eq((source.left0 == 0) & (source.left1 == 0)),
        ]
