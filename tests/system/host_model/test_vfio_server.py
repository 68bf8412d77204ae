"""The simulator's vfio-user server, spoken to by a client of the test's own."""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import os
import pathlib
import random
import select
import signal
import socket
import struct
import subprocess
import time

import pytest

from tests.system.host_model.vfio_client import (
    CLOCK,
    DEVICE_RESET,
    DMA_MAP,
    DMA_UNMAP,
    ERROR,
    GET_INFO,
    GET_IRQ_INFO,
    GET_REGION_INFO,
    REGION_READ,
    REGION_WRITE,
    REPLY,
    SET_IRQS,
    VERSION,
    Client,
    Refused,
)

PROFILES = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles"
HIGH = 0x10_0000_0000  # a bus address above 4 GiB
# commands of the C++ card: hw/sim/devices/scratch.h
POKE = 0x80000
VECTOR = 0x80010
COPY = 0x80020
SILENT = 0x80100
REFUSE = 0x80108


@pytest.fixture
def one(simulator):
    """A simulator with one card whose clock starts with the first participant."""
    return simulator("--cards", 1, "--participants", 1)


def poke(client, address, value, delay=0):
    client.write(POKE, struct.pack("<QII", address, value, delay))


def settle(client, us=5):
    client.wait(deadline=us * 1_000_000)


# What the device is -------------------------------------------------------------------------------


def test_it_is_a_pci_device_with_one_bar_and_eight_vectors(one):
    client = Client(one.path(0))
    assert client.capabilities == {"dibber_clock": 1}
    assert struct.unpack("<IIII", client.request(GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))) == (
        16,
        3,
        9,
        5,
    )
    sizes = []
    for index in range(9):
        reply = client.request(GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, index, 0, 0, 0))
        _, flags, _, _, size, _ = struct.unpack("<IIIIQQ", reply)
        sizes.append(size)
        assert flags == (3 if size else 0)
    assert sizes == [0x100000, 0, 0, 0, 0, 0, 0, 4096, 0]
    counts = [
        struct.unpack("<IIII", client.request(GET_IRQ_INFO, struct.pack("<IIII", 16, 0, index, 0)))[
            3
        ]
        for index in range(5)
    ]
    assert counts == [0, 0, 8, 0, 0]


@pytest.mark.fault
def test_neither_power_states_nor_a_function_level_reset_are_announced(one):
    client, found = Client(one.path(0)), {}
    at = client.config(0x34, 1)
    while at:
        found[client.config(at, 1)] = at
        at = client.config(at + 1, 1)
    # PCI Local Bus 3.0, appendix H: 1 is power management. PCIe Base 3.0, 7.8.3: bit 28 of Device
    # Capabilities.
    assert found.keys() == {0x10, 0x11}
    assert not client.config(found[0x10] + 4, 4) & 1 << 28


@pytest.mark.fault
def test_a_reset_under_traffic_clears_the_bit_and_the_card_works_when_it_is_set_again(one):
    client = Client(one.path(0))
    memory = client.map_shared(HIGH, 4096)
    for life in range(1, 20):
        client.bus_master()
        for n in range(8):
            poke(client, HIGH + 8 * n, life, 100 * n)
        client.wait(deadline=life * 50_000)
        client.request(DEVICE_RESET)
        assert client.config(4, 2) & 4 == 0
        settle(client)
        before = bytes(memory[:64])
        poke(client, HIGH + 64, 1)
        settle(client)
        assert bytes(memory[:64]) == before and memory[64] == 0
    client.bus_master()
    poke(client, HIGH + 64, 77)
    settle(client)
    assert memory[64] == 77


