"""The CRCs of a packet whose words come as lines; see docs/design/bonded-link.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import xor

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.common.crc import block_seed, crc32c_zeros
from dibber.layouts import line_layout

def advanced(value, words):
    """The CRC-32C register after `words` words of zeros, as an expression; linear in `value`."""
    columns = [crc32c_zeros(1 << i, words) for i in range(32)]
    return Cat(*[
        reduce(xor, [value[i] for i in range(32) if columns[i] >> bit & 1]) for bit in range(32)])

class LineCRC(LiteXModule):
    """Compute the CRCs of packets, a line a cycle: the same CRCs as PacketSealer, which takes a
    word a cycle.

    The first `seal` of a packet ends its header. The CRC of a block starts from the header's CRC,
    XOR the block's number, from 0 on. Blocks and header begin at a line's low end, so no line belongs to two.

    The register is linear in itself and in the line. So the line's part is computed ahead of it in
    a pipeline, and the loop has only the 32 bits of the register. For this a line that is not full
    is moved to its high end: zeros before its first word add nothing to its part. The register
    advances by its own number of words.

    Example at 64 bits, header A B C, no payload: lines (A, B), then (C) with `seal` and `last`.
    cycle: 0 sink (A, B) · 1 sink (C) · 5 source (C), `crc` of A B C

    Parameters
    ----------
    data_width : 64, 128 or 256

    Attributes
    ----------
    sink   : Endpoint(line_layout(data_width)), in
    source : Endpoint(line_layout(data_width) + [("crc", 32)]), out   the same lines; `crc` counts
             with `seal`, in the form of the wire

    Cycles: 4; a line a cycle. The pipeline stands while a line at its end is not taken.
    """
    def __init__(self, data_width):
        count = data_width//32
        self.sink   = sink   = stream.Endpoint(line_layout(data_width))
        self.source = source = stream.Endpoint(line_layout(data_width) + [("crc", 32)])

        # # #

        step = Signal()
        self.comb += [
            step.eq(~source.valid | source.ready),
            sink.ready.eq(step),
        ]
        stages = [stream.Endpoint(line_layout(data_width)) for _ in range(3)]
        for before, stage in zip([sink, *stages], [*stages, source]):
            self.sync += If(step,
                stage.valid.eq(before.valid),
                stage.first.eq(before.first),
                stage.last.eq(before.last),
                stage.data.eq(before.data),
                stage.words.eq(before.words),
                stage.seal.eq(before.seal),
                stage.bad.eq(before.bad),
            )

        # The line's part --------------------------------------------------------------------------
        # One stage moves the line, one sums each pair of words, and one sums the pairs.
        moved = Signal(data_width)
        pairs = [Signal(32, name=f"pair_{n}") for n in range(0, count, 2)]
        part  = Signal(32)
        terms = [advanced(moved[32*n:32*(n + 1)], count - n) for n in range(count)]
        self.sync += If(step,
            Case(sink.words, {
                words: moved.eq(sink.data << 32*(count - words)) for words in range(1, count + 1)
            } | {"default": moved.eq(0)}),
            *[pair.eq(terms[2*n] ^ terms[2*n + 1]) for n, pair in enumerate(pairs)],
            part.eq(reduce(xor, pairs))
        )

        # The register -----------------------------------------------------------------------------
        line       = stages[-1]
        state      = Signal(32, reset=0xffffffff)
        own        = Signal(32)  # the register after as many words of zeros as the line has words
        following  = Signal(32)
        crc        = Signal(32)
        in_payload = Signal()
        header_crc = Signal(32)
        # Number of the block that follows the next seal.
        block      = Signal(max=C.PACKET_PAYLOAD//C.BLOCK_BYTES + 1)
        self.comb += [
            Case(line.words, {
                words: own.eq(advanced(state, words)) for words in range(1, count + 1)
            } | {"default": own.eq(state)}),
            following.eq(own ^ part),
            crc.eq(~following),
        ]
        self.sync += If(step,
            source.crc.eq(crc),
            If(line.valid,
                state.eq(following),
                If(line.seal,
                    state.eq(block_seed(Mux(in_payload, header_crc, crc), block)),
                    block.eq(block + 1),
                    in_payload.eq(1),
                    If(~in_payload, header_crc.eq(crc))
                ),
                If(line.last,
                    state.eq(0xffffffff),
                    block.eq(0),
                    in_payload.eq(0)
                )
            )
        )
