"""The EXPRESS lane of the transmitter: packets made from slots, their latency, and slots that
change meanwhile.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import (
    C,
    CHANNEL,
    COMMAND,
    FLAG,
    INLINE,
    LANE,
    PACKET,
    PACKET_FLAG,
)
from dibber.packet.packet_transmitter import PacketTransmitter

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import drive, finish, growing, source
from tests.gateware.models.flows import any_ways, sure_transmitter, write_ways
from tests.gateware.models.link import prefix_words
from tests.gateware.models.packet import Packet, decode, encode
from tests.gateware.models.slots import serve_slots

NODE, PEER = 3, 5
FLOW = LANE.EXPRESS * C.NODES + PEER
INCARNATION = 7  # the program's number of the first one, which is 1 on the link


def packet_of(order, slot):
    """The packet that an order (dict of express_layout) makes of its slot (bytes)."""
    member = lambda struct, name: int.from_bytes(
        slot[struct[name].offset :][: struct[name].size], "little"
    )
    packet = Packet(
        target=order["node"],
        source=NODE,
        psn=order["psn"],
        incarnation=order["incarnation"] - INCARNATION + 1,
        flags=PACKET_FLAG.EXPRESS
        | PACKET_FLAG.LAST
        | (PACKET_FLAG.FIRST if order["psn"] == 0 else 0),
    )
    if order["message"]:
        packet.kind, packet.key, packet.payload = PACKET.MESSAGE, order["word"], slot
        return packet
    packet.key = member(INLINE, "key")
    packet.offset = member(INLINE, "offset") % 2**48
    packet.payload = slot[INLINE["data"].offset :][: order["length"]]
    if member(COMMAND, "flags") & FLAG.NOTICE:
        packet.flags |= PACKET_FLAG.NOTICE | (
            PACKET_FLAG.INTERRUPT if member(COMMAND, "flags") & FLAG.INTERRUPT else 0
        )
        packet.notice = member(COMMAND, "notice"), order["length"], member(COMMAND, "endpoint")
    return packet


@passive
def grant_later(port, data_width, slots, every):
    """The slots behind a port that others use too: granted one cycle after it asks, then once in
    `every` cycles.
    """
    lines, size = C.SLOT_BYTES * 8 // data_width, data_width // 8
    pipe, wait = [0, 0], 1
    while True:
        yield port.ready.eq(int(wait == 0))
        yield port.dat_r.eq(pipe.pop(0))
        yield
        value = 0
        if (yield port.valid):
            if wait == 0:
                number, line = divmod((yield port.adr), lines)
                value = int.from_bytes(
                    slots[divmod(number, C.SLOTS)][size * line : size * line + size], "little"
                )
                wait = every
            wait -= 1
        else:
            wait = 1
        pipe.append(value)


class Bench:
    """A transmitter whose EXPRESS lane is used. `orders` and `slots` may grow; `taken` are packets'
    words with their cycles.
    """

    def __init__(self, data_width, random, busy=1.0, slots=None):
        self.dut = dut = shared(sure_transmitter, PacketTransmitter, data_width)
        self.random = random
        self.orders, self.slots = [], {}
        self.taken, self.open, self.now = [], [], 0
        self.counts = dict.fromkeys(dut.counters, 0)
        self.first_order = None
        self.processes = [
            self._start(),
            self._watch(busy),
            source(dut.expresses, growing(self.orders), random, busy),
            slots(dut.express_slot, data_width, self.slots)
            if slots
            else serve_slots(dut.express_slot, data_width, self.slots, random, busy),
        ]

    def add(self, psn, length=8, message=0, epoch=0, incarnation=INCARNATION):
        """Order a packet from a random slot; returns it as it shall leave."""
        place = len(self.orders) % C.SLOT_SETS, len(self.orders) // C.SLOT_SETS % C.SLOTS
        order = dict(
            endpoint=place[0],
            slot=place[1],
            psn=psn,
            incarnation=incarnation,
            epoch=epoch,
            node=PEER,
            length=length,
            message=message,
            word=self.random.getrandbits(32),
        )
        self.slots[place] = self.random.randbytes(C.SLOT_BYTES)
        self.orders.append(order)
        return packet_of(order, self.slots[place])

    def _start(self):
        yield self.dut.node_id.eq(NODE)
        yield from self.command("reset", flow=FLOW, incarnation=INCARNATION)

    def command(self, name, **values):
        record = getattr(self.dut.flows, name)
        yield from drive(record, strobe=1, **values)
        yield
        yield record.strobe.eq(0)

    @passive
    def _watch(self, busy):
        word = self.dut.sources[CHANNEL.EXPRESS]
        held = None
        while True:
            yield word.ready.eq(int(self.random.random() < busy))
            yield
            self.now += 1
            for name, pulse in self.dut.counters.items():
                self.counts[name] += yield pulse
            if self.first_order is None and (yield self.dut.expresses.valid):
                self.first_order = self.now
            now = (
                (yield word.valid),
                (yield word.data),
                (yield word.first),
                (yield word.last),
                (yield word.bad),
            )
            assert held in (None, now) or now[-1], "a word changed while it waited"
            held = None
            if now[0] and not (yield word.ready):
                held = now
            elif now[0]:
                assert now[2] == (not self.open) and (yield word.channel) == CHANNEL.EXPRESS
                self.open.append((now[1], self.now))
                if now[3]:
                    self.taken.append(
                        ([data for data, _ in self.open], now[4], [cycle for _, cycle in self.open])
                    )
                    self.open = []

    def packets(self):
        return [(words, bad) for words, bad, _ in self.taken]

    def run(self, *more):
        run_simulation(self.dut, [*self.processes, *more])


def rest(cycles=20):
    for _ in range(cycles):
        yield


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_packets_leave_as_the_model_says(data_width, seed):
    bench = Bench(data_width, Random(seed), busy=0.7)
    lengths = (0, 1, 3, 4, 8, 15, 16, 17, 63, 64)
    packets = [
        bench.add(psn, *(lengths[psn // 2 % 10], 0) if psn % 3 else (psn, 1)) for psn in range(40)
    ]

    def wait():
        yield from finish(lambda: len(bench.taken) == len(packets), 6000)
        yield from rest()

    bench.run(wait())
    assert bench.packets() == [(encode(packet), 0) for packet in packets]
    assert {packet.kind for packet in packets} == {PACKET.DEPOSIT, PACKET.MESSAGE}
    assert {packet.flags & PACKET_FLAG.NOTICE for packet in packets} == {0, PACKET_FLAG.NOTICE}
    assert all(
        decode(words).payload == packet.payload
        for (words, _), packet in zip(bench.packets(), packets)
    )
    assert bench.counts == {
        "PACKETS_SENT": len(packets),
        "ACKS_SENT": 0,
        "PACKETS_WITHDRAWN": 0,
        "BYTES_SENT": sum((len(packet.payload) + 3) // 4 for packet in packets),
    }


@pytest.mark.parametrize("data_width", [64, 128, 256])
@pytest.mark.parametrize("message", [0, 1])
def test_the_first_word_leaves_soon_and_no_bubble_follows(data_width, message, seed):
    bench = Bench(data_width, Random(seed), slots=lambda *port: grant_later(*port, every=1))

    def order():
        yield from rest(3)  # for the start of the flow
        for psn in range(8):
            bench.add(psn, 8, message)
        yield from finish(lambda: len(bench.taken) == 8, 800)

    bench.run(order())
    cycles = [cycle for *_, cycles in bench.taken for cycle in cycles]
    assert cycles[0] - bench.first_order == 4
    # The first packet's second word waits for its line, while the link sends START.
    assert cycles[1] - cycles[0] <= 2
    for number, (*_, packet) in enumerate(bench.taken):
        words = packet[1:] if number == 0 else packet
        assert words == list(range(words[0], words[0] + len(words)))
    # Between packets the link sends END and START. It sends START in the cycle in which the first
    # word comes, and takes that word in the next cycle.
    assert [
        after[0] - before[-1] for (*_, before), (*_, after) in zip(bench.taken, bench.taken[1:])
    ] == [2] * 7


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_other_readers_of_the_slots_make_short_bubbles_only(data_width, seed):
    bench = Bench(data_width, Random(seed), slots=lambda *port: grant_later(*port, every=4))
    for psn in range(6):
        bench.add(psn, 64, psn % 2)
    bench.run(finish(lambda: len(bench.taken) == 6, 1200))
    for words, _, cycles in bench.taken:
        # The worst is the key's line behind the flags': two fetches later at 64 bits, the next one
        # at 128.
        assert (
            max(after - before for before, after in zip(cycles, cycles[1:]))
            <= {64: 6, 128: 4, 256: 4}[data_width]
        )
        assert cycles[-1] - cycles[0] <= {64: 2, 128: 1.2, 256: 1.2}[data_width] * len(words)


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_slot_that_changes_under_a_packet_makes_no_bad_packet(data_width, seed):
    """Every version of the slot is one byte again and again, so that a word tells of which version
    it is.
    """
    random = Random(seed)
    bench = Bench(data_width, random, busy=0.8)
    for psn in range(24):
        bench.add(psn, random.choice((0, 5, 8, 64)), psn % 4 == 0)

    @passive
    def scribble():
        while True:
            for place in bench.slots:
                bench.slots[place] = bytes([random.getrandbits(8)]) * C.SLOT_BYTES
            yield

    bench.run(scribble(), finish(lambda: len(bench.taken) == 24, 4000))
    noticed = 0
    for (words, bad), order in zip(bench.packets(), bench.orders):
        packet = decode(words)
        assert not bad and packet.psn == order["psn"]
        assert len(packet.payload) == (C.MESSAGE_BYTES if order["message"] else order["length"])
        if packet.notice:
            # Flags and endpoint stand in one word, and it was read once.
            assert packet.notice[2] & FLAG.NOTICE and packet.notice[1] == order["length"]
            assert bool(packet.flags & PACKET_FLAG.INTERRUPT) == bool(
                packet.notice[2] & FLAG.INTERRUPT
            )
            noticed += 1
    assert 0 < noticed < 24


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_rewind_drops_what_has_not_begun_and_lets_the_rest_finish(data_width, seed):
    random = Random(seed)
    bench = Bench(data_width, random, busy=0.8)
    gate = bench.dut.express.passed
    expected, passed = {}, []

    @passive
    def watch():
        while True:
            yield
            if (yield gate.valid) and (yield gate.ready):
                passed.append(((yield gate.epoch), (yield gate.psn), (yield gate.stale)))

    def replay():
        yield
        for epoch in range(16):
            if epoch:
                yield from bench.command("rewind", flow=FLOW, epoch=epoch)
            before = len(passed)
            for psn in range(4):
                expected[epoch, psn] = bench.add(
                    psn, random.choice((0, 8, 64)), random.randrange(2), epoch
                )
            for _ in range(random.randrange(5, 300) if epoch < 15 else 0):
                yield
                assert all(e == epoch or stale for e, _, stale in passed[before:])
        yield from finish(lambda: len(passed) == len(expected), 2000)
        yield from rest(150)

    bench.run(watch(), replay())
    sent = [(epoch, psn) for epoch, psn, stale in passed if not stale]
    assert bench.packets() == [(encode(expected[which]), 0) for which in sent]
    assert sent[-4:] == [(15, psn) for psn in range(4)] and 4 < len(sent) < 64
    assert bench.counts["PACKETS_WITHDRAWN"] == 64 - len(sent)


def test_each_packet_takes_the_way_to_its_node(seed):
    random = Random(seed)
    bench = Bench(64, random, busy=0.6)
    ways = any_ways(random)
    expected = []

    def send():
        yield
        yield from write_ways(bench.dut, ways)
        for node in ways:
            if node != PEER:
                yield from bench.command(
                    "reset", flow=LANE.EXPRESS * C.NODES + node, incarnation=INCARNATION
                )
        for n in range(48):
            node = random.randrange(8)
            packet = bench.add(
                sum(order["node"] == node for order in bench.orders),
                random.choice((0, 4, 8)),
                n % 5 == 0,
            )
            packet.target = bench.orders[-1]["node"] = node
            expected.append((prefix_words(ways[node]) + encode(packet), 0))
        yield from finish(lambda: len(bench.taken) == len(expected), 6000)

    bench.run(send())
    assert bench.packets() == expected


def test_a_flow_reset_ends_a_started_packet_as_bad(seed):
    bench = Bench(128, Random(seed), busy=0.6)
    old = bench.add(0, message=1)
    other = bench.add(1)
    new = bench.add(0, incarnation=8)

    def wait():
        yield from finish(lambda: len(bench.open) > 12, 200)
        # the other lane's: no matter
        yield from bench.command("reset", flow=FLOW + C.NODES, incarnation=9)
        yield from finish(lambda: len(bench.open) > 20, 200)
        yield from bench.command("reset", flow=FLOW, incarnation=8)
        yield from finish(lambda: len(bench.taken) == 2, 400)
        yield from rest()

    bench.run(wait())
    (cut, bad), (whole, good) = bench.packets()
    assert bad == 1 and 20 < len(cut) < len(encode(old)) and cut[:-1] == encode(old)[: len(cut) - 1]
    assert (whole, good) == (encode(new), 0) and encode(other) != whole
    assert bench.counts["PACKETS_WITHDRAWN"] == 1 and bench.counts["PACKETS_SENT"] == 1


def test_what_waits_for_the_window_holds_no_acknowledgement_up(seed):
    bench = Bench(128, Random(seed))
    dut = bench.dut
    acks = []
    count = C.WINDOW + 40
    for psn in range(count):
        bench.add(psn)

    def wait():
        yield from finish(lambda: len(bench.taken) == C.WINDOW, 14 * C.WINDOW)
        yield from rest(60)
        assert len(bench.taken) == C.WINDOW
        assert not (yield dut.expresses.ready)
        acks.append({})
        yield dut.sources[CHANNEL.CONTROL].ready.eq(1)
        yield from finish(lambda: bench.counts["ACKS_SENT"] == 1, 20)
        yield from drive(
            dut.flows.acks,
            node=PEER,
            incarnation=1,
            ack=C.WINDOW - 1,
            flags=PACKET_FLAG.EXPRESS,
            valid=1,
        )
        yield
        yield dut.flows.acks.valid.eq(0)
        yield from finish(lambda: len(bench.taken) == count, 14 * count)

    bench.run(source(dut.acks, growing(acks), bench.random), wait())
