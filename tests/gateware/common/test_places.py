# SPDX-License-Identifier: BSD-2-Clause

import random

from migen import *

from litex.soc.interconnect import stream

from dibber.common.places import Row, Skid


def test_a_skid_is_a_pipe_ready_cycle_for_cycle():
    class Both(Module):
        def __init__(self):
            layout = stream.EndpointDescription([("data", 8)], [("about", 4)])
            self.submodules.skid = Skid(layout)
            self.submodules.pipe = stream.PipeReady(layout)
            self.sink = stream.Endpoint(layout)
            self.comb += [
                self.sink.connect(self.skid.sink),
                self.sink.connect(self.pipe.sink, omit={"ready"}),
                self.pipe.source.ready.eq(self.skid.source.ready),
            ]

    dut, rng, seen = Both(), random.Random(1), set()
    names = "valid", "first", "last", "data", "about"

    def bench():
        offered = None
        for cycle in range(4000):
            if offered is None and rng.random() < 0.7:
                offered = {
                    name: rng.getrandbits(len(getattr(dut.sink, name))) for name in names
                } | {"valid": 1}
                for name, value in offered.items():
                    yield getattr(dut.sink, name).eq(value)
            yield dut.skid.source.ready.eq(rng.random() < (0.2, 0.8)[cycle // 100 % 2])
            yield
            ready, shown = (yield dut.skid.sink.ready), (yield dut.skid.source.valid)
            assert ready == (yield dut.pipe.sink.ready) and shown == (yield dut.pipe.source.valid)
            assert (yield dut.skid.held) == (not ready)
            for name in names:
                assert not shown or (yield getattr(dut.skid.source, name)) == (
                    yield getattr(dut.pipe.source, name)
                )
            seen.add((ready, shown, (yield dut.skid.source.ready)))
            if offered and ready:
                offered = None
                yield dut.sink.valid.eq(0)

    run_simulation(dut, bench())
    assert seen == {(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)}


def test_a_row_holds_what_is_on_its_way():
    dut, rng = Row([("data", 8)], 4), random.Random(2)

    def bench():
        inside, levels = 0, set()
        for cycle in range(2000):
            yield dut.sink.valid.eq(rng.random() < 0.6)
            yield dut.source.ready.eq(rng.random() < (0.1, 0.7)[cycle // 100 % 2])
            yield
            assert (yield dut.level) == inside and (yield dut.holds) == (inside != 0)
            levels.add(inside)
            inside += ((yield dut.sink.valid) & (yield dut.sink.ready)) - (
                (yield dut.source.valid) & (yield dut.source.ready)
            )
        assert levels == set(range(5))

    run_simulation(dut, bench())
