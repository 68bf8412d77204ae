"""Comments and docstrings of the gateware change no hardware."""

# SPDX-License-Identifier: BSD-2-Clause

import ast
import io
import shutil
import sys
import tokenize

import pytest

from dibber.common.code_identity import DESCRIBED, code_crc

from tests.gateware.mcp.card import ROOT, run, verilog

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
OTHER = '"""Other words, on one line more\nthan there may have been."""'


def other_prose(source):
    """Python source with other comments and docstrings, on other lines; and how many of each there
    were.
    """
    lines = source.splitlines(keepends=True)
    edits = []  # (line, column, end line, end column, text), columns in characters
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            edits.append((*token.start, *token.end, "# something else"))
    comments = len(edits)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]

            def column(line, offset):
                """The parser counts bytes of UTF-8."""
                return len(lines[line - 1].encode()[:offset].decode())

            start = text.lineno, column(text.lineno, text.col_offset)
            end = text.end_lineno, column(text.end_lineno, text.end_col_offset)
            edits.append((*start, *end, OTHER))
    for line, start, last, end, text in sorted(edits, reverse=True):
        lines[line - 1 : last] = [lines[line - 1][:start] + text + lines[last - 1][end:]]
    return "# One more comment.\n" + "".join(lines), comments, len(edits) - comments


def test_other_comments_and_docstrings_give_the_same_verilog_byte_for_byte(tmp_path):
    comments = docstrings = 0
    shutil.copytree(ROOT / "gateware", tmp_path / "gateware")
    shutil.copytree(ROOT / "boards", tmp_path / "boards")
    for file in [*(tmp_path / "gateware").rglob("*.py"), tmp_path / "boards" / "sim.py"]:
        text, *counts = other_prose(file.read_text())
        assert text != file.read_text()
        file.write_text(text)
        comments, docstrings = comments + counts[0], docstrings + counts[1]
    assert comments > 500 and docstrings > 300

    output = tmp_path / "output"
    run(sys.executable, tmp_path / "boards" / "sim.py", "--data-width", 64, "--output", output)
    expected = verilog(64)
    # The list of files names their folder, and names nothing else.
    names = sorted(file.name for file in output.iterdir() if file.suffix != ".f")
    assert "dibber_card.v" in names
    for name in names:
        assert (output / name).read_bytes() == (expected / name).read_bytes(), name


NAMES = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/gateware"]
from dibber.common.elaboration import elaborate_quickly
from litex.gen.fhdl.namer import build_signal_namespace
from migen.fhdl.tools import list_signals, list_special_ios
from boards.sim import SimCard, SourceList

elaborate_quickly()

def {caller}():
    {variable} = SimCard(SourceList({output!r}), 64, 125e6)
    return {variable}

{other} = {caller}().get_fragment()
signals = list_signals({other}) | list_special_ios({other}, True, True, True)
print("\\n".join(sorted(build_signal_namespace(signals).name_dict.values())))
"""


def test_nets_are_not_named_by_the_variables_of_the_caller(tmp_path):
    """Migen names a signal by the variables of all functions that are being called."""
    given = dict(root=str(ROOT), output=str(tmp_path))
    names = [
        run(sys.executable, "-c", NAMES.format(caller=caller, variable=name, other=other, **given))
        for caller, name, other in [("build", "card", "fragment"), ("packet", "slots", "host")]
    ]
    assert len(names[0].splitlines()) > 10000
    assert names[0] == names[1]


BLOCK = (
    '"""What it is."""\n\nWIDTH = 3  # bits\n\ndef f(a):\n    """Says it."""\n    return a + 1\n'
)


@pytest.mark.parametrize(
    "other",
    [
        BLOCK.replace("Says it", "Says\n    something else"),
        BLOCK.replace("  # bits", ""),
        BLOCK.replace('"""What it is."""', "# What it is."),
        BLOCK.replace("a + 1", "(a\n            + 1)"),
    ],
)
def test_the_build_word_does_not_change_with_prose_or_layout(tmp_path, other):
    (tmp_path / "a.py").write_text(BLOCK)
    before = code_crc(tmp_path)
    assert other != BLOCK
    (tmp_path / "a.py").write_text(other)
    assert code_crc(tmp_path) == before


@pytest.mark.parametrize(
    "old, new", [("= 3", "= 4"), ("a + 1", "a - 1"), ("f(a)", "f(a=2)"), ("a + 1", '"a + 1"')]
)
def test_the_build_word_changes_with_the_code(tmp_path, old, new):
    (tmp_path / "a.py").write_text(BLOCK)
    before = code_crc(tmp_path)
    (tmp_path / "a.py").write_text(BLOCK.replace(old, new))
    assert code_crc(tmp_path) != before


def test_the_build_word_changes_with_the_name_of_a_file(tmp_path):
    (tmp_path / "a.py").write_text(BLOCK)
    before = code_crc(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert code_crc(tmp_path) != before


def test_a_described_file_counts_by_its_description(tmp_path):
    (tmp_path / "a.py").write_text(BLOCK)
    one = code_crc(tmp_path, {"a.py": lambda: "one"})
    (tmp_path / "a.py").write_text(BLOCK.replace("= 3", "= 4"))
    assert code_crc(tmp_path, {"a.py": lambda: "one"}) == one
    assert code_crc(tmp_path, {"a.py": lambda: "two"}) != one


def test_each_file_of_the_description_counts_by_it():
    file = ROOT / "gateware" / "dibber" / "interface" / "description.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    parts = {module.split(".")[-1] for module in modules} - {"schema"}
    assert len(parts) >= 3
    assert {f"interface/{name}.py" for name in [*parts, "description"]} == DESCRIBED.keys()
