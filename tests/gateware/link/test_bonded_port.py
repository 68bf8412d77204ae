"""The port of four bonded lanes keeps what each port promises."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import CHANNEL
from tests.gateware.link.bonded_pair import BondedPair
from tests.gateware.models.port_contract import PortContract

SLACK = (256,) * 4  # The contract stops a channel by 1400 words.


class TestBondedPortOfACard(PortContract):
    sunk = (CHANNEL.CONTROL, CHANNEL.SPARE)
    # The first row of markers comes at once, a later one in 103 cycles.
    training = 800

    def pair(self, random):
        skew = [random.randrange(40) for _ in range(4)]
        return BondedPair(random, skew=skew, sunk=self.sunk, slack_rows=SLACK)
