"""Quick start: one command puts a column of a matrix into a column of another machine's matrix.

dibber sim start                                    # or boards: vfio:0000:01:00.0 and so on
python examples/quick_start.py URI0 URI1            # the URIs that it printed
dibber sim stop
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys

import numpy as np
from libdibber import Card, Walk, alloc

ROWS, COLUMNS = 64, 32
# Both cards in one program, to keep it short: examples/two_hosts has the same in two programs.
cards = [Card(uri) for uri in sys.argv[1:3]]
for node, card in enumerate(cards):
    card.set_node(node)
    card.load_firmware("build/firmware/mcp.dibfw")
here, there = (card.endpoint(1) for card in cards)

# A matrix in each machine's memory, registered with its card.
a, b = (alloc(ROWS * COLUMNS * 8).view("f8").reshape(ROWS, COLUMNS) for _ in cards)
here.register(a)
target = there.register(b)

# Column 5 over there: 64 blocks of 8 bytes, a row apart. The source is a view of NumPy.
a[:, 3] = np.arange(ROWS)
column = Walk(target.key, offset=5 * 8, block=8, levels=((ROWS, COLUMNS * 8),))
begin = here.clock().now_ps
here.put_array(column, a[:, 3], node=1, notice=7, endpoint=1)

# The other program sleeps until the notice; then all bytes are in its memory.
assert there.wait(10**9), "nothing came"
(event,) = there.poll_events()
assert (b[:, 5] == a[:, 3]).all()
elapsed_ns = (here.clock().now_ps - begin) // 1000
print(f"notice {event.notice}: {event.length} bytes in {elapsed_ns} ns")
