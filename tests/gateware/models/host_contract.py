"""What each host side promises to the engines behind it, as tests: docs/design/host.md.

A sibling of HostInterface runs them with a class in its own test file:

    class TestMyHost(HostContract):
        def bench(self, random, **options):
            return MyBench(random, **options)

A bench is a `HostBench` around an `observed` sibling. Its host is slow in every way that the
sibling allows. It has these attributes:

    base, size             : host memory that may be read and written
    peek(address, length)  : generator, returns bytes of host memory
    poke(address, data)    : generator, writes host memory from its own side
    store(offset, word)    : generator, a store of 4 bytes to BAR 0
    load(offset)           : generator, returns 4 bytes of BAR 0
    withdraw(), allow()    : generators; from now on the host takes no requests, or takes them
                             again; only with `withdraws`
    processes()            : list of passive generators
"""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from tests.gateware.models import compiled
from dibber.interface.description import COUNTERS, C
from tests.gateware.models.drive import finish
from migen import Cat, Module, Signal, passive
from tests.gateware.host.tlps import lines_of, offer

PATIENCE = 600  # cycles that a request may wait while the host takes none


def observed(host, *others):
    """A design with `host` and what belongs to it. `stirs` is 1 in cycles in which the engines must
    look at something.
    """
    dut = Module()
    dut.submodules += host, *others
    dut.host, dut.stirs = host, Signal()
    pulses = [host.marked, host.lost, host.completions.valid, *host.counters.values()]
    pulses += [signal for port in host.ports.values() for signal in (port.we, port.re)]
    dut.comb += dut.stirs.eq(Cat(*pulses) != 0)
    return dut


