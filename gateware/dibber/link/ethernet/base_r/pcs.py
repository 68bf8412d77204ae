"""The coding layer of 10GBASE-R: IEEE 802.3-2018, clause 49."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.link.ethernet.base_r.codec import BlockDecoder, BlockEncoder
from dibber.link.ethernet.base_r.lock import SLIP_BLOCKS, WINDOW_BLOCKS, BlockLock
from dibber.link.scrambler import RowDescrambler, RowScrambler

class BaseRPCS(LiteXModule):
    """Between the words of a MAC and the blocks of a transceiver with a gearbox for 64b/66b.

        tx ─▶ encoder ─▶ scrambler ─▶ block_tx
        rx ◀─ decoder ◀─ descrambler ◀─ block_rx ─▶ lock ─▶ slip

    A row of one lane is a block, so the scrambler is that of the bonded link.

    Parameters
    ----------
    window, wait : see BlockLock

    Attributes
    ----------
    tx       : Endpoint(xgmii_layout), in    `ready` is the pace of the transceiver
    rx       : Endpoint(xgmii_layout), out   without backpressure
    block_tx : Endpoint(row_layout(1)), out  scrambled
    block_rx : Endpoint(row_layout(1)), in   scrambled; without backpressure
    slip     : Signal(), out   the transceiver moves the beginning of blocks by a bit
    up       : Signal(), out   blocks are found, and few are damaged
    high_errors : Signal(), out

    Cycles: 2 from `tx` to `block_tx`; 1 and two blocks from `block_rx` to `rx`.
    """
    def __init__(self, window=WINDOW_BLOCKS, wait=SLIP_BLOCKS):
        self.encoder     = encoder     = BlockEncoder()
        self.decoder     = decoder     = BlockDecoder()
        self.scrambler   = scrambler   = RowScrambler(lanes=1)
        self.descrambler = descrambler = RowDescrambler(lanes=1)
        self.lock        = lock        = BlockLock(window, wait)
        self.tx          = encoder.sink
        self.rx          = decoder.source
        self.block_tx    = scrambler.source
        self.block_rx    = descrambler.sink
        self.slip        = lock.slip
        self.up          = lock.up
        self.high_errors = lock.high_errors

        # # #

        self.comb += [
            encoder.source.connect(scrambler.sink),
            self.block_rx.connect(lock.sink, omit={"ready"}),
            descrambler.source.connect(decoder.sink, omit={"ready"}),
            decoder.up.eq(lock.up),
        ]
