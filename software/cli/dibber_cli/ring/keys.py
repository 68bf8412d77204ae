"""Kinds of values in a parameter file: each checks one value, and names what is wrong with it."""

# SPDX-License-Identifier: BSD-2-Clause

import math
from typing import Any

NEEDED = object()  # the default of a key that a file must have


class Key:
    """What a key of a table may be.

    default : its value if the file leaves it out; NEEDED if the file must not
    """

    def __init__(self, default: Any = NEEDED) -> None:
        self.default = default

    def check(self, path: str, value: Any) -> Any:
        """The value, or ValueError with a sentence that begins with the key's path."""
        raise NotImplementedError


class Number(Key):
    """A number of a range, both ends included."""

    def __init__(self, low: float, high: float, default: Any = NEEDED) -> None:
        super().__init__(default)
        self.low, self.high = low, high

    def check(self, path: str, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"'{path}' must be a number, and is {shown(value)}")
        return self._within(path, value)

    def _within(self, path: str, value: float) -> float:
        if math.isnan(value) or not self.low <= value <= self.high:
            raise ValueError(f"'{path}' = {shown(value)} is outside {self.low:g} … {self.high:g}")
        return value


class Whole(Number):
    """A whole number of a range."""

    def check(self, path: str, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"'{path}' must be a whole number, and is {shown(value)}")
        return self._within(path, value)


class Flag(Key):
    def check(self, path: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"'{path}' must be true or false, and is {shown(value)}")
        return value


class Choice(Key):
    """One of some words."""

    def __init__(self, *words: str, default: Any = NEEDED) -> None:
        super().__init__(default)
        self.words = words

    def check(self, path: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError(f"'{path}' must be {' or '.join(self.words)}, and is {shown(value)}")
        return value


class Lengths(Number):
    """One number for all links, or a list with one for each. The list's length is checked later."""

    def check(self, path: str, value: Any) -> Any:
        if isinstance(value, list):
            return [super(Lengths, self).check(f"{path}[{n}]", one) for n, one in enumerate(value)]
        return super().check(path, value)


class Nodes(Key):
    """`"all"`, or a list of node numbers without doubles. Their range is checked later."""

    def check(self, path: str, value: Any) -> Any:
        if value == "all":
            return value
        if not isinstance(value, list) or not value:
            raise ValueError(f"'{path}' must be \"all\" or a list of nodes, and is {shown(value)}")
        for n, one in enumerate(value):
            if isinstance(one, bool) or not isinstance(one, int):
                raise ValueError(f"'{path}[{n}]' must be a whole number, and is {shown(one)}")
        if len(set(value)) < len(value):
            raise ValueError(f"'{path}' has a node twice")
        return value


def shown(value: Any) -> str:
    """A value in an error: short, and on one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def table(path: str, content: Any, keys: dict[str, Key]) -> dict[str, Any]:
    """The values of a table, with the defaults of keys that it leaves out. Raises ValueError for a
    key that is unknown, missing or has a wrong value.
    """
    if not isinstance(content, dict):
        raise ValueError(f"'{path}' must be a table, and is {shown(content)}")
    for key in content:
        if key not in keys:
            raise ValueError(f"unknown key '{path}.{key}': there are {', '.join(keys)}")
    values = {}
    for key, kind in keys.items():
        if key in content:
            values[key] = kind.check(f"{path}.{key}", content[key])
        elif kind.default is NEEDED:
            raise ValueError(f"key '{path}.{key}' is missing")
        else:
            values[key] = kind.default
    return values
