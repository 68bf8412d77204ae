"""Answers to the fast path's gets and atomics. Failed answers are for the control program."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.expected import TAG
from dibber.fastpath.asks import TAGS
from dibber.interface.description import C, MESSAGE, REPLY, STATUS
from dibber.layouts import answer_layout, arrival_layout, slot_port

# Answers ------------------------------------------------------------------------------------------

class Answers(LiteXModule):
    """Takes from the arrivals those answers that end a get or an atomic successfully.

    The end of a get's answer is offered at once. An ATOMIC_REPLY is first read in its slot of the
    INBOX. It is offered if its status is OK, and its slot comes free when it has ended its atomic.
    All other arrivals go on unchanged.

    Parameters
    ----------
    data_width : bits of a line

    Attributes
    ----------
    enable : Record, in                       `get`, `atomic`: their answers are offered
    sink   : Endpoint(arrival_layout), in
    source : Endpoint(arrival_layout), out
    slot   : slot_port(data_width), master
    answer : Endpoint(answer_layout), out
    mine   : Signal(), in                     in the cycle of `answer.ready`: it ended an ask
    free   : Endpoint([("slot", 5)]), out     this slot of the INBOX is free

    Cycles: 0 for other arrivals. An answer takes 2 and the cycles of `answer`. The answer to an
    atomic takes at least 4 more, to read 1 or 2 lines of its slot. Later arrivals wait.
    """
    def __init__(self, data_width):
        self.enable = enable = Record([("get", 1), ("atomic", 1)])
        self.sink   = sink   = stream.Endpoint(arrival_layout())
        self.source = source = stream.Endpoint(arrival_layout())
        self.slot   = slot   = slot_port(data_width)
        self.answer = answer = stream.Endpoint(answer_layout())
        self.mine   = Signal()
        self.free   = free   = stream.Endpoint([("slot", log2_int(C.SLOTS))])

        # # #

        # Which answers are offered. The context in the word is the command's tag and generation.
        word    = sink.value
        context = word[16:]
        known   = Signal()
        offered = Signal()
        self.comb += [
            known.eq((sink.node[log2_int(C.NODES):] == 0) & (context[TAGS:TAG] == 0)),
            If(sink.is_message,
                offered.eq(known & enable.atomic & (word[:8] == MESSAGE.ATOMIC_REPLY))
            ).Else(
                offered.eq(known & enable.get & sink.response & (word[:8] == MESSAGE.GET))
            ),
            answer.last.eq(1),
            answer.atomic.eq(sink.is_message),
            answer.node.eq(sink.node),
            answer.tag.eq(context[:TAGS]),
            answer.generation.eq(context[TAG:]),
        ]

        # Lines of the reply: first the value, then the status.
        width  = data_width//8
        value, status = REPLY["value"], REPLY["status"]
        lines  = status.offset//width + 1
        line   = Signal(max=max(lines, 2))
        coming = [Record([("valid", 1), ("line", len(line))]) for _ in range(2)]
        came   = coming[1]
        whole  = Signal()
        self.comb += [
            slot.adr.eq(Cat(line, Constant(0, log2_int(C.SLOT_BYTES//width) - len(line)), sink.slot[:log2_int(C.SLOTS)],
                Constant(C.INBOX, 4))),
            whole.eq(came.valid & (came.line == lines - 1)),
        ]
        self.sync += [
            coming[0].valid.eq(slot.valid & slot.ready),
            coming[0].line.eq(line),
            came.eq(coming[0]),
            If(came.valid & (came.line == value.offset//width), answer.value.eq(slot.dat_r[:64])),
        ]

        self.fsm = fsm = FSM(reset_state="PASS")
        fsm.act("PASS",
            NextValue(line, 0),
            If(offered,
                If(sink.valid, NextState("OFFER")),
                If(sink.valid & sink.is_message, NextState("READ"))
            ).Else(
                source.valid.eq(sink.valid),
                sink.ready.eq(source.ready)
            )
        )
        fsm.act("READ",
            slot.valid.eq(1),
            If(slot.ready,
                NextValue(line, line + 1),
                If(line == lines - 1, NextState("JUDGE"))
            )
        )
        fsm.act("JUDGE",
            If(whole,
                NextState("THEIRS"),
                If(slot.dat_r[8*(status.offset % width):][:32] == STATUS.OK, NextState("OFFER"))
            )
        )
        fsm.act("OFFER",
            answer.valid.eq(1),
            If(answer.ready,
                NextState("THEIRS"),
                If(self.mine, NextState("GONE"))
            )
        )
        fsm.act("THEIRS",
            source.valid.eq(1),
            sink.ready.eq(source.ready),
            If(source.ready, NextState("PASS"))
        )
        fsm.act("GONE",
            free.valid.eq(sink.is_message),
            sink.ready.eq(free.ready | ~sink.is_message),
            If(sink.ready, NextState("PASS"))
        )
        self.comb += [
            sink.connect(source, omit={"valid", "ready"}),
            free.last.eq(1),
            free.slot.eq(sink.slot),
        ]
