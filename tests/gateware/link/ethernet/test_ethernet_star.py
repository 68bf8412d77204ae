"""A port over Ethernet with several peers: what comes from each, what goes to each."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import Counter
from random import Random

from migen import *

from dibber.interface.ethernet import ETHERNET_KIND, ETHERNET_STATE
from dibber.link.ethernet.star import EthernetStar
from dibber.link.ethernet.training import SILENT_PERIODS

from gateware.link.ethernet.wire import give_frames, mac_number, take_frames
from gateware.link.items import collect, word_items
from gateware.link.pair import pulse
from gateware.models.compiled import run_simulation
from gateware.models.drive import finish, growing, source
from gateware.models.ethernet import BROADCAST, Receiver, decode, fragments, status_frame
from gateware.models.port_contract import pause, random_packets

PERIOD, CHANNELS, LIMIT = 256, 4, 8
BUFFERS = (64, 64, 128, 64)
OPTIONS = dict(mtu=72, period=PERIOD, buffers=BUFFERS, queues=(32, 32, 64, 32))


def mac_of(number):
    return b"\x02\0\0\0\0" + bytes([number])


# A Port and Peers of the Test ---------------------------------------------------------------------


class Peer:
    """A card whose frames the test makes. `credits`: what the port gave it in its session."""

    def __init__(self, number):
        self.number, self.mac, self.nonce = number, mac_of(number), 0xA000 + number
        self.session = 0
        self.theirs = None  # the port's session with it
        self.credits = [0] * CHANNELS
        self.frames = []  # that the port sent to it

    def hears(self, data):
        if data[:6] not in (self.mac, BROADCAST):
            return
        frame = decode(data, self.mac)
        if data[:6] == BROADCAST:
            return
        self.frames.append(frame)
        if frame.kind == ETHERNET_KIND.STATUS:
            self.theirs = frame.status["session"]
            self.credits = list(frame.status["credit"])
        else:
            self.credits[frame.credit[0]] = frame.credit[1]

    def status(self, mac, nonce, begun=True, heard=True, credits=(4096,) * CHANNELS):
        known = (nonce, self.theirs, mac) if heard else None
        frame = status_frame(self.mac, self.nonce, self.session, known, credits)
        frame.status["state"] |= self.number << 4 | (ETHERNET_STATE.BEGUN if begun else 0)
        return frame.encode()


class Several:
    """A port, number 3, whose peers are the test's."""

    NUMBER, NONCE = 3, 0xBEEF

    def __init__(self, numbers, random=None, peers=3, take=1.0):
        self.port = EthernetStar(peers, **OPTIONS)
        self.peers = [Peer(number) for number in numbers]
        self.random, self.share = random or Random(1), take
        self.give, self.sent = [], []
        self.packets = [[] for _ in range(CHANNELS)]
        self.takes = [True] * CHANNELS
        self.counts = Counter()
        self.alive = set()  # peers that send STATUS frames by themselves

    @passive
    def _watch(self):
        heard = 0
        while True:
            for counters in (self.port.counters, self.port.frame_counters):
                for name, pulse_ in counters.items():
                    self.counts[name] += yield pulse_
            while heard < len(self.sent):
                for peer in self.peers:
                    peer.hears(self.sent[heard])
                heard += 1
            yield

    @passive
    def _keep_alive(self):
        while True:
            yield from pause(8 * PERIOD)
            self.give += [peer.status(mac_of(3), self.NONCE) for peer in self.alive]

    @passive
    def _take(self, channel):
        endpoint = self.port.sources[channel]
        while True:
            yield endpoint.ready.eq(self.takes[channel] and self.random.random() < self.share)
            yield
            yield from collect(endpoint, self.packets[channel])

    def run(self, main, *more):
        def setup():
            yield self.port.mac.eq(mac_number(mac_of(3)))
            yield self.port.nonce.eq(self.NONCE)
            yield self.port.number.eq(self.NUMBER)
            yield self.port.signal.eq(1)
            yield from main

        run_simulation(
            self.port,
            [
                setup(),
                self._watch(),
                self._keep_alive(),
                take_frames(self.port.frame_tx, self.sent),
                give_frames(self.port.frame_rx, self.give),
                *[self._take(n) for n in range(CHANNELS)],
                *more,
            ],
        )

    def say(self, peer, **fields):
        self.give.append(peer.status(mac_of(3), self.NONCE, **fields))
        yield from pause(80)

    def up(self, *peers):
        """These peers, or all, come UP and stay so."""
        for peer in peers or self.peers:
            yield from self.say(peer, heard=False, begun=False)
            yield from self.say(peer)
            self.alive.add(peer)
        for peer in peers or self.peers:
            said = [f for f in peer.frames if f.kind == ETHERNET_KIND.STATUS][-1]
            assert said.status["state"] & ETHERNET_STATE.BEGUN

    def count_up(self):
        count = 0
        for slot in self.slots():
            count += yield slot.training.up
        return count

    def slots(self):
        return [getattr(self.port, f"slot{n}") for n in range(3)]

    def data(self, peer):
        return [frame for frame in peer.frames if frame.kind == ETHERNET_KIND.DATA]


