"""The administrator: endpoints opened and closed, regions entered and removed."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, OPCODE, STATUS, C

from tests.firmware.mcp_native import BULK, Card, admin, put
from tests.firmware.mcp_wire import WiredCard


def region(card, opcode=OPCODE.REGION_ADD, **values):
    """REGION_ADD with good values but for those given; the status."""
    good = dict(key=0x105, base=0x1234567890, length=0x10000, rights=9, endpoint=1)
    return card.administrate(opcode, **{**good, **values})


# Regions ------------------------------------------------------------------------------------------


def test_a_region_is_entered_and_removed(card):
    card.regions.clear()
    assert region(card, base=0x12_3456_7890, length=0x1_0000_0001) == STATUS.OK
    [(index, key, low, high, length_low, length_high, _, _, access)] = card.regions
    assert (index, key, low, high) == (5, 0x105, 0x34567890, 0x12)
    assert (length_low, length_high, access) == (1, 1, 9 | 1 << 4 | 1 << 12)
    card.regions.clear()
    assert card.administrate(OPCODE.REGION_REMOVE, key=0x105) == STATUS.OK
    assert [(index, access & 1 << 12) for index, *_, access in card.regions] == [(5, 0)]


@pytest.mark.parametrize(
    "change",
    [
        dict(key=0),
        dict(rights=16),
        dict(endpoint=C.ENDPOINTS),
        dict(length=0),
        dict(length=C.MAX_OFFSET + 2),
        dict(base=2**64 - 1, length=2),
        dict(base=2**64 - 0x8000),
        dict(base=2**63 - 0x8000),
        dict(base=2**63),
    ],
)
def test_an_impossible_region_is_refused_and_not_entered(card, change):
    card.regions.clear()
    assert region(card, **change) == STATUS.BAD_ARGUMENT
    assert card.regions == []


@pytest.mark.parametrize(
    "change",
    [
        dict(length=C.MAX_OFFSET + 1),
        dict(base=2**63 - 0x10000),
        dict(key=0x80000000),
        dict(rights=0),
    ],
)
def test_a_region_at_the_limit_is_entered(card, change):
    assert region(card, **change) == STATUS.OK


@pytest.mark.parametrize(
    "page,first,table", [(12, 0, 0x1_0000_0040), (12, 4095, 2**64 - 64), (30, 2**30 - 1, 64)]
)
def test_a_paged_region_is_entered_with_its_table(card, page, first, table):
    length = (8 << page) - first
    card.regions.clear()
    assert region(card, page=page, first=first, base=table, length=length) == STATUS.OK
    [(index, key, low, high, length_low, length_high, table_low, table_high, access)] = card.regions
    assert (index, key, low | high << 32) == (5, 0x105, 1 << 63 | 5 << 57 | first)
    assert (length_low | length_high << 32, table_low | table_high << 32) == (length, table)
    assert access == 9 | 1 << 4 | 1 << 12 | page << 13


@pytest.mark.parametrize(
    "change",
    [
        dict(page=11),
        dict(page=31),
        dict(page=0xFFFF),
        dict(first=4096),
        dict(base=32),
        dict(base=2**64 - 64, length=8 * 4096 + 1),
        dict(length=0),
        dict(length=C.MAX_OFFSET + 2),
    ],
)
def test_an_impossible_paged_region_is_refused_and_not_entered(card, change):
    card.regions.clear()
    assert (
        region(card, **{**dict(page=12, base=0x1000, first=0, length=4096), **change})
        == STATUS.BAD_ARGUMENT
    )
    assert card.regions == []


def test_a_removal_ends_when_nothing_is_under_way_that_had_found_the_region(card):
    assert region(card) == STATUS.OK
    card.regions.clear()
    card["REGION_BUSY"] = 1
    card.ring(0, admin(OPCODE.REGION_REMOVE, key=0x105, cookie=7))
    for _ in range(5):
        card.step()
    assert [(index, access & 1 << 12) for index, *_, access in card.regions] == [(5, 0)], (
        "taken out once, and at once"
    )
    assert 7 not in {entry.cookie for entry in card.entries()}
    card["REGION_BUSY"] = 0
    card.step()
    assert [entry.status for entry in card.entries() if entry.cookie == 7] == [STATUS.OK]
    assert region(card, key=0x205) == STATUS.OK


def test_a_region_entry_in_use_is_not_overwritten(card):
    assert region(card) == STATUS.OK
    card.regions.clear()
    assert region(card, key=0x205) == STATUS.IN_USE
    assert card.administrate(OPCODE.REGION_REMOVE, key=0x205) == STATUS.BAD_ARGUMENT
    assert card.regions == []


@pytest.mark.parametrize("key", [C.REGIONS, 0xFF, 0x80000000, 2**32 - 1])
def test_the_low_bits_of_any_key_are_its_entry(card, key):
    card.regions.clear()
    assert region(card, key=key) == STATUS.OK
    assert [entry[:2] for entry in card.regions] == [(key % C.REGIONS, key)]
    assert card.administrate(OPCODE.REGION_REMOVE, key=key ^ 1 << 6) == STATUS.BAD_ARGUMENT
    assert card.administrate(OPCODE.REGION_REMOVE, key=key) == STATUS.OK


@pytest.mark.fault
def test_a_key_that_was_given_before_is_refused_and_not_entered(card):
    card.regions.clear()
    card["REGION_FRESH"] = 0
    assert region(card) == STATUS.IN_USE
    assert card.regions == [] and card["REGION_KEY"] == 0x105, (
        "it is this key that the gateware was asked about"
    )
    card["REGION_FRESH"] = 1
    assert region(card) == STATUS.OK


@pytest.mark.fault
def test_contexts_of_each_program_have_another_generation(card):
    generations = []
    for _ in range(3):
        card.boot()
        generations.append(card["GENERATION"])
    assert len(set(generations)) == 3


def test_only_the_administrator_enters_regions(card):
    card.regions.clear()
    card.ring(1, admin(OPCODE.REGION_ADD, key=0x105, length=4096))
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.BAD_OPCODE] and card.regions == []


def test_unknown_flags_and_opcodes_of_the_administrator_are_refused(card):
    assert card.administrate(OPCODE.REGION_REMOVE, key=1, flags=FLAG.NOTICE) == STATUS.BAD_FLAGS
    assert card.administrate(0x86) == STATUS.BAD_OPCODE


# Endpoints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        dict(endpoint=C.ENDPOINTS),
        dict(endpoint=255),
        dict(vector=C.VECTORS),
        dict(vector=0xFFFF),
        dict(page=1),
        dict(cq_entries=0),
        dict(eq_entries=0),
        dict(cq_entries=3),
        dict(eq_entries=2 * C.QUEUE_MAX_ENTRIES),
        dict(cq_base=16),
        dict(eq_base=0x1001),
        dict(cq_base=2**64 - 32),
    ],
)
def test_an_impossible_endpoint_is_not_opened(card, change):
    good = dict(
        endpoint=2, cq_base=card.cq(2), eq_base=card.eq(2), cq_entries=16, eq_entries=16, vector=2
    )
    assert card.administrate(OPCODE.ENDPOINT_OPEN, **{**good, **change}) == STATUS.BAD_ARGUMENT
    assert card.administrate(OPCODE.ENDPOINT_OPEN, **good) == STATUS.OK


def test_an_endpoint_that_the_card_does_not_have_is_refused_as_one_that_cannot_be(card):
    """This card has four endpoints; the state of the others stays unchanged."""
    card["ENDPOINTS"] = 4
    good = dict(cq_base=card.cq(2), eq_base=card.eq(2), cq_entries=16, eq_entries=16)
    card.regions.clear()
    for endpoint in range(4, C.ENDPOINTS):
        assert (
            card.administrate(OPCODE.ENDPOINT_OPEN, endpoint=endpoint, **good)
            == STATUS.BAD_ARGUMENT
        )
        assert card.administrate(OPCODE.ENDPOINT_CLOSE, endpoint=endpoint) == STATUS.BAD_ARGUMENT
        assert region(card, endpoint=endpoint) == STATUS.BAD_ARGUMENT
    assert card.regions == [] and card["FAST_ENDPOINTS"] == 1 << 1
    for endpoint in (2, 3):
        assert card.administrate(OPCODE.ENDPOINT_OPEN, endpoint=endpoint, **good) == STATUS.OK
        assert region(card, key=0x100 + endpoint, endpoint=endpoint) == STATUS.OK
    assert card["FAST_ENDPOINTS"] == 0b1110


def test_an_open_endpoint_is_not_opened_again(card):
    assert card.open(1) == STATUS.IN_USE
    assert card.open(0) == STATUS.OK
    assert card.open(0) == STATUS.IN_USE


def test_endpoint_0_can_be_opened_and_is_the_administrators_as_well():
    card = WiredCard()
    card.ring(0, put(cookie=1))
    card.settle()
    assert card.statuses == {1: STATUS.BAD_OPCODE}
    assert card.open(0) == STATUS.OK
    card.ring(
        0, put(cookie=2), admin(OPCODE.REGION_ADD, key=0x105, length=4096, cookie=3), put(cookie=4)
    )
    card.settle()
    assert (card.statuses[2], card.statuses[3], card.statuses[4]) == (0, 0, 0)
    assert {e.address & ~0xFFF for e in card.entries()} <= {card.cq(0) & ~0xFFF}


def test_closing_endpoint_0_waits_for_its_transfers_and_leaves_the_administrator():
    card = WiredCard()
    assert card.open(0) == STATUS.OK
    card.ring(0, put(cookie=1), admin(OPCODE.ENDPOINT_CLOSE, endpoint=0, cookie=2))
    card.settle()
    assert list(card.statuses.items())[-2:] == [(1, STATUS.OK), (2, STATUS.OK)]
    card.ring(0, put(cookie=3))
    card.settle()
    assert card.statuses[3] == STATUS.BAD_OPCODE
    assert (
        card.administrate(OPCODE.REGION_ADD, key=0x105, length=4096) == STATUS.OK
        and card.open(0) == STATUS.OK
    )


@pytest.mark.parametrize("endpoint", [0, 2, C.ENDPOINTS, 255])
def test_what_is_not_open_cannot_be_closed(card, endpoint):
    assert card.administrate(OPCODE.ENDPOINT_CLOSE, endpoint=endpoint) == STATUS.BAD_ARGUMENT


def test_a_closed_endpoint_can_be_opened_again_and_its_queue_starts_afresh(card):
    card.ring(1, put(cookie=1))
    card.step()
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 1, 0)
    card.step()
    assert [e.address for e in card.entries()] == [card.cq(1)]
    assert card.administrate(OPCODE.ENDPOINT_CLOSE, endpoint=1) == STATUS.OK
    assert card.open(1) == STATUS.OK
    card.ring(1, bytes(C.SLOT_BYTES))
    card.step()
    [entry] = card.entries()
    assert (entry.address, entry.phase) == (card.cq(1), 1)


def test_closing_waits_for_the_endpoints_transfers_and_flushes_what_was_not_taken():
    card = WiredCard()
    card["JOB_SPACE"] = 2
    card.ring(1, *[put(cookie=n) for n in range(5)])
    card.step()
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99, flags=FLAG.SOLICIT))
    card.step(20)
    card.observe()
    assert card.statuses == {2: STATUS.FLUSHED, 3: STATUS.FLUSHED, 4: STATUS.FLUSHED}
    card.settle()
    assert card.statuses == {
        0: 0,
        1: 0,
        2: STATUS.FLUSHED,
        3: STATUS.FLUSHED,
        4: STATUS.FLUSHED,
        99: 0,
    }
    assert list(card.statuses)[-1] == 99
    card.ring(1, put(cookie=100))
    card.settle()
    assert 100 not in card.statuses and card["HEAD", 1] == 6


def test_closing_an_endpoint_that_rang_far_too_often_ends():
    card = WiredCard()
    card["JOB_SPACE"] = 0
    card.ring(1, *[put(cookie=n) for n in range(C.SLOTS)])
    card["PRODUCER", 1] += 1_000_000
    card.ring(0, admin(OPCODE.ENDPOINT_CLOSE, endpoint=1, cookie=99))
    card.step(40)
    card.observe()
    assert card.statuses[99] == STATUS.OK and card["HEAD", 1] == card["PRODUCER", 1]


@pytest.mark.parametrize(
    "change",
    [
        dict(ADMIN_CQ_ENTRIES=0),
        dict(ADMIN_CQ_ENTRIES=48),
        dict(ADMIN_CQ_LOW=8),
        dict(ADMIN_VECTOR=C.VECTORS),
    ],
)
def test_without_a_possible_queue_for_the_administrator_nothing_is_written(change):
    card = Card(boot=False)
    card["ADMIN_CQ_ENTRIES"] = 64
    for name, value in change.items():
        card[name] = value
    card.library.mcp_boot()
    card.ring(0, bytes(C.SLOT_BYTES))
    card.step()
    assert card["IDENTITY"] and card.posted == [] and card["HEAD", 0] == 1


def test_commands_rung_before_boot_are_not_executed():
    card = Card(boot=False)
    card["PRODUCER", 0], card["CQ_CONSUMER", 0] = 41, 41
    card.boot()
    card.step()
    assert card.posted == [] and card["HEAD", 0] == 41
    assert card.open(1) == STATUS.OK


def test_started_without_a_queue_it_takes_the_one_that_it_is_told_of_later():
    """Another process than the owner has loaded the program. Commands that the owner rings before
    it notices are never executed.
    """
    card = Card(boot=False)
    card["ADMIN_CQ_LOW"], card["ADMIN_CQ_HIGH"] = card.ADMIN_CQ & 0xFFFFFFFF, card.ADMIN_CQ >> 32
    card["ADMIN_CQ_ENTRIES"] = card["ADMIN_VECTOR"] = 0
    card.library.mcp_boot()
    card.collect()
    for count in (1, 40):
        card.regions.clear()
        card.ring(
            0, *[admin(OPCODE.REGION_ADD, key=0x105, base=0x1000, length=8, rights=1)] * count
        )
        card.step(20)
        assert (
            card.entries() == [] and card.regions == [] and card["HEAD", 0] == card["PRODUCER", 0]
        )
    card["ADMIN_CQ_ENTRIES"] = 64
    card.step()
    assert region(card) == STATUS.OK and [index for index, *_ in card.regions] == [5]
    assert card.open(1) == STATUS.OK and card.shared("regions") == 1
