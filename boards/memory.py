"""Block RAM of a card by the size of the control program's SRAM, from the shapes of the memories.

Yosys measured the block RAM of a card with the smaller SRAM: hw/synthesis/boards.json has it for
the boards with PCIe, docs/synthesis.md for ECPIX-5. The larger SRAM adds blocks by the shapes
below, which no synthesis has confirmed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
from collections.abc import Iterator

from dibber.mcp.processor import SRAM_BYTES, SRAM_SCARCE, cache_bytes
from dibber.mcp.vexriscv import LINE

from boards.xilinx import sram_of

ROOT = pathlib.Path(__file__).resolve().parents[1]

# {words: bits} of one block RAM with two ports. AMD UG473, table 1-11 (RAMB36E1); Lattice
# FPGA-TN-02204, table 5.1 (DP16KD).
RAMB36 = {32768: 1, 16384: 2, 8192: 4, 4096: 9, 2048: 18, 1024: 36}
DP16KD = {16384: 1, 8192: 2, 4096: 4, 2048: 9, 1024: 18}

# Block RAMs of the LFE5UM5G-85F, and those that the design `card` takes with the smaller SRAM:
# docs/synthesis.md.
ECP5_85F, ECPIX5 = 208, 202


def blocks(words: int, bits: int, shapes: dict[int, int]) -> int:
    """The smallest number of block RAMs of these shapes for a memory."""
    return min(-(-words//deep)*-(-bits//wide) for deep, wide in shapes.items())


def program_memory(sram_bytes: int, data_width: int, shapes: dict[int, int]) -> int:
    """Block RAMs of the SRAM and of the instruction cache, its tags included, of a card with lines
    of `data_width` bits."""
    banks = data_width//32
    cache = cache_bytes(sram_bytes)
    lines = cache//LINE
    tag   = 32 - (cache - 1).bit_length() + 2    # of an address, and two flags
    return banks*blocks(sram_bytes//4//banks, 32, shapes) + blocks(cache//4, 32, shapes) + blocks(lines, tag, shapes)


def more(data_width: int, shapes: dict[int, int]) -> int:
    """Block RAMs of the larger SRAM minus those of the smaller one."""
    return program_memory(SRAM_BYTES, data_width, shapes) - program_memory(SRAM_SCARCE, data_width, shapes)


def rows() -> Iterator[tuple[str, str, float, float, int, int]]:
    """(design, part, block RAMs with the smaller SRAM, with the larger one, of the part, bytes of
    SRAM of the design) of each that was measured.
    """
    import xilinx as synthesis    # hw/synthesis
    kept = json.loads(synthesis.KEPT.read_text())
    for name, (*_, bits, parts) in synthesis.DESIGNS.items():
        if name not in kept:
            continue
        small = kept[name]["used"]["ramb36"] + kept[name]["pcie_block"]["ramb36"]
        for part in parts:
            yield name, part, small, small + more(bits, RAMB36), synthesis.PARTS[part]["ramb36"], sram_of(part.lower())
    yield "ecpix5", "LFE5UM5G-85F", ECPIX5, ECPIX5 + more(64, DP16KD), ECP5_85F, SRAM_SCARCE


def table() -> str:
    """Markdown: a row for each design and part."""
    small, large = SRAM_SCARCE >> 10, SRAM_BYTES >> 10
    lines = [f"| design | part | block RAMs with {small} KiB | with {large} KiB | it has |", "|---|---|---|---|---|"]
    for name, part, less, much, there, sram in rows():
        share = lambda count: f"{count:g} of {there}, {100*count/there:.1f} %"
        lines.append(f"| `{name}` | {part} | {share(less)} | {share(much)} | {sram >> 10} KiB |")
    return "\n".join(lines) + "\n"