# Sessions -----------------------------------------------------------------------------------------


def test_it_tells_all_stations_who_it_is_and_each_peer_that_it_hears_it(seed):
    several = Several([1, 2, 9])

    def main():
        yield from pause(2 * PERIOD)
        hello = decode(several.sent[0], BROADCAST)
        assert several.sent[0][:6] == BROADCAST and hello.status["state"] == 3 << 4
        yield from several.up()
        assert (yield from several.count_up()) == 3 and (yield several.port.up)
        for peer in several.peers:
            said = peer.frames[-1].status
            assert said["heard"] == peer.nonce and said["credit"] == BUFFERS
        # Hellos of peers that are known change nothing.
        for peer in several.peers:
            yield from several.say(peer, heard=False, begun=False)
        assert (yield from several.count_up()) == 3

    several.run(main())
    assert several.counts["LINK_TRAINED"] == 3 and several.counts["LINK_LOST"] == 0
    assert several.counts["FRAMES_STRANGER"] == 0


def test_a_peer_that_was_reset_begins_anew_and_the_others_stay(seed):
    """It has the same session number and nonce as before, and hears this card already."""
    several = Several([1, 2])

    def main():
        yield from several.up()
        first, second = several.peers
        yield from several.say(first, begun=False)
        assert (yield from several.count_up()) == 1
        yield from several.say(first, heard=False, begun=False)
        yield from several.say(first, begun=False)
        yield from several.say(first)
        assert (yield from several.count_up()) == 2
        assert first.theirs == 1 and second.theirs == 0

    several.run(main())
    assert several.counts["LINK_LOST"] == 1 and several.counts["LINK_TRAINED"] == 3


def test_more_cards_than_slots_are_strangers_until_a_slot_is_free(seed):
    several = Several([1, 2, 4, 5])

    def main():
        *three, fourth = several.peers
        yield from several.up(*three)
        yield from several.say(fourth, heard=False, begun=False)
        assert several.counts["FRAMES_STRANGER"] == 1 and fourth.frames == []
        several.alive.remove(three[1])
        yield from pause((SILENT_PERIODS + 9) * PERIOD)
        assert (yield from several.count_up()) == 2
        yield from several.up(fourth)
        assert (yield from several.count_up()) == 3

    several.run(main())
    assert several.counts["LINK_LOST"] == 1


# Received -----------------------------------------------------------------------------------------


def mixed(several, random, queues, faults):
    """Frames of all peers in random order, each within its credit; what the models say of them.

    queues : for each peer and channel, the fragments that it sends
    faults : share of frames that are lost, come twice, are late, have a wrong FCS
    """
    ours = mac_of(3)
    models = [Receiver(ours, peer.mac, peer.theirs, whole=True) for peer in several.peers]
    late = []

    def hand(model, frame, error=False):
        several.give.append((frame, error))
        model.take(frame, error)

    while any(queue for channels in queues for queue in channels):
        yield
        if len(several.give) > 40 and random.random() < 0.9:
            yield from pause(8)
        n, channel = random.randrange(len(queues)), random.randrange(CHANNELS)
        queue, peer, model = queues[n][channel], several.peers[n], models[n]
        if not queue:
            continue
        frame = queue[0]
        room = (peer.credits[channel] - frame.position) % 65536
        if room < frame.units or room >= 32768:
            continue
        queue.pop(0)
        data = frame.encode()
        kind = random.choices(["", "lost", "twice", "late", "wrong"], [1, *faults])[0]
        if kind == "late":
            late.append((model, data))
            continue
        if kind != "lost":
            hand(model, data, kind == "wrong")
        if kind == "twice":
            hand(model, data)
        if late and random.random() < 0.3:
            hand(*late.pop(0))
    return models


