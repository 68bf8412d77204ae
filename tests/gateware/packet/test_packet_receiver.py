"""The packet receiver against the golden model, with everything that can happen to a packet."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial
from random import Random
import sys

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, LANE, PACKET, PACKET_FLAG, STATUS
from dibber.packet.packet_receiver import PacketReceiver

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.flows import opened_receiver
from tests.gateware.models.packet import (
    LEVELS,
    Packet,
    PacketError,
    contradicts,
    crc32c,
    decode,
    encode,
    extension_words,
    random_walk,
)

NODE = 2

receive = sys.modules[__name__]
narrow_receiver = partial(PacketReceiver, address_bits=32)

DEPOSIT = (
    "source",
    "incarnation",
    "flags",
    "psn",
    "levels",
    "is_message",
    "context",
    "key",
    "offset",
    "skip",
    "block",
    "stride0",
    "stride1",
    "stride2",
    "count0",
    "count1",
    "count2",
    "length",
    "notice",
    "notice_length",
    "notice_endpoint",
)
PAYLOAD = ("dat", "bytes", "last", "error")
EVENTS = {
    "started": ("node", "incarnation"),
    "repeat": ("node",),
    "gap": ("node",),
    "asked": ("node", "token"),
    "absent": ("node", "incarnation", "psn"),
}


class Target:
    """What the receiver of a lane is to do with a sequence of packets, in plain Python.

    `opened` are the nodes that have asked it.
    """

    def __init__(self, lane, opened=range(C.NODES)):
        self.lane = lane
        self.opened = set(opened)
        self.flows = {}  # source -> [incarnation, expected PSN]
        self.told = set()
        self.room = C.SLOTS
        self.deposits = []  # (Packet, payload bytes that are good, whole)
        self.events = []
        self.counts = {}

    def count(self, name, by=1):
        self.counts[name] = self.counts.get(name, 0) + by

    def gap(self, source):
        if source not in self.told:
            self.events.append(("gap", source))
            self.told.add(source)

    def take(self, words, bad):
        """One packet as the link delivers it."""
        try:
            header = decode_header(words, bad, self.lane)
        except PacketError as error:
            return self.count(str(error))
        if header.kind == PACKET.QUESTION:
            self.events.append(("asked", header.source, header.psn))
            self.opened.add(header.source)
            return self.count("PACKETS_RECEIVED")
        flow = self.flows.get(header.source)
        if flow is None and header.source not in self.opened:
            self.events.append(("absent", header.source, header.incarnation, header.psn))
            return self.count("PACKET_STALE")
        age = (header.incarnation - flow[0]) % 256 if flow else 1
        if header.flags & PACKET_FLAG.FIRST and header.psn == 0 and 0 < age < 128:
            flow = self.flows[header.source] = [header.incarnation, 0]
            self.events.append(("started", header.source, header.incarnation))
            self.told.discard(header.source)
        elif age != 0 or flow is None:
            return self.count("PACKET_STALE")
        ahead = (header.psn - flow[1]) % 65536
        if ahead >= 32768:
            self.events.append(("repeat", header.source))
            return self.count("PACKET_DUPLICATE")
        if ahead:
            self.gap(header.source)
            return self.count("PACKET_GAP")
        message = header.kind == PACKET.MESSAGE
        if message and not self.room:
            self.gap(header.source)
            return self.count("MESSAGE_NO_ROOM")
        self.told.discard(header.source)
        payload, error = good_blocks(words, bad, header)
        self.deposits.append((header, payload, error is None))
        self.count("BYTES_RECEIVED", (len(payload) + 3) // 4)
        if error:
            return self.count(error)
        self.room -= message
        self.count("PACKETS_RECEIVED")
        flow[1] = (flow[1] + 1) % 65536


def header_end(words):
    levels, flags = words[1] >> 24, words[1] >> 8 & 0xFF
    return C.HEADER_WORDS + extension_words(levels) + (3 if flags & PACKET_FLAG.NOTICE else 0)


def decode_header(words, bad, lane):
    """The header as a Packet without payload, its length as attribute `length`; or PacketError."""
    if len(words) < C.HEADER_WORDS + 1 or len(words) < header_end(words) + 1:
        raise PacketError("PACKET_TRUNCATED")
    end = header_end(words)
    length = words[5] >> 16
    if crc_of(words[:end]) != words[end]:
        raise PacketError("HEADER_CRC_ERROR")
    if words[0] & 0xFFFF != NODE or words[0] >> 16 >= C.NODES:
        raise PacketError("PACKET_WRONG_NODE")
    ends = len(words) == end + 1
    kind, flags, levels = words[1] & 0xFF, words[1] >> 8 & 0xFF, words[1] >> 24
    if (
        (length != 0) == ends
        or (bad and ends)
        or contradicts(kind, flags, levels, length)
        or kind == PACKET.ACK
        or bool(flags & PACKET_FLAG.EXPRESS) != (lane == LANE.EXPRESS)
    ):
        raise PacketError("PACKET_TRUNCATED")
    # The model decodes whole packets: this one as a deposit without payload.
    bare = [
        words[0],
        words[1] & ~0xFF | PACKET.DEPOSIT,
        *words[2:5],
        words[5] & 0xFFFF,
        *words[6:end],
    ]
    header = decode(bare + [crc_of(bare)])
    header.length, header.kind = length, kind
    return header


def crc_of(words, state=0xFFFFFFFF):
    return crc32c(b"".join(word.to_bytes(4, "little") for word in words), state)


def good_blocks(words, bad, header):
    """The payload bytes of the good blocks before the first fault, and the fault's counter."""
    end = header_end(words)
    body = b"".join(w.to_bytes(4, "little") for w in words[end + 1 :])
    good = b""
    for number, start in enumerate(range(0, header.length, C.BLOCK_BYTES)):
        size, at = min(C.BLOCK_BYTES, header.length - start), start + 4 * number
        padded = (size + 3) // 4 * 4
        last = start + size == header.length
        if len(body) < at + padded + 4 or (len(body) == at + padded + 4) != last or (last and bad):
            return good, "PACKET_TRUNCATED"
        if crc32c(body[at : at + padded], words[end] ^ number) != int.from_bytes(
            body[at + padded : at + padded + 4], "little"
        ):
            return good, "PAYLOAD_CRC_ERROR"
        good += body[at : at + size]
    return good, None


