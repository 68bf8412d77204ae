"""Two cards with a pair of rings keep what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from tests.gateware.fabric.ring_pair import Cards
from tests.gateware.models.port_contract import PortContract


class TestRingPairPort(PortContract):
    stores = True

    def pair(self, random):
        return Cards(random)
