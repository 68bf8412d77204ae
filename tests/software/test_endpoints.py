"""Endpoints and registered memory on a mock: limits, refusals, closing in any order."""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import HOST, MCP_STATE, STATUS, C

from tests.software.expect import fails, matrix


@pytest.mark.parametrize("number", [8, 99])
def test_an_endpoint_that_cannot_be(loaded, number):
    with fails("ARGUMENT", "0 to 7"):
        loaded().card.endpoint(number)


def test_an_endpoint_that_this_card_does_not_have(serve, image):
    mock = serve()
    mock.device.registers[HOST["GEOMETRY"].offset] ^= C.ENDPOINTS ^ 4
    with libdibber.Card(mock.uri) as card:
        assert card.info()["endpoints"] == 4
        card.load_firmware(image())
        for number in (4, 7):
            with fails("ARGUMENT", f"endpoint {number}: this card has 0 to 3"):
                card.endpoint(number)
            with fails("ARGUMENT", f"endpoint {number} of 4"):
                card.read_doorbell(number, "COMMAND_HEAD")
        card.endpoint(3).close()
    assert all(offset < C.ENDPOINT_BASE + 4 * C.ENDPOINT_STRIDE for offset, _ in mock.device.writes)


def test_an_endpoint_twice(loaded):
    with fails("IN_USE", "endpoint 1 is open"):
        loaded().card.endpoint(1)


@pytest.mark.parametrize(
    "options, reason",
    [
        (dict(cq_entries=16), "from 32"),
        (dict(cq_entries=33), "33"),
        (dict(eq_entries=3), "3 entries"),
        (dict(eq_entries=1 << 17), "131072"),
    ],
)
def test_queue_lengths(loaded, options, reason):
    with fails("ARGUMENT", reason):
        loaded().card.endpoint(2, **options)


def test_the_control_program_refuses(loaded):
    mock = loaded()
    mock.device._administer = lambda command: STATUS.IN_USE
    with fails("COMMAND", "IN_USE"):
        mock.card.endpoint(2)
    with fails("COMMAND", "registering memory: IN_USE"):
        mock.endpoint.register(matrix(2, 2))
    del mock.device._administer
    mock.card.endpoint(2).close()


def test_a_control_program_that_is_silent(loaded):
    mock = loaded()
    mock.device.silent = True
    with fails("TIMEOUT", "no answer from the control program"):
        mock.endpoint.register(matrix(2, 2))
    with fails("NO_FIRMWARE", "load a control program"):
        mock.card.endpoint(2)


@pytest.mark.parametrize("rights", [0, 16, 0x101])
def test_rights_that_do_not_exist(loaded, rights):
    with fails("ARGUMENT", "rights"):
        loaded().endpoint.register(matrix(2, 2), rights)


def test_all_regions_in_use_then_one_freed(loaded):
    mock = loaded()
    memory = matrix(2, 2)
    regions = [mock.endpoint.register(memory) for _ in range(C.REGIONS)]
    assert len({r.key for r in regions}) == C.REGIONS
    with fails("LIMIT", "64 regions"):
        mock.endpoint.register(memory)
    old = regions.pop()
    old.close()
    new = mock.endpoint.register(memory)
    assert new.key % C.REGIONS == old.key % C.REGIONS and new.key != old.key


def test_a_key_is_not_given_twice(loaded):
    mock, keys = loaded(), set()
    for _ in range(20):
        with mock.endpoint.register(matrix(2, 2)) as region:
            keys.add(region.key)
    assert len(keys) == 20 and 0 not in keys


def registered(mock, image, count):
    """The keys of so many regions of a handle of its own."""
    with libdibber.Card(mock.uri) as card:
        card.load_firmware(image)
        with card.endpoint(1) as endpoint:
            memory = matrix(2, 2)
            regions = [endpoint.register(memory) for _ in range(count)]
            keys = [region.key for region in regions]
            for region in regions:
                region.close()
    return keys


@pytest.mark.fault
def test_a_key_is_not_given_again_by_another_handle_or_under_another_program(serve, image):
    mock, keys = serve(), []
    for count in (3, C.REGIONS, 1, C.REGIONS, 2):
        keys += registered(mock, image(), count)
    assert len(set(keys)) == len(keys) and 0 not in keys


