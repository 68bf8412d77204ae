"""Two processes, two cards, one cable: puts arrive byte for byte, and each error is named."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import mmap
import os
import random
import select
import struct
import threading

import libdibber
import numpy as np
import pytest
from dibber.interface.description import (
    COMMAND,
    HANDLER,
    INTERFACE,
    MCP_STATE,
    OPCODE,
    RIGHT,
    SHARED,
    STATUS,
    C,
)
from dibber_cli import paths, profile
from dibber_cli.errors import SimulatorError
from dibber_cli.simulator import Pair as Simulator
from libdibber import DibberError, Walk
from libdibber.binding import library

from tests.system.pair import Pair, Refused, Side

SIZE = 1 << 20


@pytest.fixture(scope="module", params=["fast path", "control program"])
def pair(request):
    """Both cards, with 1 MiB of `source` on card 0 and `target` on card 1; keys in `pair.source`,
    `pair.target`.
    """
    with Pair() as p:
        p.fast = request.param == "fast path"
        p.together(*[(Side.fast_path, p.fast)] * 2)
        p.source, p.target = p.together(
            (Side.register, "source", SIZE), (Side.register, "target", SIZE)
        )
        p.first(Side.fill, "source", 11)
        yield p


def put(pair, source, target, **how):
    """Status of a put from card 0 to card 1."""
    return pair.first(_put, source, target, how)


def _put(side, source, target, how):
    return side.put_strided(source, target, **how)


def check(pair, source, target):
    """Put from one walk to the other; the target's whole memory must then be as the walks say."""
    pair.second(Side.fill, "target", None, 0xEE)
    assert put(pair, source, target) == STATUS.OK
    expected = bytearray(b"\xee" * SIZE)
    memory = pair.first(Side.read, "source")
    payload = b"".join(memory[o : o + source[1]] for o in Walk(*source).blocks())
    for i, offset in enumerate(Walk(*target).blocks()):
        expected[offset : offset + target[1]] = payload[i * target[1] : (i + 1) * target[1]]
    found = pair.second(Side.read, "target")
    wrong = [i for i in range(SIZE) if found[i] != expected[i]] if found != expected else []
    assert not wrong, f"{len(wrong)} bytes wrong, from {wrong[0]} to {wrong[-1]}"


# Puts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, target",
    [
        ((1,), (1,)),
        ((4096,), (4096,)),
        ((100_000,), (100_000,)),
        ((8, ((1000, 16),)), (8000,)),
        ((8000,), (8, ((1000, 64),))),
        ((8, ((1000, 24),)), (8, ((1000, 32),))),
        ((3, ((7, 5), (11, 100), (13, 4097))), (7, ((3, 9), (11, 1000), (13, 21)))),
        ((1, ((999, -3),)), (27, ((37, -1000),))),
        ((256, ((16, 256),)), (64, ((64, 65),))),
    ],
)
def test_walks_of_every_kind_arrive_byte_by_byte(pair, source, target):
    start = lambda walk: (
        4099 - sum((n - 1) * min(s, 0) for n, s in (walk[1] if len(walk) > 1 else ()))
    )
    check(
        pair,
        (pair.source, source[0], start(source), *source[1:]),
        (pair.target, target[0], start(target) + 1, *target[1:]),
    )


