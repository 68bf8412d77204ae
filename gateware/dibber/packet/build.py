"""Headers of BULK packets, built from the send job and the command slot."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, COMMAND, PACKET, WALK
from dibber.layouts import send_layout, slot_port
from dibber.packet.flow_table import flow_layout
from dibber.packet.header import BLOCK, LEVEL, NOTICE, SKIP
from dibber.packet.header import flag, has_level, header_word, header_words, position_after

def _dword(*path):
    """Index of the 32-bit word of a command slot that holds a member."""
    offset = COMMAND[path[0]].offset + (WALK[path[1]].offset if len(path) > 1 else 0)
    return offset//4

class HeaderBuilder(LiteXModule):
    """Build packet headers, one after the other, ahead of the sender.

    The slot's lines are fetched in the order in which the header needs them, while its first words
    already leave. `flow` is sent when the last line is here. From then on a header word comes each
    cycle, so that a sender that starts at `flow` sees no bubble. The target's walk of an `indirect`
    packet (a RESPONSE) comes from its slot of the INBOX.

    Parameters
    ----------
    data_width : bits of a line of the slots

    Attributes
    ----------
    sink    : Endpoint(send_layout), in      the members PacketQueue.LATE may come 2 cycles after
              `valid`
    node_id : Signal(16), in
    slot    : slot_port(data_width), master
    words   : Endpoint([("data", 32)]), out  header and extension without CRC and incarnation;
              `last` on the last word
    flow    : Endpoint(flow_layout), out     one for each packet, in order, to its gate

    Cycles: 1 a word, 2 between packets; from `sink` to `flow` 4, plus 1 for each line after the
    first.
    """
    def __init__(self, data_width):
        self.sink    = sink = stream.Endpoint(send_layout())
        self.node_id = Signal(16)
        self.slot    = slot = slot_port(data_width)
        self.words   = words = stream.Endpoint([("data", 32)])
        self.flow    = flow  = stream.Endpoint(flow_layout())

        # # #

        lanes = data_width//32  # 32-bit words in a line
        lines = C.SLOT_BYTES*8//data_width

        # The word of the slot for each position of header and extension.
        key, offset_low, offset_high = map(header_word, ("key", "offset_low", "offset_high"))
        offset   = _dword("target", "offset")
        dword_of = {
            key:         _dword("target", "key"),
            offset_low:  offset,
            offset_high: offset + 1,
            BLOCK:       _dword("target", "block"),
            NOTICE:      _dword("notice"),
            NOTICE + 1:  _dword("length"),
            NOTICE + 2:  _dword("endpoint"),
        }
        for level in range(C.LEVELS):
            dword_of[LEVEL + 3*level]     = _dword("target", "stride") + 2*level
            dword_of[LEVEL + 3*level + 1] = _dword("target", "stride") + 2*level + 1
            dword_of[LEVEL + 3*level + 2] = _dword("target", "count") + level

        # At 256 bits the first line has words of the target's walk, and the transfer's length. A
        # RESPONSE takes the walk from the INBOX, but the length from its own slot. So that line is
        # fetched and stored twice: the length has a place of its own behind those of the lines.
        apart    = dword_of[NOTICE + 1]//lanes >= dword_of[key]//lanes
        places   = 2*lines if apart else lines
        place_of = {p: lines if apart and p == NOTICE + 1 else d//lanes for p, d in dword_of.items()}

        # Fetch: one bit for each place that any header uses, in the order of first use.
        line_order    = list(dict.fromkeys(place_of[p] for p in sorted(dword_of)))
        notice        = flag(sink.flags, "NOTICE")
        lines_wanted  = Signal(len(line_order))
        lines_needed  = Signal(len(line_order))
        lines_arrived = Signal(len(line_order))
        for i, line in enumerate(line_order):
            positions = [p for p, place in place_of.items() if place == line]
            self.comb += lines_wanted[i].eq(Reduce("OR", [
                Constant(1) if p < SKIP else notice if p >= NOTICE else
                sink.levels != 0 if p < LEVEL else has_level(
                    sink.levels, (p - LEVEL)//3) for p in positions]))

        busy        = Signal()  # a packet is being built
        flow_sent   = Signal()  # its `flow` was taken
        all_arrived = Signal()  # its last line is here
        done        = Signal()

        # The next request is registered, because the slots are far away on the chip.
        requested     = Signal(len(line_order))  # one-hot: the line
        request_valid = Signal()
        line          = Signal(max=lines)   # its number
        of_target     = Signal()            # it belongs to the INBOX slot with the target's walk
        lines_left    = Signal(len(line_order))  # lines to request after it
        next_line     = Signal(len(line_order))  # one-hot: the first of these
        slot_number   = Signal(16)

        def request(lines_):
            """Statements that request one line of `lines_`, a dict bit -> whether it is this line.
            """
            return [
                request_valid.eq(Reduce("OR", [*lines_.values()])),
                line.eq(
                    Reduce("OR", [Mux(chosen, line_order[i] % lines, 0) for i, chosen in lines_.items()])),
                # From the line with the start of the target's walk on, a RESPONSE needs only the
                # INBOX slot.
                of_target.eq(
                    sink.indirect &
                    Reduce(
                        "OR",
                        [
                            chosen & (dword_of[key]//lanes <= line_order[i] < lines)
                            for i, chosen in lines_.items()])),
            ]

        self.comb += [
            *[
                next_line[i].eq(lines_left[i] & (lines_left[:i] == 0) if i else lines_left[i])
                for i in range(len(line_order))],
            slot_number.eq(
                Mux(of_target, C.INBOX*C.SLOTS + sink.target, sink.endpoint*C.SLOTS + sink.slot)),
            slot.valid.eq(request_valid),
            slot.adr.eq(Cat(line, slot_number[:16 - log2_int(lines)])),
        ]
        self.sync += If(~busy & sink.valid,
            requested.eq(1),
            *request({0: Constant(1)}),  # each packet needs it
            lines_left.eq(lines_wanted & ~Constant(1, len(line_order))),
        ).Elif(slot.valid & slot.ready,
            requested.eq(next_line),
            *request(dict(enumerate(next_line))),
            lines_left.eq(lines_left & ~next_line),
        )

        # The line returns two cycles later and is stored for this packet.
        store = Memory(data_width, places)
        write = store.get_port(write_capable=True)
        read  = store.get_port(async_read=True)
        self.specials += store, write, read
        accepted = [Signal(len(line_order)) for _ in range(3)]
        returned = Signal(max=places)
        self.comb += [
            If(slot.valid & slot.ready, accepted[0].eq(requested)),
            Case(accepted[2], {1 << i: returned.eq(number) for i, number in enumerate(line_order)}),
            write.adr.eq(returned),
            write.dat_w.eq(slot.dat_r),
            write.we.eq(accepted[2] != 0),
        ]
        self.sync += [a.eq(b) for a, b in zip(accepted[1:], accepted)]

        # Words: read from the stored lines in one cycle, completed in the next.
        position     = Signal(max=NOTICE + 3)
        looked_up    = Signal()  # all words of the packet were read
        dword        = Signal(max=C.SLOT_BYTES//4)
        word_arrived = Signal()
        found        = Signal(32)
        moves        = Signal()  # the next word may be read
        step         = Signal()
        follow, ends, walk = position_after(position, sink.levels, notice)
        self.comb += [
            walk,
            word_arrived.eq(1),
            Case(
                position,
                {p: [dword.eq(d), word_arrived.eq(lines_arrived[line_order.index(place_of[p])])]
                            for p, d in dword_of.items()}),
            read.adr.eq(Cat(dword[log2_int(lanes):], position == NOTICE + 1) if apart else dword[log2_int(lanes):]),
            Case(dword[:log2_int(lanes)],
                 {i: found.eq(read.dat_r[32*i:32*i + 32]) for i in range(lanes)}),
        ]
        current = Signal.like(position)
        value   = Signal(32)
        ready   = Signal()
        self.sync += [
            If(step, ready.eq(busy & word_arrived & ~looked_up)),
            If(moves,
                current.eq(position),
                value.eq(found),
                words.last.eq(ends),
                If(busy & word_arrived & ~looked_up,
                    position.eq(follow),
                    looked_up.eq(ends),
                )
            ),
        ]

        # Without levels the packet's position is added to the offset here: the low word first, then
        # the carry into the high word.
        packet_offset = Signal(32)
        carry         = Signal()
        total         = Signal(33)
        response      = flag(sink.flags, "RESPONSE")
        own, assign = header_words(
            target=sink.node, source=self.node_id, kind=PACKET.DEPOSIT, flags=sink.flags,
            levels=sink.levels, psn=sink.psn, length=sink.length,
            ack=Mux(response, sink.message[16:], 0), offset_high=total[:16])
        endpoint_lsb = 8*(COMMAND["endpoint"].offset % 4)
        self.comb += [
            assign,
            If(sink.levels == 0, packet_offset.eq(sink.skip)),
            If(current == offset_high,
                total.eq(value + carry)
            ).Else(
                total.eq(value + packet_offset)
            ),
            words.data.eq(value),
            Case(current, {
                **{
                    p: words.data.eq(own[p]) for p in range(C.HEADER_WORDS)
                    if p not in (key, offset_low)},
                offset_low: words.data.eq(total),
                SKIP:       words.data.eq(sink.skip),
                NOTICE:     If(response, words.data.eq(sink.message)),
                NOTICE + 2: words.data.eq(
                    Mux(response, sink.message[8:16], value[endpoint_lsb:endpoint_lsb + 8])),
            }),
            # The last word leaves with the packet's `flow` or after it.
            words.valid.eq(ready & (~words.last | flow_sent | flow.ready)),
            step.eq(~ready | (words.valid & words.ready)),
            # After the last word there is nothing to read: only the output waits for the packet's
            # gate.
            moves.eq(~ready | (words.ready & ~words.last)),
        ]

        self.comb += [
            flow.node.eq(sink.node),
            flow.incarnation.eq(sink.incarnation),
            flow.epoch.eq(sink.epoch),
            flow.psn.eq(sink.psn),
            flow.length.eq(sink.length),
            flow.valid.eq(busy & ~flow_sent & all_arrived),
            done.eq(words.valid & words.ready & words.last),
            sink.ready.eq(done),
        ]
        self.sync += [
            If(busy,
                lines_arrived.eq(lines_arrived | accepted[2]),
                all_arrived.eq((lines_needed & ~(lines_arrived | accepted[2])) == 0),
                If(flow.valid & flow.ready, flow_sent.eq(1)),
                If(words.valid & words.ready & (current == offset_low), carry.eq(total[32])),
                If(done, busy.eq(0)),
            ).Elif(sink.valid,
                busy.eq(1),
                lines_needed.eq(lines_wanted),
                flow_sent.eq(0),
                looked_up.eq(0),
                lines_arrived.eq(0),
                all_arrived.eq(0),
                position.eq(0),
            ),
        ]
