"""Where blocks begin in a row of bits, and how many are damaged: IEEE 802.3-2018, 49.2.13."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import block_layout

# IEEE 802.3-2018, 49.2.13.2.4: headers of a test, and damaged ones that end the lock.
TEST_BLOCKS = 64
BAD_BLOCKS  = 16

# IEEE 802.3-2018, 49.2.13.2.3: 125 µs, in blocks of 6.4 ns.
WINDOW_BLOCKS = 19531

# UltraScale Architecture GTH Transceivers (UG576), RX gearbox: a slip takes up to 32 cycles.
SLIP_BLOCKS = 32

class BlockLock(LiteXModule):
    """Figures 49-14 and 49-15: search the place of the headers, and count damaged ones.

    A header is good if its two bits differ. 64 good ones in succession are a lock. Before, each
    damaged one moves the place by a bit. 16 damaged ones of 64 end the lock.

    Parameters
    ----------
    window : blocks in which 16 damaged headers are too many
    wait   : blocks after `slip` that are not looked at

    Attributes
    ----------
    sink   : Endpoint(block_layout), in   without backpressure: `ready` is ignored
    slip   : Signal(), out    one cycle: the next blocks begin a bit later
    locked : Signal(), out
    high_errors : Signal(), out   16 headers or more were damaged in a window
    up     : Signal(), out    locked, and not too many errors
    """
    def __init__(self, window=WINDOW_BLOCKS, wait=SLIP_BLOCKS):
        self.sink   = sink = stream.Endpoint(block_layout())
        self.slip   = Signal()
        self.locked = locked = Signal()
        self.high_errors = high_errors = Signal()
        self.up     = Signal()

        # # #

        good    = Signal()
        looks   = Signal()
        pause   = Signal(max=wait + 1)
        count   = Signal(max=TEST_BLOCKS)
        invalid = Signal(max=BAD_BLOCKS)
        slips   = Signal()
        passed  = Signal(max=window)
        errors  = Signal(max=BAD_BLOCKS + 1)
        total   = Signal(max=BAD_BLOCKS + 2)
        self.comb += [
            good.eq(sink.header[0] ^ sink.header[1]),
            looks.eq(sink.valid & (pause == 0)),
            slips.eq(looks & ~good & (~locked | (invalid == BAD_BLOCKS - 1))),
            total.eq(errors + (good == 0)),
            self.up.eq(locked & ~high_errors),
        ]
        self.sync += [
            self.slip.eq(slips),
            If(sink.valid & (pause != 0), pause.eq(pause - 1)),
            If(looks,
                count.eq(count + 1),
                If(~good, invalid.eq(invalid + 1)),
                If(count == TEST_BLOCKS - 1,
                    count.eq(0),
                    invalid.eq(0),
                    If(good & (invalid == 0), locked.eq(1))
                ),
            ),
            If(slips,
                locked.eq(0),
                count.eq(0),
                invalid.eq(0),
                pause.eq(wait)
            ),

            # Errors in a window -------------------------------------------------------------------
            If(sink.valid,
                passed.eq(passed + 1),
                If(errors != BAD_BLOCKS, errors.eq(total)),
                If((errors == BAD_BLOCKS) | (total == BAD_BLOCKS), high_errors.eq(1)),
                If(passed == window - 1,
                    passed.eq(0),
                    errors.eq(0),
                    If((errors != BAD_BLOCKS) & (total != BAD_BLOCKS), high_errors.eq(0))
                ),
            ),
            If(~locked,
                passed.eq(0),
                errors.eq(0),
                high_errors.eq(0)
            ),
        ]
