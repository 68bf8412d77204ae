"""The engines of a core behind Corundum's interface: the tests of a card's engines, on the block.

A model of Corundum's DMA engine has the host's memory, and a mirror sends the card's own frames
back to it as those of a peer. The orders are those of tests/gateware/mcp/test_card_engines.py.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, STATUS

from tests.corundum.block import program
from tests.gateware.mcp.card import compile_probe, register, run, slot
from tests.gateware.mcp.test_card_engines import (  # noqa: F401
    BULK,
    ENDPOINT,
    TARGET,
    Card,
    bits,
    field,
    test_a_strided_put_with_notice_lands_and_is_acknowledged,
    test_an_answer_to_a_get_lands_where_it_is_expected_and_nowhere_else,
    test_an_atomic_from_the_outbox_is_executed_in_the_inbox_and_its_reply_lies_there,
    test_an_inline_put_lands_byte_by_byte,
    word,
)
from tests.gateware.models.command import command


@pytest.fixture(scope="module")
def card():
    return program()


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    return compile_probe(tmp_path_factory.mktemp("probe"))


class Lines:
    """The orders of one card among those of two."""

    def __init__(self, lines, side):
        self.lines, self.side = lines, side

    def append(self, line):
        self.lines += [f"c {self.side}", line]


class Side(Card):
    """A session with one of two cards. Orders and names of both are in one order."""

    def __init__(self, probe, side, lines, names):
        self.side, self.lines, self.all_names = side, lines, names
        super().__init__(probe)
        self.write(register("NODE_ID"), side)

    @property
    def commands(self):
        return Lines(self.lines, self.side)

    @commands.setter
    def commands(self, value):
        pass

    @property
    def names(self):
        return self.all_names

    @names.setter
    def names(self, value):
        pass


def test_a_strided_put_goes_from_card_to_card_while_their_nics_send(card, probe):
    lines, names = [], []
    here, there = (Side(probe, side, lines, names) for side in (0, 1))
    here.set("FLOW_RESET", bits("FLOW_RESET", flow=BULK + 1, incarnation=1))
    put = command(
        (1, 0, 8, (24,), (5,)),
        (2, 0x10, 4, (12,), (10,)),
        40,
        node=1,
        flags=FLAG.NOTICE,
        endpoint=6,
        notice=0xCAFE,
    )
    here.fill(slot(ENDPOINT, 3), put)
    here.set("JOB_SLOT", bits("JOB_SLOT", slot=3, endpoint=ENDPOINT))
    here.set("JOB_FLOW", bits("JOB_FLOW", psn=0, incarnation=1, node=1))
    for name, value in dict(JOB_LENGTH=40, JOB_SKIP=0, JOB_START=0x2AA).items():
        here.set(name, value)
    here.wait(2000)
    here.get("JOB_DONE")
    here.get("ACKED_CHANGED")
    for name in ("ARRIVAL", "ARRIVAL_VALUE", "ARRIVAL_LENGTH", "ARRIVAL_KEY"):
        there.get(name)
    for n in range(32):
        there.memory(n, TARGET + 0x0C + 4 * n)
    answers = [int(x, 16) for x in run(card, "two", input="\n".join(lines) + "\n").split()]
    got = dict(zip(names, answers))
    assert got["JOB_DONE"] == bits("JOB_DONE", tag=0x2AA, status=STATUS.OK, psn=1)
    assert got["ACKED_CHANGED"] == 1 << (BULK + 1)
    assert field(got["ARRIVAL"], "ARRIVAL", "endpoint") == 6
    assert (got["ARRIVAL_VALUE"], got["ARRIVAL_LENGTH"], got["ARRIVAL_KEY"]) == (0xCAFE, 40, 2)
    # Ten words of 4 bytes, 12 bytes apart, from 0x10 on; nothing else was written.
    words = [word(6 * e + i) for e in range(5) for i in range(2)]
    landed = {1 + 3 * n: value for n, value in enumerate(words)}
    assert [got[n] for n in range(32)] == [landed.get(n, 0) for n in range(32)]
    # The NICs' frames came whole and in order, or the bench would have ended.
    assert all(frames > 100 for frames in answers[-2:])
