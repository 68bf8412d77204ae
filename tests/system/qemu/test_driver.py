"""The Linux driver: dibber.ko in a Debian kernel, with two simulated cards in one guest.

One guest without an IOMMU runs most of it: there the cards reach memory by page tables. A second
one, behind an emulated IOMMU, shows that a region is one range of bus addresses.
"""

# SPDX-License-Identifier: BSD-2-Clause

import itertools
import pathlib
import subprocess
import sys

import pytest
from dibber.interface.description import C
from dibber_cli import machine

from tests.system.qemu import driver_guest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
DRIVER = ROOT / "software/driver"

CALLS = (
    "read_only_door",
    "registers",
    "opening",
    "mapping",
    "commands_and_interrupts",
    "regions",
    "limits",
    "children",
)
PAIRS = ("bytes", "no_system_calls", "protection", "interrupt", "unbind")
NETWORK = (
    "ping",
    "flood",
    "udp",
    "tcp",
    "held",
    "mtu",
    "beside",
    "cable",
    "updown",
    "halt",
)
TOOLS = ("ping", "iperf3", "nuttcp")
ENDS = ("reset", "failed_reset", "load", "suspend", "errors", "remove")
QUEUES = ("numbers", "flows", "streams", "change", "held", "busy")
WRONG_PEER = ("hellos", "notices", "records", "offload", "foreign")
CALLS_AT_RANDOM = 3000
KILLS = 20
# All files whose sizes are no chance, and one more; `make soak` copies 2 MiB.
TREE_BYTES = 768 * 1024


@pytest.fixture(scope="module")
def translated(request, tmp_path_factory):
    """Of the guest behind an IOMMU."""
    tests = ("registration", "put_strided")
    seed = request.config.getoption("--seed")
    return driver_guest.boot(tmp_path_factory.mktemp("translated"), seed, tests, iommu=True)


@pytest.fixture(scope="module")
def console(request, tmp_path_factory):
    """Of the guest without an IOMMU."""
    counts = {"lives": KILLS, "fuzz": CALLS_AT_RANDOM, "nfs": TREE_BYTES}
    seed = request.config.getoption("--seed")
    return driver_guest.boot(tmp_path_factory.mktemp("driver"), seed, counts=counts)


def log(console):
    """What the kernel has said: (microseconds, text)."""
    lines = [line.split(" ", 2) for line in console.splitlines() if line.startswith("log ")]
    return [(int(time), text) for _, time, text in lines]


def test_both_cards_are_probed(console):
    assert machine.said(console)["cards"] == 2
    for number in (0, 1):
        said = f"/dev/dibber{number}: node {number}, 8 endpoints"
        assert any(said in text for _, text in log(console))


@pytest.mark.parametrize("name", CALLS)
def test_calls_answer_as_the_page_says(console, name):
    assert f"calls {name} right" in console, console


def test_killed_orphaned_and_executed_processes_leave_nothing(console):
    assert f"kills {KILLS}" in console
    assert machine.said(console)["2_lives"] == 0, console


def test_calls_at_random_fail_as_the_page_says_and_leave_nothing(console):
    assert machine.said(console)["3_fuzz"] == 0, console
    line = next(line for line in console.splitlines() if line.startswith("fuzz "))
    failed, succeeded = (int(word) for word in line.split() if word.isdigit())
    # Both kinds are many, or the fuzzer only tries what is refused at once.
    assert failed > CALLS_AT_RANDOM / 10 and succeeded > CALLS_AT_RANDOM / 10


def measured(console, name):
    """(log2 of a page's bytes or 0, microseconds to register, to withdraw)."""
    line = next(line for line in console.splitlines() if line.startswith(f"measured {name} "))
    return tuple(map(int, line.split()[2:]))


def test_huge_pages_are_used_as_such(console):
    assert measured(console, "small")[0] == 12
    assert measured(console, "huge")[0] == 21
    assert measured(console, "huge-unaligned")[0] == 21


def test_the_librarys_programs_run_on_it_as_they_stand(console):
    said = machine.said(console)
    assert (said["4_put_strided"], said["5_messages"], said["6_mailbox"]) == (0, 0, 0), console
    assert "notice 7: 512 bytes; the last element is 63" in console
    assert "32 words and the 200000 bytes of the index" in console


