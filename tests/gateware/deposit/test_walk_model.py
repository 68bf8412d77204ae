"""The walk model against an enumeration of every byte."""

# SPDX-License-Identifier: BSD-2-Clause

from hypothesis import given, settings, strategies as st

from tests.gateware.models.walk import Piece, Walk, pieces, touched

WHOLE = dict(low=0, high=2**64 - 1)


@st.composite
def walks(draw, bounds=False):
    levels = draw(st.integers(0, 3))
    block = draw(st.sampled_from([1, 3, 8, 16, 31, 64, 200, 300]))
    stride = st.one_of(st.just(block), st.integers(-5000, 5000))
    strides = tuple(draw(stride) for _ in range(levels))
    counts = tuple(draw(st.integers(1, 5)) for _ in range(levels))
    total = draw(st.integers(1, 6000))
    if levels:
        total = block
        for count in counts:
            total *= count
    skip = draw(st.integers(0, total - 1))
    length = draw(st.integers(1, total - skip))
    start = draw(st.integers(2**20, 2**20 + 10000))
    low = draw(st.integers(2**20 - 3000, start)) if bounds else 0
    high = draw(st.integers(start, start + 8000)) if bounds else 2**63
    return Walk(start, low, high, block, strides, counts, length, skip)


@given(walks(), st.sampled_from([128, 256, 512, 4096]))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_pieces_are_the_bytes_in_order(walk, max_piece):
    got = pieces(walk, max_piece)
    assert [p.address + i for p in got for i in range(p.length)] == touched(walk)
    assert [p.last for p in got] == [False] * (len(got) - 1) + [True]


@given(walks(), st.sampled_from([128, 256, 512, 4096]))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_no_piece_is_too_long_or_crosses_4096(walk, max_piece):
    for p in pieces(walk, max_piece):
        assert 0 < p.length and p.address % 4 + p.length <= max_piece
        assert p.address // 4096 == (p.address + p.length - 1) // 4096


@given(walks(bounds=True))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_nothing_outside_the_bounds(walk):
    got = pieces(walk, 256)
    inside = all(walk.low <= a < walk.high for a in touched(walk))
    assert got[-1].error == (not inside)
    for p in got[:-1]:
        assert walk.low <= p.address and p.address + p.length <= walk.high


@given(walks(), st.data())
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_a_walk_in_two_parts_is_the_walk(walk, data):
    cut = data.draw(st.integers(0, walk.length))
    rest = walk.__dict__
    head = touched(Walk(**{**rest, "length": cut}))
    tail = touched(Walk(**{**rest, "length": walk.length - cut, "skip": walk.skip + cut}))
    assert head + tail == touched(walk)


def test_touching_blocks_are_one_piece():
    assert pieces(Walk(64, block=8, strides=(8,), counts=(16,), length=128, **WHOLE), 256) == [
        Piece(64, 128, True)
    ]


def test_a_long_block_is_cut_at_aligned_places():
    got = pieces(Walk(0x1010, block=0, strides=(), counts=(), length=600, **WHOLE), 256)
    assert [(p.address, p.length) for p in got] == [(0x1010, 240), (0x1100, 256), (0x1200, 104)]


def test_a_short_unaligned_block_is_not_cut():
    got = pieces(Walk(0x10F8, block=64, strides=(128,), counts=(2,), length=128, **WHOLE), 256)
    assert [(p.address, p.length) for p in got] == [(0x10F8, 64), (0x1178, 64)]


def test_a_nest_that_is_too_short_is_an_error():
    got = pieces(Walk(0, block=8, strides=(64,), counts=(2,), length=17, **WHOLE), 256)
    assert got == [Piece(0, 8), Piece(64, 8), Piece(0, 0, True, True)]
