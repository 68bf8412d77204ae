"""A ring node's transit, reservation and send buffer against the model, under random stalls."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.fabric.ring.numbers import RingNumbers
from dibber.fabric.ring.port import RingSender
from dibber.fabric.ring.reservation import RingReservation
from dibber.fabric.ring.send import SLOT_BITS, SLOTS, RingSend
from dibber.fabric.ring.transit import RingTransit
from dibber.fabric.ring.words import ADDRESS_BITS
from dibber.interface.description import CHANNEL
from dibber.link.link_receiver import WordDecoder
from tests.gateware.link.items import word_items
from tests.gateware.models import ring
from tests.gateware.models.cable import RX
from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import drive, source
from tests.gateware.models.link import (
    END_BAD_WORD,
    END_WORD,
    flow_word,
    meaning,
    nonce_word,
    ping_word,
    pong_word,
    prefix_words,
    start_word,
)

CHANNELS = 4
LIMITS = (12, 12, 20, 12)
ADDRESS = 5

# Transit ------------------------------------------------------------------------------------------


class TransitBench(Module):
    """A node's transit, with decisions that depend on all that it asks for."""

    def __init__(self):
        self.submodules.decoder = WordDecoder(CHANNELS)
        self.submodules.dut = dut = RingTransit(self.decoder, LIMITS)
        number, some = Signal(2), Signal(2)
        self.comb += [
            [If(dut.ask.channel[n], number.eq(n)) for n in range(CHANNELS)],
            some.eq(number + dut.ask.source + dut.ask.head),
            dut.accept.eq(some < 2),
            dut.refusal.eq(Mux(some == 2, ring.BUSY_A, ring.ORDER)),
            dut.keep.data.eq(dut.housekeep.data ^ 0x00FF00),
            dut.keep.valid.eq(dut.housekeep.valid & dut.housekeep.data[8]),
        ]


def any_words(random, count):
    """What may come from a ring: whole packets and echoes for all kinds of nodes, and faults."""
    words = []
    for _ in range(count):
        channel, number = random.randrange(CHANNELS), random.randrange(32)
        target = random.choice((ADDRESS, ADDRESS, random.randrange(16)))
        origin = random.choice((ADDRESS, random.randrange(16), random.randrange(16)))
        old = random.random() < 0.2
        kind = random.randrange(10)
        if kind < 5:
            body = [random.getrandbits(32) for _ in range(random.randrange(0, 24))]
            head, bad = random.random() < 0.5, random.random() < 0.1
            some = ring.packet_words(channel, target, origin, number, body, head, bad, old)
        elif kind < 8:
            some = ring.echo_words(channel, target, origin, number, random.randrange(8), old)
        elif kind == 8:
            some = [random.choice((nonce_word, ping_word, pong_word))(random.randrange(256))]
        else:
            some = [random.choice((END_WORD, END_BAD_WORD, start_word(channel, 0), (7, 0)))]
        fault = random.random()
        if fault < 0.1 and len(some) > 1:
            del some[random.randrange(len(some))]
        elif fault < 0.2:
            place = random.randrange(len(some))
            some[place] = (*some[place][:2], 1)
        elif fault < 0.25 and len(some) > 1:
            data, k = some[1][:2]
            some[1] = (data ^ 1 << random.randrange(32), k)
        elif fault < 0.3:
            some.insert(random.randrange(len(some)), ping_word(random.randrange(256)))
        words += some
    return words


def with_idles(random, words):
    for word in words:
        while random.random() < 0.2:
            yield flow_word(random.choice((0x80, 0x81)))
        yield word


def status_of(channel, origin, head):
    """As TransitBench decides."""
    return (ring.ACCEPTED, ring.ACCEPTED, ring.BUSY_A, ring.ORDER)[(channel + origin + head) & 3]


def keep(data):
    """As TransitBench passes nonces, pings and pongs on."""
    return data ^ 0x00FF00 if data & 0x100 else None


