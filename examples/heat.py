"""Heat in a plate with mpi4py: a rank has some columns of a grid; a column is a derived type.

    dibber mpirun -n 2 --strided python3 examples/heat.py [ROWS COLUMNS STEPS]

It does what examples/heat.c does, and prints the same. With --strided the card moves the columns;
without it the engine packs and unpacks them.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys

import numpy as np
from mpi4py import MPI

FACTOR = 0.125  # of the difference to the neighbours that a cell takes on in a step


def new_plate(rows, columns, left):
    """A plate with a border of one cell. `left` is the place of its border in the whole plate."""
    row, column = np.ogrid[: rows + 2, left : left + columns + 2]
    return ((row * 7 + column * 13) % 101).astype(float)


def step(plate):
    inner = plate[1:-1, 1:-1]
    around = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
    result = plate.copy()
    result[1:-1, 1:-1] = inner + FACTOR * (around - 4 * inner)
    return result


def exchange(comm, plate, column, left, right):
    """The outermost own columns go to the neighbours, whose columns come beside them."""
    width = plate.shape[1]
    place = lambda at: [plate.reshape(-1)[width + at :], 1, column]
    comm.Sendrecv(place(1), left, recvbuf=place(width - 1), source=right)
    comm.Sendrecv(place(width - 2), right, recvbuf=place(0), source=left)


def main(rows=1024, columns=8, steps=4):
    comm = MPI.COMM_WORLD
    left = comm.rank - 1 if comm.rank else MPI.PROC_NULL
    right = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    first = comm.rank * columns
    plate = new_plate(rows, columns, first)
    whole = new_plate(rows, comm.size * columns, 0)
    column = MPI.DOUBLE.Create_vector(rows, 1, columns + 2).Commit()
    taken = []
    for _ in range(steps):
        begin = MPI.Wtime()
        exchange(comm, plate, column, left, right)
        taken.append(MPI.Wtime() - begin)
        plate, whole = step(plate), step(whole)
    own = whole[1:-1, first + 1 : first + columns + 1]
    wrong = comm.reduce(int((plate[1:-1, 1:-1] != own).sum()))
    if comm.rank == 0:
        # The first exchange registers the memory.
        rest = taken[1:] or taken
        print(f"{rows} rows: {1e6 * sum(rest) / len(rest):.1f} us an exchange, {wrong} cells wrong")
    column.Free()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
