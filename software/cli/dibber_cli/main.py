"""The `dibber` command: arguments to functions, errors to exit codes.

0: done. 1: it failed, or found a fault. 2: the command line is wrong. 130, 143, 129: ended by
Ctrl-C, SIGTERM, SIGHUP. docs/cli.md has the rules for output and JSON.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import errno
from collections.abc import Callable, Sequence

from dibber.interface.description import C
from libdibber import DibberError

from dibber_cli import (
    commands,
    completion,
    counters,
    errors,
    fabric,
    find,
    monitor,
    numbers,
    output,
    pipe,
    profile,
    registers,
    signals,
    simulator,
    streams,
    topology,
    version,
)
from dibber_cli import (
    map as network,
)
from dibber_cli import (
    switch as switches,
)
from dibber_cli.bench.commands import add_to as add_bench
from dibber_cli.errors import CommandError, advice_on
from dibber_cli.flash.commands import add_to as add_flash
from dibber_cli.fw.commands import add_to as add_fw
from dibber_cli.intermixed import Commands, Parser
from dibber_cli.link.commands import add_to as add_link
from dibber_cli.ring.commands import add_to as add_ring
from dibber_cli.selftest.commands import add_to as add_selftest
from dibber_cli.timeline.commands import add_to as add_timeline

CODES = (
    "Ends with 0 if all is well, 1 if it failed or found a fault, 2 if the command line is wrong, "
    "130 if it was interrupted (143 by SIGTERM, 129 by SIGHUP)."
)
JSON: dict[bool | str, str] = {
    True: "print one JSON document; an error is a JSON document on stderr",
    "lines": "print JSON Lines, one document per line; an error is a JSON document on stderr",
}


# Pieces of the command line -----------------------------------------------------------------------


def command(
    group: Commands,
    name: str,
    function: Callable[[argparse.Namespace], int | None],
    text: str,
    examples: Sequence[str] = (),
    as_json: bool | str = True,
) -> argparse.ArgumentParser:
    """Add a command to a group of commands: `text` describes it, `examples` are whole lines.

    as_json : whether it has --json; "lines" when that prints JSON Lines
    """
    lines = "".join(f"  {line}\n" for line in examples)
    p = group.add_parser(
        name,
        help=text,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"examples:\n{lines}\n{CODES}" if lines else CODES,
    )
    p.set_defaults(function=function)
    if as_json:
        p.add_argument("--json", action="store_true", help=JSON[as_json])
    return p


def group(sub: Commands, name: str, text: str, metavar: str = "COMMAND") -> Commands:
    """Add a group of commands."""
    return sub.add_parser(name, help=text, description=text).add_subparsers(
        metavar=metavar, required=True
    )


def add_profile(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--profile",
        default="gen2x4",
        metavar="P",
        help=f"host and link: {', '.join(profile.names())}, or a file (default gen2x4)",
    )
    p.add_argument(
        "--seed",
        type=numbers.whole(*numbers.SEEDS),
        default=1,
        metavar="S",
        help="seed of every random choice (default 1)",
    )


# Command line -------------------------------------------------------------------------------------


def parser() -> Parser:
    top = Parser(
        prog="dibber",
        description="Dibber cards: look at them, load them, measure them.",
        epilog=CODES,
    )
    top.add_argument("--version", action=version.Show)
    sub = top.add_subparsers(metavar="COMMAND", required=True)

    find.add_to(sub, command)
    p = command(
        sub,
        "info",
        commands.info,
        "Show a card: identity, state, link, control program, counters. Without a URI: list cards.",
        [
            "dibber info",
            "dibber info sim:/run/user/1000/dibber-1000/card0.sock",
            "dibber info --json URI | jq .counters.packets_sent",
        ],
    )
    p.add_argument("uri", metavar="URI", nargs="?", type=numbers.uri, help=output.URI)
    p.set_defaults(uart=False)  # of the list of cards

    monitor.add_to(sub, command)
    counters.add_to(sub, command)
    registers.add_to(sub, group, command)
    add_flash(sub, command)
    add_selftest(sub, command, add_profile)
    network.add_to(sub, command, add_profile)
    switches.add_to(sub, group, command, add_profile)

    fw = group(sub, "fw", "Control programs.")
    p = command(
        fw,
        "load",
        commands.fw_load,
        "Load a control program into a card and start it. Users of the old one get HALTED.",
        ["dibber fw load build/firmware/mcp.dibfw URI"],
    )
    p.add_argument("file", metavar="FILE", help="image (build/firmware/mcp.dibfw)")
    p.add_argument("uri", metavar="URI", type=numbers.uri, help=output.URI)
    add_fw(sub, fw, command)

    p = command(
        sub,
        "sim",
        commands.sim_speed,
        "Simulated cards: start, stop, status, topology; or --speed.",
        ["dibber sim start --profile gen2x1", "dibber sim --speed", "dibber sim stop"],
    )
    p.add_argument(
        "--speed",
        action="store_true",
        help="measure simulated card-cycles per second of CPU time: idle, ping, strided",
    )
    p.add_argument(
        "--topology",
        metavar="NAME|FILE",
        help="with --speed: measure cards 0 and 1 in bulk while the others of a topology rest, and "
        "a pair alone",
    )
    add_profile(p)
    sim = p.add_subparsers(metavar="COMMAND")
    p = command(
        sim,
        "start",
        commands.sim_start,
        "Start two cards and a cable in the background, or another topology.",
        [
            "dibber sim start",
            "dibber sim start --participants 2 --set link.length_m=20",
            "dibber sim start --topology star:8 --at '1000 pull cable3' --at '2000 plug cable3'",
        ],
    )
    add_profile(p)
    p.add_argument(
        "--topology",
        metavar="NAME|FILE",
        help=f"cards, switches and cables: {', '.join(topology.NAMES)}, or a file "
        "('dibber sim topology' prints one)",
    )
    p.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="[CABLE=]KIND[:T0:T1[:DIRECTION]]",
        help="what is wrong with a cable, or with all, from T0 to T1 in microseconds: unplugged, "
        "noise, stop, inverted, rate, foreign or loopback; may be given again",
    )
    p.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="'TIME ACTION NAME [RATE]'",
        help="at a simulated time in microseconds: pull, plug or errors (its bit error rate) of a "
        "cable; off, on or power of a card or switch; may be given again",
    )
    p.add_argument("--script", metavar="FILE", help="such events, one a line")
    p.add_argument(
        "--participants",
        type=numbers.whole(0, C.NODES * C.ENDPOINTS),
        default=0,
        metavar="N",
        help="time waits until N programs have opened a card (default 0: no wait)",
    )
    p.add_argument(
        "--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change the profile"
    )
    p.add_argument(
        "--timeline",
        metavar="FILE",
        help="write what the cards do in simulated time, as Chrome trace events (see "
        "'dibber timeline'; https://ui.perfetto.dev)",
    )
    p.add_argument(
        "--pcap",
        metavar="FILE",
        help="write the frames that cables carry, for Wireshark; only if the link is Ethernet",
    )
    p.add_argument(
        "--jtag",
        action="store_true",
        help="listen for OpenOCD beside the cards' sockets (see 'dibber fw debug')",
    )
    p = command(
        sim,
        "topology",
        commands.sim_topology,
        "Print the file of a topology, for --topology.",
        ["dibber sim topology torus:4x4", "dibber sim topology star:8 > star.toml"],
    )
    p.add_argument("topology", metavar="NAME|FILE", help=f"{', '.join(topology.NAMES)}, or a file")
    command(sim, "stop", commands.sim_stop, "End the simulator in the background.")
    command(
        sim, "status", commands.sim_status, "Show the simulator in the background and its sockets."
    )

    fabric.add_to(sub, command, add_profile)
    add_link(sub, command, add_profile)
    add_ring(sub, group, command)
    add_bench(sub, group, command, add_profile)
    add_timeline(sub, command)
    completion.add_to(sub, command, parser)
    return top


def _failure(
    error: DibberError | CommandError | OSError | KeyboardInterrupt,
) -> tuple[str, str, str, int]:
    """(message, advice, name, exit code) of an exception that ends a command."""
    if isinstance(error, DibberError):
        return (
            f"{error.name}: {error}",
            advice_on(error.name, str(error)),
            error.name,
            2 if error.name == "ARGUMENT" else 1,
        )
    if isinstance(error, CommandError):
        return str(error), error.advice, "USAGE" if error.code == 2 else "FAILED", error.code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", getattr(error, "kept", ""), "INTERRUPTED", signals.code_of(error)
    return str(error), "", errno.errorcode.get(error.errno or 0, "SYSTEM"), 1


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        return arguments.function(arguments)
    except (DibberError, CommandError, OSError, KeyboardInterrupt) as error:
        if (
            isinstance(error, streams.OutputError)
            or isinstance(error, BrokenPipeError)
            and pipe.unread()
        ):
            raise
        message, advice, name, code = _failure(error)
    errors.report(
        simulator.without_folders(message),
        simulator.without_folders(advice),
        name,
        code,
        getattr(arguments, "json", False),
    )
    return code
