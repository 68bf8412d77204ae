# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A plain model of the send engine, the transmitter and the peers, for the flow's tests.

Jobs are executed in order. A packet carries which command it is of; the transmitter drops those of
another incarnation than the flow's; the peer executes only the packet that it expects.
"""

from collections import deque, namedtuple

from dibber.interface.description import C
from mcp_native import Card

Packet = namedtuple("Packet", "node incarnation psn cookie index last")


class Peer:
    """The receiving end of one flow: `executed` holds (cookie, index) in the order of execution."""
    def __init__(self, held=None):
        self.held, self.expected, self.executed = held, 0, []

    def receive(self, packet):
        """Returns whether to acknowledge."""
        if packet.incarnation != self.held:
            newer = self.held is None or 0 < (packet.incarnation - self.held) % 256 < 128
            if packet.psn or not newer:
                return False
            self.held, self.expected = packet.incarnation, 0
        if packet.psn == self.expected:
            self.executed.append((packet.cookie, packet.index))
            self.expected = (self.expected + 1) % 65536
        return True

    @property
    def acked(self):
        return (self.expected - 1) % 65536


class WiredCard(Card):
    """A card with endpoint 1 and 2 open, whose engines work in `run`.

    Attributes
    ----------
    fails   : dict cookie -> (status, packets): the job fails after so many packets
    refuses : dict cookie -> reason: the peer refuses every packet of it
    peers   : dict node -> Peer
    cut     : nodes whose packets are lost
    """
    def __init__(self, **options):
        super().__init__(**options)
        self.fails, self.refuses, self.cut = {}, {}, set()
        self.peers  = {node: Peer() for node in range(C.NODES)}
        self.buffer = deque()
        self.incarnation = dict(self.resets)
        self.statuses = {}
        assert self.open(1) == 0 and self.open(2) == 0

    def engine(self):
        """Execute the oldest job."""
        job  = self.jobs.pop(0)
        base = (job.endpoint*C.SLOTS + job.slot)*C.SLOT_BYTES
        slot = bytes(self.slots[base:base + C.SLOT_BYTES])
        node, cookie = job.node, int.from_bytes(slot[12:16], "little")
        packets = max(1, -(-job.length//C.PACKET_PAYLOAD))
        status, sent = self.fails.get(cookie, (0, packets))
        for index in range(sent):
            self.buffer.append(Packet(node, job.incarnation, (job.psn + index) % 65536, cookie, index,
                                      index == packets - 1))
        self.job_done(job.tag, job.psn + sent, status)
        self["JOB_SPACE"] += 1

    def transmit(self):
        """Send the oldest packet and, unless it is lost, acknowledge it."""
        packet = self.buffer.popleft()
        if packet.incarnation != self.incarnation[packet.node] or packet.node in self.cut:
            return
        peer = self.peers[packet.node]
        new  = packet.psn == peer.expected or packet.incarnation != peer.held
        if peer.receive(packet):
            if new and packet.cookie in self.refuses and peer.executed and peer.executed[-1] == packet[3:5]:
                peer.executed.pop()
                self.refuse(packet.node, packet.psn, self.refuses[packet.cookie])
            self.ack(packet.node, peer.acked)

    def observe(self):
        """Take over flow resets and completions; none may come twice."""
        self.collect()
        for node, incarnation in self.resets:
            self.incarnation[node] = incarnation
        self.resets = []
        for entry in self.entries():
            assert entry.cookie not in self.statuses, f"{entry.cookie} completed twice"
            self.statuses[entry.cookie] = entry.status

    def settle(self):
        """Run engines and control program until nothing moves."""
        quiet = 0
        while quiet < 3:
            self.step()
            self.observe()
            busy = bool(self.jobs or self.buffer)
            while self.jobs:
                self.engine()
            while self.buffer:
                self.transmit()
            quiet = 0 if busy else quiet + 1
