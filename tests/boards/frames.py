"""Frames of the UART in plain Python, and Migen processes that send and take them."""

# SPDX-License-Identifier: BSD-2-Clause

import struct

from dibber.interface.description import C

REQUEST_BYTES = 8


def crc32c(data):
    """RFC 3720, section 12.1."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sealed(data):
    return data + struct.pack("<I", crc32c(data))


def request(number, address, words=1, data=None):
    """A frame that reads `words`, or writes `data`, a list of words."""
    count = words if data is None else len(data)
    return sealed(
        struct.pack(
            f"<4BI{len(data or [])}I",
            C.FRAME_REQUEST,
            number & 0xFF,
            data is not None,
            count,
            address,
            *(data or []),
        )
    )


def reply(frame, data=(), status=0):
    """The answer to a frame."""
    return sealed(
        bytes([C.FRAME_REPLY]) + frame[1:4] + struct.pack(f"<{len(data)}II", *data, status)
    )


def reply_bytes(frame):
    """How long it is."""
    return 12 + (0 if frame[2] else 4 * frame[3])


def words(data):
    return list(struct.unpack(f"<{len(data) // 4}I", data))


# Processes ----------------------------------------------------------------------------------------


def send(stream, data, gap=lambda: 0):
    """Offer bytes to a stream; before each `gap()` cycles pass."""
    for byte in data:
        for _ in range(gap()):
            yield
        yield stream.valid.eq(1)
        yield stream.data.eq(byte)
        yield
        while not (yield stream.ready):
            yield
        yield stream.valid.eq(0)


def take(stream, count, patience=4000, stall=lambda: False):
    """`count` bytes of a stream, or those that came in time."""
    data = bytearray()
    for _ in range(patience):
        yield stream.ready.eq(not stall())
        yield
        if (yield stream.valid) and (yield stream.ready):
            data.append((yield stream.data))
        if len(data) == count:
            break
    yield stream.ready.eq(0)
    return bytes(data)
