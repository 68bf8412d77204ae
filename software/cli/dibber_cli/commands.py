"""What each command does: parsed arguments in, exit code out."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping
from typing import Any

import libdibber
from dibber.interface.description import HOST, LINK_STATE, MCP_STATE

from dibber_cli import find, output, paths, profile, simulator, topology
from dibber_cli.errors import UsageError
from dibber_cli.fw import images, summary
from dibber_cli.link import status as link_status
from dibber_cli.link.side import ETHERNET
from dibber_cli.link.tester import programmed

FLASH = 1 << next(f.lsb for f in HOST["FEATURES"].fields if f.name == "flash")  # of FEATURES


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


# Cards --------------------------------------------------------------------------------------------


def fabric_sentence(values: Mapping[str, Any], link: Mapping[str, Any]) -> str:
    """What the card's link is a part of."""
    if link["ring"]:
        return "ring: " + link_status.place_sentence(link["ring"])
    return "Ethernet" if values["features"] & ETHERNET else "a cable, or switches"


def memory_sentence(values: Mapping[str, Any], program: Mapping[str, Any] | None) -> str:
    """The control program's memory: its size, and the space that the running image leaves."""
    limit = values["image_limit"]
    there = f"SRAM {values['sram_bytes'] >> 10} KiB, image at most {limit} bytes"
    if not program or program["image_bytes"] is None:
        return there
    return f"{there}: it has {program['image_bytes']}, {limit - program['image_bytes']} are left"


def info(arguments: argparse.Namespace) -> int:
    if arguments.uri is None:
        return find.show(arguments)
    with libdibber.Card(arguments.uri, observe=True) as card:
        values = card.info()
        link = link_status.read(card)
        program = summary.read(card)
        board = card.board()
    if arguments.json:
        names = {
            "mcp_state": MCP_STATE.name_of(values["mcp_state"]),
            "link_state": LINK_STATE.name_of(values["link_state"]),
        }
        print_json({**values, **names, "board": board, "link": link, "control_program": program})
        return 0
    major, minor = values["interface_version"] >> 16, values["interface_version"] & 0xFFFF
    output.table(
        ["card", arguments.uri],
        [
            (
                "interface",
                f"{major}.{minor}, hash {values['interface_hash']:08x}, features "
                f"{values['features']:#x}",
            ),
            (
                "board",
                (board or "not told")
                + (", flash" if values["features"] & FLASH else ", no access to its flash"),
            ),
            (
                "gateware",
                f"build {values['build']:08x}, {values['data_width']} bits at "
                f"{values['clock_hz'] / 1e6:g} MHz",
            ),
            (
                "geometry",
                f"{values['endpoints']} endpoints of {values['slots']} slots, {values['regions']} "
                f"regions, "
                f"{values['nodes']} nodes",
            ),
            ("node", values["node"]),
            (
                "control program",
                f"{MCP_STATE.name_of(values['mcp_state'])}, identity {values['mcp_identity']:08x}",
            ),
            ("program memory", memory_sentence(values, program)),
            ("fabric", fabric_sentence(values, link)),
            ("link", link_status.sentence(link)),
            *([("link 1", link_status.sentence(link["second"]))] if link["second"] else []),
            (
                "another node" if link["ring"] else "other end",
                "not heard"
                if link["peer"] is None
                else f"{link['peer']:04x}, this one is {link['nonce']:04x}",
            ),
            (
                "PCIe",
                f"maximum payload {values['max_payload']}, read request {values['max_request']} "
                f"bytes",
            ),
            *(
                [("memory", f"{values['shared_bytes'] >> 10} KiB on the card, behind a UART")]
                if values["copies"]
                else []
            ),
            (
                "up for",
                f"{values['cycles']} cycles, {values['cycles'] / values['clock_hz']:.3f} s"
                + (" of simulated time" if values["simulated_clock"] else ""),
            ),
        ],
    )
    if program:
        print()
        output.table(["control program", "since its start"], summary.rows(program))
    counted = [(name, value) for name, value in values["counters"].items() if value]
    if counted:
        print()
        output.table(["counter", "value"], counted)
    return 0


def fw_load(arguments: argparse.Namespace) -> int:
    images.check(arguments.file)
    with programmed(arguments.uri) as card:
        card.load_firmware(arguments.file)
        identity = card.info()["mcp_identity"]
    images.remember(arguments.uri, arguments.file)
    if arguments.json:
        print_json({"file": arguments.file, "uri": arguments.uri, "identity": f"{identity:08x}"})
    else:
        print(f"{arguments.file} runs on {arguments.uri}: identity {identity:08x}")
    return 0


