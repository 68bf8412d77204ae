"""`link`: rates by the cable's length, with and without STOP/GO, and by its bit error rate.

Each point has a pair of cards with a cable of its own. dibber_cli/link/measure.py measures. With
cards that are there, on one host or two, there is one point: their cable.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libdibber
from dibber.interface.description import RIGHT
from libdibber import Exchange

from dibber_cli.bench import distant, session
from dibber_cli.bench.bound import PACKET_OVERHEAD, PACKET_PAYLOAD, bound
from dibber_cli.bench.hosts import Cards
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.views import Panel, Table
from dibber_cli.errors import CommandError
from dibber_cli.link import measure as cable
from dibber_cli.link.end import Both, End, Sender
from dibber_cli.link.side import ETHERNET, RING, Ends
from dibber_cli.link.tasks import IDLE, Task, nothing
from dibber_cli.output import Progress
from dibber_cli.profile import Profile
from dibber_cli.simulator import Pair

NAME = "link"

LENGTHS = (0, 3, 20, 50, 100)  # metres
BERS = (0, 1e-7, 1e-6, 1e-5)  # of the cable
QUICK = {"lengths": (3, 50), "bers": (1e-6,)}

TOTAL = 1 << 20  # bytes of a rate …
TOTAL_GAPS = 1 << 17  # … byte by byte: the target's PCIe cannot keep up and STOP holds …
TOTAL_BER = 1 << 19  # … and over a cable with bit errors
PRBS_NS = 2_000_000
WINDOW_NS = 250_000  # over which words are counted
LOAD_NS, SOON_NS = (
    2_000_000_000,
    500_000_000,
)  # without a common clock: of the load, before counting
READS = 256  # of a counter, between two looks at the clock
THERE = "as it is"  # the cable of cards that are there

Measured = tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]
VERSIONS = ("build", "mcp_identity", "interface_version", "interface_hash")  # of Card.info()


@dataclass(frozen=True)
class Cable:
    """A cable of so many metres, or with such a bit error rate."""

    series: str
    x: float

    @property
    def options(self) -> list[str]:
        return (
            ["--set", f"link.length_m={self.x}"]
            if self.series == "length"
            else ["--ber", str(self.x)]
        )


def points(lengths: Sequence[float] = LENGTHS, bers: Sequence[float] = BERS) -> list[Cable]:
    return [*(Cable("length", x) for x in lengths), *(Cable("ber", x) for x in bers)]


# Measurements -------------------------------------------------------------------------------------


def rate(ends: Both, total: int, block: int = 0) -> tuple[float, int]:
    """MB/s from card 0 to card 1; raises CommandError when a transfer failed. Returns (MB/s, bytes
    that came wrong).
    """
    _, key = ends.both(IDLE, Task(cable.offer))
    (value, bad), _ = ends.both(Task(cable.send, key, total, block), IDLE)
    _, wrong = ends.both(IDLE, Task(cable.wrong_bytes, block))
    if bad:
        raise CommandError(f"bench link: transfers ended with {', '.join(sorted(set(bad)))}")
    return value, wrong


def now(side: End) -> int:
    return side.now()


def load(side: Sender, key: int, begin: int | None, nanoseconds: int) -> None:
    """Keep the link busy with contiguous puts until `nanoseconds` after `begin`; None: from now."""
    region = side.endpoint.register(libdibber.alloc(side.chunk), RIGHT.LOCAL_READ)
    end, under_way = (begin or side.now()) + nanoseconds, 0
    while side.now() < end or under_way:
        while under_way < 2 and side.now() < end:
            side.endpoint.put(region.key, 0, key, 0, side.chunk, node=1)
            under_way += 1
        side.endpoint.wait(100_000_000)
        under_way -= len(side.endpoint.poll())
    region.close()


# Both count words: bytes in units of 4.
WORDS = ("COUNT_BYTES_RECEIVED", "COUNT_WORDS_RECEIVED")


def _at_packet_end(side: End) -> list[int]:
    """Both counters at the end of a packet. Raises CommandError if none comes."""
    before, end = side.card.read_register(WORDS[0]), side.now() + LOAD_NS
    # The clock is read rarely, because the words must be read before the next packet ends.
    count = 0
    while True:
        count += 1
        if side.card.read_register(WORDS[0]) != before:
            return [side.card.read_register(name) for name in WORDS]
        if count % READS == 0 and side.now() > end:
            raise CommandError(f"card {side.node}: no packet came for {LOAD_NS / 1e9:g} s")


def watch(side: End, begin: int | None) -> float:
    """Payload's percentage of the words between the ends of two packets."""
    side.sleep(begin - side.now() if begin else SOON_NS)
    first = _at_packet_end(side)
    side.sleep(WINDOW_NS)
    last = _at_packet_end(side)
    payload, words = (b - a for a, b in zip(first, last))
    return 100 * payload / words


