"""The remote window through the driver: a guest with dibber.ko and two cards with a window."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli import machine

from tests.system.qemu import driver_guest

CALLS_AT_RANDOM = 3000
TESTS = (
    "assignments",
    "adds",
    "memory_types",
    "refusals",
    "shares",
    "revoked",
    "cable",
    "keys",
    "kills",
    "children",
    "no_room",
    "reset",
)


@pytest.fixture(scope="module")
def console(request, program, tmp_path_factory):
    """What the guest wrote."""
    directory = tmp_path_factory.mktemp("driver")
    seed = request.config.getoption("--seed")
    tests = ("fuzz", *driver_guest.WINDOW)
    counts = {"fuzz": CALLS_AT_RANDOM}
    return driver_guest.boot(directory, seed, tests, counts=counts, program=program)


def test_calls_at_random_fail_as_the_page_says(console):
    assert machine.said(console)["0_fuzz"] == 0, console


def test_the_example_assigns_through_the_driver(console):
    assert machine.said(console)["1_remote_window"] == 0, console
    assert f"by assignments: sum {sum(range(0, 512, 8))}" in console
    assert "64 words are there; 'stores of 1, 2 and 4 bytes', 0x3232, 0x34343434" in console


@pytest.mark.parametrize("name", TESTS)
def test_a_process_has_its_pages_of_the_window_and_no_others(console, name):
    assert f"window {name} right" in console, console
    assert machine.said(console)["2_window"] == 0, console


def test_no_page_stays_pinned_and_the_driver_goes(console):
    said = machine.said(console)
    assert (said["pinned"], said["unloaded"], said["nodes_left"]) == (0, 1, 0)


def test_the_kernel_complains_of_nothing(console):
    assert not driver_guest.complaints(console)
