"""Activity of the parts of a card, by the names of their variables.

`activity.txt` beside this file was measured (`measure.py`) in three runs: nothing to do, a
ping-pong of 8 bytes, and both cards putting strided blocks. It decides only which units share a
chunk and which chunks run without a test. An unknown name, or an old file, costs speed, but never
changes the result.

A line is a prefix and a level for each run, as `packet_crc_ 033`. A prefix ends where a word of a
name ends; the longest prefix of a name counts. So a new signal of a block counts as
busy as its block. Levels are shares of the cycles in which an input of the unit changed:

    0  below 2 %      1  below 20 %      2  below 50 %      3  50 % and more
"""

# SPDX-License-Identifier: BSD-2-Clause

import functools
import pathlib
import re

FILE = pathlib.Path(__file__).with_name("activity.txt")
RUNS = ("idle", "ping", "strided")
BOUNDS = (0.02, 0.2, 0.5)

# Verilator's prefixes of a variable's name in Verilog.
VERILATOR = re.compile(r"(?:__PVT__|__Vdly__|__VdlySet__|__VdlyVal__|__VdlyDim\d__|i\d+\.|L\d+_)")


def name(variable):
    """The name in Verilog of a variable of the C++, or None: Verilator's own have numbers only."""
    while prefix := VERILATOR.match(variable):
        variable = variable[prefix.end() :]
    return None if variable.startswith("__V") else variable


def levels_of(shares):
    """Levels, as text, of the shares of cycles in each run."""
    return "".join(str(sum(share >= bound for bound in BOUNDS)) for share in shares)


def words(text):
    """A name's words, each with its separator from the next."""
    return re.findall(r"[^_]*_+|[^_]+$", text)


class Levels:
    """Levels by prefix: a tree of words."""

    def __init__(self, lines=()):
        self.root = {}
        for line in lines:
            prefix, levels = line.split()
            node = self.root
            for word in words("" if prefix == "*" else prefix):
                node = node.setdefault(word, {})
            node[None] = levels

    def of_name(self, text):
        """Levels of a name in Verilog; None if no prefix of it is known."""
        node, found = self.root, self.root.get(None)
        for word in words(text):
            node = node.get(word)
            if node is None:
                break
            found = node.get(None, found)
        return found

    def of_unit(self, unit):
        """Levels of a unit: those of its busiest name. None if it has no known name."""
        known = {self.of_name(text) for text in map(name, unit.writes) if text}
        known.discard(None)
        return busiest(known) if known else None


def busiest(levels):
    """The largest level of each run."""
    return "".join(map(max, zip(*levels)))


@functools.cache
def read():
    """The Levels of the measured file; none if it does not exist."""
    if not FILE.exists():
        return Levels()
    lines = FILE.read_text().splitlines()
    return Levels(line for line in lines if line and not line.startswith("#"))


# Writing ------------------------------------------------------------------------------------------


def lines(measured):
    """The smallest set of lines that gives each name its levels.

    measured : name → levels
    """
    root = {}
    for text, levels in measured.items():
        node = root
        for word in words(text):
            node = node.setdefault(word, {})
        node[None] = levels
    choices = sorted(set(measured.values()))
    found = []
    best = _costs(root, choices)
    _emit(root, "", None, choices, best, found)
    return sorted(found)


def _costs(node, choices):
    """Node's identity → for each levels that its prefix may have, lines below it.

    A name that is a prefix of others has its own levels only as their prefix's.
    """
    costs = {}

    def visit(node):
        inner = [child for word, child in node.items() if word is not None]
        for child in inner:
            visit(child)
        own = node.get(None)
        costs[id(node)] = {
            levels: sum(min(costs[id(c)][levels], 1 + min(costs[id(c)].values())) for c in inner)
            + (own is not None and own != levels and bool(inner)) * 1
            + (own is not None and own != levels and not inner) * 1000
            for levels in choices
        }

    visit(node)
    return costs


def _emit(node, prefix, inherited, choices, costs, found):
    mine = costs[id(node)]
    levels = inherited
    if inherited is None or mine[inherited] > 1 + min(mine.values()):
        levels = min(mine, key=mine.get)
        found.append(f"{prefix or '*'} {levels}")
    for word, child in node.items():
        if word is not None:
            _emit(child, prefix + word, levels, choices, costs, found)
