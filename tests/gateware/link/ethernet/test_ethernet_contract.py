"""The port over Ethernet keeps what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial

from dibber.link.ethernet.port import EthernetPort
from dibber.link.ethernet.star import EthernetStar

from tests.gateware.link.ethernet.wire import FramePair
from tests.gateware.models.pairs import wide_port
from tests.gateware.models.port_contract import PortContract

BUFFERS = (64, 64, 128, 64)
QUEUES = (32, 32, 32, 32)


class TestEthernetPort(PortContract):
    """Fragments of eight units, so that long packets have many."""

    passage = 400

    def pair(self, random):
        return FramePair(random, buffers=BUFFERS, queues=QUEUES)


class TestWideEthernetPortWithTag(PortContract):
    """Channel BULK has words of 64 bits; between it and the test stand joiner and splitter."""

    passage = 400

    def pair(self, random):
        ports = partial(
            wide_port,
            EthernetPort,
            mtu=72,
            period=64,
            buffers=BUFFERS,
            queues=QUEUES,
            vlan=0x123,
            priority=5,
        )
        return FramePair(random, ports=ports)


class TestEthernetStar(PortContract):
    """With room for two peers, of which one is there. Packets leave when they are whole."""

    stores = True
    passage = 400

    def pair(self, random):
        ports = partial(
            EthernetStar, 2, mtu=72, period=64, buffers=(128, 128, 256, 128), queues=QUEUES
        )
        return FramePair(random, ports=ports)
