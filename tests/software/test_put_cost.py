# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""What a put costs its caller, counted in instructions by Valgrind's callgrind.

The card is the mock: how it answers is no part of dib_put(), which ends when the command was handed to the socket, and
the way there is the one that leads to a simulated card.
"""

import collections
import os
import pathlib
import subprocess

import pytest

ROOT  = pathlib.Path(__file__).resolve().parents[2]
LIB   = ROOT/"build"/"lib"
COUNT = 10_000


def inclusive(profile):
    """{function: (calls, instructions with all that it called)} of a callgrind profile without compressed names.

    Of the format (Valgrind's manual, "Callgrind Format Specification") only the lines of calls matter: the callee,
    how often, and then, after its position, what the calls cost.
    """
    cost, lines = collections.defaultdict(lambda: (0, 0)), iter(profile.read_text().splitlines())
    for line in lines:
        if line.startswith("cfn="):
            callee = line[4:]
        elif line.startswith("calls="):
            calls, sum_ = cost[callee]
            cost[callee] = calls + int(line[6:].split()[0]), sum_ + int(next(lines).split()[1])
    return cost


@pytest.fixture
def program(tmp_path):
    """put_cost.c with the static library, so that no call goes by way of the dynamic linker."""
    path = tmp_path/"put_cost"
    subprocess.run(["cc", "-std=c11", "-O2", "-Wall", "-Werror", f"-I{ROOT}/software/lib/include",
                    f"-I{ROOT}/build/generated", "-o", path, pathlib.Path(__file__).parent/"put_cost.c",
                    LIB/"libdibber.a", "-pthread"], check=True)
    return path


def test_instructions_of_a_put(serve, image, program, tmp_path, figure):
    profile = tmp_path/"callgrind"
    # Without debug information from outside: none is needed, and where to fetch it is the system's business.
    done = subprocess.run(["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                           f"--callgrind-out-file={profile}", program, serve().uri, image(), str(COUNT)],
                          capture_output=True, text=True, env={**os.environ, "DEBUGINFOD_URLS": ""}, timeout=120)
    assert done.returncode == 0, done.stderr
    cost = inclusive(profile)
    puts,   whole  = cost["dib_put"]
    writes, socket = cost["dib_vfio_send_bytes"]
    assert puts == writes == COUNT     # one write to the socket a put
    figure("put-instructions-with-socket", round(whole/puts, 1), "instructions of dib_put(), 8 bytes, with the write to the socket")
    assert figure("put-instructions", round((whole - socket)/puts, 1), "instructions of dib_put(), 8 bytes, less the write "
                  "to the socket that brings slot and doorbell", at_most=250)
