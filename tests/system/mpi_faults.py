"""Typed messages and alltoalls of MPI while a rank dies, a cable is away, or a card is reset.

The programs are provider/typed_faults.c and, of plain messages, cable.c. A rank that dies does so
3 ms after the start.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).parent / "provider"
SECONDS = 600  # until a program that hangs is ended
# Ranks of each way to die.
KILLED = {"receiver": 2, "sender": 2, "absent": 2, "alltoall": 3}
LATE = {"by the card": ["--strided"], "by the engine": []}
# An alltoall's error as cable.c or Open MPI prints it. The fault may also meet the broadcast that
# follows each alltoall.
FAILURES = ("alltoall failed", "broadcast failed", "OFI MTL is aborting")
# What ends an alltoall of plain messages, and what ends typed calls: events and their last time.
ENDS = {"pull": ["--at", "3000 pull cable0"], "power": ["--at", "3000 power card1"]}
TYPED_ENDS = {
    # They fail after 40 ms, so the cable's return meets no call.
    "cable": (["--at", "3000 pull cable0", "--at", "1003000 plug cable0"], 1_010_000),
    # Open MPI ends the rank whose card it is.
    "reset": (["--at", "4000 power card1"], 200_000),
}
# A lost peer is noticed after 40 ms. Simulated time goes on while a busy machine lets a rank wait.
# So a rank may hear of it much later (241 ms once), but not a second: then a cable may be back.
NOTICED_US = (39_000, 900_000)


def one_of(cases, seed):
    """The name of the case that a run with this seed has."""
    return sorted(cases)[seed % len(cases)]


def build(folder, name="typed_faults"):
    program = folder / name
    command = ["mpicc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", program]
    subprocess.run([*command, PROGRAMS / f"{name}.c"], check=True)
    return program


def run(program, ranks, options, *words):
    """What the program prints: its lines on standard output, and all of standard error. Open MPI's
    launcher ends all ranks when one dies, unless it is told to recover.
    """
    command = [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", str(ranks), *options]
    done = subprocess.run(
        [*command, program, *map(str, words)],
        env={**os.environ, "OMPI_MCA_orte_enable_recovery": "1"},
        timeout=SECONDS,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines(), done.stderr


def a_rank_dies(program, case):
    said, errors = run(program, KILLED[case], ["--strided"], case, 3000)
    assert said and said[0].startswith("error "), errors
    assert NOTICED_US[0] < int(said[0].split()[1]) < NOTICED_US[1]


def a_receive_comes_too_late(program, way, folder):
    """The cable is back, and the sender has written other bytes into its buffer."""
    events = ["--at", "3000 pull cable0", "--at", "60000 plug cable0"]
    file = folder / "changed"
    said, errors = run(program, 2, [*LATE[way], *events], "late", 61_000, file)
    assert "failed" in said and "whole" not in said, errors


def an_alltoall_ends(program, case):
    """`program` is provider/cable.c."""
    command = [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", "2", *ENDS[case]]
    done = subprocess.run(
        [*command, program, "200000"], timeout=SECONDS, capture_output=True, text=True
    )
    assert done.returncode not in (0, 124)
    assert any(failure in done.stderr for failure in FAILURES), done.stderr


def typed_calls_end(program, case):
    events, until = TYPED_ENDS[case]
    said, errors = run(program, 2, ["--strided", *events], "cable", until)
    assert said and said[0].startswith("error "), errors
    if case == "cable":
        assert NOTICED_US[0] < int(said[0].split()[1]) < NOTICED_US[1]
