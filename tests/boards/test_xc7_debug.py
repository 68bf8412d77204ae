"""OpenOCD looks for the debug module behind a model of a 7-series part's JTAG port, by the PCIe
boards' configurations.
"""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess

import pytest
from dibber.debug.transport import ADDRESS_BITS
from dibber_cli.flash.board import FOLDER as OPENOCD

from tests.boards.tap import UPDATE_DR, XC7TAP, Bitbang

# Instructions of BSCANE2's chains 3 and 4: UG470, table 6-3.
USER3, USER4 = 0x22, 0x23

IDCODE = 0x13651093
BOARDS = ["acorn_cle-101", "acorn_cle-215", "kc705", "kcu105", "stlv7325", "vc707"]

# Of the debug module: its control register, and the bit that wakes it.
DMCONTROL, DMACTIVE = 0x10, 1


class DebugTAP(XC7TAP):
    """USER3 is a DTMCS, USER4 a DMI whose registers all read 0. `writes` are those of OpenOCD:
    (address, data).
    """

    def __init__(self):
        super().__init__(IDCODE)
        self.writes = []

    def captured(self):
        dtmcs = 1 << 12 | ADDRESS_BITS << 4 | 1
        return {USER3: (dtmcs, 32), USER4: (0, ADDRESS_BITS + 34)}.get(
            self.instruction
        ) or super().captured()

    def step(self, tms, tdi):
        if self.state == UPDATE_DR and self.instruction == USER4 and self.register & 3 == 2:
            self.writes.append((self.register >> 34, self.register >> 2 & 0xFFFFFFFF))
        super().step(tms, tdi)


def test_openocd_scans_the_transport_s_registers_by_user3_and_user4():
    tap = DebugTAP()
    server = Bitbang(tap)
    server.start()
    result = subprocess.run(
        [
            "openocd",
            "-c",
            f"adapter driver remote_bitbang; remote_bitbang host localhost;"
            f" remote_bitbang port {server.port}; set PART 0x{IDCODE:08x}",
            "-f",
            OPENOCD / "xc7.cfg",
            "-f",
            OPENOCD / "xilinx_debug.cfg",
            "-c",
            "gdb_port disabled; telnet_port disabled; tcl_port disabled; init; exit",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    server.join(600)
    assert {USER3, USER4} <= set(tap.instructions), result.stderr
    assert DMCONTROL in [address for address, data in tap.writes if data & DMACTIVE], result.stderr


@pytest.mark.parametrize("board", BOARDS)
def test_the_debugger_s_configuration_goes_behind_each_board_s(board):
    result = subprocess.run(
        [
            "openocd",
            "-f",
            OPENOCD / f"{board}.cfg",
            "-f",
            OPENOCD / "xilinx_debug.cfg",
            "-c",
            'echo "[mcp cget -chain-position] [target names]"; shutdown',
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert "xc7.tap mcp" in result.stderr
