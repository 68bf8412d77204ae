"""What the programs of this folder share: the command line, the card, and the other program.

PROGRAM listen  [ADDRESS:]PORT URI      on one host: node 0
PROGRAM connect HOST:PORT      URI      on the other one: node 1
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import sys
from pathlib import Path

from dibber.interface.description import STATUS
from libdibber import Card, Exchange

FIRMWARE = Path(__file__).resolve().parents[2] / "build" / "firmware" / "mcp.dibfw"
SECONDS = 60  # of simulated time or of the host's clock, until a transfer must have ended


class Party:
    """A program with its card, endpoint 1, and the exchange with the other program.

    node : 0 for the one that listens, 1 for the other one
    """

    def __init__(self):
        if len(sys.argv) != 4 or sys.argv[1] not in ("listen", "connect"):
            sys.exit(f"usage: {sys.argv[0]} listen PORT URI | connect HOST:PORT URI")
        way, where, uri = sys.argv[1:]
        self.node = 0 if way == "listen" else 1
        self.card = Card(uri)
        self.card.set_node(self.node)
        self.card.load_firmware(os.fspath(FIRMWARE))
        self.endpoint = self.card.endpoint(1)
        meet = Exchange.listen if way == "listen" else Exchange.connect
        token = os.environ.get("DIBBER_TOKEN", "")
        self.exchange = meet(where, token=token, endpoint=self.endpoint)

    def key_of_other(self, region):
        """Publish the key of this side's memory, and return that of the other side's."""
        self.exchange.publish("memory", region.key.to_bytes(4, "little"))
        self.exchange.barrier()
        return int.from_bytes(self.exchange.look_up(1 - self.node, "memory"), "little")

    def await_notice(self):
        """Wait until a transfer from the other side has arrived; returns its notice."""
        while not (events := self.endpoint.poll_events(1)):
            # A completion of this side wakes it too.
            for completion in self.endpoint.poll():
                assert completion.status == STATUS.OK, STATUS.name_of(completion.status)
            if not self.endpoint.wait(SECONDS * 10**9):
                sys.exit("nothing came")
        return events[0].notice

    def close(self):
        """Meet the other side, so that neither closes its card while the other still needs it."""
        self.exchange.barrier()
        self.exchange.close()
        self.card.close()
