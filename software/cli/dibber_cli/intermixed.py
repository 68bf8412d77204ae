"""A parser that takes options before, between or behind the other words."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from dibber_cli import errors

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# argparse has no public name for the class of a group of commands.
Commands = argparse._SubParsersAction


class Command(Protocol):
    """The function that adds a command to a group: dibber_cli.main.command()."""

    def __call__(
        self,
        group: Commands,
        name: str,
        function: Callable[[argparse.Namespace], int | None],
        text: str,
        examples: Sequence[str] = (),
        as_json: bool | str = True,
    ) -> argparse.ArgumentParser: ...


class Parser(argparse.ArgumentParser):
    """argparse alone refuses `URI --golden FILE` if the URI is optional, and `URI --json URI` if
    there may be many.
    """

    as_json = False  # of all parsers of a command line: errors are JSON

    # argparse declares overloads by the type of `namespace`; one signature here serves them all.
    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        Parser.as_json = errors.wants_json(sys.argv[1:] if args is None else args)
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if not Parser.as_json:
            super().error(message)
        errors.report(
            f"{self.prog.removeprefix('dibber ')}: {message}",
            f"'{self.prog} --help' shows what there is",
            "USAGE",
            2,
            True,
        )
        self.exit(2)

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        # argparse of Python 3.12 does not report a text that could not be written.
        if message:
            (file or sys.stderr).write(message)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        plain = super().parse_known_args
        if not any(action.nargs in ("?", "*") for action in self._get_positional_actions()):
            return plain(args, namespace)
        # Python before 3.13 parses twice, by this very method.
        self.parse_known_args = plain  # type: ignore[method-assign]
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            del self.parse_known_args
