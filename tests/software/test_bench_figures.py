"""Figures read off curves, the model of the CPU's copies, and their calibration."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

import pytest
from dibber_cli import profile
from dibber_cli.bench import calibrate, cpu, litepcie, matrix, session, stages, stride
from dibber_cli.bench.figures import crossover, half_size, percentile
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point
from dibber_cli.errors import CommandError

# Curves -------------------------------------------------------------------------------------------


def test_half_size_lies_on_a_line_over_log_size():
    curve = [(4, 10), (16, 30), (64, 60), (256, 100)]
    assert half_size(curve) == pytest.approx(16 * 4 ** (20 / 30))
    assert half_size([(4, 10), (16, 50), (64, 100)]) == pytest.approx(16)


def test_half_size_is_of_the_curves_own_peak():
    curve = [(4, 10), (16, 30), (64, 60), (256, 100)]
    assert half_size([(x, y / 1000) for x, y in curve]) == pytest.approx(half_size(curve))
    assert half_size([(4, 60), (16, 100), (64, 80)]) is None


def test_crossover_is_where_direct_gets_ahead_for_good():
    packed = [(1, 50), (2, 50), (4, 50), (8, 50)]
    assert crossover([(1, 10), (2, 40), (4, 60), (8, 90)], packed) == pytest.approx(2 * 2**0.5)
    assert crossover([(1, 10), (2, 60), (4, 40), (8, 60)], packed) == pytest.approx(4 * 2**0.5)
    assert crossover([(1, 50), (2, 60), (4, 70), (8, 60)], packed) == 0
    assert crossover([(1, 90), (2, 60), (4, 60), (8, 49)], packed) is None


def test_percentiles_are_values_that_were_measured():
    values = [5, 1, 4, 2, 3]
    assert [percentile(values, p) for p in (1, 20, 21, 50, 99.9)] == [1, 1, 2, 3, 5]
    assert percentile(range(1000), 99.9) == 998 and percentile([7], 1) == 7


# The CPU's copies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern, expected",
    [
        # 10 lines, each but the first behind its neighbour
        (Pattern.contiguous(640), (9, 1)),
        (Pattern.strided(8, 10, 64), (9, 1)),  # an element in each line
        (Pattern.strided(8, 10, 16), (2, 1)),  # four elements a line
        (Pattern.strided(8, 10, 128), (0, 10)),  # every other line
        (Pattern.strided(8, 4, 256, offset=60), (4, 4)),  # each element in two lines
        (Pattern(128, ((2, 1024),), 4096), (2, 2)),
    ],
)
def test_lines_are_counted_once_and_by_neighbourhood(pattern, expected):
    assert cpu.lines(pattern, 64) == expected


@pytest.fixture
def machine():
    return dataclasses.replace(
        profile.load("gen2x4"),
        copy_element_ns=1.0,
        copy_line_ns=2.0,
        copy_far_load_ns=10.0,
        copy_far_store_ns=7.0,
    )


def test_a_copy_is_charged_its_lines_or_its_elements(machine):
    near, far = Pattern.contiguous(640, 3), Pattern.strided(64, 10, 128, 3)
    assert cpu.copy_ns(machine, near, far) == 3 * (9 * 2 + 10 + 10 * 7)
    assert cpu.copy_ns(machine, far, near) == 3 * (10 * 10 + 9 * 2 + 7)
    bytes_ = Pattern.strided(1, 640, 2)
    assert cpu.copy_ns(machine, bytes_, Pattern.contiguous(640)) == 640


def test_packing_is_charged_where_it_is_done(machine):
    strided, plain = Pattern.strided(8, 64, 128), Pattern.contiguous(512)
    unpack = Point("s", 1, plain, strided, 1, packed=True)
    both = Point("s", 1, strided, strided, 1, packed=True)
    assert session.copying_ps(machine, dataclasses.replace(both, packed=False)) == 0
    assert session.copying_ps(machine, unpack) == 1e3 * cpu.copy_ns(machine, plain, strided)
    assert session.copying_ps(machine, both) == 1e3 * (
        cpu.copy_ns(machine, plain, strided) + cpu.copy_ns(machine, strided, plain)
    )


def test_the_copying_is_in_the_value_and_in_the_cpus_share(machine):
    point = Point("s", 1, Pattern.contiguous(512), Pattern.strided(8, 64, 128), 1, packed=True)
    idle = dict.fromkeys((*stages.STAGES, *stages.HANDLERS), 0)
    result = {
        "point": point,
        "answers": [{"elapsed_ps": 2_000_000, "cpu_ps": 100_000}, {}],
        "busy": [idle, idle],
    }
    copied = session.copying_ps(machine, point)
    row = session.evaluate(machine, result, "elements")
    assert row["value"] == round(512 / ((2_000_000 + copied) * 1e-12) / 1e6, 1)
    assert row["cpu_percent"] == round(100 * (100_000 + copied) / (2_000_000 + copied), 2)
    best = session.bound_of(machine, dataclasses.replace(point, target=point.source))
    assert (row["bound"], row["bound_by"]) == (round(best.value / 1e6, 1), best.name)


def test_a_local_copy_has_no_bound_and_all_of_the_cpu():
    row = stride.local_copy(profile.load("gen2x4"), 8)
    assert row["bound"] is None and row["cpu_percent"] == 100 and 1000 < row["value"] < 100_000


# Calibration --------------------------------------------------------------------------------------


def test_the_constants_come_back_from_copies_that_follow_the_model(machine):
    # less than what 8 bytes cost memory
    machine = dataclasses.replace(machine, copy_element_ns=0.25)
    measured = {
        (size, s, kind): calibrate.modelled(machine, size, s, kind)
        for size in (1, 8)
        for s in (1, 2, 8, 16, 32, 64)
        for kind in calibrate.KINDS
    }
    found = calibrate.constants(measured, machine.line)
    for name, value in found.items():
        assert value == pytest.approx(getattr(machine, name), rel=0.02), name


def test_the_calibration_measures_this_machine():
    measured = calibrate.measure(mib=1)
    assert {kind for _, _, kind in measured} == set(calibrate.KINDS) and len(measured) == 3 * 14 * 3
    assert all(ns > 0 for ns in measured.values())


# LitePCIe -----------------------------------------------------------------------------------------


def test_elements_that_litepcie_cannot_move_have_a_reason():
    for element in (1, 2, 4, 7, 100):
        row = litepcie.descriptors(
            profile.load("gen2x4"), 1, element, 2 * element, element, "bytes"
        )
        assert row["value"] is None and "8 bytes" in row["not_possible"]
    assert litepcie.why_not(8, 16) is None and litepcie.why_not(24, 192) is None
    assert "4096" in litepcie.why_not(24, 48)


def test_litepcie_that_is_not_built_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(litepcie.paths, "BUILD", tmp_path)
    with pytest.raises(CommandError, match="not built") as caught:
        litepcie.contiguous(profile.load("gen2x4"), 1, "elements")
    assert "make reference" in caught.value.advice


# Shapes -------------------------------------------------------------------------------------------


def test_a_transposes_bound_is_that_of_scattered_elements():
    source, target = matrix.transpose()
    point = Point("s", "transpose", source, target, 1)
    slow = dataclasses.replace(profile.load("gen2x1"), overhead=0)
    assert session.bound_of(slow, point).value == pytest.approx(500e6 * 8 / 28)
