"""The port over Ethernet keeps what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from gateware.link.ethernet.wire import FramePair
from gateware.models.port_contract import PortContract

BUFFERS = (64, 64, 128, 64)
QUEUES = (32, 32, 32, 32)


class TestEthernetPort(PortContract):
    """Fragments of eight units, so that long packets have many."""

    passage = 400

    def pair(self, random):
        return FramePair(random, buffers=BUFFERS, queues=QUEUES)


class TestEthernetPortWithTag(PortContract):
    passage = 400

    def pair(self, random):
        return FramePair(random, buffers=BUFFERS, queues=QUEUES, vlan=0x123, priority=5)
