"""A PHY without a transceiver, for builds that have none for the link."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import serial_rx_layout, serial_tx_layout

# Absent Serial PHY --------------------------------------------------------------------------------

class AbsentSerialPHY(LiteXModule):
    """A serial PHY that sends nothing and never detects a signal: LINK_STATUS shows NO_SIGNAL.

    In PHY loopback it receives what is sent, so that everything up to the PHY can be tested.

    Attributes
    ----------
    absent   : True; LINK_STATUS shows it
    sink     : Endpoint(serial_tx_layout), in
    source   : Endpoint(serial_rx_layout), out   valid only, and only in loopback
    signal   : Signal, out                       0
    loopback : Signal, in

    Cycles: 0.
    """
    absent = True

    def __init__(self):
        self.sink     = sink   = stream.Endpoint(serial_tx_layout())
        self.source   = source = stream.Endpoint(serial_rx_layout())
        self.signal   = Signal()
        self.loopback = Signal()

        # # #

        self.comb += [
            sink.ready.eq(1),
            source.valid.eq(sink.valid & self.loopback),
            source.data.eq(sink.data),
            source.k.eq(sink.k),
        ]
