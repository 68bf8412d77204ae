"""Two link ports and a cable: packets of all channels, flow control, and what faults do to them."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import LINK_STATE
from dibber.link import training
from dibber.link.port import LinkPort

from tests.gateware.models.drive import finish, source
from tests.gateware.models.link import meaning

from tests.gateware.link.items import random_words, word_items
from tests.gateware.link.pair import CHANNELS, Pair, pause, pulse

CONTROL, EXPRESS, BULK, SPARE = range(CHANNELS)


def packets_of(random, count, longest=30, bad=0.1):
    return {
        n: [(random_words(random, longest), random.random() < bad) for _ in range(count)]
        for n in range(CHANNELS)
    }


@pytest.mark.parametrize("rotate", [0, 3])
def test_packets_of_all_channels_are_carried(rotate, seed):
    random = Random(seed)
    sent = packets_of(random, 6)
    pair = Pair(random, rotate=rotate, busy=lambda: random.random() < 0.9)
    pair.run(
        *pair.send(sent, 0.6),
        finish(lambda: all(len(pair.whole(n)) == 6 for n in range(CHANNELS)), 2000),
    )
    assert pair.packets == [[(words, not bad) for words, bad in sent[n]] for n in range(CHANNELS)]
    assert {
        name: count
        for counts in pair.counts.values()
        for name, count in counts.items()
        if count and name != "WORDS_RECEIVED"
    } == {"LINK_TRAINED": 1}


@pytest.mark.parametrize("channels", [2, 3])
def test_a_port_may_have_fewer_channels(channels, seed):
    random = Random(seed)
    sent = {n: [(random_words(random), False) for _ in range(4)] for n in range(channels)}
    pair = Pair(random, ports=lambda: LinkPort(channels))
    pair.run(
        *pair.send(sent, 0.6), finish(lambda: all(len(pair.whole(n)) == 4 for n in sent), 1000)
    )
    assert pair.packets == [[(words, True) for words, _ in sent[n]] for n in sent]


def test_stop_and_go_under_a_slow_sink_lose_nothing_at_40_words_each_way(seed):
    random = Random(seed)
    sent = [(random_words(random, 2) * 90, False) for _ in range(14)]
    pair = Pair(random, delay=40)
    pair.take[BULK] = lambda: random.random() < 0.3

    def check():
        yield from finish(lambda: len(pair.whole(BULK)) == 14, 6500)
        # docs/design/backpressure.md: both ways of the cable, and 24 words for the logic of both
        # ends.
        assert 384 // 4 <= (yield pair.b.slack_high[BULK]) <= (384 + 2 * 40 + 24) // 4

    pair.run(*pair.send({BULK: sent}), check())
    assert pair.packets[BULK] == [(words, True) for words, _ in sent]
    assert pair.counts["b"]["SLACK_OVERFLOW"] == 0
    assert pair.counts["b"]["STOPS_SENT"] == pair.counts["a"]["STOPS_RECEIVED"] >= 1
    assert pair.counts["a"]["STOPPED_CYCLES"] > 0
    assert pair.counts["b"]["STOPPING_CYCLES"] > 0 == pair.counts["a"]["STOPPING_CYCLES"]


@pytest.mark.parametrize("stopped", [EXPRESS, BULK])
def test_a_channel_that_is_stopped_leaves_the_others(stopped, seed):
    random = Random(seed)
    sent = {
        n: [(random_words(random, 2) * 40, False) for _ in range(16 if n == stopped else 3)]
        for n in range(CHANNELS)
    }
    pair = Pair(random)
    pair.take[stopped] = lambda: False

    def check():
        yield from finish(lambda: pair.counts["a"]["STOPS_RECEIVED"], 1600)
        yield from finish(
            lambda: all(len(pair.whole(n)) == 3 for n in range(CHANNELS) if n != stopped), 1000
        )
        assert (yield pair.a.stopped) == 1 << stopped
        assert pair.words(stopped) == 0
        pair.take[stopped] = lambda: True
        yield from finish(lambda: len(pair.whole(stopped)) == 16, 2000)

    pair.run(*pair.send(sent), check())
    assert pair.packets == [[(words, True) for words, _ in sent[n]] for n in range(CHANNELS)]


@pytest.mark.parametrize("rate", [0.005, 0.03])
def test_what_comes_out_good_went_in_and_in_order_whatever_errors_strike(rate, seed):
    """Errors of every kind that the decoder of a transceiver sees, alone and in bursts, in any
    word.
    """
    random, burst = Random(seed), [0]

    def fault(data, k):
        burst[0] = max(burst[0] - 1, 0)
        if random.random() < rate / 4:
            burst[0] = random.randrange(2, 20)
        if not burst[0] and random.random() >= rate:
            return data, k, 0, 0
        errors = 1 << random.randrange(4)
        return (
            data ^ random.getrandbits(32),
            k ^ random.getrandbits(4),
            *random.choice([(errors, 0), (0, errors)]),
        )

    sent = packets_of(random, 20)
    pair = Pair(random, fault=fault)
    pair.take[BULK] = lambda: random.random() < 0.8
    # Each sends a last packet when the errors are over, which ends what was begun.
    last = {n: [([n], False)] for n in range(CHANNELS)}
    waiting = set()

    def items(n):
        yield from word_items(sent[n])
        waiting.add(n)
        while pair.fault is fault:
            yield None
        yield from word_items(last[n])

    def check():
        yield from finish(lambda: len(waiting) == CHANNELS, 4000)
        yield from pause(10)
        pair.fault = lambda data, k: (data, k, 0, 0)
        yield from finish(lambda: all(pair.packets[n][-1:] == [([n], True)] for n in last), 500)

    pair.run(*[source(pair.a.sinks[n], items(n), random, 0.3) for n in range(CHANNELS)], check())
    good = 0
    for n in range(CHANNELS):
        rest = iter(sent[n] + last[n])
        for words, whole in pair.packets[n]:
            assert not whole or any(words == other and not bad for other, bad in rest)
            good += whole
    assert 10 < good < 20 * CHANNELS
    assert pair.counts["b"]["CODE_ERRORS"] and pair.counts["b"]["DISPARITY_ERRORS"]


def test_a_cable_pulled_inside_interleaved_packets_ends_them_and_the_next_ones_come_whole(seed):
    random = Random(seed)
    pair = Pair(random)
    sent = {
        n: [(list(range(n << 8, (n << 8) + 150)), False), ([n, n + 1], False)]
        for n in range(CHANNELS)
    }

    def pull():
        yield from finish(lambda: all(pair.words(n) > 3 for n in range(CHANNELS)), 900)
        pair.signal = False
        yield from pause(20)
        yield from pair.state(LINK_STATE.DOWN, LINK_STATE.DOWN, 1)
        pair.signal = True
        yield from pair.up()
        yield from finish(lambda: all(len(pair.whole(n)) == 2 for n in range(CHANNELS)), 1500)

    pair.run(*pair.send(sent, 0.15), pull())
    for n in range(CHANNELS):
        (cut, whole), following = pair.packets[n]
        assert not whole and cut == sent[n][0][0][: len(cut)] and following == ([n, n + 1], True)
    assert [pair.counts[end][name] for end in "ab" for name in ("LINK_LOST", "LINK_TRAINED")] == [
        1,
        2,
        1,
        2,
    ]


def test_retraining_loses_the_begun_packets_and_nothing_above_is_reset(seed):
    """What waits in the slack buffer stays, the packet that was under way ends as bad, and all
    others are whole.
    """
    random = Random(seed)
    pair = Pair(random)
    sent = [(random_words(random, 2) * 50, False) for _ in range(12)]
    pair.take[BULK] = lambda: random.random() < 0.6

    def retrain():
        for port in (pair.b, pair.a):
            count = len(pair.whole(BULK))
            yield from finish(lambda: len(pair.whole(BULK)) >= count + 3, 1000)
            yield from pulse(port.retrain)
            assert (yield port.state) == LINK_STATE.DOWN
            yield from pair.up()
        yield from finish(lambda: pair.packets[BULK][-1:] == [(sent[-1][0], True)], 1500)

    pair.run(*pair.send({BULK: sent}), retrain())
    rest = iter(sent)
    for words, whole in pair.packets[BULK]:
        assert any(
            words == other[: len(words)] and (len(words) == 50 or not whole) for other, _ in rest
        )
    assert 1 <= sum(not whole for _, whole in pair.packets[BULK]) <= 4
    assert len(pair.packets[BULK]) >= 10
    assert pair.counts["a"]["LINK_LOST"] == pair.counts["b"]["LINK_LOST"] == 2


def test_silence_takes_the_link_down_on_both_ends(seed, monkeypatch):
    monkeypatch.setattr(training, "SILENCE_WORDS", 256)
    pair = Pair(Random(seed))

    def silence():
        yield from pair.up()
        pair.fault = lambda data, k: (data, k, 1, 0)
        yield from pause(200)
        yield from pair.state(LINK_STATE.UP, LINK_STATE.UP, 1)
        yield from pair.state(LINK_STATE.ALIGN, LINK_STATE.DOWN, 120)
        pair.fault = lambda data, k: (data, k, 0, 0)
        yield from pair.up()

    pair.run(silence())
    assert pair.counts["a"]["LINK_LOST"] == pair.counts["b"]["LINK_LOST"] == 1
    assert pair.counts["b"]["CODE_ERRORS"] > 200


@pytest.mark.parametrize("delay, rotate", [(1, 0), (7, 2), (40, 0)])
def test_a_ping_gives_the_cables_length_in_words(delay, rotate, seed):
    random = Random(seed)
    pair = Pair(random, delay=delay, rotate=rotate)
    trips = []

    def ping():
        yield from pair.up()
        assert (yield pair.a.round_trip) == 0
        for _ in range(4):
            yield from pulse(pair.a.ping)
            assert (yield pair.a.round_trip) == 0
            yield from pause(2 * delay + 30)
            trips.append((yield pair.a.round_trip))
            yield from pause(random.randrange(20))

    pair.run(*pair.send({BULK: [(random_words(random, 2) * 800, False)]}), ping())
    # A word played into the cable arrives `delay` + 1 cycles later; a rotated one is complete a
    # cycle after it.
    assert trips == [2 * (delay + 1) + bool(rotate)] * 4
    assert not any(not whole for _, whole in pair.whole(BULK))


def test_words_received_and_slack_levels_are_counted_since_the_link_came_up(seed):
    pair = Pair(Random(seed))
    pair.take[BULK] = lambda: False

    def check():
        yield from finish(lambda: pair.counts["a"]["LINK_TRAINED"], 100)
        yield from finish(lambda: len([w for w in pair.log if meaning(w)[0] == "end"]) == 1, 300)
        yield from pause(20)
        assert (yield pair.b.slack_high[BULK]) == 100 // 4 and (
            yield pair.b.slack_high[EXPRESS]
        ) == 0
        pair.take[BULK] = lambda: True
        yield from finish(lambda: pair.whole(BULK), 200)
        assert (yield pair.b.slack_high[BULK]) == 100 // 4
        counted = pair.counts["b"]["WORDS_RECEIVED"]
        yield from pause(50)
        assert pair.counts["b"]["WORDS_RECEIVED"] == counted + 50
        yield from pulse(pair.b.retrain)
        yield from pair.up()
        yield
        assert (yield pair.b.slack_high[BULK]) == 0

    pair.run(*pair.send({BULK: [([5] * 100, False)]}), check())
