"""Options that change the points of a benchmark: --size, --iterations, --stride, --duration, --both
and --depth.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

from dibber.interface.description import C

from dibber_cli import numbers
from dibber_cli.bench import worker
from dibber_cli.bench.point import Point
from dibber_cli.errors import UsageError

MOST_SIZE = 1 << 20  # bytes
MOST_ITERATIONS = 1_000_000
MOST_STRIDE = 256  # elements
MOST_DURATION_MS = 3.6e6
MOST_MEMORY = 256 << 20  # bytes of one side of a point that --size or --stride changes


@dataclass(frozen=True)
class Argument:
    """An option that a benchmark passes to its points().

    low, high : its range, in the option's unit
    to        : the keyword arguments of points() for a value
    multiple  : of which the value is a multiple
    """

    low: int
    high: int
    to: Callable[[int], dict]
    multiple: int = 1


@dataclass(frozen=True)
class Options:
    """Values of the command line. A value of 0 or False leaves the benchmark as it is.

    size       : bytes of a transfer, or of an element
    iterations : transfers, rounds or messages of each point
    stride     : elements
    duration   : milliseconds of each point; 0: each transfer once
    both       : both cards send
    depth      : commands under way
    """

    size: int = 0
    iterations: int = 0
    stride: int = 0
    duration: float = 0
    both: bool = False
    depth: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for a number that the command line does not take."""
        for name, most in (
            ("size", MOST_SIZE),
            ("iterations", MOST_ITERATIONS),
            ("stride", MOST_STRIDE),
            ("duration", MOST_DURATION_MS),
            ("depth", C.SLOTS),
        ):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is out of range")

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Self:
        """Of a command line; a command without these options has their defaults."""
        values: dict[str, Any] = {
            field.name: getattr(arguments, field.name, field.default)
            for field in dataclasses.fields(cls)
        }
        return cls(**values)

    @classmethod
    def told(cls, values: Mapping[str, Any]) -> Self:
        """Of a dictionary that another host has sent. Raises TypeError, KeyError or ValueError."""
        kinds: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(cls)}
        return cls(**{name: kind(values[name]) for name, kind in kinds.items()})

    def told_to_others(self) -> dict[str, Any]:
        """The dictionary that told() takes."""
        return dataclasses.asdict(self)

    def words(self) -> str:
        """The options as words of a command line, with a space before each."""
        given = ((name, value) for name, value in dataclasses.asdict(self).items() if value)
        return "".join(
            f" --{name}" if value is True else f" --{name} {_number(value)}"
            for name, value in given
        )

    def arguments(self, test: ModuleType) -> dict[str, Any]:
        """Keyword arguments of the benchmark's points(). Raises UsageError."""
        known, found = getattr(test, "OPTIONS", {}), {}
        for name in ("size", "stride", "iterations"):
            value = getattr(self, name)
            if not value or (name == "iterations" and name not in known):
                continue  # altered() has the number of transfers, or refuses it
            if name not in known:
                have = f"it has: {', '.join(f'--{one}' for one in known)}" if known else ""
                raise UsageError(f"bench {test.NAME} has no --{name}", have)
            option = known[name]
            if not option.low <= value <= option.high or value % option.multiple:
                of = f", a multiple of {option.multiple}" if option.multiple > 1 else ""
                raise UsageError(
                    f"bench {test.NAME}: --{name} {value} is outside {option.low} … {option.high}"
                    f"{of}"
                )
            found.update(option.to(value))
        return found

    def altered(self, test: ModuleType, point: Any) -> Any:
        """A point of the benchmark as the options want it. Raises UsageError."""
        counted = self.iterations and "iterations" not in getattr(test, "OPTIONS", {})
        wanted = [
            name
            for name, value in (
                ("--duration", self.duration),
                ("--both", self.both),
                ("--depth", self.depth),
                ("--iterations", counted),
            )
            if value
        ]
        if wanted and (not isinstance(point, Point) or point.operation not in worker.OPERATIONS):
            raise UsageError(
                f"bench {test.NAME}: {getattr(point, 'series', 'it')} has no {wanted[0]}",
                "stride, block, element, matrix and patterns have it for puts and gets: --series",
            )
        if self.both and point.both_ways:
            raise UsageError(f"bench {test.NAME} sends in both directions without --both")
        if wanted:
            point = dataclasses.replace(
                point,
                senders=(0, 1) if self.both else point.senders,
                duration_ps=round(self.duration * 1e9),
                outstanding=self.depth or point.outstanding,
                **self._counted(point) if counted else {},
            )
        if (self.size or self.stride) and isinstance(point, Point):
            _check_memory(test, point)
        return point

    def _counted(self, point: Point) -> dict[str, Any]:
        """Fields of a point for so many transfers, of which some may go to the same places."""
        places = min(point.transfers, self.iterations)
        return {
            "iterations": self.iterations,
            "source": dataclasses.replace(point.source, transfers=places),
            "target": dataclasses.replace(point.target, transfers=places),
        }

    def check(self) -> None:
        """Raise UsageError for options that exclude each other."""
        if self.duration and self.iterations:
            raise UsageError("--duration and --iterations exclude each other")

    def notes(self) -> list[str]:
        """Sentences of the report."""
        found = []
        if self.size or self.stride:
            found.append(
                f"{self.words().strip()}: of the points that were measured, whatever is said below"
            )
        if self.duration:
            found.append(f"each point goes on for {self.duration:g} ms")
        if self.iterations:
            found.append(f"--iterations: {self.iterations} of each point, whatever is said below")
        if self.both:
            found.append("both cards send: values and bounds are those of both directions together")
        if self.depth:
            found.append(f"--depth: {self.depth} commands under way, whatever is said below")
        return found


NONE = Options()


def _number(value: float) -> str:
    """A number as a word: a whole one with all its digits."""
    return str(value) if isinstance(value, int) else f"{value:g}"


def _check_memory(test: ModuleType, point: Point) -> None:
    most = max(point.extent(point.source), point.extent(point.target))
    if most > MOST_MEMORY:
        raise UsageError(
            f"bench {test.NAME}: {point.series} would need {most >> 20} MiB of memory, more than "
            f"{MOST_MEMORY >> 20}",
            "choose a smaller --size or --stride",
        )


def add_to(p: argparse.ArgumentParser) -> None:
    """Add the options to a benchmark's command line."""
    p.add_argument(
        "--size",
        type=numbers.whole(0, MOST_SIZE),
        default=0,
        metavar="BYTES",
        help="only this size of a transfer; of an element in 'element' (default 0: all sizes)",
    )
    p.add_argument(
        "--iterations",
        type=numbers.whole(0, MOST_ITERATIONS),
        default=0,
        metavar="N",
        help="so many transfers, rounds or messages of each point (default 0: as the benchmark "
        "has it)",
    )
    p.add_argument(
        "--stride",
        type=numbers.whole(0, MOST_STRIDE),
        default=0,
        metavar="N",
        help="only this stride, in elements (default 0: all strides)",
    )
    p.add_argument(
        "--duration",
        type=numbers.real(0, MOST_DURATION_MS),
        default=0,
        metavar="MS",
        help="repeat the transfers of each point for so many milliseconds of the card's time",
    )
    p.add_argument("--both", action="store_true", help="let both cards send, at the same time")
    p.add_argument(
        "--depth",
        type=numbers.whole(0, C.SLOTS),
        default=0,
        metavar="N",
        help="commands under way at once (default 0: as the benchmark has it)",
    )
