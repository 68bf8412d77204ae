"""What papers printed of MPI on other interconnects, beside a report of `dibber bench mpi`.

P. Adamidis, S. Saini, R. Fatoohi and R. Ciotti measured four systems by b_eff, the Intel MPI
Benchmarks and dense patterns (Cray User Group, 2006; see also NAS-06-012, IPDPS 2006). Ch. Kurmann
and T. Stricker measured Myrinet (EMMSEC 1998).
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterable
from typing import Any

from dibber_cli import output
from dibber_cli.bench.views import of_series

SOURCE = "Cray User Group 2006"
OURS = "Dibber"

# System, processes, MB/s of b_eff, of it at the longest message, of that in rings alone, of a
# ping-pong; and microseconds of the shortest message.
B_EFF = (
    ("SGI Altix 3700", 256, 47166, 123579, 167071, 1069, 1.267),
    ("SGI Altix 3700", 512, 75726, 202946, 315591, 1012, 1.249),
    ("Cray X1 (SSP)", 8, 1858, 5742, 5838, 4231, 9.044),
    ("Cray X1 (SSP)", 32, 5907, 20838, 20288, 4070, 10.330),
    ("Cray X1 (SSP)", 48, 8479, 30752, 30137, 4021, 10.365),
    ("Cray X1 (MSP)", 8, 7686, 35089, 45049, 9400, 10.559),
    ("Dell, InfiniBand", 128, 7202, 21444, 24713, 399, 2.000),
    ("Opteron, Myrinet", 8, 530, 1203, 1745, 711, 0.718),
    ("Opteron, Myrinet", 64, 2922, 5935, 12271, 704, 0.709),
)
HEADINGS = (
    "system",
    "ranks",
    "b_eff",
    "a rank",
    "at L_max",
    "of a rank",
    "rings, L_max",
    "each rank",
    "ping-pong",
    "latency, us",
)
REMARKS = (
    f"b_eff: {SOURCE}; MB/s; L_max there is the memory of a process / 128, here it is in the notes",
    "ping-pong of the Opteron cluster: both processes on one node; between nodes it has 234 MB/s",
)


def _row(
    system: str, ranks: int, whole: float, longest: float, rings: float, pair: float, latency: float
) -> list[str]:
    each = [
        text
        for value in (whole, longest, rings)
        for text in (f"{value:.0f}", f"{value / ranks:.0f}")
    ]
    return [system, str(ranks), *each, f"{pair:.0f}", f"{latency:.3f}"]


def _last(report: dict[str, Any], series: str) -> float | None:
    """The value of the largest message, or None."""
    points = of_series(report, series)
    return max(points, key=lambda p: p["x"])["value"] if points else None


def _first(report: dict[str, Any], series: str) -> float | None:
    points = of_series(report, series)
    return min(points, key=lambda p: p["x"])["value"] if points else None


def b_eff_rows(report: dict[str, Any]) -> list[list[str]]:
    """Rows of the table: the papers' systems, and ours with each number of ranks."""
    rows = [_row(*system) for system in B_EFF]
    at = {(p["series"], p["x"]): p["value"] for p in report["points"]}
    pair, latency = _last(report, "restricted"), _first(report, "half-round-trip")
    for ranks in [p["x"] for p in of_series(report, "b_eff")]:
        whole, longest, rings = (
            at[name, ranks] for name in ("b_eff", "b_eff-longest", "b_eff-rings-longest")
        )
        times = pair or float("nan"), latency or float("nan")
        rows.append(_row(OURS, ranks, whole, longest, rings, *times))
    return rows


def _drop(most: float | None, least: float | None) -> str:
    return f"{100 * (1 - least / most):.0f} % less" if most and least else "not measured"


def _factor(points: Iterable[dict[str, Any]]) -> str:
    """By what factor the slowest phase is below the fastest."""
    values = [p["value"] for p in points if p["value"]]
    return f"factor {max(values) / min(values):.2f}" if values else "not measured"


def _of_most_ranks(report: dict[str, Any], pattern: str) -> list[dict[str, Any]]:
    names = {p["series"] for p in report["points"] if p["series"].startswith(f"{pattern}-")}
    return of_series(report, max(names, key=lambda n: int(n.split("-")[1]))) if names else []


def facts(report: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """[(what, source, there, here)] of the papers' findings."""
    longest, rings = _last(report, "b_eff-longest"), _last(report, "b_eff-rings-longest")
    return [
        (
            "an oncoming message",
            SOURCE,
            "50 % less on all systems but Cray X1 (MSP)",
            _drop(_last(report, "restricted"), _last(report, "postal")),
        ),
        (
            "random neighbours beside rings",
            SOURCE,
            "50 % less, 64 Opterons; none on Cray X1 (SSP)",
            _drop(rings, longest),
        ),
        (
            "AAPC, middle phases",
            SOURCE,
            "factor 5, 512 processors of Altix",
            _factor(_of_most_ranks(report, "aapc")),
        ),
        (
            "simple pairs, middle phases",
            SOURCE,
            "factor 3, 512 of Dell; factor 4, 64 Opterons",
            _factor(_of_most_ranks(report, "simple")),
        ),
        (
            "cumulative pairs",
            SOURCE,
            "factor 3 at 8 pairs, 48 of Cray X1 (SSP)",
            _factor(_of_most_ranks(report, "cumulative")),
        ),
        (
            "contiguous transfers",
            "EMMSEC 1998",
            "126 MB/s, Myrinet",
            f"{_last(report, 'restricted') or float('nan'):.0f} MB/s",
        ),
    ]


def as_json(report: dict[str, Any]) -> dict[str, Any]:
    headings = ("what", "source", "there", "here")
    return {
        "b_eff": [dict(zip(HEADINGS, row)) for row in b_eff_rows(report)],
        "findings": [dict(zip(headings, fact)) for fact in facts(report)],
    }


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    print()
    output.table(HEADINGS, b_eff_rows(report))
    print()
    print("\n".join(REMARKS))
    print()
    output.table(("finding", "source", "there", "here"), facts(report), group=3)
