"""Units: the smallest parts of a phase that can run or be skipped.

All statements of a phase that write the same variable are one unit, and so are statements that need
one another in a circle. A condition around assignments to several variables is divided first,
because Verilator joins unrelated statements with the same condition.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import dataclasses

from changed import statements
from changed.statements import Assignment, Condition
from tools.graphs import components


@dataclasses.dataclass
class Unit:
    """statements : in order
    successors : numbers of units of the same phase that must come later
    """

    phase: str
    statements: list
    writes: set
    reads: set
    weight: int
    successors: set = dataclasses.field(default_factory=set)


class Partition:
    """Groups of things: a union-find structure."""

    def __init__(self, things):
        self.parent = {thing: thing for thing in things}

    def find(self, thing):
        while self.parent[thing] != thing:
            self.parent[thing] = self.parent[self.parent[thing]]
            thing = self.parent[thing]
        return thing

    def join(self, one, other):
        self.parent[self.find(one)] = self.find(other)


# Division -----------------------------------------------------------------------------------------


def _only(statement, targets):
    """A statement without the assignments to other variables than `targets`: a list of 0 or 1."""
    if isinstance(statement, Assignment):
        return [statement] if statement.target in targets else []
    then = [part for inner in statement.then for part in _only(inner, targets)]
    other = [part for inner in statement.other for part in _only(inner, targets)]
    return [Condition(statement.text, statement.reads, then, other)] if then or other else []


def divide(statement):
    """Statements that together replace `statement`, each for variables that depend on each other."""
    targets = statements.writes(statement)
    # If a condition reads a variable that is written inside, its second copy might see another
    # value.
    if len(targets) < 2 or targets & statements.condition_reads(statement):
        return [statement]
    groups = Partition(targets)
    for inner in statements.assignments(statement):
        for variable in inner.reads & targets:
            groups.join(variable, inner.target)
    members = collections.defaultdict(set)
    for inner in statements.assignments(statement):  # groups in the order of their first assignment
        members[groups.find(inner.target)].add(inner.target)
    if len(members) == 1:
        return [statement]
    return [part for group in members.values() for part in _only(statement, group)]


# Order --------------------------------------------------------------------------------------------


def _order(reads, writes):
    """Pairs (earlier, later) of statements whose order matters."""
    writer, readers = {}, collections.defaultdict(list)
    for number, (read, written) in enumerate(zip(reads, writes)):
        for variable in read:
            if variable in writer:
                yield writer[variable], number
            readers[variable].append(number)
        for variable in written:
            for reader in readers.pop(variable, ()):
                yield reader, number
            if variable in writer:
                yield writer[variable], number
            writer[variable] = number


def of_phase(phase, whole):
    """The Units of a phase, by the order of their first statement.

    whole : statements of the phase, in order
    """
    parts = [part for statement in whole for part in divide(statement)]
    reads = [statements.reads(part) for part in parts]
    writes = [statements.writes(part) for part in parts]
    groups, writer = Partition(range(len(parts))), {}
    for number, written in enumerate(writes):
        for variable in written:
            groups.join(number, writer.setdefault(variable, number))
    order = list(_order(reads, writes))
    for circle in (False, True):
        # First join the groups of each circle, then number the remaining groups.
        names = {}
        group_of = [
            names.setdefault(groups.find(number), len(names)) for number in range(len(parts))
        ]
        successors = [set() for _ in names]
        for earlier, later in order:
            if group_of[earlier] != group_of[later]:
                successors[group_of[earlier]].add(group_of[later])
        if not circle:
            component = {
                member: part[-1]
                for part in components(dict(enumerate(successors)))
                for member in part
            }
            first = {}
            for number, group in enumerate(group_of):
                groups.join(number, first.setdefault(component[group], number))
    found = [Unit(phase, [], set(), set(), 0, later) for later in successors]
    for number, part in enumerate(parts):
        unit = found[group_of[number]]
        unit.statements.append(part)
        unit.writes |= writes[number]
        unit.reads |= reads[number]
        unit.weight += statements.weight(part)
    return found
