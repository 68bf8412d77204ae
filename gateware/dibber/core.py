"""The network interface card without its PHYs."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.deposit.layer import DepositLayer
from dibber.deposit.reach import FAR
from dibber.endpoint.doorbells import connect_count
from dibber.endpoint.endpoints import Endpoints
from dibber.fastpath.fast_path import FastPath
from dibber.host.flash import FlashPort
from dibber.host.interface import HostInterface
from dibber.interface.description import C, CHANNEL, LANE, STATUS
from dibber.interface.register_bank import connect_lines
from dibber.link.equipment import LinkEquipment, attach_equipment, attach_pair, attach_port, attach_second
from dibber.link.ethernet.star import EthernetStar
from dibber.link.port import LinkPort
from dibber.mcp.control_program import ControlProgram
from dibber.mcp.halt import Cutter, HaltInserter
from dibber.mcp.host_registers import HostRegisters, collect_counters
from dibber.mcp.processor import SRAM_BYTES
from dibber.packet.layer import PacketLayer
from dibber.window.window import RemoteWindow

# A request that waits for Bus Master Enable waits no longer than this. A peer gives its packet up
# after 40 ms and some ticks of 50 µs. So no peer hears that a packet landed whose writes are
# dropped.
BUS_MASTER_SECONDS = 41e-3

# Helpers ------------------------------------------------------------------------------------------

def connect_done(engine, layer, host):
    """Connect the ends of an engine's packets to the packet layer.

    While the host interface holds requests, it reports no end: the writes of that packet may yet be
    dropped. While it discards requests, each packet is refused.
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

def assign(target, source, **fields):
    """Fields of `target` follow those of `source`; `fields` is field of `target` = field of
    `source`.
    """
    return [getattr(target, name).eq(getattr(source, other)) for name, other in fields.items()]

# Dibber Core --------------------------------------------------------------------------------------

