"""Each duty of a Myrinet Control Program is tested: without it, the program fails a scenario that
it passes otherwise.

A function of the duty is emptied, or one statement is removed, and the rest is compiled unchanged.
The scenarios are those of the other files, without the fast path. README.md of the firmware has the
place of each duty.
"""

# SPDX-License-Identifier: BSD-2-Clause

import faulthandler
import functools
import inspect
import multiprocessing
import os
import re
import subprocess

import pytest
from dibber.interface.description import STATUS

from tests.firmware import (
    mcp_native,
    test_mcp_admin,
    test_mcp_commands,
    test_mcp_messages,
    test_mcp_queues,
    test_mcp_replay,
    test_mcp_routes,
    test_mcp_send,
)
from tests.firmware.mcp_native import FIRMWARE, OUT, inline, put
from tests.firmware.mcp_wire import WiredCard

FOLDER = OUT / "duties"
FLAGS = ["-std=gnu11", "-O1", "-w", "-DMCP_NATIVE", "-fPIC", f"-I{FIRMWARE}", f"-I{OUT}"]
SECONDS = 60  # of wall time, after which a scenario has failed


def puts_arrive(wired):
    """Of each lane, as far as the peer's memory."""
    wired.ring(
        1,
        *[put(length=9 * 4096, cookie=n) for n in range(3)],
        *[inline(cookie=n) for n in range(3, 6)],
    )
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(6), STATUS.OK)


# What is taken out: duty, file, function, the statement or None for all of it, scenario and its
# arguments.
CASES = [
    ("routing", "routes.c", "use", None, test_mcp_routes.test_the_lowest_valid_place_is_used, {}),
    (
        "routing",
        "routes.c",
        "routes_turn",
        None,
        test_mcp_routes.test_a_dead_route_is_left_for_the_next_and_nothing_is_lost,
        dict(commands=[put(length=3 * 4096, cookie=n) for n in range(5)]),
    ),
    (
        "routing",
        "scout.c",
        "scout_handler",
        "REG_WRITE(SCOUT_START",
        test_mcp_routes.test_a_scout_is_answered_by_the_way_that_it_names,
        {},
    ),
    ("gathering", "flows/bulk.c", "start", None, puts_arrive, {}),
    (
        "checksumming",
        "flows/bulk.c",
        "job_ended",
        "transfer->key = REG_READ(JOB_CHECKSUM)",
        test_mcp_replay.test_a_transfer_with_checksum_is_sent_again_from_its_first_packet,
        {},
    ),
    ("sending", "flows/express.c", "express_puts", "REG_WRITE(PUT_START", puts_arrive, {}),
    (
        "sending",
        "flows/express.c",
        "express_message",
        None,
        test_mcp_messages.test_a_get_goes_as_a_message_from_its_slot_and_ends_with_its_answer,
        {},
    ),
    (
        "sending",
        "send.c",
        "meet",
        None,
        test_mcp_send.test_a_send_waits_for_its_ready_and_stops_nobody,
        {},
    ),
    (
        "sending",
        "get.c",
        "get_asked",
        None,
        test_mcp_messages.test_a_request_becomes_a_job_on_the_inbox_slot_and_frees_it_when_acknowledged,
        {},
    ),
    (
        "receiving",
        "receive.c",
        "ask",
        None,
        test_mcp_send.test_a_receive_tells_the_other_end_and_ends_with_the_message,
        {},
    ),
    (
        "receiving",
        "receive.c",
        "receive_answered",
        None,
        test_mcp_send.test_a_receive_tells_the_other_end_and_ends_with_the_message,
        {},
    ),
    (
        "receiving",
        "message.c",
        "message_executed",
        None,
        test_mcp_messages.test_an_atomic_that_was_executed_is_replied_to_from_its_slot_which_is_free_when_acknowledged,
        {},
    ),
    (
        "control messages",
        "message.c",
        "tell",
        None,
        test_mcp_messages.test_replies_wait_for_room_on_their_flow_and_then_for_slots_of_the_outbox,
        {},
    ),
    (
        "control messages",
        "replay.c",
        "rewind",
        None,
        test_mcp_replay.test_a_nak_queues_again_from_the_missing_packet_on_with_the_same_psns,
        {},
    ),
    (
        "control messages",
        "flows/flow.c",
        "flow_incarnate",
        "REG_WRITE(FLOW_RESET",
        test_mcp_commands.test_boot_empties_the_region_table_starts_flows_and_publishes_its_identity,
        {},
    ),
    (
        "scattering",
        "admin.c",
        "region_enter",
        "REG_WRITE(REGION_WRITE",
        test_mcp_admin.test_a_region_is_entered_and_removed,
        {},
    ),
    (
        "scattering",
        "requests.c",
        "request_expect",
        None,
        test_mcp_messages.test_what_is_expected_is_entered_before_the_message_is_queued,
        {},
    ),
    (
        "interrupts",
        "arrival.c",
        "notice",
        "queue_post(",
        test_mcp_queues.test_a_notice_becomes_an_event_and_interrupts_when_asked,
        {},
    ),
    (
        "interrupts",
        "arrival.c",
        "notice",
        "FIELD_PUT(POST_START, INTERRUPT",
        test_mcp_queues.test_a_notice_becomes_an_event_and_interrupts_when_asked,
        {},
    ),
]

