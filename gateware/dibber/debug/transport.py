"""The JTAG debug transport: scans become accesses to the debug module."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Layouts ------------------------------------------------------------------------------------------

ADDRESS_BITS = 7

def scan_port():
    """The TAP's signals for the two registers: which one is selected, and pulses of one cycle."""
    outputs = ["dtmcs", "dmi", "capture", "shift", "update", "tdi"]
    return Record([*[(name, 1, DIR_M_TO_S) for name in outputs], ("tdo", 1, DIR_S_TO_M)])

def dmi_port():
    """Debug module interface: `we` or `re` for one cycle; `dat_r` is valid only in the cycle after
    `re`.
    """
    return Record([
        ("adr", ADDRESS_BITS, DIR_M_TO_S), ("dat_w", 32, DIR_M_TO_S), ("we", 1, DIR_M_TO_S),
        ("re", 1, DIR_M_TO_S),
        ("dat_r", 32, DIR_S_TO_M)])

# Debug Transport ----------------------------------------------------------------------------------

class DebugTransport(LiteXModule):
    """DTMCS and DMI (6.1.4, 6.1.5).

    The debug module answers in 2 cycles, long before the next scan. So an access is never busy and
    never fails, and `dmireset` and `dmihardreset` have no effect.

    Attributes
    ----------
    scan : scan_port, in
    dmi  : dmi_port, out
    """
    def __init__(self):
        self.scan = scan = scan_port()
        self.dmi  = dmi  = dmi_port()

        # # #

        # The shift register; for DTMCS its lower 32 bits.
        shifted = Signal(2 + 32 + ADDRESS_BITS)
        op, data, address = shifted[:2], shifted[2:34], shifted[34:]
        answer            = Signal(32)
        reads             = Signal()
        version           = 1
        idle              = 1  # cycles of Run-Test/Idle that a debugger should add
        self.sync += [
            dmi.we.eq(scan.update & scan.dmi & (op == 2)),
            dmi.re.eq(scan.update & scan.dmi & (op == 1)),
            If(scan.update & scan.dmi,
                dmi.adr.eq(address),
                dmi.dat_w.eq(data),
            ),
            reads.eq(dmi.re),
            If(reads, answer.eq(dmi.dat_r)),
            If(scan.capture,
                shifted.eq(Mux(scan.dtmcs,
                    version | ADDRESS_BITS << 4 | idle << 12,
                    Cat(C(0, 2), answer, dmi.adr)))
            ),
            If(scan.shift,
                shifted.eq(Cat(shifted[1:], scan.tdi)),
                If(scan.dtmcs, shifted[31].eq(scan.tdi))
            ),
        ]
        self.comb += scan.tdo.eq(shifted[0])