def test_configuration_space_lists_its_capabilities_and_keeps_what_is_read_only(one):
    client = Client(one.path(0))
    assert client.config(0, 4) == 0xD1BB_1209
    assert client.config(6, 2) & 0x10
    capabilities, pointer = {}, client.config(0x34, 1)
    while pointer:
        capabilities[client.config(pointer, 1)] = pointer
        pointer = client.config(pointer + 1, 1)
    assert set(capabilities) == {0x10, 0x11}
    express, msix = capabilities[0x10], capabilities[0x11]
    assert client.config(express + 8, 2) == 1 << 5 | 1 << 8 | 2 << 12, (
        "256 bytes, extended tags, 512 bytes"
    )
    assert client.config(express + 0x12, 2) & 0x3FF == 2 | 4 << 4, "Gen2 x4"
    assert client.config(msix + 2, 2) & 0x7FF == 7
    assert (client.config(msix + 4, 4), client.config(msix + 8, 4)) == (0x1000, 0x1800)
    client.write(0, b"\xff\xff\xff\xff", region=7, posted=False)
    assert client.config(0, 4) == 0xD1BB_1209
    client.write(0x10, b"\xff\xff\xff\xff", region=7, posted=False)
    assert client.config(0x10, 4) == 0xFFF0_0000, "the address bits of 1 MiB"


# BAR accesses -------------------------------------------------------------------------------------


def test_what_is_written_to_the_bar_is_read_back(one, seed):
    client = Client(one.path(0))
    rng = random.Random(seed)
    image = bytearray(0x1000)
    for _ in range(200):
        offset = rng.randrange(len(image))
        data = rng.randbytes(rng.randrange(1, min(300, len(image) - offset) + 1))
        client.write(0x2000 + offset, data)
        image[offset : offset + len(data)] = data
        offset = rng.randrange(len(image))
        count = rng.randrange(1, min(70, len(image) - offset) + 1)
        assert client.read(0x2000 + offset, count) == image[offset : offset + count]
    assert client.read(0x2000, len(image)) == image
    assert one.stop()["cards"][0]["to_card"]["bar_read_errors"] == 0


def test_a_refused_and_an_unanswered_read_give_all_ones(one):
    client = Client(one.path(0))
    assert client.read(REFUSE, 4) == b"\xff" * 4
    before = client.clock("NOW").now
    assert client.read(SILENT, 8) == b"\xff" * 8
    assert client.clock("NOW").now - before == 1000 * 1_000_000, "the profile's completion timeout"
    client.write(0x100, b"good")
    assert client.read(0x100, 4) == b"good"
    card = one.stop()["cards"][0]["to_card"]
    assert (card["bar_read_errors"], card["bar_read_timeouts"]) == (1, 1)


def test_a_posted_write_gets_no_answer_and_others_do(one):
    client = Client(one.path(0))
    client.write(0x100, b"abcd")
    client.write(0x104, b"efgh", posted=False)
    assert client.read(0x100, 8) == b"abcdefgh"


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False], ids=["by descriptor", "by message"])
@pytest.mark.parametrize("address", [0x1000_0000, HIGH])
def test_the_card_writes_and_reads_memory(one, shared, address):
    client = Client(one.path(0))
    client.bus_master()
    memory = (client.map_shared if shared else client.map_message)(address, 8192)
    poke(client, address + 0x104, 0x11223344)
    settle(client)
    assert memory[0x100:0x10C] == bytes(4) + b"\x44\x33\x22\x11" + bytes(4)
    memory[0x203 : 0x203 + 61] = bytes(range(1, 62))
    client.write(COPY, struct.pack("<QQI", address + 0x203, address + 0xFFE, 61))
    settle(client)
    # The C++ card writes in one TLP, which may not cross 4 KiB: the checker drops it.
    assert memory[0xFFE:0x1100] == bytes(0x102)
    client.write(COPY, struct.pack("<QQI", address + 0x203, address + 0x305, 61))
    settle(client)
    assert memory[0x305 : 0x305 + 61] == bytes(range(1, 62))
    assert memory[0x304] == memory[0x305 + 61] == 0
    assert bool(client.log) == (not shared)
    assert one.stop()["cards"][0]["faults"] == {"page_crossing": 1}


def test_part_of_a_file_is_mapped_where_it_says(one):
    client = Client(one.path(0))
    client.bus_master()
    fd = os.memfd_create("dma")
    os.ftruncate(fd, 16384)
    client.map(HIGH, 4096, fd, offset=8192)
    poke(client, HIGH + 4, 0xCAFE)
    settle(client)
    assert os.pread(fd, 4, 8192 + 4) == b"\xfe\xca\0\0"
    os.close(fd)