def received(seed, faults, count=14, take=0.8):
    """Random packets of three peers, mixed on the wire."""
    random = Random(seed)
    several = Several([1, 2, 9], random, take=take)
    sent = [random_packets(random, CHANNELS, count) for _ in several.peers]
    for n, channels in enumerate(sent):
        for queue in channels.values():
            for number, (words, _) in enumerate(queue):
                words[0] = n << 16 | number

    def main():
        yield from several.up()
        queues = [
            [
                fragments(
                    channels[c],
                    c,
                    LIMIT,
                    destination=mac_of(3),
                    source=peer.mac,
                    session=peer.theirs,
                    credit=(c, 4096),
                )
                for c in range(CHANNELS)
            ]
            for peer, channels in zip(several.peers, sent)
        ]
        several.models = yield from mixed(several, random, queues, faults)
        wanted = [sum(len(m.packets[c]) for m in several.models) for c in range(CHANNELS)]
        yield from finish(lambda: [len(packets) for packets in several.packets] == wanted, 20000)
        yield from pause(200)

    several.run(main())
    for c, packets in enumerate(several.packets):
        for n, model in enumerate(several.models):
            assert [p for p in packets if p[0][0] >> 16 == n] == model.packets[c]
    for name in ("gap", "late"):
        total = sum(model.counts[name] for model in several.models)
        assert several.counts[f"FRAMES_{name.upper()}"] == total
    assert several.counts["FRAMES_NO_ROOM"] == several.counts["LINK_LOST"] == 0
    return several, sent


def test_packets_of_each_peer_come_whole_and_in_order_however_they_are_mixed_and_taken(seed):
    several, sent = received(seed, faults=(0, 0, 0, 0), take=0.6)
    for n, channels in enumerate(sent):
        for c, queue in channels.items():
            came = [packet for packet in several.packets[c] if packet[0][0] >> 16 == n]
            assert came == [(words, not bad) for words, bad in queue]


def test_lost_doubled_late_and_wrong_frames_of_several_peers_make_no_packet_wrong(seed):
    several, sent = received(seed, faults=(0.05, 0.05, 0.05, 0.05))
    assert several.counts["FRAMES_GAP"] > 10 and several.counts["FRAMES_BAD"] > 5
    for c, packets in enumerate(several.packets):
        for words, good in packets:
            wanted, bad = sent[words[0] >> 16][c][words[0] & 0xFFFF]
            assert (words, good) == (wanted, not bad)


def test_a_peer_that_stops_in_the_middle_of_a_packet_delays_no_other(seed):
    several = Several([1, 2])

    def main():
        yield from several.up()
        first, second = several.peers
        for peer, count in ((first, 1), (second, 9)):
            frames = fragments(
                [([peer.number] * 40, False)],
                2,
                LIMIT,
                destination=mac_of(3),
                source=peer.mac,
                session=peer.theirs,
            )
            several.give += [frame.encode() for frame in frames[:count]]
        yield from finish(lambda: len(several.packets[2]) == 1, 400)
        # The first one begins another packet. The begun one is forgotten, and its room given back.
        again = fragments(
            [([7] * 4, False)],
            2,
            LIMIT,
            8,
            destination=mac_of(3),
            source=first.mac,
            session=first.theirs,
        )
        several.give += [frame.encode() for frame in again]
        yield from finish(lambda: len(several.packets[2]) == 2, 400)
        yield from pause(2 * PERIOD)
        assert first.credits[2] == 8 + 2 + BUFFERS[2]

    several.run(main())
    assert several.packets[2] == [([2] * 40, True), ([7] * 4, True)]


def test_one_packet_of_each_peer_goes_in_turn(seed):
    several = Several([1, 2, 9])

    def main():
        yield from several.up()
        several.takes[2] = False
        yield from pause(2)
        for peer in several.peers:
            frames = fragments(
                [([peer.number] * 6, False)] * 6,
                2,
                LIMIT,
                destination=mac_of(3),
                source=peer.mac,
                session=peer.theirs,
            )
            several.give += [frame.encode() for frame in frames]
        yield from pause(600)
        several.takes[2] = True
        yield from pause(400)
        assert len(several.packets[2]) == 18

    several.run(main())
    order = [words[0] for words, _ in several.packets[2]]
    # The first packet waited at the source before those of the others came.
    assert Counter(order) == {1: 6, 2: 6, 9: 6}
    assert all(len({order[n], order[n + 1], order[n + 2]}) == 3 for n in range(3, 13, 3))


# Sent ---------------------------------------------------------------------------------------------


def routed(turn, words, bad=False, hops=1):
    """A packet with prefix words, as words of a sink."""
    prefixes = [turn | (hops - 1 - n) << 8 for n in range(hops)]
    items = word_items([(prefixes + words, bad)])
    for item in items:
        item["prefix"] = hops if item["first"] else 0
    return items


