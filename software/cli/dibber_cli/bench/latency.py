"""`latency`: half of a ping-pong of 8-byte inline puts between two polling programs, idle and under
bulk; and 8 bytes by a get, a fetch-add and a put from memory, from the call to the completion."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterator, Sequence
from typing import Any

from dibber_cli.bench import bound
from dibber_cli.bench.asking import FETCH_ADD, GET, PUT, Asking
from dibber_cli.bench.figures import percentile
from dibber_cli.bench.options import MOST_ITERATIONS, Argument
from dibber_cli.bench.pingpong import LOOK_NS, WORD, PingPong, Player
from dibber_cli.bench.point import numbered
from dibber_cli.bench.views import Panel, Table
from dibber_cli.profile import Profile

NAME = "latency"
PROGRAM = Player

ROUNDS = 1000
# Whether the fast path is used, and whether there is bulk.
SERIES = {
    "fastpath": (True, False),
    "fastpath-under-bulk": (True, True),
    "mcp": (False, False),
    "mcp-under-bulk": (False, True),
}
# The whole round trip of these counts.
ASKED = {
    "fastpath-get": GET,
    "fastpath-fetch-add": FETCH_ADD,
    "mcp-get": GET,
    "mcp-fetch-add": FETCH_ADD,
    "mcp-put": PUT,
}
CHOICE = (*SERIES, *ASKED)
PERCENTILES = (1, 50, 99, 99.9)

QUICK = {"rounds": 200}  # of points()
OPTIONS = {"iterations": Argument(1, MOST_ITERATIONS, lambda n: {"rounds": n})}

# The handlers that such a command waits for, on either card. Acknowledgements of messages and
# answers run beside it.
SERIAL = {
    GET: ("COMMAND", "ARRIVAL"),
    FETCH_ADD: ("COMMAND", "ARRIVAL"),
    PUT: ("COMMAND", "SEND_DONE", "ACK"),
}
# And those that it waits for with all that hardware does: the target's program executes atomics.
BESIDE = {GET: (), FETCH_ADD: ("ARRIVAL",)}


def points(series: Sequence[str] = CHOICE, rounds: int = ROUNDS) -> list[Any]:
    return numbered(
        Asking(s, ASKED[s], rounds, fast=s.startswith("fastpath"))
        if s in ASKED
        else PingPong(s, rounds, fast=SERIES[s][0], bulk=SERIES[s][1])
        for s in series
    )


def passages(point: object) -> int:
    """The number of ways over the cable in the time of one value."""
    return 1 if isinstance(point, Asking) else 2


def _report(profile: Profile, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A point of the report for each percentile. Its limit is the stage with the largest part of
    the median.
    """
    point, answer = result["point"], result["answers"][0]
    spent = stages(profile, result)
    times = [ps / passages(point) for ps in answer["rounds_ps"]]
    least = bound.message_seconds(profile, WORD) * 2 / passages(point)
    for percent in PERCENTILES:
        ps = percentile(times, percent)
        yield {
            "series": point.series,
            "x": percent,
            "x_unit": "percentile",
            "value": round(ps * 1e-6, 4),
            "unit": "us",
            "bound": round(least * 1e6, 4),
            "bound_by": "wire",
            "limit": None,
            "limited_by": max(spent, key=lambda name: spent[name]),
            "cycles": round(ps * 1e-12 * profile.clock_hz, 1),
            "cpu_percent": round(100 * answer["cpu_ps"] / answer["elapsed_ps"], 2),
        }


def stages(profile: Profile, result: dict[str, Any]) -> dict[str, float]:
    """The parts of the median's time, in cycles of the card; unknown parts are the rest."""
    point, answer, busy = result["point"], result["answers"][0], result["busy"]
    cycles = profile.clock_hz * 1e-12
    rounds = len(answer["rounds_ps"])
    ways = 2 / passages(point)
    known = {
        "CPU charge": answer["cpu_ps"] / rounds * cycles,
        "PCIe to the card": profile.posted_down_ns * 1e3 * cycles,
        "cable": profile.cable_ns * 1e3 * cycles * ways,
        "PCIe to memory": profile.posted_up_ns * 1e3 * cycles,
    }
    if isinstance(point, Asking):
        handlers = (BESIDE if point.fast else SERIAL)[point.operation]
        if handlers:
            known["control program"] = (
                sum(side[name] for side in busy for name in handlers) / rounds
            )
    elif not point.fast:
        known["control program"] = sum(side["COMMAND"] for side in busy) / sum(
            side["COMMAND calls"] for side in busy
        )
    total = percentile(answer["rounds_ps"], 50) / passages(point) * cycles
    return {
        name: round(value, 1)
        for name, value in {**known, "rest of both cards": total - sum(known.values())}.items()
    }


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [row for result in results for row in _report(profile, result)]
    spent = {result["point"].series: stages(profile, result) for result in results}
    median = {row["series"]: row["value"] for row in found if row["x"] == 50}
    lines = [
        f"{series}: {', '.join(f'{name} {value:g}' for name, value in parts.items())} cycles"
        for series, parts in spent.items()
    ]
    for name in ("fastpath", "mcp"):
        if {name, f"{name}-under-bulk"} <= set(median):
            lines.append(
                f"{name}: median under bulk {median[f'{name}-under-bulk'] / median[name]:.2f} "
                f"times idle"
            )
    return {
        "points": found,
        "stages_cycles": spent,
        "findings": lines,
        "notes": [
            f"{WORD} bytes; half of a round, from entry to dib_put_inline to the look at memory "
            f"that sees the answer; "
            f"{len(results[0]['answers'][0]['rounds_ps'])} rounds, a look every {LOOK_NS} ns, "
            f"which is in it",
            "…-get, …-fetch-add, mcp-put: one at a time, from the call to the poll that took the "
            "completion; the other "
            "program sleeps; control program: the handlers of both cards that it waits for",
            "bulk: both cards keep four puts of 64 KiB under way from another endpoint",
            "CPU charge: of the calls, a round; a program that looks all the time has no CPU time "
            "left",
            "control program: mean of its handler COMMAND; the rest is the engines, the control "
            "program's loop and both packet "
            "and link layers",
            "fastpath: no control program takes part; mcp: host register FAST_PATH is 0 on both "
            "cards",
        ],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    return [
        Table("percentile", [s for s in CHOICE if any(p["series"] == s for p in report["points"])])
    ]


def panels(report: dict[str, Any]) -> list[Panel]:
    return [
        Panel(f"8 bytes, profile {report['profile']}", list(CHOICE), "percentile of the rounds")
    ]
