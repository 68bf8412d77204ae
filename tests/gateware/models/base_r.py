"""10GBASE-R in plain Python: blocks, scrambler, block lock, frames on XGMII.

A word is a list of eight (control bit, byte). A block is (header, payload): the header as IEEE
802.3 prints it, the payload as a number whose lowest bit is first on the wire.
"""

# SPDX-License-Identifier: BSD-2-Clause

import struct
import zlib

IDLE, START, TERMINATE, ERROR, SEQUENCE, SIGNAL = 0x07, 0xFB, 0xFD, 0xFE, 0x9C, 0x5C
DATA, CONTROL = 0b01, 0b10

# Table 49-1.
CODES = {IDLE: 0x00, 0x06: 0x06, 0x1C: 0x2D, 0x3C: 0x33, 0x7C: 0x4B, 0xBC: 0x55, 0xDC: 0x66}
CODES |= {0xF7: 0x78, ERROR: 0x1E}
ORDERS = {SEQUENCE: 0, SIGNAL: 15}

# Figure 49-7, from left to right: D, C, O: the next field is of this lane; a digit: so many zeros.
FIGURE = {
    0x1E: "C0 C1 C2 C3 C4 C5 C6 C7",
    0x2D: "C0 C1 C2 C3 O4 D5 D6 D7",
    0x33: "C0 C1 C2 C3 4 D5 D6 D7",
    0x66: "D1 D2 D3 O0 4 D5 D6 D7",
    0x55: "D1 D2 D3 O0 O4 D5 D6 D7",
    0x78: "D1 D2 D3 D4 D5 D6 D7",
    0x4B: "D1 D2 D3 O0 C4 C5 C6 C7",
    0x87: "7 C1 C2 C3 C4 C5 C6 C7",
    0x99: "D0 6 C2 C3 C4 C5 C6 C7",
    0xAA: "D0 D1 5 C3 C4 C5 C6 C7",
    0xB4: "D0 D1 D2 4 C4 C5 C6 C7",
    0xCC: "D0 D1 D2 D3 3 C5 C6 C7",
    0xD2: "D0 D1 D2 D3 D4 2 C6 C7",
    0xE1: "D0 D1 D2 D3 D4 D5 1 C7",
    0xFF: "D0 D1 D2 D3 D4 D5 D6",
}
STARTS = {0x33: 4, 0x66: 4, 0x78: 0}  # type: lane of the start
ENDS = {0x87: 0, 0x99: 1, 0xAA: 2, 0xB4: 3, 0xCC: 4, 0xD2: 5, 0xE1: 6, 0xFF: 7}

ERRORS = [(1, ERROR)] * 8
IDLES = [(1, IDLE)] * 8
LOCAL_FAULT = [(1, SEQUENCE), (0, 0), (0, 0), (0, 1)] * 2
REMOTE_FAULT = [(1, SEQUENCE), (0, 0), (0, 0), (0, 2)] * 2
ERROR_BLOCK = (CONTROL, 0x1E | sum(0x1E << 8 + 7 * n for n in range(8)))


def number_of(word):
    """(data, control) of a word."""
    data = sum(byte << 8 * n for n, (_, byte) in enumerate(word))
    return data, sum(bit << n for n, (bit, _) in enumerate(word))


def word_of(data, control):
    return [(control >> n & 1, data >> 8 * n & 0xFF) for n in range(8)]


# Blocks -------------------------------------------------------------------------------------------


def kinds_of(number):
    """Of each lane of a block type: D, C, O, S, T."""
    kinds = ["?"] * 8
    for part in FIGURE[number].split():
        if not part.isdigit():
            kinds[int(part[1])] = part[0]
    if number in STARTS:
        kinds[STARTS[number]] = "S"
    if number in ENDS:
        kinds[ENDS[number]] = "T"
    assert "?" not in kinds
    return kinds


def fits(kind, char):
    control, byte = char
    return {
        "D": not control,
        "C": control and byte in CODES and byte != ERROR,
        "O": control and byte in ORDERS,
        "S": char == (1, START),
        "T": char == (1, TERMINATE),
    }[kind]