def test_a_prefix_word_names_the_peer_and_wrong_routes_are_dropped_and_counted(seed):
    """Random routes under random stalls: each right one goes to its peer, in order."""
    random = Random(seed)
    several = Several([1, 2, 9], random)
    queues = [[] for _ in range(CHANNELS)]
    wanted = {(peer.number, c): [] for peer in several.peers for c in range(CHANNELS)}
    loops, wrong = [], 0
    for c in range(CHANNELS):
        for number in range(30):
            turn, hops = random.randrange(16), random.choice([1] * 6 + [2, 3])
            words = [c << 8 | number, *[random.getrandbits(32)] * random.randrange(6)]
            queues[c] += routed(turn, words, hops=hops)
            target = ((turn + 3) % 16, c)
            if hops == 1 and turn == 0 and c == 0:
                loops.append((words, True))
            elif hops == 1 and target in wanted:
                wanted[target].append(words)
            else:
                wrong += 1

    def main():
        yield from several.up()
        several.begin = True
        yield from finish(
            lambda: (
                several.counts["PACKET_MISROUTED"] == wrong
                and all(
                    len([f for f in several.data(peer) if f.channel == c])
                    == len(wanted[peer.number, c])
                    for peer in several.peers
                    for c in range(CHANNELS)
                )
            ),
            12000,
        )
        yield from pause(100)

    def later(queue):
        while not getattr(several, "begin", False):
            yield None
        yield from queue

    feeds = [
        source(several.port.sinks[c], later(queue), random, 0.8) for c, queue in enumerate(queues)
    ]
    several.run(main(), *feeds)
    for peer in several.peers:
        for c in range(CHANNELS):
            frames = [frame for frame in several.data(peer) if frame.channel == c]
            assert [frame.words for frame in frames] == wanted[peer.number, c]
            assert all(frame.session == peer.session for frame in frames)
            places = [sum(f.units for f in frames[:n]) for n in range(len(frames))]
            assert [frame.position for frame in frames] == places
    assert several.packets[0] == loops and loops
    assert several.counts["PACKET_MISROUTED"] == wrong


def test_a_packet_to_a_peer_that_left_is_dropped_and_the_others_get_theirs(seed):
    several = Several([1, 2])
    queue = []

    def main():
        yield from several.up()
        first, second = several.peers
        # Without credit its packets wait, and so do those behind them.
        yield from several.say(first, heard=False)
        queue.extend(routed(1 - 3 & 15, [1] * 12) + routed(2 - 3 & 15, [2] * 12))
        yield from finish(lambda: several.data(second), 800)
        assert len(several.data(first)) == 1
        # It was reset while a packet to it is under way.
        queue.extend(routed(1 - 3 & 15, [3] * 30)[:20])
        yield from pause(100)
        yield from several.say(first, begun=False)
        queue.extend(routed(1 - 3 & 15, [4] * 30) + routed(2 - 3 & 15, [5] * 4))
        yield from finish(lambda: len(several.data(second)) == 2, 800)
        assert several.data(second)[1].words == [5] * 4

    def items():
        yield from growing(queue)

    several.run(main(), source(several.port.sinks[2], items(), Random(seed)))
    assert several.counts["PACKET_MISROUTED"] >= 1


def test_without_a_prefix_a_packet_goes_to_the_only_peer_and_with_more_it_is_dropped(seed):
    several = Several([1, 2])
    queue = []

    def main():
        first, second = several.peers
        queue.extend(word_items([([1, 2], False)]))
        yield from pause(300)
        yield from several.up(first)
        yield from finish(lambda: several.data(first), 200)
        yield from several.up(second)
        queue.extend(word_items([([3, 4], False)]))
        yield from finish(lambda: several.counts["PACKET_MISROUTED"] == 1, 200)
        assert len(several.data(first)) == 1 and several.data(second) == []

    several.run(main(), source(several.port.sinks[1], growing(queue), Random(seed)))


# Three Ports --------------------------------------------------------------------------------------


