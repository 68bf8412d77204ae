"""Memory that a processor and the host share."""

# SPDX-License-Identifier: BSD-2-Clause

from math import log2

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from dibber.interface.register_bank import line_port

LINE = 32  # bytes of a line of the processor's caches; no burst leaves its line

# SRAM ---------------------------------------------------------------------------------------------

class SharedSRAM(LiteXModule):
    """Memory with two ports: one for the processor, one for the host.

    The processor's fetches and loads share one port, and loads and stores go first. A load or store
    stalls the pipeline; a fetch runs ahead of it, so it can wait. Fetches do not starve, because a
    program must fetch before it loads. A read of a word that the other side writes in the same
    cycle is undefined.

    Parameters
    ----------
    size       : bytes
    data_width : bits of the host's port

    Attributes
    ----------
    ibus : wishbone.Interface, in   fetches
    dbus : wishbone.Interface, in   loads and stores
    port : line_port(data_width)    the host's port; `dat_r` is 0 where no read was 2 cycles before

    Cycles: a store 1, a load 2; in an incrementing burst 1 for each word after the first. Addresses
    wrap at `size`; those of a burst wrap within a line of the processor's caches. The block does
    not decode the high address bits.
    """
    def __init__(self, size, data_width):
        self.ibus = ibus = wishbone.Interface(data_width=32, adr_width=30)
        self.dbus = dbus = wishbone.Interface(data_width=32, adr_width=30)
        self.port = port = line_port(data_width)

        # # #

        banks     = data_width//32
        bank_bits = int(log2(banks))
        depth     = size//(data_width//8)

        # Processor's Port -------------------------------------------------------------------------

        # Inside a burst the next address is computed here, one cycle before the processor shows it
        # (Wishbone B4, 4.3: registered feedback).
        adr    = Signal(int(log2(size//4)))
        writes = Signal()
        grants, follows = [], []
        for bus in [dbus, ibus]:
            read   = Signal()
            follow = Signal(len(adr))
            within = log2_int(LINE//4)
            acked  = Signal()
            grant  = Signal()
            self.comb += [
                read.eq(bus.cyc & bus.stb & ~bus.we & (~acked | (bus.cti == wishbone.CTI_BURST_INCREMENTING))),
                follow.eq(Cat((bus.adr[:within] + acked)[:within], bus.adr[within:])),
                bus.ack.eq((acked & bus.stb) | (bus.cyc & bus.stb & bus.we)),
            ]
            self.sync += acked.eq(grant)
            grants.append((grant, read))
            follows.append(follow)
        (dgrant, dread), (igrant, iread) = grants
        self.comb += [
            writes.eq(dbus.cyc & dbus.stb & dbus.we),
            dgrant.eq(dread),
            igrant.eq(iread & ~dread & ~writes),
            adr.eq(follows[1]),
            If(writes, adr.eq(dbus.adr)).Elif(dread, adr.eq(follows[0])),
        ]

        # Banks ------------------------------------------------------------------------------------

        bank  = Signal(max(bank_bits, 1))
        asked = Signal()  # by the host
        self.sync += [
            bank.eq(adr[:bank_bits]),
            asked.eq(port.re),
        ]
        words = []
        for n in range(banks):
            memory = Memory(32, depth, name=f"sram{n}")
            cpu    = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
            host   = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
            self.specials += memory, cpu, host
            self.comb += [
                cpu.adr.eq(adr[bank_bits:]),
                cpu.dat_w.eq(dbus.dat_w),
                If(writes & (adr[:bank_bits] == n), cpu.we.eq(dbus.sel)),
                host.adr.eq(port.adr),
                host.dat_w.eq(port.dat_w[32*n:32*n + 32]),
                If(port.we, host.we.eq(port.be[4*n:4*n + 4])),
            ]
            self.sync += If(asked, port.dat_r[32*n:32*n + 32].eq(host.dat_r)).Else(port.dat_r[32*n:32*n + 32].eq(0))
            words.append(cpu.dat_r)
        self.comb += [
            ibus.dat_r.eq(Array(words)[bank]),
            dbus.dat_r.eq(Array(words)[bank]),
        ]