@pytest.mark.parametrize("name", PAIRS)
def test_the_library_between_two_cards(console, name):
    assert f"pairs {name} right" in console, console
    assert machine.said(console)["15_pairs"] == 0, console


@pytest.mark.parametrize("name", NETWORK)
def test_the_network_device_carries_what_it_was_given(console, name):
    assert f"net {name} right" in console, console
    assert machine.said(console)["7_net"] == 0, console


@pytest.mark.parametrize("name", QUEUES)
def test_each_queue_of_the_network_device_has_its_flows(console, name):
    assert f"queues {name} right" in console, console
    assert machine.said(console)["8_queues"] == 0, console


def test_a_tree_is_copied_through_nfs_over_the_network_device(console):
    assert "nfs copy right" in console, console
    assert machine.said(console)["9_nfs"] == 0, console


def test_eight_processes_and_the_network_device_share_a_card(console):
    for number in range(8):
        assert f"crowd process_{number} right" in console, console
    assert "crowd all right" in console, console
    assert machine.said(console)["10_crowd"] == 0, console


@pytest.mark.parametrize("name", TOOLS)
def test_debians_programs_run_on_the_network_device(console, name):
    assert f"tools {name} right" in console, console
    assert machine.said(console)["11_tools"] == 0, console


@pytest.mark.parametrize("name", WRONG_PEER)
def test_a_wrong_peer_is_let_go_and_harms_nothing(console, name):
    assert f"net_wrong {name} right" in console, console
    assert machine.said(console)["12_net_wrong"] == 0, console


@pytest.mark.parametrize(
    "name, words",
    [
        ("pingpong", "half a round trip, the host's clock"),
        ("put_strided", "notice 7: column 5 ends with 63"),
        ("transpose", "node 1 has its half of the transposed matrix"),
    ],
)
def test_two_programs_in_two_networks_use_a_card_each_through_the_driver(console, name, words):
    """They share nothing but TCP, and the cable between their cards."""
    assert f"hosts {name} right" in console and words in console, console
    assert machine.said(console)["13_hosts"] == 0, console


@pytest.mark.parametrize("name", ENDS)
def test_users_hear_of_a_cards_end_and_begin_anew(console, name):
    assert f"ends {name} right" in console, console
    assert machine.said(console)["14_ends"] == 0, console


def test_no_page_stays_pinned(console):
    assert machine.said(console)["pinned"] == 0


def test_the_driver_goes_and_leaves_nothing(console):
    said = machine.said(console)
    assert (said["unloaded"], said["nodes_left"]) == (1, 0)


def test_the_kernel_complains_of_nothing(console):
    assert not driver_guest.complaints(console)


def test_bad_calls_are_told_at_most_once_a_second(console):
    times = [time for time, text in log(console) if text.startswith("dibber0: ")]
    assert len(times) >= 2
    # The kernel counts in jiffies, and a busy one writes the first line late.
    assert all(later - sooner >= 900_000 for sooner, later in itertools.pairwise(times)), console


def test_behind_an_iommu_scattered_pages_are_one_range(translated):
    assert machine.said(translated)["0_registration"] == 0, translated
    for name in ("small", "huge", "huge-unaligned"):
        assert measured(translated, name)[0] == 0


def test_behind_an_iommu_a_column_is_put_into_the_other_cards_memory(translated):
    assert machine.said(translated)["1_put_strided"] == 0, translated
    assert machine.said(translated)["pinned"] == 0


def test_what_is_installed_builds_and_knows_its_cards(tmp_path):
    install = ["make", "-C", DRIVER, "install", f"DESTDIR={tmp_path}", f"PYTHON={sys.executable}"]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    sources = tmp_path / "usr/src/dibber-0.1.0"
    assert (sources / "dkms.conf").exists()
    assert (tmp_path / "lib/udev/rules.d/60-dibber.rules").exists()
    firmware = tmp_path / "lib/firmware/dibber/mcp.dibfw"
    assert firmware.read_bytes() == (BUILD / "firmware/mcp.dibfw").read_bytes()
    kernel = ["make", "-C", BUILD / "qemu/headers/kernel", f"M={sources}", "modules"]
    subprocess.run(kernel, check=True, capture_output=True, timeout=300)
    module = (sources / "dibber.ko").read_bytes()
    assert f"alias=pci:v{C.PCI_VENDOR:08X}d{C.PCI_DEVICE:08X}".encode() in module
    assert b"firmware=dibber/mcp.dibfw" in module
