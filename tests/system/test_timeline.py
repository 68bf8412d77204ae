"""A timeline of two simulated cards: its events agree with the simulator's statistics."""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import json
import subprocess
import sys

import pytest
from dibber_cli import profile
from dibber_cli.bench import latency, session, stride
from dibber_cli.errors import SimulatorError
from dibber_cli.simulator import Pair
from dibber_cli.timeline import trace, transfer

# Few credits and a cable that says STOP for a while: every kind of wait occurs.
TIGHT = (
    *("--set", "pcie.posted_headers=4", "--set", "pcie.nonposted_headers=2"),
    *("--set", "pcie.transmit_buffer_tlps=2", "--set", "memory.partial_line_ns=100"),
    *("--fault", "stop:1000:1020"),
)


def points():
    return stride.points(series=("put-dst-strided",), **stride.QUICK)[:2]


def measured(options):
    """(answers of all points, statistics) of a run."""
    results, _, stats = session.measure(profile.load("gen2x4"), 1, points(), options=options)
    return [result["answers"] for result in results], json.loads(stats)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(file, answers, statistics) of a run with a timeline."""
    path = tmp_path_factory.mktemp("timeline") / "run.json"
    return path, *measured([*TIGHT, "--timeline", str(path)])


@pytest.fixture(scope="module")
def events(run):
    return list(trace.read(str(run[0])))


def dibber(*words):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", *map(str, words)],
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


# The file -----------------------------------------------------------------------------------------


def test_a_timeline_changes_no_result(run):
    _, answers, stats = run
    without, statistics = measured(TIGHT)
    assert answers == without
    assert stats["cycles"] == statistics["cycles"] and stats["cards"] == statistics["cards"]


def test_the_file_is_json_with_a_name_for_each_card_and_row(run):
    raw = json.loads(run[0].read_text(encoding="ascii"))
    cards = {e["pid"] for e in raw if e["name"] == "process_name"}
    rows = {(e["pid"], e["tid"]) for e in raw if e["name"] == "thread_name"}
    assert cards == {0, 1, 2}
    for event in raw:
        assert event["ph"] in "MXibe" and event["pid"] in cards
        if event["ph"] in "Xi":
            assert (event["pid"], event["tid"]) in rows and event["ts"] >= 0
        if event["ph"] in "be":
            assert event["cat"] in ("read", "memory") and "local" in event["id2"]


def test_spans_of_a_row_do_not_overlap(events):
    free = collections.defaultdict(int)
    for event in events:
        if event.phase == "X":
            assert event.until >= event.at >= free[event.card, event.row], event
            free[event.card, event.row] = event.until


def test_each_beginning_has_its_end(run):
    under_way = {}
    for line in run[0].read_text(encoding="ascii").splitlines()[1:-1]:
        event = json.loads(line.removesuffix(","))
        if event["ph"] in "be":
            key = event["pid"], event["cat"], event["id2"]["local"]
            if event["ph"] == "b":
                assert under_way.setdefault(key, event["ts"]) == event["ts"]
            else:
                assert under_way.pop(key) <= event["ts"]
    assert under_way == {}


# What it says -------------------------------------------------------------------------------------


def spans(events, card, row, *names):
    return [
        e
        for e in events
        if e.card == card and e.row.startswith(row) and (not names or e.name in names)
    ]


def length(some):
    return sum(event.until - event.at for event in some)


@pytest.mark.parametrize("card", [0, 1])
def test_sums_are_those_of_the_statistics(run, events, card):
    said = run[2]["cards"][card]
    up, down = (spans(events, card, f"PCIe link {way}") for way in ("from", "to"))
    assert len(up) == said["from_card"]["tlps"] and len(down) == said["to_card"]["tlps"]
    for found, stated in ((up, said["from_card"]), (down, said["to_card"])):
        assert sum(e.arguments["bytes"] for e in found) == stated["bytes"]
        # Times in the file are whole picoseconds.
        busy = stated["link_utilisation"] * run[2]["simulated_ns"] * 1000
        assert length(found) == pytest.approx(busy, abs=len(found))
    written = spans(events, card, "writes in host") + [
        e for e in spans(events, card, "queue entries") if e.name != "interrupt"
    ]
    assert len(written) == said["from_card"]["writes"]
    assert len([e for e in down if e.name == "write"]) == said["to_card"]["bar_writes"]
    assert len([e for e in down if e.name == "completion"]) == said["to_card"]["completions"]
    assert len([e for e in events if e.card == card and e.name == "read of host memory"]) == (
        2 * said["from_card"]["reads"]
    )


@pytest.mark.parametrize("card", [0, 1])
def test_waits_are_those_of_the_statistics(run, events, card):
    said, period = run[2]["cards"][card], 8000
    credit = length(spans(events, card, "wait: writes for credit", "no credit")) + length(
        spans(events, card, "wait: reads for credit", "no credit")
    )
    assert credit == pytest.approx(1000 * said["from_card"]["credit_wait_ns"], abs=1)
    not_ready = length(spans(events, card, "wait: the card until"))
    assert not_ready == said["from_card"]["not_ready_cycles"] * period
    not_taken = length(spans(events, card, "wait: a TLP until"))
    assert not_taken == said["to_card"]["stalled_cycles"] * period
    memory = [e for e in events if e.card == card and e.name == "wait: memory"]
    waited = sum((1 if e.phase == "e" else -1) * e.at for e in memory)
    assert waited == pytest.approx(1000 * said["from_card"]["memory_wait_ns"], abs=1)
    if card == 0:
        assert credit > 0
    else:
        assert not_ready > 0 and waited > 0


def test_stop_lasts_as_long_as_the_cable_says_it(events):
    for card in (0, 1):
        for channel in ("CONTROL", "BULK"):
            stop = spans(events, card, f"wait: STOP of {channel}")[0]
            assert 0 < stop.at - 1_000_000_000 < 300 * 8000
            # A flow word says STOP at least every 256 words, GO comes with the next one.
            assert abs(stop.until - stop.at - 20_000_000) < 300 * 8000


def test_each_packet_is_received_one_cable_later(events):
    for sender, channel in ((0, "BULK"), (1, "CONTROL")):
        sent = spans(events, sender, f"sends on {channel}")
        heard = spans(events, 1 - sender, f"receives on {channel}")
        assert len(sent) == len(heard) > 100
        delays = {b.until - a.until for a, b in zip(sent, heard)}
        assert len(delays) == 1 and delays.pop() > 0
        assert [e.arguments for e in sent] == [e.arguments for e in heard]


def test_events_of_the_control_program_are_in_order_and_after_their_cause(events):
    for card in (0, 1):
        program = spans(events, card, "control program")
        assert [e.at for e in program] == sorted(e.at for e in program)
        commands = [e.at for e in program if e.name == "COMMAND"]
        bells = [
            e.at
            for e in spans(events, card, "writes of BAR 0", "doorbell")
            if e.arguments.get("command") in ("ENDPOINT_OPEN", "REGION_ADD", "REGION_REMOVE")
        ]
        assert len(commands) == len([e for e in program if e.name == "COMPLETION"]) or commands
        assert commands[0] > bells[0]
        # A command is taken within microseconds: the clock of the ring is that of the file.
        assert commands[0] - bells[0] < 20_000_000


def test_threads_do_not_change_the_file(tmp_path):
    files = []
    for threads in ("1", "2"):
        path = tmp_path / threads
        measured(["--threads", threads, "--timeline", str(path)])
        files.append(path.read_bytes())
    assert files[0] == files[1]


# One transfer -------------------------------------------------------------------------------------


def test_the_stages_of_a_transfer_follow_each_other_and_fill_its_time(run, tmp_path):
    picture = tmp_path / "put.svg"
    code, out, err = dibber("timeline", run[0], "--transfer", "1", "--svg", picture, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["transfer"]["command"] == "PUT" and told["transfer"]["node"] == 1
    assert sum(s["nanoseconds"] for s in told["stages"]) == pytest.approx(told["nanoseconds"])
    assert [s["name"] for s in told["stages"]][:3] == [
        "call",
        "doorbell on PCIe",
        "prepares the read",
    ]
    first = picture.read_bytes()
    assert b"<svg" in first
    dibber("timeline", run[0], "--transfer", "1", "--svg", picture)
    assert picture.read_bytes() == first


def test_a_get_has_its_request_and_the_other_cards_read(tmp_path):
    path = tmp_path / "get.json"
    session.measure(
        profile.load("gen2x4"),
        1,
        latency.points(series=("fastpath-get",), rounds=4),
        options=["--timeline", str(path)],
        kind=latency.PROGRAM,
    )
    gets = [one for one in transfer.transfers(str(path)) if one.command == "GET"]
    one = gets[-1]
    stages = transfer.stages(transfer.Scene(str(path), one))
    assert len(gets) == 4 and one.alone
    assert ("reads host memory", 1) in [(s.name, s.card) for s in stages]
    assert stages[-1].end >= one.end


# What goes wrong ----------------------------------------------------------------------------------


@pytest.mark.fault
def test_the_file_of_a_killed_simulator_can_be_read(tmp_path):
    path = tmp_path / "cut.json"
    with pytest.raises(SimulatorError, match="code -9"):
        with Pair(
            profile.load("gen2x4"), participants=0, options=["--timeline", str(path)]
        ) as pair:
            pair.process.kill()
            pair.process.wait()
    assert list(trace.read(str(path))) == []
    event = '{"ph":"i","pid":1,"name":"slot","ts":1.5,"tid":10,"args":{}}'
    with open(path, "a", encoding="ascii") as file:
        file.write(f",\n{event},\n{event[:20]}")
    (event,) = trace.read(str(path))
    assert (event.at, event.card, event.row) == (1_500_000, 0, "writes of BAR 0 by the CPU")


@pytest.mark.fault
def test_a_full_disk_ends_the_file_and_not_the_run():
    with pytest.raises(SimulatorError, match="timeline /dev/full: No space left"):
        with Pair(profile.load("gen2x4"), participants=0, options=["--timeline", "/dev/full"]):
            pass


@pytest.mark.fault
def test_a_file_that_cannot_be_made_ends_the_command_before_anything_is_measured(tmp_path):
    code, out, err = dibber(
        *("bench", "latency", "--quick", "--timeline", tmp_path / "none" / "x", "--out", tmp_path)
    )
    assert (code, out) == (1, "") and "none/x: No such file or directory" in err
