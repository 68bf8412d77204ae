# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The control program's registers: the engines as it sees them."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.deposit.atomic import atomic_done_layout
from dibber.interface.description import C, MCP
from dibber.interface.registers import RegisterBank
from dibber.layouts import arrival_layout, express_layout, job_done_layout, job_layout, post_layout
from dibber.mcp.arrivals import inbox_free_layout
from dibber.packet.flow import flow_reset_layout, flow_rewind_layout, refusal_layout

# Queues -------------------------------------------------------------------------------------------

JOBS     = 8   # send jobs that may wait
RESULTS  = 16  # job ends, refusals and arrivals that may wait for the control program
FLOWS    = C.LANES*C.NODES

# MCP Registers ------------------------------------------------------------------------------------

class ControlRegisters(LiteXModule):
    """Bank `mcp`: event bits, the clock, and a queue in front of or behind each engine.

    The program looks at JOB_SPACE, EXPRESS_SPACE and POST_SPACE before it queues; what it queues without
    space is lost. A full queue of results makes its engine wait, as far back as the link's STOP.

    Parameters
    ----------
    host      : dict of Signal(32), the host registers shown here: NODE_ID, ADMIN_CQ_*, ADMIN_VECTOR
    pages     : EndpointPages
    cycles    : Signal(64), the card's clock
    endpoints : how many

    Attributes
    ----------
    port       : line_port(32)                        the processor's
    link_up    : Signal(), in
    jobs       : Endpoint(job_layout), out            to the send engine
    job_done   : Endpoint(job_done_layout), in
    express    : Endpoint(express_layout), out        to the packet layer's queue; `ready` is ignored
    express_space : Signal(8), in                     room in that queue
    refusals   : Endpoint(refusal_layout), in
    arrivals   : Endpoint(arrival_layout), in
    posts      : Endpoint(post_layout), out           to the host side's queue; `ready` is ignored
    post_space : Signal(8), in                        room in that queue
    acked      : list of Signal(16), in               the last PSN acknowledged of each flow
    changed    : Signal(FLOWS), in                    pulses: `acked` of this flow moved
    naked      : Signal(FLOWS), in                    pulses: a packet of this flow is missing
    flow_reset : Record(flow_reset_layout), out
    flow_rewind : Record(flow_rewind_layout), out
    inbox_free : Record(inbox_free_layout), out
    expect     : Record, out                          `we` for one cycle: the entry for `context`
    atomics    : Endpoint([("slot", 8)]), out
    atomic_done : Endpoint(atomic_done_layout), in
    region     : Record, out                          `we` for one cycle: the entry for `index`
    state      : Signal(8), out                       register STATE
    identity   : Signal(32), out                      register IDENTITY
    """
    def __init__(self, host, pages, cycles, endpoints=C.ENDPOINTS):
        self.link_up       = Signal()
        self.jobs          = stream.Endpoint(job_layout())
        self.job_done      = stream.Endpoint(job_done_layout())
        self.express       = stream.Endpoint(express_layout())
        self.express_space = Signal(8)
        self.refusals      = stream.Endpoint(refusal_layout())
        self.arrivals      = stream.Endpoint(arrival_layout())
        self.posts         = stream.Endpoint(post_layout())
        self.post_space    = Signal(8)
        self.acked         = [Signal(16, name=f"acked{n}") for n in range(FLOWS)]
        self.changed       = Signal(FLOWS)
        self.naked         = Signal(FLOWS)
        self.flow_reset    = Record(flow_reset_layout())
        self.flow_rewind   = Record(flow_rewind_layout())
        self.inbox_free    = Record(inbox_free_layout())
        self.expect        = Record([("we", 1), ("context", 16), ("key", 32), ("node", 8), ("valid", 1)])
        self.atomics       = stream.Endpoint([("slot", 8)])
        self.atomic_done   = stream.Endpoint(atomic_done_layout())
        self.region        = Record([
            ("we", 1), ("index", 8), ("key", 32), ("base", 64), ("length", 64),
            ("rights", 4), ("owner", 8), ("valid", 1)])
        self.state         = Signal(8)
        self.identity      = Signal(32)

        # # #

        self.bank = bank = RegisterBank(MCP, 32)
        self.port = bank.port
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        events = bank.fields(MCP, "EVENTS")

        # State ------------------------------------------------------------------------------------

        self.comb += [
            self.state.eq(storage["STATE"][0]),
            self.identity.eq(storage["IDENTITY"][0]),
        ]
        for name in ["NODE_ID", "ADMIN_CQ_LOW", "ADMIN_CQ_HIGH", "ADMIN_CQ_ENTRIES", "ADMIN_VECTOR"]:
            self.comb += status[name][0].eq(host[name])

        # Clock and Timer --------------------------------------------------------------------------

        # The timer is reached when the clock is less than half its range beyond it.
        armed, reached = Signal(), Signal()
        ahead = Signal(32)
        self.comb += ahead.eq(cycles[:32] - storage["TIMER"][0])
        self.comb += [
            status["CYCLES_LOW"][0].eq(cycles[:32]),
            events["timer"].eq(reached),
        ]
        self.sync += [
            If(bank.read["CYCLES_LOW"][0], status["CYCLES_HIGH"][0].eq(cycles[32:])),
            If(armed & ~ahead[31], reached.eq(1)),
            If(strobe["TIMER"][0], armed.eq(1), reached.eq(0)),
        ]

        # Commands ---------------------------------------------------------------------------------

        pending = status["COMMAND_PENDING"][0]
        for n in range(endpoints):
            self.sync += pending[n].eq(pages.producer[n] != storage["HEAD"][n])
            self.comb += [
                pages.head[n].eq(storage["HEAD"][n]),
                status["PRODUCER"][n].eq(pages.producer[n]),
                status["CQ_CONSUMER"][n].eq(pages.cq_consumer[n]),
                status["EQ_CONSUMER"][n].eq(pages.eq_consumer[n]),
            ]
        self.comb += events["command"].eq(pending != 0)

        # Link -------------------------------------------------------------------------------------

        before, watching = Signal(), Signal()
        self.comb += [
            status["LINK"][0].eq(self.link_up),
            status["LINK_CHANGED"][0].eq(watching & (before ^ self.link_up)),
            events["link"].eq(storage["LINK_CHANGED"][0] != 0),
        ]
        self.sync += [
            before.eq(self.link_up),
            watching.eq(1),
        ]

        # Jobs -------------------------------------------------------------------------------------

        slot = bank.fields(MCP, "JOB_SLOT")
        flow = bank.fields(MCP, "JOB_FLOW")
        done = bank.fields(MCP, "JOB_DONE")
        self.job_queue  = job_queue  = stream.SyncFIFO(job_layout(), JOBS)
        self.done_queue = done_queue = stream.SyncFIFO(job_done_layout(), RESULTS)
        self.comb += [
            job_queue.sink.valid.eq(strobe["JOB_START"][0]),
            *[getattr(job_queue.sink, name).eq(slot[name])
                for name in ["endpoint", "slot", "epoch", "response", "indirect", "target_levels", "target"]],
            job_queue.sink.message.eq(storage["JOB_MESSAGE"][0]),
            job_queue.sink.psn.eq(flow["psn"]),
            job_queue.sink.incarnation.eq(flow["incarnation"]),
            job_queue.sink.node.eq(flow["node"]),
            job_queue.sink.length.eq(storage["JOB_LENGTH"][0]),
            job_queue.sink.skip.eq(storage["JOB_SKIP"][0]),
            job_queue.sink.tag.eq(bank.written["JOB_START"][0]),
            job_queue.source.connect(self.jobs),
            status["JOB_SPACE"][0].eq(JOBS - job_queue.level),

            self.job_done.connect(done_queue.sink),
            events["job_done"].eq(done_queue.source.valid),
            done["tag"].eq(done_queue.source.tag),
            done["status"].eq(done_queue.source.status),
            done["psn"].eq(done_queue.source.psn),
            status["JOB_CHECKSUM"][0].eq(done_queue.source.checksum),
            done_queue.source.ready.eq(strobe["JOB_DONE_POP"][0]),
        ]

        # Express ----------------------------------------------------------------------------------

        flow  = bank.fields(MCP, "EXPRESS_FLOW")
        start = bank.fields(MCP, "EXPRESS_START")
        self.comb += [
            self.express.valid.eq(strobe["EXPRESS_START"][0]),
            self.express.last.eq(1),
            *[getattr(self.express, name).eq(flow[name]) for name in ["psn", "incarnation", "node"]],
            *[getattr(self.express, name).eq(start[name])
                for name in ["slot", "endpoint", "length", "epoch", "message"]],
            self.express.word.eq(storage["EXPRESS_MESSAGE"][0]),
            status["EXPRESS_SPACE"][0].eq(self.express_space),
        ]

        # Flows ------------------------------------------------------------------------------------

        reset   = bank.fields(MCP, "FLOW_RESET")
        rewind  = bank.fields(MCP, "FLOW_REWIND")
        refusal = bank.fields(MCP, "REFUSAL")
        self.refusal_queue = refusal_queue = stream.SyncFIFO(refusal_layout(), RESULTS)
        self.comb += [
            *[status["ACKED"][n].eq(self.acked[n]) for n in range(FLOWS)],
            status["ACKED_CHANGED"][0].eq(self.changed),
            events["ack"].eq(storage["ACKED_CHANGED"][0] != 0),
            self.flow_reset.strobe.eq(strobe["FLOW_RESET"][0]),
            self.flow_reset.flow.eq(reset["flow"]),
            self.flow_reset.incarnation.eq(reset["incarnation"]),
            self.flow_rewind.strobe.eq(strobe["FLOW_REWIND"][0]),
            self.flow_rewind.flow.eq(rewind["flow"]),
            self.flow_rewind.epoch.eq(rewind["epoch"]),
            status["NAKED"][0].eq(self.naked),
            events["nak"].eq(storage["NAKED"][0] != 0),

            self.refusals.connect(refusal_queue.sink),
            events["refusal"].eq(refusal_queue.source.valid),
            refusal["psn"].eq(refusal_queue.source.psn),
            refusal["reason"].eq(refusal_queue.source.reason),
            refusal["flow"].eq(refusal_queue.source.flow),
            refusal_queue.source.ready.eq(strobe["REFUSAL_POP"][0]),
        ]

        # Arrivals ---------------------------------------------------------------------------------

        arrival = bank.fields(MCP, "ARRIVAL")
        self.arrival_queue = arrival_queue = stream.SyncFIFO(arrival_layout(), RESULTS)
        self.comb += [
            self.arrivals.connect(arrival_queue.sink),
            events["arrival"].eq(arrival_queue.source.valid),
            arrival["message"].eq(arrival_queue.source.is_message),
            *[arrival[name].eq(getattr(arrival_queue.source, name))
                for name in ["node", "endpoint", "slot", "interrupt", "response"]],
            status["ARRIVAL_VALUE"][0].eq(arrival_queue.source.value),
            status["ARRIVAL_LENGTH"][0].eq(arrival_queue.source.length),
            status["ARRIVAL_KEY"][0].eq(arrival_queue.source.key),
            arrival_queue.source.ready.eq(strobe["ARRIVAL_POP"][0]),
        ]

        # Inbox, Gets and Atomics ------------------------------------------------------------------

        expect = bank.fields(MCP, "EXPECT_WRITE")
        self.atomic_queue  = atomic_queue  = stream.SyncFIFO([("slot", 8)], 2)
        self.atomic_result = atomic_result = stream.SyncFIFO(atomic_done_layout(), 2)
        self.comb += [
            self.inbox_free.strobe.eq(strobe["INBOX_FREE"][0]),
            self.inbox_free.slot.eq(bank.written["INBOX_FREE"][0]),

            self.expect.we.eq(strobe["EXPECT_WRITE"][0]),
            self.expect.key.eq(storage["EXPECT_KEY"][0]),
            *[getattr(self.expect, name).eq(expect[name]) for name in ["context", "node", "valid"]],

            atomic_queue.sink.valid.eq(strobe["ATOMIC_START"][0]),
            atomic_queue.sink.slot.eq(bank.written["ATOMIC_START"][0]),
            atomic_queue.source.connect(self.atomics),
            self.atomic_done.connect(atomic_result.sink),
            events["atomic"].eq(atomic_result.source.valid),
            status["ATOMIC_STATUS"][0].eq(atomic_result.source.status),
            status["ATOMIC_LOW"][0].eq(atomic_result.source.value[:32]),
            status["ATOMIC_HIGH"][0].eq(atomic_result.source.value[32:]),
            atomic_result.source.ready.eq(strobe["ATOMIC_POP"][0]),
        ]

        # Posts ------------------------------------------------------------------------------------

        post = bank.fields(MCP, "POST_START")
        self.comb += [
            self.posts.valid.eq(strobe["POST_START"][0]),
            self.posts.address.eq(Cat(storage["POST_ADDRESS_LOW"][0], storage["POST_ADDRESS_HIGH"][0])),
            self.posts.dat.eq(Cat(*storage["POST_DATA"])),
            self.posts.vector.eq(post["vector"]),
            self.posts.interrupt.eq(post["interrupt"]),
            status["POST_SPACE"][0].eq(self.post_space),
        ]

        # Regions ----------------------------------------------------------------------------------

        access = bank.fields(MCP, "REGION_ACCESS")
        self.comb += [
            self.region.we.eq(strobe["REGION_WRITE"][0]),
            self.region.index.eq(bank.written["REGION_WRITE"][0]),
            self.region.key.eq(storage["REGION_KEY"][0]),
            self.region.base.eq(Cat(storage["REGION_BASE_LOW"][0], storage["REGION_BASE_HIGH"][0])),
            self.region.length.eq(Cat(storage["REGION_LENGTH_LOW"][0], storage["REGION_LENGTH_HIGH"][0])),
            self.region.rights.eq(access["rights"]),
            self.region.owner.eq(access["owner"]),
            self.region.valid.eq(access["valid"]),
        ]
