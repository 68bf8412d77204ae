"""Chunks: units that run or are skipped together, in an order that their data allow.

Units of a chunk should have work in the same cycles. Units that nearly always have work in each of
the measured runs make the straight line; their chunks are as large as the order allows. Units that
sometimes work are together with those of the same levels, in chunks of some 40 operations. Units
that rarely work are together with their block, in larger chunks, because testing a bit costs more
than their work.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import heapq
import typing

from changed import activity

SOME, RARE = 40, 300  # operations of a chunk


class Chunk(typing.NamedTuple):
    """straight : it runs in each cycle, without a test
    units    : in order
    """

    phase: str
    straight: bool
    units: list

    @property
    def statements(self):
        return [statement for unit in self.units for statement in unit.statements]

    @property
    def writes(self):
        return set().union(*(unit.writes for unit in self.units))

    @property
    def reads(self):
        return set().union(*(unit.reads for unit in self.units))

    @property
    def weight(self):
        return sum(unit.weight for unit in self.units)


class Group(typing.NamedTuple):
    """Common properties of the units of a chunk."""

    straight: bool
    levels: str
    block: str
    most: int  # operations of a chunk


def _levels(units, levels):
    """Levels of each unit. A unit without a known name is as busy as the reader of its results, or
    else as the unit whose results it reads.
    """
    found = [levels.of_unit(unit) for unit in units]
    for number in reversed(range(len(units))):
        if found[number] is None:
            after = {found[later] for later in units[number].successors} - {None}
            found[number] = activity.busiest(after) if after else None
    for number, unit in enumerate(units):
        for later in unit.successors:
            if found[later] is None:
                found[later] = found[number]
    nothing = "0" * len(activity.RUNS)
    return [known or nothing for known in found]


def _block(unit):
    """The block that a unit belongs to: the first word of its names."""
    names = collections.Counter(
        activity.words(text)[0] for text in map(activity.name, sorted(unit.writes)) if text
    )
    return names.most_common(1)[0][0] if names else ""


def _group(unit, levels):
    if set(levels) == {"3"}:
        return Group(True, "", "", 1 << 30)
    if set(levels) == {"0"}:
        return Group(False, "", _block(unit), RARE)
    return Group(False, levels.replace("3", "2"), "", SOME)


def chunks(units, levels, single=False):
    """Chunks of all units of a phase, in order.

    levels : activity.Levels
    single : each unit is a chunk
    """
    groups = [_group(unit, found) for unit, found in zip(units, _levels(units, levels))]
    if single:
        groups = [Group(False, "", "", 0)] * len(units)
    waits_for = [0] * len(units)
    for unit in units:
        for later in unit.successors:
            waits_for[later] += 1
    ready = collections.defaultdict(list)  # group → heap of units that are ready
    ready_weight = collections.Counter()

    def make_ready(number):
        heapq.heappush(ready[groups[number]], number)
        ready_weight[groups[number]] += units[number].weight

    for number, count in enumerate(waits_for):
        if count == 0:
            make_ready(number)
    found, left = [], len(units)
    while left:
        group = max((g for g in ready if ready[g]), key=lambda g: (ready_weight[g], g))
        chunk, size = [], 0
        while ready[group] and (not chunk or size < group.most):
            number = heapq.heappop(ready[group])
            ready_weight[group] -= units[number].weight
            chunk.append(units[number])
            size += units[number].weight
            left -= 1
            for later in units[number].successors:
                waits_for[later] -= 1
                if waits_for[later] == 0:
                    make_ready(later)
        found.append(Chunk(chunk[0].phase, group.straight, chunk))
    return found
