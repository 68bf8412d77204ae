"""What the target of a flow tells its source."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, LANE, PACKET_FLAG, STATUS
from dibber.layouts import ack_layout, deposit_done_layout
from dibber.packet.header import flag
from dibber.common.pulses import Pulses
from dibber.common.places import Row

# Lowest Bit ---------------------------------------------------------------------------------------

def lowest(bits):
    """Expression of the index of the lowest bit of 16 that is set, by fours: three LUTs deep."""
    assert len(bits) == 16
    index  = lambda four: Cat(~four[0] & (four[1] | ~four[2]), ~four[0] & ~four[1])
    fours  = [bits[n:n + 4] for n in range(0, 16, 4)]
    chosen = index([four != 0 for four in fours])
    lows   = [index(four) for four in fours]
    return Cat(Mux(chosen[1], Mux(chosen[0], lows[3], lows[2]), Mux(chosen[0], lows[1], lows[0])), chosen)

# Lane Acknowledger --------------------------------------------------------------------------------

class LaneAcknowledger(LiteXModule):
    """Turn the ends of one lane's packets, duplicates, gaps and questions into acknowledgements.

    Acknowledgements are cumulative and coalesce: a bit a node. A refusal is told on its own, and
    before any acknowledgement that covers it; when four wait, `done` waits. The end of a deposit of
    an earlier incarnation acknowledges nothing.

    An acknowledgement may be lost on the link, and then the next one covers what a lost refusal
    named. So each carries the number of refusals up to its PSN, by which the source sees that one
    is missing, and a refusal is told twice, so that one that is lost costs nothing.

    A packet of a flow that is not held is answered by a refusal with the reason PEER_RESTARTED. It
    covers nothing and counts as no refusal. No more than one waits beside the four refusals; while
    it waits others are not told, because each of their sources hears of its next packet.

    One that answers a question has FIRST, and its token for `psn`; if no flow was started yet its
    incarnation is any.

    Parameters
    ----------
    lane : enum lane

    Attributes
    ----------
    done    : Endpoint(deposit_done_layout), in   in the order of the deposits
    started : Record, in     `strobe`, `node`, `incarnation`: a flow starts; nothing of it is done
              yet
    repeat  : Record, in     `strobe`, `node`: acknowledge again
    gap     : Record, in     `strobe`, `node`: tell that a packet is missing
    asked   : Record, in     `strobe`, `node`, `token`: tell what is held
    alive   : Signal(NODES), in   nodes that are to be told again what is acknowledged
    absent  : Record, in     `strobe`, `node`, `incarnation`, `psn`: tell that this packet's flow is
              not held
    source  : Endpoint(ack_layout), out  what is to be told now; while it waits it may become
              another one
    refused : Signal(), out  one cycle for each refusal

    Cycles: 1 from `done` to `source`, 4 of a refusal.
    """
    def __init__(self, lane):
        self.done    = done    = stream.Endpoint(deposit_done_layout())
        self.started = started = Record([("strobe", 1), ("node", 16), ("incarnation", 8)])
        self.repeat  = repeat  = Record([("strobe", 1), ("node", 16)])
        self.gap     = gap     = Record([("strobe", 1), ("node", 16)])
        self.asked   = asked   = Record([("strobe", 1), ("node", 16), ("token", 16)])
        self.alive   = Signal(C.NODES)
        self.absent  = absent  = Record([("strobe", 1), ("node", 16), ("incarnation", 8), ("psn", 16)])
        self.source  = source  = stream.Endpoint(ack_layout())
        self.refused = Signal()

        # # #

        # Per node: incarnation, last PSN done and refusals up to it, and whether there is one
        # (`fresh`: not yet).
        bits         = log2_int(C.NODES)
        incarnations = Memory(8, C.NODES)
        lasts        = Memory(16 + 8, C.NODES)
        write_flow   = incarnations.get_port(write_capable=True)
        read_flow    = incarnations.get_port(async_read=True)
        done_flow    = incarnations.get_port(async_read=True)
        write_last   = lasts.get_port(write_capable=True)
        read_last    = lasts.get_port(async_read=True)
        done_last    = lasts.get_port(async_read=True)
        tokens       = Memory(16, C.NODES)
        write_token  = tokens.get_port(write_capable=True)
        read_token   = tokens.get_port(async_read=True)
        self.specials += incarnations, lasts, write_flow, read_flow, done_flow, write_last, read_last, done_last
        self.specials += tokens, write_token, read_token
        fresh = Signal(C.NODES, reset=2**C.NODES - 1)

        # Ends of deposits.
        refusal = [("node", 16), ("incarnation", 8), ("psn", 16), ("reason", 8), ("refusals", 8)]
        self.refusals = refusals = Row(refusal, 4)
        # of a flow that is not held
        strange = Record([("valid", 1), ("node", 16), ("incarnation", 8), ("psn", 16)])
        enter   = Signal()  # it is the next one to be told
        about   = PACKET_FLAG.EXPRESS if lane == LANE.EXPRESS else 0
        current = Signal()
        finish  = Signal()
        count   = Signal(8)
        self.comb += [
            count.eq(done_last.dat_r[16:] + done.refused),
            If((fresh & (1 << done.node[:bits])) != 0, count.eq(done.refused)),
            done_last.adr.eq(done.node[:bits]),
            done_flow.adr.eq(done.node[:bits]),
            current.eq(done_flow.dat_r == done.incarnation),
            done.ready.eq(~done.refused | refusals.sink.ready),
            finish.eq(done.valid & done.ready & current),
            self.refused.eq(done.valid & done.ready & done.refused),
            write_last.adr.eq(done.node[:bits]),
            write_last.dat_w.eq(Cat(done.psn, count)),
            write_last.we.eq(finish),
            write_flow.adr.eq(started.node[:bits]),
            write_flow.dat_w.eq(started.incarnation),
            write_flow.we.eq(started.strobe),
            enter.eq(strange.valid & ~(finish & done.refused)),
            refusals.sink.valid.eq((finish & done.refused) | strange.valid),
            refusals.sink.node.eq(Mux(enter, strange.node, done.node)),
            refusals.sink.incarnation.eq(Mux(enter, strange.incarnation, done.incarnation)),
            refusals.sink.psn.eq(Mux(enter, strange.psn, done.psn)),
            refusals.sink.reason.eq(Mux(enter, STATUS.PEER_RESTARTED, done.reason)),
            refusals.sink.refusals.eq(Mux(enter, 0, count)),
        ]
        self.sync += [
            If(enter & refusals.sink.ready, strange.valid.eq(0)),
            If(absent.strobe & ~strange.valid,
                strange.valid.eq(1),
                strange.node.eq(absent.node),
                strange.incarnation.eq(absent.incarnation),
                strange.psn.eq(absent.psn),
            ),
        ]

        # What is to be told. The lowest node goes first; no node starves, because an
        # acknowledgement takes 9 words of the link, and so does the shortest packet that asks for
        # one.
        again   = Signal()  # the refusal was told once
        due     = Signal(C.NODES)
        missing = Signal(C.NODES)
        answers = Signal(C.NODES)
        told    = Signal(C.NODES)
        any_due = Signal()
        node    = Signal(bits)
        of_node = lambda flags: (flags >> node)[0]
        self.comb += [
            any_due.eq(due != 0),
            node.eq(lowest(due)),
            read_flow.adr.eq(node),
            read_last.adr.eq(node),
            read_token.adr.eq(node),
            write_token.adr.eq(asked.node[:bits]),
            write_token.dat_w.eq(asked.token),
            write_token.we.eq(asked.strobe),
            # One that is still on its way goes before what covers it, too.
            source.valid.eq(Mux(refusals.holds, refusals.source.valid, any_due)),
            refusals.source.ready.eq(source.ready & again),
            If(refusals.holds,
                *[getattr(source, name).eq(getattr(refusals.source, name)) for name, _ in refusal],
                source.ack.eq(refusals.source.psn),
                source.flags.eq(PACKET_FLAG.REFUSED | about),
            ).Else(
                source.node.eq(node),
                source.incarnation.eq(read_flow.dat_r),
                source.ack.eq(read_last.dat_r[:16]),
                source.refusals.eq(read_last.dat_r[16:]),
                If(of_node(fresh), source.ack.eq(0xffff), source.refusals.eq(0)),
                source.flags.eq(about),
                flag(source.flags, "NAK").eq(of_node(missing)),
                If(of_node(answers),
                    flag(source.flags, "FIRST").eq(1),
                    source.psn.eq(read_token.dat_r)
                ),
                If(source.ready, told.eq(due & (~due + 1))),  # the lowest
            ),
        ]
        ask = lambda strobe, node: Mux(strobe, 1 << node[:bits], 0)
        self.sync += [
            If(refusals.source.valid & source.ready, again.eq(~again)),
            due.eq((due & ~told) | ask(finish & ~done.refused, done.node) | ask(repeat.strobe, repeat.node)
                | ask(gap.strobe, gap.node) | ask(asked.strobe, asked.node) | self.alive),
            answers.eq((answers & ~told) | ask(asked.strobe, asked.node)),
            missing.eq((missing & ~told & ~ask(started.strobe, started.node)) | ask(gap.strobe, gap.node)),
            fresh.eq((fresh & ~ask(finish, done.node)) | ask(started.strobe, started.node)),
        ]

# Acknowledger -------------------------------------------------------------------------------------

class Acknowledger(LiteXModule):
    """The acknowledgements of both lanes, by turns.

    Attributes
    ----------
    lanes    : LaneAcknowledgers, indexed by enum lane
    open     : list of Signal(), in        by enum lane: the packet of its last `done` has not
               landed yet
    source   : Endpoint(ack_layout), out   EXPRESS among the flags tells the lane
    hold     : Signal(), out               what is at `source` must not be told to its end yet
    counters : dict of pulses: PACKET_REFUSED, NAKS_SENT

    Cycles: 2 from `done` of a lane to `source`, and one without any behind what was told: that has
    left by the link, and a packet of the next one takes 9 cycles at least.
    """
    def __init__(self):
        self.express = express = LaneAcknowledger(LANE.EXPRESS)
        self.bulk    = bulk    = LaneAcknowledger(LANE.BULK)
        self.refused = refused = Pulses(express.refused, bulk.refused)
        self.lanes   = [express, bulk]
        self.open    = [Signal(name=f"open{n}") for n in range(C.LANES)]
        self.source  = source  = stream.Endpoint(ack_layout())
        self.hold    = Signal()
        nak = Signal()
        self.counters = {"PACKET_REFUSED": refused.pulse, "NAKS_SENT": nak}

        # # #

        turn   = Signal()  # it is BULK's
        chosen = Signal()  # BULK's goes
        idle   = Signal()  # there is a place
        waits  = Signal(C.LANES)  # what is told was open when it was looked up, and still is
        opens  = Cat(*self.open)
        self.comb += [
            self.hold.eq((waits & opens) != 0),
            idle.eq(~source.valid),
            chosen.eq(bulk.source.valid & (turn | ~express.source.valid)),
            express.source.ready.eq(idle & ~chosen),
            bulk.source.ready.eq(idle & chosen),
            nak.eq(source.valid & source.ready & flag(source.flags, "NAK")),
        ]
        self.sync += waits.eq(opens & Mux(idle, Cat(~chosen, chosen), waits))
        self.sync += If(source.ready, source.valid.eq(0))
        self.sync += If(idle,
            source.valid.eq(express.source.valid | bulk.source.valid),
            source.payload.eq(express.source.payload),
            If(chosen, source.payload.eq(bulk.source.payload)),
            turn.eq(express.source.valid & ~chosen),
        )
