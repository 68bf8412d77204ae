"""`dibber bench TEST | all | report | compare | calibrate`.

The library for charts is imported only where it is needed, because the import takes a second.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from dibber_cli import numbers, output, profile
from dibber_cli.bench import (
    GUEST_TESTS,
    LEFT_OUT,
    OWN_CARDS,
    TESTS,
    compare,
    hosts,
    options,
    results,
)
from dibber_cli.errors import CommandError, UsageError
from dibber_cli.intermixed import Command, Commands

# Runs ---------------------------------------------------------------------------------------------


def _points(
    test: ModuleType,
    series: str,
    quick: bool,
    how: options.Options = options.NONE,
    full: bool = False,
    fabric: str = "direct",
) -> list[Any]:
    """The benchmark's points; with `series` (names separated by commas), only those. Raises
    CommandError.

    how    : options.Options
    full   : all points, of a benchmark that has fewer by itself
    fabric : of the profile; a benchmark may have other points for it
    """
    how.check()
    chosen = _chosen_points(test, series, quick, how.arguments(test), full, fabric)
    if not chosen:
        raise UsageError(f"bench {test.NAME}: no point is left of these series and options")
    return [how.altered(test, point) for point in chosen]


def _choice(
    test: ModuleType, fabric: str, quick: bool = False, full: bool = False
) -> dict[str, Any]:
    """Arguments of the benchmark's points() for a profile's fabric."""
    few = test.QUICK if quick else test.FULL if full else {}
    altered = getattr(test, "OF_FABRIC", {}).get(fabric, {})
    return {**few, **altered.get("quick" if quick else "all", {})}


def _chosen_points(
    test: ModuleType,
    series: str,
    quick: bool,
    altered: Mapping[str, Any],
    full: bool = False,
    fabric: str = "direct",
) -> list[Any]:
    """Points with the arguments `altered` of points() in place of the benchmark's own."""
    if quick and full:
        raise UsageError("--quick and --full exclude each other")
    few = {**_choice(test, fabric, quick, full), **altered}
    if not series:
        return test.points(**few)
    names, choice = series.split(","), getattr(test, "CHOICE", ())
    if unknown := [name for name in names if name not in choice]:
        raise UsageError(
            f"bench {test.NAME}: no series '{unknown[0]}' to choose",
            f"there are: {', '.join(choice)}" if choice else "it always measures all",
        )
    return test.points(**{**few, "series": tuple(names)})


