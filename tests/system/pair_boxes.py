"""Steps of a side of a Pair with a mailbox."""

# SPDX-License-Identifier: BSD-2-Clause

from libdibber import DibberError
from libdibber.mailbox import ROOM

from tests.system.pair import SECOND, STAY

SIZES = dict(slots=4, slot_bytes=128, max_length=4096)
GIVES_UP = 41 * 10**9  # ps: a transfer to a card that cannot be reached ends after 40 ms


def open_box(side):
    side.box = side.endpoint.mailbox(**SIZES)
    return side.box.address()


def connect_box(side, address):
    side.box.connect(address)
    return side.box.address()


def say(side, data):
    return side.box.send(data)


def hear(side):
    assert side.box.wait(timeout_ns=SECOND)
    return side.box.receive()


def wait_beside(side):
    """Let time go on by a wait of the endpoint, which does nothing for the mailbox. It does not
    wait while an event of the mailbox is there.
    """
    side.endpoint.wait(STAY)


def wait_for_room(side):
    side.box.wait(ROOM, timeout_ns=STAY)


def send_until_told(side, pause=wait_beside):
    """Only send: the error's name, and the picoseconds until it came.

    A send that finds no room takes 52 ns, so 40 ms would be 770,000 of them. `pause` lets time go
    on between two sends.
    """
    begin = side.endpoint.clock().now_ps
    try:
        while side.endpoint.clock().now_ps - begin < 3 * GIVES_UP:
            if not side.box.send(b"is anybody there?"):
                pause(side)
    except DibberError as error:
        return error.name, side.endpoint.clock().now_ps - begin
