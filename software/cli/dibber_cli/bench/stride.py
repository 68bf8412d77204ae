# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""`stride`: puts of 8-byte elements at strides, the ETH chart of 1998."""

import multiprocessing
import multiprocessing.connection
import time

from dibber_cli import paths
from dibber_cli.bench import shapes, worker
from dibber_cli.bench.bound import bound
from dibber_cli.errors import ADVICE, CommandError
from dibber_cli.simulator import Pair

# Where the library begins to hand out bus addresses; the bound needs to know only whether that is below 4 GiB.
BUS_ADDRESS = 0x1000_0000


class Workers:
    """Both worker processes for the length of a `with` statement."""

    def __init__(self, pair, seed, points):
        context = multiprocessing.get_context("spawn")
        self.pair, self.processes, self.pipes = pair, [], []
        for node, kind in enumerate((worker.Sender, worker.Receiver)):
            ours, theirs = context.Pipe()
            process = context.Process(target=worker.main, daemon=True, args=(
                kind, theirs, pair.uris[node], node, str(paths.FIRMWARE), seed, points))
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def __enter__(self):
        return self

    def receive(self):
        """What both workers answer. Raises CommandError when one failed, SimulatorError when the simulator ended."""
        answers, open_pipes = [None, None], list(self.pipes)
        while open_pipes:
            ready = multiprocessing.connection.wait([*open_pipes, *(p.sentinel for p in self.processes)], 1)
            for n, pipe in enumerate(self.pipes):
                if pipe in ready and pipe in open_pipes:
                    open_pipes.remove(pipe)
                    try:
                        answers[n] = pipe.recv()
                    except EOFError:
                        answers[n] = {"failed": "its process ended"}
                    if "failed" in answers[n]:
                        self.pair.check()
                        raise CommandError(f"card {n}: {answers[n]['failed']}", ADVICE.get(answers[n].get("name"), ""))
            if not ready:
                self.pair.check()
        return answers

    def order(self, point, key):
        for pipe in self.pipes:
            pipe.send((point, key))

    def finish(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(30)

    def __exit__(self, *_):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join(10)
        for pipe in self.pipes:
            pipe.close()


def measure(profile, seed, points, progress=None, options=()):
    """Run `points` on a pair of simulated cards. Returns (results, versions, simulator's statistics file as text).

    A result is a dictionary: point, elapsed_ps, cpu_ps, bytes_wrong, guards (guard bytes compared).
    """
    if not paths.FIRMWARE.exists():
        raise CommandError(f"{paths.FIRMWARE} is not built", "run 'make firmware'")
    results = []
    with Pair(profile, seed=seed, options=options) as pair:
        with Workers(pair, seed, points) as workers:
            sender, receiver = workers.receive()
            versions = {"gateware": f"{sender['build']:08x}", "firmware": f"{sender['identity']:08x}",
                        "library": f"{sender['interface'] >> 16}.{sender['interface'] & 0xffff}-{sender['hash']:08x}"}
            for point in points:
                if progress:
                    progress.draw(f"{point.series}, stride {point.stride}")
                workers.order(point, receiver["key"])
                sent, received = workers.receive()
                if sent["free"]:
                    raise CommandError("a client without the clock takes part: the figures would not repeat")
                results.append({"point": point, **sent, **received})
                if progress:
                    progress.step(f"{point.series}, stride {point.stride}")
            workers.finish()
        pair.stop()
        stats = pair.stats.read_text() if pair.stats.exists() else "{}"
    return results, versions, stats


def evaluate(profile, result):
    """A point of the report."""
    point   = result["point"]
    seconds = result["elapsed_ps"]*1e-12
    best    = bound(profile, point.side(0, BUS_ADDRESS), point.side(1, BUS_ADDRESS))
    return {"series": point.series, "x": point.stride, "x_unit": "elements",
            "value": round(point.length/seconds/1e6, 1), "unit": "MB/s", "bound": round(best.value/1e6, 1),
            "cycles": round(seconds*profile.clock_hz),
            "cpu_percent": round(100*result["cpu_ps"]/result["elapsed_ps"], 2)}


def run(profile, seed, command, progress=None, points=None):
    """The whole benchmark: the report's dictionary (docs/benchmarks.md)."""
    begin  = time.monotonic()
    points = points or shapes.points()
    results, versions, _ = measure(profile, seed, points, progress)
    return {"test": "stride", "profile": profile.name, "seed": seed, "command": command, "versions": versions,
            "time_base": "simulated",
            "bytes_compared": sum(r["point"].length for r in results),
            "guard_bytes_compared": sum(r["guards"] for r in results),
            "bytes_wrong": sum(r["bytes_wrong"] for r in results),
            "wall_seconds": round(time.monotonic() - begin, 1),
            "points": [evaluate(profile, r) for r in results]}