@pytest.mark.fault
def test_the_first_key_after_power_on_is_drawn_at_random(serve, image):
    """Each bit is as often 1 as 0, within six standard deviations, and no key comes twice."""
    mock, path, count = serve(), image(), 150
    keys = []
    for _ in range(count):
        mock.device.lose_power()
        keys += registered(mock, path, 1)
    assert len(set(keys)) == count
    assert all(
        abs(sum(key >> bit & 1 for key in keys) - count / 2) < 6 * (count / 4) ** 0.5
        for bit in range(32)
    )


@pytest.mark.fault
def test_keys_that_are_used_up_do_not_come_again(serve, image):
    mock = serve()
    mock.device.drawn = True
    (
        mock.device.registers[HOST["KEY_NEXT"].offset],
        mock.device.registers[HOST["KEYS_LEFT"].offset],
    ) = 2**32 - 2, 5
    assert registered(mock, image(), 4) == [2**32 - 2, 2**32 - 1, 1, 2]  # 0 is no key
    with fails("LIMIT", "all keys of this card are used up"):
        registered(mock, image(), 1)


def test_bus_addresses_below_4_gib_unless_asked_otherwise(serve, image):
    for base in (0, 1 << 32):
        mock = serve()
        with libdibber.Card(mock.uri, iova_base=base) as card:
            card.load_firmware(image())
            with card.endpoint(1) as endpoint, endpoint.register(matrix(2, 2)) as region:
                assert (mock.device.regions[region.key]["base"] >= 1 << 32) == bool(base)


def test_an_odd_bus_address(serve):
    with fails("ARGUMENT", "multiple of 4096"):
        libdibber.Card(serve().uri, iova_base=4097)


@pytest.mark.parametrize("own_clock", [False, True])
@pytest.mark.parametrize(
    "order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2), (2, 0, 1), (0, 2, 1)]
)
def test_closing_in_any_order(serve, image, order, own_clock):
    mock = serve()
    card = libdibber.Card(mock.uri)
    card.load_firmware(image())
    endpoint = card.endpoint(1, own_clock=own_clock)
    region = endpoint.register(matrix(2, 2))
    for i in order:
        (card, endpoint, region)[i].close()
    assert mock.device.regions == {} and list(mock.device.queues) == [0]


def test_calls_after_the_card_was_closed(serve, image):
    mock = serve()
    card = libdibber.Card(mock.uri)
    card.load_firmware(image())
    endpoint = card.endpoint(1)
    card.close()
    for call in (
        lambda: endpoint.put(1, 0, 1, 0, 8, node=1),
        endpoint.poll,
        endpoint.poll_events,
        endpoint.wait,
        endpoint.event_fd,
        endpoint.clock,
        lambda: endpoint.register(matrix(2, 2)),
    ):
        with fails("CLOSED", "was closed"):
            call()
    endpoint.close()


def test_a_simulator_that_dies_is_an_error_not_a_crash(loaded):
    mock = loaded(clock=False)
    mock.server.disconnect()
    with fails("LOST", "closed the connection"):
        for _ in range(1000):
            mock.endpoint.poll()
    with fails("LOST", "closed the connection"):
        mock.card.info()


@pytest.mark.parametrize("state", ["RESET", "TRAP", "WATCHDOG"])
def test_a_control_program_that_has_stopped_is_not_waited_for(serve, image, state):
    """Neither when it has stopped before the call nor when it stops in it; the card can be loaded
    again.
    """
    mock = serve()
    stop = lambda: mock.device.halt(getattr(MCP_STATE, state))
    with libdibber.Card(mock.uri) as card:
        card.load_firmware(image())
        endpoint, before = card.endpoint(1), len(mock.device.commands)
        stop()
        with fails("NO_FIRMWARE", f"does not run any more ({state})"):
            card.endpoint(2)
        assert len(mock.device.commands) == before
        endpoint.close()
        card.load_firmware(image())
        mock.device.silent = True
        mock.device.on_ring = stop
        with fails("NO_FIRMWARE", f"does not run any more ({state})"):
            card.endpoint(2)
