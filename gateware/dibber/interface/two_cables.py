"""Host registers of cards with two cables: a pair of rings, or two links (description.py, HOST)."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.schema import Field, Register

def two_cables(counters):
    """Registers for the cables of a pair of rings, then those of link 1.

    counters : names of the counters that each link has
    """
    return (
        Register("LINK_CABLE", "wo",
            "the cable of a pair of rings at which LINK_CONTROL, LINK_COMMAND.error and "
            "LINK_PRBS_* work; ignored without FEATURES.pair", (
            Field("previous", 1, "0: the cable NEXT; 1: the cable PREVIOUS"),)),
        Register("LINK_CABLES", "ro", "with FEATURES.pair, else 0: the cables of a pair of rings", (
            Field("next_signal",     1, "the transceiver of NEXT detects a signal"),
            Field("next_alive",      1, "the other end of NEXT is heard"),
            Field("next_whole",      1, "both ends of NEXT hear each other"),
            Field("next_folded",     1, "this card joins both rings at NEXT, and does not use it"),
            Field("previous_signal", 1, "the same of PREVIOUS"),
            Field("previous_alive",  1, ""),
            Field("previous_whole",  1, ""),
            Field("previous_folded", 1, ""),
            Field("ring0",           1, "the ring whose words leave at NEXT is UP"),
            Field("ring1",           1, "the ring whose words leave at PREVIOUS is UP"),
            Field("folded",          1, "the port is UP, and both rings are one folded ring"),
            Field("previous",        1, "LINK_CABLE.previous"))),
        Register("LINK1_STATUS", "ro", "with FEATURES.two_links, else 0: link 1, as LINK_STATUS", (
            Field("state",   4, "enum link_state"),
            Field("signal",  1, "the transceiver detects a signal"),
            Field("stopped", 4, "channels that the other end has stopped"),
            Field("reason",  4, "enum link_reason"))),
        Register("LINK1_COMMAND", "wo", "with FEATURES.two_links: as LINK_COMMAND", (
            Field("retrain", 1, "go DOWN and train again"),
            Field("ping",    1, "measure LINK1_ROUND_TRIP"))),
        Register("LINK1_PEER",       "ro", "with FEATURES.two_links, else 0: as LINK_PEER", (
            Field("nonce",   16, "its LINK_NONCE"),
            Field("known",    1, "it was received since the link came up"))),
        Register("LINK1_ROUND_TRIP", "ro", "with FEATURES.two_links, else 0: as LINK_ROUND_TRIP"),
        Register("LINK1_SLACK_HIGH", "ro", "with FEATURES.two_links, else 0: as LINK_SLACK_HIGH", (
            Field("channel0", 8, ""), Field("channel1", 8, ""), Field("channel2", 8, ""),
            Field("channel3", 8, ""))),
        *(Register(f"LINK1_{name}", "ro",
            f"with FEATURES.two_links, else 0: COUNT_{name} of link 1")
            for name in counters),
    )