class DibberCore(LiteXModule):
    """The column of the documentation, from the PCIe PHY's TLP stream to the serial PHY's words.

    Data goes down and up the column `host`, `deposit`, `packet`, `link`. What makes it move stands
    beside the column: `endpoints` has the processes' commands, `fast` executes the simple ones, and
    `program` executes all others.

    While MCP_CONTROL.run is 0 the sending side is in reset: doorbells, processor, fast path, send
    engine, and packets that wait for the link. An atomic operation ends without a reply. The
    command slots, the SRAM, the host registers, the link and the receiving side keep their state
    (see `Halt`).

    Parameters
    ----------
    platform   : gets the processor's Verilog by `add_source`
    phy        : PCIe PHY as LitePCIe has them: see HostInterface. Its `extended_tags` (Signal), if
                 it has one, says that more than 32 reads may be in flight
    serial     : serial PHY: `sink` (serial_tx_layout), `source` (serial_rx_layout), `signal`, 1
                 while the receiver sees one, and `loopback` (Signal) if it has one of its own.
    data_width : 64, 128 or 256, bits of the data path; the same as the PCIe PHY's
    clock_hz   : frequency of `sys`, shown to the host
    board      : name of the board, shown to the host; at most 16 characters
    flash      : flash_pads of the flash that the FPGA is configured from; None if the host cannot
                 reach it
    reach      : FAR, WIDE or NEAR: where the memory is that the PHY reads. An address with more bits
                 than it has is neither read nor written
    endpoints  : how many, a power of two from 2 to ENDPOINTS. Addresses and numbers are the same
                 for each of these
    sram_bytes : of the control program's SRAM: SRAM_BYTES, or SRAM_SCARCE where block RAM is scarce
                 (mcp/processor.py)
    host       : a sibling of HostInterface (docs/design/host.md) for the same data_width and
                 sram_bytes, in place of one on `phy`. Then `phy` is None
    port       : a sibling of LinkPort (docs/design/port.md) with four channels, in place of a
                 LinkPort. RingPort is one on `serial`. For RingPairPort, `serial` is a list of two
                 PHYs: of the cables NEXT and PREVIOUS. EthernetPort has a wire of its own, and
                 BondedPort four lanes: then `serial` is None, and there is no equipment
    window     : the card has the remote window: BAR 2, for which the PHY has `in_aperture` (see
                 HostInterface). The last endpoint belongs to it
    hold_off   : interrupts can be held by count and time (HoldOff); not with `host`
    links      : 1 or 2. With 2, `serial` is a list of two PHYs, and there is no `port`. The test
                 equipment stands at link 0

    Attributes
    ----------
    counter_sources : list of dict, the pulses that each layer counts by
    dmi             : dmi_port, in   of the control program's debug module, for the board's debug
                      transport
    """
    def __init__(self, platform, phy, serial, data_width, clock_hz, board="", flash=None, reach=FAR, endpoints=C.ENDPOINTS,
                 sram_bytes=SRAM_BYTES, host=None, port=None, window=False, hold_off=False, links=1):
        assert host is None or not hold_off
        assert links == 1 or port is None
        # The Column -------------------------------------------------------------------------------

        self.host      = host      = host or HostInterface(
            phy, data_width, sram_bytes, reach.address, patience=int(clock_hz*BUS_MASTER_SECONDS),
            aperture=C.APERTURE_BYTES if window else 0, hold_off=hold_off)
        self.deposit   = deposit   = DepositLayer(data_width, reach, links)
        places = getattr(port, "places", 0)  # packets of a channel that the port keeps
        bulk_width = getattr(port, "bulk_width", 32)
        self.packet    = packet    = PacketLayer(data_width, reach.address, places, bulk_width, links)
        new_port = lambda: LinkPort(channels=4, sunk=(CHANNEL.CONTROL, CHANNEL.SPARE), drops=links > 1)
        self.link      = link      = port or new_port()
        self.link1     = new_port() if links > 1 else None
        self.equipment = None if serial is None else LinkEquipment()
        pair           = hasattr(port, "cables")
        if pair:
            self.equipment_previous = LinkEquipment()

        # Beside It --------------------------------------------------------------------------------

        # Of the slots' readers the commands are the favourite; the processor asks late.
        self.endpoints = ends      = Endpoints(
            data_width, endpoints, reach.address, readers=6 + links, writers=3, favourite=5, late=(0, 6 + links))
        self.fast      = fast      = FastPath(data_width, endpoints)
        self.counter_sources = [host.counters, ends.counters, deposit.counters, packet.counters, link.counters,
            fast.counters, self.busy_counters()]
        self.flash     = None if flash is None else FlashPort(data_width, clock_hz, flash)
        self.registers = registers = HostRegisters(data_width, clock_hz, collect_counters(*self.counter_sources), board, self.flash, endpoints, sram_bytes,
            window=window, frames=getattr(port, "frame_counters", None), ring=hasattr(port, "scrubber"), hold_off=hold_off,
            pair=pair, link1=None if self.link1 is None else self.link1.counters)
        self.program   = program   = ControlProgram(platform, data_width, registers.shown, registers.cycles, endpoints, sram_bytes, links)
        self.dmi       = program.processor.dmi
        self.window    = RemoteWindow(data_width, endpoints - 1, endpoints) if window else None

        # # #

        self.connect_column(serial)
        self.connect_host_registers()
        self.connect_slots()
        self.connect_commands()
        self.connect_arrivals()
        self.connect_queues()
        self.connect_orders()
        self.connect_flows()
        self.connect_regions()
        self.connect_halt()
        if window:
            self.connect_window()
        if hold_off:
            self.comb += host.hold_off.eq(registers.hold_off)

    # Column ---------------------------------------------------------------------------------------

    def connect_column(self, serial):
        """Requests to host memory, packets, and the link's channels."""
        host, deposit, packet, link = self.host, self.deposit, self.packet, self.link
        memory, send, scatter, lander = deposit.memory, deposit.send, deposit.scatter, deposit.lander

        # Host and deposit.
        self.comb += [
            memory.reads.connect(host.reads),
            host.completions.connect(memory.completions),
            memory.writes.connect(host.writes),
            memory.marked.eq(host.marked),
            memory.id.eq(host.id),
            send.max_request.eq(host.max_request),
            scatter.max_payload.eq(host.max_payload),
        ]
        if host.extended_tags is not None:
            self.comb += [extended.eq(host.extended_tags) for extended in deposit.extended_tags]

        # Deposit and packet: sent, lane BULK, lane EXPRESS.
        self.cutters = []
        self.comb += [
            send.packets.connect(packet.packets),
            send.payload.connect(packet.payload_in),

            packet.deposits.connect(scatter.deposits),
            packet.payload_out.connect(scatter.payload),
            *connect_done(scatter.done, packet.deposit_done, host),
            packet.deposit_open.eq(scatter.open),
            packet.stored.eq(scatter.stored),

            packet.express_deposits.connect(lander.deposits),
            packet.express_payload.connect(lander.payload),
            *connect_done(lander.done, packet.express_done, host),
            packet.express_open.eq(lander.open),
            packet.inbox_freed.eq(lander.inbox_freed),
        ]

        if self.link1 is None:
            self.connect_link(link, packet.sources, packet.sinks)
        else:
            for port, sources, sinks in zip([link, self.link1], packet.sources, packet.sinks):
                self.connect_link(port, sources, sinks)
            self.connect_links(serial[1])
        if packet.places:
            for lane, channel in (LANE.EXPRESS, CHANNEL.EXPRESS), (LANE.BULK, CHANNEL.BULK):
                self.comb += [
                    packet.kept[lane].eq(link.kept[channel]),
                    packet.keeps[lane].eq(link.keeps[channel]),
                    packet.gone[lane].eq(link.gone[channel]),
                ]
        self.comb += [
            *([link.number.eq(self.registers.node_id)] if isinstance(link, EthernetStar) else []),
            *self.connect_serial(serial if self.link1 is None else serial[0]),
        ]

    def connect_link(self, link, sources, sinks):
        """Packets and a link. A packet may be under way when its source is halted; acknowledgements
        are not halted.
        """
        for channel in [CHANNEL.EXPRESS, CHANNEL.BULK]:
            self.add_module(f"cutter{len(self.cutters)}", cutter := Cutter(link.sinks[channel].description))
            self.cutters.append(cutter)
            self.comb += [
                sources[channel].connect(cutter.sink),
                cutter.source.connect(link.sinks[channel]),
            ]
        self.comb += [
            sources[CHANNEL.CONTROL].connect(link.sinks[CHANNEL.CONTROL]),
            *[link.sources[n].connect(sinks[n]) for n in [CHANNEL.CONTROL, CHANNEL.EXPRESS, CHANNEL.BULK]],
            link.sources[CHANNEL.SPARE].ready.eq(1),
        ]

    def connect_links(self, serial):
        """What a card with two links has between its layers, and link 1 with its PHY `serial`."""
        turns, transmitter = self.deposit.turns, self.packet.transmitter
        splitter = transmitter.splitter
        self.comb += [
            turns.homes.eq(transmitter.homes),
            turns.came.eq(transmitter.came),
            turns.room.eq(splitter.room),
            splitter.reserve.eq(turns.reserve),
            splitter.cancel.eq(turns.cancel),
            *attach_second(self.link1, serial, self.registers),
        ]

    def connect_serial(self, serial):
        """The link's end, its test equipment and the serial PHY, or both of a pair of rings."""
        link, registers = self.link, self.registers
        if serial is None:
            return attach_port(link, registers)
        if hasattr(link, "cables"):
            return attach_pair(link, [self.equipment, self.equipment_previous], serial, registers)
        return attach_equipment(link, self.equipment, serial, registers)

    # Host Registers and Slots ---------------------------------------------------------------------

    def connect_host_registers(self):
        """BAR 0, and what the host registers show."""
        host, registers, program = self.host, self.registers, self.program
        self.comb += [
            *connect_lines(host.ports["host"],      registers.port, *([] if self.flash is None else [self.flash.port])),
            *connect_lines(host.ports["firmware"],  program.processor.firmware),
            *connect_lines(host.ports["endpoints"], self.endpoints.port if self.window is None else self.window.pages),
            registers.max_payload.eq(host.max_payload),
            registers.max_request.eq(host.max_request),
            registers.mcp_state.eq(program.registers.state),
            registers.mcp_identity.eq(program.registers.identity),
            self.packet.node_id.eq(registers.node_id),
            self.fast.commands.node_id.eq(registers.node_id),
        ]

    def connect_slots(self):
        """The blocks that read and write slots, in the order that `favourite` and `late` count."""
        processor, deposit, packet, fast, slots = self.program.processor, self.deposit, self.packet, self.fast, self.endpoints.slots
        readers = [processor.reader, deposit.send.slot, packet.slots[0], packet.express_slot, deposit.atomic.slot, fast.commands.slot,
            fast.answers.slot, *packet.slots[1:]]
        writers = [processor.writer, deposit.lander.slot, deposit.atomic.reply]
        self.comb += [client.connect(port)
            for client, port in zip(readers + writers, slots.readers + slots.writers, strict=True)]

    # Commands -------------------------------------------------------------------------------------

    def connect_commands(self):
        """Commands from the doorbell to the fast path and the control program."""
        ends, fast, program = self.endpoints, self.fast, self.program.registers
        turns, commands, contexts = ends.turns, fast.commands, fast.contexts
        self.comb += [
            turns.offer.connect(commands.offer),
            turns.verdict.eq(commands.verdict),
            turns.fast.eq(program.fast_endpoints),
            turns.again.eq(program.arm.strobe),
            turns.take.eq(program.take),
            turns.skip.eq(program.skip),
            turns.frees[0].eq(program.free),
            turns.frees[1].eq(contexts.free),
            program.pending.eq(turns.pending),
            program.room.eq(turns.room),
            *connect_count(program.producer, ends.pages.producer[1]),
            *connect_count(program.head, turns.heads[1]),
            program.digest.eq(commands.digest),

            fast.fast.eq(program.fast_endpoints),
            *[getattr(fast.enable, name).eq(getattr(program.fast_enable, name) & getattr(self.registers.fast_path, name))
                for name in ["put_inline", "put", "get", "atomic"]],
            self.deposit.send.glance.eq(commands.glance),
        ]

    # Arrivals -------------------------------------------------------------------------------------

    def connect_arrivals(self):
        """Notices, messages and answers from the engines. Each block takes what is its own:
        answers, then notices, then requests; the rest is the control program's.
        """
        ends, fast, deposit, program = self.endpoints, self.fast, self.deposit, self.program.registers
        arrivals, events = ends.arrivals, ends.events
        self.comb += [
            *[engine.arrivals.connect(port) for engine, port in zip([deposit.lander, deposit.scatter], arrivals.sinks, strict=True)],
            arrivals.source.connect(fast.answers.sink),
            fast.answers.source.connect(events.sink),
            events.source.connect(fast.requests.sink),
            events.enable.eq(program.fast_enable.event & self.registers.fast_path.event),
            fast.requests.source.connect(program.arrivals),
            fast.requests.again.eq(program.arrivals_again),
            program.arrivals_twice.eq(fast.requests.twice),

            # Atomics of other nodes, and their replies.
            fast.requests.atomics.connect(deposit.atomic.sink),
            deposit.atomic.done.connect(fast.replies.sink),
            fast.replies.source.connect(program.replies),
            fast.replies.again.eq(program.replies_again),
            program.replies_twice.eq(fast.replies.twice),
        ]

        # A slot of the inbox comes free once: by the program; or, where hardware answered its
        # request, by the fast path; or by the answer that ended a get or an atomic.
        ended, answered = fast.contexts.ended, fast.answers.free
        self.comb += [
            ended.ready.eq(~program.inbox_free.strobe),
            answered.ready.eq(~program.inbox_free.strobe & ~ended.valid),
            arrivals.free.strobe.eq(program.inbox_free.strobe | ended.valid | answered.valid),
            arrivals.free.slot.eq(Mux(program.inbox_free.strobe, program.inbox_free.slot,
                Mux(ended.valid, ended.tag, answered.slot))),
            deposit.lander.free.eq(arrivals.freed),
        ]

    # Queues ---------------------------------------------------------------------------------------

    def connect_queues(self):
        """Queue entries of the control program, of the fast path and of events."""
        ends, queues, program, host = self.endpoints, self.endpoints.queues, self.program.registers, self.host
        self.comb += [
            ends.open.eq(program.queue),
            queues.cycles.eq(self.registers.cycles),
            *[self.connect_entries(entries, n) for n, entries in enumerate([program.entries, self.fast.contexts.entry])],
            queues.source.connect(host.posts),
            host.open.strobe.eq(program.queue.strobe & ~program.queue.closed),
            host.open.vector.eq(program.queue.vector),
        ]

    def connect_entries(self, entries, n):
        """Completions to their queues in host memory, but those of the window's endpoint to it."""
        sink = self.endpoints.queues.sinks[n]
        if self.window is None:
            return entries.connect(sink)
        end  = self.window.ends[n]
        mine = entries.queue == self.window.endpoint
        return [
            *[entries.connect(to, omit={"valid", "ready"}) for to in (sink, end)],
            sink.valid.eq(entries.valid & ~mine),
            end.valid.eq(entries.valid & mine),
            entries.ready.eq(Mux(mine, end.ready, sink.ready)),
        ]

    # Orders ---------------------------------------------------------------------------------------

    def connect_orders(self):
        """Orders of the control program and of the fast path to the engines, and their ends."""
        fast, program, deposit, packet = self.fast, self.program.registers, self.deposit, self.packet
        self.comb += [
            program.jobs.connect(fast.jobs.program),
            program.job_space.eq(fast.jobs.space),
            fast.jobs.source.connect(deposit.jobs),
            program.express.connect(fast.expresses.program),
            program.express_space.eq(fast.expresses.space),
            fast.expresses.source.connect(packet.express),
            deposit.job_ends.connect(fast.contexts.job_done_in),
            fast.contexts.job_done.connect(program.job_done),
            program.send_moved.eq(deposit.moved),
        ]

    # Flows ----------------------------------------------------------------------------------------

    def connect_flows(self):
        """Flows: who owns them, what is acknowledged, and what the control program does to them."""
        packet, program, contexts = self.packet, self.program.registers, self.fast.contexts

        # Flows that the program arms and claims.
        self.comb += [
            contexts.arm.eq(program.arm),
            contexts.claim.eq(program.claim),
            contexts.pop.eq(program.claim_pop),
            contexts.refusal_waiting.eq(packet.refusals.valid | program.refusal_waiting),
            contexts.judging.eq(packet.judging),
            contexts.changed.eq(packet.changed),
            program.claimed.eq(contexts.claimed),
            program.given.eq(contexts.given),
            program.changed.eq(contexts.changed_out),
            program.fast_busy.eq(contexts.busy),
            program.fast_active.eq(contexts.active),
            *[shown.eq(moved) for shown, moved in zip(program.fast_moved, contexts.moved, strict=True)],
        ]

        # Flows as the packet layer has them.
        self.comb += [
            *[flows.eq(program.flow_reset)  for flows in [packet.flow_reset,  self.deposit.flow_reset]],
            *[flows.eq(program.flow_rewind) for flows in [packet.flow_rewind, self.deposit.flow_rewind]],
            packet.route.eq(program.route),
            program.scouts.connect(packet.scouts),
            packet.scouts_came.connect(program.scouts_came),
            packet.refusals.connect(program.refusals),
            program.naked.eq(packet.naked),
            program.works.eq(packet.works),
            program.storing.eq(packet.storing),
            program.link_up.eq(self.link.up if self.link1 is None else Cat(self.link.up, self.link1.up)),
            packet.left.flow.eq(program.left.flow),
            *assign(program.left, packet.left, psn="psn", valid="valid", vain="vain"),
            *[[lookup.flow.eq(user.flow), user.psn.eq(lookup.psn)]
                for lookup, user in zip(packet.acked, [program.acked, contexts.acked], strict=True)],
        ]

    # Regions --------------------------------------------------------------------------------------

    def connect_regions(self):
        """Regions and gets under way that are entered, and the keys that may be given."""
        memory, fast, registers, program = self.deposit.memory, self.fast, self.registers, self.program.registers
        self.comb += [
            memory.entry.eq(program.region),
            memory.keys.draw.eq(registers.key_draw),
            memory.keys.advance.eq(program.advance),
            registers.key_next.eq(memory.keys.next),
            registers.keys_left.eq(memory.keys.left),
            program.region_fresh.eq(memory.keys.fresh),
            program.region_busy.eq(self.deposit.busy),
            program.generation.eq(memory.keys.generation),
            fast.commands.generation.eq(memory.keys.generation),
            *assign(fast.expects.program, program.expect, we="we", context="context", key="key", node="node", granted="valid"),
            memory.expect.eq(fast.expects.write),
        ]

    # Halt -----------------------------------------------------------------------------------------

    def connect_halt(self):
        """What is reset or emptied when the control program is halted, and who is told."""
        host, deposit, packet, ends, program, registers = self.host, self.deposit, self.packet, self.endpoints, self.program, self.registers
        halt, shown = program.halt, self.endpoints.pages.program
        was_halted  = Signal()
        self.comb += [
            program.run.eq(registers.run),
            registers.bite.eq(program.bite | host.lost),
            registers.lost.eq(host.lost),

            # Emptied.
            deposit.memory.clear.strobe.eq(halt.clear),
            deposit.memory.clear.index.eq(halt.index),
            deposit.atomic.forget.eq(halt.reset),
            ends.halted.eq(halt.reset),
            ends.clear.eq(halt.clear),
            ends.index.eq(halt.index),
            # A new program does not go on with the flows that peers began with the last one. Their
            # sources are told.
            packet.forget.eq(was_halted & ~halt.reset),
            *[cutter.reset.eq(halt.reset) for cutter in self.cutters],

            # Shown to the processes.
            host.halted.eq(halt.halted),
            host.running.eq(~halt.reset),
            shown.halts.eq(halt.halts),
            shown.bus_master.eq(host.enable),

            # Reset.
            *[HaltInserter()(module).halt.eq(halt.reset)
                for module in [*ends.stopped, self.fast, *program.stopped, *deposit.sending, *packet.transmitter.sending]],
        ]
        self.sync += [
            was_halted.eq(halt.reset),
            shown.ready.eq(~halt.reset & (program.registers.identity != 0)),
        ]

    # Window ---------------------------------------------------------------------------------------

    def connect_window(self):
        """The aperture, the window's registers, and its endpoint."""
        window, aperture = self.window, self.host.aperture
        self.comb += [
            aperture.stores.connect(window.stores),
            aperture.loads.connect(window.requests),
            window.replies.connect(aperture.answers),
            *connect_lines(self.host.ports["window"], window.port),
            *connect_lines(window.endpoints, self.endpoints.port),
            *[getattr(window.written, name).eq(getattr(self.host.writes, name))
                for name in ["valid", "ready", "last", "dat", "address", "length"]],
            window.halted.eq(self.program.halt.reset),
        ]

    # Counters -------------------------------------------------------------------------------------

    def busy_counters(self):
        """A pulse for each cycle in which there was something at a boundary."""
        boundaries = {
            "BUSY_REQUEST": self.host.reads,
            "BUSY_PACKET":  self.deposit.send.payload,
            "BUSY_LINK":    self.link.sinks[CHANNEL.BULK],
            "BUSY_SCATTER": self.packet.payload_out,
            "BUSY_WRITE":   self.host.writes,
            "BUSY_PCIE":    self.host.leaving,
        }
        counters = {name: Signal(name=name.lower()) for name in boundaries}
        self.sync += [counters[name].eq(endpoint.valid) for name, endpoint in boundaries.items()]
        return counters