def close_region(side: Sender) -> None:
    side.region.close()


def card_info(side: End) -> dict[str, Any]:
    return side.card.info()


def payload_share(ends: Both) -> float:
    """Payload's percentage of the words that reach card 1, while only card 0 puts contiguous bytes.

    It is read between the ends of two packets, so a whole number of packets was counted. Only a
    simulator's time is the same on both sides.
    """
    _, key = ends.both(IDLE, Task(cable.offer))
    begin, nanoseconds = None, LOAD_NS
    if all(info["simulated_clock"] for info in ends.both(Task(card_info))):
        begin, nanoseconds = max(ends.both(Task(now))) + 50_000, 2 * WINDOW_NS
    _, share = ends.both(Task(load, key, begin, nanoseconds), Task(watch, begin))
    ends.both(IDLE, Task(close_region))
    return share


def by_length(ends: Both, point: Cable) -> dict[str, Any]:
    found = {"round_trip_ns": max(ends.both(Task(cable.round_trip)))}
    found["train_ns"] = max(time for _, time in ends.both(Task(cable.train)))
    found["rate"], wrong = rate(ends, TOTAL)
    found["rate_gaps"], wrong_gaps = rate(ends, TOTAL_GAPS, 1)
    found["payload_share"] = payload_share(ends)
    return {**found, "bytes_wrong": wrong + wrong_gaps, "bytes_compared": 2 * cable.CHUNK}


def by_errors(ends: Both, point: Cable) -> dict[str, Any]:
    found = cable.prbs(ends, cable.sequence_of("PRBS31"), PRBS_NS)
    errors = [e for e in found if e is not None]  # without a loopback there is no None
    if not all(e["locked"] for e in errors):
        raise CommandError("bench link: a card does not find the bit sequence")
    ends.both(Task(cable.wait_up))
    value, wrong = rate(ends, TOTAL_BER)
    return {
        "bits": sum(e["bits"] for e in errors),
        "errors": sum(e["errors"] for e in errors),
        "rate": value,
        "bytes_wrong": wrong,
        "bytes_compared": cable.CHUNK,
    }


# What the server of a run between two hosts may be ordered to do.
ORDERS = (
    *(nothing, now, load, watch, close_region, card_info),
    *(cable.offer, cable.send, cable.wrong_bytes, cable.round_trip, cable.train, cable.wait_up),
    *(cable.prbs_settle, cable.prbs_count, cable.prbs_stop),
)


def serve(exchange: Exchange, uri: str, _seed: int) -> None:
    """The part of the host that listens, see hosts.serve()."""
    distant.serve(exchange, uri, ORDERS)


def _refuse(is_ethernet: object, is_ring: object) -> None:
    """Raise CommandError for a link that is no cable between two cards with STOP and GO."""
    if is_ring:
        raise CommandError(
            "bench link: the cards are nodes of a ring, which has no STOP",
            "'dibber link test' measures rate and loss",
        )
    if is_ethernet:
        raise CommandError(
            "bench link: the link is Ethernet, which has no bit sequences and no STOP",
            "'dibber link test' measures rate and loss",
        )


def measure_cards(profile: Profile, cards: Cards, progress: Progress | None = None) -> Measured:
    """measure() for the cable between hosts.Cards."""
    point = Cable(THERE, 0)
    opened: distant.Distant | Ends
    uris = [uri for uri in cards.uris if uri is not None]  # of this host
    if cards.exchange:
        opened = distant.Distant(uris[0], cards.exchange)
    else:
        opened = Ends(uris)
    with opened as ends:
        if any(time is None for _, time in ends.both(Task(cable.wait_up))):
            raise CommandError("bench link: the link is not up", "'dibber link test' says why")
        infos = ends.both(Task(card_info))
        cards.opened = [{**info, "simulated": bool(info["simulated_clock"])} for info in infos]
        cards.fitted(profile)  # a wrong profile is told before anything is measured
        _refuse(*(any(info["features"] & bit for info in infos) for bit in (ETHERNET, RING)))
        info = infos[0]
        found = {**by_length(ends, point), "errors": by_errors(ends, point)}
    result = {"point": point, "clock_hz": info["clock_hz"], **found}
    versions = session.versions_of(*(info[name] for name in VERSIONS))
    if progress:
        progress.step(point.series)
    return [result], versions, _compared([found, found["errors"]])


