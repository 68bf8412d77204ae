"""The control program's processor and what belongs to it, as one block."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.interface.register_bank import connect_lines
from dibber.mcp.control_registers import ControlRegisters
from dibber.mcp.halt import Halt
from dibber.mcp.processor import SRAM_BYTES, Processor
from dibber.mcp.watchdog import Watchdog

class ControlProgram(LiteXModule):
    """Processor, registers, watchdog and halt.

    Parameters
    ----------
    platform, data_width, sram_bytes : see Processor
    host, cycles, endpoints, links   : see ControlRegisters

    Attributes
    ----------
    processor : Processor           `firmware`, `reader`, `writer` and `dmi` are the core's to
    connect
    registers : ControlRegisters
    halt      : Halt                `reset`, `clear`, `index`, `halted` and `halts` are its own
    run       : Signal(), in        MCP_CONTROL.run
    bite      : Signal(), out       see Watchdog
    stopped   : list of modules that are in reset while the control program is halted
    """
    def __init__(self, platform, data_width, host, cycles, endpoints=C.ENDPOINTS, sram_bytes=SRAM_BYTES, links=1):
        self.processor = processor = Processor(platform, data_width, sram_bytes)
        self.registers = registers = ControlRegisters(host, cycles, endpoints, links)
        self.watchdog  = watchdog  = Watchdog()
        self.halt      = halt      = Halt(max(C.REGIONS, C.ENDPOINTS*C.SLOTS))

        self.run     = Signal()
        self.bite    = watchdog.bite
        self.stopped = [registers, watchdog]

        # # #

        self.comb += [
            *connect_lines(processor.registers, registers.port),
            registers.written.eq(processor.written),
            processor.release.eq(registers.release),
            watchdog.kick.eq(registers.watchdog.strobe),
            watchdog.cycles.eq(registers.watchdog.cycles),
            watchdog.hold.eq(processor.halted),
            processor.timer_interrupt.eq(watchdog.interrupt),
            halt.run.eq(self.run & ~processor.ndmreset),
            processor.reset.eq(halt.reset),
        ]
