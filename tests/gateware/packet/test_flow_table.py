"""The flow table alone, against a plain model: its gates under resets and rewinds at any time, and
what it believes.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass
from random import Random

import pytest

from migen import *

from dibber.interface.description import C, LANE, PACKET_FLAG, STATUS
from dibber.packet.flow_table import DOUBTS, PATIENCE, FlowTable

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive
from tests.gateware.models.flows import acked_of, flow_bit, numbers_of, sure

NODES = 3  # of those there are; few, so that things meet


@dataclass
class Flow:
    """What the source knows of a flow. `number` is the incarnation on the link."""

    incarnation: int = None
    number: int = 0
    epoch: int = 0
    sent: int = 0xFFFF
    acked: int = 0xFFFF

    def stale(self, incarnation, epoch):
        return (incarnation, epoch) != (self.incarnation, self.epoch)

    def passes(self, psn):
        """1: it may go; 0: it waits; -1: it was acknowledged."""
        distance = (psn - self.acked - 1) % 0x10000
        return -1 if distance >= 0x8000 else int(distance < C.WINDOW)

    def send(self, psn):
        if (psn - self.sent) % 0x10000 < 0x8000:
            self.sent = psn

    def reset(self, incarnation):
        return Flow(incarnation, (self.number + 1) % 256)

    def believes(self, number, ack):
        return (
            self.number == number
            and (ack - self.acked) % 0x10000 <= (self.sent - self.acked) % 0x10000
        )


def number(lane, node):
    return lane * C.NODES + node


def new():
    """A table whose flows need not ask."""
    dut = FlowTable()
    sure(dut)
    dut.shown = acked_of(dut)
    return dut


def start(dut, flow, incarnation=0):
    yield from drive(dut.reset, strobe=1, flow=flow, incarnation=incarnation)
    yield
    yield dut.reset.strobe.eq(0)
    yield


def send(dut, flow, psn, incarnation=0, epoch=0, cycles=20):
    """Offer a packet; returns its `stale`, or None if it did not pass."""
    lane, node = divmod(flow, C.NODES)
    sink, source = dut.sinks[lane], dut.sources[lane]
    yield from drive(sink, node=node, incarnation=incarnation, epoch=epoch, psn=psn, valid=1)
    yield source.ready.eq(1)
    yield
    result = None
    for _ in range(cycles):
        if (yield source.valid):
            result = yield source.stale
            break
        yield
    yield sink.valid.eq(0)
    yield source.ready.eq(0)
    yield
    return result


def acknowledge(dut, flow, ack, incarnation=1, flags=0, psn=0, reason=0, refusals=0):
    """Tell an acknowledgement; returns what pulsed: (`changed`, `naked`)."""
    lane, node = divmod(flow, C.NODES)
    flags |= PACKET_FLAG.EXPRESS if lane == LANE.EXPRESS else 0
    yield from drive(
        dut.acks,
        node=node,
        incarnation=incarnation,
        ack=ack,
        flags=flags,
        psn=psn,
        reason=reason,
        refusals=refusals,
        valid=1,
    )
    yield
    yield dut.acks.valid.eq(0)
    changed = naked = 0
    for _ in range(4):
        yield
        changed |= yield from flow_bit(dut.changed)
        naked |= yield from flow_bit(dut.naked)
    return changed, naked


def test_no_packet_passes_a_gate_as_what_it_is_not(seed):
    """Resets, rewinds and packets in every relation of cycles: `stale` is right in the very cycle
    of the transfer.
    """
    dut, random = new(), Random(seed)
    flows = [Flow() for _ in range(C.LANES * C.NODES)]
    passed, commands = {}, 0

    def process():
        nonlocal commands
        done = None, None, None  # what is done in the cycle: the command before
        offered = [None] * C.LANES
        for _ in range(2500):
            for lane, sink in enumerate(dut.sinks):
                if offered[lane] is None and random.random() < 0.7:
                    flow = flows[number(lane, node := random.randrange(2))]
                    offered[lane] = (
                        node,
                        ((flow.incarnation or 0) - (random.random() < 0.2)) % 256,
                        (flow.epoch - (random.random() < 0.2)) % 16,
                    )
                    yield from drive(
                        sink,
                        **dict(zip(("node", "incarnation", "epoch"), offered[lane])),
                        psn=random.randrange(C.WINDOW),
                        valid=1,
                    )
                yield dut.sources[lane].ready.eq(int(random.random() < 0.6))
            command = random.choice(("reset", "rewind")) if random.random() < 0.15 else None
            which = number(random.randrange(C.LANES), random.randrange(2))
            value = random.randrange(256 if command == "reset" else 16)
            yield from drive(
                dut.reset, strobe=int(command == "reset"), flow=which, incarnation=value
            )
            yield from drive(
                dut.rewind, strobe=int(command == "rewind"), flow=which, epoch=value % 16
            )
            done, (doing, where, what) = (command, which, value), done
            yield
            for lane, source in enumerate(dut.sources):
                if (yield source.valid) and (yield source.ready):
                    node, *rest = offered[lane]
                    assert (yield source.stale) or (yield source.number) == flows[
                        number(lane, node)
                    ].number
                    assert doing is None or where // C.NODES != lane, (
                        "passed in the cycle of a command"
                    )
                    stale = yield source.stale
                    assert stale == flows[number(lane, node)].stale(*rest)
                    passed[lane, stale] = passed.get((lane, stale), 0) + 1
                    offered[lane] = None
                    yield dut.sinks[lane].valid.eq(0)
            if doing == "reset":
                flows[where] = flows[where].reset(what)
            elif doing == "rewind":
                flows[where].epoch = what
            commands += command is not None

    run_simulation(dut, process())
    assert len(passed) == 4 and min(passed.values()) > 50 and commands > 200


def test_flows_go_as_the_model_says(seed):
    """Every kind of packet and acknowledgement; one flow starts shortly before its PSNs wrap."""
    dut, random = new(), Random(seed)
    flows = {number(lane, node): Flow() for lane in range(C.LANES) for node in range(NODES)}
    seen, far = {}, number(LANE.BULK, 1)

    def count(what):
        seen[what] = seen.get(what, 0) + 1

    def process():
        flows[far] = Flow().reset(9)
        yield from start(dut, far, 9)
        for psn in range(C.WINDOW - 2, 0xFFFF - C.WINDOW, C.WINDOW):
            assert (yield from send(dut, far, psn, 9)) == 0
            assert (yield from acknowledge(dut, far, psn)) == (1 << far, 0)
            flows[far].sent = flows[far].acked = psn
        for _ in range(2000):
            which = random.choice(list(flows))
            flow = flows[which]
            kind = random.random()
            if kind < 0.01 and which != far or flow.incarnation is None:
                flows[which] = flow.reset(random.randrange(256))
                yield from start(dut, which, flows[which].incarnation)
                count("reset")
            elif kind < 0.04:
                flow.epoch = (flow.epoch + 1) % 16
                yield from drive(dut.rewind, strobe=1, flow=which, epoch=flow.epoch)
                yield
                yield dut.rewind.strobe.eq(0)
                count("rewind")
            elif kind < 0.5:
                psn = (
                    flow.acked
                    + random.choice((random.randrange(-3, 70), C.WINDOW, C.WINDOW, C.WINDOW + 1))
                ) % 0x10000
                result = yield from send(dut, which, psn, flow.incarnation, flow.epoch, cycles=4)
                passes = flow.passes(psn)
                assert result == {1: 0, 0: None, -1: 1}[passes], (flow, psn)
                if passes == 1:
                    flow.send(psn)
                count(("send", passes))
            else:
                ack = (
                    random.choice(
                        (flow.sent, flow.acked + random.randrange(-2, 66), random.getrandbits(16))
                    )
                    % 0x10000
                )
                old = random.random() < 0.1
                nak = random.random() < 0.3
                told = (flow.number - old) % 256
                changed, naked = yield from acknowledge(
                    dut, which, ack, told, PACKET_FLAG.NAK if nak else 0
                )
                believed = flow.believes(told, ack)
                assert changed == (1 << which if believed and ack != flow.acked else 0), (flow, ack)
                assert naked == (1 << which if believed and nak else 0), (flow, ack)
                if believed:
                    count("wrap" if ack < flow.acked != 0xFFFF else "ack")
                    flow.acked = ack
                else:
                    count("forged")
                assert (yield dut.shown[which]) == flow.acked
        for which, flow in flows.items():
            assert (yield dut.shown[which]) == flow.acked
            for look in dut.acked:
                yield look.flow.eq(which)
                yield
                assert (yield look.psn) == flow.acked
                yield look.flow.eq(~which)

    run_simulation(dut, process())
    assert set(seen) == {
        "reset",
        "rewind",
        ("send", 1),
        ("send", 0),
        ("send", -1),
        "ack",
        "forged",
        "wrap",
    }, seen


def test_an_acknowledgement_of_what_was_sent_before_a_rewind_counts():
    dut, flow = new(), number(LANE.BULK, 2)

    def process():
        yield from start(dut, flow)
        for psn in range(10):
            assert (yield from send(dut, flow, psn)) == 0
        yield from drive(dut.rewind, strobe=1, flow=flow, epoch=1)
        yield
        yield dut.rewind.strobe.eq(0)
        assert (yield from send(dut, flow, 0, epoch=1)) == 0
        assert (yield from acknowledge(dut, flow, 9)) == (1 << flow, 0)
        assert (yield dut.shown[flow]) == 9
        assert (yield from send(dut, flow, 1, epoch=1)) == 1, "it was acknowledged"

    run_simulation(dut, process())


def test_a_closed_window_of_one_lane_never_holds_the_other():
    dut = new()

    def process():
        for lane in range(C.LANES):
            yield from start(dut, number(lane, 1))
        for lane in range(C.LANES):
            other = number(1 - lane, 1)
            yield from drive(dut.sinks[lane], node=1, incarnation=0, epoch=0, psn=C.WINDOW, valid=1)
            yield dut.sources[lane].ready.eq(1)
            for psn in range(6 * lane, 6 * lane + 6):
                assert (yield from send(dut, other, psn, cycles=3)) == 0
                assert not (yield dut.sources[lane].valid)
            yield dut.sinks[lane].valid.eq(0)
            yield

    run_simulation(dut, process())


def test_a_node_that_does_not_exist_and_a_flow_that_was_not_started_get_nothing():
    dut, started = new(), number(LANE.BULK, 0)

    def process():
        yield from start(dut, started)
        for lane in range(C.LANES):
            for node in range(C.NODES + 1):
                sink, source = dut.sinks[lane], dut.sources[lane]
                yield from drive(sink, node=node, valid=1)
                yield source.ready.eq(1)
                for _ in range(4):
                    yield
                    if (yield source.valid):
                        assert (yield source.stale) == (
                            number(lane, node) != started or node == C.NODES
                        )
                        break
                else:
                    raise AssertionError("it waits")
                yield sink.valid.eq(0)
                yield
        for flow in range(C.LANES * C.NODES):
            assert (yield from acknowledge(dut, flow, 0)) == (
                (1 << flow if flow == started else 0),
                0,
            )

    run_simulation(dut, process())


@pytest.mark.parametrize("cycle", range(5))
@pytest.mark.parametrize("own", [False, True])
def test_a_reset_meets_an_acknowledgement_in_any_cycle(cycle, own):
    """Of its own flow nothing is believed any more; that of another flow is entered all the
    same.
    """
    dut, one, two = new(), number(LANE.EXPRESS, 2), number(LANE.EXPRESS, 5)
    seen = []

    @passive
    def watch():
        while True:
            seen.append((yield from flow_bit(dut.changed)))
            yield

    def process():
        for flow in one, two:
            yield from start(dut, flow)
            assert (yield from send(dut, flow, 0)) == 0
        yield from drive(dut.acks, node=2, incarnation=1, ack=0, flags=PACKET_FLAG.EXPRESS, valid=1)
        for n in range(8):
            yield from drive(
                dut.reset, strobe=int(n == cycle), flow=one if own else two, incarnation=1
            )
            yield
            yield dut.acks.valid.eq(0)
        assert (yield dut.shown[one]) == (0xFFFF if own else 0)
        assert (yield dut.shown[two]) == 0xFFFF
        # The gate has the same state: PSN 0 was acknowledged, or must be sent again.
        assert (yield from send(dut, one, 0, int(own))) == (0 if own else 1)

    run_simulation(dut, [process(), watch()])
    assert sum(seen) == (0 if own and cycle < 2 else 1 << one)


def test_what_was_sent_before_a_reset_cannot_be_acknowledged_after_it():
    dut, flow = new(), number(LANE.BULK, 2)

    def process():
        yield from start(dut, flow)
        for psn in range(4):
            assert (yield from send(dut, flow, psn)) == 0
        yield from start(dut, flow, 1)
        for number_on_link in 1, 2:
            assert (yield from acknowledge(dut, flow, 1, incarnation=number_on_link)) == (0, 0)
        assert (yield dut.shown[flow]) == 0xFFFF

    run_simulation(dut, process())


@pytest.mark.parametrize("flags", [0, PACKET_FLAG.NAK, PACKET_FLAG.REFUSED])
@pytest.mark.parametrize(
    "ack, missed", [(ack, missed) for ack in (3, 5) for missed in (0, 1, 2, -1)]
)
def test_an_acknowledgement_that_tells_of_other_refusals_makes_its_flow_deaf(flags, ack, missed):
    """2 refusals came, up to PSN 3. A new REFUSED may bring one more."""
    dut, flow = new(), number(LANE.EXPRESS, 4)
    other = number(LANE.BULK, 4)
    refused = flags == PACKET_FLAG.REFUSED
    heard = []

    @passive
    def take():
        yield dut.refusals.ready.eq(1)
        while True:
            yield
            if (yield dut.refusals.valid):
                heard.append((yield dut.refusals.psn))

    def process():
        for each in flow, other:
            yield from start(dut, each)
            for psn in range(8):
                assert (yield from send(dut, each, psn)) == 0
        for psn in (1, 3):
            yield from acknowledge(
                dut, flow, psn, flags=PACKET_FLAG.REFUSED, psn=psn, refusals=psn // 2 + 1
            )
        assert heard == [1, 3]
        new, deaf = refused and missed == 1 and ack == 5, missed != 0
        deaf &= not new
        moves = ack == 5 and not deaf
        told = yield from acknowledge(
            dut, flow, ack, flags=flags, psn=ack, refusals=(2 + missed) % 256
        )
        assert told == (moves << flow, (flags == PACKET_FLAG.NAK and not deaf) << flow)
        assert heard == [1, 3] + [5] * new
        # Deaf for all that comes, but not what is of another flow, nor of the next incarnation.
        told = yield from acknowledge(dut, flow, 7, refusals=2 + new)
        assert told == (0 if deaf else 1 << flow, 0)
        assert (yield from acknowledge(dut, other, 7)) == (1 << other, 0)
        yield from start(dut, flow, 1)
        assert (yield from send(dut, flow, 0, 1)) == 0
        assert (yield from acknowledge(dut, flow, 0, 2, PACKET_FLAG.REFUSED, refusals=1)) == (
            1 << flow,
            0,
        )
        assert len(heard) == 3 + new

    run_simulation(dut, [process(), take()])


@pytest.mark.parametrize(
    "what,ack,incarnation,tells",
    [
        ("again", 3, 1, True),
        ("more", 4, 1, False),
        ("nak", 3, 1, False),
        ("refused", 3, 1, False),
        ("former incarnation", 3, 0, False),
        ("beyond what was sent", 9, 1, False),
    ],
)
def test_an_acknowledgement_that_comes_again_tells_that_the_target_is_storing(
    what, ack, incarnation, tells
):
    dut, flow = new(), number(LANE.BULK, 2)
    told = []

    @passive
    def watch():
        while True:
            yield
            if (yield dut.works.strobe):
                told.append((yield dut.works.flow))

    def process():
        yield from start(dut, flow)
        for psn in range(8):
            assert (yield from send(dut, flow, psn)) == 0
        yield from acknowledge(dut, flow, 3)
        assert told == []
        flags = {"nak": PACKET_FLAG.NAK, "refused": PACKET_FLAG.REFUSED}.get(what, 0)
        yield from acknowledge(dut, flow, ack, incarnation, flags, psn=ack)
        assert told == [flow] * tells

    run_simulation(dut, [process(), watch()])


def passed(dut, flow, psn, incarnation):
    """Offer a packet that may go; the incarnation that it carries on the link."""
    lane, node = divmod(flow, C.NODES)
    sink, source = dut.sinks[lane], dut.sources[lane]
    yield from drive(sink, node=node, incarnation=incarnation, epoch=0, psn=psn, valid=1)
    yield source.ready.eq(1)
    yield
    while not (yield source.valid):
        yield
    assert not (yield source.stale)
    found = yield source.number
    yield sink.valid.eq(0)
    yield
    return found


def question(dut, flow, psn=0, incarnation=0, limit=8):
    """Offer a packet of a flow that is not sure, which stays: the token of the question that leaves
    in its place.
    """
    lane, node = divmod(flow, C.NODES)
    sink, source = dut.sinks[lane], dut.sources[lane]
    yield from drive(sink, node=node, incarnation=incarnation, epoch=0, psn=psn, valid=1)
    yield source.ready.eq(1)
    yield
    for _ in range(limit):
        if (yield source.valid):
            break
        yield
    assert (
        (yield source.valid)
        and (yield source.question)
        and not (yield source.stale)
        and not (yield sink.ready)
    )
    return (yield source.token)


def answer(dut, flow, token, held):
    """What pulsed, as of acknowledge()."""
    return (yield from acknowledge(dut, flow, 40, held, PACKET_FLAG.FIRST, psn=token))


def outcome(dut, flow, limit=8):
    """Of the packet at the flow's gate: (`stale`, `question`, `number`) when it is shown, or
    None.
    """
    source = dut.sources[flow // C.NODES]
    for _ in range(limit):
        if (yield source.valid):
            return (yield source.stale), (yield source.question), (yield source.number)
        yield
    return None


def withdraw(dut, flow):
    yield dut.sinks[flow // C.NODES].valid.eq(0)
    yield


@pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))
def test_each_reset_takes_the_next_incarnation_on_the_link_whatever_number_the_program_gives(
    lane, seed
):
    dut, random = new(), Random(seed)
    flow, other = number(lane, 3), number(lane, 4)

    def process():
        yield from start(dut, other)
        for count in range(1, DOUBTS):
            own = random.randrange(256)
            yield from start(dut, flow, own)
            if random.random() < 0.3:
                assert (yield from passed(dut, flow, 0, own)) == count
        assert (yield from passed(dut, other, 0, 0)) == 1

    run_simulation(dut, process())


@pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))
@pytest.mark.parametrize("held", [0, 1, 2, 64, 128, 129, 254, 255])
def test_after_power_on_a_flow_asks_and_begins_behind_what_its_target_holds(lane, held):
    """No packet leaves before the answer, and none twice; the other flows of the lane's nodes ask
    for themselves.
    """
    dut, flow, other = FlowTable(), number(lane, 3), number(lane, 4)

    def process():
        for each in flow, other:
            yield from start(dut, each, 5)
        token = yield from question(dut, flow, incarnation=5)
        yield
        assert (yield from outcome(dut, flow, 200)) is None, "it is asked once, and waits"
        assert (yield from answer(dut, flow, token, held)) == (0, 0), (
            "it is no acknowledgement, and nothing is missed"
        )
        assert (yield from outcome(dut, flow)) == (0, 0, (held + 1) % 256)
        yield from withdraw(dut, flow)
        assert (yield from passed(dut, flow, 1, 5)) == (held + 1) % 256
        assert (yield from acknowledge(dut, flow, 1, (held + 1) % 256)) == (1 << flow, 0)
        assert (yield from question(dut, other, incarnation=5)) not in (token, None)

    run_simulation(dut, process())


@pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))
def test_nothing_but_the_answer_to_the_last_question_counts_before_it(lane):
    """Acknowledgements of any incarnation, answers with another token, of another node or lane, and
    any answer a second time.
    """
    dut, flow = FlowTable(), number(lane, 3)

    def process():
        yield from start(dut, flow, 5)
        for held in 0, 1, 2:
            assert (yield from acknowledge(dut, flow, 0, held)) == (0, 0)
            assert (yield from answer(dut, flow, 0, held)) == (0, 0)
        token = yield from question(dut, flow, incarnation=5)
        yield
        for held in 0, 1, 2:
            assert (yield from acknowledge(dut, flow, 0, held, PACKET_FLAG.NAK)) == (0, 0)
            assert (yield from acknowledge(dut, flow, 0, held, psn=token)) == (0, 0)
        yield from answer(dut, flow, token ^ 1, 9)
        yield from answer(dut, flow + 1, token, 9)
        yield from answer(dut, number(1 - lane, 3), token, 9)
        yield from drive(
            dut.acks,
            node=3 + C.NODES,
            incarnation=9,
            psn=token,
            valid=1,
            flags=PACKET_FLAG.FIRST | (PACKET_FLAG.EXPRESS if lane == LANE.EXPRESS else 0),
        )
        yield
        yield dut.acks.valid.eq(0)
        assert (yield from outcome(dut, flow)) is None
        yield from answer(dut, flow, token, 30)
        assert (yield from outcome(dut, flow)) == (0, 0, 31)
        yield from withdraw(dut, flow)
        yield from answer(dut, flow, token, 60)
        assert (yield from passed(dut, flow, 1, 5)) == 31

    run_simulation(dut, process())


@pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))
def test_a_flow_asks_again_before_its_count_has_left_its_target_behind(lane):
    dut, flow = new(), number(lane, 3)

    def process():
        for count in range(1, 2 * DOUBTS):
            yield from start(dut, flow)
            if count < DOUBTS:
                assert (yield from passed(dut, flow, 0, 0)) == count
        token = yield from question(dut, flow)
        yield
        yield from answer(dut, flow, token, 1)
        assert (yield from outcome(dut, flow)) == (0, 0, 2)

    run_simulation(dut, process())


def test_a_target_that_does_not_answer_holds_the_lane_for_a_while_only():
    """What waits is dropped, and what comes behind it, until the flow is rewound; an answer that
    comes late is told as a NAK.
    """
    dut, flow, other = new(), number(LANE.BULK, 3), number(LANE.BULK, 4)
    numbers_of(dut.gate1).init[3] = 0

    def process():
        for each in flow, other:
            yield from start(dut, each)
        token = yield from question(dut, flow)
        yield
        assert (yield from outcome(dut, flow, PATIENCE - 4)) is None
        yield dut.vain.flow.eq(flow)
        yield
        assert not (yield dut.vain.vain)
        assert (yield from outcome(dut, flow)) == (1, 0, 1)
        assert (yield dut.vain.vain)
        yield dut.vain.flow.eq(other)
        yield
        assert not (yield dut.vain.vain)
        yield dut.vain.flow.eq(flow)
        yield
        for psn in 1, 2:
            assert (yield from send(dut, flow, psn)) == 1
        assert (yield from passed(dut, other, 0, 0)) == 1
        yield from drive(dut.rewind, strobe=1, flow=flow, epoch=0)
        yield
        yield dut.rewind.strobe.eq(0)
        second = yield from question(dut, flow)
        assert not (yield dut.vain.vain)
        assert second != token
        yield
        assert (yield from answer(dut, flow, token, 8)) == (0, 0)
        assert (yield from outcome(dut, flow, PATIENCE)) == (1, 0, 1)
        yield from withdraw(dut, flow)
        assert (yield from answer(dut, flow, second, 8)) == (0, 1 << flow)
        assert (yield from passed(dut, flow, 0, 0)) == 9

    run_simulation(dut, process())


@pytest.mark.parametrize("offered", [False, True])
@pytest.mark.parametrize("cycle", range(7))
def test_a_reset_meets_the_answer_to_its_flow_in_any_cycle(cycle, offered):
    """Whichever comes first: nothing but what is behind the answer leaves."""
    dut, flow = FlowTable(), number(LANE.BULK, 3)
    seen = []

    @passive
    def watch():
        source = dut.sources[LANE.BULK]
        while True:
            if (yield source.valid) and not (yield source.stale):
                seen.append(((yield source.question), (yield source.number)))
            yield

    def process():
        yield from start(dut, flow, 5)
        token = yield from question(dut, flow, incarnation=5)
        yield
        sink = dut.sinks[LANE.BULK]
        yield from drive(sink, valid=int(offered), incarnation=6)
        yield from drive(
            dut.acks, node=3, incarnation=50, ack=7, psn=token, flags=PACKET_FLAG.FIRST, valid=1
        )
        for n in range(16):
            yield from drive(dut.reset, strobe=int(n == cycle), flow=flow, incarnation=6)
            yield
            yield dut.acks.valid.eq(0)
        yield from withdraw(dut, flow)
        found = yield from passed(dut, flow, 0, 6)
        # Looked at before the reset it is entered behind it, else what is reset is sure.
        assert found in (51, 52)
        assert (yield from acknowledge(dut, flow, 0, found)) == (1 << flow, 0)

    run_simulation(dut, [process(), watch()])
    assert all(asked or number > 50 for asked, number in seen)


# A target that began anew -------------------------------------------------------------------------

LANES = pytest.mark.parametrize("lane", (LANE.EXPRESS, LANE.BULK))


def gone(dut, flow, psn, number):
    """The target says that it does not hold the flow of this packet: the report to the program."""
    heard = []
    lane, node = divmod(flow, C.NODES)
    flags = PACKET_FLAG.REFUSED | (PACKET_FLAG.EXPRESS if lane == LANE.EXPRESS else 0)
    yield dut.refusals.ready.eq(0)
    yield from drive(
        dut.acks,
        node=node,
        incarnation=number,
        ack=psn,
        psn=psn,
        refusals=0,
        flags=flags,
        reason=STATUS.PEER_RESTARTED,
        valid=1,
    )
    yield
    yield dut.acks.valid.eq(0)
    for _ in range(6):
        yield
    yield dut.refusals.ready.eq(1)
    for _ in range(4):
        yield
        if (yield dut.refusals.valid):
            heard.append(
                ((yield dut.refusals.flow), (yield dut.refusals.psn), (yield dut.refusals.reason))
            )
    yield dut.refusals.ready.eq(0)
    return heard


@pytest.mark.fault
@LANES
def test_a_flow_that_its_target_does_not_hold_is_silent_until_it_is_reset_and_then_asks(lane):
    dut, flow, other = new(), number(lane, 3), number(lane, 4)

    def process():
        for each in flow, other:
            yield from start(dut, each)
            for psn in range(4):
                assert (yield from send(dut, each, psn)) == 0
        assert (yield from acknowledge(dut, flow, 1, 1)) == (1 << flow, 0)
        assert (yield from gone(dut, flow, 2, 1)) == [(flow, 2, STATUS.PEER_RESTARTED)]
        assert (yield dut.shown[flow]) == 1, "it acknowledges nothing"
        # Whatever comes of the flow is dropped, whatever is said of it is not believed, and a
        # rewind heals nothing.
        assert (yield from send(dut, flow, 4)) == 1
        assert (yield from acknowledge(dut, flow, 3, 1, PACKET_FLAG.NAK)) == (0, 0)
        assert (yield from gone(dut, flow, 3, 1)) == []
        yield from drive(dut.rewind, strobe=1, flow=flow, epoch=0)
        yield
        yield dut.rewind.strobe.eq(0)
        assert (yield from send(dut, flow, 2)) == 1
        assert (yield from send(dut, other, 4)) == 0, "others go on"
        assert (yield from acknowledge(dut, other, 4, 1)) == (1 << other, 0)
        yield from start(dut, flow)
        token = yield from question(dut, flow)
        yield
        yield from answer(dut, flow, token, 90)
        assert (yield from outcome(dut, flow)) == (0, 0, 91)
        yield from withdraw(dut, flow)
        assert (yield from passed(dut, flow, 1, 0)) == 91
        # Sure again: the next reset need not ask.
        yield from start(dut, flow)
        assert (yield from passed(dut, flow, 0, 0)) == 92

    run_simulation(dut, process())


@pytest.mark.fault
@LANES
def test_what_is_said_of_another_incarnation_or_of_what_is_not_under_way_loses_no_flow(lane):
    """Stale, forged or damaged: an incarnation that is not the current one, a packet that is
    acknowledged or was not sent.
    """
    dut, flow = new(), number(lane, 3)

    def process():
        yield from start(dut, flow)
        assert (yield from gone(dut, flow, 0, 1)) == [], "nothing was sent"
        for psn in range(3):
            assert (yield from send(dut, flow, psn)) == 0
        yield from acknowledge(dut, flow, 0, 1)
        for psn, incarnation in (1, 0), (1, 2), (1, 129), (0, 1), (0xFFFF, 1), (3, 1), (40, 1):
            assert (yield from gone(dut, flow, psn, incarnation)) == [], (psn, incarnation)
        assert (yield from gone(dut, number(lane, 4), 1, 1)) == []
        assert (yield from gone(dut, number(1 - lane, 3), 1, 1)) == []
        assert (yield from send(dut, flow, 3)) == 0
        assert (yield from acknowledge(dut, flow, 3, 1)) == (1 << flow, 0)

    run_simulation(dut, process())


@pytest.mark.fault
@pytest.mark.parametrize("cycle", range(8))
def test_a_reset_meets_the_news_that_its_flow_is_not_held_in_any_cycle(cycle):
    """The news is of the former incarnation: at most the new one asks, and nothing of the old one
    leaves.
    """
    dut, flow = new(), number(LANE.BULK, 3)

    def process():
        yield from start(dut, flow, 5)
        assert (yield from send(dut, flow, 0, incarnation=5)) == 0
        yield from drive(
            dut.acks,
            node=3,
            incarnation=1,
            ack=0,
            psn=0,
            refusals=0,
            flags=PACKET_FLAG.REFUSED,
            reason=STATUS.PEER_RESTARTED,
            valid=1,
        )
        for n in range(16):
            yield from drive(dut.reset, strobe=int(n == cycle), flow=flow, incarnation=6)
            yield
            yield dut.acks.valid.eq(0)
        sink, source = dut.sinks[LANE.BULK], dut.sources[LANE.BULK]
        yield from drive(sink, node=3, incarnation=6, psn=0, valid=1)
        yield source.ready.eq(1)
        yield
        stale, asked, number_ = yield from outcome(dut, flow)
        assert number_ == 2 and (not stale or cycle < 4)

    run_simulation(dut, process())