def measure(
    profile: Profile,
    seed: int,
    points: Sequence[Cable],
    progress: Progress | None = None,
    cards: Cards | None = None,
) -> Measured:
    """A pair for each point; results are dictionaries with the point and what by_length() or
    by_errors() found. With hosts.Cards: their cable alone.
    """
    if cards:
        return measure_cards(profile, cards, progress)
    _refuse(profile.mtu, profile.fabric == "ring")
    if profile.fabric == "bonded":
        raise CommandError(
            "bench link: the lanes of a bonded link have no test equipment",
            f"'dibber bench stride --profile {profile.name}' measures its rate",
        )
    results, versions = [], {}
    for point in points:
        if progress:
            progress.draw(f"{point.series}, {point.x:g}")
        with Pair(profile, seed=seed, options=point.options) as pair, Ends(pair.uris) as ends:
            if any(time is None for _, time in ends.both(Task(cable.wait_up))):
                raise CommandError(
                    f"bench link: no link at {point.series} {point.x:g}",
                    "'dibber link test' says why",
                )
            found = (by_length if point.series == "length" else by_errors)(ends, point)
            info = ends.both(lambda side: side.card.info())[0]
            results.append({"point": point, "clock_hz": info["clock_hz"], **found})
            versions = session.versions_of(*(info[name] for name in VERSIONS))
        if progress:
            progress.step(f"{point.series}, {point.x:g}")
    return results, versions, _compared(results)


