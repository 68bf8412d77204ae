"""Rings of bare nodes in Verilator: rates, latency, fairness, a hot receiver, faults."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from tests.gateware.fabric import ring_bench

# At 125 MHz a word is 8 ns; 17.5 words are both transceivers at 0 m.
CYCLE_NS = 8
WIRE_CYCLES = 17.5
# GigaRing (Kaczynski): payload of raw, and from the data packet to its echo at 0 m.
HALF_DUPLEX, FULL_DUPLEX, SEND_TO_ECHO_NS = 0.76, 0.68, 462

# Words of a packet with 256 bytes of payload, and of one with 4096.
GIGARING, LARGE = (72, 64), (1047, 1024)


@pytest.fixture(scope="session")
def program():
    return ring_bench.build()


def whole(result):
    assert not result["failed"] and result["missing"] == 0 and result["lost"] == 0
    assert result["overflows"] == 0 and result["link_lost"] == 0
    return result


@pytest.mark.parametrize("words, payload", [GIGARING, LARGE])
def test_two_nodes_have_gigarings_share_of_raw(program, words, payload, figure):
    """Of one ring. Both rings of a pair do the same."""
    options = dict(nodes=2, words=words, least_words=words, cycles=60000)
    half = whole(ring_bench.run(program, pattern="single", **options))
    full = whole(ring_bench.run(program, pattern="uniform", **options))
    shares = half["throughput"] * payload / words, full["throughput"] * payload / words / 2
    for name, share, least in zip(("half", "full"), shares, (HALF_DUPLEX, FULL_DUPLEX)):
        value, unit = round(100 * share, 1), f"% of a link, packets of {4 * payload} bytes"
        assert figure(f"ring-{name}-duplex-{4 * payload}", value, unit, at_least=100 * least)


def test_an_echo_is_there_within_gigarings_time(program, figure):
    """From START of the smallest put to the end of its echo, and from END of 256 bytes."""
    options = dict(nodes=2, pattern="single", load=0.02)
    for words, begin, what in ((10, 0, "put-8"), (72, 72 + 3, "end-256")):
        result = whole(ring_bench.run(program, words=words, least_words=words, **options))
        echo = result["send_to_echo"]
        # `send_to_echo` begins when START enters the output register.
        cycles = echo["least"] - 1 - begin + 2 * (WIRE_CYCLES - ring_bench.DEFAULTS["delay"])
        assert echo["least"] == echo["most"]
        unit = f"ns, {'START of 8' if begin == 0 else 'END of 256'} bytes to its echo, 0 m"
        assert figure(f"ring-send-to-echo-{what}", cycles * CYCLE_NS, unit, at_most=SEND_TO_ECHO_NS)


@pytest.mark.parametrize("nodes", [4, 8, 16])
def test_each_node_has_its_share(program, nodes, figure):
    result = whole(ring_bench.run(program, nodes=nodes, cycles=40000))
    jain = round(result["jain"], 4)
    assert figure(f"ring-jain-{nodes}", jain, "Jain's index of shares, full load", at_least=0.95)
    assert result["throughput"] > 1.3


def test_eight_nodes_have_their_acknowledgements_before_a_source_would_repeat(program):
    """Packets of 4096 bytes at full load, each answered by 8 words on CONTROL. A source repeats
    100 µs after a packet has left the card: it is not in the card when its target has it.
    """
    options = dict(nodes=8, words=LARGE[0], least_words=LARGE[0], answers=1)
    result = whole(ring_bench.run(program, warmup=30000, cycles=80000, **options))
    assert result["answered"]["most"] * CYCLE_NS <= 100_000
    # A packet and its wait in the card take longer than that.
    assert result["acknowledged"]["mean"] * CYCLE_NS > 100_000
    assert result["jain"] >= 0.98 and result["throughput"] > 1.38


def test_a_node_alone_has_the_whole_ring(program):
    result = whole(ring_bench.run(program, nodes=8, pattern="single", cycles=20000))
    assert result["sent"][0] > 0.93 and max(result["sent"][1:]) == 0


def test_a_hot_receiver_refuses_no_packet_more_than_twice_after_its_reservation(program, figure):
    result = whole(ring_bench.run(program, nodes=8, pattern="hot", take=0.3, cycles=60000))
    refusals = result["refusals_after_reservation"]
    assert result["busy"] > 20
    assert figure("ring-hot-refusals", refusals, "of a packet after its reservation", at_most=2)
    jain = round(result["jain"], 4)
    assert figure("ring-hot-jain", jain, "Jain's index, 8 nodes to one", at_least=0.95)
    # Two packets of each of the six others, and a way round, while 0.3 words a cycle are taken.
    longest = int(2 * 7 * 72 / 0.3 + 2000)
    wait = result["reserved"]["most"]
    assert figure("ring-hot-longest-wait", wait, "cycles from reservation", at_most=longest)


def test_stalls_and_faults_lose_nothing_in_silence(program, seed):
    """A sample of tests/soak/ring.py."""
    for number in range(6):
        options = ring_bench.faulty(random.Random(f"{seed}/{number}"))
        result = ring_bench.run(program, **options)
        assert not result["failed"], (options, result)
