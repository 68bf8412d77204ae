"""The host's access to the flash from which the FPGA is configured."""

# SPDX-License-Identifier: BSD-2-Clause

import math

from migen import *

from litex.gen import *

from litex.soc.cores.spi import SPIMaster

from dibber.interface.description import C
from dibber.interface.register_bank import line_port

READING = (0x03, 0x13, 0x05, 0x9f, 0xff)  # commands that change nothing, and are sent while locked
# Below the slowest read clock of any flash, and slow enough for a board's wires.
SPI_HZ  = 8e6

# Pads ---------------------------------------------------------------------------------------------

def flash_pads(spi_hz=SPI_HZ):
    """Pads of a serial flash, SPI mode 0, with a clock of at most `spi_hz`.

    phy/flash.py connects them to the FPGA's pins.
    """
    pads = Record([("cs_n", 1), ("clk", 1), ("mosi", 1), ("miso", 1)])
    pads.spi_hz = spi_hz
    return pads

# Flash Port ---------------------------------------------------------------------------------------

class FlashPort(LiteXModule):
    """One SPI transfer at a time: a command, then bytes of a buffer, with the flash selected
    throughout.

    The host writes one memory and reads another one, so its accesses never wait for the flash. A
    transfer ends by itself: after 330 µs for a page at 8 MHz, and after at most 1.3 ms, whatever
    FLASH_TRANSFER says. A `strobe` during a transfer is ignored.

    Parameters
    ----------
    data_width : bits of the port
    clock_hz   : frequency of `sys`
    pads       : flash_pads

    Attributes
    ----------
    port     : line_port(data_width), from HOST_BASE; `dat_r` is 0 unless FLASH_BUFFER is read
    transfer : Record, in    the fields of FLASH_TRANSFER; `strobe` for one cycle
    unlock   : Record, in    FLASH_UNLOCK: `key`; `strobe` for one cycle
    status   : Record, out   the fields of FLASH_STATUS

    Cycles: a byte takes about 10 periods of the flash's clock.
    """
    def __init__(self, data_width, clock_hz, pads):
        self.pads     = pads
        self.port     = port     = line_port(data_width)
        self.transfer = transfer = Record([("strobe", 1), ("command", 8), ("bytes", 10)])
        self.unlock   = unlock   = Record([("strobe", 1), ("key", 32)])
        self.status   = status   = Record(
            [("busy", 1), ("unlocked", 1), ("refused", 1), ("last", 8)])

        # # #

        # Buffers ----------------------------------------------------------------------------------

        lanes   = data_width//8
        lines   = C.FLASH_BYTES//lanes
        # A line that is read in the cycle of its write may return anything; the port is busy with a
        # transfer then.
        to_send    = Memory(data_width, lines, name="block_to_flash")
        from_flash = Memory(data_width, lines, name="block_from_flash")
        write      = to_send.get_port(write_capable=True, we_granularity=8)
        fetch      = to_send.get_port(mode=READ_FIRST)
        store      = from_flash.get_port(write_capable=True, we_granularity=8)
        read       = from_flash.get_port(mode=READ_FIRST)
        self.specials += to_send, from_flash, write, fetch, store, read
        hit         = Signal()
        read_buffer = Signal()
        self.comb += [
            hit.eq(port.adr[log2_int(lines):] == C.FLASH_BUFFER//C.FLASH_BYTES),
            write.adr.eq(port.adr),
            write.dat_w.eq(port.dat_w),
            If(port.we & hit, write.we.eq(port.be)),
            read.adr.eq(port.adr),
        ]
        self.sync += [
            read_buffer.eq(port.re & hit),
            port.dat_r.eq(0),
            If(read_buffer, port.dat_r.eq(read.dat_r)),
        ]

        # Transfer ---------------------------------------------------------------------------------

        self.spi = spi = SPIMaster(None, 8, clock_hz, pads.spi_hz, with_csr=False)
        index   = Signal(10)  # of the byte; all ones: the command
        end     = Signal(10)
        lane    = index[:log2_int(lanes)]
        line    = index[log2_int(lanes):log2_int(C.FLASH_BYTES)]
        allowed = Signal()
        cs      = Signal()
        self.comb += [
            allowed.eq(
                status.unlocked | (Cat(*[transfer.command == code for code in READING]) != 0)),
            fetch.adr.eq(line),
            store.adr.eq(line),
            store.dat_w.eq(Replicate(spi.miso, lanes)),
            spi.length.eq(8),
            spi.clk_divider.eq(math.ceil(clock_hz/pads.spi_hz)),
            spi.loopback.eq(0),
            spi.mosi.eq(Array(fetch.dat_r[8*n:8*n + 8] for n in range(lanes))[lane]),
            status.last.eq(spi.miso),
            pads.clk.eq(spi.pads.clk),
            pads.mosi.eq(spi.pads.mosi),
            spi.pads.miso.eq(pads.miso),
        ]
        self.sync += [
            If(unlock.strobe, status.unlocked.eq(unlock.key == C.FLASH_KEY)),
            # The chip select of SPIMaster is not used: it would select the flash one cycle before
            # the first transfer.
            pads.cs_n.eq(~cs),
        ]
        pads.cs_n.reset = 1
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            NextValue(index, 2**len(index) - 1),
            spi.mosi.eq(transfer.command),
            If(transfer.strobe,
                NextValue(status.refused, ~allowed),
                NextValue(end, transfer.bytes),
                # The command is sampled in this cycle; it may change in the next one.
                If(allowed,
                    spi.start.eq(1),
                    NextState("SEND")
                )
            )
        )
        fsm.act("SEND",
            cs.eq(1),
            If(spi.done, NextState("STORE"))
        )
        # The byte that comes during the command is stored in the buffer's last place. A transfer
        # that uses this place writes it again later.
        fsm.act("STORE",
            cs.eq(1),
            Case(lane, {n: store.we.eq(1 << n) for n in range(lanes)}),
            NextValue(index, index + 1),
            NextState("FETCH")
        )
        fsm.act("FETCH",
            cs.eq(1),
            If(index == end,
                NextState("IDLE")
            ).Else(
                NextState("START")
            )
        )
        fsm.act("START",
            cs.eq(1),
            spi.start.eq(1),
            NextState("SEND")
        )
        self.comb += status.busy.eq(~fsm.ongoing("IDLE"))
