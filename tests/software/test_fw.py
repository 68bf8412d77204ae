"""`dibber fw` and `dibber reset` on a mock card, from the program's data in its memory."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import re
import shutil
import struct
import subprocess

import pytest
from dibber.interface.description import (
    DOORBELL,
    HANDLER,
    HOST,
    INTERFACE,
    LANE,
    MCP,
    MCP_STATE,
    ROUTES,
    SHARED,
    STATUS,
    TRACE,
    TRACE_ENTRY,
    TRAP,
    C,
)
from dibber_cli import paths
from dibber_cli.errors import CommandError
from dibber_cli.fw import coredump, images, top, trace, trap
from dibber_cli.fw.shared import Shared, decode
from dibber_cli.main import main

from tests.software.mock_card import SRAM_BYTES

PLACE = SRAM_BYTES - C.SHARED_FROM_END  # of struct mcp_shared


class Memory:
    """An SRAM in which a program of this interface has begun."""

    def __init__(self, sram=None):
        self.sram = bytearray(SRAM_BYTES) if sram is None else sram
        self.set("version", INTERFACE.version_word)
        self.set("hash", INTERFACE.hash)

    def read(self, offset, length):
        return bytes(self.sram[offset : offset + length])

    def set(self, name, *words, at=0):
        struct.pack_into(f"<{len(words)}I", self.sram, PLACE + SHARED[name].offset + at, *words)

    def trace(self, event, *arguments, handler=MCP_STATE.COMMAND, cycles=0):
        head = trace_head(self)
        self.set(
            "trace",
            cycles,
            event << 8 | handler,
            *arguments,
            at=head % C.TRACE_ENTRIES * TRACE_ENTRY.size,
        )
        self.set("trace_head", (head + 1) % 2**32)

    def handler(self, state, *words):
        self.set("handler", *words, at=getattr(MCP_STATE, state) * HANDLER.size)

    def trap(self, **values):
        for name, value in values.items():
            self.set("trap", *(value if name == "x" else [value]), at=TRAP[name].offset)


def trace_head(memory):
    return Shared(memory.read, SRAM_BYTES).member("trace_head")


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def run(capsys):
    """run(*words) → exit code, stdout, stderr."""

    def call(*words):
        return main([str(w) for w in words]), *capsys.readouterr()

    return call


@pytest.fixture
def card(serve):
    """A mock card whose memory a program has written: namespace of device, uri, memory."""
    mock = serve()
    mock.memory = Memory(mock.device.sram)
    mock.state = lambda state: mock.device.registers.update(
        {HOST["MCP_STATE"].offset: getattr(MCP_STATE, state)}
    )
    mock.state("IDLE")
    return mock


# Trace --------------------------------------------------------------------------------------------


def test_a_ring_that_is_not_full_is_read_from_its_first_entry(memory):
    for n in range(3):
        memory.trace(TRACE.OPEN, n, 100 + n, cycles=10 * n)
    entries, lost, since = trace.read(Shared(memory.read, SRAM_BYTES))
    assert [(e["index"], e["cycles"], e["event"], e["arguments"]) for e in entries] == [
        (n, 10 * n, "OPEN", [n, 100 + n]) for n in range(3)
    ]
    assert (lost, since) == (0, 3)
    assert trace.read(Shared(memory.read, SRAM_BYTES), since) == ([], 0, 3)


@pytest.mark.parametrize("before", [0, 1, 300, 2**32 - 100])
def test_of_a_ring_that_has_turned_the_newest_are_read_and_the_rest_counted(memory, before):
    memory.set("trace_head", before)
    for n in range(before, before + 400):
        memory.trace(TRACE.OPEN, n % 2**32, 0)
    entries, lost, since = trace.read(Shared(memory.read, SRAM_BYTES), since=before)
    count = C.TRACE_ENTRIES - 1  # the oldest may be the one that is being written
    assert [e["arguments"][0] for e in entries] == [
        (before + 400 - count + n) % 2**32 for n in range(count)
    ]
    assert (lost, since) == (400 - count, (before + 400) % 2**32)
    memory.trace(TRACE.CLOSE, 1, 2)
    assert [e["event"] for e in trace.read(Shared(memory.read, SRAM_BYTES), since)[0]] == ["CLOSE"]


def test_entries_that_are_overwritten_while_they_are_read_are_left_out(memory):
    for n in range(300):
        memory.trace(TRACE.OPEN, n, 0)
    reads = []

    def read(offset, length):
        reads.append(offset)
        if len(reads) == 3:  # the second part of the ring
            for n in range(300, 320):
                memory.trace(TRACE.OPEN, n, 0)
        return memory.read(offset, length)

    entries, lost, since = trace.read(Shared(read, SRAM_BYTES), since=44)
    assert [e["arguments"][0] for e in entries] == list(range(65, 300))
    assert (lost, since) == (21, 300)


def register(name, **values):
    """A value of a register of bank `mcp`, from its fields."""
    return sum(values[f.name] << f.lsb for f in MCP[name].fields if f.name in values)


@pytest.mark.parametrize(
    "event, arguments, text",
    [
        ("BOOT", (0xD1BB0003, 77), "identity 0xd1bb0003, cycles 77"),
        ("COMMAND", (37, 0x80), "endpoint 1 slot 5, first word 0x80"),
        ("JOB", (C.INBOX * C.SLOTS + 2, 9), "inbox slot 2, extended PSN of its first packet 9"),
        ("COMPLETION", (3 << 8 | STATUS.BOUNDS, 7), "endpoint 3, BOUNDS, cookie 0x7"),
        (
            "TIMEOUT",
            (LANE.BULK * C.NODES + 4, 12),
            "flow BULK to 4, extended PSN that is not acknowledged 12",
        ),
        (
            "LINK",
            (1, 0x10002),
            "up 1, flows 31:0 with packets under way: flow EXPRESS to 1, flow BULK to 0",
        ),
        (
            "ARRIVAL",
            (register("ARRIVAL", node=3, endpoint=2, interrupt=1), 5),
            "node 3, endpoint 2, slot 0, interrupt, value 0x5",
        ),
        (
            "REFUSED",
            (register("REFUSAL", psn=8, reason=STATUS.REMOTE_BOUNDS, flow=17), 0xFFFF),
            "psn 8, REMOTE_BOUNDS, flow BULK to 1, no transfer",
        ),
        ("CLAIM", (1, 2), "flow EXPRESS to 1, puts under way 2"),
    ],
)
def test_arguments_are_told_in_words(event, arguments, text):
    assert trace.arguments(getattr(TRACE, event), list(arguments)) == text


def test_every_event_says_what_its_arguments_are():
    for name, value, _ in TRACE.values:
        assert len(trace.names_of(value)) == 2 and all(trace.names_of(value)), name


def test_fw_trace_for_people_and_for_programs(card, run):
    card.memory.trace(TRACE.OPEN, 1, 0, cycles=1000)
    card.memory.trace(TRACE.COMMAND, 37, 0, cycles=1250)
    code, out, _ = run("fw", "trace", card.uri)
    assert code == 0 and "endpoint 1 slot 5" in out and "+2.00 µs" in out
    code, out, _ = run("fw", "trace", "--json", card.uri)
    assert code == 0 and [json.loads(line)["event"] for line in out.splitlines()] == [
        "OPEN",
        "COMMAND",
    ]


def test_fw_trace_of_a_card_without_a_program(serve, run):
    code, _, err = run("fw", "trace", serve().uri)
    assert code == 1 and "no control program" in err and "dibber fw load" in err


def test_fw_trace_follows_until_the_program_stops(card, run, monkeypatch):
    waits = []

    def pause(*_):
        waits.append(1)
        card.memory.trace(TRACE.CLOSE, len(waits), 0)
        if len(waits) == 3:
            card.memory.trap(status=0x1880, cause=2, pc=0x123C, value=0xFFFFFFFF)
            card.state("TRAP")

    monkeypatch.setattr("dibber_cli.fw.commands.pause", pause)
    card.memory.trace(TRACE.OPEN, 0, 0)
    code, out, _ = run("fw", "trace", "--follow", card.uri)
    assert code == 1
    assert [
        word for line in out.splitlines() for word in line.split() if word in ("OPEN", "CLOSE")
    ] == ["OPEN"] + ["CLOSE"] * 3
    assert "illegal instruction (instruction 0xffffffff), pc 0x123c" in out.splitlines()[-1]


# Traps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state, values, words",
    [
        ("IDLE", {}, "running, its state is IDLE"),
        ("RESET", {}, "halted by a host"),
        (
            "RESET",
            dict(status=0x1880, cause=2, value=7),
            "an illegal instruction (instruction 0x7)",
        ),
        (
            "TRAP",
            dict(status=0x1880, cause=4, value=3, pc=16),
            "a misaligned load (address 0x3), pc 0x10",
        ),
        (
            "TRAP",
            dict(status=0x1880, cause=trap.WATCHDOG),
            "the watchdog, for its event loop did not turn",
        ),
        ("TRAP", dict(status=0x1880, cause=99), "cause 0x63"),
        ("WATCHDOG", {}, "did not even come to its trap handler"),
    ],
)
def test_why_a_program_has_stopped(memory, state, values, words):
    memory.trap(**values)
    assert words in trap.sentence(
        getattr(MCP_STATE, state), trap.read(Shared(memory.read, SRAM_BYTES))
    )


@pytest.mark.parametrize("state", ["RESET", "TRAP"])
def test_a_trap_is_found_though_the_card_was_reset_for_the_next_program(card, run, state):
    card.memory.trace(TRACE.OPEN, 1, 0)
    card.memory.trap(status=0x1880, cause=7, pc=0x80)
    card.state(state)
    code, out, _ = run("fw", "trace", card.uri)
    assert code == 1 and "OPEN" in out and "a store to where nothing is" in out.splitlines()[-1]


# Top ----------------------------------------------------------------------------------------------


def sampled(cycles, calls, spent, turns, posts):
    handlers = {
        name.lower(): dict(calls=0, cycles=0, instructions=0, longest=0) for name in top.HANDLERS
    }
    handlers["command"] = dict(calls=calls, cycles=spent, instructions=spent // 2, longest=400)
    counts = {
        **dict.fromkeys(("routes", *top.COUNTS, *top.EVENTS, *top.COUNTERS), 0),
        "turns": turns,
        "posts": posts,
    }
    return {
        "cycles": cycles,
        "state": "IDLE",
        "stopped": False,
        "handlers": handlers,
        "counts": counts,
        "queues": [],
    }


@pytest.mark.parametrize("begin", [0, 2**32 - 50])
def test_rates_are_by_the_cards_clock_and_counts_may_wrap(begin):
    wrap = lambda n: (begin + n) % 2**32
    rates = top.between(
        sampled(1000, wrap(0), wrap(0), wrap(0), wrap(0)),
        sampled(1000 + 125_000, wrap(250), wrap(31_250), wrap(1000), wrap(10)),
        125e6,
    )
    assert rates["seconds"] == 1e-3 and rates["busy_percent"] == 25
    work = rates["handlers"]["command"]
    assert (work["calls_per_s"], work["percent"], work["cycles_each"], work["longest"]) == (
        250_000,
        25,
        125,
        400,
    )
    assert rates["handlers"]["timer"]["cycles_each"] is None
    assert (rates["per_s"]["turns"], rates["per_s"]["posts"]) == (1_000_000, 10_000)


def test_fw_top_shows_handlers_counts_and_queues(card, run):
    card.memory.handler("ACK", 10, 1000, 500, 300)
    card.memory.set("commands", 1234)
    for name, value in (("COMMAND_PRODUCER", 9), ("COMMAND_HEAD", 6), ("CQ_CONSUMER", 4)):
        offset = C.ENDPOINT_BASE + 2 * C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET + DOORBELL[name].offset
        card.device.registers[offset] = value
    code, out, _ = run("fw", "top", "--once", "--json", "--interval", "0", card.uri)
    rates = json.loads(out)
    assert (
        code == 0
        and rates["handlers"]["ack"]["longest"] == 300
        and rates["counts"]["commands"] == 1234
    )
    assert rates["queues"] == [dict(endpoint=2, commands=6, waiting=3, unread=2)]
    code, out, _ = run("fw", "top", "--once", "--interval", "0", card.uri)
    assert code == 0 and "send_done" in out and "1234" in out and "waiting" in out


def test_fw_top_has_a_counter_for_each_duty(card, run):
    """The duties by their names in the firmware's README; each counter's change shows there."""
    table = (
        (paths.ROOT / "firmware" / "README.md")
        .read_text()
        .split("## The seven duties")[1]
        .split("\n## ")[0]
    )
    duties = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][
        1:
    ]
    assert duties == list(top.DUTIES)
    for name, value in (
        ("checksums", 11),
        ("messages", 12),
        ("regions", 13),
        ("scouts", 14),
        ("commands", 15),
    ):
        card.memory.set(name, value)
    card.memory.set("events", 16, at=4 * TRACE.JOB)
    card.memory.set("routes", 0x0505, at=ROUTES.size * 3 + ROUTES["valid"].offset)
    card.device.registers[HOST["COUNT_INTERRUPTS"].offset] = 17
    code, out, _ = run("fw", "top", "--once", "--json", "--interval", "0", card.uri)
    found = json.loads(out)["duties"]
    assert code == 0 and list(found) == duties
    assert (
        found["routing table management"]["routes"],
        found["routing table management"]["scouts"],
    ) == (2, 14)
    assert found["gathering"]["send_jobs"] == 16 and found["checksumming"]["checksums"] == 11
    assert (
        found["sending and receiving"]["commands"] == 15
        and found["control message generation"]["messages"] == 12
    )
    assert (
        found["scattering"]["regions"] == 13 and found["interrupts on arrival"]["interrupts"] == 17
    )
    code, out, _ = run("fw", "top", "--once", "--interval", "0", card.uri)
    assert code == 0 and all(duty in out for duty in duties) and "scout " in out


def test_fw_top_ends_when_the_program_has_stopped(card, run):
    card.state("WATCHDOG")
    code, out, _ = run("fw", "top", "--interval", "0", card.uri)
    assert code == 1 and "WATCHDOG" in out


# Core files ---------------------------------------------------------------------------------------

PROGRAM = """
#include "dibber_interface.h"
struct dibber_mcp_shared mcp_shared __attribute__((section(".shared")));
__attribute__((noinline)) void inner(unsigned number)
{ __asm__ volatile("mv a5, %0; .globl stop; stop: .word 0" : : "r"(number) : "a5"); }
__attribute__((noinline)) void handler(unsigned number) {
    inner(number + 1); mcp_shared.commands++; }
