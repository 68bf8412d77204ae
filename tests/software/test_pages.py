"""Pages are right about links, targets of make, commands of dibber; and the README is short."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import pathlib
import re

import pytest
from dibber_cli import main

from tools import files

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = files.names("*.md")
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
CODE = re.compile(r"`([^`\n]+)`")


def text_of(name):
    return (ROOT / name).read_text()


def anchors(text):
    """The anchors that GitHub makes of a page's headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    }


def wrong_links(name, text):
    """Relative links of a page whose file, or whose heading there, does not exist."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        if not file.exists() or anchor and anchor not in anchors(file.read_text()):
            wrong.append(target)
    return wrong


def said(text):
    """The words of a page that are commands: in backquotes, and in fences."""
    return [*CODE.findall(FENCE.sub("", text)), *"\n".join(FENCE.findall(text)).splitlines()]


def make_targets():
    """The targets: words left of a colon in the Makefile."""
    lines = re.findall(r"^([a-z][\w -]*):(?!=)", (ROOT / "Makefile").read_text(), re.M)
    return {target for line in lines for target in line.split()}


def wrong_targets(text, targets):
    found = []
    for words in said(text):
        for rest in re.findall(r"(?:^|\$ |[;&] )make ((?:[A-Z]+=\S+ )*[a-z][\w-]*)", words):
            if rest.split()[-1] not in targets:
                found.append(rest)
    return found


def commands(parser):
    """The commands of a parser, each with its own."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {name: commands(child) for name, child in action.choices.items()}
    return {}


def wrong_commands(text, tree):
    """Commands of `dibber` that a page names and the program does not have."""
    found = []
    for words in said(text):
        for rest in re.findall(r"(?:^|\$ |/|[;&|] )dibber((?: [a-z][a-z-]*)+)", words):
            level = tree
            for word in rest.split():
                if not level:
                    break
                if word not in level:
                    found.append(f"dibber{rest}")
                    break
                level = level[word]
    return found


def test_the_readme_has_100_lines_of_100_columns():
    lines = text_of("README.md").splitlines()
    assert len(lines) <= 100
    assert [line for line in lines if len(line.expandtabs(8)) > 112 or len(line) > 100] == []


@pytest.mark.parametrize("name", PAGES)
def test_each_relative_link_leads_somewhere(name):
    assert wrong_links(name, text_of(name)) == []


@pytest.mark.parametrize("name", PAGES)
def test_each_target_of_make_that_a_page_names_exists(name):
    assert wrong_targets(text_of(name), make_targets()) == []


@pytest.mark.parametrize("name", PAGES)
def test_each_command_that_a_page_names_exists(name):
    assert wrong_commands(text_of(name), commands(main.parser())) == []


def test_wrong_pages_are_found():
    """The checks themselves: a dead file, a dead heading, a missing target and command."""
    assert wrong_links(
        "README.md", "[a](docs/nothing.md) [b](docs/cli.md#nowhere) [c](LICENSE)"
    ) == [
        "docs/nothing.md",
        "docs/cli.md#nowhere",
    ]
    assert wrong_targets(
        "`make bench` `make nothing`\n```\n$ make PROFILE=x void\n```\n", make_targets()
    ) == [
        "nothing",
        "PROFILE=x void",
    ]
    tree = commands(main.parser())
    assert wrong_commands("`dibber bench stride` `dibber fly` `dibber fw walk`", tree) == [
        "dibber fly",
        "dibber fw walk",
    ]
