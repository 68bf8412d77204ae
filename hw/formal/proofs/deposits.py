# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What reaches the deposit engine: only a header whose CRC is right, for this node, in its turn."""

from migen import *

from litex.gen import *

from dibber.interface.description import C, PACKET, PACKET_FLAG
from dibber.packet import check, receive
from dibber.packet.header import header_fields

from harness import Harness, Mutant, Property, implies, inner

DATA_WIDTH = 64

class AnyCRC(LiteXModule):
    """In place of CRC32C: any value at any time, and a record of what it was fed with."""
    def __init__(self):
        self.word  = Signal(32)
        self.step  = Signal()
        self.load  = Signal()
        self.seed  = Signal(32)
        self.value = Signal(32)

        # # #

        self.fed   = Signal(8)   # words since it was loaded
        self.start = Signal(reset=1)  # with all ones
        self.sync += [
            If(self.step, self.fed.eq(self.fed + 1)),
            If(self.load, self.fed.eq(0), self.start.eq(self.seed == 0xffffffff)),
        ]


class Deposits(Harness):
    """The receiver with any words, any CRC, and a second, plain reading of the packets beside it.

    SlackBuffer gives packets from first to last word; a first word may be missing after a reset.
    """
    def __init__(self):
        super().__init__()
        check.CRC32C = receive.CRC32C = AnyCRC
        self.block = block = receive.DepositReceiver(DATA_WIDTH)
        sink       = block.sink
        node_id    = self.constant("node_id", 16)
        self.free_all("sink", sink)
        self.comb += [
            block.checker.node_id.eq(node_id),
            block.checker.crc.value.eq(self.free("header_crc", 32)),
            block.crc.value.eq(self.free("block_crc", 32)),
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
            Case(index, {n: If(inside | sink.first, word.eq(sink.data)) for n, word in enumerate(words)}),
        )
        # Words of the header before its CRC: docs/design.md, section 3.
        levels = Signal(8)
        notice = Signal()
        length = Signal(6)
        self.comb += [
            levels.eq(fields["levels"]),
            notice.eq((fields["flags"] & PACKET_FLAG.NOTICE) != 0),
            length.eq(C.HEADER_WORDS + Mux(notice, 3, 0)),
            Case(levels[:2], {n: length.eq(C.HEADER_WORDS + Mux(notice, 3, 0) + 2 + 3*n) for n in (1, 2, 3)}),
        ]

        # The flow of one node of the solver's choice, as the announced and the finished packets make it.
        node     = self.constant("node", 4)
        known    = Signal()
        flow     = Signal(8)
        expected = Signal(16)
        current  = Signal()          # its packet was announced and is on its way in
        announce = Signal()
        mine     = Signal()
        self.comb += [
            announce.eq(block.queue.sink.valid & block.queue.sink.ready),
            mine.eq(announce & (fields["source"] == node)),
        ]
        done = block.received
        self.sync += [
            If(mine,
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

        q = block.queue.sink
        self.prove("crc",       implies(q.valid, taken & inside & (index == length)
            & (sink.data == block.checker.crc.value)))
        self.prove("crc_over_header", implies(q.valid, block.checker.crc.start & (block.checker.crc.fed == length)))
        self.prove("for_us",    implies(q.valid, (fields["target"] == node_id) & (fields["source"] < C.NODES)))
        self.prove("sound",     implies(q.valid, (fields["kind"] == PACKET.DEPOSIT) & (levels <= C.LEVELS)
            & (fields["length"] <= C.PACKET_PAYLOAD) & ~(sink.last & sink.bad)))
        self.prove("as_it_came", implies(q.valid, (q.source == fields["source"]) & (q.psn == fields["psn"])
            & (q.incarnation == fields["incarnation"]) & (q.key == fields["key"]) & (q.flags == fields["flags"])
            & (q.length == fields["length"]) & (q.levels == levels)))
        self.prove("taken",     implies(q.valid, q.ready))
        self.prove("in_turn",   implies(mine,
            (known & (fields["incarnation"] == flow) & (fields["psn"] == expected))
            | ((fields["psn"] == 0) & ((fields["flags"] & PACKET_FLAG.FIRST) != 0) & (~known | ((newer != 0) & ~newer[7])))))

        # The block's reading of the packet is the plain one.
        checker   = block.checker
        position  = inner(checker, "position")
        held      = inner(checker, "words")
        fsm       = block.fsm
        for n, (a, b) in enumerate(zip(held, words)):
            self.lemma(f"word{n}", implies(inside & (index > n), a == b))
        self.lemma("index",   (index != 0) == inside)
        self.lemma("apart",   ~(inside & rest))
        self.lemma("started", implies(inside & ~checker.inside, checker.crc.start & (checker.crc.fed == index)))
        self.lemma("outside", implies(~inside, checker.crc.start & (checker.crc.fed == 0) & (position == 0)
            & ~checker.at_crc & ~checker.inside))
        self.lemma("behind",  implies(checker.inside, inside & ~checker.at_crc & (position == 0)
            & (index > length)))
        self.lemma("at_crc",  implies(checker.at_crc, inside & ~checker.inside & (index == length) & (position == 0)))
        self.lemma("base",    implies(inside & ~checker.inside & ~checker.at_crc & (index < C.HEADER_WORDS),
            position == index))
        # Behind the six words: the extension's positions leave out what is not there.
        walk = Signal(6)
        self.comb += walk.eq(Mux(levels[:2] != 0, 2 + 3*levels[:2], 0))
        self.lemma("extension", implies(inside & ~checker.inside & ~checker.at_crc & (index >= C.HEADER_WORDS),
            Mux(index < C.HEADER_WORDS + walk, position == index,
                (position == index - C.HEADER_WORDS - walk + 17) & notice) & (index < length)))

        payload = fsm.ongoing("PAYLOAD") | fsm.ongoing("BLOCK-CRC") | fsm.ongoing("DRAIN")
        cut     = fsm.ongoing("CUT") | fsm.ongoing("VOID")
        ended   = inner(block, "ended")
        self.lemma("payload", implies(payload, checker.inside))
        self.lemma("node",    implies(payload & ~fsm.ongoing("DRAIN"), fields["source"] < C.NODES))
        self.lemma("cut",     implies(cut, checker.inside == ~ended))
        self.lemma("known",   (inner(block.sequencer, "known") >> node)[0] == known)
        port = inner(block.sequencer, "flows").get_port(async_read=True)
        self.specials += port
        self.comb += port.adr.eq(node)
        self.lemma("flow",    implies(known, (port.dat_r[16:] == flow) & (port.dat_r[:16] == expected)))
        self.lemma("current", implies(current & ~fsm.ongoing("HEADER"), known & (fields["source"] == node) & (fields["incarnation"] == flow)
            & (fields["psn"] == expected)))
        self.lemma("busy",    implies((fsm.ongoing("PAYLOAD") | fsm.ongoing("BLOCK-CRC")) & (fields["source"] == node), current))


PROPERTIES = [
    Property("deposit-header", "packet/receive", "a header with a wrong CRC, node or number is not announced",
        f"{DATA_WIDTH} bits, 16 nodes", "Deposits", k=4, mutants=[
            Mutant("CRC not looked at", "dibber.packet.check", "bad_crc.eq(word.data != crc.value)", "bad_crc.eq(0)", depth=10),
            Mutant("packets for other nodes are taken", "dibber.packet.check", "(fields[\"target\"] != self.node_id)",
                "0", depth=10),
            Mutant("a flow begins anywhere", "dibber.packet.sequence", "start.eq(self.first & (self.psn == 0) & newer)",
                "start.eq(self.first & newer)", depth=10),
            Mutant("a flow that never began goes on", "dibber.packet.sequence", "same.eq(is_known & (age == 0))",
                "same.eq(age == 0)", depth=10),
    ]),
]
