"""Benchmarks of networks with few points: right bytes, no value above its bound, equal shares."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli import profile
from dibber_cli.bench import hops, report, session, traffic


@pytest.fixture
def run(request):
    """run(test, points) → its report."""

    def of(test, points):
        seed = request.config.getoption("--seed")
        return session.run(test, profile.load("gen2x4"), seed, "test", points)

    return of


def check(result, test, capsys):
    """No wrong byte, nothing above its bound, and a table that can be printed."""
    assert result["bytes_wrong"] == 0 and result["bytes_compared"] > 0
    for point in result["points"]:
        assert 0 < report.share(point) <= 100, point
    report.show(result, test.tables(result))
    capsys.readouterr()


def test_a_strided_deposit_through_three_switches_is_as_fast_as_back_to_back(run, figure, capsys):
    near, far = hops.OVER_STRIDES
    result = run(hops, hops.points(series=(near, far), strides=(1, 8)))
    check(result, hops, capsys)
    at = {(p["series"], p["x"]): p["value"] for p in result["points"]}
    share = min(100 * at[far, x] / at[near, x] for x in (1, 8))
    assert figure(
        "stride-three-switches",
        round(share, 2),
        "% of back to back, at the worst stride",
        at_least=99,
    )


def test_flows_into_one_output_have_equal_shares_and_fill_it(run, figure, capsys):
    result = run(
        traffic, traffic.points(series=("hot-spot", "shift"), networks=("star:4",), pieces=40)
    )
    check(result, traffic, capsys)
    rows = {p["series"]: p for p in result["points"]}
    hot = rows["hot-spot"]
    worst = 100 * max(1 - hot["least_share"], hot["most_share"] - 1)
    assert figure("hot-spot-shares", round(worst, 1), "% off the mean, 3 flows", at_most=5)
    together = 100 * hot["together"] / rows["one"]["together"]
    assert figure("hot-spot-sum", round(together, 1), "% of one flow back to back", at_least=98)
    # Flows that share no cable do not slow one another down.
    assert rows["shift"]["value"] >= 4 * 0.98 * rows["one"]["value"]
