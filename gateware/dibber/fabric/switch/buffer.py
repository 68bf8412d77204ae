"""The buffer of one channel of one input, and how deep it must be for a cable."""

# SPDX-License-Identifier: BSD-2-Clause

import math

from migen import *

from litex.gen import *

from dibber.fabric.switch.prefix import PrefixCheck
from dibber.link.slack import SlackBuffer
from dibber.link.symbols import FLOW_REPEAT_WORDS

# One block RAM of an ECP5 takes 512 words.
BUFFER_WORDS = 512

# What comes after STOP, as docs/design/backpressure.md has it: both directions through a transceiver
# and a cable, and the logic of both ends.
TRANSCEIVER_NS   = 140
CABLE_NS_A_METER = 5
LOGIC_WORDS      = 24

# Words that come before a lost STOP is repeated: the distance of its repetition, and a pong.
REPEAT_WORDS = FLOW_REPEAT_WORDS + 1

# Words between the high mark and what SlackBuffer promises (docs/proofs.md, slack-obeyed).
SPARE_WORDS = 3

def headroom_words(cable_meters, clock_hz):
    """Words that may come above the high mark, with a cable of this length and one STOP lost.

    At most a word comes in each cycle. ValueError: the cable is too long for a buffer of
    BUFFER_WORDS.
    """
    flight_ns = 2*(TRANSCEIVER_NS + CABLE_NS_A_METER*cable_meters)
    words     = math.ceil(flight_ns*clock_hz/1e9) + LOGIC_WORDS + REPEAT_WORDS + SPARE_WORDS
    if 2*words > BUFFER_WORDS:
        raise ValueError(f"{cable_meters} m of cable need {words} words after STOP; "
                         f"a buffer of {BUFFER_WORDS} words has room for {BUFFER_WORDS//2}")
    return words

# Input Buffer -------------------------------------------------------------------------------------

class InputBuffer(LiteXModule):
    """A slack buffer behind a prefix check. For LinkPort it is a slack buffer.

    Parameters
    ----------
    words, headroom : as SlackBuffer

    Attributes
    ----------
    sink     : Endpoint(word_layout), in   without backpressure, `prefix` as START announced
    source   : Endpoint(word_layout), out  the first word of each packet is an order
    stop, overflow, level : as SlackBuffer

    Cycles: 1 from sink to source if it is empty, otherwise 3.
    """
    def __init__(self, words, headroom):
        self.check = check = PrefixCheck()
        self.slack = slack = SlackBuffer(words, headroom)
        self.sink     = check.sink
        self.source   = slack.source
        self.stop     = slack.stop
        self.overflow = slack.overflow
        self.level    = slack.level

        # # #

        self.comb += check.source.connect(slack.sink)
