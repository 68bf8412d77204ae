"""The pages about boards agree with the boards' programs."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib
import pathlib
import re
import subprocess

import bitstream
import pytest
from dibber.interface.description import VERSION
from dibber.mcp.processor import SRAM_BYTES, SRAM_SCARCE

import boards
from boards import memory

table = importlib.import_module("boards.__main__")
FOUND = {board.name: board for board in table.boards()}


def test_the_page_on_boards_has_the_table():
    text = table.PAGE.read_text()
    assert table.replaced(text, table.table(FOUND.values())) == text, (
        "build/venv/bin/python -P -m boards --write"
    )


def test_the_page_on_synthesis_has_the_table_of_block_ram():
    assert memory.table() in (table.PAGE.parent / "synthesis.md").read_text(), (
        "build/venv/bin/python -P -m boards --memory"
    )


def test_the_shapes_of_memories_make_what_yosys_counts():
    """docs/synthesis.md: 16 RAMB36 and 32 DP16KD are the SRAM of 64 KiB, and 18 DP16KD the
    instruction cache of 32 KiB.
    """
    assert (
        memory.blocks(4096, 32, memory.RAMB36) == 4 and memory.blocks(8192, 32, memory.DP16KD) == 16
    )
    assert memory.program_memory(0x10000, 64, memory.DP16KD) == 32 + 18
    assert memory.program_memory(0x10000, 128, memory.RAMB36) == 16 + 8 + 1


def test_no_board_has_more_memory_than_its_part():
    for name, part, less, much, there, sram in memory.rows():
        assert (less if sram == SRAM_SCARCE else much) <= there, (name, part)
    assert {sram for *_, sram in memory.rows()} == {SRAM_SCARCE, SRAM_BYTES}


def test_every_board_with_a_command_line_is_in_it():
    folder = pathlib.Path(boards.__path__[0])
    mains = {path.stem for path in folder.glob("*.py") if "    main(" in path.read_text()}
    assert mains - {"sim", "sim_switch", "__main__"} == FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_each_design_says_what_was_verified(name):
    assert FOUND[name].designs.keys() == FOUND[name].verified.keys() and all(
        FOUND[name].verified.values()
    )


def test_the_card_of_the_bring_up_has_this_interface():
    shown = re.findall(
        r"\binterface +(\d+)\.(\d+), ",
        (table.PAGE.parent / "bringup.md").read_text(),
        re.M,
    )
    assert shown == [tuple(map(str, VERSION))] * 2


def test_the_help_of_make_names_every_board_and_variant():
    said = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=table.ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    ).stdout
    said = re.search(r"^make bitstream .*?(?=^make )", said, re.M | re.S)[0]
    assert not [name for name in (*FOUND, "cle-215+", "cle-215", "cle-101") if name not in said]


def test_commands_on_adding_a_board_are_for_the_python_that_has_what_they_need():
    text = (table.ROOT / "docs" / "boards.md").read_text()
    assert text.count("build/venv/bin/python ") == len(re.findall(r"\bpython3? ", text)) > 5
    assert not any(line.strip().startswith("python ") for line in table.__doc__.splitlines())


def test_the_folders_of_each_variant_and_the_rows_that_gate_wants_are_told():
    text = (table.ROOT / "docs" / "boards.md").read_text()
    for folder in (
        "out/vivado/acorn_cle215p",
        "out/vivado/acorn_cle215",
        "out/vivado/acorn_cle101",
        "out/openxc7/acorn_cle101_open",
        "out/bitstream/NAME",
    ):
        assert f"`{folder}`" in text or f"# {folder}" in text
    assert f"`hw/synthesis/{bitstream.KEPT.name}`" in text and "VARIANT=cle-101" in text


def test_another_table_takes_the_place_of_the_old_one():
    text = f"a\n{table.BEGIN}old\n{table.END}b\n"
    assert table.replaced(text, "new\n") == f"a\n{table.BEGIN}new\n{table.END}b\n"
