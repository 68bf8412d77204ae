"""Errors name the missing object and its holder. With --json they are JSON."""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import errno
import json
import pathlib
import re
import socket
import threading

import libdibber
import pytest
from dibber.interface.description import HOST, LINK_STATE, MCP_STATE
from dibber_cli import paths, simulator
from dibber_cli.bench import session
from dibber_cli.errors import CommandError
from dibber_cli.flash import commands as flash_commands
from dibber_cli.main import parser

from tests.software.mock_vfio_user import ERROR, HEADER, REPLY, VERSION

pytestmark = pytest.mark.fault


# A card in use ------------------------------------------------------------------------------------

BUSY = HEADER.pack(0, VERSION, HEADER.size, REPLY | ERROR, errno.EBUSY)


@pytest.fixture
def busy(folder):
    """busy(how) → the URI of a card whose server answers EBUSY to each client, and closes.

    how : "at once"; "closed": and the client comes to send only after that; "asked": after VERSION
          came
    """
    listeners = []

    def start(how, answer=BUSY):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{folder}/busy")
        listener.listen()
        listeners.append(listener)

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                if how == "asked":
                    client.recv(4096)
                client.sendall(answer)
                client.close()

        threading.Thread(target=serve, daemon=True).start()
        return f"sim:{folder}/busy"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.parametrize("how", ["at once", "asked"])
def test_a_card_in_use_is_in_use(busy, how):
    uri = busy(how)
    for _ in range(20):
        with pytest.raises(libdibber.DibberError, match="another program has the card") as error:
            libdibber.Card(uri)
        assert error.value.name == "IN_USE" and "busy" in str(error.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        BUSY[:8],
        HEADER.pack(0, VERSION, HEADER.size, REPLY | ERROR, errno.EINVAL),
        HEADER.pack(0, 3, HEADER.size, REPLY | ERROR, errno.EBUSY),
        HEADER.pack(0, VERSION, HEADER.size, REPLY, errno.EBUSY),
        HEADER.pack(9, 9, 4, 0xFF, errno.EBUSY),
    ],
)
def test_another_answer_is_not_taken_for_that(busy, answer):
    with pytest.raises(libdibber.DibberError) as error:
        libdibber.Card(busy("at once", answer))
    assert error.value.name in ("LOST", "PROTOCOL")


def test_the_command_says_in_use_and_what_to_do(busy, run):
    code, out, said = run("info", busy("at once"))
    assert (
        (code, out) == (1, "")
        and "IN_USE" in said
        and "end that program" in said
        and "went away" not in said
    )


# What was looked for ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri, words",
    [
        ("sim:/nowhere", ("no simulator at /nowhere", "dibber sim start")),
        ("uart:/dev/nowhere", ("no port /dev/nowhere", "ttyUSB")),
        ("uart:/dev/null", ("/dev/null is no serial port", "ttyUSB")),
        ("vfio:ffff:ff:1f.7", ("no PCI device ffff:ff:1f.7", "lspci")),
    ],
)
def test_what_is_not_found_is_what_was_looked_for(run, uri, words):
    for command in (
        ("info",),
        ("monitor",),
        ("fw", "trace"),
        ("reset",),
        ("link", "status"),
        ("map", "--look"),
    ):
        code, out, said = run(*command, uri)
        assert (code, out) == (1, "") and all(word in said for word in words), said
        assert uri.startswith("sim:") or "simulator" not in said


def test_a_file_that_is_not_there_is_not_a_simulator(serve, run, tmp_path):
    mock = serve()
    for command in (
        ("fw", "load", tmp_path / "none.dibfw", mock.uri),
        ("reset", mock.uri, "--image", tmp_path / "none.dibfw"),
    ):
        code, _, said = run(*command)
        assert (
            code == 1
            and "none.dibfw" in said
            and "make firmware" in said
            and "simulator" not in said
        )
        code, _, said = run(
            *[word if word != tmp_path / "none.dibfw" else tmp_path for word in command]
        )
        assert code == 1 and "is a folder" in said


@pytest.mark.parametrize(
    "beside, found",
    [("mcp.dibfw", "mcp.dibfw"), ("../mcp.dibfw", "mcp.dibfw"), (None, "build/firmware/mcp.dibfw")],
)
def test_an_elf_file_is_told_with_the_image_to_load(serve, run, tmp_path, beside, found):
    elf = tmp_path / "128k" / "mcp.elf"
    elf.parent.mkdir()
    elf.write_bytes(b"\x7fELF" + bytes(100))
    if beside:
        (elf.parent / beside).write_bytes(b"")
    mock = serve()
    for command in (("fw", "load", elf, mock.uri), ("reset", mock.uri, "--image", elf)):
        code, _, said = run(*command)
        assert code == 1 and "ELF" in said and re.search(rf"load \S*{found}\n", said)
    assert mock.device.get("MCP_STATE") != MCP_STATE.IDLE or not mock.device.halts


