"""A whole switch with models of cards at its ports: where packets go, in which order, at which
rate.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from dibber.interface.description import LINK_STATE, SWITCH_DROP, C
from tests.gateware.fabric.bench import Bench, pause, routed
from tests.gateware.models.link import prefix_word
from tests.gateware.models.switch import verdict

CONTROL, EXPRESS, BULK, SPARE = range(4)
CHANNELS = 4


def packet(random, longest=30):
    """A packet with a random route of one to seven turns. Its first word behind the prefix differs
    from that of all others.
    """
    turns = [random.randrange(16) for _ in range(random.choice((1, 1, 1, 2, 7)))]
    words = [random.getrandbits(32) for _ in range(random.randrange(1, longest))]
    return routed(turns, words, bad=random.random() < 0.05)


def sent_and_dropped(bench, queues):
    """What the model makes of the packets in `queues`, by input and channel.

    Returns ({(output, channel): {input: packets in order}}, {(input, reason): number}).
    """
    ports, sent, dropped = len(bench.ends), {}, {}
    for (number, channel), packets in queues.items():
        for prefix, words, bad in packets:
            one = verdict(ports, number, prefix, words)
            if one.output is None:
                # What came in bad is counted as bad if it is dropped with its first word.
                if not (bad and len(words) == 1):
                    dropped[number, one.reason] = dropped.get((number, one.reason), 0) + 1
            else:
                of_input = sent.setdefault((one.output, channel), {}).setdefault(number, [])
                of_input.append((prefix - 1, words[1:], not bad))
    return sent, dropped


def check_received(bench, sent):
    """Each output has exactly these packets; those of one input are in their order."""
    for output, end in enumerate(bench.ends):
        for channel in range(CHANNELS):
            came = list(end.receiver.packets[channel])
            queues = {n: list(queue) for n, queue in sent.get((output, channel), {}).items()}
            for one in came:
                source = [n for n, queue in queues.items() if queue and queue[0] == one]
                assert source, (output, channel, one)
                queues[source[0]].pop(0)
            assert not any(queues.values()), (output, channel)


def load(bench, queues):
    for (number, channel), packets in queues.items():
        bench.ends[number].queues[channel] += packets


def stopping(bench, share, cycles):
    """A process in which all ends stop random channels for up to 60 cycles each."""
    for _ in range(cycles // 20):
        for end in bench.ends:
            if bench.random.random() < 0.5:
                end.stop = sum((bench.random.random() < share) << n for n in range(CHANNELS))
        yield from pause(20)
    for end in bench.ends:
        end.stop = 0


# Latency and rate ---------------------------------------------------------------------------------


def cycles_through(bench, payload):
    """Cycles from a word on `serial_rx` of port 0 to the same word on any `serial_tx`."""
    rx, seen = bench.dut.ports[0].serial_rx, {}

    def watch(done):
        now = 0
        while not done():
            now += 1
            if (yield rx.valid) and (yield rx.data) == payload and not (yield rx.k):
                seen.setdefault("in", now)
            for port in bench.dut.ports:
                if (yield port.serial_tx.data) == payload and not (yield port.serial_tx.k):
                    seen.setdefault("out", now)
            yield

    return watch, seen


def test_a_header_word_is_through_within_seven_cycles(seed, figure):
    bench = Bench(Random(seed))
    watch, seen = cycles_through(bench, 0x12345678)

    def main():
        yield from bench.all_up()
        bench.ends[0].queues[BULK].append(routed([2, 3], [0x12345678, 1, 2, 3]))
        yield from watch(lambda: "out" in seen)

    bench.run(main())
    latency = seen["out"] - seen["in"]
    assert figure("switch-header-latency", latency, "cycles, header in to header out", at_most=10)
    assert latency == 7


def test_one_flow_through_the_switch_has_the_full_rate_of_the_link(seed):
    bench, length, count = Bench(Random(seed), ordered=True), 60, 25

    def main():
        yield from bench.all_up()
        bench.ends[0].queues[BULK] += [routed([1], range(length)) for _ in range(count)]
        bench.ends[1].heard = heard = []
        yield from bench.until(lambda: len(bench.ends[1].receiver.packets[BULK]) == count, 3000)
        data = [cycle for cycle, kind, _ in heard if kind == "data"]
        # On its way in a packet has START, prefix word and END besides its words.
        assert data[-1] - data[0] <= 1.02 * count * (length + 3)

    bench.run(main())


def test_inputs_that_want_one_output_have_turns_and_fill_it(seed):
    bench, length, count = Bench(Random(seed), ordered=True), 20, 12

    def main():
        yield from bench.all_up()
        for n in range(1, 4):
            bench.ends[n].queues[BULK] += [routed([-n % 4], [n] * length) for _ in range(count)]
        packets = bench.ends[0].receiver.packets[BULK]
        bench.ends[0].heard = heard = []
        yield from bench.until(lambda: len(packets) == 3 * count, 2000)
        order = [words[0] for _, words, _ in packets]
        assert all(set(order[n : n + 3]) == {1, 2, 3} for n in range(0, 3 * count, 3)), order
        data = [cycle for cycle, kind, _ in heard if kind == "data"]
        # START and END go with each packet, and nothing else but flow words.
        assert data[-1] - data[0] <= 1.02 * 3 * count * (length + 2)

    bench.run(main())


def test_a_lower_channel_goes_first_also_inside_a_packet_of_a_higher_one(seed):
    bench = Bench(Random(seed), ordered=True)

    def main():
        yield from bench.all_up()
        bench.ends[1].queues[BULK] += [routed([3], [7] * 300)]
        yield from pause(60)
        bench.ends[2].queues[CONTROL] += [routed([2], [8] * 6)]
        bench.ends[0].heard = heard = []
        yield from bench.until(lambda: bench.ends[0].receiver.packets[BULK], 600)
        kinds = [(kind, value) for _, kind, value in heard if kind in ("start", "resume", "end")]
        assert kinds == [("start", CONTROL), ("end", True), ("resume", BULK), ("end", True)]

    bench.run(main())


# Random traffic -----------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", [1.0, 0.8])
def test_packets_of_all_channels_come_whole_and_in_order_while_channels_stop(busy, seed):
    random = Random(seed)
    bench = Bench(random, busy=busy)
    queues = {
        (n, channel): [packet(random, random.choice((3, 30, 120))) for _ in range(7)]
        for n in range(4)
        for channel in range(CHANNELS)
    }
    sent, dropped = sent_and_dropped(bench, queues)

    def main():
        yield from bench.all_up()
        load(bench, queues)
        yield from stopping(bench, 0.4, 1500)
        yield from bench.drained(6000)
        check_received(bench, sent)
        assert not dropped
        # Words that come after an end said STOP: both ways on the cable, and the logic of the port.
        assert 1 < max(end.most_late for end in bench.ends) <= 2 * 4 + 24
        assert (yield from bench.counts("SLACK_OVERFLOW")) == [0] * 4
        assert sum((yield from bench.counts("STOPS_RECEIVED"))) > 10
        outputs = [sum(len(of_port) for of_port in end.receiver.packets) for end in bench.ends]
        assert (yield from bench.counts("PACKETS_SENT")) == outputs
        passed = yield from bench.counts("PACKETS_PASSED")
        bad = yield from bench.counts("PACKETS_BAD")
        assert sum(passed) + sum(bad) == sum(outputs) and sum(bad) > 0

    bench.run(main())


def test_packets_with_wrong_prefixes_are_dropped_and_counted_and_all_others_come(seed):
    random = Random(seed)
    bench = Bench(random)

    def wrong():
        good = prefix_word(random.randrange(16), 1)
        words = [random.getrandbits(32) for _ in range(random.randrange(0, 9))]
        return random.choice(
            [
                (2, [good ^ 1 << random.randrange(32), *words], False),  # one bit
                (random.choice((1, 3, 7)), [good, *words], False),  # number of hops
                (0, [good, *words], False),  # its route ends here
                (2, [good], False),  # nothing behind the prefix
            ]
        )

    queues = {
        (n, channel): [random.choice((wrong, lambda: packet(random)))() for _ in range(16)]
        for n in range(4)
        for channel in range(CHANNELS)
    }
    sent, dropped = sent_and_dropped(bench, queues)

    def main():
        yield from bench.all_up()
        load(bench, queues)
        yield from bench.drained(3000)
        check_received(bench, sent)
        for name in ("ROUTE_END", "PREFIX"):
            reason = getattr(SWITCH_DROP, name)
            expected = [dropped.get((n, reason), 0) for n in range(4)]
            assert (yield from bench.counts(f"DROPPED_{name}")) == expected
            assert sum(expected) > 5

    bench.run(main())


# Registers ----------------------------------------------------------------------------------------


def test_the_switch_tells_its_identity_and_the_state_of_each_port(seed):
    bench = Bench(Random(seed), identity=0x1234)
    bench.ends[2].plugged = False

    def main():
        yield from bench.all_up()
        assert (yield from bench.read("MAGIC")) == C.SWITCH_SIGNATURE
        assert (yield from bench.read("GEOMETRY")) == 4 | CHANNELS << 8 | 512 << 16
        assert (yield from bench.read("IDENTITY")) == 0x1234
        for n, end in enumerate(bench.ends):
            status = yield from bench.read("PORT_STATUS", n)
            assert status & 15 == (LINK_STATE.UP if end.plugged else LINK_STATE.DOWN)
            assert status >> 4 & 1 == end.plugged and status >> 13 & 1 == 1
            peer = 1 << 16 | end.nonce if end.plugged else 0
            assert (yield from bench.read("PORT_PEER", n)) == peer
            if end.plugged:
                assert end.peer == (0x1234 << 4 & 0xFFFF) | n
        for n in range(4, C.SWITCH_MAX_PORTS):
            assert (yield from bench.read("PORT_STATUS", n)) == 0
        assert (yield from bench.counts("LINK_TRAINED")) == [1, 1, 0, 1]

    bench.run(main())


def test_a_ping_measures_the_cable_of_its_port(seed):
    random = Random(seed)
    bench = Bench(random)
    for end, delay in zip(bench.ends, (3, 10, 25, 40)):
        end.set_delay(delay)

    def main():
        yield from bench.all_up()
        for n in range(4):
            assert (yield from bench.read("PORT_ROUND_TRIP", n)) == 0
        yield from bench.write("PING", 0b1111)
        yield from pause(150)
        times = []
        for n in range(4):
            times.append((yield from bench.read("PORT_ROUND_TRIP", n)))
        steps = [later - earlier for earlier, later in zip(times, times[1:])]
        assert steps == [2 * 7, 2 * 15, 2 * 15], times

    bench.run(main())


def test_a_command_to_train_again_reaches_its_port_alone(seed):
    bench = Bench(Random(seed))

    def main():
        yield from bench.all_up()
        yield from bench.write("RETRAIN", 0b0100)
        yield from pause(100)
        yield from bench.all_up()
        assert (yield from bench.counts("LINK_LOST")) == [0, 0, 1, 0]
        assert (yield from bench.counts("LINK_TRAINED")) == [1, 1, 2, 1]

    bench.run(main())
