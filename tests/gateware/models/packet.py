"""Golden model of the wire format: docs/design/packets.md, in plain Python.

`encode` makes the 32-bit words of a packet, `decode` takes them apart again or says with which
`PacketError` they are to be dropped. Words are integers, byte 0 of the wire in bits 7:0. What
stands around them on the link is in link.py.
"""

# SPDX-License-Identifier: BSD-2-Clause

import struct
from dataclasses import dataclass

from dibber.interface.description import C, PACKET, PACKET_FLAG, PACKET_HEADER

# CRCs ---------------------------------------------------------------------------------------------


def crc32c(data, state=0xFFFFFFFF):
    """CRC-32C of bytes, bit by bit (RFC 3720, section 12.1)."""
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


# Packets ------------------------------------------------------------------------------------------


class PacketError(Exception):
    """A packet that is to be dropped; the text is the name of its counter."""


@dataclass
class Packet:
    """One packet, every field of header and extension by its name."""

    target: int
    source: int
    kind: int = PACKET.DEPOSIT
    flags: int = 0
    incarnation: int = 0
    psn: int = 0
    ack: int = 0
    key: int = 0
    offset: int = 0
    skip: int = 0
    block: int = 0
    levels: tuple = ()  # of (stride, count), innermost first
    listed: tuple = None  # (offset, key) of an index list over the levels
    notice: tuple = None  # (value, length, endpoint), sets the flag NOTICE
    payload: bytes = b""

    @property
    def levels_field(self):
        return len(self.levels) + (C.LIST if self.listed else 0)

    def __post_init__(self):
        if self.notice is not None:
            self.flags |= PACKET_FLAG.NOTICE


def random_walk(random, levels):
    """The fields of a Packet that a header's levels field calls for."""
    if not levels:
        return {}
    return dict(
        block=random.getrandbits(32),
        levels=tuple(
            (random.getrandbits(64) - (1 << 63), random.getrandbits(32))
            for _ in range(levels % C.LIST)
        ),
        listed=(random.getrandbits(64), random.getrandbits(32)) if levels & C.LIST else None,
    )


LEVELS = C.LIST + C.LIST_LEVELS + 1  # there are so many levels fields

_FORMAT = {"u8": "B", "u16": "H", "u32": "I"}


def _words(data):
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _bytes(words):
    return struct.pack(f"<{len(words)}I", *words)


def encode(packet):
    """The words of a packet, from header to the last block's CRC."""
    values = dict(
        target=packet.target,
        source=packet.source,
        kind=packet.kind,
        flags=packet.flags,
        incarnation=packet.incarnation,
        levels=packet.levels_field,
        psn=packet.psn,
        ack=packet.ack,
        key=packet.key,
        offset_low=packet.offset & 0xFFFFFFFF,
        offset_high=packet.offset >> 32,
        length=len(packet.payload),
    )
    data = b"".join(
        struct.pack("<" + _FORMAT[m.kind], values[m.name]) for m in PACKET_HEADER.members
    )
    if packet.levels_field:
        data += struct.pack("<II", packet.skip, packet.block)
        for stride, count in packet.levels:
            data += struct.pack("<qI", stride, count)
        if packet.listed:
            data += struct.pack("<QI", *packet.listed)
    if packet.notice is not None:
        data += struct.pack("<III", *packet.notice)
    header_crc = crc32c(data)
    words = _words(data) + [header_crc]
    for number, start in enumerate(range(0, len(packet.payload), C.BLOCK_BYTES)):
        block = packet.payload[start : start + C.BLOCK_BYTES]
        block += bytes(-len(block) % 4)
        words += _words(block) + [crc32c(block, header_crc ^ number)]
    return words


# Flags that a packet of each kind may have, and how long it may be. EXPRESS is the lane's.
FLAGS = {
    PACKET.DEPOSIT: PACKET_FLAG.FIRST
    | PACKET_FLAG.LAST
    | PACKET_FLAG.NOTICE
    | PACKET_FLAG.INTERRUPT,
    PACKET.MESSAGE: PACKET_FLAG.FIRST | PACKET_FLAG.LAST,
    PACKET.ACK: PACKET_FLAG.REFUSED | PACKET_FLAG.NAK | PACKET_FLAG.FIRST,
}


