# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The network interface card without its PHYs."""

from migen import *

from litex.gen import *

from dibber.deposit.regions import RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send import SendEngine
from dibber.host.interface import HostInterface
from dibber.interface.description import C
from dibber.link.port import LinkPort
from dibber.mcp.doorbells import EndpointPages
from dibber.mcp.halt import Cutter, Halt
from dibber.mcp.identity import HostRegisters, collect_counters
from dibber.mcp.processor import Processor
from dibber.mcp.registers import ControlRegisters
from dibber.mcp.slots import CommandSlots
from dibber.packet.layer import PacketLayer

# Helpers ------------------------------------------------------------------------------------------

class HaltInserter(ResetInserter):
    """Resets a module by its `halt`. It may have a `reset` of its own that means something else."""
    control_name = "halt"

def attach(master, slave):
    """Connect two line ports."""
    return [
        *[getattr(slave, name).eq(getattr(master, name)) for name in ["adr", "dat_w", "be", "we", "re"]],
        master.dat_r.eq(slave.dat_r),
    ]

# Dibber Core --------------------------------------------------------------------------------------

class DibberCore(LiteXModule):
    """The column of docs/design.md, from the PCIe PHY's TLP stream to the serial PHY's words.

    While MCP_CONTROL.run is 0 the sending side is in reset (doorbells, processor, send engine, packets
    that wait for the link). Kept are the command slots, the SRAM, the host registers, the link, and the
    receiving side: see `Halt`.

    Parameters
    ----------
    platform   : gets the processor's Verilog by `add_source`
    phy        : PCIe PHY as LitePCIe has them: see HostInterface. `extended_tags` (Signal) if it has
                 one tells that more than 32 reads may be in flight
    serial     : serial PHY: `sink` (serial_tx_layout), `source` (serial_rx_layout), and `signal`, 1
                 while the receiver sees one
    data_width : 64 or 128, bits of the data path; the same as the PCIe PHY's
    clock_hz   : frequency of `sys`, shown to the host

    Attributes
    ----------
    counter_sources : list of dict, the pulses that each layer counts by
    """
    def __init__(self, platform, phy, serial, data_width, clock_hz):
        # Layers -----------------------------------------------------------------------------------

        self.host    = host    = HostInterface(phy, data_width)
        self.regions = regions = RegionTable(C.REGIONS, ports=2)
        self.send    = send    = SendEngine(data_width)
        self.scatter = scatter = ScatterEngine(data_width)
        self.packet  = packet  = PacketLayer(data_width)
        self.link    = link    = LinkPort()

        # Control Program --------------------------------------------------------------------------

        self.pages     = pages     = EndpointPages(data_width)
        self.slots     = slots     = CommandSlots(data_width, readers=3)
        self.processor = processor = Processor(platform, data_width)
        self.counter_sources = [host.counters, pages.counters, send.pulses, packet.counters, link.counters]
        self.identity  = identity  = HostRegisters(data_width, clock_hz, collect_counters(*self.counter_sources))
        self.registers = registers = ControlRegisters(identity.shown, pages, identity.cycles)
        self.halt      = halt      = Halt(C.REGIONS)

        # # #

        # Host -------------------------------------------------------------------------------------

        self.comb += [
            *attach(host.ports["host"],      identity.port),
            *attach(host.ports["firmware"],  processor.firmware),
            *attach(host.ports["endpoints"], pages.port),
            *attach(pages.slots,             slots.port),
            identity.max_payload.eq(host.max_payload),
            identity.max_request.eq(host.max_request),
            identity.link_state.eq(link.state),
            identity.link_signal.eq(link.signal),
            identity.link_stopped.eq(link.stopped),
            identity.mcp_state.eq(registers.state),
            identity.mcp_identity.eq(registers.identity),
        ]

        # Control Program --------------------------------------------------------------------------

        self.comb += [
            *attach(processor.registers, registers.port),
            registers.jobs.connect(send.jobs),
            send.done.connect(registers.job_done),
            scatter.arrivals.connect(registers.arrivals),
            packet.refusals.connect(registers.refusals),
            packet.flow_reset.eq(registers.flow_reset),
            registers.changed.eq(packet.changed),
            *[registers.acked[n].eq(packet.acked[n]) for n in range(C.NODES)],
            registers.posts.connect(host.posts),
            registers.post_space.eq(host.post_space),
            send.slot.connect(slots.readers[0]),
            packet.slot.connect(slots.readers[1]),
            processor.reader.connect(slots.readers[2]),
        ]

        # Regions ----------------------------------------------------------------------------------

        entry = registers.region
        self.comb += [
            send.lookup.connect(regions.ports[0]),
            scatter.lookup.connect(regions.ports[1]),
            regions.write.eq(entry.we | halt.clear),
            regions.index.eq(Mux(halt.clear, halt.index, entry.index)),
            regions.valid.eq(entry.valid & ~halt.clear),
            *[getattr(regions, name).eq(getattr(entry, name)) for name in ["key", "base", "length", "rights", "owner"]],
        ]

        # Deposits ---------------------------------------------------------------------------------

        self.comb += [
            send.reads.connect(host.reads),
            host.completions.connect(send.completions),
            send.packets.connect(packet.packets),
            send.payload.connect(packet.payload_in),
            packet.deposits.connect(scatter.deposits),
            packet.payload_out.connect(scatter.payload),
            scatter.done.connect(packet.deposit_done),
            scatter.writes.connect(host.writes),
            scatter.marked.eq(host.marked),
            scatter.max_payload.eq(host.max_payload),
            send.max_request.eq(host.max_request),
            send.crowded.eq(host.writes.valid & ~host.writes.ready),
            packet.node_id.eq(identity.node_id),
        ]
        if hasattr(phy, "extended_tags"):
            self.comb += send.extended_tags.eq(phy.extended_tags)

        # Link -------------------------------------------------------------------------------------

        # A data packet may be under way when its source is halted; acknowledgements are not halted.
        self.cutter = cutter = Cutter()
        control, request = range(2)
        self.comb += [
            packet.sources[control].connect(link.sinks[control]),
            packet.sources[request].connect(cutter.sink),
            cutter.source.connect(link.sinks[request]),
            *[link.sources[n].connect(packet.sinks[n]) for n in [control, request]],
            link.serial_tx.connect(serial.sink),
            serial.source.connect(link.serial_rx),
            link.signal.eq(serial.signal),
        ]

        # Halt -------------------------------------------------------------------------------------

        transmitter = packet.transmitter
        halted = [pages, registers, send, transmitter.queue, transmitter.build, transmitter.flows,
            transmitter.words, transmitter.buffer, transmitter.send]
        self.comb += [
            halt.run.eq(identity.run),
            processor.reset.eq(halt.reset),
            cutter.reset.eq(halt.reset),
            *[HaltInserter()(module).halt.eq(halt.reset) for module in halted],
        ]
