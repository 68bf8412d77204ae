"""Commands: accepted ones, refused ones with their status, and the turns of endpoints."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest
from dibber.interface.description import (
    ADMIN,
    COMMAND,
    ENTRY,
    FLAG,
    INTERFACE,
    MCP_STATE,
    OPCODE,
    STATUS,
    C,
)

from tests.firmware import mcp_native
from tests.firmware.mcp_native import BULK, Card, admin, put, walk
from tests.gateware.models.cut import packets_of, whole


def status_of(card, command, endpoint=1):
    """Ring one command that ends at once; its status."""
    card.ring(endpoint, command)
    card.step()
    entries = card.entries()
    assert len(entries) == 1 and not card.jobs
    return STATUS.name_of(entries[0].status)


def test_boot_empties_the_region_table_starts_flows_and_publishes_its_identity():
    card = Card()
    assert card["IDENTITY"] == mcp_native.IDENTITY
    assert card["STATE"] == MCP_STATE.IDLE
    assert card.shared("version") == INTERFACE.version_word
    assert card.shared("hash") == INTERFACE.hash
    assert [index for index, *_ in card.regions] == list(range(C.REGIONS))
    assert all(access == 0 for *_, access in card.regions)
    assert card.resets == [(flow, 1) for flow in range(C.LANES * C.NODES)]


def test_put_becomes_one_job_and_completes_when_its_last_packet_is_acknowledged(card):
    card.ring(1, put(length=whole(3) + 1, cookie=77, flags=FLAG.SOLICIT))
    card.step()
    [job] = card.jobs
    assert (job.endpoint, job.slot, job.tag, job.psn, job.incarnation, job.skip) == (
        1,
        0,
        C.SLOTS,
        0,
        1,
        0,
    )
    assert card["HEAD", 1] == 1
    card.job_done(job.tag, 4)
    card.ack(BULK + 1, 2)
    card.step()
    assert card.entries() == []
    card.ack(BULK + 1, 3)
    card.step()
    [entry] = card.entries()
    assert (entry.status, entry.cookie, entry.length, entry.node) == (
        STATUS.OK,
        77,
        whole(3) + 1,
        1,
    )
    assert (entry.kind, entry.phase, entry.interrupt, entry.vector) == (ENTRY.COMPLETION, 1, 1, 1)
    assert entry.address == card.cq(1)


@pytest.mark.parametrize(
    "length,packets",
    [(0, 1), (1, 1), (4096, 1), (4097, 2), (0x8000, 8), (0x8001, 9), (whole(32767), 32767)],
)
def test_packets_of_a_length(card, length, packets):
    card.ring(1, put(length=length), put(length=8))
    card.step()
    assert [job.psn for job in card.jobs] == [0, packets]


BAD = [
    ("BAD_OPCODE", dict(opcode=0x06)),
    ("BAD_OPCODE", dict(opcode=0x7F)),
    ("BAD_OPCODE", dict(opcode=OPCODE.REGION_ADD)),
    ("BAD_OPCODE", dict(opcode=0xFF)),
    ("BAD_FLAGS", dict(flags=32)),
    ("BAD_FLAGS", dict(flags=FLAG.INTERRUPT)),
    ("BAD_FLAGS", dict(opcode=OPCODE.NOP, flags=FLAG.NOTICE)),
    ("BAD_LEVELS", dict(levels=7)),
    ("BAD_LEVELS", dict(levels=0xF0)),
    ("BAD_NODE", dict(node=0)),
    ("BAD_NODE", dict(node=C.NODES)),
    ("BAD_NODE", dict(node=0xFFFF)),
    ("BAD_NODE", dict(reserved0=1)),
    ("BAD_COUNT", dict(source=walk(0))),
    ("BAD_COUNT", dict(source=walk(8, [0]))),
    ("BAD_COUNT", dict(target=walk(0, [1 << 31, 1 << 31, 1 << 31]))),
    ("BAD_LENGTH", dict(source=walk(9))),
    ("BAD_LENGTH", dict(target=walk(8, [2]))),
    ("BAD_LENGTH", dict(target=walk(1 << 16, [1 << 16]))),
    ("BAD_LENGTH", dict(source=walk(0xFFFFFFFF, [0xFFFFFFFF] * 3))),
    ("BAD_LENGTH", dict(length=0, source=walk(1 << 16, [1 << 16]), target=walk(0))),
    ("BAD_LENGTH", dict(length=128 << 20, flags=FLAG.CHECKSUM)),
    ("REMOTE_BOUNDS", dict(target=walk(8, offset=C.MAX_OFFSET + 1))),
    ("REMOTE_BOUNDS", dict(target=walk(8, offset=C.MAX_OFFSET - 6))),
    ("REMOTE_BOUNDS", dict(target=walk(8, [1], offset=C.MAX_OFFSET + 1))),
]


@pytest.mark.parametrize("name,change", BAD, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BAD)])
def test_malformed_put_gets_its_status_and_the_next_good_one_works(card, name, change):
    command = bytearray(put(**{k: v for k, v in change.items() if k != "opcode"}, cookie=5))
    command[0] = change.get("opcode", OPCODE.PUT)
    assert status_of(card, bytes(command)) == name
    assert card.shared("refused") == 1
    card.ring(1, put())
    card.step()
    assert len(card.jobs) == 1


@pytest.mark.parametrize(
    "change",
    [
        dict(target=walk(8, offset=C.MAX_OFFSET - 7)),
        dict(length=0, source=walk(0), target=walk(5, [0])),
        dict(length=24, source=walk(1, [2, 3, 4]), target=walk(4, [3, 2])),
        dict(length=0xFFFFFFFF, source=walk(0x10001, [0xFFFF]), target=walk(0xFFFFFFFF, [1, 1, 1])),
        dict(flags=FLAG.NOTICE | FLAG.INTERRUPT | FLAG.SOLICIT | FLAG.FENCE | FLAG.CHECKSUM),
        dict(levels=0, source=walk(8, [7, 7, 7])),
    ],
)
def test_good_put_is_sent(card, change):
    card.ring(1, put(**change))
    card.step()
    assert len(card.jobs) == 1 and card.entries() == []


def test_put_is_not_for_the_administrator(card):
    assert status_of(card, put(), endpoint=0) == "BAD_OPCODE"


def test_nop_completes_at_once_on_every_endpoint(card):
    for endpoint in (0, 1):
        assert (
            status_of(
                card,
                put(flags=FLAG.SOLICIT)[:1].replace(b"\1", b"\0") + put(flags=FLAG.SOLICIT)[1:],
                endpoint,
            )
            == "OK"
        )


def test_no_job_space_leaves_the_command_in_its_slot(card):
    card["JOB_SPACE"] = 0
    card.ring(1, put())
    card.step()
    assert card["HEAD", 1] == 0 and not card.jobs and card.entries() == []
    card["JOB_SPACE"] = 1
    card.step()
    assert card["HEAD", 1] == 1 and len(card.jobs) == 1


def test_a_slot_in_use_is_not_taken_again_before_its_completion(card):
    card["JOB_SPACE"] = 64
    card.ring(1, *[put(cookie=n) for n in range(C.SLOTS)])
    card.ring(1, put(cookie=99))
    card.step(C.SLOTS + 8)
    assert len(card.jobs) == C.SLOTS and card["HEAD", 1] == C.SLOTS
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 1, 0)
    card.step()
    assert card["HEAD", 1] == C.SLOTS + 1 and card.jobs[-1].slot == 0


def test_a_command_waits_for_room_in_its_completion_queue():
    card = Card()
    assert card.open(1, cq_entries=4) == 0
    card.ring(1, *[put(cookie=n) for n in range(6)])
    card.step()
    assert len(card.jobs) == 4
    for job in card.jobs:
        card.job_done(job.tag, job.psn + 1)
    card.ack(BULK + 1, 3)
    card.step()
    card.collect()
    assert len(card.posted) == 4 and len(card.jobs) == 4
    card.entries()
    card.step()
    assert len(card.jobs) == 6


def test_endpoints_take_turns():
    card = Card()
    for endpoint in range(1, C.ENDPOINTS):
        assert card.open(endpoint) == 0
    card["JOB_SPACE"] = 200
    for endpoint in range(1, C.ENDPOINTS):
        card.ring(endpoint, *[put() for _ in range(12)])
    card.step(40)
    assert len(card.jobs) == 12 * (C.ENDPOINTS - 1)
    for n in range(12):
        turn = card.jobs[n * (C.ENDPOINTS - 1) : (n + 1) * (C.ENDPOINTS - 1)]
        assert sorted(job.endpoint for job in turn) == list(range(1, C.ENDPOINTS))


def test_an_endpoint_that_cannot_go_on_holds_up_nobody():
    card = Card()
    assert card.open(1, cq_entries=1) == 0 and card.open(2) == 0
    card["JOB_SPACE"] = 100
    card.ring(1, put(), put(), put())
    card.ring(2, *[put() for _ in range(30)])
    card.step(60)
    assert [job.endpoint for job in card.jobs].count(1) == 1
    assert [job.endpoint for job in card.jobs].count(2) == 30


def test_commands_of_a_closed_endpoint_are_dropped(card):
    card.ring(5, put(), put())
    card.step()
    assert card["HEAD", 5] == 2 and not card.jobs and card.entries() == []


def test_work_for_a_command_does_not_depend_on_its_elements(card):
    costs = []
    # After the first few, the program tries to give the flow to the fast path.
    for count in (10,) * 8 + (10000,):
        side = walk(8, [count], strides=[64])
        card.ring(1, put(length=8 * count, source=side, target=side))
        before = card.accesses.value
        card.library.mcp_step()
        costs.append(card.accesses.value - before)
        card.collect()
        job = card.jobs.pop()
        end = job.psn + packets_of(8 * count)
        card.job_done(job.tag, end)
        card.ack(BULK + 1, end - 1)
        card.step()
        assert len(card.entries()) == 1
    assert costs[-1] == costs[-2]


def test_random_commands_each_end_once_and_nothing_is_lost(seed):
    """4,000 commands of random bytes, half of them bent good ones: each completes or becomes a job,
    once.
    """
    rng = random.Random(seed)
    card = Card()
    assert card.open(1) == 0
    ended, seen = set(), set()
    for number in range(4000):
        endpoint = rng.choice((0, 1))
        if rng.random() < 0.5:
            command = bytearray(rng.randbytes(C.SLOT_BYTES))
            if rng.random() < 0.5:
                command[0] = rng.choice((0, 1, 0x80, 0x82, 0x83))
        else:
            command = bytearray(
                put(length=rng.choice((0, 8, 5000)))
                if endpoint
                else admin(OPCODE.REGION_ADD, key=rng.randrange(1, 70), length=4096, rights=15)
            )
            for _ in range(rng.randrange(3)):
                command[rng.randrange(C.SLOT_BYTES)] = rng.randrange(256)
        if command[0] == OPCODE.ENDPOINT_CLOSE:
            command[3] = 0
        cookie = ADMIN["cookie"] if command[0] >= 0x80 and not endpoint else COMMAND["cookie"]
        command[cookie.offset : cookie.offset + 4] = number.to_bytes(4, "little")
        card.ring(endpoint, bytes(command))
        card.step(4)
        for job in card.jobs:
            card["JOB_SPACE"] += 1
            end = job.psn + packets_of(job.length)
            card.job_done(job.tag, end)
            card.ack(BULK + job.node, end - 1)
            card.step(2)
        card.jobs = []
        for entry in card.entries():
            assert entry.status in range(len(STATUS.values))
            assert entry.cookie not in ended
            ended.add(entry.cookie)
        seen.add(number)
    assert ended == seen
    assert card["STATE"] == MCP_STATE.IDLE
    assert card.shared("commands") + card.shared("refused") == 4001
