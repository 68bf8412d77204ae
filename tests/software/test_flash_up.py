"""A running card writes its own flash: the library's calls and `dibber flash URI`, on a mock
whose flash is a model in Python.
"""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading

import libdibber
import pytest
from dibber.interface.description import HOST
from dibber_cli.flash import board as boards
from dibber_cli.flash import images
from dibber_cli.main import main as dibber

from tests.gateware.models.flash import PROGRAM, Flash

SECTOR = 64 * 1024
GOLDEN = boards.find("sim").golden


@pytest.fixture
def up(serve):
    """up(flash, board) → a mock card with that flash."""

    def start(flash=None, board="sim", **attributes):
        mock = serve(**attributes)
        mock.flash = Flash() if flash is None else flash
        mock.device.fit_flash(mock.flash, board)
        return mock

    return start


def made(folder, content, board="sim", part="simulated", name=None):
    """A folder like one of `make bitstream`."""
    os.makedirs(folder, exist_ok=True)
    name = name or f"dibber_{board}.bit"
    with open(f"{folder}/{name}", "wb") as f:
        f.write(content)
    with open(f"{folder}/manifest.json", "w") as f:
        json.dump(
            {
                "board": board,
                "part": part,
                "clocks": [{"clock": "sys_clk", "met": True}],
                "files": {name: hashlib.sha256(content).hexdigest()},
            },
            f,
        )
    return folder


def image(seed, length=5000):
    return b"Part\0" + images.PREAMBLE + random.Random(seed).randbytes(length)


# Library ------------------------------------------------------------------------------------------


def test_what_is_written_is_read_back_and_nothing_else_has_changed(up, seed):
    mock = up()
    rng = random.Random(seed)
    mock.flash.data[: 4 * SECTOR] = before = rng.randbytes(4 * SECTOR)
    data = rng.randbytes(1000)
    with libdibber.Card(mock.uri, observe=True) as card:
        info = card.flash_info()
        assert (info.jedec, info.bytes, info.status) == (0xEF4018, 1 << 24, 0)
        assert card.flash_read(12345, 2000) == before[12345:14345]
        card.flash_allow(SECTOR, 2 * SECTOR)
        card.flash_erase(SECTOR, SECTOR)
        card.flash_write(SECTOR + 512, data)
        assert card.flash_read(SECTOR, 2000) == (b"\xff" * 512 + data).ljust(2000, b"\xff")
    after = bytearray(before)
    after[SECTOR : 2 * SECTOR] = (b"\xff" * 512 + data).ljust(SECTOR, b"\xff")
    assert mock.flash.data[: 4 * SECTOR] == after and mock.flash.wrong == []
    assert not mock.device.get("FLASH_STATUS") & 2  # locked again


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda card: card.flash_erase(0, SECTOR), "outside of what dib_flash_allow"),
        (lambda card: card.flash_erase(SECTOR, 3 * SECTOR), "outside of what dib_flash_allow"),
        (lambda card: card.flash_erase(SECTOR + 4096, SECTOR), "no whole units of 65536"),
        (lambda card: card.flash_erase(SECTOR, 4096), "no whole units of 65536"),
        (
            lambda card: card.flash_write(3 * SECTOR - 256, bytes(257)),
            "outside of what dib_flash_allow",
        ),
        (lambda card: card.flash_write(SECTOR + 1, bytes(2)), "no whole units of 256"),
        (lambda card: card.flash_read((1 << 24) - 1, 2), "the flash has 16777216 bytes"),
        (lambda card: card.flash_allow(1 << 24, SECTOR), "the flash has 16777216 bytes"),
        (lambda card: card.flash_allow(256, SECTOR), "no whole units of 65536"),
    ],
)
def test_what_is_not_allowed_never_reaches_the_flash(up, call, why):
    mock = up()
    mock.flash.data[:] = bytes(1 << 24)
    with libdibber.Card(mock.uri) as card:
        card.flash_allow(SECTOR, 2 * SECTOR)
        with pytest.raises(libdibber.DibberError, match=why) as error:
            call(card)
    assert error.value.name == "ARGUMENT" and not any(mock.flash.data)


def test_another_handle_allows_nothing_by_itself(up):
    mock = up()
    with libdibber.Card(mock.uri) as card, pytest.raises(libdibber.DibberError, match="outside"):
        card.flash_write(0, b"x")


def test_a_flash_beyond_16_MiB_is_reached_by_addresses_of_4_bytes(up):
    mock = up(Flash(1 << 25, b"\x01\x02\x19"))
    at = (1 << 24) + SECTOR
    with libdibber.Card(mock.uri) as card:
        card.flash_allow(at, SECTOR)
        card.flash_erase(at, SECTOR)
        card.flash_write(at, b"here")
        assert card.flash_read(at, 4) == b"here" and card.flash_read(SECTOR, 4) == b"\xff" * 4
    assert mock.flash.data[at : at + 4] == b"here" and mock.flash.wrong == []


