"""The receiver against the golden model, with words that are not what they were."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.link.link_receiver import LinkReceiver

from tests.gateware.models.cable import play
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.link import (
    END_BAD_WORD,
    END_WORD,
    flow_word,
    frame,
    interleave,
    nonce_word,
    ping_word,
    pong_word,
    receive,
    resume_word,
    start_word,
)

from tests.gateware.link.items import collect, random_words

CHANNELS = 4
IDLE = flow_word(0x80)
FILLERS = [IDLE, flow_word(0x82), nonce_word(0x1234), ping_word(7), pong_word(200)]


class Listener:
    """A receiver to which words are played; (data, k, code_error, disparity_error) of the last two
    are optional.
    """

    def __init__(self, words, rotate=0, up=lambda n: True):
        self.dut = LinkReceiver(CHANNELS)
        self.packets = [[] for _ in range(CHANNELS)]
        self.errors = [0, 0]
        self.misrouted = 0
        self.words = self._rotated(
            [(*word, 0, 0)[:4] for word in [IDLE] * 5 + words + [IDLE] * 3], rotate
        )
        self.up = up
        run_simulation(self.dut, [play(self.dut.sink, self.words), self._watch()])

    @staticmethod
    def _rotated(words, by):
        flat = [
            (d >> 8 * n & 0xFF, *(flags >> n & 1 for flags in rest))
            for d, *rest in words
            for n in range(4)
        ]
        flat = [(0, 0, 0, 0)] * by + flat[: len(flat) - by]
        return [
            tuple(
                sum(s[i] << (8 * n if i == 0 else n) for n, s in enumerate(flat[at : at + 4]))
                for i in range(4)
            )
            for at in range(0, len(flat), 4)
        ]

    def _watch(self):
        decoder = self.dut.decoder
        for n in range(len(self.words) + 2):
            yield self.dut.up.eq(int(self.up(n)))
            yield decoder.hunt.eq(int(n < 6))
            for source in self.dut.sources:
                yield source.ready.eq(1)
            self.errors[0] += yield decoder.code_error
            self.errors[1] += yield decoder.disparity_error
            self.misrouted += yield self.dut.misrouted
            for source, packets in zip(self.dut.sources, self.packets):
                yield from collect(source, packets)
            yield


def packets_of(random, count, channels=range(CHANNELS), longest=30):
    return {
        channel: [(random_words(random, longest), random.random() < 0.2) for _ in range(count)]
        for channel in channels
    }


@pytest.mark.parametrize("rotate", range(4))
def test_interleaved_packets_of_all_channels_come_out_of_any_lane(rotate, seed):
    random = Random(seed + rotate)
    packets = packets_of(random, 5)
    symbols = interleave(random, packets, lambda: random.choices(FILLERS, k=random.randrange(3)))
    heard = Listener(symbols, rotate)
    assert heard.packets == [
        [(words, not bad) for words, bad in packets[n]] for n in range(CHANNELS)
    ]
    assert heard.packets == receive(symbols).packets
    assert heard.errors == [0, 0]


def damage(random, symbols, share):
    """Symbols with errors that a decoder sees and with errors that it does not see, words lost and
    doubled, bursts.
    """
    out, burst = [], 0
    for data, k in symbols:
        burst = max(burst - 1, 0) or (random.randrange(1, 10) if random.random() < share / 4 else 0)
        if not burst and random.random() >= share:
            out.append((data, k))
            continue
        how = random.randrange(5) if not burst else 0
        if how == 0:
            out.append((data ^ random.getrandbits(32), k, 1 << random.randrange(4), 0))
        elif how == 1:
            out.append((data, k, 0, 1 << random.randrange(4)))
        elif how == 2:
            out.append(
                (
                    data ^ 1 << random.randrange(32),
                    k ^ (random.getrandbits(4) & random.getrandbits(4)),
                )
            )
        elif how == 3:
            out += [(data, k)] * 2
        # else it is lost
    return out


def model_word(word):
    return *word[:2], any(word[2:])


@pytest.mark.parametrize("share", [0.01, 0.03, 0.1])
def test_whatever_befalls_the_symbols_the_receiver_does_as_the_model(share, seed):
    random = Random(seed)
    symbols = interleave(random, packets_of(random, 20), lambda: [IDLE] * (random.random() < 0.1))
    symbols = damage(random, symbols, share)
    model = receive(map(model_word, symbols))
    heard = Listener(symbols)
    assert [
        [p for p in packets if isinstance(p, tuple)] for packets in heard.packets
    ] == model.packets
    assert sum(good for packets in model.packets for _, good in packets) > 2 and model.wrongs > 5


def test_every_word_of_interleaved_packets_in_error_ends_all_that_are_begun(seed):
    """Also each START, RESUME and END. What comes out good is what went in, in order."""
    random = Random(seed)
    packets = packets_of(random, 2, longest=6)
    symbols = interleave(random, packets)
    broken = [
        symbols[:at] + [(*symbols[at], 1 << at % 4, 0)] + symbols[at + 1 :]
        for at in range(len(symbols))
    ]
    heard = Listener([word for words in broken for word in words])
    models = [receive(map(model_word, words)) for words in broken]
    assert heard.errors == [len(symbols), 0]
    for n in range(CHANNELS):
        assert heard.packets[n] == [packet for model in models for packet in model.packets[n]]
        for model in models:
            good, sent = [words for words, good in model.packets[n] if good], iter(packets[n])
            assert all(any(words == other and not bad for other, bad in sent) for words in good)


def test_a_packet_whose_route_does_not_end_here_is_dropped_and_counted(seed):
    random = Random(seed)
    symbols = []
    for _ in range(40):
        channel, prefix = random.randrange(CHANNELS), random.randrange(8)
        words = random_words(random, 8)
        symbols += [start_word(channel, prefix), *[(word, 0) for word in words], END_WORD]
    heard, model = Listener(symbols), receive(symbols)
    assert heard.packets == model.packets and sum(map(len, model.packets)) >= 1
    assert heard.misrouted == model.misrouted >= 20


def test_several_packets_end_in_one_cycle():
    words = [w for n in range(CHANNELS) for w in (start_word(n), (n, 0), (n + 16, 0))]
    heard = Listener(words + [(0, 0, 1, 0)] + [resume_word(2), (5, 0), END_WORD] + frame([6], 2))
    assert heard.packets == [
        [([n, n + 16], False)] + [([6], True)] * (n == 2) for n in range(CHANNELS)
    ]


def test_a_start_inside_a_packet_of_its_own_channel_ends_all_and_begins():
    heard = Listener(
        [start_word(1), (1, 0), start_word(2), (2, 0), start_word(1), (3, 0), END_WORD]
    )
    assert heard.packets == [[], [([1], False), ([3], True)], [([2], False)], []]


def test_words_after_an_end_without_resume_end_what_is_begun():
    for lost in ((9, 0), END_WORD, END_BAD_WORD):
        heard = Listener(
            [start_word(2), (1, 0), *frame([2], 0), lost, resume_word(2), (3, 0), END_WORD]
        )
        assert heard.packets == [[([2], True)], [], [([1], False)], []]


def test_a_resume_of_a_packet_that_was_ended_here_disturbs_no_other():
    heard = Listener(
        [
            start_word(2),
            (1, 0),
            (0, 0, 1, 0),
            start_word(0),
            (2, 0),
            resume_word(2),
            (3, 0),
            END_WORD,
            resume_word(0),
            (4, 0),
            END_WORD,
        ]
    )
    assert heard.packets == [[([2, 4], True)], [], [([1], False)], []]


def test_an_end_that_says_bad_ends_only_its_own():
    heard = Listener(
        [start_word(2), (1, 0), *frame([2, 3], 1, bad=True), resume_word(2), (4, 0), END_WORD]
    )
    assert heard.packets == [[], [([2, 3], False)], [([1, 4], True)], []]


def test_words_that_contradict_themselves_are_none():
    """One bit of each half symbol of each control word turned over, and other K flags, inside a
    packet.
    """
    words = (*FILLERS, start_word(1), resume_word(2), END_WORD, END_BAD_WORD)
    broken = [
        (data ^ flip, k)
        for data, _ in words
        for flip, k in [(1 << bit, 1) for bit in range(3, 32, 4)] + [(0, 3), (0, 9)]
    ]
    heard = Listener(
        [word for wrong in broken for word in (start_word(2), (1, 0), wrong, (2, 0), END_WORD)]
    )
    assert heard.packets == [[], [], [([1], False)] * len(broken), []]


def test_losing_the_link_ends_every_packet():
    words = [w for n in range(CHANNELS) for w in (start_word(n), (n, 0))]
    heard = Listener(words + [IDLE] * 10 + frame([7], 3), up=lambda n: n < 18)
    assert heard.packets == [[([n], False)] for n in range(CHANNELS)]


def test_flow_nonce_and_pings_are_told_once_each():
    dut, seen = LinkReceiver(CHANNELS), []

    def watch():
        for _ in range(len(FILLERS) + 3):
            for name in ("flow", "nonce", "ping", "pong"):
                if (yield getattr(dut.decoder, f"is_{name}")):
                    seen.append(
                        (
                            name,
                            (yield dut.decoder.data) >> 8 & (0xFFFF if name == "nonce" else 0xFF),
                        )
                    )
            yield

    run_simulation(dut, [play(dut.sink, FILLERS), watch()])
    assert seen == [("flow", 0x80), ("flow", 0x82), ("nonce", 0x1234), ("ping", 7), ("pong", 200)]


def test_a_packets_last_word_is_there_one_cycle_after_its_end(figure):
    dut, cycles = LinkReceiver(CHANNELS), []

    def watch():
        yield dut.up.eq(1)
        for n in range(12):
            if (yield dut.sources[0].valid) and (yield dut.sources[0].last):
                cycles.append(n)
            if (
                (yield dut.sink.valid)
                and (yield dut.sink.k)
                and (yield dut.sink.data) & 0xFF == 0xFD
            ):
                cycles.append(n)
            yield

    run_simulation(dut, [play(dut.sink, [IDLE, *frame([1, 2], 0), IDLE]), watch()])
    assert figure(
        "link-receiver-latency", cycles[1] - cycles[0], "cycles from a word's successor", at_most=1
    )
