"""Words of a ring: its prefix and echo words, and what their fields mean. docs/design/ring.md."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import xor

from migen import *

from dibber.common.crc import crc8_byte
from dibber.link.symbols import K_RESUME, K_START

ADDRESS_BITS = 4
NUMBER_BITS  = 5
STATUS_BITS  = 3

# Statuses of an echo. LOST is never on the wire: the source found that no echo will come.
ACCEPTED = 0
BUSY_A   = 1
BUSY_B   = 2
ORDER    = 3
DAMAGED  = 4
GRANT    = 5
LOST     = 6

# Flags of an idle. Bit 7 is WHOLE, as HEAR_BIT of a flow word.
GO_BIT = 0

# CRC-8 --------------------------------------------------------------------------------------------

def _term(byte, value):
    """CRC-8 of three bytes, of which one is `value` and the others are 0."""
    for _ in range(3 - byte):
        value = crc8_byte(value)
    return value

def crc8_of_three(bits):
    """CRC-8 of the three bytes `bits`, as an expression; linear, so each bit contributes a
    constant.
    """
    return reduce(xor, [Mux(bits[n], Constant(_term(n//8, 1 << n % 8), 8), 0) for n in range(24)])

# The scrubber sets OLD in a word that passes, where it was 0: these bits change.
OLD_BIT   = 7
OLD_MASK  = 1 << OLD_BIT | _term(0, 1 << OLD_BIT) << 24

# Words --------------------------------------------------------------------------------------------

class RingWord:
    """Fields of a ring prefix or of an echo word: parts of `data`, a Signal of 32 bits.

    target, source : addresses
    old            : the scrubber saw it
    number         : of the packet
    head, status   : of a prefix; of an echo word
    right          : the CRC-8 is right, and the unused bits are 0
    """
    def __init__(self, data):
        self.target = data[0:4]
        self.old    = data[OLD_BIT]
        self.source = data[8:12]
        self.number = data[16:16 + NUMBER_BITS]
        self.head   = data[23]
        self.status = data[21:24]
        self.right  = (
            (data[4:7] == 0) & (data[12:16] == 0) & (data[24:32] == crc8_of_three(data[:24])))

def ring_word(target, source, low, high):
    """A prefix (`high`: 0, 0, HEAD) or an echo word (`high`: the status), as an expression; `low`
    is the number.
    """
    body = Cat(target, Constant(0, 4), source, Constant(0, 4), low, high)
    assert len(body) == 24
    copy = Signal(24)
    return [copy.eq(body)], Cat(copy, crc8_of_three(copy))

def begin_word(k, channel, prefix):
    """START or RESUME of a channel, as an expression."""
    crc = reduce(xor, [Mux(channel[n], Constant(crc8_byte(1 << n), 8), 0) for n in range(2)])
    return Cat(
        Constant(k, 8), channel, Constant(0, 2), Constant(prefix, 4),
        crc ^ crc8_byte(prefix << 4), Constant(0, 8))

def start_word(channel):
    return begin_word(K_START, channel, 1)

def resume_word(channel):
    return begin_word(K_RESUME, channel, 0)
