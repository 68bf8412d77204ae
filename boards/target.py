"""The command line of a board: build, load, flash, with LiteX's options."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import bitstream

from dibber_cli.errors import CommandError
from dibber_cli.flash import board as boards, manifest, tools

from boards.bridged import BridgedCard
from boards.linktest import LinkTester, RingTester
from dibber.common.elaboration import elaborate_quickly

DESIGNS = {"card": BridgedCard, "link": LinkTester, "ring": RingTester}

# Load and Flash -----------------------------------------------------------------------------------

def deliver(board: boards.Board, file: pathlib.Path, args: argparse.Namespace, golden: pathlib.Path | None = None) -> None:
    """Do the work of --load, --flash and --golden with a .bit file beside its manifest. Ends the
    program if a check fails.

    golden : file of the golden image, if not every image can be it
    """
    try:
        if args.load:
            image = file.with_suffix(".svf") if board.family == "ecp5" else file
            manifest.check(image, board)
            tools.load(board, image)
        if args.flash:
            image = golden if args.golden and golden else file
            manifest.check(image, board)
            tools.flash(board, image, args.golden)
    except CommandError as error:
        sys.exit(f"{error}\n{error.advice}".strip())


def add_delivery(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--load",   action="store_true", help="load it into the FPGA with OpenOCD")
    parser.add_argument("--flash",  action="store_true", help="write it to the board's flash with openFPGALoader")
    parser.add_argument("--golden", action="store_true", help="with --flash: it is the image that the board falls back to")

# Command Line -------------------------------------------------------------------------------------

def show(found: dict, as_json: bool) -> None:
    """Print the result of `bitstream.build`, for programs."""
    if as_json:
        print(json.dumps(found, indent=2))


def main(board: str, platform: Callable[[], Any], make: Callable[..., Any], rates: dict[str, tuple[float, float]]) -> None:
    """`platform()` gives the board's LiteX platform, `make(platform, design, sys_clk_freq,
    linerate)` the design on it.

    `rates` is {name of a design: (Hz of sys, bits a second of the link)}, for those of DESIGNS that
    the board holds.
    """
    elaborate_quickly()
    parser = argparse.ArgumentParser(description=f"Bitstreams for {board}.")
    parser.add_argument("--design", choices=rates, default=next(iter(rates)),
        help="the whole card, only its link, or its link as a node of a ring (default %(default)s)")
    parser.add_argument("--sys-clk-freq", type=float, help="Hz, more than a 40th of --linerate (default " +
        ", ".join(f"{sys_clk:g} of {design}" for design, (sys_clk, _) in rates.items()) + ")")
    parser.add_argument("--linerate", type=float, help="bits a second; both ends of a cable have the same (default " +
        ", ".join(f"{linerate:g} of {design}" for design, (_, linerate) in rates.items()) + ")")
    parser.add_argument("--seed",  type=int, nargs="+", default=[1], help="nextpnr's placement seed (default 1); of several the best is packed")
    parser.add_argument("--build", action="store_true", help="make it in out/bitstream/")
    parser.add_argument("--gate",  action="store_true", help="and compare it with the figures that are kept")
    parser.add_argument("--json",  action="store_true", help="print what was made for programs")
    add_delivery(parser)
    args = parser.parse_args()
    if not (args.build or args.load or args.flash):
        parser.error("nothing to do: --build, --load or --flash")
    name = board if args.design == "card" else f"{board}_{args.design}"
    if args.build:
        design = platform()
        try:
            made = make(design, DESIGNS[args.design], *[
                asked or default for asked, default in zip((args.sys_clk_freq, args.linerate), rates[args.design])])
        except ValueError as error:  # for rates that the transceiver or its clocks cannot have
            sys.exit(f"bitstream: {error}")
        # The result gets no name, because Migen would name signals after it.
        show(bitstream.build(name, design, made, args.seed, args.gate, (lambda line: None) if args.json else print), args.json)
    deliver(boards.find(board), bitstream.OUT/name/f"dibber_{name}.bit", args)
