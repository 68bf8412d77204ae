"""The boards, the building programs and the tests' helpers are no packages: this file adds their
paths.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "hw" / "synthesis"),
    str(ROOT / "tests" / "boards"),
    str(ROOT / "tests" / "software"),
]

from card import compile_probe  # noqa: E402
from wire import build  # noqa: E402


@pytest.fixture(scope="session")
def bridged_card():
    """The path of the bench program: a card on its host bridge."""
    return build()


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    """The words of the probe program of tests/gateware/mcp."""
    return compile_probe(tmp_path_factory.mktemp("probe"))
