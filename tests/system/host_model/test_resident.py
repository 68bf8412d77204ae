"""The simulator's memory does not grow with time: idle, under traffic, and against clients that
flood it.
"""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import os
import socket
import struct
import time

import pytest

from tests.system.host_model.resident import resident
from tests.system.host_model.vfio_client import (
    DMA_MAP,
    NO_REPLY,
    REGION_READ,
    REGION_WRITE,
    SET_IRQS,
    Client,
    Refused,
)

HIGH = 0x1_0000_0000
MS = 10**9  # ps
# One word of the cable that is kept takes 32 bytes, at a word for each cycle of 8 ns: 4 MB a
# millisecond.
GROWTH = 256 << 10
MIB = 1 << 20


def grown(simulator, step, before=1):
    """Bytes that the simulator grows by in `step()`, after it has done the same `before` times."""
    for _ in range(before):
        step()
    start = resident(simulator.process)
    step()
    return resident(simulator.process) - start


@pytest.mark.fault
@pytest.mark.parametrize(
    "arguments",
    [
        ("--cards", 1),
        (),
        ("--cards", 1, "--fault", "loopback"),
        ("--fault", "unplugged"),
        ("--ber", "1e-4"),
        ("--threads", 1),
        ("--at", "0 off card1"),
        ("--at", "0 pull cable0"),
    ],
)
def test_idle_cards_take_no_memory_as_time_goes_on(simulator, arguments):
    one = simulator("--participants", 1, *arguments)
    client = Client(one.path(0))
    assert grown(one, lambda: client.wait(deadline=10 * MS)) <= GROWTH


@pytest.mark.fault
@pytest.mark.parametrize("cards", [1, 2])
def test_traffic_takes_no_memory_as_time_goes_on(simulator, cards):
    one = simulator("--participants", 1, "--cards", cards)
    client = Client(one.path(0))
    client.bus_master()
    client.map_shared(HIGH, 4096)
    client.map_message(2 * HIGH, 4096)
    client.set_irqs([os.eventfd(0, os.EFD_NONBLOCK)])

    def traffic():
        for n in range(1500):
            client.write(0x100 + n % 1024, os.urandom(64))
            client.read(0x100, 64)
            client.write(0x80000, struct.pack("<QI", (1 + n % 2) * HIGH, n))
            client.wait(deadline=5000)

    assert grown(one, traffic) <= GROWTH


@pytest.mark.fault
def test_a_card_alone_that_no_client_drives_takes_no_memory(simulator):
    one = simulator("--participants", 0, "--cards", 1)
    assert grown(one, lambda: time.sleep(1)) <= GROWTH


def pour(client, message):
    """Send `message` for five seconds, or until the simulator takes nothing for half a second.
    Returns bytes taken.
    """
    client.socket.settimeout(0.5)
    taken = 0
    end = time.monotonic() + 5
    try:
        while taken < 512 * MIB and time.monotonic() < end:
            taken += client.socket.send(message)
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    return taken


def message(command, payload):
    return struct.pack("<HHIII", 1, command, 16 + len(payload), NO_REPLY, 0) + payload


WRITE = message(REGION_WRITE, struct.pack("<QII", 0x100, 0, 4096) + bytes(4096))
READ = message(REGION_READ, struct.pack("<QII", 0x100, 0, 65536))


@pytest.mark.fault
@pytest.mark.parametrize("flood", [WRITE, READ], ids=["writes", "reads"])
@pytest.mark.parametrize("observes", [False, True], ids=["free client", "observer"])
def test_a_client_that_floods_the_card_while_time_stands_waits_in_its_socket(
    simulator, flood, observes
):
    one = simulator("--participants", 1, "--cards", 2)
    holder = Client(one.path(0))  # runs: time stands, but for an observer's reads
    other = (
        Client(f"{one.path(1)}.admin", clock=True, join=())
        if observes
        else Client(one.path(1), clock=False, join=())
    )
    start = resident(one.process)
    pour(other, flood)
    assert resident(one.process) - start < 48 * MIB
    other.close()
    assert holder.clock("NOW") and one.process.poll() is None


@pytest.mark.fault
@pytest.mark.parametrize("observes", [False, True], ids=["free client", "observer"])
def test_a_read_that_wants_no_reply_gets_none(simulator, observes):
    one = simulator("--participants", 1, "--cards", 1)
    client = (
        Client(f"{one.path(0)}.admin", clock=True, join=())
        if observes
        else Client(one.path(0), clock=False, join=())
    )
    client.socket.sendall(message(REGION_READ, struct.pack("<QII", 0x100, 0, 8)))
    assert len(client.read(0x100, 4)) == 4
    client.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)


@pytest.mark.fault
def test_a_client_that_holds_the_clock_and_floods_the_card_is_cut_off(simulator):
    one = simulator("--participants", 1, "--cards", 1)
    client = Client(one.path(0))
    pour(client, WRITE)
    assert resident(one.process) < 256 * MIB
    client.close()
    again = Client(one.path(0))
    again.write(0x100, b"good")
    assert again.read(0x100, 4) == b"good"
    assert "sends more accesses than can wait" in one.error_text()


@pytest.mark.fault
def test_a_client_that_never_takes_its_answers_is_cut_off(simulator):
    one = simulator("--participants", 1, "--cards", 1)
    client = Client(one.path(0), clock=False, join=())
    config = struct.pack("<HHIII", 1, REGION_READ, 32, 0, 0) + struct.pack("<QII", 0, 7, 4096)
    pour(client, config)
    assert resident(one.process) < 160 * MIB


@pytest.mark.fault
def test_interrupts_that_wait_for_a_write_do_not_pile_up(simulator):
    one = simulator("--participants", 1, "--cards", 1)
    client = Client(one.path(0), clock=False, join=())
    client.bus_master()
    client.set_irqs([os.eventfd(0, os.EFD_NONBLOCK)])
    client.map_message(HIGH, 4096)
    client.acknowledge = False
    client.write(0x80000, struct.pack("<QI", HIGH, 1))
    client.read(0, 4)
    trigger = message(SET_IRQS, struct.pack("<IIIII", 20, 1 | 32, 2, 0, 1))
    start = resident(one.process)
    for _ in range(100):
        client.socket.sendall(trigger * 1000)
    client.read(0, 4)
    assert resident(one.process) - start < MIB


@pytest.mark.fault
def test_a_client_has_as_many_mappings_as_linux_allows_and_no_more(simulator):
    one = simulator("--participants", 1, "--cards", 1)
    client = Client(one.path(0), clock=False, join=())
    client.socket.sendall(
        b"".join(
            message(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, HIGH + 2 * n, 1)) for n in range(65535)
        )
    )
    with pytest.raises(Refused) as refused:
        client.map(HIGH - 2, 1)
    assert refused.value.errno == errno.ENOSPC
    client.unmap(HIGH, 1)
    client.map(HIGH - 2, 1)


@pytest.mark.fault
def test_a_message_with_too_many_descriptors_is_the_last(simulator):
    one = simulator("--participants", 1, "--cards", 1)
    client = Client(one.path(0), clock=False, join=())
    fd = os.open("/dev/null", os.O_RDONLY)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for byte in message(REGION_WRITE, struct.pack("<QII", 0x100, 0, 1024) + bytes(1024)):
            socket.send_fds(client.socket, [bytes([byte])], [fd] * 100)
            time.sleep(0.002)
    assert len(os.listdir(f"/proc/{one.process.pid}/fd")) < 100
    os.close(fd)
