"""The proofs fit the gateware, and a sample of `make test-formal` is proven within minutes."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_each_harness_and_each_mutant_still_fits_the_gateware():
    run = subprocess.run(
        [sys.executable, ROOT / "hw" / "formal" / "prove.py", "--check", "--json", "--jobs", "2"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    result = json.loads(run.stdout or "{}")
    rows = result.get("properties", []) + result.get("mutants", [])
    lost = [row for row in rows if row["verdict"] != "elaborates"]
    assert run.returncode == 0 and rows and not lost, (lost, run.stderr)


def test_the_sample_is_proven_and_its_mutants_are_rejected():
    run = subprocess.run(
        [sys.executable, ROOT / "hw" / "formal" / "prove.py", "--quick", "--json"],
        capture_output=True,
        text=True,
        timeout=3600,
    )
    result = json.loads(run.stdout or "{}")
    assert run.returncode == 0 and result["pass"], run.stdout + run.stderr
    assert all(row["verdict"] == "proven" for row in result["properties"])
    assert all(row["verdict"] == "rejected" for row in result["mutants"])
    for row in result["properties"]:
        assert any(row["name"].startswith(mutant["property"]) for mutant in result["mutants"]), row[
            "name"
        ]


def test_a_mutant_whose_line_is_gone_is_an_error_and_no_rejection(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "hw" / "formal"))
    import engine
    import harness

    mutant = harness.Mutant("gone", "dibber.link.slack", "no such line", "", depth=1)
    prop = harness.Property("slack-obeyed", "", "", "", "Obeyed", k=1, mutants=[mutant])
    result = engine.check("slack", prop, mutant)
    assert result["verdict"] == "ERROR" and "0 times" in result["failed"][0]


def test_a_name_that_is_gone_from_the_gateware_does_not_elaborate(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "hw" / "formal"))
    import engine
    import harness

    prop = harness.Property("slack-obeyed", "", "", "", "Obeyed", k=1)
    assert engine.elaborates("slack", prop)["verdict"] == "elaborates"
    renamed = harness.Mutant(
        "renamed", "dibber.link.slack", "class SlackBuffer(", "class Buffer(", depth=1
    )
    result = engine.elaborates("slack", prop, renamed)
    assert result["verdict"] == "ERROR" and "SlackBuffer" in result["failed"][0]


COUNTER = """
module formal(input sys_clk);
reg [2:0] count = 0;
always @(posedge sys_clk) count <= (count == 5) ? 0 : count + 1;
always @* below: assert(count != 7);
{more}
endmodule
"""


@pytest.mark.parametrize(
    "more, verdict",
    [
        # behind 6, which is never reached
        ("", (False, None, ["below"])),
        ("always @* within: assert(count <= 5);", (True, None, [])),
        ("always @* within: assert(count <= 4);", (False, None, ["within"])),
    ],
)
def test_conclusions_one_at_a_time_use_all_of_the_cycle_before(
    monkeypatch, tmp_path, more, verdict
):
    monkeypatch.syspath_prepend(str(ROOT / "hw" / "formal"))
    import engine

    (tmp_path / "design.v").write_text(COUNTER.format(more=more))
    engine.compile_smt2(tmp_path, arrays=False)
    assert engine.induce_apart(tmp_path, 1, timeout=600) == verdict
