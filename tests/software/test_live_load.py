"""The view of a program when its control program is halted or replaced, by itself or by another
process.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import select
import struct

import libdibber
import pytest
from dibber.interface.description import HOST, MCP_STATE, OPCODE, RIGHT, STATUS, C

from tests.software.expect import fails
from tests.software.mock_vfio_user import Server

NOP = bytes([OPCODE.NOP]).ljust(C.SLOT_BYTES, b"\0")
RIGHTS = RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE
MINUTE = (
    60 * 10**9
)  # ns: without a clock a wait may last as long as the machine is busy with others


def load_beside(device):
    """The work of another program that loads the card: it does not know this program's queues."""
    device.registers[HOST["ADMIN_CQ_ENTRIES"].offset] = 0
    device._run(False)
    device._run(True)


def arrived(mock):
    """Wait until posted writes have come to the card: an answer comes behind them."""
    mock.card.read_register("SCRATCH")


def taken(endpoint, count):
    """So many completions, a few at a time."""
    found = []
    while len(found) < count:
        assert endpoint.wait(MINUTE)
        found += endpoint.poll(7)
    return found


def notice(mock, endpoint=None):
    """Notice the halt: with a clock within two milliseconds."""
    with fails("HALTED", "endpoint"):
        (endpoint or mock.endpoint).wait(2_000_000 if mock.device.joined else MINUTE)


@pytest.fixture(params=["clock", "no clock"])
def mock(loaded, request):
    return loaded(clock=request.param == "clock")


HOW = {
    "loaded by itself": lambda mock, image: mock.card.load_firmware(image()),
    "loaded beside it": lambda mock, image: load_beside(mock.device),
    "trapped": lambda mock, image: mock.device.halt(),
}


@pytest.mark.parametrize("how", HOW)
def test_what_was_under_way_ends_with_a_status_after_what_had_ended(mock, image, how):
    endpoint = mock.endpoint
    for tag in range(5):
        endpoint.submit(NOP, tag)
    arrived(mock)
    mock.device.silent = True
    for tag in range(5, C.SLOTS):
        endpoint.submit(NOP, tag)
    arrived(mock)
    mock.device.silent = False
    HOW[how](mock, image)
    ended = taken(endpoint, C.SLOTS)
    assert [done.tag for done in ended] == list(range(C.SLOTS)), "the oldest first"
    assert [done.status for done in ended] == [STATUS.OK] * 5 + [STATUS.HALTED] * (C.SLOTS - 5)

    region = libdibber.alloc(4096)
    for call in (
        endpoint.wait,
        endpoint.poll,
        endpoint.poll_events,
        lambda: endpoint.submit(NOP),
        lambda: endpoint.put_inline(b"12345678", 1, 0, node=1),
        lambda: endpoint.put(1, 0, 1, 0, 8, node=1),
        lambda: endpoint.get(1, 0, 1, 0, 8, node=1),
        lambda: endpoint.fetch_add(1, 0, 1, node=1),
        lambda: endpoint.register(region, RIGHTS),
        endpoint.mailbox,
    ):
        with fails("HALTED", "halted"):
            call()


@pytest.mark.fault
def test_what_was_under_way_ends_when_the_card_was_reset_under_its_users(mock):
    arrived(mock)
    mock.device.silent = True
    for tag in range(3):
        mock.endpoint.submit(NOP, tag)
    arrived(mock)
    mock.device._run(False)
    mock.device.halts = 0  # it counts from 0 again
    assert [(done.tag, done.status) for done in taken(mock.endpoint, 3)] == [
        (tag, STATUS.HALTED) for tag in range(3)
    ]
    notice(mock)
    mock.device.silent = False


