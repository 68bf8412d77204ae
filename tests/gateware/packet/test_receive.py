# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The packet receiver against the golden model, with everything that can happen to a packet."""

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, CHANNEL, PACKET, PACKET_FLAG
from dibber.packet.receive import PacketReceiver

from gateware.models.compiled import run_simulation
from gateware.models.drive import finish, sink, source
from gateware.models.packet import Packet, PacketError, crc32c, decode, encode

NODE = 2

DEPOSIT = ("source", "incarnation", "flags", "psn", "levels", "key", "offset", "skip", "block",
           "stride0", "stride1", "stride2", "count0", "count1", "count2", "length",
           "notice", "notice_length", "notice_endpoint")


ALLOWED = PACKET_FLAG.FIRST | PACKET_FLAG.LAST | PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT


class Target:
    """What the receiver is to do with a sequence of packets, in plain Python."""
    def __init__(self):
        self.flows    = {}   # source -> [incarnation, expected PSN]
        self.told     = set()
        self.deposits = []   # (Packet, payload bytes that are good, whole)
        self.events   = []
        self.counts   = {}

    def count(self, name, by=1):
        self.counts[name] = self.counts.get(name, 0) + by

    def take(self, words, bad):
        """One packet as the link delivers it."""
        try:
            header = decode_header(words, bad)
        except PacketError as error:
            return self.count(str(error))
        flow = self.flows.get(header.source)
        age  = (header.incarnation - flow[0]) % 256 if flow else 1
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
            if header.source not in self.told:
                self.events.append(("gap", header.source))
                self.told.add(header.source)
            return self.count("PACKET_GAP")
        self.told.discard(header.source)
        payload, error = good_blocks(words, bad, header)
        self.deposits.append((header, payload, error is None))
        self.count("BYTES_RECEIVED", (len(payload) + 3)//4)
        if error:
            return self.count(error)
        self.count("PACKETS_RECEIVED")
        flow[1] = (flow[1] + 1) % 65536


def header_end(words):
    levels, flags = words[1] >> 24 & 3, words[1] >> 8 & 0xff
    return C.HEADER_WORDS + (2 + 3*levels if levels else 0) + (3 if flags & PACKET_FLAG.NOTICE else 0)


def decode_header(words, bad):
    """The header as a Packet without payload, its length as attribute `length`; or PacketError."""
    if len(words) < C.HEADER_WORDS + 1 or len(words) < header_end(words) + 1:
        raise PacketError("PACKET_TRUNCATED")
    end    = header_end(words)
    length = words[5] >> 16
    if crc_of(words[:end]) != words[end]:
        raise PacketError("HEADER_CRC_ERROR")
    if words[0] & 0xffff != NODE or words[0] >> 16 >= C.NODES:
        raise PacketError("PACKET_WRONG_NODE")
    ends = len(words) == end + 1
    if length > C.PACKET_PAYLOAD or (words[1] >> 24) > C.LEVELS or (length != 0) == ends or (bad and ends) \
            or words[1] & 0xff != PACKET.DEPOSIT or (words[1] >> 8 & 0xff) & ~ALLOWED:
        raise PacketError("PACKET_TRUNCATED")
    # The model decodes whole packets: this one as if it had no payload.
    bare   = [*words[:5], words[5] & 0xffff, *words[6:end]]
    header = decode(bare + [crc_of(bare)])
    header.length = length
    return header


def crc_of(words, state=0xffffffff):
    return crc32c(b"".join(word.to_bytes(4, "little") for word in words), state)


def good_blocks(words, bad, header):
    """The payload bytes of the good blocks before the first fault, and the fault's counter."""
    end  = header_end(words)
    body = b"".join(w.to_bytes(4, "little") for w in words[end + 1:])
    good = b""
    for number, start in enumerate(range(0, header.length, C.BLOCK_BYTES)):
        size, at = min(C.BLOCK_BYTES, header.length - start), start + 4*number
        padded   = (size + 3)//4*4
        last     = start + size == header.length
        if len(body) < at + padded + 4 or (len(body) == at + padded + 4) != last \
                or (last and bad):
            return good, "PACKET_TRUNCATED"
        if crc32c(body[at:at + padded], words[end] ^ number) != int.from_bytes(body[at + padded:at + padded + 4], "little"):
            return good, "PAYLOAD_CRC_ERROR"
        good += body[at:at + size]
    return good, None


class Bench:
    def __init__(self, data_width, random, packets, busy=1.0, control=()):
        """`packets`, `control`: lists of (words, bad)."""
        self.dut      = dut = PacketReceiver(data_width)
        self.deposits, self.lines, self.events, self.acks = [], [], [], []
        self.counts   = dict.fromkeys(dut.counters, 0)
        self.expected = sum(len(words) for words, _ in packets)
        self.taken    = [0, 0]
        items = lambda packets: [dict(data=word, first=int(i == 0), last=int(i == len(words) - 1),
                                      bad=int(bad and i == len(words) - 1))
                                 for words, bad in packets for i, word in enumerate(words)]
        self.width = data_width
        self.processes = [
            self._start(),
            source(dut.sinks[CHANNEL.CONTROL], items(control), random, busy),
            source(dut.sinks[CHANNEL.REQUEST], items(packets), random, busy),
            sink(dut.deposits, DEPOSIT, self.deposits, random, busy),
            sink(dut.payload, ("dat", "bytes", "last", "error"), self.lines, random, busy),
            self._watch(),
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
            for name in ("started", "repeat", "gap"):
                event = getattr(dut, name)
                if (yield event.strobe):
                    fields = [(yield event.node)] + ([(yield event.incarnation)] if name == "started" else [])
                    self.events.append((name, *fields))
            if (yield dut.acks.valid):
                ack = []
                for name in ("node", "incarnation", "ack", "psn", "flags", "reason"):
                    ack.append((yield getattr(dut.acks, name)))
                self.acks.append(tuple(ack))
            yield

    def payloads(self):
        """(bytes, whole) of each packet's lines."""
        packets, data = [], b""
        for dat, count, last, error in self.lines:
            if not error:
                data += dat.to_bytes(self.width//8, "little")[:count]
                assert last or count == self.width//8
            if last:
                packets.append((data, not error))
                data = b""
        return packets

    def run(self):
        def wait():
            yield from finish(lambda: self.taken[1] == self.expected, 8*self.expected + 1000)
            for _ in range(400):
                yield
        run_simulation(self.dut, [*self.processes, wait()])


def deposit_fields(packet):
    levels  = [(s % (1 << 64), c) for s, c in packet.levels]
    return dict(
        source=packet.source, incarnation=packet.incarnation, flags=packet.flags, psn=packet.psn,
        levels=len(levels), key=packet.key, offset=packet.offset, skip=packet.skip, length=packet.length,
        **({"block": packet.block} if levels else {}),
        **{f"stride{n}": s for n, (s, _) in enumerate(levels)},
        **{f"count{n}": c for n, (_, c) in enumerate(levels)},
        **(dict(zip(("notice", "notice_length", "notice_endpoint"), packet.notice)) if packet.notice else {}))


def random_packet(random, psn, node=1, incarnation=1, length=None, flags=0):
    levels = random.randrange(4)
    return Packet(
        target=NODE, source=node, psn=psn, incarnation=incarnation, key=random.getrandbits(32),
        flags=flags | (PACKET_FLAG.FIRST if psn == 0 else 0), offset=random.getrandbits(48),
        skip=random.getrandbits(32) if levels else 0, block=random.getrandbits(32) if levels else 0,
        levels=tuple((random.getrandbits(64) - (1 << 63), random.getrandbits(32)) for _ in range(levels)),
        notice=random.choice([None, (random.getrandbits(32), random.getrandbits(32), random.randrange(8))]),
        payload=random.randbytes(random.choice([0, 1, 8, 40, 256, 300, 600]) if length is None else length))


def check(bench, target):
    """The bench's receiver did with its packets what the model of the target did."""
    assert bench.events == target.events
    assert len(bench.deposits) == len(target.deposits)
    for seen, (packet, _, _) in zip(bench.deposits, target.deposits):
        seen, wanted = dict(zip(DEPOSIT, seen)), deposit_fields(packet)
        assert {name: seen[name] for name in wanted} == wanted
    assert bench.payloads() == [(payload, whole) for packet, payload, whole in target.deposits if packet.length]
    assert bench.counts == {**dict.fromkeys(bench.counts, 0), **target.counts}


def run(data_width, random, packets, busy):
    target = Target()
    for words, bad in packets:
        target.take(words, bad)
    bench = Bench(data_width, random, packets, busy)
    bench.run()
    check(bench, target)
    return bench, target


@pytest.mark.parametrize("data_width", [64, 128])
def test_good_packets_of_several_flows_come_out_in_order(data_width, seed):
    random, packets, psns = Random(seed), [], {1: 0, 4: 0, 15: 0}
    for _ in range(12):
        node = random.choice(list(psns))
        packets.append((encode(random_packet(random, psns[node], node)), False))
        psns[node] += 1
    bench, target = run(data_width, random, packets, 0.7)
    assert bench.counts["PACKETS_RECEIVED"] == len(packets)


@pytest.mark.parametrize("data_width", [64, 128])
def test_whatever_happens_to_packets_no_unchecked_byte_comes_out(data_width, seed):
    random, packets, psn, incarnation = Random(seed), [], 0, 1
    for _ in range(26):
        words, bad = encode(random_packet(random, psn, incarnation=incarnation)), False
        fate = random.choice(["good", "good", "flip", "truncate", "bad", "lost", "twice", "stale", "longer", "node"])
        if fate == "flip":
            at = random.randrange(32*len(words))
            words[at//32] ^= 1 << at % 32
        elif fate == "truncate":
            words = words[:random.randrange(1, len(words))]
            bad   = random.random() < 0.5
        elif fate == "bad":
            bad = True
        elif fate == "stale":
            words = encode(random_packet(random, psn, incarnation=incarnation + random.choice([-1, 1, 130])))
        elif fate == "longer":
            words = words + [random.getrandbits(32)]
        elif fate == "node":
            words = encode(Packet(target=NODE, source=random.choice([16, 300]), psn=psn, payload=bytes(8)))
        if fate != "lost":
            packets += [(words, bad)]*(2 if fate == "twice" else 1)
        if fate in ("good", "twice"):
            psn += 1
        elif fate in ("flip", "truncate", "bad", "lost", "longer"):
            # The next packets find a gap; then the source starts again.
            packets += [(encode(random_packet(random, psn + 1 + n, incarnation=incarnation, length=8)), False)
                        for n in range(random.randrange(3))]
            psn, incarnation = 0, incarnation + 1
    run(data_width, random, packets, 0.8)


def test_only_the_first_packet_of_a_newer_incarnation_starts_a_flow(seed):
    random  = Random(seed)
    packets = []
    def add(psn, incarnation, first=False, node=1):
        packet = random_packet(random, psn, node, incarnation, length=4)
        packet.flags = packet.flags & ~PACKET_FLAG.FIRST | (PACKET_FLAG.FIRST if first else 0)
        packets.append((encode(packet), False))
    add(5, 200, first=True)       # not PSN 0
    add(0, 200)                   # not FIRST
    add(0, 200, first=True)       # the first flow may have any incarnation
    add(1, 200)
    add(0, 199, first=True)       # older
    add(0, 72, first=True)        # 128 ahead: neither older nor newer
    add(3, 201, first=True)
    add(2, 200)
    add(0, 71, first=True)        # 127 ahead, modulo 256
    add(3, 200)
    add(0, 71, first=True)        # a duplicate does not start it again
    add(1, 71)
    bench, target = run(64, random, packets, 1.0)
    assert [(p.incarnation, p.psn) for p, _, _ in target.deposits] == [(200, 0), (200, 1), (200, 2), (71, 0), (71, 1)]
    assert bench.counts["PACKET_STALE"] == 6 and bench.counts["PACKET_DUPLICATE"] == 1


def test_an_empty_packet_that_ends_as_bad_is_not_executed(seed):
    random = Random(seed)
    words  = encode(random_packet(random, 0, length=0))
    bench, _ = run(64, random, [(words, True), (words, False)], 1.0)
    assert bench.counts["PACKET_TRUNCATED"] == 1 and len(bench.deposits) == 1


def test_header_that_contradicts_itself_is_dropped(seed):
    random  = Random(seed)
    good    = random_packet(random, 0, length=8)
    packets = []
    for change in (dict(kind=9), dict(kind=PACKET.ACK), dict(flags=PACKET_FLAG.NAK), dict(flags=64),
                   dict(payload=bytes(4097))):
        packets.append((encode(Packet(**{**vars(good), **change})), False))
    packets.append((encode(good), False))
    bench, _ = run(64, random, packets, 1.0)
    assert bench.counts["PACKET_TRUNCATED"] == 5 and bench.counts["PACKETS_RECEIVED"] == 1


def test_a_packet_whose_beginning_was_lost_to_a_reset_is_passed_over(seed):
    random = Random(seed)
    words  = encode(random_packet(random, 0, length=8))
    bench  = Bench(64, random, [(words, False)])

    def tail():
        link = bench.dut.sinks[CHANNEL.REQUEST]
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

    run_simulation(bench.dut, [bench._start(), bench._watch(), *bench.processes[3:5], tail()])
    assert bench.counts["PACKETS_RECEIVED"] == 1 and bench.counts["PACKET_TRUNCATED"] == 0


@pytest.mark.parametrize("length, deposit_rate, payload_rate", [(0, 0.01, 1.0), (700, 1.0, 0.1)])
def test_a_slow_engine_holds_the_channel_and_loses_nothing(length, deposit_rate, payload_rate, seed):
    random  = Random(seed)
    packets = [(encode(random_packet(random, psn, length=length)), False) for psn in range(10)]
    target  = Target()
    for words, bad in packets:
        target.take(words, bad)
    bench = Bench(128, random, packets)
    # Four deposits, or two KiB of payload, fill up on the way.
    bench.processes[3:5] = [
        sink(bench.dut.deposits, DEPOSIT, bench.deposits, random, deposit_rate),
        sink(bench.dut.payload, ("dat", "bytes", "last", "error"), bench.lines, random, payload_rate)]

    def wait():
        yield from finish(lambda: len(bench.deposits) == 10 and (not length or len(bench.payloads()) == 10), 8000)
        for _ in range(80):
            yield

    run_simulation(bench.dut, [*bench.processes, wait()])
    check(bench, target)


def test_acknowledgements_come_out_of_the_control_channel(seed):
    random = Random(seed)
    acks, packets = [], []
    for n in range(8):
        ack = Packet(target=NODE, source=random.randrange(16), kind=PACKET.ACK, flags=random.choice([0, 8, 16]),
                     incarnation=random.randrange(256), psn=random.getrandbits(16), ack=random.getrandbits(16),
                     key=random.randrange(21))
        words = encode(ack)
        if n % 4 == 3:
            words[random.randrange(6)] ^= 1 << random.randrange(32)
        else:
            acks.append((ack.source, ack.incarnation, ack.ack, ack.psn, ack.flags, ack.key))
        packets.append((words, False))
    packets.append((encode(Packet(target=NODE, source=1, payload=bytes(8))), False))
    packets.append((encode(Packet(target=NODE, source=1, kind=PACKET.ACK, flags=PACKET_FLAG.FIRST)), False))
    packets.append((encode(Packet(target=NODE, source=1, kind=PACKET.ACK, payload=bytes(8))), False))
    bench = Bench(64, random, [], control=packets)

    def wait():
        yield from finish(lambda: bench.taken[0] == sum(len(w) for w, _ in packets), 400)
        for _ in range(4):
            yield

    run_simulation(bench.dut, [*bench.processes, wait()])
    assert bench.acks == acks
    assert bench.counts["HEADER_CRC_ERROR"] == 2 and bench.counts["PACKET_TRUNCATED"] == 3
    assert bench.counts["PACKETS_RECEIVED"] == len(acks) and not bench.deposits
