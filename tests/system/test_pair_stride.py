"""The stride benchmark on the simulated pair: right bytes, below its bound, repeatable."""

# SPDX-License-Identifier: BSD-2-Clause

import json

import pytest
from dibber_cli import profile
from dibber_cli.bench import session, stride

STRIDES = (1, 2, 64)


@pytest.fixture(scope="module")
def runs(request, litepcie_rate):
    """Two reports of the same short run."""
    chosen = profile.load("gen2x4")
    points = stride.points(strides=STRIDES)
    seed = request.config.getoption("--seed")
    return [session.run(stride, chosen, seed, "test", points) for _ in range(2)]


def value(report, series, x):
    return next(p["value"] for p in report["points"] if (p["series"], p["x"]) == (series, x))


def test_every_byte_is_right(runs):
    for report in runs:
        assert report["bytes_wrong"] == 0 and report["time_base"] == "simulated"
        assert report["bytes_compared"] == 3 * (4 * 4 * 65536 + 8 * stride.DESCRIPTORS)
        assert report["guard_bytes_compared"] > 0


def test_two_runs_with_one_seed_are_alike_but_for_wall_time(runs):
    first, second = (json.dumps({k: v for k, v in r.items() if k != "wall_seconds"}) for r in runs)
    assert first == second


def test_no_value_passes_its_bound(runs):
    for point in runs[0]["points"]:
        assert 0 < point["value"] <= (point["bound"] or point["value"]), point


def test_all_peers_are_in_the_same_report(runs):
    series = {p["series"] for p in runs[0]["points"]}
    assert series == {*stride.OURS, *stride.PEERS}
    assert value(runs[0], "put-dst-strided", 64) > max(
        value(runs[0], peer, 64)
        for peer in ("put-contiguous-unpack", "descriptors", "litepcie-descriptors")
    )


def test_contiguous(runs, figure):
    assert figure(
        "contiguous-put-64k",
        value(runs[0], "put-dst-strided", 1),
        "MB/s",
        at_least=395,
        profile="gen2x4",
    )


@pytest.mark.parametrize("series", ["put-dst-strided", "put-src-strided", "put-both-strided"])
def test_strides_do_not_collapse(runs, figure, series):
    worst = min(value(runs[0], series, x) for x in STRIDES if x > 1)
    share = 100 * worst / value(runs[0], "put-dst-strided", 1)
    assert figure(f"{series}-of-contiguous", round(share, 1), "%", at_least=80, profile="gen2x4")
