"""What goes wrong at one port of a switch holds up no other port: dead, disabled and pulled ports,
blocked outputs, senders that stop in the middle, erroneous symbols.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from migen import passive

from dibber.fabric.switch.buffer import BUFFER_WORDS, headroom_words
from dibber.fabric.switch.switch import CABLE_METERS
from dibber.interface.description import C, SWITCH_DROP
from tests.gateware.fabric.bench import CLOCK_HZ, Bench, pause, routed

CONTROL, EXPRESS, BULK, SPARE = range(4)
CHANNELS = 4
LIMIT = C.SWITCH_LIMIT_UNIT  # cycles, with register LIMIT = 1
REASONS = [name for name, _, _ in SWITCH_DROP.values]


class Flows:
    """Numbered packets between ports, and what came of them."""

    def __init__(self, bench):
        self.bench, self.sent = bench, {}

    def send(self, number, output, channel, length=20):
        """A packet of (sender, receiver, channel, count), and then `length` - 1 words."""
        key = number, output, channel
        self.sent[key] = self.sent.get(key, 0) + 1
        mark = number << 24 | output << 20 | channel << 16 | self.sent[key]
        turn = (output - number) % len(self.bench.ends)
        words = [mark] + [mark ^ n << 8 for n in range(1, length)]
        self.bench.ends[number].queues[channel].append(routed([turn], words))

    def received(self, number, output, channel):
        """The counts of the good packets that came, in their order. Fails if one is another's."""
        counts = []
        for prefix, words, good in self.bench.ends[output].receiver.packets[channel]:
            mark = words[0]
            assert not good or prefix == 0
            if good:
                assert words == [mark] + [mark ^ n << 8 for n in range(1, len(words))]
                assert mark >> 20 & 15 == output and mark >> 16 & 15 == channel
                if mark >> 24 == number:
                    counts.append(mark & 0xFFFF)
        return counts

    def check_whole(self, key):
        """Each packet came once and in order."""
        assert self.received(*key) == list(range(1, self.sent[key] + 1)), key

    def check_partly(self, key):
        """Some packets were lost; the others came once and in order."""
        counts = self.received(*key)
        assert counts == sorted(set(counts)) and 0 < len(counts) < self.sent[key], key


def dropped(bench, number):
    """{reason: packets} of a port, without zeros."""
    counts = {}
    for reason in REASONS:
        value = yield from bench.count(number, f"DROPPED_{reason}")
        if value:
            counts[reason] = value
    return counts


def accounted(bench, number):
    """Packets of a port that passed, came in bad or were dropped."""
    total = sum((yield from dropped(bench, number)).values())
    for name in ("PACKETS_PASSED", "PACKETS_BAD"):
        total += yield from bench.count(number, name)
    return total


# Dead and disabled ports --------------------------------------------------------------------------


def test_packets_to_a_port_that_is_not_up_are_dropped_and_all_others_come(seed):
    bench = Bench(Random(seed))
    bench.ends[3].plugged = False
    flows = Flows(bench)

    def main():
        yield from bench.all_up()
        for n in range(12):
            for channel in range(CHANNELS):
                flows.send(0, 3 if n % 2 else 1, channel)
        yield from bench.drained(3000)
        for channel in range(CHANNELS):
            flows.check_whole((0, 1, channel))
        assert (yield from dropped(bench, 0)) == {"DOWN": 24}

    bench.run(main())


def test_a_port_is_disabled_and_enabled_again_under_traffic(seed):
    bench = Bench(Random(seed))
    flows = Flows(bench)

    def main():
        yield from bench.all_up()
        for _ in range(30):
            for key in ((0, 2, BULK), (0, 1, EXPRESS), (1, 0, BULK), (3, 2, BULK), (2, 1, BULK)):
                flows.send(*key)
        yield from pause(200)
        yield from bench.write("ENABLE", 0b1011)
        yield from pause(200)
        # The other end sees that the port does not hear it.
        assert not bench.ends[2].up and bench.ends[0].up
        status = yield from bench.read("PORT_STATUS", 2)
        assert status >> 4 & 1 == 1 and status >> 13 & 1 == 0
        yield from bench.write("ENABLE", 0b1111)
        yield from bench.all_up()
        yield from bench.drained(3000)
        flows.check_whole((0, 1, EXPRESS))
        flows.check_whole((1, 0, BULK))
        for key in ((0, 2, BULK), (3, 2, BULK)):
            flows.check_partly(key)
        lost = yield from dropped(bench, 0)
        assert lost.keys() <= {"DISABLED", "DOWN"} and lost["DISABLED"] > 5, lost
        assert (yield from accounted(bench, 0)) == 60
        assert (yield from accounted(bench, 3)) == 30

    bench.run(main())


