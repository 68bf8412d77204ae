"""The host side as an application of Corundum: descriptors, segmented RAM, BAR by AXI-lite."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.host.axi_lite import AXILiteBAR
from dibber.host.bar import bar_windows
from dibber.host.dma_reads import DMAReads
from dibber.host.dma_writes import DMAWrites
from dibber.host.master import BusMaster
from dibber.host.posts import PostWriter
from dibber.host.segments import ArrivalRAM, DepartureRAM
from dibber.interface import C

# Bytes of a write and of a read. The DMA engine splits both at what the host allows.
MAX_PAYLOAD = 256
MAX_REQUEST = 512

# Stall --------------------------------------------------------------------------------------------

class Stall(LiteXModule):
    """Notice that the DMA engine does nothing although something is pending.

    Parameters
    ----------
    cycles : without progress

    Attributes
    ----------
    pending : Signal(), in
    moves   : Signal(), in    progress
    stalled : Signal(), out
    """
    def __init__(self, cycles):
        self.pending = Signal()
        self.moves   = Signal()
        self.stalled = Signal()

        # # #

        still = Signal(max=cycles + 1)
        self.sync += [
            If(~self.pending | self.moves,
                still.eq(0),
                self.stalled.eq(0)
            ).Elif(still == cycles,
                self.stalled.eq(1)
            ).Else(
                still.eq(still + 1)
            )
        ]

# Corundum Host ------------------------------------------------------------------------------------

class CorundumHost(LiteXModule):
    """What HostInterface is behind a PCIe PHY, on the DMA interface that Corundum gives to an
    application. docs/design/corundum.md says which stream becomes which descriptor.

    Nothing tells an application whether Bus Master Enable is set. So a DMA engine without progress
    for `stall_cycles` counts as if the bit were clear, see BusMaster. A write that ends with an
    error counts so, too, until the control program is halted and all writes have ended: its bytes
    may be missing, so no mark is given.

    Parameters
    ----------
    data_width    : 64 or 128
    sram_bytes    : size of the control program's SRAM, which is a window of BAR 0
    segments, segment_width : of the segmented RAM; together twice the width of Corundum's PCIe
    control_bits  : of an AXI-lite address
    address_bits  : see PostWriter
    patience      : see BusMaster
    stall_cycles  : longer than the DMA engine ever rests while the host takes its requests
    write_bytes, read_bytes : of the two RAMs, powers of two
    writes, reads : descriptors under way, powers of two

    Attributes
    ----------
    all of HostInterface, and:
    write_descriptors, read_descriptors : Endpoint(descriptor_layout), out
    write_status, read_status           : Endpoint(status_layout), in     valid only
    departures    : DepartureRAM        `commands` and `responses` are the DMA engine's
    arrivals      : ArrivalRAM          `commands` and `done` are the DMA engine's
    bar           : AXILiteBAR          `aw`, `w`, `b`, `ar` and `r` are the host's
    failed        : Signal(), out       a write has ended with an error
    """
    def __init__(self, data_width, sram_bytes, segments=2, segment_width=128, control_bits=24, address_bits=64, patience=2**23,
                 stall_cycles=2**12, write_bytes=2**13, read_bytes=2**15, writes=64, reads=128):
        line_bytes = data_width//8
        self.bar        = bar        = AXILiteBAR(data_width, control_bits, C.BAR0_SIZE, bar_windows(sram_bytes))
        self.msix       = msix       = PostWriter(data_width, address_bits)
        self.departures = departures = DepartureRAM(data_width, segments, segment_width, write_bytes)
        self.arrivals   = arrivals   = ArrivalRAM(data_width, segments, segment_width, read_bytes)
        self.writer     = writer     = DMAWrites(data_width, write_bytes//line_bytes, writes, MAX_PAYLOAD)
        self.reader     = reader     = DMAReads(data_width, read_bytes//line_bytes, reads, MAX_REQUEST)
        self.master     = master     = BusMaster(patience)

        self.writes      = writer.writes
        self.marked      = writer.marked
        self.reads       = reader.reads
        self.completions = reader.completions
        self.posts       = msix.sink
        self.open        = msix.open
        self.halted      = msix.halted
        self.ports       = {name: port for name, port in bar.ports.items() if name != "msix"}
        malformed        = Signal()
        dropped          = Signal()
        self.counters    = {
            "TLP_UNSUPPORTED" : bar.unsupported,
            "TLP_MALFORMED"   : malformed,
            "POSTS"           : msix.posted,
            "INTERRUPTS"      : msix.interrupted,
            "REQUESTS_DROPPED": dropped,
        }
        self.max_payload   = Signal(16, reset=MAX_PAYLOAD)
        self.max_request   = Signal(16, reset=MAX_REQUEST)
        self.running       = master.running
        self.enable        = master.enable
        self.discard       = master.discard
        self.lost          = master.lost
        self.id            = Signal(16)
        self.extended_tags = Signal(reset=1)

        self.write_descriptors = writer.descriptors
        self.write_status      = writer.status
        self.read_descriptors  = reader.descriptors
        self.read_status       = reader.status
        self.leaving           = writer.descriptors
        self.failed            = failed = Signal()

        # # #

        # Requests ---------------------------------------------------------------------------------

        port, table = bar.ports["msix"], msix.port
        self.comb += [
            *[getattr(table, name).eq(getattr(port, name)) for name in ["adr", "dat_w", "be", "we", "re"]],
            port.dat_r.eq(table.dat_r),
            msix.source.connect(writer.posts),
            departures.we.eq(writer.we),
            departures.adr.eq(writer.adr),
            departures.dat.eq(writer.dat),
            arrivals.adr.eq(reader.adr),
            reader.dat.eq(arrivals.dat),
            reader.id.eq(self.id),
            writer.ask.eq(bar.ask),
            bar.landed.eq(writer.landed),
        ]

        # Bus Mastering ----------------------------------------------------------------------------

        self.write_stall = write_stall = Stall(stall_cycles)
        self.read_stall  = read_stall  = Stall(stall_cycles)
        hindered = Signal()
        self.comb += [
            write_stall.pending.eq(~writer.empty),
            write_stall.moves.eq(writer.status.valid | (writer.descriptors.valid & writer.descriptors.ready)),
            # A host may leave a read without an answer; only a descriptor that is not taken counts.
            read_stall.pending.eq(reader.descriptors.valid),
            read_stall.moves.eq(reader.descriptors.ready),
            hindered.eq(write_stall.stalled | read_stall.stalled | failed),
            master.allowed.eq(~hindered),
            master.waits.eq(hindered),
            msix.enable.eq(master.enable),
            writer.hold.eq(failed),
            *[each.enable.eq(master.enable) for each in (writer, reader)],
            # At most one request is dropped in a cycle, so that a counter can count them.
            writer.discard.eq(master.discard),
            reader.discard.eq(master.discard & ~writer.drops),
        ]
        self.sync += [
            If(master.discard & writer.empty, failed.eq(0)),
            If(writer.failed, failed.eq(1)),
        ]

        # Counters ---------------------------------------------------------------------------------

        # A pulse is one event. A second one in the same cycle waits for the next.
        for pulse, one, other in [
            (malformed, writer.stray, reader.stray), (dropped, writer.dropped | reader.dropped, writer.failed)]:
            due = Signal(4)
            self.comb += pulse.eq(due != 0)
            self.sync += due.eq(due + one + other - pulse)
