"""What a switch shows: its registers and counters. `description.py` makes them part of the whole."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.schema import Field, Register, bank, enum

PORTS = 16  # of the largest switch
WORDS = 32  # of a port's counters, in COUNTERS; fewer are used

SWITCH_CONSTANTS = (
    ("SWITCH_SIGNATURE",  0x53424944, "\"DIBS\" read as a little-endian word: a switch"),
    ("SWITCH_MAX_PORTS",  PORTS,      "ports of the largest switch"),
    ("SWITCH_COUNTER_WORDS", WORDS,   "words between the counters of two ports of a switch"),
    ("SWITCH_LIMIT_UNIT", 1024,       "cycles that one unit of switch register LIMIT stands for"),
    ("SWITCH_ASK_WORD",   0x3ff,
        "these bits of the number of a scout that ends at a switch: the word of its bank that it "
        "answers with"),
    ("SWITCH_ASK_WRITE",  0x400,
        "this bit of such a number: bits 31:16 of the number are written into the word first"),
)

SWITCH_DROP = enum("switch_drop", 3, "why a switch dropped a packet",
    ("ROUTE_END", "it has no prefix word: its route ends at the switch"),
    ("PREFIX",    "its first prefix word is wrong, or nothing is behind it"),
    ("DOWN",      "the link of its output is not UP"),
    ("DISABLED",  "its output is disabled"),
    ("BLOCKED",   "it did not end within LIMIT, because its output took no words"),
    ("LATE",      "it did not end within LIMIT, because its own words did not come to an end"),
)

# The first ten are pulses of the port's LinkPort, the others of the crossbars.
SWITCH_COUNTER = enum("switch_counter", 5, "counters of each port of a switch, which wrap",
    ("CODE_ERRORS",       "8b/10b code errors"),
    ("DISPARITY_ERRORS",  "8b/10b disparity errors"),
    ("SLACK_OVERFLOW",    "packets dropped because the slack buffer was full"),
    ("STOPS_SENT",        "changes from GO to STOP that the switch sent to the other end"),
    ("STOPS_RECEIVED",    "changes from GO to STOP that the other end sent"),
    ("STOPPED_CYCLES",    "cycles in which a packet waited for GO"),
    ("STOPPING_CYCLES",   "cycles in which the switch stopped a channel of the other end"),
    ("LINK_TRAINED",      "times the link came UP"),
    ("LINK_LOST",         "times the link left UP"),
    ("WORDS_RECEIVED",    "words of four symbols received, except in DOWN"),
    ("PACKETS_PASSED",    "good packets that came in here and were passed on whole"),
    ("PACKETS_BAD",       "packets that came in here ended as bad"),
    ("PACKETS_SENT",      "packets that were passed to this port, ended as bad or not"),
    # In the order of enum switch_drop.
    ("DROPPED_ROUTE_END", "packets that came in here and were dropped: no prefix word, and no scout "
        "that the switch could answer"),
    ("DROPPED_PREFIX",    "the same: a wrong prefix word, or nothing behind it"),
    ("DROPPED_DOWN",      "the same: the link of their output was not UP"),
    ("DROPPED_DISABLED",  "the same: their output was disabled"),
    ("DROPPED_BLOCKED",   "the same: their output took no words within LIMIT"),
    ("DROPPED_LATE",      "the same: their words did not come to an end within LIMIT"),
    ("ASKED",             "scouts that came in here, ended at the switch and were answered"),
)

SWITCH = bank("switch", "a switch: identity, ports and counters",
    Register("MAGIC",             "ro", "constant SWITCH_SIGNATURE"),
    Register("INTERFACE_VERSION", "ro", "major in 31:16, minor in 15:0"),
    Register("INTERFACE_HASH",    "ro", "CRC-32 of the interface description"),
    Register("BUILD",             "ro", "CRC-32 of the gateware's code; comments do not count"),
    Register("CLOCK_HZ",          "ro", "frequency of the switch's clock"),
    Register("IDENTITY",          "ro",
        "a number that differs for each switch. Port n sends the nonce 16*IDENTITY + n, modulo "
        "65536"),
    Register("GEOMETRY", "ro", "sizes", (
        Field("ports",     8, "number of ports: 4, 8 or 16"),
        Field("channels",  8, "number of virtual channels"),
        Field("buffer",   16, "words of the slack buffer of each port and channel"))),
    Register("ENABLE", "rw", "bit n: port n is enabled. The link of a disabled port is DOWN",
        reset=2**PORTS - 1),
    Register("LIMIT", "rw",
        "longest time that a packet passes through the switch, and about the longest time that it "
        "waits for its output, in units of SWITCH_LIMIT_UNIT cycles, 1…65535; 0: no limit. A "
        "packet is cut after 7/8 of it at the earliest", reset=1024),
    Register("ASKED_AT", "ro",
        "for a scout that asks for this word: the port where it came in; for other readers it has no "
        "meaning"),
    Register("RETRAIN", "wo", "bit n: port n goes DOWN and trains again"),
    Register("PING",    "wo", "bit n: port n measures PORT_ROUND_TRIP"),
    Register("PORT_STATUS", "ro", "state of each port", (
        Field("state",   4, "enum link_state"),
        Field("signal",  1, "the transceiver detects a signal"),
        Field("stopped", 4, "channels that the other end has stopped"),
        Field("reason",  4, "enum link_reason"),
        Field("enabled", 1, "as in ENABLE"),
        Field("stuck",   4,
            "channels that took no word since a packet was cut that waited for them")), count=PORTS),
    Register("PORT_PEER", "ro",
        "nonce of each port's other end; bit 16: it was received since the link came up",
        count=PORTS),
    Register("PORT_ROUND_TRIP", "ro",
        "cycles from ping to pong, without the time within both ends; 0: not measured",
        count=PORTS),
    Register("PORT_SLACK_HIGH", "ro",
        "highest level of each channel's slack buffer since the link came UP, in units of 4 words",
        (
        Field("channel0", 8, ""), Field("channel1", 8, ""), Field("channel2", 8, ""),
        Field("channel3", 8, "")), count=PORTS),
    Register("COUNTERS", "ro",
        "SWITCH_COUNTER_WORDS words for each port: a counter by enum switch_counter; the others are 0",
        count=PORTS*WORDS),
)
