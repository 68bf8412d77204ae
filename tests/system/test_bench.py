"""Each benchmark on the simulated pair, with few points: right bytes, no value above its bound, its
own findings.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

import pytest
from dibber_cli import profile
from dibber_cli.bench import (
    bidir,
    block,
    element,
    latency,
    matrix,
    patterns,
    rate,
    report,
    session,
    stages,
    stride,
)
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import GUARD, Point
from dibber_cli.errors import CommandError
from libdibber import Walk

POINTS = {
    "block": (block, lambda: block.points(sizes=(4, 1024, 65536))),
    "element": (element, lambda: element.points(sizes=(1, 3, 8, 100), times=(2,))),
    "bidir": (bidir, lambda: bidir.points(strides=(1, 8))),
    "latency": (latency, lambda: latency.points(rounds=60)),
    "rate": (rate, lambda: rate.points(outstanding=(1, 8), endpoints=(1, 8), many=100)),
    "stride": (
        stride,
        lambda: stride.points(
            series=("get-dst-strided", "get-src-strided", *stride.LISTS), strides=(1, 8)
        ),
    ),
    "patterns": (
        patterns,
        lambda: patterns.points(
            messages=[
                patterns.milc(8, 8, 8, 8),
                patterns.lu_y(33),
                patterns.mg("x", 34, 18, 18),
                patterns.fft2(64),
                patterns.specfem("oc", 4, 493, 3697),
                patterns.lammps("atomic", 24, 114, 1217),
            ]
        ),
    ),
    "matrix": (
        matrix,
        lambda: matrix.points(
            {
                "column": matrix.column(256, 16),
                "halo-x": matrix.face(0, 16),
                "halo-z": matrix.face(2, 16),
                "transpose": matrix.transpose(32),
                "atoms": matrix.atoms(2048, 512),
                "objects": matrix.objects(1024, 256),
            }
        ),
    ),
}


@pytest.fixture(scope="module")
def run(request, litepcie_rate):
    """run(name) → report of that benchmark's few points; each is run once."""
    reports = {}

    def of(name):
        if name not in reports:
            test, points = POINTS[name]
            reports[name] = session.run(
                test, profile.load("gen2x4"), request.config.getoption("--seed"), "test", points()
            )
        return reports[name]

    return of


def values(result, series):
    return {p["x"]: p["value"] for p in result["points"] if p["series"] == series}


@pytest.mark.parametrize("name", POINTS)
def test_every_byte_is_right_and_no_value_passes_its_bound(run, name):
    result = run(name)
    assert (
        result["bytes_wrong"] == 0
        and result["bytes_compared"] > 0
        and result["guard_bytes_compared"] > 0
    )
    for point in result["points"]:
        if "not_possible" in point:
            assert point["series"].startswith("litepcie") and point["value"] is None
            continue
        assert 0 < point["cpu_percent"] <= 100 or point["series"].startswith("litepcie"), point
        if point["unit"] == "us":
            assert point["value"] >= point["bound"]
        elif point["series"] != "local-copy":
            assert 0 < point["value"] <= point["bound"] and point["cycles"] > 0, point


NAMES = {
    *stages.STAGES,
    stages.GATHER,
    stages.PROGRAM,
    stages.LATENCY,
    "link",
    "pcie_up",
    "pcie_down",
    "engine",
}


@pytest.mark.parametrize("name", POINTS)
def test_every_point_of_ours_says_what_limits_it(run, name):
    result = run(name)
    ours = [p for p in result["points"] if not p["series"].startswith(("litepcie", "local"))]
    for point in ours:
        names = result["stages_cycles"][point["series"]] if point["unit"] == "us" else NAMES
        assert point["limited_by"] in names and (point["limit"] or 1e9) > 0.98 * point["value"], (
            point
        )


def test_the_link_limits_what_is_long_and_the_control_program_what_it_executes(run):
    by = {(p["series"], p["x"]): p["limited_by"] for p in run("block")["points"]}
    assert by["put", 65536] == "link" and by["put", 4] == by["get", 4] == "latency"
    by = {(p["series"], p["x"]): p["limited_by"] for p in run("latency")["points"]}
    assert (
        by["mcp-get", 50] == by["mcp-fetch-add", 50] == "control program"
        and by["fastpath-get", 50] != "control program"
    )


