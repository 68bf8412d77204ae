"""Frames of a NIC and of Dibber share a MAC, and neither starves: hw/corundum/rtl."""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess

import pytest

from tests.gateware.mcp.card import ROOT, verilated

BUILD = ROOT / "build" / "tests" / "corundum"
RTL = sorted((ROOT / "hw" / "corundum" / "rtl").glob("dibber_frame_*.v"))
BENCH = ROOT / "tests" / "corundum" / "frames.cc"


def program(width, tagged=0):
    """The bench for this width of the MAC's streams."""
    folder = BUILD / f"frames{width}-{tagged}"
    folder.mkdir(parents=True, exist_ok=True)
    listing = folder / "frames.f"
    lines = [
        f"-GDATA_WIDTH={width}",
        "-GTX_USER_WIDTH=17",
        "-GRX_USER_WIDTH=17",
        f"-GTAGGED={tagged}",
        *map(str, RTL),
    ]
    if not listing.exists() or listing.read_text() != "\n".join(lines):
        listing.write_text("\n".join(lines))
    bench = folder / "frames.cc"
    text = f"#define WIDTH {width}\n" + BENCH.read_text(encoding="utf-8")
    if not bench.exists() or bench.read_text(encoding="utf-8") != text:
        bench.write_text(text, encoding="utf-8")
    return verilated(folder, "dibber_frame_path", listing, bench, included=RTL)


def run(width, seed, scenario, tagged=0):
    result = subprocess.run(
        [program(width, tagged), str(seed), scenario, str(tagged)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    words = result.stdout.split()
    return dict(zip(words[::2], map(int, words[1::2])))


WIDTHS = [64, 128, 256, 512]


@pytest.mark.parametrize("width", WIDTHS)
def test_all_frames_come_whole_in_order_and_at_their_side_under_random_stalls(width, seed):
    counts = run(width, seed, "mixed")
    assert min(counts["nic_out"], counts["core_out"], counts["nic_in"], counts["core_in"]) > 50
    assert counts["nic_dropped"] == counts["core_dropped"] == 0


def test_frames_with_a_vlan_tag_are_told_apart(seed):
    counts = run(64, seed, "mixed", tagged=1)
    assert min(counts["nic_in"], counts["core_in"]) > 50


@pytest.mark.parametrize("width", [64, 512])
def test_two_senders_that_always_have_a_frame_take_turns(width, seed):
    counts = run(width, seed, "saturated")
    # The NIC never waits for two frames of the core.
    assert counts["pairs"] == 0 and counts["nic_out"] > 50
    # The core brings at most 8 bytes a cycle. Of the MAC it gets half, or all that it brings.
    share = 0.4 if width == 64 else 0.9
    assert counts["core_bytes"] > share * 8 * 40000


@pytest.mark.parametrize("width", [64, 512])
def test_a_nic_that_takes_nothing_loses_its_frames_alone(width, seed):
    counts = run(width, seed, "stalled")
    assert counts["nic_dropped"] > 10 and counts["core_dropped"] == 0
    assert counts["core_in"] > 30
