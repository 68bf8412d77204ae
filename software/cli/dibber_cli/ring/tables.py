"""Figures of a ring as tables for people."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterable, Sequence
from typing import Any

from dibber_cli import output

TIMES = ("mean ns", "p50", "p95", "p99", "max")


def _times(latency: dict[str, float]) -> list[str]:
    return [f"{latency[key]:.0f}" for key in ("mean_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns")]


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    print(f"\n{title}")
    output.table(headings, rows)


def show(result: dict[str, Any]) -> None:
    """Print the figures of one run."""
    total = result["total"]
    rings = "a pair of rings" if result["rings"] == 2 else "one ring"
    print(
        f"{result['name']}: {result['nodes']} nodes on {rings}, {result['link_mbps']:g} MB/s a "
        f"link; {result['measure_us']:g} µs after {result['warmup_us']:g} µs of warm-up"
    )
    print(
        f"payload {total['mbps']:.1f} MB/s, packets {total['packets']}, refused {total['refused']}"
        f", Jain's index of the sources {total['jain']:.3f}"
    )
    _table(
        "Packets",
        ["time", *TIMES],
        [
            ["client to client", *_times(total["latency"])],
            ["send buffer to client", *_times(total["crossing"])],
            ["last symbol to echo", *_times(total["round_trip"])],
        ],
    )
    _table(
        "Workloads: time of a block",
        ["workload", "kind", "pattern", "bytes", "MB/s", "blocks", *TIMES],
        [
            [
                w["workload"],
                w["kind"],
                w["pattern"],
                w["block_bytes"],
                f"{w['mbps']:.1f}",
                w["blocks"],
                *_times(w["latency"]),
            ]
            for w in result["by_workload"]
        ],
    )
    _table(
        "Channels: time of a packet",
        ["channel", "MB/s", "packets", "refused", "ordered", *TIMES],
        [
            [
                c["channel"],
                f"{c['mbps']:.1f}",
                c["packets"],
                c["refused"],
                c["ordered"],
                *_times(c["latency"]),
            ]
            for c in result["by_channel"]
        ],
    )
    _table(
        "Rings: stalls for a go bit",
        ["ring", "use %", "echoes %", "packets", "stalls", *TIMES],
        [
            [
                r["ring"],
                f"{100 * r['use']:.1f}",
                f"{100 * r['echoes']:.1f}",
                r["packets"],
                r["go_stalls"],
                *_times(r["go_stall"]),
            ]
            for r in result["by_ring"]
        ],
    )
    _table(
        "Nodes: time of a packet that came in",
        ["node", "sent MB/s", "received", "refused", "most tries", "stalls", *TIMES],
        [
            [
                n["node"],
                f"{n['sent_mbps']:.1f}",
                f"{n['received_mbps']:.1f}",
                n["refused"],
                n["most_tries"],
                n["go_stalls"],
                *_times(n["latency"]),
            ]
            for n in result["by_node"]
        ],
    )
    _table(
        "Links, by the node that feeds them",
        ["ring", "node", "use %", "own %", "passing %", "echoes %", "stall ns", "bypass max ns"],
        [
            [
                link["ring"],
                link["node"],
                *(f"{100 * link[key]:.1f}" for key in ("use", "own", "passing", "echoes")),
                f"{link['go_stall_ns']:.0f}",
                f"{link['bypass_ns']:.0f}",
            ]
            for link in result["by_link"]
        ],
    )
    print(
        f"\n{result['events']} events in {result['seconds']:.2f} s: "
        f"{result['events_per_second']:.0f} events a second"
    )


def show_sweep(results: list[dict[str, Any]]) -> None:
    """Print one line for each point of a sweep."""
    output.table(
        [*results[0]["at"], "MB/s", "mean ns", "p99", "use %", "refused", "stalls", "Jain"],
        [
            [
                *(str(value) for value in r["at"].values()),
                f"{r['total']['mbps']:.1f}",
                f"{r['total']['latency']['mean_ns']:.0f}",
                f"{r['total']['latency']['p99_ns']:.0f}",
                f"{100 * max(ring['use'] for ring in r['by_ring']):.1f}",
                r["total"]["refused"],
                sum(ring["go_stalls"] for ring in r["by_ring"]),
                f"{r['total']['jain']:.3f}",
            ]
            for r in results
        ],
        group=10,
    )
