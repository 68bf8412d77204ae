# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The card of a board without PCIe, opened by libdibber over its UART, and what `dibber` says of it: one card that hears
itself, and two with a cable between them.
"""

import pathlib
import random

import pytest

from dibber.interface.description import MCP_STATE

import libdibber
from dibber_cli.flash import board as boards, images
from dibber_cli.main import main as dibber
from dibber_cli.selftest import cable, deposits, examinee, program, registers
from dibber_cli.selftest.commands import run

from test_flash import published
from wire import Wire

IMAGE = str(pathlib.Path(__file__).resolve().parents[2]/"build"/"firmware"/"mcp.dibfw")

# All but the SRAM, which takes half a minute here, and the clock, which has nothing to do with the time of day.
ITEMS = (
    ("identity",          registers.identity),
    ("PCIe",              registers.pcie),
    ("scratch register",  registers.scratch),
    ("control program",   program.start),
    ("queues",            program.queues),
    ("interrupts",        program.interrupts),
    ("near-end loopback", cable.near_end),
    ("link",              cable.link),
    ("DMA patterns",      deposits.deposits),
    ("PCIe errors",       registers.pcie_errors),
)


@pytest.fixture
def wire(bridged_card, request):
    wire = Wire(bridged_card, request.param)
    yield wire
    wire.close()


@pytest.mark.parametrize("wire", [1], indirect=True)
def test_the_command_line_looks_at_a_card_loads_it_and_shows_its_trace(wire, capsys):
    uri = wire.uris[0]

    def said(*words):
        assert dibber([*words, uri]) == 0
        return capsys.readouterr().out

    shown = said("info")
    assert "RESET, identity 00000000" in shown and "64 bits at 40 MHz" in shown and "64 KiB on the card" in shown
    assert "runs on uart:" in said("fw", "load", IMAGE)
    identity = pathlib.Path(IMAGE).read_bytes()[24:28][::-1].hex()  # struct firmware_header
    assert f", identity {identity}" in said("info")
    assert "words_received" in said("link", "status")
    assert "INCARNATION" in said("fw", "trace")


@pytest.mark.parametrize("wire", [2], indirect=True)
def test_two_cards_pass_the_self_test_and_bytes_go_between_their_memories(wire):
    cards = run(wire.uris, seed=1, items=ITEMS)
    for card in cards:
        items = {item.item: item for item in card.items}
        assert not card.failed, items
        assert [name for name in items if items[name].verdict == examinee.SKIPPED] == ["interrupts"]
        assert card.cable == "direct"


@pytest.mark.parametrize("wire", [1], indirect=True)
def test_the_card_writes_its_board_s_flash_over_its_uart(wire, tmp_path, capsys):
    uri, board = wire.uris[0], boards.find("ecpix5")
    golden, user = [images.PREAMBLE + random.Random(n).randbytes(700) for n in range(2)]
    assert dibber(["info", uri]) == 0 and "ecpix5, flash" in capsys.readouterr().out
    assert dibber(["flash", "--golden", uri, str(published(tmp_path/"golden", golden, "ecpix5_link"))]) == 0
    assert dibber(["flash", uri, str(published(tmp_path/"user", user))]) == 0
    assert f"the user image at 0x0: {len(user)} bytes written and read back" in capsys.readouterr().out
    with libdibber.Card(uri) as card:
        assert card.flash_read(0, len(user)) == user and card.flash_read(board.golden, len(golden)) == golden
        assert images.jumps_to(card.flash_read(board.flash - images.PAGE, images.PAGE)) == board.golden
    assert dibber(["flash", uri, str(published(tmp_path/"other", user, "versa_ecp5", "LFE5UM5G-45F"))]) == 1
    assert "is for versa_ecp5, the card is on ecpix5" in capsys.readouterr().err


@pytest.mark.parametrize("wire", [1], indirect=True)
def test_an_adapter_that_goes_is_told(wire):
    with libdibber.Card(wire.uris[0]) as card:
        assert card.info()["mcp_state"] == MCP_STATE.RESET
        wire.close()
        with pytest.raises(libdibber.DibberError, match="unplugged") as error:
            card.info()
        assert error.value.name == "LOST"