@pytest.mark.parametrize("what", ["folder", "bitstream"])
def test_a_project_that_was_not_run_is_told(run, tmp_path, what):
    (tmp_path / "run.sh").write_text("")
    (tmp_path / "dibber_kc705.bit").write_bytes(b"")
    code, _, said = run("flash", tmp_path if what == "folder" else tmp_path / "dibber_kc705.bit")
    assert code == 1 and "was not run" in said and f"{tmp_path}/run.sh" in said
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(CommandError, match="no manifest"):
        flash_commands.manifest.check(tmp_path / "dibber_kc705.bit", None)


def test_no_message_has_the_folder_of_a_simulated_pair(monkeypatch, folder, run, capsys):
    fake = paths.Path(folder) / "dibber-sim-fake"
    fake.write_text("#!/bin/sh\ntrap 'exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n")
    fake.chmod(0o700)
    monkeypatch.setattr(paths, "simulator", lambda _: fake)
    monkeypatch.setattr(session.paths, "FIRMWARE", fake)
    for words in (("map",), ("link", "test"), ("link", "prbs"), ("selftest",)):
        code, out, said = run(*words)
        assert code == 1 and "/dibber-pair-" not in out + said and "simulated card" in out + said, (
            out + said
        )


def test_a_text_without_folders_is_otherwise_the_same():
    text = simulator.without_folders(
        "no simulator at /tmp/dibber-pair-a_b1c2d3/card1.sock (x); "
        "sim:/tmp/dibber-pair-a_b1c2d3/card0.sock.admin"
    )
    assert text == "no simulator at simulated card 1 (x); simulated card 0"
    for same in (
        "sim:/run/user/1000/dibber-1000/card0.sock",
        "sim:/tmp/dibber-10000000/card0.sock",
        "no folder",
    ):
        assert simulator.without_folders(same) == same


# JSON ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, code, name",
    [
        (("info", "--json", "sim:/nowhere"), 1, "NOT_FOUND"),
        (("info", "sim:/nowhere", "--json"), 1, "NOT_FOUND"),
        (("info", "sim:/nowhere", "--js"), 1, "NOT_FOUND"),
        (("info", "--json", "foo"), 2, "USAGE"),
        (("monitor", "--json"), 2, "USAGE"),
        (("map", "--json", "--attempts", "99"), 2, "USAGE"),
        (("link", "test", "--json", "--ber", "2"), 2, "USAGE"),
        (("link", "test", "--json", "sim:a"), 2, "USAGE"),
        (("bench", "stride", "--json", "--profile", "none"), 2, "USAGE"),
        (("bench", "stride", "--json", "--series", "none"), 2, "USAGE"),
        (("sim", "--json"), 2, "USAGE"),
        (("bench", "compare", "--json", "/none", "/none"), 1, "FAILED"),
        (("fw", "coredump", "--json", "/none/f", "sim:/none"), 1, "NOT_FOUND"),
        (("fw", "load", "--json", "/none", "sim:/none"), 1, "FAILED"),
        (("sim", "stop", "--json"), 1, "FAILED"),
        (("flash", "--json", "/none"), 1, "FAILED"),
    ],
)
def test_an_error_under_json_is_one_json_document_on_stderr(run, words, code, name):
    ended, out, said = run(*words)
    assert (ended, out) == (code, "")
    error = json.loads(said)["error"]
    assert (
        error["exit_code"] == code
        and error["name"] == name
        and error["message"]
        and said.count("\n") == 1
    )
    assert set(error) == {"name", "message", "advice", "exit_code"}


def test_after_a_command_line_with_json_one_without_speaks_to_people(run):
    run("info", "--json", "foo")
    assert run("info", "foo")[2].startswith("usage:")


def _leaves(p, path=()):
    subs = [action for action in p._actions if isinstance(action, argparse._SubParsersAction)]
    for action in subs:
        for name, one in action.choices.items():
            yield from _leaves(one, (*path, name))
    if not subs or path == ("sim",):
        yield path, p


# commands that print JSON Lines: all others print one document
LINES = {("monitor",), ("fw", "top"), ("fw", "trace")}


def test_help_says_which_commands_print_json_lines():
    for path, one in _leaves(parser()):
        for action in one._actions:
            if "--json" in action.option_strings:
                assert ("JSON Lines" in action.help) == (path in LINES), path
                assert "stderr" in action.help
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(
        encoding="utf-8"
    )
    for path in LINES:
        assert f"`{' '.join(path)}`" in text


def test_each_line_of_json_lines_is_a_document(serve, run):
    uri = serve().uri
    code, out, _ = run("monitor", "--json", "--count", 3, "--interval", 0, uri)
    assert code == 0 and [json.loads(line)["link"] for line in out.splitlines()] == ["UP"] * 3


def test_info_has_names_of_states(serve, run):
    mock = serve()
    mock.device.registers[HOST["MCP_STATE"].offset] = MCP_STATE.IDLE
    found = json.loads(run("info", "--json", mock.uri)[1])
    assert found["mcp_state"] == "IDLE" and found["link_state"] in {
        name for name, *_ in LINK_STATE.values
    }
    numbers = {
        key
        for key, value in _flat({**found, "counters": 0, "link": {**found["link"], "counters": 0}})
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    assert not {key for key in numbers if key.endswith(("state", "status", "reason", "kind"))}


def _flat(value, key=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner, key)
    else:
        yield key, value
