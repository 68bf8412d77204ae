# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Loading a control program into a mock: checked before, read back, started."""

import struct

import pytest

import libdibber
from dibber.interface.description import C, DOORBELL, HOST
from expect import fails


def test_firmware_is_written_with_the_processor_in_reset_and_starts(serve, image):
    mock = serve()
    with libdibber.Card(mock.uri) as card:
        path = image(words=1001)
        card.load_firmware(path)
        with open(path, "rb") as f:
            assert bytes(mock.device.sram[:4004]) == f.read()[64:]
        assert card.info()["mcp_identity"] == 0xd1bb0001
        assert card.read_firmware(4*100, 8) == struct.pack("<II", 100, 101)
    control = HOST["MCP_CONTROL"].offset
    order = [o for o, _ in mock.device.writes if o == control or C.FIRMWARE_BASE <= o < C.ENDPOINT_BASE]
    assert order[0] == control and order[-1] == control and control not in order[1:-1]


@pytest.mark.parametrize("bad, name, reason", [
    (dict(cut=1),             "FIRMWARE_FILE", "truncated"),
    (dict(cut=4040),          "FIRMWARE_FILE", "no control program image"),
    (dict(cut=-4),            "FIRMWARE_FILE", "too long"),
    (dict(magic=1),           "FIRMWARE_FILE", "0x00000001"),
    (dict(crc=0xbadbad),      "FIRMWARE_FILE", "00badbad"),
    (dict(identity=0),        "FIRMWARE_FILE", "identity 0x0"),
    (dict(version=0x00090001), "VERSION",      "9.1"),
    (dict(hash=0xdeadbeef),   "VERSION",       "deadbeef")])
def test_a_bad_image_is_refused_before_the_card_is_touched(serve, image, bad, name, reason):
    mock = serve()
    with libdibber.Card(mock.uri) as card:
        with fails(name, reason):
            card.load_firmware(image(**bad))
        assert mock.device.writes == []
        card.load_firmware(image())


def test_an_image_larger_than_the_sram(serve, image):
    with libdibber.Card(serve().uri) as card, fails("FIRMWARE_FILE", "65540 bytes"):
        card.load_firmware(image(words=C.SRAM_SIZE//4 + 1, bytes=C.SRAM_SIZE + 4))


def test_an_image_that_is_not_there(serve, folder):
    with libdibber.Card(serve().uri) as card, fails("NOT_FOUND", "No such file"):
        card.load_firmware(f"{folder}/none.img")


def test_an_image_that_reads_back_wrong_is_not_started(serve, image):
    mock = serve(flips=1234)
    with libdibber.Card(mock.uri) as card:
        with fails("FIRMWARE_CRC", "read back with CRC"):
            card.load_firmware(image())
        assert mock.device.get("MCP_CONTROL") == 0
        with fails("NO_FIRMWARE", "load a control program first"):
            card.endpoint(1)
        mock.device.flips = None
        card.load_firmware(image())
        card.endpoint(1).close()


@pytest.mark.parametrize("identity, reason", [(0, "0x00000000"), (0x55, "0x00000055")])
def test_a_control_program_that_does_not_say_who_it_is(serve, image, identity, reason):
    with libdibber.Card(serve(identity=identity).uri) as card, fails("FIRMWARE_START", reason):
        card.load_firmware(image())


@pytest.mark.parametrize("offset, length", [(2, 4), (0, 6), (C.SRAM_SIZE, 4), (4, C.SRAM_SIZE)])
def test_reading_and_writing_outside_the_sram(serve, offset, length):
    with libdibber.Card(serve().uri) as card:
        with fails("ARGUMENT", "SRAM"):
            card.read_firmware(offset, length)
        with fails("ARGUMENT", "SRAM"):
            card.write_firmware(offset, bytes(length))


def test_memory_of_a_running_program_is_written(loaded):
    mock = loaded()
    mock.card.write_firmware(1000, bytes(range(1, 201)))
    assert mock.card.read_firmware(1000, 200) == bytes(range(1, 201))
    assert bytes(mock.device.sram[996:1204]) == struct.pack("<I", 249) + bytes(range(1, 201)) + struct.pack("<I", 300)


def test_doorbells_of_every_endpoint_can_be_read(loaded):
    mock = loaded()
    for endpoint in range(C.ENDPOINTS):
        offset = C.ENDPOINT_BASE + endpoint*C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET + DOORBELL["COMMAND_HEAD"].offset
        mock.device.registers[offset] = 100 + endpoint
    assert [mock.card.read_doorbell(n, "COMMAND_HEAD") for n in range(C.ENDPOINTS)] == list(range(100, 100 + C.ENDPOINTS))
    with fails("ARGUMENT", "endpoint 8 of 8"):
        mock.card.read_doorbell(C.ENDPOINTS, "COMMAND_HEAD")


def test_node_number(serve, image):
    mock = serve()
    with libdibber.Card(mock.uri) as card:
        card.set_node(5)
        assert card.info()["node"] == 5
        with fails("ARGUMENT", "nodes 0 to 15"):
            card.set_node(16)
        card.load_firmware(image())
        with fails("IN_USE", "before it is loaded"):
            card.set_node(1)