def run_transit(random, words, scrubber):
    """(passed, packets, answers, scrubbed, misrouted) of the RTL."""
    bench = shared(TransitBench)
    dut, rx = bench.dut, bench.decoder.sink
    passed, packets, answers = [], [[] for _ in range(CHANNELS)], []
    events = dict(scrubbed=0, misrouted=0, idles=0)

    def feed():
        yield dut.up.eq(1)
        yield dut.address.eq(ADDRESS)
        yield dut.scrubber.eq(scrubber)
        yield
        for data, k, *error in with_idles(random, words):
            while random.random() < 0.2:
                yield rx.valid.eq(0)
                yield
            yield from drive(rx, valid=1, **dict(zip(RX, (data, k, int(bool(error)), 0))))
            yield
        # The last word is dealt with when another one comes.
        yield from drive(rx, valid=1, data=END_WORD[0], k=1, code_error=0)
        yield
        yield rx.valid.eq(0)
        for _ in range(4):
            yield

    @passive
    def watch():
        while True:
            yield
            if (yield dut.push.valid):
                passed.append(((yield dut.push.data), (yield dut.push.k)))
            if (yield dut.take.valid):
                channel = (yield dut.take.channel).bit_length() - 1
                begun = packets[channel]
                if (yield dut.take.first):
                    begun.append([])
                begun[-1].append((yield dut.take.data))
                if (yield dut.take.last):
                    begun[-1] = (begun[-1], not (yield dut.take.bad))
            if (yield dut.answer.valid):
                answer = []
                for name in ("status", "number", "source", "channel"):
                    answer.append((yield getattr(dut.answer, name)))
                answers.append(answer)
            events["scrubbed"] += yield dut.scrubbed
            events["misrouted"] += yield dut.misrouted

    run_simulation(bench, [feed(), watch()])
    return passed, packets, answers, events


def test_a_node_strips_passes_and_echoes_what_the_model_does(seed):
    random = Random(seed)
    for scrubber in (0, 1) * 3:
        words = any_words(random, 300)
        passed, packets, answers, events = run_transit(random, words, scrubber)
        model = ring.Transit(ADDRESS, bool(scrubber), status_of, LIMITS, keep)
        # The last START or packet may still be open; the bench ends it with END.
        model.take([*words, END_WORD])
        assert passed == model.passed
        assert packets == model.packets
        assert len(answers) == len(model.answers)
        for found, expected in zip(answers, model.answers):
            assert all(b is None or a == b for a, b in zip(found, expected)), (found, expected)
        assert (events["scrubbed"], events["misrouted"]) == (model.scrubbed, model.misrouted)
        # The run had something of each kind.
        assert len(passed) > 200 and all(packets) and len(answers) > 20
        assert model.misrouted and bool(model.scrubbed) == bool(scrubber)


# Reservation --------------------------------------------------------------------------------------


def test_reservation_decides_and_grants_as_the_model_in_each_cycle(seed):
    random = Random(seed)
    words, depth = 10, 64
    dut, model = RingReservation(words, depth), ring.Reservation(words)
    seen, grants = set(), []

    def main():
        level, expected = 0, None
        for _ in range(8000):
            level = max(0, min(depth, level + random.randrange(-4, 5)))
            yield from drive(
                dut,
                level=level,
                ask=random.random() < 0.2,
                source=random.randrange(6),
                head=random.random() < 0.8,
                taking=random.random() < 0.1,
            )
            yield dut.grant.ready.eq(random.random() < 0.5)
            yield
            room = depth - 4 - level
            valid = yield dut.grant.valid
            if expected is not None:
                assert valid and (yield dut.grant.source) == expected
                grants.append(expected)
            expected = None
            if (yield dut.ask):
                status = model.ask((yield dut.source), (yield dut.head), room)
                assert (yield dut.accept) == (status == ring.ACCEPTED)
                if status != ring.ACCEPTED:
                    assert (yield dut.status) == status
                seen.add(status)
            else:
                if not (yield dut.taking) and not valid and len(model.granted) < 3:
                    expected = model.may_grant(room)
                    if expected is not None:
                        model.granted.add(expected)
                model.turn()

    run_simulation(dut, [main()])
    assert seen == {ring.ACCEPTED, ring.BUSY_A, ring.BUSY_B, ring.ORDER}
    assert set(grants) == set(range(6))


def test_a_set_whose_sources_are_gone_is_cleared_once_in_its_time_whatever_comes(seed):
    """Also if a packet is being taken in the cycle in which the time is over."""
    expiry, pause = 64, 7  # cycles; one in `pause` has no packet that is being taken
    for offset in range(pause):
        dut, expired = RingReservation(10, 64, expiry=expiry), []

        def main():
            yield from drive(dut, level=64, ask=1, source=3, head=1)
            yield
            yield from drive(dut, level=0, ask=0)
            yield dut.grant.ready.eq(1)
            while not (yield dut.grant.valid):
                yield
            for cycle in range(3 * expiry):
                yield dut.taking.eq(cycle % pause != offset)
                yield
                if (yield dut.expired):
                    expired.append(cycle)
            assert not (yield dut.waiting)

        run_simulation(dut, [main()])
        assert len(expired) == 1 and expiry - 4 <= expired[0] <= expiry + pause


# Send ---------------------------------------------------------------------------------------------

SIZE = 4
SENDERS = 2


