"""Measurements on a cable with a card at each end. Times are nanoseconds; with a
simulator, they are simulated.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import libdibber
from dibber.interface.description import HOST, PRBS, RIGHT, STATUS
from libdibber.late import np

from dibber_cli.link import pairs, status
from dibber_cli.link.end import Both, End, Sender
from dibber_cli.link.tasks import Task

POLL_NS = 2_000
PINGS = 4
PING_LOOKS = 50  # 100 µs: 10 km of cable
SETTLE_NS = 20_000  # after this time both ends have finished a step that they began together
TRAIN_NS = 1_000_000  # a link that is not up by then does not come up
BITS_WORD = 40  # of 8b/10b on the line
RING_CYCLES = 6  # of the way round a ring of two, apart from transceivers and cables

CHUNK = 64 << 10  # bytes of a put …
SMALL = 16 << 10  # … on a card behind a UART, which has little memory
DEPTH = 16  # puts under way


def field(name: str, **values: int) -> int:
    """A host register's value from its fields."""
    result, low = 0, 0
    for f in HOST[name].fields:
        result |= values.pop(f.name, 0) << low
        low += f.bits
    assert not values, f"{name} has no such fields: {values}"
    return result


# Training -----------------------------------------------------------------------------------------


def wait_up(side: End, limit: int = TRAIN_NS) -> tuple[dict[str, Any], int | None]:
    """Wait until the link is UP; returns the status, and the time it took or None."""
    begin = side.now()
    while True:
        up = status.read_state(side.card)["state"] == "UP"
        if up or side.now() - begin > limit:
            return status.read(side.card), side.now() - begin if up else None
        side.sleep(POLL_NS)


def train(side: End, limit: int = TRAIN_NS) -> tuple[dict[str, Any], int | None]:
    """Train again; as wait_up()."""
    side.card.write_register("LINK_COMMAND", field("LINK_COMMAND", retrain=1))
    side.sleep(POLL_NS)
    return wait_up(side, limit)


# Length -------------------------------------------------------------------------------------------


def round_trip(side: End) -> float | None:
    """Nanoseconds from this end to the other and back, transceivers included; None without an
    answer.

    The smallest of PINGS: a ping or pong that waits for another word takes longer. An answer over
    kilometres of cable takes several reads.
    """
    found = []
    for _ in range(PINGS):
        side.card.write_register("LINK_COMMAND", field("LINK_COMMAND", ping=1))
        for _ in range(PING_LOOKS):
            side.sleep(POLL_NS)
            if cycles := side.card.read_register("LINK_ROUND_TRIP"):
                found.append(cycles)
                break
    return min(found) * 1e9 / side.clock_hz if found else None


def transceivers(profile: Any) -> dict[str, Any]:
    """The table `link` of a profile."""
    with open(profile.path, "rb") as file:
        return tomllib.load(file)["link"]


def cable_length(
    nanoseconds: float, link: Mapping[str, Any], clock_hz: float
) -> tuple[float, float]:
    """(metres of cable, their error bound); `link` is the profile's table of that name: the
    transceivers.

    Each end sees a word at its next clock edge. This is half a cycle late on average, with an error
    of at most half a cycle. Together that is one cycle too many, and half a cycle of doubt in each
    direction.
    """
    cycle = 1e9 / clock_hz
    one_way = (nanoseconds - cycle) / 2 - link["transmit_ns"] - link["receive_ns"]
    return max(0.0, one_way / link["delay_ns_per_m"]), cycle / 2 / link["delay_ns_per_m"]


def ring_length(
    nanoseconds: float, link: Mapping[str, Any], clock_hz: float
) -> tuple[float, float]:
    """(metres of a cable of a ring of two, on average; the error bound) from the way round; `link`
    as of cable_length().

    The other card passes a word on after 3 cycles (docs/design/ring.md, cycle budget). The way
    begins and ends inside of the card that measures it: 2 cycles. Each card sees a word at its next
    clock edge, half a cycle late on average, with an error of at most half a cycle. That is
    RING_CYCLES in all.
    """
    cycle = 1e9 / clock_hz
    one_way = nanoseconds / 2 - RING_CYCLES / 2 * cycle - link["transmit_ns"] - link["receive_ns"]
    return max(0.0, one_way / link["delay_ns_per_m"]), cycle / 2 / link["delay_ns_per_m"]


# Loopbacks ----------------------------------------------------------------------------------------