def contradicts(kind, flags, levels, length):
    """Whether these fields of a header cannot stand together."""
    express = bool(flags & PACKET_FLAG.EXPRESS)
    allowed = FLAGS.get(kind, 0) | PACKET_FLAG.EXPRESS
    if kind == PACKET.DEPOSIT:
        if express:
            return bool(flags & ~allowed) or levels != 0 or length > C.INLINE_BYTES
        return (
            bool(flags & ~(allowed | PACKET_FLAG.RESPONSE))
            or levels > C.LIST + C.LIST_LEVELS
            or length > C.PACKET_PAYLOAD
        )
    if kind == PACKET.MESSAGE:
        return not express or bool(flags & ~allowed) or levels != 0 or length != C.MESSAGE_BYTES
    return (
        kind not in (PACKET.ACK, PACKET.QUESTION)
        or bool(flags & ~allowed)
        or levels != 0
        or length != 0
    )


def extension_words(levels):
    """Words of an extension by a header's levels field; a receiver reads so too what cannot stand
    there.
    """
    levels &= 2 * C.LIST - 1
    return levels and 2 + 3 * min(levels - (C.LIST - 1 if levels & C.LIST else 0), C.LEVELS)


def decode(words):
    """The packet in `words`; raises PacketError."""
    if len(words) < C.HEADER_WORDS + 1:
        raise PacketError("PACKET_TRUNCATED")
    data = _bytes(words)
    values = {
        m.name: struct.unpack_from("<" + _FORMAT[m.kind], data, m.offset)[0]
        for m in PACKET_HEADER.members
    }
    notice = values["flags"] & PACKET_FLAG.NOTICE
    levels, listed = values["levels"] & C.LIST - 1, bool(values["levels"] & C.LIST)
    end = 4 * (C.HEADER_WORDS + extension_words(values["levels"]) + (3 if notice else 0))
    if len(data) < end + 4:
        raise PacketError("PACKET_TRUNCATED")
    header_crc = crc32c(data[:end])
    if words[end // 4] != header_crc:
        raise PacketError("HEADER_CRC_ERROR")
    length, payload, at = values["length"], b"", end + 4
    if contradicts(values["kind"], values["flags"], values["levels"], length):
        raise PacketError("PACKET_TRUNCATED")
    for number, start in enumerate(range(0, length, C.BLOCK_BYTES)):
        padded = (min(C.BLOCK_BYTES, length - start) + 3) // 4 * 4
        if at + padded + 4 > len(data):
            raise PacketError("PACKET_TRUNCATED")
        block = data[at : at + padded]
        at += padded + 4
        if crc32c(block, header_crc ^ number) != words[at // 4 - 1]:
            raise PacketError("PAYLOAD_CRC_ERROR")
        payload += block
    if at != len(data):
        raise PacketError("PACKET_TRUNCATED")
    packet = Packet(
        target=values["target"],
        source=values["source"],
        kind=values["kind"],
        flags=values["flags"],
        incarnation=values["incarnation"],
        psn=values["psn"],
        ack=values["ack"],
        key=values["key"],
        offset=values["offset_low"] | values["offset_high"] << 32,
        payload=payload[:length],
    )
    at = 4 * C.HEADER_WORDS
    if levels or listed:
        packet.skip, packet.block = struct.unpack_from("<II", data, at)
        packet.levels = tuple(
            struct.unpack_from("<qI", data, at + 8 + 12 * n) for n in range(levels)
        )
        if listed:
            packet.listed = struct.unpack_from("<QI", data, at + 8 + 12 * levels)
        at += 8 + 12 * (levels + listed)
    if notice:
        packet.notice = struct.unpack_from("<III", data, at)
    return packet
