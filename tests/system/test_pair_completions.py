"""A host whose completions are wrong: the transfer ends with a read error, nothing else is touched,
and the next one is good.
"""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import RIGHT, STATUS
from libdibber import Walk

from tests.system.pair import Pair, Side

pytestmark = pytest.mark.fault

SLOT, SLOTS = 4096, 48
GUARD = 0xEE
SETTLE_NS = 10_000
EVERYONE = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
BAD = [
    f"completion_{name}"
    for name in (
        "bad_requester",
        "bad_count",
        "bad_address",
        "bad_length",
        "bad_status",
        "poisoned",
    )
]


def opened(profile, rate):
    return Pair(profile, options=["--set", f"pcie.completion_fault_rate={rate}"], preload=True)


def transfers(side, kind, source, target, blocks):
    """One transfer after another; their statuses by name."""
    result = []
    for slot, (offset, length) in enumerate(blocks):
        place = SLOT * slot + offset
        getattr(side.endpoint, f"{kind}_strided")(
            Walk(source, length, place), Walk(target, length, place), node=1
        )
        result.append(STATUS.name_of(side.completion()))
    # A put is complete when its last write was handed to the target's PCIe, which takes time to
    # bring it to memory.
    side.endpoint.wait(SETTLE_NS)
    return result


def check(source, target, blocks, statuses):
    """Each slot of `target`: what was transferred, or of what failed any part, and nothing beside
    it.
    """
    for slot, ((offset, length), status) in enumerate(zip(blocks, statuses)):
        old, new = source[SLOT * slot : SLOT * (slot + 1)], target[SLOT * slot : SLOT * (slot + 1)]
        assert set(new[:offset] + new[offset + length :]) <= {GUARD}, (
            f"slot {slot}: a guard byte changed"
        )
        pairs = zip(old[offset : offset + length], new[offset : offset + length])
        if status == "OK":
            assert all(a == b for a, b in pairs), f"slot {slot}: wrong bytes with status OK"
        else:
            assert all(b in (a, GUARD) for a, b in pairs), (
                f"slot {slot}: bytes that were never sent"
            )


@pytest.mark.parametrize("profile", ["gen2x4", "gen2x1"])  # 128 and 64 bits
def test_puts_and_gets_fail_alone_and_no_byte_is_wrong(profile, seed):
    rng = random.Random(seed)
    with opened(profile, 0.01) as pair:
        sent, taken = [
            pair.together(*[(Side.register, name, SLOT * SLOTS, True, EVERYONE)] * 2)
            for name in ("out", "in")
        ]
        for kind, source, target, errors in (
            ("put", sent[0], taken[1], {"READ_ERROR", "READ_TIMEOUT"}),
            ("get", sent[1], taken[0], {"REMOTE_READ_ERROR", "REMOTE_READ_TIMEOUT"}),
        ):
            pair.first(Side.fill, "out", seed)
            pair.second(Side.fill, "out", seed + 1)
            for side in (pair.first, pair.second):
                side(Side.fill, "in", None, GUARD)
            blocks = [(rng.randrange(1, 1000), rng.randrange(1, 3000)) for _ in range(SLOTS)]
            statuses = pair.first(transfers, kind, source, target, blocks)
            ends = (pair.first, pair.second) if kind == "put" else (pair.second, pair.first)
            check(ends[0](Side.read, "out"), ends[1](Side.read, "in"), blocks, statuses)
            failed = [status for status in statuses if status != "OK"]
            assert set(failed) <= errors
            assert len(failed) >= 5
            # After a transfer that failed the next one is good, unless it has a fault of its own.
            assert any(one != "OK" and after == "OK" for one, after in zip(statuses, statuses[1:]))
            counters = ends[0](Side.info)["counters"]
            assert sum(counters[name] for name in BAD) + counters["completion_timeout"] >= len(
                failed
            )
        counted = {
            name: sum(side(Side.info)["counters"][name] for side in (pair.first, pair.second))
            for name in BAD
        }
        assert sum(value > 0 for value in counted.values()) >= 4, counted


def adds(side, key, count):
    """Fetch-and-add 1, one after another: (status by name, value before) of each."""
    result = []
    for _ in range(count):
        side.endpoint.fetch_add(key, 8, 1, node=1)
        while not (done := side.endpoint.poll()):
            assert side.endpoint.wait(10**9)
        result.append((STATUS.name_of(done[0].status), done[0].value))
    return result


@pytest.mark.parametrize("profile", ["gen2x4", "gen2x1"])
def test_an_atomic_whose_operand_cannot_be_read_changes_nothing(profile):
    with opened(profile, 0.1) as pair:
        keys = pair.together(*[(Side.register, "word", 4096, True, EVERYONE)] * 2)
        pair.second(Side.fill, "word", None, 0)
        results = pair.first(adds, keys[1], 40)
        value = 0
        for status, before in results:
            if status == "OK":
                assert before == value
                value += 1
            else:
                assert status == "REMOTE_READ_ERROR"
        assert 1 <= 40 - value <= 12
        memory = pair.second(Side.read, "word")
        assert int.from_bytes(memory[8:16], "little") == value
        assert set(memory[:8] + memory[16:]) == {0}, "a guard byte changed"