def hears_itself(side: End) -> bool:
    """Set LINK_CONTROL.phy and return whether this card then receives its own words.

    False: the transceiver has no loopback, or does not work. The card recognizes its own nonce.
    """
    side.card.write_register("LINK_CONTROL", field("LINK_CONTROL", phy=1))
    nonce = side.card.read_register("LINK_NONCE")
    probe = (nonce ^ 0xFFFF) or 1
    side.card.write_register("LINK_NONCE", probe)
    side.sleep(SETTLE_NS)
    heard = side.card.read_register("LINK_PEER") & 0xFFFF == probe
    side.card.write_register("LINK_NONCE", nonce)
    return heard


def transceiver_delay(side: End) -> tuple[float, float] | None:
    """(nanoseconds through this card's transmitter and receiver, their error bound); None without a
    loopback.
    """
    trip = round_trip(side) if hears_itself(side) else None
    side.card.write_register("LINK_CONTROL", 0)
    # A ping and its pong: twice, and each time half a cycle late on average.
    cycle = 1e9 / side.clock_hz
    return None if trip is None else (trip / 2 - cycle / 2, cycle / 2)


def prbs_alone(
    side: End, loopback: str, sequence: int, nanoseconds: int
) -> tuple[int, int, bool] | None:
    """As prbs_result(), for a card in loopback, near or phy. Returns None without an answer."""
    if loopback == "phy" and not hears_itself(side):
        side.card.write_register("LINK_CONTROL", 0)
        return None
    control = {loopback: 1, "transmit": sequence}
    side.card.write_register("LINK_CONTROL", field("LINK_CONTROL", **control))
    side.sleep(SETTLE_NS)
    side.card.write_register("LINK_CONTROL", field("LINK_CONTROL", **control, check=sequence))
    side.sleep(nanoseconds)
    return prbs_result(side)


def prbs_echoed(ends: Both, sequence: int, nanoseconds: int) -> tuple[int, int, bool]:
    """As prbs_result(), for the first card; the second card sends back what it receives."""
    ends.both(
        lambda side: side.sleep(SETTLE_NS),
        lambda side: side.card.write_register("LINK_CONTROL", field("LINK_CONTROL", far=1)),
    )
    ends.both(lambda side: prbs_settle(side, sequence), lambda side: None)

    def count(side: End) -> tuple[int, int, bool]:
        prbs_start(side, sequence)
        side.sleep(nanoseconds)
        return prbs_result(side)

    found, _ = ends.both(count, lambda side: side.sleep(nanoseconds + SETTLE_NS))
    ends.both(lambda side: None, lambda side: side.card.write_register("LINK_CONTROL", 0))
    return found


# Bit errors ---------------------------------------------------------------------------------------


def prbs_start(side: End, sequence: int) -> None:
    """Send a sequence and check for it."""
    side.card.write_register(
        "LINK_CONTROL", field("LINK_CONTROL", transmit=sequence, check=sequence)
    )


def prbs_settle(side: End, sequence: int) -> None:
    """Send a sequence, and wait until the other end sends it too."""
    side.card.write_register("LINK_CONTROL", field("LINK_CONTROL", transmit=sequence))
    side.sleep(SETTLE_NS)


def prbs_count(side: End, sequence: int, nanoseconds: int) -> tuple[int, int, bool]:
    """After prbs_settle() at both ends: check for so long; as prbs_result(). It goes on sending,
    because the other end may still check: prbs_stop() follows when both have ended.
    """
    prbs_start(side, sequence)
    side.sleep(nanoseconds)
    return prbs_result(side, then=field("LINK_CONTROL", transmit=sequence))


def prbs_stop(side: End) -> None:
    """Send no sequence any more."""
    side.card.write_register("LINK_CONTROL", 0)


def prbs_result(side: End, then: int = 0) -> tuple[int, int, bool]:
    """(words, wrong symbols, locked); LINK_CONTROL is `then` afterwards."""
    locked = status.read_state(side.card)["prbs"]
    words = side.card.read_register("LINK_PRBS_WORDS")
    wrong = side.card.read_register("LINK_PRBS_ERRORS")
    side.card.write_register("LINK_CONTROL", then)
    return words, wrong, locked


def prbs(
    ends: Both, sequence: int, nanoseconds: int, loopback: str | None = None
) -> list[dict[str, Any] | None]:
    """Bit errors in both directions, as bit_errors() of each card, with `locked`: whether it found
    the sequence.

    With a loopback `near` or `phy`, each card checks its own words, or the result is None. With
    `far`, the first card checks its own words that come back through the second.
    """
    if loopback == "far":
        found = [prbs_echoed(ends, sequence, nanoseconds)]
    elif loopback:
        found = ends.both(lambda side: prbs_alone(side, loopback, sequence, nanoseconds))
    else:
        ends.both(Task(prbs_settle, sequence))
        found = ends.both(Task(prbs_count, sequence, nanoseconds))
        ends.both(Task(prbs_stop))
    return [f and {**bit_errors(f[0], f[1]), "locked": f[2]} for f in found]