class SendBench(Module):
    """Two channels' send buffers of node 0, of a ring of four."""

    def __init__(self):
        self.buffers = [RingSend(16, 64) for _ in range(SENDERS)]
        self.submodules += self.buffers
        self.submodules.sender = sender = RingSender(self.buffers)
        self.submodules.numbers = numbers = RingNumbers(silence=512)
        self.retry, self.up = Signal(), Signal(reset=1)
        event = numbers.event
        self.comb += [
            [getattr(sender, name).eq(getattr(numbers, name)) for name in ("free", "number")],
            [
                getattr(numbers, name).eq(getattr(sender, name))
                for name in ("begin", "channel", "slot")
            ],
            sender.up.eq(self.up),
            sender.place.eq(sender.card),
            numbers.up.eq(self.up),
        ]
        for n, buffer in enumerate(self.buffers):
            self.comb += [
                buffer.up.eq(self.up),
                buffer.size.eq(SIZE),
                buffer.retry.eq(self.retry),
                [
                    getattr(buffer.event, name).eq(getattr(event, name))
                    for name in ("status", "slot", "source")
                ],
                buffer.event.valid.eq(event.valid & (event.channel == n)),
            ]


def test_packets_are_accepted_once_and_in_order_whatever_the_targets_answer(seed):
    """The targets are models: full at times, and some of their echoes are lost."""
    random = Random(seed)
    bench = SendBench()
    sent = {n: [] for n in range(SENDERS)}
    packets = []
    for n in range(SENDERS):
        for sequence in range(80):
            target = random.randrange(1, SIZE)
            words = [
                target,
                sequence,
                *(random.getrandbits(32) for _ in range(random.randrange(12))),
            ]
            sent[n].append(words)
    for n in range(SENDERS):
        items = word_items([(prefix_words([words[0]]) + words, False) for words in sent[n]])
        for item in items:
            item["prefix"] = 1
        packets.append(source(bench.buffers[n].sink, items, random, 0.7))
    targets = {(node, n): ring.Reservation(1) for node in range(1, SIZE) for n in range(SENDERS)}
    accepted = {key: [] for key in targets}
    flying = []  # (cycle, status, number, source, channel)
    counts = dict(refused=0, lost=0, heard=0)
    unheard = []  # packets whose echo is lost
    kept = [{} for _ in range(SENDERS)]  # slot -> packet
    entered, gone = [0] * SENDERS, [0] * SENDERS
    done = [0]

    def receive(channel, prefix, words, cycle):
        fields = ring.Fields.of((prefix, 0))
        key = (fields.target, channel)
        assert fields.source == 0 and words[0] == fields.target
        status = targets[key].ask(0, fields.head, random.choice((0, 2)))
        targets[key].turn()
        if status == ring.ACCEPTED:
            accepted[key].append(words)
        else:
            counts["refused"] += 1
        when = max([cycle + random.randrange(5, 40), *(at + 1 for at, *_ in flying)])
        if random.random() < 0.03:
            counts["lost"] += 1
            unheard.append(words)
        else:
            flying.append((when, status, fields.number, fields.target, channel))
        if targets[key].may_grant(2) is not None:
            targets[key].granted.add(0)
            if random.random() < 0.9:
                flying.append((when + 1, ring.GRANT, 0, fields.target, channel))

    def look(n):
        """Each packet has a slot, and is gone once: when its target has it, or no echo comes."""
        buffer = bench.buffers[n]
        keeps, leaves = (yield buffer.keeps), (yield buffer.gone)
        for slot in range(SLOTS):
            if leaves >> slot & 1:
                words = kept[n].pop(slot)
                assert words in accepted[words[0], n] or words in unheard
                gone[n] += 1
        assert (yield buffer.kept) == bool(kept[n])
        for slot in range(SLOTS):
            if keeps >> slot & 1:
                assert slot not in kept[n]
                kept[n][slot] = sent[n][entered[n]]
                entered[n] += 1

    def main():
        out, answer, cycle, begun = bench.sender.source, bench.numbers.answer, 0, None
        while cycle < 60000 and done[0] < 600:
            yield out.ready.eq(random.random() < 0.8)
            yield bench.retry.eq(cycle % 256 == 0)
            if flying and flying[0][0] <= cycle:
                _, status, number, origin, channel = flying.pop(0)
                yield from drive(
                    answer, valid=1, status=status, number=number, source=origin, channel=channel
                )
            else:
                yield answer.valid.eq(0)
            yield
            cycle += 1
            for n in range(SENDERS):
                yield from look(n)
            counts["heard"] += yield bench.buffers[0].lost
            counts["heard"] += yield bench.buffers[1].lost
            if (yield out.valid) and (yield out.ready):
                word = (yield out.data), (yield out.k)
                kind, value = meaning(word)
                if kind == "start":
                    assert begun is None and value >> 4 == 1
                    begun = [value & 15]
                elif kind == "end":
                    assert value
                    receive(begun[0], begun[1], begun[2:], cycle)
                    begun = None
                else:
                    begun.append(word[0])
            elif begun is not None and len(begun) > 1:
                assert (yield out.valid) or not (yield out.ready) or begun is None
            idle = not flying and begun is None
            for buffer in bench.buffers:
                idle = idle and not (yield buffer.offer) and not (yield buffer.waits)
                idle = idle and not (yield buffer.sink.valid)
            done[0] = done[0] + 1 if idle else 0
        assert done[0] == 600, "it does not end"

    run_simulation(bench, [main(), *packets])
    for (node, n), found in accepted.items():
        expected = [words for words in sent[n] if words[0] == node]
        assert found == [words for words in expected if words in found], "order, or twice"
        missing = len(expected) - len(found)
        assert missing <= counts["lost"]
    assert counts["refused"] > 50 and counts["heard"] == counts["lost"] > 0
    assert gone == entered == [len(packets) for packets in sent.values()]


