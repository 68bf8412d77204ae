"""dibber_shmem.h on simulated cards, as `dibber run -n` starts it."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import subprocess
import sys

import pytest
from dibber_cli import fabric, paths

SECONDS = 300
FOLDER = paths.BUILD / "shmem"


def build(folder, name):
    """Compile tests/system/shmem/NAME.c; returns the program."""
    program = folder / name
    source = pathlib.Path(__file__).parent / "shmem" / f"{name}.c"
    include = paths.ROOT / "software" / "shmem" / "include"
    command = ["cc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{include}", "-o", program]
    command += [source, f"-L{FOLDER}", "-ldibber-shmem", f"-Wl,-rpath,{FOLDER}"]
    subprocess.run(command, check=True)
    return program


def run(pes, *program, **settings):
    return subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", "run", "-n", str(pes), *map(str, program)],
        env={**os.environ, **settings},
        timeout=SECONDS,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory):
    return build(tmp_path_factory.mktemp("shmem"), "mistakes")


@pytest.mark.parametrize("pes, count", [(2, 40), (3, 16)])
def test_strided_and_plain_transfers_and_atomics_of_pes_have_the_right_values(
    tmp_path, seed, pes, count
):
    done = run(pes, build(tmp_path, "operations"), seed, count)
    assert done.returncode == 0, done.stdout + done.stderr
    # One command: 8,192 elements with gaps are as fast as one block.
    assert float(done.stdout) > 90, done.stdout


def test_the_example_transposes_a_matrix_over_four_pes():
    done = run(4, FOLDER / "shmem_transpose", 32)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {f"PE {n} of 4: 0 values are wrong" for n in range(4)}
    assert set(done.stdout.splitlines()) == said


@pytest.mark.parametrize(
    "mistake, why",
    [
        ("early", "before shmem_init"),
        ("outside", "not in the symmetric heap"),
        ("nobody", "there is no PE 2"),
        ("stride", "not in the symmetric heap"),
        ("own", "an atomic on memory of the own PE"),
    ],
)
def test_a_mistake_ends_all_pes_with_its_reason(mistakes, mistake, why):
    done = run(2, mistakes, mistake)
    assert done.returncode == 1 and why in done.stderr, done.stderr


def test_a_pe_that_is_killed_ends_the_other_one_at_its_barrier(mistakes, seed):
    """`dibber run` has no part in this: it would end the other PE itself."""
    with fabric.cards("gen2x4", "pair", seed) as network:
        settings = fabric.environment(network.uris)
        pes = [
            subprocess.Popen(
                [mistakes, "killed"],
                env={**settings, **fabric.pe_environment(number, 2, network)},
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        try:
            _, said = pes[1].communicate(timeout=SECONDS)
        finally:
            for pe in pes:
                pe.kill()
                pe.communicate()
    assert pes[0].returncode < 0 and pes[1].returncode == 1
    assert said.startswith("shmem, PE 1: a transfer with node 0: "), said


def test_settings_that_make_no_sense_are_named(mistakes):
    done = run(2, mistakes, "none", SHMEM_SYMMETRIC_SIZE="1.5M")
    assert done.returncode == 1 and "SHMEM_SYMMETRIC_SIZE is '1.5M'" in done.stderr
    alone = subprocess.run([mistakes, "none"], capture_output=True, text=True, timeout=SECONDS)
    assert alone.returncode == 1 and "dibber run -n N PROGRAM" in alone.stderr


def test_the_header_is_c_and_cxx_and_is_installed_with_its_library(tmp_path):
    subprocess.run(
        ["make", "-C", paths.ROOT / "software" / "shmem", "install", f"DESTDIR={tmp_path}"],
        check=True,
        capture_output=True,
    )
    header = tmp_path / "usr" / "local" / "include" / "dibber_shmem.h"
    for compiler, language in (("cc", "c"), ("c++", "c++")):
        command = [compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", header]
        subprocess.run(command, check=True)
    assert (tmp_path / "usr" / "local" / "lib" / "libdibber-shmem.so").exists()
