"""The translator's cache: what was found out a cycle before about an address' line is so."""

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
        for name in ("known", "in_use"):
            foreseen = inner(block, {"known": "asked_known", "in_use": "asked_used"}[name])
            self.prove(name, implies(asked.valid, foreseen == (inner(block, name) >> index)[0]))


PAGES = "dibber.deposit.pages"

PROPERTIES = [
    Property("pages-foreseen", "deposit/pages", "that a line has a name, or users, is known when an address asks for it",
        "4 lines, 2 tags", "Foreseen", k=1, mutants=[
            Mutant("who follows does not hear of it", PAGES, "| (pool.source.ready & follows))", ")", depth=40),
            Mutant("users do not leave", PAGES, "asked_used.eq(asked_used & ~frees(index))", "asked_used.eq(asked_used)", depth=40),
    ]),
]
