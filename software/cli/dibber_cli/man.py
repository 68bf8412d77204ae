"""Manual pages of section 1, made from the parser: dibber(1), and one for each command.

    python -m dibber_cli.man FOLDER

Writes FOLDER/man1/dibber.1, dibber-info.1, dibber-sim-start.1 and so on, in the macros of man(7).
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import re
import sys
from collections.abc import Collection
from pathlib import Path

from dibber_cli.completion.tree import arguments, commands
from dibber_cli.main import CODES, parser

TITLE = '.TH {name} 1 "" "Dibber" "Dibber Manual"\n'


def roff(text: str) -> str:
    """Plain text for roff: what roff interprets is escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def _synopsis(found: argparse.ArgumentParser) -> str:
    """The usage line of argparse, with the command in bold."""
    usage = " ".join(found.format_usage().removeprefix("usage: ").split())
    words = usage.removeprefix(found.prog).strip()
    return f".SH SYNOPSIS\n.B {roff(found.prog)}\n{roff(words)}\n"


def _argument(action: argparse.Action) -> str:
    """A paragraph for an option or a positional."""
    metavar = action.metavar or action.dest.upper()
    if not action.option_strings:
        head = f".I {roff(str(metavar))}"
    else:
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in action.option_strings)
        head = names if action.nargs == 0 else f"{names} \\fI{roff(str(metavar))}\\fR"
    return f".TP\n{head}\n{roff(' '.join((action.help or '').split()))}\n"


def _arguments(found: argparse.ArgumentParser) -> str:
    shown = [action for action in arguments(found) if action.help is not argparse.SUPPRESS]
    if not shown:
        return ""
    places = [action for action in shown if not action.option_strings]
    options = [action for action in shown if action.option_strings]
    return ".SH OPTIONS\n" + "".join(map(_argument, [*places, *options]))


def _examples(found: argparse.ArgumentParser) -> str:
    """The lines of the epilog below "examples:"."""
    epilog = found.epilog or ""
    if not epilog.startswith("examples:\n"):
        return ""
    lines = epilog.partition("\n\n")[0].splitlines()[1:]
    return ".SH EXAMPLES\n.nf\n" + "".join(f"{roff(line.strip())}\n" for line in lines) + ".fi\n"


def name_of(prog: str) -> str:
    """ "dibber sim start" → "dibber-sim-start"."""
    return prog.replace(" ", "-")


def page(found: argparse.ArgumentParser, text: str, near: Collection[str]) -> str:
    """One page. `near`: names of other pages to see."""
    members = commands(found)
    name = name_of(found.prog)
    parts = [
        TITLE.format(name=name.upper()),
        f".SH NAME\n{roff(name)} \\- {roff(text.rstrip('.'))}\n",
        _synopsis(found),
        f".SH DESCRIPTION\n{roff(found.description or text)}\n",
    ]
    if members:
        parts.append(".SH COMMANDS\n")
        parts += [
            f".TP\n.BR {roff(name_of(inner.prog))} (1)\n{roff(what)}\n"
            for inner, what in members.values()
        ]
    parts += [_arguments(found), _examples(found)]
    parts.append(f".SH EXIT STATUS\n{roff(CODES)}\n")
    see = sorted({name_of(inner.prog) for inner, _ in members.values()} | set(near) - {name})
    parts.append(".SH SEE ALSO\n" + "".join(f".BR {roff(other)} (1),\n" for other in see))
    return "".join(parts) + ".BR dibber (7)\n"


def pages(
    found: argparse.ArgumentParser | None = None,
    text: str = "look at Dibber cards, load them, measure them",
    near: Collection[str] = (),
) -> dict[str, str]:
    """{name: page} of a parser and of all commands below it."""
    found = found or parser()
    made = {name_of(found.prog): page(found, text, near)}
    for inner, what in commands(found).values():
        made.update(pages(inner, what, (name_of(found.prog),)))
    return made


def main(folder: str) -> None:
    out = Path(folder) / "man1"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("dibber*.1"):  # no page of a former command remains
        old.unlink()
    made = pages()
    for name, text in made.items():
        (out / f"{name}.1").write_text(text, encoding="utf-8")
    print(f"{len(made)} pages in {out}")


if __name__ == "__main__":
    main(*sys.argv[1:])
