"""Replay: packets are lost, and each is still executed once."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import FLAG, STATUS, C

from tests.firmware.mcp_native import BULK, inline, put
from tests.firmware.mcp_wire import WiredCard
from tests.gateware.models.cut import packets_of, whole

MICROSECOND = 125
TIMEOUT = 40_000 * MICROSECOND
FLOW = BULK + 1


@pytest.fixture
def wired():
    return WiredCard()


def once(*packets):
    """A `lose` that loses each of these (cookie, index) the first time."""
    left = set(packets)

    def lose(packet):
        found = (packet.cookie, packet.index) in left
        left.discard((packet.cookie, packet.index))
        return found

    return lose


def executed(card, flow=FLOW):
    return card.peers[flow].executed


# What starts a replay -----------------------------------------------------------------------------


def test_a_nak_queues_again_from_the_missing_packet_on_with_the_same_psns(wired):
    wired.lose = once((0, 3))
    wired.ring(1, put(length=whole(8), cookie=0), put(length=whole(2), cookie=1))
    wired.step()
    first = wired.jobs[:]
    wired.work()
    wired.step()
    wired.observe()
    assert [(j.tag, j.psn, j.skip, j.length, j.incarnation) for j in wired.jobs] == [
        (first[0].tag, 3, whole(3), whole(8), 1),
        (first[1].tag, 8, 0, whole(2), 1),
    ]
    assert {j.epoch for j in wired.jobs} == {wired.epoch[FLOW]} != {first[0].epoch}
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0} and wired.incarnation[FLOW] == 1
    assert executed(wired) == [(0, i) for i in range(8)] + [(1, i) for i in range(2)]


def test_a_lost_last_packet_is_found_by_the_timer_after_100_us(wired):
    wired.lose = once((0, 1))
    wired.ring(1, put(length=whole(2), cookie=0))
    wired.settle()
    wired.settle(75 * MICROSECOND)
    assert not wired.jobs and executed(wired) == [(0, 0)]
    wired.settle(150 * MICROSECOND)
    assert wired.statuses == {0: STATUS.OK} and executed(wired) == [(0, 0), (0, 1)]


def test_attempts_are_100_us_apart_then_twice_as_far_up_to_1600_us(wired):
    times, wired.cut = [], {1}
    wired.ring(1, put(cookie=0))
    epoch = wired.epoch[FLOW]
    while not wired.statuses:
        wired.settle(1000)
        if wired.epoch[FLOW] != epoch:
            epoch = wired.epoch[FLOW]
            times.append(wired.library.fake_now())
    times.pop()  # this one came with the new incarnation
    gaps = [(b - a) / MICROSECOND for a, b in zip(times, times[1:])]
    for gap, least in zip(gaps, [200, 400, 800] + [1600] * 50):
        assert abs(gap - least) < 20
    assert len(gaps) == 27 and wired.statuses == {0: STATUS.TIMEOUT}


def test_nothing_is_sent_again_while_the_link_is_down_and_all_at_once_when_it_is_up(wired):
    wired.cut = {1, 2}
    wired.ring(1, put(node=1, cookie=0), put(node=2, cookie=1))
    wired.step()
    wired.work()
    wired.link(0)
    wired.settle(3000 * MICROSECOND)
    assert not any(wired.epoch[BULK + n] != 1 for n in (1, 2))
    wired.cut = set()
    wired.link(1)
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0}


def test_naks_for_one_gap_start_one_replay(wired):
    wired.ring(1, put(length=whole(8), cookie=0))
    wired.step()
    job = wired.jobs.pop()
    wired["JOB_SPACE"] += 1
    wired.job_done(job.tag, 8)
    wired.left(FLOW, 7)
    for _ in range(5):
        wired.nak(FLOW, 2)
        wired.step()
    [again] = wired.jobs
    assert (again.psn, again.skip) == (3, whole(3))
    wired.job_done(again.tag, 8)
    wired.nak(FLOW, 2)
    wired.step()
    assert len(wired.jobs) == 1
    wired.nak(FLOW, 5)
    wired.step()
    assert (wired.jobs[-1].psn, wired.jobs[-1].skip) == (6, whole(6))


def test_jobs_are_queued_again_only_when_all_of_the_flow_have_ended(wired):
    wired.ring(1, put(length=whole(8), cookie=0), put(cookie=1))
    wired.step()
    one, two = wired.jobs
    wired.jobs = []
    wired.nak(FLOW, 1)
    wired.step()
    assert wired.jobs == [] and wired.rewinds[-1] == (FLOW, 2)
    wired.job_done(one.tag, 5, STATUS.REWOUND)
    wired.step()
    assert wired.jobs == []
    wired.ack(FLOW, 3)
    wired.job_done(two.tag, 8, STATUS.REWOUND)
    wired.step()
    assert [(j.psn, j.skip) for j in wired.jobs] == [(4, whole(4)), (8, 0)]


def test_what_was_acknowledged_after_the_rewind_is_not_queued_again(wired):
    wired.ring(1, put(length=whole(4), cookie=0), put(cookie=1))
    wired.step()
    one, two = wired.jobs
    wired.jobs = []
    wired.job_done(one.tag, 4)
    wired.nak(FLOW, 1)
    wired.step()
    wired.ack(FLOW, 4)
    wired.job_done(two.tag, 5)
    wired.step()
    assert wired.jobs == [] and [e.status for e in wired.entries()] == [0, 0]


def test_a_command_waits_while_its_flow_is_queued_again_and_other_flows_go_on(wired):
    wired.ring(1, put(length=whole(8), cookie=0))
    wired.step()
    wired.peers[FLOW].held, wired.peers[FLOW].expected = 1, 2
    wired.nak(FLOW, 1)
    wired.step()
    wired.ring(1, put(cookie=1))
    wired.ring(2, put(node=2, cookie=2))
    wired.step()
    assert (wired["HEAD", 1], wired["HEAD", 2]) == (1, 1)
    wired.settle()
    assert wired.statuses == {0: 0, 1: 0, 2: 0}


def test_a_transfer_with_checksum_is_sent_again_from_its_first_packet(wired):
    wired.lose = once((0, 3))
    wired.ring(1, put(length=whole(8), cookie=0, flags=FLAG.CHECKSUM))
    wired.step()
    wired.work()
    wired.step()
    wired.observe()
    assert [(j.psn, j.skip) for j in wired.jobs] == [(0, 0)]
    wired.settle()
    assert wired.statuses == {0: 0} and wired.keys == {0: 0x1008}
    assert executed(wired) == [(0, i) for i in range(8)]


def test_a_checksum_whose_pass_was_rewound_is_made_again_though_all_is_acknowledged(wired):
    wired.ring(1, put(length=whole(8), cookie=0, flags=FLAG.CHECKSUM))
    wired.step()
    job = wired.jobs.pop()
    wired.nak(FLOW, 2)
    wired.step()
    wired.ack(FLOW, 7)
    wired.job_done(job.tag, 8, STATUS.REWOUND)
    wired.step()
    assert wired.entries() == []
    wired.job_done(wired.jobs.pop().tag, 8, checksum=0x1234)
    wired.step()
    assert [(e.status, e.key) for e in wired.entries()] == [(0, 0x1234)]


def test_a_refused_put_is_sent_again_too_for_others_need_its_psns(wired):
    wired.refuses = {0: STATUS.REMOTE_BOUNDS}
    wired.lose = once((0, 5))
    wired.ring(1, put(length=whole(8), cookie=0), put(cookie=1))
    wired.settle()
    assert wired.statuses == {0: STATUS.REMOTE_BOUNDS, 1: 0} and executed(wired) == [(1, 0)]


@pytest.mark.parametrize("lost", [0, 1, 4])
@pytest.mark.parametrize("sent", [0, 2])
def test_what_a_failed_job_sent_need_not_arrive_but_all_that_is_behind_it(wired, lost, sent):
    """The loss is before, in, or just behind the one that fails."""
    wired.fails = {1: (STATUS.BAD_KEY, sent)}
    wired.lose = once((0, lost), (1, 1), (2, 2))
    wired.ring(1, *[put(length=whole(5), cookie=n) for n in range(4)])
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses == {0: 0, 1: STATUS.BAD_KEY, 2: 0, 3: 0}
    done = executed(wired)
    assert len(set(done)) == len(done)
    assert [p for p in done if p[0] != 1] == [(n, i) for n in (0, 2, 3) for i in range(5)]


def test_a_failed_job_at_the_end_whose_packets_are_lost_does_not_lend_its_psns_to_others(wired):
    wired.fails = {0: (STATUS.BOUNDS, 2)}
    wired.lose = once((0, 1))
    wired.ring(1, put(length=whole(5), cookie=0))
    wired.settle()
    wired.ring(1, put(cookie=1))
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses == {0: STATUS.BOUNDS, 1: 0} and executed(wired)[-1] == (1, 0)
    assert wired.incarnation[FLOW] == 2


def test_a_failed_job_at_the_end_that_sent_nothing_lends_its_psns_to_the_next_one_though_what_is_before_it_is_lost(  # noqa: E501
    wired,
):
    wired.fails = {1: (STATUS.BOUNDS, 0)}
    wired.lose = once((0, 4))
    wired.ring(1, *[put(length=whole(5), cookie=n) for n in range(2)])
    wired.settle(150 * MICROSECOND)
    wired.ring(1, put(length=whole(5), cookie=2))
    wired.settle(1000 * MICROSECOND)
    assert (
        wired.statuses == {0: STATUS.OK, 1: STATUS.BOUNDS, 2: STATUS.OK}
        and wired.incarnation[FLOW] == 1
    )
    assert executed(wired) == [(n, i) for n in (0, 2) for i in range(5)]


def test_a_failed_job_that_was_behind_a_gap_is_no_gap_to_what_is_sent_again(wired):
    """In the second incarnation the third has no PSN. The peer has all of the fourth, but its
    acknowledgement has not come when all is queued again.
    """
    wired.deaf, wired.fails = True, {0: (STATUS.BOUNDS, 0), 2: (STATUS.BOUNDS, 0)}
    wired.ring(1, *[put(length=whole(5), cookie=n) for n in range(4)])
    wired.settle(150 * MICROSECOND)
    assert wired.statuses == {0: STATUS.BOUNDS} and wired.incarnation[FLOW] == 2
    wired.deaf = False
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses == {0: STATUS.BOUNDS, 1: STATUS.OK, 2: STATUS.BOUNDS, 3: STATUS.OK}
    assert (
        executed(wired) == [(n, i) for n in (1, 3) for i in range(5)]
        and wired.incarnation[FLOW] == 2
    )


def test_a_job_that_fails_on_its_second_pass_does_not_lend_the_psns_of_its_first_to_others(wired):
    """All eight packets are on the link, the third is lost, and then the host answers no more."""
    wired.lose = once((0, 2))
    wired.ring(1, put(length=whole(8), cookie=0))
    wired.step()
    wired.engine()
    wired.breaks = lambda cookie, index: index == 3
    wired.settle()
    wired.breaks = lambda cookie, index: False
    wired.ring(1, put(length=whole(8), cookie=1))
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses == {0: STATUS.READ_ERROR, 1: STATUS.OK}
    assert executed(wired)[-8:] == [(1, i) for i in range(8)] and wired.incarnation[FLOW] == 2


def test_what_may_have_been_executed_behind_a_second_pass_that_failed_is_not_sent_again(wired):
    """The peer has all of both, but no acknowledgement came. Then the host does not answer for the
    first one.
    """
    wired.deaf = True
    wired.ring(1, put(length=whole(4), cookie=0), put(length=whole(4), cookie=1))
    wired.step()
    wired.work()
    wired.ring(2, put(cookie=2))
    wired.breaks = lambda cookie, index: (cookie, index) == (0, 2)
    wired.settle(150 * MICROSECOND)
    wired.deaf = False
    wired.settle(1000 * MICROSECOND)
    wired.ring(2, put(cookie=3))
    wired.settle()
    done = executed(wired)
    assert len(set(done)) == len(done) and wired.statuses[3] == STATUS.OK
    assert (wired.statuses[0], wired.statuses[1]) == (STATUS.READ_ERROR, STATUS.TIMEOUT)


def test_a_command_behind_a_failed_job_waits_until_it_is_known_what_arrived_of_that(wired):
    """Its PSNs follow those of the failed one, which could not be sent again."""
    wired.deaf, wired.fails = True, {0: (STATUS.BOUNDS, 2)}
    wired.ring(1, put(length=whole(4), cookie=0))
    wired.settle()
    wired.ring(1, put(length=whole(4), cookie=1))
    wired.settle(50 * MICROSECOND)
    assert wired["HEAD", 1] == 1
    wired.deaf = False
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses == {0: STATUS.BOUNDS, 1: STATUS.OK}
    assert executed(wired) == [(0, i) for i in range(2)] + [(1, i) for i in range(4)]


def test_a_job_that_was_rewound_before_its_end_and_then_fails_takes_nobody_with_it(wired):
    """No pass of it was whole, so nothing behind it can have been executed."""
    wired.lose = once((0, 1))
    wired.ring(1, put(length=whole(8), cookie=0), put(length=whole(4), cookie=1))
    wired.step()
    wired.engine(limit=4)
    while wired.buffer:
        wired.transmit()
        wired.deliver()
    wired.step()
    wired.observe()
    wired.breaks = lambda cookie, index: (cookie, index) == (0, 6)
    wired.settle()
    assert wired.statuses == {0: STATUS.READ_ERROR, 1: STATUS.OK}
    assert executed(wired) == [(0, i) for i in range(6)] + [(1, i) for i in range(4)]


def test_the_gap_of_a_job_that_fails_during_a_rewind_is_not_forgotten(wired):
    """Packets behind the gap were on the link, and brought a NAK, before the end of the failed job
    came.
    """
    wired.ring(1, put(cookie=0), put(cookie=1), put(cookie=2))
    wired.step()
    one, two, three = wired.jobs
    wired.jobs = []
    wired.job_done(one.tag, 1)
    wired.nak(FLOW, 0)
    wired.step()
    wired.job_done(two.tag, 1, STATUS.BAD_KEY)
    wired.step()
    wired.job_done(three.tag, 3, STATUS.REWOUND)
    wired.step()
    [again] = wired.jobs
    assert (again.tag, again.psn, again.incarnation) == (three.tag, 0, 2)
    assert [e.status for e in wired.entries()] == [0, STATUS.BAD_KEY]


def test_a_replay_goes_over_the_end_of_the_psns(wired):
    """65,530 packets, then a gap in one that goes over 65,535, and in one after it."""
    wired.ring(1, put(length=whole(32765), cookie=0), put(length=whole(32765), cookie=1))
    for cookie, end in ((0, 32765), (1, 65530)):
        wired.step()
        job = wired.jobs.pop(0)
        wired["JOB_SPACE"] += 1
        wired.job_done(job.tag, end)
        wired.ack(FLOW, end - 1)
        wired.peers[FLOW].held, wired.peers[FLOW].expected = 1, end
        wired.step()
        wired.observe()
    assert wired.statuses == {0: 0, 1: 0}
    wired.lose = once((2, 3), (2, 8), (3, 1))
    wired.ring(1, *[put(length=whole(10), cookie=n) for n in (2, 3)])
    wired.settle(1000 * MICROSECOND)
    assert wired.statuses == {n: 0 for n in range(4)}
    assert executed(wired) == [(n, i) for n in (2, 3) for i in range(10)]


# Everything at once -------------------------------------------------------------------------------


def run_at_random(rng, card, commands, act):
    """`commands` are rung as slots get free; engines, link and program take steps in random
    order.
    """
    rung, owner = 0, {}
    while rung < len(commands) or len(card.statuses) < len(commands):
        action = rng.randrange(8)
        if action == 0 and rung < len(commands):
            endpoint = rng.choice((1, 2))
            slot = endpoint, card["PRODUCER", endpoint] % C.SLOTS
            if owner.get(slot, -1) in (-1, *card.statuses):
                owner[slot] = rung
                card.ring(endpoint, commands[rung])
                rung += 1
        elif action == 1 and (card.jobs or card.running) and len(card.buffer) < 16:
            card.engine(rng.choice((0, 1, 3, 40)))
        elif action == 2 and card.express:
            card.express_engine()
        elif action == 3:
            for _ in range(min(len(card.buffer), rng.randrange(1, 9))):
                card.transmit()
        elif action == 4:
            for _ in range(min(len(card.wire), rng.randrange(1, 9))):
                card.deliver()
        elif action == 5:
            act()
        elif action == 6:
            card.library.fake_advance(rng.randrange(1000))
        else:
            card.step(rng.randrange(1, 4))
            card.observe()


@pytest.mark.parametrize("more", range(4))
@pytest.mark.parametrize("loss", [0, 0.02, 0.1])
@pytest.mark.parametrize("case,fast", [(0, 0), (1, 3), (2, 3), (3, 2)])
def test_whatever_fails_or_is_lost_each_good_put_is_executed_once_and_each_command_ends_once(
    case, fast, loss, more, seed
):
    """Puts and inline puts to two nodes; jobs fail, are refused, have checksums; packets and
    answers are lost.

    The first command is a put for the fast path; of the others none need find a flow that is armed.
    """
    rng = random.Random(f"{seed + more} {case} {loss}")
    card = WiredCard()
    card.allow(fast)
    card.lose = lambda packet: rng.random() < loss
    commands, flows, packets, breaking = [], [], [], set()
    card.breaks = lambda cookie, index: cookie in breaking and rng.random() < 0.1
    for number in range(50 if loss > 0.05 else 100):
        node = rng.choice((1, 1, 2))
        length = rng.choice((0, 8, 4097, 30000, 100 * 4096))
        kind = rng.randrange(7)
        if number == 0:
            length, kind = 8, 6
        if kind == 0:
            commands.append(inline(bytes(rng.randrange(65)), node=node, cookie=number))
            flows.append(node)
            packets.append(1)
            continue
        flows.append(BULK + node)
        packets.append(packets_of(length))
        if kind == 1:
            card.fails[number] = (STATUS.BOUNDS, rng.randrange(packets[number]))
        if kind == 2:
            card.refuses[number] = STATUS.REMOTE_BOUNDS
        if kind == 4:
            breaking.add(number)
        commands.append(
            put(length=length, node=node, cookie=number, flags=FLAG.CHECKSUM if kind == 3 else 0)
        )

    def act():
        card.deaf = rng.random() < 3 * loss

    run_at_random(rng, card, commands, act)
    # A flow may be rewound without a loss, behind much of others; a job that was whole and then
    # fails takes with it what is behind it.
    given_up = loss or any(card.statuses[n] == STATUS.READ_ERROR for n in breaking)
    assert not card.shared("timeouts") or given_up
    for n in range(len(commands)):
        done = [i for c, i in executed(card, flows[n]) if c == n]
        status = card.fails[n][0] if n in card.fails else card.refuses.get(n, 0)
        # A refusal is told once: lost with its acknowledgement, it is not known.
        assert (
            card.statuses[n] == status
            or loss
            and n in card.refuses
            and card.statuses[n] == STATUS.OK
            or n in breaking
            and card.statuses[n] == STATUS.READ_ERROR
            or given_up
            and flows[n] >= BULK
            and card.statuses[n] == STATUS.TIMEOUT
        )  # behind one of those
        assert done == list(range(len(done)))
        if card.statuses[n] == STATUS.OK and n not in card.refuses:
            assert done == list(range(packets[n]))
    assert bool(card.word("fast_commands")) == bool(fast)


@pytest.mark.parametrize("fast", [0, 3])
def test_with_cables_pulled_for_long_no_packet_is_executed_twice_and_ok_means_all_of_it(fast, seed):
    rng = random.Random(seed)
    card = WiredCard()
    card.allow(fast)
    commands = [put(length=20000, cookie=n) if n % 3 else inline(cookie=n) for n in range(150)]

    def act():
        if rng.random() < 0.02:
            up = rng.random() < 0.7
            card.cut = set() if up else {1}
            card.link(up)
            if not up:
                card.buffer.clear()
                card.settle(rng.choice((1000, 41000)) * MICROSECOND)

    run_at_random(rng, card, commands, act)
    for n in range(150):
        done = [i for c, i in executed(card, FLOW if n % 3 else 1) if c == n]
        assert len(set(done)) == len(done)
        if card.statuses[n] == STATUS.OK:
            assert done == list(range(packets_of(20000) if n % 3 else 1))
    assert STATUS.OK in card.statuses.values() and set(card.statuses.values()) <= {
        STATUS.TIMEOUT,
        STATUS.OK,
    }


# Time counts from what has left -------------------------------------------------------------------


def slowly(card, cycles, every=20 * MICROSECOND):
    """Let so much time pass, in which the send engine gathers payload but no packet leaves."""
    for _ in range(cycles // every):
        card["SEND_MOVED"] = 1
        card.wait(every, step=every // 2)
    card.observe()


@pytest.mark.fault
@pytest.mark.parametrize("fast", [0, 3])
def test_an_engine_that_gathers_slowly_is_no_lost_packet(wired, fast):
    """Each packet takes four times as long as the first replay waits, and the last one 60 ms."""
    wired.allow(fast)
    wired.ring(1, put(length=whole(5), cookie=0))
    wired.step()
    for index in range(5):
        slowly(wired, 400 * MICROSECOND if index < 4 else 60_000 * MICROSECOND)
        assert wired.statuses == {}
        wired.engine(limit=1)
        wired.work_link()
    while wired.jobs or wired.running:
        wired.engine()
    wired.settle()
    assert (
        wired.statuses == {0: 0} and wired.epoch[FLOW] == 1 and wired.shared("claims") == (not fast)
    )
    assert wired.word("fast_completions") == bool(fast)


@pytest.mark.fault
@pytest.mark.parametrize("fast", [0, 3])
@pytest.mark.parametrize("kind,flow", [(put, FLOW), (inline, 1)], ids=["bulk", "express"])
def test_a_loss_is_found_100_us_after_the_packet_has_left_however_long_it_waited_before(
    wired, fast, kind, flow
):
    wired.allow(fast)
    wired.lose = once((0, 0))
    wired.ring(1, kind(cookie=0))
    wired.step()
    slowly(wired, 1000 * MICROSECOND)
    assert wired.epoch[flow] == 1
    wired.work()
    wired.settle(80 * MICROSECOND)
    assert wired.epoch[flow] == 1 and wired.statuses == {}
    wired.settle(100 * MICROSECOND)
    assert wired.epoch[flow] == 2 and wired.statuses == {0: 0}


@pytest.mark.fault
@pytest.mark.parametrize("fast", [0, 3])
def test_an_engine_that_stands_still_for_40_ms_is_a_timeout(wired, fast):
    """Nothing has left. A host that answers no reads is found sooner, by READ_TIMEOUT; STOP from
    the link is not.
    """
    wired.allow(fast)
    wired.ring(1, put(cookie=0))
    wired.step()
    slowly(wired, 50_000 * MICROSECOND)
    wired.wait(TIMEOUT - 300 * MICROSECOND)
    wired.observe()
    assert wired.statuses == {} and wired.incarnation[FLOW] == 1 and wired.epoch[FLOW] == 1
    wired.wait(600 * MICROSECOND)
    wired.observe()
    assert wired.incarnation[FLOW] == 2
    wired.settle()
    assert wired.statuses == {0: STATUS.TIMEOUT}


@pytest.mark.fault
def test_payload_that_is_read_for_others_does_not_help_a_flow_whose_packets_are_not_acknowledged(
    wired,
):
    """Node 1 is gone; the engine works without a pause."""
    wired.cut = {1}
    wired.ring(1, put(cookie=0))
    begin = wired.library.fake_now()

    def work_until(microseconds):
        while wired.library.fake_now() < begin + microseconds * MICROSECOND:
            wired["SEND_MOVED"] = 1
            wired.settle(20 * MICROSECOND)

    work_until(39_500)
    assert wired.statuses == {}
    work_until(41_000)
    assert wired.statuses == {0: STATUS.TIMEOUT}


@pytest.mark.fault
@pytest.mark.parametrize("fast", [0, 3])
def test_while_the_target_says_that_it_is_storing_nothing_is_sent_again(wired, fast):
    """For 60 ms, every 40 us. When it says no more, the loss is found after 100 us."""
    wired.allow(fast)
    wired.lose = once((0, 0))
    wired.ring(1, put(cookie=0))
    wired.step()
    wired.work()
    for _ in range(60_000 // 40):
        wired.mark("PEER_WORKS", FLOW)
        wired.settle(40 * MICROSECOND)
    assert wired.epoch[FLOW] == 1 and wired.statuses == {} and wired.shared("claims") == (not fast)
    wired.settle(80 * MICROSECOND)
    assert wired.epoch[FLOW] == 1
    wired.settle(100 * MICROSECOND)
    assert wired.epoch[FLOW] == 2 and wired.statuses == {0: 0}


@pytest.mark.fault
@pytest.mark.parametrize("replays", [32, 33])
def test_a_packet_that_its_target_never_hears_whole_is_given_up_after_32_replays(wired, replays):
    """The target says that it works while a packet comes in, and something on the way cuts it."""
    wired.cut = {1}
    wired.ring(1, put(cookie=0))
    for sending in range(1, replays + 1):
        for _ in range(5):
            wired.mark("PEER_WORKS", FLOW)
            wired.settle(40 * MICROSECOND)
        while wired.epoch[FLOW] == sending % 16 and not wired.statuses:
            wired.settle(10 * MICROSECOND)
    assert wired.statuses == ({0: STATUS.TIMEOUT} if replays == 33 else {})


@pytest.mark.fault
def test_a_packet_that_leaves_after_its_flow_was_rewound_starts_no_time(wired):
    """Its job waits behind that of another node for 50 ms, and then for its own payload."""
    wired.ring(1, put(length=whole(3), cookie=0))
    wired.step()
    wired.nak(FLOW, 0)
    wired.step()
    wired.job_done(wired.jobs.pop(0).tag, 1, STATUS.REWOUND)
    wired.observe()
    slowly(wired, 50_000 * MICROSECOND)
    assert wired.epoch[FLOW] == 2 and wired.statuses == {}
    wired.peers[FLOW].held, wired.peers[FLOW].expected = 1, 1
    wired.settle()
    assert wired.statuses == {0: 0} and wired.epoch[FLOW] == 2
