"""Two cards, one cable: inline puts, gets, atomics, FENCE and CHECKSUM through the whole column."""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import OPCODE, RIGHT, STATUS, C
from libdibber import Walk

from tests.system.pair import SECOND, Pair, Side

SIZE = 1 << 18
ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE

RIGHTS = {
    "memory": ALL,
    "readable": RIGHT.LOCAL_READ | RIGHT.REMOTE_READ,
    "writable": RIGHT.REMOTE_WRITE,
}


@pytest.fixture(scope="module", params=["fast path", "control program"])
def pair(request):
    """Both cards, each with regions of all rights, of reading and of writing alone; keys in
    `pair.keys[node]`.
    """
    with Pair(preload=True) as p:
        p.fast = request.param == "fast path"
        p.together(*[(Side.fast_path, p.fast)] * 2)
        p.keys = p.together((prepare,), (prepare,))
        yield p


def prepare(side):
    keys = {name: side.register(name, SIZE, rights=rights) for name, rights in RIGHTS.items()}
    side.others = {number: side.card.endpoint(number) for number in range(2, C.ENDPOINTS)}
    side.foreign = side.others[2].register(libdibber.alloc(4096), ALL)
    return keys | {"foreign": side.foreign.key, "unknown": 0x5500}


def refill(pair):
    """Random bytes in `memory` of both; returns them."""
    for node, run in enumerate((pair.first, pair.second)):
        run(Side.fill, "memory", 77 + node)
    return [bytearray(b) for b in memories(pair)]


def memories(pair):
    return pair.together((Side.read, "memory"), (Side.read, "memory"))


# Steps of one side --------------------------------------------------------------------------------


def ended(endpoint, count=1):
    """The next completions of an endpoint as (tag, status, value), waited for."""
    done = []
    while len(done) < count:
        done += [(c.tag, STATUS.name_of(c.status), c.value) for c in endpoint.poll()]
        if len(done) < count:
            assert endpoint.wait(SECOND), f"{len(done)} of {count} commands ended"
    return done


def call(side, name, arguments, how=None):
    """One command of endpoint 1 to the other card: (status, value)."""
    getattr(side.endpoint, name)(*arguments, node=1 - side.card.info()["node"], **(how or {}))
    return ended(side.endpoint)[0][1:]


def get_strided(side, source, target):
    return call(side, "get_strided", (Walk(*source), Walk(*target)))[0]


def statuses(side, commands):
    """Statuses of commands (name, arguments, options), one after the other."""
    return [call(side, name, arguments, how)[0] for name, arguments, how in commands]


# Inline puts --------------------------------------------------------------------------------------


def _inline_puts(side, key, data):
    """All lengths, each at its own alignment; every fourth with a notice."""
    for length in range(1, C.INLINE_BYTES + 1):
        for turn in range(2):
            number = 2 * (length - 1) + turn
            how = dict(notice=number, endpoint=1) if number % 4 == 0 else {}
            place = 160 * number + 17 * length % 64 + 32 * turn + 1
            side.endpoint.put_inline(data[:length], key, place, node=1, tag=number, **how)
            if number % 16 == 15:
                assert {status for _, status, _ in ended(side.endpoint, 16)} == {"OK"}


def _events(side, count):
    return [(side.event(), side.read("memory")) for _ in range(count)]


