"""The bound agrees with figures that were computed by hand, and each term changes it correctly."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

import pytest
from dibber_cli import profile
from dibber_cli.bench.bound import (
    COVER,
    Side,
    answer_seconds,
    bound,
    bound_of_writes,
    list_cost,
    message_seconds,
    messages,
    read_costs,
    stores,
    write_cost,
)

HIGH = 1 << 32  # addresses that need 4-DW headers


def bare(name, **changes):
    """A profile without the overhead of DLLPs and skip ordered sets, as the figures by hand are."""
    return dataclasses.replace(profile.load(name), overhead=0, **changes)


def elements(stride, base=0, count=8192):
    return Side(8, ((count, 8 * stride),), base)


def megabytes(value):
    return round(value / 1e6)


@pytest.mark.parametrize(
    "name, base, expected",
    [
        ("gen2x4", 0, 571),
        ("gen2x4", HIGH, 500),
        ("gen2x1", 0, 143),
        ("gen2x1", HIGH, 125),
        ("gen1x1", 0, 71),
        ("gen1x1", HIGH, 62),
    ],
)
@pytest.mark.parametrize("stride", [2, 7, 64])
def test_scattered_elements_of_8_bytes(name, base, expected, stride):
    result = bound(bare(name), elements(1, base), elements(stride, base))
    assert int(result.pcie_up / 1e6 + (0.5 if expected != 62 else 0)) == expected


@pytest.mark.parametrize("base, expected", [(0, 333), (HIGH, 286)])
def test_both_cards_from_and_to_strides(base, expected):
    result = bound(bare("gen2x4"), elements(64, base), elements(64, base), both_ways=True)
    assert megabytes(result.value) == expected and result.name == "pcie_up"


def test_the_link_is_494_whatever_the_header():
    for base in (0, HIGH):
        result = bound(profile.load("gen2x4"), elements(1, base), elements(2, base))
        assert megabytes(result.value) == 494 and result.name == "link"


def test_the_engine_is_500_at_128_bits():
    result = bound(bare("gen2x4"), elements(1), elements(2))
    assert megabytes(result.engine) == 500
    assert megabytes(bound(bare("gen2x4", data_width=64), elements(1), elements(2)).engine) == 333


def test_the_engine_is_one_beat_a_cycle():
    dword = Side(4, ((1024, 64),))
    # 16 bytes: 1 beat
    assert megabytes(bound(bare("gen2x4"), Side(4096), dword).engine) == 500
    # 2 beats
    assert megabytes(bound(bare("gen2x4", data_width=64), Side(4096), dword).engine) == 250
    high = dataclasses.replace(dword, address=HIGH)
    # 20 bytes: 2 beats
    assert megabytes(bound(bare("gen2x4"), Side(4096), high).engine) == 250


def test_a_card_that_only_writes_has_neither_link_nor_reads_in_its_bound():
    p = bare("gen2x4", data_width=64)
    assert (
        megabytes(bound_of_writes(p, elements(2)).value) == 333
        and bound_of_writes(p, elements(2)).name == "engine"
    )
    # 34 beats of 8 bytes
    assert megabytes(bound_of_writes(p, Side(65536)).value) == round(1000 * 256 / 272)
    assert bound_of_writes(bare("gen2x1"), elements(2)).name == "pcie_up"


def test_the_profiles_overhead_is_taken_off():
    whole, real = bare("gen2x1"), profile.load("gen2x1")
    ratio = (
        bound(real, elements(1), elements(2)).pcie_up
        / bound(whole, elements(1), elements(2)).pcie_up
    )
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
    assert write_cost(p, Side(512)).up == 2 * (12 + 256 + 8)
    assert write_cost(p, Side(256, address=4096 - 128)).up == 2 * (12 + 128 + 8)


def test_neighbouring_blocks_are_one_piece():
    p = bare("gen2x4")
    assert write_cost(p, Side(8, ((32, 8),))).up == write_cost(p, Side(256)).up


def test_levels_are_walked_innermost_first():
    side = Side(8, ((2, 16), (3, 1000)), 64)
    assert (
        side.pieces() == [(64, 8), (80, 8), (1064, 8), (1080, 8), (2064, 8), (2080, 8)]
        and side.length == 48
    )
    assert Side(8, ((4, 8), (2, 100))).pieces() == [(0, 32), (100, 32)]
    assert Side(8, ((4, 8), (2, 32))).pieces() == [(0, 64)]


def test_a_read_of_an_element_is_20_bytes_up_and_28_down():
    single = read_costs(bare("gen2x4"), elements(8, count=1))[0]
    assert (single.up, single.down) == (20, 28)
    single = read_costs(bare("gen2x4"), elements(8, HIGH, count=1))[0]
    assert (single.up, single.down) == (24, 28)


def test_completions_are_cut_where_the_profile_says():
    line = read_costs(bare("gen2x4"), Side(512))[0]
    assert (line.up, line.down) == (20, 8 * (12 + 64 + 8))
    line = read_costs(bare("gen2x4", completion_split="maximum"), Side(512))[0]
    assert line.down == 2 * (12 + 256 + 8)


def test_several_elements_may_be_read_with_the_gaps_between_them():
    # 16 lines, four elements in each
    apart, in_lines, all_ = read_costs(bare("gen2x4"), elements(2, count=64))
    assert (apart.up, apart.down) == (64 * 20, 64 * 28)
    assert (in_lines.up, in_lines.down) == (16 * 20, 16 * (20 + 56))
    assert (all_.up, all_.down) == (2 * 20, 2 * (7 * 84 + 76))


def test_the_order_of_the_walk_does_not_matter_for_reads():
    p, columns = bare("gen2x4"), Side(8, ((32, 1024), (64, 8)))
    assert min(c.down for c in read_costs(p, columns)) == 32 * 8 * 84


def test_the_cheapest_way_to_read_counts():
    p = bare("gen2x1", link_rate=50e9, clock_hz=1e10)
    near, far = bound(p, elements(2), elements(1)), bound(p, elements(16), elements(1))
    # a line with four elements, but for its last 8 bytes
    assert megabytes(near.value) == round(500 * 32 / 76)
    assert megabytes(far.value) == round(500 * 8 / 28)  # elements


def test_both_ways_requests_may_be_saved_where_upstream_is_dear():
    """Stride 4, bare: upstream takes 28 for the write of an element, and for its reads 20 apart, 10
    in lines, 1.25 with 16
    in a request; downstream 28, 30, 40.5. Best is a mixture of the last two: 38 - 8.75 x = 30 +
    10.5 x."""
    result = bound(bare("gen2x4", clock_hz=1e10), elements(4), elements(4), both_ways=True)
    share = (38 - 30) / (8.75 + 10.5)
    assert min(result.pcie_up, result.pcie_down) == pytest.approx(
        2e9 * 8 / (38 - 8.75 * share), rel=0.001
    )


# Index lists --------------------------------------------------------------------------------------


def by_list(side):
    """The same places, given by a list."""
    places = [address - side.address for address, _ in side.pieces()]
    return Side(side.block, (), side.address, tuple(places))


def test_a_list_is_read_once_in_the_longest_requests():
    p = bare("gen2x4")
    assert list_cost(p, elements(7)) == list_cost(p, Side(64)) and not list_cost(p, elements(7)).up
    # 512 bytes: one request, a completion for each 64 bytes
    cost = list_cost(p, by_list(elements(7, count=64)))
    assert (cost.up, cost.down) == (20, 8 * 84)
    assert (cost.up_cycles, cost.down_cycles) == (1, 8 * 5)
    cost = list_cost(p, by_list(elements(7, count=65)))
    assert (cost.up, cost.down) == (40, 8 * 84 + 28)


def test_a_list_of_places_has_the_pieces_of_the_walk_in_its_own_order():
    assert Side(8, ((2, 16),), 64, (1000, 0, 0)).pieces() == [
        (1064, 8),
        (1080, 8),
        (64, 8),
        (80, 8),
        (64, 8),
        (80, 8),
    ]
    assert Side(8, (), 0, (0, 8, 16, 4096)).pieces() == [(0, 24), (4096, 8)]
    assert Side(8, ((2, 16),), 64, (1000, 0, 0)).length == 48


@pytest.mark.parametrize(
    "name, width, expected, term",
    [
        (
            "gen2x1",
            128,
            500 / (28 + 10.5) * 8,
            "pcie_down",
        ),  # 28 for an element, 84/8 for its entry
        ("gen2x4", 128, 125 / (2 + 5 / 8) * 8, "engine"),  # 2 beats and 5 a line of 8 entries
        ("gen2x4", 64, 125 / (3 + 10 / 8) * 8, "engine"),
    ],
)
def test_elements_of_8_bytes_by_a_list(name, width, expected, term):
    found = bound(bare(name, data_width=width), by_list(elements(16)), elements(1))
    assert found.value / 1e6 == pytest.approx(expected, rel=1e-6) and found.name == term


def test_the_list_of_a_target_is_read_on_its_host():
    p = bare("gen2x1")
    found = bound(p, elements(1), by_list(elements(16)))
    assert (
        found.value / 1e6 == pytest.approx(500 / (28 + 20 / 64) * 8, rel=1e-6)
        and found.name == "pcie_up"
    )
    assert found.pcie_down == pytest.approx(8 * 500e6 / 10.5)
    both = bound(p, by_list(elements(16)), by_list(elements(16)), both_ways=True)
    assert both.pcie_up == pytest.approx(8 * 500e6 / (20 + 28 + 2 * 20 / 64), rel=1e-6)
    assert both.pcie_down == pytest.approx(8 * 500e6 / (28 + 2 * 10.5), rel=1e-6)


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 8, 64])
@pytest.mark.parametrize("block", [1, 3, 8, 24, 40])
@pytest.mark.parametrize("width", [64, 128])
def test_one_way_nothing_is_gained_by_reading_over_long_gaps(stride, block, width):
    """So bound() does not try them, because lists have gaps of many sizes."""
    p = bare("gen2x4", data_width=width)
    for side in (
        Side(block, ((64, block * stride),), 1),
        Side(block, (), 1, tuple(block * n * (n + stride) // 2 for n in range(40))),
    ):

        def best(ways):
            return min((way.down, way.down_cycles) for way in ways), min(
                (way.down_cycles, way.down) for way in ways
            )

        assert best(read_costs(p, side)) == best(read_costs(p, side, COVER))
        assert all(
            way.up <= way.down and way.up_cycles <= way.down_cycles
            for way in read_costs(p, side, COVER)
        )


# Messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, length, rate, term",
    [
        ({}, 8, 500e6 / 48, "link"),
        ({}, 64, 500e6 / 104, "link"),
        ({"lanes": 1, "pcie_rate": 2.5e9}, 64, 250e6 / 84, "pcie_down"),
    ],
)
def test_messages_are_a_packet_and_a_write_each(changes, length, rate, term):
    found, by = messages(bare("gen2x4", **changes), length)
    assert found == pytest.approx(rate) and by == term


def test_a_message_takes_the_wires_and_its_bytes():
    # 28 bytes at 2 GB/s on each host, 48 at 500 MB/s between; 200 + 155 + 200 ns.
    assert 1e9 * message_seconds(bare("gen2x4"), 8) == pytest.approx(2 * 14 + 96 + 555)
    assert message_seconds(bare("gen1x1"), 8) > message_seconds(bare("gen2x4"), 8)


@pytest.mark.parametrize(
    "name, stride, terms",
    [
        # A line is 64 + 40 bytes on the cable and 64 + 16 + 8 on PCIe; lines leave 16 ns apart.
        ("gen2x4", 0, (500 * 64 / 104, 2000 * 64 / 88, 64 / 0.016)),
        # An element is 48 bytes on the cable and 32 on PCIe. Four of them are in a line, or one.
        ("gen2x4", 16, (500 * 8 / 48, 2000 * 8 / 32, 32 / 0.016)),
        ("gen2x4", 64, (500 * 8 / 48, 2000 * 8 / 32, 8 / 0.016)),
        ("gen2x4", 512, (500 * 8 / 48, 2000 * 8 / 32, 8 / 0.016)),
        ("gen1x1", 64, (250 * 8 / 48, 250 * 8 / 32, 8 / 0.016)),
    ],
)
def test_stores_of_a_processor_are_a_packet_for_each_line_or_run(name, stride, terms):
    found = stores(bare(name), 8 * 4096, stride)
    rates = found.link / 1e6, found.pcie_down / 1e6, found.cpu / 1e6
    assert rates == pytest.approx(terms) and found.value == 1e6 * min(rates)


def test_slow_buffers_of_the_processor_are_the_bound():
    slow = bare("gen2x4", combining_line_ns=1000.0)
    assert stores(slow, 640).name == "cpu" and stores(slow, 640).value == pytest.approx(64e6)
    assert stores(bare("gen2x4"), 640).name == "link"


def test_a_load_waits_for_both_hosts_and_a_barrier_for_the_cable_alone():
    machine = bare("gen2x4")
    barrier, load = (answer_seconds(machine, reads) for reads in (False, True))
    # 200 down, 200 up, twice 155 of cable, 88 bytes at 500 MB/s; a store's and an answer's TLP.
    assert barrier == pytest.approx(1e-9 * (200 + 200 + 310 + 176 + (32 + 28) / 2))
    assert load - barrier == pytest.approx(1e-9 * (400 - 8 / 2))
