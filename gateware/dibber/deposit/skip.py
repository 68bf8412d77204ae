# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Where a walk stands after its first `skip` bytes: the set-up of a walker."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import walk_layout

# Layout -------------------------------------------------------------------------------------------

def start_layout():
    """A walk and the state in which it starts.

    `address` is the first byte's, `run` the bytes of the first block from there on, `base*` the
    start of the current block of each level, `left*` the blocks of each level still to come after
    the current one, `over`: the nest ended before `skip` bytes.
    """
    return stream.EndpointDescription(
        [("low", 64), ("high", 64), ("block", 32), ("length", 32),
         ("stride0", 64), ("stride1", 64), ("stride2", 64),
         ("count0", 32), ("count1", 32),
         ("address", 64), ("run", 32), ("over", 1), ("joinable", 1),
         ("base0", 64), ("base1", 64), ("base2", 64),
         ("left0", 32), ("left1", 32), ("left2", 32)])

# Skip ---------------------------------------------------------------------------------------------

class Skip(LiteXModule):
    """Find the counters and addresses of a walk after `skip` bytes, with one serial divider and adder.

    `skip` is divided by the block, the quotient by count 0, then by count 1; the remainders are the
    byte within the block and the indices. The bases are summed from the outermost level inwards.

    Attributes
    ----------
    sink   : Endpoint(walk_layout), in    counts and block of the levels used must not be 0
    source : Endpoint(start_layout), out

    Cycles: 1 when skip is 0; 2 when levels is 0. Otherwise 34 for each level, and 2 and the bits of
    its index (at most 32) for each level: 45 for one level and index 255, at most 208 for three.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(walk_layout())
        self.source = source = stream.Endpoint(start_layout())

        # # #

        walk     = Record([(n, w) for n, w in walk_layout().payload_layout])
        index    = [Signal(32) for _ in range(3)]
        base     = [Signal(64) for _ in range(3)]
        inside   = Signal(32)  # bytes passed over in the first block
        address  = Signal(64)
        over     = Signal()

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
        total        = Signal(64)
        multiplicand = Signal(64)
        multiplier   = Signal(32)

        stride = Array([walk.stride0, walk.stride1, walk.stride2])
        count  = Array([walk.count0,  walk.count1,  walk.count2])
        index_ = Array(index)

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            sink.ready.eq(1),
            *[NextValue(getattr(walk, n), getattr(sink, n)) for n, _ in walk_layout().payload_layout],
            *[NextValue(i, 0) for i in index],
            *[NextValue(b, sink.address) for b in base],
            NextValue(address, sink.address),
            NextValue(inside, 0),
            NextValue(over, 0),
            NextValue(quotient, sink.skip),
            NextValue(remainder, 0),
            NextValue(divisor, sink.block),
            NextValue(step, 0),
            NextValue(level, 0),
            If(sink.valid,
                If(sink.skip == 0,
                    NextState("READY")
                ).Elif(sink.levels == 0,
                    NextState("CONTIGUOUS")
                ).Else(
                    NextState("DIVIDE")
                )
            )
        )
        fsm.act("CONTIGUOUS",
            NextValue(address, address + walk.skip),
            NextState("READY")
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
            If(level == 0, NextValue(inside, remainder)),
            If(level == 1, NextValue(index[0], remainder)),
            If(level == 2, NextValue(index[1], remainder)),
            NextValue(divisor, count[level]),
            NextValue(level, level + 1),
            NextState("DIVIDE"),
            If(level == walk.levels - 1,
                NextValue(index_[level], quotient),
                NextValue(over, quotient >= count[level]),
                NextValue(total, address),
                NextValue(level, level),
                NextState("INDEX")
            )
        )
        fsm.act("INDEX",
            NextValue(multiplicand, stride[level]),
            NextValue(multiplier, index_[level]),
            NextState("MULTIPLY")
        )
        fsm.act("MULTIPLY",
            NextValue(multiplicand, Cat(0, multiplicand[:63])),
            NextValue(multiplier, multiplier[1:]),
            If(multiplier[0], NextValue(total, total + multiplicand)),
            If(multiplier == 0,
                *[If(level == i, NextValue(base[i], total)) for i in range(3)],
                NextValue(level, level - 1),
                NextState("INDEX"),
                If(level == 0,
                    NextValue(address, total + inside),
                    NextState("READY")
                )
            )
        )
        fsm.act("READY",
            source.valid.eq(1),
            source.last.eq(1),
            If(source.ready, NextState("IDLE"))
        )
        self.comb += [
            *[getattr(source, n).eq(getattr(walk, n)) for n in (
                "low", "high", "block", "length", "stride0", "stride1", "stride2", "count0", "count1")],
            source.address.eq(address),
            source.over.eq(over),
            source.joinable.eq(walk.stride0 == walk.block),
            *[getattr(source, f"base{i}").eq(base[i]) for i in range(3)],
            # Without levels the block never ends. count + ~index is count - 1 - index.
            source.run.eq(Mux(walk.levels == 0, 2**32 - 1, walk.block - inside)),
            *[getattr(source, f"left{i}").eq(
                Mux(walk.levels > i, getattr(walk, f"count{i}") + ~index[i], 0)) for i in range(3)],
        ]
