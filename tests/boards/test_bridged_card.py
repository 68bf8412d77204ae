# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The card of a board without PCIe, spoken to over its UART by LiteX's client: registers, firmware, shared memory."""

import pathlib

import pytest

from dibber.bridge.root import BAR_BASE, MAX_PAYLOAD, MAX_REQUEST, MEMORY_BASE
from dibber.interface.description import C, INTERFACE, MCP_STATE

from boards import host as program
from boards.bridged import DATA_WIDTH, MEMORY_BYTES
from card import PEEK, doorbell, mcp_register, register, slot
from wire import Wire, client


@pytest.fixture
def host(bridged_card):
    """LiteX's client; `host.port.wait(cycles)` lets time pass."""
    wire = Wire(bridged_card)
    yield client(wire)
    wire.close()


def test_registers_and_memory_answer(host):
    read = lambda name: host.read(BAR_BASE + register(name))
    assert read("MAGIC") == C.MAGIC and read("INTERFACE_HASH") == INTERFACE.hash
    assert read("DATA_WIDTH") == DATA_WIDTH
    assert read("MCP_STATE") == MCP_STATE.RESET
    assert read("PCIE_STATUS") == MAX_REQUEST << 16 | MAX_PAYLOAD
    for address in [BAR_BASE + register("SCRATCH"), MEMORY_BASE, MEMORY_BASE + MEMORY_BYTES - 4,
            BAR_BASE + C.FIRMWARE_BASE + C.SRAM_SIZE - 4, BAR_BASE + slot(7, 31) + 124]:
        for value in [address ^ 0x5eed5eed, ~address & 0xffffffff]:
            host.write(address, value)
            assert host.read(address) == value


def test_a_control_program_is_loaded_over_the_uart_and_runs(host, capsys):
    image    = pathlib.Path(__file__).resolve().parents[2]/"build"/"firmware"/"mcp.dibfw"
    call     = lambda *arguments: program.main(["port", *arguments], lambda port: host)
    call("info")
    assert "RESET, identity 0x00000000" in capsys.readouterr().out
    call("load", str(image))
    call("info")
    identity = int.from_bytes(image.read_bytes()[24:28], "little")  # struct firmware_header
    shown    = capsys.readouterr().out
    assert f"control program 0x{identity:08x} runs" in shown
    assert f"IDLE, identity 0x{identity:08x}" in shown and "DOWN, no signal" in shown
    call("write", hex(MEMORY_BASE), "0x12345678", "1")
    call("read", hex(MEMORY_BASE), "2")
    assert capsys.readouterr().out == "40000000  12345678\n40000004  00000001\n"


def test_a_damaged_control_program_is_not_loaded(host):
    image     = bytearray((pathlib.Path(__file__).resolve().parents[2]/"build"/"firmware"/"mcp.dibfw").read_bytes())
    image[99] ^= 1
    with pytest.raises(SystemExit, match="damaged"):
        program.Card(host).load(image)


def test_a_command_is_answered_in_the_memory_that_card_and_host_share(host, probe):
    host.write(BAR_BASE + C.FIRMWARE_BASE, probe)
    host.write(BAR_BASE + register("MCP_CONTROL"), 1)
    host.port.wait(2000)
    for n, name in enumerate(["IDENTITY", "EVENTS"]):
        answer = MEMORY_BASE + 0x1000 + 32*n
        host.write(answer, 0xdeadbeef)
        host.write(BAR_BASE + slot(0, n), [PEEK, 0, answer, 0, mcp_register(name), 0])
        host.write(BAR_BASE + doorbell(0, "COMMAND_PRODUCER"), n + 1)
        host.port.wait(500)
        assert host.read(answer) != 0xdeadbeef
    assert host.read(MEMORY_BASE + 0x1000) == host.read(BAR_BASE + register("MCP_IDENTITY"))
