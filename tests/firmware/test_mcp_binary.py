"""The very image that is loaded onto the card, run instruction by instruction against the register
fake.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import ctypes
import struct
import subprocess
import sys

import pytest
from dibber.interface.description import HANDLER, MCP, MCP_STATE, MESSAGE, OPCODE, SHARED, STATUS, C

from tests.firmware.mcp_native import (
    BULK,
    FIRMWARE,
    ROOT,
    Card,
    atomic,
    get,
    inline,
    put,
    receive,
    send,
    walk,
)
from tests.firmware.rv32 import MISALIGNED_LOAD, Processor
from tests.firmware.test_mcp_image import LARGE, SMALL
from tests.firmware.test_mcp_image import tool as packer
from tests.gateware.models.cut import packets_of

# Without the fast path, as here: after so many puts on a flow, seven more do not claim or arm it
# again.
WARM = 7


Image = collections.namedtuple("Image", "header body")


def image_for(sram):
    """The image of build/firmware/mcp.dibfw for so many bytes of SRAM, built if need be."""
    subprocess.run(
        ["make", "-C", str(FIRMWARE), f"PYTHON={sys.executable}"], check=True, capture_output=True
    )
    return Image(*packer.choose((ROOT / "build" / "firmware" / "mcp.dibfw").read_bytes(), sram))


@pytest.fixture(scope="module")
def image():
    """The image of the simulated cards, whose instructions are counted."""
    return image_for(LARGE)


@pytest.fixture(scope="module", params=[SMALL, LARGE], ids=["64k", "128k"])
def each_image(request):
    return image_for(request.param)


class BinaryCard(Card):
    """A card whose control program is the image, executed by the RV32 model."""

    def __init__(self, image):
        super().__init__(boot=False)
        sram = image.header["sram"]
        # The SRAM's old content: nothing may depend on it.
        self.memory = bytearray(b"\xa5" * sram)
        self.memory[: len(image.body)] = image.body
        self.place = sram - C.SHARED_FROM_END  # of struct mcp_shared
        self.library.fake_read.restype = ctypes.c_uint32
        self.library.fake_read.argtypes = [ctypes.c_uint32]
        self.library.fake_write.argtypes = [ctypes.c_uint32] * 2
        self.cpu = Processor(self.memory, self.library.fake_read, self.library.fake_write)
        self["ADMIN_CQ_LOW"], self["ADMIN_CQ_HIGH"] = (
            self.ADMIN_CQ & 0xFFFFFFFF,
            self.ADMIN_CQ >> 32,
        )
        self["ADMIN_CQ_ENTRIES"], self["ADMIN_VECTOR"] = 64, 0
        self.run(until=lambda: self["IDENTITY"])
        self.collect()

    def run(self, instructions=200_000, until=lambda: False):
        """Execute until the condition holds; fails when it does not in time."""
        for n in range(instructions):
            if n % 16 == 0 and until():
                return
            self.cpu.step()
        assert until(), f"pc 0x{self.cpu.pc:x}, state {MCP_STATE.name_of(self['STATE'])}"

    def step(self, count=None):
        """Execute until the event loop has nothing left to do."""
        idle = 0
        while idle < 3:
            self.run(400, lambda: True)
            before = self.logged.value, self["HEAD", 0], self["HEAD", 1]
            for _ in range(400):
                self.cpu.step()
            idle = (
                0 if before != (self.logged.value, self["HEAD", 0], self["HEAD", 1]) else idle + 1
            )
        self.collect()

    def shared_word(self, offset):
        return int.from_bytes(self.memory[self.place + offset :][:4], "little")

    def handler(self, state):
        offset = self.place + SHARED["handler"].offset + HANDLER.size * getattr(MCP_STATE, state)
        return dict(
            zip((m.name for m in HANDLER.members), struct.unpack_from("<4I", self.memory, offset))
        )


@pytest.fixture
def binary(image):
    card = BinaryCard(image)
    assert card.open(1) == STATUS.OK
    return card


def test_the_image_boots_from_address_0_whatever_the_sram_held(each_image):
    card = BinaryCard(each_image)
    header = each_image.header
    assert card["IDENTITY"] == header["identity"]
    assert card.shared_word(SHARED["version"].offset) == header["version"]
    assert card.shared_word(SHARED["hash"].offset) == header["hash"]
    assert card["STATE"] == MCP_STATE.IDLE
    assert card.shared_word(SHARED["image_bytes"].offset) == len(each_image.body)


def test_what_the_host_wrote_into_the_sram_is_known_after_a_tick(binary):
    binary.wait(6_250)
    assert not binary.cpu.fences
    binary["SRAM_WRITTEN"] = 1
    for _ in range(2):
        binary.wait(6_250)
        assert binary.cpu.fences == 1 and not binary["SRAM_WRITTEN"]


def run_put(card, command, packets):
    """One put from doorbell to completion; instructions by handler."""
    before = {
        state: card.handler(state)["instructions"] for state in ("COMMAND", "SEND_DONE", "ACK")
    }
    card.ring(1, command)
    card.step()
    job = card.jobs.pop()
    card.job_done(job.tag, job.psn + packets)
    card.step()
    card.ack(BULK + 1, job.psn + packets - 1)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.OK]
    return {state: card.handler(state)["instructions"] - n for state, n in before.items()}


def test_a_put_takes_as_many_instructions_for_10_elements_as_for_10000(binary, figure):
    costs = []
    for count in (10,) * (WARM + 1) + (10000,):
        side = walk(8, [count], strides=[64])
        costs.append(
            run_put(binary, put(length=8 * count, source=side, target=side), packets_of(8 * count))
        )
    assert costs[-1] == costs[-2]
    total = sum(costs[-1].values())
    assert figure("mcp_instructions_per_put", total, "instructions", at_most=720)


def spent(card, act):
    """Instructions by handler while `act` runs, with any ticks."""
    states = [state for state, _, _ in MCP_STATE.values if state != "TIMER"]
    before = {state: card.handler(state)["instructions"] for state in states}
    act()
    after = {state: card.handler(state)["instructions"] - before[state] for state in states}
    return {state: n for state, n in after.items() if n}


def run_inline(card, count):
    """Inline puts that are rung together, to their completions; instructions by handler."""

    def act():
        card.ring(1, *[inline(cookie=n) for n in range(count)])
        card.step()
        card.ack(1, card.express[-1].psn)
        card.step()
        assert [e.cookie for e in card.entries()] == list(range(count))

    return spent(card, act)


def way_to_express(card):
    """From the read of EVENTS that sees a doorbell to the write of PUT_START: (instructions,
    register accesses).
    """
    events = {C.MCP_REGISTER_BASE + MCP[name].offset for name in ("EVENTS", "EVENTS_HELD")}
    start = C.MCP_REGISTER_BASE + MCP["PUT_START"].offset
    load, store, marks = card.cpu.bus_load, card.cpu.bus_store, []

    def watched_load(address):
        if address in events and len(marks) < 2:
            marks[:] = [(card.cpu.instret, card.accesses.value)]
        return load(address)

    def watched_store(address, value):
        store(address, value)
        if address == start:
            marks.append((card.cpu.instret, card.accesses.value))

    card.cpu.bus_load, card.cpu.bus_store = watched_load, watched_store
    card.ring(1, inline())
    card.run(2000, until=lambda: len(marks) > 1)
    card.cpu.bus_load, card.cpu.bus_store = load, store
    card.step()
    card.ack(1, card.express[-1].psn)
    card.step()
    card.entries()
    return tuple(b - a for a, b in zip(*marks))


def test_what_an_inline_put_costs(binary, figure):
    for _ in range(WARM):
        run_inline(binary, 1)
    instructions, accesses = way_to_express(binary)
    one = sum(run_inline(binary, 1).values())
    many = sum(run_inline(binary, 16).values()) / 16
    assert figure("mcp_instructions_doorbell_to_express", instructions, "instructions", at_most=32)
    assert figure("mcp_accesses_doorbell_to_express", accesses, "register accesses", at_most=6)
    assert figure("mcp_instructions_per_inline_put", one, "instructions", at_most=200)
    assert figure("mcp_instructions_per_inline_put_of_many", many, "instructions", at_most=60)


def test_what_a_claim_costs(binary, figure):
    """A get alone, and one that takes the flow from the fast path."""

    def ask(count=0):
        binary.ring(1, *[inline() for _ in range(count)])
        if count:
            binary.run(2000, until=lambda: binary["HEAD", 1] % C.SLOTS == count)
        binary.ring(1, get())
        binary.run(
            4000,
            until=lambda: (
                binary["HEAD", 1] == binary["PRODUCER", 1] and binary["STATE"] == MCP_STATE.IDLE
            ),
        )

    def cost(count):
        before = binary.handler("COMMAND")["instructions"]
        ask(count)
        return binary.handler("COMMAND")["instructions"] - before

    binary.allow()
    binary["PRODUCER", 1] = binary["HEAD", 1]
    claimed = cost(8)
    alone = cost(0)
    assert figure("mcp_instructions_to_claim_8_puts", claimed - alone, "instructions", at_most=900)


def test_what_a_get_costs_at_both_ends(binary, figure):
    def ask():
        binary.ring(1, get())
        binary.step()
        message = binary.express[-1]
        binary["EXPRESS_SPACE"] += 1
        binary.ack(1, message.psn)
        binary.step()
        binary.respond(1, message.word)
        binary.step()
        assert [e.status for e in binary.entries()] == [STATUS.OK]

    def answer():
        binary.message(1, MESSAGE.GET, 3, get())
        binary.step()
        job = binary.jobs.pop()
        binary["JOB_SPACE"] += 1
        binary.job_done(job.tag, job.psn + 1)
        binary.step()
        binary.ack(BULK + 1, job.psn)
        binary.step()
        assert binary.freed.pop() == 3

    for name, act, limit in (("asking", ask, 960), ("answering", answer, 820)):
        act()
        # Over many: the flow is armed behind gets and answers, in vain here, and ever more rarely.
        count = 60
        work = lambda act=act, count=count: [act() for _ in range(count)]
        total = sum(spent(binary, work).values())
        assert figure(f"mcp_instructions_get_{name}", total // count, "instructions", at_most=limit)


def test_a_misaligned_load_traps(each_image):
    binary = BinaryCard(each_image)
    stop = len(binary.memory) - 4 * 1024
    binary.memory[stop : stop + 4] = (0x00102083).to_bytes(4, "little")  # lw ra, 1(zero)
    binary.cpu.pc = stop
    binary.run(100, until=lambda: binary["STATE"] == MCP_STATE.TRAP)
    assert binary.shared_word(SHARED["trap"].offset) == MISALIGNED_LOAD


def test_text_and_constants_are_within_the_limit_of_their_sram(each_image):
    assert len(each_image.body) <= packer.image_limit(each_image.header["sram"])


def test_the_smaller_image_has_room_for_what_is_to_come(figure):
    """Small corrections need some hundred bytes. Without that room, some code must leave this image
    first.
    """
    left = packer.image_limit(SMALL) - len(image_for(SMALL).body)
    assert figure(
        "mcp_image_room_bytes",
        left,
        "bytes that the image for 64 KiB of SRAM leaves of 35,840",
        at_least=0,
    )


def told(image):
    """All orders of this image's program to the card for one transfer of each kind: packets, jobs,
    queue entries, slots.
    """
    card = BinaryCard(image)
    said = [card.open(1), card.open(2)]

    def note():
        card.step()
        said.append(
            (
                [*card.jobs],
                [*card.express],
                [*card.freed],
                [entry._replace(cycles=0) for entry in card.entries()],
            )
        )
        card.jobs.clear(), card.express.clear(), card.freed.clear()

    card.ring(
        1,
        put(),
        inline(b"12345678", cookie=2),
        get(cookie=3),
        atomic(OPCODE.FETCH_ADD, cookie=4),
        receive(cookie=5, node=2),
        put(length=0x200000, cookie=6),
        send(cookie=7, node=3),
    )
    note()
    asked = {
        packet.word & 0xFF: packet.word
        for _, express, _, _ in said[2:]
        for packet in express
        if packet.message
    }
    card.ack(1, 2)
    note()
    for job in [job for jobs, *_ in said[2:] for job in jobs]:
        card.job_done(job.tag, job.psn + packets_of(job.length))
        note()
        card.ack(BULK + 1, job.psn + packets_of(job.length) - 1)
        note()
    card.respond(1, asked[MESSAGE.GET])
    note()
    card.message(1, MESSAGE.GET, 3, get())
    note()
    card.wait(20_000)
    note()
    return said


def test_the_smaller_image_says_to_the_card_what_the_larger_one_says():
    small, large = told(image_for(SMALL)), told(image_for(LARGE))
    assert len(small) > 8 and any(entries for *_, entries in small[2:])
    assert small == large