def test_gets_bring_what_puts_bring(run):
    block_ = run("block")
    assert values(block_, "get")[65536] > 0.9 * values(block_, "put")[65536]
    strided = run("stride")
    assert all(value > 200 for s in stride.GETS for value in values(strided, s).values())


def test_bulk_makes_latency_worse_and_more_under_way_makes_the_rate_better(run):
    median = {s: values(run("latency"), s)[50] for s in latency.SERIES}
    assert median["fastpath"] < median["mcp"]
    for series in ("fastpath", "mcp"):
        assert median[series] < median[f"{series}-under-bulk"]
        assert sum(run("latency")["stages_cycles"][series].values()) == pytest.approx(
            median[series] * 125, abs=1
        )
        assert values(run("rate"), series)[8] > 1.5 * values(run("rate"), series)[1]


@pytest.mark.parametrize("name", POINTS)
def test_it_can_be_shown_and_written(run, name, tmp_path, capsys):
    test, result = POINTS[name][0], run(name)
    assert all(f.stat().st_size for f in report.write(result, test.panels(result), tmp_path))
    report.show(result, test.tables(result))
    assert "0 wrong" in capsys.readouterr().out


def test_block_streams_faster_than_one_at_a_time_and_says_where_half_is(run):
    result = run("block")
    streamed, single = values(result, "put"), values(result, "put-one-at-a-time")
    assert (
        all(streamed[x] > single[x] for x in streamed) and single[65536] > single[1024] > single[4]
    )
    assert values(result, "put-inline")[4] > streamed[4]
    halves = result["half_size_bytes"]
    assert 4 < halves["put"] < halves["put-one-at-a-time"] < 65536


def test_packing_costs_the_cpu_and_small_elements_pay_for_it(run):
    result = run("element")
    cpu = {(p["series"], p["x"]): p["cpu_percent"] for p in result["points"]}
    assert cpu["packed-dst-strided-x2", 8] > 3 * cpu["direct-dst-strided-x2", 8]
    packed, direct = (
        values(result, "packed-dst-strided-x2"),
        values(result, "direct-dst-strided-x2"),
    )
    assert packed[1] > direct[1] and packed[100] < direct[100]
    assert 1 < result["crossover_bytes"]["direct-dst-strided-x2"] < 100
    peer = values(result, "litepcie-descriptors-x2")
    assert peer[1] is peer[3] is peer[100] is None and peer[8] > 0


def test_bidir_has_both_directions_beside_one_way(run):
    result = run("bidir")
    for series in bidir.SERIES:
        alone = values(result, f"{series}-one-way")
        for direction in bidir.DIRECTIONS:
            for x, value in values(result, f"{series}-{direction}").items():
                assert value <= 1.02 * alone[x]
    shares = [
        p["percent_of_one_way"]
        for p in result["points"]
        if p["series"].startswith("put-dst-strided-0")
    ]
    assert len(shares) == 2 and min(shares) > 50
    assert set(result["worst"]) == {"contiguous", *bidir.SERIES}
    assert result["worst"]["put-dst-strided"]["percent_of_one_way"] <= shares[1]


class Disturbed(Point):
    """A point that expects another payload byte and another guard byte than there will be."""

    def expected(self, seed, sender):
        memory = super().expected(seed, sender)
        memory[0] ^= 1
        memory[GUARD] ^= 1
        return memory


class Far(Pattern):
    """A pattern whose transfers lie outside its region."""

    def walk(self, key, base, transfer):
        return Walk(key, self.block, 1 << 30)


def one_point():
    return block.points(sizes=(4096,), series=("put-one-at-a-time",))[0]


def test_a_wrong_payload_byte_and_a_wrong_guard_byte_are_counted():
    results, _, _ = session.measure(profile.load("gen2x4"), 1, [Disturbed(**vars(one_point()))])
    assert results[0]["answers"][1]["bytes_wrong"] == 2


def test_a_refused_transfer_ends_the_run_with_its_reason():
    point = one_point()
    with pytest.raises(CommandError, match="card 0: a transfer ended with REMOTE_BOUNDS"):
        session.measure(
            profile.load("gen2x4"),
            1,
            [dataclasses.replace(point, target=Far(**vars(point.target)))],
        )
