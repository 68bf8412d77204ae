"""Every block that is measured becomes Verilog whose pins are its interface."""

# SPDX-License-Identifier: BSD-2-Clause

import blocks
import flow
import pytest


# Blocks of which the rest are like: an engine, one with parts, one with a processor's Verilog.
@pytest.mark.parametrize("name", ["walker", "acknowledger", "identity", "processor"])
@pytest.mark.parametrize("data_width", [64, 128])
def test_a_block_has_pins_both_ways(name, data_width, tmp_path):
    sources, _ = blocks.generate(name, data_width, tmp_path)
    assert all((tmp_path / source).exists() for source in sources)
    pins = flow.ports((tmp_path / f"{name}.v").read_text(), name)
    assert {direction for direction, _, _ in pins} == {"input", "output"}
    assert {"sys_clk", "sys_rst"} <= {pin for _, _, pin in pins}


def test_the_switchs_pins_have_each_serial_port(tmp_path):
    blocks.generate("switch", 64, tmp_path)
    pins = flow.ports((tmp_path / "switch.v").read_text(), "switch")
    for direction, name in (("output", "serial_tx"), ("input", "serial_rx")):
        data = {pin for d, _, pin in pins if d == direction and pin.endswith("_data")}
        assert data == {f"{name.replace('_', f'{n}_')}_data" for n in range(blocks.SWITCH_PORTS)}


def test_the_walkers_pins_are_its_interface_and_nothing_inside(tmp_path):
    blocks.generate("walker", 64, tmp_path)
    pins = flow.ports((tmp_path / "walker.v").read_text(), "walker")
    names = {
        direction: {pin for d, _, pin in pins if d == direction}
        for direction in ("input", "output")
    }
    assert {"sink_valid", "source_ready", "max_piece", "abort"} <= names["input"]
    assert {"sink_ready", "source_valid"} <= names["output"]
    assert not any(pin.startswith("nest") for pin in names["output"])