def encode(word):
    """The block of a word; None if there is none."""
    if not any(control for control, _ in word):
        return DATA, number_of(word)[0]
    for number, figure in FIGURE.items():
        if not all(fits(kind, char) for kind, char in zip(kinds_of(number), word)):
            continue
        payload, at = number, 8
        for part in figure.split():
            if part.isdigit():
                at += int(part)
                continue
            byte = word[int(part[1])][1]
            value, bits = {"D": (byte, 8), "C": (CODES.get(byte), 7), "O": (ORDERS.get(byte), 4)}[
                part[0]
            ]
            payload, at = payload | value << at, at + bits
        assert at == 64
        return CONTROL, payload
    return None


def decode(header, payload):
    """The word of a block; None if it is none. Bits that the figure has as zeros are not read."""
    if header == DATA:
        return word_of(payload, 0)
    if header != CONTROL or payload & 0xFF not in FIGURE:
        return None
    number, at = payload & 0xFF, 8
    word = [{"S": (1, START), "T": (1, TERMINATE)}.get(kind) for kind in kinds_of(number)]
    for part in FIGURE[number].split():
        if part.isdigit():
            at += int(part)
            continue
        bits, names = {"D": (8, None), "C": (7, CODES), "O": (4, ORDERS)}[part[0]]
        value, at = payload >> at & (1 << bits) - 1, at + bits
        if names is None:
            word[int(part[1])] = (0, value)
            continue
        found = [byte for byte, code in names.items() if code == value and byte != ERROR]
        if not found:
            return None
        word[int(part[1])] = (1, found[0])
    return word


def type_of(block):
    """What figures 49-16 and 49-17 call it: D, S, T, C, or E."""
    if block is None or decode(*block) is None:
        return "E"
    header, payload = block
    number = payload & 0xFF
    return "D" if header == DATA else "S" if number in STARTS else "T" if number in ENDS else "C"


# From a state and what comes: the next state. What is not there is an error.
STEPS = {
    ("outside", "C"): "outside",
    ("outside", "S"): "inside",
    ("inside", "D"): "inside",
    ("inside", "T"): "outside",
    ("error", "D"): "inside",
    ("error", "T"): "outside",
    ("error", "C"): "outside",
}


def encoded(words):
    """Figure 49-16: the blocks that leave."""
    state, blocks = "outside", []
    for word in words:
        block = encode(word)
        state = STEPS.get((state, type_of(block)), "error")
        blocks.append(ERROR_BLOCK if state == "error" else block)
    return blocks


def decoded(blocks):
    """Figure 49-17: the words of all blocks but the last one, which is only looked at."""
    state, words = "outside", []
    for block, after in zip(blocks, blocks[1:]):
        kind = type_of(block)
        if kind == "T" and type_of(after) not in "SC":
            kind = "E"
        state = STEPS.get((state, kind), "error")
        words.append(ERRORS if state == "error" else decode(*block))
    return words


# Frames -------------------------------------------------------------------------------------------


def framed(data, lane=0, preamble=b"\x55" * 6 + b"\xd5"):
    """Characters of a frame, from its start to its end, with padding and FCS."""
    data = data + bytes(max(0, 60 - len(data)))
    data += zlib.crc32(data).to_bytes(4, "little")
    return [(1, IDLE)] * lane + [(1, START)] + [(0, b) for b in preamble + data] + [(1, TERMINATE)]


def words_of(chars):
    chars = list(chars) + [(1, IDLE)] * (-len(chars) % 8)
    return [chars[at : at + 8] for at in range(0, len(chars), 8)]


def frames_of(words):
    """(data with FCS, characters from the end of the frame before) of each frame on XGMII."""
    frames, data, gap = [], None, 0
    for control, byte in (char for word in words for char in word):
        if (control, byte) == (1, START):
            assert data is None
            data = b""
        elif (control, byte) == (1, TERMINATE):
            assert data[:7] == b"\x55" * 6 + b"\xd5"
            frames.append((data[7:], gap))
            data, gap = None, 1
        elif data is not None:
            assert not control, f"a control character {byte:02x} in a frame"
            data += bytes([byte])
        else:
            assert control
            gap += 1
    return frames


def pause_frame(quanta, source=b"\2\0\0\0\0\1", destination=b"\x01\x80\xc2\0\0\1", code=1):
    """IEEE 802.3-2018, 31B and 31.4."""
    head = destination + source + b"\x88\x08" + code.to_bytes(2, "big")
    return head + quanta.to_bytes(2, "big") + bytes(42)


