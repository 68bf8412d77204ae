"""dibber(4) and docs/driver.md have all calls, parameters and errors of the driver."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVER = ROOT / "software/driver"
MANUAL = (DRIVER / "dibber.4").read_text()
PAGE = (ROOT / "docs/driver.md").read_text()


def sources(pattern):
    """What `pattern` finds in the driver's sources."""
    return {
        found
        for path in sorted(DRIVER.glob("*.[ch]"))
        for found in re.findall(pattern, path.read_text())
    }


def errors_of(text):
    return set(re.findall(r"\bE[A-Z]{3,}\b", text))


def test_both_have_each_call():
    calls = sources(r"#define (DIBBER_IOC_\w+)")
    assert len(calls) == 9
    for call in calls:
        assert call in MANUAL and call in PAGE


def test_both_have_each_parameter_and_no_other():
    parameters = sources(r"module_param(?:_array)?\((\w+)")
    assert parameters == {"node", "netdev", "user_endpoints", "user_regions", "user_pages"}
    for parameter in parameters:
        assert re.search(rf"\b{parameter}\b", MANUAL) and f"`{parameter}" in PAGE


def test_the_manual_page_has_the_errors_of_the_table():
    table = PAGE[PAGE.index("| errno | why") : PAGE.index("What is refused is told")]
    named = errors_of(MANUAL.partition(".SH ERRORS")[2])
    # Two that every system call with an argument has.
    assert named == errors_of(table) - {"EINVAL", "EFAULT"}


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_the_manual_page_is_well_formed():
    lint = ["mandoc", "-T", "lint", "-W", "warning", str(DRIVER / "dibber.4")]
    done = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
