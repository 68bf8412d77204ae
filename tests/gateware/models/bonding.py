"""Bonded lanes in plain Python: docs/design/bonded-link.md."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque

CONTROL = 0b10
OCTETS = ("907647", "f0c4e6", "c5659b", "a2793d")
MISSES = 4


def marker(lane):
    """(header, data) of a lane's marker; IEEE 802.3-2018, table 82-3, without parity."""
    front = bytes.fromhex(OCTETS[lane]) + b"\x00"
    return CONTROL, int.from_bytes(front + bytes(255 - octet for octet in front), "little")


def marked_rows(rows, lanes, period):
    """Rows with a row of markers before the first and in the place of each `period`-th."""
    for n, row in enumerate(rows):
        if n % (period - 1) == 0:
            yield tuple(marker(lane) for lane in range(lanes))
        yield row


class Deskew:
    """What the receiver does in a cycle. Lanes are queues of (block, whether it is the marker)."""

    def __init__(self, lanes, depth, period):
        self.lanes, self.depth, self.period = lanes, depth, period
        self.markers = [marker(lane) for lane in range(lanes)]
        self.restart()

    def restart(self):
        self.queues = [None] * self.lanes  # None: the lane's marker did not come yet
        self.position = 0
        self.misses = 0
        self.aligned = False

    def cycle(self, blocks, locked):
        """(row or None, whether the alignment was lost, crossed lanes) of a cycle.

        blocks : for each lane (header, data), or None
        locked : for each lane, whether it has its block lock
        """
        crossed = [
            bool(lock and block in self.markers and block != own)
            for block, lock, own in zip(blocks, locked, self.markers)
        ]
        full = any(
            block is not None and queue is not None and len(queue) == self.depth
            for block, queue in zip(blocks, self.queues)
        )
        row, bad = None, False
        if all(self.queues):
            heads = [queue.popleft() for queue in self.queues]
            self.aligned = True
            if self.position == 0:
                self.misses = 0 if all(own for _, own in heads) else self.misses + 1
                bad = self.misses == MISSES
            elif any(own for _, own in heads):
                bad = True
            else:
                row = tuple(block for block, _ in heads)
            self.position = (self.position + 1) % self.period
        if not all(locked) or any(crossed) or full or bad:
            self.restart()
            return None, True, crossed
        for lane, block in enumerate(blocks):
            own = block == self.markers[lane]
            if own and self.queues[lane] is None:
                self.queues[lane] = deque()
            if block is not None and self.queues[lane] is not None:
                self.queues[lane].append((block, own))
        return row, False, crossed
