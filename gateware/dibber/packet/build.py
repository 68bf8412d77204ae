"""The header and extension of a deposit packet, built ahead from the command slot."""

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
    """Index of the 32-bit word of a command slot in which a member stands."""
    offset = COMMAND[path[0]].offset + (WALK[path[1]].offset if len(path) > 1 else 0)
    return offset//4

class HeaderBuilder(LiteXModule):
    """Build packet headers one after the other, ahead of the sender.

    The lines of the slot are fetched in the order in which their words are needed, while the first
    words already go out. `flow` is handed on once the last line is here: from then on a header word
    comes every cycle, so that a sender that starts at `flow` meets no bubble. The target's walk of
    an `indirect` packet, which is a RESPONSE, comes from its slot of the INBOX.

    Parameters
    ----------
    data_width : bits of a line of the slots

    Attributes
    ----------
    sink    : Endpoint(send_layout), in      PacketQueue.LATE of it may come 2 cycles after `valid`
    node_id : Signal(16), in
    slot    : slot_port(data_width), master
    words   : Endpoint([("data", 32)]), out  header and extension without CRC and incarnation;
              `last` on its last word
    flow    : Endpoint(flow_layout), out     one for each packet, in order, to its gate

    Cycles: 1 a word, 2 between packets; 4 and one for each further line fetched from `sink` to
    `flow`.
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

        # What each position of header and extension takes from the slot.
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

        # Fetch: one bit for each line that is used at all, in the order of first use.
        order   = list(dict.fromkeys(dword_of[p]//lanes for p in sorted(dword_of)))
        notice  = flag(sink.flags, "NOTICE")
        wanted  = Signal(len(order))
        needed  = Signal(len(order))
        arrived = Signal(len(order))
        for i, line in enumerate(order):
            positions = [p for p, dword in dword_of.items() if dword//lanes == line]
            self.comb += wanted[i].eq(Reduce("OR", [
                Constant(1) if p < SKIP else notice if p >= NOTICE else
                sink.levels != 0 if p < LEVEL else has_level(sink.levels, (p - LEVEL)//3) for p in positions]))

        busy    = Signal()  # a packet is being built
        told    = Signal()  # its flow entry is handed on
        whole   = Signal()  # the last line is here
        done    = Signal()

        # What is asked for next is in registers: the slots are far away.
        asks      = Signal(len(order))  # one bit: this line
        asking    = Signal()            # there is one
        line      = Signal(max=lines)   # its number
        of_target = Signal()            # it lies in the slot of the INBOX
        rest      = Signal(len(order))  # lines that are asked for behind it
        following = Signal(len(order))  # the first of these
        place_of  = Signal(16)

        def show(lines_):
            """Ask for one of {bit: whether it is that}."""
            return [
                asking.eq(Reduce("OR", [*lines_.values()])),
                line.eq(Reduce("OR", [Mux(chosen, order[i], 0) for i, chosen in lines_.items()])),
                # In the line in which the target's walk begins, nothing else is needed of a
                # RESPONSE.
                of_target.eq(sink.indirect & Reduce("OR", [chosen & (order[i] >= dword_of[key]//lanes) for i, chosen in lines_.items()])),
            ]

        self.comb += [
            *[following[i].eq(rest[i] & (rest[:i] == 0) if i else rest[i]) for i in range(len(order))],
            place_of.eq(Mux(of_target, C.INBOX*C.SLOTS + sink.target, sink.endpoint*C.SLOTS + sink.slot)),
            slot.valid.eq(asking),
            slot.adr.eq(Cat(line, place_of[:16 - log2_int(lines)])),
        ]
        self.sync += If(~busy & sink.valid,
            asks.eq(1),
            *show({0: Constant(1)}),  # which is needed of all
            rest.eq(wanted & ~Constant(1, len(order))),
        ).Elif(slot.valid & slot.ready,
            asks.eq(following),
            *show(dict(enumerate(following))),
            rest.eq(rest & ~following),
        )

        # Two cycles later the line comes back, and is kept for this packet.
        store = Memory(data_width, lines)
        write = store.get_port(write_capable=True)
        read  = store.get_port(async_read=True)
        self.specials += store, write, read
        accepted = [Signal(len(order)) for _ in range(3)]
        returned = Signal(max=lines)
        self.comb += [
            If(slot.valid & slot.ready, accepted[0].eq(asks)),
            Case(accepted[2], {1 << i: returned.eq(number) for i, number in enumerate(order)}),
            write.adr.eq(returned),
            write.dat_w.eq(slot.dat_r),
            write.we.eq(accepted[2] != 0),
        ]
        self.sync += [a.eq(b) for a, b in zip(accepted[1:], accepted)]

        # Words: looked up in the slot's lines in one cycle, completed in the next.
        position = Signal(max=NOTICE + 3)
        walked   = Signal()  # all positions of the packet were looked up
        dword    = Signal(max=C.SLOT_BYTES//4)
        here     = Signal()
        found    = Signal(32)
        moves    = Signal()  # a word may be looked up
        step     = Signal()
        follow, ends, walk = position_after(position, sink.levels, notice)
        self.comb += [
            walk,
            here.eq(1),
            Case(position, {p: [dword.eq(d), here.eq(arrived[order.index(d//lanes)])]
                            for p, d in dword_of.items()}),
            read.adr.eq(dword[log2_int(lanes):]),
            Case(dword[:log2_int(lanes)],
                 {i: found.eq(read.dat_r[32*i:32*i + 32]) for i in range(lanes)}),
        ]
        current = Signal.like(position)
        value   = Signal(32)
        ready   = Signal()
        self.sync += [
            If(step, ready.eq(busy & here & ~walked)),
            If(moves,
                current.eq(position),
                value.eq(found),
                words.last.eq(ends),
                If(busy & here & ~walked,
                    position.eq(follow),
                    walked.eq(ends),
                )
            ),
        ]

        # Without levels the packet's place is added to the offset here: low word first, then the
        # carry.
        place    = Signal(32)
        carry    = Signal()
        total    = Signal(33)
        response = flag(sink.flags, "RESPONSE")
        own, assign = header_words(
            target=sink.node, source=self.node_id, kind=PACKET.DEPOSIT, flags=sink.flags,
            levels=sink.levels, psn=sink.psn, length=sink.length,
            ack=Mux(response, sink.message[16:], 0), offset_high=total[:16])
        endpoint_lsb = 8*(COMMAND["endpoint"].offset % 4)
        self.comb += [
            assign,
            If(sink.levels == 0, place.eq(sink.skip)),
            If(current == offset_high,
                total.eq(value + carry)
            ).Else(
                total.eq(value + place)
            ),
            words.data.eq(value),
            Case(current, {
                **{p: words.data.eq(own[p]) for p in range(C.HEADER_WORDS) if p not in (key, offset_low)},
                offset_low: words.data.eq(total),
                SKIP:       words.data.eq(sink.skip),
                NOTICE:     If(response, words.data.eq(sink.message)),
                NOTICE + 2: words.data.eq(Mux(response, sink.message[8:16], value[endpoint_lsb:endpoint_lsb + 8])),
            }),
            # The last word leaves together with, or after, the packet's flow entry.
            words.valid.eq(ready & (~words.last | told | flow.ready)),
            step.eq(~ready | (words.valid & words.ready)),
            # Behind the last word there is none to look up: only what goes out waits for its
            # packet's gate.
            moves.eq(~ready | (words.ready & ~words.last)),
        ]

        self.comb += [
            flow.node.eq(sink.node),
            flow.incarnation.eq(sink.incarnation),
            flow.epoch.eq(sink.epoch),
            flow.psn.eq(sink.psn),
            flow.length.eq(sink.length),
            flow.valid.eq(busy & ~told & whole),
            done.eq(words.valid & words.ready & words.last),
            sink.ready.eq(done),
        ]
        self.sync += [
            If(busy,
                arrived.eq(arrived | accepted[2]),
                whole.eq((needed & ~(arrived | accepted[2])) == 0),
                If(flow.valid & flow.ready, told.eq(1)),
                If(words.valid & words.ready & (current == offset_low), carry.eq(total[32])),
                If(done, busy.eq(0)),
            ).Elif(sink.valid,
                busy.eq(1),
                needed.eq(wanted),
                told.eq(0),
                walked.eq(0),
                arrived.eq(0),
                whole.eq(0),
                position.eq(0),
            ),
        ]
