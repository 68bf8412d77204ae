# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The words of control symbols, docs/design.md, section 3. The first symbol stands in bits 7:0."""

from migen import *

from dibber.packet.crc import crc8

K_COMMA   = 0xbc  # K28.5: the only one of ours that has the comma, so a receiver can align on it
K_START   = 0xfb  # K27.7
K_END     = 0xfd  # K29.7
K_END_BAD = 0xfe  # K30.7
FLOW_FILL = 0xb5  # D21.5: an edge at every bit, which keeps the clock recovery fed

FIRST_IS_K = 0b0001  # `k` flags of every control word

# A flow word is sent at once when the state changes, FLOW_REPEATS times more in quick succession, so that
# a lost STOP is made good within the slack buffer's headroom, and then at least this often.
FLOW_PERIOD_WORDS = 256
FLOW_REPEATS      = 3
FLOW_REPEAT_WORDS = 16

# A link on which no flow word was seen for so long is down.
SILENCE_WORDS     = 4096

HEAR_BIT = 7  # of the flow symbol: "I hear you"

def flow_word(flow):
    """Expression of a flow word; `flow` has 8 bits."""
    return Cat(Constant(K_COMMA, 8), flow, ~flow[:8], Constant(FLOW_FILL, 8))

def start_word(channel):
    """Expression of a start word without prefix; `channel` has 2 bits."""
    kind   = Signal(8)
    return Cat(Constant(K_START, 8), kind, crc8(kind), Constant(0, 8)), kind.eq(channel)
