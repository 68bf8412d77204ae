"""The network interface card without its PHYs."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.expected import ExpectedTable
from dibber.deposit.express import ExpressLander
from dibber.deposit.finder import PageFinder
from dibber.deposit.reach import FAR
from dibber.deposit.reads import ReadArbiter
from dibber.deposit.regions import NarrowRegion, RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send import SendEngine
from dibber.deposit.writes import WriteArbiter
from dibber.host.completions import REASONS, CompletionChecker
from dibber.host.flash import FlashPort
from dibber.host.interface import HostInterface
from dibber.interface.description import C, CHANNEL, STATUS
from dibber.link.equipment import LinkEquipment, attach_equipment
from dibber.layouts import express_layout, job_layout
from dibber.link.port import LinkPort
from dibber.mcp.answers import Answers
from dibber.mcp.arrivals import Arrivals
from dibber.mcp.asks import ExpectWriter
from dibber.mcp.commands import FastCommands
from dibber.mcp.contexts import Contexts
from dibber.mcp.doorbells import EndpointPages
from dibber.mcp.halt import Cutter, Halt, HaltInserter
from dibber.mcp.identity import HostRegisters, collect_counters
from dibber.mcp.keys import KeyCount
from dibber.mcp.orders import OrderQueue
from dibber.mcp.processor import SRAM_BYTES, Processor
from dibber.mcp.queues import EventWriter, QueueWriter
from dibber.mcp.registers import ControlRegisters
from dibber.mcp.replies import Replies
from dibber.mcp.requests import Requests
from dibber.mcp.room import if_present
from dibber.mcp.slots import Slots
from dibber.mcp.turns import CommandTurns
from dibber.mcp.watchdog import Watchdog
from dibber.packet.flow import flow_reset_layout, flow_rewind_layout
from dibber.packet.layer import PacketLayer
from dibber.packet.pulses import Pulses
from dibber.places import BlockFIFO

# Geometry -----------------------------------------------------------------------------------------

CONTEXTS = C.ENDPOINTS*C.SLOTS  # of gets: command slots; a smaller table would lie in LUTs

# A request that waits for Bus Master Enable may wait as long as this. A peer gives its packet up
# after 40 ms and some ticks of 50 µs. So no peer can hear that a packet landed whose writes are
# dropped.
BUS_MASTER_SECONDS = 41e-3

# Helpers ------------------------------------------------------------------------------------------

def attach(master, *slaves):
    """Connect a line port to one, or to several of which each reads 0 where another one is asked.
    """
    return [
        *[getattr(slave, name).eq(getattr(master, name)) for slave in slaves for name in ["adr", "dat_w", "be", "we", "re"]],
        master.dat_r.eq(reduce(or_, [slave.dat_r for slave in slaves])),
    ]

def connect_done(engine, layer, host):
    """Connect the ends of an engine's packets to the packet layer.

    While requests to host memory are held none is told of, so that nothing is acknowledged whose
    writes may yet be dropped. While they are dropped each is refused.
    """
    return [
        engine.connect(layer, omit={"valid", "ready"}),
        layer.valid.eq(engine.valid & (host.enable | host.discard)),
        engine.ready.eq(layer.ready & (host.enable | host.discard)),
        If(host.discard & ~engine.refused,
            layer.refused.eq(1),
            layer.reason.eq(STATUS.REMOTE_BAD_KEY)
        ),
    ]

def look_up(user, table):
    """Connect a user's Record(count_layout) to that of whoever has the counts."""
    return [table.endpoint.eq(user.endpoint), user.count.eq(table.count)]

# Dibber Core --------------------------------------------------------------------------------------

