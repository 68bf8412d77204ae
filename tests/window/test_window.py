"""Two cards with the remote window: stores and loads of one CPU reach the other's memory."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import random
import select
import struct
import subprocess
import sys

import pytest
from dibber.interface.description import RIGHT, STATUS, WINDOW, C
from dibber_cli import paths
from pair import Pair, Side, stay
from vfio_client import REGION_READ, REGION_WRITE, Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
BAR0, BAR2 = 0, 2
PAGE = C.APERTURE_PAGE
CONTROL = C.APERTURE_BYTES - PAGE
LENGTH = PAGE + 64  # of the target region: the page starts at its byte 32


class WindowSide(Side):
    """A process that has the endpoint of its card's window, and the window through a socket of
    observers.
    """

    number = C.ENDPOINTS - 1

    def open_window(self, key, rights=3, atomic=0, addend=0):
        """Give the window its scratch page, map page 1 to byte 32 of `key`, and turn it on."""
        self.observer = Client(f"{self.uri.removeprefix('sim:')}.admin", join=())
        scratch = self.register("scratch", 4096, rights=RIGHT.LOCAL_WRITE)
        access = (1 - self.node) | self.number << 8 | rights << 12 | atomic << 14 | 1 << 15
        for name, value in {
            "SCRATCH_KEY": scratch,
            "PAGE_KEY": key,
            "PAGE_OFFSET_LOW": 32,
            "PAGE_OFFSET_HIGH": 0,
            "PAGE_ACCESS": access | (addend & 0xFFFF) << 16,
            "PAGE_WRITE": 1,
            "CONTROL": 1,
        }.items():
            self.set(name, value)

    def set(self, name, value):
        self.store(C.APERTURE_REGISTERS + WINDOW[name].offset, struct.pack("<I", value), BAR0)

    def find_scratch(self, expected):
        """Tell the window the bus address of its scratch page. The library keeps bus addresses for
        itself, and gives them in order behind those of its queues. With the right one the first
        bytes of the page are loaded.
        """
        base = self.card.read_register("ADMIN_CQ_LOW") & ~0xFFF
        self.set("SCRATCH_HIGH", self.card.read_register("ADMIN_CQ_HIGH"))
        for page in range(64):
            self.set("SCRATCH_LOW", base + 4096 * page)
            if self.load(PAGE, len(expected)) == expected:
                return
        raise AssertionError("no scratch page")

    def store(self, offset, data, bar=BAR2):
        """Bytes that leave the CPU as TLPs of up to 64 bytes."""
        number = self.observer.send(
            REGION_WRITE, struct.pack("<QII", offset, bar, len(data)) + data
        )
        self.observer.answer(number)

    def load(self, offset, count, bar=BAR2):
        """Bytes that the CPU reads 8 at a time."""
        number = self.observer.send(REGION_READ, struct.pack("<QII", offset, bar, count))
        self.endpoint.wait(100_000)
        return self.observer.answer(number)[16:]

    def window_register(self, name):
        data = self.load(C.APERTURE_REGISTERS + WINDOW[name].offset, 4, BAR0)
        return int.from_bytes(data, "little")

    def barrier(self):
        return int.from_bytes(self.load(CONTROL + 64 * self.number, 4), "little")


@pytest.fixture(scope="module")
def program():
    """The simulator of cards with a window; built if it is not up to date."""
    script = ROOT / "hw" / "sim" / "build.py"
    done = subprocess.run([sys.executable, script, "--window"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return pathlib.Path(done.stdout.split()[-1])


@pytest.fixture
def pair(program, monkeypatch, seed):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    with Pair(seed=seed, kind=WindowSide) as both:
        yield both


def elapsed(side, stores, offset=None, count=4):
    """At most so many simulated ns from the first of some stores to the answer of the load behind
    them, which is a barrier without `offset`.

    The card's clock is read before and behind them. So the time is too long by the ways of these
    two reads, and by a look of 20 ns; differences of two such times are not.
    """
    place = CONTROL + 64 * side.number if offset is None else offset
    begun = side.card.read_register("CYCLES_LOW")
    for at, data in stores:
        side.store(at, data)
    number = side.observer.send(REGION_READ, struct.pack("<QII", place, BAR2, count))
    while not select.select([side.observer.socket], [], [], 0)[0]:
        side.endpoint.wait(20)
    cycles = side.card.read_register("CYCLES_LOW") - begun & 0xFFFFFFFF
    answer = side.observer.answer(number)[16:]
    assert offset is not None or int.from_bytes(answer, "little") == side.known
    return cycles * 1e9 / side.card.info()["clock_hz"]


def target(side, seed=None):
    key = side.register("memory", LENGTH, rights=RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE)
    side.fill("memory", seed)
    return key


def scatter(side, key, seed, over):
    """Random stores: (the page as it must be, sequence before, sequence after, packets)."""
    choice = random.Random(seed)
    side.open_window(key)
    page, known = bytearray(PAGE), side.barrier()
    for _ in range(150):
        start = choice.randrange(PAGE)
        data = choice.randbytes(min(choice.choice([1, 2, 3, 8, 8, 17, 64, 200]), PAGE - start))
        page[start : start + len(data)] = data
        side.store(PAGE + start, data)
    after = side.barrier()
    packets = side.window_register("PACKETS")
    over.touch()
    return bytes(page), known, after, packets


def test_stores_of_any_size_and_place_arrive(pair, seed, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    (page, before, after, packets), _ = pair.together((scatter, key, seed, over), (stay, over))
    memory = pair.second(Side.read, "memory")
    assert before == after and packets > 150
    assert memory[32 : 32 + PAGE] == page
    assert memory[:32] == memory[32 + PAGE :] == bytes(32)


def look(side, key, seed, first, over):
    choice = random.Random(seed)
    side.open_window(key)
    side.find_scratch(first)
    found = []
    for _ in range(30):
        start, count = choice.randrange(PAGE - 64), choice.randrange(1, 65)
        found.append((start, side.load(PAGE + start, count)))
    side.store(PAGE + 640, b"seen at once")
    found.append((640, side.load(PAGE + 640, 12)))
    loads = side.window_register("LOADS")
    over.touch()
    return found, loads


def test_loads_return_what_is_there(pair, seed, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target, seed)
    first = pair.second(Side.read, "memory")[32:40]
    (found, loads), _ = pair.together((look, key, seed, first, over), (stay, over))
    memory = pair.second(Side.read, "memory")
    assert found.pop()[1] == memory[32 + 640 : 32 + 652] == b"seen at once"
    assert loads >= 30 and all(memory[32 + at :][: len(data)] == data for at, data in found)


def count_up(side, key, over):
    side.open_window(key, atomic=1, addend=3)
    values = [int.from_bytes(side.load(PAGE + 64, 8), "little") for _ in range(4)]
    over.touch()
    return values


def test_an_atomic_page_adds(pair, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    values, _ = pair.together((count_up, key, over), (stay, over))
    assert values == [0, 3, 6, 9]
    assert int.from_bytes(pair.second(Side.read, "memory")[96:104], "little") == 12


def fail(side, key, over):
    side.open_window(key + 1)
    told = [side.barrier()]
    side.store(PAGE, b"12345678")
    told.append(side.barrier())
    loaded = side.load(PAGE + 8, 8)
    told.append(side.barrier())
    side.store(2 * PAGE, b"12345678")
    told.append(side.barrier())
    registers = {name: side.window_register(name) for name in ("REFUSALS", "UNMAPPED", "LAST")}
    over.touch()
    return told, loaded, registers


def test_what_is_refused_is_told_and_the_card_goes_on(pair, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    (told, loaded, registers), _ = pair.together((fail, key, over), (stay, over))
    assert [count - told[0] for count in told] == [0, 1, 2, 3] and loaded == b"\xff" * 8
    assert registers["REFUSALS"] == 2 and registers["UNMAPPED"] == 1
    assert registers["LAST"] in (STATUS.REMOTE_BAD_KEY, STATUS.BAD_KEY)


def pace(side, key, over):
    """ns for each packet: of 64 bytes in one piece, and of 8 bytes at a stride of 64."""
    side.open_window(key)
    side.known = side.barrier()
    elapsed(side, [(PAGE, bytes(64))])  # the flow is armed after its first puts
    side.barrier()
    whole = [elapsed(side, [(PAGE, bytes(64 * lines))]) for lines in (20, 120)]
    parts = [elapsed(side, [(PAGE + 64 * n, bytes(8)) for n in range(many)]) for many in (80, 400)]
    latency = {
        "barrier alone": min(elapsed(side, []) for _ in range(10)),
        "store of 8 bytes and barrier": min(elapsed(side, [(PAGE, bytes(8))]) for _ in range(10)),
        "load of 8 bytes": min(elapsed(side, [], PAGE, 8) for _ in range(10)),
    }
    over.touch()
    return (whole[1] - whole[0]) / 100, (parts[1] - parts[0]) / 320, latency


def test_stores_leave_at_nine_tenths_of_what_the_link_allows(pair, tmp_path):
    """A packet of 64 bytes has 104 on the cable, one of 8 has 48: docs/design/packets.md."""
    over = tmp_path / "over"
    key = pair.second(target)
    (whole, parts, latency), _ = pair.together((pace, key, over), (stay, over))
    print(f"64 bytes: {whole:.1f} ns each, bound 208; 8 bytes: {parts:.1f} ns each, bound 96")
    print(*[f"{name}: at most {ns:.0f} ns" for name, ns in latency.items()], sep="\n")
    assert 208 <= whole <= 208 / 0.9 and 96 <= parts <= 96 / 0.9
