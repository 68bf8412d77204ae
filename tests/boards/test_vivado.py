"""The PCIe boards' projects and command lines. The core is left out: whole designs are for `make
test-boards`.
"""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import itertools
import json
import re
import subprocess

import crossings
import pytest
import xilinx
from dibber.interface.description import C

from boards import acorn, kc705, openxc7, stlv7325, target, vc707, vivado
from tests.boards.nocore import NoCore

# name of the design: board file, design, arguments of the platform, clocks that the XDC gives a
# period
DESIGNS = {
    "acorn_cle101": (acorn, "Card", {"variant": "cle-101"}, {"clk200_p", "pcie_x4_clk_p"}),
    "acorn_cle215p_link": (acorn, "Link", {}, {"clk200_p", "pcie_x1_clk_p", "tx_clk", "rx_clk"}),
    "kc705": (
        kc705,
        "Card",
        {},
        {"clk200_p", "pcie_x4_clk_p", "sgmii_clock_p", "tx_clk", "rx_clk"},
    ),
    "stlv7325": (
        stlv7325,
        "Card",
        {},
        {"clk200_p", "pcie_x4_clk_p", "link_refclk_p", "tx_clk", "rx_clk"},
    ),
    "stlv7325_pair": (
        stlv7325,
        "Pair",
        {},
        {"clk200_p", "pcie_x4_clk_p", "link_refclk_p"}
        | {f"phy{n}_{side}_clk" for n in range(2) for side in ("tx", "rx")},
    ),
    "vc707": (
        vc707,
        "Card",
        {},
        {"clk200_p", "pcie_x4_clk_p", "sgmii_clock_p", "tx_clk", "rx_clk"},
    ),
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """{name: folder}"""
    found = {}
    for name, (board, design, arguments, _) in DESIGNS.items():
        platform = board.platform(**arguments)
        found[name] = tmp_path_factory.mktemp(name) / "project"
        vivado.generate(
            found[name], "top", platform, getattr(board, design)(platform, 100e6, NoCore)
        )
    return found


def text(folder, suffix):
    return (folder / f"top.{suffix}").read_text()


# Projects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_each_clock_has_a_period_and_crossings_have_theirs(name, projects):
    constraints = crossings.Constraints(text(projects[name], "xdc"))
    assert constraints.clocks == DESIGNS[name][3]
    assert constraints.multireg and constraints.reset and constraints.jtag
    groups = {frozenset(pair) for pair in constraints.groups}
    links = {clock for clock in DESIGNS[name][3] if clock.endswith(("tx_clk", "rx_clk"))}
    assert {frozenset({"sys_clk", clock}) for clock in {"pcie_clk"} | links} <= groups
    assert {frozenset(pair) for pair in itertools.combinations(links, 2)} <= groups


@pytest.mark.parametrize("name", DESIGNS)
def test_lines_of_asynchronous_clocks_are_in_order(name, projects):
    groups = crossings.Constraints(text(projects[name], "xdc")).groups
    assert groups == sorted(groups)


def test_lines_of_asynchronous_clocks_are_put_in_order_and_no_other_is_moved():
    text = "a\n\nset_clock_groups 2\n\nz\nset_clock_groups 1\nb\n"
    assert vivado.ordered(text) == "a\n\nset_clock_groups 1\n\nz\nset_clock_groups 2\nb\n"
    # LiteX ends its last line so
    assert (
        vivado.ordered("set_clock_groups 2\n\nset_clock_groups 1")
        == "set_clock_groups 1\n\nset_clock_groups 2\n"
    )


@pytest.mark.parametrize("name", DESIGNS)
def test_the_pcie_block_gets_the_identity_of_the_card_and_its_result_is_checked(name, projects):
    tcl = text(projects[name], "tcl")
    for line in (
        f"CONFIG.Vendor_ID {{{C.PCI_VENDOR:04x}}}",
        f"CONFIG.Device_ID {{{C.PCI_DEVICE:04x}}}",
        "CONFIG.Bar0_Size {1}",
        "CONFIG.MSIx_Table_Size {8}",
        "CONFIG.Extended_Tag_Field {True}",
    ):
        assert line in tcl
    asked = [line for line in tcl.splitlines() if line.startswith("if") and "MSIX" in line]
    assert [line.split("!= ")[-1].split("}")[0] for line in asked] == [
        str(n) for n in (C.VECTORS - 1, C.MSIX_TABLE_BASE // 8, C.MSIX_PBA_BASE // 8)
    ]
    # A design that is too slow is not written.
    assert tcl.index("a path misses its time") < tcl.index("write_bitstream")
    assert tcl.index("route_design") < tcl.index("a path misses its time")


@pytest.mark.parametrize("name", DESIGNS)
def test_the_project_has_all_that_it_needs_in_its_folder(name, projects):
    for line in text(projects[name], "tcl").splitlines():
        if line.startswith("read_verilog"):
            assert (projects[name] / line.split("{")[1].rstrip("}")).is_file()
    assert (projects[name] / "run.sh").stat().st_mode & 0o111
    assert "vivado -mode batch -notrace -source top.tcl" in (projects[name] / "run.sh").read_text()


# Vivado's answers, in the Tcl of OpenOCD, which is installed: commands do nothing, and the test
# sets properties.
STAND_INS = """
foreach command {COMMANDS} { proc $command {args} { return something } }
proc get_property {name object} { global answers; return $answers($name) }
proc report_timing_summary {args} { global answers; return $answers(SUMMARY) }
array set answers {SLACK 0.1 MSIX_CAP_TABLE_SIZE 11'h007 MSIX_CAP_TABLE_OFFSET 29'h00000200}
array set answers {MSIX_CAP_PBA_OFFSET 29'h00000300 NAME clk PERIOD 10 REQUIREMENT 10}
array set answers {SUMMARY {All user specified timing constraints are met.}}
array set answers {CHANGE}
proc quit {} { puts "the project ran to its end"; shutdown }
cd FOLDER
source top.tcl
"""


def run_with_stand_ins(tcl, change, folder, tmp_path):
    """What OpenOCD's Tcl wrote when it ran a project's script, with STAND_INS for Vivado.

    change : answers of the stand-ins that are not the usual ones, as STAND_INS has them
    folder : of the project
    """
    commands = {
        word for line in tcl.splitlines() for word in re.findall(r"(?:^|\[)([a-z]+_[a-z_]+)", line)
    } - {"get_property", "report_timing_summary"}
    script = (
        STAND_INS.replace("COMMANDS", " ".join(commands | {"version"}))
        .replace("CHANGE", change)
        .replace("FOLDER", str(folder))
    )
    (tmp_path / "run.tcl").write_text(script)
    result = subprocess.run(
        ["openocd", "-f", tmp_path / "run.tcl", "-c", "exit"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    return result.stdout + result.stderr


@pytest.mark.parametrize(
    "change, said",
    [
        ("", "the project ran to its end"),
        (
            "MSIX_CAP_TABLE_OFFSET 29'h00001000",
            "MSIX_CAP_TABLE_OFFSET of the PCIe block is 29'h00001000, not 200",
        ),
        ("MSIX_CAP_TABLE_SIZE 11'h008", "MSIX_CAP_TABLE_SIZE of the PCIe block is 11'h008, not 7"),
        ("SLACK -0.1", "a path misses its time"),
        ("SUMMARY {Timing constraints are not met.}", "pulse widths, or what else Vivado looks at"),
    ],
)
@pytest.mark.parametrize("name", DESIGNS)
def test_the_tcl_runs_and_stops_at_a_wrong_block_and_at_a_missed_time(
    name, change, said, projects, tmp_path
):
    tcl = text(projects[name], "tcl") + vivado.FIGURES
    written = run_with_stand_ins(tcl, change, projects[name], tmp_path)
    assert said in written
    assert (said == "the project ran to its end") == ("the project ran to its end" in written)


def debug_chains(verilog):
    """Which of the FPGA's USER instructions reach the debug transport."""
    found = re.findall(
        r"^BSCANE2 #\(.*?\.JTAG_CHAIN +\(\S*?(\d)\).*?\.TDO +\(\w+_tdo\)", verilog, re.M | re.S
    )
    return [int(chain) for chain in found]


@pytest.mark.parametrize("name", DESIGNS)
def test_the_debug_module_is_behind_the_jtag_port_of_the_fpga(name, projects):
    assert debug_chains(text(projects[name], "v")) == [3, 4]


def test_x4_has_no_transceiver_left_and_x1_shares_its_quad(projects):
    x4, x1 = (text(projects[name], "v") for name in ("acorn_cle101", "acorn_cle215p_link"))
    assert "GTPE2" not in x4 and "qpll" not in x4
    assert x1.count("\nGTPE2_COMMON") == 1 and ".qpll_qplllock" in x1
    assert "CONFIG.en_ext_gt_common {True}" in text(projects["acorn_cle215p_link"], "tcl")
    # The IP would put its lane elsewhere.
    assert "set_property LOC GTPE2_CHANNEL_X0Y7" in text(projects["acorn_cle215p_link"], "tcl")


def test_a_linter_that_knows_the_vendor_s_cells_has_nothing_to_say_and_finds_a_wrong_pin(projects):
    folder = projects["acorn_cle215p_link"]
    (folder / "pcie_s7.v").write_bytes((xilinx.HERE / "pcie_s7.v").read_bytes())
    design = text(folder, "v").replace("module top ", "module dibber_top ")
    for name, verilog in [
        ("good.v", design),
        ("bad.v", design.replace(".PLL1LOCKEN ", ".PLL1LOKCEN ")),
    ]:
        (folder / name).write_text(verilog)
    assert xilinx.lint(folder, "top", ["good.v"], 1, 64) == []
    assert any("PLL1LOKCEN" in line for line in xilinx.lint(folder, "top", ["bad.v"], 1, 64))


def test_a_link_that_is_faster_than_sys_is_refused():
    with pytest.raises(ValueError, match="too slow for 5 Gb/s"):
        kc705.Card(kc705.platform(), 100e6, NoCore, linerate=5e9)


# Command Line -------------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Commands that were run. `generate` makes a project whose run.sh ends with RUN_SH."""
    found = []

    def generate(folder, top, platform, design, user=None):
        found.append(f"{folder.name} {platform} {design} {user}")
        folder.mkdir(parents=True)
        vivado.write_run(folder, f"#!/bin/sh\n: >{folder}/ran\nexit ${{RUN_SH:-0}}\n")

    monkeypatch.setattr(vivado, "OUT", tmp_path / "vivado")
    monkeypatch.setattr(openxc7, "OUT", tmp_path / "openxc7")
    monkeypatch.setattr(vivado.flow, "ROOT", tmp_path)
    monkeypatch.setattr(vivado, "generate", generate)
    monkeypatch.setattr(openxc7, "generate", generate)
    monkeypatch.setattr(
        target.tools, "load", lambda board, file: found.append(("load", board.name, file))
    )
    monkeypatch.setattr(
        target.tools,
        "flash",
        lambda board, file, golden: found.append(("flash", board.name, file, golden)),
    )
    return found


class Platform(str):
    """A platform that reports its parts."""

    device = property(lambda self: acorn.platform(self).device)


def run(board, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["board", *arguments])
    designs = {
        name: lambda platform, freq, name=name: f"{name} {freq:g}" for name in board.BOARD.designs
    }
    more = (
        {"variants": ["cle-215+", "cle-215", "cle-101"], "builders": {"open": openxc7}}
        if board is acorn
        else {}
    )
    vivado.main(
        board.BOARD, lambda *variant: Platform(*variant or ["platform"]), designs, 100e6, **more
    )


WITHOUT_VIVADO = (
    "kc705: the project is in vivado/kc705; not on the PATH: vivado. Take it to "
    "where they are, run vivado/kc705/run.sh there"
)


@pytest.mark.fault
def test_without_vivado_the_project_is_made_and_a_sentence_says_what_to_do_with_it(
    calls, monkeypatch, capsys
):
    monkeypatch.setenv("PATH", "/nowhere")
    run(kc705, monkeypatch, "--build")
    said = capsys.readouterr()
    assert (
        said.out.startswith(WITHOUT_VIVADO) and said.err == "" and len(said.out.splitlines()) == 1
    )
    assert calls == ["kc705 platform card 1e+08 None"]


@pytest.mark.fault
def test_without_openxc7_too(calls, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    run(acorn, monkeypatch, "--build", "--design", "open")
    assert "the project is in openxc7/acorn_cle101_open" in capsys.readouterr().out


@pytest.mark.fault
@pytest.mark.parametrize("then", ["--load", "--flash"])
def test_what_needs_a_bitstream_without_vivado_ends_with_that_one_error(
    calls, monkeypatch, capsys, then
):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit, match=WITHOUT_VIVADO):
        run(kc705, monkeypatch, "--build", then)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "") and calls == ["kc705 platform card 1e+08 None"]


def test_with_vivado_the_project_is_run(calls, monkeypatch, tmp_path):
    monkeypatch.setattr(vivado.shutil, "which", lambda name: f"/opt/{name}")
    run(acorn, monkeypatch, "--build", "--design", "link", "--variant", "cle-101")
    assert (
        calls == ["acorn_cle101_link cle-101 link 1e+08 8388608"]
        and (tmp_path / "vivado" / "acorn_cle101_link" / "ran").exists()
    )
    monkeypatch.setenv("RUN_SH", "1")
    with pytest.raises(SystemExit, match="kc705: vivado/kc705/run.sh ended with 1"):
        run(kc705, monkeypatch, "--build", "--flash")
    assert len(calls) == 2


def test_openxc7_takes_the_variant_that_it_has_a_database_of_and_a_clock_of_its_own(
    calls, monkeypatch, tmp_path
):
    monkeypatch.setattr(vivado.shutil, "which", lambda name: f"/opt/{name}")
    run(acorn, monkeypatch, "--build", "--design", "open")
    assert (
        calls == ["acorn_cle101_open cle-101 open 5e+07 None"]
        and (tmp_path / "openxc7" / "acorn_cle101_open" / "ran").exists()
    )


@pytest.mark.parametrize("action", ["--build", "--load"])
def test_a_part_that_openxc7_has_no_database_of_is_refused(action, calls, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(acorn, monkeypatch, action, "--design", "open", "--variant", "cle-215+")
    assert (
        "--design open is for an xc7a100tfgg484-2, cle-215+ has an xc7a200t-fbg484-3: --variant "
        "cle-101" in capsys.readouterr().err
    )
    assert calls == []


def test_a_board_without_variants_says_that(calls, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(kc705, monkeypatch, "--build", "--variant", "cle-101")
    assert "kc705 has no variants" in capsys.readouterr().err and calls == []


def made(folder, part):
    """The output of a project, with its manifest; its bitstreams."""
    folder.mkdir(parents=True)
    bits = [folder / f"dibber_{folder.name}{suffix}.bit" for suffix in ("", "_golden")]
    for file in bits:
        file.write_bytes(file.name.encode())
    (folder / "manifest.json").write_text(
        json.dumps(
            {
                "board": folder.name,
                "part": part,
                "clocks": [],
                "files": {
                    file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in bits
                },
            }
        )
    )
    return bits


def test_load_and_flash_reach_the_part_of_the_variant(calls, monkeypatch, tmp_path):
    bit, golden = made(tmp_path / "vivado" / "acorn_cle215p", "xc7a200t-fbg484-3")
    run(acorn, monkeypatch, "--load", "--flash")
    run(acorn, monkeypatch, "--load", "--flash", "--golden")
    assert calls == [
        ("load", "acorn_cle-215", bit),
        ("flash", "acorn_cle-215", bit, False),
        ("load", "acorn_cle-215", bit),
        ("flash", "acorn_cle-215", golden, True),
    ]


def test_load_and_flash_look_where_openxc7_puts_it(calls, monkeypatch, tmp_path):
    bit, _ = made(tmp_path / "openxc7" / "acorn_cle101_open", "xc7a100t-fgg484-2")
    run(acorn, monkeypatch, "--design", "open", "--load", "--flash")
    assert calls == [("load", "acorn_cle-101", bit), ("flash", "acorn_cle-101", bit, False)]


def test_what_was_not_built_is_not_loaded_nor_what_is_for_another_part(
    calls, monkeypatch, tmp_path
):
    with pytest.raises(SystemExit, match="manifest.json is not there"):
        run(kc705, monkeypatch, "--load")
    made(tmp_path / "vivado" / "kc705", "xc7a100t-fgg484-2")
    with pytest.raises(SystemExit, match="is for an xc7a100t-fgg484-2, kc705 has an xc7k325t"):
        run(kc705, monkeypatch, "--flash")
    assert calls == []


def test_a_flash_with_room_for_two_images_gets_a_golden_one_that_goes_on_at_the_other(projects):
    assert "NEXT_CONFIG_ADDR" not in (projects["kc705"] / "top.tcl").read_text()
    platform = acorn.platform("cle-101")
    folder = projects["kc705"].parent / "golden"
    vivado.generate(folder, "top", platform, acorn.Card(platform, 100e6, NoCore), user=0x800000)
    tcl = (folder / "top.tcl").read_text().splitlines()
    at = [
        n
        for word in [
            "CONFIGFALLBACK ENABLE",
            "write_bitstream -force top.bit",
            "NEXT_CONFIG_ADDR 0x00800000",
            "write_bitstream -force top_golden.bit",
        ]
        for n, line in enumerate(tcl)
        if word in line
    ]
    assert len(at) == 4 and at == sorted(at)


# openXC7 ------------------------------------------------------------------------------------------

PCIE_7X = """
module pcie_7x #(
    parameter EXTERNAL_MMCM = "FALSE", parameter CFG_VEND_ID = 16'h10EE,
    parameter CFG_DEV_ID = 16'h7011,
    parameter CFG_SUBSYS_VEND_ID = 16'h10EE, parameter CFG_SUBSYS_ID = 16'habcd,
    parameter [31:0] BAR0 = 0,
    parameter CLASS_CODE = 24'h0, parameter DEV_CAP_EXT_TAG_SUPPORTED = "FALSE",
    parameter [3:0] LINK_CAP_MAX_LINK_SPEED = 4'h1,
    parameter MSI_CAP_ON = "TRUE", parameter [7:0] PM_CAP_NEXTPTR = 0,
    parameter [7:0] PCIE_CAP_NEXTPTR = 0,
    parameter MSIX_CAP_ON = "FALSE", parameter [10:0] MSIX_CAP_TABLE_SIZE = 0,
    parameter [28:0] MSIX_CAP_TABLE_OFFSET = 0,
    parameter [28:0] MSIX_CAP_PBA_OFFSET = 0, parameter USER_CLK_FREQ = 1
) (
    output         user_clk_out,
    output         user_reset_out,  // for the user
    input   [63:0] s_axis_tx_tdata,
    output  [63:0] m_axis_rx_tdata,
    output  [15:0] cfg_dcommand,
    output         cfg_interrupt_msixenable
);
endmodule
"""


@pytest.fixture
def pcie_7x(tmp_path, monkeypatch):
    """The used part of a checkout of pcie_7x."""
    folder = tmp_path / "pcie_7x" / "src"
    folder.mkdir(parents=True)
    for name in openxc7.SOURCES:
        (folder / f"{name}.v").write_text(PCIE_7X if name == "pcie_7x" else "")
    monkeypatch.setenv("PCIE_7X_DIR", str(folder.parent))
    return folder


def open_project(folder):
    platform = acorn.platform("cle-101")
    openxc7.generate(folder, "top", platform, acorn.Open(platform, 50e6, NoCore))
    return folder


def test_the_open_project_has_the_wrapper_the_pins_and_a_command(pcie_7x, tmp_path):
    folder = open_project(tmp_path / "project")
    verilog = text(folder, "v")
    assert "pcie_s7" not in verilog.replace("openpciephy", "") and "\npcie_7x #(" in verilog
    for line in (
        ".MSIX_CAP_TABLE_OFFSET     (10'd512)",
        ".CFG_VEND_ID               (16'd4617)",
        ".BAR0                      (32'd4293918720)",
    ):
        assert line in verilog
    assert debug_chains(verilog) == [3, 4]
    assert ".s_axis_tx_tdata" in verilog and ".pl_ltssm_state" not in verilog
    command = (folder / "run.sh").read_text()
    assert all(
        (folder / f"{name}.v").is_file() and f"{name}.v" in command for name in openxc7.SOURCES
    )
    assert (
        "synth_xilinx -flatten -abc9 -nosrl -arch xc7 -top top; delete t:$scopeinfo; write_json "
        "top.json'" in command
    )
    assert [
        line.split()[0] for line in command.splitlines() if line.split()[0] in openxc7.TOOLS
    ] == list(openxc7.TOOLS)
    pins = text(folder, "xdc")
    assert "set_property LOC B10 [get_ports {pcie_lane0_rx_p}]" in pins and "create_clock" in pins
    assert "set_clock_groups" not in pins
    # What nextpnr-xilinx has to be told: `sys` and the oscillator behind its buffer, and all others
    # by the speed of PCIe's fastest.
    needs = json.loads((folder / "project.json").read_text())["needs"]
    assert (
        sorted(needs.values()) == [50, 200] and needs["sys_clk"] == 50 and " --freq 125 " in command
    )
    for clock, mhz in needs.items():
        assert f"create_clock -name {clock} -period {1000 / mhz:.3f} [get_nets {clock}]\n" in pins
        assert re.search(rf"^wire +{clock}\b", verilog, re.M)
    assert (
        subprocess.run(
            ["sh", folder / "run.sh"], env={"PATH": "/bin:/usr/bin"}, capture_output=True, text=True
        ).stderr.count("CHIPDB")
        == 1
    )


def test_without_the_wrapper_the_program_says_where_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("PCIE_7X_DIR", raising=False)
    with pytest.raises(
        SystemExit, match="PCIE_7X_DIR is not set: check out github.com/regymm/pcie_7x"
    ):
        open_project(tmp_path / "project")


def test_a_wrapper_that_lacks_a_file_or_a_parameter_is_refused(pcie_7x, tmp_path):
    (pcie_7x / "pcie_7x.v").write_text(PCIE_7X.replace("MSIX_CAP_ON", "OTHER"))
    with pytest.raises(SystemExit, match="this pcie_7x has no MSIX_CAP_ON"):
        open_project(tmp_path / "project")
    (pcie_7x / "pcie_block.v").unlink()
    with pytest.raises(SystemExit, match="PCIE_7X_DIR has no .*pcie_block.v"):
        open_project(tmp_path / "project")