# Simulator ----------------------------------------------------------------------------------------


def sim_start(arguments: argparse.Namespace) -> int:
    options = [
        word
        for name in ("set", "fault", "at")
        for value in getattr(arguments, name)
        for word in (f"--{name}", value)
    ]
    options += ["--script", arguments.script] if arguments.script else []
    options += ["--timeline", arguments.timeline] if arguments.timeline else []
    options += ["--pcap", arguments.pcap] if arguments.pcap else []
    options += ["--jtag"] if arguments.jtag else []
    pid = simulator.start(
        profile.load(arguments.profile),
        arguments.topology,
        participants=arguments.participants,
        seed=arguments.seed,
        options=options,
    )
    if arguments.json:
        print_json(
            {
                "process": pid,
                "uris": simulator.running_uris(),
                "log": str(paths.run_directory() / "log"),
            }
        )
    else:
        print(f"process {pid}, log {paths.run_directory() / 'log'}")
        print("\n".join(simulator.running_uris()))
    return 0


def sim_topology(arguments: argparse.Namespace) -> int:
    text, cards = topology.text_of(arguments.topology)
    if arguments.json:
        print_json({"cards": cards, **tomllib.loads(text)})
    else:
        sys.stdout.write(text)
    return 0


def sim_stop(arguments: argparse.Namespace) -> int:
    pid = simulator.stop()
    if arguments.json:
        print_json({"process": pid})
    else:
        print(f"process {pid} has ended")
    return 0


def sim_status(arguments: argparse.Namespace) -> int:
    pid = simulator.running()
    status: dict[str, Any] = {"running": pid is not None}
    if pid is not None:
        status.update(
            process=pid,
            profile=simulator.running_profile(),
            uris=simulator.running_uris(),
            clock=simulator.clock_state(),
            log=str(paths.run_directory() / "log"),
        )
    if arguments.json:
        print_json(status)
    elif pid is None:
        print("no simulator is running")
    else:
        print(f"process {pid}, profile {status['profile']}, log {status['log']}")
        print(f"clock: {status['clock']}")
        print("\n".join(simulator.running_uris()))
    return 0


def _network_speed(chosen: profile.Profile, arguments: argparse.Namespace) -> int:
    from dibber_cli.bench import speed

    alone, together = speed.of_network(chosen, arguments.seed, arguments.topology)
    if arguments.json:
        print_json(
            {
                "profile": chosen.name,
                "topology": arguments.topology,
                "pair_cycles_per_cpu_second": round(alone),
                "cycles_per_cpu_second": round(together),
                "share": round(together / alone, 3),
            }
        )
    else:
        output.table(
            ["cards 0 and 1 in bulk, the others at rest", "1000 cycles a CPU second", "share"],
            [
                ("pair", f"{alone / 1e3:.1f}", "1.00"),
                (arguments.topology, f"{together / 1e3:.1f}", f"{together / alone:.2f}"),
            ],
        )
    return 0


def sim_speed(arguments: argparse.Namespace) -> int:
    from dibber_cli.bench import speed

    if not arguments.speed:
        raise UsageError(
            "dibber sim: start, stop, status, topology or --speed is missing (see --help)"
        )
    chosen = profile.load(arguments.profile)
    if arguments.topology:
        return _network_speed(chosen, arguments)
    measured = speed.of_cards(chosen, arguments.seed)
    if arguments.json:
        print_json(
            {
                "profile": chosen.name,
                "runs": [
                    {
                        "name": name,
                        "card_cycles_per_cpu_second": round(ours),
                        "reference_cycles_per_cpu_second": reference and round(reference),
                        "share": reference and round(ours / reference, 3),
                    }
                    for name, ours, reference in measured
                ],
            }
        )
    else:
        heads = [f"simulation speed, {chosen.name}", "1000 card-cycles a CPU second"]
        rows: list[tuple[Any, ...]] = [(name, f"{ours / 1e3:.0f}") for name, ours, _ in measured]
        if measured[0][2]:
            heads += ["bare VexRiscv + LitePCIe", "share"]
            rows = [
                (*row, f"{reference / 1e3:.0f}", f"{ours / reference:.2f}")
                for row, (_, ours, reference) in zip(rows, measured)
                if reference
            ]
        output.table(heads, rows)
    return 0
