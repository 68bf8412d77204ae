"""The rows of `make figures` that are read off the benchmarks' reports."""

# SPDX-License-Identifier: BSD-2-Clause

import json

from tests import figures
from tests.figure_rows import (
    NO_GOAL,
    of_bidir,
    of_block,
    of_element,
    of_latency,
    of_link,
    of_patterns,
    of_rate,
    of_soak,
    of_stride,
    of_wide,
    of_window,
)


def report(test, points=(), profile="gen2x4", **more):
    rows = [
        {
            "series": s,
            "x": x,
            "value": value,
            "bound": bound,
            "limited_by": "link",
            "cpu_percent": 16.57,
        }
        for s, x, value, bound in points
    ]
    return {
        "test": test,
        "profile": profile,
        "seed": 1,
        "command": f"dibber bench {test}",
        "bytes_wrong": 0,
        "bytes_compared": 9,
        "points": rows,
        **more,
    }


def short(rows):
    return {r["id"]: (r["value"], r["target"], r["pass"]) for r in rows}


STRIDE = [
    ("put-dst-strided", 1, 480, 494),
    ("put-dst-strided", 2, 430, 494),
    ("put-dst-strided", 64, 420, 494),
    ("put-src-strided", 1, 480, 494),
    ("put-src-strided", 2, 400, 494),
    ("put-src-strided", 64, 380, 494),
    ("put-both-strided", 1, 480, 494),
    ("put-both-strided", 2, 400, 494),
    ("put-both-strided", 64, 390, 400),
    ("put-contiguous-unpack", 64, 403, 494),
    ("descriptors", 64, 41, 494),
]


def test_strides_are_absolute_where_the_link_can_be_filled():
    rows = of_stride(report("stride", STRIDE))
    assert short(rows) == {
        "stride-gen2x4-contiguous": (480, ">= 470", True),
        "stride-gen2x4-dst-strided-least": (420, ">= 423", False),
        "stride-gen2x4-src-strided-least": (380, ">= 376", True),
        "stride-gen2x4-both-strided-of-bound": (81.0, ">= 80", True),
        "stride-gen2x4-unpack-at-64": (403, NO_GOAL, True),
        "stride-gen2x4-descriptors-at-64": (41, NO_GOAL, True),
    }
    assert [r["unit"] for r in rows[3:5]] == ["MB/s, 16.6 % of the receiving CPU", "MB/s"]
    missed = next(r for r in rows if not r["pass"])
    assert (missed["at"], missed["limited_by"], missed["command"]) == (
        64,
        "link",
        "dibber bench stride",
    )


def test_strides_are_shares_of_the_bound_elsewhere():
    assert short(of_stride(report("stride", STRIDE, "gen1x1"))) == {
        "stride-gen1x1-dst-strided-of-bound": (85.0, ">= 90", False),
        "stride-gen1x1-src-strided-of-bound": (76.9, ">= 80", False),
        "stride-gen1x1-both-strided-of-bound": (81.0, ">= 80", True),
    }


def test_half_sizes_and_what_begins_above_half():
    series = ("put", "put-one-at-a-time", "put-inline", "put-inline-one-at-a-time")
    rows = short(
        of_block(
            report(
                "block",
                [(s, 4, 1, 494) for s in series],
                half_size_bytes={
                    "put": None,
                    "put-one-at-a-time": 1500.5,
                    "put-inline": 256.0,
                    "put-inline-one-at-a-time": 1024.1,
                },
            )
        )
    )
    assert [rows[f"block-gen2x4-half-size-{s}"] for s in series] == [
        (4, "<= 256", True),
        (1500.5, "<= 1024", False),
        (256.0, "<= 256", True),
        (1024.1, "<= 1024", False),
    ]


