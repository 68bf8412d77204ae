"""Two ports of cards with two switches between them: the gateware's own link at each cable."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.fabric.switch.switch import Switch
from dibber.interface.description import CHANNEL
from dibber.link.port import LinkPort
from tests.gateware.fabric.bench import CLOCK_HZ, pause
from tests.gateware.link.items import collect, random_words
from tests.gateware.models.cable import cable
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, source
from tests.gateware.models.link import prefix_words

CHANNELS = 4
DELAY = 6


class Chain(Module):
    """Card a at port 0 of switch 0, port 1 of it at port 0 of switch 1, card b at its port 1.

    packets : what came out of a's and b's channels
    take    : for b's channels, () -> whether a word is taken
    """

    TURNS = (1, 1)  # both ways: 0 + 1, and 1 + 1 modulo 2

    def __init__(self):
        self.cards = [LinkPort(), LinkPort()]
        self.switches = [Switch(2, CLOCK_HZ) for _ in range(2)]
        self.submodules += self.cards + self.switches
        self.packets = [[[] for _ in range(CHANNELS)] for _ in self.cards]
        self.take = [lambda: True for _ in range(CHANNELS)]
        self.comb += [
            *[card.signal.eq(1) for card in self.cards],
            *[card.nonce.eq(0x7001 + n) for n, card in enumerate(self.cards)],
            *[switch.signals.eq(3) for switch in self.switches],
            *[switch.identity.eq(1 + n) for n, switch in enumerate(self.switches)],
        ]
        (one, other), (a, b) = self.switches, self.cards
        ends = [(a, one.ports[0]), (one.ports[1], other.ports[0]), (other.ports[1], b)]
        self.processes = [
            cable(x.serial_tx, y.serial_rx, DELAY) for pair in ends for x, y in (pair, pair[::-1])
        ]
        self.processes += [self._take(n, channel) for n in range(2) for channel in range(CHANNELS)]

    @passive
    def _take(self, n, channel):
        endpoint = self.cards[n].sources[channel]
        while True:
            yield endpoint.ready.eq(int(n == 0 or self.take[channel]()))
            yield
            yield from collect(endpoint, self.packets[n][channel])

    def up(self):
        ports = self.cards + [port for switch in self.switches for port in switch.ports]
        for _ in range(400):
            states = []
            for port in ports:
                states.append((yield port.up))
            if all(states):
                return
            yield
        raise AssertionError(f"not UP: {states}")


def items(packets):
    """Packets with their prefix, for the sink of a port."""
    for words, bad in packets:
        whole = prefix_words(Chain.TURNS) + words
        for n, word in enumerate(whole):
            last = n == len(whole) - 1
            yield dict(
                data=word,
                first=int(n == 0),
                last=int(last),
                bad=int(bad and last),
                prefix=len(Chain.TURNS),
            )


def test_cards_talk_through_two_switches_and_stop_one_another_through_both(seed):
    random = Random(seed)
    chain = Chain()
    sent = [
        [
            [(random_words(random, 60), random.random() < 0.1) for _ in range(8)]
            for _ in range(CHANNELS)
        ]
        for _ in chain.cards
    ]
    # More than the buffers of two switches and of b take.
    sent[0][CHANNEL.BULK] += [(random_words(random, 2) * 100, False) for _ in range(15)]
    chain.take[CHANNEL.BULK] = lambda: False

    def sent_to(n, channel):
        whole = [one for one in chain.packets[1 - n][channel] if isinstance(one, tuple)]
        return len(whole) == len(sent[n][channel])

    def check():
        yield from chain.up()
        keys = [(n, channel) for n in range(2) for channel in range(CHANNELS)]
        stalled = (0, CHANNEL.BULK)
        yield from finish(lambda: all(sent_to(*key) for key in keys if key != stalled), 4000)
        assert chain.packets[1][CHANNEL.BULK] == []
        # STOP has come back to the sender, for this channel alone.
        yield from pause(1000)
        assert (yield chain.cards[0].stopped) == 1 << CHANNEL.BULK
        chain.take[CHANNEL.BULK] = lambda: random.random() < 0.9
        yield from finish(lambda: sent_to(*stalled), 4000)

    processes = [
        source(card.sinks[channel], items(sent[n][channel]), random, 0.9)
        for n, card in enumerate(chain.cards)
        for channel in range(CHANNELS)
    ]
    run_simulation(chain, [*chain.processes, *processes, check()])
    for n in range(2):
        for channel in range(CHANNELS):
            expected = [(words, not bad) for words, bad in sent[n][channel]]
            assert chain.packets[1 - n][channel] == expected
