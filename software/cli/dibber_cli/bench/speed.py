"""Speed of the simulator: simulated card-cycles in a second of CPU time, host model and cable
included.

A card-cycle is one cycle of one card. CPU time is that of the simulator process, in one thread, so
other load on the machine does not change the figure much. There are three runs: nothing to do, a
ping-pong of 8 bytes, and both cards putting strided blocks. The time for the start of the cards and
the load of their control programs is measured by a run without points, and subtracted.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dibber_cli import paths
from dibber_cli.bench import session, stride
from dibber_cli.bench.pingpong import PingPong, Player
from dibber_cli.bench.program import Program
from dibber_cli.bench.worker import Worker
from dibber_cli.errors import CommandError
from dibber_cli.link import measure
from dibber_cli.link.side import Ends
from dibber_cli.map import survey
from dibber_cli.profile import Profile
from dibber_cli.simulator import Network

IDLE_NS = 4_000_000  # of simulated time
ROUNDS = 600
STRIDES = (2, 8, 32)
BULK_BYTES = 2 << 20  # of each of two cards, in puts of measure.CHUNK
# below build/sim: the bare model, run for some seconds of CPU time; prints JSON
REFERENCE = "reference-speed"
REFERENCE_SECONDS = 1


@dataclass(frozen=True)
class Rest:
    """A point in which both programs only wait for `nanoseconds`."""

    nanoseconds: int = IDLE_NS
    series: str = "idle"
    x: str = "nanoseconds"
    number: int = 0


class Sleeper(Program):
    """The program of a Rest."""

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Any]
    ) -> None:
        super().__init__(uri, node, firmware, seed)
        self.allocate(1, 1)

    def prepare(self, point: Rest) -> None:
        """Nothing to prepare."""

    def run(self, point: Rest, keys: dict[str, Any]) -> dict[str, Any]:
        self.endpoint.wait(point.nanoseconds)
        return {"free": self.endpoint.clock().free}


def runs() -> list[tuple[str, type[Program], list[Any]]]:
    """Name, program and points of each run."""
    return [
        ("idle", Sleeper, [Rest()]),
        ("ping", Player, [PingPong("ping", ROUNDS)]),
        ("strided", Worker, stride.points(("put-both-strided",), STRIDES)),
    ]


def simulate(
    profile: Profile,
    seed: int,
    kind: type[Program],
    points: Sequence[Any],
    options: Sequence[str] = (),
) -> tuple[int, float]:
    """Cycles of each card, and seconds of CPU time, of a whole run: (cycles, cpu_seconds)."""
    _, _, stats = session.measure(
        profile, seed, points, options=("--threads", "1", *options), kind=kind
    )
    values = json.loads(stats)
    return values["cycles"], values["cpu_seconds"]


def of_cards(profile: Profile, seed: int) -> list[tuple[str, float, float | None]]:
    """For each run its name and card-cycles per second of CPU time, with the bare model's value, or
    None if that is not built.

    Returns a list of (name, ours, reference).
    """
    start_cycles, start_seconds = simulate(profile, seed, Sleeper, ())
    found = []
    for name, kind, points in runs():
        cycles, seconds = simulate(profile, seed, kind, points)
        ours = 2 * (cycles - start_cycles) / (seconds - start_seconds)
        found.append((name, ours, of_reference(profile)))
    return found


def of_network(profile: Profile, seed: int, shape: str) -> tuple[float, float]:
    """Simulated cycles in a second of CPU time while cards 0 and 1 put bulk to one another: (in a
    pair, in the network `shape` whose other cards rest). Start and first put are subtracted.
    """
    found = []
    for network in ("pair", shape):
        start_cycles, start_seconds = _bulk(profile, seed, network, measure.CHUNK)
        cycles, seconds = _bulk(profile, seed, network, BULK_BYTES)
        found.append((cycles - start_cycles) / (seconds - start_seconds))
    return found[0], found[1]


def _bulk(profile: Profile, seed: int, shape: str, length: int) -> tuple[int, float]:
    """Cycles and seconds of CPU time of a run with `length` bytes in each direction."""
    options = ["--threads", "1", "--preload", str(paths.FIRMWARE)]
    with Network(profile, shape, seed=seed, options=options) as network:
        with Ends(network.uris) as ends:
            rest = [lambda side: None] * (len(network.uris) - 2)
            ends.both(lambda side: survey(side.card, 2, True))
            keys = ends.both(measure.offer, measure.offer, *rest)
            sends = [
                lambda side, key=key: measure.send(side, key, length)[1]
                for key in (keys[1], keys[0])
            ]
            bad = [status for statuses in ends.both(*sends, *rest)[:2] for status in statuses]
            if bad:
                raise CommandError(f"{shape}: a put ended with {bad[0]}")
        network.stop()
        values = json.loads(network.stats.read_text(encoding="utf-8"))
    return values["cycles"], values["cpu_seconds"]


def of_reference(profile: Profile) -> float | None:
    """Cycles per second of CPU time of a bare VexRiscv + LitePCIe model of the profile's data
    width; None if it is not built.
    """
    binary = paths.BUILD / "sim" / f"{REFERENCE}-{profile.data_width}"
    if not binary.exists():
        return None
    result = subprocess.run(
        [str(binary), str(REFERENCE_SECONDS)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if result.returncode:
        raise CommandError(f"{binary}: {result.stderr.strip()}")
    return json.loads(result.stdout)["cycles_per_cpu_second"]
