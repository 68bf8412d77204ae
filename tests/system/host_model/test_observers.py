"""Observers of a card that a client drives: their rights, and their only cost, which is time."""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import struct
import time

import pytest

from tests.system.host_model.vfio_client import (
    DEVICE_RESET,
    DMA_MAP,
    GET_INFO,
    GET_REGION_INFO,
    REGION_READ,
    REGION_WRITE,
    SET_IRQS,
    VERSION,
    Client,
    Refused,
)

SILENT = 0x80100  # of the C++ card: hw/sim/devices/scratch.h


@pytest.fixture
def one(simulator):
    return simulator("--cards", 1, "--participants", 1)


def observe(one, card=0):
    return Client(f"{one.path(card)}.admin", clock=True, join=())


def test_an_observer_reads_and_writes_what_the_client_does(one):
    client = Client(one.path(0))
    client.write(0x100, b"from the client")
    assert client.read(0x100, 15) == b"from the client"
    first, second = observe(one), observe(one)
    assert first.capabilities == {}, "no part in the clock"
    assert first.read(0x100, 15) == second.read(0x100, 15) == b"from the client"
    second.write(0x104, b"another one", posted=False)
    assert first.read(0x100, 15) == b"fromanother one"
    first.socket.close()
    assert client.read(0x100, 15) == b"fromanother one"


def test_it_resets_nothing_and_clients_come_and_go_beside_it(one):
    observer = observe(one)
    observer.write(0x100, b"kept")
    assert observer.read(0x100, 4) == b"kept", "without any client, too"
    for _ in range(2):
        client = Client(one.path(0))
        client.bus_master()
        observe(one).read(0, 4)
        assert client.config(4, 2) & 4, "a reset would have taken that away"
        assert observer.read(0x100, 4) == b"kept"
        client.socket.close()


def test_time_goes_on_for_a_read_while_the_client_holds_it_and_stands_again(one):
    client = Client(one.path(0))
    before = client.clock("NOW").now
    observer = observe(one)
    for _ in range(5):
        observer.read(0x100, 64)
    time.sleep(0.05)
    client.read(0, 4)
    passed = client.clock("NOW").now - before
    assert 6_000_000 > passed > 1_000_000, "picoseconds: six reads, and nothing between reads"


def test_an_observer_that_only_stays_connected_changes_no_time(simulator):
    def run(watched):
        one = simulator("--cards", 1, "--participants", 1)
        client = Client(one.path(0))
        if watched:
            observe(one)
        for _ in range(20):
            client.read(0, 4)
            client.wait(deadline=3_000_000)
        return client.clock("NOW").now

    assert run(False) == run(True)


@pytest.mark.parametrize(
    "command, payload, error",
    [
        (DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 4096), errno.ENOTSUP),
        (SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, 2, 0, 0), errno.ENOTSUP),
        (DEVICE_RESET, b"", errno.ENOTSUP),
        (GET_INFO, bytes(16), errno.ENOTSUP),
        (VERSION, struct.pack("<HH", 0, 1), errno.EINVAL),
        (GET_REGION_INFO, bytes(8), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 0, 7, 4), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 0x100000, 0, 4), errno.EINVAL),
        (REGION_WRITE, struct.pack("<QII", 4, 7, 2) + b"\6\0", errno.EINVAL),
        (REGION_WRITE, struct.pack("<QII", 0, 0, 8) + bytes(4), errno.EINVAL),
    ],
)
def test_it_has_nothing_but_the_bar(one, command, payload, error):
    observer = observe(one)
    with pytest.raises(Refused) as refused:
        observer.request(command, payload)
    assert refused.value.errno == error
    assert observer.read(0, 4) == bytes(4)


def test_one_that_vanishes_in_the_middle_of_a_read_stops_nobody(one):
    client = Client(one.path(0))
    for _ in range(3):
        observer = observe(one)
        observer.send(REGION_READ, struct.pack("<QII", SILENT, 0, 4))
        observer.send(REGION_READ, struct.pack("<QII", 0x100, 0, 4))
        observer.socket.close()
        before = client.clock("NOW").now
        client.wait(deadline=1_000_000)
        assert client.clock("NOW").now - before >= 1_000_000
    assert client.read(0x100, 4) == bytes(4) and observe(one).read(0x100, 4) == bytes(4)
