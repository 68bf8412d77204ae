"""JTAG test access port; besides IDCODE and BYPASS it has only the debugger's registers."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litex.soc.cores.jtag import JTAGTAPFSM

from dibber.debug.transport import scan_port

# Instructions -------------------------------------------------------------------------------------

IR_BITS = 5   # 6.1.1
IDCODE  = 0x01
DTMCS   = 0x10
DMI     = 0x11

# IEEE 1149.1, 12.1: version 1, part 0xd1bb, manufacturer 0x7f of bank 7, which is no valid
# manufacturer.
IDENTITY = 1 << 28 | 0xd1bb << 12 | 0x3ff << 1 | 1

# Pins ---------------------------------------------------------------------------------------------

class SampledPins(LiteXModule):
    """Pins of another clock domain, sampled by `sys`. TCK must be high and low for 3 cycles each.

    This is fast enough for a debugger: `sys` of 80 MHz allows a TCK of more than 10 MHz.

    Parameters
    ----------
    clock : Signal, in     TCK
    pins  : list of Signal, in

    Attributes
    ----------
    rising, falling : Signal(), out   the first cycle after the edge
    now, before     : list of Signal, out   the pins in this cycle, and in the previous one
    """
    def __init__(self, clock, pins):
        self.rising  = Signal()
        self.falling = Signal()
        self.now     = [Signal.like(pin) for pin in pins]
        self.before  = [Signal.like(pin) for pin in pins]

        # # #

        high, was_high = Signal(), Signal()
        self.specials += MultiReg(clock, high)
        self.specials += [MultiReg(pin, now) for pin, now in zip(pins, self.now)]
        self.sync += [
            was_high.eq(high),
            *[before.eq(now) for now, before in zip(self.now, self.before)],
        ]
        self.comb += [
            self.rising.eq(high & ~was_high),
            self.falling.eq(~high & was_high),
        ]

# TAP ----------------------------------------------------------------------------------------------

class TestAccessPort(LiteXModule):
    """IEEE 1149.1 with IDCODE, BYPASS and the two registers of the debug transport.

    Attributes
    ----------
    tck, tms, tdi : Signal(), in
    tdo           : Signal(), out   changes 4 cycles after TCK falls
    scan          : scan_port, out

    There is no TRST. Five TCK cycles with TMS = 1 reset the port, and so does the reset of `sys`.
    """
    def __init__(self):
        self.tck  = Signal()
        self.tms  = Signal()
        self.tdi  = Signal()
        self.tdo  = Signal()
        self.scan = scan = scan_port()

        # # #

        self.pins = pins = SampledPins(self.tck, [self.tms, self.tdi])
        tms, tdi  = pins.now
        self.fsm  = fsm = CEInserter()(JTAGTAPFSM(tms))
        self.comb += fsm.ce.eq(pins.rising)

        # Instruction ------------------------------------------------------------------------------

        instruction = Signal(IR_BITS, reset=IDCODE)
        shifted     = Signal(IR_BITS)
        self.sync += [
            If(fsm.TEST_LOGIC_RESET, instruction.eq(IDCODE)),
            If(pins.rising & fsm.CAPTURE_IR, shifted.eq(0b00001)),
            If(pins.rising & fsm.SHIFT_IR,   shifted.eq(Cat(shifted[1:], tdi))),
            If(pins.falling & fsm.UPDATE_IR, instruction.eq(shifted)),
        ]

        # Data -------------------------------------------------------------------------------------

        identity = Signal(32)
        bypass   = Signal()
        self.sync += [
            If(pins.rising & fsm.CAPTURE_DR,
                identity.eq(IDENTITY),
                bypass.eq(0)
            ),
            If(pins.rising & fsm.SHIFT_DR,
                identity.eq(Cat(identity[1:], tdi)),
                bypass.eq(tdi)
            ),
            If(pins.falling,
                If(fsm.SHIFT_IR,
                    self.tdo.eq(shifted[0])
                ).Elif(scan.dtmcs | scan.dmi,
                    self.tdo.eq(scan.tdo)
                ).Else(
                    self.tdo.eq(Mux(instruction == IDCODE, identity[0], bypass))
                )
            )
        ]
        self.comb += [
            scan.dtmcs.eq(instruction == DTMCS),
            scan.dmi.eq(instruction == DMI),
            scan.capture.eq(pins.rising & fsm.CAPTURE_DR),
            scan.shift.eq(pins.rising & fsm.SHIFT_DR),
            scan.update.eq(pins.falling & fsm.UPDATE_DR),
            scan.tdi.eq(tdi),
        ]
