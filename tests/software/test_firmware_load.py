"""Loading a control program into a mock: checked before, read back, started."""

# SPDX-License-Identifier: BSD-2-Clause

import struct

import libdibber
import pytest
from dibber.interface.description import DOORBELL, HOST, C
from dibber_cli.link import pairs

from tests.software.expect import fails
from tests.software.mock_card import SRAM_BYTES, firmware_image


def test_firmware_is_written_with_the_processor_in_reset_and_starts(serve, image):
    mock = serve()
    with libdibber.Card(mock.uri) as card:
        path = image(words=1001)
        card.load_firmware(path)
        with open(path, "rb") as f:
            assert bytes(mock.device.sram[:4004]) == f.read()[64:]
        assert card.info()["mcp_identity"] == 0xD1BB0001
        assert card.read_firmware(4 * 100, 8) == struct.pack("<II", 100, 101)
    control = HOST["MCP_CONTROL"].offset
    order = [
        o for o, _ in mock.device.writes if o == control or C.FIRMWARE_BASE <= o < C.ENDPOINT_BASE
    ]
    assert order[0] == control and order[-1] == control and control not in order[1:-1]


@pytest.mark.parametrize(
    "bad, name, reason",
    [
        (dict(cut=1), "FIRMWARE_FILE", "truncated"),
        (dict(cut=4040), "FIRMWARE_FILE", "no control program image"),
        (dict(cut=-4), "FIRMWARE_FILE", "too long"),
        (dict(cut=-64), "FIRMWARE_FILE", "0x00000000 at byte 4064"),
        (dict(bytes=0), "FIRMWARE_FILE", "0 bytes"),
        (dict(bytes=3998), "FIRMWARE_FILE", "3998 bytes"),
        (dict(bytes=0xFFFFFFFC), "FIRMWARE_FILE", "4294967292 bytes"),
        (dict(entry=4), "FIRMWARE_FILE", "entry at 0x4"),
        (dict(entry=0x80000000), "FIRMWARE_FILE", "entry at 0x80000000"),
        (
            dict(sram=0x10000),
            "FIRMWARE_FILE",
            "images for cards with 64 KiB of SRAM, this card has 128 KiB",
        ),
        (dict(sram=0), "FIRMWARE_FILE", "with 0 KiB of SRAM, this card has 128 KiB"),
        (dict(sram=0xFFFFFFFF), "FIRMWARE_FILE", "this card has 128 KiB"),
        (dict(features=2), "FIRMWARE_FILE", "128 KiB of SRAM that needs features 0x2"),
        (dict(magic=1), "FIRMWARE_FILE", "0x00000001"),
        (dict(crc=0xBADBAD), "FIRMWARE_FILE", "00badbad"),
        (dict(identity=0), "FIRMWARE_FILE", "identity 0x0"),
        (dict(version=0x00090001), "VERSION", "9.1"),
        (dict(hash=0xDEADBEEF), "VERSION", "deadbeef"),
    ],
)
def test_a_bad_image_is_refused_before_the_card_is_touched(serve, image, bad, name, reason):
    mock = serve()
    with libdibber.Card(mock.uri) as card:
        mock.device.writes.clear()  # those of opening it
        with fails(name, reason):
            card.load_firmware(image(**bad))
        assert mock.device.writes == []
        card.load_firmware(image())