def place(result: Mapping[str, Any]) -> str:
    """Where a result of prbs_cables() is from: `0`, or `0, NEXT`."""
    return ", ".join(str(part) for part in (result["card"], result["cable"]) if part is not None)


def prbs_cables(
    ends: Any, sequence: int, nanoseconds: int, loopback: str | None = None
) -> list[dict[str, Any] | None]:
    """prbs() of each cable, one after the other, as one list. Each result also has `card`, and
    `cable`: the connector of a card on a pair of rings, NEXT or PREVIOUS, else None. A result of
    None stays None.
    """
    if not any(side.pair for side in ends.sides):
        cables: Sequence[tuple[str, ...] | None] = [None]
    else:
        cables = pairs.connectors(loopback)
    results = []
    for names in cables:
        if names:
            pairs.chosen(ends, names)
        found = prbs(ends, sequence, nanoseconds, loopback)
        results += [
            errors and {"card": card, "cable": name, **errors}
            for card, (errors, name) in enumerate(zip(found, names or [None] * len(found)))
        ]
    return results


def upper_bound(errors: int, bits: int, confidence: float = 0.95) -> float:
    """Upper limit of the bit error rate with that confidence: exact for a Poisson count (Garwood,
    1936).

    The rate for which a count of `errors` or fewer has the probability 1 - confidence.
    """
    if not bits:
        return 1.0

    def at_most(mean: float) -> float:
        return math.fsum(
            math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(errors + 1)
        )

    low, high = 1e-9, errors + 20 * math.sqrt(errors + 1)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(middle) > 1 - confidence else (low, middle)
    return min(1.0, high / bits)


def bit_errors(words: int, wrong: int) -> dict[str, Any]:
    """Rate and its bound as a dictionary. Each wrong symbol counts as one wrong bit."""
    bits = words * BITS_WORD
    return {
        "bits": bits,
        "errors": wrong,
        "rate": wrong / bits if bits else None,
        "rate_below": upper_bound(wrong, bits),
    }


def sequence_of(name: str) -> int:
    return getattr(PRBS, name.upper())


# Rate and loss ------------------------------------------------------------------------------------


def offer(side: Sender) -> int:
    """Register memory for the transfer; returns the key."""
    side.store = libdibber.alloc(2 * side.chunk)
    side.region = side.endpoint.register(side.store, RIGHT.REMOTE_WRITE)
    return side.region.key


def send(side: Sender, key: int, total: int, block: int = 0) -> tuple[float, list[str]]:
    """Put `total` bytes in puts of `side.chunk`; with `block`, blocks of so many bytes at a stride
    of twice their size.

    Returns (MB/s, statuses other than OK); after such a status nothing more is sent.
    """
    chunk = side.chunk
    data = libdibber.alloc(chunk)
    data[:] = pattern(chunk)
    region = side.endpoint.register(data, RIGHT.LOCAL_READ)
    walk = (
        libdibber.Walk(key, block, 0, ((chunk // block, 2 * block),))
        if block
        else libdibber.Walk(key, chunk)
    )
    bad: list[str] = []
    begin, under_way, left = side.now(), 0, total // chunk
    while under_way or left and not bad:
        while left and not bad and under_way < DEPTH:
            side.endpoint.put_strided(libdibber.Walk(region.key, chunk), walk, node=1 - side.node)
            left, under_way = left - 1, under_way + 1
        side.endpoint.wait()
        for completion in side.endpoint.poll(DEPTH):
            under_way -= 1
            if completion.status != STATUS.OK:
                bad.append(STATUS.name_of(completion.status))
    elapsed = side.now() - begin
    region.close()
    return (total // chunk) * chunk / elapsed * 1e3, bad


def wrong_bytes(side: Sender, block: int = 0) -> int:
    """Number of received bytes that differ from the sent ones; the memory is released."""
    expected = pattern(side.chunk)
    if block:
        came = side.store.reshape(-1, 2 * block)[:, :block].ravel()
    else:
        came = side.store[: side.chunk]
    wrong = int((came != expected).sum())
    side.region.close()
    return wrong


def pattern(length: int) -> np.ndarray:
    """Bytes without two equal blocks of 256 beside each other."""
    n = np.arange(length, dtype=np.uint32)
    return ((n * 2654435761 >> 13) & 0xFF).astype(np.uint8)


def counters(side: End) -> dict[str, Any]:
    """Counters and clock of a card: a dictionary with `counters` and `cycles`."""
    return side.card.info()
