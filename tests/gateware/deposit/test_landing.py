"""Which transfers give their notice: those of which no packet was refused, however often the PSNs
come round.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import passive

from dibber.deposit.landing import Landing
from dibber.interface.description import LANE

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import finish, sink, source

SPACE = 1 << 16  # of PSNs


def packet(psn, node=1, incarnation=0, refused=0, final=0, alone=0):
    """Without a write of its own. A final one has a notice, whose value is the number of all that
    node sent.
    """
    return dict(
        node=node,
        incarnation=incarnation,
        psn=psn % SPACE,
        final=final,
        alone=alone,
        notice=final,
        value=psn,
        refused=refused,
        marked=0,
    )


def notices(packets, busy=1.0, seed=1):
    """(node, value) of the arrivals; every packet has to be reported, in order."""
    dut = Landing(LANE.BULK)
    random = Random(seed)
    done, arrivals = [], []

    def main():
        yield from finish(lambda: len(done) == len(packets), 200 + 20 * len(packets))
        for _ in range(200):
            yield

    run_simulation(
        dut,
        [
            main(),
            source(dut.sink, packets, random, busy),
            sink(dut.done, ("node", "psn", "refused"), done, random, busy),
            sink(dut.arrivals, ("node", "value"), arrivals, random, busy),
        ],
    )
    assert done == [(p["node"], p["psn"], p["refused"]) for p in packets]
    return arrivals


@pytest.mark.parametrize(
    "psns",
    [
        (4, 5, 6),
        (SPACE - 2, SPACE - 1, SPACE),
        (SPACE - 1, SPACE, SPACE + 1),
        (2 * SPACE - 1, 2 * SPACE, 2 * SPACE + 1),
    ],
)
def test_a_transfer_that_was_refused_in_part_gives_no_notice_where_the_psns_come_round_either(psns):
    first, middle, last = psns
    assert notices(
        [
            packet(first, refused=1),
            packet(middle),
            packet(last, final=1),
            packet(last + 1),
            packet(last + 2, final=1),
        ]
    ) == [(1, last + 2)]
    assert notices([packet(first), packet(middle), packet(last, final=1)]) == [(1, last)]


def test_a_new_incarnation_owes_nothing_to_the_transfer_that_the_old_one_did_not_end():
    assert notices(
        [
            packet(7, incarnation=255, refused=1),
            packet(0, incarnation=0),
            packet(1, incarnation=0, final=1),
            packet(2, incarnation=0, refused=1),
            packet(0, incarnation=1, refused=1),
            packet(1, incarnation=1, final=1),
        ]
    ) == [(1, 1)]


@pytest.mark.parametrize("busy", [1.0, 0.5])
def test_any_transfers_of_any_nodes(busy, seed):
    """Beside a plain reading: a notice comes exactly if no packet of its transfer was refused."""
    random, packets, expected = Random(seed), [], []
    psn, incarnation = {node: SPACE - 20 for node in range(4)}, {node: 250 for node in range(4)}
    under_way = {}  # node: whether one was refused
    for _ in range(400):
        node = random.randrange(4)
        if random.random() < 0.05:
            psn[node], incarnation[node] = 0, (incarnation[node] + 1) % 256
            under_way.pop(node, None)
        refused = random.random() < 0.2
        final = random.random() < 0.4
        alone = final and node not in under_way
        packets.append(
            packet(psn[node], node, incarnation[node], int(refused), int(final), int(alone))
        )
        spoilt = under_way.pop(node, False) or refused
        if not final:
            under_way[node] = spoilt
        elif not spoilt:
            expected.append((node, psn[node]))
        psn[node] += 1
    assert notices(packets, busy, seed) == expected and len(expected) > 30


def test_what_is_told_of_is_open_until_its_write_has_been_taken(seed):
    """From the cycle behind `done` on, and not a cycle longer than the mark takes to be seen."""
    random = Random(seed)
    dut = Landing(LANE.BULK)
    packets = [dict(packet(psn), marked=int(random.random() < 0.7)) for psn in range(200)]
    # packets: with a write that is under way, that have landed, that were told of
    state = dict(given=0, landed=0, told=0)
    opens = []

    def host():
        """Writes are taken in their order, at any time after their packet was reported."""
        while state["told"] < len(packets):
            marks = sum(p["marked"] for p in packets[: state["given"]])
            mark = int(state["landed"] < marks and random.random() < 0.4)
            yield dut.marked.eq(mark)
            yield
            # Open: the last one told of has a write, and the host has not taken so many.
            told = packets[: state["told"]]
            wants = sum(p["marked"] for p in told)
            opens.append((yield dut.open))
            assert opens[-1] == int(
                bool(told) and bool(told[-1]["marked"]) and state["landed"] < wants
            )
            state["landed"] += mark
            state["given"] += (yield dut.sink.valid) and (yield dut.sink.ready)
            state["told"] += (yield dut.done.valid) and (yield dut.done.ready)

    done, arrivals = [], []
    run_simulation(
        dut,
        [
            host(),
            source(dut.sink, packets, random, 0.7),
            sink(dut.done, ("psn",), done, random, 0.7),
            sink(dut.arrivals, ("value",), arrivals, random, 1.0),
        ],
    )
    assert len(done) == len(packets) and 20 < sum(opens) < len(opens) - 20


@pytest.mark.parametrize("busy", [1.0, 0.05])
def test_a_notice_is_of_its_own_packet_however_many_wait(busy, seed):
    """With every field, and of every kind of packet, while arrivals are taken at once or hardly
    ever.
    """
    random = Random(seed)
    fields = (
        "node",
        "endpoint",
        "interrupt",
        "value",
        "length",
        "key",
        "is_message",
        "response",
        "slot",
    )
    bits = dict(
        incarnation=8,
        psn=16,
        endpoint=8,
        interrupt=1,
        value=32,
        total=32,
        key=32,
        is_message=1,
        response=1,
        slot=8,
        reason=8,
    )
    packets, expected, spoilt = [], [], False
    for _ in range(200):
        p = {name: random.getrandbits(n) for name, n in bits.items()} | dict(
            node=3,
            incarnation=1,
            marked=int(random.random() < 0.5),
            refused=int(random.random() < 0.2),
            final=int(random.random() < 0.6),
        )
        p |= dict(
            notice=int(p["final"] and random.random() < 0.9),
            alone=int(p["final"] and random.random() < 0.3),
        )
        packets.append(p)
        if p["notice"] and not p["refused"] and (p["alone"] or not spoilt):
            expected.append(tuple(p["total" if name == "length" else name] for name in fields))
        spoilt = not p["final"] and (bool(p["refused"]) or spoilt)
    dut = Landing(LANE.BULK)
    done, arrivals, filled = [], [], []

    @passive
    def host():
        """Hands writes over when it likes, each after its packet came."""
        marks = 0
        while True:
            taken = (yield dut.sink.valid) and (yield dut.sink.ready) and (yield dut.sink.marked)
            mark = int(marks > 0 and random.random() < 0.5)
            yield dut.marked.eq(mark)
            marks += int(bool(taken)) - mark
            filled.append((yield dut.notices.level))
            yield

    def main():
        yield from finish(lambda: len(arrivals) == len(expected), 200 * len(packets))
        yield from (None for _ in range(100))

    run_simulation(
        dut,
        [
            main(),
            host(),
            source(dut.sink, packets, random, 1.0),
            sink(dut.done, ("psn", "refused"), done, random, 1.0),
            sink(dut.arrivals, fields, arrivals, random, busy),
        ],
    )
    assert arrivals == expected and [psn for psn, _ in done] == [p["psn"] for p in packets]
    assert len(expected) > 40 and (busy == 1.0 or 16 < max(filled) <= 33)
