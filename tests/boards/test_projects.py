"""Projects on a machine with their tools. The tools here only write the output that is read: run.sh
leaves a manifest that `dibber flash` takes, and neither manifest nor bitstream of a slow design."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import re
import shutil
import subprocess
import sys

import pytest
from dibber.interface.description import INTERFACE
from dibber_cli.main import main as dibber

from boards import acorn, kc705, openxc7, vivado
from tests.boards.nocore import NoCore
from tests.boards.test_vivado import PCIE_7X

# Stand-ins ----------------------------------------------------------------------------------------

# Vivado, in the Tcl of OpenOCD. Clocks: name, period. Paths: type, clock, slack, requirement.
# Cells: REF_NAME, LOC, BEL.
VIVADO = r"""
set periods {clk200_p 5.0 pcie_x4_clk_p 10.0 sgmii_clock_p 8.0 sys 10.0 userclk2 8.0
    tx_clk 8.0 rx_clk 8.0}
set paths {
    {max sys 1.9 2.0} {max sys 2.0 10.0} {max sys 3.0 10.0} {max tx_clk 3.0 8.0}
    {max rx_clk 1.0 4.0} {max userclk2 1.6 8.0} {max sys {} 0}
    {min sys 0.05 0.0} {min tx_clk 0.1 0.0} {min rx_clk 0.02 0.0} {min userclk2 0.03 0.0}
}
set cells {
    {LUT6 SLICE_X0Y0 SLICEL.A6LUT} {LUT5 SLICE_X0Y0 SLICEL.A5LUT}
    {RAMD64E SLICE_X0Y0 SLICEM.B6LUT} {LUT2 SLICE_X1Y0 SLICEL.A6LUT}
    {FDRE SLICE_X0Y0 SLICEL.AFF} {FDRE SLICE_X0Y0 SLICEL.A5FF}
    {RAMB36E1 RAMB36_X0Y0 RAMB36E1.RAMB36E1} {RAMB18E1 RAMB18_X0Y2 RAMB18E1.RAMB18E1}
    {PCIE_2_1 PCIE_X0Y0 PCIE_2_1.PCIE_2_1}
}
set of_part {LUT_ELEMENTS 203800 FLIPFLOPS 407600 BLOCK_RAMS 445 DSP 840}
set of_block {MSIX_CAP_TABLE_SIZE 11'h007 MSIX_CAP_TABLE_OFFSET 29'h00000200
    MSIX_CAP_PBA_OFFSET 29'h00000300 PART xc7k325tffg900-2}

proc version {args} { return 2024.2 }
proc get_clocks {args} { dict keys $::periods }
proc get_parts {name} { return part }
proc current_project {} { return project }
proc get_cells {args} {
    lassign [lindex $args end] property operator pattern
    set found {}
    foreach cell $::cells {
        if {[string match $pattern [cell $property $cell]]} { lappend found $cell }
    }
    return $found
}
proc cell {property cell} { lindex $cell [lsearch {REF_NAME LOC BEL} $property] }
proc get_timing_paths {args} {
    set options [lsearch -all -inline -not $args -quiet]
    set found   {}
    foreach path $::paths {
        lassign $path type clock slack
        if {$type ne [dict get $options -delay_type]} { continue }
        if {[dict exists $options -to] ? $clock eq [dict get $options -to]
            : [string is double -strict $slack]} { lappend found $path }
    }
    if {[dict exists $options -max_paths]} { return $found }
    return [lindex [lsort -command slower $found] 0]
}
proc slower {one other} { expr {[lindex $one 2] > [lindex $other 2] ? 1 : -1} }
proc get_property {name object} {
    switch $name {
        SLACK       { return [lindex $object 2] }
        REQUIREMENT { return [lindex $object 3] }
        NAME        { return $object }
        PERIOD      { return [dict get $::periods $object] }
        LOC - BEL   { return [cell $name $object] }
        default     {
            return [dict get [expr {$object eq "part" ? $::of_part : $::of_block}] $name]
        }
    }
}
proc report_timing_summary {args} { return "All user specified timing constraints are met." }
proc write_bitstream {args} {
    set file [open [lindex $args end] w]
    puts $file [lindex $args end]
    close $file
}
proc quit {} { shutdown }
"""
RUN_VIVADO = """#!/bin/sh
for project; do :; done
exec openocd -f "$(dirname "$0")/vivado.tcl" -f "$project"
"""

NEXTPNR = r"""#!/bin/sh
test "$1" = --version && {
	echo '"nextpnr-xilinx" -- Next Generation Place and Route (Version 0.8.2)' >&2; exit 1; }
for word; do
	case "$last" in --log) log=$word;; --fasm) : >"$word";; esac
	last=$word