def test_both_directions():
    worst = {
        name: {"percent_of_one_way": one, "percent_of_bound": bound}
        for name, one, bound in (
            ("contiguous", 91, 1),
            ("put-dst-strided", 84, 1),
            ("put-both-strided", 1, 82),
        )
    }
    assert [r["pass"] for r in of_bidir(report("bidir", worst=worst))] == [True, False, True]


def test_latency_rate_and_wrong_bytes():
    median = [
        ("fastpath", 50, 1.3, 0.7),
        ("fastpath-under-bulk", 50, 2.6, 0.7),
        ("mcp", 50, 1.9, 0.7),
        ("mcp-under-bulk", 50, 4.0, 0.7),
        ("fastpath-get", 50, 2.7, 1.4),
        ("fastpath-fetch-add", 50, 3.0, 1.4),
        ("mcp-get", 50, 17.1, 1.4),
        ("mcp-fetch-add", 50, 13.9, 1.4),
    ]
    rows = of_latency(report("latency", median))
    assert [(r["value"], r["pass"]) for r in rows] == [
        (1.3, False),
        (2.0, True),
        (1.9, True),
        (2.11, False),
        (2.7, True),
        (3.0, True),
        (17.1, True),
        (13.9, True),
    ]
    assert [r["target"] == NO_GOAL for r in rows] == [False] * 4 + [True] * 4
    rates = [
        ("fastpath", 1, 0.5, 9),
        ("fastpath", 32, 8.9, 9),
        ("mcp", 1, 0.2, 9),
        ("mcp", 32, 0.9, 9),
    ]
    assert [(r["value"], r["pass"]) for r in of_rate(report("rate", rates))] == [
        (8.9, True),
        (0.9, False),
    ]
    assert not of_element(report("element") | {"bytes_wrong": 1})[0]["pass"]


def test_a_soak_is_right_or_wrong_and_a_link_has_its_least_share():
    assert of_soak(report("soak", guard_bytes_compared=90))[0]["pass"]
    assert not of_soak(report("soak", guard_bytes_compared=90) | {"bytes_wrong": 1})[0]["pass"]
    rows = of_link(
        report("link", [("payload-share", 3, 97.03, 98.8), ("payload-share", 50, 96.9, 98.8)])
    )
    assert [(r["value"], r["pass"], r.get("at")) for r in rows] == [
        (96.9, False, 50),
        (0, True, None),
    ]


def test_patterns_count_what_reaches_its_goal_and_name_the_worst():
    points = [
        ("direct", "NAS_LU_y 12", 470, 490),  # 95.9 %
        ("direct", "NAS_LU_y 33", 460, 490),  # 93.9 %
        ("direct", "SPECFEM3D_oc 493/3697", 222, 278),  # 79.9 %
        ("packed", "NAS_LU_y 12", 1, 490),
    ]
    shares = {"NAS_LU_y 12": 0.99, "NAS_LU_y 33": 0.96, "SPECFEM3D_oc 493/3697": 0.5}
    rows = of_patterns(report("patterns", points, of_contiguous=shares))
    assert short(rows) == {
        "patterns-gen2x4-vectors-of-contiguous": (96.0, ">= 97", False),
        "patterns-gen2x4-vectors-of-bound": (93.9, ">= 95", False),
        "patterns-gen2x4-vectors-at-95": (1, ">= 2", False),
        "patterns-gen2x4-lists-of-bound": (79.9, ">= 90", False),
        "patterns-gen2x4-lists-at-90": (0, ">= 1", False),
        "patterns-gen2x4-bytes-wrong": (0, "<= 0", True),
    }
    assert [r.get("at") for r in rows[:2]] == ["NAS_LU_y 33", "NAS_LU_y 33"]
    narrow = of_patterns(report("patterns", points, profile="gen2x1", of_contiguous=shares))
    assert "patterns-gen2x1-vectors-of-contiguous" not in short(narrow)


