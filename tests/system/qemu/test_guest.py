"""A card serves a program that is not ours: QEMU's vfio-user-pci, with a Linux guest that looks for
it.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib

import pytest
from dibber.interface.description import HOST, INTERFACE, C
from dibber_cli import machine

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build"


@pytest.fixture(scope="module")
def guest(request, tmp_path_factory):
    """What the guest saw after a boot with one card: {name: value}. The card outlives it."""
    directory = tmp_path_factory.mktemp("guest")
    machine.build(
        directory / "init",
        [HERE / "guest.c", machine.GUEST / "guest_common.c"],
        f"-I{BUILD}/generated",
        f"-I{machine.GUEST}",
    )
    archive = directory / "initramfs"
    archive.write_bytes(machine.initramfs({"init": directory / "init"}))
    with machine.simulator(directory, request.config.getoption("--seed"), cards=1) as sockets:
        console = machine.boot(BUILD / "qemu", archive, sockets)
    return machine.said(console)


def test_the_guest_enumerates_one_card(guest):
    assert guest["cards"] == 1
    assert guest["class"] == C.PCI_CLASS


def test_the_firmware_of_the_guest_sized_bar_0(guest):
    assert guest["bar0_size"] == C.BAR0_SIZE


def test_msix_capability(guest):
    assert guest["msix_vectors"] == C.VECTORS
    assert guest["msix_table"] == C.MSIX_TABLE_BASE  # offset in bits 31:3, BAR 0 in bits 2:0
    assert guest["msix_pba"] == C.MSIX_PBA_BASE


def test_identity_registers(guest):
    assert guest["magic"] == C.MAGIC
    assert guest["interface_version"] == INTERFACE.version_word
    assert guest["interface_hash"] == INTERFACE.hash
    fields = {
        field.name: guest["geometry"] >> field.lsb & (1 << field.bits) - 1
        for field in HOST["GEOMETRY"].fields
    }
    assert fields == {
        "endpoints": C.ENDPOINTS,
        "slots": C.SLOTS,
        "regions": C.REGIONS,
        "nodes": C.NODES,
    }


def test_one_read_of_eight_bytes_returns_two_registers(guest):
    assert guest["magic_and_version"] == C.MAGIC | INTERFACE.version_word << 32


def test_scratch_keeps_what_the_guest_wrote(guest):
    assert guest["scratch"] == 0x5AA5C33C
    assert guest["scratch_inverted"] == 0xA55A3CC3