@pytest.mark.parametrize("flags, faults", [(1, {"unmapped": 1}), (3, {}), (2, {})])
def test_memory_that_is_not_writable_is_not_written(one, flags, faults):
    client = Client(one.path(0))
    client.bus_master()
    fd = os.memfd_create("dma")
    os.ftruncate(fd, 4096)
    client.map(HIGH, 4096, fd, flags=flags)
    poke(client, HIGH, 0xFFFF)
    settle(client)
    assert any(os.pread(fd, 4096, 0)) == (not faults)
    os.close(fd)
    assert one.stop()["cards"][0]["faults"] == faults


def test_memory_is_gone_after_unmap(one):
    client = Client(one.path(0))
    client.bus_master()
    memory = client.map_shared(HIGH, 4096)
    assert client.unmap(HIGH, 4096)
    poke(client, HIGH, 0xFFFF)
    settle(client)
    assert not any(memory[:])
    assert one.stop()["cards"][0]["faults"] == {"unmapped": 1}


def test_one_unmap_may_cover_several_maps_but_cut_none(one):
    client = Client(one.path(0))
    client.bus_master()
    memory = [client.map_shared(HIGH + offset, 4096) for offset in (0x1000, 0x3000)]
    for address, size in (
        (HIGH, 0x1800),
        (HIGH + 0x1800, 0x2800),
        (HIGH + 0x3800, 0x1000),
        (HIGH, 0),
    ):
        with pytest.raises(Refused) as refused:
            client.unmap(address, size)
        assert refused.value.errno == errno.EINVAL
    with pytest.raises(Refused) as refused:
        client.unmap(HIGH + 0x2000, 0x1000)
    assert refused.value.errno == errno.ENOENT
    client.unmap(HIGH, 0x8000)
    for offset in (0x1000, 0x3000):
        poke(client, HIGH + offset, 0xFFFF)
    settle(client)
    assert not any(memory[0][:]) and not any(memory[1][:])
    assert one.stop()["cards"][0]["faults"] == {"unmapped": 2}


def test_a_file_cut_short_after_mapping_does_not_kill_the_simulator(one):
    client = Client(one.path(0))
    client.bus_master()
    fd = os.memfd_create("dma")
    os.ftruncate(fd, 8192)
    client.map(HIGH, 8192, fd)
    os.ftruncate(fd, 0)
    poke(client, HIGH + 4096, 1)
    settle(client)
    client.write(0x100, b"good")
    assert client.read(0x100, 4) == b"good"
    os.close(fd)


def test_bus_master_off_means_no_access(one):
    client = Client(one.path(0))
    memory = client.map_shared(HIGH, 4096)
    poke(client, HIGH, 1)
    settle(client)
    assert not any(memory[:])
    client.bus_master()
    poke(client, HIGH, 1)
    settle(client)
    assert memory[0] == 1
    assert one.stop()["cards"][0]["faults"] == {"not_bus_master": 1}


# Interrupts ---------------------------------------------------------------------------------------


def ready(fd):
    return bool(select.select([fd], [], [], 0)[0])


def test_a_vector_signals_its_eventfd_and_no_other(one):
    client = Client(one.path(0))
    client.bus_master()
    fds = [os.eventfd(0) for _ in range(3)]
    client.set_irqs([])  # as QEMU does first
    client.set_irqs(fds[:1])
    client.set_irqs(fds)
    client.write(VECTOR, struct.pack("<I", 1))
    settle(client)
    assert [ready(fd) for fd in fds] == [False, True, False]
    assert os.eventfd_read(fds[1]) == 1
    client.request(SET_IRQS, struct.pack("<IIIII", 20, 1 | 32, 2, 0, 0))
    client.write(VECTOR, struct.pack("<I", 1))
    settle(client)
    assert not ready(fds[1])


