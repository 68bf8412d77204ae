"""gdb, through OpenOCD and the JTAG pins of a simulated card, on a busy control program."""

# SPDX-License-Identifier: BSD-2-Clause

import re
import shutil
import subprocess

import pytest
from dibber.interface.description import MCP_STATE, OPCODE, STATUS
from dibber_cli import paths
from dibber_cli.fw import debug

from tests.system.pair import Pair, Side

SIZE = 1 << 14
TOOLS = ["openocd", "gdb-multiarch"]
STOPPED = (MCP_STATE.RESET, MCP_STATE.TRAP, MCP_STATE.WATCHDOG)
WATCHDOG_NS = 1_000_000  # what the control program gives its watchdog

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason=f"{' and '.join(TOOLS)} are not installed"
)


@pytest.fixture
def pair():
    with Pair(options=["--jtag", "--threads", "1"]) as p:
        p.together(*[(Side.fast_path, False)] * 2)
        p.first(Side.register, "source", SIZE)
        p.key = p.second(Side.register, "target", SIZE)
        p.first(Side.fill, "source", 1)
        yield p


class Gdb:
    """gdb with an OpenOCD of its own at a card. The program is halted when __init__ returns, and
    gdb does the rest by itself.

    Parameters
    ----------
    ready    : what gdb says when it is at the program
    commands : what it does before it lets the program go for good
    """

    def __init__(self, pair, card, log, ready, commands):
        line = debug.gdb_command(paths.elf(), pair.simulator.directory / f"card{card}.jtag", log)
        words = [word for command in [*commands, "delete", "detach"] for word in ("-ex", command)]
        self.process = subprocess.Popen(
            [*line, "-batch", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=paths.ROOT,
        )
        self.text = ""
        while ready not in self.text:
            line = self.process.stdout.readline()
            assert line, f"gdb did not come as far as the control program: {self.text}"
            self.text += line

    def end(self):
        """What it said."""
        try:
            self.text += self.process.communicate(timeout=600)[0]
        finally:
            self.process.kill()
        return self.text


def put(side, key):
    return side.put_strided((side.regions["source"].key, SIZE), (key, SIZE), notice=77, endpoint=1)


def test_a_handler_is_stopped_looked_at_and_stepped_and_its_put_arrives(pair, tmp_path):
    gdb = Gdb(
        pair,
        0,
        tmp_path / "log",
        "Breakpoint 1 at",
        [
            "break put_command",
            "continue",
            "print/x first_word",
            "print endpoints[1]",
            "print/x $pc - (unsigned)put_command",
            "stepi",
            "print/x $pc - (unsigned)put_command",
            "print/x $mcause",
            "next",
            "print mcp_shared.commands",
        ],
    )
    status, event = pair.together((put, pair.key), (Side.event,))
    text = gdb.end()
    assert re.search(r"Breakpoint 1, put_command \(tag=32, first_word=\d+\)", text), text
    printed = re.findall(r"^\$\d+ = (.*)$", text, re.MULTILINE)
    first_word, endpoint, before, after, cause, commands = printed
    assert int(first_word, 16) & 0xFF == OPCODE.PUT
    assert endpoint.startswith("{outstanding = 0, state = 1 "), (
        "endpoint 1 is open, and this is its first command"
    )
    assert (before, after) == ("0x0", "0x4") and cause == "0x0"
    assert int(commands) > 0
    assert status == STATUS.OK and event[:2] == (77, SIZE)
    assert pair.second(Side.read, "target") == pair.first(Side.read, "source")


def look(side):
    """What the host sees of a card, and whether an event comes while the watchdog would have bitten
    twice.
    """
    before = side.card.info()["cycles"]
    came = side.endpoint.wait(5 * WATCHDOG_NS // 2)
    info = side.card.info()
    return came, info["mcp_state"], (info["cycles"] - before) * 1_000_000_000 // info["clock_hz"]


def test_packets_land_while_the_program_stands_and_what_it_has_to_do_for_them_waits(pair, tmp_path):
    go = tmp_path / "go"
    gdb = Gdb(
        pair,
        1,
        tmp_path / "log",
        "halted",
        ["echo halted\\n", f"shell while [ ! -e {go} ]; do sleep 0.02; done"],
    )
    assert pair.first(put, pair.key) == STATUS.OK, "the peer's gateware writes and acknowledges"
    assert pair.second(Side.read, "target") == pair.first(Side.read, "source")
    came, state, passed = pair.second(look)
    assert passed > 2 * WATCHDOG_NS
    assert not came, "the notice is the program's"
    assert state not in STOPPED, "who is halted does not hang"
    go.touch()
    assert pair.second(Side.event)[:2] == (77, SIZE)
    gdb.end()
    assert pair.second(Side.info)["mcp_state"] not in STOPPED
