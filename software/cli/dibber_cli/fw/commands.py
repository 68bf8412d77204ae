"""`dibber fw trace | top | coredump | debug`, and `dibber reset`."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dibber_cli import numbers, output, paths, signals
from dibber_cli.fw import coredump, debug, images, top, trace, trap
from dibber_cli.fw.shared import Shared
from dibber_cli.intermixed import Command, Commands
from dibber_cli.link.tester import programmed
from dibber_cli.monitor import pause

# Trace --------------------------------------------------------------------------------------------


def fw_trace(arguments: argparse.Namespace) -> int:
    """Ends with 1 if the program has stopped."""
    with programmed(arguments.uri) as card:
        info, shared = card.info(), Shared.of(card)
        before, since = None, 0
        while True:
            found, lost, since = trace.read(shared, since)
            if lost and not arguments.json and before:
                print(f"{lost} entries were overwritten before they were read")
            for entry in found:
                print(
                    json.dumps(entry)
                    if arguments.json
                    else trace.line(entry, before, info["clock_hz"]),
                    flush=True,
                )
                before = entry
            state = trap.diagnose(card)
            if state["stopped"] or not arguments.follow:
                break
            pause(card, info, arguments.interval)
    if not state["stopped"]:
        return 0
    print(json.dumps(state) if arguments.json else state["sentence"])
    return 1


# Top ----------------------------------------------------------------------------------------------


def _show(arguments: argparse.Namespace, rates: Mapping[str, Any]) -> None:
    if arguments.json:
        print(json.dumps(rates), flush=True)
        return
    if not arguments.once and sys.stdout.isatty():
        print("\x1b[H\x1b[2J", end="")
    print(
        f"{arguments.uri}: {rates['state']}, over {1e3 * rates['seconds']:.3g} ms of the card's "
        f"time"
    )
    for table in top.tables(rates):
        print()
        output.table(*table)
    sys.stdout.flush()


def fw_top(arguments: argparse.Namespace) -> int:
    """Ends with 1 if the program has stopped. Ctrl-C is the normal end, and no error."""
    with programmed(arguments.uri) as card:
        info, shared = card.info(), Shared.of(card)
        before = top.sample(card, shared)
        try:
            while True:
                pause(card, info, arguments.interval)
                after = top.sample(card, shared)
                _show(arguments, top.between(before, after, info["clock_hz"]))
                if arguments.once or after["stopped"]:
                    return int(after["stopped"])
                before = after
        except signals.Ended:
            raise
        except KeyboardInterrupt:
            return 0


# Core files ---------------------------------------------------------------------------------------


def fw_coredump(arguments: argparse.Namespace) -> int:
    with programmed(arguments.uri) as card:
        state = trap.diagnose(card)
        size = card.sram_bytes
        sram = card.read_firmware(0, size)
    Path(arguments.file).write_bytes(coredump.core(sram, state["trap"]))
    if arguments.json:
        print(json.dumps({"file": arguments.file, **state}, indent=2))
        return 0
    print(state["sentence"])
    registers = (
        "memory and registers"
        if state["trap"]
        else "memory, and no registers, for it did not leave them"
    )
    print(
        f"written: {arguments.file} ({registers}). See it: gdb-multiarch {paths.elf(size)} "
        f"{arguments.file}"
    )
    return 0


# Reset --------------------------------------------------------------------------------------------


def reset(arguments: argparse.Namespace) -> int:
    if arguments.image:
        images.check(arguments.image)
    chosen = (
        contextlib.nullcontext((arguments.image, arguments.image))
        if arguments.image
        else images.last(arguments.uri)
    )
    with chosen as (path, image), programmed(arguments.uri) as card:
        before = trap.diagnose(card)
        card.load_firmware(path)
        identity = card.info()["mcp_identity"]
    if arguments.image:
        images.remember(arguments.uri, image)
    if arguments.json:
        print(
            json.dumps(
                {
                    "uri": arguments.uri,
                    "image": str(image),
                    "identity": f"{identity:08x}",
                    "before": before,
                },
                indent=2,
            )
        )
        return 0
    if before["stopped"]:
        print(f"it had been {before['sentence']}")
    print(f"{arguments.uri} runs again: identity {identity:08x}")
    return 0


# Command line -------------------------------------------------------------------------------------


def add_to(sub: Commands, fw: Commands, command: Command) -> None:
    """Add to the group `fw`, and `reset` beside it; `command` is that of dibber_cli.main."""

    def card_command(
        group: Commands,
        name: str,
        function: Callable[[argparse.Namespace], int | None],
        text: str,
        as_json: bool | str = True,
    ) -> argparse.ArgumentParser:
        p = command(group, name, function, text, as_json=as_json)
        if name == "coredump":
            p.add_argument("file", metavar="FILE", help="core file to write")
        p.add_argument(
            "uri",
            metavar="URI",
            type=numbers.uri,
            nargs="?" if name == "debug" else None,
            help=(
                "sim:PATH_OF_SOCKET; without it, with --break, a pair that has work to do"
                if name == "debug"
                else output.URI
            ),
        )
        return p

    p = card_command(
        fw,
        "trace",
        fw_trace,
        "Show what a control program did last. It may have stopped.",
        as_json="lines",
    )
    p.add_argument(
        "--follow",
        action="store_true",
        help="go on until the program stops, or until Ctrl-C",
    )
    p.add_argument(
        "--interval",
        type=numbers.real(*numbers.SECONDS),
        default=0.2,
        metavar="SECONDS",
        help="time between two reads (default 0.2)",
    )
    p = card_command(
        fw,
        "top",
        fw_top,
        "Show how a control program spends its time: handlers, rates, queues.",
        as_json="lines",
    )
    p.add_argument("--once", action="store_true", help="print one table and end")
    p.add_argument(
        "--interval",
        type=numbers.real(*numbers.SECONDS),
        default=1.0,
        metavar="SECONDS",
        help="time between two reads (default 1)",
    )
    p = card_command(
        fw,
        "debug",
        debug.fw_debug,
        "Debug a simulated card's control program: gdb and OpenOCD.",
        as_json=False,
    )
    p.add_argument("--show", action="store_true", help="only print the command line")
    p.add_argument(
        "--break",
        action="append",
        default=[],
        dest="places",
        metavar="FUNCTION",
        help="stop when the control program reaches FUNCTION, or FILE:LINE. Switches off the "
        "card's fast path, because it would do the work instead. Can be given several times",
    )
    card_command(
        fw,
        "coredump",
        fw_coredump,
        "Write a control program's memory and registers to an ELF core file, for gdb.",
    )
    p = card_command(
        sub,
        "reset",
        reset,
        "Halt a card, load its control program again, and wait until that is ready.",
    )
    p.add_argument(
        "--image",
        metavar="FILE",
        help="image to load (default: what 'dibber fw load' loaded last, else "
        "build/firmware/mcp.dibfw)",
    )
