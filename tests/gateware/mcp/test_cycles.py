"""What firmware/bounds.py takes an instruction to cost, against the processor with its memories."""

# SPDX-License-Identifier: BSD-2-Clause

import sys

from dibber.interface.description import C

from tests.gateware.mcp.card import ROOT, Session, compile_probe, register

sys.path.insert(0, str(ROOT / "firmware"))

import bounds

TIMES = 32
RESULTS = 0x8000
COST = bounds.CYCLES

# Rows of cycles.c: what each has 32 times.
ROWS = {
    "loads that miss": 2 * (COST["load"] + COST["other"]),
    "loads of registers": COST["load"] + COST["other"],
    "loads of slots": COST["load"] + COST["other"],
    "stores": COST["store"],
    "stores to registers": COST["store"],
    "branches": COST["jump"] + COST["other"],
    "calls, returns, jumps": 3 * COST["jump"],
    "divisions": COST["divide"],
    "multiplications": COST["multiply"],
    "shifts": 2 * COST["other"],
    "counters": COST["csr"] + COST["other"],
    "stores before loads": COST["store"] + 2 * (COST["load"] + COST["other"]),
}


def test_no_instruction_costs_more_than_the_bounds_say(card, tmp_path, figure):
    s = Session()
    s.start(compile_probe(tmp_path, "cycles.c"))
    s.wait(120_000)
    s.read("identity", register("MCP_IDENTITY"))
    for n in range(len(ROWS)):
        s.read(n, C.FIRMWARE_BASE + RESULTS + 4 * n)
    got = s.run(card)
    assert got["identity"] == 0x600D600D
    took = {name: got[n] / TIMES for n, name in enumerate(ROWS)}
    assert all(cycles >= 0.9 for cycles in took.values())
    assert {name: cycles for name, cycles in took.items() if cycles > ROWS[name]} == {}, took
    figure(
        "mcp-load-cycles",
        round(took["loads that miss"] / 2, 1),
        "cycles of a load that misses the data cache and its use",
    )
