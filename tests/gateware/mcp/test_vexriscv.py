# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

import pathlib

import pytest

from litex import get_data_mod

from dibber.mcp.vexriscv import WAS, UnknownVerilog, with_instruction_cache, write

VARIANT = "VexRiscv_FullDebug"


@pytest.fixture(scope="module")
def verilog():
    return (pathlib.Path(get_data_mod("cpu", "vexriscv").data_location)/f"{VARIANT}.v").read_text()


def test_the_size_that_it_has_changes_nothing(verilog):
    assert with_instruction_cache(verilog, WAS) == verilog


def test_nothing_but_the_instruction_cache_is_changed(verilog):
    larger = with_instruction_cache(verilog, 0x8000)
    begin, rest = verilog.split("module InstructionCache")
    assert larger.startswith(begin) and larger.endswith(rest[rest.index("endmodule"):])
    assert "reg [31:0] banks_0 [0:8191];" in larger and "reg [18:0] ways_0_tags [0:1023];" in larger
    assert with_instruction_cache(verilog, 2*WAS) != larger


def test_verilog_that_is_not_known_is_refused(verilog):
    at = verilog.index("module InstructionCache")
    for other in [verilog[:at], verilog[:at] + verilog[at:].replace("[31 : 12]", "[31:12]", 1)]:
        with pytest.raises(UnknownVerilog):
            with_instruction_cache(other, 0x8000)


def test_it_is_written_once(tmp_path):
    path   = write(VARIANT, 0x8000, tmp_path/"there")
    before = path.stat().st_mtime_ns
    assert write(VARIANT, 0x8000, tmp_path/"there") == path and path.stat().st_mtime_ns == before
