"""A control program that breaks on a simulated card: what the commands say of it, and that the card
comes back.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import re
import struct
import subprocess

import libdibber
import pytest
from dibber.interface.description import OPCODE, STATUS, C
from dibber_cli import paths, profile
from dibber_cli.fw import top, trap
from dibber_cli.fw.shared import Shared
from dibber_cli.main import main
from dibber_cli.simulator import Pair as Simulator

IMAGE = paths.elf().with_suffix(".bin")  # what lies in the card's memory
HANDLER = 0x200  # start.S, with the trap handler, ends below
ILLEGAL, LOOP = 0x00000000, 0x0000006F
LIMIT = 10_000_000  # ns


@pytest.fixture
def uri(monkeypatch, tmp_path):
    """A card whose simulator goes on while one program after the other opens it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Simulator(profile.load("gen2x4"), participants=1) as simulator:
        yield simulator.uris[0]


@pytest.fixture
def dibber(capsys):
    """dibber(*words) → exit code, stdout, stderr."""

    def call(*words):
        return main([str(word) for word in words]), *capsys.readouterr()

    return call


def spoil(uri, word, begin):
    """Load the program, fill its code, and give it something to do; returns the diagnosis and the
    nanoseconds until then.
    """
    length = IMAGE.stat().st_size
    with libdibber.Card(uri) as card:
        card.load_firmware(paths.FIRMWARE)
        endpoint = card.endpoint(1)
        card.write_firmware(begin, struct.pack("<I", word) * ((length - begin) // 4))
        start = endpoint.clock().now_ps
        endpoint.submit(bytes([OPCODE.GET]).ljust(C.SLOT_BYTES, b"\0"))
        while not (found := trap.diagnose(card))["stopped"]:
            assert endpoint.clock().now_ps - start < 1000 * LIMIT, found
            endpoint.wait(20_000)
        took = (endpoint.clock().now_ps - start) // 1000
        assert endpoint.wait(2_000_000) and [done.status for done in endpoint.poll()] == [
            STATUS.HALTED
        ]
        endpoint.close()
    return found, took


def works(uri):
    """Whether the control program that runs takes commands, as one process after the other."""
    with libdibber.Card(uri) as card:
        card.load_firmware(paths.FIRMWARE)
        with card.endpoint(1) as endpoint:
            endpoint.submit(bytes(C.SLOT_BYTES))
            return endpoint.wait(10**6) and endpoint.poll()[0].status == STATUS.OK


@pytest.mark.parametrize(
    "word, begin, state, cause, words",
    [
        (ILLEGAL, HANDLER, "TRAP", 2, "an illegal instruction"),
        (LOOP, HANDLER, "TRAP", trap.WATCHDOG, "the watchdog"),
        (LOOP, 0, "WATCHDOG", None, "did not even come to its trap handler"),
    ],
)
def test_a_broken_program_is_diagnosed_and_the_card_comes_back(
    uri, dibber, tmp_path, word, begin, state, cause, words
):
    found, took = spoil(uri, word, begin)
    assert found["state"] == state and words in found["sentence"] and took < LIMIT

    # The card is not reset for observers, so it reports itself what happened to its program.
    code, out, _ = dibber("fw", "trace", uri)
    assert "BOOT" in out and "OPEN" in out and "endpoint 1" in out
    assert code == 1 and words in out.splitlines()[-1]

    # The next driver resets it. What a trap handler left is there still.
    with libdibber.Card(uri) as card:
        assert trap.diagnose(card)["stopped"] == (cause is not None)

    code, out, _ = dibber("fw", "coredump", "--json", tmp_path / "core", uri)
    left = json.loads(out)["trap"]
    assert code == 0 and (left and left["cause"]) == cause
    if cause is not None:
        done = subprocess.run(
            [
                "gdb-multiarch",
                "-nx",
                "-batch",
                "-ex",
                "info registers pc sp",
                "-ex",
                "print mcp_shared.trace_head",
                "-ex",
                "print/x mcp_shared.trap.pc",
                paths.elf(),
                tmp_path / "core",
            ],
            capture_output=True,
            text=True,
            timeout=600,
        )
        pc = int(re.search(r"^pc\s+(0x[0-9a-f]+)", done.stdout, re.M).group(1), 16)
        assert pc == left["pc"] and HANDLER <= pc < IMAGE.stat().st_size
        assert f"$2 = {pc:#x}" in done.stdout and paths.SIMULATED_SRAM > left["x"][2] > HANDLER

    code, out, _ = dibber("reset", uri)
    assert code == 0 and "runs again" in out and (cause is None or words in out)
    code, out, _ = dibber("fw", "trace", uri)
    assert code == 0 and "BOOT" in out
    assert works(uri)


def test_the_watchdog_leaves_a_program_alone_that_has_nothing_to_do(uri):
    """For several times its period. Its event loop wakes at least each EVENTS_HOLD cycles, and its
    accounts say so.
    """
    with libdibber.Card(uri) as card:
        card.load_firmware(paths.FIRMWARE)
        with card.endpoint(1) as endpoint:
            shared = Shared.of(card)
            before = top.sample(card, shared)
            endpoint.submit(bytes(C.SLOT_BYTES))
            while not endpoint.poll():
                endpoint.wait(10**6)
            endpoint.wait(3_000_000)
            clock_hz = card.info()["clock_hz"]
            rates = top.between(before, top.sample(card, shared), clock_hz)
            # A look may meet the timer's handler, of some microseconds in each 50: not for so long.
            assert any(
                trap.diagnose(card)["sentence"] == "running, its state is IDLE" for _ in range(40)
            )
    assert rates["seconds"] > 3e-3 and rates["per_s"]["turns"] > clock_hz / C.EVENTS_HOLD
    assert rates["handlers"]["command"]["calls"] == 1 and 0 < rates["busy_percent"] < 50
    queue = rates["queues"][-1]
    assert (queue["endpoint"], queue["commands"], queue["waiting"]) == (1, 1, 0)
