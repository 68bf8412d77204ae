"""Blocks of 66 bits over words of 40: each way against its model, and two stations with clocks of
their own.
"""

# SPDX-License-Identifier: BSD-2-Clause

import itertools
from random import Random

import pytest

from migen import *

from dibber.link.ethernet.base_r.gearbox import BitsToBlocks, BlocksToBits, Gearbox
from dibber.link.ethernet.base_r.pcs import BaseRPCS

from tests.gateware.link.ethernet.test_base_r_codec import random_words
from tests.gateware.models import base_r
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive

# Half periods in fs: sys of 161 MHz and two transceivers of 257.8 MHz. Two stations may be 200 ppm
# apart; here it is 1 ‰.
CLOCKS = {"sys": 3103000, "tx": 1939300, "rx": 1937400}


def random_block(random):
    return random.choice([1, 2]), random.getrandbits(64)


@pytest.mark.parametrize("busy", [1.0, 0.9])
def test_the_bits_are_those_of_the_blocks_and_zeros_where_none_came(seed, busy):
    random = Random(seed)
    dut, bits, underruns = BlocksToBits(), [], [0]
    wanted = [0] * 66  # nothing is offered in the first cycle

    def main():
        offered = None
        for _ in range(3000):
            if offered is None and random.random() < busy:
                offered = random_block(random)
            header, data = offered or (random.randrange(4), random.getrandbits(64))
            yield from drive(dut.sink, valid=int(offered is not None), header=header, data=data)
            yield
            if (yield dut.sink.ready):
                wanted.extend(base_r.bits_of(*(offered or (0, 0))))
                offered = None
            word = yield dut.bits
            bits.extend(word >> n & 1 for n in range(40))
            underruns[0] += yield dut.underrun

    run_simulation(dut, main())
    assert bits == wanted[: len(bits)]
    assert (underruns[0] > 20) == (busy < 1)


def test_the_blocks_are_those_of_the_model_whenever_it_slips(seed):
    random = Random(seed)
    dut, model, found, wanted = BitsToBlocks(), base_r.BitCutter(), [], []
    model.step([0] * 40, False)  # nothing is driven in the first cycle

    def main():
        pause = 0
        for _ in range(6000):
            bits, slip = random.getrandbits(40), pause == 0 and random.random() < 0.1
            pause = 3 if slip else max(0, pause - 1)
            yield from drive(dut, bits=bits, slip=int(slip))
            yield
            if (yield dut.source.valid):
                found.append(((yield dut.source.header), (yield dut.source.data)))
            block = model.step([bits >> n & 1 for n in range(40)], slip)
            if block is not None:
                wanted.append(block)

    run_simulation(dut, main())
    assert len(found) > 3500 and found == wanted[: len(found)]


class Station(Module):
    """A coding layer behind its gearbox."""

    def __init__(self):
        self.submodules.pcs = pcs = BaseRPCS(window=200, wait=32)
        self.submodules.gearbox = gearbox = Gearbox()
        self.comb += [
            pcs.block_tx.connect(gearbox.block_tx),
            gearbox.block_rx.connect(pcs.block_rx, omit={"ready"}),
            gearbox.slip.eq(pcs.slip),
        ]


def test_words_pass_two_clocks_and_a_wire_whose_blocks_begin_anywhere(seed):
    """Bits leave in domain tx and come in domain rx, which is faster. The bits in front of the
    first block last until the end.
    """
    random = Random(seed)
    dut = Station()
    sent = random_words(random, 300)
    row = [random.randrange(2) for _ in range(random.randrange(4000, 4066))]
    came, given, counts = [], [0], {"slips": 0, "underrun": 0, "overrun": 0}
    words = []

    @passive
    def transmit():
        for cycle in itertools.count():
            bits = yield dut.gearbox.bits_tx
            row.extend(bits >> n & 1 for n in range(40))
            # The first block needs some cycles to pass its FIFO.
            counts["underrun"] += (yield dut.gearbox.underrun) and cycle > 20
            yield

    @passive
    def receive():
        while True:
            assert len(row) >= 40
            yield dut.gearbox.bits_rx.eq(sum(bit << n for n, bit in enumerate(row[:40])))
            del row[:40]
            counts["overrun"] += yield dut.gearbox.overrun
            yield

    @passive
    def give():
        tx = dut.pcs.tx
        yield tx.valid.eq(1)
        word = base_r.IDLES
        while True:
            data, control = base_r.number_of(word)
            yield from drive(tx, data=data, control=control)
            yield
            if (yield tx.ready):
                word = base_r.IDLES
                if given[0] < len(words):
                    word = words[given[0]]
                    given[0] += 1

    def main():
        for _ in range(8000):
            yield
            counts["slips"] += yield dut.pcs.slip
            if (yield dut.pcs.up):
                break
        assert (yield dut.pcs.up)
        words.extend(sent)
        for _ in range(700):
            yield
            if (yield dut.pcs.rx.valid):
                data, control = (yield dut.pcs.rx.data), (yield dut.pcs.rx.control)
                came.append(base_r.word_of(data, control))
        assert (yield dut.pcs.up)

    generators = {"sys": [main(), give()], "tx": [transmit()], "rx": [receive()]}
    run_simulation(dut, generators, clocks=CLOCKS)
    assert counts["slips"] > 0 and counts["overrun"] == counts["underrun"] == 0
    wanted = [word for word in sent if word != base_r.IDLES]
    assert wanted and [word for word in came if word != base_r.IDLES] == wanted
