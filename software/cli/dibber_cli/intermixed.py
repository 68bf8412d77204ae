"""A parser that takes options before, between or behind the other words."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import sys

from dibber_cli import errors


class Parser(argparse.ArgumentParser):
    """argparse alone refuses `URI --golden FILE` if the URI is optional, and `URI --json URI` if
    there may be many.
    """

    as_json = False  # of all parsers of a command line: errors are JSON

    def parse_args(self, args=None, namespace=None):
        Parser.as_json = errors.wants_json(sys.argv[1:] if args is None else args)
        return super().parse_args(args, namespace)

    def error(self, message):
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

    def _print_message(self, message, file=None):
        # argparse of Python 3.12 does not report a text that could not be written.
        if message:
            (file or sys.stderr).write(message)

    def parse_known_args(self, args=None, namespace=None):
        plain = super().parse_known_args
        if not any(action.nargs in ("?", "*") for action in self._get_positional_actions()):
            return plain(args, namespace)
        # Python before 3.13 parses twice, by this very method.
        self.parse_known_args = plain
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            del self.parse_known_args
