"""EXPRESS packets, made from a slot alone: inline puts and messages. The lowest-latency path."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, CHANNEL, COMMAND, FLAG, INLINE, LANE, PACKET, PACKET_FLAG
from dibber.layouts import express_layout, slot_port
from dibber.packet.flow_table import flow_layout, flow_reset_layout, passed_layout
from dibber.packet.header import flag, header_word, header_words
from dibber.packet.line_seal import LineSealer
from dibber.packet.question import Asker
from dibber.packet.seal import PacketSealer, UnderWay

# Comparison ---------------------------------------------------------------------------------------

def below(value, limit):
    """`value < limit` as an expression, for few bits; a carry chain would be slower here."""
    less = Constant(0, 1)
    for n in range(len(limit)):
        bit  = value[n] if n < len(value) else Constant(0, 1)
        less = Mux(bit ^ limit[n], limit[n], less)
    return less

# Fetch --------------------------------------------------------------------------------------------

class SlotFetch(LiteXModule):
    """Read the slots of two packets ahead. Each line is read once, so its owner may change it
    meanwhile.

    Lines come in order; of an inline put only the needed ones are read. A packet appears at
    `source` at once, before its lines are here.

    Parameters
    ----------
    data_width : bits of a line

    Attributes
    ----------
    sink     : Endpoint(express_layout), in
    source   : Endpoint(express_layout), out   take it when no more words are needed, and not before
               it is `complete`
    slot     : slot_port(data_width), master
    dword    : Signal(5), in     index of a 32-bit word of the slot
    here     : Signal(), out     this word has come
    word     : Signal(32), out   the word, in the same cycle
    complete : Signal(), out     all needed lines of the packet have come

    Cycles: 0 from `sink` to `source`; 4 to the first line if the port grants in the second cycle,
    then one line a cycle.
    """
    def __init__(self, data_width):
        self.slot     = slot = slot_port(data_width)
        self.dword    = dword = Signal(max=C.SLOT_BYTES//4)
        self.here     = Signal()
        self.word     = Signal(32)
        self.complete = Signal()

        # # #

        width = data_width//8
        lanes = data_width//32
        lines = C.SLOT_BYTES//width

        # Lines that a put needs: the one with the flags, from notice to offset, the data.
        notice = COMMAND["notice"].offset//width   # 0 at 256 bits, where it is beside the flags
        offset = (INLINE["offset"].offset + INLINE["offset"].size - 1)//width
        data   = INLINE["data"].offset//width

        self.sink   = request = stream.Endpoint(express_layout())
        self.source = source  = stream.Endpoint(express_layout())

        # Request. An entry appears at the source when its first line is requested. Each of the two
        # entries has a bank of the memory. As registers, two entries are smaller than LUT memory.
        second   = stream.Endpoint(express_layout())
        in_pipe  = Signal()
        enter    = Signal()
        moves    = Signal()
        fill     = Signal()
        line     = Signal(max=lines)
        last     = Signal(max=lines)
        final    = Signal()
        accepted = Signal()
        self.comb += [
            enter.eq(request.valid & ~in_pipe & ~second.valid),
            moves.eq(~source.valid | source.ready),
            last.eq(data - 1 + (request.length + width - 1)[log2_int(width):]),
            If(request.length == 0, last.eq(offset)),
            If(request.message, last.eq(lines - 1)),
            final.eq(line == last),
            slot.valid.eq(request.valid & (in_pipe | ~second.valid)),
            slot.adr.eq(
                Cat(line, (request.endpoint*C.SLOTS + request.slot)[:16 - log2_int(lines)])),
            accepted.eq(slot.valid & slot.ready),
            request.ready.eq(accepted & final),
        ]
        self.sync += [
            If(enter, in_pipe.eq(1)),
            If(~second.valid, second.payload.eq(request.payload)),
            second.valid.eq(~moves & (second.valid | enter)),
            If(moves,
                source.valid.eq(second.valid | enter),
                source.payload.eq(request.payload),
                If(second.valid, source.payload.eq(second.payload)),
            ),
            If(accepted,
                line.eq(line + 1),
                If(~request.message,
                    If(line == 0, line.eq(max(notice, 1))),
                    If(line == offset, line.eq(data)),
                )
            ),
            If(request.ready,
                in_pipe.eq(0),
                fill.eq(~fill),
                line.eq(0),
            ),
        ]

        # Store lines as they return two cycles later, and count them.
        store = Memory(data_width, 2*lines)
        write = store.get_port(write_capable=True)
        read  = store.get_port(async_read=True)
        self.specials += store, write, read
        coming = [
            Record([("valid", 1), ("line", len(line)), ("bank", 1), ("final", 1)])
            for _ in range(2)]
        returned = coming[1]
        take     = Signal()
        # Number of the first lines that are here; one counter a bank.
        lines_here    = [Signal(max=lines + 1, name=f"count{n}") for n in range(2)]
        bank_complete = Signal(2)
        self.comb += [
            write.adr.eq(Cat(returned.line, returned.bank)),
            write.dat_w.eq(slot.dat_r),
            write.we.eq(returned.valid),
            read.adr.eq(Cat(dword[log2_int(lanes):], take)),
            Case(
                dword[:log2_int(lanes)],
                {n: self.word.eq(read.dat_r[32*n:32*n + 32]) for n in range(lanes)}),
            self.here.eq(below(dword[log2_int(lanes):], Mux(take, lines_here[1], lines_here[0]))),
            self.complete.eq(Mux(take, bank_complete[1], bank_complete[0])),
        ]
        self.sync += [
            coming[0].raw_bits().eq(Cat(accepted, line, fill, final)),
            returned.eq(coming[0]),
            If(source.valid & source.ready, take.eq(~take)),
            [[
                If(returned.valid & (returned.bank == n),
                    lines_here[n].eq(returned.line + 1),
                    bank_complete[n].eq(returned.final),
                ),
                If(source.valid & source.ready & (take == n),
                    lines_here[n].eq(0),
                    bank_complete[n].eq(0),
                ),
            ] for n in range(2)],
        ]

# Express Transmitter ------------------------------------------------------------------------------

class ExpressTransmitter(LiteXModule):
    """Inline puts and messages, from the control program's order to the link.

    An inline put is a deposit without levels. Key, offset and notice come from the slot, which a
    process may change at any time; the length comes from the order. A message is the slot as it is,
    and its word. The first word has only the two nodes. It leaves as soon as the packet passes its
    gate, while the lines are fetched. Lines come faster than words leave; a line that waits for
    other readers of the slots delays the packet by as many cycles.

    Parameters
    ----------
    data_width : bits of the slots' lines
    lines      : the source has lines with CRCs for a bonded port, in place of words

    Attributes
    ----------
    sink    : Endpoint(express_layout), in
    slot    : slot_port(data_width), master
    node_id : Signal(16), in
    flow    : Endpoint(flow_layout), out              to the lane's gate
    passed  : Endpoint(passed_layout), in             from the lane's gate
    reset   : Record(flow_reset_layout), in
    source  : Endpoint(word_layout), out; with `lines` Endpoint(sealed_line_layout())
    sent      : Signal(), out  one cycle when a whole packet has left
    withdrawn : Signal(), out  one cycle when a packet is dropped because it is stale
    word_sent : Signal, out    number of payload words that leave

    Cycles: 4 from `sink` to the first word; the second word may come 2 cycles after the first one,
    while the link sends START. Otherwise 1 a word, if the slot port grants in the second cycle; 1
    between packets. So the link sends END and START of successive packets without a pause. With
    `lines`, 7 between packets, which is less than the rows of a link leave.
    """
    def __init__(self, data_width, lines=False):
        self.node_id   = Signal(16)
        self.flow      = flow   = stream.Endpoint(flow_layout())
        self.passed    = passed = stream.Endpoint(passed_layout())
        self.reset     = Record(flow_reset_layout())
        self.withdrawn = Signal()

        # # #

        self.fetch     = fetch     = SlotFetch(data_width)
        self.seal      = seal      = LineSealer() if lines else PacketSealer(CHANNEL.EXPRESS)
        self.under_way = under_way = UnderWay(LANE.EXPRESS)
        self.asker     = asker     = Asker(PACKET_FLAG.EXPRESS)
        self.sink      = fetch.sink
        self.slot      = fetch.slot
        self.source    = seal.source
        self.sent      = seal.sent
        self.word_sent = seal.word_sent
        entry          = fetch.source
        self.comb += [
            under_way.reset.eq(self.reset),
            under_way.node.eq(entry.node),
            under_way.incarnation.eq(entry.incarnation),
            under_way.ended.eq(seal.ended),
            seal.dead.eq(under_way.dead),
            asker.node_id.eq(self.node_id),
            asker.node.eq(entry.node),
            asker.token.eq(passed.token),
            entry.connect(flow, keep={"node", "incarnation", "epoch", "psn"}),
        ]

        # Words: the header, then the three words of the notice.
        dword = lambda struct, name: struct[name].offset//4
        byte  = lambda value, name: value[
            8*(COMMAND[name].offset % 4):8*(COMMAND[name].offset % 4 + 1)]
        command_flag = lambda name: byte(fetch.word, "flags")[getattr(FLAG, name).bit_length() - 1]
        notice       = C.HEADER_WORDS
        assert dword(COMMAND, "flags") == dword(COMMAND, "endpoint")
        dword_of = {
            header_word("flags"):       dword(COMMAND, "flags"),
            header_word("key"):         dword(INLINE, "key"),
            header_word("offset_low"):  dword(INLINE, "offset"),
            header_word("offset_high"): dword(INLINE, "offset") + 1,
            notice:                     dword(COMMAND, "notice"),
            notice + 2:                 dword(COMMAND, "endpoint"),
        }
        assert header_word("target") == header_word("source") == 0 and 0 not in dword_of
        position = Signal(max=notice + 3)
        # Index of the slot's word for `position`, or of the payload word.
        slot_word    = Signal(max=C.SLOT_BYTES//4)
        has_notice   = Signal()  # this put has a notice; valid from the second word on
        wants_notice = Signal()
        flags        = Signal(8)
        number       = Signal(8)  # incarnation as it is on the link
        own, assign = header_words(
            target=entry.node, source=self.node_id, flags=flags, incarnation=number, psn=entry.psn,
            kind=Mux(entry.message, PACKET.MESSAGE, PACKET.DEPOSIT),
            key=Mux(entry.message, entry.word, fetch.word),
            offset_low=Mux(entry.message, 0, fetch.word),
            offset_high=Mux(entry.message, 0, fetch.word[:16]),
            length=Mux(entry.message, C.MESSAGE_BYTES, entry.length))
        self.comb += [
            assign,
            wants_notice.eq(command_flag("NOTICE") & ~entry.message),
            flags.eq(PACKET_FLAG.EXPRESS | PACKET_FLAG.LAST),
            flag(flags, "FIRST").eq(entry.psn == 0),
            flag(flags, "NOTICE").eq(wants_notice),
            flag(flags, "INTERRUPT").eq(wants_notice & command_flag("INTERRUPT")),
        ]

        body       = seal.sink
        words_left = Signal(max=C.SLOT_BYTES//4 + 1)   # payload words
        last_bytes = Signal(2)                         # bytes of the last one, 0 for 4
        final      = Signal()
        taken      = Signal()
        self.comb += [
            final.eq(words_left == 1),
            taken.eq(body.valid & body.ready),
            fetch.dword.eq(slot_word),
        ]
        # The packet's last word is in its last line or after it. So it is here if all lines are
        # (`complete`), which is known earlier.
        packet_ends = body.ready & body.last & fetch.complete
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            flow.valid.eq(entry.valid),
            NextValue(position, 0),
            NextValue(slot_word, 0),
            NextValue(words_left, Mux(entry.message, C.MESSAGE_BYTES//4, (entry.length + 3)[2:])),
            NextValue(last_bytes, Mux(entry.message, 0, entry.length[:2])),
            NextValue(number, passed.number),
            # `passed.valid` is late in the cycle, so these values are loaded without it.
            passed.ready.eq(Mux(passed.stale, fetch.complete, ~under_way.busy)),
            self.withdrawn.eq(passed.valid & passed.stale & fetch.complete),
            entry.ready.eq(self.withdrawn),
            under_way.begin.eq(passed.valid & ~passed.stale & ~under_way.busy),
            asker.begin.eq(under_way.begin & passed.question),
            # The sealer is empty while no packet is under way, so it takes this word at once.
            body.data.eq(own[0]),
            body.valid.eq(under_way.begin & ~passed.question),
            If(under_way.begin,
                NextValue(position, 1),
                NextState("HEADER"),
                If(passed.question, NextState("ASK"))
            )
        )
        fsm.act("ASK",
            # The packet stays at its gate.
            flow.valid.eq(1),
            asker.source.connect(body),
            If(taken & body.last, NextState("IDLE"))
        )
        fsm.act("HEADER",
            Case(position, {
                **{p: body.data.eq(word) for p, word in enumerate(own) if p > 0},
                notice:     body.data.eq(fetch.word),
                notice + 1: body.data.eq(entry.length),
                notice + 2: body.data.eq(byte(fetch.word, "endpoint")),
            }),
            body.valid.eq(fetch.here),
            body.seal.eq((position == notice + 2) | ((position == notice - 1) & ~has_notice)),
            body.last.eq(body.seal & (words_left == 0)),
            entry.ready.eq(packet_ends),
            If(taken,
                NextValue(position, position + 1),
                NextValue(slot_word, 0),
                If(~entry.message,
                    Case(position, {p - 1: NextValue(slot_word, d) for p, d in dword_of.items()}),
                    If(body.seal, NextValue(slot_word, dword(INLINE, "data")))
                ),
                If(position == header_word("flags"), NextValue(has_notice, wants_notice)),
                If(body.seal, NextState("PAYLOAD")),
                If(body.last, NextState("IDLE"))
            )
        )
        fsm.act("PAYLOAD",
            body.valid.eq(fetch.here),
            body.data.eq(fetch.word),
            # Bytes after the last one are sent as 0: they must not leave the card.
            If(final, Case(last_bytes, {
                0: [],
                **{n: body.data[8*n:].eq(0) for n in (1, 2, 3)}})),
            body.seal.eq(final),
            body.last.eq(final),
            entry.ready.eq(packet_ends),
            If(taken,
                NextValue(slot_word, slot_word + 1),
                NextValue(words_left, words_left - 1),
                If(final, NextState("IDLE"))
            )
        )
