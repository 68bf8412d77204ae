"""The clients of a ring: a block is asked for, cut into packets, answered, and done.

message : the source sends the block; it is done when the target's client has its last packet
write   : the same, and the target answers with a packet without payload (WriteBlk)
read    : the source sends a packet without payload; the target answers with the block (ReadBlk)
"""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections.abc import Callable, Iterator
from typing import Any

from dibber_cli.ring.clock import Clock, Event
from dibber_cli.ring.figures import WorkCount
from dibber_cli.ring.parameters import Parameters, mean_bytes, targets_of

ASK, DATA, ANSWER = range(3)  # what a part of a block is


class Block:
    """
    Attributes
    ----------
    work           : the Work that it belongs to
    source, target : nodes
    bytes          : of payload
    began          : time when it was asked for
    missing        : packets of the part under way that were not delivered
    part           : ASK, DATA or ANSWER
    """

    __slots__ = ("work", "source", "target", "bytes", "began", "missing", "part")

    def __init__(self, work: "Work", source: int, target: int, size: int, began: int) -> None:
        self.work, self.source, self.target = work, source, target
        self.bytes, self.began = size, began
        self.missing = 0
        self.part = DATA


class Work:
    """One workload of one source.

    Parameters
    ----------
    clock      : the Clock
    parameters : Parameters
    workload   : its table
    source     : the node
    count      : the WorkCount
    send       : function(Block, from, to, channel, bytes): sends a part of the block in packets
    seed       : of its random choices; a word
    """

    def __init__(
        self,
        clock: Clock,
        parameters: Parameters,
        workload: dict[str, Any],
        source: int,
        count: WorkCount,
        send: Callable[[Block, int, int, int, int], None],
        seed: str,
    ) -> None:
        self.clock, self.workload, self.source = clock, workload, source
        self.count, self.send = count, send
        self.answer = round(parameters.client["answer_ns"] * 1e3)
        self.step = parameters.ring["symbol_bytes"]  # between two sizes of a block
        self.random = random.Random(seed)
        self.targets = targets_of(workload, source, parameters.ring["nodes"])
        self.hot = workload["hot_node"] if workload["pattern"] == "hot-receiver" else None
        if self.hot == source:
            self.hot = None

    def start(self) -> None:
        if self.workload["outstanding"] is None:
            self.clock.env.process(self._open())
        else:
            for number in range(self.workload["outstanding"]):
                self.begin()

    def _open(self) -> Iterator[Event]:
        """Blocks at random times, at the offered rate of payload: the times between two blocks are
        exponential (Poisson), or uniform from 0 to twice their mean.
        """
        mean = 1e6 * mean_bytes(self.workload) / self.workload["offered_mbps"]
        poisson = self.workload["spacing"] == "poisson"
        while True:
            draw = self.random.expovariate(1) if poisson else 2 * self.random.random()
            self.clock.events += 1
            yield self.clock.env.timeout(round(mean * draw))
            self.begin()

    def _target(self) -> int:
        if self.hot is not None and self.random.random() < self.workload["hot_share"]:
            return self.hot
        return self.targets[self.random.randrange(len(self.targets))]

    def begin(self) -> None:
        """Ask for one block."""
        size, work = self.workload["block_bytes"], self.workload
        if work["least_bytes"] is not None:
            size = self.random.randrange(work["least_bytes"], size + 1, self.step)
        if work["short_share"] and self.random.random() < work["short_share"]:
            size = 0
        block = Block(self, self.source, self._target(), size, self.clock.env.now)
        if work["kind"] == "read":
            self._part(block, ASK)
        else:
            self._part(block, DATA)

    def _part(self, block: Block, part: int) -> None:
        work = self.workload
        block.part = part
        back = part == ANSWER or part == DATA and work["kind"] == "read"
        ends = (block.target, block.source) if back else (block.source, block.target)
        channel = work["answer_channel"] if back else work["channel"]
        self.send(block, *ends, channel, block.bytes if part == DATA else 0)

    def arrived(self, block: Block) -> None:
        """A client has one more packet of the part under way."""
        block.missing -= 1
        if block.missing:
            return
        kind = self.workload["kind"]
        if kind == "read" and block.part == ASK or kind == "write" and block.part == DATA:
            self.clock.after(self.answer, self._answer, block)
            return
        self.count.done(block.bytes, block.began, self.clock.env.now)
        if self.workload["outstanding"] is not None:
            self.begin()

    def _answer(self, event: Event) -> None:
        block = event._value
        self._part(block, DATA if self.workload["kind"] == "read" else ANSWER)
