"""The debug module: one hart, abstract access to registers, system bus access."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.debug.hart import HartControl
from dibber.debug.systembus import SystemBus
from dibber.debug.transport import dmi_port

# Registers (3.12) ---------------------------------------------------------------------------------

DATA0, DMCONTROL, DMSTATUS, ABSTRACTCS, COMMAND    = 0x04, 0x10, 0x11, 0x16, 0x17
SBCS, SBADDRESS0, SBDATA0, HALTSUM0                = 0x38, 0x39, 0x3c, 0x40

class CMDERR:
    BUSY, UNSUPPORTED, EXCEPTION, STATE = 1, 2, 3, 4

# Debug Module -------------------------------------------------------------------------------------

class DebugModule(LiteXModule):
    """Debug module of version 0.13 (section 3), without program buffer: one hart, number 0, and
    `data0`.

    A hart that the host holds in reset is unavailable. While `ndmreset` is 1, it has the effect of
    MCP_CONTROL.run = 0. With `haltreq` the hart then halts before its first instruction.

    Attributes
    ----------
    dmi       : dmi_port, in
    core      : core_port, out          VexRiscv's debug bus
    bus       : wishbone.Interface, out
    reset     : Signal(), in            the hart is held in reset
    active    : Signal(), out           a debugger is connected
    halted    : Signal(), out           the hart is halted
    ndmreset  : Signal(), out
    """
    def __init__(self):
        self.dmi      = dmi = dmi_port()
        self.hart     = hart = HartControl()
        self.system   = system = SystemBus()
        self.core     = hart.core
        self.bus      = system.bus
        self.reset    = Signal()
        self.active   = active = Signal()
        self.halted   = Signal()
        self.ndmreset = Signal()

        # # #

        self.comb += [
            hart.reset.eq(self.reset),
            hart.active.eq(active),
            self.halted.eq(hart.halted),
            hart.written.eq(system.write_data),
            system.clear.eq(~active),
            system.dat_w.eq(dmi.dat_w),
        ]

        # Writes and Reads -------------------------------------------------------------------------

        written, read = {}, {}
        for name, address in [
                ("data0", DATA0), ("dmcontrol", DMCONTROL), ("abstractcs", ABSTRACTCS),
                ("command", COMMAND), ("sbcs", SBCS), ("sbaddress0", SBADDRESS0),
                ("sbdata0", SBDATA0)]:
            written[name] = Signal(name=f"write_{name}")
            read[name]    = Signal(name=f"read_{name}")
            self.comb += [
                written[name].eq(dmi.we & (dmi.adr == address)),
                read[name].eq(dmi.re & (dmi.adr == address)),
            ]
        self.comb += [
            system.write_sbcs.eq(written["sbcs"]),
            system.write_address.eq(written["sbaddress0"]),
            system.write_data.eq(written["sbdata0"]),
            system.read_data.eq(read["sbdata0"]),
        ]

        # Control and Status -----------------------------------------------------------------------

        # dmcontrol: haltreq 31, resumereq 30, ackhavereset 28, ndmreset 1, dmactive 0. The other
        # bits have no effect.
        halt, acknowledged, was_reset = Signal(), Signal(), Signal(reset=1)
        word = dmi.dat_w
        self.sync += [
            If(written["dmcontrol"],
                active.eq(word[0]),
                halt.eq(word[31]),
                self.ndmreset.eq(word[1]),
                If(word[28], was_reset.eq(0)),
                If(word[30] & ~word[31], acknowledged.eq(0))
            ),
            If(~active,
                halt.eq(0),
                self.ndmreset.eq(0),
            ),
            If(self.reset, was_reset.eq(1)),
            hart.resume.eq(written["dmcontrol"] & word[30] & ~word[31] & active & hart.halted),
            If(hart.resumed, acknowledged.eq(1)),
        ]
        self.comb += hart.halt.eq(halt)
        running, unavailable = ~hart.halted & ~self.reset, self.reset
        version, authenticated = C(2, 4), C(1, 1)
        dmcontrol = Cat(active, self.ndmreset, C(0, 29), halt)
        # allhalted, allrunning, …: with one hart, the "all" bits equal the "any" bits.
        dmstatus  = Cat(version, C(0, 3), authenticated, *[Replicate(bit, 2) for bit in
            [hart.halted, running, unavailable, C(0, 1), acknowledged, was_reset]])

        # Abstract Commands ------------------------------------------------------------------------

        # Access register (3.6.1.1): aarsize 22:20, aarpostincrement 19, postexec 18, transfer 17,
        # write 16, regno.
        busy      = Signal()
        error     = Signal(3)
        data      = Signal(32)
        command   = Signal(32)
        supported = (command[24:] == 0) & (
            (command[20:23] == 2) | ~command[17]) & ~command[18] & ~command[19]
        decode    = Signal()
        touched   = written["data0"] | read["data0"] | written["command"] | written["abstractcs"]
        self.comb += [
            hart.command.write.eq(command[16]),
            hart.command.regno.eq(command[:16]),
            hart.command.data.eq(data),
        ]
        self.sync += [
            decode.eq(0),
            If(written["data0"] & ~busy, data.eq(word)),
            If(written["abstractcs"] & ~busy, error.eq(error & ~word[8:11])),
            If(written["command"] & ~busy & (error == 0),
                command.eq(word),
                busy.eq(1),
                decode.eq(1)
            ),
            If(decode,
                busy.eq(0),
                If(~supported,
                    error.eq(CMDERR.UNSUPPORTED)
                ).Elif(~hart.halted,
                    error.eq(CMDERR.STATE)
                ).Elif(command[17],
                    busy.eq(1),
                    hart.command.valid.eq(1)
                )
            ),
            If(busy & touched & (error == 0), error.eq(CMDERR.BUSY)),
            If(hart.done,
                busy.eq(0),
                hart.command.valid.eq(0),
                If(hart.failed,
                    error.eq(CMDERR.EXCEPTION)
                ).Elif(~command[16],
                    data.eq(hart.result)
                )
            ),
            If(hart.command.valid & self.reset,
                busy.eq(0),
                hart.command.valid.eq(0),
                error.eq(CMDERR.STATE)
            ),
            If(~active, error.eq(0))
        ]
        abstractcs = Cat(C(1, 8), error, C(0, 1), busy)

        # Answers ----------------------------------------------------------------------------------

        self.sync += [
            dmi.dat_r.eq(0),
            Case(dmi.adr, {
                DATA0:      dmi.dat_r.eq(data),
                DMCONTROL:  dmi.dat_r.eq(dmcontrol),
                DMSTATUS:   dmi.dat_r.eq(dmstatus),
                ABSTRACTCS: dmi.dat_r.eq(abstractcs),
                SBCS:       dmi.dat_r.eq(system.sbcs),
                SBADDRESS0: dmi.dat_r.eq(system.address),
                SBDATA0:    dmi.dat_r.eq(system.data),
                HALTSUM0:   dmi.dat_r.eq(hart.halted),
            })
        ]
