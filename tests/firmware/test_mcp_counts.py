"""The program's counts of its duties, for `dibber fw top`. The hardware's counts are tested with
the hardware.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import FLAG, OPCODE, SHARED, STATUS, TRACE

from tests.firmware.mcp_native import atomic, get, put, walk
from tests.firmware.mcp_wire import WiredCard


@pytest.fixture
def wired():
    return WiredCard()


def events(card, name):
    """Number of entries of one kind in its trace."""
    at = SHARED["events"].offset + 4 * getattr(TRACE, name)
    return int.from_bytes(bytes(card.shared_bytes)[at : at + 4], "little")


def test_each_put_is_gathered_once_and_has_its_checksum_once(wired):
    wired.ring(
        1,
        *[
            put(
                cookie=n,
                length=8 * (n + 1),
                source=walk(8 * (n + 1)),
                target=walk(8 * (n + 1)),
                flags=FLAG.CHECKSUM * (n % 2),
            )
            for n in range(6)
        ],
    )
    wired.settle()
    assert wired.statuses == dict.fromkeys(range(6), STATUS.OK)
    assert (events(wired, "JOB"), wired.shared("checksums"), wired.shared("messages")) == (6, 3, 0)


def test_what_is_gathered_again_is_counted_again(wired):
    first = [3]  # packet that is lost once
    wired.lose = lambda packet: packet.index in first and not first.clear()
    wired.ring(1, put(cookie=0, length=8 * 4096, source=walk(8 * 4096), target=walk(8 * 4096)))
    wired.settle()
    assert wired.statuses == {0: STATUS.OK} and (events(wired, "JOB"), events(wired, "REPLAY")) == (
        2,
        1,
    )


def test_requests_and_replies_are_messages(card):
    card.ring(1, get(length=8, target=walk(8, key=0x305)), atomic())
    card.step()
    assert card.shared("messages") == len(card.express) == 2


def test_regions_that_are_entered_are_counted_and_refused_ones_are_not(card):
    for key in (0x101, 0x102, 0x101):
        card.administrate(OPCODE.REGION_ADD, key=key, base=0x1000, length=64, rights=1, endpoint=1)
    assert card.shared("regions") == 2 and events(card, "OPEN") == 1
