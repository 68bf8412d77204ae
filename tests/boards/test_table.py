# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What the documents say of boards is what their programs say."""

import importlib
import pathlib
import re

import pytest

import boards

from dibber.interface.description import VERSION

table = importlib.import_module("boards.__main__")
FOUND = {board.name: board for board in table.boards()}


def test_the_readme_has_the_table():
    text = table.README.read_text()
    assert table.replaced(text, table.table(FOUND.values())) == text, "python -m boards --write"


def test_every_board_with_a_command_line_is_in_it():
    folder = pathlib.Path(boards.__path__[0])
    mains  = {path.stem for path in folder.glob("*.py") if "    main(" in path.read_text()}
    assert mains - {"sim", "__main__"} == FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_each_design_says_what_was_verified(name):
    assert FOUND[name].designs.keys() == FOUND[name].verified.keys() and all(FOUND[name].verified.values())


def test_the_card_of_the_bring_up_has_this_interface():
    shown = re.findall(r"\binterface +(\d+)\.(\d+), ", (table.README.parent/"docs"/"bringup.md").read_text(), re.M)
    assert shown == [tuple(map(str, VERSION))]*2


def test_another_table_takes_the_place_of_the_old_one():
    text = f"a\n{table.BEGIN}old\n{table.END}b\n"
    assert table.replaced(text, "new\n") == f"a\n{table.BEGIN}new\n{table.END}b\n"