def test_cables_are_pulled_and_plugged_under_traffic_of_all_channels(seed):
    random = Random(seed)
    bench = Bench(random)
    flows = Flows(bench)
    kept = [(0, 1), (1, 0)]  # both ends of these keep their cables
    others = [(0, 2), (2, 1), (1, 3), (3, 0), (2, 3), (3, 2)]

    def traffic():
        for _ in range(40):
            for number, output in kept + others:
                flows.send(number, output, random.randrange(CHANNELS), random.randrange(1, 40))
            yield from pause(60)

    def pulls():
        yield from bench.all_up()
        for _ in range(6):
            end = bench.ends[random.choice((2, 3))]
            yield from pause(random.randrange(60, 250))
            end.pull()
            yield from pause(random.randrange(1, 250))
            end.plug()
            yield from bench.all_up()

    def main():
        yield from bench.all_up()
        yield from traffic()
        yield from bench.until(lambda: all(end.up for end in bench.ends), 3000)
        yield from bench.drained(3000)
        for number, output in kept:
            for channel in range(CHANNELS):
                flows.check_whole((number, output, channel))
        for key in flows.sent:
            counts = flows.received(*key)
            assert counts == sorted(set(counts)), key
        sent = sum(count for (number, _, _), count in flows.sent.items() if number == 0)
        assert (yield from accounted(bench, 0)) == sent
        assert (yield from dropped(bench, 0)).keys() == {"DOWN"}
        # Everything goes again.
        flows.sent.clear()
        for end in bench.ends:
            for packets in end.receiver.packets:
                packets.clear()
        for number, output in kept + others:
            flows.send(number, output, BULK)
        yield from bench.drained(1000)
        for key in flows.sent:
            flows.check_whole(key)

    bench.run(main(), pulls())


# Limit --------------------------------------------------------------------------------------------


def test_a_blocked_output_costs_its_packets_the_limit_once_and_no_other_packets_anything(seed):
    bench = Bench(Random(seed), ordered=True)
    flows = Flows(bench)
    ends = bench.ends

    def main():
        yield from bench.all_up()
        yield from bench.write("LIMIT", 1)
        ends[3].stop = 1 << BULK
        yield from pause(30)
        # Input 0 has packets for the blocked output alone, then for others. Input 1 wants it, too.
        for _ in range(3):
            flows.send(0, 3, BULK, 300)
        flows.send(0, 1, BULK)
        flows.send(1, 3, BULK)
        for _ in range(8):
            flows.send(2, 1, BULK)
            flows.send(2, 3, EXPRESS)
            flows.send(0, 3, CONTROL)
        # Other inputs and other channels go on at once.
        yield from bench.until(lambda: ends[2].idle() and not ends[0].queues[CONTROL], 1000)
        yield from pause(60)
        flows.check_whole((2, 1, BULK))
        flows.check_whole((2, 3, EXPRESS))
        flows.check_whole((0, 3, CONTROL))
        assert (yield from dropped(bench, 0)) == {}
        # The packets at the blocked output are dropped by the limit, and all behind them at once.
        yield from pause(LIMIT)
        yield from bench.until(lambda: ends[0].idle(), 700)
        yield from pause(600)
        assert (yield from dropped(bench, 0)) == {"BLOCKED": 3}
        assert (yield from dropped(bench, 1)) == {"BLOCKED": 1}
        assert (yield from bench.read("PORT_STATUS", 3)) >> 14 == 1 << BULK
        flows.check_whole((0, 1, BULK))
        # What had begun ends as bad when the output takes words again, and new packets come.
        ends[3].stop = 0
        yield from pause(60)
        assert [good for _, _, good in ends[3].receiver.packets[BULK]] == [False]
        assert (yield from bench.read("PORT_STATUS", 3)) >> 14 == 0
        before = flows.sent[0, 3, BULK]
        flows.send(0, 3, BULK)
        yield from bench.drained(300)
        assert flows.received(0, 3, BULK) == [before + 1]

    bench.run(main())


def test_a_packet_that_does_not_end_is_cut_and_its_output_serves_others(seed):
    """One sender stops in the middle; another one sends words without end."""
    bench = Bench(Random(seed), ordered=True)
    flows = Flows(bench)
    ends = bench.ends

    def main():
        yield from bench.all_up()
        yield from bench.write("LIMIT", 1)
        # Input 0 begins a packet and goes silent, but for flow words.
        ends[0].queues[BULK].append(routed([1], [5] * 400))
        yield from bench.until(lambda: BULK in ends[0].begun, 50)
        yield from pause(40)
        hold, ends[0].begun = ends[0].begun, {}
        # Input 2 sends a packet that would take twice the limit.
        ends[2].queues[EXPRESS].append(routed([3], [6] * (2 * LIMIT)))
        yield from pause(20)
        flows.send(3, 1, BULK)
        flows.send(3, 1, EXPRESS)
        yield from pause(LIMIT + 100)
        assert (yield from dropped(bench, 0)) == {"LATE": 1}
        assert (yield from dropped(bench, 2)) == {"LATE": 1}
        flows.check_whole((3, 1, BULK))
        flows.check_whole((3, 1, EXPRESS))
        assert [good for _, _, good in ends[1].receiver.packets[BULK]] == [False, True]
        assert [good for _, _, good in ends[1].receiver.packets[EXPRESS]] == [False, True]
        # The rest of both is discarded, and then their channels work.
        ends[0].begun = hold
        flows.send(0, 1, BULK)
        flows.send(2, 1, EXPRESS)
        yield from bench.drained(3 * LIMIT)
        flows.check_whole((0, 1, BULK))
        flows.check_whole((2, 1, EXPRESS))

    bench.run(main())


