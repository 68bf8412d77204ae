"""`dibber ring model`. SimPy and the library for charts are imported only when it runs."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from dibber_cli import output
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands

FILES = Path(__file__).parent / "files"  # rings that have a name


def names() -> list[str]:
    """Names of the parameter files that come with Dibber."""
    return sorted(path.stem for path in FILES.glob("*.toml"))


def path_of(word: str) -> Path:
    """The file of a ring by name, or `word` itself if it is a path. Raises UsageError."""
    if "/" in word or word.endswith(".toml"):
        return Path(word)
    if word not in names():
        raise UsageError(f"no ring '{word}'", f"there are: {', '.join(names())}; or a file")
    return FILES / f"{word}.toml"


def _chart_path(word: str) -> Path:
    """Where a chart goes. It is checked before a run that may take minutes."""
    from dibber_cli.ring import chart

    path = Path(word)
    if path.suffix[1:] not in chart.KINDS:
        raise UsageError(f"--chart {word!r} must end with .svg or .png")
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}")
    return path


def ring_model(arguments: argparse.Namespace) -> int:
    if arguments.validate:
        return _validate(arguments)
    if not arguments.parameters:
        raise UsageError("give a parameter file or a name", f"there are: {', '.join(names())}")
    from dibber_cli.ring import parameters, sweep, tables

    given = parameters.load(path_of(arguments.parameters))
    settings = dict(sweep.setting(word) for word in arguments.set)
    sweeps = [sweep.sweep(word) for word in arguments.sweep]
    if len({one.key for one in sweeps}) < len(sweeps):
        raise UsageError("a key is swept twice")
    given = sweep.changed(given, settings)
    chart_path = _chart_path(arguments.chart) if arguments.chart else None
    count = len(sweep.points(given, sweeps))
    bar = output.Progress(count, not arguments.json)
    try:
        results = sweep.run(given, sweeps, lambda at: bar.step(""))
    finally:
        bar.clear()
    if chart_path:
        from dibber_cli.ring import chart

        chart.draw(results, chart_path)
    if arguments.json:
        print(json.dumps(results if sweeps else results[0], indent=2))
    elif sweeps:
        tables.show_sweep(results)
    else:
        tables.show(results[0])
    return 0


def _validate(arguments: argparse.Namespace) -> int:
    if arguments.parameters or arguments.set or arguments.sweep or arguments.chart:
        raise UsageError("--validate stands alone: it runs its own rings")
    from dibber_cli.ring import validate

    rows = validate.rows()
    wrong = [row for row in rows if not row.good]
    if arguments.json:
        print(json.dumps({"rows": [row.figures() for row in rows], "wrong": len(wrong)}, indent=2))
    else:
        validate.show(rows)
    return 1 if wrong else 0


def add_to(
    sub: Commands, group: Callable[[Commands, str, str], Commands], command: Command
) -> None:
    ring = group(sub, "ring", "A model of SCI and GigaRing rings.")
    p = command(
        ring,
        "model",
        ring_model,
        "Simulate the packets of a ring, or of a pair of rings, and print throughput, latency, "
        "use, retries and go-bit stalls. docs/ring-model.md explains the parameter file.",
        [
            "dibber ring model sci",
            "dibber ring model gigaring --sweep workload.block_bytes=256,1024,8192 --chart g.svg",
            "dibber ring model my.toml --set ring.nodes=16 --sweep ring.go_bits=true,false",
            "dibber ring model --validate",
        ],
    )
    p.add_argument(
        "parameters",
        metavar="PARAMS",
        nargs="?",
        help=f"a parameter file, or a name: {', '.join(names())}",
    )
    p.add_argument(
        "--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change a parameter"
    )
    p.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="TABLE.KEY=V1,V2,…",
        help="run once for each value; may be given again, for each combination",
    )
    p.add_argument("--chart", metavar="FILE", help="draw a chart, .svg or .png")
    p.add_argument(
        "--validate",
        action="store_true",
        help="compare the model with published figures and with simulated gateware; ends with 1 if "
        "a row is outside its limit",
    )
