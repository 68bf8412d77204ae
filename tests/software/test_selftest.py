"""`dibber selftest` on a mock card with faults: it finds and names each fault, and returns 1."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import random
import types

import numpy as np
import pytest
from dibber.interface.description import HOST, LINK_REASON, LINK_STATE, C
from dibber_cli import paths
from dibber_cli.main import main
from dibber_cli.selftest import cable, deposits, registers
from dibber_cli.selftest.commands import ITEMS, run

BEFORE_PROGRAM = ITEMS[:4]
GEOMETRY = C.ENDPOINTS | C.SLOTS << 8 | C.REGIONS << 16 | C.NODES << 26


def items(uri, wanted=BEFORE_PROGRAM):
    """{item: (verdict, detail)} of one card."""
    (card,) = run([uri], 1, items=wanted)
    return {i.item: (i.verdict, i.detail) for i in card.items}


def test_a_good_card_passes_what_needs_no_control_program(serve):
    found = items(serve(identity=registers.READY).uri)
    assert list(found) == [name for name, _ in BEFORE_PROGRAM] and {
        verdict for verdict, _ in found.values()
    } == {"pass"}


def test_a_card_that_is_not_there_fails_its_first_item_and_has_no_others():
    found = items("sim:/nowhere")
    assert (
        list(found) == ["identity"]
        and found["identity"][0] == "FAIL"
        and "NOT_FOUND" in found["identity"][1]
    )


def write_through(mock, name, change):
    """Let a register of the mock hold change(value) when `value` is written to it."""
    write, at = mock.device.bar_write, HOST[name].offset

    def bar_write(offset, data):
        if offset == at:
            data = change(int.from_bytes(data, "little")).to_bytes(4, "little")
        write(offset, data)

    mock.device.bar_write = bar_write


@pytest.mark.parametrize(
    "change, bits",
    [
        (lambda v: v & ~(1 << 7), "00000080"),  # stuck at 0
        (lambda v: v | 1 << 31, "80000000"),  # stuck at 1
        (lambda v: v & ~3 | (v & 1) << 1 | v >> 1 & 1, "00000003"),
    ],
)  # exchanged
def test_a_scratch_bit_that_is_wrong_is_named(serve, change, bits):
    mock = serve()
    write_through(mock, "SCRATCH", change)
    verdict, detail = items(mock.uri)["scratch register"]
    assert verdict == "FAIL" and f"bits {bits} differ" in detail


def test_scratch_is_left_as_it_was(serve):
    mock = serve()
    mock.device.registers[HOST["SCRATCH"].offset] = 0x12345678
    items(mock.uri)
    assert mock.device.get("SCRATCH") == 0x12345678


def test_a_bit_of_the_sram_that_reads_wrong_has_its_address(serve):
    verdict, detail = items(serve(identity=registers.READY, flips=0x8004).uri)["SRAM"]
    assert (
        verdict == "FAIL"
        and "1 of 32768 words wrong, the first at 0x8004" in detail
        and "bits 00000001 differ" in detail
    )


def test_an_address_line_that_is_stuck_is_found(serve):
    mock = serve(identity=registers.READY)
    write = mock.device.bar_write

    def bar_write(offset, data):
        if C.FIRMWARE_BASE <= offset < C.FIRMWARE_BASE + len(mock.device.sram):
            offset &= ~0x4000
        write(offset, data)

    mock.device.bar_write = bar_write
    verdict, detail = items(mock.uri)["SRAM"]
    assert verdict == "FAIL" and "words wrong" in detail


def test_the_sram_patterns_turn_every_bit_and_tell_all_addresses_apart():
    first, second = registers.patterns(0x10000)
    code = len(registers._idle_program())
    assert np.all(first[code:] ^ second[code:] == 0xFFFFFFFF)
    assert all(len(set(content.tolist())) == 0x4000 for content in (first, second))


@pytest.mark.parametrize(
    "name, value, item, words",
    [
        ("DATA_WIDTH", 256, "identity", "256 bits"),
        ("DATA_WIDTH", 32, "identity", "a link tester"),
        ("CLOCK_HZ", 5, "identity", "5 Hz"),
        ("GEOMETRY", GEOMETRY ^ 8 ^ 6, "identity", "6 endpoints: there are 2, 4, 8"),
        ("GEOMETRY", GEOMETRY ^ 1 << 26, "identity", "geometry is"),
        ("PCIE_STATUS", 200 | 512 << 16, "PCIe", "max_payload of 200"),
    ],
)
def test_what_cannot_be_is_said(serve, name, value, item, words):
    mock = serve()
    mock.device.registers[HOST[name].offset] = value
    verdict, detail = items(mock.uri)[item]
    assert verdict == "FAIL" and words in detail


def test_a_card_may_have_fewer_endpoints(serve):
    mock = serve()
    mock.device.registers[HOST["GEOMETRY"].offset] = GEOMETRY ^ 8 ^ 4
    assert items(mock.uri)["identity"][0] == "pass"


def test_pcie_errors_are_counted_at_the_end(serve):
    mock = serve()
    mock.device.registers[HOST["COUNT_COMPLETION_ERROR"].offset] = 2
    wanted = [*BEFORE_PROGRAM, ITEMS[-1]]
    assert items(mock.uri, wanted)["PCIe errors"] == ("FAIL", "completion_error 2")


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def firmware(image, monkeypatch):
    monkeypatch.setattr(paths, "FIRMWARE", paths.Path(image()))


def set_link(mock, state, reason):
    mock.device.registers[HOST["LINK_STATUS"].offset] = state | reason << 9


@pytest.mark.parametrize(
    "state, reason, cable, failed",
    [
        (LINK_STATE.DOWN, LINK_REASON.NO_SIGNAL, "none", False),
        (LINK_STATE.ALIGN, LINK_REASON.LOOPBACK, "loopback", False),
        (LINK_STATE.DOWN, LINK_REASON.WRONG_RATE, "wrong", True),
        (LINK_STATE.UP, LINK_REASON.NONE, "wrong", True),
    ],
)  # the mock answers no ping
def test_the_cable_is_told(serve, firmware, capsys, state, reason, cable, failed):
    mock = serve()
    set_link(mock, state, reason)
    assert main(["selftest", "--json", mock.uri]) == 1  # its near-end loopback cannot work
    (card,) = json.loads(capsys.readouterr().out)["cards"]
    assert card["cable"] == cable and ("link" in card["failed"]) == failed


def test_the_item_that_failed_is_named_and_those_that_need_it_are_not_tested(
    serve, firmware, capsys
):
    mock = serve(identity=0)  # its control program never becomes ready
    assert main(["selftest", mock.uri]) == 1
    out = capsys.readouterr().out
    assert (
        "Card 0 fails: SRAM, control program" in out
        and "not tested: clock, queues, interrupts" in out
    )


def test_more_than_two_cards_make_no_sense(capsys):
    assert main(["selftest", "sim:a", "sim:b", "sim:c"]) == 2
    assert "one card or two" in capsys.readouterr().err


# Patterns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [deposits.SIZE, deposits.SMALL])
def test_the_shapes_do_not_meet_in_the_target_and_leave_guards(size):
    touched = np.zeros(deposits.SPARSE * size, dtype=int)
    for _, source, target in deposits.shapes(1, 2, size):
        assert source.length == target.length
        assert max(source.blocks()) + source.block <= size
        for block in target.blocks():
            touched[block : block + target.block] += 1
    assert touched.max() == 1 and (touched == 0).sum() > deposits.SPARSE * size // 4


@pytest.mark.parametrize("name", deposits.CONTENTS)
def test_each_pattern_turns_every_bit_of_a_byte(name):
    data = deposits.content(name, 1, 0)
    assert (
        len(data) == deposits.SIZE
        and np.bitwise_or.reduce(data) == 255
        and np.bitwise_and.reduce(data) == 0
    )


def test_a_link_that_comes_up_only_while_the_cards_wait_for_each_other_passes(monkeypatch):
    up = {"state": "UP", "stopped": [], "peer": 0x1234}
    monkeypatch.setattr(cable.measure, "train", lambda side: ({"state": "HELLO"}, None))
    monkeypatch.setattr(cable.measure, "round_trip", lambda side: 400.0)
    monkeypatch.setattr(cable.status, "read", lambda card: up)
    monkeypatch.setattr(cable.status, "read_state", lambda card: up)
    card = types.SimpleNamespace(write_register=lambda name, value: None)
    examinee = types.SimpleNamespace(
        needs_program=lambda: None,
        meeting=True,
        meet=lambda: None,
        random=random.Random(1),
        node=0,
        card=card,
        sleep=lambda nanoseconds: None,
    )
    said = cable.link(examinee)
    assert examinee.cable == "direct" and "up after more than 1000 µs" in said
