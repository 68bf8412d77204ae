# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The `dibber` command: what it prints, its exit codes, and errors that say what to do next."""

import json
import stat

import pytest

from dibber.interface.description import HOST
from dibber_cli import output, paths, profile, simulator
from dibber_cli.bench import chart, report, shapes
from dibber_cli.errors import ProfileError
from dibber_cli.main import main


@pytest.fixture
def run(capsys):
    """run(*words) → exit code, stdout, stderr."""
    def call(*words):
        try:
            code = main([str(w) for w in words])
        except SystemExit as exit_:
            code = exit_.code
        return code, *capsys.readouterr()
    return call


# Cards --------------------------------------------------------------------------------------------

def test_info_for_people_and_for_programs(serve, run):
    mock = serve()
    mock.device.registers[HOST["COUNT_POSTS"].offset] = 12
    code, out, _ = run("info", mock.uri)
    assert code == 0 and "8 endpoints of 32 slots" in out and "UP" in out and "posts" in out
    code, out, _ = run("info", "--json", mock.uri)
    assert code == 0 and json.loads(out)["counters"]["posts"] == 12


def test_fw_load(serve, run, image):
    code, out, _ = run("fw", "load", image(), serve().uri)
    assert code == 0 and "d1bb0001" in out


@pytest.mark.parametrize("words, code, reason, advice", [
    (("info", "sim:/nowhere"),                   1, "NOT_FOUND",        "dibber sim start"),
    (("info", "tcp:1"),                          1, "ARGUMENT",         "sim:PATH_OF_SOCKET"),
    (("bench", "stride", "--profile", "gen9"),   1, "no profile 'gen9'", "gen2x4"),
    (("bench", "nothing"),                       2, "nothing",          "stride"),
    (("sim",),                                   2, "missing",          "--help"),
    ((),                                         2, "COMMAND",          "usage")])
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
    text = (paths.PROFILES/"gen2x4.toml").read_text()
    (tmp_path/"p.toml").write_text(text.replace("max_payload ", "max_payloda "))
    with pytest.raises(ProfileError, match="'max_payload' is missing"):
        profile.load(str(tmp_path/"p.toml"))


def test_a_profile_that_is_no_toml(tmp_path):
    (tmp_path/"p.toml").write_text("[card\n")
    with pytest.raises(ProfileError, match="p.toml"):
        profile.load(str(tmp_path/"p.toml"))


# Simulator ----------------------------------------------------------------------------------------

@pytest.fixture
def fake_simulator(monkeypatch, folder):
    """fake_simulator(script): what is run instead of dibber-sim, with a run folder of its own."""
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


# Benchmark ----------------------------------------------------------------------------------------

def test_points_are_the_strides_of_the_chart():
    assert shapes.STRIDES == (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)
    assert len(shapes.points()) == 3*14
    assert all(p.length == 4*65536 for p in shapes.points())


@pytest.mark.parametrize("series, stride", [("put-dst-strided", 1), ("put-dst-strided", 7), ("put-src-strided", 3),
                                            ("put-both-strided", 5)])
def test_what_is_expected_is_what_the_walks_say(series, stride):
    point  = shapes.Point(series, stride, 3)
    source = point.source(1)
    memory = bytearray([shapes.FILL])*point.extent(1)
    for n in range(shapes.TRANSFERS):
        payload = b"".join(bytes(source[o:o + point.walk(0, 1, n).block]) for o in point.walk(0, 1, n).blocks())
        target  = point.walk(1, 1, n)
        for i, offset in enumerate(target.blocks()):
            memory[offset:offset + target.block] = payload[i*target.block:(i + 1)*target.block]
    assert bytes(point.expected(1)) == bytes(memory)


def test_a_seed_gives_the_same_payload_and_another_seed_another():
    point = shapes.Point("put-dst-strided", 2, 0)
    assert (point.source(1) == point.source(1)).all() and (point.source(1) != point.source(2)).any()


@pytest.fixture
def result():
    return {"test": "stride", "profile": "gen2x4", "seed": 1, "command": "c", "versions": {}, "time_base": "simulated",
            "bytes_compared": 10, "guard_bytes_compared": 5, "bytes_wrong": 0, "wall_seconds": 1.0,
            "points": [{"series": s, "x": x, "x_unit": "elements", "value": 400.0 + x, "unit": "MB/s", "bound": 494.2,
                        "cycles": 100, "cpu_percent": 0.1} for s in shapes.SERIES for x in (1, 2, 64)]}


def test_a_report_is_four_files_that_do_not_change_from_run_to_run(result, tmp_path):
    first, second = report.write(result, tmp_path/"a"), report.write(result, tmp_path/"b")
    assert [f.name for f in first] == [f"stride-gen2x4.{kind}" for kind in ("json", "csv", "png", "svg")]
    assert json.loads(first[0].read_text()) == result
    assert first[1].read_text().splitlines()[1] == "put-dst-strided,1,elements,401.0,MB/s,494.2,100,0.1"
    for one, other in zip(first, second):
        assert one.read_bytes() == other.read_bytes()


def test_the_chart_has_units_the_bound_and_1998(result, tmp_path):
    chart.draw(result, [tmp_path/"c.svg"])
    text = (tmp_path/"c.svg").read_text()
    for words in ("MB/s", "elements", "bound", "126 MB/s", "gen2x4", "simulated"):
        assert words in text


def test_the_table_has_value_and_bound_side_by_side(result, capsys):
    report.show(result)
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:4] == ["1", "401.0", "494.2", "81"]


def test_a_table_puts_numbers_to_the_right(capsys):
    output.table(["name", "n"], [("a", 1), ("b", 100)])
    assert capsys.readouterr().out.splitlines()[2:] == ["a       1", "b     100"]
