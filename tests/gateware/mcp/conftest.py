"""The card and its control program."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.gateware.mcp.card import build, compile_probe


@pytest.fixture(scope="session")
def card():
    """The path of the bench program for a 64-bit card."""
    return build()


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    """The words of the probe program."""
    return compile_probe(tmp_path_factory.mktemp("probe"))
