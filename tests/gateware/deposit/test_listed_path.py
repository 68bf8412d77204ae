"""Puts with index lists from one host's memory to the other's: which bytes, and every way in which
a list can be wrong.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from dibber.interface.description import RIGHT, STATUS

from tests.gateware.models.command import command
from tests.gateware.models.deposit_path import LENGTH, REGIONS, Path, expected_memory
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.walk import Walk

TIMEOUT = 6250  # no tag is handed out before
LISTS = 2**39 + 0x20
SIZE = 40000  # bytes of the list's region
GOOD, UNREADABLE, FOREIGN = 4, 5, 6  # keys of it
BROKEN = SIZE - 256  # a line there is answered with an error
END = SIZE - 24  # three entries before its end


def entry(place):
    """Of the list in every region of lists, at an offset."""
    if place >= SIZE - 512:
        return 64 * (place // 8 % 16)
    return (place // 8 * 7919 % 4001 - 2000) * 32 + place // 8 % 5


class ListedPath(Path):
    """A Path with list regions beside those of its data, and a host that reads lists for each
    engine.
    """

    regions = REGIONS + ((UNREADABLE, LISTS, RIGHT.REMOTE_WRITE),)

    def __init__(self, jobs, data_width, **how):
        super().__init__(jobs, data_width, **how)
        at = lambda address: entry(address - LISTS & ~7) >> 8 * (address & 7) & 0xFF
        fault = lambda address: "error" if address - LISTS == BROKEN else None
        self.engines = [self.dut.send, self.dut.scatter]
        self.lists = [
            HostRead(engine.lists.reads, engine.lists.completions, at, self.random, fault=fault)
            for engine in self.engines
        ]

    def set_up(self):
        table = self.dut.regions
        for key, owner in (GOOD, 2), (FOREIGN, 3):
            for name, value in dict(
                index=key,
                key=key,
                base=LISTS,
                length=SIZE,
                rights=RIGHT.LOCAL_READ,
                owner=owner,
                valid=1,
                write=1,
            ).items():
                yield getattr(table, name).eq(value)
            yield
        yield table.write.eq(0)
        for engine in self.engines:
            yield engine.lists.extended_tags.eq(1)
        for _ in range(TIMEOUT + 40):
            yield

    def beside(self):
        return [host.run() for host in self.lists]


def walk_of(base, walk, length):
    key, offset, block, strides, counts, *listed = walk
    entries = tuple(entry(place) for place in range(listed[0][0], SIZE, 8)) if listed else None
    return Walk(base + offset, base, base + LENGTH, block, strides, counts, length, entries=entries)


MIDDLE = LENGTH // 2
PUTS = [
    # source, target: key, offset, block, strides, counts, list; length
    ((1, MIDDLE, 8, (), (), (0, GOOD)), (2, 1000, 0, (), ()), 8 * 700),
    ((1, 77, 0, (), ()), (2, MIDDLE, 8, (), (), (1000, GOOD)), 8 * 700),
    ((1, MIDDLE, 24, (32,), (3,), (0, GOOD)), (2, MIDDLE, 31, (), (), (16000, GOOD)), 24 * 60 - 5),
    (
        (1, MIDDLE, 3, (5, -40), (4, 2), (8, GOOD)),
        (2, MIDDLE, 7, (11, 100), (2, 3), (30000, GOOD)),
        301,
    ),
    ((1, MIDDLE, 500, (), (), (64, GOOD)), (2, MIDDLE, 100, (120,), (4,), (1600, GOOD)), 9000),
    ((1, MIDDLE, 8, (), (), (0, GOOD)), (2, 300, 0, (), ()), 0),
    ((1, MIDDLE, 8, (), (), (END, GOOD)), (2, 300, 0, (), ()), 24),
]


@pytest.mark.parametrize("data_width, busy", [(64, 1.0), (128, 0.7), (256, 0.8)])
def test_puts_are_byte_exact(data_width, busy, seed):
    path = ListedPath([(command(*put), {}) for put in PUTS], data_width, seed=seed, busy=busy).run(
        lambda p: len(p.ended) == len(PUTS) and len(p.done) == len(p.packets), 30000
    )
    assert {status for _, status, _ in path.ended} == {STATUS.OK}
    assert not any(refused for _, _, refused, _ in path.done)
    assert path.writes.memory == expected_memory(PUTS, walk_of)


BAD = [
    # list, walk's offset, length; what becomes of it at the source and at the target
    ((0, 9), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((0, UNREADABLE), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((0, FOREIGN), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((12, GOOD), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((SIZE + 8, GOOD), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((2**64 - 64, GOOD), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((SIZE, GOOD), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((END, GOOD), MIDDLE, 64, STATUS.BAD_LIST, STATUS.REMOTE_BAD_LIST),
    ((0, GOOD), 0, 64, STATUS.BOUNDS, STATUS.REMOTE_BOUNDS),
    ((BROKEN, GOOD), MIDDLE, 64, STATUS.READ_ERROR, STATUS.REMOTE_READ_ERROR),
    ((BROKEN - 32, GOOD), MIDDLE, 64, STATUS.READ_ERROR, STATUS.REMOTE_READ_ERROR),
]
PLAIN = (0, (), ())


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_source_s_bad_list_ends_its_job_and_the_next_is_done(data_width, seed):
    good = ((1, MIDDLE, 8, (), (), (800, GOOD)), (2, 4096, *PLAIN), 80)
    jobs = []
    for where, offset, length, _, _ in BAD:
        jobs += [
            (command((1, offset, 8, (), (), where), (2, 0, *PLAIN), length), {}),
            (command(*good), {}),
        ]
    path = ListedPath(jobs, data_width, seed=seed).run(
        lambda p: len(p.ended) == len(jobs) and len(p.done) == len(BAD), 12000
    )
    assert [status for _, status, _ in path.ended] == [
        s for *_, status, _ in BAD for s in (status, STATUS.OK)
    ]
    assert path.writes.memory == expected_memory([good], walk_of)
    assert path.lines == []


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_target_s_bad_list_is_refused_and_the_next_packet_lands(data_width, seed):
    good = ((1, 0, *PLAIN), (2, MIDDLE, 8, (), (), (800, GOOD)), 80)
    jobs = []
    for where, offset, length, _, _ in BAD:
        jobs += [
            (command((1, 0, *PLAIN), (2, offset, 8, (), (), where), length), {}),
            (command(*good), {}),
        ]
    path = ListedPath(jobs, data_width, seed=seed).run(lambda p: len(p.done) == len(jobs), 12000)
    assert [(refused, reason) for _, _, refused, reason in path.done] == [
        r for *_, status in BAD for r in ((1, status), (0, STATUS.OK))
    ]
    landed = expected_memory([good], walk_of)
    assert landed.items() <= path.writes.memory.items()
    # Of a bad one what came before the entry that is wrong, or that leaves the region, and no more.
    before = expected_memory(
        [
            ((1, 0, *PLAIN), (2, MIDDLE, 8, (), (), where), length)
            for where, offset, length, *_ in BAD
            if where[1] == GOOD and where[0] in (END, BROKEN - 32)
        ],
        walk_of,
    )
    assert set(path.writes.memory) <= set(landed) | set(before)


def test_strides_under_a_list_have_counts_and_there_are_two_at_most():
    plain = command((1, 0, *PLAIN), (2, 0, *PLAIN), 16)
    jobs = [
        (command((1, MIDDLE, 8, (8,), (0,), (0, GOOD)), (2, 0, *PLAIN), 16), STATUS.BAD_COUNT),
        (command((1, MIDDLE, 8, (8, 8), (1, 0), (0, GOOD)), (2, 0, *PLAIN), 16), STATUS.BAD_COUNT),
        (command((1, MIDDLE, 0, (), (), (0, GOOD)), (2, 0, *PLAIN), 16), STATUS.BAD_COUNT),
        (plain[:2] + b"\x07" + plain[3:], STATUS.BAD_LEVELS),
        (plain[:2] + b"\x0c" + plain[3:], STATUS.BAD_LEVELS),
        (plain[:2] + b"\x70" + plain[3:], STATUS.BAD_LEVELS),
        (plain, STATUS.OK),
    ]
    path = ListedPath([(data, {}) for data, _ in jobs], 64).run(
        lambda p: len(p.ended) == len(jobs), 3000
    )
    assert [status for _, status, _ in path.ended] == [status for _, status in jobs]
