"""`dibber bench tcp`: its points, what the guest's lines become, and what it says without QEMU."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli import machine, profile
from dibber_cli.bench import report, tcp
from dibber_cli.errors import CommandError
from dibber_cli.main import main

MOST = 1 << 20  # bytes that the guest's program takes


def console(points, clock=125_000_000, wrong=0):
    """What a guest writes whose streams have 250 MB/s and an interrupt each 4 KiB."""
    lines = ["[    1.0] a line of the kernel", f"clock {clock}"]
    for point in points:
        cycles, came = point.bytes * clock // 250_000_000, point.bytes // 4096
        lines.append(f"tcp {point.series} {point.x} {point.bytes} {cycles} {came} {wrong}")
    return "\n".join([*lines, "guest 0_tcp 0", "guest done"])


@pytest.mark.parametrize("few", [{}, tcp.QUICK, tcp.FULL])
def test_each_point_is_one_that_the_guest_takes(few):
    found = tcp.points(**few)
    assert {point.series for point in found} == set(tcp.SERIES)
    for point in found:
        assert 0 < point.write <= MOST and 0 < point.bytes <= MOST
        assert len(point.line.split()) == 7
        if point.series == "put":
            assert point.bytes % point.write == 0
    assert len(tcp.points(**tcp.QUICK)) < len(tcp.points()) < len(tcp.points(**tcp.FULL))


def test_lines_of_the_guest_become_rates_and_interrupts():
    points, gen2x4 = tcp.points(**tcp.QUICK), profile.load("gen2x4")
    results, clock = tcp.parse(console(points), points)
    for result in results:
        result["clock_hz"] = clock
    found = tcp.evaluate(gen2x4, 1, results)["points"]
    at = {(row["series"], row["x"]): row["value"] for row in found}
    assert at["write", 65536] == pytest.approx(250, abs=0.5)
    assert at["write irq/MB", 65536] == pytest.approx(1e6 / 4096, abs=0.5)
    assert at["write irq/s", 65536] == pytest.approx(250e6 / 4096, rel=0.01)
    assert "put irq/s" not in {row["series"] for row in found}
    made = {"profile": "gen2x4", "points": found}
    shown = {name for table in tcp.tables(made) for name in table.series}
    assert shown == {row["series"] for row in found}
    for table in tcp.tables(made):
        report.tabulate(made, table)


def test_a_guest_that_ends_early_is_an_error_with_its_last_line():
    points = tcp.points(**tcp.QUICK)
    early = console(points[:2]).replace("guest done", "guest failed: carrier")
    with pytest.raises(CommandError, match=f"measured 2 of {len(points)} points") as error:
        tcp.parse(early, points)
    assert "guest failed: carrier" in error.value.advice
    with pytest.raises(CommandError):
        tcp.parse("", points)


def test_without_qemu_it_says_what_to_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(machine, "QEMU", tmp_path)
    assert main(["bench", "tcp", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "needs QEMU" in said and "make qemu driver" in said


def test_quick_and_full_exclude_each_other(tmp_path, capsys):
    assert main(["bench", "tcp", "--quick", "--full", "--out", str(tmp_path)]) == 2
    assert "exclude each other" in capsys.readouterr().err