class Lane:
    """What came out of the receiver of one lane."""

    def __init__(self, dut, lane, data_width):
        self.receiver = dut.lanes[lane]
        self.size = data_width // 8
        self.deposits, self.lines, self.events = [], [], []

    def payloads(self):
        """(bytes, whole) of each packet's lines."""
        packets, data = [], b""
        for dat, count, last, error in self.lines:
            if not error:
                data += dat.to_bytes(self.size, "little")[:count]
                assert last or count == self.size
            if last:
                packets.append((data, not error))
                data = b""
        return packets


class Bench:
    """`packets`: dict channel -> list of (words, bad). `opened`: every node has asked the
    receiver.
    """

    def __init__(
        self,
        data_width,
        random,
        packets,
        busy=1.0,
        deposits_busy=None,
        payload_busy=None,
        opened=True,
    ):
        self.dut = dut = shared(*[opened_receiver] * opened, PacketReceiver, data_width)
        self.lanes = [Lane(dut, lane, data_width) for lane in (LANE.EXPRESS, LANE.BULK)]
        self.acks = []
        self.counts = dict.fromkeys(dut.counters, 0)
        self.expected = {
            channel: sum(len(words) for words, _ in packets) for channel, packets in packets.items()
        }
        self.taken = [0] * len(dut.sinks)
        items = lambda packets: [
            dict(
                data=word,
                first=int(i == 0),
                last=int(i == len(words) - 1),
                bad=int(bad and i == len(words) - 1),
            )
            for words, bad in packets
            for i, word in enumerate(words)
        ]
        self.processes = [self._start(), self._watch()]
        for channel, list_of in packets.items():
            self.processes.append(source(dut.sinks[channel], items(list_of), random, busy))
        for lane in self.lanes:
            self.processes += [
                sink(lane.receiver.deposits, DEPOSIT, lane.deposits, random, deposits_busy or busy),
                sink(lane.receiver.payload, PAYLOAD, lane.lines, random, payload_busy or busy),
            ]

    def _start(self):
        yield self.dut.node_id.eq(NODE)

    @passive
    def _watch(self):
        dut = self.dut
        while True:
            for name, pulse in dut.counters.items():
                self.counts[name] += yield pulse
            for n, endpoint in enumerate(dut.sinks):
                self.taken[n] += (yield endpoint.valid) and (yield endpoint.ready)
            for lane in self.lanes:
                word = lane.receiver.inspector.source
                assert not (yield lane.receiver.checker.good) or (yield word.ready), (
                    "a packet is judged whose CRC waits"
                )
                for name in EVENTS:
                    event = getattr(lane.receiver, name)
                    if (yield event.strobe):
                        fields = []
                        for field in EVENTS[name]:
                            fields.append((yield getattr(event, field)))
                        lane.events.append((name, *fields))
            if (yield dut.acks.valid):
                ack = []
                for name in ("node", "incarnation", "ack", "psn", "flags", "reason", "refusals"):
                    ack.append((yield getattr(dut.acks, name)))
                self.acks.append(tuple(ack))
            yield

    def all_taken(self):
        return all(self.taken[channel] == words for channel, words in self.expected.items())

    def run(self, done=lambda: True, settle=400):
        def wait():
            words = sum(self.expected.values())
            yield from finish(lambda: self.all_taken() and done(), 8 * words + 8000)
            for _ in range(settle):
                yield

        run_simulation(self.dut, [*self.processes, wait()])


