# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The command line of a board: build, load, flash, in LiteX's words."""

import argparse
import pathlib
import subprocess

import bitstream

from boards.bridged import BridgedCard
from boards.linktest import LinkTester

DESIGNS = {"card": BridgedCard, "link": LinkTester}

# How openFPGALoader reaches a board.
LOADER  = {"ecpix5": ["--board", "ecpix5"], "versa_ecp5": ["--cable", "ft2232"]}
OPENOCD = pathlib.Path(__file__).resolve().parents[1]/"hw"/"openocd"


def load(board, files):
    """Into the FPGA, until the power goes: OpenOCD replays the SVF."""
    subprocess.run(["openocd", "-f", OPENOCD/f"{board}.cfg", "-c",
        f"init; check_part; svf -quiet {files}.svf; exit"], check=True)


def flash(board, files):
    """Into the board's flash: openFPGALoader knows the way to it."""
    subprocess.run(["openFPGALoader", *LOADER[board], "--write-flash", "--verify", f"{files}.bit"], check=True)


def main(board, platform, make, sys_clk_freq):
    """`platform()` gives the board's LiteX platform, `make(platform, design, sys_clk_freq)` what goes on it."""
    parser = argparse.ArgumentParser(description=f"Bitstreams for {board}.")
    parser.add_argument("--design", choices=DESIGNS, default="card", help="the whole card, or only its link (default card)")
    parser.add_argument("--sys-clk-freq", type=float, default=sys_clk_freq, help="Hz (default %(default)g)")
    parser.add_argument("--seed",  type=int, default=1, help="nextpnr's placement seed (default 1)")
    parser.add_argument("--build", action="store_true", help="make it in out/bitstream/")
    parser.add_argument("--gate",  action="store_true", help="and compare it with the figures that are kept")
    parser.add_argument("--load",  action="store_true", help="load it into the FPGA with OpenOCD")
    parser.add_argument("--flash", action="store_true", help="write it to the board's flash with openFPGALoader")
    args = parser.parse_args()
    if not (args.build or args.load or args.flash):
        parser.error("nothing to do: --build, --load or --flash")
    name = board if args.design == "card" else f"{board}_{args.design}"
    if args.build:
        design = platform()
        bitstream.build(name, design, make(design, DESIGNS[args.design], args.sys_clk_freq), args.seed, args.gate)
    files = bitstream.OUT/name/f"dibber_{name}"
    if args.load:
        load(board, files)
    if args.flash:
        flash(board, files)
