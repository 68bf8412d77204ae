"""An Ethernet station of 10 Gb/s, from a transceiver's blocks to a port's frames."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.link.ethernet.base_r.mac import EthernetMAC
from dibber.link.ethernet.base_r.pcs import BaseRPCS

class BaseRStation(LiteXModule):
    """MAC and coding layer of 10GBASE-R, as `attach_mac` needs them: docs/design/base-r.md

    Parameters
    ----------
    by_priority : see EthernetMAC

    Attributes
    ----------
    sink, source, address, signal, underrun, paused : see EthernetMAC
    block_tx, block_rx, slip, up, high_errors : see BaseRPCS
    """
    def __init__(self, by_priority=False):
        self.mac = mac = EthernetMAC(by_priority)
        self.pcs = pcs = BaseRPCS()
        self.sink        = mac.sink
        self.source      = mac.source
        self.address     = mac.address
        self.signal      = mac.signal
        self.underrun    = mac.underrun
        if by_priority:
            self.paused = mac.paused
        self.block_tx    = pcs.block_tx
        self.block_rx    = pcs.block_rx
        self.slip        = pcs.slip
        self.up          = pcs.up
        self.high_errors = pcs.high_errors

        # # #

        self.comb += [
            mac.xgmii_tx.connect(pcs.tx),
            pcs.rx.connect(mac.xgmii_rx, omit={"ready"}),
        ]
