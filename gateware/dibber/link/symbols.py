"""The link's control words; see docs/design/link.md. The first symbol is in bits 7:0."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import xor

from migen import *

from dibber.common.crc import crc8_byte

K_COMMA   = 0xbc  # K28.5: the only symbol here that holds the comma, so a receiver aligns on it
K_START   = 0xfb  # K27.7
K_RESUME  = 0xf7  # K23.7
K_END     = 0xfd  # K29.7
K_END_BAD = 0xfe  # K30.7
K_NONCE   = 0x1c  # K28.0
K_PING    = 0x5c  # K28.2
K_PONG    = 0x7c  # K28.3

FLOW_FILL = 0xb5  # D21.5: alternating bits, good for the clock recovery
# On an inverted pair K28.5 stays K28.5 and D21.5 becomes D10.2: this shows the wrong polarity.
FLOW_FILL_INVERTED = 0x4a

FIRST_IS_K = 0b0001  # `k` flags of every control word

# A flow word is sent at once when the state changes. FLOW_REPEATS copies follow quickly, so that a
# lost STOP is repaired within the slack buffer's headroom. Then it is sent at least every
# FLOW_PERIOD_WORDS. After FLOW_PAIRS single flow words the next one is sent twice in a row.
FLOW_PERIOD_WORDS = 256
FLOW_REPEATS      = 3
FLOW_REPEAT_WORDS = 16
FLOW_PAIRS        = 16

# Shortest distance of nonces while UP, where they replace only idle words; and before UP.
NONCE_PERIOD_WORDS = 1024
NONCE_TRAIN_WORDS  = 16

# Smallest number of other words between two pongs, because pings may come with each word. A real
# measurement sends its next ping only after a round trip.
PONG_REST_WORDS = 16

# A link without a flow word for so many cycles is down.
SILENCE_WORDS     = 4096

HEAR_BIT = 7  # of the flow symbol: "I hear you"

# Words --------------------------------------------------------------------------------------------

def start_word(channel):
    """A start word without prefix, as a number."""
    return K_START | channel << 8 | crc8_byte(channel) << 16

def prefixed_start_word(channel, prefix):
    """A start word, as an expression; `prefix` has 3 bits.

    The CRC is linear, so each bit of `prefix` contributes a constant.
    """
    crc = reduce(
        xor, [Mux(prefix[i], Constant(crc8_byte(0x10 << i), 8), 0) for i in range(3)],
        Constant(crc8_byte(channel), 8))
    return Cat(
        Constant(K_START, 8), Constant(channel, 4), prefix, Constant(0, 1), crc, Constant(0, 8))

def resume_word(channel):
    return K_RESUME | channel << 8 | crc8_byte(channel) << 16

def flow_word(flow):
    """A flow word, as an expression; `flow` has 8 bits."""
    return Cat(Constant(K_COMMA, 8), flow, ~flow[:8], Constant(FLOW_FILL, 8))

def nonce_crc(nonce):
    """CRC-8 of a nonce's two bytes, as an expression; linear, so each bit contributes a constant.
    """
    terms = [crc8_byte(crc8_byte(1 << i)) for i in range(8)] + [crc8_byte(1 << i) for i in range(8)]
    return reduce(xor, [Mux(nonce[i], Constant(term, 8), 0) for i, term in enumerate(terms)])

def nonce_word(nonce):
    return Cat(Constant(K_NONCE, 8), nonce, nonce_crc(nonce))

# Of a ping on a cable without a ring.
NO_TAG = Constant(0, 8)

def ping_word(number, tag=NO_TAG):
    """`tag` has 8 bits: docs/design/ring.md."""
    return Cat(Constant(K_PING, 8), number, ~number[:8], tag)

def pong_word(number):
    return Cat(Constant(K_PONG, 8), number, ~number[:8], Constant(0, 8))