@pytest.mark.parametrize("how", ["loaded by itself", "loaded beside it"])
def test_what_is_opened_again_works_and_old_handles_harm_nobody(mock, image, how):
    old = mock.endpoint.register(libdibber.alloc(4096), RIGHTS)
    HOW[how](mock, image)
    with fails("IN_USE", "endpoint 1 is open already"):
        mock.card.endpoint(1)
    second = mock.card.endpoint(2)
    assert mock.device.queues.keys() == {0, 2}
    region = second.register(libdibber.alloc(4096), RIGHTS)
    assert mock.device.regions.keys() == {region.key} and region.key != old.key
    before = len(mock.device.commands)
    old.close()
    mock.endpoint.close()
    assert len(mock.device.commands) == before, "that program never knew them"
    mock.endpoint = mock.card.endpoint(1)
    for endpoint in (mock.endpoint, second):
        endpoint.submit(NOP, 77)
        assert endpoint.wait() and [(done.tag, done.status) for done in endpoint.poll()] == [
            (77, STATUS.OK)
        ]
    region.close()
    second.close()


def test_after_many_loads_there_is_always_a_way_on(mock, image):
    for n in range(300):  # halts are counted modulo 256
        HOW["loaded beside it" if n % 2 else "loaded by itself"](mock, image)
        if n % 60:
            continue
        notice(mock)
        mock.endpoint.close()
        mock.endpoint = mock.card.endpoint(1)
        mock.endpoint.submit(NOP)
        assert mock.endpoint.wait() and mock.endpoint.poll()[0].status == STATUS.OK


def test_one_that_trapped_is_asked_for_nothing_until_one_is_loaded(mock, image):
    mock.device.halt(MCP_STATE.WATCHDOG)
    notice(mock)
    with fails("NO_FIRMWARE", "does not run any more (WATCHDOG)"):
        mock.card.endpoint(2)
    mock.endpoint.close()
    load_beside(mock.device)
    mock.endpoint = mock.card.endpoint(1)


def test_a_command_of_the_librarys_own_that_a_load_swallowed_says_so(mock):
    mock.device.on_ring = lambda: load_beside(mock.device)
    with fails("HALTED", "another control program was loaded meanwhile"):
        mock.card.endpoint(2)
    mock.device.on_ring = lambda: None
    mock.card.endpoint(2).close()


def test_a_program_that_was_loaded_beside_a_handle_that_loaded_none(serve, image):
    mock = serve()
    with libdibber.Card(mock.uri) as card:
        with fails("NO_FIRMWARE", "load a control program"):
            card.endpoint(1)
        load_beside(mock.device)
        with card.endpoint(1) as endpoint:
            endpoint.submit(NOP)
            assert endpoint.wait() and endpoint.poll()[0].status == STATUS.OK


def test_a_program_that_only_polls_finds_out_too(mock, image):
    mock.card.load_firmware(image())
    with fails("HALTED", "endpoint 1"):
        for _ in range(5000):
            assert mock.endpoint.poll() == []


def test_endpoint_zero_is_told_as_well(mock, image):
    zero = mock.card.endpoint(0)
    mock.device.silent = True
    for tag in range(3):
        zero.submit(NOP, tag)
    arrived(mock)
    mock.device.silent = False
    load_beside(mock.device)
    mock.card.endpoint(3).close()
    assert [(done.tag, done.status) for done in taken(zero, 3)] == [
        (tag, STATUS.HALTED) for tag in range(3)
    ]
    notice(mock, zero)
    zero.close()
    with mock.card.endpoint(0) as zero:
        zero.submit(NOP)
        assert zero.wait() and zero.poll()[0].status == STATUS.OK


def test_a_mailbox_says_so_and_closes(mock, image):
    mailbox = mock.endpoint.mailbox()
    mailbox.connect(mailbox.address())
    mailbox.send(b"never read")
    mock.card.load_firmware(image())
    with fails("HALTED", "endpoint 1"):
        for _ in range(100):
            mailbox.wait()
            mailbox.receive()
    for call in (mailbox.receive, mailbox.wait, mailbox.address, lambda: mailbox.send(b"x")):
        with fails("HALTED", "endpoint 1"):
            call()
    mailbox.close()


def sleep(fd):
    """Wait for the card's interrupt, and read it."""
    assert select.select([fd], [], [], 10)[0] == [fd]
    os.read(fd, 8)


