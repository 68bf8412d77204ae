"""From acknowledger to flow table over a link that loses acknowledgements: a refused packet never
becomes a success.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import *

from dibber.interface.description import C, LANE, PACKET_FLAG, STATUS
from dibber.packet.acknowledge import LaneAcknowledger
from dibber.packet.flow_table import FlowTable

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive, finish
from tests.gateware.models.flows import acked_of, sure

NODE = 6
FIELDS = ("node", "incarnation", "ack", "psn", "flags", "reason", "refusals")
LANES = pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))


class Pair(Module):
    """A flow's source and target. `lose(n, fields)`: whether acknowledgement number n gets lost."""

    def __init__(self, lane, random, lose):
        self.submodules.target = LaneAcknowledger(lane)
        self.submodules.table = FlowTable()
        sure(self.table)
        self.shown = acked_of(self.table)
        self.lane, self.random, self.lose = lane, random, lose
        self.flow = lane * C.NODES + NODE
        self.acked = 0xFFFF
        self.number = 0  # of resets, which the packets of an incarnation carry
        self.refused = set()  # PSNs of this incarnation
        self.heard = []  # refusals of it that the source's control program saw
        self.told = 0  # acknowledgements that were sent
        self.restarts = 0
        self.checked = 0  # refused packets that the source knows of and has as covered

    @passive
    def _link(self):
        source, acks = self.target.source, self.table.acks
        yield source.ready.eq(0)
        while True:
            yield
            if not (yield source.valid):
                continue
            yield source.ready.eq(1)
            yield
            fields = {}
            for name in FIELDS:
                fields[name] = yield getattr(source, name)
            yield source.ready.eq(0)
            self.told += 1
            if not self.lose(self.told - 1, fields):
                yield from drive(acks, valid=1, **fields)
                yield
                while not (yield acks.ready):
                    yield
                yield acks.valid.eq(0)
            for _ in range(self.random.randrange(12)):
                yield

    @passive
    def _control(self):
        """Takes refusals at once, and looks three cycles later at what is acknowledged."""
        refusals, before = self.table.refusals, [0xFFFF] * 3
        yield refusals.ready.eq(1)
        while True:
            yield
            if (yield refusals.valid):
                assert (yield refusals.flow) == self.flow and (
                    yield refusals.reason
                ) == STATUS.REMOTE_BOUNDS
                self.heard.append((yield refusals.psn))
            self.acked = yield self.shown[self.flow]
            before = [*before[1:], self.acked]
            if self.acked != 0xFFFF and before[0] == self.acked:
                covered = {psn for psn in self.refused if psn <= self.acked}
                assert covered <= set(self.heard), "a refused packet became a success"
                self.checked = max(self.checked, len(covered))

    def start(self, incarnation):
        self.refused, self.heard = set(), []
        self.number = (self.number + 1) % 256
        yield from drive(self.table.reset, strobe=1, flow=self.flow, incarnation=incarnation)
        yield
        yield self.table.reset.strobe.eq(0)
        yield from drive(self.target.started, strobe=1, node=NODE, incarnation=self.number)
        yield
        yield self.target.started.strobe.eq(0)

    def land(self, psn, incarnation, refused):
        """Packet `psn` passes the gate, and its target reports it."""
        sink, source = self.table.sinks[self.lane], self.table.sources[self.lane]
        yield from drive(sink, node=NODE, incarnation=incarnation, psn=psn, valid=1)
        yield source.ready.eq(1)
        yield
        while not (yield source.valid):
            yield
        assert not (yield source.stale)
        yield sink.valid.eq(0)
        if refused:
            self.refused.add(psn)
        done = self.target.done
        yield from drive(
            done,
            node=NODE,
            incarnation=self.number,
            psn=psn,
            refused=int(refused),
            reason=STATUS.REMOTE_BOUNDS if refused else 0,
            valid=1,
        )
        yield
        while not (yield done.ready):
            yield
        yield done.valid.eq(0)

    def again(self):
        """What a replayed packet asks for."""
        yield from drive(self.target.repeat, strobe=1, node=NODE)
        yield
        yield self.target.repeat.strobe.eq(0)

    def transfer(self, incarnation, count, share):
        """A flow of `count` packets; whether it came to its end. One that stands for long is given
        up.
        """
        yield from self.start(incarnation)
        psn = quiet = tries = 0
        acked = 0xFFFF
        while True:
            yield
            quiet = quiet + 1 if self.acked == acked else 0
            tries = tries if self.acked == acked else 0
            acked = self.acked
            if acked == count - 1:
                return True
            if psn < count and psn - (acked + 1) % 0x10000 < C.WINDOW:
                yield from self.land(psn, incarnation, self.random.random() < share)
                psn += 1
            elif quiet > 60:
                if tries == 20:
                    return False
                yield from self.again()
                tries, quiet = tries + 1, 0

    def run(self, process):
        run_simulation(self, [self._link(), self._control(), process])


