"""`dibber bench report`: one HTML page that needs no other file, and one Markdown page, of a folder
of results.
"""

# SPDX-License-Identifier: BSD-2-Clause

import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dibber_cli.bench import chart
from dibber_cli.bench import report as reports
from dibber_cli.bench.results import module
from dibber_cli.bench.units import unit_of
from dibber_cli.bench.views import Panel, of_series

TITLE = "Dibber: what was measured"
SUMMARY = ["result", "series", "unit", "least", "most", "least % of bound", "limited by"]


@dataclass(frozen=True)
class Section:
    """One result for both pages: `tables` are (headings, rows), `facts` (name, value), `remarks`
    sentences.
    """

    name: str
    heading: str
    facts: list
    tables: list
    remarks: list
    svg: str


def _machine(result: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, (int, float)) else f"{name} {value}"
        for name, value in result.get("machine", {}).items()
    )


def sections(results: Sequence[dict[str, Any]]) -> Iterator[Section]:
    for result in results:
        test = module(result["test"])
        name = reports.stem(result)
        facts = [
            ("profile", result["profile"]),
            ("its values", _machine(result)),
            ("seed", result["seed"]),
            ("command", result["command"]),
            ("time", result["time_base"]),
            *result["versions"].items(),
        ]
        yield Section(
            name,
            f"{result['test']}, {result['profile']}: {reports.units(result)}",
            [f for f in facts if f[1] != ""],
            [reports.tabulate(result, table) for table in test.tables(result)],
            reports.remarks(result),
            _svg(result, test.panels(result), name),
        )


def _svg(result: dict[str, Any], panels: Sequence[Panel], name: str) -> str:
    """The chart as an element of a page. Its names get a prefix, because all names of a page must
    differ.
    """
    file = io.BytesIO()
    chart.draw(result, panels, [file])
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="chart of {html.escape(name)}" ', 1)


def summary(results: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Rows of SUMMARY: every series of every result, with its smallest and largest value."""
    for result in results:
        for series in dict.fromkeys(p["series"] for p in result["points"]):
            points = [p for p in of_series(result, series) if p["value"] is not None]
            if not points:
                continue
            show = unit_of(points[0]).show
            values = [p["value"] for p in points]
            shares = [s for p in points if (s := reports.share(p)) is not None]
            limits = dict.fromkeys(p["limited_by"] for p in points if p.get("limited_by"))
            yield [
                reports.stem(result),
                series,
                points[0]["unit"],
                show(min(values)),
                show(max(values)),
                f"{min(shares):.0f}" if shares else "–",
                ", ".join(limits) or "–",
            ]


def _warnings(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Sentences for the top of the page."""
    for result in results:
        if result["bytes_wrong"]:
            yield (
                f"{reports.stem(result)}: {result['bytes_wrong']} bytes are wrong. Its figures "
                f"mean nothing."
            )
        if result.get("quick"):
            yield f"{reports.stem(result)}: a quick run, of fewer points than the benchmark has."
    for part in ("gateware", "firmware", "library"):
        versions = {result["versions"].get(part) for result in results}
        if len(versions) > 1:
            yield (
                f"Not all results are of the same {part}: {', '.join(sorted(map(str, versions)))}."
            )


LEGEND = (
    "Values are in simulated time unless a result says otherwise. The bound is what no card "
    "behind this PCIe and this cable "
    "can pass; limit is what the busiest stage of the cards, which is named, allows. CPU % is the "
    "time charged to the "
    "programs. Star: Myrinet, 1998."
)


# HTML ---------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
    max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
nav a { margin-right: 1rem; white-space: nowrap; }
figure { margin: 1rem 0; overflow-x: auto; } svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #e4e4e4;
    white-space: nowrap; }
th { border-bottom: 1px solid #888; } td.text, th.text { text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: 13px; }
dt { color: #666; } dd { margin: 0; }
code { background: #f3f3f3; padding: 0 .2rem; }
.warning { background: #fff3cd; padding: .5rem 1rem; }
@media print { h2 { break-before: page; } nav { display: none; } }
"""


def _is_text(cell: object) -> bool:
    return not re.match(r"^[-+]?[\d.]|^–$|^$", str(cell))


def _html_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    columns = [any(_is_text(row[n]) for row in rows) for n in range(len(headings))]

    def line(tag: str, cells: Iterable[object]) -> str:
        return (
            "<tr>"
            + "".join(
                f"<{tag}{' class=text' if text else ''}>{html.escape(str(cell))}</{tag}>"
                for cell, text in zip(cells, columns)
            )
            + "</tr>"
        )

    return "\n".join(
        [
            '<div class="scroll"><table>',
            line("th", headings),
            *(line("td", row) for row in rows),
            "</table></div>",
        ]
    )


def as_html(results: Sequence[dict[str, Any]]) -> str:
    """The page as text. It names no other file and nothing on a network."""
    found = list(sections(results))
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{TITLE}</title><style>{STYLE}</style></head><body>",
        f"<h1>{TITLE}</h1>",
        f"<p>{LEGEND}</p>",
        "<nav>" + "".join(f'<a href="#{s.name}">{s.name}</a>' for s in found) + "</nav>",
        *(f'<p class="warning">{html.escape(text)}</p>' for text in _warnings(results)),
        "<h2>Summary</h2>",
        _html_table(SUMMARY, list(summary(results))),
    ]
    for s in found:
        parts += [
            f'<h2 id="{s.name}">{html.escape(s.heading)}</h2>',
            f"<figure>{s.svg}</figure>",
            *(_html_table(*table) for table in s.tables),
            "<ul>",
            *(f"<li>{html.escape(line)}</li>" for line in s.remarks),
            "</ul>",
            "<dl>",
            *(
                f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>"
                for name, value in s.facts
            ),
            "</dl>",
        ]
    return "\n".join([*parts, "</body></html>", ""])


# Markdown -----------------------------------------------------------------------------------------


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return [
        "| " + " | ".join(map(_cell, headings)) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(map(_cell, row)) + " |" for row in rows),
        "",
    ]


def as_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The page as text; each chart is the SVG file of its result, beside the page."""
    lines = [
        f"# {TITLE}",
        "",
        LEGEND,
        "",
        *(f"> **{text}**\n" for text in _warnings(results)),
        "## Summary",
        "",
        *_markdown_table(SUMMARY, list(summary(results))),
    ]
    for s in sections(results):
        lines += [f"## {s.heading}", "", f"![chart of {s.name}]({s.name}.svg)", ""]
        for table in s.tables:
            lines += _markdown_table(*table)
        lines += [
            *(f"- {line}" for line in s.remarks),
            "",
            *(f"- {name}: {_code(name, value)}" for name, value in s.facts),
            "",
        ]
    return "\n".join(lines)


def _code(name: str, value: object) -> object:
    return f"`{value}`" if name == "command" else value


# Files --------------------------------------------------------------------------------------------


def write(results: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Write report.html and report.md to `folder`, and the missing charts of report.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.html").write_text(as_html(results), encoding="utf-8")
    (folder / "report.md").write_text(as_markdown(results), encoding="utf-8")
    written = [folder / "report.html", folder / "report.md"]
    for result in results:
        svg = folder / f"{reports.stem(result)}.svg"
        if not svg.exists():
            chart.draw(result, module(result["test"]).panels(result), [svg])
            written.append(svg)
    return written
