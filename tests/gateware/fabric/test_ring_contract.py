"""A ring of two nodes keeps what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial

from dibber.fabric.ring.port import RingPort
from tests.gateware.link.pair import Pair
from tests.gateware.models.port_contract import PortContract

# Buffers so small that a stalled channel fills them.
SMALL = partial(
    RingPort,
    packet_words=(160,) * 4,
    send_words=(256,) * 4,
    receive_words=(512,) * 4,
    bypass_words=256,
)


class TestRingPort(PortContract):
    stores = True

    def pair(self, random):
        return Pair(random, ports=SMALL)
