"""The deposit engine only gets a header with the right CRC, for this node, in its turn."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C, LANE, PACKET, PACKET_FLAG
from dibber.packet import check, packet_receiver
from dibber.packet.header import LAST_LEVELS, NOTICE, header_fields, header_word

from harness import Harness, Mutant, Property, implies, inner

DATA_WIDTH = 64

def counted(state, word):
    """In place of crc32c_next: the state holds the number of words in it, and whether it began with
    all ones; the words do not matter.

    A sealer's CRC may still be any value, because words are.
    """
    return [], Cat((state[:8] - 1)[:8], state[8:])


class Deposits(Harness):
    """The receiver with any words, any CRC, and a second, plain reading of the packets beside it.

    SlackBuffer gives packets from first to last word; a first word may be missing after a reset.
    """
    lane = LANE.BULK

    def __init__(self):
        super().__init__()
        express = self.lane == LANE.EXPRESS
        check.crc32c_next = counted
        self.block = block = packet_receiver.DepositReceiver(DATA_WIDTH, self.lane)
        inspector  = block.inspector
        checker    = block.checker
        state, crc = inner(inspector, "state"), inner(inspector, "crc")
        of_words   = Signal(8)
        of_ones    = Signal()
        self.comb += of_words.eq(~state[:8]), of_ones.eq(state[8:] == 0xffffff)
        sink, word = block.sink, inspector.source
        node_id    = self.constant("node_id", 16)
        self.free_all("sink", sink)
        self.comb += [
            checker.node_id.eq(node_id),
            block.payload.ready.eq(self.free("payload_ready")),
            block.deposits.ready.eq(self.free("deposits_ready")),
        ]

        # The packet as it comes: its words are counted from the first.
        taken  = Signal()
        inside = Signal()            # between a first and a last word
        rest   = Signal()            # of a packet without its first word
        index  = Signal(12)
        words  = [Signal(32, name=f"seen{n}") for n in range(C.HEADER_WORDS)]
        fields = header_fields(words)
        self.comb += taken.eq(sink.valid & sink.ready)
        self.assume("framed", implies(sink.valid & sink.first, ~inside & ~rest))
        self.sync += If(taken,
            inside.eq((inside | sink.first) & ~sink.last),
            rest.eq((rest | (~inside & ~sink.first)) & ~sink.last),
            If(index != 0xfff, index.eq(index + 1)),
            If(sink.last | ~(inside | sink.first), index.eq(0)),
            Case(index, {n: If(inside | sink.first, register.eq(sink.data)) for n, register in enumerate(words)}),
        )
        # Words of the header before its CRC: docs/design/packets.md.
        levels = Signal(8)
        notice = Signal()
        length = Signal(6)
        walk   = Signal(6)
        self.comb += [
            levels.eq(fields["levels"]),
            notice.eq((fields["flags"] & PACKET_FLAG.NOTICE) != 0),
            length.eq(C.HEADER_WORDS + Mux(notice, 3, 0) + walk),
            # With LIST: its strides and itself. 7 is invalid, and is read as three levels.
            Case(levels[:3], {n: walk.eq(2 + 3*words) for n, words in zip(range(1, 8), (1, 2, 3, 1, 2, 3, 3))}),
        ]

        # State at the inspection of the word that the receiver has now.
        at    = Signal(12)           # number of the word
        match = Signal()             # it was the CRC
        fed   = Signal(8)            # of so many words
        whole = Signal()             # from all ones on
        self.sync += If(taken, at.eq(index), match.eq(sink.data == crc), fed.eq(of_words), whole.eq(of_ones))

        # The flow of one node of the solver's choice, by the announced and the finished packets.
        node     = self.constant("node", 4)
        known    = Signal()
        self.opened = opened = Signal()  # it has asked
        flow     = Signal(8)
        expected = Signal(16)
        current  = Signal()          # its packet was announced and is coming in
        announce = Signal()
        mine     = Signal()
        self.comb += [
            announce.eq(block.queue.sink.valid & block.queue.sink.ready),
            mine.eq(announce & (fields["source"] == node)),
        ]
        done = block.received
        self.sync += [
            If(block.asked.strobe & (fields["source"] == node), opened.eq(1)),
            # A flow may start with a message that finds no room and is not announced.
            If(mine | (block.started.strobe & (fields["source"] == node)),
                known.eq(1),
                flow.eq(fields["incarnation"]),
                expected.eq(fields["psn"] + done),
            ).Elif(done & current & ~announce,
                expected.eq(expected + 1)
            ),
            If(announce, current.eq((fields["source"] == node) & ~done)).Elif(done | block.fsm.ongoing("HEADER"), current.eq(0)),
        ]
        newer = Signal(8)
        self.comb += newer.eq(fields["incarnation"] - flow)
        in_turn = (known & (fields["incarnation"] == flow) & (fields["psn"] == expected)) | (
            (fields["psn"] == 0) & ((fields["flags"] & PACKET_FLAG.FIRST) != 0) & Mux(known, (newer != 0) & ~newer[7], opened))

        # Legal packets of this lane; and the room for messages. Each whole message takes a slot.
        message = fields["kind"] == PACKET.MESSAGE
        flags   = lambda *names: (fields["flags"] & (0xff & ~sum(getattr(PACKET_FLAG, name) for name in names))) == 0
        if express:
            sound = (levels == 0) & ((fields["flags"] & PACKET_FLAG.EXPRESS) != 0) & Mux(message,
                flags("EXPRESS", "FIRST", "LAST"),
                (fields["kind"] == PACKET.DEPOSIT) & flags("EXPRESS", "FIRST", "LAST", "NOTICE", "INTERRUPT"))
            fits  = Mux(message, fields["length"] == C.MESSAGE_BYTES, fields["length"] <= C.INLINE_BYTES)
            self.held = held = Signal(max=C.SLOTS + 1)
            self.comb += block.freed.eq(self.free("freed"))
            self.sync += held.eq(held + (block.received & message) - block.freed)
            self.assume("freed", implies(block.freed, held != 0))
            self.prove("room",   implies(block.queue.sink.valid & message, held < C.SLOTS))
            self.lemma("inbox",  (inner(block, "messages_free") == C.SLOTS - held) & (held <= C.SLOTS)
                & implies(block.fsm.ongoing("PAYLOAD") & message, held != C.SLOTS))
        else:
            sound = (fields["kind"] == PACKET.DEPOSIT) & (levels <= LAST_LEVELS) & flags(
                "FIRST", "LAST", "NOTICE", "INTERRUPT", "RESPONSE")
            fits  = fields["length"] <= C.PACKET_PAYLOAD
        # A question belongs to no flow, and is not announced.
        question = fields["kind"] == PACKET.QUESTION
        asks     = question & (levels == 0) & (fields["flags"] == (PACKET_FLAG.EXPRESS if express else 0))

        q = block.queue.sink
        self.prove("crc",       implies(q.valid, word.valid & word.ready & (at == length) & match))
        self.prove("crc_over_header", implies(q.valid, whole & (fed == length)))
        self.prove("for_us",    implies(q.valid, (fields["target"] == node_id) & (fields["source"] < C.NODES)))
        self.prove("sound",     implies(q.valid, sound & fits & ~(word.last & word.bad)
            & (word.last == (fields["length"] == 0))))
        self.prove("as_it_came", implies(q.valid, (q.source == fields["source"]) & (q.psn == fields["psn"])
            & (q.incarnation == fields["incarnation"]) & (q.key == fields["key"]) & (q.flags == fields["flags"])
            & (q.length == fields["length"]) & (q.levels == levels) & (q.is_message == message)
            & (q.offset == Cat(fields["offset_low"], fields["offset_high"]))))
        self.prove("taken",     implies(q.valid, q.ready))
        self.prove("in_turn",   implies(mine, in_turn))

        # The inspector reads the packet as this harness does; behind it stands one word.
        kind, position = inner(inspector, "kind"), inner(inspector, "position")
        tail = Mux(levels[2], 3, 0)  # words of a list, which stand before the notice's
        def reads(n, kind, position):
            """`kind` and `position` are those of word `n`; an extension skips absent
            positions.
            """
            return Mux(n < C.HEADER_WORDS, (kind == check.HEADER) & (position == n),
                Mux(n < length, (kind == check.HEADER) & Mux(n + tail < C.HEADER_WORDS + walk, position == n,
                    (position == n - C.HEADER_WORDS - walk + NOTICE) & ((n < C.HEADER_WORDS + walk) | notice)),
                Mux(n == length, kind == check.HEADER_CRC, (kind != check.HEADER) & (kind != check.HEADER_CRC))))
        self.lemma("index",    (index != 0) == inside)
        self.lemma("apart",    ~(inside & rest))
        self.lemma("within",   inner(inspector, "in_packet") == inside)
        self.lemma("outside",  implies(~inside, (kind == check.HEADER) & (position == 0) & of_ones & (of_words == 0)))
        self.lemma("reads",    implies(inside, reads(index, kind, position)))
        self.lemma("levels",   implies(inside & (index > header_word("levels")),
            (inner(inspector, "levels") == levels[:3]) & (inner(inspector, "notice") == notice)))
        self.lemma("feeds",    implies(inside & ((kind == check.HEADER) | (kind == check.HEADER_CRC)),
            of_ones & (of_words == index)))
        self.lemma("stage",    implies(word.valid, reads(at, word.kind, word.position) & (word.match == match)
            & Mux(word.last, ~inside & (index == 0), inside & (index == Mux(at == 0xfff, at, at + 1)))))
        self.lemma("stage_fed", implies(word.valid & ((word.kind == check.HEADER) | (word.kind == check.HEADER_CRC)),
            whole & (fed == at)))

        # The checker has the words before that one. Registers fill in the cycles after their words.
        seen   = Signal(12)
        open_  = Signal()            # the packet before the receiver has words to come
        header = Signal()            # and its CRC among them
        held   = inner(checker, "words")
        fsm    = block.fsm
        self.comb += [
            seen.eq(Mux(word.valid, at, index)),
            open_.eq(word.valid | inside),
            header.eq(open_ & (seen <= length)),
        ]
        for n, (a, b) in enumerate(zip(held, words)):
            self.lemma(f"word{n}", implies(open_ & (seen > n), a == b) & implies(word.valid & (at == n), word.data == b))
        wrong, long, empty, elsewhere = (inner(m, name) for m, name in (
            (block, "fields_wrong"), (block, "length_wrong"), (checker, "empty"), (checker, "not_for_us")))
        self.lemma("elsewhere", implies(header & (seen > 2), elsewhere ==
            ((fields["target"] != node_id) | (fields["source"] >= C.NODES))))
        self.lemma("wrong",     implies(header & (seen > 3), wrong == ~(sound | asks)))
        self.lemma("long",      implies(header & (seen > header_word("length")),
            (long == ~Mux(question, fields["length"] == 0, fits)) & (empty == (fields["length"] == 0))))
        self.lemma("question", implies(open_ & (seen > 3), inner(block, "question") == question))
        if express:
            self.lemma("message", implies(open_ & (seen > 3), inner(block, "message") == message))

        # The sequencer's table has the announced and completed PSN of `node`; its two registers
        # follow.
        sequencer = block.sequencer
        table     = inner(sequencer, "flows").get_port(async_read=True)
        self.specials += table
        self.comb += table.adr.eq(node)
        is_known, held_flow, held_psn = (inner(sequencer, name) for name in ("is_known", "held", "expected"))
        self.lemma("known",   (inner(sequencer, "known") >> node)[0] == known)
        self.lemma("opened",  (inner(sequencer, "opened") >> node)[0] == opened)
        self.lemma("flow",    implies(known, (table.dat_r[16:] == flow) & (table.dat_r[:16] == expected)))
        self.lemma("looked_up", implies(header & (seen > 2) & (fields["source"] == node),
            (is_known == known) & (inner(sequencer, "is_open") == opened) & implies(known, (held_flow == flow) & (held_psn == expected))))
        self.lemma("judged",  implies(header & (seen > 4) & (fields["source"] == node), sequencer.execute == in_turn))

        payload = fsm.ongoing("PAYLOAD") | fsm.ongoing("DRAIN")
        cut     = fsm.ongoing("CUT") | fsm.ongoing("VOID")
        ended   = inner(block, "packet_ended")
        self.lemma("payload", implies(payload, open_ & (seen > length)))
        self.lemma("node",    implies(fsm.ongoing("PAYLOAD"), fields["source"] < C.NODES))
        self.lemma("cut",     implies(cut, Mux(ended, implies(open_, seen == 0), open_ & (seen > length))))
        self.lemma("current", implies(current & ~fsm.ongoing("HEADER") & ~(cut & ended), known & (fields["source"] == node)
            & (fields["incarnation"] == flow) & (fields["psn"] == expected)))
        self.lemma("busy",    implies(fsm.ongoing("PAYLOAD") & (fields["source"] == node), current))


class Opened(Deposits):
    """For mutants: every node has asked already, which saves the cycles of a packet."""
    def __init__(self):
        super().__init__()
        self.opened.reset = Constant(1)
        inner(self.block.sequencer, "opened").reset = Constant(2**C.NODES - 1)


class ExpressDeposits(Deposits):
    lane = LANE.EXPRESS


class ExpressOpened(Opened):
    lane = LANE.EXPRESS


class ExpressFull(ExpressOpened):
    """For a mutant: the inbox is full from the start, which saves messages and cycles."""
    def __init__(self):
        super().__init__()
        self.held.reset = Constant(C.SLOTS)
        inner(self.block, "messages_free").reset = Constant(0)


PROPERTIES = [
    Property("deposit-header", "packet/packet_receiver", "a header with a wrong CRC, node or number is not announced",
        f"{DATA_WIDTH} bits, {C.NODES} nodes", "Deposits", k=4, mutants=[
            Mutant("CRC not looked at", "dibber.packet.check", "self.good.eq(judge & word.match &",
                "self.good.eq(judge &", depth=12, harness="Opened"),
            Mutant("packets for other nodes are taken", "dibber.packet.check", "(fields[\"target\"] == self.node_id)",
                "1", depth=12, harness="Opened"),
            Mutant("a flow begins anywhere", "dibber.packet.sequence", "starts_flow.eq(self.first & (self.psn == 0) & newer)",
                "starts_flow.eq(self.first & newer)", depth=12, harness="Opened"),
            Mutant("a flow begins without a question", "dibber.packet.sequence", "(age != 0) & ~age[7], is_open)", "(age != 0) & ~age[7], 1)",
                depth=12),
            Mutant("a flow that never began goes on", "dibber.packet.sequence", "same.eq(is_known & (age == 0))",
                "same.eq(age == 0)", depth=12),
    ]),
    Property("deposit-header-express", "packet/packet_receiver", "the same of inline puts, and of messages, for which there is room",
        f"{DATA_WIDTH} bits, {C.NODES} nodes", "ExpressDeposits", k=4, mutants=[
            Mutant("too long an inline put is taken", "dibber.packet.packet_receiver",
                "Mux(question, length != 0, length > C.INLINE_BYTES)", "question & (length != 0)", depth=12, harness="ExpressOpened"),
            Mutant("a message may be a response", "dibber.packet.packet_receiver",
                "MESSAGE_FLAGS = PACKET_FLAG.FIRST | PACKET_FLAG.LAST", "MESSAGE_FLAGS = DEPOSIT_FLAGS | PACKET_FLAG.RESPONSE", depth=12, harness="ExpressOpened"),
            Mutant("a deposit is told as a message", "dibber.packet.packet_receiver", "message.eq(fields[\"kind\"] == PACKET.MESSAGE)",
                "message.eq(fields[\"kind\"] != PACKET.MESSAGE)", depth=12, harness="ExpressOpened"),
            Mutant("a message without room is taken", "dibber.packet.packet_receiver", "no_room.eq(messages_free == 0)", "no_room.eq(0)", depth=12,
                harness="ExpressFull"),
    ]),
]