def test_inline_puts_of_every_length_at_every_alignment(pair):
    data = bytes(range(100, 164))
    expected = refill(pair)[1]
    _, events = pair.together((_inline_puts, pair.keys[1]["memory"], data), (_events, 32))
    places = set()
    for number in range(2 * C.INLINE_BYTES):
        length = number // 2 + 1
        place = 160 * number + 17 * length % 64 + 32 * (number % 2) + 1
        expected[place : place + length] = data[:length]
        places.add(place % 64)
        if number % 4 == 0:
            event, memory = events[number // 4]
            assert event == (number, length, pair.keys[1]["memory"], 0)
            assert memory[place : place + length] == data[:length]
    assert len(places) == 64 and memories(pair)[1] == expected


# Gets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, target",
    [
        ((1,), (1,)),
        ((9240,), (9240,)),
        ((65536,), (65536,)),
        ((8, ((1000, 16),)), (8000,)),
        ((8000,), (8, ((1000, -24),))),
        ((3, ((7, -5), (11, 100), (13, 4097))), (7, ((3, 9), (11, -1000), (13, 21)))),
    ],
)
def test_gets_bring_every_byte_and_no_other(pair, source, target):
    here, there = refill(pair)
    start = 30_001
    source = (pair.keys[1]["memory"], source[0], start, *source[1:])
    target = (pair.keys[0]["memory"], target[0], start + 2, *target[1:])
    assert pair.first(get_strided, source, target) == "OK"
    payload = b"".join(there[o : o + source[1]] for o in Walk(*source).blocks())
    for i, offset in enumerate(Walk(*target).blocks()):
        here[offset : offset + target[1]] = payload[i * target[1] : (i + 1) * target[1]]
    assert memories(pair) == [here, there]


def asked(side, key, count):
    """So many gets and fetch-adds, two under way; how they ended, and how many commands hardware
    took and ended.
    """
    before = side.info()["counters"]
    endpoint, done = side.endpoint, []
    for n in range(count):
        endpoint.get(key, 64 * n, side.regions["memory"].key, 8 * n, 8, node=1, tag=2 * n)
        endpoint.fetch_add(key, 64 * n + 32, n + 1, node=1, tag=2 * n + 1)
        done += ended(endpoint, 2)
    after = side.info()["counters"]
    return done, [after[name] - before[name] for name in ("fast_commands", "fast_completions")]


def test_hardware_asks_when_it_may_and_the_program_when_not(pair):
    here, there = refill(pair)
    aligned = there[: 64 * 50]
    done, counts = pair.first(asked, pair.keys[1]["memory"], 50)
    assert sorted(done)[::2] == [
        (2 * n, "OK", value) for n, (_, _, value) in enumerate(sorted(done)[::2])
    ]
    for n in range(50):
        here[8 * n : 8 * n + 8] = aligned[64 * n : 64 * n + 8]
        old = int.from_bytes(aligned[64 * n + 32 : 64 * n + 40], "little")
        assert (2 * n + 1, "OK", old) in done
        there[64 * n + 32 : 64 * n + 40] = ((old + n + 1) % 2**64).to_bytes(8, "little")
    assert memories(pair) == [here, there]
    # What another test has left to the program may take one or two of its own until it is
    # hardware's again.
    assert counts[0] >= counts[1] >= 90 if pair.fast else counts == [0, 0]


def test_gets_in_both_directions_at_once(pair):
    here, there = refill(pair)
    keys = [k["memory"] for k in pair.keys]
    steps = [
        (get_strided, (keys[1 - n], 8, 8 * n, ((4000, 16),)), (keys[n], 32_000, 100_001))
        for n in range(2)
    ]
    assert pair.together(*steps) == ["OK", "OK"]
    first, second = bytes(here), bytes(there)
    here[100_001:132_001] = b"".join(second[o : o + 8] for o in range(0, 64_000, 16))
    there[100_001:132_001] = b"".join(first[o + 8 : o + 16] for o in range(0, 64_000, 16))
    assert memories(pair) == [here, there]


