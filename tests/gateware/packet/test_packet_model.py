# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The golden model of the wire format is right about itself and about the overheads in docs/design.md."""

import random

import pytest

from dibber.interface.description import C
from gateware.models.packet import Packet, PacketError, crc8, crc32c, decode, deframe, encode, frame


def any_packet(rng, length=None):
    """A deposit with random fields."""
    levels = rng.randrange(4)
    length = rng.randrange(C.PACKET_PAYLOAD + 1) if length is None else length
    return Packet(
        target=rng.randrange(16), source=rng.randrange(16), incarnation=rng.randrange(256),
        psn=rng.randrange(65536), key=rng.getrandbits(32), offset=rng.getrandbits(48),
        skip=rng.getrandbits(32) if levels else 0, block=rng.getrandbits(32) if levels else 0,
        levels=tuple((rng.getrandbits(64) - (1 << 63), rng.getrandbits(32)) for _ in range(levels)),
        notice=rng.choice([None, (rng.getrandbits(32), rng.getrandbits(32), rng.randrange(8))]),
        payload=rng.randbytes(length))


def test_crc32c_gives_the_values_of_rfc_3720():
    # RFC 3720, B.4: the bytes of the CRC in the order in which they stand on the wire.
    vectors = {
        bytes(32):                    "aa36918a",
        b"\xff"*32:                   "43aba862",
        bytes(range(32)):             "4e79dd46",
        bytes(range(31, -1, -1)):     "5cdb3f11",
    }
    for data, wire in vectors.items():
        assert crc32c(data).to_bytes(4, "little").hex() == wire


def test_crc8_gives_the_standard_check_value():
    assert crc8(b"123456789") == 0xf4


def test_a_packet_comes_back_as_it_was():
    rng = random.Random(1)
    for length in (0, 1, 3, 4, 255, 256, 257, C.PACKET_PAYLOAD, *(rng.randrange(4097) for _ in range(8))):
        packet = any_packet(rng, length)
        assert decode(encode(packet)) == packet


def test_any_flipped_bit_is_seen():
    rng = random.Random(2)
    words = encode(any_packet(rng, 300))
    for _ in range(150):
        at = rng.randrange(32*len(words))
        broken = list(words)
        broken[at//32] ^= 1 << at % 32
        with pytest.raises(PacketError):
            decode(broken)


def test_a_block_in_another_place_is_seen():
    words = encode(Packet(1, 0, payload=bytes(512)))
    first, second = slice(7, 72), slice(72, 137)
    words[first], words[second] = words[second], words[first]
    with pytest.raises(PacketError, match="PAYLOAD_CRC_ERROR"):
        decode(words)


@pytest.mark.parametrize("length, levels, wire", [(8, 0, 48), (4096, 0, 4196), (4096, 1, 4216), (4096, 3, 4240)])
def test_overhead_is_what_the_design_says(length, levels, wire):
    packet = Packet(1, 0, levels=((8, 1),)*levels, payload=bytes(length))
    assert 4*len(frame(encode(packet))) == wire


def test_a_stream_of_frames_is_taken_apart():
    words = [encode(any_packet(random.Random(n), 40)) for n in range(3)]
    symbols = frame(words[0]) + frame(words[1], channel=0) + frame(words[2], bad=True)
    assert deframe(symbols) == [(1, words[0], True), (0, words[1], True), (1, words[2], False)]