def deposit_fields(packet):
    levels = dict(enumerate((s % (1 << 64), c) for s, c in packet.levels))
    if packet.listed:
        levels[C.LEVELS - 1] = packet.listed
    return dict(
        source=packet.source,
        incarnation=packet.incarnation,
        flags=packet.flags,
        psn=packet.psn,
        levels=packet.levels_field,
        is_message=int(packet.kind == PACKET.MESSAGE),
        context=packet.ack,
        key=packet.key,
        offset=packet.offset,
        skip=packet.skip,
        length=packet.length,
        **({"block": packet.block} if levels else {}),
        **{f"stride{n}": s for n, (s, _) in levels.items()},
        **{f"count{n}": c for n, (_, c) in levels.items()},
        **(
            dict(zip(("notice", "notice_length", "notice_endpoint"), packet.notice))
            if packet.notice
            else {}
        ),
    )


def random_packet(random, psn, node=1, incarnation=1, length=None, flags=0, lane=LANE.BULK):
    flags |= PACKET_FLAG.FIRST if psn == 0 else 0
    common = dict(
        target=NODE, source=node, psn=psn, incarnation=incarnation, key=random.getrandbits(32)
    )
    notice = random.choice(
        [None, (random.getrandbits(32), random.getrandbits(32), random.randrange(8))]
    )
    if lane == LANE.EXPRESS:
        flags |= PACKET_FLAG.EXPRESS
        if length is None and random.random() < 0.4:
            return Packet(
                **common,
                kind=PACKET.MESSAGE,
                flags=flags,
                payload=random.randbytes(C.MESSAGE_BYTES),
            )
        return Packet(
            **common,
            flags=flags,
            offset=random.getrandbits(48),
            notice=notice,
            payload=random.randbytes(
                random.choice([0, 1, 8, 13, 40, 64]) if length is None else length
            ),
        )
    response = random.random() < 0.3
    levels = random.randrange(LEVELS)
    return Packet(
        **common,
        flags=flags | (PACKET_FLAG.RESPONSE if response else 0),
        offset=random.getrandbits(48),
        ack=random.getrandbits(10) if response else 0,
        skip=random.getrandbits(32) if levels else 0,
        **random_walk(random, levels),
        notice=notice,
        payload=random.randbytes(
            random.choice([0, 1, 8, 40, 256, 300, 600]) if length is None else length
        ),
    )


CHANNEL_OF = {LANE.EXPRESS: CHANNEL.EXPRESS, LANE.BULK: CHANNEL.BULK}


def targets_of(packets, opened=range(C.NODES)):
    """`packets`: dict lane -> list of (words, bad). The models of both lanes, after them."""
    targets = [Target(LANE.EXPRESS, opened), Target(LANE.BULK, opened)]
    for lane, list_of in packets.items():
        for words, bad in list_of:
            targets[lane].take(words, bad)
    return targets


