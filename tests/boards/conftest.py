"""The building programs are no package: this file adds their path. Two simulated boards."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hw" / "synthesis"))

from tests.boards.wire import build  # noqa: E402
from tests.gateware.mcp.card import compile_probe  # noqa: E402


@pytest.fixture(scope="session")
def bridged_card():
    """The path of the bench program: a card on its host bridge."""
    return build()


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    """The words of the probe program of tests/gateware/mcp."""
    return compile_probe(tmp_path_factory.mktemp("probe"))
