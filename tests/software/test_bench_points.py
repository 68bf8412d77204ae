"""The points of every benchmark: the walks define the expected memory, packing does not change it,
and shapes are right.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

import numpy as np
import pytest
from dibber_cli.bench import bidir, block, commands, element, latency, matrix, options, rate, stride
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import FILL, GUARD, Point
from dibber_cli.errors import CommandError

SMALL = Pattern.strided(3, 5, 7, transfers=2, offset=1)

# One small point of each kind, because the benchmarks' own points are large.
POINTS = {
    "contiguous": Point("s", 1, Pattern.contiguous(24, 3), Pattern.contiguous(24, 3), 1),
    "target strided": Point("s", 1, Pattern.contiguous(15, 2), SMALL, 1),
    "source strided": Point("s", 1, SMALL, Pattern.contiguous(15, 2, offset=3), 1),
    "both strided": Point("s", 1, SMALL, Pattern.strided(5, 3, 9, transfers=2), 1),
    "transpose": Point("s", 1, *matrix.transpose(4), 1),
    "target by a list": Point(
        "s", 1, Pattern.contiguous(15, 2), Pattern.indexed(3, (4, 0, 9, 2, 1), 31, 2, 1), 1
    ),
    "source by a list": Point(
        "s",
        1,
        Pattern.indexed(3, (4, 0, 9, 4, 1), 31, 2, 1),
        Pattern.contiguous(15, 2, offset=3),
        1,
    ),
    "nests by lists": Point(
        "s",
        1,
        Pattern(3, ((2, 5),), 80, 2, 1, (50, 0, 21)),
        Pattern(2, ((3, 4),), 90, 2, 0, (11, 70, 30)),
        1,
    ),
    "atoms": Point("s", 1, *matrix.atoms(20, 7), 1),
    "objects": Point("s", 1, *matrix.objects(20, 7, 12), 1),
    "column": Point("s", 1, *matrix.column(6, 5), 1),
    **{f"face {axis}": Point("s", 1, *matrix.face(axis, 4), 1) for axis in range(3)},
}


def walked(point, seed):
    """The expected content of the target, block by block from the walks."""
    source = point.source_memory(seed, 0)
    memory = bytearray([FILL]) * point.extent(point.target)
    for n in range(point.transfers):
        walk = point.source.walk(1, GUARD, n)
        payload = b"".join(
            bytes(source[o : o + walk.block]) for o in walk.blocks(point.source.entries or (0,))
        )
        target = point.target.walk(1, GUARD, n)
        for i, offset in enumerate(target.blocks(point.target.entries or (0,))):
            memory[offset : offset + target.block] = payload[
                i * target.block : (i + 1) * target.block
            ]
    return bytes(memory)


@pytest.mark.parametrize("name", POINTS)
def test_what_is_expected_is_what_the_walks_say(name):
    assert POINTS[name].expected(1, 0).tobytes() == walked(POINTS[name], 1)


@pytest.mark.parametrize("name", POINTS)
def test_packing_moves_contiguous_bytes_and_leaves_the_same(name):
    direct = POINTS[name]
    point = dataclasses.replace(direct, packed=True)
    source, target = (
        point.source_memory(1, 0),
        np.full(point.extent(point.target), FILL, dtype=np.uint8),
    )
    point.pack(source)
    (sent, sent_base), (received, received_base) = (
        point.moved(point.source),
        point.moved(point.target),
    )
    assert sent.is_contiguous and received.is_contiguous and sent.length == received.length
    for n in range(point.transfers):  # the card's work
        received.view(target[received_base:], n)[:] = sent.view(source[sent_base:], n)
    point.unpack(target)
    assert (target == point.expected(1, 0)).all()
    plain = direct.extent(direct.target)
    assert (target[GUARD : plain - GUARD] == point.expected(1, 0)[GUARD : plain - GUARD]).all()


def test_guards_are_all_bytes_but_the_payload():
    point = POINTS["target strided"]
    assert point.guards == 2 * GUARD + point.target.extent - 30
    packed = dataclasses.replace(point, packed=True)
    assert packed.guards == packed.extent(packed.target) - 60


def test_a_seed_gives_the_same_payload_and_another_another():
    point = POINTS["both strided"]
    assert (point.source_memory(1, 0) == point.source_memory(1, 0)).all()
    for other in (
        point.source_memory(2, 0),
        point.source_memory(1, 1),
        dataclasses.replace(point, number=1).source_memory(1, 0),
    ):
        assert (point.source_memory(1, 0) != other).any()


@pytest.mark.parametrize(
    "test", [bidir, block, element, matrix, stride], ids=lambda test: test.NAME
)
def test_each_point_has_its_own_name_number_and_as_many_bytes_on_both_sides(test):
    points = test.points()
    assert [p.number for p in points] == list(range(len(points)))
    assert len({(p.series, p.x) for p in points}) == len(points)
    for p in points:
        assert p.source.length == p.target.length and p.source.transfers == p.target.transfers
        # The memory that a view reaches into must be there.
        for side in (p.source, p.target):
            last = side.blocks().max() + (side.transfers - 1) * side.span + side.block
            assert last <= side.extent


def test_stride_has_the_strides_of_1998_at_64_kib():
    assert stride.STRIDES == (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)
    ours = [p for p in stride.points() if p.series in stride.OURS]
    assert len(ours) == 3 * 14 and all(
        p.payload == 4 * 65536 and p.transfers == p.outstanding for p in ours
    )
    seven = next(p for p in ours if (p.series, p.x) == ("put-dst-strided", 7))
    assert seven.source.is_contiguous and seven.target.levels == ((8192, 56),)


def test_descriptors_keep_all_slots_busy():
    points = [p for p in stride.points() if p.series == "descriptors"]
    assert all(
        p.outstanding == 32 and p.transfers > 2 * 32 and p.source.length == 8 for p in points
    )
    assert {p.target.span for p in points} == {8 * x for x in stride.STRIDES}


@pytest.mark.parametrize("operation", ["put", "get"])
def test_block_streams_16_from_4_bytes_to_1_mib(operation):
    streamed = [p for p in block.points() if p.series == operation]
    assert [p.x for p in streamed] == [4 << n for n in range(19)]
    assert all(
        p.outstanding == 16 and (p.transfers >= 16 or p.payload == block.MOST) for p in streamed
    )
    single = [p for p in block.points() if p.series == f"{operation}-one-at-a-time"]
    assert len(single) == 19 and all(p.outstanding == 1 and p.transfers >= 2 for p in single)
    assert {p.operation for p in streamed + single} == {operation}


def test_block_puts_inline_what_fits():
    assert [p.x for p in block.points() if p.series == "put-inline"] == [4, 8, 16, 32, 64]


def test_the_curve_of_inline_puts_goes_on_as_puts():
    points = [
        {"series": s, "x": x, "value": v}
        for s, x, v in (
            ("put", 4, 1),
            ("put", 64, 2),
            ("put", 128, 3),
            ("put-inline", 4, 10),
            ("put-inline", 64, 20),
            ("put-inline-one-at-a-time", 4, 5),
            ("put-one-at-a-time", 128, 7),
        )
    ]
    assert block.curve(points, "put") == [(4, 1), (64, 2), (128, 3)]
    assert block.curve(points, "put-inline") == [(4, 10), (64, 20), (128, 3)]
    assert block.curve(points, "put-inline-one-at-a-time") == [(4, 5), (128, 7)]


def test_a_get_is_issued_by_the_receiver():
    put = Point("s", 1, SMALL, SMALL, 1, senders=(0, 1))
    get = dataclasses.replace(put, operation="get", senders=(0,))
    assert (put.issuers, get.issuers, get.pulls) == ((0, 1), (1,), True)


def test_series_can_be_chosen():
    chosen = commands._points(stride, "get-dst-strided,descriptors", quick=False)
    assert {p.series for p in chosen} == {"get-dst-strided", "descriptors"} and chosen[
        0
    ].operation == "get"
    assert [p.series for p in commands._points(latency, "mcp", quick=False)] == ["mcp"]
    assert len(commands._points(element, "", quick=False)) == len(element.points())
    with pytest.raises(CommandError, match="no series 'nothing'"):
        commands._points(stride, "put-dst-strided,nothing", quick=False)
    with pytest.raises(CommandError, match="bench element: no series"):
        commands._points(element, "direct", quick=False)


def altered(test, series="", **values):
    return commands._points(test, series, False, options.Options(**values))


def test_size_and_stride_leave_the_points_that_have_them():
    for test in (stride, bidir):
        few = altered(test, size=8 * 100, stride=9)
        assert {p.x for p in few} == {9} and {p.series for p in few} == {
            p.series for p in test.points()
        }
        assert {p.source.length for p in few} - {8} == {800}
        assert {p.target.levels for p in few if p.source.length == 800} <= {(), ((100, 72),)}
    lists = altered(stride, "put-both-indexed", size=262144, stride=7)
    assert [len(p.target.entries) for p in lists] == [32768]
    assert {p.source.length for p in altered(block, size=777)} == {777}
    found = altered(element, size=65536, stride=3)
    assert {(p.x, p.series[-3:]) for p in found} == {(65536, "-x3")}
    assert altered(stride) == stride.points() and altered(element) == element.points()


@pytest.mark.parametrize("count", [1, 3, 4, 1000])
def test_iterations_are_the_transfers_of_a_point(count):
    for p in altered(matrix, iterations=count):
        assert p.iterations == count and p.transfers == min(4, count) == p.target.transfers
    assert {p.rounds for p in altered(latency, "fastpath,mcp", iterations=count)} == {count}
    assert {p.messages for p in altered(rate, iterations=count)} == {count}


def test_the_command_that_repeats_a_run_has_its_options():
    words = options.Options(size=1048576, iterations=1000000, both=True, duration=0.25).words()
    assert words == " --size 1048576 --iterations 1000000 --duration 0.25 --both"
    assert options.NONE.words() == "" and options.NONE.notes() == []


def test_elements_of_odd_size_begin_at_odd_places():
    for p in element.points():
        odd = (p.source.offset % 2, p.target.offset % 2)
        assert odd == (p.x % 2, p.x % 2) and (
            p.x % 2 == 0 or p.source.offset != p.target.offset or p.series.count("both")
        )


def test_bidir_has_one_way_and_both_ways_of_the_same_transfers():
    points = {(p.series, p.x): p for p in bidir.points()}
    for (series, x), p in points.items():
        if not series.endswith("-one-way"):
            alone = points[f"{series}-one-way", x]
            assert (p.senders, alone.senders) == ((0, 1), (0,)) and (p.source, p.target) == (
                alone.source,
                alone.target,
            )


def test_a_transpose_transposes():
    n = 4
    point = Point(
        "s",
        "transpose",
        *(dataclasses.replace(side, transfers=1) for side in matrix.transpose(n)),
        1,
    )
    source = point.source_memory(1, 0)[GUARD : GUARD + 2 * n * n * 8].reshape(n, 2 * n, 8)
    target = point.expected(1, 0)[GUARD : GUARD + 2 * n * n * 8].reshape(n, 2 * n, 8)
    assert (target[:, :n] == source[:, n:].transpose(1, 0, 2)).all() and (
        target[:, n:] == FILL
    ).all()


@pytest.mark.parametrize("axis", range(3))
def test_a_face_goes_to_the_halo_of_the_neighbour(axis):
    n = 4
    point = Point(
        "s", "face", *(dataclasses.replace(side, transfers=1) for side in matrix.face(axis, n)), 1
    )
    inside = [slice(1, n + 1)] * 3
    shape = (n + 2, n + 2, n + 2, 8)

    def layer(memory, index):
        where = list(inside)
        where[2 - axis] = index  # axis 0 is the last one in C order
        return memory[GUARD : GUARD + 8 * (n + 2) ** 3].reshape(shape)[tuple(where)]

    target = point.expected(1, 0)
    assert (layer(target, 0) == layer(point.source_memory(1, 0), n)).all()
    assert np.count_nonzero(target[: point.extent(point.target)] != FILL) <= 8 * n * n
