"""Reasons why packets were dropped or sent again, as sentences, from the counters of both cards.

A cause hides its effects: a slack buffer that overflows truncates packets and leaves gaps, so only
the overflow is reported.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Mapping, Sequence

# (counter, its cause). `{n}` is the count, `{card}` the card that counted, `{other}` the card at
# the other end.
CAUSES = (
    (
        "link_lost",
        "card {card} lost the link {times}: a plug that is loose, or the other end was reset",
    ),
    (
        "slack_overflow",
        "card {card} dropped {n} packets because its slack buffer was full: {length}is longer "
        "than STOP and GO reach",
    ),
    (
        "code_errors",
        "card {card} received {n} symbols that are no 8b/10b code: look at the cable and the "
        "transceivers",
    ),
    (
        "disparity_errors",
        "card {card} received {n} symbols of wrong disparity: look at the cable and the "
        "transceivers",
    ),
    (
        "header_crc_error",
        "card {card} dropped {n} packets by the CRC of their header: bits were changed on the way",
    ),
    (
        "payload_crc_error",
        "card {card} cut {n} packets short by the CRC of their payload: bits were changed on the "
        "way",
    ),
    (
        "packet_truncated",
        "card {card} dropped {n} packets that were cut off, or ended as bad by card {other}",
    ),
    (
        "packet_misrouted",
        "card {card} dropped {n} packets with a route for switches: a route is entered, and there "
        "is no switch",
    ),
    (
        "packet_wrong_node",
        "card {card} dropped {n} packets of another node number: look at both cards' numbers",
    ),
    ("packet_refused", "card {card} refused {n} packets by region or bounds"),
    ("completion_error", "the host of card {card} answered {n} reads with an error"),
    ("completion_timeout", "the host of card {card} did not answer {n} reads"),
)

# The same of a link over Ethernet, where it differs.
OVER_ETHERNET = {
    "slack_overflow": "card {card} dropped {n} frames because a channel's buffer was full: the "
    "other card did not wait for credit",
    "code_errors": "card {card} dropped {n} frames with a wrong FCS or header: look at the cable, "
    "the transceivers, and the switches on the way",
}

# The same on a ring.
ON_RING = {
    "link_lost": "card {card} left the ring {times}: a plug that is loose, or a card of the ring "
    "was reset",
    "slack_overflow": "card {card} left the ring {n} times because its bypass FIFO was full: the "
    "clock of a card is wrong",
    "packet_misrouted": "card {card} dropped {n} packets that are for no node of the ring: a route "
    "is wrong",
}

# Effects of a cause at the same card. They need no sentence of their own.
DAMAGED = ("header_crc_error", "payload_crc_error", "packet_truncated")
FOLLOWS = {
    "link_lost": ("code_errors", "disparity_errors", *DAMAGED),
    "slack_overflow": DAMAGED,
    "code_errors": ("disparity_errors", *DAMAGED),
    "disparity_errors": DAMAGED,
}

# Consequences of a packet that is missing. They are reported once, with the cause, or alone if no
# counter names one.
GAP = "packet_gap"
DOUBLE = "packet_duplicate"


def sentences(
    changes: Sequence[Mapping[str, int]],
    metres: float | None = None,
    ethernet: bool = False,
    ring: bool = False,
) -> list[str]:
    """Sentences about a transfer between both cards, from their counters; [] if nothing was lost.

    changes : for each card a dictionary with the change of each counter
    metres  : measured length of the cable, or None
    ethernet: the link is Ethernet
    ring    : the cards are nodes of a ring
    """
    found = []
    for card, counted in enumerate(changes):
        hidden = {
            name for cause, names in FOLLOWS.items() if counted.get(cause, 0) for name in names
        }
        for name, text in CAUSES:
            n = counted.get(name, 0)
            if n and name not in hidden:
                said = (OVER_ETHERNET if ethernet else ON_RING if ring else {}).get(name, text)
                found.append(
                    said.format(
                        card=card,
                        other=1 - card,
                        n=n,
                        times="once" if n == 1 else f"{n} times",
                        length="the cable " if metres is None else f"the cable of {metres:g} m ",
                    )
                )
    gaps, doubles = (sum(counted.get(name, 0) for counted in changes) for name in (GAP, DOUBLE))
    if gaps and found:
        found.append(
            f"{gaps} packets that came behind a missing one were dropped, and all were sent again"
        )
    elif gaps:
        found.append(
            f"{gaps} packets came behind one that was missing, and no counter tells why: on the "
            f"way packets were lost whole"
        )
    elif doubles and not found:
        found.append(
            f"{doubles} packets came twice, though none was missing: acknowledgements were lost "
            f"or late"
        )
    return found
