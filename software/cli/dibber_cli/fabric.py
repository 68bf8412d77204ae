"""`dibber run` and `dibber mpirun`: programs on libfabric, on two simulated cards."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import os
import shutil
import signal
import subprocess

from dibber_cli import numbers, paths, profile
from dibber_cli.errors import CommandError
from dibber_cli.simulator import Pair

PROVIDER = paths.BUILD / "ofi" / "libdibber-fi.so"
WTIME = paths.BUILD / "ofi" / "libdibber-wtime.so"
CARDS = 2  # of a simulator; each serves one process


def environment(uris):
    """This process's environment with the provider on these cards, in their order.

    Open MPI's settings are there too: its messages by the MTL for libfabric, no other network.
    Raises CommandError when the provider is not built.
    """
    if not PROVIDER.exists():
        raise CommandError(f"{PROVIDER} is not built", "run 'make ofi'")
    return {
        **os.environ,
        "FI_PROVIDER_PATH": str(PROVIDER.parent),
        "FI_PROVIDER": "dibber",
        "FI_DIBBER_CARD": ",".join(uris),
        "FI_DIBBER_FIRMWARE": str(paths.FIRMWARE),
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "OMPI_MCA_btl": "ofi,self",
        "OMPI_MCA_opal_common_ofi_provider_include": "dibber",
    }


def cards(chosen, seed):
    """Two cards whose clock waits for no program, because programs meet before they open a card.
    The control program lies in each card from the start.
    """
    return Pair(
        profile.load(chosen),
        participants=0,
        seed=seed,
        options=["--preload", str(paths.FIRMWARE)],
    )


def _run(command, uris, more=()):
    """Run a command to its end; returns its exit code, as a shell would tell it."""
    try:
        process = subprocess.Popen(command, env={**environment(uris), **dict(more)})
    except (FileNotFoundError, PermissionError) as error:
        raise CommandError(f"{command[0]}: {error.strerror}", code=127) from error
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


def run(arguments):
    if not arguments.program:
        raise CommandError("no program given", code=2)
    with cards(arguments.profile, arguments.seed) as pair:
        return _run(arguments.program, pair.uris)


def mpirun_command(ranks, program):
    """Open MPI's launcher with its words. The ranks of a simulator may be more than the cores."""
    return ["mpirun", "-n", str(ranks), "--oversubscribe", "-x", f"LD_PRELOAD={WTIME}", *program]


def mpirun_environment():
    """Open MPI refuses to run for root unless both are set. A container often has no other user."""
    if os.geteuid():
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun(arguments):
    if not shutil.which("mpirun"):
        raise CommandError("there is no mpirun", "install openmpi-bin")
    if not arguments.program:
        raise CommandError("no program given", code=2)
    if arguments.ranks > CARDS:
        raise CommandError(
            f"{arguments.ranks} ranks: the simulator has {CARDS} cards, and a card serves one "
            "process",
            code=2,
        )
    with cards(arguments.profile, arguments.seed) as pair:
        command = mpirun_command(arguments.ranks, arguments.program)
        return _run(command, pair.uris, mpirun_environment())


def add_to(sub, command, add_profile):
    p = command(
        sub,
        "run",
        run,
        "Run a program on libfabric with two simulated cards. Each of its processes that opens a "
        "card takes the next one. Ends with the program's exit code.",
        ["dibber run fi_info -p dibber"],
        as_json=False,
    )
    add_profile(p)
    _add_program(p)
    p = command(
        sub,
        "mpirun",
        mpirun,
        "Run an MPI program with Open MPI on two simulated cards, a card for each rank. MPI_Wtime "
        "gives simulated time. Ends with mpirun's exit code.",
        ["dibber mpirun -n 2 ./program", "dibber mpirun -n 2 --profile gen2x1 python3 program.py"],
        as_json=False,
    )
    p.add_argument(
        "--ranks",
        "-n",
        type=numbers.whole(1, 1024),
        default=CARDS,
        metavar="N",
        help=f"ranks (default {CARDS}, which is the most)",
    )
    add_profile(p)
    _add_program(p)


def _add_program(p):
    p.add_argument("program", metavar="PROGRAM", nargs=argparse.REMAINDER, help="with its words")
