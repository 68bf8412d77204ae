"""When the link comes up, and what it says when it does not."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from litex.soc.cores.code_8b10b import Decoder, Encoder

from dibber.interface.description import LINK_REASON, LINK_STATE
from dibber.link.port import LinkPort
from dibber.link.symbols import SILENCE_WORDS
from dibber.link.training import LinkTraining, WINDOW_WORDS

from tests.gateware.models.cable import cable
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish
from tests.gateware.models.link import nonce_word

from tests.gateware.link.pair import Pair, pause, pulse


class Line(Module):
    """A port whose words come back to it as 8b/10b bits: a wire on which anything can be done to
    them.

    change : Signal(40), in   bits to be turned over
    """

    def __init__(self):
        self.submodules.port = port = LinkPort()
        self.submodules.encoder = encoder = Encoder(4)
        self.change = Signal(40)
        self.comb += [
            port.signal.eq(1),
            port.serial_tx.ready.eq(1),
            port.serial_rx.valid.eq(1),
        ]
        for n in range(4):
            decoder = Decoder()
            self.submodules += decoder
            self.comb += [
                encoder.d[n].eq(port.serial_tx.data[8 * n : 8 * n + 8]),
                encoder.k[n].eq(port.serial_tx.k[n]),
                decoder.input.eq(encoder.output[n] ^ self.change[10 * n : 10 * n + 10]),
                port.serial_rx.data[8 * n : 8 * n + 8].eq(decoder.d),
                port.serial_rx.k[n].eq(decoder.k),
                port.serial_rx.code_error[n].eq(decoder.invalid),
            ]


def on_the_line(change, cycles, nonce=0):
    """State and reason after this number of cycles, with `change()` applied to the bits of each
    word.
    """
    line, seen = Line(), []

    def drive():
        yield line.port.nonce.eq(nonce)
        for _ in range(cycles):
            yield line.change.eq(change())
            yield
        seen.append(((yield line.port.state), (yield line.port.reason)))

    run_simulation(line, drive())
    return seen[0]


def test_an_inverted_pair_shows_as_polarity():
    assert on_the_line(lambda: (1 << 40) - 1, WINDOW_WORDS + 40) == (
        LINK_STATE.DOWN,
        LINK_REASON.POLARITY,
    )


def test_random_bits_show_as_the_wrong_rate(seed):
    random = Random(seed)
    assert on_the_line(lambda: random.getrandbits(40), WINDOW_WORDS + 40) == (
        LINK_STATE.DOWN,
        LINK_REASON.WRONG_RATE,
    )


def test_a_bit_error_rate_of_1e_3_is_not_taken_for_a_wrong_rate(seed):
    random = Random(seed)
    noise = lambda: sum(1 << n for n in range(40) if random.random() < 1e-3)
    assert on_the_line(noise, 100) == (LINK_STATE.UP, LINK_REASON.NONE)


def test_a_loopback_is_known_by_its_own_nonce():
    assert on_the_line(lambda: 0, 200, nonce=0x1234) == (LINK_STATE.ALIGN, LINK_REASON.LOOPBACK)
    # Without a nonce the link cannot tell.
    assert on_the_line(lambda: 0, 200) == (LINK_STATE.UP, LINK_REASON.NONE)


def test_a_nonce_that_comes_to_be_our_own_takes_the_link_down(seed):
    """A card comes up in a loopback before its driver has given it a nonce."""
    line = Line()

    def drive():
        yield from pause(100)
        assert (yield line.port.up)
        yield line.port.nonce.eq(0x55)
        yield from pause(1100)
        assert ((yield line.port.state), (yield line.port.reason)) == (
            LINK_STATE.ALIGN,
            LINK_REASON.LOOPBACK,
        )

    run_simulation(line, drive())


@pytest.mark.parametrize("rotate", [0, 1, 2, 3])
def test_in_test_a_port_hears_itself_whatever_the_alignment_and_measures_the_way(rotate, seed):
    """As in a transceiver's own loopback: `LINK_CONTROL.phy`, `dibber link prbs --loopback phy`."""
    delay, port = 9, LinkPort()

    def drive():
        yield port.signal.eq(1)
        yield port.nonce.eq(0x1234)
        yield port.test.eq(1)
        yield from pause(100)
        assert (yield port.state) == LINK_STATE.TEST and (yield port.peer) == 0x1234
        yield from pulse(port.ping)
        yield from pause(100)
        # The ping and its own answer; either comes a cycle later when a word stands in two.
        assert (yield port.round_trip) == 2 * (delay + 1 + bool(rotate))
        yield port.test.eq(0)
        yield from pause(200)
        assert ((yield port.state), (yield port.reason)) == (LINK_STATE.ALIGN, LINK_REASON.LOOPBACK)

    run_simulation(
        port,
        [
            drive(),
            cable(port.serial_tx, port.serial_rx, delay, rotate, lambda *word: (*word, 0, 0)),
        ],
    )


