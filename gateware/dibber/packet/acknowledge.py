"""Acknowledgements: what the target of a flow tells its source."""

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
    """Index of the lowest set bit of 4, 16 or 64, as an expression, in groups of four: for 16 bits
    three LUTs deep.
    """
    assert len(bits) in (4, 16, 64)
    index = lambda four: Cat(~four[0] & (four[1] | ~four[2]), ~four[0] & ~four[1])
    if len(bits) == 4:
        return index(bits)
    quarter = len(bits)//4
    groups  = [bits[n:n + quarter] for n in range(0, len(bits), quarter)]
    chosen  = index([group != 0 for group in groups])
    lows    = [lowest(group) for group in groups]
    return Cat(
        Mux(chosen[1], Mux(chosen[0], lows[3], lows[2]), Mux(chosen[0], lows[1], lows[0])), chosen)

# Lane Acknowledger --------------------------------------------------------------------------------

class LaneAcknowledger(LiteXModule):
    """Turn the packet ends, duplicates, gaps and questions of one lane into acknowledgements.

    Acknowledgements are cumulative and coalesce: one pending bit a node. A refusal is sent on its
    own, and before each acknowledgement that covers it. If four refusals wait, `done` stalls. A
    deposit of an older incarnation is not acknowledged.

    An acknowledgement may be lost on the link; the next one would then cover a lost refusal. So
    each one carries the number of refusals up to its PSN, and the source sees that one is missing.
    Each refusal is sent twice, so that a single loss costs nothing.

    A packet of a flow that is not held gets a refusal with the reason PEER_RESTARTED. It
    acknowledges nothing and does not count as a refusal. At most one of these waits beside the four
    refusals. While it waits, others are dropped, because the next packet of their source brings
    another one.

    The answer to a question has FIRST, and the question's token in `psn`. If no flow was started
    yet, its incarnation is arbitrary.

    Parameters
    ----------
    lane : enum lane

    Attributes
    ----------
    done    : Endpoint(deposit_done_layout), in   in the order of the deposits
    started : Record, in     `strobe`, `node`, `incarnation`: a flow starts, with no packet done yet
    repeat  : Record, in     `strobe`, `node`: acknowledge again
    gap     : Record, in     `strobe`, `node`: tell that a packet is missing (NAK)
    asked   : Record, in     `strobe`, `node`, `token`: answer a question
    alive   : Signal(NODES), in   one bit a node: acknowledge again
    absent  : Record, in     `strobe`, `node`, `incarnation`, `psn`: a packet came whose flow is not
              held
    source  : Endpoint(ack_layout), out  next acknowledgement; while it waits, another one may
              replace it
    refused : Signal(), out  one cycle for each refusal

    Cycles: 1 from `done` to `source`, 4 for a refusal.
    """
    def __init__(self, lane):
        self.done    = done    = stream.Endpoint(deposit_done_layout())
        self.started = started = Record([("strobe", 1), ("node", 16), ("incarnation", 8)])
        self.repeat  = repeat  = Record([("strobe", 1), ("node", 16)])
        self.gap     = gap     = Record([("strobe", 1), ("node", 16)])
        self.asked   = asked   = Record([("strobe", 1), ("node", 16), ("token", 16)])
        self.alive   = Signal(C.NODES)
        self.absent  = absent  = Record(
            [("strobe", 1), ("node", 16), ("incarnation", 8), ("psn", 16)])
        self.source  = source  = stream.Endpoint(ack_layout())
        self.refused = Signal()

        # # #

        # Per node: incarnation, last PSN that is done, refusals up to it. `fresh`: no PSN is done
        # yet.
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
        self.specials += (
            incarnations, lasts, write_flow, read_flow, done_flow, write_last, read_last, done_last)
        self.specials += tokens, write_token, read_token
        fresh = Signal(C.NODES, reset=2**C.NODES - 1)

        # Ends of deposits.
        refusal = [("node", 16), ("incarnation", 8), ("psn", 16), ("reason", 8), ("refusals", 8)]
        self.refusals = refusals = Row(refusal, 4)
        # A packet of a flow that is not held, to be refused.
        unknown_flow   = Record([("valid", 1), ("node", 16), ("incarnation", 8), ("psn", 16)])
        enters_unknown = Signal()  # it enters `refusals` next
        lane_flag      = PACKET_FLAG.EXPRESS if lane == LANE.EXPRESS else 0
        current        = Signal()
        finish         = Signal()
        count          = Signal(8)
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
            enters_unknown.eq(unknown_flow.valid & ~(finish & done.refused)),
            refusals.sink.valid.eq((finish & done.refused) | unknown_flow.valid),
            refusals.sink.node.eq(Mux(enters_unknown, unknown_flow.node, done.node)),
            refusals.sink.incarnation.eq(
                Mux(enters_unknown, unknown_flow.incarnation, done.incarnation)),
            refusals.sink.psn.eq(Mux(enters_unknown, unknown_flow.psn, done.psn)),
            refusals.sink.reason.eq(Mux(enters_unknown, STATUS.PEER_RESTARTED, done.reason)),
            refusals.sink.refusals.eq(Mux(enters_unknown, 0, count)),
        ]
        self.sync += [
            If(enters_unknown & refusals.sink.ready, unknown_flow.valid.eq(0)),
            If(absent.strobe & ~unknown_flow.valid,
                unknown_flow.valid.eq(1),
                unknown_flow.node.eq(absent.node),
                unknown_flow.incarnation.eq(absent.incarnation),
                unknown_flow.psn.eq(absent.psn),
            ),
        ]

        # Pending acknowledgements. The lowest node has priority. No node starves, because an
        # acknowledgement takes 9 words of the link, and so does the shortest packet that causes
        # one.
        told_once = Signal()  # the refusal was sent once
        due       = Signal(C.NODES)
        missing   = Signal(C.NODES)
        answers   = Signal(C.NODES)
        told      = Signal(C.NODES)
        any_due   = Signal()
        node      = Signal(bits)
        of_node   = lambda flags: (flags >> node)[0]
        self.comb += [
            any_due.eq(due != 0),
            node.eq(lowest(due)),
            read_flow.adr.eq(node),
            read_last.adr.eq(node),
            read_token.adr.eq(node),
            write_token.adr.eq(asked.node[:bits]),
            write_token.dat_w.eq(asked.token),
            write_token.we.eq(asked.strobe),
            # A refusal that is still in the queue also precedes what covers it.
            source.valid.eq(Mux(refusals.holds, refusals.source.valid, any_due)),
            refusals.source.ready.eq(source.ready & told_once),
            If(refusals.holds,
                *[getattr(source, name).eq(getattr(refusals.source, name)) for name, _ in refusal],
                source.ack.eq(refusals.source.psn),
                source.flags.eq(PACKET_FLAG.REFUSED | lane_flag),
            ).Else(
                source.node.eq(node),
                source.incarnation.eq(read_flow.dat_r),
                source.ack.eq(read_last.dat_r[:16]),
                source.refusals.eq(read_last.dat_r[16:]),
                If(of_node(fresh), source.ack.eq(0xffff), source.refusals.eq(0)),
                source.flags.eq(lane_flag),
                flag(source.flags, "NAK").eq(of_node(missing)),
                If(of_node(answers),
                    flag(source.flags, "FIRST").eq(1),
                    source.psn.eq(read_token.dat_r)
                ),
                If(source.ready, told.eq(due & (~due + 1))),  # the lowest
            ),
        ]
        node_mask = lambda strobe, node: Mux(strobe, 1 << node[:bits], 0)
        self.sync += [
            If(refusals.source.valid & source.ready, told_once.eq(~told_once)),
            due.eq(
                (due & ~told) | node_mask(finish & ~done.refused, done.node) |
                node_mask(repeat.strobe, repeat.node)
                | node_mask(gap.strobe, gap.node) | node_mask(
                    asked.strobe, asked.node) | self.alive),
            answers.eq((answers & ~told) | node_mask(asked.strobe, asked.node)),
            missing.eq(
                (
                    missing & ~told &
                    ~node_mask(started.strobe, started.node)) | node_mask(gap.strobe, gap.node)),
            fresh.eq(
                (fresh & ~node_mask(finish, done.node)) | node_mask(started.strobe, started.node)),
        ]

