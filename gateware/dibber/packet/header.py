"""Positions of the fields of a packet header and its extension, from the interface description.

The extension follows docs/design/packets.md. With `levels` > 0: skip, block, and for each level
stride low, stride high and count. With LIST: the same for each stride, then the words of level 2 as
in the command. With NOTICE: value, length and target endpoint.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import C, PACKET_FLAG, PACKET_HEADER

BYTES = {"u8": 1, "u16": 2, "u32": 4}

# Longest header without its CRC: three levels and a notice.
MAX_HEADER_WORDS = C.HEADER_WORDS + 2 + 3*C.LEVELS + 3

# Header -------------------------------------------------------------------------------------------

def header_words(**values):
    """The header as a list of 32-bit expressions, and the statements that drive them.

    Fields that are not given are 0.
    """
    words = [[] for _ in range(C.HEADER_WORDS)]
    for m in PACKET_HEADER.members:
        bits  = 8*BYTES[m.kind]
        field = Signal(bits, name=f"header_{m.name}")
        words[m.offset//4].append((field, values.pop(m.name, 0)))
    assert not values, f"no such header fields: {values}"
    return ([Cat(*[field for field, _ in word]) for word in words],
            [field.eq(value) for word in words for field, value in word])

def header_fields(words):
    """The fields of a header held in a list of 32-bit signals, as a dict of slices."""
    fields = {}
    for m in PACKET_HEADER.members:
        fields[m.name] = field_of(words[m.offset//4], m.name)
    return fields

def field_of(word, name):
    """A field, as a slice of the header word that holds it."""
    member = PACKET_HEADER[name]
    lsb    = 8*(member.offset % 4)
    return word[lsb:lsb + 8*BYTES[member.kind]]

def header_word(name):
    """Index of the header word that holds a field."""
    return PACKET_HEADER[name].offset//4

# Extension ----------------------------------------------------------------------------------------

# Positions, counted as if every part were there; a packet leaves out what it does not need.
SKIP   = C.HEADER_WORDS
BLOCK  = SKIP + 1
LEVEL  = BLOCK + 1               # stride low, stride high, count of level 0; then of the next
NOTICE = LEVEL + 3*C.LEVELS      # value, length, target endpoint
STRIDE_HIGH = [LEVEL + 3*n + 1 for n in range(C.LEVELS)]

LAST_LEVELS = C.LIST + C.LIST_LEVELS  # largest value of the field `levels`

def has_level(levels, level):
    """Whether a packet with `levels` has the words of a level, as an expression."""
    return (levels[:log2_int(C.LIST)] > level) | (
        levels[log2_int(C.LIST)] if level == C.LEVELS - 1 else 0)

def position_after(position, levels, notice):
    """(following, ends, statements): the position after `position`, and whether the header ends
    here.
    """
    walk_end     = Signal(max=NOTICE + 1)
    list_follows = Signal(max=NOTICE + 1)  # the list's words come after this position
    at_end       = Signal()
    follow       = Signal(max=NOTICE + 4)
    ends         = Signal()
    header_end   = C.HEADER_WORDS - 1
    return follow, ends, [
        walk_end.eq(NOTICE - 1),
        Case(
            levels,
            {n: walk_end.eq(LEVEL + 3*n - 1 if n else header_end) for n in range(C.LEVELS)}),
        Case(levels, {C.LIST + n: list_follows.eq(LEVEL + 3*n - 1) for n in range(C.LIST_LEVELS)}),
        at_end.eq(position == walk_end),
        follow.eq(position + 1),
        If((list_follows != 0) & (position == list_follows), follow.eq(NOTICE - 3)),
        If(at_end, follow.eq(NOTICE)),
        ends.eq((at_end & ~notice) | (position == NOTICE + 2)),
    ]

def flag(flags, name):
    """One flag of `flags`, by its name in enum packet_flag."""
    return flags[getattr(PACKET_FLAG, name).bit_length() - 1]
