"""The two halves of a matrix are transposed: each node puts its blocks into the other's columns."""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
from libdibber import Walk, alloc
from party import Party

SIZE = 128  # rows and columns; each node has half of the rows
HALF = SIZE // 2

party = Party()
whole = np.arange(SIZE * SIZE, dtype="f8").reshape(SIZE, SIZE)
rows = slice(party.node * HALF, (party.node + 1) * HALF)
mine, turned = (alloc(HALF * SIZE * 8).view("f8").reshape(HALF, SIZE) for _ in range(2))
mine[:] = whole[rows]
party.endpoint.register(mine)
key = party.key_of_other(party.endpoint.register(turned))

# My block of the other's rows: row r here becomes column r there. The source is contiguous in a
# row; the target steps by a row for each element, and by an element for each row.
other = slice((1 - party.node) * HALF, (2 - party.node) * HALF)
target = Walk(key, offset=party.node * HALF * 8, block=8, levels=((HALF, SIZE * 8), (HALF, 8)))
party.endpoint.put_array(target, mine[:, other], node=1 - party.node, notice=1, endpoint=1)
turned[:, rows] = mine[:, rows].T  # the other block stays here
party.await_notice()
assert (turned == whole.T[rows]).all()
print(f"node {party.node} has its half of the transposed matrix")
party.close()
