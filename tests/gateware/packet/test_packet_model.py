"""The golden model of the wire format is right about itself and about the overheads in
docs/design/packets.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from dibber.interface.description import C, PACKET, PACKET_FLAG

from tests.gateware.models.link import crc8, frame
from tests.gateware.models.packet import (
    LEVELS,
    Packet,
    PacketError,
    contradicts,
    crc32c,
    decode,
    encode,
    random_walk,
)


def any_packet(rng, length=None):
    """A deposit with random fields."""
    levels = rng.randrange(LEVELS)
    length = rng.randrange(C.PACKET_PAYLOAD + 1) if length is None else length
    return Packet(
        target=rng.randrange(16),
        source=rng.randrange(16),
        incarnation=rng.randrange(256),
        psn=rng.randrange(65536),
        key=rng.getrandbits(32),
        offset=rng.getrandbits(48),
        skip=rng.getrandbits(32) if levels else 0,
        **random_walk(rng, levels),
        notice=rng.choice([None, (rng.getrandbits(32), rng.getrandbits(32), rng.randrange(8))]),
        payload=rng.randbytes(length),
    )


def test_crc32c_gives_the_values_of_rfc_3720():
    # RFC 3720, B.4: the bytes of the CRC in the order in which they stand on the wire.
    vectors = {
        bytes(32): "aa36918a",
        b"\xff" * 32: "43aba862",
        bytes(range(32)): "4e79dd46",
        bytes(range(31, -1, -1)): "5cdb3f11",
    }
    for data, wire in vectors.items():
        assert crc32c(data).to_bytes(4, "little").hex() == wire


def test_crc8_gives_the_standard_check_value():
    assert crc8(b"123456789") == 0xF4


def test_a_packet_comes_back_as_it_was():
    rng = random.Random(1)
    for length in (
        0,
        1,
        3,
        4,
        255,
        256,
        257,
        C.PACKET_PAYLOAD,
        *(rng.randrange(4097) for _ in range(8)),
    ):
        packet = any_packet(rng, length)
        assert decode(encode(packet)) == packet


def test_any_flipped_bit_is_seen():
    rng = random.Random(2)
    words = encode(any_packet(rng, 300))
    for _ in range(150):
        at = rng.randrange(32 * len(words))
        broken = list(words)
        broken[at // 32] ^= 1 << at % 32
        with pytest.raises(PacketError):
            decode(broken)


def test_a_block_in_another_place_is_seen():
    words = encode(Packet(1, 0, payload=bytes(512)))
    first, second = slice(7, 72), slice(72, 137)
    words[first], words[second] = words[second], words[first]
    with pytest.raises(PacketError, match="PAYLOAD_CRC_ERROR"):
        decode(words)


@pytest.mark.parametrize(
    "length, levels, wire", [(8, 0, 48), (4096, 0, 4196), (4096, 1, 4216), (4096, 3, 4240)]
)
def test_overhead_is_what_the_design_says(length, levels, wire):
    packet = Packet(1, 0, levels=((8, 1),) * levels, payload=bytes(length))
    assert 4 * len(frame(encode(packet), 0)) == wire


def test_a_message_comes_back_as_it_was_and_only_on_its_lane():
    message = Packet(
        1, 0, kind=PACKET.MESSAGE, flags=PACKET_FLAG.EXPRESS, key=5, payload=bytes(range(128))
    )
    assert decode(encode(message)) == message
    message.flags = 0
    with pytest.raises(PacketError, match="PACKET_TRUNCATED"):
        decode(encode(message))


@pytest.mark.parametrize(
    "kind, flags, levels, length",
    [
        (9, 0, 0, 0),
        (PACKET.DEPOSIT, PACKET_FLAG.NAK, 0, 8),
        (PACKET.DEPOSIT, 0, 7, 8),
        (PACKET.DEPOSIT, 0, 0, 4097),
        (PACKET.DEPOSIT, PACKET_FLAG.EXPRESS, 1, 8),
        (PACKET.DEPOSIT, PACKET_FLAG.EXPRESS, 0, 65),
        (PACKET.DEPOSIT, PACKET_FLAG.EXPRESS | PACKET_FLAG.RESPONSE, 0, 8),
        (PACKET.MESSAGE, PACKET_FLAG.EXPRESS, 0, 64),
        (PACKET.MESSAGE, PACKET_FLAG.EXPRESS | PACKET_FLAG.NOTICE, 0, 128),
        (PACKET.ACK, 0, 0, 8),
        (PACKET.ACK, PACKET_FLAG.NOTICE, 0, 0),
        (PACKET.QUESTION, 0, 0, 8),
        (PACKET.QUESTION, PACKET_FLAG.NAK, 0, 0),
    ],
)
def test_what_cannot_stand_together_is_seen(kind, flags, levels, length):
    assert contradicts(kind, flags, levels, length)