def test_an_interrupt_waits_until_earlier_writes_by_message_are_acknowledged(one):
    client = Client(one.path(0))
    client.bus_master()
    fd = os.eventfd(0)
    client.set_irqs([fd])
    client.map_message(HIGH, 4096)
    client.acknowledge = False
    poke(client, HIGH, 1)
    client.write(VECTOR, struct.pack("<I", 0))
    settle(client)
    ((kind, address, count),) = client.log
    assert (kind, address, count) == ("write", HIGH, 4)
    time.sleep(0.2)
    assert not ready(fd)
    # The server numbers its requests from zero.
    client.send(12, struct.pack("<QQ", HIGH, 4), flags=1, message_id=0)
    assert select.select([fd], [], [], 600)[0]


# Bad messages -------------------------------------------------------------------------------------

MAP = struct.Struct("<IIQQQ")


@pytest.mark.parametrize(
    "command, payload, error",
    [
        (99, b"", errno.ENOTSUP),
        (VERSION, struct.pack("<HH", 0, 1), errno.EINVAL),
        (DMA_MAP, b"\0" * 8, errno.EINVAL),
        (DMA_MAP, MAP.pack(32, 3, 0, HIGH, 0), errno.EINVAL),
        (DMA_MAP, MAP.pack(32, 3, 0, 2**64 - 4096, 8192), errno.EINVAL),
        (DMA_UNMAP, struct.pack("<IIQQ", 24, 0, 0x5000, 4096), errno.ENOENT),
        (DMA_UNMAP, b"", errno.EINVAL),
        (GET_INFO, b"", errno.EINVAL),
        (GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, 9, 0, 0, 0), errno.EINVAL),
        (GET_IRQ_INFO, struct.pack("<IIII", 16, 0, 77, 0), errno.EINVAL),
        (SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, 2, 7, 2), errno.EINVAL),
        (SET_IRQS, struct.pack("<IIIII", 20, 4 | 32, 2, 2**32 - 1, 2), errno.EINVAL),
        (SET_IRQS, struct.pack("<IIIII", 20, 7 | 32, 2, 0, 1), errno.EINVAL),
        (SET_IRQS, struct.pack("<IIIII", 20, 1 | 8, 2, 0, 1), errno.ENOTSUP),
        (SET_IRQS, struct.pack("<IIIII", 20, 2 | 32, 2, 0, 4), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 0x100000, 0, 4), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 2**64 - 2, 0, 4), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 0, 0, 0), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 0, 3, 4), errno.EINVAL),
        (REGION_READ, struct.pack("<QII", 4094, 7, 4), errno.EINVAL),
        (REGION_WRITE, struct.pack("<QII", 0, 0, 8) + b"1234", errno.EINVAL),
        (REGION_WRITE, struct.pack("<QII", 0xFFFFE, 0, 4) + b"1234", errno.EINVAL),
        (CLOCK, b"\0" * 47, errno.EINVAL),
    ],
)
def test_a_malformed_message_gets_its_errno_and_the_next_good_one_works(
    one, command, payload, error
):
    client = Client(one.path(0))
    with pytest.raises(Refused) as refused:
        client.request(command, payload)
    assert refused.value.errno == error
    client.write(0x100, b"good")
    assert client.read(0x100, 4) == b"good"
    assert f"card0: message {command}: " in one.error_text()


def test_a_second_map_over_the_first_is_refused(one):
    client = Client(one.path(0))
    client.map(HIGH, 8192)
    for address, size in [
        (HIGH, 8192),
        (HIGH + 4096, 4096),
        (HIGH - 4096, 4097),
        (HIGH - 4096, 65536),
    ]:
        with pytest.raises(Refused) as refused:
            client.map(address, size)
        assert refused.value.errno == errno.EEXIST
    client.map(HIGH + 8192, 4096)


def test_a_map_beyond_the_end_of_its_file_is_refused(one):
    client = Client(one.path(0))
    fd = os.memfd_create("dma")
    os.ftruncate(fd, 4096)
    with pytest.raises(Refused) as refused:
        client.map(HIGH, 8192, fd)
    assert refused.value.errno == errno.EINVAL
    os.close(fd)


