"""The MSI-X table: which message each interrupt vector sends."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface import C
from dibber.interface.register_bank import line_port

# MSI-X Table --------------------------------------------------------------------------------------

class MSIXTable(LiteXModule):
    """MSI-X table and pending bits behind a line port (PCI Local Bus 3.0, 6.8.2).

    The table starts at line 0 of the port, the pending bits at MSIX_PBA_BASE - MSIX_TABLE_BASE
    bytes; all other lines read as 0. Mask bits are 1 after reset.

    Attributes
    ----------
    port    : line_port(data_width)
    mask    : Signal(VECTORS), out
    pending : Signal(VECTORS), in
    adr     : Signal, in                  table line for the sender
    dat_r   : Signal(data_width), out     its content one cycle later, if `ready` was 1
    ready   : Signal, out                 0: the host accesses the table in this cycle
    """
    def __init__(self, data_width):
        line_bytes   = data_width//8
        entry_lines  = max(1, 16//line_bytes)
        line_entries = max(1, line_bytes//16)
        depth        = C.VECTORS*entry_lines//line_entries
        self.port    = port = line_port(data_width)
        self.mask    = Signal(C.VECTORS, reset=2**C.VECTORS - 1)
        self.pending = Signal(C.VECTORS)
        self.adr     = Signal(max=depth)
        self.dat_r   = Signal(data_width)
        self.ready   = Signal()

        # # #

        # Bit of Vector Control in the last line of an entry; of each entry in the line at 256 bits.
        controls   = [128*n + 96 % data_width for n in range(line_entries)]
        # The host's writes block the sender's reads: a read during a write is undefined in block
        # RAM.
        table      = Memory(data_width, depth, name="block_vectors")
        enter      = table.get_port(write_capable=True, we_granularity=8, mode=READ_FIRST)
        look       = table.get_port(mode=READ_FIRST)
        self.specials += table, enter, look
        in_table   = Signal()
        is_table   = Signal()
        is_pending = Signal()
        is_control = Signal()
        masked     = Signal(line_entries, name="masked")
        self.comb += [
            in_table.eq(port.adr < depth),
            enter.adr.eq(port.adr),
            enter.dat_w.eq(port.dat_w),
            If(port.we & in_table, enter.we.eq(port.be)),
            look.adr.eq(Mux(port.re, port.adr, self.adr)),
            self.dat_r.eq(look.dat_r),
            self.ready.eq(~(port.re | port.we)),
        ]
        vector = port.adr[log2_int(entry_lines):][:log2_int(C.VECTORS//line_entries)]
        if line_entries > 1:
            vector = Cat(Constant(0, log2_int(line_entries)), vector)
        self.sync += [
            is_table.eq(in_table & port.re),
            is_control.eq(port.adr[0] if entry_lines == 2 else 1),
            masked.eq((self.mask >> vector)[:line_entries] if line_entries > 1 else (self.mask >> vector)[0]),
            is_pending.eq(
                port.re & (port.adr == (C.MSIX_PBA_BASE - C.MSIX_TABLE_BASE)//line_bytes)),
            port.dat_r.eq(0),
            If(is_table,
                port.dat_r.eq(look.dat_r),
                # The mask bits are registers, because all of them are needed at once, and reset.
                If(is_control, *[port.dat_r[control:control + 32].eq(masked[n])
                    for n, control in enumerate(controls)]),
            ).Elif(is_pending,
                port.dat_r.eq(self.pending)
            )
        ]
        for n in range(C.VECTORS):
            line    = n*entry_lines//line_entries + entry_lines - 1
            control = controls[n % line_entries]
            self.sync += If(port.we & (port.adr == line) & port.be[control//8],
                self.mask[n].eq(port.dat_w[control]))
