"""Queue entries in host memory: place, phase, fullness, interrupts; and notices that arrive."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes

import pytest
from dibber.interface.description import COMMAND, ENTRY, FLAG, MCP_STATE, OPCODE, STATUS, TRACE, C

from tests.firmware.mcp_native import BULK, Card, pack_struct, put

NOP = bytes(C.SLOT_BYTES)
NOP_SOLICIT = pack_struct(COMMAND, dict(opcode=OPCODE.NOP, flags=FLAG.SOLICIT))


def test_phase_turns_at_each_pass_through_the_queue():
    card = Card()
    assert card.open(1, cq_entries=4) == 0
    entries = []
    for _ in range(10):
        card.ring(1, NOP)
        card.step()
        entries += card.entries()
    assert [(e.address - card.cq(1)) // 32 for e in entries] == [n % 4 for n in range(10)]
    assert [e.phase for e in entries] == [1, 1, 1, 1, 0, 0, 0, 0, 1, 1]


def test_an_address_carries_into_its_high_word():
    card = Card()
    base = 0x7_FFFF_FFE0
    assert (
        card.administrate(
            OPCODE.ENDPOINT_OPEN,
            endpoint=1,
            cq_base=base,
            eq_base=0,
            cq_entries=2,
            eq_entries=2,
            vector=3,
        )
        == 0
    )
    card.ring(1, NOP, NOP)
    card.step()
    assert [e.address for e in card.posted] == [base, 0x8_0000_0000]


def test_cycles_are_the_64_bit_clock(card):
    card.library.fake_advance(0x5_0000_0000)
    card.ring(1, NOP)
    card.step()
    [entry] = card.entries()
    assert 0 <= card.library.fake_now() - entry.cycles < 2000


def test_only_a_soliciting_completion_interrupts(card):
    card.ring(1, NOP, NOP_SOLICIT)
    card.step()
    assert [(e.interrupt, e.vector) for e in card.entries()] == [(0, 1), (1, 1)]


def test_posts_wait_while_the_gateware_has_no_space_and_none_is_lost(card, monkeypatch):
    monkeypatch.setattr(card, "post_space", lambda: None)
    """A post that waits holds its slot, so three endpoints ring more than there is room for."""
    cookies = {endpoint: list(range(30)) for endpoint in (1, 2, 3)}
    for endpoint in (2, 3):
        assert card.open(endpoint) == 0
        card["POST_SPACE"] += 1
    for endpoint, numbers in cookies.items():
        card.ring(
            endpoint, *[pack_struct(COMMAND, dict(opcode=OPCODE.NOP, cookie=n)) for n in numbers]
        )
    card.step(50)
    assert card["POST_SPACE"] == 0 and 64 <= sum(card["HEAD", n] for n in cookies) < 90
    posted = card.entries()
    for _ in range(90):
        card["POST_SPACE"] = 1
        card.step(1)
        posted += card.entries()
    assert {n: [e.cookie for e in posted if e.vector == n] for n in cookies} == cookies


@pytest.mark.parametrize("every", [30, 77, 150])
def test_posts_keep_their_order_when_space_comes_at_any_moment(card, monkeypatch, every):
    monkeypatch.setattr(card, "post_space", lambda: None)
    ctypes.c_uint32.in_dll(card.library, "fake_post_every").value = every
    cookies = []
    for n in range(0, 120, 30):
        card.ring(
            1, *[pack_struct(COMMAND, dict(opcode=OPCODE.NOP, cookie=n + k)) for k in range(30)]
        )
        for _ in range(4000):
            if len(cookies) == n + 30:
                break
            card.step(1)
            cookies += [e.cookie for e in card.entries()]
    assert cookies == list(range(120))


def test_a_host_that_counts_backwards_loses_its_completions_and_nothing_else(card):
    card.ring(1, put(cookie=1))
    card.step()
    card["CQ_CONSUMER", 1] = 0xFFFF0000
    for _ in range(80):
        card.ring(1, NOP)
    card.job_done(card.jobs[0].tag, 1)
    card.ack(BULK + 1, 0)
    card.step(100)
    assert card["STATE"] == MCP_STATE.IDLE
    assert card.administrate(OPCODE.REGION_ADD, key=1, length=1) == STATUS.OK


def test_events_wait_for_space_too(card, monkeypatch):
    monkeypatch.setattr(card, "post_space", lambda: None)
    for value in range(60):
        card.arrive(node=1, endpoint=1, value=value)
    card.step(50)
    values = [e.cookie for e in card.entries()]
    for _ in range(60):
        card["POST_SPACE"] = 1
        card.step(1)
        values += [e.cookie for e in card.entries()]
    assert values == list(range(60))


# Notices ------------------------------------------------------------------------------------------


def test_a_notice_becomes_an_event_and_interrupts_when_asked(card):
    card.arrive(node=3, endpoint=1, value=0xABCD, length=4096, key=0x207)
    card.arrive(node=4, endpoint=1, value=0xABCE, length=1, key=0x208, interrupt=True)
    card.step()
    first, second = card.entries()
    assert (first.cookie, first.length, first.node, first.key) == (0xABCD, 4096, 3, 0x207)
    assert (first.kind, first.status, first.interrupt, first.address) == (
        ENTRY.NOTICE,
        0,
        0,
        card.eq(1),
    )
    assert (second.cookie, second.interrupt, second.vector, second.address) == (
        0xABCE,
        1,
        1,
        card.eq(1) + 32,
    )


@pytest.mark.fault
def test_events_lost_to_a_full_queue_are_counted_in_the_entries_after_them():
    card = Card()
    assert card.open(1, eq_entries=2) == 0
    for value in range(5):
        card.arrive(node=1, endpoint=1, value=value)
    card.step()
    card.collect()
    assert [e.cookie for e in card.posted] == [0, 1]
    assert card.word("events_lost") == 3
    card.entries()
    card.arrive(node=1, endpoint=1, value=9)
    card.step()
    [entry] = card.entries()
    assert (entry.cookie, entry.overruns, entry.phase) == (9, 3, 0)


@pytest.mark.fault
def test_a_notice_for_an_endpoint_that_is_not_there_is_counted(card):
    for endpoint in (0, 2, C.ENDPOINTS, 255):
        card.arrive(node=1, endpoint=endpoint, value=1)
    card.step()
    assert card.entries() == [] and card.word("events_lost") == 4


def test_arrivals_and_commands_take_turns(card):
    for value in range(100):
        card.arrive(node=1, endpoint=1, value=value)
    card.ring(1, put())
    card.library.mcp_step()
    card.collect()
    assert len(card.jobs) == 1 and 0 < len(card.posted) < 20


def test_handlers_account_for_their_work(card):
    before = card.handler("COMMAND")
    card.ring(1, NOP)
    card.step()
    after = card.handler("COMMAND")
    assert after["calls"] == before["calls"] + 1
    assert (
        after["cycles"] > before["cycles"]
        and after["longest"] >= after["cycles"] - before["cycles"]
    )
    assert card.handler("ARRIVAL")["calls"] == 0


def test_the_trace_tells_what_happened(card):
    head = card.shared("trace_head")
    card.ring(1, NOP)
    card.step()
    events = [
        int.from_bytes(bytes(card.shared_bytes)[16 * n + 4 : 16 * n + 8], "little")
        for n in range(head % C.TRACE_ENTRIES, card.shared("trace_head") % C.TRACE_ENTRIES)
    ]
    assert [(e >> 8, e & 0xFF) for e in events] == [
        (TRACE.COMMAND, MCP_STATE.COMMAND),
        (TRACE.COMPLETION, MCP_STATE.COMMAND),
    ]
