"""The card of a board without PCIe, opened by libdibber over its UART, with the output of `dibber`:
one card in loopback, and two with a cable between them.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import random
import subprocess
import sys

import libdibber
import pytest
from dibber.interface.description import (
    ADMIN,
    DOORBELL,
    FIRMWARE_HEADER,
    HOST,
    LINK_STATE,
    MCP_STATE,
    OPCODE,
    RIGHT,
    STATUS,
    C,
)
from dibber_cli.flash import board as boards
from dibber_cli.flash import images
from dibber_cli.main import main as dibber
from dibber_cli.selftest import cable, deposits, examinee, program, registers
from dibber_cli.selftest.commands import run

from boards.bridged import ENDPOINTS
from tests.boards import frames
from tests.boards.test_flash import published
from tests.boards.wire import Wire
from tests.software.expect import fails
from tests.software.mock_card import encode

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = str(ROOT / "build" / "firmware" / "mcp.dibfw")


def identity_of(sram_bytes):
    """The identity of the image for so much SRAM in the file."""
    file, at = pathlib.Path(IMAGE).read_bytes(), 0
    while at < len(file):
        word = lambda name, at=at: int.from_bytes(
            file[at + FIRMWARE_HEADER[name].offset :][:4], "little"
        )
        if word("sram") == sram_bytes:
            return word("identity")
        at += FIRMWARE_HEADER.size + word("bytes")
    raise AssertionError(f"no image for {sram_bytes} bytes of SRAM")


# Queues of all endpoints that find room beside a region.
SHORT = dict(cq_entries=32, eq_entries=32)

# All but the SRAM, which takes half a minute here, and the clock, which has nothing to do with the
# time of day.
ITEMS = (
    ("identity", registers.identity),
    ("PCIe", registers.pcie),
    ("scratch register", registers.scratch),
    ("control program", program.start),
    ("queues", program.queues),
    ("interrupts", program.interrupts),
    ("near-end loopback", cable.near_end),
    ("link", cable.link),
    ("DMA patterns", deposits.deposits),
    ("PCIe errors", registers.pcie_errors),
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
    assert (
        "RESET, identity 00000000" in shown
        and "64 bits at 64 MHz" in shown
        and "64 KiB on the card" in shown
    )
    assert "runs on uart:" in said("fw", "load", IMAGE)
    assert f", identity {identity_of(0x10000):08x}" in said("info")
    assert "SRAM 64 KiB, image at most 35840 bytes: it has " in said("info")
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


@pytest.mark.parametrize("wire", [2], indirect=True)
def test_two_programs_with_a_uart_each_share_nothing_but_tcp_and_the_cable(wire, port):
    """The example put_strided for two terminals: one program in C, one in Python."""
    examples, built = ROOT / "examples" / "two_hosts", ROOT / "build" / "lib" / "examples"
    programs = [
        subprocess.Popen(
            [str(word) for word in (*command, way, where, uri)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": str(examples), "DIBBER_TOKEN": "word"},
        )
        for command, way, where, uri in (
            ([built / "two_hosts" / "put_strided"], "listen", port, wire.uris[0]),
            (
                [sys.executable, "-P", examples / "put_strided.py"],
                *("connect", f"localhost:{port}", wire.uris[1]),
            ),
        )
    ]
    said = [one.communicate(timeout=300)[0] for one in programs]
    assert [one.returncode for one in programs] == [0, 0], said
    assert said == ["notice 7: column 5 ends with 63\n", "column 3 is on its way\n"]


def ended(endpoint):
    """Status of the command that ends next."""
    assert endpoint.wait(60_000_000_000)
    [done] = endpoint.poll(1)
    return done.status


@pytest.mark.parametrize("wire", [2], indirect=True)
def test_the_card_has_four_endpoints_and_what_names_another_is_refused(wire):
    """By the library, and from the wire: no other card sees it."""
    cards = [libdibber.Card(uri) for uri in wire.uris]
    for node, card in enumerate(cards):
        assert card.info()["endpoints"] == card.read_register("GEOMETRY") & 0xFF == ENDPOINTS == 4
        card.set_node(node)
        card.load_firmware(IMAGE)
    while cards[0].info()["link_state"] != LINK_STATE.UP:
        pass
    for number in range(ENDPOINTS, C.ENDPOINTS):
        with fails("ARGUMENT", f"endpoint {number}: this card has 0 to 3"):
            cards[0].endpoint(number)
        with fails("ARGUMENT", f"endpoint {number} of 4"):
            cards[0].read_doorbell(number, "COMMAND_HEAD")

    ours, theirs = (
        [card.endpoint(n, **(SHORT if n else {})) for n in range(ENDPOINTS)] for card in cards
    )
    memory = libdibber.alloc(4096)
    with theirs[1].register(memory, RIGHT.REMOTE_WRITE) as target:
        for fast_path in (31, 0):
            cards[1].write_register("FAST_PATH", fast_path)
            for n in range(C.ENDPOINTS):
                ours[1 + n % 3].put_inline(
                    bytes([n + 1] * 8), target.key, 8 * n, node=1, notice=n, endpoint=n
                )
                assert ended(ours[1 + n % 3]) == STATUS.OK
            for n, endpoint in enumerate(theirs):
                assert endpoint.wait(60_000_000_000)
                assert [event.notice for event in endpoint.poll_events()] == [n]
            assert cards[1].info()["counters"]["events_lost"] == (4 if fast_path else 8)
        assert bytes(memory[:64]) == bytes(n + 1 for n in range(8) for _ in range(8))
    for card in cards:
        card.close()


class Bus:
    """The bus of a card, without libdibber."""

    def __init__(self, port):
        self.file, self.number = os.open(port, os.O_RDWR | os.O_NOCTTY), 0

    def _exchange(self, *what, **more):
        self.number += 1
        frame, answer = frames.request(self.number, *what, **more), b""
        os.write(self.file, frame)
        while len(answer) < frames.reply_bytes(frame):
            answer += os.read(self.file, 4096)
        return frames.words(answer)[1:-2]

    def read(self, address, words=1):
        return self._exchange(address, words)

    def write(self, address, *data):
        self._exchange(address, data=list(data))


@pytest.mark.parametrize("wire", [1], indirect=True)
def test_pages_that_the_card_does_not_have_are_nothing_and_its_program_refuses_to_open_them(wire):
    with libdibber.Card(wire.uris[0]) as card:
        card.load_firmware(IMAGE)
        card.endpoint(1).close()
    bus = Bus(wire.ports[0])
    page = lambda n, name=None: (
        C.ENDPOINT_BASE
        + n * C.ENDPOINT_STRIDE
        + (C.DOORBELL_OFFSET + DOORBELL[name].offset if name else 0)
    )
    first = page(ENDPOINTS)
    for address in (
        first,
        page(ENDPOINTS, "COMMAND_PRODUCER"),
        page(7, "CQ_CONSUMER"),
        page(7, "PROGRAM"),
    ):
        before = [bus.read(page(n) + address % C.ENDPOINT_STRIDE) for n in range(ENDPOINTS)]
        bus.write(address, 0xFFFFFFFF)
        assert bus.read(address) == [0]
        assert [bus.read(page(n) + address % C.ENDPOINT_STRIDE) for n in range(ENDPOINTS)] == before

    base, _, entries = bus.read(HOST["ADMIN_CQ_LOW"].offset, 3)

    def administrate(cookie, **command):
        """Its status."""
        (head,) = bus.read(page(0, "COMMAND_HEAD"))
        slot = encode(ADMIN, cookie=cookie, **command)
        bus.write(page(0) + head % C.SLOTS * C.SLOT_BYTES, *frames.words(slot))
        bus.write(page(0, "COMMAND_PRODUCER"), head + 1)
        while True:
            for n in range(entries):
                entry = bus.read(base + n * C.QUEUE_ENTRY_BYTES, 3)
                if entry[0] == cookie:
                    return entry[2] >> 24

    queues = dict(cq_base=0x8000, eq_base=0xA000, cq_entries=64, eq_entries=64)
    region = dict(key=0x105, base=0x9000, length=4096)
    for n in range(2, C.ENDPOINTS):
        wanted = STATUS.OK if n < ENDPOINTS else STATUS.BAD_ARGUMENT
        assert administrate(0x1000 + n, opcode=OPCODE.ENDPOINT_OPEN, endpoint=n, **queues) == wanted
        assert (
            administrate(
                0x2000 + n, opcode=OPCODE.REGION_ADD, endpoint=n, **{**region, "key": 0x100 + n}
            )
            == wanted
        )
        assert administrate(0x3000 + n, opcode=OPCODE.ENDPOINT_CLOSE, endpoint=n) == wanted
    os.close(bus.file)


@pytest.mark.parametrize("wire", [1], indirect=True)
def test_the_card_writes_its_board_s_flash_over_its_uart(wire, tmp_path, capsys):
    uri, board = wire.uris[0], boards.find("ecpix5")
    golden, user = [images.PREAMBLE + random.Random(n).randbytes(700) for n in range(2)]
    assert dibber(["info", uri]) == 0 and "ecpix5, flash" in capsys.readouterr().out
    assert (
        dibber(
            ["flash", "--golden", uri, str(published(tmp_path / "golden", golden, "ecpix5_link"))]
        )
        == 0
    )
    assert dibber(["flash", uri, str(published(tmp_path / "user", user))]) == 0
    assert (
        f"the user image at 0x0: {len(user)} bytes written and read back" in capsys.readouterr().out
    )
    with libdibber.Card(uri) as card:
        assert (
            card.flash_read(0, len(user)) == user
            and card.flash_read(board.golden, len(golden)) == golden
        )
        assert (
            images.jumps_to(card.flash_read(board.flash - images.PAGE, images.PAGE)) == board.golden
        )
    assert (
        dibber(
            ["flash", uri, str(published(tmp_path / "other", user, "versa_ecp5", "LFE5UM5G-45F"))]
        )
        == 1
    )
    assert "is for versa_ecp5, the card is on ecpix5" in capsys.readouterr().err


@pytest.mark.parametrize("wire", [1], indirect=True)
def test_an_adapter_that_goes_is_told(wire):
    with libdibber.Card(wire.uris[0]) as card:
        assert card.info()["mcp_state"] == MCP_STATE.RESET
        wire.close()
        with pytest.raises(libdibber.DibberError, match="unplugged") as error:
            card.info()
        assert error.value.name == "LOST"
