"""`dibber bench report` and `compare`: pages that stand alone, and what became slower."""

# SPDX-License-Identifier: BSD-2-Clause

import copy
import html.parser
import json
import re

import pytest
from dibber_cli.bench import compare, page, results
from dibber_cli.main import main


def result(test="rate", profile="gen2x4", **changes):
    points = [
        {
            "series": series,
            "x": x,
            "x_unit": "outstanding",
            "value": value,
            "unit": "Mmsg/s",
            "bound": 8.9,
            "bound_by": "link",
            "limit": None,
            "limited_by": "control program",
            "cycles": 100,
            "cpu_percent": 1.5,
        }
        for series, x, value in (("mcp", 1, 0.1), ("mcp", 8, 0.25), ("mcp-2-endpoints", 1, 0.2))
    ]
    return {
        "test": test,
        "profile": profile,
        "machine": {"lanes": 4, "completion_split": "boundary"},
        "seed": 1,
        "command": "dibber bench rate",
        "versions": {"gateware": "aa", "firmware": "bb", "library": "0.2-cc"},
        "time_base": "simulated",
        "bytes_compared": 800,
        "guard_bytes_compared": 80,
        "bytes_wrong": 0,
        "wall_seconds": 2.5,
        "points": points,
        "findings": ["mcp <best>: 0.25"],
        "notes": ["each rings | the doorbell"],
        **changes,
    }


@pytest.fixture
def written(tmp_path):
    """written(name, *results) → its path, with files that are no results beside them."""

    def make(name, *found):
        path = tmp_path / name
        path.mkdir()
        (path / "figures.json").write_text("[]")
        (path / "rate-gen2x4.csv").write_text("series\n")
        for one in found:
            (path / f"{one['test']}-{one['profile']}.json").write_text(json.dumps(one))
        return path

    return make


# Pages --------------------------------------------------------------------------------------------


