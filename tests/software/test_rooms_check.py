"""tools/rooms.py, the check of the tree's rooms, finds each kind of fault."""

# SPDX-License-Identifier: BSD-2-Clause

import ast
import importlib.util
import pathlib

import pytest

from tools import constructors, files

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rooms():
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "tools" / "rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_circles_of_two_and_more_are_found_and_each_once(rooms):
    graph = {
        "a": {"b"},
        "b": {"c", "leaf"},
        "c": {"a"},
        "d": {"e", "a"},
        "e": {"d"},
        "alone": {"alone", "a"},
    }
    assert sorted(rooms.circles(graph)) == [["a", "b", "c"], ["d", "e"]]


def test_a_graph_without_a_circle_has_none(rooms):
    assert rooms.circles({"a": {"b", "c"}, "b": {"c"}, "c": {"d"}}) == []


def test_a_long_chain_does_not_end_the_check(rooms):
    length = 5000
    chain = {str(n): {str(n + 1)} for n in range(length)}
    assert rooms.circles(chain) == []
    chain[str(length)] = {"0"}
    assert [len(part) for part in rooms.circles(chain)] == [length + 1]


def test_imports_inside_functions_do_not_count_and_relative_ones_do(rooms):
    tree = ast.parse(
        "import a.b\nfrom . import c\nfrom ..d import e\n"
        "try:\n    import f\nexcept ImportError:\n    pass\n"
        "def g():\n    import h\n"
    )
    found = set(rooms.imports(tree, "top.sub.module", False))
    assert {"a.b", "top.sub.c", "top.d", "top.d.e", "f"} <= found and "h" not in found


def test_a_word_in_capitals_that_nobody_explains_is_found(rooms):
    assert set(rooms.WORD.findall("A HOUSEWORD, an ODD_NAME and a `CODE`, PCI or CRC-32C")) >= {
        "HOUSEWORD",
        "ODD_NAME",
    }


def test_long_lines_of_prose_are_found_and_tables_and_commands_are_left_alone(rooms):
    long = "word " * 25
    text = "\n".join(
        [long, "| " + long, "    " + long, "```", long, "```", "  - " + long, "x" * 200]
    )
    assert list(rooms.wide_lines(text)) == [1, 7]


def test_the_tree_keeps_the_rules(rooms):
    assert [fault for check in rooms.CHECKS for fault in check()] == []


def test_a_tree_without_git_has_the_same_files_as_a_checkout(tmp_path, monkeypatch):
    for name in ("a.c", "deep/b.c", "deep/c.h", "deep/build/d.c", "build/e.c", "out/f.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for name in ("deep/__pycache__/g.c", "x.egg-info/h.c", ".git/i.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    there = ["a.c", "deep/b.c", "deep/build/d.c"]
    assert files.names("*.c", root=tmp_path) == there, "no checkout"
    monkeypatch.setenv("PATH", "")
    assert files.names("*.c", root=tmp_path) == there, "no git"
    assert files.names(root=tmp_path) == sorted([*there, "deep/c.h"])


def test_the_tree_walked_has_what_git_lists():
    listed = files.git(ROOT, "ls-files", "-z")
    if listed is not None:
        assert set(filter(None, listed.split("\0"))) <= set(files.walked(ROOT))


def test_a_constructor_may_be_long_if_the_list_says_so_and_not_longer():
    text = "class A:\n    def __init__(self):\n" + "        pass\n" * 160
    files = {"deposit/a": text}
    assert len(list(constructors.faults(files, {}))) == 1
    assert list(constructors.faults(files, {("deposit/a", "A"): 161})) == []
    assert len(list(constructors.faults(files, {("deposit/a", "A"): 160}))) == 1
    short = {"deposit/a": "class A:\n    def __init__(self):\n        pass\n"}
    assert len(list(constructors.faults(short, {("deposit/a", "A"): 161}))) == 1
