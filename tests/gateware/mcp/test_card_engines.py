"""All engines of one card, wired as they are: it sends to itself, by orders through its control
program's registers.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import (
    ATOMIC,
    C,
    COMMAND,
    FLAG,
    INLINE,
    LINK_STATE,
    MCP,
    OPCODE,
    RIGHT,
    STATUS,
)

from tests.gateware.mcp.card import Session, mcp_register, mcp_slot, register, slot
from tests.gateware.models.checksum import internet_checksum
from tests.gateware.models.command import command, put_member

SOURCE, TARGET = 0x40000, 0x80000
ENDPOINT = 2
EXPRESS, BULK = 0, C.NODES  # the flows to node 0, which is this card
ANY = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
REGIONS = {1: (SOURCE, RIGHT.LOCAL_READ | RIGHT.REMOTE_READ), 2: (TARGET, ANY)}


def bits(name, **fields):
    """The value of a register of the control program."""
    return sum(
        value << next(f.lsb for f in MCP[name].fields if f.name == field)
        for field, value in fields.items()
    )


def field(value, name, field):
    f = next(f for f in MCP[name].fields if f.name == field)
    return value >> f.lsb & (1 << f.bits) - 1


class Card(Session):
    """A session whose control program has regions and flows; memory at SOURCE counts up."""

    def __init__(self, probe):
        super().__init__()
        self.start(probe)
        for key, (base, rights) in REGIONS.items():
            for name, value in dict(
                REGION_KEY=key,
                REGION_BASE_LOW=base,
                REGION_BASE_HIGH=0,
                REGION_LENGTH_LOW=0x10000,
                REGION_LENGTH_HIGH=0,
                REGION_ACCESS=bits("REGION_ACCESS", rights=rights, owner=ENDPOINT, valid=1),
                REGION_WRITE=key,
            ).items():
                self.set(name, value)
        for flow in (EXPRESS, BULK):
            self.set("FLOW_RESET", bits("FLOW_RESET", flow=flow, incarnation=1))
        for n in range(64):
            self.set_memory(SOURCE + 4 * n, word(n))

    def set(self, name, value):
        self.poke(mcp_register(name), value)

    def get(self, name, index=0):
        self.peek(name, mcp_register(name, index))

    def fill(self, where, data):
        """A slot of an endpoint, word by word."""
        for n in range(0, len(data), 4):
            self.write(where + n, int.from_bytes(data[n : n + 4], "little"))

    def job(self, tag, psn, length, **place):
        for name, value in dict(
            JOB_SLOT=bits("JOB_SLOT", **place),
            JOB_FLOW=bits("JOB_FLOW", psn=psn, incarnation=1),
            JOB_LENGTH=length,
            JOB_SKIP=0,
            JOB_START=tag,
        ).items():
            self.set(name, value)
        self.wait(800)

    def express(self, psn, value, **start):
        self.set("EXPRESS_FLOW", bits("EXPRESS_FLOW", psn=psn, incarnation=1))
        self.set("EXPRESS_MESSAGE", value)
        self.set("EXPRESS_START", bits("EXPRESS_START", **start))
        self.wait(800)


def word(n):
    return 0x01000193 * (n + 1) & 0xFFFFFFFF


def test_a_strided_put_with_notice_lands_and_is_acknowledged(card, probe):
    s = Card(probe)
    put = command(
        (1, 0, 8, (24,), (5,)),
        (2, 0x10, 0, (), ()),
        40,
        node=0,
        flags=FLAG.NOTICE,
        endpoint=6,
        notice=0xCAFE,
    )
    s.fill(slot(ENDPOINT, 3), put)
    s.job(0x2AA, 0, 40, slot=3, endpoint=ENDPOINT)
    for name in (
        "JOB_DONE",
        "JOB_CHECKSUM",
        "ACKED_CHANGED",
        "ARRIVAL",
        "ARRIVAL_VALUE",
        "ARRIVAL_LENGTH",
        "ARRIVAL_KEY",
    ):
        s.get(name)
    s.get("ACKED", BULK)
    for n in range(12):
        s.memory(n, TARGET + 0x0C + 4 * n)
    for name in ("REQUEST", "PACKET", "LINK", "SCATTER", "WRITE", "PCIE"):
        s.read(name, register(f"COUNT_BUSY_{name}"))
    s.read("link", register("LINK_STATUS"))
    got = s.run(card)
    words = [word(6 * e + i) for e in range(5) for i in range(2)]
    assert got["link"] & 0xF == LINK_STATE.UP
    assert [got[n] for n in range(12)] == [0] + words + [0]
    assert got["JOB_DONE"] == bits("JOB_DONE", tag=0x2AA, status=STATUS.OK, psn=1)
    assert got["JOB_CHECKSUM"] == internet_checksum(
        b"".join(w.to_bytes(4, "little") for w in words)
    )
    assert got["ACKED"] == 0 and got["ACKED_CHANGED"] == 1 << BULK
    assert (
        field(got["ARRIVAL"], "ARRIVAL", "endpoint"),
        field(got["ARRIVAL"], "ARRIVAL", "message"),
    ) == (6, 0)
    assert (got["ARRIVAL_VALUE"], got["ARRIVAL_LENGTH"], got["ARRIVAL_KEY"]) == (0xCAFE, 40, 2)
    assert all(got[name] for name in ("REQUEST", "PACKET", "LINK", "SCATTER", "WRITE", "PCIE"))


def test_an_atomic_from_the_outbox_is_executed_in_the_inbox_and_its_reply_lies_there(card, probe):
    """Nothing is told of it before: it is no arrival."""
    s = Card(probe)
    atomic = bytearray(C.SLOT_BYTES)
    put_member(atomic, COMMAND, 0, "opcode", OPCODE.FETCH_ADD)
    put_member(atomic, COMMAND, 0, "length", 8)
    for name, value in dict(key=2, offset=0x18, operand=0x1_0000_0001).items():
        put_member(atomic, ATOMIC, 0, name, value)
    s.set_memory(TARGET + 0x18, 0xFFFFFFFF)
    s.set_memory(TARGET + 0x1C, 7)
    for n in range(0, C.SLOT_BYTES, 4):
        s.poke(mcp_slot(C.OUTBOX, 31) + n, int.from_bytes(atomic[n : n + 4], "little"))
    s.express(0, 0x12340203, slot=31, endpoint=C.OUTBOX, message=1)
    s.wait(9000)  # No read leaves in the first 50 us.
    for name in ("EVENTS", "ATOMIC_DONE", "ATOMIC_WORD"):
        s.get(name)
    for name, offset in (
        ("value low", 0),
        ("value high", 4),
        ("status", 8),
        ("offset", ATOMIC["offset"].offset),
    ):
        s.peek(name, mcp_slot(C.INBOX, 0) + offset)
    s.get("ACKED", EXPRESS)
    s.memory("low", TARGET + 0x18)
    s.memory("high", TARGET + 0x1C)
    s.read("atomics", register("COUNT_ATOMICS"))
    got = s.run(card)
    assert field(got["EVENTS"], "EVENTS", "atomic") and not field(
        got["EVENTS"], "EVENTS", "arrival"
    )
    assert (got["ATOMIC_DONE"], got["ATOMIC_WORD"]) == (bits("ATOMIC_DONE", slot=0), 0x12340204)
    assert (got["value low"], got["value high"], got["status"], got["offset"]) == (
        0xFFFFFFFF,
        7,
        STATUS.OK,
        0x18,
    )
    assert (got["low"], got["high"]) == (0, 9)
    assert got["ACKED"] == 0 and got["atomics"] == 1


def test_an_answer_to_a_get_lands_where_it_is_expected_and_nowhere_else(card, probe):
    """The get's command travels as a message; its context is slot 5 of the endpoint, then one
    without an expected answer.
    """
    s = Card(probe)
    get = command((1, 8, 0, (), ()), (2, 0x20, 0, (), ()), 16, node=0)
    s.fill(slot(ENDPOINT, 5), get)
    context = ENDPOINT * C.SLOTS + 5
    s.set("EXPECT_KEY", 2)
    s.set("EXPECT_WRITE", bits("EXPECT_WRITE", context=context, node=0, valid=1))
    s.express(0, 1, slot=5, endpoint=ENDPOINT, message=1)
    s.set("JOB_MESSAGE", context << 16 | 1)
    s.job(1, 0, 16, slot=0, endpoint=C.INBOX, response=1)
    s.set("ARRIVAL_POP", 0)  # the message
    s.get("ARRIVAL")
    s.get("ARRIVAL_VALUE")
    for n in range(6):
        s.memory(n, TARGET + 0x1C + 4 * n)
    s.set_memory(TARGET + 0x20, 0)
    s.set("JOB_MESSAGE", context + 1 << 16 | 1)
    s.job(2, 1, 16, slot=0, endpoint=C.INBOX, response=1)
    s.get("REFUSAL")
    s.memory("again", TARGET + 0x20)
    got = s.run(card)
    assert [got[n] for n in range(6)] == [0] + [word(n) for n in range(2, 6)] + [0]
    assert (
        field(got["ARRIVAL"], "ARRIVAL", "response") and got["ARRIVAL_VALUE"] == context << 16 | 1
    )
    assert got["REFUSAL"] == bits("REFUSAL", psn=1, reason=STATUS.REMOTE_NOT_PERMITTED, flow=BULK)
    assert got["again"] == 0


def test_an_inline_put_lands_byte_by_byte(card, probe):
    s, data = Card(probe), bytes(range(0x80, 0x80 + 13))
    inline = bytearray(C.SLOT_BYTES)
    for name, value in dict(key=2, offset=0x101).items():
        put_member(inline, INLINE, 0, name, value)
    inline[INLINE["data"].offset : INLINE["data"].offset + len(data)] = data
    s.fill(slot(ENDPOINT, 7), inline)
    s.express(0, 0, slot=7, endpoint=ENDPOINT, length=len(data))
    s.get("ACKED", EXPRESS)
    for n in range(4):
        s.memory(n, TARGET + 0x100 + 4 * n)
    got = s.run(card)
    assert b"".join(got[n].to_bytes(4, "little") for n in range(4)) == b"\0" + data + b"\0\0"
    assert got["ACKED"] == 0


def test_a_rewound_flow_goes_on_with_jobs_of_its_epoch_only(card, probe):
    s = Card(probe)
    s.fill(slot(ENDPOINT, 0), command((1, 0, 0, (), ()), (2, 0x40, 0, (), ()), 4, node=0))
    s.set("FLOW_REWIND", bits("FLOW_REWIND", flow=BULK, epoch=1))
    for tag, epoch in (1, 0), (2, 1):
        s.job(tag, 0, 4, slot=0, endpoint=ENDPOINT, epoch=epoch)
        s.peek(tag, mcp_register("JOB_DONE"))
        s.set("JOB_DONE_POP", 0)
        s.memory(("memory", tag), TARGET + 0x40)
    s.get("ACKED", BULK)
    got = s.run(card)
    assert [field(got[tag], "JOB_DONE", "status") for tag in (1, 2)] == [STATUS.REWOUND, STATUS.OK]
    assert [got["memory", tag] for tag in (1, 2)] == [0, word(0)]
    assert got["ACKED"] == 0


def test_a_halt_frees_the_slots_of_the_inbox_that_the_program_held(card, probe):
    s = Card(probe)
    for psn in range(3):
        s.express(psn, psn, slot=0, endpoint=C.OUTBOX, message=1)
    s.write(register("MCP_CONTROL"), 0)
    s.wait(400)
    s.orders = 0
    s.write(register("MCP_CONTROL"), 1)
    s.wait(3000)
    s.get("EVENTS")
    s.set("FLOW_RESET", bits("FLOW_RESET", flow=EXPRESS, incarnation=1))
    # The target restarted and was not asked since, so it refuses the packet. After that the source
    # asks before it sends.
    s.express(0, 0x76, slot=0, endpoint=C.OUTBOX, message=1)
    s.set("FLOW_RESET", bits("FLOW_RESET", flow=EXPRESS, incarnation=1))
    # The same number again, and yet a flow that is newer to its target.
    s.express(0, 0x77, slot=0, endpoint=C.OUTBOX, message=1)
    s.get("ARRIVAL")
    s.get("ARRIVAL_VALUE")
    got = s.run(card)
    assert not field(got["EVENTS"], "EVENTS", "arrival")
    assert got["ARRIVAL"] == bits("ARRIVAL", slot=0, message=1) and got["ARRIVAL_VALUE"] == 0x77