@pytest.mark.parametrize("size", [0, 15, 2**31, 2**32 - 1])
def test_what_cannot_be_a_message_closes_the_connection(one, size):
    client = Client(one.path(0))
    client.socket.sendall(struct.pack("<HHIII", 1, GET_INFO, size, 0, 0))
    with pytest.raises(ConnectionError):
        client.receive()
    Client(one.path(0)).read(0, 4)


def test_a_client_that_a_test_leaves_behind_closes_its_socket(one):
    client = Client(one.path(0))
    left_open = client.socket
    del client
    assert left_open.fileno() == -1
    Client(one.path(0)).read(0, 4)


def test_version_must_come_first_and_be_ours(one):
    for message in [
        struct.pack("<HHIII", 1, GET_INFO, 16, 0, 0),
        struct.pack("<HHIIIHH", 1, VERSION, 20, 0, 0, 7, 0),
        struct.pack("<HHIIIHH", 1, VERSION, 24, 0, 0, 0, 0) + b"{}{\0",
    ]:
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.settimeout(600)
        raw.connect(str(one.path(0)))
        raw.sendall(message)
        assert struct.unpack("<HHIII", raw.recv(16))[3] == 0x21
        raw.close()
    Client(one.path(0)).read(0, 4)


def test_random_bytes_never_kill_the_simulator(one, seed):
    rng = random.Random(seed)
    for _ in range(60):
        client = Client(one.path(0))
        try:
            for _ in range(20):
                command = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 15, CLOCK])
                size = rng.randrange(0, 80)
                flags = rng.choice([0, 0, 0, 0x10, 1, 0x21, 7])
                client.send(
                    command,
                    rng.randbytes(size),
                    flags=flags,
                    size=16 + size if rng.random() < 0.9 else rng.randrange(0, 200),
                )
        except (BrokenPipeError, ConnectionResetError):
            pass
        client.close()
    good = Client(one.path(0))
    good.write(0x100, b"good")
    assert good.read(0x100, 4) == b"good"
    assert one.process.poll() is None


# Coming and going ---------------------------------------------------------------------------------


def test_the_next_client_finds_a_card_that_was_reset(one):
    first = Client(one.path(0))
    first.bus_master()
    first.map_shared(HIGH, 4096)
    first.close()
    second = Client(one.path(0))
    assert second.config(4, 2) & 4 == 0
    second.map(HIGH, 4096)
    assert second.read(0, 4) == bytes(4)


def test_a_client_that_comes_again_at_once_is_not_taken_for_a_second_one(one):
    for _ in range(100):
        client = Client(one.path(0))
        client.read(0, 4)
        client.close()


def test_a_client_that_vanishes_in_the_middle_of_anything_leaves_the_card_to_the_next(one):
    for action in [
        lambda c: c.send(REGION_READ, struct.pack("<QII", SILENT, 0, 8)),
        lambda c: c.send_clock("WAIT"),
        lambda c: c.socket.sendall(b"\1\0\11\0"),
        lambda c: c.write(POKE, struct.pack("<QII", HIGH, 1, 100)),
        lambda c: (
            c.map_message(HIGH, 4096),
            c.bus_master(),
            c.write(COPY, struct.pack("<QQI", HIGH, HIGH + 64, 8)),
            c.send_clock("WAIT"),
        ),
    ]:
        client = Client(one.path(0))
        action(client)
        time.sleep(0.05)
        client.close()
        Client(one.path(0)).read(0, 4)