def check(bench, targets):
    """The bench's receiver did with its packets what the models of its lanes did."""
    counts = dict.fromkeys(bench.counts, 0)
    for lane, target in zip(bench.lanes, targets):
        assert lane.events == target.events
        assert len(lane.deposits) == len(target.deposits)
        for seen, (packet, _, _) in zip(lane.deposits, target.deposits):
            seen, wanted = dict(zip(DEPOSIT, seen)), deposit_fields(packet)
            assert {name: seen[name] for name in wanted} == wanted
        assert lane.payloads() == [
            (payload, whole) for packet, payload, whole in target.deposits if packet.length
        ]
        for name, count in target.counts.items():
            counts[name] += count
    assert bench.counts == counts


def run(data_width, random, packets, busy, opened=range(C.NODES), **rates):
    """`packets`: dict lane -> list of (words, bad). `opened`: the nodes that have asked, all or
    none.
    """
    targets = targets_of(packets, opened)
    bench = Bench(
        data_width,
        random,
        {CHANNEL_OF[lane]: p for lane, p in packets.items()},
        busy,
        opened=bool(opened),
        **rates,
    )
    done = lambda: all(
        len(lane.deposits) >= len(target.deposits)
        and len(lane.payloads()) >= sum(p.length != 0 for p, _, _ in target.deposits)
        for lane, target in zip(bench.lanes, targets)
    )
    bench.run(done)
    check(bench, targets)
    return bench, targets


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_good_packets_of_several_flows_come_out_in_order_on_both_lanes(data_width, seed):
    random, packets, psns = Random(seed), {lane: [] for lane in CHANNEL_OF}, {}
    for _ in range(24):
        lane = random.choice(list(CHANNEL_OF))
        node = random.choice([1, 4, 15])
        psn = psns.get((lane, node), 0)
        packets[lane].append((encode(random_packet(random, psn, node, lane=lane)), False))
        psns[lane, node] = psn + 1
    bench, targets = run(data_width, random, packets, 0.7)
    assert bench.counts["PACKETS_RECEIVED"] == 24


def narrow_fields(packet, wide=deposit_fields):
    """What is left of them in 32 bits, and whether that says less."""
    fields = wide(packet)
    cut = {
        name: value % 2**32
        for name, value in fields.items()
        if name == "offset" or name.startswith("stride")
    }
    far = packet.offset >= 2**32 or any(
        not -(2**31) <= stride < 2**31 for stride, _ in packet.levels
    )
    return {
        **fields,
        **cut,
        "far": int(far),
        **({"list_far": int(packet.listed[0] >= 2**32)} if packet.listed else {}),
    }


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_what_32_bits_do_not_hold_of_offset_and_strides_is_told(data_width, seed, monkeypatch):
    """Of those that a packet has: the words of former ones lie where it has none."""
    random, packets = Random(f"{seed} narrow"), {lane: [] for lane in CHANNEL_OF}
    signed = lambda: random.choice(
        [random.randrange(-(2**31), 2**31)] * 5
        + [2**31, -(2**31) - 1, 2**32, random.getrandbits(64) - 2**63]
    )
    unsigned = lambda bits: random.choice(
        [random.getrandbits(32)] * 5 + [2**32, random.getrandbits(bits)]
    )
    for lane in CHANNEL_OF:
        for psn in range(60):
            packet = random_packet(random, psn, lane=lane, length=8)
            packet.offset = unsigned(48)
            packet.levels = tuple((signed(), count) for _, count in packet.levels)
            packet.listed = packet.listed and (unsigned(64), packet.listed[1])
            packets[lane].append((encode(packet), False))
    monkeypatch.setattr(receive, "PacketReceiver", narrow_receiver)
    monkeypatch.setattr(receive, "DEPOSIT", DEPOSIT + ("far", "list_far"))
    monkeypatch.setattr(receive, "deposit_fields", narrow_fields)
    _, targets = run(data_width, random, packets, 1.0)
    for target in targets:
        assert {narrow_fields(packet)["far"] for packet, _, _ in target.deposits} == {0, 1}


