"""The library's VFIO transport: programs that run on simulated cards run in a guest on the same
cards behind an IOMMU.

Two cards on vfio-user sockets, QEMU's vfio-user-pci and intel-iommu, a Debian kernel with vfio-pci.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib

import pytest
from dibber_cli import machine

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build"

EXAMPLES = ROOT / "software/lib/examples"
TESTS = {
    "put_strided": EXAMPLES / "put_strided.c",
    "messages": EXAMPLES / "messages.c",
    "mailbox": EXAMPLES / "mailbox.c",
    "vfio_refusals": HERE / "vfio_refusals.c",
}
# Programs for two hosts: each is run twice, in two network namespaces.
HOSTS = {
    name: ROOT / "examples/two_hosts" / f"{name}.c"
    for name in ("pingpong", "put_strided", "transpose")
}


def programs(directory, sources):
    """Each program, built static: {name: path}."""
    directory.mkdir()
    for name, source in sources.items():
        machine.build(
            directory / name,
            [source, BUILD / "lib/libdibber.a"],
            f"-I{ROOT}/software/lib/include",
            f"-I{BUILD}/generated",
            "-pthread",
        )
    return {name: directory / name for name in sources}


@pytest.fixture(scope="module")
def console(request, tmp_path_factory):
    """What the guest wrote."""
    directory = tmp_path_factory.mktemp("vfio")
    machine.build(
        directory / "init",
        [HERE / "guest_vfio.c", HERE / "guest_hosts.c", machine.GUEST / "guest_common.c"],
        f"-I{BUILD}/generated",
        f"-I{machine.GUEST}",
    )
    files = {
        "init": directory / "init",
        "mcp.dibfw": BUILD / "firmware/mcp.dibfw",
        "modules": None,
        "tests": None,
        "hosts": None,
    }
    files.update(
        {f"modules/{path.name}": path for path in sorted((BUILD / "qemu/modules").iterdir())}
    )
    for folder, sources in (("tests", TESTS), ("hosts", HOSTS)):
        found = programs(directory / folder, sources)
        files.update({f"{folder}/{name}": path for name, path in found.items()})
    archive = directory / "initramfs"
    archive.write_bytes(machine.initramfs(files))
    with machine.simulator(directory, request.config.getoption("--seed"), cards=2) as sockets:
        return machine.boot(BUILD / "qemu", archive, sockets, iommu=True, timeout=1800)


def test_a_column_is_put_into_the_other_cards_memory(console):
    assert machine.said(console)["put_strided"] == 0
    assert "notice 7: 512 bytes; the last element is 63" in console


def test_messages_atomics_and_interrupts(console):
    assert machine.said(console)["messages"] == 0
    assert "10 bytes: message 3" in console and "counted: 4" in console


def test_mailboxes(console):
    assert machine.said(console)["mailbox"] == 0
    assert "32 words and the 200000 bytes of the index" in console


@pytest.mark.parametrize(
    "name, words",
    [
        ("pingpong", "half a round trip, the host's clock"),
        ("put_strided", "notice 7: column 5 ends with 63"),
        ("transpose", "node 1 has its half of the transposed matrix"),
    ],
)
def test_two_programs_in_two_networks_use_a_card_each(console, name, words):
    """They share nothing but TCP, and the cable between their cards."""
    assert machine.said(console)[f"hosts_{name}"] == 0, console
    assert words in console


def test_what_cannot_be_opened_is_refused_with_a_reason(console):
    assert machine.said(console)["vfio_refusals"] == 0, console
