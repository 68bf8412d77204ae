"""The coding layer of 10GBASE-R: block lock, scrambler, and a wire of bits between its two ends."""

# SPDX-License-Identifier: BSD-2-Clause

import zlib
from random import Random

from migen import *

from dibber.link.ethernet.base_r.lock import BlockLock
from dibber.link.ethernet.base_r.pcs import BaseRPCS

from tests.gateware.link.ethernet.test_base_r_codec import random_words
from tests.gateware.models import base_r
from tests.gateware.models.compiled import run_simulation

WINDOW, WAIT = 200, 5


def watch_lock(headers):
    """(slips, locked, high errors) after each header; the model's beside it."""
    dut, model, found, wanted = BlockLock(WINDOW, WAIT), base_r.Lock(WINDOW, WAIT), [], []

    def main():
        for header in headers:
            yield dut.sink.valid.eq(1)
            yield dut.sink.header.eq(header)
            yield
            yield dut.sink.valid.eq(0)
            yield
            found.append(((yield dut.slip), (yield dut.locked), (yield dut.high_errors)))
            slips = model.block(header)
            wanted.append((slips, model.locked, model.high))

    run_simulation(dut, main())
    return found, wanted


def test_64_good_headers_are_a_lock_and_16_damaged_ones_of_64_end_it():
    found, wanted = watch_lock([1] * 63 + [0] + [2] * (WAIT + 64) + [1, 3] * 16 + [1] * 80)
    assert found == wanted
    slips = [n for n, (slip, _, _) in enumerate(found) if slip]
    assert slips == [63, 63 + WAIT + 64 + 32]
    assert [locked for _, locked, _ in found].index(1) == 63 + WAIT + 64


def test_it_does_what_the_figures_say_at_each_share_of_damaged_headers(seed):
    random = Random(seed)
    headers = []
    for share in (0.5, 0.0, 0.02, 0.1, 0.0, 0.2, 0.3, 0.0, 0.07, 0.0):
        headers += [
            random.choice([0, 3]) if random.random() < share else random.choice([1, 2])
            for _ in range(400)
        ]
    found, wanted = watch_lock(headers)
    assert found == wanted
    assert {high for _, _, high in found} == {locked for _, locked, _ in found} == {0, 1}


class Wire(Module):
    """Two ends, and the bits from the first to the second one. `flips`: numbers of wrong bits."""

    def __init__(self, random, words, offset):
        self.submodules.near = BaseRPCS(WINDOW, WAIT)
        self.submodules.far = BaseRPCS(WINDOW, WAIT)
        self.random, self.words = random, list(words)
        self.bits = [random.randrange(2) for _ in range(offset)]
        self.carried, self.flips = 0, set()
        self.blocks, self.came, self.slips = [], [], 0
        self.given = 0

    @passive
    def send(self):
        """A word, or idles, in each cycle that the transceiver takes one: 32 of 33."""
        tx, out, cycle = self.near.tx, self.near.block_tx, 0
        yield tx.valid.eq(1)
        word = base_r.IDLES
        while True:
            data, control = base_r.number_of(word)
            yield tx.data.eq(data)
            yield tx.control.eq(control)
            yield out.ready.eq(cycle % 33 != 32)
            yield
            ready, taken = (yield tx.ready), (yield out.ready)
            if (yield out.valid) and taken:
                self.blocks.append(((yield out.header), (yield out.data)))
                for bit in base_r.bits_of(*self.blocks[-1]):
                    self.bits.append(bit ^ (self.carried in self.flips))
                    self.carried += 1
            if ready:
                word = base_r.IDLES
                if self.given < len(self.words):
                    word = self.words[self.given]
                    self.given += 1
            cycle += 1

    @passive
    def receive(self):
        sink = self.far.block_rx
        while True:
            yield sink.valid.eq(len(self.bits) >= 66)
            if len(self.bits) >= 66:
                block, self.bits = self.bits[:66], self.bits[66:]
                yield sink.header.eq(block[0] << 1 | block[1])
                yield sink.data.eq(sum(bit << n for n, bit in enumerate(block[2:])))
            yield
            if (yield self.far.slip):
                self.slips += 1
                self.bits = self.bits[1:]
            if (yield self.far.rx.valid):
                data, control = (yield self.far.rx.data), (yield self.far.rx.control)
                self.came.append(base_r.word_of(data, control))

    def until_up(self, cycles=6000):
        for _ in range(cycles):
            yield
            if (yield self.far.up):
                return
        raise AssertionError("no lock")

    def run(self, main):
        run_simulation(self, [main, self.send(), self.receive()])


def test_words_pass_a_wire_whose_blocks_begin_anywhere(seed):
    random = Random(seed)
    wire = Wire(random, [], offset=random.randrange(20, 66))
    sent = random_words(random, 300)

    def main():
        yield from wire.until_up()
        while len(wire.bits) >= 66:
            yield
        for _ in range(10):
            yield
        del wire.came[:]
        wire.words += sent
        for _ in range(400):
            yield
        assert (yield wire.far.up)

    wire.run(main())
    assert wire.slips > 0
    start = wire.came.index(sent[0]) if sent[0] != base_r.IDLES else 0
    assert wire.came[start : start + len(sent)] == sent
    # What leaves is what the scrambler of the standard makes of the model's blocks.
    descrambler = base_r.Scrambler(undo=True)
    plain = [descrambler.block(*block) for block in wire.blocks]
    words = [base_r.decode(*block) for block in plain]
    assert [word for word in words if word != base_r.IDLES] == [
        word for word in wire.words if word != base_r.IDLES
    ]


def test_bit_errors_damage_the_frames_that_they_hit_and_no_other(seed):
    """A wrong bit shows again 39 and 58 bits later, so perhaps in the next block too."""
    random = Random(seed)
    sent = []
    for number in range(60):
        data = bytes([number]) * random.randrange(60, 140)
        sent += base_r.words_of(base_r.framed(data)) + [base_r.IDLES] * 2
    wire = Wire(random, [], offset=0)

    def main():
        yield from wire.until_up()
        wire.words += sent
        at = wire.carried
        wire.flips |= {
            at + 66 * random.randrange(len(sent)) + random.randrange(66) for _ in range(12)
        }
        for _ in range(len(sent) + 100):
            yield
        assert (yield wire.far.up)

    wire.run(main())
    whole = [data for data, good in frames_that_came(wire.came) if good]
    wanted = [data for data, _ in base_r.frames_of(sent)]
    assert 60 - 24 <= len(whole) < 60
    assert [data for data in wanted if data in whole] == whole


def frames_that_came(words):
    """(data with FCS, whether the FCS is right) of each frame that ends."""
    frames, data = [], None
    for control, byte in (char for word in words for char in word):
        if (control, byte) == (1, base_r.START):
            data = b""
        elif (control, byte) == (1, base_r.TERMINATE) and data is not None:
            body = data[7:]
            frames.append((body, zlib.crc32(body[:-4]).to_bytes(4, "little") == body[-4:]))
            data = None
        elif control:
            data = None
        elif data is not None:
            data += bytes([byte])
    return frames


def test_a_wire_that_gains_bits_ends_the_lock_and_it_is_found_again(seed):
    random = Random(seed)
    wire = Wire(random, [], offset=3)

    def main():
        yield from wire.until_up()
        wire.bits += [0] * 7  # so all that follows is later by seven bits
        for _ in range(2000):
            yield
            if not (yield wire.far.up):
                break
        assert not (yield wire.far.up)
        yield
        yield
        assert wire.came[-1] == base_r.LOCAL_FAULT
        yield from wire.until_up()

    wire.run(main())
