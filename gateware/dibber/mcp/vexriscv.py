"""VexRiscv's Verilog with an instruction cache of another size, a stall that is known early, and an
address of data as well.

The package has the processor as SpinalHDL wrote it, for 4 KiB. A program of 32 KiB runs there from
the memory behind: code that was not just used takes 20 cycles for each 8 instructions. The size is
in nothing but the widths of the module InstructionCache.

The longest paths of the processor begin where a load or a store halts the last stage, which halts
all before it, and where a load has to be done again, which is a jump. `with_early_stall` has what
can halt it, or make it jump so, in registers of its own, written a cycle before; what the processor
does in which cycle stays the same (tests/gateware/mcp/test_vexriscv.py).

What is at an address takes some LUTs to find out, and all that the processor does with the card
waits for it. `with_early_address` shows what the register of the address on the data bus takes, so
that what is there can be a register, too.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re

from litex import get_data_mod

from dibber.common.sram import LINE

WAS = 4096  # bytes, of the package's Verilog

class UnknownVerilog(Exception):
    """The package's Verilog is not what is known here."""

def widths(size):
    """{name: text} of all that depends on the size in bytes of a cache with one way."""
    bits = (size//LINE - 1).bit_length()  # of a line's number
    tag  = 32 - 5 - bits
    return {
        "a word's number":        f"[{bits + 2}:0]",
        "a line's number":        f"[{bits - 1}:0]",
        "where a word is":        f"[{bits + 4} : 2]",
        "where a line is":        f"[{bits + 4} : 5]",
        "the rest of an address": f"[31 : {bits + 5}]",
        "that, kept":             f"[{tag - 1}:0]",
        "with two flags":         f"[{tag + 1}:0]",
        "without them":           f"[{tag + 1} : 2]",
        "words":                  f"[0:{size//4 - 1}]",
        "lines":                  f"[0:{size//LINE - 1}]",
        "lines that are emptied": f"[{bits}:0]",
        "one of these":           f"[{bits - 1} : 0]",
        "all are empty":          f"[{bits}]",
        "the first":              f"{bits + 1}'h0;",
        "the next":               f"{bits + 1}'h01)",
    }

# How often each stands in the module.
PLACES = dict(zip(widths(WAS), [2, 2, 1, 3, 2, 2, 4, 1, 1, 1, 1, 1, 5, 1, 1]))

def with_instruction_cache(verilog, size):
    """The text of VexRiscv with an instruction cache of `size` bytes, a power of two. Raises
    UnknownVerilog.
    """
    assert size & (size - 1) == 0 and size > LINE
    found = re.search(r"^module InstructionCache \(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    if not found:
        raise UnknownVerilog("no module InstructionCache")
    old, new, module = widths(WAS), widths(size), found.group()
    for name, text in old.items():
        if (count := module.count(text)) != PLACES[name]:
            raise UnknownVerilog(f"{count} times {text} ({name}) in InstructionCache, not {PLACES[name]}")
    # All at once: some of the new texts are others' old ones.
    texts  = {text: new[name] for name, text in old.items()}
    module = re.sub("|".join(map(re.escape, texts)), lambda match: texts[match.group()], module)
    return verilog[:found.start()] + module + verilog[found.end():]

def with_changes(verilog, changes):
    """`verilog` with each (old, new) replaced, which stands there once. Raises UnknownVerilog."""
    for old, new in changes:
        if (count := verilog.count(old)) != 1:
            raise UnknownVerilog(f"{count} times instead of once: {old}")
        verilog = verilog.replace(old, new)
    return verilog

# Early Stall --------------------------------------------------------------------------------------

# Where the data cache's last stage finds out from its registers whether the processor has to wait.
HALT = """\
    io_cpu_writeBack_haltIt = 1'b1;
    if(io_cpu_writeBack_isValid) begin
      if(!stageB_isExternalAmo) begin
        if(when_DataCache_l976) begin
          if(when_DataCache_l980) begin
            io_cpu_writeBack_haltIt = 1'b0;
          end
        end else begin
          if(when_DataCache_l989) begin
            if(when_DataCache_l994) begin
              io_cpu_writeBack_haltIt = 1'b0;
            end
          end
        end
      end
    end
    if(when_DataCache_l1051) begin
      io_cpu_writeBack_haltIt = 1'b0;
    end
"""

# Where it finds out whether a load has to be done again: a line that it needs begins to come, or
# what it read was being written.
REDO = """\
    io_cpu_redo = 1'b0;
    if(io_cpu_writeBack_isValid) begin
      if(!stageB_isExternalAmo) begin
        if(!when_DataCache_l976) begin
          if(when_DataCache_l989) begin
            if(when_DataCache_l1005) begin
              io_cpu_redo = 1'b1;
            end
          end
        end
      end
    end
    if(when_DataCache_l1060) begin
      io_cpu_redo = 1'b1;
    end
    if(when_DataCache_l1107) begin
      io_cpu_redo = 1'b1;
    end
"""

# What is there, and in its place. Each stands once. No bus of this processor has errors, so no line
# of a cache is marked as one.
EARLY = [
    (HALT, """\
    io_cpu_writeBack_haltIt = (stageB_missing || (stageB_storing && (! io_mem_cmd_ready))) || (stageB_asking && (! io_mem_rsp_valid));
    io_cpu_front_haltIt = ((! stageB_hitting) || ((! stageB_unstoring) && (! io_mem_cmd_ready))) || ((! stageB_unasking) && (! io_mem_rsp_valid));
"""),
    (REDO, """\
    io_cpu_redo = (stageB_colliding || when_DataCache_l1107);
"""),
    ("""\
    if(when_DBusCachedPlugin_l438) begin
      if(dataCache_1_io_cpu_redo) begin
        DBusCachedPlugin_redoBranch_valid = 1'b1;
      end
    end
""", """\
    DBusCachedPlugin_redoBranch_valid = dataCache_1_io_cpu_redo;
"""),
    ("""\
  reg                 stageB_request_totalyConsistent;
""", """\
  reg                 stageB_request_totalyConsistent;
  reg                 stageB_storing;
  reg                 stageB_asking;
  reg                 stageB_missing;
  reg                 stageB_unstoring;
  reg                 stageB_unasking;
  reg                 stageB_hitting;
  reg                 stageB_colliding;
  wire                stageA_colliding;
  wire                stageA_storing;
  wire                stageA_asking;
  wire                stageA_missing;
  wire                stageA_unaligned;
  wire                stageA_moving;
"""),
    ("""\
  assign stageB_isAmo = 1'b0;
""", """\
  assign stageB_isAmo = 1'b0;
  assign stageA_unaligned = ({((stageA_request_size == 2'b10) && (io_cpu_memory_address[1 : 0] != 2'b00)),((stageA_request_size == 2'b01) && (io_cpu_memory_address[0 : 0] != 1'b0))} != 2'b00);
  assign stageA_moving = (((io_cpu_memory_isValid && (! io_cpu_memory_isStuck)) && (! io_cpu_memory_isRemoved)) && (! stageA_unaligned));
  assign stageA_storing = (stageA_moving && stageA_request_wr);
  assign stageA_asking = ((stageA_moving && (! stageA_request_wr)) && io_cpu_memory_mmuRsp_isIoAccess);
  assign stageA_missing = (((stageA_moving && (! stageA_request_wr)) && (! io_cpu_memory_mmuRsp_isIoAccess)) && (! stageA_wayHits[0]));
  assign stageA_colliding = (((((io_cpu_memory_isValid && (! io_cpu_memory_isStuck)) && (! io_cpu_memory_isRemoved)) && (! stageA_request_wr)) && (! io_cpu_memory_mmuRsp_isIoAccess)) && (stageA_dataColisions[0] && stageA_wayHits[0]));
  always @(posedge clk) begin
    if(reset) begin
      stageB_storing <= 1'b0;
      stageB_asking <= 1'b0;
      stageB_missing <= 1'b0;
      stageB_unstoring <= 1'b1;
      stageB_unasking <= 1'b1;
      stageB_hitting <= 1'b1;
      stageB_colliding <= 1'b0;
    end else begin
      if(((! io_cpu_writeBack_isStuck) || io_cpu_writeBack_isRemoved)) begin
        stageB_storing <= stageA_storing;
        stageB_asking <= stageA_asking;
        stageB_missing <= stageA_missing;
        stageB_unstoring <= (! stageA_storing);
        stageB_unasking <= (! stageA_asking);
        stageB_hitting <= (! stageA_missing);
        stageB_colliding <= stageA_colliding;
      end
    end
  end
"""),
    ("  input               io_cpu_writeBack_isStuck,\n", """\
  input               io_cpu_writeBack_isStuck,
  output reg          io_cpu_front_haltIt,
  input               io_cpu_memory_isRemoved,
  input               io_cpu_writeBack_isRemoved,
"""),
    ("    .io_cpu_writeBack_isStuck                  (writeBack_arbitration_isStuck                  ), //i\n", """\
    .io_cpu_writeBack_isStuck                  (writeBack_arbitration_isStuck                  ), //i
    .io_cpu_front_haltIt                       (writeBack_haltsFront                           ), //o
    .io_cpu_memory_isRemoved                   (memory_arbitration_removeIt                    ), //i
    .io_cpu_writeBack_isRemoved                (writeBack_arbitration_removeIt                 ), //i
"""),
    ("when_DBusCachedPlugin_l458 = (dataCache_1_io_cpu_writeBack_isValid && dataCache_1_io_cpu_writeBack_haltIt)",
     "when_DBusCachedPlugin_l458 = dataCache_1_io_cpu_writeBack_haltIt"),
    # A trap's interrupt needs no look at the exception beside it. Who jumps latest in the pipeline
    # goes first, and is chosen last.
    ("when_CsrPlugin_l1019 = (CsrPlugin_hadException || CsrPlugin_interruptJump)",
     "when_CsrPlugin_l1019 = (CsrPlugin_hadException || ((CsrPlugin_interrupt_valid && CsrPlugin_allowInterrupts) && (CsrPlugin_pipelineLiberator_pcValids_2 && (! when_CsrPlugin_l991))))"),
    ("""\
    if(IBusCachedPlugin_jump_pcLoad_valid) begin
      IBusCachedPlugin_fetchPc_pc = IBusCachedPlugin_jump_pcLoad_payload;
    end
""", """\
    if(IBusCachedPlugin_predictionJumpInterface_valid) begin
      IBusCachedPlugin_fetchPc_pc = IBusCachedPlugin_predictionJumpInterface_payload;
    end
    if(BranchPlugin_jumpInterface_valid) begin
      IBusCachedPlugin_fetchPc_pc = BranchPlugin_jumpInterface_payload;
    end
    if(((when_CsrPlugin_l1019 || when_CsrPlugin_l1064) || DBusCachedPlugin_redoBranch_valid)) begin
      IBusCachedPlugin_fetchPc_pc = (DBusCachedPlugin_redoBranch_valid ? DBusCachedPlugin_redoBranch_payload : CsrPlugin_jumpInterface_payload);
    end
"""),
    ("""\
    memory_arbitration_haltItself = 1'b0;
    if(when_MulDivIterativePlugin_l128) begin
      if(when_MulDivIterativePlugin_l129) begin
        memory_arbitration_haltItself = 1'b1;
      end
    end
""", """\
    memory_arbitration_haltItself = memory_dividing;
"""),
    ("""\
  reg                 memory_DivPlugin_div_done;
""", """\
  reg                 memory_DivPlugin_div_done;
  reg                 memory_dividing;
  reg                 memory_undividing;
  wire                writeBack_haltsFront;
"""),
    ("""\
  assign decode_arbitration_isStuckByOthers = (decode_arbitration_haltByOther || (((1'b0 || execute_arbitration_isStuck) || memory_arbitration_isStuck) || writeBack_arbitration_isStuck));
""", """\
  assign decode_arbitration_isStuckByOthers = (decode_arbitration_haltByOther || ((execute_arbitration_haltItself || execute_arbitration_haltByOther) || ((! memory_undividing) || writeBack_haltsFront)));
  always @(posedge clk) begin
    if(reset) begin
      memory_dividing <= 1'b0;
      memory_undividing <= 1'b1;
    end else begin
      if(when_Pipeline_l154_1) begin
        memory_dividing <= (execute_arbitration_isValid && execute_IS_DIV);
        memory_undividing <= (! (execute_arbitration_isValid && execute_IS_DIV));
      end else begin
        if((when_Pipeline_l151_1 || when_MulDivIterativePlugin_l126)) begin
          memory_dividing <= 1'b0;
          memory_undividing <= 1'b1;
        end
      end
    end
  end
"""),
    ("ways_0_tagsReadRsp_error = _zz_ways_0_tagsReadRsp_valid_1[1]", "ways_0_tagsReadRsp_error = 1'b0"),
    ("fetchStage_read_waysValues_0_tag_error = _zz_fetchStage_read_waysValues_0_tag_valid_2[1]", "fetchStage_read_waysValues_0_tag_error = 1'b0"),
]

def with_early_stall(verilog):
    """The text of VexRiscv whose last stage is halted by registers. Raises UnknownVerilog."""
    return with_changes(verilog, EARLY)

# Early Address ------------------------------------------------------------------------------------

SHOWN = [
    ("  output     [29:0]   dBusWishbone_ADR,\n", """\
  output     [29:0]   dBusWishbone_ADR,
  output     [29:0]   dBusWishbone_ADR_next,
  output              dBusWishbone_ADR_taken,
"""),
    ("  assign dBusWishbone_BTE = 2'b00;\n", """\
  assign dBusWishbone_BTE = 2'b00;
  assign dBusWishbone_ADR_next = dataCache_1_io_mem_cmd_s2mPipe_payload_address[31 : 2];
  assign dBusWishbone_ADR_taken = dataCache_1_io_mem_cmd_s2mPipe_ready;
"""),
]

def with_early_address(verilog):
    """The text of VexRiscv with two outputs more: in a cycle with `dBusWishbone_ADR_taken` the
    address on the data bus becomes
    `dBusWishbone_ADR_next`, but for its lowest three bits, which count in a burst. Raises
    UnknownVerilog."""
    return with_changes(verilog, SHOWN)

# File ---------------------------------------------------------------------------------------------

def write(variant, size, directory):
    """Write the Verilog of a LiteX variant's processor with such a cache into a directory; its
    path.
    """
    source = pathlib.Path(get_data_mod("cpu", "vexriscv").data_location)/f"{variant}.v"
    target = pathlib.Path(directory).resolve()/f"{variant}_{size//1024}k.v"
    text   = with_early_address(with_early_stall(with_instruction_cache(source.read_text(), size)))
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return target
