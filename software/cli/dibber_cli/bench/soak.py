"""`soak`: random transfers of all kinds in both directions, over a cable with bit errors that is
sometimes unplugged. Every byte is compared.

The commands, and the expected memory: dibber_cli/soak. `make soak` runs many more.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from libdibber import Exchange

from dibber_cli import paths
from dibber_cli.bench import bound
from dibber_cli.bench.hosts import Cards
from dibber_cli.bench.views import Panel, Table
from dibber_cli.errors import CommandError
from dibber_cli.output import Progress
from dibber_cli.profile import Profile
from dibber_cli.soak import distant
from dibber_cli.soak.run import Soak

NAME = "soak"

SEGMENTS = 8  # of the run; each is a point
TRANSFERS = 150  # of a segment
QUICK = {"segments": 3, "transfers": 80}
BER = 1e-6  # of the cable
# The cable is unplugged for OUT_US once in each EVERY_US, during the whole run. The first time may
# be while the programs open their cards, which does no harm.
EVERY_US, OUT_US, TIMES = 1_000, 150, 200
# Counters of both cards in the findings, with their text.
COUNTED = {
    "link_lost": "times the link was lost",
    "code_errors": "code errors",
    "disparity_errors": "disparity errors",
    "header_crc_error": "header CRC errors",
    "payload_crc_error": "payload CRC errors",
    "naks_sent": "calls for a packet again",
    "packet_duplicate": "packets twice",
}


@dataclass(frozen=True)
class Segment:
    """A segment of so many more transfers."""

    x: int
    transfers: int
    series: str = "transfers"


def points(segments: int = SEGMENTS, transfers: int = TRANSFERS) -> list[Segment]:
    return [Segment(n + 1, transfers) for n in range(segments)]


def faults(seed: int) -> list[str]:
    """Options of the simulator: when the cable is out."""
    choice, options = random.Random(f"{seed}/cable"), ["--ber", str(BER)]
    for n in range(TIMES):
        begin = EVERY_US * n + choice.randrange(EVERY_US - OUT_US)
        options += ["--fault", f"unplugged:{begin}:{begin + OUT_US}"]
    return options


def serve(exchange: Exchange, uri: str, seed: int) -> None:
    """The part of the host that listens, see hosts.serve()."""
    distant.serve(exchange, uri, seed)


def measure(
    profile: Profile,
    seed: int,
    points: Sequence[Segment],
    progress: Progress | None = None,
    cards: Cards | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """One run; a result describes one segment. Any fault other than a wrong byte ends the run.

    cards : hosts.Cards, whose cable is as it is
    """
    if cards:
        cards.server = distant.Server
    if not paths.FIRMWARE.exists():
        raise CommandError(f"{paths.FIRMWARE} is not built", "run 'make firmware'")
    results, total = [], sum(point.transfers for point in points)
    disturbed = () if cards else faults(seed)
    with Soak(total, seed, profile.path, disturbed, cards=cards) as soak:
        for n, point in enumerate(points):
            if progress:
                progress.draw(f"{point.series}, {point.x}")
            bytes_, elapsed, busy = soak.bytes, soak.elapsed_ps, soak.busy_ps
            soak.go_on(sum(p.transfers for p in points[: n + 1]))
            if soak.trouble and not soak.wrong_bytes:
                raise CommandError(
                    f"soak: {soak.trouble[0]}",
                    "tests/soak/transfers.py --rounds runs a round alone",
                )
            results.append(
                {
                    "point": point,
                    "bytes": soak.bytes - bytes_,
                    "elapsed_ps": soak.elapsed_ps - elapsed,
                    "cpu_ps": soak.busy_ps - busy,
                    "until_ps": soak.elapsed_ps,
                }
            )
            if progress:
                progress.step(f"{point.series}, {point.x}")
        counted = soak.counters_of_cards()
    results[-1].update(
        disturbed=bool(disturbed),
        operations=dict(sorted(soak.operations.items())),
        counted=counted,
        trouble=soak.trouble,
    )
    return (
        results,
        soak.versions,
        {
            "bytes_compared": soak.bytes,
            "guard_bytes_compared": soak.compared - soak.bytes,
            "bytes_wrong": soak.wrong_bytes,
        },
    )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    link = (
        profile.link_bytes * bound.PACKET_PAYLOAD / (bound.PACKET_PAYLOAD + bound.PACKET_OVERHEAD)
    )
    found = [
        {
            "series": r["point"].series,
            "x": round(r["until_ps"] * 1e-9, 2),
            "x_unit": "ms",
            "value": round(r["bytes"] / r["elapsed_ps"] * 1e6, 1),
            "unit": "MB/s",
            "bound": round(2 * link / 1e6, 1),
            "bound_by": "link",
            "limit": None,
            "limited_by": None,
            "cycles": round(r["elapsed_ps"] * 1e-12 * profile.clock_hz),
            "cpu_percent": round(100 * r["cpu_ps"] / r["elapsed_ps"] / 2, 2),
        }
        for r in results
    ]
    last = results[-1]
    kinds = ", ".join(f"{n} {kind}" for kind, n in last["operations"].items())
    seen = ", ".join(f"{last['counted'][name]} {words}" for name, words in COUNTED.items())
    return {
        "points": found,
        "operations": last["operations"],
        "counted": last["counted"],
        "findings": [*last["trouble"], f"operations: {kinds}", f"on both cards: {seen}"],
        "notes": [
            "random sizes, strides and alignments, both directions at once; some commands have a "
            "mistake, for which "
            "they must fail",
            f"bit error rate {BER:g}; the cable is out for {OUT_US} µs once in every {EVERY_US} µs"
            if last["disturbed"]
            else "the cable is as it is",
            "values: payload of both directions; transfers are small and few are under way: no "
            "measure of the card's "
            "speed",
            "every byte of both memories is compared after each round of 80 transfers",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    return [Table("ms", ["transfers"])]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [
        Panel(
            f"random transfers, bit errors, cable pulled, profile {report['profile']}",
            ["transfers"],
            "simulated time with transfers under way (ms)",
        )
    ]
