"""Values given on the command line, and runs of a model for each value of a key."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import itertools
import re
import tomllib
from collections.abc import Callable
from typing import Any

from dibber_cli.errors import CommandError, UsageError
from dibber_cli.ring.model import Model
from dibber_cli.ring.parameters import Parameters

MOST_POINTS = 1_000


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A key and its values, in their order."""

    key: str
    values: list[Any]


def _value(word: str, text: str) -> Any:
    """A value as in a parameter file; a word without quotes is text."""
    text = text.strip()
    if re.fullmatch(r"[A-Za-z][A-Za-z_-]*", text) and text not in ("true", "false", "inf", "nan"):
        return text
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (tomllib.TOMLDecodeError, RecursionError):
        raise UsageError(f"{word!r}: {text[:40]!r} is not a value") from None


def setting(word: str) -> tuple[str, Any]:
    """(key, value) of "TABLE.KEY=VALUE"."""
    key, equals, text = word.partition("=")
    if not equals or "." not in key:
        raise UsageError(f"{word!r} is not TABLE.KEY=VALUE")
    return key, _value(word, text)


def sweep(word: str) -> Sweep:
    """The Sweep of "TABLE.KEY=VALUE,VALUE…"."""
    key, equals, text = word.partition("=")
    if not equals or "." not in key:
        raise UsageError(f"{word!r} is not TABLE.KEY=VALUE,VALUE…")
    values = [_value(word, one) for one in text.split(",")]
    if len({repr(value) for value in values}) < len(values):
        raise UsageError(f"{word!r} has a value twice")
    return Sweep(key, values)


def changed(parameters: Parameters, changes: dict[str, Any]) -> Parameters:
    """The Parameters with other values; CommandError when they are not valid."""
    try:
        return parameters.changed(changes)
    except ValueError as error:
        raise CommandError(str(error), "docs/ring-model.md explains each key", code=2) from None


def points(parameters: Parameters, sweeps: list[Sweep]) -> list[tuple[dict[str, Any], Parameters]]:
    """For each combination of values, the values by key and the Parameters. All are checked before
    any of them runs.
    """
    count = 1
    for one in sweeps:
        count *= len(one.values)
    if count > MOST_POINTS:
        raise UsageError(f"the sweeps have {count} points; {MOST_POINTS} are the most")
    found = []
    for values in itertools.product(*(one.values for one in sweeps)):
        at = {one.key: value for one, value in zip(sweeps, values)}
        found.append((at, changed(parameters, at)))
    return found


def run(
    parameters: Parameters,
    sweeps: list[Sweep],
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """The figures of each point, with the swept values as "at".

    progress : function(values of the point that is done)
    """
    results = []
    for at, one in points(parameters, sweeps):
        results.append({"at": at, **Model(one).run()})
        if progress:
            progress(at)
    return results
