"""The block of a cell, by its name; for a memory, by the block that addresses it."""

# SPDX-License-Identifier: BSD-2-Clause

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
    "send_walker_address_LUT4_Z_1": "LUT4",
    "send_walker_address_TRELLIS_FF_Q": "TRELLIS_FF",
    "send_fifo_level_CCU2C_S0": "CCU2C",
    "storage.0.0": "TRELLIS_DPR16X4",
    "storage_1.0.0": "DP16KD",
    "storage_1_dat0_LUT4_Z": "LUT4",
    "table_2.0.3": "TRELLIS_DPR16X4",
    "VexRiscv.IBusCachedPlugin_fetchPc_LUT4_Z": "LUT4",
}


MODULE = {
    "netnames": {},
    "cells": {name: {"type": kind, "connections": {}} for name, kind in CELLS.items()},
}


def counted(depth):
    return {
        name: dict(cells)
        for name, cells in sizes.count(MODULE, sizes.memories(VERILOG), depth).items()
    }


def test_a_cell_is_its_blocks_and_a_memory_whose_addresses_it_has():
    assert counted(1) == {
        "send": {"LUT4": 1, "TRELLIS_FF": 1, "CCU2C": 1, "TRELLIS_DPR16X4": 1},
        "host": {"DP16KD": 1, "LUT4": 1},
        "lander": {"TRELLIS_DPR16X4": 1},
        "VexRiscv": {"LUT4": 1},
    }


def test_depth_tells_the_parts_of_a_block_apart():
    assert counted(2).keys() == {
        "send_walker",
        "send_fifo",
        "host_wrport",
        "lander_pages",
        "VexRiscv",
    }


def test_the_table_adds_up(monkeypatch):
    monkeypatch.setattr(sizes, "SMALLEST", 2)
    *rows, last = list(sizes.table(sizes.count(MODULE, sizes.memories(VERILOG), 1)))[1:]
    columns = [list(map(int, line[40:].split())) for line in rows]
    assert (
        list(map(int, last[40:].split()))
        == [sum(column) for column in zip(*columns)]
        == [17, 2, 12, 1, 1, 0]
    )


def cell(kind, inputs, output):
    return {
        "type": kind,
        "connections": {"I": inputs, "O": [output]},
        "port_directions": {"I": "input", "O": "output"},
    }


def test_a_cell_without_a_name_is_called_by_what_it_drives_or_like_what_reads_it():
    module = {
        "netnames": {
            "send_rest": {"bits": [9]},
            "send_rest_of_the_list": {"bits": [9]},
            "host_level": {"bits": [8]},
            "$abc$1": {"bits": [5, 6, 7], "hide_name": 1},
        },
        "cells": {
            "$ff$1": cell("FDRE", [7], 9),
            "$lut$7": cell("LUT6", [6, "0"], 7),
            "$lut$6": cell("LUT2", [5, 9], 6),
            "$ff$2": cell("FDRE", [9], 8),
            "$lut$4": cell("LUT3", [9], 4),
            "block_x.0.0": cell("RAMB18E1", [8], 5),
        },
    }
    counts = sizes.count(module, {"block_x": "host_wrport_adr"}, 1)
    assert counts == {
        "send": {"FDRE": 1, "LUT6": 1, "LUT2": 1},
        "host": {"FDRE": 1, "RAMB18E1": 1},
        "unnamed": {"LUT3": 1},
    }
    rows = {line[:40].strip(): line[40:].split() for line in sizes.table(counts)}
    assert rows["block"] == ["LUT6", "in", "carry", "in", "RAM", "FF", "BRAM36", "DSP48"]
    assert rows["host"] == ["0", "0", "0", "1", "0.5", "0"] and rows["all"] == [
        "3",
        "0",
        "0",
        "2",
        "0.5",
        "0",
    ]