@pytest.mark.parametrize(
    "source, target, status",
    [
        (("unknown", 0), ("memory", 0), "REMOTE_BAD_KEY"),
        (("writable", 0), ("memory", 0), "REMOTE_NOT_PERMITTED"),
        (("memory", SIZE - 63), ("memory", 0), "REMOTE_BOUNDS"),
        (("memory", 0), ("unknown", 0), "BAD_KEY"),
        (("memory", 0), ("readable", 0), "NOT_PERMITTED"),
        (("memory", 0), ("foreign", 0), "NOT_OWNER"),
        (("memory", 0), ("memory", SIZE), "BOUNDS"),
    ],
)
def test_a_get_that_may_not_be_has_its_status_and_writes_nothing(pair, source, target, status):
    before = [bytes(m) for m in refill(pair)]
    walks = [pair.keys[1][source[0]], source[1], pair.keys[0][target[0]], target[1]]
    good = [pair.keys[1]["memory"], 0, pair.keys[0]["memory"], 128, 64]
    assert pair.first(statuses, [("get", (*walks, 64), {}), ("get", good, {})]) == [status, "OK"]
    after = memories(pair)
    assert after[0][128:192] == before[1][:64]
    assert (
        after[0][:128] == before[0][:128]
        and after[0][192:] == before[0][192:]
        and after[1] == before[1]
    )


def _get_while_it_goes(side, source):
    """Get into a region that is withdrawn meanwhile: the status, and whether anything was written
    afterwards.
    """
    memory = libdibber.alloc(SIZE)
    region = side.endpoint.register(memory, RIGHT.LOCAL_WRITE)
    side.endpoint.get(source, 0, region.key, 0, SIZE, node=1)
    assert not side.endpoint.wait(100_000)
    region.close()
    before = bytes(memory)
    status = ended(side.endpoint)[0][1]
    return status, 0 < sum(map(bool, before)) < SIZE * 9 // 10, bytes(memory) == before


def test_a_region_withdrawn_during_a_get_is_not_written_any_more(pair):
    refill(pair)
    assert pair.first(_get_while_it_goes, pair.keys[1]["memory"]) == ("BAD_KEY", True, True)


# Atomics ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize(
    "opcode, after",
    [
        (OPCODE.FETCH_ADD, lambda before, operand, mask: before + operand),
        (OPCODE.SWAP, lambda before, operand, mask: operand),
        (OPCODE.COMPARE_SWAP, lambda before, operand, mask: operand),
        (OPCODE.MASKED_SWAP, lambda before, operand, mask: before & ~mask | operand & mask),
    ],
)
def test_atomics_change_what_they_say_and_tell_what_was_there(pair, size, opcode, after):
    expected = refill(pair)[1]
    place = 4096 + size
    before = int.from_bytes(expected[place : place + size], "little")
    operand, mask = (
        number % (1 << 8 * size) for number in (0xFEDCBA9876543210, 0xFF00F0F0C3A50FF1)
    )
    how = dict(size=size, mask=mask, compare=before)
    where = opcode, pair.keys[1]["memory"], place
    assert pair.first(call, "atomic", (*where, operand), how) == ("OK", before)
    expected[place : place + size] = (after(before, operand, mask) % (1 << 8 * size)).to_bytes(
        size, "little"
    )
    assert memories(pair)[1] == expected
    if opcode == OPCODE.COMPARE_SWAP:
        # Now it compares with what is not there any more.
        now = operand % (1 << 8 * size)
        assert pair.first(call, "atomic", (*where, 5), dict(size=size, compare=now ^ 0x100)) == (
            "OK",
            now,
        )
        assert memories(pair)[1] == expected


def test_an_atomic_that_may_not_be_has_its_status_and_changes_nothing(pair):
    before = refill(pair)
    keys = pair.keys[1]
    cases = [
        (keys["unknown"], 0, 8, "REMOTE_BAD_KEY"),
        (keys["readable"], 0, 8, "REMOTE_NOT_PERMITTED"),
        (keys["writable"], 0, 8, "REMOTE_NOT_PERMITTED"),
        (keys["memory"], SIZE, 4, "REMOTE_BOUNDS"),
        (keys["memory"], SIZE + (1 << 40), 8, "REMOTE_BOUNDS"),
        (keys["memory"], 4, 8, "REMOTE_ALIGNMENT"),
        (keys["memory"], 2, 4, "REMOTE_ALIGNMENT"),
        (keys["memory"], 1, 8, "REMOTE_ALIGNMENT"),
    ]
    got = pair.first(
        statuses,
        [("fetch_add", (key, offset, 1), {"size": size}) for key, offset, size, _ in cases],
    )
    assert got == [status for *_, status in cases] and memories(pair) == before


