"""A plain model of the engines, the transmitter, the link and the peers, for the tests of flows and
replay.

Jobs are executed in order. A packet carries its command. The transmitter drops packets of another
incarnation or epoch than the flow's, and counts the incarnation on the link (`numbers`). The peer
executes only the packet that it expects. A flow that is not sure first asks its peer; if the answer
is late, its packets are dropped. A peer that restarted refuses flows that it does not hold. Such a
flow is silent until it is reset, and asks before its first packet.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque, namedtuple

from dibber.interface.description import STATUS, C

from tests.firmware.mcp_native import BULK, Card
from tests.gateware.models.cut import cut, packets_of

Packet = namedtuple("Packet", "flow incarnation epoch psn cookie index last")

ACK, NAK, GONE = "ACK", "NAK", "GONE"


class Peer:
    """The receiving end of one flow: `executed` holds (cookie, index) in the order of execution,
    over all its lives.

    `opened`: its source has asked it since its last restart.
    """

    def __init__(self, held=None):
        self.held, self.expected, self.executed, self.naked = held, 0, [], False
        self.opened = True

    def begin_anew(self):
        self.held, self.opened = None, False

    def receive(self, packet):
        """The answer: ACK, NAK, GONE or None."""
        if self.held is None and not self.opened:
            return GONE
        if packet.incarnation != self.held:
            newer = self.held is None or 0 < (packet.incarnation - self.held) % 256 < 128
            if packet.psn or not newer:
                return None
            self.held, self.expected, self.naked = packet.incarnation, 0, False
        if 0 < (packet.psn - self.expected) % 65536 < 32768:
            first, self.naked = not self.naked, True
            return NAK if first else None
        if packet.psn == self.expected:
            self.executed.append((packet.cookie, packet.index))
            self.expected = (self.expected + 1) % 65536
            self.naked = False
        return ACK

    @property
    def acked(self):
        return (self.expected - 1) % 65536


class WiredCard(Card):
    """A card with endpoints 1 and 2 open. Its engines work when the test calls them.

    Attributes
    ----------
    fails   : dict cookie -> (status, packets): the job fails after so many packets
    breaks  : function(cookie, index) -> bool: whether the host fails to answer a read of this
              packet now
    refuses : dict cookie -> reason: the peer refuses every packet of it
    peers   : dict flow -> Peer
    cut     : nodes whose packets are lost on the link
    lose    : function(Packet) -> bool: whether this one is lost on the link
    deaf    : no answer of a peer arrives
    numbers : dict flow -> incarnation on the link, which outlives the program; initially the
              values before its boot
    unsure  : flows whose peers have not answered yet
    silent  : flows that their peers do not hold, until their reset; `asks`: flows that ask before
              their next packet
    sent    : messages that became a packet
    """

    def __init__(self, numbers=None, **options):
        super().__init__(**options)
        self.fails, self.refuses, self.cut, self.deaf = {}, {}, set(), False
        self.lose = lambda packet: False
        self.breaks = lambda cookie, index: False
        self.peers = {flow: Peer() for flow in range(C.LANES * C.NODES)}
        self.buffer, self.wire = deque(), deque()
        self.incarnation, self.epoch = {}, {}
        self.numbers = dict.fromkeys(self.peers, 0) if numbers is None else dict(numbers)
        self.unsure = set()
        self.silent, self.asks = set(), set()
        self.begin()
        self.statuses, self.keys = {}, {}
        self.sent = []
        self.running = None  # [job, index of its next packet]
        assert self.open(1) == 0 and self.open(2) == 0
        self.collect()

    def begin(self):
        """The program's actions on its flows since the last call."""
        for flow, incarnation in self.resets:
            self.incarnation[flow] = incarnation
            if flow in self.silent:
                self.silent.discard(flow)
                self.asks.add(flow)
            self.numbers[flow] = (self.numbers[flow] + 1) % 256
        for flow, epoch in self.rewinds:
            self.epoch[flow] = epoch
        self.resets, self.rewinds = [], []

    def slot(self, endpoint, slot):
        base = (endpoint * C.SLOTS + slot) * C.SLOT_BYTES
        return bytes(self.slots[base : base + C.SLOT_BYTES])

    def engine(self, limit=None):
        """Go on with the oldest job, for at most `limit` packets."""
        if self.running is None:
            job = self.jobs.pop(0)
            self["JOB_SPACE"] += not job.fast
            self.running = [job, packets_of(job.length) - len(cut(job.length, job.skip))]
        job, index = self.running
        flow, cookie = (
            BULK + job.node,
            int.from_bytes(self.slot(job.endpoint, job.slot)[12:16], "little"),
        )
        packets, first = (
            packets_of(job.length),
            packets_of(job.length) - len(cut(job.length, job.skip)),
        )
        status, sent = self.fails.get(cookie, (0, packets))
        psn = lambda index: (job.psn + index - first) % 65536
        while True:
            if job.epoch != self.epoch[flow]:
                status = STATUS.REWOUND
            elif index < sent and self.breaks(cookie, index):
                status = STATUS.READ_ERROR
            elif index < sent:
                if limit == 0:
                    self.running[1] = index
                    return
                limit = limit and limit - 1
                self.buffer.append(
                    Packet(
                        flow,
                        job.incarnation,
                        job.epoch,
                        psn(index),
                        cookie,
                        index,
                        index == packets - 1,
                    )
                )
                index += 1
                self["SEND_MOVED"] = 1
                continue
            self.job_done(job.tag, psn(index), status, checksum=0x1000 + index - first)
            self.running = None
            return

    def express_engine(self):
        """Make the packet of the oldest entry of the EXPRESS lane."""
        entry = self.express.pop(0)
        if entry.message:
            self.sent.append(entry)
        cookie = (
            ("message", entry.word)
            if entry.message
            else int.from_bytes(self.slot(entry.endpoint, entry.slot)[12:16], "little")
        )
        self.buffer.append(
            Packet(entry.node, entry.incarnation, entry.epoch, entry.psn, cookie, 0, True)
        )

    def transmit(self):
        """Put the oldest packet on the link, if its flow still wants it."""
        packet = self.buffer.popleft()
        if (packet.incarnation, packet.epoch) != (
            self.incarnation[packet.flow],
            self.epoch[packet.flow],
        ):
            return
        if packet.flow in self.silent:
            return
        if packet.flow in self.unsure:
            self.library.fake_vain(packet.flow)
            return
        if packet.flow in self.asks:
            peer = self.peers[packet.flow]
            self.asks.discard(packet.flow)
            peer.opened = True
            self.numbers[packet.flow] = ((peer.held or 0) + 1) % 256
        self.wire.append(packet._replace(incarnation=self.numbers[packet.flow]))
        self.left(packet.flow, packet.psn)

    def deliver(self):
        """Let the oldest packet on the link arrive, and the answer to it, unless they are lost."""
        packet = self.wire.popleft()
        if packet.flow % C.NODES in self.cut or self.lose(packet):
            return
        peer, before = self.peers[packet.flow], len(self.peers[packet.flow].executed)
        answer = peer.receive(packet)
        refused = len(peer.executed) > before and packet.cookie in self.refuses
        if refused:
            peer.executed.pop()
        if (
            answer is None
            or self.deaf
            or packet.incarnation != self.numbers[packet.flow]
            or packet.flow in self.silent
        ):
            return
        if answer == GONE:
            # The source ignores it for an acknowledged packet.
            if (packet.psn - self["ACKED", packet.flow] - 1) % 65536 >= 32768:
                return
            self.silent.add(packet.flow)
            self.refuse(packet.flow, packet.psn, STATUS.PEER_RESTARTED)
            return
        if refused:
            self.refuse(packet.flow, packet.psn, self.refuses[packet.cookie])
        (self.nak if answer == NAK else self.ack)(packet.flow, peer.acked)

    def answer(self, flow):
        """The peer's late answer to the flow's question."""
        self.unsure.discard(flow)
        self.numbers[flow] = ((self.peers[flow].held or 0) + 1) % 256
        self.library.fake_answered(flow)

    def observe(self):
        """Take over the engines' orders, and the completions; no completion may come twice."""
        self.collect()
        self.begin()
        for entry in self.entries():
            assert entry.cookie not in self.statuses, f"{entry.cookie} completed twice"
            self.statuses[entry.cookie] = entry.status
            self.keys[entry.cookie] = entry.key

    def busy(self):
        return bool(self.jobs or self.running or self.express or self.buffer or self.wire)

    def work(self):
        """All steps that the engines can make now."""
        while self.jobs or self.running:
            self.engine()
        while self.express:
            self.express_engine()
        self.work_link()

    def work_link(self):
        """All steps that the transmitter, the link and the peers can make now."""
        while self.buffer:
            self.transmit()
        while self.wire:
            self.deliver()

    def settle(self, cycles=0):
        """Run engines and control program until nothing moves, and at least so many cycles."""
        quiet, end = 0, self.library.fake_now() + cycles
        while quiet < 3 or self.library.fake_now() < end:
            self.step(4)
            self.observe()
            quiet = 0 if self.busy() else quiet + 1
            self.work()
            if quiet and cycles:
                self.library.fake_advance(1000)
