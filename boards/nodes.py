"""What a card for 64 nodes costs more than one for 16, from Migen's own form of the core: before any
synthesis, and without multiplexers of deeper tables and the logic at wider registers.

A table by node answers in the same cycle, so it is LUT memory, and each of its readers has a copy.
An ECP5 makes 16 words of 4 bits in three slices, six LUT4 (TRELLIS_DPR16X4: docs/synthesis.md). A 7-series
FPGA makes 32 words of 6 bits, or 64 words of 3, of four LUT6 (RAM32M, RAM64M: AMD UG474).

The number of nodes is one for all of a process. So each count runs in a process of its own.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from dibber.interface.description import C
from dibber.interface.sizes import NODES_CHOICES
from dibber.mcp.processor import SRAM_SCARCE

SHALLOW = C.LANES*NODES_CHOICES[-1]    # words of the deepest table by flow

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Shapes -------------------------------------------------------------------------------------------

def luts_ecp5(words: int, bits: int) -> int:
    """LUT4 of one copy of a table."""
    return 6*-(-words//16)*-(-bits//4)


def luts_7_series(words: int, bits: int) -> int:
    """LUT6 of one copy of a table."""
    return 4*-(-bits//6) if words <= 32 else 4*-(-words//64)*-(-bits//3)


# Count --------------------------------------------------------------------------------------------

def count(data_width: int) -> dict[str, int]:
    """Bits of the memories of SHALLOW words and less of the simulated card, which has the core of all
    boards; their LUTs; and bits of its registers. Of this process's number of nodes.
    """
    from boards.sim import SimCard, SourceList
    from migen import Memory
    from migen.fhdl.tools import list_targets

    with tempfile.TemporaryDirectory() as folder:
        fragment = SimCard(SourceList(folder), data_width, 125e6).get_fragment()
    tables = [one for one in fragment.specials
        if isinstance(one, Memory) and one.depth <= SHALLOW]
    copies = lambda table: max(1, sum(port.we is None for port in table.ports))
    return {
        "bits":      sum(table.width*table.depth for table in tables),
        "lut4":      sum(luts_ecp5(table.depth, table.width)*copies(table) for table in tables),
        "lut6":      sum(luts_7_series(table.depth, table.width)*copies(table) for table in tables),
        "registers": sum(len(signal) for group in fragment.sync.values() for signal in list_targets(group)),
    }


def counted(nodes: int, data_width: int) -> dict[str, int]:
    """As count(), of any number of nodes."""
    done = subprocess.run([sys.executable, "-P", "-m", "boards.nodes", str(data_width)],
        env=os.environ | {"DIBBER_NODES": str(nodes)}, cwd=ROOT, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


# Table --------------------------------------------------------------------------------------------

def designs() -> list[tuple[str, str, int, int]]:
    """(design, part, data width, bytes of SRAM) of each design with a core and one link."""
    import xilinx as synthesis    # hw/synthesis
    from boards.xilinx import sram_of
    found = [(name, part, bits, sram_of(part.lower()))
        for name, (*_, fabric, _, bits, parts) in synthesis.DESIGNS.items() if fabric == "direct" for part in parts]
    return [*found, ("ecpix5", "LFE5UM5G-85F", 64, SRAM_SCARCE)]


def table() -> str:
    """Markdown: a row for each design and part."""
    few, many = NODES_CHOICES
    core = {bits: [counted(nodes, bits) for nodes in (few, many)] for bits in (64, 128)}
    lines = ["| design | part | bits of LUT memory | LUTs of it | registers | control program |",
        "|---|---|---|---|---|---|"]
    for name, part, bits, sram in designs():
        one, other = core[bits]
        lut = "lut4" if part.startswith("LFE5") else "lut6"
        more = lambda what: f"{one[what]:,} + {other[what] - one[what]:,}"
        fits = f"{sram >> 10} KiB" + (": no image" if sram == SRAM_SCARCE else "")
        lines.append(f"| `{name}` | {part} | {more('bits')} | {more(lut)} | {more('registers')} | {fits} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT/"gateware")]
    print(json.dumps(count(int(sys.argv[1]))))