def _add(side, key, times):
    """Endpoints 1 to 7 add to one counter, two commands of each under way: the values before."""
    endpoints = [side.endpoint, *side.others.values()]
    values = []
    for _ in range(times):
        for number, endpoint in enumerate(endpoints, 1):
            for _ in range(2):
                endpoint.fetch_add(key, 64, number, node=1 - side.card.info()["node"])
        for endpoint in endpoints:
            done = ended(endpoint, 2)
            assert {status for _, status, _ in done} == {"OK"}
            values += [value for *_, value in done]
    return values


def test_all_endpoints_of_both_cards_add_exactly(pair):
    before = [int.from_bytes(m[64:72], "little") for m in refill(pair)]
    keys = [k["memory"] for k in pair.keys]
    values = pair.together((_add, keys[1], 3), (_add, keys[0], 3))
    after = [int.from_bytes(m[64:72], "little") for m in memories(pair)]
    added = 3 * 2 * sum(range(1, C.ENDPOINTS))
    for node in range(2):
        assert (after[node] - before[node]) % (1 << 64) == added
        # No two additions found the same.
        assert len(set(values[1 - node])) == len(values[1 - node]) == 3 * 2 * (C.ENDPOINTS - 1)


# Order and checksum -------------------------------------------------------------------------------

FLAG_AT = SIZE - 8


def _put_then_flag(side, source, target, fence):
    side.endpoint.put(source, 0, target, 0, 65536, node=1, tag=1)
    side.endpoint.put_inline(b"\xa5" * 8, target, FLAG_AT, node=1, tag=2, fence=fence)
    return [tag for tag, _, _ in ended(side.endpoint, 2)]


def _watch(side):
    """Look at the flag until it is set; the memory at that time."""
    memory = side.regions["memory"].memory
    for _ in range(2000):
        if memory[FLAG_AT] == 0xA5:
            return side.read("memory")
        side.endpoint.wait(1000)
    return None


@pytest.mark.parametrize("fence", [True, False])
def test_a_flag_behind_a_fence_is_seen_after_the_data_and_otherwise_before(pair, fence):
    data = bytes(refill(pair)[0][:65536])
    pair.second(Side.fill, "memory", None, 0)
    tags, seen = pair.together(
        (_put_then_flag, pair.keys[0]["memory"], pair.keys[1]["memory"], fence), (_watch,)
    )
    assert tags == ([1, 2] if fence else [2, 1])
    assert (seen[:65536] == data) == fence and seen[FLAG_AT:] == b"\xa5" * 8


def internet_checksum(data):
    """RFC 1071, section 4.1."""
    data += bytes(len(data) % 2)
    total = sum(data[i] << 8 | data[i + 1] for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@pytest.mark.parametrize(
    "source",
    [(1,), (2,), (4097,), (50_001,), (3, ((333, 7),)), (7, ((3, -9), (11, 200), (13, 2501)))],
)
def test_a_checksum_is_that_of_the_bytes(pair, source):
    memory = bytes(refill(pair)[0])
    walk = Walk(pair.keys[0]["memory"], source[0], 100_003, *source[1:])
    data = b"".join(memory[o : o + walk.block] for o in walk.blocks())
    target = Walk(pair.keys[1]["memory"], len(data), 11)
    status, value = pair.first(call, "put_strided", (walk, target), dict(checksum=True))
    assert (status, value) == ("OK", internet_checksum(data))
    assert memories(pair)[1][11 : 11 + len(data)] == data
