"""Paged regions on a mock: the page table has the address of each page, and the region's end frees
pages and table.
"""

# SPDX-License-Identifier: BSD-2-Clause

import struct

import libdibber
import numpy as np
import pytest
from dibber.interface.description import STATUS

from tests.software.expect import fails

ABSENT = 1


def pages_of(memory, shift, order):
    """Pages of an array in an order; None for absent pages."""
    size = 1 << shift
    return [None if n is None else memory[n * size : (n + 1) * size] for n in order]


def table_of(mock, region, count):
    """(command, entries) as the card got them, the rest of the last line of 64 bytes with them."""
    command = mock.device.regions[region.key]
    entries = -(-count // 8) * 8
    return command, struct.unpack(
        f"<{entries}Q", mock.server.read_memory(command["base"], 8 * entries)
    )


@pytest.mark.parametrize("shift", [12, 16])
def test_the_table_says_where_each_page_is(loaded, shift):
    mock = loaded()
    order = [5, 2, None, 3, 4, 0, 7, None, 1, 6]
    size = 1 << shift
    memory = libdibber.alloc(8 * size)
    memory[:] = np.arange(8 * size) // 64 % 251
    with mock.endpoint.register_pages(
        pages_of(memory, shift, order), shift, first=100, length=10 * size - 200
    ) as region:
        command, entries = table_of(mock, region, len(order))
        assert (command["page"], command["first"], command["length"]) == (
            shift,
            100,
            10 * size - 200,
        )
        assert command["base"] % 64 == 0 and entries[len(order) :] == (ABSENT,) * 6
        for n, entry in zip(order, entries):
            if n is None:
                assert entry == ABSENT
            else:
                assert entry % size == 0
                assert mock.server.read_memory(entry, size) == bytes(
                    memory[n * size : (n + 1) * size]
                )
        assert len({entry for entry in entries if entry != ABSENT}) == 8


def test_pages_that_follow_each_other_are_mapped_together(loaded):
    mock = loaded()
    memory = libdibber.alloc(64 << 12)
    before = len(mock.server.mappings)
    with mock.endpoint.register_pages(pages_of(memory, 12, [*range(32, 64), *range(32)]), 12):
        assert len(mock.server.mappings) == before + 3  # two runs and the table
    assert len(mock.server.mappings) == before


def test_bus_addresses_are_taken_as_they_are(loaded):
    mock = loaded()
    wanted = [3 << 40, 1 << 21, ABSENT, 7 << 21]
    with mock.endpoint.register_pages(wanted, 21) as region:
        command, entries = table_of(mock, region, len(wanted))
        assert list(entries) == wanted + [ABSENT] * 4 and command["length"] == 4 << 21


@pytest.mark.parametrize(
    "pages, shift, how, reason",
    [
        ([1 << 20], 11, {}, "pages of 2^11 bytes"),
        ([1 << 40], 31, {}, "pages of 2^31 bytes"),
        ([1 << 15], 16, {}, "page 0 has the bus address 0x8000"),
        ([1 << 20, 1 << 63], 12, {}, "page 1 has the bus address"),
        ([1 << 20], 12, dict(length=0), "a region of 0 bytes"),
        ([1 << 20], 12, dict(first=1, length=4096), "4096 bytes from byte 1"),
        ([1 << 20] * 2, 12, dict(first=4096, length=1), "1 bytes from byte 4096"),
    ],
)
def test_what_makes_no_sense_is_refused(loaded, pages, shift, how, reason):
    mock = loaded()
    with fails("ARGUMENT", reason):
        mock.endpoint.register_pages(pages, shift, **how)


def test_a_page_in_memory_begins_at_a_page(loaded):
    mock = loaded()
    memory = libdibber.alloc(2 << 12)
    with fails("ARGUMENT", "page 0 begins at"):
        mock.endpoint.register_pages([memory[8 : 8 + 4096]], 12)


def test_what_was_mapped_goes_when_the_command_fails(loaded):
    mock = loaded()
    memory = libdibber.alloc(8 << 12)
    before = len(mock.server.mappings)
    mock.device._administer = lambda command: STATUS.IN_USE
    with fails("COMMAND", "registering memory"):
        mock.endpoint.register_pages(pages_of(memory, 12, [3, 1, 0]), 12)
    assert len(mock.server.mappings) == before
