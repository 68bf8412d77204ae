"""Files that a command line names: a pipe, a device or a folder is refused by name, none holds the
command."""

# SPDX-License-Identifier: BSD-2-Clause

import os

import libdibber
import pytest
from dibber_cli import files
from dibber_cli.errors import CommandError

COMMANDS = {
    "counters": ("counters", "--since", None, "sim:/none"),
    "timeline": ("timeline", None),
    "ring": ("ring", "model", None),
    "profile": ("sim", "start", "--profile", None),
    "topology": ("sim", "start", "--topology", None),
    "load": ("fw", "load", None, "sim:/none"),
    "report": ("bench", "report", None),
}


@pytest.mark.fault
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "no file"])
def test_what_is_no_file_is_refused_by_name(run, name, kind, tmp_path):
    path = tmp_path / "named.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    code, _, err = run(*(path if word is None else word for word in COMMANDS[name]))
    assert code in (1, 2) and "named.toml" in err and "[Errno" not in err


@pytest.mark.fault
def test_a_file_above_the_limit_is_refused(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes((2 << 20) + 1))
    assert len(files.read(path)) == (2 << 20) + 1
    with pytest.raises(CommandError, match="thing .*large: more than 2 MiB"):
        files.read(path, "thing", 2 << 20)


@pytest.mark.fault
def test_a_pipe_is_no_control_program(loaded, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(libdibber.DibberError, match="pipe is not a file") as refused:
        loaded().card.load_firmware(path)
    assert refused.value.name == "FIRMWARE_FILE"
