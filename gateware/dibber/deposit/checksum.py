"""The Internet checksum (RFC 1071) of a transfer's bytes, computed on their way to the packets."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import count_bits

# Checksum -----------------------------------------------------------------------------------------

class Checksum(LiteXModule):
    """Checksums of runs of lines, by RFC 1071: the complement of the ones' complement sum of 16-bit
    words.

    The first byte of a pair is the high byte of its word; an odd last byte is followed by a zero.
    Lines are added little-endian, and the bytes of the sum are swapped at the end (RFC 1071, 2
    (B)). A carry is added with the next line; the last carries take two steps at the end.

    Example: bytes 01 02 03: words 0x0102 and 0x0300, sum 0x0402, checksum 0xfbfd.

    Parameters
    ----------
    data_width : 64, 128 or 256
    depth      : checksums that may wait at `source`; the feeder must not exceed it

    Attributes
    ----------
    valid  : Signal(), in     a line; only its `bytes` low lanes count, which are all unless `last`
    last   : Signal(), in     the last line of its run
    dat    : Signal(data_width), in
    bytes  : Signal(count_bits(data_width)), in
    source : Endpoint([("checksum", 16)]), out    one a run

    Cycles: one line a cycle; from the last line to `source` 8 at 64 bits, 9 at 128,
    10 at 256.
    """
    def __init__(self, data_width, depth=4):
        self.valid  = Signal()
        self.last   = Signal()
        self.dat    = Signal(data_width)
        self.bytes  = Signal(count_bits(data_width))
        self.source = source = stream.Endpoint([("checksum", 16)])

        # # #

        # Lanes above `bytes` count as zero.
        terms = [Signal(16, name=f"word{n}") for n in range(data_width//16)]
        self.sync += [
            term[8*i:8*i + 8].eq(Mux(self.bytes > 2*n + i, self.dat[16*n + 8*i:16*n + 8*i + 8], 0))
            for n, term in enumerate(terms) for i in range(2)]

        # Adder tree: one level a cycle.
        valid, last = self.later(self.valid, self.last)
        while len(terms) > 1:
            sums = [Signal(len(terms[0]) + 1) for _ in terms[::2]]
            self.sync += [total.eq(a + b) for total, a, b in zip(sums, terms[::2], terms[1::2])]
            valid, last = self.later(valid, last)
            terms = sums
        line = Signal(17)
        self.sync += line.eq(terms[0][:16] + terms[0][16:])
        valid, last = self.later(valid, last)

        # Running sum: bits 17:16 are carries that the next step adds.
        total      = Signal(18)
        run_begins = Signal(reset=1)
        self.sync += If(valid,
            run_begins.eq(last),
            total.eq(line + Mux(run_begins, 0, total[:16] + total[16:])),
        )
        ended, _ = self.later(valid & last, 0)

        # Last carries, then the bytes are swapped.
        carry_sum = Signal(17)
        result    = Signal(16)
        self.comb += result.eq(~(carry_sum[:16] + carry_sum[16]))
        self.sync += carry_sum.eq(total[:16] + total[16:])
        ended, _ = self.later(ended, 0)
        self.queue = queue = stream.SyncFIFO([("checksum", 16)], depth)
        self.comb += [
            queue.sink.valid.eq(ended),
            queue.sink.last.eq(1),
            queue.sink.checksum.eq(Cat(result[8:], result[:8])),
            queue.source.connect(source),
        ]

    def later(self, *signals):
        """The signals, a cycle later."""
        result = [Signal() for _ in signals]
        self.sync += [after.eq(before) for after, before in zip(result, signals)]
        return result
