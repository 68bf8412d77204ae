"""The profiles' table of what calls cost the CPU, against callgrind: no entry may be more than a
tenth too low.

Work on any card is counted. Work for a simulator is not: messages to the clock, and a write through
a socket, which is a store for a card in a slot.
"""

# SPDX-License-Identifier: BSD-2-Clause

import tomllib

import pytest
from dibber_cli import paths

from tests.software import callgrind

COUNT = 200
PER_NS = 4.5  # instructions; the tables are computed with it
SHARE = 0.9  # of callgrind's, at least

# Kind of call_cost.c: (function, key of the table [cpu], callees that are charged separately).
KINDS = {
    "put": ("dib_put", "put_ns", ()),
    "put-inline": ("dib_put_inline", "put_ns", ()),
    "get": ("dib_get", "put_ns", ()),
    "put-one-level": ("dib_put_strided", "put_strided_ns", ()),
    "put-three-levels": ("dib_put_strided", "put_strided_ns", ()),
    "poll-empty": ("dib_poll", "poll_empty_ns", ()),
    "poll-entry": ("dib_poll", "poll_entry_ns", ()),
    "poll-events": ("dib_poll_events", "poll_entry_ns", ()),
    "send-inline": ("dib_mailbox_send", "mailbox_send_ns", ()),
    "send-copied": ("dib_mailbox_send", "mailbox_send_ns", ("memcpy",)),
    "receive": ("dib_mailbox_receive", "mailbox_receive_ns", ("memcpy", "dib_issue_inline")),
    "mailbox-empty": ("dib_mailbox_receive", "mailbox_empty_ns", ()),
}
PLAYED = {
    "poll-entry": "put",
    "send-inline": "pass-inline",
    "send-copied": "pass-copied",
    "receive": "pass-copied",
}

SIMULATOR = {"dib_charge", "dib_clock_catch_up", "dib_write_register", "dib_vfio_serve"}
SOCKET = ("vfio_user_submit", "dib_vfio_send_bytes")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return callgrind.build("call_cost.c", tmp_path_factory.mktemp("cost") / "call_cost")


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_is_charged_too_little(serve, image, program, tmp_path, figure, kind):
    function, key, apart = KINDS[kind]
    command = [program, serve().uri, image(), PLAYED.get(kind, kind), str(COUNT)]
    profile = callgrind.run(tmp_path, command, function)
    left_out = sum(
        cost
        for (caller, callee), (_, cost) in profile.edges.items()
        if callee in SIMULATOR
        or (caller, callee) == SOCKET
        or any(name in callee for name in apart)
    )
    instructions = (profile.total - left_out) / COUNT
    assert 10 < instructions < 1000
    figure(f"instructions-{kind}", round(instructions, 1), f"instructions of {function}() ({kind})")
    for path in sorted(paths.PROFILES.glob("*.toml")):
        charged = tomllib.loads(path.read_text())["cpu"][key]
        assert charged >= SHARE * instructions / PER_NS, (
            f"{path.name}: {key} = {charged}, {instructions / PER_NS:.1f} were counted"
        )
