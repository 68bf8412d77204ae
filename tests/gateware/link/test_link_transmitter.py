"""The transmitter: what it interleaves, the golden model takes apart."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.link.symbols import (
    FLOW_PAIRS,
    FLOW_PERIOD_WORDS,
    FLOW_REPEATS,
    FLOW_REPEAT_WORDS,
    NONCE_PERIOD_WORDS,
    NONCE_TRAIN_WORDS,
    PONG_REST_WORDS,
)
from dibber.link.link_transmitter import LinkTransmitter, TURN_WORDS

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.link import (
    END_BAD_WORD,
    END_WORD,
    flow_word,
    meaning,
    nonce_word,
    ping_word,
    pong_word,
    receive,
    resume_word,
    start_word,
)

from tests.gateware.link.items import random_words, word_items

CHANNELS = 4
CONTROL, EXPRESS, BULK, SPARE = range(CHANNELS)


class Sender:
    """A transmitter whose words are logged. `packets`: for each channel a list of (words, bad)."""

    def __init__(self, random, packets, busy=1.0, serial_busy=1.0):
        self.dut, self.log, self.random, self.serial_busy = (
            LinkTransmitter(CHANNELS),
            [],
            random,
            serial_busy,
        )
        self.ended = 0
        self.items = {n: list(word_items(packets.get(n, []))) for n in range(CHANNELS)}
        self.processes = [
            self._start(),
            self._serial(),
            *[
                source(self.dut.sinks[n], growing(items), random, busy)
                for n, items in self.items.items()
            ],
        ]

    def offer(self, channel, words, bad=False):
        self.items[channel] += word_items([(words, bad)])

    def _start(self):
        yield self.dut.up.eq(1)
        yield self.dut.go.eq(15)
        yield self.dut.flow.eq(0x80)
        yield self.dut.nonce.eq(0xBEEF)

    @passive
    def _serial(self):
        while True:
            ready = int(self.random.random() < self.serial_busy)
            yield self.dut.source.ready.eq(ready)
            yield
            if ready and (yield self.dut.source.valid):
                self.log.append(((yield self.dut.source.data), (yield self.dut.source.k)))
                self.ended += self.log[-1] in (END_WORD, END_BAD_WORD)

    def run(self, *more):
        run_simulation(self.dut, [*self.processes, *more])

    def kinds(self):
        return [meaning(word, CHANNELS)[0] for word in self.log]

    def packets(self):
        """What the model makes of it: every word can stand where it does."""
        assert "wrong" not in self.kinds()
        receiver = receive(self.log, CHANNELS)
        assert receiver.wrongs == 0
        return receiver.packets

    def until(self, count, cycles):
        """Until `count` packets have ended."""
        return finish(lambda: self.ended == count, cycles)

    def without_flow(self):
        return [word for word in self.log if meaning(word)[0] != "flow"]


def test_packets_of_all_channels_are_interleaved_as_the_model_takes_them(seed):
    random = Random(seed)
    packets = {
        n: [(random_words(random), random.random() < 0.2) for _ in range(12)]
        for n in range(CHANNELS)
    }
    sender = Sender(random, packets, busy=0.5, serial_busy=0.8)

    def disturb():
        """STOP and GO, pings and pongs meanwhile."""
        while True:
            yield sender.dut.go.eq(15 & ~(random.getrandbits(4) & random.getrandbits(4)))
            for endpoint in (sender.dut.ping, sender.dut.pong):
                if random.random() < 0.2:
                    yield endpoint.valid.eq(1)
            for _ in range(random.randrange(1, 20)):
                yield
                for endpoint in (sender.dut.ping, sender.dut.pong):
                    if (yield endpoint.ready):
                        yield endpoint.valid.eq(0)

    sender.run(passive(disturb)(), sender.until(12 * CHANNELS, 6000))
    assert sender.packets() == [
        [(words, not bad) for words, bad in packets[n]] for n in range(CHANNELS)
    ]
    assert min(map(sender.kinds().count, ("ping", "pong", "flow"))) > 5


def test_control_starts_a_word_after_it_is_ready_inside_the_packets_of_all_others(seed, figure):
    random = Random(seed)
    sender = Sender(
        random, {n: [(random_words(random, 2) * 700, False)] for n in (EXPRESS, BULK, SPARE)}
    )
    waited = []

    def offer():
        for _ in range(40):
            for _ in range(random.randrange(2, 30)):
                yield
            at = len(sender.log)
            sender.offer(CONTROL, random_words(random, 12))
            yield from finish(lambda: start_word(CONTROL) in sender.log[at:], 20)
            # The item is on the sink a cycle after it is offered, and its START in the log 2 cycles
            # after that.
            waited.append(sender.log[at:].index(start_word(CONTROL)) - 2)
            yield from finish(lambda: END_WORD in sender.log[at:], 40)

    sender.run(offer())
    sender.packets()
    # A flow word, or a pair of them, may stand in between.
    assert sum(words == min(waited) for words in waited) > 30
    assert figure(
        "link-control-wait", max(waited), "words until START, inside a bulk packet", at_most=3
    )


def test_an_express_packet_goes_inside_a_bulk_packet_and_the_rest_with_resume(seed):
    sender = Sender(Random(seed), {BULK: [(list(range(40)), False)]})

    def offer():
        yield from finish(lambda: (9, 0) in sender.log, 40)
        sender.offer(EXPRESS, [100, 101])
        yield from sender.until(2, 200)

    sender.run(offer())
    words = sender.without_flow()
    start = words.index(start_word(EXPRESS))
    assert words[start : start + 6] == [
        start_word(EXPRESS),
        (100, 0),
        (101, 0),
        END_WORD,
        resume_word(BULK),
        (words[start - 1][0] + 1, 0),
    ]
    assert sender.packets() == [[], [([100, 101], True)], [(list(range(40)), True)], []]


def test_bulk_has_its_words_after_each_express_packet(seed):
    sender = Sender(
        Random(seed),
        {
            EXPRESS: [([7] * 20, False) for n in range(30)],
            BULK: [([n] * 100, False) for n in range(100, 112)],
        },
    )
    sender.run(sender.until(30, 2500))
    words = sender.without_flow()
    ends = [i for i, word in enumerate(words) if word == start_word(EXPRESS)]
    turns = [sum(not k and data >= 100 for data, k in words[a:b]) for a, b in zip(ends, ends[1:])]
    assert len(turns) > 20 and set(turns) == {TURN_WORDS}


def test_express_waits_for_no_turn_of_a_bulk_that_has_nothing_or_is_stopped(seed):
    sender = Sender(
        Random(seed), {EXPRESS: [([n] * 5, False) for n in range(30)], BULK: [([7] * 9, False)]}
    )

    def stop():
        yield from sender._start()
        yield sender.dut.go.eq(0b1011)
        yield from sender.until(30, 400)

    run_simulation(sender.dut, [*sender.processes[1:], stop()])
    first, last = sender.log.index(start_word(EXPRESS)), len(sender.log)
    assert last - first <= 30 * 7 + 5
    assert sender.packets()[BULK] == []


def test_express_goes_on_when_bulk_has_less_than_its_turn(seed):
    sender = Sender(
        Random(seed), {EXPRESS: [([n] * 5, False) for n in range(10)], BULK: [([7] * 9, False)]}
    )
    sender.run(sender.until(11, 200))
    assert sender.packets()[EXPRESS] == [([n] * 5, True) for n in range(10)]


def test_stop_holds_a_channel_wherever_it_is_and_no_other(seed):
    for stopped in range(CHANNELS):
        sender = Sender(
            Random(seed),
            {n: [(list(range(n << 8, (n << 8) + 60)), False)] for n in range(CHANNELS)},
        )

        def stop():
            yield from finish(lambda: (stopped << 8 | 9, 0) in sender.log, 400)
            yield sender.dut.go.eq(15 & ~(1 << stopped))
            # The END of the last word may still go, not another word.
            yield
            yield
            at = len(sender.log)
            yield from sender.until(CHANNELS - 1, 400)
            assert not any(data >> 8 == stopped and not k for data, k in sender.log[at + 1 :])
            assert (yield sender.dut.waits)
            yield sender.dut.go.eq(15)
            yield from sender.until(CHANNELS, 100)
            assert not (yield sender.dut.waits)

        sender.run(stop())
        assert sender.packets() == [
            [(list(range(n << 8, (n << 8) + 60)), True)] for n in range(CHANNELS)
        ]


def test_flow_words_come_at_once_when_they_change_soon_again_and_in_every_256_words(seed):
    random = Random(seed)
    sender = Sender(random, {BULK: [(random_words(random, 2) * 14000, False)]})
    changed = []

    def change():
        for _ in range(150):
            yield
        yield sender.dut.flow.eq(0x82)
        changed.append(len(sender.log))
        for _ in range((2 * FLOW_PAIRS + 3) * FLOW_PERIOD_WORDS):
            yield

    sender.run(change())
    kinds = sender.kinds()
    data = [i for i, kind in enumerate(kinds) if kind == "data"]
    flows = [i for i, kind in enumerate(kinds) if kind == "flow" and data[0] < i < data[-1]]
    gaps = [b - a for a, b in zip(flows, flows[1:])]
    assert FLOW_PERIOD_WORDS - 1 <= max(gaps) <= FLOW_PERIOD_WORDS
    told = [i for i, word in enumerate(sender.log) if word == flow_word(0x82)]
    assert told[0] - changed[0] <= 4
    assert told[FLOW_REPEATS] - told[0] <= FLOW_REPEATS * FLOW_REPEAT_WORDS
    # Once in FLOW_PAIRS periods, two of them together.
    late = gaps[gaps.index(max(gaps)) :]
    pairs = [i for i, gap in enumerate(late) if gap == 1]
    assert len(pairs) >= 2 and all(b - a == FLOW_PAIRS + 1 for a, b in zip(pairs, pairs[1:]))


def test_pairs_of_flow_words_come_whatever_makes_the_single_ones(seed):
    """Changes of the flow state, and the one idle word between packets: neither leaves any to
    become periodic.
    """
    sender = Sender(Random(seed), {})
    for n in range(100):
        sender.items[BULK] += [*word_items([([n] * 60, False)]), None, None]

    def change():
        for n in range(40):
            yield sender.dut.flow.eq(0x80 | n % 2)
            for _ in range(150):
                yield

    sender.run(change())
    kinds = sender.kinds()[100:-100]
    flows = [i for i, kind in enumerate(kinds) if kind == "flow"]
    pairs = [n for n, (a, b) in enumerate(zip(flows, flows[1:])) if b - a == 1]
    assert len(pairs) > 5 and max(b - a for a, b in zip(pairs, pairs[1:])) == FLOW_PAIRS + 1
    assert max(b - a for a, b in zip(flows, flows[1:])) < 70, (
        "a flow word was due for its age: the test shows nothing"
    )


def test_nonces_never_take_the_place_of_a_packets_word(seed):
    sender = Sender(Random(seed), {BULK: [([n] * 4, False) for n in range(300)]})

    def wait():
        yield sender.dut.up.eq(0)
        for _ in range(200):
            yield
        training = len(sender.log)
        greeted = [i for i, word in enumerate(sender.log) if word == nonce_word(0xBEEF)]
        assert max(b - a for a, b in zip(greeted, greeted[1:])) <= NONCE_TRAIN_WORDS + 1
        yield sender.dut.up.eq(1)
        yield from sender.until(300, 2200)
        assert sender.kinds()[training + 3 :].count("nonce") == 0
        idle = len(sender.log)
        for _ in range(2 * NONCE_PERIOD_WORDS + 10):
            yield
        assert 2 <= sender.kinds()[idle:].count("nonce") <= 3

    run_simulation(sender.dut, [*sender.processes, wait()])


def test_a_pong_goes_before_all_else_and_a_ping_before_packets(seed):
    sender = Sender(Random(seed), {BULK: [([1] * 100, False)]})

    def ask():
        for _ in range(20):
            yield
        for endpoint, number in ((sender.dut.ping, 5), (sender.dut.pong, 6)):
            yield endpoint.number.eq(number)
            yield endpoint.valid.eq(1)
        yield
        yield sender.dut.pong.valid.eq(0)
        assert (yield sender.dut.pong.ready) and not (yield sender.dut.ping.ready)
        yield
        assert (yield sender.dut.ping.ready)
        yield sender.dut.ping.valid.eq(0)
        yield from sender.until(1, 200)

    sender.run(ask())
    at = sender.log.index(pong_word(6))
    assert ping_word(5) in sender.log[at : at + 4]
    assert sender.packets()[BULK] == [([1] * 100, True)]


def test_pings_without_end_take_one_word_in_so_many_and_keep_no_flow_word_waiting(seed):
    random = Random(seed)
    sender = Sender(random, {BULK: [(random_words(random, 2) * 1500, False)]})

    def ask():
        yield sender.dut.pong.valid.eq(1)  # as one ping after the other makes it
        for number in range(1, 1700):
            yield sender.dut.pong.number.eq(number % 256)
            if number == 700:
                yield sender.dut.flow.eq(0x84)
            yield

    sender.run(ask(), sender.until(1, 2000))
    kinds = sender.kinds()
    pongs, flows = (
        [i for i, kind in enumerate(kinds) if kind == name] for name in ("pong", "flow")
    )
    gaps = lambda places: [b - a for a, b in zip(places, places[1:])]
    assert set(gaps(pongs)) == {PONG_REST_WORDS + 1}
    assert max(gaps(flows)) <= FLOW_PERIOD_WORDS
    # The newest ping is the one that is answered, and a change of the flow state is told at once.
    numbers = [sender.log[i][0] >> 8 & 0xFF for i in pongs]
    assert all((b - a) % 256 == PONG_REST_WORDS + 1 for a, b in zip(numbers, numbers[1:]))
    told = sender.log.index(flow_word(0x84))
    assert told - 2 <= min(i for i in range(700, len(kinds)) if kinds[i] == "flow") <= told


def test_packets_begun_when_the_link_is_lost_go_nowhere_and_the_next_ones_whole(seed):
    random = Random(seed)
    sender = Sender(
        random,
        {n: [([n] * 100, False), ([n + 16, n + 32], False)] for n in range(CHANNELS)},
        busy=0.15,
    )

    def lose():
        yield from finish(lambda: all((n, 0) in sender.log for n in range(CHANNELS)), 900)
        yield sender.dut.up.eq(0)
        yield
        yield
        sender.log.clear()
        sender.ended = 0
        # The link is back before any of the rests has ended.
        yield sender.dut.up.eq(1)
        yield from sender.until(CHANNELS, 2000)

    sender.run(lose())
    assert sender.packets() == [[([n + 16, n + 32], True)] for n in range(CHANNELS)]


def test_a_beginning_inside_a_packet_ends_it_as_bad_even_when_another_goes_between(seed):
    sender = Sender(Random(seed), {})
    items = word_items([([1, 2, 3], False), ([4, 5], False)])
    sender.items[BULK] += items[:2]  # its sender is reset before its last word

    def reset():
        yield from finish(lambda: (2, 0) in sender.log, 40)
        sender.offer(CONTROL, [9])
        yield from sender.until(1, 20)
        sender.items[BULK] += items[3:]
        yield from sender.until(3, 40)

    sender.run(reset())
    assert sender.packets() == [[([9], True)], [], [([1, 2], False), ([4, 5], True)], []]
    at = sender.log.index(resume_word(BULK))
    assert sender.log[at + 1] == END_BAD_WORD


def test_long_packets_fill_the_link(seed, figure):
    """1047 words of a packet carry 1024 of contiguous payload: docs/design/packets.md."""
    sender = Sender(Random(seed), {BULK: [([0] * 1047, False)] * 6})
    sender.run(sender.until(6, 7000))
    starts = [i for i, word in enumerate(sender.log) if word == start_word(BULK)]
    assert figure(
        "link-payload-share-saturated",
        100 * 1024 * 4 / (starts[5] - starts[1]),
        "% of link words",
        at_least=97.1,
    )
