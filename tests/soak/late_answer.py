"""A get whose answer waits at its node behind a long job for a third node."""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import numpy as np
import pytest
from dibber.interface.description import STATUS

from tests.system.network import completions, opened

# Memory answers one read at a time, and late. So the put takes long, and the cards have work in
# few cycles: such cycles are simulated quickly.
SLOW = [
    word
    for setting in ("pcie.nonposted_headers=1", "pcie.read_latency_ns=4000")
    for word in ("--set", setting)
]
# A read each of some 2.2 us: 48 ms. A packet of 512 elements takes 1.1 ms; a switch cuts one that
# takes over 8.4 ms.
ELEMENTS, BYTES, STRIDE = 22_000, 8, 1024


@pytest.mark.fault
def test_a_get_behind_a_long_put_to_a_third_node_waits_for_its_turn(seed):
    with opened("star:3", seed=seed, options=SLOW) as network:
        network.map()

        def register(side):
            length = ELEMENTS * STRIDE if side.node == 0 else 1 << 18
            side.region = side.endpoint.register(libdibber.alloc(length), libdibber.Right(15))
            side.memory = side.region.memory
            if side.node == 0:
                side.memory[:] = np.random.default_rng(seed).integers(0, 256, length, np.uint8)
            return side.region.key

        keys = network.together(register)

        def put(side):
            source = libdibber.Walk(side.region.key, BYTES, levels=((ELEMENTS, STRIDE),))
            side.endpoint.put_strided(source, libdibber.Walk(keys[2], ELEMENTS * BYTES), node=2)
            return completions(side, 1), side.now()

        def get(side):
            side.endpoint.wait(1_000_000)
            start = side.now()
            side.endpoint.get(keys[0], STRIDE, side.region.key, 0, 8, node=0)
            return completions(side, 1), side.now() - start

        ended = network.on({0: put, 1: get})
        sent = network.on({0: lambda side: side.memory.reshape(ELEMENTS, STRIDE)[:, :BYTES]})[0]
        sent = np.ascontiguousarray(sent)
        came = network.on({1: lambda side: bytes(side.memory[:8])})[1]
        column = network.on({2: lambda side: side.memory[: ELEMENTS * BYTES].copy()})[2]
    assert ended[0][0] == ended[1][0] == [STATUS.OK]
    assert ended[1][1] > 41_000_000, "the get did not wait long enough for this test"
    assert came == sent[1].tobytes() and column.tobytes() == sent.tobytes()
