"""The parts of a pair of rings: the choice of a ring against its model, the merge, the numbers."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest
from migen import *

from dibber.fabric.ring.fold import HEARD_BIT, RingCable
from dibber.fabric.ring.merge import RingMerge
from dibber.fabric.ring.view import RingView
from dibber.fabric.ring.way import SLOTS, RingRest, RingWay
from dibber.fabric.ring.words import LOST
from tests.gateware.link.items import collect
from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import drive
from tests.gateware.models.link import flow_word
from tests.gateware.models.ring_pair import Inputs, Ways, addresses

CHANNELS, RINGS = 4, 2


def read(signals):
    values = []
    for signal in signals:
        values.append((yield signal))
    return values


# Ways ---------------------------------------------------------------------------------------------


class Send:
    """A send buffer of one ring and channel, as the choice sees it: packets, and their ends."""

    def __init__(self, random):
        self.random = random
        self.turns, self.gone, self.begun = [None] * SLOTS, [], None
        self.packets = []

    def take(self, first, turn, data, last):
        if first:
            self.begun = [turn, []]
        self.begun[1].append(data)
        if last:
            self.turns[self.turns.index(None)] = self.begun[0]
            self.packets.append(tuple(self.begun))
            self.begun = None

    def step(self, up):
        for n, turn in enumerate(self.turns):
            if turn is not None and self.random.random() < (0.03 if up else 0.1):
                self.turns[n] = None
                if not up:
                    self.gone.append(turn)
        if self.random.random() < 0.05:
            self.gone.clear()


@pytest.mark.parametrize("size, last", [(2, None), (4, None), (5, None), (2, 0), (4, 1), (8, 7)])
def test_each_packet_takes_the_ring_that_the_model_says(seed, size, last):
    random = Random(f"{seed}/{size}/{last}")
    address = random.randrange(size)
    dut, model = shared(RingWay, CHANNELS), Ways(CHANNELS, address, size, last)
    sends = [[Send(random) for _ in range(CHANNELS)] for _ in range(RINGS)]
    ups = [1, 1]
    words = [None] * CHANNELS  # at the sinks: (turn, data, first, last)
    given = [[] for _ in range(CHANNELS)]
    ways = set()

    def next_word(n, before):
        """The layer above: whole packets, sometimes one that is begun again."""
        if before is None or before[3] or random.random() < 0.01:
            turn = random.randrange(size)
            # The route may also lead back.
            route = random.choice((turn, (turn - size) % 16)) if turn else 0
            return turn, random.getrandbits(28) << 4 | route, True, random.random() < 0.2
        return before[0], random.getrandbits(30), False, random.random() < 0.2

    def main():
        yield dut.address.eq(address)
        yield dut.size.eq(size)
        yield dut.folded.eq(last is not None)
        yield dut.last.eq(last or 0)
        before = [None] * CHANNELS
        for _ in range(2500):
            for r in range(RINGS):
                if random.random() < 0.005:
                    ups[r] ^= 1
            ready = [[random.random() < 0.7 and None in s.turns for s in ring] for ring in sends]
            yield dut.ups.eq(ups[0] | ups[1] << 1)
            for n, sink in enumerate(dut.sinks):
                if words[n] is None and random.random() < 0.8:
                    words[n] = before[n] = next_word(n, before[n])
                word = words[n]
                yield sink.valid.eq(word is not None)
                if word is not None:
                    _, data, first, end = word
                    yield from drive(sink, first=int(first), last=int(end), prefix=1)
                    yield sink.data.eq(data)
                for r in range(RINGS):
                    record, send = dut.slots[r][n], sends[r][n]
                    yield record.open.eq(
                        sum((t is not None) << s for s, t in enumerate(send.turns))
                    )
                    for s, turn in enumerate(send.turns):
                        if turn is not None:
                            yield getattr(record, f"turn{s}").eq(turn)
                    yield record.begun.eq(send.begun is not None)
                    yield dut.sources[r][n].ready.eq(int(ready[r][n]))
                    # A slot that is gone keeps its turn; here any free one shows it.
                    gone = 0
                    free = [s for s, turn in enumerate(send.turns) if turn is None]
                    send.gone = send.gone[: len(free)]
                    for s, turn in zip(free, send.gone):
                        yield getattr(record, f"turn{s}").eq(turn)
                        gone |= 1 << s
                    yield dut.gone[r][n].eq(gone)
            yield
            seen = Inputs(
                [w and (w[0] if w[2] else None, w[3]) for w in words],
                ready,
                [[list(s.turns) for s in ring] for ring in sends],
                [[list(s.gone) for s in ring] for ring in sends],
                [[s.begun is not None for s in ring] for ring in sends],
                tuple(ups),
            )
            offers, taken = model.offered(seen), model.ready(seen)
            for n, sink in enumerate(dut.sinks):
                valid = yield from read(dut.sources[r][n].valid for r in range(RINGS))
                ring = offers[n][0] if n in offers else None
                assert valid == [int(ring == r) for r in range(RINGS)]
                if words[n] is not None:
                    assert (yield sink.ready) == taken[n]
            cut = [model.inside[n] and n in offers and not offers[n][1] for n in range(CHANNELS)]
            model.step(seen)
            for n in range(CHANNELS):
                if words[n] is None:
                    continue
                turn, data, first, end = words[n]
                if n in offers:
                    send = sends[offers[n][0]][n]
                    if offers[n][1]:
                        # None of its flow is open in the other ring.
                        other = sends[1 - offers[n][0]][n]
                        assert not first or turn not in other.turns + other.gone
                        send.take(first, turn, data, end)
                        given[n].append(data)
                        ways.add((offers[n][0], n))
                    elif first and cut[n]:
                        send.begun = None
                if taken[n]:
                    words[n] = None
            for r in range(RINGS):
                for send in sends[r]:
                    send.step(ups[r])

    run_simulation(dut, [main()])
    assert len(ways) == RINGS * CHANNELS and all(len(g) > 100 for g in given)


# A Ring That Is Cut -------------------------------------------------------------------------------


def test_a_packet_without_an_end_holds_its_flow_until_it_has_come_through_all_nodes():
    size, unit = 5, 16
    dut, held = RingRest(2, unit), []

    def main():
        yield dut.up.eq(1)
        yield dut.size.eq(size)
        yield
        yield dut.up.eq(0)
        yield dut.other_up.eq(1)
        yield from drive(dut.event, valid=1, status=LOST, channel=1, slot=2)
        yield
        yield dut.event.valid.eq(0)
        yield
        while (yield dut.gone[1]):
            assert (yield dut.gone[1]) == 4 and not (yield dut.gone[0])
            held.append((yield dut.flush))
            yield
        assert (yield dut.flush)
        yield dut.other_up.eq(0)
        yield
        yield
        assert not (yield dut.flush)

    run_simulation(dut, [main()])
    assert (size + 1) * unit <= len(held) <= (size + 1) * unit + 2 and not any(held[:-1])


# Merge --------------------------------------------------------------------------------------------


def test_packets_of_both_rings_come_in_the_order_in_which_they_began(seed):
    """The second words of a packet may come much later than the first ones of the other ring."""
    random = Random(seed)
    dut, begins, out = RingMerge(64), {}, []  # a packet's first word: when it began
    queues, now = [[], []], [0]

    @passive
    def clock():
        while True:
            now[0] += 1
            yield

    def arrivals(ring):
        for number in range(60):
            for _ in range(random.randrange(3, 9) if random.random() < 0.8 else 40):
                yield
            packet = [ring << 16 | number << 8 | n for n in range(random.randrange(1, 6))]
            yield dut.begins[ring].eq(1)
            begins[packet[0]] = now[0]
            queues[ring].append(packet)
            yield
            yield dut.begins[ring].eq(0)

    @passive
    def fifo(ring):
        sink = dut.sinks[ring]
        while True:
            while not queues[ring]:
                yield
            packet = queues[ring].pop(0)
            for n, data in enumerate(packet):
                while random.random() < 0.3:
                    yield
                last = int(n == len(packet) - 1)
                yield from drive(sink, valid=1, data=data, first=int(n == 0), last=last)
                yield
                while not (yield sink.ready):
                    yield
                yield sink.valid.eq(0)

    def take():
        while len([p for p in out if isinstance(p, tuple)]) < 120:
            yield dut.source.ready.eq(int(random.random() < 0.8))
            yield
            yield from collect(dut.source, out)

    run_simulation(dut, [clock(), arrivals(0), arrivals(1), fifo(0), fifo(1), take()])
    # Of two that begin in one cycle, either may come first.
    order = [begins[words[0]] for words, good in out if good]
    assert order == sorted(order) and len({words[0] for words, _ in out}) == 120
    assert all(words == list(range(words[0], words[0] + len(words))) for words, _ in out)


# Numbers ------------------------------------------------------------------------------------------


class Views(Module):
    """Two views and the elections that they see."""

    def __init__(self):
        names = [("address", 4), ("size", 5), ("known", 1), ("marked", 1)]
        self.elections = [Record(names, name=f"election{n}") for n in range(RINGS)]
        self.ups = [Signal(name=f"up{n}") for n in range(RINGS)]
        self.views = [RingView(n) for n in range(RINGS)]
        self.submodules += self.views
        for n, view in enumerate(self.views):
            view.connect(
                self.elections[n],
                self.elections[1 - n],
                self.ups[n],
                self.views[1 - n],
                self.ups[1 - n],
            )


RINGS_OF = [(n, None) for n in range(2, 17)] + [(n, last) for n in range(2, 9) for last in range(n)]


def test_each_card_has_one_number_in_both_rings_folded_or_not():
    dut = Views()

    def main():
        for cards, last in RINGS_OF:
            table = addresses(cards, last)
            for card, places in enumerate(table):
                for election, place in zip(dut.elections, places):
                    nodes = cards if last is None else 2 * cards
                    marked = int(last is not None)
                    yield from drive(election, address=place, size=nodes, known=1, marked=marked)
                for up in dut.ups:
                    yield up.eq(1)
                yield
                yield
                yield
                for ring, view in enumerate(dut.views):
                    assert (yield view.agrees)
                    assert ((yield view.address), (yield view.size)) == (card, cards)
                    for other in range(cards):
                        yield view.card.eq(other)
                        yield view.source.eq(table[other][ring])
                        yield
                        assert (yield view.place) == table[other][ring]
                        assert (yield view.sender) == other

    run_simulation(dut, [main()])


def test_ring_1_is_not_up_if_its_cables_are_mixed_up(seed):
    """And a folded ring is not up if its numbers do not fit."""
    random, dut, kept = Random(seed), Views(), []

    def main():
        for _ in range(300):
            cards = random.randrange(2, 17)
            one, other, size = random.randrange(cards), random.randrange(cards), cards
            if random.random() < 0.2:
                size = random.randrange(2, 17)
                other = random.randrange(size)
            marked = random.random() < 0.5
            for election, place, nodes in zip(dut.elections, (one, other), (cards, size)):
                yield from drive(election, address=place, size=nodes, known=1, marked=int(marked))
            for up in dut.ups:
                yield up.eq(1)
            for _ in range(3):
                yield
            agrees = yield from read(view.agrees for view in dut.views)
            if marked:
                fits = size == cards and cards % 2 == 0 and cards >= 4
                fits = int(fits and (one + other) % cards % 2 == 1)
                assert agrees == [fits, fits]
            else:
                fits = int(size == cards and (one + other) % cards == 0)
                assert agrees == [1, fits]
            kept.append((marked, fits))

    run_simulation(dut, [main()])
    assert len(set(kept)) == 4


# Cable --------------------------------------------------------------------------------------------


def test_a_cable_folds_when_it_is_not_whole_and_no_ring_is_up_and_opens_when_it_is_whole():
    fold, hold = 32, 16
    dut = RingCable(fold, hold)
    heard = {"value": 0, "lane": True}

    @passive
    def lane():
        while True:
            data, k = flow_word(heard["value"] << HEARD_BIT)[:2]
            yield dut.signal.eq(int(heard["lane"]))
            yield from drive(dut.serial_rx, valid=int(heard["lane"]), data=data, k=k)
            yield

    def pause(cycles):
        for _ in range(cycles):
            yield

    def sent():
        """HEARD in the idles that leave."""
        return (yield dut.serial_tx.data) >> 8 + HEARD_BIT & 1

    def main():
        data, k = flow_word(0x81)[:2]
        yield from drive(dut.node_tx, valid=1, data=data, k=k)
        yield dut.serial_tx.ready.eq(1)
        heard["value"] = 1
        yield from pause(3 * fold)
        assert (yield dut.whole) and not (yield dut.folded) and (yield from sent())
        # The other end hears nothing, but a ring is UP, or the other cable is dead.
        heard["value"] = 0
        yield dut.any_up.eq(1)
        yield dut.other_alive.eq(1)
        yield from pause(3 * fold)
        assert not (yield dut.folded) and (yield dut.alive)
        yield dut.any_up.eq(0)
        yield dut.other_alive.eq(0)
        yield from pause(3 * fold)
        assert not (yield dut.folded)
        yield dut.other_alive.eq(1)
        yield from pause(fold + 4)
        assert (yield dut.folded) and not (yield dut.node_signal)
        # The cable has idles of its own, and the node's words stay in the card.
        assert (yield dut.serial_tx.data) >> 8 & 0xFF == 1 << HEARD_BIT
        assert (yield dut.node_rx.valid) and (yield dut.node_rx.data) == data
        yield from pause(hold)
        assert (yield dut.node_signal)
        heard["lane"] = False
        yield from pause(3 * fold)
        assert (yield dut.folded) and (yield dut.node_signal) and not (yield from sent())
        heard["lane"], heard["value"] = True, 1
        yield from pause(2 * fold)
        assert not (yield dut.folded) and (yield dut.serial_tx.data) >> 8 & 0x81 == 0x81

    run_simulation(dut, [main(), lane()])
