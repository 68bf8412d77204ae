"""Where a walk stands after its first `skip` bytes: the set-up of a walker."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import FAULT_BITS, FAULT_LIST, FAULT_READ, list_base_layout, list_order_layout, walk_layout

ENTRY = log2_int(C.LIST_ENTRY_BYTES)

# Layout -------------------------------------------------------------------------------------------

def start_layout(address_bits=64):
    """A walk and the state in which it starts.

    `address` is the first byte's, `run` the bytes of the first block from there on, `base*` the
    start of the current block of each level, `left*` the blocks of each level still to come after
    the current one, `over`: the nest ended before `skip` bytes, or with a `fault` (see
    `piece_layout`) its list has no such entry. `listed`: when levels 0 and 1 are at their ends, the
    next base of level 2 comes from the list, unless `exhausted`: its last entry was the first.
    `spent`: they are.
    """
    return stream.EndpointDescription(
        [("low", address_bits), ("high", address_bits), ("block", 32), ("length", 32),
         ("stride0", address_bits), ("stride1", address_bits), ("stride2", address_bits),
         ("count0", 32), ("count1", 32),
         ("address", address_bits), ("run", 32), ("over", 1), ("fault", FAULT_BITS), ("joinable", 1),
         ("listed", 1), ("exhausted", 1), ("spent", 1),
         ("base0", address_bits), ("base1", address_bits), ("base2", address_bits),
         ("left0", 32), ("left1", 32), ("left2", 32)])

# Skip ---------------------------------------------------------------------------------------------

class Skip(LiteXModule):
    """Find the counters and addresses of a walk after `skip` bytes, with one serial divider and one
    adder.

    `skip` is divided by the block, the quotient by count 0, then by count 1; the remainders are the
    byte within the block and the indices. The bases are summed from the outermost level inwards.

    With a list the last quotient is its first entry's index. The same divisions of the last byte's
    place give the last entry's. Then the list is ordered, the sums are made from 0 on, and when the
    first base is here it is added to each.

    Parameters
    ----------
    address_bits : that addresses, strides and their sums have

    Attributes
    ----------
    sink   : Endpoint(walk_layout), in    counts and block of the levels used must not be 0
    source : Endpoint(start_layout), out
    order  : Endpoint(list_order_layout), out
    base   : Endpoint(list_base_layout), in   the first one of the walk that was ordered
    begun  : Signal(), out    it was taken, and its walk is still here

    Cycles: 1 when skip is 0; 3 when levels is 0. Otherwise 1, 34 for each level, and 2 and the bits
    of its index (at most 32) for each level: 46 for one level and index 255, at most 209 for three.
    With a list 36 for itself and 34 for each stride to the order, the same before that unless skip
    is 0, and 5 from the first base on.
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
        # bytes passed over in the first block; all of them before the division
        inside   = Signal(32)
        over     = Signal()
        fault    = Signal(FAULT_BITS)

        # List: its entries from `begin` to `end`, or as many as there are.
        begin     = Signal(32)
        end       = Signal(33)  # before that the place of the last byte, less `skip`
        closing   = Signal()    # the last byte's place is being divided
        limited   = Signal()
        exhausted = Signal()
        final     = Signal()    # the divisor is the last one

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
        total        = Signal(address_bits)  # at last the first byte's address
        sum_         = Signal(address_bits)
        multiplicand = Signal(address_bits)
        multiplier   = Signal(32)

        stride = Array([walk.stride0, walk.stride1, walk.stride2])
        count  = Array([walk.count0,  walk.count1,  walk.count2])
        index_ = Array(index)
        start  = Signal(address_bits)
        most   = Signal(32)  # the count that a quotient is below
        more   = Signal(33)
        self.comb += [
            sum_.eq(total + multiplicand),
            most.eq(count[Mux(walk.listed & final, 2, level)]),
            final.eq(level == Mux(walk.listed, walk.levels, walk.levels - 1)),
            start.eq(Mux(sink.listed, 0, sink.address)),
            order.address.eq(walk.stride2 + Cat(Constant(0, ENTRY), begin)),
            # Up to `end`, or up to one before `count2`: the lowest bits are the carry.
            more.eq(Cat(~limited, Mux(limited, walk.count2, end[:32])) + Cat(~limited, ~begin)),
            order.more.eq(more[1:]),
            order.origin.eq(walk.address),
            order.last.eq(1),
        ]

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            sink.ready.eq(1),
            *[NextValue(getattr(walk, n), getattr(sink, n)) for n, _ in walk_layout(address_bits).payload_layout],
            *[NextValue(i, 0) for i in index],
            *[NextValue(b, start) for b in base],
            NextValue(total, start),
            NextValue(inside, sink.skip),
            NextValue(over, 0),
            NextValue(fault, 0),
            NextValue(begin, 0),
            NextValue(end, sink.length - 1),
            NextValue(closing, 0),
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
            NextValue(multiplicand, inside),
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
            # `level` divisors are counts so far: the remainder is an index one below.
            NextValue(step, 0),
            NextValue(remainder, 0),
            If(~closing,
                If(level == 0, NextValue(inside, remainder)),
                If(level == 1, NextValue(index[0], remainder)),
                If(level == 2, NextValue(index[1], remainder)),
            ),
            NextValue(divisor, most),
            NextValue(level, level + 1),
            NextState("DIVIDE"),
            If(final,
                If(closing,
                    NextValue(limited, quotient >= most)
                ).Else(
                    NextValue(over, quotient >= most)
                ),
                If(~walk.listed,
                    NextValue(index_[level], quotient),
                    NextValue(level, level),
                    NextState("INDEX")
                ).Elif(closing,
                    NextValue(end, quotient),
                    NextState("LIMIT")
                ).Else(
                    NextValue(begin, quotient),
                    NextState("END")
                )
            )
        )

        # List: the last byte's place, what the region has, the order.
        fsm.act("END",
            NextValue(closing, 1),
            NextValue(end, walk.skip + end),
            NextState("SATURATE")
        )
        fsm.act("SATURATE",
            # No transfer is that long: then the list ends too early.
            NextValue(quotient, Mux(end[32], 2**32 - 1, end)),
            NextValue(remainder, 0),
            NextValue(divisor, walk.block),
            NextValue(level, 0),
            NextState("DIVIDE")
        )
        fsm.act("LIMIT",
            # The first entry is not divided for when it is 0.
            If(over | (walk.count2 == 0),
                NextValue(over, 1),
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
                    NextValue(multiplicand, inside),
                    NextState("ADDRESS"),
                    If(walk.listed, NextState("FIRST"))
                )
            )
        )

        # First base of the list: added to what was summed, from level 1 inwards.
        fsm.act("FIRST",
            first.ready.eq(1),
            NextValue(base[2], first.base),
            NextValue(multiplicand, first.base),
            NextValue(total, base[1]),
            NextValue(exhausted, first.last),
            If(first.valid,
                If(first.error,
                    NextValue(over, 1),
                    NextValue(fault, FAULT_READ)
                ),
                *([If(first.far, NextValue(over, 1))] if address_bits < 64 else []),
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
            NextValue(multiplicand, inside),
            NextState("ADDRESS")
        )

        # First byte, of every walk that skips or has a list.
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
                "low", "high", "block", "length", "stride0", "stride1", "stride2", "count0", "count1")],
            # A list has its next entry behind strides that are not there.
            *[If(walk.levels <= i, getattr(source, f"count{i}").eq(1)) for i in range(2)],
            source.address.eq(total),
            source.over.eq(over),
            source.fault.eq(fault),
            source.listed.eq(walk.listed & (fault != FAULT_LIST)),
            source.exhausted.eq(exhausted),
            self.begun.eq(source.listed & (fsm.ongoing("BASE1") | fsm.ongoing("NEXT") | fsm.ongoing("BASE0") |
                fsm.ongoing("ADDRESS") | fsm.ongoing("READY"))),
            source.joinable.eq(walk.stride0 == walk.block),
            *[getattr(source, f"base{i}").eq(base[i]) for i in range(3)],
            # Without levels the block never ends. count + ~index is count - 1 - index; where there
            # is no level that is 1 - 1 - 0.
            source.run.eq(Mux((walk.levels == 0) & ~walk.listed, 2**32 - 1, walk.block - inside)),
            *[getattr(source, f"left{i}").eq(getattr(source, f"count{i}") + ~index[i]) for i in range(2)],
            source.left2.eq(Mux(walk.levels > 2, walk.count2 + ~index[2], 0)),
            source.spent.eq((source.left0 == 0) & (source.left1 == 0)),
        ]
