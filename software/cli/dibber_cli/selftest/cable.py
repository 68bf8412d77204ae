"""Items of the link: the loopbacks of this card, and the other end of the cable."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import PRBS

from dibber_cli.link import measure, status
from dibber_cli.selftest.examinee import Examinee, Impossible, Wrong

SEQUENCES = ("PRBS7", "PRBS15", "PRBS23", "PRBS31")
LOOP_NS = 50_000
STOP_NS = 100_000  # no working card stops an idle link for so long

CABLES = {"NO_SIGNAL": "none", "LOOPBACK": "loopback"}  # by the reason; others are wrong


def near_end(self: Examinee) -> str:
    """Each sequence through the symbol coder and back, before the PHY: there is no error, and an
    injected error is found.
    """
    self.needs_program()
    bits = 0
    try:
        for name in SEQUENCES:
            sequence = getattr(PRBS, name)
            control = measure.field("LINK_CONTROL", transmit=sequence, check=sequence, near=1)
            self.card.write_register("LINK_CONTROL", control)
            self.sleep(LOOP_NS)
            wrong = self.card.read_register("LINK_PRBS_ERRORS")
            self.card.write_register("LINK_COMMAND", measure.field("LINK_COMMAND", error=1))
            self.sleep(LOOP_NS // 10)
            words, both, locked = measure.prbs_result(self)
            if not locked or not words:
                raise Wrong(f"{name} is not found")
            if wrong:
                raise Wrong(f"{name}: {wrong} wrong symbols in {words} words")
            if both != 1:
                raise Wrong(f"{name}: one bit was turned over, {both} symbols were found wrong")
            bits += words * measure.BITS_WORD
    finally:
        self.card.write_register("LINK_CONTROL", 0)
    return f"{', '.join(SEQUENCES)}: 0 errors in {bits:.2g} bits, and each injected one found"


def transceiver(self: Examinee) -> str:
    """A sequence through the transceiver and back, if it has a loopback of its own."""
    self.needs_program()
    try:
        found = measure.prbs_alone(self, "phy", PRBS.PRBS31, LOOP_NS)
    finally:
        self.card.write_register("LINK_CONTROL", 0)
    if found is None:
        raise Impossible("the transceiver has no loopback, or does not work in it")
    words, wrong, locked = found
    if not locked or not words:
        raise Wrong("PRBS31 is not found")
    if wrong:
        raise Wrong(f"PRBS31: {wrong} wrong symbols in {words} words")
    return f"PRBS31: 0 errors in {words * measure.BITS_WORD:.2g} bits"


def link(self: Examinee) -> str:
    """Train with this card's own nonce, and name the other end.

    Without a cable, or with a loopback plug, the card itself is not at fault. But if both cards are
    tested, they should see each other.
    """
    self.needs_program()
    if self.meeting:
        self.meet()  # both have finished their loopbacks
    nonce = self.random.randrange(1, 1 << 15) * 2 + self.node  # even and odd: never equal
    self.card.write_register("LINK_NONCE", nonce)
    found, nanoseconds = measure.train(self)
    if self.meeting:
        self.meet()  # no card sends or trains again before the other one is up
        found = status.read(self.card)
    if found["state"] == "UP":
        self.cable = "wrong"  # until it has answered
        self.sleep(STOP_NS)
        held = set(found["stopped"]) & set(status.read_state(self.card)["stopped"])
        if held:
            raise Wrong(
                f"up, and the other end stops channels {', '.join(map(str, sorted(held)))} for ever"
            )
        trip = measure.round_trip(self)
        if trip is None:
            raise Wrong("up, and the other end does not answer a ping")
        self.cable = "direct"
        # It may have come up only while this card waited for the other one.
        microseconds = (
            f"more than {measure.TRAIN_NS // 1000}"
            if nanoseconds is None
            else f"{nanoseconds / 1000:.0f}"
        )
        return (
            f"direct: up after {microseconds} µs, the other end is "
            f"{found['peer']:04x}, round trip {trip:.0f} ns"
        )
    self.cable = CABLES.get(found["reason"], "wrong")
    if self.cable == "wrong" or self.meeting:
        raise Wrong(status.sentence(found))
    raise Impossible(
        {
            "none": "no cable: no signal",
            "loopback": "loopback to itself: this card hears its own nonce",
        }[self.cable]
    )