void _start(void) { handler(41); mcp_shared.commands++; }
"""


@pytest.fixture(scope="session")
def elf(tmp_path_factory):
    """A program that would trap in inner(), called by handler(); and where: (path, address of the
    stop).
    """
    from dibber.interface.generate import c_header

    folder = tmp_path_factory.mktemp("core")
    (folder / "dibber_interface.h").write_text(c_header())
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(
        [
            "riscv64-unknown-elf-gcc",
            "-march=rv32im_zicsr",
            "-mabi=ilp32",
            "-Og",
            "-g",
            "-ffreestanding",
            "-nostdlib",
            "-fno-omit-frame-pointer",
            "-static",
            f"-Wl,-Ttext=0x40,--section-start=.shared={PLACE:#x}",
            "-Wl,--no-warn-rwx-segments",
            "-o",
            folder / "program.elf",
            folder / "program.c",
        ],
        check=True,
    )
    symbols = subprocess.run(
        ["riscv64-unknown-elf-nm", folder / "program.elf"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    address = {
        name: int(value, 16) for value, _, name in (line.split() for line in symbols.splitlines())
    }
    return folder / "program.elf", address


def test_gdb_opens_a_core_with_its_registers_stack_and_structures(card, run, elf, tmp_path):
    assert (gdb := shutil.which("gdb-multiarch")), "install.sh brings it"
    path, address = elf
    sp = 0xD000
    # The return address to handler() is in ra. GCC 14 also saves it in the frame of inner(), and
    # gdb takes it from there. GCC 12 does not save it, because inner() calls nothing.
    back = address["handler"] + 20
    x = [0, back, sp, *range(3, 8), sp + 16, *range(9, 32)]
    card.device.sram[sp : sp + 16] = struct.pack("<4I", *[back] * 4)
    card.memory.trap(status=0x1880, cause=2, pc=address["stop"], value=0, x=x)
    card.memory.set("commands", 987)
    card.state("TRAP")
    file = tmp_path / "core"
    code, out, _ = run("fw", "coredump", file, card.uri)
    assert code == 0 and "an illegal instruction" in out and "gdb-multiarch" in out
    done = subprocess.run(
        [
            gdb,
            "-nx",
            "-batch",
            "-ex",
            "info registers",
            "-ex",
            "print mcp_shared.commands",
            "-ex",
            "print/x mcp_shared.trap.cause",
            "-ex",
            "bt",
            path,
            file,
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout
    assert "Program terminated with signal SIGILL" in said, done.stdout + done.stderr
    assert "$1 = 987" in said and "$2 = 0x2" in said
    values = {words[0]: words[1] for words in map(str.split, said.splitlines()) if len(words) > 1}
    assert (
        int(values["sp"], 16) == sp and int(values["a7"], 16) == 17 and int(values["t6"], 16) == 31
    )
    assert int(values["pc"], 16) == address["stop"]
    assert re.search(r"^#0 .* in inner ", said, re.M) and re.search(
        r"^#1 .* in handler ", said, re.M
    )


def test_a_core_without_registers_holds_the_memory(memory):
    memory.sram[0x1234] = 0x77
    data = coredump.core(bytes(memory.sram), None)
    headers = struct.unpack_from("<8I8I", data, 52)
    assert headers[4] == 0, "an empty note segment"
    offset, address, length = headers[9], headers[10], headers[12]
    assert (address, length) == (0, SRAM_BYTES) and data[offset + 0x1234] == 0x77


# Reset --------------------------------------------------------------------------------------------


def test_reset_loads_again_what_was_loaded_last(card, run, image):
    file = pathlib.Path(image(words=700))
    assert run("fw", "load", file, card.uri)[0] == 0
    body = file.read_bytes()[64:]
    file.unlink()  # a copy was kept
    card.device.sram[:] = bytes(SRAM_BYTES)
    card.memory = Memory(card.device.sram)
    card.memory.trap(status=0x1880, cause=7, value=0x20000000, pc=0x40)
    card.state("TRAP")
    code, out, _ = run("reset", card.uri)
    assert (
        code == 0
        and "stopped by a store to where nothing is (address 0x20000000)" in out
        and "d1bb0001" in out
    )
    assert bytes(card.device.sram[: len(body)]) == body
    code, out, _ = run("reset", "--json", card.uri)
    assert code == 0 and json.loads(out)["before"]["stopped"] is False


def test_reset_takes_an_image(card, run, image):
    file = image(words=300)
    code, out, _ = run("reset", "--image", file, card.uri)
    assert code == 0 and "runs again" in out
    with images.last(card.uri) as (path, _):
        assert path.read_bytes() == pathlib.Path(file).read_bytes()


def test_reset_without_anything_to_load(card, run, monkeypatch, tmp_path):
    monkeypatch.setattr("dibber_cli.paths.FIRMWARE", tmp_path / "none")
    code, _, err = run("reset", card.uri)
    assert code == 1 and "--image FILE" in err


# Library ------------------------------------------------------------------------------------------


def test_structures_are_decoded_by_their_description(memory):
    memory.trap(x=range(32), cycles=5)
    found = decode(TRAP, memory.read(PLACE + SHARED["trap"].offset, TRAP.size))
    assert found["x"] == list(range(32)) and found["cycles"] == 5
    with pytest.raises(CommandError, match="no control program"):

        class Card:
            read_firmware = staticmethod(lambda offset, length: bytes(length))
            read_register = staticmethod(lambda name: MCP_STATE.IDLE)
            sram_bytes = SRAM_BYTES

        Shared.of(Card)