def test_packets_that_wait_for_one_another_in_a_circle_are_dropped_after_the_limit(seed):
    """Each output is stopped by its end until the packet that this end sends has passed: the state
    of a fabric whose routes form a circle.
    """
    bench = Bench(Random(seed), ordered=True)
    flows = Flows(bench)
    ends = bench.ends

    @passive
    def circle():
        """Each end stops BULK while a word of its own packet waits."""
        while True:
            for end in ends:
                waits = BULK in end.begun or end.queues[BULK]
                end.stop = (1 << BULK) * bool(waits)
            yield

    def main():
        yield from bench.all_up()
        yield from bench.write("LIMIT", 0)
        for n in range(4):
            flows.send(n, (n + 1) % 4, BULK, 700)
        yield from pause(3 * LIMIT)
        assert not any(end.idle() for end in ends)  # a deadlock, because there is no limit
        yield from bench.write("LIMIT", 1)
        yield from pause(LIMIT + 600)
        assert all(end.idle() for end in ends)
        for n in range(4):
            assert (yield from dropped(bench, n)) == {"BLOCKED": 1}
        for n in range(4):
            flows.send(n, (n + 2) % 4, EXPRESS)
        yield from bench.drained(300)
        for n in range(4):
            flows.check_whole((n, (n + 2) % 4, EXPRESS))

    bench.run(main(), circle())


# Cable --------------------------------------------------------------------------------------------


def test_the_buffers_take_what_comes_after_stop_from_50_m_also_if_one_stop_is_lost(seed):
    bench = Bench(Random(seed), ordered=True)
    flows = Flows(bench)
    ends = bench.ends
    # 140 ns of a transceiver and 5 ns a meter, in words of 8 ns.
    ends[0].set_delay(round((140 + 5 * CABLE_METERS) / 8))
    ends[0].lost_stops = 1

    def main():
        yield from bench.all_up(1500)
        ends[3].stop = 1 << BULK
        yield from pause(20)
        for _ in range(30):
            flows.send(0, 3, BULK, 40)
        yield from pause(1000)
        assert ends[0].lost_stops == 0 and ends[0].queues[BULK]
        high = (yield from bench.read("PORT_SLACK_HIGH", 0)) >> 8 * BULK & 0xFF
        # More than the high mark and one flight both ways, and never full.
        assert 4 * high > BUFFER_WORDS - headroom_words(CABLE_METERS, CLOCK_HZ) + 100
        assert 4 * high < BUFFER_WORDS - 3
        ends[3].stop = 0
        yield from bench.drained(4000)
        flows.check_whole((0, 3, BULK))
        assert (yield from bench.counts("SLACK_OVERFLOW")) == [0] * 4

    bench.run(main())


def test_a_cable_that_is_too_long_for_the_buffers_is_refused():
    assert headroom_words(CABLE_METERS, CLOCK_HZ) == 98 + 24 + 17 + 3
    with pytest.raises(ValueError, match="400 m of cable need 579 words"):
        headroom_words(400, CLOCK_HZ)


# Errors -------------------------------------------------------------------------------------------


def test_erroneous_symbols_cost_the_packets_of_their_input_and_no_others(seed):
    random = Random(seed)
    bench = Bench(random)
    flows = Flows(bench)
    keys = [(n, (n + step) % 4, channel) for n in range(4) for step in (1, 2) for channel in (1, 2)]

    def main():
        yield from bench.all_up()
        bench.ends[1].noise = 0.01
        for _ in range(15):
            for key in keys:
                flows.send(*key, random.randrange(1, 40))
        yield from bench.drained(5000)
        bench.ends[1].noise = 0.0
        yield from pause(50)
        for key in keys:
            if key[0] == 1:
                flows.check_partly(key)
            else:
                flows.check_whole(key)
        assert (yield from bench.count(1, "CODE_ERRORS")) > 10
        assert (yield from bench.count(1, "PACKETS_BAD")) > 5
        for n in (0, 2, 3):
            assert (yield from accounted(bench, n)) == 60
            assert (yield from bench.count(n, "PACKETS_PASSED")) == 60

    bench.run(main())
