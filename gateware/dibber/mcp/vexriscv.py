# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""VexRiscv's Verilog with an instruction cache of another size.

The package has the processor as SpinalHDL wrote it, for 4 KiB. A program of 32 KiB runs there from the memory behind: code that
was not just used takes 20 cycles for each 8 instructions. The size is in nothing but the widths of the module InstructionCache.
"""

import pathlib
import re

from litex import get_data_mod

WAS  = 4096  # bytes, of the package's Verilog
LINE = 32

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
    """The text of VexRiscv with an instruction cache of `size` bytes, a power of two. Raises UnknownVerilog."""
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

def write(variant, size, directory):
    """Write the Verilog of a LiteX variant's processor with such a cache into a directory; its path."""
    source = pathlib.Path(get_data_mod("cpu", "vexriscv").data_location)/f"{variant}.v"
    target = pathlib.Path(directory).resolve()/f"{variant}_{size//1024}k.v"
    text   = with_instruction_cache(source.read_text(), size)
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return target