def _compared(results: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {
        "bytes_compared": sum(r["bytes_compared"] for r in results),
        "guard_bytes_compared": 0,
        "bytes_wrong": sum(r["bytes_wrong"] for r in results),
    }


# Report -------------------------------------------------------------------------------------------


def _row(
    series: str, x: Any, x_unit: str, value: float, unit: str, most: float | None, term: str | None
) -> dict[str, Any]:
    return {
        "series": series,
        "x": x,
        "x_unit": x_unit,
        "value": value,
        "unit": unit,
        "bound": most,
        "bound_by": term,
        "limit": None,
        "limited_by": None,
        "cycles": None,
        "cpu_percent": None,
    }


def _bound(profile: Profile, block: int = 0) -> tuple[float, str]:
    """MB/s of cable.send(): contiguous bytes to contiguous ones, or to blocks at twice their
    distance.
    """
    source = Pattern.contiguous(cable.CHUNK)
    target = Pattern.strided(block, cable.CHUNK // block, 2 * block) if block else source
    found = bound(profile, source.side(session.BUS_ADDRESS), target.side(session.BUS_ADDRESS))
    return round(found.value / 1e6, 1), found.name


def _lengths(profile: Profile, results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    link = cable.transceivers(profile)
    framed = round(100 * PACKET_PAYLOAD / (PACKET_PAYLOAD + PACKET_OVERHEAD), 2)
    for r in results:
        x = r["point"].x
        wire = round(2 * (link["transmit_ns"] + link["receive_ns"] + x * link["delay_ns_per_m"]), 1)
        yield _row("rate", x, "m", round(r["rate"], 1), "MB/s", *_bound(profile))
        yield _row("rate-stop-go", x, "m", round(r["rate_gaps"], 1), "MB/s", *_bound(profile, 1))
        yield _row("payload-share", x, "m", round(r["payload_share"], 2), "%", framed, "link")
        yield _row("round-trip", x, "m", round(r["round_trip_ns"], 1), "ns", wire, "wire")
        yield _row("training", x, "m", round(r["train_ns"] / 1000, 2), "us", None, None)


def _errors(profile: Profile, results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for r in results:
        x = r["point"].x
        yield _row("errors-found", x, "BER", r["errors"] / r["bits"], "/bit", None, None)
        yield _row("rate-with-errors", x, "BER", round(r["rate"], 1), "MB/s", *_bound(profile))


def _there(profile: Profile, results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the cable of cards that are there."""
    framed = round(100 * PACKET_PAYLOAD / (PACKET_PAYLOAD + PACKET_OVERHEAD), 2)
    for r in results:
        errors = r["errors"]
        rows = (
            ("rate", round(r["rate"], 1), "MB/s", *_bound(profile)),
            ("rate-stop-go", round(r["rate_gaps"], 1), "MB/s", *_bound(profile, 1)),
            ("payload-share", round(r["payload_share"], 2), "%", framed, "link"),
            ("round-trip", round(r["round_trip_ns"], 1), "ns", None, None),
            ("training", round(r["train_ns"] / 1000, 2), "us", None, None),
            ("errors-found", errors["errors"] / errors["bits"], "/bit", None, None),
        )
        for series, value, unit, most, term in rows:
            yield _row(series, THERE, "cable", value, unit, most, term)


def _found_there(r: dict[str, Any], link: dict[str, Any]) -> Iterator[str]:
    metres, doubt = cable.cable_length(r["round_trip_ns"], link, r["clock_hz"])
    yield (
        f"the cable has {metres:.1f} ± {doubt:.1f} m by the round trip, if the transceivers are "
        "those of the profile"
    )
    errors = r["errors"]
    yield (
        f"{errors['errors']} errors in {errors['bits']:.2g} bits: with 95 % confidence a bit error "
        f"rate below {cable.upper_bound(errors['errors'], errors['bits']):.1e}"
    )


def _findings(profile: Profile, results: Sequence[dict[str, Any]]) -> Iterator[str]:
    link = cable.transceivers(profile)
    for r in (r for r in results if r["point"].series == THERE):
        yield from _found_there(r, link)
    for r in (r for r in results if r["point"].series == "length"):
        metres, doubt = cable.cable_length(r["round_trip_ns"], link, r["clock_hz"])
        yield f"{r['point'].x:g} m of cable: {metres:.1f} ± {doubt:.1f} m by the round trip"
    for r in (r for r in results if r["point"].series == "ber"):
        yield (
            f"bit error rate {r['point'].x:g} of the cable: {r['errors']} errors in "
            f"{r['bits']:.2g} bits, with 95 % confidence "
            f"below {cable.upper_bound(r['errors'], r['bits']):.1e}"
        )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    of = {
        kind: [r for r in results if r["point"].series == kind] for kind in ("length", "ber", THERE)
    }
    return {
        "points": [
            *_lengths(profile, of["length"]),
            *_errors(profile, of["ber"]),
            *_there(profile, of[THERE]),
        ],
        "findings": list(_findings(profile, results)),
        "notes": [
            f"rate: {TOTAL >> 10} KiB in puts of {cable.CHUNK >> 10} KiB, {cable.DEPTH} under way; "
            f"with errors: {TOTAL_BER >> 10} KiB",
            f"rate-stop-go: {TOTAL_GAPS >> 10} KiB, each byte with a gap behind it in the target, "
            "whose PCIe cannot keep up",
            "payload-share: of all words that reach the target's card, flow words and idle ones "
            "included",
            f"errors-found: PRBS31 for {PRBS_NS / 1e6:g} ms in both directions; a symbol that is "
            f"wrong counts as one bit",
            "bytes compared: what the last put of each run left",
        ],
    }


LENGTH = ("rate", "rate-stop-go", "payload-share", "round-trip", "training")
ERRORS = ("rate-with-errors", "errors-found")


def _present(report: dict[str, Any], names: Iterable[str]) -> list[str]:
    found = {p["series"] for p in report["points"]}
    return [name for name in names if name in found]


def tables(report: dict[str, Any]) -> list[Table]:
    there = any(p["x"] == THERE for p in report["points"])
    return [
        Table(heading, series, brief)
        for heading, series, brief in (
            ("cable" if there else "metres", _present(report, LENGTH[:2]), False),
            ("cable" if there else "metres", _present(report, LENGTH[2:]), False),
            ("cable" if there else "BER of the cable", _present(report, ERRORS), False),
        )
        if series
    ]


def panels(report: dict[str, Any]) -> list[Panel]:
    profile = f"profile {report['profile']}"
    panels_ = [
        Panel(f"64 KiB a put, {profile}", LENGTH[:2], "length of the cable (m)"),
        Panel(f"payload among all words, {profile}", LENGTH[2:3], "length of the cable (m)"),
        Panel(f"ping to pong, {profile}", LENGTH[3:4], "length of the cable (m)"),
        Panel(f"64 KiB a put, {profile}", ERRORS[:1], "bit error rate of the cable"),
    ]
    return [panel for panel in panels_ if _present(report, panel.series)]
