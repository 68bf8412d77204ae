"""`dibber bench compare A B`: what became slower or faster between two folders of results."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Iterator, Sequence
from typing import Any

from dibber_cli import output
from dibber_cli.bench.units import unit_of

# percent. Simulated figures of one seed repeat, and so do CPU models
TOLERANCE = 2.0
WORSE, BETTER, GONE, NEW = "slower", "faster", "gone", "new"


def _by_name(results: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["test"], r["profile"]): r for r in results}


def _points(result: dict[str, Any]) -> dict[tuple[str, Any], dict[str, Any]]:
    return {(p["series"], p["x"]): p for p in result["points"]}


def _rows(
    name: tuple[str, str], before: dict[str, Any], after: dict[str, Any], tolerance: float
) -> Iterator[dict[str, Any]]:
    """Rows of compare() for one result; the verdict of an equal value is None."""
    old, new = _points(before), _points(after)
    # then only points of both runs count
    few = before.get("quick") != after.get("quick")
    for key in dict.fromkeys([*old, *new]):
        one, other = (points.get(key, {}).get("value") for points in (old, new))
        missing = (one is None) + (other is None)
        if missing == 2 or missing and few:
            continue
        point = new.get(key) or old[key]
        row = {
            **dict(zip(("test", "profile", "series", "x"), (*name, *key))),
            "unit": point["unit"],
            "before": one,
            "after": other,
            "percent": None,
            "verdict": GONE if other is None else NEW if one is None else None,
        }
        if one is not None and other is not None:
            percent = unit_of(point).better(one, other)
            if abs(percent) > tolerance:
                row.update(percent=round(percent, 1), verdict=WORSE if percent < 0 else BETTER)
        yield row


def compare(before: list[dict], after: list[dict], tolerance: float = TOLERANCE) -> dict[str, Any]:
    """The differences of two lists of results, as a dictionary. Results in only one list are not
    compared.

    changes : rows {test, profile, series, x, unit, before, after, percent, verdict}, the worst
              first; percent is of speed: negative is slower. GONE: a value that only `before` has;
              NEW: one that only `after` has
    compared, alike : number of values in both; number of those within `tolerance` percent
    bytes_wrong : of `after`
    remarks  : sentences about other differences of the runs
    worse    : True if a value is slower or gone, or bytes are wrong
    """
    old, new = _by_name(before), _by_name(after)
    rows = [
        row for name in old if name in new for row in _rows(name, old[name], new[name], tolerance)
    ]
    changes = [row for row in rows if row["verdict"]]
    order = (GONE, WORSE, BETTER, NEW)
    changes.sort(key=lambda row: (order.index(row["verdict"]), row["percent"] or 0))
    wrong = sum(result["bytes_wrong"] for result in after)
    return {
        "tolerance_percent": tolerance,
        "compared": sum(row["verdict"] not in (GONE, NEW) for row in rows),
        "alike": sum(row["verdict"] is None for row in rows),
        "changes": changes,
        "bytes_wrong": wrong,
        "remarks": list(_remarks(old, new)),
        "worse": bool(wrong) or any(row["verdict"] in (WORSE, GONE) for row in changes),
    }


def _remarks(
    before: dict[tuple[str, str], dict[str, Any]], after: dict[tuple[str, str], dict[str, Any]]
) -> Iterator[str]:
    """Sentences on differences of the runs that make them less comparable, or explain a change."""
    for key in dict.fromkeys([*before, *after]):
        name = "-".join(key)
        if key not in before or key not in after:
            yield f"{name}: only {'before' if key in before else 'afterwards'}, not compared"
            continue
        one, other = before[key], after[key]
        if one.get("quick") != other.get("quick"):
            yield f"{name}: one of both is quick; points that both have were compared"
        if one["seed"] != other["seed"]:
            yield f"{name}: seed {one['seed']} and {other['seed']}"
        if one.get("machine") != other.get("machine"):
            yield f"{name}: the profile's values differ"
        for part, version in one["versions"].items():
            if version != other["versions"].get(part):
                yield f"{name}: {part} {version} and {other['versions'].get(part)}"


def show(result: dict[str, Any], names: Sequence[str]) -> None:
    """Print the result of compare(); `names` of the two."""
    rows = [
        (
            f"{r['test']}-{r['profile']}",
            r["series"],
            r["x"],
            *(
                "–" if value is None else unit_of(r).show(value)
                for value in (r["before"], r["after"])
            ),
            r["unit"],
            "" if r["percent"] is None else f"{r['percent']:+.1f}",
            r["verdict"],
        )
        for r in result["changes"]
    ]
    if rows:
        output.table(["result", "series", "x", *names, "unit", "%", ""], rows)
        print()
    for line in result["remarks"]:
        print(line)
    print(sentence(result))


def sentence(result: dict[str, Any]) -> str:
    """All in one."""
    counts = {
        verdict: sum(r["verdict"] == verdict for r in result["changes"])
        for verdict in (WORSE, BETTER, GONE, NEW)
    }
    parts = [f"{n} {verdict}" for verdict, n in counts.items() if n]
    wrong = f"; {result['bytes_wrong']} bytes are wrong" if result["bytes_wrong"] else ""
    return (
        f"{result['compared']} values compared, {result['alike']} alike within "
        f"{result['tolerance_percent']:g} %"
        f"{''.join(f', {part}' for part in parts)}{wrong}"
    )
