"""The block that Corundum instantiates: generated, linted at each width, two of it on a cable."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess

import pytest
from dibber.interface.description import LINK_STATE, C

from tests.corundum.block import CORUNDUM, generated, generator, program
from tests.gateware.mcp.card import run

WIDTHS = [128, 256, 512]


def shell(folder, width):
    """The core's ports without the core, for PCIe of another width."""
    text = (folder / "dibber_corundum_core.v").read_text(encoding="utf-8")
    header = text[text.index("module dibber_corundum_core") : text.index(");") + 2]
    for name, bits in (("ram_wr_cmd_be", 64), ("ram_wr_cmd_data", 512), ("ram_rd_resp_data", 512)):
        header, count = re.subn(
            rf"\[{bits - 1}:0\](\s+{name}\b)", rf"[{bits * width // 256 - 1}:0]\1", header
        )
        assert count == 1, name
    quiet = "".join(f"/* verilator lint_off {name} */\n" for name in ("UNUSEDSIGNAL", "UNDRIVEN"))
    return f"`timescale 1ns / 1ps\n{quiet}{header}\nendmodule\n"


@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_wrapper_lints_without_a_warning(width, ports, tmp_path):
    """All checks of Verilator, on all that is not generated from Migen."""
    folder = generated()
    (tmp_path / "dibber_corundum_core.v").write_text(shell(folder, width), encoding="utf-8")
    (tmp_path / "mqnic_app_block.v").write_text(generator().block(width), encoding="utf-8")
    run(
        "verilator-cli",
        *["--lint-only", "-Wall", "--top-module", "mqnic_app_block"],
        *[f"-GPORTS_PER_IF={ports}", f"-GRAM_SEG_DATA_WIDTH={width}"],
        *[f"-GAXIS_DATA_WIDTH={width}", "-Wno-DECLFILENAME"],
        *sorted(tmp_path.glob("*.v")),
        *sorted((CORUNDUM / "rtl").glob("*.v")),
    )


def test_the_block_has_each_port_and_parameter_once_and_drives_each_output():
    block = generator().block(256)
    declared = re.findall(r"^    (?:input |output) wire(?: \[.*\])? (\w+),?$", block, re.M)
    outputs = re.findall(r"^    output wire(?: \[.*\])? (\w+),?$", block, re.M)
    assert len(declared) == len(set(declared)) == 336
    for name in outputs:
        driven = len(re.findall(rf"^assign {name} = ", block, re.M))
        driven += len(re.findall(rf"^    \.{name}\({name}\)", block, re.M))
        assert driven == 1, name
    names = re.findall(r"^    parameter (\w+)", block, re.M)
    assert len(names) == len(set(names))


def test_two_cards_find_each_other_while_the_nics_send_through_the_same_macs(seed):
    result = subprocess.run([program(), str(seed)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    words = result.stdout.split()
    facts = {"magic": int(words[1]), "states": words[3:5], "peers": words[6:8]}
    up = str(int(LINK_STATE.UP))
    assert facts["states"] == [up, up]
    assert facts["peers"] == [str(0x12222), str(0x11111)]
    assert facts["magic"] == C.MAGIC