class HostBench:
    """What the benches have in common: the engines' side.

    memory  : port name -> dict of bytes behind it; `value` may name a function that replaces a read
    marks   : cycles of `marked`
    answers : tag -> list of completions (status, lower, count, bytes, data), as they came
    counts  : counter name -> pulses
    """

    def __init__(self, dut, random):
        self.dut, self.host, self.random = dut, dut.host, random
        host = self.host
        self.width = len(host.writes.dat) // 8
        self.memory = {name: {} for name in host.ports}
        self.value = None
        self.marks, self.answers = [], {}
        self.counts = dict.fromkeys(host.counters, 0)
        self.lost = 0
        self.cycle = 0

    @passive
    def engines(self):
        """Memories with the timing of a line_port, and collectors of all that comes out."""
        host, size = self.host, self.width
        lines = {}  # port name -> lines that are still to be shown
        beats = []
        while True:
            self.cycle += 1
            for name in list(lines):
                yield host.ports[name].dat_r.eq(lines[name].pop(0))
                if not lines[name]:
                    del lines[name]
            if not (yield self.dut.stirs):
                yield
                continue
            for name, port in host.ports.items():
                memory = self.memory[name]
                if (yield port.we):
                    adr, dat, be = (yield port.adr), (yield port.dat_w), (yield port.be)
                    for n in range(size):
                        if be >> n & 1:
                            memory[adr * size + n] = dat >> 8 * n & 0xFF
                elif (yield port.re):
                    adr = yield port.adr
                    line = sum(memory.get(adr * size + n, 0) << 8 * n for n in range(size))
                    if self.value:
                        line = sum(self.value() << 32 * n for n in range(size // 4))
                    lines[name] = [*lines.get(name, []), line, 0][-2:]
            if (yield host.marked):
                self.marks.append(self.cycle)
            self.lost += yield host.lost
            for name, pulse in host.counters.items():
                self.counts[name] += yield pulse
            completions = host.completions
            if (yield completions.valid):
                beat = {}
                for name in ("dat", "tag", "status", "lower", "count", "bytes", "requester"):
                    beat[name] = yield getattr(completions, name)
                beat["flaw"] = yield completions.flaw
                beats.append(beat)
                assert beat["tag"] == beats[0]["tag"], "two completions are mixed"
                if (yield completions.last):
                    self.take(beats)
                    beats = []
            yield

    def take(self, beats):
        first = beats[0]
        data = b"".join(beat["dat"].to_bytes(self.width, "little") for beat in beats)
        offset = first["lower"] % self.width
        if first["status"] == 0:
            assert len(beats) == (offset + first["bytes"] - 1) // self.width + 1
        else:
            assert len(beats) == 1
        self.answers.setdefault(first["tag"], []).append(
            (
                first["status"],
                first["lower"],
                first["count"],
                data[offset : offset + first["bytes"]] if first["status"] == 0 else b"",
            )
        )

    # What engines do ------------------------------------------------------------------------------

    def write(self, address, data, mark=0):
        yield from offer(
            self.host.writes,
            lines_of(address, data, 8 * self.width),
            address=address,
            length=len(data),
            mark=mark,
        )

    def read(self, address, length, tag):
        yield from offer(self.host.reads, [None], address=address, length=length, tag=tag)

    def post(self, address, data, vector=0, interrupt=0):
        yield from offer(
            self.host.posts,
            [None],
            address=address,
            dat=int.from_bytes(data, "little"),
            vector=vector,
            interrupt=interrupt,
        )

    def answer(self, tag, length, cycles=3000):
        """Wait until a read has ended; (status, bytes) of it. Its completions must agree."""

        def ended():
            parts = self.answers.get(tag, [])
            return bool(parts) and (
                parts[-1][0] != 0 or sum(len(data) for _, _, _, data in parts) == length
            )

        yield from finish(ended, cycles)
        parts = self.answers.pop(tag)
        left, address = length, parts[0][1]
        for status, lower, count, data in parts:
            if status:
                return status, b""
            assert (lower, count) == (address % 128, left)
            left, address = left - len(data), address + len(data)
            assert left == 0 or address % 64 == 0
        return 0, b"".join(data for _, _, _, data in parts)

    def vector(self, number, address, word):
        """Set an entry of the MSI-X table."""
        entry = C.MSIX_TABLE_BASE + 16 * number
        for n, value in enumerate((address & 0xFFFFFFFF, address >> 32, word, 0)):
            yield from self.store(entry + 4 * n, value)

    def pause(self, cycles):
        for _ in range(cycles):
            yield

    def run(self, *mains, cycles=40000):
        """Run the generators `mains` until all have ended."""

        @passive
        def limit():
            while True:
                assert self.cycle < cycles, "did not come to rest"
                yield

        compiled.run_simulation(self.dut, [*mains, self.engines(), limit(), *self.processes()])


class HostContract:
    """The promises. `withdraws`: the host can stop to take requests."""

    withdraws = True
    # The longest write and read of the tests, in bytes.
    payload, request = 256, 512

    def bench(self, random):
        raise NotImplementedError

    def piece(self, random, bench, longest):
        """(address, length) in the first half of the bench's memory; not across 4 KiB."""
        length = random.choice((1, 3, 8, 13, 64, random.randrange(1, longest + 1), longest))
        place = random.randrange(bench.size // 2 - length)
        if place // 4096 != (place + length - 1) // 4096:
            place = (place + length - 1) // 4096 * 4096
        return bench.base + place, length

    # Writes ---------------------------------------------------------------------------------------

    def test_it_has_what_the_core_uses(self, seed):
        host = self.bench(Random(seed)).host
        names = """writes marked reads completions posts open halted ports counters max_payload
            max_request running enable discard lost id extended_tags leaving"""
        assert all(hasattr(host, name) for name in names.split())
        assert set(host.ports) == {"host", "firmware", "endpoints"}
        known = {name for name, _ in COUNTERS}
        assert host.counters.keys() <= known

    def test_writes_of_any_length_and_alignment_land_whole_and_in_their_order(self, seed):
        """They overlap, so that a later write must not land before an earlier one."""
        random = Random(seed)
        bench = self.bench(random)
        image = bytearray(bench.size // 2)
        marked = []

        def main():
            yield from bench.poke(bench.base, bytes(len(image)))
            for _ in range(50):
                address, length = self.piece(random, bench, self.payload)
                if random.random() < 0.5:
                    address = bench.base + address % 512
                data = random.randbytes(length)
                mark = int(random.random() < 0.5)
                yield from bench.write(address, data, mark)
                if mark:
                    marked.append(bench.cycle)
                image[address - bench.base :][:length] = b""
                place = address - bench.base
                image[place : place + length] = data
                if random.random() < 0.2:
                    yield from bench.pause(random.randrange(40))
            yield from bench.write(bench.base, image[:1], 1)
            marked.append(bench.cycle)
            yield from finish(lambda: len(bench.marks) == len(marked), 3000)
            yield from bench.pause(200)
            assert (yield from bench.peek(bench.base, len(image))) == image

        bench.run(main())
        # A mark never comes before its write was taken, and none comes twice.
        assert len(bench.marks) == len(marked)
        assert all(taken <= mark for taken, mark in zip(marked, bench.marks))

    def test_a_read_behind_a_mark_returns_what_was_written(self, seed):
        random = Random(seed)
        bench = self.bench(random)

        def main():
            for n in range(12):
                address, length = self.piece(random, bench, 64)
                data = random.randbytes(length)
                yield from bench.write(address, bytes(length), 0)
                yield from bench.write(address, data, 1)
                yield from finish(lambda: len(bench.marks) == n + 1, 2000)
                yield from bench.read(address, length, n % 8)
                assert (yield from bench.answer(n % 8, length)) == (0, data)

        bench.run(main())

    # Reads ----------------------------------------------------------------------------------------

    def test_reads_of_any_length_and_alignment_are_answered_by_their_tag(self, seed):
        random = Random(seed)
        bench = self.bench(random)
        image = random.randbytes(bench.size // 2)

        def main():
            yield from bench.poke(bench.base, image)
            free, waiting = list(range(24)), []
            for _ in range(40):
                while not free:
                    tag, place, length = waiting.pop(random.randrange(len(waiting)))
                    status, data = yield from bench.answer(tag, length)
                    assert (status, data) == (0, image[place : place + length])
                    free.append(tag)
                address, length = self.piece(random, bench, self.request)
                tag = free.pop(random.randrange(len(free)))
                yield from bench.read(address, length, tag)
                waiting.append((tag, address - bench.base, length))
            for tag, place, length in waiting:
                answer = yield from bench.answer(tag, length)
                assert answer == (0, image[place : place + length])

        bench.run(main())
        assert not bench.answers

    def test_a_read_that_the_host_refuses_ends_with_an_error_and_the_others_go_on(self, seed):
        random = Random(seed)
        bench = self.bench(random)

        def main():
            yield from bench.poke(bench.base, bytes(range(64)))
            for n in range(4):
                yield from bench.read(bench.base + n, 8, 0)
                yield from bench.read(bench.base + 2 * bench.size + 16 * n, 8, 1)
                status, data = yield from bench.answer(1, 8)
                assert status and not data
                answer = yield from bench.answer(0, 8)
                assert answer == (0, bytes(range(n, n + 8)))

        bench.run(main())

    # Posts ----------------------------------------------------------------------------------------

    def test_an_entry_lands_behind_the_marked_writes_before_it_and_its_interrupt_behind_it(
        self, seed
    ):
        random = Random(seed)
        bench = self.bench(random)
        data, queue, doorbell = bench.base, bench.base + 0x400, bench.base + 0x800
        rounds = 8

        @passive
        def watch():
            """Whenever an entry or an interrupt is seen, so is all that comes before it."""
            while True:
                rung = int.from_bytes((yield from bench.peek(doorbell, 4)), "little")
                entries = yield from bench.peek(queue, 32 * rounds)
                shown = [n for n in range(rounds) if entries[32 * n] == n + 1]
                assert shown == list(range(len(shown)))
                assert rung <= len(shown)
                landed = yield from bench.peek(data, rounds)
                assert all(landed[n] == n + 1 for n in shown)
                yield

        def main():
            yield from bench.poke(bench.base, bytes(0xC00))
            for n in range(rounds):
                yield from bench.vector(n % C.VECTORS, doorbell, n + 1)
                yield from bench.write(data + n, bytes([n + 1]), 1)
                if random.random() < 0.5:
                    # Not marked, so it may land before the entry or behind it.
                    yield from bench.write(data + 0x100, random.randbytes(200), 0)
                yield from finish(lambda: len(bench.marks) == n + 1, 2000)
                yield from bench.post(
                    queue + 32 * n, bytes([n + 1] * 32), vector=n % C.VECTORS, interrupt=1
                )
            yield from finish(lambda: bench.counts["INTERRUPTS"] == rounds, 3000)
            yield from bench.pause(300)
            assert int.from_bytes((yield from bench.peek(doorbell, 4)), "little") == rounds
            assert (yield from bench.peek(queue, 32 * rounds)) == b"".join(
                bytes([n + 1] * 32) for n in range(rounds)
            )

        bench.run(main(), watch())
        assert bench.counts["POSTS"] == rounds

    def test_what_a_load_returns_does_not_run_ahead_of_the_entries_before_it(self, seed):
        random = Random(seed)
        bench = self.bench(random)
        queue, rounds = bench.base, 8
        # The port shows how many entries have left.
        bench.value = lambda: bench.counts["POSTS"]

        def posts():
            yield from bench.poke(queue, bytes(32 * rounds))
            for n in range(rounds):
                yield from bench.post(queue + 32 * n, bytes([n + 1] * 32))
                if random.random() < 0.3:
                    yield from bench.write(queue + 0x800, bytes(64), 0)

        def loads():
            seen = 0
            while seen < rounds:
                seen = yield from bench.load(C.HOST_BASE + 0x40)
                entries = yield from bench.peek(queue, 32 * rounds)
                assert all(entries[32 * n] == n + 1 for n in range(seen))

        bench.run(posts(), loads())

    # BAR 0 ----------------------------------------------------------------------------------------

    def test_stores_and_loads_reach_the_ports_and_keep_their_order(self, seed):
        random = Random(seed)
        bench = self.bench(random)
        windows = {"firmware": C.FIRMWARE_BASE, "endpoints": C.ENDPOINT_BASE, "host": C.HOST_BASE}
        image = {}

        def main():
            for _ in range(40):
                name, base = random.choice(list(windows.items()))
                offset = 4 * random.randrange(16)
                if random.random() < 0.6:
                    word = random.getrandbits(32)
                    yield from bench.store(base + offset, word)
                    image[name, offset] = word
                else:
                    word = yield from bench.load(base + offset)
                    assert word == image.get((name, offset), 0)

        bench.run(main())
        assert bench.counts["TLP_UNSUPPORTED"] == bench.counts["TLP_MALFORMED"] == 0

    def test_a_load_outside_of_all_windows_reads_as_ones_and_is_counted(self, seed):
        bench = self.bench(Random(seed))

        def main():
            yield from bench.store(C.HOST_BASE + 0x2000, 5)
            assert (yield from bench.load(C.HOST_BASE + 0x2000)) == 0xFFFFFFFF
            yield from bench.store(C.FIRMWARE_BASE, 7)
            assert (yield from bench.load(C.FIRMWARE_BASE)) == 7

        bench.run(main())
        assert bench.counts["TLP_UNSUPPORTED"] == 2

    # A Host that Takes Nothing --------------------------------------------------------------------

    def test_requests_wait_while_the_host_takes_none_and_loads_do_not(self, seed):
        if not self.withdraws:
            return
        random = Random(seed)
        bench = self.bench(random)
        data = [random.randbytes(40) for _ in range(8)]

        def main():
            yield bench.host.running.eq(1)
            yield from bench.poke(bench.base, bytes(1024))
            yield from bench.withdraw()
            yield from bench.pause(4)
            yield from bench.write(bench.base, b"first", 1)
            yield from bench.pause(PATIENCE // 2)
            assert not bench.marks and (yield bench.host.enable) == 0
            yield from bench.store(C.FIRMWARE_BASE, 9)
            assert (yield from bench.load(C.FIRMWARE_BASE)) == 9
            yield from bench.allow()
            yield from finish(lambda: bench.marks, 2000)
            yield from bench.read(bench.base, 5, 3)
            assert (yield from bench.answer(3, 5)) == (0, b"first")
            assert (yield bench.host.enable) == 1
            for n, part in enumerate(data):
                yield from bench.write(bench.base + 64 * n, part, 1)
            yield from finish(lambda: len(bench.marks) == 9, 3000)
            yield from bench.pause(200)
            for n, part in enumerate(data):
                assert (yield from bench.peek(bench.base + 64 * n, 40)) == part

        bench.run(main())
        assert bench.lost == 0 and bench.counts["REQUESTS_DROPPED"] == 0

    def test_after_its_patience_the_program_is_lost_and_requests_are_dropped_with_their_marks(
        self, seed
    ):
        if not self.withdraws:
            return
        random = Random(seed)
        bench = self.bench(random)

        def main():
            yield bench.host.running.eq(1)
            yield from bench.poke(bench.base, bytes(1024))
            yield from bench.withdraw()
            yield from bench.pause(4)
            yield from bench.write(bench.base, b"first", 1)
            yield from finish(lambda: bench.lost == 1, 4 * PATIENCE)
            assert not bench.marks
            yield bench.host.running.eq(0)
            yield from finish(lambda: len(bench.marks) == 1, 100)
            assert (yield bench.host.discard)
            for n in range(20):
                yield from bench.write(bench.base + 8 * n, random.randbytes(60), n % 2)
                yield from bench.read(bench.base, 8, 0)
                yield from bench.post(bench.base + 0x200, bytes(32))
            yield from finish(lambda: len(bench.marks) == 11, 500)
            yield from bench.pause(50)
            dropped = bench.counts["REQUESTS_DROPPED"]
            # All but the first write, which may have left before the host was seen to stop.
            assert dropped in (60, 61)
            # A new program, and a host that takes requests: no dropped request is left over.
            yield from bench.allow()
            yield from bench.pause(300)
            yield bench.host.running.eq(1)
            yield from bench.poke(bench.base, bytes(1024))
            bench.answers.clear()
            yield from bench.write(bench.base + 5, b"second", 1)
            yield from finish(lambda: len(bench.marks) == 12, 2000)
            yield from bench.read(bench.base, 16, 2)
            answer = yield from bench.answer(2, 16)
            assert answer == (0, b"\0\0\0\0\0second\0\0\0\0\0")
            assert (yield bench.host.enable) and not (yield bench.host.discard)
            assert bench.counts["REQUESTS_DROPPED"] == dropped

        bench.run(main())
        assert bench.lost == 1
