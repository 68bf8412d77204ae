"""The Internet checksum of a transfer's bytes, on their way to the packets."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Checksum -----------------------------------------------------------------------------------------

class Checksum(LiteXModule):
    """Checksums of runs of lines, by RFC 1071: the complement of the ones' complement sum of 16-bit
    words.

    The first byte of a pair is the word's high one, an odd last byte is followed by a zero. Lines
    are added little-endian and the sum's bytes are swapped at the end (RFC 1071, 2 (B)); carries
    are added where the next line is added anyway, and last of all in two steps of their own.

    Parameters
    ----------
    data_width : 64 or 128
    depth      : checksums that may wait; whoever feeds this sees to it that there are no more

    Attributes
    ----------
    valid  : Signal(), in     a line, of which `bytes` count (in the low lanes); all of it unless
             `last`
    last   : Signal(), in     its run ends
    dat    : Signal(data_width), in
    bytes  : Signal(5), in
    source : Endpoint([("checksum", 16)]), out    one a run

    Cycles: a line a cycle; 8 at 64 bits, 9 at 128 from the last line to `source`.
    """
    def __init__(self, data_width, depth=4):
        self.valid  = Signal()
        self.last   = Signal()
        self.dat    = Signal(data_width)
        self.bytes  = Signal(5)
        self.source = source = stream.Endpoint([("checksum", 16)])

        # # #

        # Bytes that do not count are zeros.
        terms = [Signal(16, name=f"word{n}") for n in range(data_width//16)]
        self.sync += [term[8*i:8*i + 8].eq(Mux(self.bytes > 2*n + i, self.dat[16*n + 8*i:16*n + 8*i + 8], 0))
            for n, term in enumerate(terms) for i in range(2)]

        # Tree: a level a cycle.
        valid, last = self.later(self.valid, self.last)
        while len(terms) > 1:
            sums = [Signal(len(terms[0]) + 1) for _ in terms[::2]]
            self.sync += [total.eq(a + b) for total, a, b in zip(sums, terms[::2], terms[1::2])]
            valid, last = self.later(valid, last)
            terms = sums
        line = Signal(17)
        self.sync += line.eq(terms[0][:16] + terms[0][16:])
        valid, last = self.later(valid, last)

        # Run: bits 17:16 of the sum are carries that are still to be added.
        total = Signal(18)
        begin = Signal(reset=1)
        self.sync += If(valid,
            begin.eq(last),
            total.eq(line + Mux(begin, 0, total[:16] + total[16:])),
        )
        ended, _ = self.later(valid & last, 0)

        # Carries, then the bytes in their order.
        once   = Signal(17)
        twice  = Signal(16)
        self.comb += twice.eq(~(once[:16] + once[16]))
        self.sync += once.eq(total[:16] + total[16:])
        ended, _ = self.later(ended, 0)
        self.queue = queue = stream.SyncFIFO([("checksum", 16)], depth)
        self.comb += [
            queue.sink.valid.eq(ended),
            queue.sink.last.eq(1),
            queue.sink.checksum.eq(Cat(twice[8:], twice[:8])),
            queue.source.connect(source),
        ]

    def later(self, *signals):
        """The signals, a cycle later."""
        result = [Signal() for _ in signals]
        self.sync += [after.eq(before) for after, before in zip(result, signals)]
        return result