def hostile(random, lane, count):
    """Packets to which something happened, and good ones between them."""
    packets, psn, incarnation = [], 0, 1
    for _ in range(count):
        words, bad = encode(random_packet(random, psn, incarnation=incarnation, lane=lane)), False
        fate = random.choice(
            [
                "good",
                "good",
                "flip",
                "truncate",
                "bad",
                "lost",
                "twice",
                "stale",
                "longer",
                "node",
                "question",
            ]
        )
        if fate == "flip":
            at = random.randrange(32 * len(words))
            words[at // 32] ^= 1 << at % 32
        elif fate == "truncate":
            words = words[: random.randrange(1, len(words))]
            bad = random.random() < 0.5
        elif fate == "bad":
            bad = True
        elif fate == "stale":
            words = encode(
                random_packet(
                    random, psn, incarnation=incarnation + random.choice([-1, 1, 130]), lane=lane
                )
            )
        elif fate == "question":
            # Whatever else it says.
            words = encode(
                Packet(
                    target=NODE,
                    source=1,
                    kind=PACKET.QUESTION,
                    psn=random.getrandbits(16),
                    incarnation=random.getrandbits(8),
                    flags=EXPRESS if lane == LANE.EXPRESS else 0,
                    key=random.getrandbits(32),
                )
            )
        elif fate == "longer":
            words = words + [random.getrandbits(32)]
        elif fate == "node":
            words = encode(
                Packet(target=NODE, source=random.choice([16, 300]), psn=psn, payload=bytes(8))
            )
        if fate != "lost":
            packets += [(words, bad)] * (2 if fate == "twice" else 1)
        if fate in ("good", "twice"):
            psn += 1
        elif fate in ("flip", "truncate", "bad", "lost", "longer"):
            # The next packets find a gap; then the source sends what is missing, or starts again.
            packets += [
                (
                    encode(
                        random_packet(
                            random, psn + 1 + n, incarnation=incarnation, length=8, lane=lane
                        )
                    ),
                    False,
                )
                for n in range(random.randrange(3))
            ]
            if random.random() < 0.5:
                psn, incarnation = 0, incarnation + 1
    return packets


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_whatever_happens_to_packets_no_unchecked_byte_comes_out(data_width, seed):
    random = Random(seed)
    packets = {lane: hostile(random, lane, 24) for lane in CHANNEL_OF}
    bench, targets = run(data_width, random, packets, 0.8)
    assert all(
        bench.counts[name]
        for name in ("PACKET_TRUNCATED", "PACKET_GAP", "PACKET_DUPLICATE", "PACKET_STALE")
    )


def test_only_the_first_packet_of_a_newer_incarnation_starts_a_flow(seed):
    random = Random(seed)
    packets = []

    def add(psn, incarnation, first=False, node=1):
        packet = random_packet(random, psn, node, incarnation, length=4)
        packet.flags = packet.flags & ~PACKET_FLAG.FIRST | (PACKET_FLAG.FIRST if first else 0)
        packets.append((encode(packet), False))

    add(5, 200, first=True)  # not PSN 0
    add(0, 200)  # not FIRST
    add(0, 200, first=True)  # the first flow may have any incarnation
    add(1, 200)
    add(0, 199, first=True)  # older
    add(0, 72, first=True)  # 128 ahead: neither older nor newer
    add(3, 201, first=True)
    add(2, 200)
    add(0, 71, first=True)  # 127 ahead, modulo 256
    add(3, 200)
    add(0, 71, first=True)  # a duplicate does not start it again
    add(1, 71)
    bench, targets = run(64, random, {LANE.BULK: packets}, 1.0)
    assert [(p.incarnation, p.psn) for p, _, _ in targets[LANE.BULK].deposits] == [
        (200, 0),
        (200, 1),
        (200, 2),
        (71, 0),
        (71, 1),
    ]
    assert bench.counts["PACKET_STALE"] == 6 and bench.counts["PACKET_DUPLICATE"] == 1


@pytest.mark.fault
@pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))
def test_no_flow_starts_before_its_source_has_asked_and_each_packet_is_told_of(lane, seed):
    """The target may have executed a first packet before its restart, so the packet does not belong
    to the time after it.
    """
    random, packets = Random(seed), []
    about = EXPRESS if lane == LANE.EXPRESS else 0
    add = lambda psn, incarnation, node=1: packets.append(
        (encode(random_packet(random, psn, node, incarnation, 4, lane=lane)), False)
    )
    ask = lambda node: packets.append(
        (encode(Packet(target=NODE, source=node, kind=PACKET.QUESTION, psn=7, flags=about)), False)
    )
    add(0, 9)
    add(1, 9)
    add(0, 3, node=4)
    ask(1)
    add(1, 10)  # its first one was lost: the source sends it again
    add(0, 10)
    add(1, 10)
    add(0, 4, node=4)
    add(2, 9)  # of a flow before the one that is held
    bench, targets = run(64, random, {lane: packets}, 1.0, opened=())
    assert [(p.source, p.incarnation, p.psn) for p, _, _ in targets[lane].deposits] == [
        (1, 10, 0),
        (1, 10, 1),
    ]
    assert [event for event in targets[lane].events if event[0] == "absent"] == [
        ("absent", 1, 9, 0),
        ("absent", 1, 9, 1),
        ("absent", 4, 3, 0),
        ("absent", 4, 4, 0),
    ]


