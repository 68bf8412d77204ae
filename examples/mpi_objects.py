"""Migration of fine-grain objects with mpi4py: one MPI_Put with two indexed types.

    dibber mpirun -n 2 --strided python3 examples/mpi_objects.py [BYTES OBJECTS TIMES]

It does what examples/mpi_objects.c does, and prints the same. With --strided the put is one command
of the card with an index list on each side; without it the engine packs, or makes many puts.
"""

# SPDX-License-Identifier: BSD-2-Clause

import sys

import numpy as np
from mpi4py import MPI

SLOTS = 4096  # places for objects on each rank, for those that are there and that come
MOST_BYTES = 65536  # of an object
FREE = 0xEE  # of each byte of a free place


def objects_of(rank, size):
    return np.random.default_rng((rank, 0)).integers(0, 256, (SLOTS, size), dtype=np.uint8)


def places_of(rank, use):
    return np.random.default_rng((rank, use)).permutation(SLOTS).astype(np.int32)


def main(size=32, count=1024, times=2):
    comm = MPI.COMM_WORLD
    if not 1 <= size <= MOST_BYTES or not 1 <= count <= SLOTS or times < 1:
        if comm.rank == 0:
            limits = f"1 to {MOST_BYTES} bytes, 1 to {SLOTS} objects, and once at least"
            print(f"mpi_objects.py [BYTES OBJECTS TIMES]: {limits}", file=sys.stderr)
        return 2
    following, former = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    start = objects_of(comm.rank, size)
    end = np.full_like(start, FREE)
    leave, land = places_of(comm.rank, 1), places_of(comm.rank, 2)
    # The sender of this rank's objects learns which places are free.
    there = np.empty(count, np.int32)
    comm.Sendrecv(land[:count].copy(), former, recvbuf=there, source=following)
    record = MPI.BYTE.Create_contiguous(size)
    out = record.Create_indexed_block(1, leave[:count]).Commit()
    into = record.Create_indexed_block(1, there).Commit()
    window = MPI.Win.Create(end, 1, comm=comm)
    window.Lock_all()
    taken = []
    for _ in range(times + 1):
        comm.Barrier()
        begin = MPI.Wtime()
        window.Put([start, 1, out], following, (0, 1, into))
        window.Flush(following)
        taken.append(MPI.Wtime() - begin)
    window.Unlock_all()
    comm.Barrier()
    expected = np.full_like(start, FREE)
    expected[land[:count]] = objects_of(former, size)[places_of(former, 1)[:count]]
    wrong = comm.reduce(int((end != expected).any(axis=1).sum()))
    if comm.rank == 0:
        # The first migration registers the memory and puts the list.
        us = 1e6 * sum(taken[1:]) / times
        print(f"{size} bytes: {us:.1f} us a migration, {wrong} objects wrong")
    window.Free()
    for each in (record, out, into):
        each.Free()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
