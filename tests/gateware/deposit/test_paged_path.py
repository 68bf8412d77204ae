"""From pages of one host's memory to pages of the other's: send and scatter engine with page tables
of their own.
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

import pytest

from dibber.interface.description import C, RIGHT, STATUS

from tests.gateware.models.command import command
from tests.gateware.models.cut import cut, packets_of
from tests.gateware.models.deposit_path import LENGTH, PUTS, SOURCE, TARGET, Path, memory
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.page_tables import Tables, paged
from tests.gateware.models.walk import Walk, touched

FIRST = 0x5D3  # the regions' first byte in their first page
TIMEOUT = 6250  # of the translators: no table is read before
ABSENT = 1
PAGE = 4096

# Path ---------------------------------------------------------------------------------------------


class PagedPath(Path):
    """A Path whose source, key 1, or target, key 2, or both lie in scattered pages of 4 KiB.

    Parameters
    ----------
    tables        : Tables of two regions, the source's and the target's
    sides         : "source", "target", "both"
    table_latency : cycles to read a line of a table
    table_fault   : as `fault` of HostRead, for tables
    cut           : {PSN: blocks}: what comes of these packets before they are cut short
    """

    def __init__(
        self,
        jobs,
        data_width,
        tables,
        sides="both",
        table_latency=(20, 60),
        table_fault=None,
        cut={},
        **how,
    ):
        super().__init__(jobs, data_width, **how)
        self.tables, self.cut = tables, dict(cut)
        self.bases = dict(zip((1, 2), (SOURCE, TARGET)))
        for key, name, index in zip((1, 2), ("source", "target"), tables.shift):
            if sides in (name, "both"):
                self.bases[key] = paged(index, FIRST)
        self.regions = (
            (1, self.bases[1], RIGHT.LOCAL_READ),
            (2, self.bases[2], RIGHT.REMOTE_WRITE),
        )
        self.pages = [self.dut.send.pages, self.dut.scatter.pages]
        self.tables_read = [
            HostRead(
                pages.reads,
                pages.completions,
                tables.memory,
                self.random,
                table_latency,
                split=False,
                fault=table_fault,
            )
            for pages in self.pages
        ]

    def set_up(self):
        for pages in self.pages:
            yield pages.extended_tags.eq(1)
            yield pages.directory.strobe.eq(1)
        for index, shift in self.tables.shift.items():
            for pages in self.pages:
                yield pages.directory.index.eq(index)
                yield pages.directory.table.eq(self.tables.table[index])
                yield pages.directory.shift.eq(shift)
            yield
        for pages in self.pages:
            yield pages.directory.strobe.eq(0)
        for _ in range(TIMEOUT + 20):
            yield

    def beside(self):
        return [host.run() for host in self.tables_read]

    def hand_over(self, values):
        start = len(self.payload)
        super().hand_over(values)
        blocks = self.cut.pop(self.deposits[-1]["psn"], None)
        if blocks is not None:
            self.payload[start + blocks :] = [[dict(dat=0, bytes=self.width, last=1, error=1)]]

    def bus(self, walk, length):
        """Bus address of each byte of a walk (key, offset, block, strides, counts), None where
        there is no page.
        """
        key, offset, block, strides, counts = walk
        base = self.bases[key]
        return [
            self.tables.where(a)[0]
            for a in touched(
                Walk(base + offset, base, base + LENGTH, block, strides, counts, length)
            )
        ]

    def expected(self, puts):
        """Bytes at the target after puts of (source, target, length), in order."""
        result = {}
        for source, target, length in puts:
            result.update(zip(self.bus(target, length), map(memory, self.bus(source, length))))
        return result


def tables_of(seed, absent=()):
    """Tables of two regions; `absent` has (which of them, page)."""
    tables = Tables(Random(seed), 2, pages=LENGTH // PAGE + 1, shifts=(12,))
    for n, page in absent:
        tables.pages[list(tables.shift)[n]][page] |= ABSENT
    return tables


def place(page, byte=0):
    """Offset in a region of a byte of one of its pages."""
    return page * PAGE + byte - FIRST


# Bytes --------------------------------------------------------------------------------------------

FAR = [  # an element in each page, or in every second; a run over page ends
    ((1, 16, 8, (8192,), (100,)), (2, 77, 0, (), ()), 800),
    ((1, 40_000, 0, (), ()), (2, 3, 8, (8192,), (100,)), 800),
    ((1, 500_000, 8, (-4096,), (90,)), (2, 900_000, 4, (-4100,), (180,)), 720),
    ((1, 3, 3000, (5000,), (4,)), (2, 4090, 12_000, (), ()), 12_000),
]


@pytest.mark.parametrize(
    "data_width, busy, sides",
    [(64, 0.7, "both"), (128, 1.0, "both"), (128, 0.7, "source"), (64, 1.0, "target")],
)
def test_puts_are_byte_exact(data_width, busy, sides, seed):
    puts = PUTS + FAR
    path = PagedPath(
        [(command(*put), {}) for put in puts],
        data_width,
        tables_of(seed),
        sides,
        seed=seed,
        busy=busy,
    ).run(lambda p: len(p.ended) == len(puts) and len(p.done) == len(p.packets), 40_000)
    assert path.writes.memory == path.expected(puts)
    assert {status for _, status, _ in path.ended} == {STATUS.OK}
    assert all(done[2] == 0 for done in path.done)


# Faults -------------------------------------------------------------------------------------------

HOLE = 9  # the page that is not there
GOOD = ((1, 8, 8, (4096,), (8,)), (2, 60_000, 8, (4104,), (8,)), 64)
BEFORE = (0, 1, 40, 99)  # elements before the one in HOLE


def coming_to_the_hole(key, before):
    """A walk of 100 elements of 8 bytes: as many as `before`, then one in the hole. More than a few
    are near each other.
    """
    stride = 64 if before > HOLE // 2 else 8192
    return (key, place(HOLE, 16) - before * stride, 8, (stride,), (100,))


@pytest.mark.parametrize("data_width, busy", [(64, 0.8), (128, 1.0)])
def test_a_source_page_that_is_not_there(data_width, busy, seed):
    """At the start, in the middle and at the end of a transfer: READ_ERROR, and the transfer behind
    it is whole.

    Of the transfer itself those packets land that end before the hole.
    """
    jobs, landing, packets = [], [], []
    for before in BEFORE:
        walk = coming_to_the_hole(1, before)
        whole = [packet for packet in cut(800) if sum(packet) <= 8 * before]
        jobs += [(command(walk, (2, 0, 0, (), ()), 800), {}), (command(*GOOD), {})]
        landing += [(walk, (2, 0, 0, (), ()), sum(whole[-1]) if whole else 0), GOOD]
        packets += [*whole, (0, 64)]
    path = PagedPath(jobs, data_width, tables_of(seed, [(0, HOLE)]), seed=seed, busy=busy).run(
        lambda p: len(p.ended) == len(jobs) and len(p.done) == len(packets), 20_000
    )
    assert [status for _, status, _ in path.ended] == [STATUS.READ_ERROR, STATUS.OK] * len(BEFORE)
    assert [packet[-2:] for packet in path.packets] == packets
    assert path.writes.memory == path.expected(landing) and path.lines == []


@pytest.mark.parametrize("data_width, busy", [(64, 0.8), (128, 1.0)])
def test_a_target_page_that_is_not_there(data_width, busy, seed):
    """A packet with the hole in it is refused with REMOTE_READ_ERROR, nothing of it behind the hole
    is written, and the
    next packet is whole."""
    jobs, bad = [], []
    for before in BEFORE:
        bad.append(((1, 5000, 0, (), ()), coming_to_the_hole(2, before), 800))
        jobs += [(command(*bad[-1]), {}), (command(*GOOD), {})]
    path = PagedPath(jobs, data_width, tables_of(seed, [(1, HOLE)]), seed=seed, busy=busy).run(
        lambda p: len(p.done) == len(BEFORE) * (packets_of(800) + 1), 20_000
    )
    expected, outcomes = {}, []
    for source, target, length in bad:
        data, where = list(map(memory, path.bus(source, length))), path.bus(target, length)
        for begin, size in cut(length):
            part = where[begin : begin + size]
            good = part[: part.index(None)] if None in part else part
            outcomes.append((0, STATUS.OK) if good == part else (1, STATUS.REMOTE_READ_ERROR))
            expected.update(zip(good, data[begin:]))
        outcomes.append((0, STATUS.OK))
        expected |= path.expected([GOOD])
    assert [done[2:] for done in path.done] == outcomes
    assert outcomes.count((1, STATUS.REMOTE_READ_ERROR)) >= len(BEFORE)
    assert path.writes.memory == expected


@pytest.mark.parametrize("data_width", [64, 128, 256])
def test_a_table_that_cannot_be_read(data_width, seed):
    """The same, and when it can be read again the same transfers are whole."""
    tables = tables_of(seed)
    state = {"fault": "error"}
    put = ((1, 16, 8, (8192,), (100,)), (2, 3, 8, (8192,), (100,)), 800)
    whole = packets_of(800)
    for sides, status, refused in (
        ("source", [STATUS.READ_ERROR], 0),
        ("target", [STATUS.OK], whole),
    ):
        state["fault"] = "error"
        path = PagedPath(
            [(command(*put), {}), (command(*put), {})],
            data_width,
            tables,
            sides,
            seed=seed,
            table_fault=lambda address: state["fault"],
        )

        def one_after_the_other(first, second):
            """The second is queued when all of the first is over, so that it reads the table
            again.
            """
            yield first
            while not path.ended or len(path.done) < refused:
                yield None
            state["fault"] = None
            yield second

        path.jobs = one_after_the_other(*path.jobs)
        path.run(lambda p: len(p.ended) == 2 and len(p.done) == refused + whole, 20_000)
        assert [s for _, s, _ in path.ended] == status + [STATUS.OK]
        assert [done[2:] for done in path.done] == [(1, STATUS.REMOTE_READ_ERROR)] * refused + [
            (0, STATUS.OK)
        ] * whole
        assert path.writes.memory == path.expected([put])


# Aborts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_width, table_latency", [(64, (300, 400)), (128, (20, 20))])
def test_a_read_error_while_pieces_wait_for_their_page(data_width, table_latency, seed):
    """The walk is ended when it is in the walker yet and when its last piece waits in the
    translator.
    """
    counts, jobs, bad, tables = (3, 12, 30, 200), [], set(), tables_of(seed)
    for n, count in enumerate(counts):
        walk = (1, place(n + 1, 32), 8, (12288 if count < 60 else 4096,), (count,))
        jobs += [(command(walk, (2, 0, 0, (), ()), 8 * count), {}), (command(*GOOD), {})]
        bad.add(tables.pages[list(tables.shift)[0]][n + 1] | 32)
    path = PagedPath(
        jobs,
        data_width,
        tables,
        seed=seed,
        table_latency=table_latency,
        fault=lambda a: "error" if a in bad else None,
    ).run(lambda p: len(p.ended) == len(jobs) and len(p.done) == len(counts), 30_000)
    assert [status for _, status, _ in path.ended] == [STATUS.READ_ERROR, STATUS.OK] * len(counts)
    assert path.writes.memory == path.expected([GOOD]) and path.lines == []


@pytest.mark.parametrize("after", [0, 30, 500])
def test_a_rewind_while_pieces_wait_for_their_page(after, seed):
    """The job gives way whatever of it is in the translator, between two packets or before its
    first one; what follows in
    the new epoch is whole."""
    long = ((1, 16, 8, (4096,), (250,)), (2, 0, 0, (), ()), 2000)
    path = PagedPath(
        [(command(*long), {}), (command(*GOOD), dict(epoch=1))],
        64,
        tables_of(seed),
        seed=seed,
        table_latency=(200, 300),
    )
    first, second = path.jobs
    rewound = []

    def jobs():
        yield first
        while not rewound:
            yield None
        yield second

    def rewind():
        while not path.tables_read[0].issued:
            yield
        for _ in range(after):
            yield
        epochs = path.dut.send.epochs
        yield epochs.epoch.eq(1)
        yield epochs.rewind.eq(1)
        yield
        yield epochs.rewind.eq(0)
        rewound.append(True)

    path.jobs = jobs()
    hosts = path.beside()
    path.beside = lambda: [*hosts, rewind()]
    path.run(lambda p: len(p.ended) == 2 and len(p.done) == len(p.packets), 20_000)
    assert [status for _, status, _ in path.ended] == [STATUS.REWOUND, STATUS.OK]
    *before, good = [packet[-2:] for packet in path.packets]
    assert before == cut(2000)[: len(before)] and len(before) < packets_of(2000) and good == (0, 64)
    assert path.writes.memory == path.expected(
        [(*long[:2], sum(before[-1]) if before else 0), GOOD]
    )


@pytest.mark.parametrize("data_width, table_latency", [(64, (20, 20)), (128, (300, 400))])
def test_a_packet_that_is_cut_short_while_pieces_wait_for_their_page(
    data_width, table_latency, seed
):
    """A transfer's last one, before its last block: it reports nothing, writes nothing of what did
    not come, and the next one is whole.
    """
    jobs, short, come, reports = [], {}, [], []
    for n, count in enumerate((4, 60, 100)):
        source, target = (1, 9000 * n, 0, (), ()), (2, place(3 * n, 40), 8, (8192,), (count,))
        psn = 10 * len(jobs)
        *whole, (begin, size) = cut(8 * count)
        blocks = (size - 1) // C.BLOCK_BYTES
        short[psn + len(whole)] = blocks
        come.append((source, target, begin + blocks * C.BLOCK_BYTES))
        reports += [*range(psn, psn + len(whole)), psn + 10]
        jobs += [(command(source, target, 8 * count), {}), (command(*GOOD), {})]
    path = PagedPath(
        jobs, data_width, tables_of(seed), seed=seed, table_latency=table_latency, cut=short
    ).run(lambda p: len(p.done) == len(reports), 20_000)
    assert [done[1:] for done in path.done] == [(psn, 0, 0) for psn in reports]
    allowed = path.expected(come)
    assert path.writes.memory.items() <= (allowed | path.expected([GOOD])).items()
    assert path.expected([GOOD]).items() <= path.writes.memory.items()