LOOKS = {
    "completions": lambda endpoint: endpoint.poll(),
    "events": lambda endpoint: endpoint.poll_events(),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("how", HOW)
def test_a_sleeper_on_a_descriptor_is_woken_and_the_first_poll_tells_why(mock, image, how, look):
    fd, look = mock.endpoint.event_fd(), LOOKS[look]
    assert look(mock.endpoint) == [] and not select.select([fd], [], [], 0)[0]
    HOW[how](mock, image)
    sleep(fd)
    with fails("HALTED", "halted"):
        look(mock.endpoint)
    sleep(fd)
    sleep(fd)  # no program sleeps for ever at an endpoint that has ended


def test_a_woken_program_takes_completed_commands_and_halted_ones(mock):
    fd = mock.endpoint.event_fd()
    assert mock.endpoint.poll() == []
    mock.endpoint.submit(NOP, 1)
    arrived(mock)
    mock.device.silent = True
    mock.endpoint.submit(NOP, 2)
    arrived(mock)
    load_beside(mock.device)
    sleep(fd)
    assert [(done.tag, done.status) for done in mock.endpoint.poll(1)] == [(1, STATUS.OK)]
    assert [(done.tag, done.status) for done in mock.endpoint.poll(1)] == [(2, STATUS.HALTED)]
    with fails("HALTED", "halted"):
        mock.endpoint.poll(1)


def test_each_interrupt_costs_one_look_at_the_halts_and_looks_without_none(mock):
    fd = mock.endpoint.event_fd()
    assert mock.endpoint.poll() == [], "from now on it is known what was before the descriptor"
    reads = []
    bar_read, mock.device.bar_read = (
        mock.device.bar_read,
        lambda *access: reads.append(access) or bar_read(*access),
    )
    for n in range(3):
        for _ in range(3):
            assert mock.endpoint.poll() == [] and mock.endpoint.poll_events() == []
        assert len(reads) == n
        os.write(mock.device.vectors[1], struct.pack("<Q", 1))
        if n % 2:
            sleep(fd)


def test_a_halt_before_the_descriptor_is_found_by_the_first_look(mock):
    load_beside(mock.device)
    mock.endpoint.event_fd()
    with fails("HALTED", "halted"):
        mock.endpoint.poll()


def test_a_mailbox_that_sleeps_is_woken_as_well(mock):
    fd = mock.endpoint.event_fd()
    mailbox = mock.endpoint.mailbox()
    mailbox.connect(mailbox.address())
    assert mailbox.receive() is None
    load_beside(mock.device)
    sleep(fd)
    with fails("HALTED", "endpoint 1"):
        mailbox.receive()
    mailbox.close()


# Beside it ----------------------------------------------------------------------------------------


class Bar:
    """The part of a mock card for observers."""

    def __init__(self, device):
        self.device, self.vectors, self.config = device, {}, bytearray(256)
        self.bar_read, self.bar_write = device.bar_read, device.bar_write

    def reset(self):
        pass


@pytest.fixture
def observed(loaded):
    mock = loaded()
    server = Server(
        f"{mock.server.path}.admin",
        Bar(mock.device),
        C.BAR0_SIZE,
        C.CLOCK_MESSAGE,
        offers_clock=False,
    )
    yield mock
    server.stop()


def test_an_observer_reads_loads_and_opens_nothing(observed, image):
    mock = observed
    rings = len(mock.device.doorbells)
    with libdibber.Card(mock.uri, observe=True) as watcher:
        assert (
            watcher.info()["simulated_clock"] == 0 and watcher.info()["mcp_state"] == MCP_STATE.IDLE
        )
        for call in (lambda: watcher.endpoint(2), lambda: watcher.scout(0)):
            with fails("IN_USE", "observes the card"):
                call()
        with fails("IN_USE", "the control program runs"):
            watcher.set_node(3)
        watcher.load_firmware(image(identity=0xD1BB0001))
        assert len(mock.device.doorbells) == rings
        assert mock.device.get("ADMIN_CQ_ENTRIES") == 0 and not any(mock.device.slots[0])
    notice(mock)
    mock.endpoint.close()
    mock.endpoint = mock.card.endpoint(1)
    mock.endpoint.submit(NOP)
    assert mock.endpoint.wait() and mock.endpoint.poll()[0].status == STATUS.OK


def test_without_observers_socket_it_is_the_only_user(serve):
    mock = serve()
    with libdibber.Card(mock.uri, observe=True) as card:
        assert card.info()["simulated_clock"] == 1
