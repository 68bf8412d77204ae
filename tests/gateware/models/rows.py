"""Rows of the bonded link in plain Python: docs/design/bonded-link.md."""

# SPDX-License-Identifier: BSD-2-Clause

import struct

from dibber.interface.description import C, PACKET_FLAG

from tests.gateware.models.packet import crc32c, extension_words

HEADER, PAYLOAD, BEYOND = range(3)
LINE_WORDS = 8


def chunks_of(random, words):
    """The words of a packet as chunks: 8 words, 7 behind START or a RESUME, the last one 0 to 7."""
    chunks, left, front = [], words, True
    while len(left) >= LINE_WORDS:
        chunks.append(left[: LINE_WORDS - front])
        left = left[LINE_WORDS - front :]
        front = random.random() < 0.3
    return [*chunks, left]


def inspected(words):
    """[(kind, words, seal, final, cut, match)] of the lines of a packet, however wrong it is.

    The last line of the packet is the last one of the list. Flags that have no meaning are False.
    """
    padded = words[: C.HEADER_WORDS] + [0] * C.HEADER_WORDS
    levels, flags = padded[1] >> 24, padded[1] >> 8 & 0xFF
    length = padded[5] >> 16
    notice = 3 if flags & PACKET_FLAG.NOTICE else 0
    header = C.HEADER_WORDS + extension_words(levels) + notice
    blocks = [(min(C.BLOCK_BYTES, length - at) + 3) // 4 for at in range(0, length, C.BLOCK_BYTES)]
    lines, at, header_crc = [], 0, 0
    for number, size in enumerate([header, *blocks]):
        kind = PAYLOAD if number else HEADER
        part, final = words[at : at + size], number == len(blocks)
        crc = crc32c(
            struct.pack(f"<{len(part)}I", *part), *([header_crc ^ number - 1] * (number > 0))
        )
        header_crc = header_crc if number else crc
        for place in range(0, size, LINE_WORDS):
            line = part[place : place + LINE_WORDS]
            seal = place + LINE_WORDS >= size
            whole = len(words) - at >= size + 1 if seal else len(line) == LINE_WORDS
            match = seal and whole and words[at + size] == crc
            lines.append((kind, line, seal, seal and final, not whole, match))
            if len(words) <= at + place + len(line) + (seal and whole):
                return lines
        at += size + 1
    for place in range(at, len(words), LINE_WORDS):
        lines.append((BEYOND, words[place : place + LINE_WORDS], False, False, False, False))
    return lines


def verdict(lines):
    """Why a receiver drops a packet with these lines, as the name of its counter; None if it is
    whole. The packet's fields are not judged here.
    """
    for kind, _, seal, _, cut, match in lines:
        if cut or kind == BEYOND:
            return "PACKET_TRUNCATED"
        if seal and not match:
            return "PAYLOAD_CRC_ERROR" if kind == PAYLOAD else "HEADER_CRC_ERROR"
    return None if lines[-1][3] else "PACKET_TRUNCATED"