def test_a_flash_that_stays_busy_is_told(up):
    mock = up(Flash(busy=10**9))
    with libdibber.Card(mock.uri) as card:
        card.flash_allow(0, SECTOR)
        with pytest.raises(libdibber.DibberError, match="busy for more than 10 s") as error:
            card.flash_erase(0, SECTOR)
    assert error.value.name == "FLASH"


def test_a_host_that_locks_it_meanwhile_is_told(up):
    mock = up()
    with libdibber.Card(mock.uri) as card:
        card.flash_allow(0, SECTOR)
        transfer = mock.device._flash_transfer

        def locked_before(command, length):
            mock.device.bar_write(HOST["FLASH_UNLOCK"].offset, bytes(4))
            transfer(command, length)

        mock.device._flash_transfer = locked_before
        with pytest.raises(libdibber.DibberError, match="it was locked again"):
            card.flash_write(0, b"x")


# Command ------------------------------------------------------------------------------------------


def test_golden_and_user_image_lie_apart_and_a_new_user_image_leaves_the_golden_one_alone(
    up, folder, capsys
):
    mock = up()
    golden, first, second = image(1), image(2, 70000), image(3, 7000)
    assert dibber(["flash", "--golden", mock.uri, made(f"{folder}/golden", golden)]) == 0
    assert dibber(["flash", mock.uri, made(f"{folder}/first", first)]) == 0
    flash = bytes(mock.flash.data)
    kept = flash[GOLDEN:]
    assert flash[: len(first)] == first and kept[: len(golden)] == golden
    assert images.jumps_to(flash[-images.PAGE :]) == GOLDEN
    assert dibber(["flash", mock.uri, made(f"{folder}/second", second)]) == 0
    assert mock.flash.data[: len(second)] == second and mock.flash.data[GOLDEN:] == kept
    said = capsys.readouterr().out
    assert (
        "the golden image at 0x800000" in said
        and "the user image at 0x0: 7009 bytes written and read back" in said
    )
    assert "starts when the board's power was off" in said and mock.flash.wrong == []


def test_json_says_what_and_where(up, folder, capsys):
    mock = up()
    assert dibber(["flash", "--json", mock.uri, made(f"{folder}/made", image(1))]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["board"], said["image"], said["address"], said["bytes"]) == (
        "sim",
        "user",
        0,
        5009,
    )
    assert said["flash"] == {"jedec": "ef4018", "bytes": 1 << 24}


