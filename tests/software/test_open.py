"""Opening a card on a mock: its information, and every way in which it can be the wrong card."""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import HOST, INTERFACE, C

from tests.software.expect import fails


def test_open_tells_identity_geometry_and_counters_by_name(serve):
    mock = serve()
    mock.device.registers[HOST["COUNT_PACKETS_SENT"].offset] = 77
    with libdibber.Card(mock.uri) as card:
        info = card.info()
    assert (info["endpoints"], info["slots"], info["regions"], info["nodes"]) == (8, 32, 64, 16)
    assert (info["interface_version"], info["interface_hash"]) == (
        INTERFACE.version_word,
        INTERFACE.hash,
    )
    assert (info["max_payload"], info["max_request"], info["clock_hz"]) == (256, 512, 125_000_000)
    assert info["counters"]["packets_sent"] == 77
    assert info["simulated_clock"] == 1


def test_open_makes_the_card_bus_master_and_close_ends_it(serve):
    mock = serve()
    with libdibber.Card(mock.uri):
        assert mock.device.config[4] & 6 == 6
    assert mock.device.config[4] & 4 == 0


def test_a_socket_that_is_not_there(folder):
    with fails("NOT_FOUND", f"no simulator at {folder}/none"):
        libdibber.Card(f"sim:{folder}/none")


@pytest.mark.parametrize("uri", ["", "sim", "vfio", "/dev/null"])
def test_a_uri_of_no_known_kind(uri):
    with fails("ARGUMENT", "sim:PATH_OF_SOCKET"):
        libdibber.Card(uri)


@pytest.mark.parametrize(
    "address", ["", "1:2", "01:00.0", "0000:01:00.00", "../../../../tmp", "0000:01:00,0"]
)
def test_what_is_no_pci_address(address):
    with fails("ARGUMENT", "it must read 0000:01:00.0"):
        libdibber.Card(f"vfio:{address}")


def test_a_pci_address_where_nothing_is():
    with fails("NOT_FOUND", "no PCI device ffff:ff:1f.7"):
        libdibber.Card("vfio:ffff:ff:1f.7")


def test_a_path_longer_than_a_socket_can_have():
    with fails("ARGUMENT", "107 characters"):
        libdibber.Card("sim:/" + "x" * 200)


def test_a_device_that_is_not_ours(serve):
    mock = serve()
    mock.device.registers[HOST["MAGIC"].offset] = 0x12345678
    with fails("IDENTITY", "0x12345678"):
        libdibber.Card(mock.uri)


def test_a_bar_that_is_too_small(serve):
    mock = serve()
    mock.server.bar_size = 4096
    with fails("IDENTITY", "4096 bytes"):
        libdibber.Card(mock.uri)


@pytest.mark.parametrize(
    "register, value, both",
    [
        ("INTERFACE_VERSION", 0x00070003, ("7.3", "{}.{}".format(*INTERFACE.version))),
        ("INTERFACE_HASH", 0x01234567, ("01234567", f"{INTERFACE.hash:08x}")),
    ],
)
def test_gateware_of_another_version_names_both(serve, register, value, both):
    mock = serve()
    mock.device.registers[HOST[register].offset] = value
    for text in both:
        with fails("VERSION", text):
            libdibber.Card(mock.uri)


def test_geometry_that_cannot_be(serve):
    mock = serve()
    mock.device.registers[HOST["GEOMETRY"].offset] = 0xFFFFFFFF
    with fails("IDENTITY", "255 endpoints"):
        libdibber.Card(mock.uri)


def test_after_a_failed_open_the_next_succeeds(serve):
    mock = serve()
    mock.device.registers[HOST["MAGIC"].offset] = 0
    with fails("IDENTITY", "0x00000000"):
        libdibber.Card(mock.uri)
    mock.device.registers[HOST["MAGIC"].offset] = C.MAGIC
    libdibber.Card(mock.uri).close()