@pytest.mark.fault
@pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))
def test_a_target_that_forgets_in_any_cycle_holds_no_flow_after_that(lane, seed):
    """Also while a packet is on its way through the receiver: that one is executed or not, and the
    next one is of no flow.
    """
    random = Random(seed)
    packets = [encode(random_packet(random, psn, length=8, lane=lane)) for psn in range(3)]
    found = set()
    for cycle in range(0, sum(map(len, packets[:2])) + 8, 1):
        dut = shared(opened_receiver, PacketReceiver, 64)
        seen, absent = [], []
        items = [
            dict(data=word, first=int(n == 0), last=int(n == len(words) - 1))
            for words in packets
            for n, word in enumerate(words)
        ]

        @passive
        def watch():
            receiver = dut.lanes[lane]
            while True:
                if (yield receiver.absent.strobe):
                    absent.append((yield receiver.absent.psn))
                yield

        def forget():
            yield dut.node_id.eq(NODE)
            for n in range(len(items) + 60):
                yield dut.forget.eq(int(n == cycle))
                yield
            yield dut.forget.eq(0)

        receiver = dut.lanes[lane]
        run_simulation(
            dut,
            [
                watch(),
                forget(),
                source(dut.sinks[CHANNEL_OF[lane]], items, random, 1.0),
                sink(receiver.deposits, ("psn",), seen, random, 1.0),
                sink(receiver.payload, ("last",), [], random, 1.0),
            ],
        )
        executed = [psn for (psn,) in seen]
        assert executed == list(range(len(executed))) and absent == list(range(len(executed), 3)), (
            cycle
        )
        found.add(len(executed))
    assert found >= {0, 1, 2}


@pytest.mark.parametrize("length", [0, 8, 300])
def test_a_packet_that_ends_as_bad_is_not_executed(length, seed):
    random = Random(seed)
    words = encode(random_packet(random, 0, length=length))
    bench, _ = run(64, random, {LANE.BULK: [(words, True), (words, False)]}, 1.0)
    assert bench.counts["PACKET_TRUNCATED"] == bench.counts["PACKETS_RECEIVED"] == 1


EXPRESS = PACKET_FLAG.EXPRESS
CONTRADICTIONS = {
    LANE.BULK: [
        dict(kind=9),
        dict(kind=PACKET.ACK),
        dict(kind=PACKET.MESSAGE, payload=bytes(128)),
        dict(flags=PACKET_FLAG.NAK),
        dict(flags=EXPRESS),
        dict(payload=bytes(4097)),
        dict(kind=PACKET.QUESTION, payload=bytes(4)),
        dict(kind=PACKET.QUESTION, payload=b"", flags=PACKET_FLAG.FIRST),
        dict(kind=PACKET.QUESTION, payload=b"", block=4, levels=((8, 2),)),
    ],
    LANE.EXPRESS: [
        dict(kind=9),
        dict(kind=PACKET.ACK),
        dict(kind=PACKET.QUESTION, payload=bytes(8)),
        dict(kind=PACKET.QUESTION, payload=b"", flags=0),
        dict(flags=0),
        dict(flags=EXPRESS | PACKET_FLAG.RESPONSE),
        dict(flags=EXPRESS | PACKET_FLAG.NAK),
        dict(payload=bytes(65)),
        dict(block=4, levels=((8, 2),)),
        dict(kind=PACKET.MESSAGE, payload=bytes(64)),
        dict(kind=PACKET.MESSAGE, payload=bytes(129)),
        dict(kind=PACKET.MESSAGE, payload=b""),
        dict(kind=PACKET.MESSAGE, payload=bytes(128), flags=0),
        dict(kind=PACKET.MESSAGE, payload=bytes(128), notice=(1, 2, 3)),
        dict(kind=PACKET.MESSAGE, payload=bytes(128), block=128, levels=((8, 1),)),
    ],
}


