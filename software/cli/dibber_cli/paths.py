# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the parts of this tree are."""

import os
import tempfile

from pathlib import Path

ROOT     = Path(__file__).resolve().parents[3]
BUILD    = ROOT/"build"
PROFILES = ROOT/"hw"/"sim"/"profiles"
FIRMWARE = BUILD/"firmware"/"mcp.dibfw"


# Of the simulated cards' control program, bytes: boards/sim.py.
SIMULATED_SRAM = 128*1024


def elf(sram_bytes=SIMULATED_SRAM):
    """The control program for cards with so much SRAM, with its symbols."""
    return FIRMWARE.parent/f"{sram_bytes >> 10}k"/"mcp.elf"


def simulator(profile):
    """The simulator for a profile: hw/sim/build.py makes one for each data width and clock."""
    clock = "" if profile.clock_hz == 125e6 else f"-{profile.clock_hz/1e6:g}"
    return BUILD/"sim"/f"dibber-sim-{profile.data_width}{clock}"


def run_directory():
    """Sockets, log and process number of the simulator that `dibber sim start` runs. Short, for sockets' sake."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base)/f"dibber-{os.getuid()}"
