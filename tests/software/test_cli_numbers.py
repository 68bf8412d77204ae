"""Each number of each command has its range, and a wrong command line ends with 2 before anything
is done.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import os
import signal

import pytest
from dibber.interface.description import C
from dibber_cli import monitor, paths, profile, simulator
from dibber_cli.errors import ProfileError
from dibber_cli.main import main, parser

pytestmark = pytest.mark.fault


def ended(capsys, *words):
    """(exit code, stderr)."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as left:
        code = left.code
    return code, capsys.readouterr().err


@pytest.fixture
def nothing_starts(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("a simulator was started")

    monkeypatch.setattr(simulator, "launch", fail)


HERE = "HERE"  # of the option, in a command that takes all later words for a program's

# For each option that takes a number: a command before it, the least and the highest value. "w" is
# a whole number.
NUMBERS = {
    "--seed": (("map",), 0, (1 << 64) - 1, "w"),
    "--participants": (("sim", "start"), 0, C.NODES * C.ENDPOINTS, "w"),
    "--attempts": (("map",), 1, 16, "w"),
    "--switch": (("switch", "status"), 0, 15, "w"),
    "--megabytes": (("link", "test"), 1, 1_000_000, "w"),
    "--count": (("monitor", "sim:/nowhere"), 0, 1 << 31, "w"),
    "--milliseconds": (("link", "prbs"), 0.001, 3.6e6, "r"),
    "--length": (("link", "test"), 0, 10_000, "r"),
    "--ber": (("link", "test"), 0, 0.1, "r"),
    "--interval": (("monitor", "sim:/nowhere"), 0, 86_400, "r"),
    "--duration": (("bench", "stride"), 0, 3.6e6, "r"),
    "--depth": (("bench", "stride"), 0, C.SLOTS, "w"),
    "--size": (("bench", "stride"), 0, 1 << 20, "w"),
    "--iterations": (("bench", "stride"), 0, 1_000_000, "w"),
    "--stride": (("bench", "stride"), 0, 256, "w"),
    "--transfer": (("timeline", "run.json"), 0, 1 << 31, "w"),
    "--tolerance": (("bench", "compare", "a", "b"), 0, 1000, "r"),
    "--endpoint": (("reg", "read", "sim:/nowhere", "PROGRAM"), 0, 255, "w"),
    "--ranks": (("mpirun", HERE, "program"), 1, 16, "w"),
    "--pes": (("run", HERE, "program"), 1, 16, "w"),
}


def line(words, *option):
    """A command line: the option stands at HERE, or else behind the other words."""
    at = words.index(HERE) if HERE in words else len(words)
    return [*words[:at], *option, *words[at + 1 :]]


def _parsers(p, path=()):
    yield path, p
    for action in p._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from _parsers(one, (*path, name))


def test_the_table_of_this_test_has_every_number_of_every_command():
    found = set()
    for path, one in _parsers(parser()):
        for action in one._actions:
            assert action.type not in (int, float), (
                f"{path} {action.option_strings}: a number without a range"
            )
            if action.type is not None and action.option_strings:
                found.add(action.option_strings[0])
    assert found == set(NUMBERS)


@pytest.mark.parametrize("option", NUMBERS)
def test_a_number_outside_its_range_is_refused_with_the_range(capsys, nothing_starts, option):
    words, low, high, kind = NUMBERS[option]
    for value in (
        -1,
        low - 1,
        high + 1,
        "nan",
        "inf",
        "-inf",
        "1e400",
        "1e999",
        "x",
        "",
        "0x10",
        1 << 64,
        *(("1.5",) if kind == "w" else ()),
    ):
        code, said = ended(capsys, *line(words, f"{option}={value}"))
        assert code == 2 and option in said and "…" in said, (value, said)


@pytest.mark.parametrize("option", NUMBERS)
def test_both_ends_of_a_range_are_taken(option):
    words, low, high, _ = NUMBERS[option]
    for value in (low, high):
        parsed = parser().parse_args(line(words, option, str(value)))
        assert getattr(parsed, option[2:]) == value


@pytest.mark.parametrize(
    "words",
    [
        ("info", "foo"),
        ("info", ""),
        ("info", "SIM:/x"),
        ("monitor", "tcp:1"),
        ("fw", "trace", "x"),
        ("fw", "top", "x"),
        ("reset", "x"),
        ("fw", "coredump", "f", "x"),
        ("fw", "debug", "x"),
        ("fw", "load", "f", "x"),
        ("link", "status", "x"),
        ("link", "test", "x", "y"),
        ("selftest", "x"),
        ("map", "x"),
        ("link", "test", "sim:a"),
        ("link", "prbs", "sim:a"),
        ("link", "test", "sim:a", "sim:b", "sim:c"),
        ("link", "test", "--length", "5", "sim:a", "sim:b"),
        ("link", "test", "--ber", "0", "sim:a", "sim:b"),
        ("link", "prbs", "--fault", "loopback", "sim:a", "sim:b"),
        ("selftest", "--fault", "stop", "sim:a"),
        ("selftest", "sim:a", "sim:b", "sim:c"),
        ("bench", "stride", "--profile", "none"),
        ("link", "test", "--profile", "none"),
        ("sim",),
        ("bench",),
        (),
        ("link", "test", "--milliseconds", "0"),
        ("link", "test", "--milliseconds", "-1"),
        ("link", "test", "--megabytes", "-1"),
        ("link", "test", "--megabytes", "0"),
        ("link", "test", "--length", "-5"),
        ("link", "test", "--ber", "2"),
    ],
)
def test_a_command_line_that_makes_no_sense_ends_with_2(capsys, nothing_starts, words):
    code, said = ended(capsys, *words)
    assert code == 2 and said


@pytest.mark.parametrize("code", [1, 2])
def test_what_the_simulator_refuses_of_the_command_line_ends_with_2_and_what_fails_with_1(
    capsys, monkeypatch, folder, code
):
    fake = paths.Path(folder) / "fake"
    fake.write_text(
        f"#!/bin/sh\necho \"dibber-sim: --fault: 'bogus' is not KIND\" >&2\nexit {code}\n"
    )
    fake.chmod(0o700)
    monkeypatch.setattr(paths, "simulator", lambda _: fake)
    for words in (("sim", "start"), ("selftest", "--fault", "bogus")):
        if words[0] == "selftest" and not paths.FIRMWARE.exists():
            continue
        ended_with, said = ended(capsys, *words)
        assert ended_with == code and "'bogus' is not KIND" in said


def test_a_command_that_is_interrupted_ends_with_130(capsys, serve, monkeypatch):
    def interrupt(*_):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("dibber_cli.commands.output.table", interrupt)
    code, said = ended(capsys, "info", serve().uri)
    assert code == 130 and "interrupted" in said
    assert monitor.ERRORS


# Profiles -----------------------------------------------------------------------------------------

GOOD = (paths.PROFILES / "gen2x4.toml").read_text()


def _with(tmp_path, path, value):
    """A copy of gen2x4 in which one key has another value, None for no value at all."""
    table, key = path.split(".")
    lines, at = [], ""
    for line in GOOD.splitlines():
        at = line.strip("[]").split("]")[0] if line.startswith("[") else at
        if at == table and line.split("=")[0].strip() == key:
            if value is None:
                continue
            line = f"{key} = {value}"
        lines.append(line)
    file = tmp_path / "changed.toml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@pytest.mark.parametrize("path", profile.RANGES)
def test_each_number_of_a_profile_is_a_number_of_its_range(tmp_path, path):
    low, high = profile.RANGES[path]
    for value in (
        -1,
        low - 1,
        high + 1 if isinstance(high, int) else high * 2,
        "nan",
        "inf",
        "-inf",
        "1e400",
        "true",
        '"3"',
        "[1]",
        "{a = 1}",
        "9" * 400,
        1 << 64,
        None,
    ):
        with pytest.raises(ProfileError) as error:
            profile.load(_with(tmp_path, path, value))
        assert path in str(error.value), (value, str(error.value))
    if path in profile.KINDS:
        with pytest.raises(ProfileError, match=f"'{path}' must be a whole number"):
            profile.load(_with(tmp_path, path, f"{low + 1}.0"))
    for value in (low, high):
        profile.load(_with(tmp_path, path, value))


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "more = 1\n",
        GOOD + "[cards]\n",
        GOOD + "[other]\nx = 1\n",
        GOOD.replace("[link]", "[link]\nlenght_m = 3.0"),
        GOOD.replace("[cpu]", "[cpus]"),
        "loose = 1\n" + GOOD,
        GOOD.replace('name = "gen2x4"', "name = 3"),
        GOOD.replace('name = "gen2x4"', 'name = "../x"'),
        GOOD.replace('name = "gen2x4"', 'name = ""'),
        GOOD.replace('name = "gen2x4"', 'name = "a b"'),
        GOOD.replace('"boundary"', '"all"', 1),
        GOOD.replace("extended_tags            = true", "extended_tags = 1"),
        "",
        "x",
        "\0",
        "[[card]]\n",
        "card = 1\n",
        "a = " + "[" * 5000,
    ],
)
def test_a_profile_that_is_not_one_is_refused(tmp_path, text):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ProfileError, match="p.toml"):
        profile.load(str(tmp_path / "p.toml"))


def test_what_is_no_file_is_no_profile(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name in ("pipe.toml", "folder.toml", "bytes.toml"):
        with pytest.raises(ProfileError, match=name):
            profile.load(str(tmp_path / name))
