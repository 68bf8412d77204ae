"""The soak test's model in NumPy: it applies a plan's commands to two arenas, one after the other.

In a plan, commands without a defined order do not overlap in memory. So any order gives the same
memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import zlib

from dibber.interface.description import OPCODE
from libdibber.late import np

from dibber_cli.soak.layout import ARENA, TARGET, Region, Shape, fill, fill_source


def internet_checksum(data: bytes) -> int:
    """RFC 1071 of bytes."""
    total = sum(np.frombuffer(bytes(data) + bytes(len(data) % 2), dtype=">u2").tolist())
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def after_atomic(opcode: int, size: int, before: int, operand: int, compare: int, mask: int) -> int:
    """The result of an atomic operation in memory."""
    ones = (1 << 8 * size) - 1
    return (
        ones
        & {
            OPCODE.FETCH_ADD: before + operand,
            OPCODE.SWAP: operand,
            OPCODE.COMPARE_SWAP: operand if before == compare & ones else before,
            OPCODE.MASKED_SWAP: before & ~mask | operand & mask,
        }[opcode]
    )


class Memory:
    """The expected content of both arenas.

    A command that fails after packets left may have written some of its bytes. Such bytes have two
    right values, which `other` and `loose` keep.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.arena = [np.zeros(ARENA, dtype=np.uint8) for _ in range(2)]
        self.other = [np.zeros(ARENA, dtype=np.uint8) for _ in range(2)]
        self.loose = [np.zeros(ARENA, dtype=bool) for _ in range(2)]
        for node in range(2):
            self.arena[node][:TARGET] = fill_source(seed, node)

    def begin(self, number: int) -> None:
        """Contents at the start of round `number`."""
        for node in range(2):
            self.arena[node][TARGET:] = fill(self.seed, number, node)
            self.loose[node][:] = False

    def word(self, node: int, place: int, size: int) -> int:
        return int.from_bytes(self.arena[node][place : place + size].tobytes(), "little")

    def copy(self, source_node: int, source: Shape, target_node: int, target: Shape) -> np.ndarray:
        """A transfer that succeeds; returns its bytes."""
        data = self.arena[source_node][source.bytes()]
        self.arena[target_node][target.bytes()] = data
        return data

    def store(self, node: int, target: Shape, data: bytes) -> None:
        self.arena[node][target.bytes()] = np.frombuffer(data, dtype=np.uint8)

    def copy_in_part(
        self,
        source_node: int,
        source: Shape,
        source_region: Region,
        target_node: int,
        target: Shape,
        target_region: Region,
    ) -> None:
        """A transfer that fails where one of its sides leaves its region: bytes before that may
        have been written.
        """
        read, written = source.bytes(), target.bytes()
        outside = np.flatnonzero(
            (read < source_region.start)
            | (read >= source_region.end)
            | (written < target_region.start)
            | (written >= target_region.end)
        )
        written = written[: outside[0]]
        self.other[target_node][written] = self.arena[source_node][read[: outside[0]]]
        self.loose[target_node][written] = True

    def atomic(
        self, node: int, place: int, opcode: int, size: int, operand: int, compare: int, mask: int
    ) -> int:
        """Returns the old value."""
        before = self.word(node, place, size)
        after = after_atomic(opcode, size, before, operand, compare, mask)
        self.arena[node][place : place + size] = np.frombuffer(
            after.to_bytes(size, "little"), dtype=np.uint8
        )
        return before

    def wrong(self, node: int, found: bytes) -> np.ndarray:
        """Absolute places with wrong bytes."""
        memory = np.frombuffer(found, dtype=np.uint8)
        bad: np.ndarray = memory != self.arena[node]
        bad &= ~(self.loose[node] & (memory == self.other[node]))
        return np.flatnonzero(bad)


def digest(arena: np.ndarray, shape: Shape) -> int:
    """CRC of a shape's bytes, in order."""
    return zlib.crc32(arena[shape.bytes()].tobytes())
