"""Statements of Verilator's C++: only assignments and conditions.

Text is first brought into one form: single spaces, and each variable as `iN.name` (member of
instance N) or `LN_name` (local of function N).
"""

# SPDX-License-Identifier: BSD-2-Clause

import re
import typing


class UnknownForm(Exception):
    """Verilator wrote an unknown form of C++. The message is one sentence."""


# A member of an instance, or a local.
VARIABLE = re.compile(r"\bi\d+\.\w+|\bL\d+_\w+")
# Functions of Verilator's run time that have a result and change nothing.
PURE = (
    r"VL_(?:COUNTONES_[IQ]|EXTENDS?_[IQ]I|MULS_[IQ]+|SHIFT(?:L|R|RS)_[IQ]+|REDXOR_\w+"
    r"|(?:LT|LTE|GT|GTE)S_[IQ]+|LIKELY|UNLIKELY|DIVS?_[IQ]+|MODDIVS?_[IQ]+|ONEHOT0?_[IQ])"
)
EXPRESSION = re.compile(
    rf"(?:{VARIABLE.pattern}|V\w+__ConstPool__\w+|[ICSQ]Data\b|{PURE}(?=\()|0x[0-9a-f]+U?L*|\d+U?L*"
    r"|==|!=|<=|>=|[-+*/%&|^~!<>?:()\[\], ])*"
)
# Functions that write all words of the argument behind their widths.
WIDE = re.compile(
    r"VL_(?:ADD|SUB|MUL|ASSIGN|AND|OR|XOR|NOT|SHIFTL|SHIFTR)_[WI]+"
    r"\((?:\d+,)*\w+, ([\w.]+), (.*)\)"
)
ASSIGNMENT = re.compile(rf"({VARIABLE.pattern})((?:\[[^=]*\])?) = (.*)")
CONSTANT_INDEX = re.compile(r"\[(\d+|0x[0-9a-f]+)U\]")


class Assignment(typing.NamedTuple):
    """`text` writes `target`: one element of it where `index` is text such as "[2U]", else all."""

    text: str
    target: str
    index: str
    reads: frozenset


class Condition(typing.NamedTuple):
    """`if (text) {then} else {other}`; `reads` are the variables of the text alone."""

    text: str
    reads: frozenset
    then: list
    other: list


def variables(expression):
    """Variables of an expression. Raises UnknownForm if the expression might do more than read."""
    end = EXPRESSION.match(expression).end()
    if end < len(expression) or "++" in expression or "--" in expression:
        raise UnknownForm(
            f"the expression '{shown(expression, end)}' has a part that is not known here"
        )
    return frozenset(VARIABLE.findall(expression))


def shown(text, at=0):
    """The part of a text around position `at`, for a message."""
    return text[max(0, at - 40) : at + 60].strip()


# Parser -------------------------------------------------------------------------------------------


def assignment(text):
    """The Assignment in a text without its semicolon."""
    if wide := WIDE.fullmatch(text):
        return Assignment(text, wide[1], "", variables(wide[2]))
    found = ASSIGNMENT.fullmatch(text)
    if not found:
        raise UnknownForm(f"the statement '{shown(text)}' is not known here")
    target, index, value = found.groups()
    return Assignment(text, target, index, variables(value) | variables(index))


def parse(text):
    """Statements of a text that is in the form of this module."""
    statements, _ = _block(text, 0, inside=False)
    return statements


def _spaces(text, at):
    while at < len(text) and text[at] == " ":
        at += 1
    return at


def _block(text, at, inside=True):
    """Statements from `at` to the closing brace, or (if not `inside` braces) to the end of the
    text; and the position of that end.
    """
    statements = []
    while True:
        at = _spaces(text, at)
        if at >= len(text) or text[at] == "}":
            if inside != (at < len(text)):
                raise UnknownForm(f"the braces do not match at '{shown(text, at)}'")
            return statements, at + 1
        if text.startswith("if (", at):
            statement, at = _condition(text, at)
        else:
            end = text.find(";", at)
            if end < 0:
                raise UnknownForm(f"the statement '{shown(text, at)}' has no end")
            statement, at = assignment(text[at:end]), end + 1
        statements.append(statement)


def _braced(text, at):
    """Statements in braces at `at`."""
    at = _spaces(text, at)
    if text[at : at + 1] != "{":
        raise UnknownForm(f"an opening brace is missing at '{shown(text, at)}'")
    return _block(text, at + 1)


def _condition(text, at):
    """The `if` at `at`, with its `else`."""
    begin = end = at + len("if (")
    depth = 1
    while depth:
        bracket = re.compile("[()]").search(text, end)
        if not bracket:
            raise UnknownForm(f"the condition '{shown(text, at)}' has no end")
        depth += 1 if bracket[0] == "(" else -1
        end = bracket.end()
    condition = text[begin : end - 1]
    then, at = _braced(text, end)
    other, following = [], _spaces(text, at)
    if text.startswith("else", following):
        following = _spaces(text, following + len("else"))
        if text.startswith("if (", following):
            chained, at = _condition(text, following)
            other = [chained]
        else:
            other, at = _braced(text, following)
    return Condition(condition, variables(condition), then, other), at


# Reads and writes ---------------------------------------------------------------------------------


def assignments(statement):
    """All Assignments in a statement, in order."""
    if isinstance(statement, Assignment):
        yield statement
    else:
        for inner in statement.then + statement.other:
            yield from assignments(inner)


def writes(statement):
    """Variables that a statement may write."""
    return {inner.target for inner in assignments(statement)}


def condition_reads(statement):
    """Variables that the conditions in a statement read."""
    if isinstance(statement, Assignment):
        return frozenset()
    return statement.reads.union(
        *(condition_reads(inner) for inner in statement.then + statement.other)
    )


def reads(statement):
    """Variables that a statement may read."""
    return condition_reads(statement).union(*(inner.reads for inner in assignments(statement)))


def weight(statement):
    """About how many operations a statement has."""
    if isinstance(statement, Assignment):
        return 1 + len(statement.reads) // 3
    return 1 + sum(weight(inner) for inner in statement.then + statement.other)


def needs(statements, words, written):
    """Variables whose old value the statements may read.

    words   : function, variable → number of words of a wide one, else 0
    written : set of variables that were certainly written, and of (variable, index) for words of
              wide ones; updated here
    """
    found = set()
    for statement in statements:
        found |= statement.reads - written
        if isinstance(statement, Condition):
            then, other = set(written), set(written)
            found |= needs(statement.then, words, then) | needs(statement.other, words, other)
            written |= then & other
        elif not statement.index:
            written.add(statement.target)
        elif (count := words(statement.target)) and CONSTANT_INDEX.fullmatch(statement.index):
            written.add((statement.target, statement.index))
            parts = sum((statement.target, f"[{word}U]") in written for word in range(count))
            if parts == count:
                written.add(statement.target)
    return found
