"""Control program images: the tool accepts images that it packed, and refuses each bad image with
its own reason.
"""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import subprocess
import sys
import zlib

import pytest
from dibber.interface.description import FIRMWARE_HEADER, INTERFACE, C

from tests.firmware.mcp_native import FIRMWARE

TOOL = FIRMWARE / "image.py"
spec = importlib.util.spec_from_file_location("image", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

SMALL, LARGE = 0x10000, 0x20000  # bytes of SRAM

GOOD = tool.pack(bytes(range(200)), 0x12345678, "mcp test", SMALL)


def changed(member, value, file=GOOD, signed=False):
    """The file with one 32-bit member of its header replaced; `signed`: with a CRC that is right
    for it.
    """
    offset = FIRMWARE_HEADER[member].offset
    file = file[:offset] + value.to_bytes(4, "little") + file[offset + 4 :]
    return (
        changed("crc", zlib.crc32(file[FIRMWARE_HEADER["entry"].offset :]), file)
        if signed
        else file
    )


def test_a_packed_image_is_accepted():
    ((header, image),) = tool.images(GOOD)
    assert image == bytes(range(200))
    assert (header["version"], header["hash"], header["identity"]) == (
        INTERFACE.version_word,
        INTERFACE.hash,
        0x12345678,
    )
    assert (header["sram"], header["features"]) == (SMALL, 0)
    assert header["build"].rstrip(b"\0") == b"mcp test"


def test_an_image_is_padded_to_whole_words():
    assert tool.images(tool.pack(b"12345", 1, "", SMALL))[0][1] == b"12345\0\0\0"


BAD = [
    ("bad magic", changed("magic", 0)),
    ("bad magic", b"\x7fELF" + GOOD[4:]),
    ("bad version", changed("version", INTERFACE.version_word + 1)),
    ("bad hash", changed("hash", INTERFACE.hash ^ 1)),
    ("truncated", b""),
    ("truncated", GOOD[:63]),
    ("truncated", GOOD[:-1]),
    ("truncated", GOOD[:64]),
    ("bad crc", GOOD[:-1] + bytes([GOOD[-1] ^ 0x80])),
    ("bad crc", changed("crc", 0)),
    ("bad crc", changed("sram", LARGE)),
    ("bad crc", changed("features", 1)),
    ("too large", changed("bytes", C.IMAGE_SCARCE + 4)),
    ("too large", changed("bytes", 0xFFFFFFFC)),
    ("bad magic", GOOD + bytes(4)),
    ("truncated", GOOD + GOOD[:4]),
    ("truncated", GOOD + GOOD[:-1]),
    ("bad crc", GOOD + changed("entry", 0, changed("crc", 1))),
    ("bad header", changed("bytes", 198, GOOD[:-2], signed=True)),
    ("bad header", changed("bytes", 0, GOOD[:64], signed=True)),
    ("bad header", changed("entry", 4, signed=True)),
    ("bad header", changed("entry", SMALL, signed=True)),
    ("bad header", changed("identity", 0, signed=True)),
    ("bad header", changed("sram", 0, signed=True)),
    ("bad header", changed("sram", SMALL + 4, signed=True)),
    ("bad header", changed("sram", 2 * C.SRAM_MAX, signed=True)),
]


@pytest.mark.parametrize("reason,file", BAD, ids=[f"{r}-{n}" for n, (r, _) in enumerate(BAD)])
def test_a_bad_image_is_refused_with_its_reason(tmp_path, reason, file, capsys):
    path = tmp_path / "image.dibfw"
    path.write_bytes(file)
    assert tool.main(["image.py", "verify", str(path)]) == 1
    assert f": {reason}: " in capsys.readouterr().err


def test_an_image_that_does_not_fit_is_not_packed():
    for sram in (SMALL, LARGE):
        limit = tool.image_limit(sram)
        assert limit == {SMALL: C.IMAGE_SCARCE, LARGE: LARGE // 2}[sram]
        tool.pack(bytes(limit), 1, "", sram)
        with pytest.raises(tool.TooLarge, match=f"at most {limit} on a card with {sram >> 10} KiB"):
            tool.pack(bytes(limit + 1), 1, "", sram)


def test_a_card_gets_the_first_image_that_fits_it():
    images = [
        tool.pack(bytes([n]) * 8, n, "", sram, features)
        for n, sram, features in ((1, LARGE, 6), (2, LARGE, 2), (3, SMALL, 0), (4, LARGE, 0))
    ]
    chosen = lambda sram, features: tool.choose(b"".join(images), sram, features)[0]["identity"]
    assert [
        chosen(LARGE, 7),
        chosen(LARGE, 6),
        chosen(LARGE, 2),
        chosen(LARGE, 4),
        chosen(LARGE, 0),
    ] == [1, 1, 2, 4, 4]
    assert [chosen(SMALL, 0), chosen(SMALL, 7)] == [3, 3]
    with pytest.raises(
        tool.NotForThisCard, match="images for 128 KiB and 128 KiB of SRAM, the card has 64 KiB"
    ):
        tool.choose(images[0] + images[1], SMALL)
    with pytest.raises(tool.NotForThisCard, match="features 0x1"):
        tool.choose(images[0], LARGE, 1)


@pytest.mark.parametrize("sram", [SMALL, LARGE])
def test_the_file_that_is_built_has_an_image_for_each_size_of_sram(sram):
    subprocess.run(
        ["make", "-s", "-C", str(FIRMWARE), f"PYTHON={sys.executable}"],
        check=True,
        capture_output=True,
    )
    built = FIRMWARE.parent / "build" / "firmware"
    header, image = tool.choose((built / "mcp.dibfw").read_bytes(), sram)
    assert header["sram"] == sram and image == (built / f"{sram >> 10}k" / "mcp.bin").read_bytes()
    assert len(image) <= tool.image_limit(sram)


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path):
    result = subprocess.run(
        [sys.executable, TOOL, "verify", tmp_path / "none"], capture_output=True, text=True
    )
    assert (
        result.returncode == 1
        and "No such file" in result.stderr
        and "Traceback" not in result.stderr
    )


def test_what_was_compiled_with_other_flags_is_compiled_again(tmp_path):
    make = [
        "make",
        "-s",
        "-C",
        str(FIRMWARE),
        f"OUT={tmp_path}",
        f"PYTHON={sys.executable}",
        f"{tmp_path}/64k/trace.o",
    ]
    subprocess.run(make, check=True)
    assert subprocess.run([*make, "-q"]).returncode == 0
    assert subprocess.run([*make, "-q", "LDFLAGS=others"]).returncode == 1
