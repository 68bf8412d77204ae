"""The words that can stand at each place of the command line, from an argparse parser."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from dibber_cli import profile

# The kind of a value, by the metavar that all commands use for it.
FILES, URIS = "files", "uris"
KINDS: dict[object, str] = {
    "FILE": FILES,
    "FOLDER": FILES,
    "DIR": FILES,
    "A": FILES,
    "B": FILES,
    "URI": URIS,
}


@dataclass(frozen=True)
class Value:
    """Value of an option or a positional: one of `words`, or of a `kind` (FILES, URIS, "" for
    anything).
    """

    words: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True)
class Option:
    """names : ("--seed",); value : None when it takes none"""

    names: tuple[str, ...]
    text: str
    value: Value | None = None


@dataclass(frozen=True)
class Place:
    """A command, or a group of commands, and the words that can follow it.

    path     : "dibber bench stride"
    commands : ((name, text), …) of a group
    many     : the last of the positionals may be repeated
    """

    path: str
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    positionals: tuple[Value, ...] = field(default=())
    many: bool = False


def _value(action: argparse.Action) -> Value:
    if action.choices:
        return Value(tuple(map(str, action.choices)))
    if action.metavar == "P":
        return Value(tuple(profile.names()), FILES)
    return Value((), KINDS.get(action.metavar, ""))


def _text(help_: str | None) -> str:
    """The part of a help text before a parenthesis, on one line."""
    return (help_ or "").partition(" (")[0].replace("\n", " ")


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Options and positionals of a parser, without its commands."""
    # argparse has no public way to its tree.
    return [a for a in parser._actions if not isinstance(a, argparse._SubParsersAction)]


def commands(
    parser: argparse.ArgumentParser,
) -> Mapping[str, tuple[argparse.ArgumentParser, str]]:
    """{name: (parser, help text)} of the commands of a group; {} for a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            return {name: (inner, texts.get(name, "")) for name, inner in action.choices.items()}
    return {}


def leaves(parser: argparse.ArgumentParser, path: str | None = None) -> list[Place]:
    """Every Place of a parser, groups before their members."""
    path = path or parser.prog
    members = commands(parser)
    found = [place for name in members for place in leaves(members[name][0], f"{path} {name}")]
    options: list[Option] = []
    positionals: list[Value] = []
    many = False
    for action in arguments(parser):
        if action.option_strings:
            takes = action.nargs != 0
            options.append(
                Option(
                    tuple(action.option_strings),
                    _text(action.help),
                    _value(action) if takes else None,
                )
            )
        else:
            positionals.append(_value(action))
            many = action.nargs in ("*", "+")
    names = tuple((name, _text(text)) for name, (_, text) in members.items())
    return [Place(path, names, tuple(options), tuple(positionals), many), *found]
