"""The translator's cache: facts about an address's line that were found a cycle before still hold.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.deposit import pages
from dibber.layouts import piece_layout

from harness import Harness, Mutant, Property, implies, inner


class Foreseen(Harness):
    """Any addresses, any answers, any pace of both, any entries of the directory."""
    def __init__(self):
        super().__init__()
        self.block = block = pages.Translator(piece_layout(), 64, lines=4, depth=4, tags=2, timeout=6, quarantine=30)
        self.free_all("piece", block.sink)
        self.free_all("answer", block.completions)
        self.comb += [
            block.source.ready.eq(self.free("ready")),
            block.reads.ready.eq(self.free("read")),
            block.extended_tags.eq(self.free("extended")),
            *[getattr(block.directory, name).eq(self.free(f"directory_{name}", bits)) for name, bits in pages.directory_layout()],
        ]
        asked, index = inner(block, "asked"), inner(block, "index")
        for name, of_line, of_asked in ("known", "has_name", "line_known"), ("in_use", "in_use", "line_used"):
            foreseen = inner(block, of_asked)
            self.prove(name, implies(asked.valid, foreseen == (inner(block, of_line) >> index)[0]))


PAGES = "dibber.deposit.pages"

PROPERTIES = [
    Property("pages-foreseen", "deposit/pages", "that a line has a name, or users, is known when an address asks for it",
        "4 lines, 2 tags", "Foreseen", k=1, mutants=[
            Mutant("who follows does not hear of it", PAGES, "| (pool.source.ready & same_line))", ")", depth=40),
            Mutant("users do not leave", PAGES, "line_used.eq(line_used & ~frees(index))", "line_used.eq(line_used)", depth=40),
    ]),
]