def test_what_would_be_done_can_be_seen_before(folder, capsys):
    assert (
        dibber(["flash", "--show", "--golden", "uart:/dev/none", made(f"{folder}/made", image(1))])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [
        "erase 0x800000 to 0x810000; write 5009 bytes at 0x800000, its first page last; read back",
        "erase 0xff0000 to 0x1000000; write 256 bytes at 0xffff00, its first page last; read back",
    ]


@pytest.mark.parametrize(
    "words", ["--show --golden URI FILE", "URI --show --golden FILE", "--show URI FILE --golden"]
)
def test_options_stand_before_between_and_behind_the_card_and_its_image(folder, capsys, words):
    names = {"URI": "uart:/dev/none", "FILE": made(f"{folder}/made", image(1))}
    assert dibber(["flash", *(names.get(word, word) for word in words.split())]) == 0
    assert "write 5009 bytes at 0x800000" in capsys.readouterr().out


def other_board(mock):
    mock.device.fit_flash(mock.flash, "ecpix5")


def nameless(mock):
    mock.device.fit_flash(mock.flash, "")


def other_flash(mock):
    mock.flash.jedec = b"\x20\xba\x18"


def absent(mock):
    mock.device.registers[HOST["FEATURES"].offset] = 0


def protected(mock):
    mock.flash.status = 0x1C


@pytest.mark.parametrize(
    "spoil, words, reason",
    [
        (absent, [], "this card has no access to its flash"),
        (other_board, [], "dibber_sim.bit is for sim, the card is on ecpix5"),
        (nameless, [], "the card is on a board that it does not name"),
        (other_flash, [], "the flash has identity 20ba18, that of sim is ef4018"),
        (
            protected,
            [],
            "FLASH: the flash did not do what it was told: the flash (W25Q, ef4018) is protected: "
            "its status is 0x1c",
        ),
        (lambda mock: None, ["--load"], "cannot load itself"),
    ],
)
def test_what_should_not_be_flashed(up, folder, capsys, spoil, words, reason):
    mock = up()
    mock.flash.data[:] = before = random.Random(1).randbytes(1 << 24)
    spoil(mock)
    assert dibber(["flash", *words, mock.uri, made(f"{folder}/made", image(1))]) == 1
    assert reason in capsys.readouterr().err and mock.flash.data == before


def test_the_manifest_is_checked_as_ever(up, folder, capsys):
    mock, where = up(), made(f"{folder}/made", image(1))
    with open(f"{where}/dibber_sim.bit", "ab") as f:
        f.write(b"x")
    assert dibber(["flash", mock.uri, where]) == 1
    assert "the hash differs" in capsys.readouterr().err and mock.device.writes == []


def test_a_flash_that_does_not_keep_what_is_written_is_told(up, folder, capsys):
    """A bit that cannot be programmed any more."""

    class Worn(Flash):
        def transfer(self, sent):
            answer = super().transfer(sent)
            self.data[3000] |= 4
            return answer

    mock = up(Worn())
    assert (
        dibber(
            ["flash", mock.uri, made(f"{folder}/made", b"\0" * 2 + images.PREAMBLE + bytes(5000))]
        )
        == 1
    )
    assert "at 0xbb8 the flash has 0x04, 0x00 was written" in capsys.readouterr().err


def test_the_head_of_a_vivado_file_is_left_out():
    body = random.Random(1).randbytes(100)
    head = images.HEAD + b"".join(
        letter + len(text).to_bytes(2, "big") + text
        for letter, text in [
            (b"a", b"top;UserID\0"),
            (b"b", b"7a100tfgg484\0"),
            (b"c", b"2026\0"),
            (b"d", b"12\0"),
        ]
    )
    assert images.bits(head + b"e" + (100).to_bytes(4, "big") + body) == body
    assert images.bits(body) == body
    with pytest.raises(Exception, match="ends too early"):
        images.bits(head + b"e" + (101).to_bytes(4, "big") + body)


# Power cuts ---------------------------------------------------------------------------------------


class Counting(Flash):
    """Calls `at_end` at a number of changes."""

    limit, changes = None, 0

    def transfer(self, sent):
        answer = super().transfer(sent)
        if sent[0] in (PROGRAM, 0xD8):
            self.changes += 1
            if self.changes == self.limit:
                self.at_end()
        return answer


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100, 281, 282])
def test_whenever_the_program_ends_no_half_image_begins_and_a_second_run_repairs(up, folder, limit):
    """280 pages in two sectors: the first page is written last."""
    mock = up(Counting())
    content = image(1, 280 * 256 - 100)
    mock.flash.data[:] = random.Random(2).randbytes(1 << 24)
    kept = bytes(mock.flash.data[2 * SECTOR :])
    where = made(f"{folder}/made", content)
    words = [sys.executable, "-P", "-m", "dibber_cli", "flash", mock.uri, where]
    ended = threading.Event()
    mock.flash.limit = limit
    program = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    mock.flash.at_end = lambda: (program.send_signal(signal.SIGKILL), program.wait(), ended.set())
    assert ended.wait(600)
    begun = mock.flash.data[:256] == content[:256]
    assert begun == (limit == 282)
    assert mock.flash.data[2 * SECTOR :] == kept
    mock.flash.limit = None
    assert dibber(["flash", mock.uri, where]) == 0
    assert mock.flash.data[: len(content)] == content and mock.flash.data[2 * SECTOR :] == kept


# Protection ---------------------------------------------------------------------------------------

# Where each part has its block-protect bits, and a bit beside them that protects nothing.
PARTS = {
    "S25FL256S": (b"\x01\x02\x19", 0x1C, 0x60),  # errors of the last erase and program
    "N25Q128": (b"\x20\xba\x18", 0x5C, 0x20),  # TB
    "MT25Q512": (b"\x20\xbb\x20", 0x5C, 0x20),
    "W25Q128": (b"\xef\x40\x18", 0x1C, 0x60),  # TB and SEC
    "W25Q256": (b"\xef\x40\x19", 0x3C, 0x40),  # TB
    "MX25L128": (b"\xc2\x20\x18", 0x3C, 0x40),  # Quad Enable
    "IS25LP128": (b"\x9d\x60\x18", 0x3C, 0x40),
    "unknown": (b"\x7f\x11\x18", 0x7C, 0x00),
}


@pytest.mark.fault
@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_protected_by_its_own_bits_and_by_no_others(up, name):
    jedec, protect, others = PARTS[name]
    size = {0x18: 1 << 24, 0x19: 1 << 25, 0x20: 1 << 26}[jedec[2]]
    for status in [1 << bit for bit in range(2, 8)]:
        mock = up(Flash(size, jedec))
        mock.flash.data[:SECTOR] = bytes(SECTOR)
        mock.flash.status = status
        with libdibber.Card(mock.uri) as card:
            card.flash_allow(0, SECTOR)
            if status & protect:
                with pytest.raises(
                    libdibber.DibberError,
                    match=f"{jedec.hex()}.* is protected: its status is 0x{status:02x}",
                ):
                    card.flash_erase(0, SECTOR)
            else:
                assert status & (others | 0x80)
                card.flash_erase(0, SECTOR)
        assert mock.flash.data[:SECTOR] == (bytes(SECTOR) if status & protect else b"\xff" * SECTOR)