@LANES
@pytest.mark.parametrize("loss", [0.1, 0.5])
def test_a_refused_packet_is_never_covered_without_its_refusal(lane, loss, seed):
    random = Random(seed)
    pair = Pair(lane, random, lambda n, fields: random.random() < loss)
    ended = []

    def process():
        for incarnation in range(250, 250 + 14):
            ended.append(
                (yield from pair.transfer(incarnation % 256, 30, random.choice((0.05, 0.3))))
            )
            for _ in range(8):
                yield
            if ended[-1]:
                assert sorted(pair.refused) == pair.heard, "each refusal is heard of once, in order"

    pair.run(process())
    assert pair.checked > 3 and any(ended)
    assert loss < 0.5 or not all(ended), "no refusal was lost: the test shows nothing"


@LANES
@pytest.mark.parametrize("which", [0, 1])
def test_one_lost_telling_of_each_refusal_costs_nothing(lane, which, seed):
    random, tellings = Random(seed), {}

    def lose(n, fields):
        if not fields["flags"] & PACKET_FLAG.REFUSED:
            return False
        tellings[fields["psn"]] = tellings.get(fields["psn"], -1) + 1
        return tellings[fields["psn"]] == which

    pair = Pair(lane, random, lose)

    def process():
        assert (yield from pair.transfer(3, 40, 0.4))
        for _ in range(60):
            yield

    pair.run(process())
    assert sorted(pair.refused) == pair.heard and pair.checked == len(pair.heard) > 4
    assert tellings == dict.fromkeys(pair.refused, 1), "each is told twice"


@LANES
def test_a_lost_refusal_makes_its_flow_deaf_until_it_is_reset(lane, seed):
    lost = lambda n, fields: fields["flags"] & PACKET_FLAG.REFUSED and fields["incarnation"] == 1
    pair = Pair(lane, Random(seed), lost)

    def process():
        yield from pair.start(1)
        for psn in range(4):
            yield from pair.land(psn, 1, psn == 2)
        for _ in range(100):
            yield
        assert pair.acked < 2 or pair.acked == 0xFFFF
        # Nothing heals it: not even a refusal whose number would be the next.
        yield from pair.again()
        yield from pair.land(4, 1, True)
        for _ in range(100):
            yield
        assert pair.heard == [] and (pair.acked < 2 or pair.acked == 0xFFFF)
        assert (yield from pair.transfer(2, 10, 0.5)), "the next incarnation knows nothing of it"

    pair.run(process())


def test_more_refusals_than_their_number_can_count(seed):
    """Every packet is refused, and the number begins again at 0; the flow of another node is of no
    account.
    """
    pair = Pair(LANE.BULK, Random(seed), lambda n, fields: False)

    def process():
        assert (yield from pair.transfer(9, 300, 1.0))
        yield from finish(lambda: len(pair.heard) == 300, 100)

    pair.run(process())
    assert pair.heard == list(range(300))
