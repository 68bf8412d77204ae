"""Two cards that ask each other without pause: what one fault has claimed is hardware's again while
they ask.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import RIGHT, SHARED, STATUS
from dibber_cli.link import measure

from tests.system.pair import SECOND, Pair

MANY = 8  # of an endpoint under way: two are asked, the others wait in their slots
FAULT = 300_000  # ns after the start, at the first card
# ns from there: 32 ticks until the first pause, which lasts at most as long. A tick takes 50 us,
# and 120 us while the program has eight answers for each turn of its loop.
WITHIN = 7_700_000
AFTER = 500_000  # ns in which the program does nothing any more
ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
COUNTS = ("FAST_COMMANDS", "FAST_ANSWERS", "FAST_REPLIES", "DOORBELLS")


def prepare(side):
    return side.register("memory", 1 << 16, rights=ALL)


def now(side):
    return side.endpoint.clock().now_ps // 1000


def ask(side, key, length, faulty):
    """Fetch-adds, or gets of `length` bytes, without pause; what COUNTS were at the fault, when its
    time is over, and at the end:
    a number of each. And what did not end well."""
    node, own = 1 - side.node, side.regions["memory"].key
    asked, ended = 0, 0
    marks, wrong = [FAULT, FAULT + WITHIN, FAULT + WITHIN + AFTER], []
    begin, counts = now(side), []
    while marks:
        while asked - ended < MANY:
            if length:
                side.endpoint.get(key, 0, own, 0, length, node=node, tag=asked)
            else:
                side.endpoint.fetch_add(key, 64, 1, node=node, tag=asked)
            asked += 1
        for entry in side.endpoint.poll():
            ended += 1
            if entry.status != STATUS.OK:
                wrong.append(STATUS.name_of(entry.status))
        if asked - ended == MANY:
            assert side.endpoint.wait(SECOND)
        if now(side) - begin >= marks[0]:
            if marks.pop(0) == FAULT and faulty:
                side.card.write_register("LINK_COMMAND", measure.field("LINK_COMMAND", retrain=1))
            counts.append({name: side.card.read_register(f"COUNT_{name}") for name in COUNTS})
            counts[-1]["claims"] = int.from_bytes(side.shared(SHARED["claims"].offset, 4), "little")
    while ended < asked:
        ended += len(side.endpoint.poll())
        assert ended == asked or side.endpoint.wait(SECOND)
    return counts, wrong, asked


@pytest.mark.parametrize("length", [0, 8, 5000], ids=["atomics", "short-gets", "long-gets"])
def test_what_a_fault_has_claimed_is_the_hardwares_again_while_both_cards_ask(length):
    with Pair() as pair:
        keys = pair.together((prepare,), (prepare,))
        done = pair.together((ask, keys[1], length, True), (ask, keys[0], length, False))
        for counts, wrong, _ in done:
            (fault, back, end), took = counts, lambda now, then, name: now[name] - then[name]
            assert not wrong and fault["claims"] == 0 < end["claims"], (counts, wrong)
            assert back["claims"] == end["claims"], "it is lost again without a fault"
            # Counters are read one after the other.
            assert (
                took(end, back, "FAST_COMMANDS") > 30
                and abs(took(end, back, "FAST_COMMANDS") - took(end, back, "DOORBELLS")) <= 2
            ), counts
            answers = "FAST_ANSWERS" if length else "FAST_REPLIES"
            assert abs(took(end, back, answers) - took(end, back, "DOORBELLS")) <= MANY, counts
