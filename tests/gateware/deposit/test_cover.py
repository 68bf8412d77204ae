"""Which pieces are read together: RTL against model, model against every other way to read."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from migen import passive

from dibber.deposit.cover import HEAD_REQUEST, Cover

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.cover import HEAD, UNIT, cost, cover, down, element_walk, random_walk
from tests.gateware.models.drive import finish, sink, source
from tests.gateware.models.walk import Piece, Walk, pieces

FIELDS = ("offset", "length", "advance", "final", "error", "last", "address", "span", "units")
REQUEST = 512
WINDOW = 16


def run(items, max_request=REQUEST, seed=1, busy=1.0, out_busy=1.0, cycles=20000, crowded=0):
    """Put pieces through, None for a cycle without one; (reads as lists of picks, cycles of the
    picks).

    crowded : share of cycles
    """
    dut, random, out, when = Cover(window=WINDOW), Random(seed), [], []
    fields = [
        item
        and dict(
            address=item.address, length=item.length, error=int(item.error), last=int(item.last)
        )
        for item in items
    ]
    lasts = sum(item is not None and item.last for item in items)

    def main():
        yield dut.max_request.eq(max_request)
        yield from finish(lambda: sum(p[FIELDS.index("last")] for p in out) >= lasts, cycles)

    @passive
    def crowd():
        while True:
            yield dut.crowded.eq(int(random.random() < crowded))
            yield

    run_simulation(
        dut,
        [
            main(),
            crowd(),
            source(dut.sink, [None] * 2 * WINDOW + fields, random, busy),
            sink(dut.source, FIELDS, out, random, out_busy, when),
        ],
    )
    reads, read = [], []
    for pick in (dict(zip(FIELDS, p)) for p in out):
        read.append(pick)
        if pick["final"]:
            reads.append(read)
            read = []
    assert read == []
    return reads, when


def picked(read):
    """Addresses and lengths that the picks of a read mean, as `pick_layout` says."""
    unit, result = read[-1]["address"] // UNIT, []
    for pick in read:
        begin = (unit + pick["advance"]) * UNIT + pick["offset"]
        result.append((begin, pick["length"]))
        unit = (begin + pick["length"] - 1) // UNIT
    return result


def check(read, model):
    final = read[-1]
    assert (final["last"], final["error"]) == (model.last, model.error)
    assert not any(pick["last"] or pick["error"] for pick in read[:-1])
    if model.error:
        assert len(read) == 1 and final["length"] == 0
        return
    assert (final["address"], final["span"]) == (model.begin, model.end - model.begin)
    assert final["units"] == (model.end - 1) // UNIT - model.begin // UNIT + 1
    assert picked(read) == model.picks


@pytest.mark.parametrize("max_request, out_busy", [(128, 1.0), (512, 0.4), (4096, 1.0)])
@pytest.mark.parametrize("crowded", [0, 1])
def test_as_the_model(seed, max_request, out_busy, crowded):
    random = Random(seed * 10 + max_request)
    transfers = [pieces(random_walk(random), max_request) for _ in range(40)]
    items = [piece for transfer in transfers for piece in transfer]
    reads, _ = run(items, max_request, seed, out_busy=out_busy, crowded=crowded)
    models = cover(items, max_request, crowded)
    assert len(reads) == len(models)
    for read, model in zip(reads, models):
        check(read, model)
    assert any(len(read) > 3 for read in reads) and any(len(read) == 1 for read in reads)


@pytest.mark.parametrize("crowded", [0, 1])
def test_pieces_that_come_late_change_no_byte(seed, crowded):
    """With gaps between pieces fewer are merged, but the picks are the same bytes, and no read goes
    beyond them.
    """
    random = Random(seed)
    transfers = [pieces(random_walk(random), REQUEST) for _ in range(30)]
    items = []
    for transfer in transfers:
        for piece in transfer:
            items += [None] * random.choice([0] * 6 + [2, 9]) + [piece]
    reads, _ = run(items, seed=seed, busy=0.8, out_busy=0.7, crowded=crowded)
    wanted = [
        a + i for t in transfers for p in t for a, n in [(p.address, p.length)] for i in range(n)
    ]
    got = []
    for read in reads:
        if read[-1]["error"]:
            continue
        parts = picked(read)
        got += [a + i for a, n in parts for i in range(n)]
        begin, end = read[-1]["address"], read[-1]["address"] + read[-1]["span"]
        assert begin == min(a for a, _ in parts) and end == max(a + n for a, n in parts)
        assert begin // 4096 == (end - 1) // 4096 and end - begin <= REQUEST
    assert got == wanted


def behind_head(items, **how):
    """The reads of pieces that come late enough in their transfer to be read by `max_request`."""
    before = [Piece(2**30 + 2**20 * n, HEAD) for n in range(5)]
    reads, _ = run([*before, *items], **how)
    return reads[len(before) :]


@pytest.mark.parametrize(
    "place, spans", [(0, [64, 64, 128, 256, 512, 512]), (100, [28, 64, 64, 256, 512, 512, 100])]
)
def test_the_first_bytes_are_read_by_short_reads(place, spans):
    reads, _ = run(pieces(Walk(2**32 + place, 0, 2**64, 0, (), (), 1536), HEAD_REQUEST))
    assert [read[-1]["span"] for read in reads] == spans


@pytest.mark.parametrize(
    "stride, crowded, bytes_down, requests",
    [
        (2, 0, 19, 1 / 4),
        (3, 0, 25.5, 3 / 8),
        (4, 0, 28, 1),
        (5, 0, 28, 1),
        (8, 0, 28, 1),
        (64, 0, 28, 1),
        (2, 1, 20.75, 1 / 32),
        (4, 1, 30, 1 / 2),
        (6, 1, 33, 3 / 4),
        (7, 1, 28, 1),
        (-2, 0, 19, 1 / 4),
        (-3, 0, 25.5, 3 / 8),
        (-3, 1, 25.5, 3 / 8),
    ],
)
def test_cost_of_elements(stride, crowded, bytes_down, requests):
    """8-byte elements: PCIe bytes downstream and requests for each, as the formula has them."""
    count = 256
    reads = behind_head(
        pieces(
            element_walk(8, 8 * stride, count, 2**33 + 2**20 - (8 if stride < 0 else 0)), REQUEST
        ),
        crowded=crowded,
    )
    spans = [(read[-1]["address"], read[-1]["address"] + read[-1]["span"]) for read in reads]
    assert sum(down(*span) for span in spans) == bytes_down * count
    assert len(reads) == requests * count


@pytest.mark.parametrize("upstream", [False, True])
def test_no_other_choice_takes_less(seed, upstream):
    """Every way to cut ascending pieces into reads, by the bytes that decide: none is better than
    the model's.
    """
    random = Random(seed)
    for _ in range(60):
        block = random.choice([1, 3, 4, 8, 12, 24, 70])
        walk = element_walk(block, block + random.randint(0, 60), 9, random.randrange(4096))
        items = pieces(walk, 4096)
        if len({item.address // 4096 for item in items}) > 1:
            continue
        spans = [(item.address, item.address + item.length) for item in items]
        cuts = len(spans) - 1
        least = min(
            sum(cost(begin, end, upstream) for begin, end in grouped(spans, choice))
            for choice in range(2**cuts)
        )
        assert (
            sum(
                cost(read.begin, read.end, upstream)
                for read in cover(items, 4096, upstream, head=-1)
            )
            == least
        )


def grouped(spans, choice):
    """Spans that are read together where the bit of `choice` between them is 0."""
    result = [spans[0]]
    for n, span in enumerate(spans[1:]):
        if choice >> n & 1:
            result.append(span)
        else:
            result[-1] = (result[-1][0], span[1])
    return result


def test_levels_that_touch_are_one_pick():
    """Rows of 24 bytes of which each begins where the one before it ends: as one contiguous run."""
    walk = Walk(2**32, 0, 2**64, 8, (8, 24), (3, 40), 960)
    reads = behind_head(pieces(walk, REQUEST))
    assert [(r[-1]["address"] - 2**32, r[-1]["span"], len(r)) for r in reads] == [
        (0, 504, 1),
        (504, 24, 1),
        (528, 432, 1),
    ]


@pytest.mark.parametrize("crowded, spans", [(0.2, [56, 56, 32]), (0.8, [176])])
def test_upstream_counts_when_it_is_crowded_most_of_the_time(crowded, spans):
    reads = behind_head(pieces(element_walk(8, 24, 8), REQUEST), crowded=crowded, seed=3)
    assert [read[-1]["span"] for read in reads] == spans


def test_transfers_are_not_read_together():
    """However near they lie."""
    items = [Piece(2**32 + 8 * n, 8, last=True) for n in range(6)]
    reads, _ = run(items)
    assert [(read[-1]["address"] - 2**32, len(read)) for read in reads] == [
        (8 * n, 1) for n in range(6)
    ]


def test_the_first_unit_of_a_page_is_not_behind_its_last():
    reads, _ = run([Piece(2**32 + 4088, 8), Piece(2**32 + 8, 8, last=True)], 4096, crowded=1)
    assert [(read[-1]["address"] - 2**32, read[-1]["span"]) for read in reads] == [
        (4088, 8),
        (8, 8),
    ]


def test_an_error_is_not_merged():
    """Whatever its address is."""
    for address in (0, 8, 16):
        items = [Piece(2**32, 8), Piece(2**32 + address, 0, last=True, error=True)]
        reads, _ = run(items)
        assert [(len(read), read[-1]["error"]) for read in reads] == [(1, 0), (1, 1)]


def test_pieces_need_not_come_each_cycle():
    items = [
        None if n % 4 else piece
        for piece in pieces(element_walk(8, 16, 4), REQUEST)
        for n in range(4)
    ]
    reads, _ = run(items)
    assert [(read[-1]["span"], len(read)) for read in reads] == [(56, 4)]


def test_pieces_that_begin_before_the_one_before_them():
    """In its unit, and ending in it, behind it, or in another unit."""
    for length in (4, 16, 60, 70):
        items = [Piece(2**32 + 32, 8), Piece(2**32 + 8, length, last=True)]
        reads = behind_head(items)
        assert len(reads) == 1
        check(reads[0], cover(items, REQUEST, head=0)[0])
        assert reads[0][-1]["address"] == 2**32 + 8


def test_a_read_has_64_picks_at_most():
    walk = element_walk(1, 0, 200)
    reads, _ = run(pieces(walk, REQUEST))
    assert [len(read) for read in reads] == [64, 64, 64, 8]
    assert all(read[-1]["span"] == 1 for read in reads)


def test_cycles():
    """4 to the pick of a transfer's last piece; a piece that none follows waits 4 more; then a pick
    a cycle.
    """
    alone, n = Piece(2**32, 8, last=True), 100
    _, when = run([alone])
    first = when[0]
    _, when = run([Piece(2**32, 8)] + [None] * 20 + [alone])
    assert when[0] == first + 4
    for stride in (16, 80):
        _, when = run(pieces(element_walk(8, stride, n), REQUEST))
        assert when[-1] - when[0] == n - 1
