"""Frames of a UART become accesses of a bus."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from dibber.interface.description import C, FRAME
from dibber.common.crc import CRC32C

# Frame Bridge -------------------------------------------------------------------------------------

class FrameBridge(LiteXModule):
    """Execute frames (`struct frame` of the interface), one at a time, and answer each.

    A frame with a wrong CRC is dropped without an answer; the sender repeats it when no answer
    comes. An answer may also be lost. So a write with the number of the previous frame is answered,
    but not executed again. Reads are executed each time.

    Bytes outside a frame are skipped. An incomplete frame is dropped after a silence. So after this
    time the sender can start with a new frame.

    Parameters
    ----------
    silence  : cycles without a byte after which an incomplete frame is dropped
    patience : cycles that a bus access may take; then it reads all ones, and the answer tells it
    room     : words of the longest write; a longer one is dropped

    Attributes
    ----------
    sink, source : Endpoint([("data", 8)])   from and to the UART
    bus          : wishbone.Interface, out   32 bits, word addresses
    bad          : Signal(), out             one pulse for each dropped frame

    Cycles: 5 to receive a word, 6 to send one, those of the bus, and 1 more for each access.
    """
    def __init__(self, silence, patience=2**14, room=C.FRAME_WORDS):
        self.sink   = sink   = stream.Endpoint([("data", 8)])
        self.source = source = stream.Endpoint([("data", 8)])
        self.bus    = bus    = wishbone.Interface(data_width=32, adr_width=30)
        self.bad    = Signal()

        # # #

        self.crc = crc = CRC32C()
        field_bits  = {m.name: (8*m.offset, 8*m.size) for m in FRAME.members}
        frame_field = lambda word, name: word[
            field_bits[name][0]:field_bits[name][0] + field_bits[name][1]]
        word   = Signal(32)  # the word that is received or sent
        octet  = Signal(2)   # index of its byte
        shifts = Signal()    # a byte of it is received or sent
        head   = Signal(32)
        count  = frame_field(head, "words")[:bits_for(C.FRAME_WORDS)]
        write  = frame_field(head, "write")[0]
        adr    = Signal(30)
        index  = Signal(max=C.FRAME_WORDS + 1)
        status = Signal()

        # Numbers ----------------------------------------------------------------------------------

        number     = Signal(8)
        has_number = Signal()  # `number` is that of a previous frame
        is_repeat  = Signal()
        self.comb += is_repeat.eq(has_number & (frame_field(head, "number") == number))

        # Words of a Write -------------------------------------------------------------------------

        # A long buffer is in block RAM, selected by its name: a word is read one cycle before its
        # store.
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

        # The slave is selected by the address, which is slow. So the end of an access is
        # registered.
        waited    = Signal(max=patience + 1)
        acked     = Signal()
        timed_out = Signal()
        ended     = Signal()
        self.comb += [
            bus.adr.eq(adr),
            bus.sel.eq(0xf),
            bus.dat_w.eq(get.dat_r),
            bus.stb.eq(bus.cyc),
            ended.eq(acked | timed_out),
        ]
        self.sync += [
            acked.eq(bus.cyc & bus.ack),
            timed_out.eq(bus.cyc & (waited == patience)),
            waited.eq(0),
            If(bus.cyc, waited.eq(waited + 1)),
            If(timed_out & ~acked, status.eq(1)),
        ]

        # Silence ----------------------------------------------------------------------------------

        quiet_cycles  = Signal(max=silence + 1)
        frame_timeout = Signal()
        self.comb += frame_timeout.eq(quiet_cycles == silence)
        self.sync += If(sink.valid, quiet_cycles.eq(0)).Elif(~frame_timeout,
            quiet_cycles.eq(quiet_cycles + 1)
        )

        # Frames -----------------------------------------------------------------------------------

        self.fsm = fsm = FSM(reset_state="HUNT")

        # `shifts` is late for a received byte. While sending, the byte that is shifted in is not
        # used.
        self.sync += If(shifts, word.eq(Cat(word[8:], sink.data)))

        def take(then):
            """Receive a word byte by byte, the lowest byte first; then go to state `then`."""
            return [
                sink.ready.eq(1),
                shifts.eq(sink.valid),
                If(sink.valid,
                    NextValue(octet, octet + 1),
                    If(octet == 3, NextState(then)),
                ).Elif(frame_timeout,
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
            If((frame_field(word, "words") == 0) |
               (
                   frame_field(word, "words") > Mux(
                       frame_field(word, "write")[0], room, C.FRAME_WORDS)),
                *drop
            ),
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
            NextValue(has_number, 1),
            NextValue(number, frame_field(head, "number")),
            NextValue(word, Cat(Constant(C.FRAME_REPLY, 8), head[8:])),
            If(write & ~is_repeat, NextState("STORED")).Else(NextState("REPLY")),
            If(~write | ~is_repeat, NextValue(status, 0)),
            If(word != crc.value,
                NextValue(has_number, has_number),
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
        # One idle cycle: the slave must see the end of an access, and the next word is read.
        fsm.act("STORED", NextState("STORE"))
        fsm.act("REPLY",
            crc.step.eq(1),
            NextValue(index, 0),
            NextState("SEND-HEAD"),
        )

        def send(*then):
            """Send `word` byte by byte; then run the statements `then`."""
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
        fsm.act(
            "SEND-WORD", *send(If(index == count, NextState("STATUS")).Else(NextState("FETCH"))))
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
