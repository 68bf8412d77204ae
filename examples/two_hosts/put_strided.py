"""Node 1 puts a column of its matrix into a column of node 0's matrix, by one command."""

# SPDX-License-Identifier: BSD-2-Clause

import numpy as np
from libdibber import Walk, alloc
from party import Party

ROWS, COLUMNS = 64, 32

party = Party()
matrix = alloc(ROWS * COLUMNS * 8).view("f8").reshape(ROWS, COLUMNS)
region = party.endpoint.register(matrix)
key = party.key_of_other(region)

if party.node == 1:
    matrix[:, 3] = np.arange(ROWS)
    # Column 5 over there: 64 blocks of 8 bytes, 256 bytes apart.
    column = Walk(key, offset=5 * 8, block=8, levels=((ROWS, COLUMNS * 8),))
    party.endpoint.put_array(column, matrix[:, 3], node=0, notice=7, endpoint=1)
    print("column 3 is on its way")
else:
    print(f"notice {party.await_notice()}: column 5 ends with {matrix[ROWS - 1, 5]:g}")
    assert (matrix[:, 5] == np.arange(ROWS)).all() and not matrix[:, :5].any()
party.close()