def test_reasons_of_a_pair(seed):
    pair = Pair(Random(seed))
    good = pair.fault

    def states():
        read = lambda port: [(yield port.state), (yield port.reason)]
        pair.signal = False
        yield from pause(40)
        assert (yield from read(pair.b)) == [LINK_STATE.DOWN, LINK_REASON.NO_SIGNAL]
        pair.signal, pair.fault = True, lambda data, k: (0xB5B5B5B5, 0, 0, 0)
        yield from pause(60)
        assert (yield from read(pair.b)) == [LINK_STATE.DOWN, LINK_REASON.NO_COMMA]
        assert (yield from read(pair.a)) == [LINK_STATE.ALIGN, LINK_REASON.NOT_HEARD]
        pair.fault = good
        yield from pair.up()
        assert (
            (yield from read(pair.a))
            == (yield from read(pair.b))
            == [LINK_STATE.UP, LINK_REASON.NONE]
        )
        assert ((yield pair.a.peer), (yield pair.a.peer_known)) == (0xBBBB, 1)
        assert ((yield pair.b.peer), (yield pair.b.peer_known)) == (0xAAAA, 1)
        yield pair.a.test.eq(1)
        yield
        yield
        yield
        assert (yield from read(pair.a)) == [LINK_STATE.TEST, LINK_REASON.TEST]
        yield from pause(40)
        assert (yield from read(pair.b)) == [LINK_STATE.ALIGN, LINK_REASON.NOT_HEARD]
        yield pair.a.test.eq(0)
        yield from pair.up()

    pair.run(states())


def test_a_dead_cable_is_known_within_100_microseconds(seed, figure):
    """Of either clock, 125 or 62.5 MHz, and what was known stays: SILENCE, though nothing is heard
    now.
    """
    pair, dead = Pair(Random(seed)), []

    def silence():
        yield from pair.up()
        pair.fault = lambda data, k: (0xB5B5B5B5, 0, 0, 0)
        while (yield pair.b.state) == LINK_STATE.UP:
            dead.append(None)
            yield
        yield from pause(WINDOW_WORDS + 40)
        assert (yield pair.b.reason) == LINK_REASON.SILENCE

    pair.run(silence())
    assert SILENCE_WORDS <= len(dead) <= SILENCE_WORDS + 10
    assert figure("link-dead-cable-62.5-MHz", len(dead) / 62.5, "us", at_most=100)


@pytest.mark.parametrize("retrained", ["a", "b"])
def test_the_other_end_sees_a_retraining(retrained, seed):
    pair = Pair(Random(seed), delay=10)

    def retrain():
        yield from pair.up()
        yield from pulse(getattr(pair, retrained).retrain)
        yield from finish(
            lambda: pair.counts["a"]["LINK_LOST"] == pair.counts["b"]["LINK_LOST"] == 1, 60
        )
        yield from pair.up()

    pair.run(retrain())
    assert pair.counts["a"]["LINK_TRAINED"] == pair.counts["b"]["LINK_TRAINED"] == 2


def test_the_link_is_not_up_before_each_end_knows_the_others_nonce(seed):
    pair, nonces = Pair(Random(seed)), []

    def fault(data, k):
        nonces.append((data, k) == nonce_word(0xAAAA))
        return (data, k, int(nonces[-1] and sum(nonces) <= 3), 0)

    def wait():
        pair.fault = fault
        yield from pair.up()
        assert sum(nonces) >= 4

    pair.run(wait())


def test_down_is_not_left_before_the_other_end_was_told(seed):
    """However long the transmitter is held up."""
    dut = LinkTraining()

    def drive():
        yield dut.signal.eq(1)
        yield dut.heard.eq(1)
        yield dut.known.eq(1)
        yield dut.flow.eq(0x80)
        yield dut.told.eq(0x80)
        yield from pause(20)
        assert (yield dut.state) == LINK_STATE.DOWN
        yield dut.told.eq(0)
        yield from pause(8)
        assert (yield dut.state) == LINK_STATE.UP

    run_simulation(dut, drive())