class Trio(Module):
    """Three ports, numbers 1, 6 and 12, and a switch between them that loses frames."""

    NUMBERS = (1, 6, 12)

    def __init__(self, random, loss=0.0):
        self.ports = [EthernetStar(2, **OPTIONS) for _ in self.NUMBERS]
        self.submodules += self.ports
        self.loss, self.random = loss, random
        self.sent = [[] for _ in self.ports]
        self.came = [[] for _ in self.ports]
        self.packets = [[[] for _ in range(CHANNELS)] for _ in self.ports]
        self.queues = [[[] for _ in range(CHANNELS)] for _ in self.ports]
        self.counts = [Counter() for _ in self.ports]

    @passive
    def _switch(self):
        done = [0] * 3
        while True:
            for n, sent in enumerate(self.sent):
                while done[n] < len(sent):
                    frame = sent[done[n]]
                    done[n] += 1
                    for other in range(3):
                        target = frame[:6] in (BROADCAST, mac_of(self.NUMBERS[other]))
                        if other != n and target and self.random.random() >= self.loss:
                            self.came[other].append(frame)
            yield

    @passive
    def _watch(self):
        for port, number in zip(self.ports, self.NUMBERS):
            yield port.mac.eq(mac_number(mac_of(number)))
            yield port.nonce.eq(number)
            yield port.number.eq(number)
            yield port.signal.eq(1)
        while True:
            for port, counts in zip(self.ports, self.counts):
                for name in ("LINK_LOST", "LINK_TRAINED"):
                    counts[name] += yield port.counters[name]
            yield

    @passive
    def _take(self, n, channel):
        endpoint = self.ports[n].sources[channel]
        while True:
            yield endpoint.ready.eq(self.random.random() < 0.8)
            yield
            yield from collect(endpoint, self.packets[n][channel])

    def all_up(self):
        slots = [getattr(port, f"slot{n}") for port in self.ports for n in (0, 1)]
        count = 0
        while count < len(slots):
            yield
            count = 0
            for slot in slots:
                count += yield slot.training.up

    def send(self, n, other, channel, words):
        turn = (self.NUMBERS[other] - self.NUMBERS[n]) % 16
        self.queues[n][channel] += routed(turn, words)

    def run(self, main):
        run_simulation(
            self,
            [
                main,
                self._switch(),
                self._watch(),
                *[take_frames(port.frame_tx, sent) for port, sent in zip(self.ports, self.sent)],
                *[give_frames(port.frame_rx, came) for port, came in zip(self.ports, self.came)],
                *[self._take(n, c) for n in range(3) for c in range(CHANNELS)],
                *[
                    source(port.sinks[c], growing(queue), self.random, 0.9)
                    for port, queues in zip(self.ports, self.queues)
                    for c, queue in enumerate(queues)
                ],
            ],
        )


def test_three_ports_send_to_each_other_through_a_switch_and_a_reset_of_one_spares_the_rest(seed):
    random = Random(seed)
    trio = Trio(random)
    sent = {}

    def load(pairs, count, base):
        for n, other in pairs:
            for c in range(CHANNELS):
                for number in range(count):
                    words = [n << 16 | base + number, *[number] * random.randrange(30)]
                    sent.setdefault((n, other, c), []).append((words, True))
                    trio.send(n, other, c, words)

    def came(n, other, c):
        packets = trio.packets[other][c]
        return [p for p in packets if isinstance(p, tuple) and p[0][0] >> 16 == n]

    pairs = [(n, other) for n in range(3) for other in range(3) if n != other]

    def main():
        yield from trio.all_up()
        load(pairs, 5, 0)
        yield from finish(lambda: all(came(*key) == sent[key] for key in sent), 12000)
        # The third is reset while the first two talk.
        load([(0, 1), (1, 0)], 8, 100)
        yield from pause(100)
        yield from pulse(trio.ports[2].retrain)
        two = [key for key in sent if 2 not in key[:2]]
        yield from finish(lambda: all(came(*key) == sent[key] for key in two), 12000)
        yield from trio.all_up()
        load(pairs, 2, 200)
        yield from finish(lambda: all(came(*key) == sent[key] for key in sent), 12000)

    trio.run(main())
    lost = [counts["LINK_LOST"] for counts in trio.counts]
    assert lost[0] == lost[1] == 1 and lost[2] >= 1


def test_three_ports_come_up_and_send_whole_packets_though_frames_are_lost(seed):
    random = Random(seed)
    trio = Trio(random, loss=0.1)
    pairs = [(n, other) for n in range(3) for other in range(3) if n != other]

    def main():
        yield from trio.all_up()
        for n, other in pairs:
            for number in range(12):
                trio.send(n, other, 2, [n << 16 | number, *[number] * random.randrange(60)])
        yield from pause(6000)

    trio.run(main())
    for n, other in pairs:
        found = [p for p in trio.packets[other][2] if isinstance(p, tuple)]
        numbers = [words[0] & 0xFFFF for words, good in found if words[0] >> 16 == n and good]
        assert numbers == sorted(set(numbers)) and len(numbers) > 4
        assert all(set(words[1:]) <= {words[0] & 0xFFFF} and good for words, good in found)