@pytest.mark.parametrize("sram", [0x10000, SRAM_BYTES, C.SRAM_MAX])
def test_an_image_may_fill_the_instruction_cache_and_no_more(serve, folder, sram):
    mock, path = serve(), f"{folder}/large.img"
    give(mock, sram)
    with libdibber.Card(mock.uri) as card:
        assert (
            card.sram_bytes == card.info()["sram_bytes"] == sram
            and card.info()["image_limit"] == sram // 2
        )
        write(path, firmware_image(words=sram // 8 + 1, sram=sram))
        mock.device.writes.clear()  # those of opening it
        with fails(
            "FIRMWARE_FILE",
            f"an image of {sram // 2 + 4} bytes, this card takes {sram // 2} at most",
        ):
            card.load_firmware(path)
        assert mock.device.writes == []
        write(path, firmware_image(words=sram // 8, sram=sram))
        card.load_firmware(path)
        assert card.read_firmware(sram // 2 - 4, 4) == struct.pack("<I", sram // 8 - 1)


def give(mock, sram, features=0):
    """The card has so much SRAM and these features."""
    mock.device.sram = bytearray(sram)
    mock.device.registers[HOST["SRAM"].offset] = sram >> 10 | sram >> 11 << 16
    mock.device.registers[HOST["FEATURES"].offset] = features


def test_nodes_of_a_ring_get_nonces_whose_tags_tell_their_numbers_apart(serve, image):
    mock, nonces = serve(), []
    mock.device.registers[HOST["FEATURES"].offset] = 1 << next(
        field.lsb for field in HOST["FEATURES"].fields if field.name == "ring"
    )
    for node in range(16):
        mock.device.registers[HOST["LINK_NONCE"].offset] = 0
        with libdibber.Card(mock.uri) as card:
            card.set_node(node)
            card.load_firmware(image())
        key = mock.device.registers[HOST["KEY_NEXT"].offset]
        nonces.append(mock.device.registers[HOST["LINK_NONCE"].offset])
        assert nonces[-1] == pairs.ring_nonce((key ^ key >> 12) & 0xFFF, node)
        assert ((nonces[-1] >> 8 ^ nonces[-1]) >> 1 & 0xF) == node
    # Bit 0 of a nonce tells the rings of a pair apart, and so does bit 0 of a tag.
    assert len({nonce >> 1 for nonce in nonces}) == 16


def test_each_nonce_of_a_ring_elects_a_scrubber_and_all_drawn_bits_count():
    for node in range(16):
        nonces = [pairs.ring_nonce(drawn, node) for drawn in range(1 << 12)]
        assert all(nonce >> 1 and nonce < 1 << 16 for nonce in nonces)
        # Two draws in which only the bit of the ring could be set have that of all ones.
        assert len(set(nonces)) == (1 << 12) - 2


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


@pytest.mark.parametrize(
    "sram, features, words",
    [(0x20000, 0, 30), (0x10000, 0, 20), (0x20000, 3, 10), (0x20000, 1, 30), (0x10000, 3, 20)],
)
def test_of_a_file_with_several_images_the_card_gets_the_first_that_fits_it(
    serve, folder, sram, features, words
):
    mock, path = serve(), f"{folder}/several.img"
    give(mock, sram, features)
    write(
        path,
        firmware_image(words=10, sram=0x20000, features=3)
        + firmware_image(words=20, sram=0x10000)
        + firmware_image(words=30, sram=0x20000)
        + firmware_image(words=40, sram=0x20000),
    )
    with libdibber.Card(mock.uri) as card:
        card.load_firmware(path)
    assert bytes(mock.device.sram[: 4 * words]) == struct.pack(f"<{words}I", *range(words))
    assert not any(mock.device.sram[4 * words :])


def test_a_file_for_other_cards_is_refused_with_all_sizes(serve, folder):
    mock, path = serve(), f"{folder}/other.img"
    give(mock, C.SRAM_MAX)
    write(path, firmware_image(sram=0x20000) + firmware_image(sram=0x10000))
    with (
        libdibber.Card(mock.uri) as card,
        fails("FIRMWARE_FILE", "cards with 128, 64 KiB of SRAM, this card has 256 KiB"),
    ):
        card.load_firmware(path)
    write(path, firmware_image(words=1) * 2000)
    with libdibber.Card(mock.uri) as card, fails("FIRMWARE_FILE", "this card has 256 KiB"):
        card.load_firmware(path)


@pytest.mark.parametrize("damage", [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 64, 4063])
def test_damage_anywhere_in_an_image_that_is_not_for_this_card_is_found(serve, folder, damage):
    """The file is not believed in part."""
    mock, path = serve(), f"{folder}/damaged.img"
    other = bytearray(firmware_image(sram=0x10000))
    other[damage] ^= 0x40
    write(path, firmware_image() + bytes(other))
    with libdibber.Card(mock.uri) as card:
        mock.device.writes.clear()  # those of opening it
        with pytest.raises(libdibber.DibberError) as caught:
            card.load_firmware(path)
        assert caught.value.name in ("FIRMWARE_FILE", "VERSION") and mock.device.writes == []


def test_a_file_without_end_is_refused(serve, folder):
    path = f"{folder}/long.img"
    write(path, firmware_image(words=0x10000) * 9)
    with libdibber.Card(serve().uri) as card, fails("FIRMWARE_FILE", "too long"):
        card.load_firmware(path)


@pytest.mark.parametrize(
    "size, limit", [(0, 0), (4, 2), (8, 8), (64, 0), (64, 57), (512, 256), (0xFFFF, 0xFFFF)]
)
def test_a_card_whose_memory_cannot_be_is_not_opened(serve, size, limit):
    mock = serve()
    mock.device.registers[HOST["SRAM"].offset] = size | limit << 16
    with fails("IDENTITY", f"{size} KiB of SRAM for images of {limit} KiB"):
        libdibber.Card(mock.uri)


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
def test_a_control_program_that_does_not_publish_its_identity(serve, image, identity, reason):
    with libdibber.Card(serve(identity=identity).uri) as card, fails("FIRMWARE_START", reason):
        card.load_firmware(image())


@pytest.mark.parametrize(
    "offset, length", [(2, 4), (0, 6), (SRAM_BYTES, 4), (4, SRAM_BYTES), (0xFFFFFFFC, 4)]
)
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
    assert bytes(mock.device.sram[996:1204]) == struct.pack("<I", 249) + bytes(
        range(1, 201)
    ) + struct.pack("<I", 300)


def test_doorbells_of_every_endpoint_can_be_read(loaded):
    mock = loaded()
    for endpoint in range(C.ENDPOINTS):
        offset = (
            C.ENDPOINT_BASE
            + endpoint * C.ENDPOINT_STRIDE
            + C.DOORBELL_OFFSET
            + DOORBELL["COMMAND_HEAD"].offset
        )
        mock.device.registers[offset] = 100 + endpoint
    assert [mock.card.read_doorbell(n, "COMMAND_HEAD") for n in range(C.ENDPOINTS)] == list(
        range(100, 100 + C.ENDPOINTS)
    )
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
