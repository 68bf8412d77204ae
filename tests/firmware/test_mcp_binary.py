# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The very image that is loaded onto the card, run instruction by instruction against the register fake."""

import ctypes
import struct
import subprocess
import sys

import pytest

from dibber.interface.description import C, FIRMWARE_HEADER, HANDLER, MCP_STATE, SHARED, STATUS, TRAP
from mcp_native import FIRMWARE, ROOT, Card, put, walk
from rv32 import ILLEGAL, MISALIGNED_LOAD, Processor


@pytest.fixture(scope="module")
def image():
    """Bytes of build/firmware/mcp.dibfw, built if need be."""
    subprocess.run(["make", "-C", str(FIRMWARE), f"PYTHON={sys.executable}"], check=True, capture_output=True)
    return (ROOT/"build"/"firmware"/"mcp.dibfw").read_bytes()


class BinaryCard(Card):
    """A card whose control program is the image, executed by the RV32 model."""
    def __init__(self, image):
        super().__init__(boot=False)
        self.memory = bytearray(C.SRAM_SIZE)
        self.memory[:len(image) - FIRMWARE_HEADER.size] = image[FIRMWARE_HEADER.size:]
        # Whatever the SRAM held before: nothing may depend on it.
        for n in range(len(image) - FIRMWARE_HEADER.size, C.SRAM_SIZE):
            self.memory[n] = 0xa5
        self.library.fake_read.restype = ctypes.c_uint32
        self.library.fake_read.argtypes = [ctypes.c_uint32]
        self.library.fake_write.argtypes = [ctypes.c_uint32]*2
        self.cpu = Processor(self.memory, self.library.fake_read, self.library.fake_write)
        self["ADMIN_CQ_LOW"], self["ADMIN_CQ_HIGH"] = self.ADMIN_CQ & 0xffffffff, self.ADMIN_CQ >> 32
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
            idle = 0 if before != (self.logged.value, self["HEAD", 0], self["HEAD", 1]) else idle + 1
        self.collect()

    def shared_word(self, offset):
        return int.from_bytes(self.memory[C.SHARED_OFFSET + offset:][:4], "little")

    def handler(self, state):
        offset = C.SHARED_OFFSET + SHARED["handler"].offset + HANDLER.size*getattr(MCP_STATE, state)
        return dict(zip((m.name for m in HANDLER.members), struct.unpack_from("<4I", self.memory, offset)))


@pytest.fixture
def binary(image):
    card = BinaryCard(image)
    assert card.open(1) == STATUS.OK
    return card


def test_the_image_boots_from_address_0_whatever_the_sram_held(image):
    card   = BinaryCard(image)
    header = dict(zip((m.name for m in FIRMWARE_HEADER.members), struct.unpack_from("<8I", image)))
    assert card["IDENTITY"] == header["identity"]
    assert card.shared_word(SHARED["version"].offset) == header["version"]
    assert card.shared_word(SHARED["hash"].offset) == header["hash"]
    assert card["STATE"] == MCP_STATE.IDLE


def run_put(card, command, packets):
    """One put from doorbell to completion; instructions by handler."""
    before = {state: card.handler(state)["instructions"] for state in ("COMMAND", "SEND_DONE", "ACK")}
    card.ring(1, command)
    card.step()
    job = card.jobs.pop()
    card.job_done(job.tag, job.psn + packets)
    card.step()
    card.ack(1, job.psn + packets - 1)
    card.step()
    assert [e.status for e in card.entries()] == [STATUS.OK]
    return {state: card.handler(state)["instructions"] - n for state, n in before.items()}


def test_a_put_takes_as_many_instructions_for_10_elements_as_for_10000(binary, figure):
    costs = []
    for count in (10, 10, 10000):
        side = walk(8, [count], strides=[64])
        costs.append(run_put(binary, put(length=8*count, source=side, target=side), -(-8*count//4096)))
    assert costs[1] == costs[2]
    total = sum(costs[2].values())
    assert figure("mcp_instructions_per_put", total, "instructions", at_most=700)


def test_an_exception_is_left_where_the_host_finds_it(binary):
    """The program jumps to a word that is no instruction."""
    stop = C.SRAM_SIZE - 4*1024
    binary.memory[stop:stop + 4] = bytes(4)
    binary.cpu.pc, binary.cpu.x[1], stack = stop, 0x1234, binary.cpu.x[2]
    binary.run(100, until=lambda: binary["STATE"] == MCP_STATE.TRAP)
    trap = SHARED["trap"].offset
    found = {m.name: binary.shared_word(trap + m.offset) for m in TRAP.members if m.name != "reserved"}
    assert found == dict(cause=ILLEGAL, pc=stop, value=0, sp=stack, ra=0x1234)
    pc = binary.cpu.pc
    binary.cpu.step()
    assert binary.cpu.pc == pc


def test_a_misaligned_load_traps(binary):
    stop = C.SRAM_SIZE - 4*1024
    binary.memory[stop:stop + 4] = (0x00102083).to_bytes(4, "little")  # lw ra, 1(zero)
    binary.cpu.pc = stop
    binary.run(100, until=lambda: binary["STATE"] == MCP_STATE.TRAP)
    assert binary.shared_word(SHARED["trap"].offset) == MISALIGNED_LOAD


def test_text_and_data_are_at_most_32_kib(image):
    assert len(image) - FIRMWARE_HEADER.size <= 32*1024
