"""`make figures`: a group that fails is a missed row and the others go on; a run that was ended
goes on where it was.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import sys

import pytest

from tests import figure_campaigns, figure_rows, figures


def met(name="a", value=3, **changes):
    return {**figure_rows.row(name, value, "MB/s", ">=", 2, ["true"], "gen2x4", 1), **changes}


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """run(groups, *words) → (exit code, rows, output)."""
    monkeypatch.setattr(figures, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(
        figures,
        "state",
        lambda profile, seed: {"profile": profile, "seed": seed, "card": run.built},
    )

    def call(groups, *words):
        monkeypatch.setattr(figures, "groups", lambda profile: groups)
        code = figures.main([*words, "--out", str(tmp_path / "figures.json")])
        return code, json.loads((tmp_path / "figures.json").read_text()), capsys.readouterr().out

    run.built = 1
    call.rebuild = lambda: setattr(run, "built", run.built + 1)
    return call


def fails(profile, seed):
    figures.run([sys.executable, "-c", "print('the reason'); raise SystemExit(3)"])


def test_a_group_that_fails_is_a_missed_row_with_its_reason_and_the_others_go_on(run):
    code, rows, out = run({"bad": fails, "good": lambda *_: [met()]})
    assert code == 1 and [r["pass"] for r in rows] == [False, True]
    assert (
        "ended with 3" in rows[0]["reason"]
        and "the reason" in rows[0]["reason"]
        and rows[0]["id"] == "bad"
    )
    assert "1 of 2 met" in out and "MISSED bad" in out


def test_a_figure_without_a_goal_is_not_counted_as_met(run):
    code, _, out = run({"one": lambda *_: [met(), met("b", target=figure_rows.NO_GOAL)]})
    assert code == 0 and "1 of 1 met" in out and "met    b" not in out


@pytest.mark.parametrize(
    "error",
    [KeyError("no such series"), ValueError("no JSON"), StopIteration(), OSError("no file")],
)
def test_a_report_that_makes_no_sense_is_a_missed_row_too(run, error):
    def raises(*_):
        raise error

    code, rows, _ = run({"odd": raises})
    assert code == 1 and type(error).__name__ in rows[0]["reason"]


def test_progress_says_which_group_of_how_many_and_how_long(run):
    _, _, out = run({"block": lambda *_: [met()], "new": lambda *_: [met(value=1), met()]})
    assert "2 groups, about 2 minutes" in out or "2 groups, about 3 minutes" in out
    assert "[1/2] block: about 1.5 minutes" in out and "2 rows, 1 missed" in out


def test_a_run_goes_on_where_one_ended(run):
    def ended(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run({"first": lambda *_: [met("first")], "second": ended})
    code, rows, out = run({"first": fails, "second": lambda *_: [met("second")]}, "--resume")
    assert (
        code == 0
        and [r["id"] for r in rows] == ["first", "second"]
        and "1 rows of an earlier run" in out
    )


@pytest.mark.parametrize(
    "words", [("--resume", "--seed", "2"), ("--resume", "--profile", "gen2x1"), ()]
)
def test_rows_of_another_run_are_not_taken(run, words):
    run({"one": lambda *_: [met(value=3)]})
    assert run({"one": lambda *_: [met(value=5)]}, *words)[1][0]["value"] == 5


def test_rows_of_another_simulator_and_groups_that_failed_are_measured_again(run):
    run({"one": lambda *_: [met(value=3)], "two": fails})
    rows = run({"one": fails, "two": lambda *_: [met(value=4)]}, "--resume")[1]
    assert [r["value"] for r in rows] == [3, 4]
    run.rebuild()
    assert run({"one": lambda *_: [met(value=5)], "two": fails}, "--resume")[1][0]["value"] == 5


def test_a_group_that_builds_a_simulator_of_its_own_does_not_undo_those_before(
    run, monkeypatch, tmp_path
):
    monkeypatch.undo()
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "KEPT", tmp_path / "kept")
    simulators = tmp_path / "build" / "sim"
    simulators.mkdir(parents=True)

    def builds(*_):
        (simulators / "dibber-sim-64-62.5").write_bytes(b"narrow and slow")
        return [met()]

    (simulators / "dibber-sim-128").write_bytes(b"a card")
    run({"one": lambda *_: [met(value=3)], "narrow": builds})
    assert [r["value"] for r in run({"one": fails, "narrow": fails}, "--resume")[1]] == [3, 3]
    (simulators / "dibber-sim-128").write_bytes(b"another card")
    assert run({"one": lambda *_: [met(value=5)], "narrow": fails}, "--resume")[1][0]["value"] == 5


def test_only_some_and_names_that_are_none(run, capsys):
    groups = {"one": lambda *_: [met("one")], "two": fails}
    assert run(groups, "--only", "one")[1][0]["id"] == "one"
    with pytest.raises(SystemExit) as ended:
        run(groups, "--only", "three")
    assert ended.value.code == 2 and "no group 'three'" in capsys.readouterr().err


def test_each_reader_has_its_benchmark_and_each_file_of_tests_is_a_group():
    from dibber_cli.bench import LEFT_OUT, TESTS

    assert set(figure_rows.READERS) <= {*TESTS, *LEFT_OUT}
    names = figures.groups("gen2x4")
    assert {
        "stride",
        "soak",
        "link",
        "stride-gen2x1",
        "speed",
        "tests/system/test_link_figures.py",
    } <= set(names)
    assert "tests/system/test_pair_stride.py" not in names


def test_a_test_file_gives_the_rows_that_it_recorded(tmp_path, monkeypatch):
    """Rows of other files, and of runs before, lie in the same folder."""
    monkeypatch.setattr(figures, "RECORDED", tmp_path)
    nodes = {"mine": "tests/x/test_x.py::test_a", "others": "tests/y/test_y.py::test_b"}

    def record(command):
        for name, node in nodes.items():
            (tmp_path / f"{name}.json").write_text(
                json.dumps(met(name, command=f"pytest '{node}'"))
            )

    monkeypatch.setattr(figures, "run", record)
    assert [r["id"] for r in figures.recorded("tests/x/test_x.py")("gen2x4", 1)] == ["mine"]
    (row,) = figures.recorded("tests/z/test_z.py")("gen2x4", 1)
    assert not row["pass"] and "recorded nothing" in row["reason"]


@pytest.mark.parametrize("passed, rows", [(True, 2), (False, 1)])
def test_a_file_that_fails_for_something_else_than_its_figure_has_a_row_for_that(
    tmp_path, monkeypatch, passed, rows
):
    monkeypatch.setattr(figures, "RECORDED", tmp_path)

    def record(command):
        (tmp_path / "mine.json").write_text(
            json.dumps(
                met("mine", command="pytest 'tests/x/test_x.py::test_a'", **{"pass": passed})
            )
        )
        raise figures.Failed("1 failed")

    monkeypatch.setattr(figures, "run", record)
    found = figures.recorded("tests/x/test_x.py")("gen2x4", 1)
    assert len(found) == rows and not found[-1]["pass"]


# Campaigns ----------------------------------------------------------------------------------------


def test_a_campaign_waits_for_its_word_and_is_kept(run):
    """Without --long: what was measured with this simulator, or a row that says "not measured"."""
    slow = {"soak-threads": lambda *_: [met("threads")], "quick": lambda *_: [met("quick")]}
    code, rows, out = run(slow)
    assert code == 1 and [r["id"] for r in rows] == ["soak-threads", "quick"]
    assert (
        not rows[0]["pass"]
        and "--long" in rows[0]["reason"]
        and rows[0]["command"].endswith("--only soak-threads")
    )
    assert "about 1 minutes" in out
    assert [r["id"] for r in run(slow, "--long")[1]] == ["threads", "quick"]
    assert [r["id"] for r in run({**slow, "soak-threads": fails})[1]] == ["threads", "quick"]
    run.rebuild()
    assert not run(slow)[1][0]["pass"]
    assert run(slow, "--only", "soak-threads")[1][0]["pass"]


RESULTS = {
    "soak-transfers": (
        {"transfers": 20_000, "bytes_compared": 9, "bytes_wrong": 0, "trouble": []},
        {
            "transfers": 20_000,
            "bytes_compared": 9,
            "bytes_wrong": 0,
            "trouble": ["a notice was lost"],
        },
    ),
    "soak-faults": ({"runs": 1000, "failures": []}, {"runs": 999, "failures": []}),
    "soak-program-faults": (
        {"runs": 1000, "failures": [], "longest_diagnosis_us": 1000.0},
        {"runs": 1000, "failures": [], "longest_diagnosis_us": 100_100.0},
    ),
    "soak-threads": (
        {"seconds": 300.1, "bytes": 8, "bytes_wrong": 0},
        {"seconds": 300.1, "bytes": 8, "bytes_wrong": 1},
    ),
    "soak-ethernet-rate-eth10g": (
        {"MB_per_second": 1190.0, "one_way_ns": 1300, "failed": 0, "bytes_wrong": 0},
        {"MB_per_second": 1100.0, "one_way_ns": 1300, "failed": 0, "bytes_wrong": 0},
    ),
    "soak-ethernet-star-eth10g": (
        {"MB_per_second": [400.0, 390.0], "jain": 0.99, "failed": [], "bytes_wrong": 0},
        {"MB_per_second": [400.0, 390.0], "jain": 0.99, "failed": ["TIMEOUT"], "bytes_wrong": 0},
    ),
    "synthesis-core": ({"figures": [met()]}, {"figures": [met(**{"pass": False})]}),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_campaign_s_rows_are_its_program_s_result(monkeypatch, name):
    for result, passed in zip(RESULTS[name], (True, False)):
        monkeypatch.setattr(
            figures, "run", lambda command, codes=(0,), result=result: json.dumps(result)
        )
        assert all(r["pass"] for r in figures.campaign(name)("gen2x4", 1)) == passed


@pytest.mark.parametrize("wrong", [0, 3])
def test_barrier_and_b_eff_of_mpi_are_rows_without_a_goal_and_wrong_bytes_fail(monkeypatch, wrong):
    said = f"barrier 4 5.0512\nb_eff-longest 4 900\nb_eff 4 123.4567\ncompared 5000 {wrong}\n"
    monkeypatch.setattr(figures, "run", lambda command, codes=(0,): said)
    barrier, effective, bytes_wrong = figures.campaign("mpi-4-ranks")("gen2x4", 1)
    assert (barrier["value"], effective["value"]) == (5.051, 123.457)
    assert barrier["target"] == effective["target"] == figures.NO_GOAL
    assert "1 of 30" in effective["unit"] and "-n 4" in effective["command"]
    assert bytes_wrong["pass"] == (not wrong)


def test_each_campaign_is_a_program_that_is_there():
    for name, (minutes, function) in figure_campaigns.CAMPAIGNS.items():
        assert minutes and name in figures.groups("gen2x4")
        if not function:
            assert (figures.ROOT / name).is_file()
            continue

        def seen(command, codes=(0,)):
            assert command[0] == "dibber" or (figures.ROOT / command[1]).is_file()
            raise figures.Failed("seen")

        with pytest.raises(figures.Failed, match="seen"):
            function(seen, "gen2x4", 1)