@pytest.mark.parametrize("lane", CHANNEL_OF)
def test_header_that_contradicts_itself_is_dropped(lane, seed):
    random = Random(seed)
    good = random_packet(random, 0, length=8, lane=lane)
    plain = dict(vars(good), notice=None, flags=good.flags & ~PACKET_FLAG.NOTICE)
    packets = [(encode(Packet(**{**plain, **change})), False) for change in CONTRADICTIONS[lane]]
    bench, _ = run(64, random, {lane: packets + [(encode(good), False)]}, 1.0)
    assert (
        bench.counts["PACKET_TRUNCATED"] == len(packets) and bench.counts["PACKETS_RECEIVED"] == 1
    )


def test_a_packet_whose_beginning_was_lost_to_a_reset_is_passed_over(seed):
    random = Random(seed)
    words = encode(random_packet(random, 0, length=8))
    bench = Bench(64, random, {})

    def tail():
        link = bench.dut.sinks[CHANNEL.BULK]
        for last in (0, 0, 1):
            yield link.valid.eq(1)
            yield link.last.eq(last)
            yield
        yield link.valid.eq(0)
        yield link.last.eq(0)
        yield
        for i, word in enumerate(words):
            yield link.valid.eq(1)
            yield link.data.eq(word)
            yield link.first.eq(int(i == 0))
            yield link.last.eq(int(i == len(words) - 1))
            yield
        yield link.valid.eq(0)
        for _ in range(10):
            yield

    run_simulation(bench.dut, [*bench.processes, tail()])
    assert bench.counts["PACKETS_RECEIVED"] == 1 and bench.counts["PACKET_TRUNCATED"] == 0


@pytest.mark.parametrize(
    "lane, length", [(LANE.BULK, 0), (LANE.BULK, 700), (LANE.EXPRESS, 0), (LANE.EXPRESS, 64)]
)
def test_a_slow_engine_holds_the_channel_and_loses_nothing(lane, length, seed):
    """Four deposits, or the buffer of the payload, fill up on the way."""
    random = Random(seed)
    packets = [
        (encode(random_packet(random, psn, length=length, lane=lane)), False) for psn in range(14)
    ]
    run(
        128,
        random,
        {lane: packets},
        1.0,
        deposits_busy=0.02 if length == 0 else 1.0,
        payload_busy=0.05,
    )


def message(psn, node=1, incarnation=1, flags=0):
    return encode(
        Packet(
            target=NODE,
            source=node,
            kind=PACKET.MESSAGE,
            psn=psn,
            incarnation=incarnation,
            key=psn,
            flags=EXPRESS | flags | (PACKET_FLAG.FIRST if psn == 0 else 0),
            payload=bytes([psn]) * C.MESSAGE_BYTES,
        )
    )


