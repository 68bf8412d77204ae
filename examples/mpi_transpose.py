"""Transpose of a matrix that is spread over ranks, with mpi4py: each has some rows.

    dibber mpirun -n 2 --strided python3 examples/mpi_transpose.py [ROWS TIMES]

It does what examples/mpi_transpose.c does, and prints the same. A block leaves column by column and
lands row by row. With --strided the card moves the blocks; without it the engine packs them.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys

import numpy as np
from mpi4py import MPI

ELEMENT = MPI.DOUBLE.Get_size()
MOST_ROWS = 4096  # each element's value tells its row and column


def main(rows=128, times=2):
    comm = MPI.COMM_WORLD
    if rows < comm.size or rows % comm.size or rows > MOST_ROWS or times < 1:
        if comm.rank == 0:
            limit = f"at most {MOST_ROWS} rows, a multiple of the ranks"
            print(f"mpi_transpose.py [ROWS TIMES]: {limit}", file=sys.stderr)
        return 2
    side = rows // comm.size
    row, column = np.ogrid[comm.rank * side : (comm.rank + 1) * side, :rows]
    start = (row * MOST_ROWS + column).astype(float)
    end = np.full_like(start, -1)
    by_rows = MPI.DOUBLE.Create_vector(side, side, rows).Commit()
    by_columns = MPI.DOUBLE.Create_vector(side, 1, rows).Create_hvector(side, 1, ELEMENT).Commit()
    counts = [1] * comm.size
    places = [i * side * ELEMENT for i in range(comm.size)]
    taken = []
    for _ in range(times + 1):
        comm.Barrier()
        begin = MPI.Wtime()
        comm.Alltoallw(
            [start, (counts, places), [by_columns] * comm.size],
            [end, (counts, places), [by_rows] * comm.size],
        )
        taken.append(MPI.Wtime() - begin)
    wrong = comm.reduce(int((end != column * MOST_ROWS + row).sum()))
    if comm.rank == 0:
        # The first transpose registers the memory.
        us = 1e6 * sum(taken[1:]) / times
        print(f"{rows} rows: {us:.1f} us a transpose, {wrong} elements wrong")
    by_rows.Free()
    by_columns.Free()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
