"""Which of a node's packets are on their way, and which echo belongs to which."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.fabric.ring.send import SLOT_BITS
from dibber.fabric.ring.transit import answer_layout
from dibber.fabric.ring.words import ADDRESS_BITS, GRANT, LOST, NUMBER_BITS, STATUS_BITS

# Packets of a node that are SENT at once, of all channels: half of the numbers, so that an echo of
# an earlier packet is not taken for one of a later packet.
OUTSTANDING = 16

# Cycles without an answer after which the oldest packet is lost.
SILENCE_CYCLES = 65536

class RingNumbers(LiteXModule):
    """Number the packets that leave, and find the packet of each answer.

    A ring is a FIFO, and an echo takes the place of its packet. So answers come in the order of the
    packets, and one with a later number shows that those before it were lost. These are reported
    one a cycle, before the answer.

    Parameters
    ----------
    silence : cycles, as SILENCE_CYCLES

    Attributes
    ----------
    free    : Signal(), out   another packet may leave
    number  : Signal(NUMBER_BITS), out   its number
    begin   : Signal(), in    it leaves
    channel : Signal(2), in   with `begin`
    slot    : Signal(SLOT_BITS), in   with `begin`
    answer  : Record(answer_layout) and `valid`, in
    up      : Signal(), in    when it falls, all packets that have left are lost
    event   : Record, out     `valid`, `channel`, `status`, `slot` (of an echo), `source` (of a
              grant)
    stale   : Signal(), out   pulse: an echo of no packet

    Cycles: 1 from `answer` to `event`.
    """
    def __init__(self, silence=SILENCE_CYCLES):
        self.free    = Signal()
        self.number  = number = Signal(NUMBER_BITS)
        self.begin   = Signal()
        self.channel = Signal(2)
        self.slot    = Signal(SLOT_BITS)
        self.answer  = answer = Record([("valid", 1)] + answer_layout())
        self.up      = Signal()
        self.event   = event = Record([
            ("valid", 1), ("channel", 2), ("status", STATUS_BITS), ("slot", SLOT_BITS),
            ("source", ADDRESS_BITS)])
        self.stale   = Signal()

        # # #

        self.fifo = fifo = stream.SyncFIFO(answer_layout(), 8)
        head   = fifo.source
        oldest = Signal(NUMBER_BITS)
        count  = Signal(NUMBER_BITS)
        ahead  = Signal(NUMBER_BITS)  # packets before that of the answer
        places = Memory(2 + SLOT_BITS, OUTSTANDING, name="ring_numbers")
        writer = places.get_port(write_capable=True)
        reader = places.get_port(async_read=True)
        self.specials += places, writer, reader
        timer   = Signal(max=silence)
        silent  = Signal()
        is_echo = Signal()
        known   = Signal()
        ends    = Signal()  # the oldest packet's end is reported
        self.comb += [
            [getattr(fifo.sink, name).eq(getattr(answer, name)) for name, _ in answer_layout()],
            fifo.sink.valid.eq(answer.valid & self.up),
            count.eq(number - oldest),
            self.free.eq(count < OUTSTANDING),
            writer.adr.eq(number),
            writer.dat_w.eq(Cat(self.channel, self.slot)),
            writer.we.eq(self.begin),
            reader.adr.eq(oldest),
            ahead.eq(head.number - oldest),
            silent.eq(timer == silence - 1),
            is_echo.eq(head.valid & (head.status != GRANT)),
            known.eq(ahead < count),
            ends.eq((count != 0) & (~self.up | (is_echo & known) | (silent & ~head.valid))),
            event.valid.eq(ends | (self.up & head.valid & (head.status == GRANT))),
            event.source.eq(head.source),
            event.channel.eq(reader.dat_r[:2]),
            event.slot.eq(reader.dat_r[2:]),
            event.status.eq(LOST),
            If(self.up & head.valid & ((head.status == GRANT) | (ahead == 0)),
                event.status.eq(head.status)
            ),
            If(~ends, event.channel.eq(head.channel)),
            head.ready.eq(~self.up | ~is_echo | ~known | (ahead == 0)),
            self.stale.eq(self.up & is_echo & ~known),
        ]
        self.sync += [
            If(self.begin, number.eq(number + 1)),
            If(ends, oldest.eq(oldest + 1)),
            timer.eq(timer + 1),
            If((count == 0) | head.valid, timer.eq(0)),
        ]
