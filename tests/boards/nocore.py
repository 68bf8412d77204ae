"""In place of the core, for tests of a board's PHYs and constraints. The core has only the clock
`sys`.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.debug.transport import dmi_port
from litex.gen import LiteXModule
from migen import If, Signal


class NoCore(LiteXModule):
    """In place of the core: it sends back all input from the host, the link and the debugger. A
    port with a wire of its own is in it.
    """

    def __init__(
        self,
        platform,
        phy,
        serial,
        data_width,
        clock_hz,
        board="",
        flash=None,
        sram_bytes=None,
        hold_off=False,
        port=None,
    ):
        allowed = phy.msix_enable & getattr(phy, "extended_tags", 1)
        if serial is None:
            self.link = port
            self.comb += port.retrain.eq(allowed)
            for sink, source in zip(port.sinks, port.sources):
                self.comb += source.connect(sink)
            serial = []
        else:
            self.link = LiteXModule()
            self.link.up = Signal()
            self.comb += self.link.up.eq(allowed)
        self.dmi = dmi_port()

        # # #

        assert phy.data_width == data_width
        self.comb += [
            phy.source.connect(phy.sink),
            *[
                one.source.connect(one.sink, keep={"valid", "data", "k"})
                for one in (serial if isinstance(serial, list) else [serial])
            ],
        ]
        if flash is not None:
            self.sync += [flash.mosi.eq(flash.miso), flash.clk.eq(~flash.clk)]
        self.sync += If(self.dmi.we, self.dmi.dat_r.eq(self.dmi.dat_w ^ self.dmi.adr))
