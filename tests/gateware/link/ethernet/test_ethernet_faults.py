"""The port over Ethernet on a wire that loses, doubles, reorders and invents frames."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from tests.gateware.link.ethernet.wire import FramePair
from tests.gateware.link.items import word_items
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.ethernet import BROADCAST, Frame, Receiver
from tests.gateware.models.port_contract import pause, random_packets

CHANNELS = 4
OPTIONS = dict(buffers=(64, 64, 128, 64), queues=(32, 32, 32, 32))


class Wire:
    """Frames towards b meet faults once `on` is set; `share` of them each fault."""

    def __init__(self, random, lost=0.0, doubled=0.0, late=0.0, invent=lambda frame: []):
        self.random, self.on = random, False
        self.lost, self.doubled, self.late, self.invent = lost, doubled, late, invent
        self.kept = []  # frames that a later one overtakes

    def __call__(self, frame, there):
        if not (self.on and there):
            return [frame]
        draw = self.random.random
        frames = [] if draw() < self.lost else [frame]
        if draw() < self.doubled:
            frames.append(frame)
        if frames and draw() < self.late:
            self.kept.append(frames.pop())
        elif self.kept and draw() < 0.5:
            frames += [self.kept.pop(0)]
        return self.invent(frame) + frames


def run(seed, count=40, busy=0.9, take=0.9, **faults):
    """Random packets over a bad wire, then one packet for each channel over a good one. Returns the
    pair, what was sent, and the model that saw what came."""
    random = Random(seed)
    wire = Wire(random, **faults)
    pair = FramePair(random, wire, busy=lambda: random.random() < 0.8, **OPTIONS)
    sent = random_packets(random, CHANNELS, count)
    for queue in sent.values():
        for number, (words, _) in enumerate(queue):
            words[0] = number
    for n in range(CHANNELS):
        pair.take[n] = lambda: random.random() < take
    queues = {n: [] for n in range(CHANNELS)}
    model = Receiver(FramePair.MACS[1], FramePair.MACS[0], 0)

    def main():
        yield from pair.up()
        model.skip = len(pair.came)
        wire.on = True
        for n, queue in sent.items():
            queues[n] += queue
        for _ in range(60000):
            yield
            if quiet(pair):
                break
        yield from pause(400)
        wire.on = False
        pair.came += wire.kept
        yield from pause(400)
        for n in range(CHANNELS):
            queues[n].append(([99], False))
        yield from finish(
            lambda: all(pair.packets[n][-1:] == [([99], True)] for n in range(CHANNELS)), 20000
        )
        yield from pause(100)

    pair.run(*feed(pair, queues, busy), main())
    for frame in pair.came[model.skip :]:
        model.take(*(frame if isinstance(frame, tuple) else (frame,)))
    return pair, sent, model


def quiet(pair):
    """Nothing but STATUS frames was sent for a while."""
    return len(pair.sent) > 20 and all(frame[14] >> 5 for frame in pair.sent[-8:])


def feed(pair, queues, busy):
    """Senders of queues that grow."""

    def items(queue):
        for packet in growing(queue):
            if packet is None:
                yield None
            else:
                yield from word_items([packet])

    return [source(pair.a.sinks[n], items(queue), pair.random, busy) for n, queue in queues.items()]


def check(pair, sent, model):
    """What came is what the model says, and no packet is wrong, double or out of order."""
    assert pair.packets == model.packets
    for n in range(CHANNELS):
        good = [words for words, whole in pair.packets[n] if whole][:-1]
        assert all((words, False) == sent[n][words[0]] for words in good)
        numbers = [words[0] for words in good]
        assert numbers == sorted(set(numbers))
    counts = pair.counts["b"]
    for name in ("foreign", "stranger", "gap", "late", "bad"):
        assert counts[f"FRAMES_{name.upper()}"] == model.counts[name], name
    assert counts["FRAMES_NO_ROOM"] == counts["LINK_LOST"] == 0
    return [sum(whole for _, whole in packets) for packets in pair.packets]


def test_a_good_wire_loses_nothing_under_random_stalls(seed):
    pair, sent, model = run(seed, busy=0.6, take=0.6)
    assert check(pair, sent, model) == [1 + sum(not bad for _, bad in q) for q in sent.values()]


def test_lost_frames_end_packets_as_bad_and_make_none_wrong(seed):
    pair, sent, model = run(seed, lost=0.1)
    check(pair, sent, model)
    assert model.counts["gap"] > 10
    assert any(not whole for packets in pair.packets for _, whole in packets)


def test_doubled_frames_are_taken_once(seed):
    pair, sent, model = run(seed, doubled=0.3)
    assert check(pair, sent, model) == [1 + sum(not bad for _, bad in q) for q in sent.values()]
    assert model.counts["late"] > 20


def test_a_frame_that_others_overtook_is_dropped(seed):
    pair, sent, model = run(seed, late=0.2)
    check(pair, sent, model)
    assert model.counts["late"] > 10 and model.counts["gap"] > 10


def test_lost_doubled_and_late_frames_together(seed):
    pair, sent, model = run(seed, lost=0.05, doubled=0.05, late=0.05)
    assert min(check(pair, sent, model)) > 5


def test_invented_frames_are_dropped_with_their_reason_and_disturb_nothing(seed):
    """Frames of others, for others, cut short, with a wrong FCS, with contradictions, of an earlier
    session: between all frames of the peer, and without a gap behind them.
    """
    random = Random(seed + 1)
    a, b = FramePair.MACS

    def invent(frame):
        made = []
        for _ in range(random.randrange(3)):
            words = [random.getrandbits(32) for _ in range(random.randrange(1, 12))]
            other = bytes([2, *random.randbytes(5)])
            good = dict(
                destination=b,
                source=a,
                channel=random.randrange(4),
                position=random.getrandbits(16),
                words=words,
            )
            made.append(
                random.choice(
                    [
                        lambda: random.randbytes(random.randrange(1, 120)),
                        lambda: Frame(**{**good, "destination": other}).encode(),
                        lambda: Frame(**{**good, "source": other, "starts": True}).encode(),
                        lambda: Frame(**{**good, "session": random.randrange(1, 256)}).encode(),
                        lambda: Frame(**good, vlan=5).encode(),
                        lambda: Frame(**good, bad=True).encode(),
                        lambda: Frame(**{**good, "kind": random.randrange(2, 8)}).encode(),
                        lambda: Frame(**{**good, "words": []}).encode(),
                        lambda: Frame(**good).encode()[: random.randrange(1, 30)],
                        lambda: (Frame(**good, starts=True, ends=True).encode(), True),
                        lambda: (frame, True),
                        lambda: Frame(**{**good, "destination": BROADCAST}, kind=1).encode()[:22],
                    ]
                )()
            )
        return made

    pair, sent, model = run(seed, count=20, invent=invent)
    assert check(pair, sent, model) == [1 + sum(not bad for _, bad in q) for q in sent.values()]
    assert min(model.counts[name] for name in ("foreign", "bad", "stranger")) > 5


def test_units_whose_frames_were_all_lost_give_their_room_back(seed):
    """The last frames before a wait for credit: no later frame shows that they are lost."""
    lost, sent = [False], [([number, *[0] * 14], False) for number in range(40)]
    pair = FramePair(
        Random(seed),
        lambda frame, there: [] if lost[0] and there else [frame],
        period=256,
        **OPTIONS,
    )
    queues = {n: [] for n in range(CHANNELS)}

    def main():
        yield from pair.up()
        lost[0] = True
        for queue in queues.values():
            queue += sent
        for _ in range(4000):
            yield
            if (yield pair.a.stopped) == (1 << CHANNELS) - 1:
                break
        else:
            raise AssertionError("some channel never waits for credit")
        lost[0] = False
        yield from finish(lambda: all(p[-1:] == [(sent[-1][0], True)] for p in pair.packets), 20000)

    pair.run(*feed(pair, queues, 1.0), main())
    assert pair.counts["b"]["FRAMES_GAP"] == CHANNELS
    assert pair.counts["b"]["FRAMES_NO_ROOM"] == pair.counts["b"]["LINK_LOST"] == 0
