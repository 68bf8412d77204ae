# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Whose a cell is: by its name, and a memory's by who addresses it."""

import sizes

VERILOG = """
reg [7:0] storage[0:3];
reg [7:0] storage_1[0:3];
	storage[send_fifo_wrport_adr] <= send_fifo_wrport_dat_w;
	storage_1_dat0 <= storage_1[host_wrport_adr];
assign lander_dat_r = table_2[table_2_adr0];
reg [7:0] table_2[0:63];
	table_2[lander_pages_adr] <= 0;
"""

CELLS = {
    "send_walker_address_LUT4_Z_1":               "LUT4",
    "send_walker_address_TRELLIS_FF_Q":           "TRELLIS_FF",
    "send_fifo_level_CCU2C_S0":                   "CCU2C",
    "storage.0.0":                                "TRELLIS_DPR16X4",
    "storage_1.0.0":                              "DP16KD",
    "storage_1_dat0_LUT4_Z":                      "LUT4",
    "table_2.0.3":                                "TRELLIS_DPR16X4",
    "VexRiscv.IBusCachedPlugin_fetchPc_LUT4_Z":   "LUT4",
}


def counted(depth):
    module = {"cells": {name: {"type": kind} for name, kind in CELLS.items()}}
    return {name: dict(cells) for name, cells in sizes.count(module, sizes.memories(VERILOG), depth).items()}


def test_a_cell_is_its_blocks_and_a_memory_whose_addresses_it_has():
    assert counted(1) == {
        "send":     {"LUT4": 1, "TRELLIS_FF": 1, "CCU2C": 1, "TRELLIS_DPR16X4": 1},
        "host":     {"DP16KD": 1, "LUT4": 1},
        "lander":   {"TRELLIS_DPR16X4": 1},
        "VexRiscv": {"LUT4": 1},
    }


def test_depth_tells_the_parts_of_a_block_apart():
    assert counted(2).keys() == {"send_walker", "send_fifo", "host_wrport", "lander_pages", "VexRiscv"}


def test_the_table_adds_up(monkeypatch):
    monkeypatch.setattr(sizes, "SMALLEST", 2)
    module = {"cells": {name: {"type": kind} for name, kind in CELLS.items()}}
    *rows, last = list(sizes.table(sizes.count(module, sizes.memories(VERILOG), 1)))[1:]
    columns = [list(map(int, line[40:].split())) for line in rows]
    assert list(map(int, last[40:].split())) == [sum(column) for column in zip(*columns)] == [17, 2, 12, 1, 1, 0]
