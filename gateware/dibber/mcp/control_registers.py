"""The control program's registers: bank `mcp`."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BlockFIFO, Row
from dibber.deposit.host_memory import region_write_layout
from dibber.endpoint.arrivals import inbox_free_layout
from dibber.endpoint.queues import queue_open_layout
from dibber.endpoint.room import bits_of, if_present
from dibber.fastpath.digests import PutDigests
from dibber.interface.description import C, ENTRY, MCP
from dibber.interface.register_bank import RegisterBank
from dibber.layouts import (SHOWN, acked_layout, arrival_layout, claimed_layout, count_layout, digest_layout, entry_layout,
    express_layout, flow_event_layout, job_done_layout, job_layout, request_layout, scout_layout, slot_free_layout)
from dibber.packet.flow_table import flow_reset_layout, flow_rewind_layout, refusal_layout
from dibber.packet.route import route_write_layout

# Queues -------------------------------------------------------------------------------------------

RESULTS  = 16  # job ends and refusals that may wait for the control program
POSTS    = 16  # queue entries of the control program that may wait
FLOWS    = C.LANES*C.NODES

# Helpers ------------------------------------------------------------------------------------------

def flow_bit(event):
    """One-hot, a bit for each flow: the flow of the event. Events with the same flow signal share
    one decoder; a shift would not share it.
    """
    return bits_of(FLOWS, event.flow, event.strobe)

def all_of(words):
    """The bits of a register of one word or of several."""
    return words[0] if len(words) == 1 else Cat(*words)

# MCP Registers ------------------------------------------------------------------------------------

class ControlRegisters(LiteXModule):
    """Bank `mcp`: event bits, the clock, orders to the engines, and their results.

    The program reads JOB_SPACE, EXPRESS_SPACE and POST_SPACE before it queues an order or an entry.
    Without space it is lost. A full queue of results makes its engine wait; this backpressure
    reaches the link, which raises STOP.

    Parameters
    ----------
    host      : Record(shown_layout()), `index` out, the host registers shown here
    cycles    : Signal(64), the card's clock
    endpoints : how many, a power of two, up to ENDPOINTS; the registers of others read as 0
    links     : of the card, 1 or 2

    Attributes
    ----------
    port       : line_port(32)                        the processor's, which writes whole words
    release    : Signal(), out                        a load of EVENTS_HELD is answered: one cycle ago
                 EVENTS was not 0, or the clock was a multiple of EVENTS_HOLD
    link_up    : Signal(links), in
    jobs       : Endpoint(job_layout), out            one cycle each; `ready` is ignored
    job_space  : Signal(8), in
    job_done   : Endpoint(job_done_layout), in
    express    : Endpoint(express_layout), out        one cycle each; `ready` is ignored
    express_space : Signal(8), in
    refusals   : Endpoint(refusal_layout), in
    arrivals   : Endpoint(arrival_layout), in         what ARRIVAL shows; `ready` is ARRIVAL_POP
    refusal_waiting : Signal(), out                   REFUSAL is valid
    entries    : Endpoint(entry_layout), out          queue entries of the program
    queue      : Record, out                          `strobe` for one cycle: a queue is opened, or
                 `closed`
    producer, head : Record(count_layout), `endpoint` out, `count` in   PRODUCER, HEAD
    take, skip : Record, out                          `strobe` for one cycle: COMMAND_TAKE,
                 COMMAND_SKIP
    free       : Record(slot_free_layout), out
    pending, room : Signal(endpoints), in             COMMAND_PENDING, QUEUE_ROOM
    digest     : Record(digest_layout), in            of a command that will be pending
    fast_enable : Record, out                         register FAST_OPCODES
    fast_endpoints : Signal(endpoints), out
    generation : Signal(6), in                        register GENERATION
    advance    : Signal(), out                        GENERATION_NEXT is written
    arm, claim : Record, out                          `strobe` for one cycle: FLOW_ARM, FLOW_CLAIM
    claim_pop  : Signal(), out
    claimed    : Record, in                           what CLAIM_* show
    fast_busy  : Signal(endpoints), in
    fast_active : Signal(FLOWS), in
    fast_moved : list of 2 Record(flow_event_layout), in
    given      : Record(flow_event_layout), in
    works      : Record(flow_event_layout), in        a BULK flow's target is storing
    storing    : Signal(NODES), in                    nodes whose payload is being stored here
    send_moved : Signal(), in                         the send engine makes progress
    left       : Record, `flow` out                   register LEFT of this flow: `psn`, `valid`,
                 `vain`
    watchdog   : Record, out                          `strobe` for one cycle: WATCHDOG is written
    written    : Signal(), in                         pulse: the host wrote into the SRAM
    acked      : Record(acked_layout()), `flow` out, `psn` in
    changed    : Record(flow_event_layout), in        ACKED of this flow moved
    naked      : Record(flow_event_layout), in        a packet of this flow is missing
    flow_reset : Record(flow_reset_layout), out
    flow_rewind : Record(flow_rewind_layout), out
    inbox_free : Record(inbox_free_layout), out
    expect     : Record, out                          `we` for one cycle: the entry for `context`
    replies    : Endpoint(request_layout), in         what ATOMIC_DONE shows; `ready` is ATOMIC_POP
    replies_again, arrivals_again : Signal(), out     ATOMIC_AGAIN, ARRIVAL_AGAIN
    replies_twice, arrivals_twice : Signal(), in      the reply, or get, was offered again
    region     : Record(region_write_layout()), out   an entry of the region table
    region_fresh, region_busy : Signal(), in          REGION_FRESH, REGION_BUSY
    route      : Record(route_write_layout), out      an entry of the route table
    scouts     : Endpoint(scout_layout), out
    scouts_came : Endpoint(scout_layout), in
    state      : Signal(8), out                       register STATE
    identity   : Signal(32), out                      register IDENTITY
    """
    def __init__(self, host, cycles, endpoints=C.ENDPOINTS, links=1):
        self.release       = Signal()
        self.link_up       = Signal(links)
        flow, endpoint     = ("flow", log2_int(FLOWS)), ("endpoint", log2_int(endpoints))
        self.jobs          = stream.Endpoint(job_layout())
        self.job_space     = Signal(8)
        self.job_done      = stream.Endpoint(job_done_layout())
        self.express       = stream.Endpoint(express_layout())
        self.express_space = Signal(8)
        self.refusals      = stream.Endpoint(refusal_layout())
        self.refusal_waiting = Signal()
        self.arrivals      = stream.Endpoint(arrival_layout())
        self.entries       = stream.Endpoint(entry_layout())
        self.queue         = Record(queue_open_layout())
        self.producer      = Record(count_layout())
        self.head          = Record(count_layout())
        self.take          = Record([("strobe", 1), endpoint])
        self.skip          = Record([("strobe", 1), endpoint])
        self.free          = Record(slot_free_layout())
        self.pending       = Signal(endpoints)
        self.room          = Signal(endpoints)
        self.digest        = Record(digest_layout())
        self.fast_enable   = Record([(field.name, field.bits) for field in MCP["FAST_OPCODES"].fields])
        self.fast_endpoints = Signal(endpoints)
        self.generation    = Signal(6)
        self.advance       = Signal()
        self.fast_busy     = Signal(endpoints)
        self.fast_active   = Signal(FLOWS)
        self.fast_moved    = [Record(flow_event_layout()) for _ in range(2)]
        self.given         = Record(flow_event_layout())
        self.works         = Record(flow_event_layout())
        self.storing       = Signal(C.NODES)
        self.send_moved    = Signal()
        self.left          = Record([flow, ("psn", 16), ("valid", 1), ("vain", 1)])
        self.arm           = Record([("strobe", 1), flow, ("epoch", 4), ("psn", 16), ("incarnation", 8)])
        self.claim         = Record([("strobe", 1), flow])
        self.claim_pop     = Signal()
        self.claimed       = Record(claimed_layout())
        self.written       = Signal()
        self.watchdog      = Record([("strobe", 1), ("cycles", 32)])
        self.acked         = Record(acked_layout())
        self.changed       = Record(flow_event_layout())
        self.naked         = Record(flow_event_layout())
        self.flow_reset    = Record(flow_reset_layout())
        self.flow_rewind   = Record(flow_rewind_layout())
        self.inbox_free    = Record(inbox_free_layout())
        self.expect        = Record([("we", 1), ("context", 16), ("key", 32), ("node", 8), ("valid", 1)])
        self.replies       = stream.Endpoint(request_layout())
        self.replies_again,  self.replies_twice  = Signal(), Signal()
        self.arrivals_again, self.arrivals_twice = Signal(), Signal()
        self.region        = Record(region_write_layout())
        self.region_fresh  = Signal()
        self.region_busy   = Signal()
        self.route         = Record(route_write_layout())
        self.scouts        = stream.Endpoint(scout_layout())
        self.scouts_came   = stream.Endpoint(scout_layout())
        self.state         = Signal(8)
        self.identity      = Signal(32)

        # # #

        self.bank = bank = RegisterBank(MCP, 32, whole=True, indexed=("ACKED", "LEFT", "PRODUCER", "HEAD", SHOWN),
            single=("SRAM_WRITTEN", "SEND_MOVED", *(["LINK_CHANGED"] if links == 1 else [])))
        self.port    = bank.port
        self.events  = bank.fields(MCP, "EVENTS")
        self.causes  = []  # of EVENTS.replay
        self.digests = PutDigests(endpoints)
        self.show_state(host)
        self.add_timer(cycles)
        self.add_commands(endpoints)
        self.add_fast_path(endpoints)
        self.add_link()
        self.add_jobs()
        self.add_express()
        self.add_flows()
        self.add_arrivals()
        self.add_requests()
        self.add_queues()
        self.add_routes()
        self.add_regions()
        if self.causes:
            self.comb += self.events["replay"].eq(Reduce("OR", self.causes))

    def replays(self, name, cause):
        """A statement that shows a cause of a replay in EVENTS: as a bit of its own, or as one of the
        causes of the bit for all.
        """
        if name in self.events:
            return self.events[name].eq(cause)
        shown = Signal(name=f"shows_{name}")
        self.causes.append(shown)
        return shown.eq(cause)

    # State ----------------------------------------------------------------------------------------

    def show_state(self, host):
        """STATE, IDENTITY, and the host registers that the program sees."""
        bank = self.bank
        status, storage = bank.status, bank.storage
        self.comb += [
            self.state.eq(storage["STATE"][0]),
            self.identity.eq(storage["IDENTITY"][0]),
            host.index.eq(bank.index[SHOWN[0]]),
            status[SHOWN[0]][0].eq(host.value),
            status["CLOCK_HZ"][0].eq(host.clock_hz),
        ]

    # Clock and Timer ------------------------------------------------------------------------------

    def add_timer(self, cycles):
        """CYCLES_LOW and TIMER, and the end of a wait for events."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        events = self.events
        # The timer is reached if the clock is ahead of it by less than half the range of the clock.
        armed, reached = Signal(), Signal()
        ahead = Signal(32)
        self.comb += ahead.eq(cycles[:32] - storage["TIMER"][0])
        self.comb += [
            status["CYCLES_LOW"][0].eq(cycles[:32]),
            events["timer"].eq(reached),
        ]
        self.sync += [
            If(armed & ~ahead[31], reached.eq(1)),
            If(strobe["TIMER"][0], armed.eq(1), reached.eq(0)),
        ]
        shown = status["EVENTS"][0]
        self.comb += status["EVENTS_HELD"][0].eq(shown)
        self.sync += self.release.eq((shown != 0) | (cycles[:log2_int(C.EVENTS_HOLD)] == 0))

    # Commands -------------------------------------------------------------------------------------

    def add_commands(self, endpoints):
        """Commands that wait, the slots that are freed, and digests of inline puts."""
        bank = self.bank
        status, strobe = bank.status, bank.strobe
        events = self.events
        free = bank.fields(MCP, "SLOT_FREE")
        post = bank.fields(MCP, "POST_START")
        put  = bank.fields(MCP, "PUT_START")
        done = bank.fields(MCP, "POST_PUT")
        for name, look in ("PRODUCER", self.producer), ("HEAD", self.head):
            self.comb += [
                look.endpoint.eq(bank.index[name]),
                status[name][0].eq(look.count),
            ]
        self.comb += [
            status["QUEUE_ROOM"][0].eq(self.room),
            self.take.strobe.eq(strobe["COMMAND_TAKE"][0] | strobe["PUT_START"][0]),
            self.take.endpoint.eq(Mux(strobe["PUT_START"][0], put["endpoint"], bank.written["COMMAND_TAKE"][0])),
            # The program skips commands of all endpoints, also of those that the card does not
            # have.
            self.skip.strobe.eq(if_present(endpoints, bank.written["COMMAND_SKIP"][0], strobe["COMMAND_SKIP"][0])),
            self.skip.endpoint.eq(bank.written["COMMAND_SKIP"][0]),
            # A post that frees a slot goes to the completion queue of the slot's endpoint.
            self.free.strobe.eq(strobe["SLOT_FREE"][0] | (strobe["POST_START"][0] & post["free"]) | strobe["POST_PUT"][0]),
            If(strobe["SLOT_FREE"][0],
                self.free.tag.eq(Cat(free["slot"][:log2_int(C.SLOTS)], free["endpoint"]))
            ).Elif(strobe["POST_PUT"][0],
                self.free.tag.eq(Cat(done["slot"], done["endpoint"]))
            ).Else(
                self.free.tag.eq(Cat(post["slot"][:log2_int(C.SLOTS)], post["queue"]))
            )
        ]

        # Digests of inline puts. The value that is written to POST_PUT looks up the cookie.
        digests = self.digests
        posted = next(field.lsb for field in MCP["POST_PUT"].fields if field.name == "slot")
        shorts = Signal(endpoints)
        others = Signal(endpoints)
        self.comb += [
            shorts.eq(self.pending & self.fast_endpoints & digests.known),
            others.eq(self.pending & ~shorts),
            status["COMMAND_PENDING"][0].eq(others),
            events["command"].eq(others != 0),
            digests.digest.eq(self.digest),
            digests.able.eq(shorts & Replicate(self.express_space != 0, endpoints)),
            digests.skip.eq(strobe["PUT_PASS"][0]),
            digests.gone.eq(bits_of(endpoints, self.take.endpoint, self.take.strobe)
                | bits_of(endpoints, self.skip.endpoint, self.skip.strobe) | Replicate(strobe["FLOW_ARM"][0], endpoints)),
            digests.ask.eq(put["endpoint"]),
            digests.start.strobe.eq(strobe["PUT_START"][0]),
            digests.start.endpoint.eq(put["endpoint"]),
            digests.end.strobe.eq(strobe["POST_PUT"][0]),
            digests.end.endpoint.eq(done["endpoint"]),
            digests.tag.eq(bank.port.dat_w[posted:posted + len(digests.tag)]),
            events["put"].eq(digests.valid),
            *[events[name].eq(getattr(digests.shown, name)) for name in ["endpoint", "slot", "node", "solicit", "length"]],
        ]

    # Fast Path ------------------------------------------------------------------------------------

    def add_fast_path(self, endpoints):
        """What the fast path may do, which flows it has, and what it gives back."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        digests = self.digests
        opcodes = bank.fields(MCP, "FAST_OPCODES")
        place   = bank.fields(MCP, "ARM_PLACE")
        arm     = bank.fields(MCP, "FLOW_ARM")
        state   = bank.fields(MCP, "CLAIM_STATE")
        entry   = bank.fields(MCP, "CLAIM_ENTRY")
        self.comb += [
            *[getattr(self.fast_enable, name).eq(bit) for name, bit in opcodes.items()],
            self.fast_endpoints.eq(storage["FAST_ENDPOINTS"][0]),
            status["GENERATION"][0].eq(self.generation),
            self.advance.eq(strobe["GENERATION_NEXT"][0]),
            status["FAST_BUSY"][0].eq(self.fast_busy | digests.busy),
            all_of(status["FAST_ACTIVE"]).eq(self.fast_active),
            all_of(status["FAST_MOVED"]).eq(Reduce("OR", [flow_bit(event) for event in self.fast_moved])),
            all_of(status["PEER_WORKS"]).eq(flow_bit(self.works) | self.storing),
            status["SEND_MOVED"][0].eq(self.send_moved),
            all_of(status["GIVEN"]).eq(flow_bit(self.given)),
            self.replays("given", all_of(storage["GIVEN"]) != 0),
            self.arm.strobe.eq(strobe["FLOW_ARM"][0]),
            *[getattr(self.arm, name).eq(arm[name]) for name in ["flow", "epoch"]],
            *[getattr(self.arm, name).eq(place[name]) for name in ["psn", "incarnation"]],
            self.claim.strobe.eq(strobe["FLOW_CLAIM"][0]),
            self.claim.flow.eq(bank.written["FLOW_CLAIM"][0]),
            self.claim_pop.eq(strobe["CLAIM_POP"][0]),
            *[state[name].eq(getattr(self.claimed, name)) for name in ["psn", "entries", "asks", "generation"]],
            entry["psn"].eq(self.claimed.entry_psn),
            *[entry[name].eq(getattr(self.claimed, name)) for name in ["tag", "ended", "solicit", "kind", "atomic"]],
            status["CLAIM_COOKIE"][0].eq(self.claimed.cookie),
            status["CLAIM_LENGTH"][0].eq(self.claimed.length),
            self.watchdog.strobe.eq(strobe["WATCHDOG"][0]),
            self.watchdog.cycles.eq(storage["WATCHDOG"][0]),
            status["SRAM_WRITTEN"][0].eq(self.written),
            status["ENDPOINTS"][0].eq(endpoints),
        ]

    # Link -----------------------------------------------------------------------------------------

    def add_link(self):
        """LINK and LINK_CHANGED."""
        bank = self.bank
        status, storage = bank.status, bank.storage
        shown = bank.fields(MCP, "LINK")
        before, watching = Signal(len(self.link_up)), Signal()
        self.comb += [
            shown["up"].eq(self.link_up),
            shown["two"].eq(len(self.link_up) == 2),
            status["LINK_CHANGED"][0].eq(
                (watching if len(before) == 1 else Replicate(watching, len(before))) & (before ^ self.link_up)),
            self.replays("link", storage["LINK_CHANGED"][0] != 0),
        ]
        self.sync += [
            before.eq(self.link_up),
            watching.eq(1),
        ]

    # Jobs -----------------------------------------------------------------------------------------

    def add_jobs(self):
        """Orders to the send engine, and their ends."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        events = self.events
        slot = bank.fields(MCP, "JOB_SLOT")
        flow = bank.fields(MCP, "JOB_FLOW")
        done = bank.fields(MCP, "JOB_DONE")
        self.done_queue = done_queue = stream.SyncFIFO(job_done_layout(), RESULTS)
        self.comb += [
            self.jobs.valid.eq(strobe["JOB_START"][0]),
            self.jobs.last.eq(1),
            *[getattr(self.jobs, name).eq(slot[name])
                for name in ["endpoint", "slot", "epoch", "response", "indirect", "target_levels", "target"]],
            self.jobs.message.eq(storage["JOB_MESSAGE"][0]),
            self.jobs.psn.eq(flow["psn"]),
            self.jobs.incarnation.eq(flow["incarnation"]),
            self.jobs.node.eq(flow["node"]),
            self.jobs.length.eq(storage["JOB_LENGTH"][0]),
            self.jobs.skip.eq(storage["JOB_SKIP"][0]),
            self.jobs.tag.eq(bank.written["JOB_START"][0]),
            status["JOB_SPACE"][0].eq(self.job_space),

            self.job_done.connect(done_queue.sink),
            events["job_done"].eq(done_queue.source.valid),
            done["tag"].eq(done_queue.source.tag),
            done["status"].eq(done_queue.source.status),
            done["psn"].eq(done_queue.source.psn),
            status["JOB_CHECKSUM"][0].eq(done_queue.source.checksum),
            done_queue.source.ready.eq(strobe["JOB_DONE_POP"][0]),
        ]

    # Express --------------------------------------------------------------------------------------

    def add_express(self):
        """Orders of lane EXPRESS."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        digests = self.digests
        put = bank.fields(MCP, "PUT_START")
        flow  = bank.fields(MCP, "EXPRESS_FLOW")
        start = bank.fields(MCP, "EXPRESS_START")
        self.comb += [
            self.express.valid.eq(strobe["EXPRESS_START"][0] | strobe["PUT_START"][0]),
            self.express.last.eq(1),
            If(strobe["PUT_START"][0],
                *[getattr(self.express, name).eq(put[name]) for name in ["psn", "incarnation", "epoch", "endpoint"]],
                *[getattr(self.express, name).eq(getattr(digests.found, name)) for name in ["slot", "node", "length"]],
            ).Else(
                *[getattr(self.express, name).eq(flow[name]) for name in ["psn", "incarnation", "node"]],
                *[getattr(self.express, name).eq(start[name])
                    for name in ["slot", "endpoint", "length", "epoch", "message"]],
            ),
            self.express.word.eq(storage["EXPRESS_MESSAGE"][0]),
            status["EXPRESS_SPACE"][0].eq(self.express_space),
        ]

    # Flows ----------------------------------------------------------------------------------------

    def add_flows(self):
        """What is acknowledged, missing or refused; resets and rewinds of flows."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        events = self.events
        reset   = bank.fields(MCP, "FLOW_RESET")
        rewind  = bank.fields(MCP, "FLOW_REWIND")
        refusal = bank.fields(MCP, "REFUSAL")
        self.refusal_queue = refusal_queue = BlockFIFO(refusal_layout(), RESULTS)
        self.comb += [
            self.acked.flow.eq(bank.index["ACKED"]),
            status["ACKED"][0].eq(Cat(self.acked.psn, self.refusals.valid | self.refusal_waiting)),
            self.left.flow.eq(bank.index["LEFT"]),
            status["LEFT"][0].eq(Cat(self.left.psn, self.left.valid, self.left.vain)),
            all_of(status["ACKED_CHANGED"]).eq(flow_bit(self.changed)),
            events["ack"].eq(all_of(storage["ACKED_CHANGED"]) != 0),
            self.flow_reset.strobe.eq(strobe["FLOW_RESET"][0]),
            self.flow_reset.flow.eq(reset["flow"]),
            self.flow_reset.incarnation.eq(reset["incarnation"]),
            self.flow_rewind.strobe.eq(strobe["FLOW_REWIND"][0]),
            self.flow_rewind.flow.eq(rewind["flow"]),
            self.flow_rewind.epoch.eq(rewind["epoch"]),
            all_of(status["NAKED"]).eq(flow_bit(self.naked)),
            self.replays("nak", all_of(storage["NAKED"]) != 0),

            self.refusals.connect(refusal_queue.sink),
            # It rises one cycle after a refusal enters the queue, and one cycle before the refusal
            # can be read. The program never reads so soon.
            self.refusal_waiting.eq(refusal_queue.level != 0),
            events["refusal"].eq(self.refusal_waiting),
            refusal["psn"].eq(refusal_queue.source.psn),
            refusal["reason"].eq(refusal_queue.source.reason),
            refusal["flow"].eq(refusal_queue.source.flow),
            refusal_queue.source.ready.eq(strobe["REFUSAL_POP"][0]),
        ]

    # Arrivals -------------------------------------------------------------------------------------

    def add_arrivals(self):
        """Notices and messages."""
        bank = self.bank
        status, strobe = bank.status, bank.strobe
        events = self.events
        arrival = bank.fields(MCP, "ARRIVAL")
        self.comb += [
            events["arrival"].eq(self.arrivals.valid),
            arrival["message"].eq(self.arrivals.is_message),
            *[arrival[name].eq(getattr(self.arrivals, name))
                for name in ["node", "endpoint", "slot", "interrupt", "response"]],
            arrival["again"].eq(self.arrivals_twice),
            status["ARRIVAL_VALUE"][0].eq(self.arrivals.value),
            status["ARRIVAL_LENGTH"][0].eq(self.arrivals.length),
            status["ARRIVAL_KEY"][0].eq(self.arrivals.key),
            self.arrivals.ready.eq(strobe["ARRIVAL_POP"][0]),
            self.arrivals_again.eq(strobe["ARRIVAL_AGAIN"][0]),
        ]

    # Inbox, Gets and Atomics ----------------------------------------------------------------------

    def add_requests(self):
        """Slots of the inbox, gets under way, and atomics of other nodes."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        events = self.events
        expect = bank.fields(MCP, "EXPECT_WRITE")
        executed = bank.fields(MCP, "ATOMIC_DONE")
        self.comb += [
            self.inbox_free.strobe.eq(strobe["INBOX_FREE"][0]),
            self.inbox_free.slot.eq(bank.written["INBOX_FREE"][0]),

            self.expect.we.eq(strobe["EXPECT_WRITE"][0]),
            self.expect.key.eq(storage["EXPECT_KEY"][0]),
            *[getattr(self.expect, name).eq(expect[name]) for name in ["context", "node", "valid"]],

            events["atomic"].eq(self.replies.valid),
            *[executed[name].eq(getattr(self.replies, name)) for name in ["node", "slot"]],
            executed["again"].eq(self.replies_twice),
            status["ATOMIC_WORD"][0].eq(self.replies.word),
            self.replies.ready.eq(strobe["ATOMIC_POP"][0]),
            self.replies_again.eq(strobe["ATOMIC_AGAIN"][0]),
        ]

    # Queues ---------------------------------------------------------------------------------------

    def add_queues(self):
        """Completion and event queues, and the entries that are posted."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        digests = self.digests
        post = bank.fields(MCP, "POST_START")
        opened = bank.fields(MCP, "QUEUE_OPEN")
        what   = bank.fields(MCP, "POST_WHAT")
        self.entry_queue = entry_queue = BlockFIFO(entry_layout(), POSTS)
        put = bank.fields(MCP, "POST_PUT")
        self.comb += [
            self.queue.strobe.eq(strobe["QUEUE_OPEN"][0] | strobe["QUEUE_CLOSE"][0]),
            self.queue.closed.eq(strobe["QUEUE_CLOSE"][0]),
            self.queue.queue.eq(Mux(self.queue.closed, bank.written["QUEUE_CLOSE"][0], opened["queue"])),
            self.queue.base.eq(Cat(storage["QUEUE_BASE_LOW"][0], storage["QUEUE_BASE_HIGH"][0])),
            *[getattr(self.queue, name).eq(opened[name]) for name in ["size", "vector"]],

            entry_queue.sink.valid.eq(strobe["POST_START"][0] | strobe["POST_PUT"][0]),
            If(strobe["POST_PUT"][0],
                entry_queue.sink.queue.eq(put["endpoint"]),
                entry_queue.sink.interrupt.eq(put["solicit"]),
                entry_queue.sink.cookie.eq(digests.cookie),
                *[getattr(entry_queue.sink, name).eq(put[name]) for name in ["node", "length", "status"]],
                entry_queue.sink.kind.eq(ENTRY.COMPLETION),
            ).Else(
                *[getattr(entry_queue.sink, name).eq(post[name]) for name in ["queue", "interrupt"]],
                entry_queue.sink.cookie.eq(storage["POST_COOKIE"][0]),
                entry_queue.sink.length.eq(storage["POST_LENGTH"][0]),
                *[getattr(entry_queue.sink, name).eq(what[name]) for name in ["node", "kind", "status"]],
                entry_queue.sink.key.eq(storage["POST_KEY"][0]),
            ),
            entry_queue.source.connect(self.entries),
            status["POST_SPACE"][0].eq(POSTS - entry_queue.level),
        ]

    # Routes and Scouts ----------------------------------------------------------------------------

    def add_routes(self):
        """The route table, and scouts."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        events = self.events
        scout = bank.fields(MCP, "SCOUT_START")
        came  = bank.fields(MCP, "SCOUT")
        self.scout_queue = scout_queue = Row(scout_layout(), C.SCOUTS)
        self.comb += [
            self.route.strobe.eq(strobe["ROUTE_WRITE"][0]),
            self.route.node.eq(bank.written["ROUTE_WRITE"][0]),
            self.route.route.eq(storage["ROUTE"][0]),

            scout_queue.sink.valid.eq(strobe["SCOUT_START"][0]),
            scout_queue.sink.last.eq(1),
            scout_queue.sink.node.eq(scout["target"]),
            scout_queue.sink.reply.eq(scout["reply"]),
            scout_queue.sink.number.eq(storage["SCOUT_NUMBER"][0]),
            scout_queue.sink.back.eq(storage["SCOUT_BACK"][0]),
            scout_queue.sink.route.eq(storage["SCOUT_ROUTE"][0]),
            scout_queue.source.connect(self.scouts),
            status["SCOUT_SPACE"][0].eq(C.SCOUTS - scout_queue.level),

            events["scout"].eq(self.scouts_came.valid),
            came["source"].eq(self.scouts_came.node),
            came["reply"].eq(self.scouts_came.reply),
            status["SCOUT_CAME_NUMBER"][0].eq(self.scouts_came.number),
            status["SCOUT_CAME_BACK"][0].eq(self.scouts_came.back),
            self.scouts_came.ready.eq(strobe["SCOUT_POP"][0]),
        ]

    # Regions --------------------------------------------------------------------------------------

    def add_regions(self):
        """The region table."""
        bank = self.bank
        status, storage, strobe = bank.status, bank.storage, bank.strobe
        access = bank.fields(MCP, "REGION_ACCESS")
        self.comb += [
            status["REGION_FRESH"][0].eq(self.region_fresh),
            status["REGION_BUSY"][0].eq(self.region_busy),
            self.region.we.eq(strobe["REGION_WRITE"][0]),
            self.region.index.eq(bank.written["REGION_WRITE"][0]),
            self.region.key.eq(storage["REGION_KEY"][0]),
            self.region.base.eq(Cat(storage["REGION_BASE_LOW"][0], storage["REGION_BASE_HIGH"][0])),
            self.region.length.eq(Cat(storage["REGION_LENGTH_LOW"][0], storage["REGION_LENGTH_HIGH"][0])),
            self.region.table.eq(Cat(storage["REGION_TABLE_LOW"][0], storage["REGION_TABLE_HIGH"][0])),
            *[getattr(self.region, name).eq(access[name]) for name in ["rights", "owner", "valid", "page"]],
        ]
