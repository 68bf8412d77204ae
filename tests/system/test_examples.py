"""The examples with small sizes: right bytes in every way, tables and charts, and what each is
there to show.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dibber_cli import profile
from dibber_cli.bench import report, session

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import halo  # noqa: E402
import objects  # noqa: E402
import transpose  # noqa: E402

EXAMPLES = {
    "transpose": lambda: transpose.example(sizes=(128,)),
    "halo": lambda: halo.example(sizes=(32,)),
    "objects": lambda: objects.example(sizes=(8, 256), moved=256),
}


@pytest.fixture(scope="module")
def run(request):
    """run(name) → (example, result) of few sizes; each is run once."""
    found = {}

    def of(name):
        if name not in found:
            example = EXAMPLES[name]()
            found[name] = (
                example,
                session.run(
                    example, profile.load("gen2x4"), request.config.getoption("--seed"), "test"
                ),
            )
        return found[name]

    return of


def value(result, way, size):
    return next(p["value"] for p in result["points"] if (p["series"], p["x"]) == (way, size))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_way_brings_the_right_bytes_below_the_bound(run, name, tmp_path, capsys):
    example, result = run(name)
    assert result["bytes_wrong"] == 0 and result["bytes_compared"] == sum(
        len(c.senders) * c.payload for c in example.cases
    )
    assert {p["series"] for p in result["points"]} >= {"packed"} and len(result["points"]) == len(
        example.cases
    )
    for point in result["points"]:
        assert 0 < point["value"] <= point["bound"] and point["cpu_percent"] > 0
    assert all(f.stat().st_size for f in report.write(result, example.panels(result), tmp_path))
    report.show(result, example.tables(result))
    assert "times packed" in capsys.readouterr().out


@pytest.mark.parametrize("name, size", [("transpose", 128), ("halo", 32)])
def test_large_shapes_need_no_packing(run, name, size):
    assert value(run(name)[1], "direct", size) > value(run(name)[1], "packed", size)


def test_packing_takes_cpu_and_direct_takes_none(run):
    _, result = run("halo")
    cpu = {p["series"]: p["cpu_percent"] for p in result["points"] if p["x"] == 32}
    assert cpu["packed"] > 5 * cpu["direct"]


def test_objects_need_no_command_each_and_large_ones_no_packing(run):
    """What has a list starts through the control program, which takes longer than packing a few
    small objects.
    """
    _, result = run("objects")
    commands = max(value(result, way, 8) for way in ("puts", "gets"))
    assert all(value(result, way, 8) > commands for way in ("put-indexed", "get-indexed"))
    assert value(result, "put-indexed", 256) > value(result, "packed", 256)


@pytest.mark.parametrize("name, node", [("transpose", 0), ("halo", 1)])
def test_a_wrong_byte_is_found(name, node):
    """An example's own comparison: without any transfer its target is wrong."""
    example = EXAMPLES[name]()
    case = example.cases[0]
    program = object.__new__(example.PROGRAM)
    program.seed, program.node = 1, node
    program.source, program.target = (
        SimpleNamespace(memory=np.zeros(example.PROGRAM.TARGET, dtype=np.uint8)) for _ in range(2)
    )
    program.prepare(case)
    assert program.wrong(case) > case.payload // 2