# Build --------------------------------------------------------------------------------------------


def without(file, function, statement):
    """The text of a source file in which a function's body is empty, or has one statement or sum
    less.
    """
    text = (FIRMWARE / file).read_text()
    found = re.search(rf"^[^\n;]*\b{function}\([^;{{]*\)\n{{\n(.*?)^}}", text, re.M | re.S)
    body = ""
    if statement:
        begin, depth = found[1].index(statement), 0
        assert found[1].count(statement) == 1
        # to the parenthesis that closes it, or the semicolon
        for end in range(begin, len(found[1])):
            depth += {"(": 1, ")": -1}.get(found[1][end], 0)
            if depth == 0 and found[1][end] in ");":
                break
        # A statement is nothing then, a sum's term 0.
        body = (
            found[1][:begin]
            + ("0" if found[1][end + 1 : end + 2] == ")" else "")
            + found[1][end + (found[1][end] == ")") :]
        )
    return text[: found.start(1)] + body + text[found.end(1) :]


def compile_object(name, *source, **options):
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / f"{name}.{os.getpid()}.o"
    subprocess.run(["gcc", *FLAGS, "-c", "-o", target, *source], check=True, **options)
    return target


@functools.cache
def objects():
    """Objects of the whole program and of the fake, by their sources' paths in the folder."""
    mcp_native.build()  # and the headers
    fakes = (mcp_native.ROOT / "tests" / "firmware").glob("*.c")
    sources = {str(s.relative_to(FIRMWARE)): s for s in mcp_native.program_sources()}
    sources |= {s.name: s for s in fakes}
    return {name: compile_object(s.stem, s) for name, s in sources.items()}


def library(number, replaced):
    """A library in which objects are replaced."""
    target = FOLDER / f"{number}.{os.getpid()}.so"
    subprocess.run(["gcc", "-shared", "-o", target, *(objects() | replaced).values()], check=True)
    return target


@pytest.fixture(scope="module", autouse=True)
def tidy():
    yield
    for path in FOLDER.glob(f"*.{os.getpid()}.*"):
        path.unlink()


# Run ----------------------------------------------------------------------------------------------


def act(path, scenario, arguments):
    mcp_native.build = lambda: path
    names = inspect.signature(scenario).parameters
    if "wired" in names:
        arguments = {**arguments, "wired": WiredCard()}
    if "card" in names:
        arguments = {**arguments, "card": mcp_native.Card()}
        assert arguments["card"].open(1) == STATUS.OK
    scenario(**arguments)


def passes(path, scenario, arguments):
    """Whether a scenario passes, in a process of its own: the fake aborts on what the gateware
    would not survive.
    """

    def child():
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        act(path, scenario, arguments)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
    return process.exitcode == 0


def names():
    return [
        f"{duty}: {function}" + (f", {statement}" if statement else "")
        for duty, _, function, statement, *_ in CASES
    ]


@pytest.mark.parametrize("number", range(len(CASES)), ids=names())
def test_without_it_a_scenario_fails(number):
    _, file, function, statement, scenario, arguments = CASES[number]
    whole = library("whole", {})
    assert passes(whole, scenario, arguments)
    text = without(file, function, statement)
    mutant = compile_object(f"mutant{number}", "-x", "c", "-", input=text.encode())
    assert not passes(library(number, {file: mutant}), scenario, arguments)


def test_no_duty_is_forgotten():
    table = (FIRMWARE / "README.md").read_text().split("## The seven duties")[1].split("\n## ")[0]
    duties = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][
        1:
    ]
    assert len(duties) == 7
    for duty in duties:
        assert any(case[0] in duty or case[0].rstrip("s") in duty for case in CASES), duty
