"""Frames of a UART to accesses of a bus: good ones, damaged ones, repeated ones."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.bridge.frames import FrameBridge
from dibber.interface.description import C

from tests.boards import frames
from tests.gateware.models.compiled import run_simulation

SILENCE, PATIENCE = 200, 50
NOWHERE = 0x70000000  # no answer


class Bench:
    """A bridge, memory behind its bus, and the words that were written, in order."""

    def __init__(self, seed):
        self.dut = FrameBridge(SILENCE, PATIENCE)
        self.random = random.Random(seed)
        self.memory = {}
        self.written = []
        self.dropped = 0
        self.done = False

    def slave(self):
        bus = self.dut.bus
        while not self.done:
            yield bus.ack.eq(0)
            yield
            self.dropped += yield self.dut.bad
            if (
                (yield bus.cyc)
                and (yield bus.stb)
                and (yield bus.adr) < NOWHERE // 4
                and self.random.random() < 0.5
            ):
                adr = yield bus.adr
                if (yield bus.we):
                    self.memory[adr] = yield bus.dat_w
                    self.written.append((4 * adr, self.memory[adr]))
                yield bus.dat_r.eq(self.memory.get(adr, 0))
                yield bus.ack.eq(1)
                yield
                self.dropped += yield self.dut.bad
                yield bus.ack.eq(0)
                yield
                self.dropped += yield self.dut.bad
                assert not (yield bus.cyc), "an access goes on behind its end"

    def ask(self, frame, answer=True):
        """What comes back, with gaps in what is sent and stalls in what is taken."""
        yield from frames.send(self.dut.sink, frame, lambda: self.random.choice([0, 0, 0, 5]))
        return (
            yield from frames.take(
                self.dut.source,
                frames.reply_bytes(frame),
                6000 if answer else 2 * SILENCE,
                lambda: self.random.random() < 0.2,
            )
        )

    def run(self, scenario):
        def main():
            yield from scenario()
            self.done = True

        run_simulation(self.dut, [main(), self.slave()])


def test_words_are_written_and_read_back(seed):
    bench, number = Bench(seed), 0

    def scenario():
        nonlocal number
        model = {}
        for _ in range(12):
            words = [
                bench.random.getrandbits(32)
                for _ in range(bench.random.choice([1, 2, 7, C.FRAME_WORDS]))
            ]
            address = 4 * bench.random.randrange(100)
            number += 1
            frame = frames.request(number, address, data=words)
            assert (yield from bench.ask(frame)) == frames.reply(frame)
            model.update({address // 4 + n: word for n, word in enumerate(words)})
            number += 1
            frame = frames.request(number, 4 * bench.random.randrange(50), words=C.FRAME_WORDS)
            start = int.from_bytes(frame[4:8], "little") // 4
            wanted = [model.get(start + n, 0) for n in range(C.FRAME_WORDS)]
            assert (yield from bench.ask(frame)) == frames.reply(frame, wanted)

    bench.run(scenario)
    assert bench.dropped == 0


def test_a_write_that_is_repeated_is_answered_and_not_executed_again(seed):
    bench = Bench(seed)

    def scenario():
        first, second = frames.request(0, 8, data=[1]), frames.request(1, 8, data=[2])
        for frame in [first, first, second, second, second, first]:
            assert (yield from bench.ask(frame)) == frames.reply(frame)

    bench.run(scenario)
    assert bench.written == [(8, 1), (8, 2), (8, 1)]


@pytest.mark.parametrize("damage", ["a bit", "the end is missing", "too many words", "no words"])
def test_a_damaged_frame_does_nothing_and_the_next_one_works(damage, seed):
    bench = Bench(seed)

    def scenario():
        good = frames.request(7, 8, data=[bench.random.getrandbits(32) for _ in range(5)])
        bad = bytearray(good)
        if damage == "a bit":
            # one of the first word makes it another kind of frame
            bit = bench.random.randrange(32, 8 * len(bad))
            bad[bit // 8] ^= 1 << bit % 8
        elif damage == "the end is missing":
            del bad[bench.random.randrange(1, len(bad)) :]
        else:
            bad[3] = 0 if damage == "no words" else C.FRAME_WORDS + 1
        yield from bench.ask(bytes([*b"login: ", *bad]), answer=False)
        assert not bench.written
        for _ in range(SILENCE + 10):
            yield
        assert (yield from bench.ask(good)) == frames.reply(good)

    bench.run(scenario)
    assert len(bench.written) == 5 and bench.dropped >= 1


def test_where_nothing_answers_ones_are_read_and_the_answer_says_so(seed):
    bench = Bench(seed)

    def scenario():
        frame = frames.request(1, NOWHERE, words=2)
        assert (yield from bench.ask(frame)) == frames.reply(frame, [0xFFFFFFFF] * 2, status=1)
        frame = frames.request(2, NOWHERE, data=[1])
        assert (yield from bench.ask(frame)) == frames.reply(frame, status=1)
        assert (yield from bench.ask(frame)) == frames.reply(frame, status=1)
        frame = frames.request(3, 0)
        assert (yield from bench.ask(frame)) == frames.reply(frame, [0])

    bench.run(scenario)