def test_a_message_that_finds_the_inbox_full_is_missing_until_it_comes_again(seed):
    """The gap is told once for each flow, deposits between do not mind, and a flow may start with
    the gap.
    """
    random = Random(seed)
    bulk = [(encode(random_packet(random, 0, length=40)), False)]
    cut = message(C.SLOTS - 1)
    cut[-1] ^= 1
    first = [(message(psn), False) for psn in range(C.SLOTS - 1)] + [
        (cut, False),  # takes no room
        (message(C.SLOTS - 1), False),
        (message(C.SLOTS), False),
        (message(C.SLOTS), False),  # no room, told once
        (encode(random_packet(random, C.SLOTS + 1, length=8, lane=LANE.EXPRESS)), False),  # a gap
        (encode(random_packet(random, 0, 4, length=8, lane=LANE.EXPRESS)), False),
        # starts a flow and finds no room
        (message(0, node=5), False),
        (message(0, node=5, incarnation=2), False),
    ]  # another flow, told again
    second = [
        (message(C.SLOTS), False),
        (message(C.SLOTS + 1), False),  # room for one
        (message(0, node=5, incarnation=2), False),
    ]
    third = [(message(n, node=5, incarnation=2), False) for n in range(2)]
    targets = targets_of({LANE.BULK: bulk, LANE.EXPRESS: first})
    bench = Bench(64, random, {CHANNEL.BULK: bulk})
    express = targets[LANE.EXPRESS]

    def send(packets):
        for words, bad in packets:
            yield from (
                {"data": w, "first": int(i == 0), "last": int(i == len(words) - 1), "bad": 0}
                for i, w in enumerate(words)
            )

    words = lambda *lists: sum(len(w) for packets in lists for w, _ in packets)
    phase = [0]

    def items():
        for n, packets in enumerate((first, second, third)):
            while phase[0] < n:
                yield None
            yield from send(packets)

    def free():
        for n, (lists, count) in enumerate((((first,), 1), ((first, second), 2))):
            yield from finish(lambda: bench.taken[CHANNEL.EXPRESS] == words(*lists), 4000)
            for _ in range(20):
                yield
            for _ in range(count):
                yield bench.dut.inbox_freed.eq(1)
                yield
                yield bench.dut.inbox_freed.eq(0)
                yield
            phase[0] += 1
        yield from finish(lambda: bench.taken[CHANNEL.EXPRESS] == words(first, second, third), 4000)
        for _ in range(100):
            yield

    for room, packets in ((1, second), (2, third)):
        express.room += room
        for packet in packets:
            express.take(*packet)
    run_simulation(
        bench.dut,
        [*bench.processes, free(), source(bench.dut.sinks[CHANNEL.EXPRESS], items(), random)],
    )
    check(bench, targets)
    assert bench.counts["MESSAGE_NO_ROOM"] == 6
    assert express.events == [
        ("started", 1, 1),
        ("gap", 1),
        ("started", 4, 1),
        ("started", 5, 1),
        ("gap", 5),
        ("started", 5, 2),
        ("gap", 5),
        ("gap", 1),
    ]


def test_acknowledgements_come_out_of_the_control_channel(seed):
    random = Random(seed)
    acks, packets = [], []
    for n in range(8):
        ack = Packet(
            target=NODE,
            source=random.randrange(16),
            kind=PACKET.ACK,
            flags=random.choice([0, PACKET_FLAG.REFUSED, PACKET_FLAG.NAK, PACKET_FLAG.FIRST])
            | random.choice([0, EXPRESS]),
            incarnation=random.randrange(256),
            psn=random.getrandbits(16),
            ack=random.getrandbits(16),
            key=random.randrange(STATUS.TRUNCATED),
            offset=random.randrange(256),
        )
        words = encode(ack)
        if n % 4 == 3:
            words[random.randrange(6)] ^= 1 << random.randrange(32)
        else:
            acks.append(
                (ack.source, ack.incarnation, ack.ack, ack.psn, ack.flags, ack.key, ack.offset)
            )
        packets.append((words, False))
    packets.append((encode(Packet(target=NODE, source=1, payload=bytes(8))), False))
    packets.append(
        (encode(Packet(target=NODE, source=1, kind=PACKET.ACK, flags=PACKET_FLAG.LAST)), False)
    )
    packets.append(
        (encode(Packet(target=NODE, source=1, kind=PACKET.ACK, payload=bytes(8))), False)
    )
    bench = Bench(64, random, {CHANNEL.CONTROL: packets})
    bench.run(settle=8)
    assert bench.acks == acks
    assert bench.counts["HEADER_CRC_ERROR"] == 2 and bench.counts["PACKET_TRUNCATED"] == 3
    assert bench.counts["PACKETS_RECEIVED"] == len(acks) and not any(
        lane.deposits for lane in bench.lanes
    )