def _check(
    names: Iterable[str], arguments: argparse.Namespace
) -> tuple[profile.Profile, dict[str, list[Any]]]:
    """Check, before anything is measured, that these benchmarks can run and --out can be written.

    Returns the profile, and {name: points}. Raises CommandError.
    """
    from dibber_cli.bench import session

    # A mistake in the command line is reported before a missing file.
    chosen = profile.load(arguments.profile)
    series = getattr(arguments, "series", "")
    how = options.Options.of(arguments)
    full = getattr(arguments, "full", False)
    points = {
        name: _points(
            results.module(name), series, arguments.quick, how, full=full, fabric=chosen.fabric
        )
        for name in names
    }
    out = Path(arguments.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise CommandError(
            f"results cannot be written to {out}: {error.strerror}",
            "choose another folder with --out",
        ) from None
    session.check()
    for name in names:
        getattr(results.module(name), "check", lambda: None)()
    return chosen, points


def _keep(name: str, error: BaseException, arguments: argparse.Namespace) -> str:
    """Write the points that were measured before an error to a file; returns a sentence about it,
    or "".
    """
    measured = getattr(error, "measured", None)
    if not measured:
        return ""
    file = Path(arguments.out) / f"{name}-{Path(arguments.profile).stem}.partial.json"
    file.write_text(
        json.dumps(
            {
                "test": name,
                "profile": arguments.profile,
                "seed": arguments.seed,
                "measured": measured,
            },
            indent=2,
        )
        + "\n",
        encoding="utf-8",
    )
    return f"{len(measured)} points were measured before: {file}"


def _run(
    name: str,
    arguments: argparse.Namespace,
    chosen: profile.Profile,
    points: Sequence[Any],
    series: str = "",
    cards: hosts.Cards | None = None,
) -> tuple[ModuleType, dict[str, Any], list[Path]]:
    """Run one benchmark with a profile and points; returns (its module, the result, files).

    cards : hosts.Cards in place of a simulated pair
    """
    from dibber_cli.bench import report, session

    test = results.module(name)
    progress = output.Progress(len(points), shown=not arguments.json)
    command = f"dibber bench {name} --profile {arguments.profile} --seed {arguments.seed}"
    if series:
        command += f" --series {series}"
    if arguments.quick:
        command += " --quick"
    if getattr(arguments, "full", False):
        command += " --full"
    how = options.Options.of(arguments)
    command += how.words()
    if cards:
        command += f" --client {arguments.client}" if arguments.client else ""
        command += "".join(f" {uri}" for uri in arguments.uris)
    try:
        timeline = getattr(arguments, "timeline", None)
        result = session.run(
            test, chosen, arguments.seed, command, points, progress, cards, timeline
        )
    except CommandError as error:
        if kept := _keep(name, error, arguments):
            raise CommandError(str(error), f"{error.advice}\n        {kept}".strip()) from error
        raise
    except KeyboardInterrupt as error:
        error.kept = _keep(name, error, arguments)  # type: ignore[attr-defined]
        raise
    finally:
        progress.clear()
    if arguments.quick:
        result["quick"] = True
        few = _choice(test, chosen.fabric, quick=True)
        kept = "".join(f"; {name} {value}" for name, value in few.items())
        every = test.points(**_choice(test, chosen.fabric))
        result["notes"] = [
            f"quick: {len(points)} of {len(every)} points{kept}",
            *result.get("notes", ()),
        ]
    if how != options.NONE:
        result["options"] = {name: value for name, value in how.told_to_others().items() if value}
    added = how.notes()
    if added:
        result["notes"] = [*added, *result.get("notes", ())]
    return test, result, report.write(result, test.panels(result), Path(arguments.out))


def run(arguments: argparse.Namespace) -> int:
    """`dibber bench TEST`."""
    from dibber_cli.bench import mpi_paper, report

    hosts.check(arguments)
    hosts.check_timeline(arguments, results.module(arguments.test))
    if arguments.server:
        return hosts.serve(arguments, results.module(arguments.test), _points)
    chosen, points = _check([arguments.test], arguments)
    wanted = points[arguments.test]
    with hosts.cards(arguments, results.module(arguments.test), wanted) as cards:
        test, result, files = _run(
            arguments.test, arguments, chosen, wanted, arguments.series, cards
        )
    paper = getattr(arguments, "paper", False)
    if arguments.json:
        more = {"paper": mpi_paper.as_json(result)} if paper else {}
        print(json.dumps({**result, **more}, indent=2))
    else:
        report.show(result, test.tables(result))
        if paper:
            mpi_paper.show(result)
        print("written: " + ", ".join(str(f) for f in files))
    if result["bytes_wrong"]:
        raise CommandError(f"{result['bytes_wrong']} bytes are wrong")
    return 0


def _cpu_seconds() -> float:
    """CPU time of this process and of its ended children: simulators and programs."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def run_all(arguments: argparse.Namespace) -> int:
    """`dibber bench all`: every benchmark, then the pages. A benchmark that fails becomes a row
    with its reason, and the command ends with 1 after the others. CPU time is the time that the run
    takes on an idle machine.
    """
    from dibber_cli.bench import page

    chosen, points = _check(TESTS, arguments)
    begin, rows, failed = time.monotonic(), [], []
    for name in TESTS:
        started, used = time.monotonic(), _cpu_seconds()
        row: dict[str, Any] = {"test": name, "points": None, "bytes_wrong": None, "failed": None}
        try:
            _, result, _ = _run(name, arguments, chosen, points[name])
            row.update(points=len(result["points"]), bytes_wrong=result["bytes_wrong"])
        except CommandError as error:
            row["failed"] = str(error)
        row.update(
            wall_seconds=round(time.monotonic() - started, 1),
            cpu_seconds=round(_cpu_seconds() - used, 1),
        )
        rows.append(row)
        if row["failed"] or row["bytes_wrong"]:
            failed.append(name)
        if not arguments.json:
            said = row["failed"] or f"{row['points']} points, {row['bytes_wrong']} bytes wrong"
            print(
                f"{name:8} {row['wall_seconds']:6.1f} s, of CPU {row['cpu_seconds']:6.1f} s  "
                f"{said}",
                flush=True,
            )
    out = Path(arguments.out)
    files = page.write(results.load(out), out) if any(row["points"] for row in rows) else []
    wall, cpu = (
        round(time.monotonic() - begin, 1),
        round(sum(row["cpu_seconds"] for row in rows), 1),
    )
    if arguments.json:
        print(
            json.dumps(
                {
                    "tests": rows,
                    "wall_seconds": wall,
                    "cpu_seconds": cpu,
                    "files": [str(f) for f in files],
                },
                indent=2,
            )
        )
    else:
        print(
            f"{wall / 60:.1f} minutes, {cpu / 60:.1f} of CPU; written: "
            f"{', '.join(str(f) for f in files)}"
        )
    if failed:
        raise CommandError(f"failed: {', '.join(failed)}")
    return 0


# What was measured --------------------------------------------------------------------------------


def report(arguments: argparse.Namespace) -> int:
    """`dibber bench report [FOLDER]`."""
    from dibber_cli.bench import page

    found = results.load(Path(arguments.folder))
    files = page.write(found, Path(arguments.out or arguments.folder))
    if arguments.json:
        print(
            json.dumps(
                {
                    "results": [f"{r['test']}-{r['profile']}" for r in found],
                    "files": [str(f) for f in files],
                },
                indent=2,
            )
        )
    else:
        print(f"{len(found)} results; written: {', '.join(str(f) for f in files)}")
    return 0


def comparison(arguments: argparse.Namespace) -> int:
    """`dibber bench compare A B`."""
    found = compare.compare(
        results.load(Path(arguments.before)),
        results.load(Path(arguments.after)),
        arguments.tolerance,
    )
    if not found["compared"]:
        raise CommandError(
            f"{arguments.before} and {arguments.after} have no value in common",
            "compare results of the same benchmarks and profiles",
        )
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        compare.show(found, [arguments.before, arguments.after])
    return 1 if found["worse"] else 0


def calibrate(arguments: argparse.Namespace) -> int:
    """`dibber bench calibrate`."""
    from dibber_cli.bench import calibrate as calibration

    calibration.show(profile.load(arguments.profile))
    return 0


# Command line -------------------------------------------------------------------------------------


def _add_out(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--out", default="out", metavar="DIR", help="folder for JSON, CSV and charts (default out)"
    )
    p.add_argument("--quick", action="store_true", help="measure fewer points; the result says so")


def add_to(
    sub: Commands,
    group: Callable[[Commands, str, str, str], Commands],
    command: Command,
    add_profile: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add the group `bench`; `group`, `command` and `add_profile` are those of dibber_cli.main."""
    bench = group(
        sub,
        "bench",
        "Measure, with the bound beside each value; report and compare results.",
        "TEST",
    )
    for name, text in {**TESTS, **LEFT_OUT}.items():
        p = command(
            bench,
            name,
            run,
            text,
            [f"dibber bench {name}", f"dibber bench {name} --profile gen2x1 --seed 7 --json"],
        )
        p.set_defaults(test=name)
        add_profile(p)
        p.add_argument("--series", default="", metavar="NAME,…", help="measure only these series")
        options.add_to(p)
        _add_out(p)
        if name in GUEST_TESTS:
            p.add_argument("--full", action="store_true", help="measure all points, for hours")
        if name == "mpi":
            p.add_argument(
                "--paper", action="store_true", help="print what papers measured, beside it"
            )
        if name in OWN_CARDS:
            p.set_defaults(**hosts.NONE)
        else:
            hosts.add_to(p)

    p = command(
        bench,
        "all",
        run_all,
        "Every benchmark, one after the other, and the pages of 'report'.",
        ["dibber bench all --quick --out quick", "dibber bench all --profile gen2x1"],
    )
    add_profile(p)
    _add_out(p)

    p = command(
        bench,
        "report",
        report,
        "Make an HTML and a Markdown page out of a folder of results.",
        ["dibber bench report", "dibber bench report old --out pages"],
    )
    p.add_argument(
        "folder", metavar="FOLDER", nargs="?", default="out", help="folder of results (default out)"
    )
    p.add_argument("--out", metavar="DIR", help="folder for the pages (default FOLDER)")

    p = command(
        bench,
        "compare",
        comparison,
        "Report what became slower or faster. Ends with 1 when something is slower, gone or wrong.",
        [
            "dibber bench compare before out",
            "dibber bench compare a/rate-gen2x4.json b/rate-gen2x4.json --tolerance 0.5",
        ],
    )
    p.add_argument("before", metavar="A", help="folder of results, or one file")
    p.add_argument("after", metavar="B", help="newer folder or file")
    p.add_argument(
        "--tolerance",
        type=numbers.real(0, 1000),
        default=compare.TOLERANCE,
        metavar="PERCENT",
        help=f"a smaller difference counts as equal (default {compare.TOLERANCE:g})",
    )

    p = command(
        bench,
        "calibrate",
        calibrate,
        "Measure this machine's strided copies, beside a profile's constants.",
        ["dibber bench calibrate --profile gen2x4"],
        as_json=False,
    )
    p.add_argument(
        "--profile", default="gen2x4", metavar="P", help="profile to compare with (default gen2x4)"
    )
