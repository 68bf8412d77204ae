"""Benchmarks `link` and `soak` with few points: what the cable carries by length and errors;
nothing is wrong on a bad one.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli import profile
from dibber_cli.bench import link, report, session, soak
from dibber_cli.soak.run import Soak

POINTS = {
    "link": (link, lambda: link.points(lengths=(3, 50), bers=(1e-5,))),
    "soak": (soak, lambda: soak.points(segments=2, transfers=80)),
}

# of bench.link
SHORT = {"TOTAL": 1 << 19, "TOTAL_GAPS": 1 << 16, "TOTAL_BER": 1 << 17, "PRBS_NS": 500_000}


@pytest.fixture(scope="module")
def run(request):
    """run(name) → report of that benchmark's few points; each is run once."""
    reports = {}

    def of(name):
        if name not in reports:
            test, points = POINTS[name]
            with pytest.MonkeyPatch.context() as patch:
                for constant, value in SHORT.items():
                    patch.setattr(link, constant, value)
                reports[name] = session.run(
                    test,
                    profile.load("gen2x4"),
                    request.config.getoption("--seed"),
                    "test",
                    points(),
                )
        return reports[name]

    return of


@pytest.mark.parametrize("name", POINTS)
def test_no_byte_is_wrong_no_value_passes_its_bound_and_it_can_be_shown(
    run, name, tmp_path, capsys
):
    test, result = POINTS[name][0], run(name)
    assert result["bytes_wrong"] == 0 and result["bytes_compared"] > 100_000 and result["versions"]
    for point in result["points"]:
        assert point["value"] > 0
        if point["bound"]:
            assert 50 < report.share(point) <= 100 or point["series"] in (
                "rate-with-errors",
                "transfers",
            ), point
    assert all(f.stat().st_size for f in report.write(result, test.panels(result), tmp_path))
    report.show(result, test.tables(result))
    assert "0 wrong" in capsys.readouterr().out


def values(result, series):
    return {p["x"]: p["value"] for p in result["points"] if p["series"] == series}


def test_length_costs_time_and_no_rate(run):
    result = run("link")
    trips = values(result, "round-trip")
    assert trips[50] - trips[3] == pytest.approx(2 * 47 * 5, abs=16)
    for series in ("rate", "rate-stop-go", "payload-share"):
        found = values(result, series)
        assert found[50] > 0.99 * found[3], series
    assert values(result, "rate-stop-go")[3] < 0.5 * values(result, "rate")[3]


def test_bit_errors_are_found_and_cost_rate(run):
    result = run("link")
    assert 0.5e-5 < values(result, "errors-found")[1e-5] < 2e-5
    assert values(result, "rate-with-errors")[1e-5] < values(result, "rate")[3]


def test_the_soak_had_a_bad_cable(run):
    result = run("soak")
    assert (
        result["counted"]["link_lost"] > 0
        and result["counted"]["code_errors"] > 0
        and result["counted"]["naks_sent"] > 0
    )
    assert [p["x"] for p in result["points"]] == sorted({p["x"] for p in result["points"]})
    assert sum(result["operations"][kind] for kind in ("put", "get", "inline", "atomic")) > 100


def test_the_soak_finds_a_byte_that_somebody_changed(monkeypatch, seed):
    compare = Soak._compare

    def changed(found):
        memory = found["memory"]
        return {**found, "memory": bytes([memory[0] ^ 1]) + memory[1:]}

    def disturbed(self, todo, node, found):
        compare(self, todo, node, found if node else changed(found))

    monkeypatch.setattr(Soak, "_compare", disturbed)
    results, _, counts = soak.measure(
        profile.load("gen2x4"), seed, soak.points(segments=1, transfers=8)
    )
    assert counts["bytes_wrong"] == 1 and "which nobody may write" in "\n".join(
        results[-1]["trouble"]
    )
