"""A switch answers scouts that end at it, and nothing else; other packets do not notice."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from dibber.fabric.switch.teller import PATIENCE_CYCLES
from dibber.interface.description import SWITCH, SWITCH_COUNTER, C
from tests.gateware.fabric.bench import Bench, pause, routed
from tests.gateware.fabric.test_switch import check_received, sent_and_dropped, stopping
from tests.gateware.models.switch import answer, question_of, scout

CONTROL, EXPRESS, BULK, SPARE = range(4)
NODE = 5


def word_of(name, index=0):
    return SWITCH[name].offset // 4 + index


def ask(bench, n, words, cycles=300):
    """Send a scout from the end `n` and return what came back there: [(prefix, words, good)]."""
    end = bench.ends[n]
    before = len(end.receiver.packets[CONTROL])
    end.queues[CONTROL].append((0, words, False))
    for _ in range(cycles):
        if len(end.receiver.packets[CONTROL]) > before:
            break
        yield
    return end.receiver.packets[CONTROL][before:]


def value_of(packets):
    """The value of a single good answer."""
    [(prefix, words, good)] = packets
    assert good
    return words[prefix + 4]


def test_a_scout_reads_what_the_bus_reads_and_the_answer_takes_the_way_that_it_names(seed):
    random = Random(seed)
    bench = Bench(random, identity=0x1234)
    fixed = ["MAGIC", "INTERFACE_VERSION", "INTERFACE_HASH", "CLOCK_HZ", "IDENTITY", "GEOMETRY"]

    def main():
        yield from bench.all_up()
        for name in [*fixed, "ENABLE", "LIMIT", "PORT_STATUS", "PORT_PEER"]:
            n = random.randrange(4)
            index = n if name.startswith("PORT") else 0
            turns = [random.randrange(16) for _ in range(random.randrange(8))]
            words = scout(NODE, word_of(name, index), turns, random.randrange(32))
            value = yield from bench.read(name, index)
            assert (yield from ask(bench, n, words)) == [(*answer(words, value), True)], name
        for n in range(4):
            assert value_of((yield from ask(bench, n, scout(NODE, word_of("ASKED_AT"))))) == n
        assert sum((yield from bench.counts("ASKED"))) == len(fixed) + 8
        assert (yield from bench.counts("DROPPED_ROUTE_END")) == [0] * 4
        # In band, too; this scout itself is not counted yet.
        index = C.SWITCH_COUNTER_WORDS * 1 + SWITCH_COUNTER.ASKED
        before = yield from bench.count(1, "ASKED")
        assert value_of((yield from ask(bench, 1, scout(1, word_of("COUNTERS", index))))) == before

    bench.run(main())


def test_a_scout_writes_and_its_answer_has_the_new_value(seed):
    bench = Bench(Random(seed))

    def main():
        yield from bench.all_up()
        write = C.SWITCH_ASK_WRITE
        words = scout(NODE, word_of("LIMIT") | write | 77 << 16)
        assert value_of((yield from ask(bench, 0, words))) == 77
        assert (yield from bench.read("LIMIT")) == 77
        words = scout(NODE, word_of("ENABLE") | write | 0b1011 << 16)
        assert value_of((yield from ask(bench, 0, words))) == 0b1011
        yield from pause(200)
        assert [end.up for end in bench.ends] == [True, True, False, True]
        words = scout(NODE, word_of("PING") | write | 0b0010 << 16)
        yield from ask(bench, 3, words)
        yield from pause(100)
        assert (yield from bench.read("PORT_ROUND_TRIP", 1)) > 0
        # What is read only stays as it is.
        words = scout(NODE, word_of("MAGIC") | write | 1 << 16)
        assert value_of((yield from ask(bench, 1, words))) == C.SWITCH_SIGNATURE

    bench.run(main())


def spoiled(random):
    """(prefix, words, bad): a packet that ends at the switch and is no good scout."""
    words = scout(random.randrange(32), random.randrange(1024), [random.randrange(16)])
    way = random.randrange(6)
    if way == 0:
        words[random.randrange(1, len(words))] ^= 1 << random.randrange(32)
    elif way == 1:
        words = words[: random.randrange(2, len(words))]
    elif way == 2:
        words = words + [random.getrandbits(32)] * random.randrange(1, 9)
    elif way == 3:
        return 0, words, True
    elif way == 4:
        words = [random.getrandbits(32) for _ in words]
    else:
        words = scout(NODE, 0, [1] * 8)  # more hops than a route can have
    return 0, words, False


def test_what_is_no_good_scout_is_dropped_and_counted_and_good_ones_are_answered(seed):
    random = Random(seed)
    bench = Bench(random)

    def main():
        yield from bench.all_up()
        for count in range(1, 40):
            wrong = spoiled(random)
            assert question_of(*wrong[1:]) is None
            bench.ends[1].queues[CONTROL].append(wrong)
            yield from pause(random.choice((40, 100)))
            assert len(bench.ends[1].receiver.packets[CONTROL]) == count - 1
            words = scout(NODE, word_of("IDENTITY"), (), count % 32)
            assert value_of((yield from ask(bench, 1, words))) == bench.identity
            assert (yield from bench.count(1, "DROPPED_ROUTE_END")) == count

    bench.run(main())


def test_a_scout_that_does_not_end_holds_up_the_others_only_for_its_time(seed):
    bench = Bench(Random(seed), ordered=True)

    def main():
        yield from bench.all_up()
        begun = scout(NODE, 0)
        bench.ends[2].queues[CONTROL].append((0, begun + [0] * 50, False))
        yield from bench.until(lambda: CONTROL in bench.ends[2].begun, 50)
        yield from pause(3)
        bench.ends[2].begun = {}  # and nothing more comes
        assert (yield from ask(bench, 0, scout(NODE, 0), 200)) == []
        yield from pause(PATIENCE_CYCLES)
        assert value_of((yield from ask(bench, 0, scout(NODE, 0)))) == C.SWITCH_SIGNATURE
        assert (yield from bench.counts("DROPPED_ROUTE_END")) == [1, 0, 1, 0]

    bench.run(main())


def test_an_answer_that_its_port_does_not_take_is_dropped_and_the_next_scout_is_answered(seed):
    bench = Bench(Random(seed), ordered=True)

    def main():
        yield from bench.all_up()
        yield from bench.write("LIMIT", 1)
        bench.ends[2].stop = 1 << CONTROL
        yield from pause(30)
        # One word of an answer fits into the output, so the first answer is cut there.
        assert (yield from ask(bench, 2, scout(NODE, 0), 2 * C.SWITCH_LIMIT_UNIT)) == []
        assert (yield from bench.count(2, "DROPPED_BLOCKED")) == 1
        assert value_of((yield from ask(bench, 0, scout(NODE, 0)))) == C.SWITCH_SIGNATURE

    bench.run(main())


def test_scouts_under_random_traffic_are_answered_or_counted_and_change_nothing_else(seed):
    """All ends ask, and pass packets of all channels to one another, while channels stop."""
    random = Random(seed)
    bench = Bench(random)
    queues, scouts = {}, [[] for _ in range(4)]
    for n in range(4):
        for channel in range(4):
            queues[n, channel] = [
                routed([random.randrange(4)], [random.getrandbits(32) for _ in range(12)])
                for _ in range(12)
            ]
    sent, _ = sent_and_dropped(bench, queues)

    def main():
        yield from bench.all_up()
        identity = yield from bench.read("IDENTITY")
        for (n, channel), packets in queues.items():
            for packet in packets:
                bench.ends[n].queues[channel].append(packet)
                if channel == CONTROL and random.random() < 0.5:
                    # An answer has prefix words, and the packets of this test have none left.
                    words = scout(n, word_of("IDENTITY"), [len(scouts[n]) % 16], 1)
                    scouts[n].append(words)
                    bench.ends[n].queues[channel].append((0, words, False))
        yield from stopping(bench, 0.3, 1200)
        yield from bench.drained(6000)
        asked = yield from bench.counts("ASKED")
        dropped = yield from bench.counts("DROPPED_ROUTE_END")
        for n, end in enumerate(bench.ends):
            came = [packet for packet in end.receiver.packets[CONTROL] if packet[0]]
            end.receiver.packets[CONTROL] = [p for p in end.receiver.packets[CONTROL] if not p[0]]
            good = [(*answer(words, identity), True) for words in scouts[n]]
            # Those that were answered, in their order.
            left = iter(good)
            assert all(one in left for one in came)
            assert len(came) == asked[n] and asked[n] + dropped[n] == len(scouts[n])
        assert sum(asked) > 4
        check_received(bench, sent)

    bench.run(main())
