"""System bus access: the debugger reaches memory and registers without the processor."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

# Errors -------------------------------------------------------------------------------------------

ALIGNMENT, SIZE = 3, 4  # sberror

# System Bus ---------------------------------------------------------------------------------------

class SystemBus(LiteXModule):
    """System bus access (3.10, 3.12.18 to 3.12.24) of 8, 16 and 32 bits, also while the hart runs.

    Attributes
    ----------
    bus                  : wishbone.Interface, out
    sbcs, address, data  : Signal(32), out     SBCS, SBADDRESS0, SBDATA0
    write_sbcs, write_address, write_data : Signal(), in   the debugger writes `dat_w` there
    read_data            : Signal(), in        the debugger reads SBDATA0
    dat_w                : Signal(32), in
    clear                : Signal(), in        SBCS takes its reset value

    Cycles of an access: 3, plus those of the bus.
    """
    def __init__(self):
        self.bus           = bus = wishbone.Interface(data_width=32, adr_width=30)
        self.sbcs          = Signal(32)
        self.address       = Signal(32)
        self.data          = Signal(32)
        self.write_sbcs    = Signal()
        self.write_address = Signal()
        self.write_data    = Signal()
        self.read_data     = Signal()
        self.dat_w         = Signal(32)
        self.clear         = Signal()

        # # #

        # SBCS -------------------------------------------------------------------------------------

        busy, busy_error  = Signal(), Signal()
        error             = Signal(3)
        read_on_address   = Signal()
        read_on_data      = Signal()
        increment         = Signal()
        size              = Signal(3, reset=2)
        version, width    = C(1, 3), C(32, 7)
        self.comb += self.sbcs.eq(Cat(
            C(0b00111, 5), width, error, read_on_data, increment, size, read_on_address, busy,
            busy_error, C(0, 6), version))
        accessed = self.write_address | self.write_data | self.read_data
        self.sync += [
            If(busy & accessed, busy_error.eq(1)),
            If(self.write_sbcs,
                Cat(read_on_data, increment, size, read_on_address).eq(self.dat_w[15:21]),
                error.eq(error & ~self.dat_w[12:15]),
                If(self.dat_w[22], busy_error.eq(0))
            ),
            If(self.clear,
                Cat(read_on_data, increment, read_on_address, busy_error).eq(0),
                error.eq(0),
                size.eq(2)
            )
        ]

        # Access -----------------------------------------------------------------------------------

        lane       = self.address[:2]
        start      = Signal()
        write      = Signal()
        requesting = Signal()
        ended      = Signal()
        self.comb += [
            If(~busy & ~busy_error & (error == 0),
                start.eq(
                    self.write_data | self.write_address & read_on_address |
                    self.read_data & read_on_data)),
            bus.cyc.eq(requesting),
            bus.stb.eq(requesting),
            bus.we.eq(write),
            bus.adr.eq(self.address[2:]),
            Case(size, {
                0: [bus.sel.eq(0b0001 << lane), bus.dat_w.eq(Replicate(self.data[:8], 4))],
                1: [bus.sel.eq(0b0011 << lane), bus.dat_w.eq(Replicate(self.data[:16], 2))],
                "default": [bus.sel.eq(0b1111), bus.dat_w.eq(self.data)],
            })
        ]
        aligned = Signal()
        check   = Signal()  # `address` is written, and can be checked
        self.comb += Case(
            size, {0: aligned.eq(1), 1: aligned.eq(~lane[0]), "default": aligned.eq(lane == 0)})
        self.sync += [
            If(~busy & self.write_address, self.address.eq(self.dat_w)),
            If(~busy & self.write_data, self.data.eq(self.dat_w)),
            check.eq(start),
            If(start, write.eq(self.write_data)),
            If(check,
                If(size > 2,
                    error.eq(SIZE)
                ).Elif(~aligned,
                    error.eq(ALIGNMENT)
                ).Else(
                    busy.eq(1),
                    requesting.eq(1)
                )
            ),
            # The bus answers late in its cycle, so the answer is evaluated in the next cycle.
            # `data` may change before the answer; it must not be read while `busy`.
            ended.eq(bus.cyc & bus.ack),
            If(bus.cyc & bus.ack, requesting.eq(0)),
            If(requesting & ~write, self.data.eq(bus.dat_r)),
            If(ended,
                busy.eq(0),
                If(~write, self.data.eq(self.data >> Cat(C(0, 3), lane))),
                If(increment, self.address.eq(self.address + (1 << size[:2])))
            )
        ]
