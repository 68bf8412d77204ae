"""`dibber list`: all cards that can be reached from here, what each is, and who uses it."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import libdibber
from dibber.interface.description import LINK_STATE, MCP_STATE, C

from dibber_cli import simulator, unix_peers
from dibber_cli.intermixed import Command, Commands

Entry = dict[str, Any]  # of entry(): uri, kind, where, state, users

CARD_SOCKET = re.compile(r"/card\d+\.sock\Z")
LISTENS = 0x10000  # flags of /proc/net/unix: SO_ACCEPTCON
UARTS = ("ttyUSB*", "ttyACM*")


def entry(uri: str | None, kind: str, where: str, state: str, users: Iterable[int] = ()) -> Entry:
    """A row: `uri` is None for a card that no program can open as it is."""
    return {"uri": uri, "kind": kind, "where": where, "state": state, "users": sorted(users)}


def name_of(process: int, proc: Path = Path("/proc")) -> str:
    """ "python3 (1234)" of a process number."""
    try:
        name = (proc / str(process) / "comm").read_text(encoding="utf-8", errors="replace")
        return f"{name.strip()} ({process})"
    except OSError:
        return f"({process})"


# State --------------------------------------------------------------------------------------------


def state_of(uri: str) -> str:
    """What a card says of itself, in a line; the error where it says nothing."""
    try:
        with libdibber.Card(uri, observe=True) as card:
            info, board = card.info(), card.board()
    except (libdibber.DibberError, OSError) as error:
        return f"no answer: {error}"
    return (
        f"{board or 'board not told'}, node {info['node']}, {info['data_width']} bits, link "
        f"{LINK_STATE.name_of(info['link_state'])}, control program "
        f"{MCP_STATE.name_of(info['mcp_state'])}"
    )


# Kinds --------------------------------------------------------------------------------------------


def simulated(unix: Path = Path("/proc/net/unix")) -> Iterator[Entry]:
    """Cards of simulators that run here: sockets that listen and have an observers' socket."""
    paths = []
    for line in unix.read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]:
        words = line.split(None, 7)  # number, references, protocol, flags, type, state, inode, path
        if len(words) == 8 and int(words[3], 16) & LISTENS and CARD_SOCKET.search(words[7]):
            paths.append(words[7])
    paths = sorted(path for path in paths if Path(f"{path}.admin").exists())
    users = unix_peers.clients(paths)
    for path in paths:
        answers = simulator.clock_state_at(f"{path}.admin") != "unknown"
        yield entry(
            f"sim:{path}",
            "simulated",
            "this machine",
            state_of(f"sim:{path}") if answers else "the simulator does not answer",
            users[path],
        )


def _number(path: Path) -> int | None:
    """The number in a file of sysfs, or None."""
    try:
        return int(path.read_text(encoding="ascii"), 0)
    except (OSError, ValueError):
        return None


def pci(
    sys: Path = Path("/sys"), dev: Path = Path("/dev"), proc: Path = Path("/proc")
) -> Iterator[Entry]:
    """PCI functions that are Dibber cards, with or without a driver."""
    for function in sorted((sys / "bus/pci/devices").glob("*")):
        if (_number(function / "vendor"), _number(function / "device")) != (
            C.PCI_VENDOR,
            C.PCI_DEVICE,
        ):
            continue
        driver = (function / "driver").resolve().name if (function / "driver").exists() else None
        where = f"PCI {function.name}"
        nodes = sorted(node.name for node in (function / "misc").glob("dibber*"))
        if driver == "dibber" and nodes:
            uri = f"{dev}/{nodes[0]}"
            yield entry(
                uri, "driver", where, state_of(uri), unix_peers.owners({uri}, proc).get(uri, ())
            )
        elif driver == "vfio-pci":
            group = f"{dev}/vfio/{(function / 'iommu_group').resolve().name}"
            users = unix_peers.owners({group}, proc).get(group, ())
            uri = f"vfio:{function.name}"
            # Opening a card by VFIO resets it, so a list does not open any.
            yield entry(uri, "vfio", where, "in use" if users else "not in use", users)
        elif driver:
            yield entry(None, "pci", where, f"driver {driver}, which gives programs no access")
        else:
            yield entry(
                None, "pci", where, "no driver: load dibber.ko, or bind vfio-pci (docs/bringup.md)"
            )


def uarts(dev: Path = Path("/dev")) -> Iterator[Entry]:
    """Cards behind serial ports. Each port is asked, which sends bytes to whatever is there."""
    for pattern in UARTS:
        for port in sorted(dev.glob(pattern)):
            state = state_of(f"uart:{port}")
            if not state.startswith("no answer"):
                yield entry(f"uart:{port}", "uart", str(port), state)


def found(with_uarts: bool = False) -> list[Entry]:
    """All cards, as entry() has them."""
    return [*simulated(), *pci(), *(uarts() if with_uarts else ())]


# Command ------------------------------------------------------------------------------------------


def show(arguments: argparse.Namespace) -> int:
    cards = found(arguments.uart)
    if arguments.json:
        print(json.dumps(cards, indent=2))
        return 0
    if not cards:
        print("no card was found: 'dibber sim start' makes two simulated ones")
        return 0
    for card in cards:
        print(card["uri"] or card["where"])
        users = ", ".join(name_of(process) for process in card["users"]) or "nobody"
        print(f"    kind     {card['kind']}, {card['where']}")
        print(f"    state    {card['state']}")
        print(f"    used by  {users}")
    return 0


def add_to(sub: Commands, command: Command) -> None:
    """Add `list` to the command line; `command` is that of dibber_cli.main."""
    p = command(
        sub,
        "list",
        show,
        "List the cards that can be reached from here, what each is, and who uses it.",
        ["dibber list", "dibber list --json | jq -r '.[].uri'"],
    )
    p.add_argument(
        "--uart",
        action="store_true",
        help="ask serial ports too: this sends bytes to whatever is attached to them",
    )
