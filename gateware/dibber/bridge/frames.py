"""Frames of a UART to accesses of a bus."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from dibber.interface.description import C, FRAME
from dibber.common.crc import CRC32C

# Frame Bridge -------------------------------------------------------------------------------------

class FrameBridge(LiteXModule):
    """Do what frames (`struct frame` of the interface) ask for, one at a time, and answer each.

    Nothing is executed of a frame whose CRC is wrong, and nobody is told: who asked asks again when
    the answer does not come. So that an answer that was lost does no harm either, a write that has
    the number of the frame before it is answered without being executed. Reads are executed each
    time.

    Bytes that begin no frame are passed over. A frame that stops in the middle is dropped after a
    silence, so that whoever is silent for longer than that begins anew.

    Parameters
    ----------
    silence  : cycles without a byte after which a begun frame is dropped
    patience : cycles that an access of the bus may take; then it reads all ones, and the answer
               says so
    room     : words of the longest write; a longer one is dropped

    Attributes
    ----------
    sink, source : Endpoint([("data", 8)])   from and to the UART
    bus          : wishbone.Interface, out   32 bits, addressing words
    bad          : Signal(), out             pulses for each frame that was dropped

    Cycles: 5 to take a word, 6 to send one, those of the bus, and 1 more for each access.
    """
    def __init__(self, silence, patience=2**14, room=C.FRAME_WORDS):
        self.sink   = sink   = stream.Endpoint([("data", 8)])
        self.source = source = stream.Endpoint([("data", 8)])
        self.bus    = bus    = wishbone.Interface(data_width=32, adr_width=30)
        self.bad    = Signal()

        # # #

        self.crc = crc = CRC32C()
        place  = {m.name: (8*m.offset, 8*m.size) for m in FRAME.members}
        part   = lambda word, name: word[place[name][0]:place[name][0] + place[name][1]]
        word   = Signal(32)  # being taken, or sent
        octet  = Signal(2)   # of it
        shifts = Signal()    # an octet of it comes or goes
        head   = Signal(32)
        count  = part(head, "words")[:bits_for(C.FRAME_WORDS)]
        write  = part(head, "write")[0]
        adr    = Signal(30)
        index  = Signal(max=C.FRAME_WORDS + 1)
        status = Signal()

        # Numbers ----------------------------------------------------------------------------------

        number = Signal(8)
        known  = Signal()  # there was a frame before
        done   = Signal()
        self.comb += done.eq(known & (part(head, "number") == number))

        # Words of a Write -------------------------------------------------------------------------

        # By name, where there are many, in block RAM: it is read a cycle before its word is stored.
        memory = Memory(32, room, name="block_words" if room > 16 else "frame_words")
        put    = memory.get_port(write_capable=True)
        get    = memory.get_port(mode=READ_FIRST)
        self.specials += memory, put, get
        self.comb += [
            put.adr.eq(index),
            put.dat_w.eq(word),
            get.adr.eq(index),
        ]

        # Bus --------------------------------------------------------------------------------------

        # Who answers is found out from the address, which takes long. So the end of an access is
        # seen in the cycle after it.
        waited = Signal(max=patience + 1)
        acked  = Signal()
        late   = Signal()
        ended  = Signal()
        self.comb += [
            bus.adr.eq(adr),
            bus.sel.eq(0xf),
            bus.dat_w.eq(get.dat_r),
            bus.stb.eq(bus.cyc),
            ended.eq(acked | late),
        ]
        self.sync += [
            acked.eq(bus.cyc & bus.ack),
            late.eq(bus.cyc & (waited == patience)),
            waited.eq(0),
            If(bus.cyc, waited.eq(waited + 1)),
            If(late & ~acked, status.eq(1)),
        ]

        # Silence ----------------------------------------------------------------------------------

        quiet = Signal(max=silence + 1)
        over  = Signal()
        self.comb += over.eq(quiet == silence)
        self.sync += If(sink.valid, quiet.eq(0)).Elif(~over, quiet.eq(quiet + 1))

        # Frames -----------------------------------------------------------------------------------

        self.fsm = fsm = FSM(reset_state="HUNT")

        # An octet that comes is known late. What is shifted in behind one that goes is never sent.
        self.sync += If(shifts, word.eq(Cat(word[8:], sink.data)))

        def take(then):
            """Take a word byte by byte, the first one lowest."""
            return [
                sink.ready.eq(1),
                shifts.eq(sink.valid),
                If(sink.valid,
                    NextValue(octet, octet + 1),
                    If(octet == 3, NextState(then)),
                ).Elif(over,
                    self.bad.eq(1),
                    NextState("HUNT"),
                )
            ]

        drop = [self.bad.eq(1), NextState("HUNT")]
        fsm.act("HUNT",
            sink.ready.eq(1),
            crc.load.eq(1),
            NextValue(index, 0),
            NextValue(octet, 1),
            shifts.eq(1),
            If(sink.valid & (sink.data == C.FRAME_REQUEST), NextState("TAKE-HEAD")),
        )
        fsm.act("TAKE-HEAD", *take("HEAD"))
        fsm.act("HEAD",
            crc.step.eq(1),
            NextValue(head, word),
            NextState("TAKE-ADDRESS"),
            If((part(word, "words") == 0) | (part(word, "words") > Mux(part(word, "write")[0], room, C.FRAME_WORDS)), *drop),
        )
        fsm.act("TAKE-ADDRESS", *take("ADDRESS"))
        fsm.act("ADDRESS",
            crc.step.eq(1),
            NextValue(adr, word[2:]),
            If(write, NextState("TAKE-WORD")).Else(NextState("TAKE-CRC")),
        )
        fsm.act("TAKE-WORD", *take("WORD"))
        fsm.act("WORD",
            crc.step.eq(1),
            put.we.eq(1),
            NextValue(index, index + 1),
            NextState("TAKE-WORD"),
            If(index + 1 == count, NextState("TAKE-CRC")),
        )
        fsm.act("TAKE-CRC", *take("CHECK"))
        fsm.act("CHECK",
            crc.load.eq(1),
            NextValue(index, 0),
            NextValue(known, 1),
            NextValue(number, part(head, "number")),
            NextValue(word, Cat(Constant(C.FRAME_REPLY, 8), head[8:])),
            If(write & ~done, NextState("STORED")).Else(NextState("REPLY")),
            If(~write | ~done, NextValue(status, 0)),
            If(word != crc.value,
                NextValue(known, known),
                NextValue(number, number),
                *drop
            ),
        )
        fsm.act("STORE",
            bus.cyc.eq(~ended),
            bus.we.eq(1),
            If(ended,
                NextValue(adr, adr + 1),
                NextValue(index, index + 1),
                If(index + 1 == count, NextState("REPLY")).Else(NextState("STORED")),
            )
        )
        # A slave sees the end of one access before the next, and the next word comes from memory.
        fsm.act("STORED", NextState("STORE"))
        fsm.act("REPLY",
            crc.step.eq(1),
            NextValue(index, 0),
            NextState("SEND-HEAD"),
        )

        def send(*then):
            """Send the word, then do that."""
            return [
                source.valid.eq(1),
                source.data.eq(word[:8]),
                shifts.eq(source.ready),
                If(source.ready,
                    NextValue(octet, octet + 1),
                    If(octet == 3, *then),
                )
            ]

        fsm.act("SEND-HEAD", *send(If(write, NextState("STATUS")).Else(NextState("FETCH"))))
        fsm.act("FETCH",
            bus.cyc.eq(~ended),
            If(bus.cyc, NextValue(word, bus.dat_r)),
            If(ended,
                If(~acked, NextValue(word, 2**32 - 1)),
                NextValue(adr, adr + 1),
                NextValue(index, index + 1),
                NextState("FETCHED"),
            )
        )
        fsm.act("FETCHED",
            crc.step.eq(1),
            NextState("SEND-WORD"),
        )
        fsm.act("SEND-WORD", *send(If(index == count, NextState("STATUS")).Else(NextState("FETCH"))))
        fsm.act("STATUS",
            NextValue(word, status),
            NextState("SUM"),
        )
        fsm.act("SUM",
            crc.step.eq(1),
            NextState("SEND-STATUS"),
        )
        fsm.act("SEND-STATUS", *send(NextState("CRC")))
        fsm.act("CRC",
            NextValue(word, crc.value),
            NextState("SEND-CRC"),
        )
        fsm.act("SEND-CRC", *send(NextState("HUNT")))
        self.comb += crc.seed.eq(0xffffffff), crc.word.eq(word)
