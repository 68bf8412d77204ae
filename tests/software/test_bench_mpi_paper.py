"""`dibber bench mpi --paper`: what papers printed, beside a report."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli.bench import mpi_paper


def report(**series):
    return {
        "points": [
            {"series": name.replace("_", "-").replace("b-eff", "b_eff"), "x": x, "value": value}
            for name, points in series.items()
            for x, value in points.items()
        ]
    }


MEASURED = report(
    restricted={8: 6.0, 262144: 480.0},
    postal={8: 5.0, 262144: 360.0},
    half_round_trip={8: 1.27, 64: 2.0},
    b_eff={2: 200.0, 4: 380.0},
    b_eff_longest={2: 900.0, 4: 1600.0},
    b_eff_rings_longest={2: 900.0, 4: 2000.0},
    aapc_4={1: 400.0, 2: 200.0, 3: 400.0},
    simple_4={1: 400.0},
)


def test_each_number_of_ranks_stands_below_the_systems_of_the_paper():
    rows = mpi_paper.b_eff_rows(MEASURED)
    assert [row[0] for row in rows[-3:]] == ["Opteron, Myrinet", "Dibber", "Dibber"]
    assert rows[-1] == ["Dibber", "4", "380", "95", "1600", "400", "2000", "500", "480", "1.270"]
    assert rows[0][:4] == ["SGI Altix 3700", "256", "47166", "184"]


def test_the_rates_of_a_rank_are_those_that_the_paper_printed():
    """The paper has columns of its own for them: a slip in copying would show."""
    printed = [184, 148, 232, 185, 177, 961, 56, 66, 46]
    longest = [483, 396, 718, 651, 641, 4386, 168, 150, 93]
    rings = [653, 616, 730, 634, 628, 5631, 193, 218, 192]
    rows = mpi_paper.b_eff_rows(MEASURED)[:-2]
    for row, *expected in zip(rows, printed, longest, rings):
        assert all(abs(int(row[i]) - value) <= 1 for i, value in zip((3, 5, 7), expected)), row


def test_findings_say_what_was_measured_here():
    here = {what: found for what, _, _, found in mpi_paper.facts(MEASURED)}
    assert here["an oncoming message"] == "25 % less"
    assert here["random neighbours beside rings"] == "20 % less"
    assert here["AAPC, middle phases"] == "factor 2.00"
    assert here["simple pairs, middle phases"] == "factor 1.00"
    assert here["cumulative pairs"] == "not measured"
    assert here["contiguous transfers"] == "480 MB/s"


def test_a_report_without_a_measurement_is_shown_without_it(capsys):
    mpi_paper.show(report(restricted={8: 6.0}))
    text = capsys.readouterr().out
    assert "Dibber" not in text and "not measured" in text and "Cray User Group 2006" in text
    assert mpi_paper.as_json(MEASURED)["b_eff"][-1]["each rank"] == "500"
