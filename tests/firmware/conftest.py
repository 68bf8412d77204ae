# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

import pytest

import mcp_native


@pytest.fixture
def card():
    """A booted control program with endpoint 1 open."""
    card = mcp_native.Card()
    assert card.open(1) == 0
    return card