def _refusal(path):
    """What the server says to a client that says nothing: (command, size, flags, errno), and that
    it closes the socket then.
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(path))
        said = client.recv(100)
        assert client.recv(1) == b""
    return struct.unpack("<HHIII", said)


@pytest.mark.fault
def test_only_one_client_at_a_time_and_the_next_one_is_told_that_the_card_is_busy(one):
    first = Client(one.path(0))
    for _ in range(3):
        assert _refusal(one.path(0)) == (0, VERSION, 16, REPLY | ERROR, errno.EBUSY)
    assert first.read(0, 4)
    first.close()
    assert Client(one.path(0)).read(0, 4)


@pytest.mark.fault
def test_an_observer_for_which_there_is_no_room_is_told_so(one):
    path = f"{one.path(0)}.admin"
    observers = [Client(path, clock=False) for _ in range(64)]  # max_clients, vfio/observers.h
    assert _refusal(path) == (0, VERSION, 16, REPLY | ERROR, errno.EBUSY)
    observers.pop().close()
    assert Client(path, clock=False).read(0, 4)


def test_device_reset_resets(one):
    client = Client(one.path(0))
    client.bus_master()
    client.request(DEVICE_RESET)
    assert client.config(4, 2) & 4 == 0
    assert client.read(0, 4) == bytes(4)


# A client that knows nothing of the clock ---------------------------------------------------------


def test_a_client_without_the_clock_runs_free(one):
    client = Client(one.path(0), clock=False)
    assert client.capabilities == {}
    client.bus_master()
    memory = client.map_shared(HIGH, 4096)
    client.write(0x100, b"free")
    assert client.read(0x100, 4) == b"free"
    poke(client, HIGH, 7)
    deadline = time.time() + 600
    while memory[0] != 7 and time.time() < deadline:
        time.sleep(0.001)
    assert memory[0] == 7
    with pytest.raises(Refused) as refused:
        client.clock("JOIN")
    assert refused.value.errno == errno.ENOTSUP


def test_reads_of_a_free_clients_memory_by_message_do_not_hold_up_its_register_reads(one):
    client = Client(one.path(0), clock=False)
    client.bus_master()
    client.map_message(HIGH, 4096)
    client.write(COPY, struct.pack("<QQI", HIGH, HIGH + 64, 8))
    # The server's DMA_READ lies unanswered in our socket while the register read goes there and
    # back.
    client.send(REGION_READ, struct.pack("<QII", 0x100, 0, 4), message_id=0x77)
    seen = []
    while 0x77 not in seen:
        message_id, command, size, flags, _ = struct.unpack("<HHIII", client.receive_exactly(16))
        client.receive_exactly(size - 16)
        if flags & 0xF == 1:
            seen.append(message_id)


# How it is started --------------------------------------------------------------------------------


def _start(programs, directory, redirection):
    """A simulator of one card, started by a shell with its standard streams redirected; returns
    when it listens.
    """
    words = [
        programs / "dibber-sim-test",
        "--profile",
        PROFILES / "gen2x4.toml",
        "--socket-dir",
        directory,
        "--cards",
        "1",
        "--participants",
        "1",
    ]
    process = subprocess.Popen(["sh", "-c", f'exec "$@" {redirection}', "sh", *words])
    for _ in range(6000):
        if (directory / "card0.sock").exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    return process


def _first_client(directory):
    """The first client; a socket that has its name may not listen yet."""
    for _ in range(1000):
        try:
            return Client(directory / "card0.sock", timeout=60)
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError("the simulator does not listen")


@pytest.mark.fault
@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", "2>&-", ">&-"])
def test_no_client_gets_the_text_of_a_standard_stream_that_was_closed(
    programs, tmp_path_factory, redirection
):
    directory = tmp_path_factory.mktemp("sim")
    process = _start(programs, directory, redirection)
    try:
        client = _first_client(directory)
        with pytest.raises(Refused):
            client.request(999)  # it complains on stderr
        assert client.read(0, 4)
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.mark.fault
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_ends_it_takes_its_sockets_away(programs, tmp_path_factory, number):
    directory = tmp_path_factory.mktemp("sim")
    process = _start(programs, directory, ">/dev/null")
    _first_client(directory)
    process.send_signal(number)
    assert process.wait(60) == 0 and list(directory.glob("*.sock*")) == []


@pytest.mark.fault
def test_help_on_a_full_disk_is_an_error(programs):
    done = subprocess.run(
        ["sh", "-c", f"{programs / 'dibber-sim-test'} --help >/dev/full"],
        capture_output=True,
        text=True,
    )
    assert (
        done.returncode == 1
        and done.stderr
        == "dibber-sim: the standard output cannot be written: No space left on device\n"
    )
