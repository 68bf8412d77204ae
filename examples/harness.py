"""What the examples share: two programs on a pair of simulated cards, times, a table and a chart.

An example is a program (a Node) that both sides run, and the cases that it runs them with. Each
case is measured in two ways or more: `direct`, where the card takes the data from where they lie
and puts them where they belong, and `packed`, where the CPU makes them contiguous before and takes
them apart afterwards. The CPU's copies take no simulated time: they are done, compared, and charged
by the model of dibber_cli/bench/cpu.py.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dibber_cli import output, profile
from dibber_cli.bench import cpu, report, session, stages
from dibber_cli.bench.bound import PACKET_OVERHEAD, PACKET_PAYLOAD
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.program import TIMEOUT_NS, Failed, Program, reap
from dibber_cli.bench.views import Panel, Table
from dibber_cli.pipe import quiet

PACKED = "packed"


@dataclass(frozen=True)
class Case:
    """One point: `way` of `size`, which moves `payload` bytes from each of `senders`."""

    way: str
    size: int
    payload: int
    senders: tuple = (0, 1)
    number: int = 0

    @property
    def series(self):
        return self.way

    @property
    def x(self):
        return self.size

    def random(self, seed, node):
        """What a node's data come from: the same numbers in every way, so that ways can be
        compared.
        """
        return np.random.default_rng((seed, self.size, node))


# Programs -----------------------------------------------------------------------------------------


def as_pattern(walk):
    """A Walk as the CPU's model wants it."""
    return Pattern(walk.block, walk.levels, walk.length, 1, walk.offset)


class Node(Program):
    """One side of an example. Subclasses have

    SOURCE, TARGET       : bytes of the memory that is read, and of the one that is written from the
                           wire
    prepare(case)        : fill memory, while time stands
    exchange(case, keys) : the transfers, and what the CPU copies for them
    wrong(case)          : how many bytes are not what they must be

    and may charge(before, source, target) copies: before the transfers or after them.
    """

    def __init__(self, uri, node, firmware, seed, points):
        super().__init__(uri, node, firmware, seed)
        self.allocate(self.SOURCE, self.TARGET)

    def charge(self, before, source, target):
        """The CPU copies from one place to the other; both are Patterns, or what has their blocks
        and lines.
        """
        self.copies[0 if before else 1].append((source, target))

    def finish(self, commands, notices):
        """Wait until so many of our commands have completed, and so many of the other side's
        notices have come.
        """
        while commands or notices:
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed(
                    f"{commands} commands did not complete, {notices} notices did not come"
                )
            commands -= reap(self.endpoint)
            notices -= len(self.endpoint.poll_events())

    def run(self, case, keys):
        self.copies = [], []
        begin = self.endpoint.clock()
        self.exchange(case, keys)
        end = self.endpoint.clock()
        return {
            "elapsed_ps": end.now_ps - begin.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
            "copies": self.copies,
            "bytes_wrong": self.wrong(case),
            "guards": 0,
        }


# Measuring ----------------------------------------------------------------------------------------


def copying_ps(profile_, answers):
    """CPU time of the copies: both nodes pack at once, and both unpack at once."""

    def spent(copies):
        return sum(cpu.copy_ns(profile_, *pair) for pair in copies) * 1e3

    return sum(max(spent(answer["copies"][phase]) for answer in answers) for phase in range(2))


@dataclass
class Example:
    """What session.run() measures.

    NAME, PROGRAM : of the example, class of its Node
    cases         : Cases
    axis          : what their size is
    notes         : sentences for the report
    """

    NAME: str
    PROGRAM: type
    cases: list
    axis: str
    notes: list

    def points(self):
        return self.cases

    @property
    def ways(self):
        return list(dict.fromkeys(case.way for case in self.cases))

    def evaluate(self, profile_, seed, results):
        link = profile_.link_bytes * PACKET_PAYLOAD / (PACKET_PAYLOAD + PACKET_OVERHEAD)
        found = [self._row(profile_, result, link) for result in results]
        value = {(row["series"], row["x"]): row["value"] for row in found}
        ratio = [
            f"{way}, {self.axis.partition(' (')[0]} {x}: {value[way, x] / value[PACKED, x]:.2f} "
            f"times packed"
            for way, x in value
            if way != PACKED
        ]
        return {
            "points": found,
            "findings": ratio,
            "notes": [
                *self.notes,
                "packing and unpacking: computed from the profile's table [benchmark], not "
                "overlapped",
                "the bound is the link's alone",
            ],
        }

    @staticmethod
    def _row(profile_, result, link):
        case, answers = result["point"], result["answers"]
        moving = max(answer["elapsed_ps"] for answer in answers)
        copying = copying_ps(profile_, answers)
        name, _ = stages.limit(*result["busy"], moving * 1e-12 * profile_.clock_hz)
        elapsed = moving + copying
        return {
            "series": case.way,
            "x": case.size,
            "x_unit": "size",
            "value": round(case.payload / elapsed * 1e6, 1),
            "unit": "MB/s",
            "bound": round(link / 1e6, 1),
            "bound_by": "link",
            "limit": None,
            "limited_by": "CPU's copies" if copying > moving else name,
            "cycles": round(elapsed * 1e-12 * profile_.clock_hz),
            "cpu_percent": round(
                100 * (max(answer["cpu_ps"] for answer in answers) + copying) / elapsed, 2
            ),
        }

    def tables(self, result):
        return [Table(self.axis, self.ways, brief=len(self.ways) > 2)]

    def panels(self, result):
        return [Panel(f"profile {result['profile']}", self.ways, self.axis)]


def main(example, description):
    """The command line of an example: measure, show the table, write the chart."""
    return quiet(lambda: measure(example, description))


def measure(example, description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--profile", default="gen2x4", help="host and link (default gen2x4)")
    parser.add_argument("--seed", type=int, default=1, help="of the data (default 1)")
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for JSON, CSV and chart (default out)"
    )
    arguments = parser.parse_args()
    progress = output.Progress(len(example.cases))
    result = session.run(
        example,
        profile.load(arguments.profile),
        arguments.seed,
        " ".join(sys.argv),
        progress=progress,
    )
    progress.clear()
    report.show(result, example.tables(result))
    print(
        "written: "
        + ", ".join(map(str, report.write(result, example.panels(result), arguments.out)))
    )
    return 1 if result["bytes_wrong"] else 0
