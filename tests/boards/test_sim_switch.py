"""The Verilog of the simulated switch has the pins that its page names."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess
import sys

import pytest

from tests.boards.conftest import ROOT

PIN = re.compile(r"^\s+(input|output)\s+(?:wire|reg)\s+(?:\[(\d+):0\])?\s*(\w+)", re.M)


def documented(ports):
    """{pin: (direction, bits)} of docs/design/switch.md."""
    pins = {}
    for line in (ROOT / "docs" / "design" / "switch.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 6 and cells[3] in ("in", "out"):
            for name in re.findall(r"`([^`]+)`", cells[1]):
                names = [name.replace("{n}", str(n)) for n in range(ports)]
                pins.update({each: (f"{cells[3]}put", int(cells[2])) for each in names})
    return pins


@pytest.mark.parametrize("ports", [4])
def test_the_simulated_switch_has_the_documented_pins_and_no_others(ports, tmp_path):
    subprocess.run(
        [
            sys.executable,
            str(ROOT / "boards" / "sim_switch.py"),
            *("--ports", str(ports), "--output", str(tmp_path)),
        ],
        check=True,
    )
    text = (tmp_path / "dibber_switch.v").read_text()
    module = text[text.index("module dibber_switch") :].split(");")[0]
    found = {name: (way, int(high or 0) + 1) for way, high, name in PIN.findall(module)}
    assert found == documented(ports)
    assert (tmp_path / "dibber_switch.f").read_text().split() == [str(tmp_path / "dibber_switch.v")]
