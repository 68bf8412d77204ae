"""The program that transfers the points of `stride`, `block`, `element`, `bidir` and `matrix`, and
compares every byte.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libdibber
from dibber.interface.description import RIGHT, C
from libdibber import Walk
from libdibber.late import np

from dibber_cli.bench.messages import EXCHANGES, MAILBOX_ENDPOINT
from dibber_cli.bench.point import FILL, Point
from dibber_cli.bench.program import TIMEOUT_NS, Failed, Program, reap

# Operations ---------------------------------------------------------------------------------------
# One transfer between the Walk `source` and the Walk `target`, by the call that a program would
# use.


def put(worker: Worker, source: Walk, target: Walk, **how: Any) -> None:
    if source.list or target.list:
        worker.endpoint.put_indexed(source, target, **how)
    elif source.levels or target.levels:
        worker.endpoint.put_strided(source, target, **how)
    else:
        worker.endpoint.put(
            source.key, source.offset, target.key, target.offset, source.length, **how
        )


def put_inline(worker: Worker, source: Walk, target: Walk, **how: Any) -> None:
    data = worker.source.memory[source.offset : source.offset + source.length]
    worker.endpoint.put_inline(data.tobytes(), target.key, target.offset, **how)


def get(worker: Worker, source: Walk, target: Walk, *, node: int, tag: int, **_: Any) -> None:
    """A get has no notice, so the other side learns nothing."""
    if source.list or target.list:
        worker.endpoint.get_indexed(source, target, node=node, tag=tag)
    elif source.levels or target.levels:
        worker.endpoint.get_strided(source, target, node=node, tag=tag)
    else:
        worker.endpoint.get(
            source.key, source.offset, target.key, target.offset, source.length, node=node, tag=tag
        )


OPERATIONS = {"put": put, "put-inline": put_inline, "get": get}


# Program ------------------------------------------------------------------------------------------


class Worker(Program):
    """Memory for the largest point on either side, and for the longest lists of both: the source's,
    then the target's.
    """

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Point]
    ) -> None:
        super().__init__(uri, node, firmware, seed)
        self.allocate(
            max((p.extent(p.source) for p in points if node in p.senders), default=1),
            max((p.extent(p.target) for p in points if 1 - node in p.senders), default=1),
        )
        self.lists = None
        self.entries = max(
            (len(pattern.entries) for p in points for pattern in (p.source, p.target)), default=0
        )
        if self.entries:
            self.lists = self.endpoint.register(
                libdibber.alloc(2 * self.entries * C.LIST_ENTRY_BYTES), RIGHT.LOCAL_READ
            )
        longest = max(
            (p.source.length for p in points if p.operation == "sendrecv-postal"), default=0
        )
        self.mailbox = self.open(MAILBOX_ENDPOINT).mailbox(max_length=longest) if longest else None
        self.connected = False

    @property
    def keys(self) -> dict[str, Any]:
        return {
            **super().keys,
            "mailbox": self.mailbox and self.mailbox.address(),
            **({"lists": self.lists.key} if self.lists else {}),
        }

    def connected_mailbox(self, address: bytes) -> libdibber.Mailbox:
        """The mailbox, connected with that of the other side."""
        assert self.mailbox is not None  # a point of the run needs it
        if not self.connected:
            self.mailbox.connect(address)
            self.connected = True
        return self.mailbox

    def close(self) -> None:
        if self.mailbox:
            self.mailbox.close()
        if self.lists:
            self.lists.close()
        super().close()

    def _place_of_list(self, key: int | None, target: int) -> dict[str, Any]:
        return (
            {"list_key": key, "list_offset": target * self.entries * C.LIST_ENTRY_BYTES}
            if self.lists
            else {}
        )

    def prepare(self, point: Point) -> None:
        """Fill memory, write lists, pack."""
        for number, pattern in enumerate((point.source, point.target)):
            if pattern.entries and self.lists:
                self.lists.memory.view(np.int64)[number * self.entries :][
                    : len(pattern.entries)
                ] = pattern.entries
        if self.node in point.senders:
            memory = self.source.memory[: point.extent(point.source)]
            memory[:] = point.source_memory(self.seed, self.node)
            point.pack(memory)
        if 1 - self.node in point.senders:
            self.target.memory[: point.extent(point.target)] = FILL
            self.wanted = point.expected(self.seed, 1 - self.node)

    def _issue(self, point: Point, count: int, keys: dict[str, Any], last: bool) -> None:
        """Issue the transfer after `count` others; the last one has a notice."""
        n = count % point.transfers
        source, source_base = point.moved(point.source)
        target, target_base = point.moved(point.target)
        source_keys, target_keys = (keys, self.keys) if point.pulls else (self.keys, keys)
        OPERATIONS[point.operation](
            self,
            source.walk(
                source_keys["source"],
                source_base,
                n,
                **self._place_of_list(source_keys.get("lists"), False),
            ),
            target.walk(
                target_keys["target"],
                target_base,
                n,
                **self._place_of_list(target_keys.get("lists"), True),
            ),
            node=1 - self.node,
            tag=count,
            notice=point.number if last else None,
            endpoint=1,
        )

    def _noticed(self, point: Point) -> bool:
        """Return whether the other side's last transfer has come."""
        events = self.endpoint.poll_events()
        for event in events:
            if event.notice != point.number:
                raise Failed(f"notice {event.notice} came instead of {point.number}")
        return bool(events)

    def _transfer(self, point: Point, keys: dict[str, Any]) -> dict[str, Any]:
        """Issue transfers with `outstanding` under way, and wait for the completions. The time is
        from the first call to the poll that took the last completion.
        """
        begin = end = self.endpoint.clock()
        issued, completed, more = 0, 0, self.node in point.issuers
        awaited = 1 - self.node in point.senders and not point.pulls
        while more or completed < issued or awaited:
            while more and issued - completed < point.outstanding:
                more = not self._is_last(point, issued, begin.now_ps)
                self._issue(point, issued, keys, not more)
                issued += 1
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed(
                    f"{issued - completed} of {issued} transfers did not complete"
                    if completed < issued
                    else "no notice came"
                )
            if completed < issued:
                completed += reap(self.endpoint)
                if completed == issued and not more:
                    end = self.endpoint.clock()
            if awaited:
                awaited = not self._noticed(point)
        return {
            "elapsed_ps": end.now_ps - begin.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
            "transfers": issued,
        }

    def _is_last(self, point: Point, issued: int, begin_ps: int) -> bool:
        """Whether the transfer after `issued` others is the last one."""
        if issued < max(point.transfers, point.iterations) - 1:
            return False
        return not point.duration_ps or self.endpoint.clock().now_ps - begin_ps >= point.duration_ps

    def run(self, point: Point, keys: dict[str, Any]) -> dict[str, Any]:
        """Transfer, unpack, compare every byte."""
        result = EXCHANGES.get(point.operation, Worker._transfer)(self, point, keys)
        if 1 - self.node in point.senders:
            memory = self.target.memory[: point.extent(point.target)]
            point.unpack(memory)
            result.update(
                bytes_wrong=int(np.count_nonzero(memory != self.wanted)), guards=point.guards
            )
        return result
