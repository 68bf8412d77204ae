"""A port over Ethernet with several peers: what comes from each, what goes to each."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import Counter
from random import Random

from dibber.link.ethernet.training import SILENT_PERIODS

from tests.gateware.link.ethernet.several import (
    BUFFERS,
    CHANNELS,
    LIMIT,
    PERIOD,
    Several,
    mac_of,
    routed,
)
from tests.gateware.link.items import word_items
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.ethernet import BROADCAST, Receiver, decode, fragments
from tests.gateware.models.port_contract import pause, random_packets

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


def test_a_hello_gives_no_credit_though_its_header_has_the_first_session(seed):
    several = Several([1])
    queue = []

    def main():
        (peer,) = several.peers
        yield from several.say(peer, heard=False, begun=False)
        yield from several.say(peer, begun=False, credits=(LIMIT,) * CHANNELS)
        yield from several.say(peer, credits=(LIMIT,) * CHANNELS)
        queue.extend(2 * routed(1 - 3 & 15, [7] * 2 * LIMIT))
        yield from finish(lambda: several.data(peer), 200)
        assert peer.theirs == 0
        yield from several.say(peer, heard=False, begun=False)
        yield from pause(200)
        assert len(several.data(peer)) == 1
        yield from several.say(peer, credits=(2 * LIMIT,) * CHANNELS)
        yield from finish(lambda: len(several.data(peer)) == 2, 200)

    several.run(main(), source(several.port.sinks[2], growing(queue), Random(seed)))


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


def test_a_card_that_tells_the_number_of_another_peer_takes_none_of_its_packets(seed):
    """A card has number 0 from its power-up until its host gives it one."""
    several = Several([1, 2])
    queue = []

    def main():
        first, second = several.peers
        yield from several.up()
        second.number = 1
        yield from several.say(second)
        queue.extend(routed(1 - 3 & 15, [7, 8]))
        yield from finish(lambda: several.data(first), 200)
        yield from several.say(first, begun=False)
        several.alive.remove(first)
        yield from several.say(second)
        queue.extend(routed(1 - 3 & 15, [9]))
        yield from finish(lambda: several.data(second), 200)

    several.run(main(), source(several.port.sinks[2], growing(queue), Random(seed)))


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


def test_a_prefix_word_names_the_peer_and_wrong_routes_are_dropped_and_counted(seed):
    """Random routes under random stalls: each right one goes to its peer, in order."""
    random = Random(seed)
    several = Several([1, 2, 9], random)
    queues = [[] for _ in range(CHANNELS)]
    wanted = {(peer.number, c): [] for peer in several.peers for c in range(CHANNELS)}
    loops, wrong = [], 0
    for c in range(CHANNELS):
        for number in range(30):
            # The first packet of each channel has turn 0, which is this card.
            turn = random.randrange(16) if number else 0
            hops = random.choice([1] * 6 + [2, 3]) if number else 1
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


def test_a_peer_that_gives_no_credit_costs_the_others_of_its_channel_one_wait(seed):
    """The rest of a packet is dropped whose first fragment was sent. When the peer gives credit
    again, it gets whole packets."""
    patience = 12
    several = Several([1, 2], patience=patience)
    first, second = several.peers
    first.gives = (4096, 4096, LIMIT, 4096)
    to_first, to_second = 1 - 3 & 15, 2 - 3 & 15
    queue = []

    def main():
        yield from several.up()
        queue.extend(routed(to_first, [1] * 6 * LIMIT))
        queue.extend(routed(to_second, [2]))
        yield from pause((patience - 2) * PERIOD)
        assert several.data(second) == [] and several.counts["FRAMES_NO_ROOM"] == 0
        yield from finish(lambda: several.data(second), 4 * PERIOD)
        assert len(several.data(first)) == 1 and several.counts["FRAMES_NO_ROOM"] == 1
        for word in (3, 4):
            queue.extend(routed(to_first, [word] * 6 * LIMIT) + routed(to_second, [word]))
        yield from finish(lambda: len(several.data(second)) == 3, PERIOD)
        assert several.counts["FRAMES_NO_ROOM"] == 3
        first.gives = (4096,) * CHANNELS
        yield from several.say(first)
        queue.extend(routed(to_first, [5] * 6 * LIMIT))
        yield from finish(lambda: len(several.data(first)) == 4, PERIOD)

    several.run(main(), source(several.port.sinks[2], growing(queue), Random(seed)))
    begun, *after = several.data(first)
    assert [frame.position for frame in after] == [LIMIT, 2 * LIMIT, 3 * LIMIT]
    assert begun.starts and not begun.ends and after[0].starts and after[-1].ends
    assert several.counts["SLACK_OVERFLOW"] == 0 and several.counts["LINK_LOST"] == 0
