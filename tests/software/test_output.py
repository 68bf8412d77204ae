"""Tables that fit a terminal of 100 columns."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli import output

pytestmark = pytest.mark.fault


def shown(capsys, *arguments, **more):
    output.table(*arguments, **more)
    return capsys.readouterr().out.splitlines()


def test_a_table_that_fits_is_one(capsys):
    assert shown(capsys, ["x", "name"], [(1, "a"), (20, "b")]) == [
        " x  name",
        "──  ────",
        " 1  a",
        "20  b",
    ]


@pytest.mark.parametrize("series, group", [(9, 5), (4, 5), (30, 1), (12, 2)])
def test_a_wide_table_is_folded_between_its_groups_with_the_first_column_in_front(
    capsys, series, group
):
    headings = ["stride", *(f"series-{n}-{i}" for n in range(series) for i in range(group))]
    rows = [[x, *(f"{x}.{n}.{i}" for n in range(series) for i in range(group))] for x in (1, 64)]
    lines = shown(capsys, headings, rows, group=group)
    assert max(map(len, lines)) <= output.COLUMNS
    found = []
    for part in "\n".join(lines).split("\n\n"):
        heads, _, *body = [line.split() for line in part.splitlines()]
        assert heads[0] == "stride" and [row[0] for row in body] == ["1", "64"]
        assert (len(heads) - 1) % group == 0
        found += [(name, [row[i] for row in body]) for i, name in enumerate(heads) if i]
    assert found == [(name, [rows[0][i], rows[1][i]]) for i, name in enumerate(headings) if i]


def test_one_column_that_is_wider_than_that_stays_whole(capsys):
    lines = shown(capsys, ["item", "what"], [("a", "w" * 150)])
    assert lines[-1] == "a     " + "w" * 150