def random_walk(choice, length):
    """A walk of `length` bytes somewhere in SIZE bytes: a factor of the length as block, the rest
    as counts.
    """
    levels, rest, block = [], length, 1
    for p in (2, 2, 2, 3, 3, 5, 7, 11, 2, 2, 2, 2, 5, 7, 13):
        if rest % p == 0 and choice.random() < 0.6:
            rest, block = rest // p, block * p
    reach_low, reach_high = 0, block
    for _ in range(choice.randrange(4)):
        count = choice.choice([d for d in range(1, 200) if rest % d == 0])
        extent = reach_high - reach_low
        if count < 2 or extent * count > SIZE // 4:
            continue
        rest //= count
        stride = extent + choice.choice(
            (0, 0, 1, 8, choice.randrange(min(4096, (SIZE // 4 - extent * count) // count + 1)))
        )
        stride *= choice.choice((1, 1, -1))
        levels.append((count, stride))
        reach_low, reach_high = (
            reach_low + min(0, stride * (count - 1)),
            reach_high + max(0, stride * (count - 1)),
        )
    # What no level took goes into the block, and makes all levels wider by as much.
    if rest > 1:
        block *= rest
        levels = [(count, stride * rest) for count, stride in levels]
        reach_low, reach_high = reach_low * rest, reach_high * rest
    if reach_high - reach_low > SIZE - 1:
        return length, choice.randrange(SIZE - length)
    offset = choice.randrange(SIZE - (reach_high - reach_low)) - reach_low
    return block, offset, tuple(levels)


def test_random_walks_arrive_byte_by_byte(pair, seed):
    choice = random.Random(seed)
    for _ in range(25):
        length = choice.choice(
            (1, 2, 3, 5, 8, 60, 64, 100, 255, 256, 257, 1000, 4095, 4096, 4097, 9240, 30030)
        )
        check(
            pair,
            (pair.source, *random_walk(choice, length)),
            (pair.target, *random_walk(choice, length)),
        )


def test_memory_of_any_kind(pair):
    """From the heap to the heap: what cannot be shared goes by message, and the program does not
    notice.
    """
    source, target = pair.together(
        (Side.register, "heap", 30_000, False), (Side.register, "heap", 30_000, False)
    )
    pair.first(Side.fill, "heap", 5)
    assert put(pair, (source, 8, 5, ((1000, 24),)), (target, 8, 9, ((1000, 16),))) == STATUS.OK
    sent, got = pair.together((Side.read, "heap"), (Side.read, "heap"))
    expected = bytearray(30_000)
    for i in range(1000):
        expected[9 + 16 * i : 17 + 16 * i] = sent[5 + 24 * i : 13 + 24 * i]
    assert got == expected
    pair.together((Side.unregister, "heap"), (Side.unregister, "heap"))


def _bell(side):
    fd = side.endpoint.event_fd()
    return struct.unpack("<Q", os.read(fd, 8))[0] if select.select([fd], [], [], 0)[0] else 0


def test_a_notice_comes_after_the_data_and_rings_when_asked(pair):
    pair.second(Side.event_fd)
    for interrupt in (False, True):
        pair.second(Side.fill, "target")
        how = dict(notice=0xC0FFEE, endpoint=1, interrupt=interrupt)
        walks = (pair.source, 8, 0, ((2000, 8),)), (pair.target, 8, 0, ((2000, 40),))
        status, (event, arrived) = pair.together((_put, *walks, how), (_event_and_memory,))
        assert status == STATUS.OK and event == (0xC0FFEE, 16_000, pair.target, 0)
        sent = pair.first(Side.read, "source")
        assert all(arrived[40 * i : 40 * i + 8] == sent[8 * i : 8 * i + 8] for i in range(2000))
        assert pair.second(_bell) == interrupt


def _event_and_memory(side):
    return side.event(), side.read("target")


def _two_threads(side, key):
    """Endpoints 1 and 3 put at once, each driven by its own thread; both take part in the clock."""
    statuses = []
    source = side.regions["source"].key

    def other():
        with side.card.endpoint(3, own_clock=True) as endpoint:
            with endpoint.register(libdibber.alloc(4096)) as region:
                for _ in range(5):
                    endpoint.put(region.key, 0, key, 0, 4096, node=1)
                    while not (done := endpoint.poll()):
                        endpoint.wait()
                    statuses.append(done[0].status)

    thread = threading.Thread(target=other)
    thread.start()
    mine = []
    while thread.is_alive():
        # Not thread.join(): time would stand, and the other thread with it.
        mine.append(side.put_strided((source, 4096, 0), (key, 4096, 4096)))
    return statuses, mine


def test_endpoints_of_two_threads_put_at_once(pair):
    pair.second(Side.fill, "target")
    others, mine = pair.first(_two_threads, pair.target)
    assert others == [STATUS.OK] * 5 and len(mine) >= 5 and set(mine) == {STATUS.OK}
    sent, got = pair.together((Side.read, "source"), (Side.read, "target"))
    assert got[:4096] == bytes(4096) and got[4096:8192] == sent[:4096]
    assert good(pair)


# What a put costs ---------------------------------------------------------------------------------


def work(pair):
    """Counters of both sides: doorbells of card 0, instructions of each handler on both."""
    at = SHARED["handler"].offset
    infos = pair.together((Side.info,), (Side.info,))
    raw = pair.together(
        (Side.shared, at, SHARED["handler"].size), (Side.shared, at, SHARED["handler"].size)
    )
    return infos[0]["counters"]["doorbells"], [
        {
            MCP_STATE.name_of(n): struct.unpack_from("<4I", side, n * HANDLER.size)[:3:2]
            for n in range(len(MCP_STATE.values))
        }
        for side in raw
    ]


def test_a_strided_put_costs_the_same_at_any_number_of_elements(pair):
    """One doorbell. On the fast path the control programs have nothing to do; without it the same
    instructions for a packet of 500 elements and for 10,000 elements, but for the calls that learn
    of acknowledgements, which come a packet at a time.

    A job's end costs some instructions more when the acknowledgement was seen before it, as happens
    with a packet that
    is shorter than the control program's look at its command: not with 500 elements."""
    assert good(pair)
    spent = []
    for count in (500, 10_000):
        walk = lambda key, count=count: (key, 8, 0, ((count, 64),))
        doorbells, before = work(pair)
        assert put(pair, walk(pair.source), walk(pair.target)) == STATUS.OK
        after_doorbells, after = work(pair)
        assert after_doorbells - doorbells == 1
        spent.append(
            [
                {
                    name: tuple(a - b for a, b in zip(after[n][name], before[n][name]))
                    for name in after[n]
                }
                for n in range(2)
            ]
        )
    few, many = spent
    if pair.fast:
        handlers = ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL")
        assert {side[name] for side in [*few, *many] for name in handlers} == {(0, 0)}
        return
    for name in ("COMMAND", "SEND_DONE"):
        assert few[0][name] == many[0][name] and few[0][name][0] == 1, name
    # The receiving control program has nothing to do at all.
    for name in ("COMMAND", "SEND_DONE", "ACK", "ARRIVAL"):
        assert few[1][name] == many[1][name] == (0, 0), name
    # An acknowledgement a packet at most, each handled in the same way.
    calls, instructions = many[0]["ACK"]
    assert 1 <= calls <= -(-80_000 // C.PACKET_PAYLOAD)
    assert instructions <= calls * few[0]["ACK"][1]


# Bad input ----------------------------------------------------------------------------------------


def good(pair):
    return put(pair, (pair.source, 64), (pair.target, 64)) == STATUS.OK


@pytest.mark.parametrize(
    "source, target, status",
    [
        (dict(key=0x5500), {}, "BAD_KEY"),
        ({}, dict(key=0x5500), "REMOTE_BAD_KEY"),
        (dict(offset=SIZE - 63), {}, "BOUNDS"),
        (dict(offset=SIZE + (1 << 40)), {}, "BOUNDS"),
        ({}, dict(offset=SIZE - 63), "REMOTE_BOUNDS"),
        ({}, dict(levels=((8, -8),), block=8), "REMOTE_BOUNDS"),
        (dict(levels=((8, -8),), block=8), {}, "BOUNDS"),
    ],
)
def test_a_walk_that_may_not_be_is_refused_by_name_and_the_next_works(pair, source, target, status):
    pair.second(Side.fill, "target", None, 0x77)
    walks = [
        {"key": key, "block": 64, "offset": 0, "levels": (), **change}
        for key, change in ((pair.source, source), (pair.target, target))
    ]
    ended = put(pair, *(tuple(w.values()) for w in walks))
    assert STATUS.name_of(ended) == status
    if status.startswith("REMOTE_BAD") or not status.startswith("REMOTE"):
        assert set(pair.second(Side.read, "target")) == {0x77}
    assert good(pair)


def test_rights_and_owners(pair):
    readable = pair.first(Side.register, "readable", 4096, True, RIGHT.REMOTE_WRITE)
    closed = pair.second(Side.register, "closed", 4096, True, RIGHT.LOCAL_READ)
    assert STATUS.name_of(put(pair, (readable, 64), (pair.target, 64))) == "NOT_PERMITTED"
    assert STATUS.name_of(put(pair, (pair.source, 64), (closed, 64))) == "REMOTE_NOT_PERMITTED"
    foreign = pair.first(_foreign_region)
    assert STATUS.name_of(put(pair, (foreign, 64), (pair.target, 64))) == "NOT_OWNER"
    pair.together((Side.unregister, "readable"), (Side.unregister, "closed"))
    assert STATUS.name_of(put(pair, (pair.source, 64), (closed, 64))) == "REMOTE_BAD_KEY"
    assert good(pair)


@pytest.mark.fault
def test_a_region_of_another_endpoint_is_told_by_one_name_wherever_it_is_local(pair):
    readable = pair.second(Side.register, "readable", 4096, True, RIGHT.REMOTE_READ)
    foreign = pair.first(_foreign_region, 3)
    blind = pair.first(Side.register, "blind", 4096, True, RIGHT.LOCAL_READ)
    assert STATUS.name_of(put(pair, (foreign, 64), (pair.target, 64))) == "NOT_OWNER"
    assert STATUS.name_of(pair.first(_get, (readable, 64), (foreign, 64))) == "NOT_OWNER"
    assert STATUS.name_of(pair.first(_get, (readable, 64), (blind, 64))) == "NOT_PERMITTED"
    pair.together((Side.unregister, "blind"), (Side.unregister, "readable"))
    pair.first(_close_foreign)
    assert good(pair)


def _get(side, source, target):
    side.endpoint.get_strided(Walk(*source), Walk(*target), node=1)
    return side.completion()


def _close_foreign(side):
    side.foreign.close()
    side.other.close()


OVER = 1000  # bytes by which a walk leaves its region


@pytest.mark.fault
@pytest.mark.parametrize("kind", ["one block", "blocks"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_what_leaves_its_region_has_written_a_beginning_and_nothing_else(pair, side, kind):
    """dibber(7), "Failures": the target holds the right bytes up to some place, at most the
    region's end, then what it had.
    """
    pair.first(Side.fill, "source", 7)
    pair.second(Side.fill, "target", None, 0x77)
    sent = pair.first(Side.read, "source")
    length = 8000 if kind == "one block" else 8001
    walk = lambda key, offset: (
        (key, length, offset, ()) if kind == "one block" else (key, 127, offset, ((63, 127),))
    )
    begin = {name: SIZE - length + OVER if name == side else 0 for name in ("source", "target")}
    ended = put(pair, walk(pair.source, begin["source"]), walk(pair.target, begin["target"]))
    assert STATUS.name_of(ended) == {"source": "BOUNDS", "target": "REMOTE_BOUNDS"}[side]
    got = pair.second(Side.read, "target")
    held = got[begin["target"] :]
    right = (sent + bytes(OVER))[begin["source"] :][:length]
    equal = next(
        (n for n in range(len(held)) if held[n : n + 64] == b"\x77" * len(held[n : n + 64])),
        len(held),
    )
    assert held[:equal] == right[:equal] and set(held[equal:]) <= {0x77}
    assert set(got[: begin["target"]]) <= {0x77}
    assert equal <= length - OVER
    assert good(pair)


def _foreign_region(side, number=2):
    side.other = side.card.endpoint(number)
    side.foreign = side.other.register(libdibber.alloc(4096))
    return side.foreign.key


@pytest.mark.parametrize(
    "change, status",
    [
        (dict(opcode=0x7F), "BAD_OPCODE"),
        (dict(opcode=OPCODE.REGION_ADD), "BAD_OPCODE"),
        (dict(flags=0x80), "BAD_FLAGS"),
        (dict(levels=0x07), "BAD_LEVELS"),
        (dict(levels=0x70), "BAD_LEVELS"),
        (dict(levels=0x11, count=(0, 0, 0)), "BAD_COUNT"),
        (dict(length=63), "BAD_LENGTH"),
        (dict(length=0xFFFFFFFF), "BAD_LENGTH"),
        (dict(node=0), "BAD_NODE"),
        (dict(node=C.NODES), "BAD_NODE"),
        (dict(node=0xFFFF), "BAD_NODE"),
    ],
)
def test_a_malformed_command_is_refused_by_name_and_the_next_works(pair, change, status):
    fields = dict(opcode=OPCODE.PUT, flags=0, levels=0, node=1, length=64, count=(1, 1, 1), **{})
    fields.update(change)
    command = bytearray(COMMAND.size)
    for name, code in (
        ("opcode", "B"),
        ("flags", "B"),
        ("levels", "B"),
        ("node", "H"),
        ("length", "I"),
    ):
        struct.pack_into(f"<{code}", command, COMMAND[name].offset, fields[name])
    for name, key in (("source", pair.source), ("target", pair.target)):
        at = COMMAND[name].offset
        struct.pack_into("<IIQ6I3I", command, at, key, 64, 0, *[0] * 6, *fields["count"])
    assert STATUS.name_of(pair.first(Side.submit, bytes(command))) == status
    assert good(pair)


def test_what_the_library_finds_wrong_costs_no_command(pair):
    before = work(pair)[0]
    with pytest.raises(Refused, match="ARGUMENT: the source has 64 bytes, the target 65"):
        put(pair, (pair.source, 64), (pair.target, 65))
    assert work(pair)[0] == before and good(pair)


# Cards, files and profiles ------------------------------------------------------------------------


@pytest.fixture
def one():
    """A simulator whose time starts with the first program."""
    with Simulator(profile.load("gen2x4"), participants=1) as simulator:
        yield simulator


def test_a_truncated_image_and_one_of_another_version_leave_the_card_alone(one, tmp_path):
    image = paths.FIRMWARE.read_bytes()
    (tmp_path / "short").write_bytes(image[:-100])
    (tmp_path / "other").write_bytes(
        image[:4] + struct.pack("<I", INTERFACE.version_word + 1) + image[8:]
    )
    with libdibber.Card(one.uris[0]) as card:
        for name, error in (("short", "FIRMWARE_FILE"), ("other", "VERSION")):
            with pytest.raises(DibberError) as caught:
                card.load_firmware(tmp_path / name)
            assert caught.value.name == error
            assert card.info()["mcp_state"] == MCP_STATE.RESET
        with pytest.raises(DibberError) as caught:
            card.endpoint(1)
        assert caught.value.name == "NO_FIRMWARE"
        card.load_firmware(paths.FIRMWARE)
        assert card.info()["mcp_state"] == MCP_STATE.IDLE
        card.endpoint(1).close()


def test_a_program_that_dies_leaves_the_card_to_the_next(one):
    for _ in range(2):
        card = libdibber.Card(one.uris[0])
        card.load_firmware(paths.FIRMWARE)
        endpoint = card.endpoint(1)
        endpoint.submit(bytes(C.SLOT_BYTES))
        assert endpoint.wait(10**6) and endpoint.poll()[0].status == STATUS.OK
        endpoint.close()
        card.close()


@pytest.mark.fault
def test_who_sleeps_on_a_descriptor_is_woken_when_the_simulator_is_killed():
    with (
        pytest.raises(SimulatorError, match="ended with code"),
        Simulator(profile.load("gen2x4"), participants=1) as simulator,
    ):
        card = libdibber.Card(simulator.uris[0])
        card.load_firmware(paths.FIRMWARE)
        endpoint = card.endpoint(1)
        fd = endpoint.event_fd()
        library().dib_clock_leave(endpoint._handle)  # for good: there is no clock to come back to
        assert not select.select([fd], [], [], 0.5)[0]
        simulator.process.kill()
        for _ in range(3):
            assert select.select([fd], [], [], 60)[0]
            os.read(fd, 8)
            with pytest.raises(DibberError, match="went away"):
                for _ in range(10_000):
                    endpoint.poll()
            assert select.select([fd], [], [], 60)[0]
        endpoint.close()
        card.close()


@pytest.mark.fault
def test_a_page_that_goes_away_under_a_transfer_ends_it_with_a_read_error(pair):
    assert STATUS.name_of(pair.first(_put_from_memory_that_goes_away, pair.target)) == "READ_ERROR"
    assert good(pair)


def _put_from_memory_that_goes_away(side, target):
    memory = mmap.mmap(-1, 1 << 16)
    array = np.frombuffer(memory, np.uint8)
    region = side.endpoint.register(array)
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(region.address + 4096), ctypes.c_size_t(4096), 0)
    try:
        return side.put_strided((region.key, 1 << 16), (target, 1 << 16))
    finally:
        ctypes.CDLL(None).mprotect(ctypes.c_void_p(region.address + 4096), ctypes.c_size_t(4096), 3)
        region.close()


def test_a_socket_that_is_not_there(one):
    with pytest.raises(DibberError, match="no simulator at") as caught:
        libdibber.Card(one.uris[0] + "x")
    assert caught.value.name == "NOT_FOUND"
    libdibber.Card(one.uris[0]).close()


def test_a_profile_with_a_wrong_key_is_named(tmp_path):
    text = (paths.PROFILES / "gen2x4.toml").read_text()
    (tmp_path / "p.toml").write_text(text.replace("[memory]", "[memory]\nlines = 3"))
    with pytest.raises(profile.ProfileError, match="unknown key 'memory.lines'"):
        Simulator(profile.load(str(tmp_path / "p.toml")))
