"""`dibber completion SHELL`: a script that completes the command line, made from its parser."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
from collections.abc import Callable

from dibber_cli.completion.shells import SHELLS
from dibber_cli.completion.tree import leaves
from dibber_cli.intermixed import Command, Commands


def show(arguments: argparse.Namespace) -> int:
    print(SHELLS[arguments.shell](leaves(arguments.parser())), end="")
    return 0


def add_to(sub: Commands, command: Command, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add `completion`; `command` and `parser` are those of dibber_cli.main."""
    p = command(
        sub,
        "completion",
        show,
        "Print a shell script that completes command lines of dibber.",
        [
            "source <(dibber completion bash)",
            "dibber completion zsh > ~/.zfunc/_dibber",
            "dibber completion fish > ~/.config/fish/completions/dibber.fish",
        ],
        as_json=False,
    )
    p.add_argument("shell", metavar="SHELL", choices=list(SHELLS), help=", ".join(SHELLS))
    p.set_defaults(parser=parser)
