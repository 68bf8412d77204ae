"""The `dibber` command: its output, its exit codes, and errors with advice."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import stat

import pytest
from dibber.interface.description import HOST
from dibber_cli import find, output, paths, profile, simulator
from dibber_cli.errors import ProfileError

pytestmark = pytest.mark.fault

# Cards --------------------------------------------------------------------------------------------


def test_info_for_people_and_for_programs(serve, run):
    mock = serve()
    mock.device.registers[HOST["COUNT_POSTS"].offset] = 12
    code, out, _ = run("info", mock.uri)
    assert code == 0 and "8 endpoints of 32 slots" in out and "up" in out.split() and "posts" in out
    code, out, _ = run("info", "--json", mock.uri)
    assert code == 0 and json.loads(out)["counters"]["posts"] == 12


def test_info_without_a_uri_lists_the_cards(run, monkeypatch):
    card = find.entry("sim:/a/card0.sock", "simulated", "this machine", "up")
    monkeypatch.setattr(find, "found", lambda _: [card])
    assert run("info") == run("list")
    assert json.loads(run("info", "--json")[1]) == [card]


def test_fw_load(serve, run, image):
    code, out, _ = run("fw", "load", image(), serve().uri)
    assert code == 0 and "d1bb0001" in out


@pytest.mark.parametrize(
    "words, code, reason, advice",
    [
        (("info", "sim:/nowhere"), 1, "NOT_FOUND", "dibber sim start"),
        (("info", "tcp:1"), 2, "'tcp:1' names no", "sim:PATH_OF_SOCKET"),
        (("bench", "stride", "--profile", "gen9"), 2, "no profile 'gen9'", "gen2x4"),
        (("bench", "nothing"), 2, "nothing", "stride"),
        (("sim",), 2, "missing", "--help"),
        (("map", "tcp:1", "--json", "tcp:2"), 2, "'tcp:1' names no", "sim:PATH_OF_SOCKET"),
        (("flash", "tcp:1", "--golden"), 1, "manifest.json", "make bitstream"),
        (("flash", "--golden"), 2, "FILE", "usage"),
        ((), 2, "COMMAND", "usage"),
    ],
)
def test_errors_say_what_to_do(run, words, code, reason, advice):
    ended, out, err = run(*words)
    assert (ended, out) == (code, "") and reason in err and advice in err


def test_a_truncated_image(serve, run, image):
    code, _, err = run("fw", "load", image(cut=8), serve().uri)
    assert code == 1 and "FIRMWARE_FILE" in err and "make firmware" in err


# Profiles -----------------------------------------------------------------------------------------


def test_every_profile_can_be_read():
    assert {"gen2x4", "gen2x1", "gen1x1"} <= set(profile.names())
    for name in profile.names():
        assert profile.load(name).name == name


def test_a_profile_without_a_key_names_it(tmp_path):
    text = (paths.PROFILES / "gen2x4.toml").read_text()
    (tmp_path / "p.toml").write_text(text.replace("max_payload ", "max_payloda "))
    with pytest.raises(ProfileError, match="'pcie.max_payload' is missing"):
        profile.load(str(tmp_path / "p.toml"))


def test_a_profile_that_is_no_toml(tmp_path):
    (tmp_path / "p.toml").write_text("[card\n")
    with pytest.raises(ProfileError, match="p.toml"):
        profile.load(str(tmp_path / "p.toml"))


# Simulator ----------------------------------------------------------------------------------------


@pytest.fixture
def fake_simulator(monkeypatch, folder):
    """fake_simulator(script): a script in place of dibber-sim, with a run folder of its own."""

    def install(script):
        path = f"{folder}/dibber-sim-fake"
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        paths.Path(path).chmod(stat.S_IRWXU)
        monkeypatch.setattr(paths, "simulator", lambda _: paths.Path(path))
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)

    return install


def test_sim_start_status_stop(fake_simulator, run):
    fake_simulator("echo ready\nwhile :; do sleep 0.05; done\n")
    assert run("sim", "status")[1] == "no simulator is running\n"
    code, out, _ = run("sim", "start")
    assert code == 0 and "card1.sock" in out
    code, _, err = run("sim", "start")
    assert code == 1 and "running already" in err
    status = json.loads(run("sim", "status", "--json")[1])
    assert status["running"] and status["profile"] == "gen2x4"
    assert run("sim", "stop")[0] == 0
    code, _, err = run("sim", "stop")
    assert code == 1 and "no simulator is running" in err


def test_a_simulator_that_does_not_start_says_why(fake_simulator, run):
    fake_simulator("echo 'dibber-sim: profile x: unknown key y' >&2\nexit 1\n")
    code, _, err = run("sim", "start")
    assert code == 1 and "unknown key y" in err


def test_a_simulator_that_is_not_built(monkeypatch, run):
    monkeypatch.setattr(paths, "simulator", lambda _: paths.Path("/nowhere/dibber-sim"))
    code, _, err = run("sim", "start")
    assert code == 1 and "make simulator" in err


def test_a_pair_that_fails_is_noticed(fake_simulator):
    fake_simulator("echo ready\necho 'it broke' >&2\nexit 3\n")
    with pytest.raises(simulator.SimulatorError, match="it broke"):
        with simulator.Pair(profile.load("gen2x4")) as pair:
            pair.process.wait()


# Tables -------------------------------------------------------------------------------------------


def test_a_table_puts_numbers_to_the_right(capsys):
    output.table(["name", "n"], [("a", 1), ("b", 100)])
    assert capsys.readouterr().out.splitlines()[2:] == ["a       1", "b     100"]