def priority_frame(times, source=b"\2\0\0\0\0\1", destination=b"\x01\x80\xc2\0\0\1"):
    """Annex 31D: `times` is {priority: quanta}; the other priorities have a time that must not be
    looked at.
    """
    vector = sum(1 << priority for priority in times)
    fields = [0x0101, vector, *(times.get(priority, 0x7777) for priority in range(8))]
    return destination + source + b"\x88\x08" + struct.pack(">10H", *fields) + bytes(26)


# Wire ---------------------------------------------------------------------------------------------


def bits_of(header, payload):
    """The bits of a block in the order of the wire."""
    return [header >> 1, header & 1, *[payload >> n & 1 for n in range(64)]]


class Scrambler:
    """49.2.6, a bit at a time: x⁵⁸ + x³⁹ + 1. `undo`: the descrambler."""

    def __init__(self, undo=False, state=(1 << 58) - 1):
        self.undo, self.state = undo, state  # bit 0: the bit that left last

    def block(self, header, payload):
        result = 0
        for n in range(64):
            bit = payload >> n & 1
            out = bit ^ (self.state >> 38 & 1) ^ (self.state >> 57 & 1)
            self.state = (self.state << 1 | (bit if self.undo else out)) & (1 << 58) - 1
            result |= out << n
        return header, result


class Lock:
    """Figures 49-14 and 49-15. `block` returns whether it slips."""

    def __init__(self, window, wait):
        self.window, self.wait = window, wait
        self.locked = self.high = False
        self.seen = self.invalid = self.pause = self.passed = self.errors = 0

    def block(self, header):
        bad, was_locked = header in (0, 3), self.locked
        slips = False
        if self.pause:
            self.pause -= 1
        else:
            self.seen, self.invalid = self.seen + 1, self.invalid + bad
            if bad and (not self.locked or self.invalid == 16):
                slips, self.locked, self.pause = True, False, self.wait
                self.seen = self.invalid = 0
            elif self.seen == 64:
                self.locked |= self.invalid == 0
                self.seen = self.invalid = 0
        if was_locked:
            self.passed, self.errors = self.passed + 1, self.errors + bad
            self.high |= self.errors >= 16
            if self.passed == self.window:
                self.high = self.errors >= 16
                self.passed = self.errors = 0
        else:
            self.passed, self.errors, self.high = 0, 0, False
        return slips


def received(words):
    """(data without FCS, whether it is bad) of each frame that a MAC makes of words.

    A frame that does not end has its whole words. Less than eight bytes are no frame.
    """
    chars = [char for word in words for char in word]
    frames, at = [], 0
    while at + 8 <= len(chars):
        preamble = chars[at : at + 8]
        at += 4
        if preamble[0] != (1, START) or any(bit for bit, _ in preamble[1:]):
            continue
        if preamble[7][1] != 0xD5:
            continue
        begin = at = at + 4
        while at < len(chars) and not chars[at][0]:
            at += 1
        data = bytes(byte for _, byte in chars[begin:at])
        if at == len(chars):
            break
        if chars[at] == (1, TERMINATE):
            right = len(data) >= 64 and zlib.crc32(data[:-4]).to_bytes(4, "little") == data[-4:]
            if len(data) >= 8:
                frames.append((data[:-4], not right))
        elif len(data) >= 8:
            frames.append((data[: len(data) // 8 * 8], True))
        at = begin + (at - begin + 7) // 8 * 8  # the frame's last word ends here
        at -= at - begin and at % 4
    return frames


# Gearbox ------------------------------------------------------------------------------------------


class BitCutter:
    """Blocks of a row of bits that comes in words of 40. A slip leaves out the next bit.

    A word is cut when more than 40 bits are there, so that a slip finds a bit to leave out.
    """

    def __init__(self):
        self.waiting = [0] * 40  # in front of the first word are the zeros of a register
        self.row = []

    def step(self, word, slip):
        """Take a word's bits and then a slip; a block that is whole, or None."""
        self.waiting += word
        if len(self.waiting) > 40:
            self.row += self.waiting[:40]
            del self.waiting[:40]
        if slip:
            del self.waiting[0]
        if len(self.row) < 66:
            return None
        bits, self.row = self.row[:66], self.row[66:]
        return bits[0] << 1 | bits[1], sum(bit << n for n, bit in enumerate(bits[2:]))