done
cat >"$log" <<END
Info: Device utilisation:
Info: 	          SLICE_LUTX:  41000/126800    32%
Info: 	           SLICE_FFX:  22000/126800    17%
Info: 	        DSP48E1_DSP48E1:      0/  240     0%

Info: Max frequency for clock 's7pll_buf': 40.00 MHz (FAIL at 50.00 MHz)
Info: Max frequency for clock    's7pll_buf': SYS MHz (PASS at TOLD MHz)
Info: Max frequency for clock  'pcie_pclk_o': PCLK MHz (PASS at 125.00 MHz)
Info: CLK200
END
exit CODE
"""
NO_PATHS = "Clock 'open_clk200' has no interior paths"


def stand_ins(folder, scripts):
    """A PATH with `scripts`, Python, and what every system has."""
    folder.mkdir()
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "python3").symlink_to(sys.executable)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def run(folder, environment):
    return subprocess.run(
        [folder / "run.sh"], env=environment, cwd="/", capture_output=True, text=True, timeout=600
    )


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def made(folder):
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix == ".bit" or path.name == "manifest.json"
    )


# Vivado -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """{name: project}"""
    found = {}
    for board, name, arguments, user in [
        (kc705, "kc705", {}, None),
        (acorn, "acorn_cle101", {"variant": "cle-101"}, 0x800000),
    ]:
        platform = board.platform(**arguments)
        found[name] = tmp_path_factory.mktemp("projects") / name
        vivado.generate(
            found[name], f"dibber_{name}", platform, board.Card(platform, 100e6, NoCore), user
        )
    return found


@pytest.fixture
def taken(projects, tmp_path):
    """`taken(name, change)`: a project in another place, run by a Vivado whose Tcl was changed; the
    folder, and what run.sh ended with.
    """

    def take(name, *change):
        folder = shutil.copytree(projects[name], tmp_path / "elsewhere" / name)
        tcl = (folder / f"dibber_{name}.tcl").read_text()
        idle = {line.split()[0] for line in tcl.splitlines() if line[:1].isalpha()} | {
            "get_ips",
            "get_files",
            "current_design",
            "get_iobanks",
        }
        idle -= {"set", "if", "source", "write_bitstream", "report_timing_summary", "quit"}
        own = VIVADO.replace(*change) if change else VIVADO
        assert own != VIVADO or not change
        tools = {
            "vivado": RUN_VIVADO,
            "vivado.tcl": f"foreach command {{{' '.join(idle)}}} {{ proc $command {{args}} {{}} "
            f"}}\n{own}",
        }
        return folder, run(folder, stand_ins(tmp_path / "tools", tools))

    return take


def test_run_sh_leaves_a_manifest_beside_the_bitstream(taken):
    folder, done = taken("kc705")
    assert done.returncode == 0, done.stdout + done.stderr
    found = manifest(folder)
    assert (
        found["board"] == "kc705"
        and found["part"] == "xc7k325t-ffg900-2"
        and found["tools"] == ["Vivado 2024.2"]
    )
    assert found["interface_hash"] == f"{INTERFACE.hash:08x}"
    # What a path has of its own time counts: 2 ns are left of 10, 1 of the 4 of half a period, and
    # nothing follows from 1.9 of 2.
    assert found["clocks"] == [
        {"clock": "rx_clk", "mhz": 166.7, "needed_mhz": 125.0, "met": True},
        {"clock": "sys", "mhz": 125.0, "needed_mhz": 100.0, "met": True},
        {"clock": "tx_clk", "mhz": 200.0, "needed_mhz": 125.0, "met": True},
        {"clock": "userclk2", "mhz": 156.2, "needed_mhz": 125.0, "met": True},
    ]
    assert found["resources"] == {
        "lut6": {"used": 3, "available": 203800},
        "ff": {"used": 2, "available": 407600},
        "ramb36": {"used": 1.5, "available": 445},
        "dsp48": {"used": 0, "available": 840},
    }
    assert (
        "#define" in (folder / "dibber_interface.h").read_text()
        and (folder / "interface.md").is_file()
    )


def test_its_keys_are_those_of_an_ecp5_and_what_its_timing_stands_for(taken):
    assert manifest(taken("kc705")[0]).keys() == {
        "board",
        "part",
        "design",
        "tools",
        "interface",
        "interface_hash",
        "clocks",
        "resources",
        "took",
        "files",
        "timing",
    }


def test_dibber_flash_takes_it_and_the_golden_image_is_in_it(taken, capsys):
    folder, _ = taken("acorn_cle101")
    assert manifest(folder)["files"].keys() == {
        "dibber_acorn_cle101.bit",
        "dibber_acorn_cle101_golden.bit",
    }
    assert dibber(["flash", "--show", "--load", str(folder)]) == 0
    assert "acorn_cle-101.cfg" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change, said",
    [
        (("{max sys 2.0 10.0}", "{max sys -0.3 10.0}"), "setup: a path misses its time"),
        (("{min sys 0.05 0.0}", "{min sys -0.01 0.0}"), "hold: a path misses its time"),
        (
            ("are met.", "are met. Timing constraints are not met."),
            "it says that constraints are not met",
        ),
        # A line of the XDC that found nothing, and one that another took the place of.
        (("tx_clk 8.0 rx_clk", "rx_clk"), "kc705: no bitstream: tx_clk missed the time"),
        (
            ("tx_clk 8.0 rx_clk", "tx_clk 16.0 rx_clk"),
            "kc705: no bitstream: tx_clk missed the time",
        ),
        (
            ("proc get_clocks {args} { dict keys $::periods }", "proc get_clocks {args} {}"),
            "missed the time",
        ),
    ],
)
def test_what_is_too_slow_has_no_manifest_and_no_bitstream(change, said, taken):
    folder, done = taken("kc705", *change)
    assert done.returncode == 1 and said in done.stdout + done.stderr
    assert made(folder) == []


def test_what_an_earlier_run_left_does_not_outlive_a_failed_one(projects, tmp_path):
    folder = shutil.copytree(projects["kc705"], tmp_path / "kc705")
    for name in ("dibber_kc705.bit", "manifest.json"):
        (folder / name).touch()
    assert (
        run(folder, stand_ins(tmp_path / "tools", {"vivado": "#!/bin/sh\nexit 1\n"})).returncode
        == 1
    )
    assert made(folder) == []


def test_sizes_that_vivado_does_not_tell_are_no_reason_to_fail(taken):
    folder, done = taken("kc705", "LUT_ELEMENTS 203800", "OTHER 1")
    assert (
        done.returncode == 0
        and "no sizes: " in done.stdout + done.stderr
        and manifest(folder)["clocks"]
    )


def test_a_tool_that_is_missing_is_named_before_anything_is_made(projects, tmp_path):
    folder = shutil.copytree(projects["kc705"], tmp_path / "kc705")
    done = run(folder, stand_ins(tmp_path / "tools", {}))
    assert done.returncode == 1 and "run.sh: vivado is not on the PATH" in done.stderr


# openXC7 ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_project(tmp_path_factory):
    wrapper = tmp_path_factory.mktemp("pcie_7x")
    (wrapper / "src").mkdir()
    for name in openxc7.SOURCES:
        (wrapper / "src" / f"{name}.v").write_text(PCIE_7X if name == "pcie_7x" else "")
    folder = tmp_path_factory.mktemp("open") / "acorn_cle101_open"
    platform = acorn.platform("cle-101")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PCIE_7X_DIR", str(wrapper))
        openxc7.generate(
            folder, "dibber_acorn_cle101_open", platform, acorn.Open(platform, 50e6, NoCore)
        )
    return folder


@pytest.fixture
def opened(open_project, tmp_path):
    """`opened(sys, told, pclk, clk200, code)`: the project, run by an openXC7 that says this of its
    clocks, and nextpnr-xilinx ends with `code`.
    """

    def take(sys="61.50", told="50.00", pclk="140.25", clk200=NO_PATHS, code=0):
        folder = shutil.copytree(open_project, tmp_path / "elsewhere" / "acorn_cle101_open")
        (clkin,) = json.loads((folder / "project.json").read_text())["needs"].keys() - {"sys_clk"}
        nextpnr = (
            NEXTPNR.replace("SYS", sys)
            .replace("TOLD", told)
            .replace("PCLK", pclk)
            .replace("CLK200", clk200)
            .replace("CODE", str(code))
        )
        netlist = {
            "modules": {
                "dibber_acorn_cle101_open": {
                    "netnames": {
                        "sys_clk": {"bits": [7]},
                        "s7pll_buf": {"bits": [7]},
                        "open_clk200": {"bits": [8]},
                        clkin: {"bits": [8]},
                        "pcie_pclk_o": {"bits": [9]},
                        "bus": {"bits": [7, 9]},
                    }
                }
            }
        }
        yosys = (
            f"#!/bin/sh\necho 'Yosys 0.70'\necho '{json.dumps(netlist)}' "
            f">dibber_acorn_cle101_open.json\n"
        )
        tools = {
            "yosys": yosys,
            "nextpnr-xilinx": nextpnr,
            "fasm2frames": "#!/bin/sh\n",
            "xc7frames2bit": "#!/bin/sh\nfor file; do :; done\necho bits >$file\n",
        }
        return folder, run(
            folder,
            {**stand_ins(tmp_path / "tools", tools), "CHIPDB": "/chipdb", "PRJXRAY_DB_DIR": "/db"},
        )

    return take


def test_openxc7_leaves_a_manifest_too(opened, capsys):
    folder, done = opened()
    assert done.returncode == 0, done.stdout + done.stderr
    found = manifest(folder)
    assert found["clocks"] == [
        {"clock": "pcie_pclk_o", "mhz": 140.2, "needed_mhz": 125.0, "met": True},
        {"clock": "sys_clk", "mhz": 61.5, "needed_mhz": 50.0, "met": True},
    ]
    assert found["resources"] == {
        "SLICE_LUTX": {"used": 41000, "available": 126800},
        "SLICE_FFX": {"used": 22000, "available": 126800},
    }
    assert found["tools"][1].endswith("(Version 0.8.2)") and "none of hold" in found["timing"]
    assert dibber(["flash", "--show", "--load", str(folder)]) == 0
    assert "acorn_cle-101.cfg" in capsys.readouterr().out


@pytest.mark.parametrize(
    "figures, missed",
    [
        ({"sys": "49.90"}, "sys_clk"),
        ({"told": "12.00"}, "sys_clk"),  # it was not told what is needed
        ({"pclk": "124.0"}, "pcie_pclk_o"),
        ({"clk200": ""}, r"\w*clkin"),  # nothing is said of it
        (
            {"clk200": "Max frequency for clock 'open_clk200': 190.00 MHz (PASS at 125.00 MHz)"},
            r"\w*clkin",
        ),
    ],
)
def test_a_clock_that_openxc7_did_not_make_fast_enough(figures, missed, opened):
    folder, done = opened(**figures)
    assert done.returncode == 1 and re.search(
        f"no bitstream: {missed} missed the time", done.stderr
    )
    assert made(folder) == []


def test_nextpnr_s_own_word_counts(opened):
    folder, done = opened(code=1)
    assert done.returncode == 1 and made(folder) == []
