"""`dibber run` and `dibber mpirun`: programs on libfabric, on simulated cards."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import libdibber

from dibber_cli import numbers, paths, profile, topology
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands
from dibber_cli.link.side import Ends, Side
from dibber_cli.simulator import Network

PROVIDER = paths.BUILD / "ofi" / "libdibber-fi.so"
WTIME = paths.BUILD / "ofi" / "libdibber-wtime.so"
PMPI = paths.BUILD / "ofi" / "libdibber-pmpi.so"
MOST_RANKS = topology.SHAPES["star"][2][1]  # a card serves one process
ROUTES = "routes"  # file in the simulator's folder
FREE_CPU = {"FI_DIBBER_CHARGE": "0"}  # of provider and engine
ATTEMPTS = 2  # scouts to a place that does not answer
LOOK_SECONDS = 0.02  # between two looks at processes
PATIENCE_SECONDS = 1  # until a process is killed when another one has failed


def environment(uris: Sequence[str]) -> dict[str, str]:
    """This process's environment with the provider on these cards, in their order. A file of routes
    beside a simulated card's socket is named, too.

    Open MPI's settings are there too: its messages by the MTL for libfabric, no other network.
    Raises CommandError when the provider is not built.
    """
    if not PROVIDER.exists():
        raise CommandError(f"{PROVIDER} is not built", "run 'make ofi'")
    routes = Path(uris[0].removeprefix("sim:")).with_name(ROUTES) if uris else None
    return {
        **os.environ,
        **({"FI_DIBBER_ROUTES": str(routes)} if routes and routes.exists() else {}),
        "FI_PROVIDER_PATH": str(PROVIDER.parent),
        "FI_PROVIDER": "dibber",
        "FI_DIBBER_CARD": ",".join(uris),
        "FI_DIBBER_FIRMWARE": str(paths.FIRMWARE),
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "OMPI_MCA_btl": "ofi,self",
        "OMPI_MCA_opal_common_ofi_provider_include": "dibber",
    }


def shape_for(ranks: int, word: str | None = None) -> str:
    """The name of the topology for so many ranks, each with a card: `word` if it is given, else a
    pair or a star. Raises UsageError when `word` has fewer cards.
    """
    if word is None:
        return "pair" if ranks <= 2 else f"star:{ranks}"
    _, cards = topology.text_of(word)
    if cards < ranks:
        raise UsageError(
            f"{ranks} ranks: topology {word} has {cards} card{'s' * (cards != 1)}, and a card "
            "serves one process"
        )
    return word


def find_routes(uris: Sequence[str]) -> str:
    """Let each card find the others; returns the text of the provider's file of routes. Raises
    CommandError when a card does not find all others.
    """

    def step(side: Side) -> list[tuple[int, ...]]:
        network = side.card.map(ATTEMPTS)
        return [libdibber.routes_to(network, node) for node in range(len(uris))]

    with Ends(uris) as ends:
        found = ends.both(step)
    lines = []
    for own, ways in enumerate(found):
        missing = [str(node) for node in range(len(uris)) if node != own and not ways[node]]
        if missing:
            raise CommandError(f"card {own} has no way to card {', '.join(missing)}")
        lines += [
            f"{own} {node} {place} {route:x}\n"
            for node in range(len(uris))
            for place, route in enumerate(ways[node])
        ]
    return "".join(lines)


@contextlib.contextmanager
def cards(
    chosen: str,
    shape: str,
    seed: int,
    events: Iterable[str] = (),
    charged: bool = True,
    timeline: str | None = None,
) -> Iterator[Network]:
    """The simulated cards of a topology, with routes between all of them. `events` are those of
    `dibber sim start --at`. Without `charged` calls of the library take no simulated time. With
    `timeline` the simulator writes what the cards do to that file.

    Their clock waits for no program, because programs meet before they open a card. The control
    program lies in each card from the start.
    """
    written = () if timeline is None else (f"--timeline={timeline}",)
    free = () if charged else tuple(f"--set=cpu.{name}=0" for name in profile.CALLS)
    with Network(
        profile.load(chosen),
        shape,
        participants=0,
        seed=seed,
        options=[
            *("--preload", str(paths.FIRMWARE)),
            *(f"--at={event}" for event in events),
            *free,
            *written,
        ],
    ) as network:
        # Cards at the two ends of a cable need no routes.
        if shape != "pair":
            (network.directory / ROUTES).write_text(find_routes(network.uris), encoding="utf-8")
        yield network


def _start(command: Sequence[str], settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=settings)
    except (FileNotFoundError, PermissionError) as error:
        raise CommandError(f"{command[0]}: {error.strerror}", code=127) from error


def _run(command: Sequence[str], uris: Sequence[str], more: Mapping[str, str] | None = None) -> int:
    """Run a command to its end; returns its exit code, as a shell would tell it."""
    process = _start(command, {**environment(uris), **(more or {})})
    try:
        code = process.wait()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    return code if code >= 0 else 128 - code


def pe_environment(number: int, count: int, network: Network) -> dict[str, str]:
    """What a process must know of its place among others: see dibber_shmem.h."""
    return {
        "DIBBER_PE": str(number),
        "DIBBER_PES": str(count),
        "DIBBER_MEETING": f"file:{network.directory / 'meeting'}",
    }


def _run_all(command: Sequence[str], count: int, network: Network) -> int:
    """Run processes side by side. When one fails, the others get PATIENCE_SECONDS to notice it.
    Returns the exit code of the first that failed, or 0.
    """
    settings, processes, failed = environment(network.uris), [], 0
    try:
        for number in range(count):
            more = pe_environment(number, count, network)
            processes.append(_start(command, {**settings, **more}))
        left, until = list(processes), None
        while left and (until is None or time.monotonic() < until):
            for process in [one for one in left if one.poll() is not None]:
                left.remove(process)
                failed = failed or process.returncode
            if failed and until is None:
                until = time.monotonic() + PATIENCE_SECONDS
            time.sleep(LOOK_SECONDS)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
    return failed if failed >= 0 else 128 - failed


def run(arguments: argparse.Namespace) -> int:
    if not arguments.program:
        raise CommandError("no program given", code=2)
    shape = shape_for(arguments.pes or 1, arguments.topology)
    with cards(
        arguments.profile, shape, arguments.seed, arguments.at, timeline=arguments.timeline
    ) as network:
        if arguments.pes:
            return _run_all(arguments.program, arguments.pes, network)
        return _run(arguments.program, network.uris)


def mpirun_command(ranks: int, program: Sequence[str], libraries: Iterable[Path] = ()) -> list[str]:
    """Open MPI's launcher with its words. The ranks of a simulator may be more than the cores.
    `libraries` are loaded ahead of MPI.
    """
    preload = ":".join(str(library) for library in (WTIME, *libraries))
    return ["mpirun", "-n", str(ranks), "--oversubscribe", "-x", f"LD_PRELOAD={preload}", *program]


def mpirun_environment() -> dict[str, str]:
    """What mpirun and its ranks need: the instructions of which engine are charged.

    Open MPI refuses to run for root unless both others are set. A container often has no other
    user.
    """
    engine = {"FI_DIBBER_ENGINE": "openmpi"}
    if os.geteuid():
        return engine
    return {**engine, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun(arguments: argparse.Namespace) -> int:
    if not shutil.which("mpirun"):
        raise CommandError("there is no mpirun", "install openmpi-bin")
    if not arguments.program:
        raise CommandError("no program given", code=2)
    if arguments.strided and not PMPI.exists():
        raise CommandError(f"{PMPI} is not built", "install libopenmpi-dev, run 'make ofi'")
    shape = shape_for(arguments.ranks, arguments.topology)
    charged = not arguments.free_cpu
    with cards(
        arguments.profile, shape, arguments.seed, arguments.at, charged, arguments.timeline
    ) as network:
        libraries = [PMPI] if arguments.strided else []
        command = mpirun_command(arguments.ranks, arguments.program, libraries)
        free = {} if charged else FREE_CPU
        return _run(command, network.uris, {**mpirun_environment(), **free})


def add_to(
    sub: Commands, command: Command, add_profile: Callable[[argparse.ArgumentParser], None]
) -> None:
    p = command(
        sub,
        "run",
        run,
        "Run a program on libfabric or dibber_shmem.h with simulated cards. Each of its processes "
        "that opens a card takes the next one. Ends with the program's exit code.",
        ["dibber run fi_info -p dibber", "dibber run -n 4 ./program"],
        as_json=False,
    )
    p.add_argument(
        "--pes",
        "-n",
        type=numbers.whole(1, MOST_RANKS),
        metavar="N",
        help="run the program N times side by side, as the PEs of a program of dibber_shmem.h",
    )
    add_profile(p)
    _add_rest(p)
    p = command(
        sub,
        "mpirun",
        mpirun,
        "Run an MPI program with Open MPI on simulated cards, a card for each rank. MPI_Wtime "
        "gives simulated time. Ends with mpirun's exit code.",
        [
            "dibber mpirun -n 2 ./program",
            "dibber mpirun -n 4 --topology torus:2x2 python3 program.py",
        ],
        as_json=False,
    )
    p.add_argument(
        "--ranks",
        "-n",
        type=numbers.whole(1, MOST_RANKS),
        default=2,
        metavar="N",
        help=f"ranks, at most {MOST_RANKS} (default 2)",
    )
    p.add_argument(
        "--strided",
        action="store_true",
        help="let MPI_Put, MPI_Get and MPI_Rput with derived types be strided commands of the card "
        "(libdibber-pmpi.so)",
    )
    p.add_argument(
        "--free-cpu",
        action="store_true",
        help="let instructions of library, provider and engine take no simulated time",
    )
    add_profile(p)
    _add_rest(p)


def _add_rest(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--topology",
        metavar="NAME|FILE",
        help="of the cards (default: a pair, for more ranks a star; see 'dibber sim start')",
    )
    p.add_argument(
        "--timeline",
        metavar="FILE",
        help="write what the cards do as Chrome trace events ('dibber timeline')",
    )
    p.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="'TIME ACTION NAME [RATE]'",
        help="at a simulated time in microseconds: pull, plug or errors of a cable; off, on or "
        "power of a card or switch; may be given again",
    )
    p.add_argument("program", metavar="PROGRAM", nargs=argparse.REMAINDER, help="with its words")
