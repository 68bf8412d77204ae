"""What each port promises to the layer above, as tests: docs/design/port.md.

A sibling of LinkPort runs them with a class in its own test file:

    class TestMyPort(PortContract):
        def pair(self, random, **options):
            return MyPair(random, **options)

A pair has two ports `a` and `b`, of which `a` sends, and these attributes, as
`gateware.link.pair.Pair`: `send`, `run`, `up`, `packets`, `whole`, `words`, `take`, `signal`,
`fault`, `counts`.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.interface.description import COUNTERS, LINK_REASON, LINK_STATE
from tests.gateware.models.drive import drive, finish


def random_packets(random, channels, count, longest=40, bad=0.1):
    """{channel: [(words, bad)]}; lengths from one word on."""
    return {
        n: [
            (
                [random.getrandbits(32) for _ in range(random.randrange(1, longest))],
                random.random() < bad,
            )
            for _ in range(count)
        ]
        for n in range(channels)
    }


def pause(cycles):
    for _ in range(cycles):
        yield


class PortContract:
    """The promises. `sunk` are channels whose source must not be stalled. `stores`: a packet leaves
    only when its sink has taken all of it.
    """

    sunk, stores = (), False
    # Cycles in which a pair comes UP, and in which a short packet comes through.
    training, passage = 400, 200

    def pair(self, random):
        raise NotImplementedError

    # Streams --------------------------------------------------------------------------------------

    def test_it_has_a_sink_and_a_source_for_each_channel(self, seed):
        pair = self.pair(Random(seed))
        for port in (pair.a, pair.b):
            assert len(port.sinks) == len(port.sources) == len(port.stopped)
            fields = ("data", "bad", "channel", "prefix", "first", "last", "valid", "ready")
            assert all(hasattr(end, name) for end in port.sinks + port.sources for name in fields)

    def test_packets_of_all_channels_come_whole_and_in_order_however_they_are_taken(self, seed):
        random = Random(seed)
        pair = self.pair(random)
        channels = len(pair.a.sinks)
        sent = random_packets(random, channels, 12)
        for n in range(channels):
            if n not in self.sunk:
                pair.take[n] = lambda: random.random() < 0.7

        def check():
            yield from finish(lambda: all(len(pair.whole(n)) == 12 for n in range(channels)), 12000)

        pair.run(*pair.send(sent, 0.8), check())
        # `collect` in the pair has seen that `first` and `last` enclose each packet.
        expected = [[(words, not bad) for words, bad in sent[n]] for n in range(channels)]
        assert pair.packets == expected

    def test_a_channel_that_is_not_taken_delays_no_other_and_loses_nothing(self, seed):
        random = Random(seed)
        channels = len(self.pair(random).a.sinks)
        for stalled in [n for n in range(channels) if n not in self.sunk][::-2]:
            pair = self.pair(random)
            sent = random_packets(random, channels, 4, bad=0)
            # More than any buffer between the two layers.
            sent[stalled] = [(list(range(100)), False) for _ in range(14)]
            pair.take[stalled] = lambda: False
            others = [n for n in range(channels) if n != stalled]

            def check():
                yield from pair.up()
                yield from finish(
                    lambda: all(len(pair.whole(n)) == 4 for n in others),
                    # Before the stalled channel is stopped, it may have its share of the wire.
                    4000,
                )
                assert pair.words(stalled) == 0
                yield from pause(1600)
                assert not (yield pair.a.sinks[stalled].ready)
                pair.take[stalled] = lambda: True
                yield from finish(lambda: len(pair.whole(stalled)) == 14, 6000)

            pair.run(*pair.send(sent), check())
            expected = [[(words, True) for words, _ in sent[n]] for n in range(channels)]
            assert pair.packets == expected

    def test_an_offer_stands_until_it_is_taken(self, seed):
        random = Random(seed)
        pair = self.pair(random)
        channels = [n for n in range(len(pair.a.sinks)) if n not in self.sunk]
        sent = {n: [([n, n + 1], False)] for n in channels}
        for n in channels:
            pair.take[n] = lambda: False

        def check():
            yield from pair.up()
            yield from pause(self.passage)
            for _ in range(20):
                for n in channels:
                    source = pair.b.sources[n]
                    assert (yield source.valid) and (yield source.data) == n
                yield

        pair.run(*pair.send(sent), check())

    def test_a_packet_whose_sender_is_reset_ends_as_bad_and_the_next_one_comes(self, seed):
        pair = self.pair(Random(seed))

        def offer(sink, words):
            for values in words:
                yield from drive(sink, valid=1, **values)
                yield
                while not (yield sink.ready):
                    yield
            yield sink.valid.eq(0)

        def main():
            yield from pair.up()
            for n, sink in enumerate(pair.a.sinks):
                yield from offer(sink, [dict(data=1, first=1, last=0), dict(data=2, first=0)])
                yield from offer(
                    sink, [dict(data=3, first=1, last=0), dict(data=4, first=0, last=1)]
                )
                yield from finish(lambda: len(pair.whole(n)) == 2, self.passage)

        pair.run(main())
        for packets in pair.packets:
            (cut, good), after = packets
            assert not good and cut == [1, 2][: len(cut)] and after == ([3, 4], True)

    # State ----------------------------------------------------------------------------------------

    def test_up_is_a_state_and_has_no_reason(self, seed):
        pair, states = self.pair(Random(seed)), set()

        @passive
        def watch():
            while True:
                for port in (pair.a, pair.b):
                    state = yield port.state
                    states.add(state)
                    assert (yield port.up) == (state == LINK_STATE.UP)
                    none = (yield port.reason) == LINK_REASON.NONE
                    assert none == (state == LINK_STATE.UP)
                yield

        def main():
            yield
            yield from finish(lambda: LINK_STATE.UP in states, self.training)
            yield from pause(50)
            pair.signal = False
            yield from pair.state(LINK_STATE.DOWN, LINK_STATE.DOWN)
            pair.signal = True
            yield from pair.up()

        pair.run(main(), watch())
        assert {LINK_STATE.UP, LINK_STATE.DOWN} <= states

    def test_what_is_lost_between_the_ports_makes_no_packet_good_and_none_double(self, seed):
        """The wire is pulled again and again while all channels send."""
        random = Random(seed)
        pair = self.pair(random)
        channels = len(pair.a.sinks)
        sent = random_packets(random, channels, 60, bad=0)
        for queue in sent.values():
            for number, (words, _) in enumerate(queue):
                words[0] = number

        def main():
            for _ in range(8):
                yield from pair.up()
                yield from pause(random.randrange(50, 250))
                pair.signal = False
                yield from pause(random.randrange(1, 60))
                pair.signal = True
            yield from pair.up()
            last = [queue[-1][0] for queue in sent.values()]
            yield from finish(
                lambda: all(pair.packets[n][-1:] == [(last[n], True)] for n in range(channels)),
                12000,
            )

        pair.run(*pair.send(sent, 0.5), main())
        for n in range(channels):
            good = [words for words, whole in pair.packets[n] if whole]
            assert all(words == sent[n][words[0]][0] for words in good)
            numbers = [words[0] for words in good]
            assert numbers == sorted(set(numbers)) and len(numbers) > 20
        assert pair.counts["b"]["LINK_LOST"] >= 8

    def test_what_is_offered_while_it_is_down_waits_and_the_rest_of_begun_packets_is_dropped(
        self, seed
    ):
        pair = self.pair(Random(seed))
        channels = range(len(pair.a.sinks))
        sent = {n: [(list(range(150)), False), ([n, 7, 8, 9], False)] for n in channels}
        # Of a packet that was never whole at its sender, nothing comes.
        before = 0 if self.stores else 1

        def main():
            yield from pair.up()
            if self.stores:
                yield from pause(300)
            else:
                yield from finish(lambda: all(pair.words(n) > 2 for n in channels), 2000)
            pair.signal = False
            yield from pause(1100)
            # All of the first packets is gone, and nothing of the second ones.
            for sink in pair.a.sinks:
                assert (yield sink.valid) and not (yield sink.ready)
            assert all(len(pair.whole(n)) == before for n in channels)
            pair.signal = True
            yield from finish(lambda: all(len(pair.whole(n)) == before + 1 for n in channels), 2000)

        # Slowly, so that all channels have begun a packet when the wire is pulled.
        pair.run(*pair.send(sent, 0.2), main())
        for n in channels:
            *first, after = pair.packets[n]
            assert len(first) == before and after == ([n, 7, 8, 9], True)
            assert all(not good and cut == list(range(len(cut))) for cut, good in first)

    def test_training_again_on_command_ends_begun_packets_and_resets_nothing_above(self, seed):
        random = Random(seed)
        pair = self.pair(random)
        channels = range(len(pair.a.sinks))
        sent = random_packets(random, len(channels), 30, bad=0)
        for queue in sent.values():
            queue.append(([99], False))

        def main():
            yield from pair.up()
            yield from pause(60)
            yield pair.b.retrain.eq(1)
            yield
            yield pair.b.retrain.eq(0)
            yield
            assert not (yield pair.b.up)
            yield from pair.up()
            yield from finish(
                lambda: all(pair.packets[n][-1:] == [([99], True)] for n in channels), 8000
            )

        pair.run(*pair.send(sent, 0.8), main())
        for n in channels:
            rest = iter(words for words, _ in sent[n])
            lost = [words for words, good in pair.packets[n] if not good]
            assert all(words in rest for words, good in pair.packets[n] if good)
            assert len(lost) <= 1

    # Counters -------------------------------------------------------------------------------------

    def test_counters_have_known_names_and_a_good_wire_counts_no_errors(self, seed):
        random = Random(seed)
        pair = self.pair(random)
        channels = range(len(pair.a.sinks))
        sent = random_packets(random, len(channels), 5)

        def check():
            yield from finish(lambda: all(len(pair.whole(n)) == 5 for n in channels), 4000)

        pair.run(*pair.send(sent), check())
        for port, counts in ((pair.a, pair.counts["a"]), (pair.b, pair.counts["b"])):
            assert port.counters.keys() <= {name for name, _ in COUNTERS}
            assert counts["LINK_TRAINED"] == 1
            for name in ("CODE_ERRORS", "DISPARITY_ERRORS", "SLACK_OVERFLOW", "LINK_LOST"):
                assert counts.get(name, 0) == 0, name
