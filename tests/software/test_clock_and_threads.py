"""The simulator's clock on a mock, and several threads on one card."""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import struct
import threading
import time

import libdibber
import numpy as np
import pytest
from dibber.interface.description import CALL, CLOCK_OP, OPCODE, STATUS, C
from libdibber import Walk

from tests.software.expect import fails

NOP = bytes([OPCODE.NOP]).ljust(C.SLOT_BYTES, b"\0")

# Clock --------------------------------------------------------------------------------------------


def test_the_clock_is_told_of_each_call(loaded):
    mock = loaded()
    del mock.device.calls[:]
    mock.endpoint.put(1, 0, 1, 0, 8, node=1)
    mock.endpoint.put_strided(Walk(1, 8), Walk(1, 8), node=1)
    mock.card.info()  # posted writes have arrived
    mock.endpoint.poll()
    mock.endpoint.poll()
    mock.endpoint.wait(5)
    charge, wait = CLOCK_OP.CHARGE, CLOCK_OP.WAIT
    assert mock.device.calls == [
        (charge, CALL.PUT, 1, False),
        (charge, CALL.PUT_STRIDED, 1, False),
        (charge, CALL.POLL_ENTRY, 2, False),
        (charge, CALL.POLL_EMPTY, 1, False),
        (wait, 0, 0, True),
        (wait, 0, 0, True),
    ]


def test_a_program_charges_its_own_instructions_and_copies(loaded):
    mock = loaded()
    charge = libdibber.binding.library().dib_clock_charge
    del mock.device.calls[:]
    for instructions, copied in ((450, 0), (0, 128), (0, 0), (9, 64)):
        assert charge(mock.endpoint._handle, instructions, copied) == 0
    mock.card.info()  # posted messages have arrived
    assert mock.device.calls == [
        (CLOCK_OP.CHARGE, 0, 450, False),
        (CLOCK_OP.CHARGE, CALL.COPY, 128, False),
        (CLOCK_OP.CHARGE, 0, 9, False),
        (CLOCK_OP.CHARGE, CALL.COPY, 64, False),
    ]


def test_a_wait_lasts_its_time_or_until_something_comes(loaded):
    mock = loaded()

    def now():
        mock.card.read_register("SCRATCH")  # posted writes before it have come
        return mock.device.now

    for _ in range(50):
        mock.endpoint.submit(NOP)
        assert now() and mock.endpoint.poll()
        begin = now()
        assert not mock.endpoint.wait(100) and now() - begin == 100_000
        begin = now()
        mock.endpoint.submit(NOP)
        assert mock.endpoint.wait() and mock.endpoint.poll() and now() - begin < 100_000


def test_joining_leaving_and_entering(loaded):
    mock = loaded()
    assert [c[0] for c in mock.device.calls].count(CLOCK_OP.JOIN) == 1
    del mock.device.calls[:]
    with mock.endpoint.outside_clock():
        assert mock.device.calls[-1][0] == CLOCK_OP.LEAVE
    assert mock.device.calls[-1][0] == CLOCK_OP.ENTER
    with mock.card.endpoint(2, own_clock=True):
        assert CLOCK_OP.JOIN in [c[0] for c in mock.device.calls]
    assert mock.device.calls[-1][0] == CLOCK_OP.LEAVE


def test_the_clock_refuses(loaded):
    mock = loaded()
    mock.device.fail_clock = errno.EBUSY
    with fails("CLOCK", "busy"):
        mock.endpoint.clock()
    mock.device.fail_clock = 0
    assert mock.endpoint.clock().simulated == 1


def test_without_the_extension_the_clock_is_the_systems(loaded):
    mock = loaded(clock=False)
    with mock.endpoint.outside_clock():
        pass
    first, second = mock.endpoint.clock(), mock.endpoint.clock()
    assert first.simulated == 0 and first.now_ps <= second.now_ps
    assert mock.device.calls == []


# Threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", [True, False])
def test_several_threads_use_one_card_at_once(loaded, clock):
    mock = loaded(clock=clock)
    failed = []

    def work(number):
        try:
            with mock.card.endpoint(number, own_clock=True) as endpoint:
                for i in range(20):
                    # Some by descriptor, some by message: then the helper thread serves too.
                    memory = libdibber.alloc(8192) if i % 2 else np.zeros(8192, dtype="u1")
                    memory[:100] = number
                    with endpoint.register(memory) as region:
                        endpoint.put(region.key, 0, region.key, 4096, 100, node=1, tag=i)
                        done = []
                        while not done:
                            endpoint.wait(10**9)
                            done = endpoint.poll()
                        assert [(c.tag, c.status) for c in done] == [(i, STATUS.OK)]
                        assert (memory[4096:4196] == number).all() and not memory[4196:].any()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not failed and not any(t.is_alive() for t in threads)


def test_the_card_is_served_while_the_program_is_elsewhere(loaded):
    mock = loaded()
    store = np.zeros(4096, dtype="u1")
    with mock.endpoint.register(store) as region:
        base = mock.device.regions[region.key]["base"]
        with mock.endpoint.outside_clock():
            # As when another card's packets arrive: no thread here is in the library.
            mock.server.connection.sendall(
                struct.pack("<HHIII", 9, 12, 16 + 16 + 4, 0x10, 0)
                + struct.pack("<QQ", base + 8, 4)
                + b"here"
            )
            deadline = time.monotonic() + 60
            while not store.any() and time.monotonic() < deadline:
                time.sleep(0.001)
        assert bytes(store[8:12]) == b"here"
