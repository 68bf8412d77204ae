"""Two machines, a card in each: the programs for two hosts, each in a guest of its own.

Both guests are QEMU's, with vfio-pci behind an IOMMU. One simulator has both cards and the cable.
The guests share nothing else but a serial line, over which each carries the TCP connection of its
program.
"""

# SPDX-License-Identifier: BSD-2-Clause

import concurrent.futures
import pathlib

import pytest
from dibber_cli import machine
from test_vfio import BUILD, HOSTS, programs

HERE = pathlib.Path(__file__).parent
WAYS = ("listen", "connect")


def contents(directory):
    """The files of both guests."""
    machine.build(
        directory / "init",
        [HERE / "guest_host.c", machine.GUEST / "guest_common.c"],
        f"-I{BUILD}/generated",
        f"-I{machine.GUEST}",
    )
    files = {"init": directory / "init", "mcp.dibfw": BUILD / "firmware/mcp.dibfw"}
    files.update(modules=None, hosts=None)
    for path in sorted((BUILD / "qemu/modules").iterdir()):
        files[f"modules/{path.name}"] = path
    for name, path in programs(directory / "hosts", HOSTS).items():
        files[f"hosts/{name}"] = path
    return files


@pytest.fixture(scope="module")
def consoles(request, tmp_path_factory):
    """{way: what that guest wrote}."""
    directory = tmp_path_factory.mktemp("guests")
    archive, line = directory / "initramfs", directory / "line.sock"
    archive.write_bytes(machine.initramfs(contents(directory)))
    seed = request.config.getoption("--seed")
    with (
        machine.simulator(directory, seed, cards=2) as sockets,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        boots = {
            way: pool.submit(
                machine.boot,
                BUILD / "qemu",
                archive,
                [socket],
                timeout=1800,
                iommu=True,
                words=f"way={way}",
                line=f"socket,path={line},{'server=on' if way == 'listen' else 'reconnect=1'}",
            )
            for way, socket in zip(WAYS, sockets)
        }
        return {way: boot.result() for way, boot in boots.items()}


@pytest.mark.parametrize("name", HOSTS)
def test_a_program_of_each_host_ends_well(consoles, name):
    assert [machine.said(consoles[way])[name] for way in WAYS] == [0, 0], consoles


@pytest.mark.parametrize(
    "way, words",
    [
        ("listen", "half a round trip, the host's clock"),
        ("listen", "notice 7: column 5 ends with 63"),
        ("listen", "node 0 has its half of the transposed matrix"),
        ("connect", "node 1 has its half of the transposed matrix"),
    ],
)
def test_what_each_host_has_found(consoles, way, words):
    assert words in consoles[way]
