"""MPICH of PyPI, unmodified, with the libfabric 2.5 that it brings, on two simulated cards."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import pathlib
import subprocess

import pytest
from dibber_cli import fabric

HERE = pathlib.Path(__file__).parent
SPEC = importlib.util.spec_from_file_location("mpich", HERE.parent / "mpich" / "bring.py")
mpich = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mpich)

SECONDS = 300  # until a program that hangs is ended


@pytest.fixture(scope="module", autouse=True)
def brought():
    mpich.bring()


def run(folder, name, *words, shape="pair", ranks=2):
    """Compile tests/system/provider/NAME.c with MPICH and run it on cards; returns what it says."""
    program = folder / name
    compiler = [mpich.PREFIX / "bin" / "mpicc", "-O1", "-Wall", "-Wextra", "-Werror"]
    source = HERE / "provider" / f"{name}.c"
    subprocess.run([*compiler, "-o", program, source], check=True)
    with fabric.cards("gen2x4", shape, 1) as network:
        settings = {
            **fabric.environment(network.uris),
            "FI_PROVIDER_PATH": str(mpich.PROVIDER),
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "MPIR_CVAR_NOLOCAL": "1",
        }
        launcher = [mpich.PREFIX / "bin" / "mpiexec", "-n", str(ranks)]
        launcher += ["-genv", "LD_PRELOAD", mpich.PROVIDER / "libdibber-wtime.so"]
        done = subprocess.run(
            [*launcher, program, *words],
            env=settings,
            timeout=SECONDS,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_messages_collectives_and_windows_have_the_right_bytes(tmp_path):
    assert run(tmp_path, "mpi", "65536", "1") == "all is well\n"


def test_eight_bytes_take_at_most_two_microseconds(tmp_path, figure):
    """The provider's instructions are charged, MPICH's are not."""
    half = min(float(line) for line in run(tmp_path, "latency").split())
    assert figure("mpich-gen2x4-half-round-trip", half, "µs", at_most=2.0, profile="gen2x4")
    assert half > 1.0, "less than a put takes: this is no simulated time"