class DibberCore(LiteXModule):
    """The column of docs/design/column.md, from the PCIe PHY's TLP stream to the serial PHY's words.

    While MCP_CONTROL.run is 0 the sending side is in reset (doorbells, processor, send engine,
    packets that wait for the link); an atomic operation ends, and nobody is told. Kept are the
    command slots, the SRAM, the host registers, the link, and the receiving side: see `Halt`.

    Parameters
    ----------
    platform   : gets the processor's Verilog by `add_source`
    phy        : PCIe PHY as LitePCIe has them: see HostInterface. `extended_tags` (Signal) if it
                 has one tells that more than 32 reads may be in flight
    serial     : serial PHY: `sink` (serial_tx_layout), `source` (serial_rx_layout), `signal`, 1
                 while the receiver sees one, and `loopback` (Signal) if it has one of its own
    data_width : 64 or 128, bits of the data path; the same as the PCIe PHY's
    clock_hz   : frequency of `sys`, shown to the host
    board      : name of the board, shown to the host; at most 16 characters
    flash      : flash_pads of the flash that the FPGA is configured from, or None: the host has no
                 way to it
    reach      : FAR or NEAR: where the memory is that the PHY reads. Of an address with more bits
                 than it has nothing is read or written
    endpoints  : that the card has, a power of two from 2 to ENDPOINTS. Addresses and numbers stay
                 as they are for all of these
    sram_bytes : of the control program's SRAM: SRAM_BYTES, or SRAM_SCARCE where block RAM is scarce
                 (mcp/processor.py)

    Attributes
    ----------
    counter_sources : list of dict, the pulses that each layer counts by
    dmi             : dmi_port, in   of the control program's debug module, for the board's debug
                      transport
    """
    def __init__(self, platform, phy, serial, data_width, clock_hz, board="", flash=None, reach=FAR, endpoints=C.ENDPOINTS,
                 sram_bytes=SRAM_BYTES):
        # Layers -----------------------------------------------------------------------------------

        bits = reach.address
        self.host      = host      = HostInterface(
            phy, data_width, sram_bytes, bits, patience=int(clock_hz*BUS_MASTER_SECONDS))
        self.reads     = reads     = ReadArbiter(data_width, [reach.gather, reach.atomic,
            reach.walked.reader, reach.walked.reader, reach.found.reader, reach.listed.reader, reach.listed.reader])
        self.checker   = checker   = CompletionChecker(data_width, reads.tags)
        self.writes    = writes    = WriteArbiter(data_width, sinks=3)
        self.regions   = regions   = RegionTable(C.REGIONS, ports=4, address_bits=bits)
        self.expected  = expected  = ExpectedTable(CONTEXTS)
        self.finder    = finder    = PageFinder(data_width, ports=4, address_bits=bits, **reach.found.parameters)
        self.send      = send      = SendEngine(data_width, reach.walked.parameters, reach.listed.parameters, bits, tags=reach.gather.tags)
        self.scatter   = scatter   = ScatterEngine(data_width, reach.walked.parameters, reach.listed.parameters, bits)
        self.lander    = lander    = ExpressLander(data_width, bits)
        self.atomic    = atomic    = AtomicUnit(data_width, reach.atomic.tags, reach.atomic.base, address_bits=bits)
        self.packet    = packet    = PacketLayer(data_width, bits)
        self.link      = link      = LinkPort(channels=4, sunk=(CHANNEL.CONTROL, CHANNEL.SPARE))
        self.equipment = equipment = LinkEquipment()

        # Control Program --------------------------------------------------------------------------

        self.pages     = pages     = EndpointPages(data_width, endpoints)
        # commands; the processor
        self.slots     = slots     = Slots(data_width, readers=7, writers=3, favourite=5, late=(0, 7), present=endpoints)
        self.processor = processor = Processor(platform, data_width, sram_bytes)
        self.dmi       = processor.dmi
        self.arrivals  = arrivals  = Arrivals(sinks=2)
        self.turns     = turns     = CommandTurns(endpoints)
        self.commands  = commands  = FastCommands(data_width, endpoints)
        self.contexts  = contexts  = Contexts(endpoints)
        self.answers   = answers   = Answers(data_width)
        self.entering  = entering  = ExpectWriter()
        self.events    = events    = EventWriter(endpoints)
        self.requests  = requests  = Requests()
        self.replies   = replies   = Replies()
        self.queues    = queues    = QueueWriter(endpoints=endpoints, address_bits=bits)
        self.expresses = expresses = OrderQueue(express_layout(), program=2*endpoints, fast=2*endpoints)
        self.jobs      = jobs      = OrderQueue(job_layout(), program=8, fast=8, fifo=BlockFIFO)
        self.watchdog  = watchdog  = Watchdog()
        self.counter_sources = [host.counters, pages.counters, self.reader_counters(), packet.counters,
            link.counters, contexts.counters, self.event_counters(), self.busy_counters(phy)]
        self.flash     = None if flash is None else FlashPort(data_width, clock_hz, flash)
        self.identity  = identity  = HostRegisters(data_width, clock_hz, collect_counters(*self.counter_sources), board, self.flash, endpoints, sram_bytes)
        self.registers = registers = ControlRegisters(identity.shown, identity.cycles, endpoints)
        self.halt      = halt      = Halt(max(C.REGIONS, CONTEXTS))
        self.keys      = keys      = KeyCount()

        # # #

        # Host -------------------------------------------------------------------------------------

        self.comb += [
            *attach(host.ports["host"],      identity.port, *([] if flash is None else [self.flash.port])),
            *attach(host.ports["firmware"],  processor.firmware),
            *attach(host.ports["endpoints"], pages.port),
            *attach(pages.slots,             slots.port),
            identity.max_payload.eq(host.max_payload),
            identity.max_request.eq(host.max_request),
            identity.mcp_state.eq(registers.state),
            identity.mcp_identity.eq(registers.identity),
        ]

        # Control Program --------------------------------------------------------------------------

        self.comb += [
            *attach(processor.registers, registers.port),
            registers.written.eq(processor.written),
            registers.link_up.eq(link.up),
            registers.jobs.connect(jobs.program),
            registers.job_space.eq(jobs.space),
            jobs.source.connect(send.jobs),
            registers.express.connect(expresses.program),
            registers.express_space.eq(expresses.space),
            expresses.source.connect(packet.express),
            watchdog.kick.eq(registers.watchdog.strobe),
            watchdog.cycles.eq(registers.watchdog.cycles),
            watchdog.hold.eq(processor.halted),
            processor.timer_interrupt.eq(watchdog.interrupt),
            identity.bite.eq(watchdog.bite | host.lost),
            identity.lost.eq(host.lost),
        ]

        # Commands and Queues ----------------------------------------------------------------------

        opened, allowed = registers.queue, identity.fast_path
        self.comb += [
            *look_up(turns.producer, pages.producer[0]),
            *look_up(registers.producer, pages.producer[1]),
            *look_up(turns.cq_consumer, pages.cq_consumer),
            *look_up(queues.eq_consumer, pages.eq_consumer),
            *look_up(pages.head, turns.heads[0]),
            *look_up(registers.head, turns.heads[1]),
            turns.rung.eq(pages.rung),
            turns.take.eq(registers.take),
            turns.skip.eq(registers.skip),
            turns.frees[0].eq(registers.free),
            turns.frees[1].eq(contexts.free),
            turns.open.strobe.eq(if_present(endpoints, opened.queue, opened.strobe & ~opened.queue[log2_int(C.ENDPOINTS)])),
            turns.open.endpoint.eq(opened.queue),
            *[getattr(turns.open, name).eq(getattr(opened, name)) for name in ["size", "closed"]],
            turns.fast.eq(registers.fast_endpoints),
            turns.again.eq(registers.arm.strobe),
            registers.pending.eq(turns.pending),
            registers.room.eq(turns.room),

            turns.offer.connect(commands.offer),
            turns.verdict.eq(commands.verdict),
            commands.fast.eq(registers.fast_endpoints),
            commands.node_id.eq(identity.node_id),
            registers.digest.eq(commands.digest),
            *[getattr(commands.enable, name).eq(getattr(registers.fast_enable, name) & getattr(allowed, name))
                for name in ["put_inline", "put", "get", "atomic"]],
            commands.generation.eq(keys.generation),
            requests.offer.connect(commands.request),
            requests.taken.eq(commands.answered),
            requests.again.eq(registers.arrivals_again),
            registers.arrivals_twice.eq(requests.twice),

            queues.cycles.eq(identity.cycles),
            queues.open.eq(opened),
            registers.entries.connect(queues.sinks[0]),
            contexts.entry.connect(queues.sinks[1]),
            events.entry.connect(queues.sinks[2]),
            queues.source.connect(host.posts),
            host.open.strobe.eq(opened.strobe & ~opened.closed),
            host.open.vector.eq(opened.vector),
            events.enable.eq(registers.fast_enable.event & allowed.event),
        ]

        # Fast Path --------------------------------------------------------------------------------

        self.comb += [
            requests.atomics.connect(atomic.sink),
            atomic.done.connect(replies.sink),
            replies.enable.eq(commands.enable.atomic),
            replies.source.connect(registers.replies),
            replies.again.eq(registers.replies_again),
            registers.replies_twice.eq(replies.twice),
            commands.put.connect(replies.commands),
            replies.put.connect(contexts.put),
            replies.taken.eq(contexts.taken),
            commands.taken.eq(contexts.taken),
            commands.missed.eq(contexts.missed),
            commands.full.eq(contexts.full),
            contexts.coming.eq(commands.coming),
            replies.coming.eq(commands.coming),
            send.glance.eq(commands.glance),
            commands.expect.connect(entering.enter),
            entering.forget.eq(contexts.forget),
            answers.answer.connect(contexts.answer),
            answers.mine.eq(contexts.mine),
            *[getattr(answers.enable, name).eq(getattr(commands.enable, name)) for name in ["get", "atomic"]],
            contexts.fast.eq(registers.fast_endpoints),
            contexts.express.connect(expresses.fast),
            contexts.job.connect(jobs.fast),
            send.done.connect(contexts.job_done_in),
            contexts.job_done.connect(registers.job_done),
            contexts.arm.eq(registers.arm),
            contexts.claim.eq(registers.claim),
            contexts.pop.eq(registers.claim_pop),
            contexts.refusal_waiting.eq(packet.refusals.valid | registers.refusal_waiting),
            contexts.judging.eq(packet.judging),
            contexts.changed.eq(packet.changed),
            registers.claimed.eq(contexts.claimed),
            registers.fast_busy.eq(contexts.busy),
            registers.fast_active.eq(contexts.active),
            *[shown.eq(moved) for shown, moved in zip(registers.fast_moved, contexts.moved, strict=True)],
            registers.given.eq(contexts.given),
        ]

        moves = send.payload, send.done
        self.sync += registers.send_moved.eq(Reduce("OR", [stage.valid & stage.ready for stage in moves]))

        # Flows ------------------------------------------------------------------------------------

        lane = log2_int(C.NODES)  # bit of a flow number: 1 for BULK
        # To both engines a cycle later, as the gates do it.
        reset, rewind = Record(flow_reset_layout()), Record(flow_rewind_layout())
        self.sync += [
            reset.eq(registers.flow_reset),
            rewind.eq(registers.flow_rewind),
        ]
        self.comb += [
            packet.flow_reset.eq(registers.flow_reset),
            packet.flow_rewind.eq(registers.flow_rewind),
            packet.route.eq(registers.route),
            registers.scouts.connect(packet.scouts),
            packet.scouts_came.connect(registers.scouts_came),
            registers.changed.eq(contexts.changed_out),
            registers.naked.eq(packet.naked),
            registers.works.eq(packet.works),
            registers.storing.eq(packet.storing),
            packet.left.flow.eq(registers.left.flow),
            *[getattr(registers.left, name).eq(getattr(packet.left, name)) for name in ("psn", "valid", "vain")],
            *[[look.flow.eq(user.flow), user.psn.eq(look.psn)]
                for look, user in zip(packet.acked, [registers.acked, contexts.acked], strict=True)],
            packet.refusals.connect(registers.refusals),
            send.epochs.reset.eq(reset.strobe & reset.flow[lane]),
            send.epochs.rewind.eq(rewind.strobe & rewind.flow[lane]),
            send.epochs.node.eq(Mux(reset.strobe, reset.flow, rewind.flow)),
            send.epochs.incarnation.eq(reset.incarnation),
            send.epochs.epoch.eq(rewind.epoch),
        ]

        # Slots ------------------------------------------------------------------------------------

        readers = [processor.reader, send.slot, packet.slot, packet.express_slot, atomic.slot, commands.slot,
            answers.slot]
        writers = [processor.writer, lander.slot, atomic.reply]
        self.comb += [client.connect(port)
            for client, port in zip(readers + writers, slots.readers + slots.writers, strict=True)]

        # Regions ----------------------------------------------------------------------------------

        entry, expect = registers.region, registers.expect
        self.comb += [
            keys.draw.eq(identity.key_draw),
            identity.key_next.eq(keys.next),
            identity.keys_left.eq(keys.left),
            keys.key.eq(entry.key),
            keys.enter.eq(entry.we & entry.valid),
            keys.advance.eq(registers.advance),
            registers.region_fresh.eq(keys.fresh),
            registers.generation.eq(keys.generation),
        ]
        if bits < 64:
            self.narrow = narrow = NarrowRegion(bits)
            self.comb  += [getattr(narrow, name).eq(getattr(entry, name)) for name in ["base", "length", "table"]]
        self.comb += [
            *[client.lookup.connect(port)
                for client, port in zip([send, scatter, lander, atomic], regions.ports, strict=True)],
            regions.write.eq(entry.we | halt.clear),
            regions.index.eq(Mux(halt.clear, halt.index, entry.index)),
            regions.valid.eq(entry.valid & keys.fresh & ~halt.clear & (1 if bits == 64 else narrow.fits)),
            *[getattr(regions, name).eq(getattr(entry, name)) for name in ["key", "rights", "owner"]],
            *([regions.base.eq(entry.base), regions.length.eq(entry.length)] if bits == 64 else [regions.base.eq(narrow.low), regions.length.eq(narrow.size)]),
            scatter.expected.connect(expected.port),
            *[getattr(entering.program, name).eq(getattr(expect, field))
                for name, field in [("we", "we"), ("context", "context"), ("key", "key"), ("node", "node"), ("granted", "valid")]],
            expected.write.eq(entering.write.we | halt.clear),
            expected.context.eq(Mux(halt.clear, halt.index, entering.write.context)),
            expected.valid.eq(entering.write.granted & ~halt.clear),
            expected.key.eq(entering.write.key),
            expected.node.eq(entering.write.node),
        ]

        # Deposits ---------------------------------------------------------------------------------

        lists   = [send.lists, scatter.lists]
        engines = [send, scatter, lander, atomic, *lists]
        tables  = [send.pages, scatter.pages, finder]
        readers = [send, atomic, *tables, *lists]
        self.comb += [
            *[client.reads.connect(port) for client, port in zip(readers, reads.reads, strict=True)],
            *[port.connect(client.completions) for client, port in zip(readers, reads.completions, strict=True)],
            *[engine.departures.mark.eq(entry.we) for engine in engines],
            registers.region_busy.eq(Cat(*[engine.departures.busy for engine in engines]) != 0),
            *[client.pages.connect(port)
                for client, port in zip([lander, atomic, *lists], finder.ports, strict=True)],
            *[pages_.directory.strobe.eq(entry.we) for pages_ in tables],
            *[getattr(pages_.directory, name).eq(getattr(entry, field)) for pages_ in tables
                for name, field in [("index", "index"), ("table", "table"), ("shift", "page")]],
            reads.source.connect(checker.reads),
            checker.requests.connect(host.reads),
            checker.id.eq(phy.id),
            host.completions.connect(checker.sink),
            checker.source.connect(reads.sink),
            send.max_request.eq(host.max_request),
            send.packets.connect(packet.packets),
            send.payload.connect(packet.payload_in),
            packet.node_id.eq(identity.node_id),

            packet.deposits.connect(scatter.deposits),
            packet.payload_out.connect(scatter.payload),
            *connect_done(scatter.done, packet.deposit_done, host),
            packet.deposit_open.eq(scatter.open),
            packet.stored.eq(scatter.stored),
            scatter.max_payload.eq(host.max_payload),
            packet.express_deposits.connect(lander.deposits),
            packet.express_payload.connect(lander.payload),
            *connect_done(lander.done, packet.express_done, host),
            packet.express_open.eq(lander.open),
            packet.inbox_freed.eq(lander.inbox_freed),
            writes.source.connect(host.writes),
            writes.marked.eq(host.marked),

            *[engine.arrivals.connect(port) for engine, port in zip([lander, scatter], arrivals.sinks, strict=True)],
            arrivals.source.connect(answers.sink),
            answers.source.connect(events.sink),
            events.source.connect(requests.sink),
            requests.source.connect(registers.arrivals),
            # A slot whose request hardware has answered comes free when the program frees none;
            # that of an answer, when neither does.
            contexts.ended.ready.eq(~registers.inbox_free.strobe),
            answers.free.ready.eq(~registers.inbox_free.strobe & ~contexts.ended.valid),
            arrivals.free.strobe.eq(registers.inbox_free.strobe | contexts.ended.valid | answers.free.valid),
            arrivals.free.slot.eq(Mux(registers.inbox_free.strobe, registers.inbox_free.slot,
                Mux(contexts.ended.valid, contexts.ended.tag, answers.free.slot))),
            lander.free.eq(arrivals.freed),
            send.crowded.eq(host.writes.valid & ~host.writes.ready),
        ]
        for n, engine in enumerate([lander, atomic, scatter]):
            self.comb += [
                engine.writes.connect(writes.sinks[n]),
                engine.marked.eq(writes.landed[n]),
            ]
        if hasattr(phy, "extended_tags"):
            self.comb += [engine.extended_tags.eq(phy.extended_tags) for engine in
                [send, scatter.pages, scatter.lists, finder, atomic]]

        # Link -------------------------------------------------------------------------------------

        # Packets may be under way when their source is halted; acknowledgements are not halted.
        self.cutters = cutters = {}
        for channel in [CHANNEL.EXPRESS, CHANNEL.BULK]:
            cutters[channel] = cutter = Cutter()
            self.add_module(f"cutter{channel}", cutter)
            self.comb += [
                packet.sources[channel].connect(cutter.sink),
                cutter.source.connect(link.sinks[channel]),
                cutter.reset.eq(halt.reset),
            ]
        self.comb += [
            packet.sources[CHANNEL.CONTROL].connect(link.sinks[CHANNEL.CONTROL]),
            *[link.sources[n].connect(packet.sinks[n]) for n in [CHANNEL.CONTROL, CHANNEL.EXPRESS, CHANNEL.BULK]],
            link.sources[CHANNEL.SPARE].ready.eq(1),
            *attach_equipment(link, equipment, serial, identity),
        ]

        # Halt -------------------------------------------------------------------------------------

        was_halted = Signal()
        self.comb += [
            halt.run.eq(identity.run & ~processor.ndmreset),
            processor.reset.eq(halt.reset),
            atomic.forget.eq(halt.reset),
            arrivals.halted.eq(halt.reset),
            arrivals.sweep.eq(halt.clear & (halt.index < C.SLOTS)),
            arrivals.index.eq(halt.index),
            *[[part.held.eq(halt.reset), part.index.eq(halt.index)] for part in (pages.doorbells, turns)],
            # A new program does not go on with the flows that peers had begun with the last one.
            # Their sources are told.
            packet.forget.eq(was_halted & ~halt.reset),
            pages.program.halts.eq(halt.halts),
            host.halted.eq(halt.halted),
            host.running.eq(~halt.reset),
            pages.program.bus_master.eq(host.enable),
            *[HaltInserter()(module).halt.eq(halt.reset)
                for module in [pages.doorbells, registers, watchdog, turns, commands, contexts, answers, entering, events, requests, replies, queues, expresses, jobs, send,
                    *packet.transmitter.sending]],
        ]
        self.sync += was_halted.eq(halt.reset)
        self.sync += pages.program.ready.eq(~halt.reset & (registers.identity != 0))

    # Counters -------------------------------------------------------------------------------------

    def reader_counters(self):
        """Pulses of all that read host memory; those of one name may come together."""
        counters = {"ATOMICS": self.atomic.pulses["ATOMICS"]}
        lists    = [self.send.lists, self.scatter.lists]
        readers  = [self.send, self.atomic, *lists, self.send.pages, self.scatter.pages, self.finder]
        counters.update({name: self.checker.pulses[name] for name in REASONS})
        for name in self.send.pulses:
            sources = readers + [self.checker] if name in self.checker.pulses else readers
            joined  = Pulses(*[source.pulses[name] for source in sources], bits=5)
            self.add_module(f"count_{name.lower()}", joined)
            counters[name] = joined.pulse
        return counters

    def event_counters(self):
        """Pulses of notices on their way to host memory."""
        self.count_events_lost = lost = Pulses(self.queues.counters["EVENTS_LOST"], self.events.counters["EVENTS_LOST"])
        return {"FAST_EVENTS": self.events.counters["FAST_EVENTS"], "EVENTS_LOST": lost.pulse}

    def busy_counters(self, phy):
        """A pulse for each cycle in which something was there at a boundary."""
        boundaries = {
            "BUSY_REQUEST": self.host.reads,
            "BUSY_PACKET":  self.send.payload,
            "BUSY_LINK":    self.link.sinks[CHANNEL.BULK],
            "BUSY_SCATTER": self.packet.payload_out,
            "BUSY_WRITE":   self.host.writes,
            "BUSY_PCIE":    phy.sink,
        }
        counters = {name: Signal(name=name.lower()) for name in boundaries}
        self.sync += [counters[name].eq(endpoint.valid) for name, endpoint in boundaries.items()]
        return counters
