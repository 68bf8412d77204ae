"""The engines of a core behind Corundum's interface: the tests of a card's engines, on the block.

A model of Corundum's DMA engine has the host's memory, and a mirror sends the card's own frames
back to it as those of a peer. The orders are those of tests/gateware/mcp/test_card_engines.py.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from block import program
from card import compile_probe
from test_card_engines import (  # noqa: F401
    test_a_strided_put_with_notice_lands_and_is_acknowledged,
    test_an_answer_to_a_get_lands_where_it_is_expected_and_nowhere_else,
    test_an_atomic_from_the_outbox_is_executed_in_the_inbox_and_its_reply_lies_there,
    test_an_inline_put_lands_byte_by_byte,
)


@pytest.fixture(scope="module")
def card():
    return program()


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    return compile_probe(tmp_path_factory.mktemp("probe"))
