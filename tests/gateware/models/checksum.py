"""The Internet checksum, as simply as it can be said."""

# SPDX-License-Identifier: BSD-2-Clause


def internet_checksum(data):
    """RFC 1071, of any number of bytes."""
    data = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
