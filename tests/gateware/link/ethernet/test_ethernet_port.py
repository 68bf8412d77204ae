"""The port over Ethernet: its states, its credits, its speed."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import partial
from random import Random

import pytest

from migen import *

from dibber.interface.description import LINK_REASON, LINK_STATE
from dibber.link.ethernet.port import EthernetPort
from dibber.link.ethernet.star import EthernetStar
from dibber.link.ethernet.training import SILENT_PERIODS

from tests.gateware.link.ethernet.wire import FramePair, give_frames, mac_number, take_frames
from tests.gateware.link.items import word_items
from tests.gateware.link.pair import pulse
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.ethernet import decode, fragments, status_frame
from tests.gateware.models.port_contract import pause

OPTIONS = dict(mtu=72, period=64, buffers=(64, 64, 128, 64), queues=(32, 32, 32, 32))
CARD, PEER = FramePair.MACS
NONCE, PEER_NONCE = 0xAAAA, 0xBBBB

# One Port -----------------------------------------------------------------------------------------


class Single:
    """A port whose other end is the test: `give` has frames for it, `sent` what it sent."""

    def __init__(self, **options):
        self.port = EthernetPort(**{**OPTIONS, **options})
        self.give, self.sent = [], []
        self.counts = dict.fromkeys(self.port.frame_counters, 0)

    @passive
    def watch(self):
        while True:
            for name, pulse_ in self.port.frame_counters.items():
                self.counts[name] += yield pulse_
            yield

    def run(self, main, *more):
        def setup():
            yield self.port.mac.eq(mac_number(CARD))
            yield self.port.nonce.eq(NONCE)
            yield self.port.signal.eq(1)
            yield from main

        run_simulation(
            self.port,
            [
                setup(),
                self.watch(),
                take_frames(self.port.frame_tx, self.sent),
                give_frames(self.port.frame_rx, self.give),
                *more,
            ],
        )

    def hello(self, session=0, heard=True, nonce=PEER_NONCE, source=PEER, **fields):
        """The other end sends a STATUS frame."""
        known = (NONCE, (yield self.port.training.session), CARD) if heard else None
        self.give.append(status_frame(source, nonce, session, known, **fields).encode())
        yield from pause(40)

    def expect(self, state, reason=None):
        assert (yield self.port.state) == state
        if reason is not None:
            assert (yield self.port.reason) == reason

    def up(self, session=0):
        yield from self.hello(session, heard=False)
        yield from self.hello(session)
        yield from self.expect(LINK_STATE.UP)

    def said(self):
        """The last STATUS frame that the port sent."""
        return [decode(data, PEER) for data in self.sent if data[14] >> 5 == 1][-1]


def test_it_comes_up_when_the_other_end_hears_it_and_says_so(seed):
    single = Single()

    def main():
        yield from pause(100)
        yield from single.expect(LINK_STATE.DOWN, LINK_REASON.NO_HELLO)
        assert single.said().status["state"] == 0 and single.sent[0][:6] == b"\xff" * 6
        yield from single.hello(7, heard=False)
        yield from single.expect(LINK_STATE.ALIGN, LINK_REASON.NOT_HEARD)
        said = single.said()
        assert (said.destination, said.session, said.status["heard"]) == (PEER, 7, PEER_NONCE)
        assert said.status["state"] == 1
        yield from single.hello(7)
        yield from single.expect(LINK_STATE.UP, LINK_REASON.NONE)
        assert single.said().status["credit"] == (64, 64, 128, 64)
        assert (yield single.port.peer) == PEER_NONCE

    single.run(main())


@pytest.mark.parametrize("heard", [False, True])
def test_a_peer_that_began_anew_ends_the_session(seed, heard):
    """It was reset: it has the session of its start again, and hears nobody. Or it went DOWN."""
    single = Single()

    def main():
        yield from single.up()
        before = yield single.port.training.session
        yield from single.hello(1 if heard else 0, heard=heard)
        assert not (yield single.port.up)
        assert (yield single.port.training.session) == before + 1
        yield from single.up(1)

    single.run(main())


def test_it_goes_down_when_the_peer_is_silent_and_not_before(seed):
    single = Single()

    def main():
        yield from single.up()
        for _ in range(3):
            yield from pause((SILENT_PERIODS - 2) * OPTIONS["period"])
            yield from single.expect(LINK_STATE.UP)
            yield from single.hello()
        yield from pause((SILENT_PERIODS + 1) * OPTIONS["period"])
        yield from single.expect(LINK_STATE.DOWN, LINK_REASON.SILENCE)

    single.run(main())


@pytest.mark.parametrize("nonce, source", [(NONCE, PEER), (1, CARD)])
def test_its_own_frames_are_a_loopback_and_no_peer(seed, nonce, source):
    single = Single()

    def main():
        yield from single.hello(nonce=nonce, source=source)
        yield from single.hello(nonce=nonce, source=source)
        yield from single.expect(LINK_STATE.DOWN, LINK_REASON.LOOPBACK)
        yield from single.up()

    single.run(main())


def test_hellos_of_others_do_not_disturb_a_pair(seed):
    single = Single()
    other = b"\x02\0\0\0\0\xcc"

    def main():
        yield from single.up()
        yield from single.hello(9, heard=False, nonce=5, source=other)
        yield from single.hello(9, nonce=5, source=other)
        yield from single.expect(LINK_STATE.UP)
        assert single.counts["FRAMES_STRANGER"] == 2
        assert (yield single.port.peer_mac) == mac_number(PEER)

    single.run(main())


def test_test_and_no_signal_are_states_with_their_reasons(seed):
    single = Single()

    def main():
        yield from single.up()
        yield single.port.test.eq(1)
        yield from pause(3)
        yield from single.expect(LINK_STATE.TEST, LINK_REASON.TEST)
        yield single.port.test.eq(0)
        yield single.port.signal.eq(0)
        yield from pause(3)
        yield from single.expect(LINK_STATE.DOWN, LINK_REASON.NO_SIGNAL)

    single.run(main())


# Credits ------------------------------------------------------------------------------------------


def send(sink, words):
    for n, word in enumerate(words):
        yield sink.valid.eq(1)
        yield sink.data.eq(word)
        yield sink.first.eq(int(n == 0))
        yield sink.last.eq(int(n == len(words) - 1))
        yield
        while not (yield sink.ready):
            yield
    yield sink.valid.eq(0)


def test_it_sends_no_unit_without_credit_and_believes_no_impossible_credit(seed):
    single = Single()
    sink = single.port.sinks[2]

    def data():
        return [decode(frame, PEER) for frame in single.sent if frame[14] >> 5 == 0]

    def main():
        yield from single.up()
        for n in range(6):
            yield from send(sink, [n] * 10)
        yield from pause(60)
        assert data() == [] and (yield single.port.stopped) == 4
        yield from single.hello(credits=(0, 0, 12, 0))
        # Two packets of five units; a third one would end at 15.
        yield from pause(100)
        assert [frame.words[0] for frame in data()] == [0, 1]
        # An older one, one that no buffer has, and one unit less than the third packet needs.
        for credit in (5, 4107, 65530, 14):
            yield from single.hello(credits=(0, 0, credit, 0))
        yield from pause(100)
        assert len(data()) == 2
        yield from single.hello(credits=(0, 0, 30, 0))
        yield from pause(300)
        assert [frame.position for frame in data()] == [0, 5, 10, 15, 20, 25]
        assert (yield single.port.stopped) == 0

    single.run(main())


def test_credits_grow_as_packets_are_taken_and_lost_units_count_as_taken(seed):
    single = Single()
    ours = dict(destination=CARD, source=PEER)

    def credit():
        yield from pause(200)
        return single.said().status["credit"][2]

    def main():
        yield from single.up()
        assert (yield from credit()) == 128
        single.give += [
            f.encode() for f in fragments([([1] * 8, False), ([2] * 8, False)], 2, 8, 0, **ours)
        ]
        # The reader and the memory's register hold two units.
        assert (yield from credit()) in (128, 129, 130)
        yield single.port.sources[2].ready.eq(1)
        assert (yield from credit()) == 128 + 8
        # Ten units are lost before this one, of four.
        single.give += [f.encode() for f in fragments([([3] * 8, False)], 2, 8, 18, **ours)]
        assert (yield from credit()) == 128 + 22
        assert single.counts["FRAMES_GAP"] == 1

    single.run(main())


def test_a_sender_that_ignores_credit_loses_whole_frames_and_nothing_else(seed):
    single = Single()
    ours = dict(destination=CARD, source=PEER)
    packets, came = [([n] * 16, False) for n in range(40)], []

    def main():
        yield from single.up()
        single.give += [f.encode() for f in fragments(packets, 2, 8, 0, **ours)]
        yield from pause(900)
        source = single.port.sources[2]
        yield source.ready.eq(1)
        words = []
        for _ in range(1200):
            yield
            if (yield source.valid):
                words.append((yield source.data))
                if (yield source.last):
                    assert not (yield source.bad)
                    came.append(words)
                    words = []
        assert not words

    single.run(main())
    assert [words[0] for words in came] == list(range(len(came)))
    assert all(words == [words[0]] * 16 for words in came)
    assert 16 <= len(came) < 40 and single.counts["FRAMES_NO_ROOM"] == 40 - len(came)


# Round Trip ---------------------------------------------------------------------------------------


def test_a_ping_measures_the_way_there_and_back(seed):
    pair = FramePair(Random(seed), **{k: OPTIONS[k] for k in ("buffers", "queues")})

    def main():
        yield from pair.up()
        yield from pause(300)
        yield from pulse(pair.a.ping)
        yield from finish_trip(pair.a)

    def finish_trip(port):
        for _ in range(400):
            if (yield port.round_trip):
                assert 20 < (yield port.round_trip) < 200
                return
            yield
        raise AssertionError("no answer")

    pair.run(main())


# Speed --------------------------------------------------------------------------------------------


def test_a_short_packet_passes_in_the_cycles_of_the_budget(seed):
    """Ten words: an inline put of eight bytes."""
    single, times = Single(period=2048), {}
    port = single.port

    @passive
    def clock():
        cycle = 0
        while True:
            now = {
                "last word in": (yield port.sinks[1].valid) and (yield port.sinks[1].last),
                "frame starts": (yield port.frame_tx.valid) and (yield port.frame_tx.first),
                "frame ends": (yield port.frame_tx.valid) and (yield port.frame_tx.last),
                "frame came": (yield port.frame_rx.valid) and (yield port.frame_rx.last),
                "first word out": (yield port.sources[1].valid) and (yield port.sources[1].first),
                "last word out": (yield port.sources[1].valid) and (yield port.sources[1].last),
            }
            for name, happens in now.items():
                if happens and name not in times:
                    times[name] = cycle
            cycle += 1
            yield

    def main():
        yield from single.up()
        yield from single.hello(credits=(64, 64, 64, 64))
        yield port.sources[1].ready.eq(1)
        yield from pause(60)
        times.clear()
        yield from send(port.sinks[1], list(range(10)))
        yield from pause(60)
        frames = fragments([([1] * 10, False)], 1, 8, 0, destination=CARD, source=PEER)
        times.pop("frame came", None)
        single.give += [frame.encode() for frame in frames]
        yield from pause(60)

    single.run(main(), clock())
    assert times["frame starts"] - times["last word in"] == 5
    assert times["frame ends"] - times["frame starts"] == 7
    assert times["first word out"] - times["frame came"] == 7
    assert times["last word out"] - times["first word out"] == 9


@pytest.mark.parametrize("mtu, width", [(9000, 32), (1500, 32), (9000, 64), (1500, 64)])
def test_contiguous_packets_go_at_a_word_a_cycle(seed, mtu, width):
    """Packets of 4096 bytes, 1047 words of 32 bits each, with the shipped buffers: 95 % of the
    cycles. With 64 bits the wire is the bound; it takes 46 bytes more for each frame.
    """
    pair = FramePair(Random(seed), mtu=mtu, period=2048, bulk_width=width)
    count, words = 8, 1047 if width == 32 else 524
    at = []
    bound = 1 if width == 32 else words / (words + 46 / 8 * -(-words * 8 // mtu))

    def watch():
        cycle = 0
        while len(pair.whole(2)) < count:
            if len(at) < len(pair.whole(2)):
                at.append(cycle)
            cycle += 1
            yield

    def main():
        for _ in range(12000):
            if (yield pair.a.up) and (yield pair.b.up):
                break
            yield
        yield from pause(200)
        yield from watch()

    pair.run(*pair.send({2: [(list(range(words)), False)] * count}), main())
    share = (len(at) - 2) * words / (at[-1] - at[1])
    print(f"MTU {mtu}, {width} bits: {share:.3f} words a cycle, {share / bound:.3f} of the bound")
    assert share >= 0.95 * bound


@pytest.mark.parametrize("design", [EthernetPort, partial(EthernetStar, 2)])
def test_it_begins_no_frame_of_a_priority_that_is_paused(seed, design):
    """Channels have the priorities 6, 5, 3 and 0; STATUS frames have that of CONTROL."""
    ports = partial(design, vlan=0x123, priority=(6, 5, 3, 0), obeys=True, **OPTIONS)
    pair = FramePair(Random(seed), ports=ports)
    queues, marks = {1: [], 2: []}, []

    def hold(*priorities):
        yield pair.a.paused.eq(sum(1 << priority for priority in priorities))
        yield from pause(30)
        marks.append(len(pair.sent))

    def begun():
        return {frame[14] >> 5 for frame in pair.sent[marks[-1] :]}

    def main():
        yield from pair.up()
        yield from hold(3)
        queues[2] += word_items([([2] * 6, False)])
        queues[1] += word_items([([1] * 6, False)])
        yield from pause(300)
        # BULK is held, and nothing else.
        assert begun() == {6, 5} and (pair.packets[1], pair.packets[2]) == ([([1] * 6, True)], [])
        yield from hold(6, 5)
        queues[1] += word_items([([9] * 6, False)])
        yield from pause(300)
        assert begun() <= {3} and pair.packets[2] == [([2] * 6, True)]
        assert len(pair.packets[1]) == 1
        marks.append(len(pair.sent))
        yield pair.a.paused.eq(0)
        yield from finish(lambda: len(pair.packets[1]) == 2, 300)
        assert begun() == {6, 5}

    senders = [source(pair.a.sinks[n], growing(queue), pair.random) for n, queue in queues.items()]
    pair.run(main(), *senders)
