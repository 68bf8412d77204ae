"""The debugger's two registers behind the JTAG port that configures the FPGA.

The debugger must know which instructions of the FPGA select DTMCS and DMI (OpenOCD: `riscv
set_ir`). TCK is sampled like a pin, so it must stay below an eighth of `sys`.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.debug.tap import SampledPins
from dibber.debug.transport import scan_port

# Lattice ECP5 -------------------------------------------------------------------------------------

class ECP5JTAG(LiteXModule):
    """JTAGG: DTMCS is ER1 (instruction 0x32), DMI is ER2 (0x38).

    JCE1 and JCE2 are 1 in Capture-DR and Shift-DR of their instruction; JSHIFT is 1 in Shift-DR.
    Their values before a rising edge of TCK give the state at this edge. JTDI is a flip-flop that
    takes TDI shortly after the edge, so it is sampled one cycle later.

    Attributes
    ----------
    scan : scan_port, out
    """
    def __init__(self):
        self.scan = scan = scan_port()

        # # #

        tck, tdi, shift, update, er1, er2 = [Signal() for _ in range(6)]
        self.specials += Instance("JTAGG",
            o_JTCK    = tck,
            o_JTDI    = tdi,
            o_JSHIFT  = shift,
            o_JUPDATE = update,
            o_JCE1    = er1,
            o_JCE2    = er2,
            i_JTDO1   = scan.tdo,
            i_JTDO2   = scan.tdo)
        self.pins = pins = SampledPins(tck, [tdi, shift, update, er1, er2])
        tdi, _, update, er1, er2              = pins.now
        _, shifted, updated, was_er1, was_er2 = pins.before
        inside = was_er1 | was_er2
        # JUPDATE does not name its register: it belongs to the one that was shifted last.
        dtmcs, dmi = Signal(), Signal()
        self.sync += [
            If(er1 | er2, dtmcs.eq(er1), dmi.eq(er2)),
            scan.capture.eq(pins.rising & inside & ~shifted),
            scan.shift.eq(pins.rising & inside & shifted),
        ]
        self.comb += [
            scan.dtmcs.eq(dtmcs),
            scan.dmi.eq(dmi),
            scan.update.eq(update & ~updated),
            scan.tdi.eq(tdi),
        ]

# Xilinx -------------------------------------------------------------------------------------------

class XilinxJTAG(LiteXModule):
    """BSCANE2: DTMCS is USER3 (instruction 0x22), DMI is USER4 (0x23). USER1 and USER2 stay free.

    Attributes
    ----------
    scan : scan_port, out
    """
    def __init__(self):
        self.scan = scan = scan_port()

        # # #

        tck, tdi, capture, shift, update, user3, user4 = [Signal() for _ in range(7)]
        for chain, selected in [(3, user3), (4, user4)]:
            # Both instances have the same JTAG signals; only SEL differs.
            shared = dict(
                o_TCK=tck, o_TDI=tdi, o_CAPTURE=capture, o_SHIFT=shift,
                o_UPDATE=update) if chain == 3 else {}
            self.specials += Instance(
                "BSCANE2", p_JTAG_CHAIN=chain, o_SEL=selected, i_TDO=scan.tdo, **shared)
        self.pins = pins = SampledPins(tck, [tdi, capture, shift, update, user3, user4])
        _, _, _, update, user3, user4      = pins.now
        tdi, captured, shifted, updated, *_ = pins.before
        inside = user3 | user4
        self.comb += [
            scan.dtmcs.eq(user3),
            scan.dmi.eq(user4),
            scan.capture.eq(pins.rising & inside & captured),
            scan.shift.eq(pins.rising & inside & shifted),
            scan.update.eq(inside & update & ~updated),
            scan.tdi.eq(tdi),
        ]
