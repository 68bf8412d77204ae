"""The Linux driver: dibber.ko in a Debian kernel, with two simulated cards in one guest.

One guest without an IOMMU runs most of it: there the cards reach memory by page tables. A second
one, behind an emulated IOMMU, shows that a region is one range of bus addresses.
"""

# SPDX-License-Identifier: BSD-2-Clause

import itertools
import pathlib

import machine
import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
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
TESTS = {
    "calls": HERE / "driver_calls.c",
    "lives": HERE / "driver_lives.c",
}


def boot(request, directory, tests, iommu):
    """What a guest wrote that has run `tests`, names of TESTS, one behind the other."""
    sources = {"init": [HERE / "guest_driver.c", HERE / "guest_common.c"]}
    sources.update({f"tests/{n}_{name}": [TESTS[name]] for n, name in enumerate(tests)})
    files = {
        "lib": None,
        "lib/firmware": None,
        "lib/firmware/dibber": None,
        "lib/firmware/dibber/mcp.dibfw": BUILD / "firmware/mcp.dibfw",
        "dibber.ko": BUILD / "driver/dibber.ko",
        "tests": None,
    }
    for name, parts in sources.items():
        files[name] = directory / pathlib.Path(name).name
        machine.build(
            files[name],
            [*parts, BUILD / "lib/libdibber.a"],
            f"-I{ROOT}/software/lib/include",
            f"-I{BUILD}/generated",
            f"-I{DRIVER}",
            "-pthread",
        )
    archive = directory / "initramfs"
    archive.write_bytes(machine.initramfs(files))
    with machine.simulator(directory, request.config.getoption("--seed"), cards=2) as sockets:
        console = machine.boot(BUILD / "qemu", archive, sockets, iommu=iommu, timeout=1800)
    (directory / "console").write_text(console)
    return console


@pytest.fixture(scope="module")
def console(request, tmp_path_factory):
    """Of the guest without an IOMMU."""
    return boot(request, tmp_path_factory.mktemp("driver"), TESTS, iommu=False)


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
    assert "kills 20" in console
    assert machine.said(console)["1_lives"] == 0, console


def measured(console, name):
    """(log2 of a page's bytes or 0, microseconds to register, to withdraw)."""
    line = next(line for line in console.splitlines() if line.startswith(f"measured {name} "))
    return tuple(map(int, line.split()[2:]))


def test_huge_pages_are_used_as_such(console):
    assert measured(console, "small")[0] == 12
    assert measured(console, "huge")[0] == 21
    assert measured(console, "huge-unaligned")[0] == 21


def test_no_page_stays_pinned(console):
    assert machine.said(console)["pinned"] == 0


def test_the_driver_goes_and_leaves_nothing(console):
    said = machine.said(console)
    assert (said["unloaded"], said["nodes_left"]) == (1, 0)


def test_the_kernel_complains_of_nothing(console):
    signs = ("BUG", "WARNING", "RIP:", "Oops", "hung")
    assert not [text for _, text in log(console) if any(sign in text for sign in signs)]


def test_bad_calls_are_told_at_most_once_a_second(console):
    times = [time for time, text in log(console) if text.startswith("dibber0: ")]
    assert len(times) >= 2
    assert all(later - sooner >= 1_000_000 for sooner, later in itertools.pairwise(times)), console