# Acknowledger -------------------------------------------------------------------------------------

class Acknowledger(LiteXModule):
    """The acknowledgements of both lanes, in turns.

    Attributes
    ----------
    lanes    : LaneAcknowledgers, indexed by enum lane
    open     : list of Signal(), in        by enum lane: the packet of its last `done` has not
               landed
    source   : Endpoint(ack_layout), out   the flag EXPRESS tells the lane
    hold     : Signal(), out               the acknowledgement at `source` must not be sent
               completely yet
    counters : dict of pulses: PACKET_REFUSED, NAKS_SENT

    Cycles: 2 from a lane's `done` to `source`. After each acknowledgement one idle cycle: it has
    left by the link, where the next packet takes at least 9 cycles.
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

        turn       = Signal()  # BULK has priority
        chosen     = Signal()  # BULK is granted
        empty      = Signal()  # the output register is empty
        told_open  = Signal(C.LANES)  # by lane: `source` acknowledges a packet that was open
        open_lanes = Cat(*self.open)
        self.comb += [
            self.hold.eq((told_open & open_lanes) != 0),
            empty.eq(~source.valid),
            chosen.eq(bulk.source.valid & (turn | ~express.source.valid)),
            express.source.ready.eq(empty & ~chosen),
            bulk.source.ready.eq(empty & chosen),
            nak.eq(source.valid & source.ready & flag(source.flags, "NAK")),
        ]
        self.sync += told_open.eq(open_lanes & Mux(empty, Cat(~chosen, chosen), told_open))
        self.sync += If(source.ready, source.valid.eq(0))
        self.sync += If(empty,
            source.valid.eq(express.source.valid | bulk.source.valid),
            source.payload.eq(express.source.payload),
            If(chosen, source.payload.eq(bulk.source.payload)),
            turn.eq(express.source.valid & ~chosen),
        )
