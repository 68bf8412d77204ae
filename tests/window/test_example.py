"""The example of the remote window, on two simulated cards: by calls of the library, and in a guest
by plain assignments to the memory that vfio-pci maps.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import subprocess

import pytest
from dibber_cli import machine, paths, profile
from dibber_cli.simulator import Pair

ROOT = pathlib.Path(__file__).resolve().parents[2]

THERE = "64 words are there; 'stores of 1, 2 and 4 bytes', 0x3232, 0x34343434"
SUM = sum(range(0, 512, 8))


def test_by_calls_all_values_arrive(program, monkeypatch, seed):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    with Pair(profile.load("gen2x4"), seed=seed) as pair:
        done = subprocess.run(
            [paths.BUILD / "lib" / "examples" / "remote_window", paths.FIRMWARE, *pair.uris],
            timeout=600,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {f"by calls: sum {SUM}", THERE}


@pytest.fixture(scope="module")
def console(request, program, tmp_path_factory):
    """What the guest wrote."""
    directory = tmp_path_factory.mktemp("guest")
    built, qemu = directory / "built", ROOT / "build" / "qemu"
    built.mkdir()
    here, library = ROOT / "tests" / "system" / "qemu", ROOT / "software" / "lib"
    generated = f"-I{ROOT / 'build' / 'generated'}"
    machine.build(
        built / "init",
        [here / "guest_vfio.c", here / "guest_hosts.c", machine.GUEST / "guest_common.c"],
        generated,
        f"-I{machine.GUEST}",
    )
    machine.build(
        built / "remote_window",
        [library / "examples" / "remote_window.c", ROOT / "build" / "lib" / "libdibber.a"],
        f"-I{library / 'include'}",
        generated,
        "-pthread",
    )
    files = {
        "init": built / "init",
        "mcp.dibfw": paths.FIRMWARE,
        "modules": None,
        "tests": None,
        "hosts": None,
        "tests/remote_window": built / "remote_window",
    }
    files.update({f"modules/{path.name}": path for path in sorted((qemu / "modules").iterdir())})
    archive = directory / "initramfs"
    archive.write_bytes(machine.initramfs(files))
    seed = request.config.getoption("--seed")
    with machine.simulator(directory, seed, cards=2, program=program) as sockets:
        return machine.boot(qemu, archive, sockets, iommu=True, timeout=1800)


def test_by_assignments_all_values_arrive(console):
    assert machine.said(console)["remote_window"] == 0, console
    assert f"by assignments: sum {SUM}" in console and THERE in console
