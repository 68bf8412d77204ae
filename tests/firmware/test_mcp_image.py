# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Control program images: what the tool packs it accepts, and each bad image is refused for its own reason."""

import importlib.util
import subprocess
import sys

import pytest

from dibber.interface.description import C, FIRMWARE_HEADER, INTERFACE
from mcp_native import FIRMWARE

TOOL = FIRMWARE/"image.py"
spec = importlib.util.spec_from_file_location("image", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

GOOD = tool.pack(bytes(range(200)), 0x12345678, "mcp test")


def changed(member, value, file=GOOD):
    """The file with one 32-bit member of its header replaced."""
    offset = FIRMWARE_HEADER[member].offset
    return file[:offset] + value.to_bytes(4, "little") + file[offset + 4:]


def test_a_packed_image_is_accepted():
    header, image = tool.verify(GOOD)
    assert image == bytes(range(200))
    assert (header["version"], header["hash"], header["identity"]) == (
        INTERFACE.version_word, INTERFACE.hash, 0x12345678)
    assert header["build"].rstrip(b"\0") == b"mcp test"


def test_an_image_is_padded_to_whole_words():
    assert tool.verify(tool.pack(b"12345", 1, ""))[1] == b"12345\0\0\0"


BAD = [
    ("bad magic",   changed("magic", 0)),
    ("bad magic",   b"\x7fELF" + GOOD[4:]),
    ("bad version", changed("version", INTERFACE.version_word + 1)),
    ("bad hash",    changed("hash", INTERFACE.hash ^ 1)),
    ("truncated",   b""),
    ("truncated",   GOOD[:63]),
    ("truncated",   GOOD[:-1]),
    ("truncated",   GOOD[:64]),
    ("bad crc",     GOOD[:-1] + bytes([GOOD[-1] ^ 0x80])),
    ("bad crc",     changed("crc", 0)),
    ("too large",   changed("bytes", C.SHARED_OFFSET + 4)),
    ("too large",   changed("bytes", 0xfffffffc)),
    ("bad header",  GOOD + bytes(4)),
    ("bad header",  changed("bytes", 198, GOOD[:-2])),
    ("bad header",  changed("entry", 4)),
    ("bad header",  changed("identity", 0)),
]

@pytest.mark.parametrize("reason,file", BAD, ids=[f"{r}-{n}" for n, (r, _) in enumerate(BAD)])
def test_a_bad_image_is_refused_with_its_reason(tmp_path, reason, file, capsys):
    path = tmp_path/"image.dibfw"
    path.write_bytes(file)
    assert tool.main(["image.py", "verify", str(path)]) == 1
    assert f": {reason}: " in capsys.readouterr().err


def test_an_image_that_does_not_fit_is_not_packed():
    with pytest.raises(tool.TooLarge):
        tool.pack(bytes(C.SHARED_OFFSET + 1), 1, "")


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path):
    result = subprocess.run([sys.executable, TOOL, "verify", tmp_path/"none"], capture_output=True, text=True)
    assert result.returncode == 1 and "No such file" in result.stderr and "Traceback" not in result.stderr


def test_what_was_compiled_with_other_flags_is_compiled_again(tmp_path):
    make = ["make", "-s", "-C", str(FIRMWARE), f"OUT={tmp_path}", f"PYTHON={sys.executable}", f"{tmp_path}/trace.o"]
    subprocess.run(make, check=True)
    assert subprocess.run([*make, "-q"]).returncode == 0
    assert subprocess.run([*make, "-q", "LDFLAGS=others"]).returncode == 1
