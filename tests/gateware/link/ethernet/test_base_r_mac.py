"""A MAC on XGMII: what leaves, what comes, pause frames, and two cards over 10GBASE-R."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.link.ethernet.base_r.mac import EthernetMAC
from dibber.link.ethernet.base_r.station import BaseRStation
from dibber.link.ethernet.mac import attach_mac
from dibber.link.ethernet.port import EthernetPort

from tests.gateware.link.ethernet.wire import mac_number, words_of
from tests.gateware.link.items import collect, word_items
from tests.gateware.models import base_r
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, growing, source
from tests.gateware.models.port_contract import pause

MAC = b"\2\0\0\0\0\x42"


class Bench:
    """A MAC: `frames` go in, `words` leave; `give` has words that come, `came` what it makes of
    them. The other end sends idles."""

    def __init__(self, random, pace=1.0, by_priority=False):
        self.random, self.pace = random, pace
        self.mac = EthernetMAC(by_priority)
        self.frames, self.words, self.give, self.came = [], [], [], []
        self.holes = 0.0

    @passive
    def feed(self):
        """Each frame without a hole."""
        for data in growing(self.frames):
            yield from [None] if data is None else send(self.mac.sink, data)

    @passive
    def take(self):
        tx = self.mac.xgmii_tx
        while True:
            yield tx.ready.eq(self.random.random() < self.pace)
            yield
            assert (yield tx.valid)
            if (yield tx.ready):
                self.words.append(base_r.word_of((yield tx.data), (yield tx.control)))

    @passive
    def bring(self):
        rx, at = self.mac.xgmii_rx, 0
        while True:
            word = self.give[at] if at < len(self.give) else base_r.IDLES
            at += at < len(self.give)
            for value, signal in zip(base_r.number_of(word), (rx.data, rx.control)):
                yield signal.eq(value)
            yield rx.valid.eq(1)
            yield
            yield rx.valid.eq(0)
            while self.random.random() < self.holes:
                yield

    @passive
    def collect(self):
        rx, data = self.mac.source, b""
        while True:
            yield
            if not (yield rx.valid):
                continue
            size, last = (yield rx.bytes), (yield rx.last)
            assert (yield rx.first) == (not data) and (last or size == 8)
            data += (yield rx.data).to_bytes(8, "little")[:size]
            if last:
                self.came.append((data, bool((yield rx.error))))
                data = b""

    def run(self, main, *more):
        def setup():
            yield self.mac.address.eq(mac_number(MAC))
            yield from main

        processes = [setup(), self.take(), self.bring(), self.collect(), self.feed(), *more]
        run_simulation(self.mac, processes)


def send(sink, data, hole=None):
    """A frame; before the word number `hole`, a cycle without one."""
    for n, (word, size, last, _) in enumerate(words_of(data)):
        if n == hole:
            yield sink.valid.eq(0)
            yield
        yield sink.valid.eq(1)
        yield sink.data.eq(word)
        yield sink.bytes.eq(size)
        yield sink.last.eq(last)
        yield
        while not (yield sink.ready):
            yield
    yield sink.valid.eq(0)


def random_frames(random, count):
    sizes = [*range(1, 19), *range(52, 70), 1514]
    return [random.randbytes(random.choice(sizes)) for _ in range(count)]


def test_frames_leave_with_preamble_padding_fcs_and_a_gap_of_12_to_19_bytes(seed):
    random = Random(seed)
    bench = Bench(random, pace=0.9)
    bench.frames += random_frames(random, 60)

    def main():
        ends = lambda: sum((1, base_r.TERMINATE) in word for word in bench.words)
        yield from finish(lambda: ends() == 60, 30000)

    bench.run(main())
    found = base_r.frames_of(bench.words)
    sent = [base_r.frames_of(base_r.words_of(base_r.framed(data)))[0][0] for data in bench.frames]
    assert [data for data, _ in found] == sent
    gaps = [gap for _, gap in found[1:]]
    assert min(gaps) == 12 and max(gaps) == 19
    assert base_r.encoded(bench.words).count(base_r.ERROR_BLOCK) == 0


def test_a_frame_with_a_hole_leaves_with_an_error_and_the_next_one_is_whole(seed):
    random = Random(seed)
    bench = Bench(random)
    sink, count = bench.mac.sink, [0]

    @passive
    def watch():
        while True:
            count[0] += yield bench.mac.underrun
            yield

    def main():
        for hole in (1, 5, 11):
            yield from send(sink, bytes(range(100)), hole)
            yield from send(sink, b"whole" * 20)
            yield from pause(40)

    bench.run(main(), watch())
    frames = base_r.received(bench.words)
    assert count == [3]
    assert [data for data, bad in frames if not bad] == [b"whole" * 20] * 3
    assert len(frames) == 5  # of the first one no word left


def test_frames_that_come_are_those_of_the_model_whatever_the_words_are(seed):
    random = Random(seed)
    bench = Bench(random)
    bench.holes = 0.1
    for data in random_frames(random, 250):
        lane = random.choice([0, 4])
        chars = base_r.framed(data, lane)
        kind = random.choices(
            ["", "bit", "control", "cut", "short", "preamble"], [6, 1, 1, 1, 1, 1]
        )[0]
        at = random.randrange(lane + 8, len(chars) - 1)
        if kind == "bit":
            chars[at] = (0, chars[at][1] ^ 1 << random.randrange(8))
        elif kind == "control":
            chars[at] = random.choice([(1, base_r.ERROR), (1, base_r.IDLE), (1, base_r.START)])
        elif kind == "cut":
            chars = chars[:at]
        elif kind == "short":
            chars = chars[: random.randrange(lane + 8, len(chars))] + [(1, base_r.TERMINATE)]
        elif kind == "preamble":
            chars[lane + 7] = (0, 0x55)
        words = base_r.words_of(chars + [(1, base_r.IDLE)] * 4)
        bench.give += words + [base_r.IDLES] * random.randrange(1, 3)

    def wait():
        yield from pause(len(bench.give) * 5 // 4 + 200)

    bench.run(wait())
    wanted = base_r.received(bench.give)
    assert bench.came == wanted
    assert sum(bad for _, bad in wanted) > 20 and sum(not bad for _, bad in wanted) > 80


def test_a_pause_frame_stops_the_next_frame_for_its_time_and_not_the_one_under_way(seed):
    random = Random(seed)
    bench = Bench(random)
    words = lambda data, **more: base_r.words_of(base_r.framed(data, **more)) + [base_r.IDLES] * 2
    long, short = bytes(800), bytes(60)

    def starts():
        return [n for n, word in enumerate(bench.words) if word[0] == (1, base_r.START)]

    def main():
        yield from pause(20)
        bench.frames += [long, short]
        yield from pause(20)
        bench.give += words(base_r.pause_frame(40))
        yield from finish(lambda: len(starts()) == 2, 1000)
        first, second = starts()
        # From the pause's arrival, 40 quanta of eight words.
        assert 20 + 20 + 8 + 320 - 5 <= second <= 20 + 20 + 8 + 320 + 25
        # Another frame's code, another address, a wrong FCS: no pause. A time of 0 ends one.
        for frame in (
            base_r.pause_frame(500, code=2),
            base_r.pause_frame(500, destination=b"\2\0\0\0\0\x43"),
        ):
            bench.give += words(frame)
        chars = base_r.framed(base_r.pause_frame(500))
        chars[30] = (0, 1)
        bench.give += base_r.words_of(chars) + [base_r.IDLES]
        yield from pause(60)
        bench.frames.append(short)
        yield from finish(lambda: len(starts()) == 3, 60)
        bench.give += words(base_r.pause_frame(60000, destination=MAC))
        yield from pause(40)
        bench.frames.append(short)
        yield from pause(400)
        assert len(starts()) == 3
        bench.give += words(base_r.pause_frame(0), lane=4)
        yield from finish(lambda: len(starts()) == 4, 40)

    bench.run(main())


def test_a_pause_of_a_priority_shows_for_its_time_and_stops_no_other_frame(seed):
    random = Random(seed)
    bench = Bench(random, by_priority=True)
    words = lambda data, **more: base_r.words_of(base_r.framed(data, **more)) + [base_r.IDLES] * 2
    shown = []  # `paused` of each cycle

    @passive
    def watch():
        while True:
            shown.append((yield bench.mac.paused))
            yield

    def main():
        yield from pause(20)
        bench.give += words(base_r.priority_frame({2: 5, 7: 40}))
        yield from finish(lambda: shown[-1] == 0x84, 40)
        # The MAC sends on: what a frame's priority is, only the port knows.
        bench.frames.append(bytes(60))
        yield from finish(lambda: len(base_r.frames_of(bench.words)) == 1, 40)
        yield from finish(lambda: shown[-1] == 0x80, 60)
        # A wrong FCS, another address, and a pause of all priorities change nothing here.
        chars = base_r.framed(base_r.priority_frame({0: 500}))
        chars[40] = (0, 1)
        bench.give += base_r.words_of(chars) + [base_r.IDLES]
        bench.give += words(base_r.priority_frame({0: 500}, destination=b"\2\0\0\0\0\x43"))
        bench.give += words(base_r.pause_frame(1))
        yield from finish(lambda: shown[-1] == 0, 400)
        # A time of 0 ends it; the other priorities go on.
        bench.give += words(base_r.priority_frame({1: 0xFFFF, 3: 0xFFFF}), lane=4)
        yield from finish(lambda: shown[-1] == 0x0A, 60)
        yield from pause(200)
        bench.give += words(base_r.priority_frame({1: 0}))
        yield from finish(lambda: shown[-1] == 0x08, 60)

    bench.run(main(), watch())
    assert {0x84: 40, 0x80: 35 * 8}.items() <= {n: shown.count(n) for n in (0x84, 0x80)}.items()


def test_a_fault_is_told_after_four_columns_and_ends_after_128_without_one(seed):
    random = Random(seed)
    bench = Bench(random)

    def main():
        yield from pause(8)
        assert (yield bench.mac.signal)
        bench.give += [base_r.LOCAL_FAULT]
        yield from pause(100)
        assert (yield bench.mac.signal)
        bench.give += [base_r.LOCAL_FAULT] * 2
        yield from pause(10)
        assert not (yield bench.mac.signal)
        bench.frames.append(bytes(60))
        yield from pause(20)
        assert bench.words[-1] == base_r.REMOTE_FAULT
        yield from pause(100)
        assert (yield bench.mac.signal)
        told = [word for word in bench.words if word != base_r.REMOTE_FAULT]
        assert len(base_r.frames_of(told)) == 1
        bench.give += [base_r.REMOTE_FAULT] * 30
        bench.frames.append(bytes(60))
        yield from pause(25)
        assert not (yield bench.mac.signal) and bench.words[-1] == base_r.IDLES

    bench.run(main())


class TwoCards(Module):
    """Two ports, each with a MAC and a coding layer; the transceivers take 32 of 33 blocks."""

    def __init__(self):
        self.ports, self.stations = [], []
        cycle = Signal(max=33)
        self.sync += If(cycle == 32, cycle.eq(0)).Else(cycle.eq(cycle + 1))
        for _ in range(2):
            port = EthernetPort(
                mtu=1500,
                period=256,
                buffers=(64, 64, 512, 64),
                queues=(32, 32, 256, 32),
                obeys=True,
            )
            station = BaseRStation(by_priority=True)
            self.submodules += port, station
            self.comb += [
                attach_mac(port, station),
                station.block_tx.ready.eq(cycle != 32),
            ]
            self.ports.append(port)
            self.stations.append(station)
        self.cut = Signal()
        for near, far in zip(self.stations, self.stations[::-1]):
            self.comb += [
                far.block_rx.valid.eq(near.block_tx.valid & near.block_tx.ready),
                far.block_rx.header.eq(Mux(self.cut, 0, near.block_tx.header)),
                far.block_rx.data.eq(near.block_tx.data),
            ]


def test_two_cards_send_packets_over_the_coding_layer_and_come_back_after_a_cut(seed):
    random = Random(seed)
    two, packets, queue = TwoCards(), [], []
    near, far = two.ports

    @passive
    def take():
        yield far.sources[2].ready.eq(1)
        while True:
            yield
            yield from collect(far.sources[2], packets)

    def items():
        for packet in growing(queue):
            yield from [None] if packet is None else word_items([packet])

    def until(up, cycles):
        for _ in range(cycles):
            if ((yield near.up), (yield far.up)) == (up, up):
                return
            yield
        raise AssertionError(f"not {up}")

    def main():
        for n, port in enumerate(two.ports):
            yield two.stations[n].address.eq(mac_number(bytes([2, 0, 0, 0, 0, n])))
            yield port.nonce.eq(n + 1)
        yield from until(1, 4000)
        sent = [
            [random.getrandbits(32) for _ in range(random.randrange(1, 500))] for _ in range(12)
        ]
        queue.extend((words, False) for words in sent)
        yield from finish(lambda: len(packets) == 12 and isinstance(packets[-1], tuple), 12000)
        assert packets == [(words, True) for words in sent]
        yield two.cut.eq(1)
        yield from until(0, 300)
        yield two.cut.eq(0)
        yield from until(1, 6000)
        queue.append(([7, 8, 9], False))
        yield from finish(lambda: packets[-1] == ([7, 8, 9], True), 1000)

    run_simulation(two, [main(), take(), source(near.sinks[2], items(), random)])