def test_the_windows_rows_are_shares_of_bounds_and_medians():
    points = [
        ("window-store", 1, 290, 300),
        ("window-store", 2, 80, 100),
        ("window-store", 64, 95, 100),
        ("window-memcpy", 1, 294, 300),
        ("remote-store", 1, 1.0, 0.7),
        ("remote-store", 50, 1.1, 0.7),
        ("remote-load", 50, 2.5, 1.3),
        ("barrier", 50, 1.2, 0.9),
    ]
    assert short(of_window(report("window", points))) == {
        "window-gen2x4-contiguous-of-bound": (96.7, ">= 90", True),
        "window-gen2x4-strided-of-bound": (80.0, ">= 90", False),
        "window-gen2x4-remote-store": (1.1, "<= 1.1", True),
        "window-gen2x4-remote-load": (2.5, "<= 2.2", False),
        "window-gen2x4-barrier": (1.2, "<= 1.2", True),
        "window-gen2x4-bytes-wrong": (0, "<= 0", True),
    }


def test_wide_cards_have_rows_of_long_puts_and_of_strides():
    contiguous = [("put-dst-strided", 1, 4700, 4942), ("litepcie-dma", 1, 1333, 2000)]
    strides = [
        *[(f"put-{side}-strided", x, 1900, 2000) for side in ("dst", "both") for x in (2, 64)],
        ("put-src-strided", 2, 1900, 2666),
        ("put-src-strided", 64, 1950, 2000),
        ("put-contiguous-unpack", 64, 1590, 4942),
        ("litepcie-descriptors", 64, 666, 2000),
    ]
    reports = [report("stride", points, "gen3x8") for points in (contiguous, strides)]
    rows = short(of_wide(*reports))
    assert rows["stride-gen3x8-contiguous-of-bound"] == (95.1, ">= 95", True)
    assert rows["stride-gen3x8-dst-strided-of-bound"] == (95.0, ">= 85", True)
    assert rows["stride-gen3x8-src-strided-of-bound"] == (71.3, ">= 85", False)
    assert rows["stride-gen3x8-src-strided-at-64"] == (1950, NO_GOAL, True)
    assert rows["stride-gen3x8-unpack-at-64"][0] == 1590


def test_the_groups_run_every_benchmark_once_and_stride_with_the_narrow_profiles(
    monkeypatch, tmp_path
):
    ran = []

    def run(command):
        ran.append(command)
        if command[0] == "dibber":
            test, profile = command[2], command[4]
            (tmp_path / "out").mkdir(exist_ok=True)
            (tmp_path / "out" / f"{test}-{profile}.json").write_text(
                json.dumps(report(test, profile=profile))
            )

    groups = {
        name: function
        for name, function in figures.groups("gen2x4").items()
        if not name.startswith("tests/") and name not in figures.CAMPAIGNS
    }
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "run", run)
    monkeypatch.setattr(
        figures, "READERS", dict.fromkeys(figures.READERS, lambda r: [(r["test"], r["profile"])])
    )
    monkeypatch.setattr(figures, "of_stride", lambda r: [("stride", r["profile"])])
    rows = [
        row
        for name, function in groups.items()
        if name not in ("stride", "speed")
        for row in function("gen2x4", 1)
    ]
    once = ("bidir", "block", "element", "latency", "link", "patterns", "rate", "soak", "window")
    narrow = [("stride", "gen1x1"), ("stride", "gen2x1"), ("patterns", "gen2x1")]
    assert sorted(rows) == sorted([*((test, "gen2x4") for test in once), *narrow])
    assert all(
        any(c == ["make", "simulator", f"PROFILE={profile}"] for c in ran) for _, profile in rows
    )
    assert "--series" in next(c for c in ran if c[:3] == ["dibber", "bench", "stride"])


def test_tests_that_record_figures_are_found():
    found = figures.tests_with_figures()
    assert (
        "tests/system/reference/test_litepcie.py" in found
        and "tests/software/test_bench_rows.py" not in found
    )
