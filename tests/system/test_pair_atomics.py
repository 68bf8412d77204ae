"""Two cards, one cable: atomics that the other card's hardware executes and replies to, and what
may happen beside that.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import HANDLER, HOST, MCP_STATE, RIGHT, SHARED, STATUS
from dibber_cli import paths

from tests.system.pair import SECOND, Pair

PLAIN = HOST["FAST_PATH"].reset
ATOMIC = 1 << next(f.lsb for f in HOST["FAST_PATH"].fields if f.name == "atomic")
BOTH = RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


def prepare(side):
    key = side.register("memory", 4096, rights=BOTH)
    side.fill("memory")
    return key


def total(side):
    return int.from_bytes(side.read("memory")[64:72], "little")


def adds(side, key, count, many=4):
    """Add 1 repeatedly to the other card's counter, with `many` under way: the old values, and the
    operations that did not end with OK.
    """
    node, asked, values, wrong = 1 - side.card.info()["node"], 0, [], []
    while len(values) + len(wrong) < count:
        while asked < count and asked - len(values) - len(wrong) < many:
            side.endpoint.fetch_add(key, 64, 1, node=node, tag=asked)
            asked += 1
        for entry in side.endpoint.poll():
            (values if entry.status == STATUS.OK else wrong).append(
                entry.value if entry.status == STATUS.OK else STATUS.name_of(entry.status)
            )
        if len(values) + len(wrong) < asked:
            assert side.endpoint.wait(SECOND), f"{len(values)} of {asked} atomics ended"
    return values, wrong


def seen(side):
    """(atomics executed, those that hardware replied to, times that the control program had
    arrivals).
    """
    place = SHARED["handler"].offset + HANDLER.size * MCP_STATE.ARRIVAL
    counters = side.card.info()["counters"]
    return (
        counters["atomics"],
        counters["fast_replies"],
        int.from_bytes(side.shared(place, 4), "little"),
    )


def allow(side, opcodes):
    side.card.write_register("FAST_PATH", opcodes)


def add_on_both(pair, count, many=4):
    """At once; each finds what the one before has left. What `seen` says of each side more than
    before.
    """
    before = pair.together((seen,), (seen,))
    start = pair.together((total,), (total,))
    done = pair.together((adds, pair.keys[1], count, many), (adds, pair.keys[0], count, many))
    for (values, wrong), old, new in zip(
        done, reversed(start), reversed(pair.together((total,), (total,)))
    ):
        assert not wrong and sorted(values) == list(range(old, old + count)) and new == old + count
    return [
        [now - was for now, was in zip(*both)]
        for both in zip(pair.together((seen,), (seen,)), before)
    ]


def test_both_cards_add_at_once_and_the_counters_tell_which_part_replied():
    with Pair(preload=True) as pair:
        pair.keys = pair.together((prepare,), (prepare,))
        assert add_on_both(pair, 150) == [[150, 150, 0]] * 2
        pair.second(allow, PLAIN & ~ATOMIC)
        first, second = add_on_both(pair, 40)
        assert first[0] == second[0] == 40 and second[1] == 0 and second[2] > 0
        pair.together((allow, 0), (allow, 0))
        assert [(executed, replied) for executed, replied, _ in add_on_both(pair, 40)] == [
            (40, 0)
        ] * 2
        # What was claimed is armed again, sooner or later, in a pause.
        pair.together((allow, PLAIN), (allow, PLAIN))
        pair.first(adds, pair.keys[1], 100, 1)
        before = pair.second(seen)
        pair.first(adds, pair.keys[1], 60, 1)
        assert [now - was for now, was in zip(pair.second(seen), before)] == [60, 60, 0]


def test_hardware_tells_what_may_not_be_too():
    with Pair(preload=True) as pair:
        pair.keys = pair.together((prepare,), (prepare,))
        before = pair.second(seen)
        assert pair.first(adds, 0x5500, 20) == ([], ["REMOTE_BAD_KEY"] * 20)
        assert [now - was for now, was in zip(pair.second(seen), before)] == [0, 20, 0]


# Microseconds; the adding begins shortly before.
FAULTS = [
    "unplugged:2000:2020",
    "unplugged:2150:2150.05:0",
    "noise:2300:2301:1",
    "noise:2450:2450.5",
    "unplugged:2600:2600.1:1",
    "noise:2750:2750.3:0",
    "unplugged:2900:2940:1",
    "noise:3050:3052",
]


def _sleep(side, microseconds):
    assert not side.endpoint.wait(microseconds * 1000 - side.endpoint.clock().now_ps // 1000)


@pytest.mark.parametrize(
    "options",
    [["--ber", "1e-5"], [word for fault in FAULTS for word in ("--fault", fault)]],
    ids=["bit errors", "faults"],
)
def test_faults_of_the_cable_execute_nothing_twice_and_forget_nothing(options):
    with Pair(options=options, preload=True) as pair:
        pair.keys = pair.together((prepare,), (prepare,))
        pair.together((_sleep, 1950), (_sleep, 1950))
        counts = [add_on_both(pair, 150, many) for many in (4, 1, 4)]
        assert all(executed == 150 for round in counts for executed, *_ in round)
        assert any(arrivals for round in counts for *_, arrivals in round), "nothing went wrong"
        assert all(sum(round[n][1] for round in counts) > 20 for n in range(2)), counts


def _ask_and_halt(side, key, after):
    """The control program is stopped under atomics; then another one comes, and with it another
    region.
    """
    for n in range(2):
        side.endpoint.fetch_add(key, 64, 1, node=1 - side.card.info()["node"], tag=n)
    side.endpoint.wait(after)
    side.card.write_register("MCP_CONTROL", 0)
    side.regions.pop("memory").close()
    side.endpoint.close()
    side.card.load_firmware(paths.FIRMWARE)
    side.endpoint = side.card.endpoint(1)
    return prepare(side)


@pytest.mark.parametrize("after", [600, 1200, 2100])
def test_a_halt_forgets_atomics_and_the_next_program_s_are_exact(after):
    with Pair(preload=True) as pair:
        keys = pair.together((prepare,), (prepare,))
        pair.keys = pair.together(
            (_ask_and_halt, keys[1], after), (_ask_and_halt, keys[0], after + 150)
        )
        add_on_both(pair, 40)
        assert add_on_both(pair, 60) == [[60, 60, 0]] * 2