class Offer(Record):
    """What RingSender sees of a send buffer. Its packets have one word."""

    def __init__(self):
        super().__init__(
            [
                ("offer", 1),
                ("head", 1),
                ("target", ADDRESS_BITS),
                ("slot", SLOT_BITS),
                ("bad", 1),
                ("begin", 1),
                ("next_", 1),
                ("data", 32),
                ("last", 1),
            ]
        )


def channels_sent(offered, packets):
    """The channels of so many packets. `offered(channel, before)` says whether the channel offers
    behind the packets of the channels `before`.
    """
    buffers = [Offer() for _ in range(CHANNELS)]
    dut = RingSender(buffers)
    dut.comb += [buffer.last.eq(1) for buffer in buffers]
    sent = []

    def main():
        yield from drive(dut, up=1, free=1)
        yield dut.source.ready.eq(1)
        while len(sent) < packets:
            for channel, buffer in enumerate(buffers):
                yield buffer.offer.eq(offered(channel, sent))
            yield
            if (yield dut.begin):
                sent.append((yield dut.channel))
                assert (yield dut.urgent) == (sent[-1] == CHANNEL.CONTROL)
            else:
                assert not (yield dut.urgent)

    run_simulation(dut, main())
    return sent


def test_a_channel_that_offers_waits_for_one_packet_of_each_channel_beside_control():
    """EXPRESS, BULK and SPARE always offer. CONTROL offers behind each packet of another one. A
    packet of CONTROL is urgent, and no other one.
    """
    others = channels_sent(lambda channel, sent: channel != CHANNEL.CONTROL, 9)
    assert others == [CHANNEL.EXPRESS, CHANNEL.BULK, CHANNEL.SPARE] * 3
    both = channels_sent(
        lambda channel, sent: channel != CHANNEL.CONTROL or bool(sent and sent[-1] != channel), 18
    )
    assert both[1::2] == [CHANNEL.CONTROL] * 9 and both[::2] == others


def test_a_channel_that_was_passed_over_keeps_its_turn_through_many_packets_of_control():
    many = channels_sent(
        lambda channel, sent: (
            len(sent) % 6 > 0 if channel == CHANNEL.CONTROL else channel < CHANNEL.SPARE
        ),
        24,
    )
    assert many[::6] == [CHANNEL.EXPRESS, CHANNEL.BULK] * 2


def test_each_packet_that_a_ring_leaves_behind_is_counted_once():
    """Two whole packets, and one whose last word comes when the node is not UP any more."""
    dut, flushed, kept, gone = RingSend(16, 64), [], [], []

    def main():
        yield from drive(dut, up=1, size=SIZE)
        sink = dut.sink
        for number, length in enumerate((3, 3, 6)):
            for n in range(length):
                if (number, n) == (2, 3):
                    yield dut.up.eq(0)
                yield from drive(
                    sink, valid=1, first=n == 0, last=n == length - 1, prefix=1, data=n == 0
                )
                ready = 0
                while not ready:
                    yield
                    kept.append((yield dut.keeps))
                    flushed.append((yield dut.flushed))
                    ready = yield sink.ready
        yield sink.valid.eq(0)
        for cycle in range(40):
            yield dut.flush.eq(cycle == 20)
            yield
            gone.append((yield dut.gone))
            flushed.append((yield dut.flushed))

    run_simulation(dut, [main()])
    assert flushed[-40:].count(2) == 1 and sum(flushed) == 3
    assert flushed[:-40].count(1) == 1
    assert [slots for slots in kept if slots] == [1, 2] and [slots for slots in gone if slots] == [
        3
    ]
