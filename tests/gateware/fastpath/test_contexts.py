"""The fast path's flows: each taken put ends once, by its entry or by a pop, in order. So does each
other operation.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections import Counter

import pytest

from dibber.interface.description import C, STATUS

from tests.gateware.fastpath.contexts_world import BULK, EXPRESS, FLOWS, PSNS, SHOWN, World
from tests.gateware.models.cut import packets_of


@pytest.mark.parametrize("ahead", range(4))
def test_an_inline_put_is_ordered_in_two_cycles_from_its_coming_and_completed_in_four(ahead):
    world = World(1)

    def bench():
        yield from world.arm(EXPRESS + 3, 0xFFFF, incarnation=200, epoch=9)
        yield from world.wait(50)
        assert (yield from world.send(EXPRESS + 3, 7 * C.SLOTS + 31, 64, ahead=ahead)) == "taken"
        assert world.times["taken"] - world.times["offered"] == max(2 - ahead, 0)
        yield from world.wait(50)
        yield from world.acknowledge(EXPRESS + 3, 0xFFFF, judging=True)
        yield from world.wait(5)
        assert world.times["entry"] - world.times["judging"] == 4
        assert world.count["completed"] == 1
        yield from world.wait(2 * FLOWS)
        assert not world.seen["active"]

    world.run(bench())


@pytest.mark.parametrize("flow", [EXPRESS + 1, BULK + 15])
def test_a_full_ring_waits_and_one_acknowledgement_ends_all_of_it(flow):
    world = World(2)

    def bench():
        yield from world.arm(flow, PSNS - 20)
        for tag in range(C.FAST_PUTS):
            assert (yield from world.send(flow, tag)) == "taken"
        assert (yield from world.send(flow, 200)) == "wait"
        while world.jobs:
            yield from world.end_job()
        start = world.cycle
        yield from world.acknowledge(flow, (world.flows[flow].next - 1) % PSNS)
        while world.count["completed"] < C.FAST_PUTS:
            yield
        assert world.cycle - start < 5 * C.FAST_PUTS + 10
        assert (yield from world.send(flow, 200)) == "taken"

    world.run(bench())


@pytest.mark.parametrize("flow", [EXPRESS + 2, BULK + 2])
def test_a_claim_in_any_cycle_divides_what_ends_from_what_does_not(flow):
    """A put is offered, and another one acknowledged, around the claim; a third one has neither."""
    world, split = World(3), set()

    def offer(after):
        yield from world.wait(after)
        yield from world.send(flow, 40)

    def bench():
        psn = 0
        for after in range(16):
            for ahead in range(8):
                yield from world.arm(flow, psn)
                for tag in (0, 33):
                    assert (yield from world.send(flow, tag)) == "taken"
                while world.jobs:
                    yield from world.end_job()
                before = Counter(world.count)
                world.more.append(offer(ahead))
                yield from world.wait(4)
                yield from world.acknowledge(flow, psn)
                yield from world.wait(after)
                popped = yield from world.claim(flow)
                while world.offer:
                    yield
                count = world.count - before
                assert len(popped) + count["completed"] == 2 + count["taken"]
                split.add((count["completed"], count["taken"]))
                while world.jobs:
                    yield from world.end_job()
                psn = world.flows[flow].next
                yield from world.acknowledge(flow, (psn - 1) % PSNS)

    world.run(bench())
    assert split == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_nothing_ends_while_a_refusal_waits():
    world = World(4)

    def bench():
        for n in (0, 1):
            yield from world.arm(n, 0)
            yield from world.send(n, n)
        world.set(refusal_waiting=1)
        yield from world.acknowledge(0, 0)
        yield from world.acknowledge(1, 0)
        yield from world.wait(3 * FLOWS)
        assert not world.count["completed"]
        assert len((yield from world.claim(0))) == 1
        world.set(refusal_waiting=0)
        yield from world.wait(FLOWS + 8)  # the turn of all
        assert world.count["completed"] == 1 and not world.flows[1].under

    world.run(bench())


@pytest.mark.parametrize(
    "status, short", [(STATUS.READ_ERROR, 0), (STATUS.OK, 1), (STATUS.REWOUND, 0)]
)
def test_a_job_that_fails_gives_its_flow_away_and_no_other(status, short):
    world, flow = World(5), BULK + 4

    def bench():
        for n in (flow, flow + 1):
            yield from world.arm(n, 100)
        for tag, n in enumerate((flow, flow, flow, flow + 1)):
            yield from world.send(n, tag, 3 * C.PACKET_PAYLOAD)
        yield from world.end_job()
        put, tag = world.jobs[0]
        world.bad = put
        world.set(
            job_done_in__valid=1,
            job_done_in__tag=tag,
            job_done_in__node=4,
            job_done_in__status=status,
            job_done_in__psn=put.end - short,
        )
        while not world.count["passed"]:
            yield
        world.set(job_done_in__valid=0)
        assert world.given == {flow}
        assert (yield from world.send(flow, 60)) == "missed"
        # of that flow: the program's, though it ended well
        yield from world.end_job()
        yield from world.end_job()
        assert world.count["passed"] == 2 and world.count["own"] == 2
        puts = yield from world.claim(flow)
        assert [put.ended for put in puts] == [True, False, False]
        yield from world.acknowledge(flow + 1, 99 + packets_of(3 * C.PACKET_PAYLOAD), judging=True)
        yield from world.wait(6)
        assert world.count["completed"] == 1

    world.run(bench())


def test_an_endpoint_that_is_not_fast_any_more_is_missed():
    world = World(6)

    def bench():
        yield from world.arm(0, 0)
        assert (yield from world.send(0, 5 * C.SLOTS)) == "taken"
        world.set(fast=0xFF & ~(1 << 5))
        assert (yield from world.send(0, 5 * C.SLOTS + 1)) == "missed"
        assert (yield from world.send(0, 6 * C.SLOTS + 1)) == "taken"
        yield from world.acknowledge(0, 1)
        yield from world.wait(20)
        assert world.count["completed"] == 2 and not world.seen["busy"]

    world.run(bench())


def test_a_reset_empties_every_ring():
    """Memories keep what they have; a claim of a flow that was never armed since shows nothing."""
    world = World(7)

    def bench():
        for n in (3, BULK + 3):
            yield from world.arm(n, 0)
            for tag in range(5):
                yield from world.send(n, n // 4 * C.SLOTS + tag)
        world.set(reset=1)
        yield
        world.set(reset=0)
        for flow in world.flows:
            flow.armed = False
            flow.under.clear()
        for n in (3, BULK + 3):
            assert (yield from world.claim(n)) == []
            yield from world.arm(n, 0)
            assert (yield from world.send(n, n)) == "taken"
            assert len((yield from world.claim(n))) == 1

    world.run(bench())


def test_the_programs_job_is_not_taken_for_a_put_that_was_there_once():
    """The place where the next put goes holds one of the same tag, from the last time round."""
    world, flow = World(8), BULK + 1

    def bench():
        yield from world.arm(flow, 0)
        for tag in range(C.FAST_PUTS + 1):
            assert (yield from world.send(flow, tag)) == "taken"
            yield from world.end_job()
            yield from world.acknowledge(flow, tag)
            yield from world.wait(5)
        assert world.count["completed"] == world.count["own"] == C.FAST_PUTS + 1
        world.jobs.append((None, 0))
        yield from world.end_job()
        assert world.count["passed"] == 1 and not world.given

    world.run(bench())


def test_a_claim_behind_another_shows_the_latter():
    world = World(9)

    def bench():
        for gap in range(SHOWN + 2):
            for n, puts in ((4, 1), (5, 2)):
                yield from world.arm(n, 0)
                for tag in range(puts):
                    assert (yield from world.send(n, n * C.FAST_PUTS + tag)) == "taken"
            world.set(claim__strobe=1, claim__flow=4)
            yield
            world.set(claim__strobe=0)
            yield from world.wait(gap)
            assert len((yield from world.claim(5))) == 2
            assert len((yield from world.claim(4))) == 1

    world.run(bench())


@pytest.mark.parametrize("atomic", [0, 1])
def test_an_ask_leaves_the_ring_when_acknowledged_and_ends_when_answered(atomic):
    world, flow = World(10), EXPRESS + 6

    def bench():
        yield from world.arm(flow, 0xFFFF, incarnation=3, epoch=5)
        assert (
            yield from world.send(flow, 3 * C.SLOTS + 1, 8, ask=True, atomic=atomic, ahead=0)
        ) == "taken"
        assert world.times["taken"] - world.times["offered"] == 2
        assert (yield from world.send(flow, 3 * C.SLOTS + 2)) == "taken"
        ask, put = world.flows[flow].under
        assert not (yield from world.reply(ask))  # it is not acknowledged
        yield from world.acknowledge(flow, 0)
        yield from world.wait(12)
        # a put does not wait for it
        assert world.count["completed"] == 1 and world.flows[flow].waits == [ask]
        for name, value in (
            ("tag", ask.tag ^ 1),
            ("node", 7),
            ("generation", ask.generation ^ 32),
            ("atomic", 1 - atomic),
        ):
            assert not (yield from world.reply(ask, **{name: value}))
        assert (yield from world.reply(ask)) and world.times["answer"] < 14
        yield from world.wait(2 * FLOWS)
        assert world.count["completed"] == 2 and not world.seen["active"] and not world.seen["busy"]
        assert not (yield from world.reply(ask))

    world.run(bench())


def test_a_third_ask_of_a_node_waits_until_any_of_two_has_ended():
    world, flow = World(11), EXPRESS + 2

    def bench():
        yield from world.arm(flow, 0)
        yield from world.arm(flow + 1, 0)
        for first in range(2):
            for tag in (0, 33):
                assert (yield from world.send(flow, tag, ask=True)) == "taken"
            assert (yield from world.send(flow, 70, ask=True)) == "wait"
            assert (yield from world.send(flow + 1, 71, ask=True)) == "taken"
            assert (yield from world.send(flow, 72)) == "taken"
            yield from world.acknowledge(flow, world.flows[flow].next - 1)
            yield from world.acknowledge(flow + 1, world.flows[flow + 1].next - 1)
            yield from world.wait(20)
            assert (yield from world.send(flow, 70, ask=True)) == "wait"
            asks = list(world.flows[flow].waits)
            assert (yield from world.reply(asks[first]))
            yield from world.wait(3)
            assert (yield from world.send(flow, 70, ask=True)) == "taken"
            yield from world.acknowledge(flow, world.flows[flow].next - 1)
            yield from world.wait(12)
            for ask in world.flows[flow].waits + world.flows[flow + 1].waits:
                assert (yield from world.reply(ask))
        yield from world.wait(10)
        assert world.count["completed"] == 2 * 5

    world.run(bench())


def test_a_claim_shows_asks_and_in_which_state_they_are():
    world, flow = World(12), EXPRESS + 3

    def bench():
        for acked in range(4):
            yield from world.arm(flow, 0)
            for tag, ask in ((0, True), (1, False), (2, True)):
                assert (
                    yield from world.send(flow, tag, ask=ask, atomic=int(ask and tag == 2))
                ) == "taken"
            if acked:
                yield from world.acknowledge(flow, acked - 1)
            yield from world.wait(20)
            under = [put.tag for put in world.flows[flow].under]
            waits = [put.tag for put in world.flows[flow].waits]
            asks = world.flows[flow].asks
            popped = yield from world.claim(flow)
            assert [put.tag for put in popped[: len(under)]] == under and len(under) == 3 - acked
            assert sorted(put.tag for put in popped[len(under) :]) == sorted(waits)
            for ask in asks:
                assert not (yield from world.reply(ask))
            world.flows[flow].acked = 2

    world.run(bench())
    assert world.count["completed"] == 2  # the put, twice


def test_while_an_ask_waits_nothing_but_an_answer_counts_as_a_move():
    world, flow = World(13), EXPRESS + 4

    def bench():
        yield from world.arm(flow, 0)
        yield from world.send(flow, 0, ask=True)
        yield from world.acknowledge(flow, 0)
        yield from world.wait(12)
        (ask,) = world.flows[flow].waits
        for psn in range(1, 5):
            yield from world.send(flow, psn)
            yield from world.acknowledge(flow, psn)
            for _ in range(12):
                assert not world.seen["moved"]
                yield
        assert world.count["completed"] == 4
        assert (yield from world.reply(ask)) and world.seen["moved"] == 1 << flow

    world.run(bench())


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
def test_every_put_ends_once(seed, endpoints):
    """Puts, acknowledgements, ends of jobs, refusals and claims in any relation of cycles, on six
    flows.
    """
    world = World(seed, endpoints)
    random = world.random
    chosen = [EXPRESS, EXPRESS + 1, EXPRESS + 9, BULK, BULK + 1, BULK + 15]
    calm = False  # nothing new
    free = set(range(0, endpoints * C.SLOTS, 3))
    inbox = set(range(C.INBOX * C.SLOTS, (C.INBOX + 1) * C.SLOTS))
    refused = []
    everyone = 2**endpoints - 1

    def chance(p):
        return random.random() < p

    def reap(slots):
        """Those that may be used again."""
        used = {put.tag for flow in world.flows for put in [*flow.under, *flow.waits]} | {
            tag for _, tag in world.jobs
        }
        if world.closing:
            used.add(world.closing.tag)
        return sorted(slots - used)

    def puts():
        while True:
            n = random.choice(chosen)
            tags = reap(inbox if chance(0.3) else free)
            if calm or not tags:
                yield
                continue
            length = (
                random.randrange(C.INLINE_BYTES + 1)
                if n < BULK
                else random.choice(
                    [
                        1,
                        512,
                        1537,
                        8 * C.PACKET_PAYLOAD,
                        C.PACKET_PAYLOAD,
                        C.PACKET_PAYLOAD + 1,
                        C.FAST_LENGTH,
                        random.randrange(1, 30 * C.PACKET_PAYLOAD),
                    ]
                )
            )
            tag = random.choice(tags)
            ask = n < BULK and tag < endpoints * C.SLOTS and chance(0.4)
            yield from world.send(n, tag, length, ask, int(ask and chance(0.5)))
            yield from world.wait(random.choice([0, 0, 3, 12, 30]))

    def answers():
        """To asks that wait, to some that do not or that are the program's, and to none."""
        old = []
        while True:
            yield from world.wait(random.choice([0, 5, 20, 60]))
            asks = (
                [ask for flow in world.flows for ask in flow.waits]
                if calm or chance(0.9)
                else [ask for flow in world.flows for ask in flow.asks] + old
            )
            if asks:
                ask = random.choice(asks)
                wrong = (
                    dict(
                        [
                            random.choice(
                                [
                                    ("tag", ask.tag ^ 1),
                                    ("node", ask.flow ^ 1),
                                    ("generation", ask.generation ^ 1),
                                    ("atomic", 1 - ask.atomic),
                                ]
                            )
                        ]
                    )
                    if chance(0.1) and not calm
                    else {}
                )
                if (yield from world.reply(ask, **wrong)):
                    old.append(ask)
            yield

    def stalls():
        while True:
            world.set(
                express__ready=int(chance(0.9)),
                job__ready=int(chance(0.9)),
                job_done__ready=int(chance(0.5)),
                entry__ready=int(chance(0.3)),
                ended__ready=int(chance(0.5)),
                fast=everyone if calm or chance(0.95) else random.getrandbits(endpoints),
            )
            yield

    def acknowledgements():
        while True:
            yield from world.wait(random.choice([2, 2, 5, 20]))
            waiting = [n for n in chosen if (world.flows[n].next - 1 - world.flows[n].acked) % PSNS]
            if not waiting:
                yield
                continue
            n = random.choice(waiting)
            flow = world.flows[n]
            ahead = (flow.next - 1 - flow.acked) % PSNS
            if ahead > PSNS // 2:  # it was armed in this cycle, and all is acknowledged
                yield
                continue
            old = [put for put in flow.under if not flow.covers(put)]
            step = ahead if chance(0.5) else random.randrange(1, ahead + 1)
            psn = (flow.acked + step) % PSNS
            fresh = [put for put in old if (psn + 1 - put.end) % PSNS < PSNS // 2]
            if fresh and flow.armed and not refused and not calm and chance(0.05):
                random.choice(fresh).refused = True
                refused.append(n)
                world.count["refused"] += 1
                world.set(refusal_waiting=1)
            yield from world.acknowledge(n, psn)

    def engine():
        while True:
            if not calm and chance(0.02) and len(tags := reap(free)) > 20:
                world.jobs.append((None, random.choice([random.choice(tags), 350])))
            if world.jobs:
                yield from world.wait(random.choice([0, 3, 20, 40]))
                yield from world.end_job(good=calm or chance(0.95))
            yield

    def program():
        for n in chosen:
            yield from world.arm(n, world.flows[n].next)
        while not calm or refused or world.given:
            yield from world.wait(random.choice([1, 5, 30, 100]))
            if refused:
                yield from world.claim(refused[0])
                refused.pop()
                world.set(refusal_waiting=0)
            elif world.given:
                yield from world.claim(min(world.given))
            elif chance(0.3):
                yield from world.claim(random.choice(chosen))
            n = random.choice(chosen)
            flow = world.flows[n]
            if (
                not flow.armed
                and not flow.under
                and not flow.waits
                and (flow.acked + 1 - flow.next) % PSNS == 0
            ):
                psn = flow.next
                if chance(0.3):
                    psn = random.choice([0, PSNS - 3])
                yield from world.arm(n, psn, random.getrandbits(8), random.getrandbits(4))
        while True:
            yield

    def bench():
        nonlocal calm
        yield from world.wait(12000)
        calm = True
        for _ in range(6000):
            if not world.jobs and not any(
                flow.armed and (flow.under or flow.waits) for flow in world.flows
            ):
                break
            yield
        yield from world.wait(2 * FLOWS)
        assert not world.seen["active"] and not refused
        assert not any(flow.armed and (flow.under or flow.waits) for flow in world.flows), (
            "a put was forgotten"
        )

    world.run(bench(), puts(), stalls(), acknowledgements(), engine(), program(), answers())
    count = world.count
    assert count["taken"] == count["completed"] + count["ended"] + count["popped"] + sum(
        len(flow.under) + len(flow.waits) for flow in world.flows
    )
    least = dict(
        taken=500,
        missed=50,
        wait=5,
        completed=200,
        ended=100,
        popped=50,
        claimed=40,
        given=5,
        refused=4,
        passed=30,
        own=100,
        asked=50,
        answered=30,
        strange=30,
        wrapped=3,
    )
    assert all(count[what] >= least[what] for what in least), count
