"""The transpose and the migration of objects by MPI, of examples/, in C and with mpi4py."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import os
import subprocess
import sys

import pytest
from dibber_cli import paths

from tests.system.test_mpi4py import suite

SPEC = importlib.util.spec_from_file_location("mpi_chart", paths.ROOT / "examples" / "mpi_chart.py")
chart = importlib.util.module_from_spec(SPEC)
sys.modules["mpi_chart"] = chart
SPEC.loader.exec_module(chart)


def command_of(words):
    """An example and its numbers: (command, environment)."""
    name, *numbers = words
    if not name.endswith(".py"):
        return [paths.BUILD / "ofi" / name, *numbers], dict(os.environ)
    suite.bring()
    environment = {**os.environ, "PYTHONPATH": str(suite.FOLDER / "site")}
    return [sys.executable, paths.ROOT / "examples" / name, *numbers], environment


@pytest.mark.parametrize(
    "options, words",
    [
        (["-n", "2", "--strided"], ["mpi_transpose", 64, 1]),
        (["-n", "3", "--strided"], ["mpi_objects", 24, 300, 1]),
        (["-n", "2"], ["mpi_transpose.py", 64, 1]),
        (["-n", "2", "--strided"], ["mpi_objects.py", 24, 300, 1]),
    ],
    ids=lambda value: str(value[0]),
)
def test_each_example_brings_all_elements_to_their_places(options, words):
    program, environment = command_of(words)
    command = [sys.executable, "-P", "-m", "dibber_cli", "mpirun", *options, *program]
    done = subprocess.run(
        list(map(str, command)),
        env=environment,
        timeout=600,
        capture_output=True,
        text=True,
    )
    said = chart.SAID.fullmatch(done.stdout)
    assert done.returncode == 0 and said, done.stdout + done.stderr
    assert int(said[1]) == words[1] and float(said[2]) > 1 and said[3] == "0"


@pytest.mark.parametrize(
    "words, why",
    [
        (["mpi_transpose", 65], "a multiple of the ranks"),
        (["mpi_transpose", 8192], "at most 4096 rows"),
        (["mpi_transpose.py", 65], "a multiple of the ranks"),
        (["mpi_transpose.py", 8192], "at most 4096 rows"),
        (["mpi_objects", 0], "1 to 65536 bytes"),
        (["mpi_objects", 8, 0], "1 to 4096 objects"),
        (["mpi_objects", 8, 4097], "1 to 4096 objects"),
        (["mpi_objects.py", 8, 0], "1 to 4096 objects"),
        (["mpi_objects.py", 65537], "1 to 65536 bytes"),
    ],
)
def test_the_examples_refuse_numbers_that_make_no_sense(words, why):
    """The cards have no part in this."""
    command, environment = command_of(words)
    launcher = ["mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root"]
    done = subprocess.run(
        list(map(str, [*launcher, *command])),
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and why in done.stderr


def test_the_chart_shows_that_the_card_moves_objects_faster_than_the_engine(tmp_path):
    found = chart.measure("mpi_objects", sizes=(32,))
    assert found[chart.CARD][32] > 1.2 * found[chart.ENGINE][32]
    chart.draw("mpi_objects", found, tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert f">{chart.CARD}<" in drawn and f">{chart.ENGINE}<" in drawn


def test_the_cpu_is_charged_for_each_block_that_the_engine_packs():
    host = chart.profile.load("gen2x4")
    # A column of 1,024 doubles at 80 bytes touches 1,024 lines or more, each loaded once.
    least = 4 * 1024 * min(host.copy_line_ns, host.copy_far_load_ns) / 1e3
    assert chart.packing_us(chart.EXAMPLES["heat"], 1024, host) > least
    assert chart.packing_us(chart.EXAMPLES["mpi_objects"], 32, host) == 0
