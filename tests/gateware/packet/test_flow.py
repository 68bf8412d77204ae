# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The flow table alone: its gate under resets at any time, and what it believes."""

from random import Random

from migen import *

from dibber.interface.description import C
from dibber.packet.flow import FlowTable

from gateware.models.compiled import run_simulation


def drive(record, **values):
    for name, value in values.items():
        yield getattr(record, name).eq(value)


def test_no_packet_passes_the_gate_as_what_it_is_not(seed):
    """Resets and packets in every relation of cycles: `stale` is right in the very cycle of the transfer."""
    dut, random = FlowTable(), Random(seed)
    current, passed, resets, strobe = [0]*C.NODES, [0, 0], 0, None

    def process():
        nonlocal resets, strobe
        offered, psn = None, [0]*C.NODES
        for _ in range(1500):
            if offered is None and random.random() < 0.7:
                node    = random.randrange(2)
                offered = (node, random.choice([current[node], current[node] - 1]) % 256, psn[node])
                yield from drive(dut.sink, node=offered[0], incarnation=offered[1], psn=offered[2], valid=1)
            reset = (random.randrange(2), random.randrange(256)) if random.random() < 0.2 else None
            yield from drive(dut.reset, strobe=int(reset is not None), **(
                dict(node=reset[0], incarnation=reset[1]) if reset else {}))
            yield dut.source.ready.eq(int(random.random() < 0.6))
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                assert reset is None, "a packet passed in the cycle of a reset"
                stale = yield dut.source.stale
                assert stale == (offered[1] != current[offered[0]])
                passed[stale] += 1
                offered = None
                yield dut.sink.valid.eq(0)
            if reset:
                current[reset[0]] = reset[1]
                resets += 1

    run_simulation(dut, process())
    assert min(passed) > 30 and resets > 200


def test_a_node_that_does_not_exist_gets_nothing():
    dut, seen = FlowTable(), []

    def process():
        yield from drive(dut.sink, node=C.NODES, incarnation=0, psn=0, valid=1)
        yield dut.source.ready.eq(1)
        for _ in range(6):
            yield
            if (yield dut.source.valid):
                seen.append((yield dut.source.stale))

    run_simulation(dut, process())
    assert seen and all(seen)


def test_what_was_sent_before_a_reset_cannot_be_acknowledged_after_it():
    dut = FlowTable()

    def process():
        yield dut.source.ready.eq(1)
        for psn in range(4):
            yield from drive(dut.sink, node=2, psn=psn, valid=1)
            yield
            while not (yield dut.sink.ready):
                yield
            yield dut.sink.valid.eq(0)
            yield
        yield from drive(dut.reset, node=2, incarnation=1, strobe=1)
        yield
        yield dut.reset.strobe.eq(0)
        yield from drive(dut.acks, node=2, incarnation=1, ack=1, valid=1)
        yield
        yield dut.acks.valid.eq(0)
        for _ in range(4):
            yield
            assert (yield dut.acked[2]) == 0xffff and not (yield dut.changed)

    run_simulation(dut, process())
