"""Two cards, one cable: gets that the other card's hardware answers, and what may happen beside
that.
"""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
import pytest
from dibber.interface.description import HANDLER, HOST, MCP_STATE, RIGHT, SHARED, STATUS
from dibber_cli import paths

from tests.system.pair import SECOND, Pair

SIZE = 1 << 20
PLAIN = HOST["FAST_PATH"].reset
GET = 1 << next(f.lsb for f in HOST["FAST_PATH"].fields if f.name == "get")
ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
OLD, NEW = 0x5A, 0xEE  # what there is to be read


@pytest.fixture
def pair():
    with Pair(preload=True) as pair:
        pair.keys = pair.together((prepare,), (prepare,))
        yield pair


def prepare(side):
    key = side.register("memory", SIZE, rights=ALL)
    side.fill("memory", value=OLD if side.card.info()["node"] else 0)
    return key


def answers(side):
    """(gets that hardware took, times that the control program had arrivals)."""
    place = SHARED["handler"].offset + HANDLER.size * MCP_STATE.ARRIVAL
    return side.card.info()["counters"]["fast_answers"], int.from_bytes(
        side.shared(place, 4), "little"
    )


def gets(side, key, count, length, many=8, rest=0):
    """Gets from the other card, `many` under way, `rest` ns between them, each to its own place;
    (status, whether all of the place is
    OLD, whether any of it is NEW) of each."""
    memory, asked, ended = side.regions["memory"].memory, 0, {}
    memory[:] = 0
    while len(ended) < count:
        if rest and asked == len(ended):
            assert not side.endpoint.wait(rest)
        while asked < count and asked - len(ended) < many:
            side.endpoint.get(
                key, 0, side.regions["memory"].key, asked * length, length, node=1, tag=asked
            )
            asked += 1
        for entry in side.endpoint.poll():
            assert entry.tag not in ended
            ended[entry.tag] = STATUS.name_of(entry.status)
        if len(ended) < asked:
            assert side.endpoint.wait(SECOND), f"{len(ended)} of {asked} gets ended"
    places = [memory[n * length : (n + 1) * length] for n in range(count)]
    return [
        (ended[n], bool(np.all(place == OLD)), bool(np.any(place == NEW)))
        for n, place in enumerate(places)
    ]


def allow(side, opcodes):
    side.card.write_register("FAST_PATH", opcodes)


def test_a_get_is_answered_without_the_other_control_program_unless_its_host_forbids_it(pair):
    def taken(opcodes, count, length, many, rest=0):
        pair.second(allow, opcodes)
        before = pair.second(answers)
        assert (
            pair.first(gets, pair.keys[1], count, length, many, rest)
            == [("OK", True, False)] * count
        )
        return [now - was for now, was in zip(pair.second(answers), before)]

    assert taken(PLAIN, 100, 5000, 8) == [100, 0]
    assert taken(PLAIN & ~GET, 30, 5000, 8)[0] == 0
    # After useless arming, the flow is armed later, when it has been at rest more often. The
    # program executes a get that comes before that.
    assert taken(PLAIN, 100, 8, 1, rest=30_000)[0] >= 100 - 64
    assert taken(PLAIN, 100, 8, 8) == [100, 0]


def _withdraw(side, after):
    """Take the region away when some gets were answered; then its memory is another's."""
    assert not side.endpoint.wait(after)
    region = side.regions.pop("memory")
    memory = region.memory
    region.close()
    memory[:] = NEW
    side.kept = memory


@pytest.mark.parametrize("after", [150_000, 251_000, 352_000])
def test_what_a_region_held_after_its_removal_is_in_no_answer(pair, after):
    done, _ = pair.together((gets, pair.keys[1], 16, 60_000), (_withdraw, after))
    statuses = [status for status, _, _ in done]
    assert set(statuses) == {"OK", "REMOTE_BAD_KEY"}, statuses
    assert all(whole for status, whole, _ in done if status == "OK") and not any(
        new for _, _, new in done
    )
    assert pair.second(answers)[0] > 0


def _open_and_close(side):
    """Endpoints come and go beside answers."""
    for _ in range(5):
        assert not side.endpoint.wait(20_000)
        side.card.endpoint(3).close()


def test_endpoints_are_closed_beside_answers(pair):
    done, _ = pair.together((gets, pair.keys[1], 16, 60_000), (_open_and_close,))
    assert done == [("OK", True, False)] * 16


def _halt(side, after):
    """The control program is stopped; then another one comes, and with it another region."""
    side.endpoint.wait(after)
    side.card.write_register("MCP_CONTROL", 0)
    taken, _ = answers(side)
    region = side.regions.pop("memory")
    region.memory[:] = NEW
    region.close()
    side.endpoint.close()
    side.card.load_firmware(paths.FIRMWARE)
    side.endpoint = side.card.endpoint(1)
    return prepare(side), taken


def _ask_and_halt(side, key, after):
    """Two gets, which end with the program here: the TIMEOUT of what the other one has forgotten is
    long to be simulated.
    """
    for n in range(2):
        side.endpoint.get(key, 0, side.regions["memory"].key, n * 60_000, 60_000, node=1, tag=n)
    return _halt(side, after)


@pytest.mark.parametrize("after", [15_000, 25_000, 40_000])
def test_a_halt_ends_answers_and_gets_to_the_next_program_work(pair, after):
    _, (key, taken) = pair.together((_ask_and_halt, pair.keys[1], after + 20_000), (_halt, after))
    assert taken
    before = pair.second(answers)[0]
    assert pair.first(gets, key, 60, 5000) == [("OK", True, False)] * 60
    assert pair.second(answers)[0] - before == 60
