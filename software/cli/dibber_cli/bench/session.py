"""Points measured on a pair of simulated cards, and their report."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import multiprocessing
import multiprocessing.connection
import multiprocessing.process
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from dibber_cli import paths, signals
from dibber_cli.bench import cpu, program, remote, stages
from dibber_cli.bench.bound import Bound, bound
from dibber_cli.bench.hosts import Cards
from dibber_cli.bench.point import Point
from dibber_cli.bench.worker import Worker
from dibber_cli.errors import CommandError, advice_on
from dibber_cli.output import Progress
from dibber_cli.profile import Profile
from dibber_cli.simulator import Network, Pair

# The library's first bus address. The bound only needs to know whether it is below 4 GiB.
BUS_ADDRESS = 0x1000_0000


class Workers:
    """Both programs, of class `kind`, in a `with` statement.

    pair : a simulator.Pair or hosts.Cards; a program whose URI is None runs on another host
    """

    def __init__(
        self, pair: Network | Cards, kind: type[program.Program], seed: int, points: Sequence[Any]
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.pair = pair
        self.processes: list[multiprocessing.process.BaseProcess] = []
        self.pipes: list[Any] = []  # connections, and remote.Server
        try:
            self._start(context, kind, seed, points)
        except BaseException:
            self.end()
            raise

    def _start(
        self, context: Any, kind: type[program.Program], seed: int, points: Sequence[Any]
    ) -> None:
        for node in range(2):
            if self.pair.uris[node] is None:
                assert isinstance(self.pair, Cards) and self.pair.exchange
                self.pipes.append(self.pair.server(self.pair.exchange))
                continue
            ours, theirs = context.Pipe()
            process = context.Process(
                target=program.main,
                daemon=True,
                args=(theirs, kind, self.pair.uris[node], node, str(paths.FIRMWARE), seed, points),
            )
            with signals.kept_from_children():
                process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def __enter__(self) -> "Workers":
        return self

    def receive(self) -> list[dict[str, Any]]:
        """The answers of both programs. Raises CommandError if one failed, SimulatorError if the
        simulator ended.
        """
        answers: list[Any] = [None, None]
        open_pipes = list(self.pipes)
        while open_pipes:
            ready = self._ready(open_pipes)
            for n, pipe in enumerate(self.pipes):
                if pipe in ready and pipe in open_pipes:
                    open_pipes.remove(pipe)
                    try:
                        answers[n] = pipe.recv()
                    except EOFError:
                        answers[n] = {"failed": "its process ended"}
                    if "failed" in answers[n]:
                        self.pair.check()
                        raise CommandError(
                            f"card {n}: {answers[n]['failed']}",
                            advice_on(answers[n].get("name"), answers[n]["failed"]),
                        )
            if not ready:
                self.pair.check()
        return answers

    def _ready(self, pipes: Sequence[Any]) -> list[Any]:
        """The pipes from which an answer can be taken now, after a wait of a second at most."""
        distant = [pipe for pipe in pipes if isinstance(pipe, remote.Server)]
        ready: list[Any] = [pipe for pipe in distant if pipe.ready()]
        if ready:
            return ready
        ready = multiprocessing.connection.wait(
            [*pipes, *(process.sentinel for process in self.processes)], 1
        )
        return [one for one in ready if not isinstance(one, remote.Server) or one.ready()]

    def do(self, point: Any, keys: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Let both execute `point`, each with the other's keys; returns their answers."""
        for pipe, key in zip(self.pipes, reversed(keys)):
            pipe.send((point, key))
        return self.receive()

    def count(self) -> list[dict[str, Any]]:
        """Both cards' counters."""
        for pipe in self.pipes:
            pipe.send(program.COUNT)
        return self.receive()

    def finish(self) -> None:
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(30)

    def __exit__(self, *_: object) -> None:
        with signals.held():
            self.end()

    def end(self) -> None:
        """End both processes in any state."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join(10)
        for pipe in self.pipes:
            pipe.close()


def measure(
    profile: Profile,
    seed: int,
    points: Sequence[Any],
    progress: Progress | None = None,
    options: Sequence[str] = (),
    kind: type[program.Program] = Worker,
    cards: Cards | None = None,
    topology: str | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str], str]:
    """Run `points` on a pair of simulated cards, or on `cards` (hosts.Cards). Returns (results,
    versions, simulator's statistics file as text).

    A result is a dictionary: point; answers, one of each card, with elapsed_ps and cpu_ps where it
    had the commands, bytes_wrong and guards (guard bytes compared) where it received; busy, one of
    each card: stages.between().

    kind     : class of the programs that do the points
    topology : of two simulated cards, in place of a pair

    If a point fails, the error's `measured` has the times of the points before it: a list of
    dictionaries with series, x, and elapsed_ps of both cards.
    """
    check()
    results: list[dict[str, Any]] = []
    try:
        pair: Network | Cards = cards or (
            Network(profile, topology, seed=seed, options=options)
            if topology
            else Pair(profile, seed=seed, options=options)
        )
        stats, versions = _measure(profile, seed, points, progress, kind, results, pair)
    except (CommandError, KeyboardInterrupt) as error:
        error.measured = [  # type: ignore[union-attr]
            {
                "series": result["point"].series,
                "x": result["point"].x,
                "elapsed_ps": [answer.get("elapsed_ps") for answer in result["answers"]],
            }
            for result in results
        ]
        raise
    return results, versions, stats


def check() -> None:
    """Raise CommandError if a part that every benchmark needs is not built."""
    if not paths.FIRMWARE.exists():
        raise CommandError(f"{paths.FIRMWARE} is not built", "run 'make firmware'")


def _measure(
    profile: Profile,
    seed: int,
    points: Sequence[Any],
    progress: Progress | None,
    kind: type[program.Program],
    results: list[dict[str, Any]],
    cards: Network | Cards,
) -> tuple[str, dict[str, str]]:
    """measure(); each result is put into the list `results` at once."""
    with cards as pair:
        with Workers(pair, kind, seed, points) as workers:
            opened = workers.receive()
            if not isinstance(cards, Network):
                cards.opened = opened
                cards.fitted(profile)  # a wrong profile is told before anything is measured
            keys = [answer["keys"] for answer in opened]
            versions = versions_of(
                opened[0]["build"], opened[0]["identity"], opened[0]["interface"], opened[0]["hash"]
            )
            before = workers.count()
            for point in points:
                if progress:
                    progress.draw(f"{point.series}, {point.x}")
                answers = workers.do(point, keys)
                if any(answer["free"] for answer in answers):
                    raise CommandError(
                        "a client without the clock takes part: the figures would not repeat"
                    )
                after = workers.count()
                results.append(
                    {
                        "point": point,
                        "answers": answers,
                        "busy": [stages.between(*times) for times in zip(before, after)],
                    }
                )
                before = after
                if progress:
                    progress.step(f"{point.series}, {point.x}")
            workers.finish()
        pair.stop()
        stats = (
            pair.stats.read_text(encoding="utf-8") if pair.stats and pair.stats.exists() else "{}"
        )
        return stats, versions


def versions_of(build: int, identity: int, interface: int, hash_: int) -> dict[str, str]:
    """Versions: words of the gateware, the control program and the library."""
    return {
        "gateware": f"{build:08x}",
        "firmware": f"{identity:08x}",
        "library": f"{interface >> 16}.{interface & 0xFFFF}-{hash_:08x}",
    }


# Report -------------------------------------------------------------------------------------------


def bound_of(profile: Profile, point: Point) -> Bound:
    """The Bound of the card's part of a point."""
    source, target = (
        pattern.side(BUS_ADDRESS + base)
        for pattern, base in (point.moved(point.source), point.moved(point.target))
    )
    return bound(profile, source, target, both_ways=point.both_ways)


def copying_ps(profile: Profile, point: Point) -> float:
    """CPU time for packing and unpacking, which the card's time does not contain."""
    return 1e3 * sum(
        cpu.copy_ns(profile, *pair)
        for pattern, pair in (
            (point.source, (point.source, point.source.packed())),
            (point.target, (point.target.packed(), point.target)),
        )
        if point.staged(pattern)
    )


def payload_of(result: dict[str, Any], sender: int = 0) -> int:
    """Bytes that card `sender` sent in a point."""
    point = result["point"]
    made = result["answers"][point.issuer(sender)].get("transfers", point.transfers)
    return made * point.source.length


def limit_of(
    profile: Profile, result: dict[str, Any], best: Bound, sender: int = 0
) -> tuple[str, float | None]:
    """(what limits the bytes that card `sender` sends, and to how many a second; None when nothing
    was busy).

    best : the Bound of the point
    """
    point = result["point"]
    seconds = result["answers"][point.issuer(sender)]["elapsed_ps"] * 1e-12
    payload, moved = payload_of(result, sender), point.moved(point.source)[0]
    blocks = 0 if moved.is_contiguous else len(moved.blocks())
    pieces = blocks * payload // point.source.length
    name, share = stages.limit(
        result["busy"][sender],
        result["busy"][1 - sender],
        seconds * profile.clock_hz,
        pieces,
        (best.name, payload / seconds / best.value),
    )
    return name, share and payload / seconds / share


def evaluate(
    profile: Profile, result: dict[str, Any], x_unit: str, sender: int | None = None
) -> dict[str, Any]:
    """A point of the report, for the direction in which card `sender` sends. None: the direction of
    the point, or the sum of both.
    """
    point = result["point"]
    if sender is None and point.both_ways:
        return _sum([evaluate(profile, result, x_unit, one) for one in point.senders])
    sender = sender or 0
    answer = result["answers"][point.issuer(sender)]
    best = bound_of(profile, point)
    payload = payload_of(result, sender)
    copying = copying_ps(profile, point) * payload / point.payload
    elapsed = answer["elapsed_ps"] + copying
    limited_by, limit = limit_of(profile, result, best, sender)
    return {
        "series": point.series,
        "x": point.x,
        "x_unit": x_unit,
        "value": round(payload / (elapsed * 1e-12) / 1e6, 1),
        "unit": "MB/s",
        "bound": round(best.value / 1e6, 1),
        "bound_by": best.name,
        "limit": limit and round(limit / 1e6, 1),
        "limited_by": limited_by,
        "cycles": round(elapsed * 1e-12 * profile.clock_hz),
        "cpu_percent": round(100 * (answer["cpu_ps"] + copying) / elapsed, 2),
    }


def _sum(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Both directions as one point: rates are added, the longer time counts."""
    added = {
        name: round(sum(row[name] for row in rows), 1) if all(row[name] for row in rows) else None
        for name in ("value", "bound", "limit")
    }
    return {
        **rows[0],
        **added,
        "cycles": max(row["cycles"] for row in rows),
        "cpu_percent": round(sum(row["cpu_percent"] for row in rows) / len(rows), 2),
    }


def run(
    test: ModuleType,
    profile: Profile,
    seed: int,
    command: str,
    points: Sequence[Any] | None = None,
    progress: Progress | None = None,
    cards: Cards | None = None,
    timeline: str | None = None,
) -> dict[str, Any]:
    """A whole benchmark: the report's dictionary (docs/benchmarks.md).

    test : module of the benchmark: NAME, points(), evaluate(profile, seed, results) → the parts of
           the report that are its own, "points" among them; PROGRAM, when it is not a Worker;
           measure(profile, seed, points, progress) → (results, versions, counts), when it needs
           pairs of its own
    cards : hosts.Cards in place of a simulated pair
    timeline : file for what the simulated pair does, or None
    """
    begin = time.monotonic()
    points = test.points() if points is None else points
    if hasattr(test, "measure"):
        more = (cards,) if cards else ()
        results, versions, counts = test.measure(profile, seed, points, progress, *more)
    else:
        results, versions, _ = measure(
            profile,
            seed,
            points,
            progress,
            options=["--timeline", timeline] if timeline else (),
            kind=getattr(test, "PROGRAM", Worker),
            cards=cards,
        )
        counts = compared(results)
    if cards:
        profile = cards.fitted(profile)
    parts = test.evaluate(profile, seed, results)
    return {
        "test": test.NAME,
        "profile": profile.name,
        "machine": machine(profile),
        "seed": seed,
        "command": command,
        "versions": versions,
        "time_base": cards.time_base if cards else "simulated",
        **counts,
        "wall_seconds": round(time.monotonic() - begin, 1),
        **parts,
    }


def machine(profile: Profile) -> dict[str, Any]:
    """The values of a profile on which figures depend."""
    values = dataclasses.asdict(profile)
    return {name: values[name] for name in values if name not in ("name", "path")}


def compared(results: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Numbers of compared and of wrong bytes."""
    answers = [
        answer for result in results for answer in result["answers"] if "bytes_wrong" in answer
    ]
    return {
        "bytes_compared": sum(len(r["point"].senders) * r["point"].payload for r in results),
        "guard_bytes_compared": sum(a["guards"] for a in answers),
        "bytes_wrong": sum(a["bytes_wrong"] for a in answers),
    }
