"""The port of a serial cable keeps what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial

from dibber.fabric.switch.switch import SwitchPort
from dibber.interface.description import CHANNEL
from dibber.link.port import LinkPort
from gateware.link.pair import Pair
from gateware.models.compiled import shared
from gateware.models.port_contract import PortContract


class TestLinkPort(PortContract):
    """As a parameter of no card has it: all channels have a slack buffer."""

    def pair(self, random):
        return Pair(random)


class TestLinkPortOfACard(PortContract):
    sunk = (CHANNEL.CONTROL, CHANNEL.SPARE)

    def pair(self, random):
        return Pair(random, ports=partial(LinkPort, sunk=self.sunk))
