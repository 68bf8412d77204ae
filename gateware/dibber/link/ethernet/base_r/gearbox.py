"""Blocks of 66 bits over a transceiver that takes 40 bits a cycle: IEEE 802.3-2018, 49.2.7."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import PulseSynchronizer

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import block_layout

LANE_BITS  = 40  # of a transceiver, in a cycle
BLOCK_BITS = 66

def joins(joined, held, level, levels, new):
    """`joined` is the first `level` bits of `held`, and `new` behind them. Levels are even."""
    return Case(level[1:], {
        n//2: joined.eq(Cat(held[:n], new) if n else new) for n in levels})

# Sending ------------------------------------------------------------------------------------------

class BlocksToBits(LiteXModule):
    """Give 40 bits in each cycle, from a block in 20 of 33 cycles.

    If no block is there when one is needed, 66 zeros leave in its place. Zeros are a damaged
    header, so the receiver sees that a block is wrong.

    Attributes
    ----------
    sink     : Endpoint(block_layout), in
    bits     : Signal(40), out   the first one on the wire is lowest
    underrun : Signal(), out     one cycle for each block that did not come

    Cycles: 1 from a block to its first bits.
    """
    def __init__(self):
        self.sink     = sink = stream.Endpoint(block_layout())
        self.bits     = Signal(LANE_BITS)
        self.underrun = Signal()

        # # #

        # Left over from the blocks before: up to 64 bits, an even number.
        held   = Signal(BLOCK_BITS - 2)
        level  = Signal(7)
        taken  = Signal(BLOCK_BITS)
        joined = Signal(LANE_BITS - 2 + BLOCK_BITS)
        self.comb += [
            sink.ready.eq(level < LANE_BITS),
            # IEEE 802.3 prints the header's first bit as the high one.
            If(sink.valid, taken.eq(Cat(sink.header[1], sink.header[0], sink.data))),
            If(sink.ready,
                joins(joined, held, level, range(0, LANE_BITS, 2), taken)
            ).Else(
                joined.eq(held)
            ),
        ]
        self.sync += [
            self.bits.eq(joined[:LANE_BITS]),
            held.eq(joined[LANE_BITS:]),
            level.eq(Mux(sink.ready, level + BLOCK_BITS - LANE_BITS, level - LANE_BITS)),
            self.underrun.eq(sink.ready & ~sink.valid),
        ]

# Receiving ----------------------------------------------------------------------------------------

class BitsToBlocks(LiteXModule):
    """Cut the bits that come, 40 in each cycle, into blocks.

    Where the first block begins is chance. Each `slip` leaves out a bit, so all blocks behind it
    begin a bit later.

    Attributes
    ----------
    bits   : Signal(40), in    the first one on the wire is lowest
    slip   : Signal(), in      one cycle
    source : Endpoint(block_layout), out   valid only, in 20 of 33 cycles

    Cycles: 2 or 3 from a block's last bit to `source`, by its place.
    """
    def __init__(self):
        self.bits   = Signal(LANE_BITS)
        self.slip   = Signal()
        self.source = source = stream.Endpoint(block_layout())

        # # #

        # Place: a window of 40 bits that begins `place` bits behind the last word's first bit.
        last    = Signal(LANE_BITS)
        place   = Signal(max=LANE_BITS)
        word    = Signal(LANE_BITS)
        is_word = Signal()
        wraps   = self.slip & (place == LANE_BITS - 1)
        both    = Cat(last, self.bits)
        picked  = Signal(LANE_BITS)
        self.comb += Case(place,
            {n: picked.eq(both[n:n + LANE_BITS]) for n in range(LANE_BITS)})
        self.sync += [
            last.eq(self.bits),
            # A slip holds for the next cycle's window. At the end of the last word, this cycle's
            # window is left out, because all of it comes again.
            If(self.slip, place.eq(Mux(wraps, 0, place + 1))),
            word.eq(picked),
            is_word.eq(1),
        ]
        skips = Signal()
        self.sync += [
            skips.eq(wraps),
            If(skips, is_word.eq(0)),
        ]

        # Blocks: up to 64 bits are held, an even number.
        held   = Signal(BLOCK_BITS - 2)
        level  = Signal(7)
        joined = Signal(BLOCK_BITS - 2 + LANE_BITS)
        whole  = Signal()
        self.comb += [
            whole.eq(level >= BLOCK_BITS - LANE_BITS),
            joins(joined, held, level, range(0, BLOCK_BITS, 2), word),
        ]
        self.sync += [
            source.valid.eq(is_word & whole),
            source.header.eq(Cat(joined[1], joined[0])),
            source.data.eq(joined[2:BLOCK_BITS]),
            If(is_word,
                If(whole,
                    held.eq(joined[BLOCK_BITS:]),
                    level.eq(level + LANE_BITS - BLOCK_BITS)
                ).Else(
                    held.eq(joined),
                    level.eq(level + LANE_BITS)
                ),
            ),
        ]

# Both Ways ----------------------------------------------------------------------------------------

class Gearbox(LiteXModule):
    """Between the blocks of `sys` and the bits of a transceiver's clocks `tx` and `rx`.

        block_tx ─▶ FIFO ─▶ bits_tx
        block_rx ◀─ FIFO ◀─ bits_rx
            slip ─────────▶

    `sys` has more cycles than the wire has blocks: 161.13 MHz, or any clock that is faster by
    1 ‰ than linerate/66. So the FIFO to the wire never runs empty, and the one from the wire never
    fills, whatever the two stations' clocks are within their 100 ppm (IEEE 802.3-2018, 52.5.1). No
    idle is inserted or removed to match two clocks.

    If one side of a FIFO is reset alone, up to 15 blocks of before pass. The lock has ended then,
    because the row of bits has a hole.

    Attributes
    ----------
    block_tx : Endpoint(block_layout), in    domain sys
    block_rx : Endpoint(block_layout), out   domain sys; valid only
    slip     : Signal(), in    domain sys
    bits_tx  : Signal(40), out domain tx
    bits_rx  : Signal(40), in  domain rx
    underrun : Signal(), out   domain tx: see BlocksToBits
    overrun  : Signal(), out   domain rx: a block found the FIFO full, and is lost

    From `slip` to the first block behind it pass fewer than the 32 blocks that BlockLock waits.
    """
    def __init__(self):
        self.tx_fifo  = tx_fifo  = stream.ClockDomainCrossing(block_layout(), "sys", "tx", 8)
        self.rx_fifo  = rx_fifo  = stream.ClockDomainCrossing(block_layout(), "rx", "sys", 8)
        self.sender   = sender   = ClockDomainsRenamer("tx")(BlocksToBits())
        self.receiver = receiver = ClockDomainsRenamer("rx")(BitsToBlocks())
        self.slips    = slips    = PulseSynchronizer("sys", "rx")
        self.block_tx = tx_fifo.sink
        self.block_rx = rx_fifo.source
        self.slip     = slips.i
        self.bits_tx  = sender.bits
        self.bits_rx  = receiver.bits
        self.underrun = sender.underrun
        self.overrun  = Signal()

        # # #

        self.comb += [
            tx_fifo.source.connect(sender.sink),
            receiver.source.connect(rx_fifo.sink),
            rx_fifo.source.ready.eq(1),
            receiver.slip.eq(slips.o),
            self.overrun.eq(receiver.source.valid & ~rx_fifo.sink.ready),
        ]
