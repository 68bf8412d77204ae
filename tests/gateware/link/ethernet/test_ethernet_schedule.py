"""When a STATUS frame is due, compared with a plain count of the credit that was not told."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.link.ethernet.transmitter import StatusSchedule

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive

PERIOD = 100
DEPTHS = (256, 512, 2048, 64)
# Units of room from which on a frame is due: a quarter of the buffer, and 256 at most.
DUE_AT = (64, 128, 256, 16)


class Model:
    """What the next cycle shows, from the inputs of this one."""

    def __init__(self):
        self.age, self.state, self.late = 0, 0, False
        self.known = [0] * len(DEPTHS)

    def due(self, state, up):
        return self.age == PERIOD - 1 or state != self.state or (up and self.late)

    def step(self, credits, state, sent, told):
        """sent : a STATUS frame begins. told : channel that a DATA frame tells, or None"""
        lags = [(credit - known) % 65536 for credit, known in zip(credits, self.known)]
        self.late = any(lag >= least for lag, least in zip(lags, DUE_AT))
        self.age = min(self.age + 1, PERIOD - 1)
        if sent:
            self.age, self.state, self.known = 0, state, list(credits)
        if told is not None:
            self.known[told] = credits[told]


@pytest.mark.parametrize("only", [None, 0, 1, 2, 3])
def test_a_status_frame_is_due_when_so_much_room_was_not_told(seed, only):
    """only : the channel whose credit grows; None: all"""
    random = Random(seed * 8 + (4 if only is None else only))
    dut, model = StatusSchedule(DEPTHS, PERIOD), Model()
    causes = {"credit": 0, "age": 0, "state": 0}

    def main():
        credits, state, up, sent, tells = [0] * len(DEPTHS), 0, 0, False, False
        grows = range(len(DEPTHS)) if only is None else [only]
        for cycle in range(6000):
            due = model.due(state, up)
            assert (yield dut.due) == due, cycle
            causes["age"] += model.age == PERIOD - 1
            causes["state"] += state != model.state
            causes["credit"] += up and model.late
            model.step(credits, state, sent, (yield dut.channel) if tells else None)

            for n in grows:
                if random.random() < 0.15:
                    credits[n] = (credits[n] + random.randrange(DUE_AT[n] // 8 + 1)) % 65536
                yield dut.credits[n].eq(credits[n])
            if random.random() < 0.003:
                state ^= 1 << random.randrange(18)
            if random.random() < 0.005:
                up ^= 1
            sent = due and random.random() < 0.2
            tells = random.random() < 0.003
            yield from drive(dut, state=state, up=up, sent=int(sent), told=int(tells))
            yield

    run_simulation(dut, main())
    assert min(causes.values()) > 10, causes