class Checker(html.parser.HTMLParser):
    """What a page names, and whether its elements are closed in order."""

    VOID = {"meta", "br", "link"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.elsewhere, self.tags = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href") and not value.startswith("#"):
                self.elsewhere.append(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_html_page_stands_alone_and_each_name_in_it_is_of_one_element():
    text = page.as_html([result(), result(profile="gen2x1")])
    checked = Checker(text)
    assert not checked.open and not checked.elsewhere
    assert checked.tags.count("svg") == 2 and "script" not in checked.tags
    assert len(checked.ids) == len(set(checked.ids))
    for name in re.findall(r'(?:href="#|url\(#)([^")]+)', text):
        assert name in checked.ids


@pytest.mark.parametrize("render", [page.as_html, page.as_markdown])
def test_both_pages_have_values_bounds_findings_profile_seed_and_versions(render):
    text = render([result()])
    for words in (
        "0.250",
        "8.900",
        "control program",
        "dibber bench rate",
        "boundary",
        "0.2-cc",
        "800 payload and 80 guard bytes",
        "mcp-2-endpoints",
    ):
        assert words in text, words


def test_text_of_results_cannot_break_a_page():
    assert "mcp &lt;best&gt;: 0.25" in page.as_html([result()])
    rows = [
        line
        for line in page.as_markdown([result(profile="a|b")]).splitlines()
        if line.startswith("| a") or "a\\|b" in line
    ]
    assert rows and all(
        len(re.findall(r"(?<!\\)\|", line)) == 8 for line in rows if line.startswith("|")
    )


@pytest.mark.parametrize(
    "change, words",
    [
        ({"bytes_wrong": 3}, "3 bytes are wrong"),
        ({"quick": True}, "a quick run"),
        (
            {"versions": {"gateware": "dd", "firmware": "bb", "library": "0.2-cc"}},
            "Not all results are of the same gateware: aa, dd",
        ),
    ],
)
def test_what_a_reader_must_know_stands_first(change, words):
    text = page.as_markdown([result(profile="gen2x1"), result(**change)])
    assert text.index(words) < text.index("## Summary")
    assert words not in page.as_markdown([result()])


def test_the_command_reads_a_folder_and_writes_pages_with_their_charts(written, tmp_path, capsys):
    path = written("out", result(), result(profile="gen2x1"))
    assert main(["bench", "report", str(path), "--out", str(tmp_path / "pages"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["results"] == ["rate-gen2x1", "rate-gen2x4"]
    for name in re.findall(r"\]\((.*?)\)", (tmp_path / "pages" / "report.md").read_text()):
        assert (tmp_path / "pages" / name).stat().st_size
    assert {
        f"{tmp_path}/pages/{name}" for name in ("report.html", "report.md", "rate-gen2x4.svg")
    } <= set(said["files"])


def test_a_page_is_the_same_for_the_same_results(written):
    path = written("out", result())
    first, second = (page.as_html(results.load(path)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "words, reason, advice",
    [
        (("report", "nowhere"), "there is no nowhere", "bench TEST"),
        (("report", "{empty}"), "no results in", "bench all"),
        (("compare", "{empty}", "{empty}"), "no results in", "bench all"),
        (("compare", "{one}", "{other}"), "no value in common", "same benchmarks"),
    ],
)
def test_errors_say_what_to_do(written, capsys, words, reason, advice):
    names = {
        "empty": written("empty"),
        "one": written("one", result()),
        "other": written("other", result(profile="gen2x1")),
    }
    assert main(["bench", *(word.format(**names) for word in words)]) == 1
    err = capsys.readouterr().err
    assert reason in err and advice in err


def test_a_file_that_is_cut_short_is_named(written, capsys):
    path = written("out", result())
    (path / "rate-gen2x4.json").write_text('{"test": ')
    assert main(["bench", "report", str(path)]) == 1
    assert "rate-gen2x4.json" in capsys.readouterr().err


# Compare ------------------------------------------------------------------------------------------


def changed(change, value, **others):
    """A result of which one point has another value."""
    other = copy.deepcopy(result(**others))
    for point in other["points"]:
        if (point["series"], point["x"]) == change:
            point["value"] = value
    return other


def test_what_differs_by_less_than_the_tolerance_is_alike():
    found = compare.compare([result()], [changed(("mcp", 8), 0.249)])
    assert not found["changes"] and not found["worse"] and found["compared"] == found["alike"] == 3


@pytest.mark.parametrize(
    "unit, value, verdict, percent",
    [
        ("Mmsg/s", 0.2, "slower", -20.0),
        ("Mmsg/s", 0.5, "faster", 100.0),
        ("us", 0.5, "slower", -50.0),
        ("us", 0.2, "faster", 25.0),
    ],
)
def test_slower_and_faster_are_told_by_the_unit(unit, value, verdict, percent):
    pair = [result(), changed(("mcp", 8), value)]
    for one in pair:
        for point in one["points"]:
            point["unit"] = unit
    found = compare.compare([pair[0]], [pair[1]])
    (change,) = found["changes"]
    assert [change[name] for name in ("x", "before", "after", "verdict", "percent")] == [
        8,
        0.25,
        value,
        verdict,
        percent,
    ]
    assert found["worse"] == (verdict == "slower")


def test_a_value_that_is_gone_is_worse_and_a_new_one_is_not():
    gone = compare.compare([result()], [changed(("mcp", 8), None)])
    new = compare.compare([changed(("mcp", 8), None)], [result()])
    assert gone["worse"] and gone["changes"][0]["verdict"] == "gone"
    assert not new["worse"] and new["changes"][0]["verdict"] == "new"


def test_a_result_that_one_folder_has_not_is_remarked_and_not_worse():
    found = compare.compare([result(), result(profile="gen2x1")], [result()])
    assert (
        not found["worse"]
        and found["compared"] == 3
        and "rate-gen2x1: only before, not compared" in found["remarks"]
    )


def test_a_quick_run_is_compared_where_both_have_points():
    quick = result(quick=True)
    del quick["points"][1:]
    found = compare.compare([result()], [quick])
    assert found["compared"] == 1 and not found["worse"] and "quick" in found["remarks"][0]


def test_wrong_bytes_are_worse_whatever_the_values():
    assert compare.compare([result()], [result(bytes_wrong=1)])["worse"]


def test_other_seeds_profiles_and_versions_are_remarked():
    found = compare.compare(
        [result()], [result(seed=2, machine={"lanes": 1}, versions={"gateware": "ee"})]
    )
    text = "\n".join(found["remarks"])
    assert (
        "seed 1 and 2" in text
        and "profile's values differ" in text
        and "gateware aa and ee" in text
    )


@pytest.mark.parametrize(
    "value, tolerance, code", [(0.25, "2", 0), (0.2, "2", 1), (0.2, "30", 0), (0.9, "2", 0)]
)
def test_the_exit_code_is_1_when_something_became_slower(written, capsys, value, tolerance, code):
    before, after = written("a", result()), written("b", changed(("mcp", 8), value))
    assert main(["bench", "compare", str(before), str(after), "--tolerance", tolerance]) == code
    out = capsys.readouterr().out
    assert "3 values compared" in out and ("slower" in out) == bool(code)
    assert (
        main(
            [
                "bench",
                "compare",
                str(before / "rate-gen2x4.json"),
                str(after / "rate-gen2x4.json"),
                "--tolerance",
                tolerance,
                "--json",
            ]
        )
        == code
    )
    assert json.loads(capsys.readouterr().out)["worse"] == bool(code)
