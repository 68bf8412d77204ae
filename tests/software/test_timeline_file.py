"""`dibber timeline` on files: what it takes for a transfer that ran alone, and what it refuses."""

# SPDX-License-Identifier: BSD-2-Clause

import json

import pytest
from dibber_cli.timeline import transfer


def event(phase, card, row, name, at, **more):
    return {"ph": phase, "pid": card + 1, "tid": row, "name": name, "ts": at, **more}


BAR, QUEUES = 10, 25
ROWS = {BAR: "writes of BAR 0 by the CPU", QUEUES: "queue entries and interrupts"}


@pytest.fixture
def file(tmp_path):
    """file(events): the path of a timeline that has them."""

    def write(events):
        names = [
            event("M", card, row, "thread_name", 0, args={"name": name})
            for card in range(2)
            for row, name in ROWS.items()
        ]
        path = tmp_path / "run.json"
        lines = ",\n".join(json.dumps(one) for one in [*names, *events])
        path.write_text(f"[\n{lines}\n]\n", encoding="ascii")
        return str(path)

    return write


def put(card, cookie, begin, end):
    told = {"endpoint": 1, "cookie": cookie, "node": 1 - card, "length": 8}
    return [
        event("i", card, BAR, "doorbell", begin, args={**told, "command": "PUT"}),
        event("i", card, QUEUES, "completion", end, args=told),
    ]


def test_a_transfer_is_alone_if_nothing_was_under_way_when_it_began(file):
    path = file([*put(0, 0, 1, 3), *put(0, 1, 2, 5), *put(0, 2, 6, 9), *put(0, 3, 7, 8)])
    assert [one.alone for one in transfer.transfers(path)] == [True, False, True, False]


def test_a_transfer_is_not_alone_if_the_other_card_begins_before_its_end(file):
    path = file([*put(0, 0, 1, 4), *put(1, 0, 2, 3), *put(0, 1, 5, 6)])
    assert [one.alone for one in transfer.transfers(path)] == [False, False, True]
    assert transfer.chosen(path, 0)[0].cookie == 1


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "is no timeline"),
        ("{}\n", "is no timeline"),
        ("[\nnonsense\n]\n", "line 2"),
        ('[\n{"ph":"X"}\n]\n', "is no timeline"),
        ("[\n[]\n]\n", "is no timeline"),
        ('[\n{"ph":"i","pid":1,"ts":1e999,"name":"doorbell"}\n]\n', "is no timeline"),
        (
            '[\n{"ph":"i","pid":1,"ts":1,"name":"doorbell","args":{"command":"PUT"}}\n]\n',
            "is no timeline",
        ),
        ("[\n\xff\n]\n", "is no timeline"),
        ("[\n]\n", "no put or get that began alone"),
    ],
)
def test_a_file_of_another_kind_is_refused(run, tmp_path, text, reason):
    path = tmp_path / "odd"
    path.write_bytes(text.encode("latin-1"))
    code, out, err = run("timeline", path)
    assert (code, out) == (1, "") and reason in err


def test_a_missing_file_and_a_number_that_is_too_high_are_told(run, file, tmp_path):
    assert "cannot be read" in run("timeline", tmp_path / "none")[2]
    path = file(put(0, 0, 1, 2))
    code, _, err = run("timeline", path, "--transfer", "2")
    assert code == 1 and "1 transfers that began alone, not 2" in err
    # What is around the transfer is not in this file.
    code, _, err = run("timeline", path)
    assert code == 1 and "has no doorbell at the card" in err
