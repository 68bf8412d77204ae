"""The port of a serial cable keeps what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial

from dibber.interface.description import CHANNEL
from dibber.link.port import LinkPort
from tests.gateware.link.pair import Pair
from tests.gateware.models.port_contract import PortContract


class TestLinkPort(PortContract):
    """All channels have a slack buffer, as in a switch."""

    def pair(self, random):
        return Pair(random)


class TestLinkPortOfACard(PortContract):
    sunk = (CHANNEL.CONTROL, CHANNEL.SPARE)

    def pair(self, random):
        return Pair(random, ports=partial(LinkPort, sunk=self.sunk))
