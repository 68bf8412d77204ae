"""The sealer of lines: its packets are those of the model, or end as bad."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.packet.line_seal import LineSealer

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, source
from tests.gateware.models.packet import Packet, encode, random_walk


def random_packet(random, longest):
    """(words of the header, payload as bytes, all words with CRCs)."""
    levels = random.choice((0, 0, 1, 3))
    packet = Packet(
        target=1,
        source=2,
        key=random.getrandbits(32),
        **random_walk(random, levels),
        notice=random.choice([None, (1, 2, 3)]),
        payload=random.randbytes(random.choice((0, 4, 8, 32, 36, longest // 4, longest))),
    )
    words = encode(packet)
    blocks = -(-len(packet.payload) // 256)
    header = len(words) - 1 - len(packet.payload) // 4 - blocks
    return words[:header], packet.payload, words


def items_of(header, payload, width):
    """The packet as items of the sealer's sink."""
    items = [dict(data=word, words=1, seal=0, last=0) for word in header]
    items[-1]["seal"], items[-1]["last"] = 1, int(not payload)
    size = width // 8
    for at in range(0, len(payload), size):
        part = payload[at : at + size]
        end = at + len(part)
        items.append(
            dict(
                data=int.from_bytes(part, "little"),
                words=len(part) // 4,
                seal=int(end % 256 == 0 or end == len(payload)),
                last=int(end == len(payload)),
            )
        )
    return [
        {name: value for name, value in item.items() if width == 256 or name != "words"}
        for item in items
    ]


@pytest.mark.parametrize("width, longest", [(32, 64), (256, 1504)])
def test_packets_are_those_of_the_model_or_end_as_bad(width, longest, seed):
    random = Random(f"{seed} {width}")
    packets = [random_packet(random, longest) for _ in range(60)]
    items = [item for header, payload, _ in packets for item in items_of(header, payload, width)]
    dut, left = shared(LineSealer, width), []
    counts = dict(sent=0, ended=0, word_sent=0)
    # Packets that die, in this cycle after the end of the packet before them.
    dies = {n: random.randrange(60) for n in range(len(packets)) if random.random() < 0.4}
    died = set()

    @passive
    def take():
        words, payload, age, due = [], None, 0, 0
        while True:
            ready, number = int(random.random() < 0.7), counts["ended"]
            dead = int(age >= dies.get(number, 1000))
            yield dut.source.ready.eq(ready)
            yield dut.dead.eq(dead)
            yield
            for name in counts:
                counts[name] += yield getattr(dut, name)
            if ready and (yield dut.source.valid):
                # Only the first line of a packet is said to be the first.
                assert (yield dut.source.first) == (payload is None)
                data, count, seal = (
                    (yield dut.source.data),
                    (yield dut.source.words),
                    (yield dut.source.seal),
                )
                words += [data >> 32 * n & 0xFFFFFFFF for n in range(count)]
                words += [(yield dut.source.crc)] if seal else []
                due += count if payload else 0
                payload = bool(payload or seal)
                if (yield dut.source.last):
                    left.append((words, (yield dut.source.bad)))
                    words, payload = [], None
            assert counts["word_sent"] == due
            if dead:
                died.add(number)
            age = age + 1 if counts["ended"] == number else 0

    run_simulation(
        dut,
        [
            source(dut.sink, items, random, 0.8),
            take(),
            finish(lambda: counts["ended"] == len(packets), 40000),
        ],
    )
    assert len(left) == len(packets) and counts["sent"] == len(packets) - len(died)
    assert 0 < len(died) < len(packets)
    for n, ((words, bad), (_, _, whole)) in enumerate(zip(left, packets)):
        assert bad == (n in died)
        assert words == (whole[: len(words)] if bad else whole)
