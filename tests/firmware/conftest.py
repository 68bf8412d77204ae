# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.firmware import mcp_native


@pytest.fixture
def card():
    """A booted control program with endpoint 1 open."""
    card = mcp_native.Card()
    assert card.open(1) == 0
    return card
