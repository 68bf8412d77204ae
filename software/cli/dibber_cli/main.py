# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The `dibber` command: arguments to functions, errors to exit codes.

0: done. 1: it failed, or measured what must not be. 2: the command line makes no sense.
"""

import argparse
import sys

from libdibber import DibberError

from dibber_cli import commands, profile
from dibber_cli.bench import TESTS
from dibber_cli.errors import ADVICE, CommandError
from dibber_cli.fw.commands import add_to as add_fw
from dibber_cli.link.commands import add_to as add_link


def parser():
    top = argparse.ArgumentParser(prog="dibber", description="Dibber cards: look at them, load them, measure them.")
    sub = top.add_subparsers(metavar="COMMAND", required=True)

    def command(group, name, function, text):
        p = group.add_parser(name, help=text, description=text)
        p.set_defaults(function=function)
        p.add_argument("--json", action="store_true", help="print JSON for programs")
        return p

    def add_profile(p):
        p.add_argument("--profile", default="gen2x4", metavar="P",
                       help=f"host and link: {', '.join(profile.names())}, or a file (default gen2x4)")
        p.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")

    p = command(sub, "info", commands.info, "Show a card: identity, state, link, counters.")
    p.add_argument("uri", metavar="URI", help="sim:PATH_OF_SOCKET")

    fw = sub.add_parser("fw", help="Control programs.").add_subparsers(metavar="COMMAND", required=True)
    p  = command(fw, "load", commands.fw_load, "Load a control program into a card and start it.")
    p.add_argument("file", metavar="FILE", help="image (build/firmware/mcp.dibfw)")
    p.add_argument("uri", metavar="URI", help="sim:PATH_OF_SOCKET")
    add_fw(sub, fw, command)

    p = command(sub, "sim", commands.sim_speed, "Simulated cards: start, stop, status; or --speed.")
    p.add_argument("--speed", action="store_true", help="measure simulated cycles a second during 'bench stride'")
    add_profile(p)
    sim = p.add_subparsers(metavar="COMMAND")
    p = command(sim, "start", commands.sim_start, "Start two cards and a cable in the background.")
    add_profile(p)
    p.add_argument("--participants", type=int, default=0, metavar="N",
                   help="time waits until N programs have opened a card (default 0: it does not wait)")
    p.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change the profile")
    command(sim, "stop", commands.sim_stop, "End the simulator in the background.")
    command(sim, "status", commands.sim_status, "Show the simulator in the background and its sockets.")

    add_link(sub, command, add_profile)

    bench = sub.add_parser("bench", help="Measure, with the bound beside each value.")
    bench = bench.add_subparsers(metavar="TEST", required=True)
    for name, text in TESTS.items():
        p = command(bench, name, commands.bench, text)
        p.set_defaults(test=name)
        add_profile(p)
        p.add_argument("--series", default="", metavar="NAME,…", help="measure these series alone")
        p.add_argument("--out", default="out", metavar="DIR", help="folder for JSON, CSV and charts (default out)")
    p = bench.add_parser("calibrate", help="Measure this machine's strided copies, beside a profile's constants.")
    p.set_defaults(function=commands.calibrate)
    p.add_argument("--profile", default="gen2x4", metavar="P", help="to compare with (default gen2x4)")
    return top


def main(argv=None):
    arguments = parser().parse_args(argv)
    try:
        return arguments.function(arguments)
    except DibberError as error:
        message, advice = f"{error.name}: {error}", ADVICE.get(error.name, "")
    except CommandError as error:
        message, advice = str(error), error.advice
    except OSError as error:
        message, advice = str(error), ""
    except KeyboardInterrupt:
        message, advice = "interrupted", ""
    print(f"dibber: {message}" + (f"\n        {advice}" if advice else ""), file=sys.stderr)
    return 1
