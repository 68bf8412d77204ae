"""The control program's processor, and the memories and registers that it reaches."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.cores.cpu.vexriscv.core import VexRiscv
from litex.soc.interconnect import wishbone

from dibber.common.register_bridge import RegisterBridge
from dibber.common.sram import SharedSRAM
from dibber.debug.dm import DebugModule
from dibber.interface.description import C, MCP, image_limit
from dibber.layouts import slot_port, slot_write_port
from dibber.mcp import vexriscv

# Memory -------------------------------------------------------------------------------------------

# Bytes of SRAM. The size is a parameter of the card, because block RAM is scarce on some parts.
# Each size needs an image that was linked for it (SIZES in firmware/Makefile).
SRAM_BYTES  = 128*1024
SRAM_SCARCE = C.SRAM_SCARCE

def image_bytes(sram_bytes):
    """Bytes of the largest image, as firmware/mcp.ld has it."""
    return image_limit(sram_bytes)

def cache_bytes(sram_bytes):
    """Bytes of the instruction cache, a power of two. An image for a small SRAM may be larger than
    the cache: see firmware/mcp.ld.
    """
    return sram_bytes//2

# Slot Window --------------------------------------------------------------------------------------

SLOT_WINDOW_BITS = 14  # of a word address: 64 KiB, more than all sets need

def slot_set(adr):
    """The set of slots that the word address `adr` in the window lies in."""
    return adr[log2_int(C.SLOTS*C.SLOT_BYTES//4):SLOT_WINDOW_BITS]

# Slot Bridge --------------------------------------------------------------------------------------

class SlotBridge(LiteXModule):
    """Wishbone loads from the slots of all sets, and stores of whole words to the OUTBOX. Other
    stores are ignored.

    Attributes
    ----------
    bus    : wishbone.Interface, in             word 0 of set 0 at a multiple of 64 KiB
    reader : slot_port(data_width), out
    writer : slot_write_port(data_width), out

    Cycles: a load takes 3, a store 1; both wait for the arbiter of the slots.
    """
    def __init__(self, data_width):
        self.bus    = bus    = wishbone.Interface(data_width=32, adr_width=30)
        self.reader = reader = slot_port(data_width)
        self.writer = writer = slot_write_port(data_width)

        # # #

        request   = bus.cyc & bus.stb
        waiting   = Signal(2)
        words     = data_width//32
        word_bits = log2_int(words)
        lane      = bus.adr[:word_bits]
        line      = bus.adr[word_bits:SLOT_WINDOW_BITS]
        outbox    = Signal()
        self.sync += waiting.eq(Cat(reader.valid & reader.ready, waiting[0]))
        self.comb += [
            outbox.eq((slot_set(bus.adr) == C.OUTBOX) & (bus.sel == 0xf)),
            reader.valid.eq(request & ~bus.we & (waiting == 0)),
            reader.adr.eq(line),
            bus.dat_r.eq(Array(reader.dat_r[32*n:32*n + 32] for n in range(words))[lane]),
            writer.valid.eq(request & bus.we & outbox),
            writer.adr.eq(line),
            writer.dat_w.eq(Replicate(bus.dat_w, words)),
            Case(lane, {n: writer.be.eq(0xf << 4*n) for n in range(words)}),
            bus.ack.eq(request & Mux(bus.we, ~outbox | writer.ready, waiting[1])),
        ]

# Decoder ------------------------------------------------------------------------------------------

class Decoder(LiteXModule):
    """Connects a Wishbone master to the chosen slave.

    If no slave is chosen, the access is answered with 0. So the processor never hangs, as it would
    with wishbone.Decoder.

    Parameters
    ----------
    master : wishbone.Interface
    slaves : list of (Signal: the master's address is in this slave, wishbone.Interface)
    """
    def __init__(self, master, slaves):
        hits = []
        for n, (chosen, slave) in enumerate(slaves):
            hit = Signal(name=f"hit{n}")
            hits.append(hit)
            self.comb += [
                hit.eq(chosen),
                master.connect(slave, omit={"cyc", "dat_r", "ack", "err"}),
                slave.cyc.eq(master.cyc & hit),
                If(hit,
                    master.dat_r.eq(slave.dat_r),
                    master.ack.eq(slave.ack),
                ),
            ]
        self.comb += If(Cat(*hits) == 0, master.ack.eq(master.cyc & master.stb))

# Processor ----------------------------------------------------------------------------------------

class Processor(LiteXModule):
    """VexRiscv `full` (readable mcycle and minstret, traps, multiply and divide) with its SRAM and
    a debugger's module.

    Memory from 0x8000_0000 up is not cached. The instruction cache has a place for each word of the
    largest image, so that code is fetched once. The data cache writes through, so that the host
    sees what the program wrote. The caches do not snoop: `written` tells the program that the host
    wrote to the SRAM. The only interrupt is the watchdog's, because the control program is one loop
    that waits for EVENTS.

    A load of EVENTS_HELD waits on the bus until `release`. It does not wait while a debugger is
    connected, because the debugger shares that bus, and halts the processor only between loads.

    A fetch or load from an empty address gives 0, which is an illegal instruction. So a program
    that jumps there traps, and does not hang.

    A debugger's accesses to memory take turns with the processor's loads and stores.

    Parameters
    ----------
    platform   : gets the processor's Verilog by `add_source`; it is written to `output_dir`, or
                 build
    data_width : bits of the host's lines
    sram_bytes : of its SRAM, a power of two, at most SRAM_MAX. The instruction cache has half of
                 this size

    Attributes
    ----------
    reset     : Signal(), in             holds the processor at address 0, its caches empty
    timer_interrupt : Signal(), in       level; machine timer interrupt
    release   : Signal(), in             loads of EVENTS_HELD are answered
    firmware  : line_port(data_width)    the host's window on the SRAM
    written   : Signal(), out            one cycle: the host wrote there
    registers : line_port(32), out       at MCP_REGISTER_BASE
    reader    : slot_port(data_width), out         of the slots, at MCP_SLOT_BASE
    writer    : slot_write_port(data_width), out   of those of the OUTBOX
    dmi       : dmi_port, in             the debugger's
    halted    : Signal(), out            the debugger holds the processor
    ndmreset  : Signal(), out            the debugger requests a reset
    """
    def __init__(self, platform, data_width, sram_bytes=SRAM_BYTES):
        assert sram_bytes <= C.SRAM_MAX
        self.reset           = Signal()
        self.timer_interrupt = Signal()
        self.release         = Signal()

        # # #

        self.cpu   = cpu   = VexRiscv(platform, variant="full")
        self.debug = debug = DebugModule()
        following, taken = Signal(30), Signal()  # the next address of `dbus`, and when it is taken
        # LiteX's variant `full+debug` would add a bus for the debugger that is not driven here.
        folder = getattr(platform, "output_dir", None) or "build"
        cpu.use_external_variant(str(vexriscv.write("VexRiscv_FullDebug", cache_bytes(sram_bytes), folder)))
        cpu.set_reset_address(0)
        cpu.cpu_params.update(
            i_timerInterrupt                = self.timer_interrupt,
            i_debugReset                    = ResetSignal("sys"),
            i_debug_bus_cmd_valid           = debug.core.valid,
            o_debug_bus_cmd_ready           = debug.core.ready,
            i_debug_bus_cmd_payload_wr      = debug.core.we,
            i_debug_bus_cmd_payload_address = debug.core.adr,
            i_debug_bus_cmd_payload_data    = debug.core.dat_w,
            o_debug_bus_rsp_data            = debug.core.dat_r,
            o_debug_resetOut                = Signal(),
            o_dBusWishbone_ADR_next         = following,
            o_dBusWishbone_ADR_taken        = taken)
        self.sram      = SharedSRAM(sram_bytes, data_width)
        self.whole     = Signal()
        self.held      = Signal()
        self.bridge    = RegisterBridge(self.whole, self.held, self.release | debug.active)
        self.slots     = SlotBridge(data_width)
        self.firmware  = self.sram.port
        self.written   = Signal()
        self.registers = self.bridge.port
        self.reader    = self.slots.reader
        self.writer    = self.slots.writer
        self.dmi       = debug.dmi
        self.halted    = debug.halted
        self.ndmreset  = debug.ndmreset
        self.comb += [
            cpu.reset.eq(self.reset),
            debug.reset.eq(self.reset),
            self.written.eq(self.firmware.we),
        ]

        # Address Map ------------------------------------------------------------------------------

        def within(base, size):
            """Decoder of wishbone addresses (in words) in [base, base + size)."""
            assert size & (size - 1) == 0 and base % size == 0
            bits = (size//4).bit_length() - 1
            return lambda adr: adr[bits:] == (base//4 >> bits)

        sram      = within(0, sram_bytes)
        registers = within(C.MCP_REGISTER_BASE, 0x1000)
        window    = within(C.MCP_SLOT_BASE, 4 << SLOT_WINDOW_BITS)
        slots     = lambda adr: window(adr) & (slot_set(adr) < C.SLOT_SETS)
        areas     = lambda adr: Cat(sram(adr), registers(adr), slots(adr))
        self.data    = data = wishbone.Interface(data_width=32, adr_width=30)
        # The debugger's address and data are stable for two cycles before its request.
        asking = wishbone.Interface(data_width=32, adr_width=30)
        self.comb += [
            asking.cyc.eq(debug.bus.cyc),
            asking.stb.eq(debug.bus.stb),
            debug.bus.ack.eq(asking.ack),
            debug.bus.dat_r.eq(asking.dat_r),
        ]
        self.sync += [getattr(asking, name).eq(getattr(debug.bus, name)) for name in ("adr", "dat_w", "sel", "we")]
        self.arbiter = wishbone.Arbiter([cpu.dbus, asking], data)
        # The area of an address is decoded a cycle early, into a register beside the address.
        its, others, chosen = Signal(3), Signal(3), Signal(3)
        others_whole        = Signal()
        its_held            = Signal()  # its address is that of EVENTS_HELD in the area of registers
        events_held         = (C.MCP_REGISTER_BASE + MCP["EVENTS_HELD"].offset)//4
        self.sync += [
            If(taken,
                its.eq(areas(following)),
                its_held.eq(following[:10] == events_held & 0x3ff)
            ),
            others.eq(areas(debug.bus.adr)),
            others_whole.eq(debug.bus.sel == 0xf),
        ]
        self.comb += [
            chosen.eq(Mux(self.arbiter.rr.grant == 0, its, others)),
            self.whole.eq(Mux(self.arbiter.rr.grant == 0, cpu.dbus.sel == 0xf, others_whole)),
            self.held.eq((self.arbiter.rr.grant == 0) & its_held),
        ]
        self.decoder = Decoder(data, list(zip(chosen, [self.sram.dbus, self.bridge.bus, self.slots.bus], strict=True)))
        self.fetch_decoder = Decoder(cpu.ibus, [(sram(cpu.ibus.adr), self.sram.ibus)])
