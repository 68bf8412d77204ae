"""docs/figures.md: measured rows replace kept ones, and no other row changes."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests import figure_rows
from tests import figures_page as page

TEXT = (
    "# Figures\n\nwords\n\n"
    + page.BEGIN
    + page.HEAD
    + "| `a` | 1 MB/s | >= 2 | **missed** | `old` | 1234567 |\n"
    + "| `soak-x-runs` | 9 runs | >= 2 | met | `soak` | 1234567 |\n"
    + page.END
    + "the end\n"
)


def measured(name="a", **changes):
    row = figure_rows.row(name, 3, "MB/s", ">=", 2, ["make", "it"], "gen2x4", 1)
    return {**row, "commit": "89abcde", **changes}


@pytest.fixture
def written(tmp_path):
    """written(rows) → the page's rows afterwards, and its text."""

    def call(rows):
        file = tmp_path / "figures.md"
        file.write_text(TEXT)
        page.write(rows, file)
        return page.rows_of(file.read_text()), file.read_text()

    return call


def test_the_page_of_this_tree_has_rows_that_can_be_read_and_written_again():
    text = page.PAGE.read_text()
    rows = page.rows_of(text)
    assert rows and page.replaced(text, rows) == text
    assert all(row[1] != "–" and row[4].startswith("`") and row[5] for row in rows.values())


def test_a_measured_row_replaces_the_one_of_its_name_and_the_others_stay(written):
    rows, text = written([measured()])
    assert rows["a"] == ["`a`", "3 MB/s", ">= 2", "met", "`make it`", "89abcde"]
    assert rows["soak-x-runs"][5] == "1234567" and text.endswith(page.END + "the end\n")


def test_without_git_the_commit_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert page.commit() == "unknown"


def test_a_missed_figure_has_a_row_too(written):
    assert written([measured(value=1, **{"pass": False})])[0]["a"][3] == "**missed**"


def test_a_figure_without_a_goal_is_neither_met_nor_missed(written):
    row = written([measured(target=figure_rows.NO_GOAL)])[0]["a"]
    assert row[2:4] == ["none: for comparison", "–"]


def test_a_detail_of_another_figure_is_not_on_the_page(written):
    assert list(written([measured("detail", target="")])[0]) == ["a", "soak-x-runs"]


def test_a_value_has_no_digits_that_were_not_measured(written):
    assert written([measured(value=1.0000000004688672)])[0]["a"][1] == "1 MB/s"


def test_a_row_of_another_profile_says_so_in_its_name(written):
    assert "b-gen1x1" in written([measured("b", profile="gen1x1")])[0]


def test_what_was_not_measured_keeps_its_row_or_says_so(written):
    reason = {"value": None, "pass": False, "reason": "60 minutes, | --long"}
    rows, _ = written([measured("soak-x", **reason), measured("soak-y", **reason)])
    assert "soak-x" not in rows and rows["soak-x-runs"][1] == "9 runs"
    assert rows["soak-y"][1] == "–" and rows["soak-y"][3] == "not measured: 60 minutes, / --long"


def test_a_table_with_another_number_of_cells_is_refused():
    with pytest.raises(ValueError, match="not 6 cells"):
        page.rows_of(TEXT.replace("| `old` ", ""))
