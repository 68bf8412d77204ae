# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The program that transfers the points of `stride`, `block`, `element`, `bidir` and `matrix`, and compares every byte."""

import numpy as np

from dibber_cli.bench.messages import EXCHANGES, MAILBOX_ENDPOINT
from dibber_cli.bench.point import FILL
from dibber_cli.bench.program import TIMEOUT_NS, Failed, Program, reap


# Operations ---------------------------------------------------------------------------------------
# One transfer between the Walk `source` and the Walk `target`, by the call that a program would take for it.

def put(worker, source, target, **how):
    if source.levels or target.levels:
        worker.endpoint.put_strided(source, target, **how)
    else:
        worker.endpoint.put(source.key, source.offset, target.key, target.offset, source.length, **how)


def put_inline(worker, source, target, **how):
    data = worker.source.memory[source.offset:source.offset + source.length]
    worker.endpoint.put_inline(data.tobytes(), target.key, target.offset, **how)


def get(worker, source, target, *, node, tag, **_):
    """Nobody there is told: a get has no notice."""
    if source.levels or target.levels:
        worker.endpoint.get_strided(source, target, node=node, tag=tag)
    else:
        worker.endpoint.get(source.key, source.offset, target.key, target.offset, source.length, node=node, tag=tag)


OPERATIONS = {"put": put, "put-inline": put_inline, "get": get}


# Program ------------------------------------------------------------------------------------------

class Worker(Program):
    """Memory for the largest point on either side."""

    def __init__(self, uri, node, firmware, seed, points):
        super().__init__(uri, node, firmware, seed)
        self.allocate(max((p.extent(p.source) for p in points if node in p.senders), default=1),
                      max((p.extent(p.target) for p in points if 1 - node in p.senders), default=1))
        longest      = max((p.source.length for p in points if p.operation == "sendrecv-postal"), default=0)
        self.mailbox = self.open(MAILBOX_ENDPOINT).mailbox(max_length=longest) if longest else None
        self.connected = False

    @property
    def keys(self):
        return {**super().keys, "mailbox": self.mailbox and self.mailbox.address()}

    def connected_mailbox(self, address):
        """The mailbox, connected with that of the other side."""
        if not self.connected:
            self.mailbox.connect(address)
            self.connected = True
        return self.mailbox

    def close(self):
        if self.mailbox:
            self.mailbox.close()
        super().close()

    def prepare(self, point):
        """Fill memory, pack."""
        if self.node in point.senders:
            memory = self.source.memory[:point.extent(point.source)]
            memory[:] = point.source_memory(self.seed, self.node)
            point.pack(memory)
        if 1 - self.node in point.senders:
            self.target.memory[:point.extent(point.target)] = FILL
            self.wanted = point.expected(self.seed, 1 - self.node)

    def _issue(self, point, n, keys):
        source, source_base = point.moved(point.source)
        target, target_base = point.moved(point.target)
        source_key, target_key = ((keys["source"], self.target.key) if point.pulls else
                                  (self.source.key, keys["target"]))
        last = n == point.transfers - 1
        OPERATIONS[point.operation](
            self, source.walk(source_key, source_base, n), target.walk(target_key, target_base, n),
            node=1 - self.node, tag=n, notice=point.number if last else None, endpoint=1)

    def _noticed(self, point):
        """Whether the other side's last transfer has come."""
        events = self.endpoint.poll_events()
        for event in events:
            if event.notice != point.number:
                raise Failed(f"notice {event.notice} came instead of {point.number}")
        return bool(events)

    def _transfer(self, point, keys):
        """Issue, with `outstanding` commands under way, and wait for what comes. Times from the first call to the
        poll that took the last completion."""
        begin = end = self.endpoint.clock()
        issued, left = 0, point.transfers if self.node in point.issuers else 0
        awaited = 1 - self.node in point.senders and not point.pulls
        while left or awaited:
            while left and issued < point.transfers and issued - (point.transfers - left) < point.outstanding:
                self._issue(point, issued, keys)
                issued += 1
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed(f"{left} of {point.transfers} transfers did not complete" if left else "no notice came")
            if left:
                left -= reap(self.endpoint)
                if not left:
                    end = self.endpoint.clock()
            if awaited:
                awaited = not self._noticed(point)
        return {"elapsed_ps": end.now_ps - begin.now_ps, "cpu_ps": end.cpu_ps - begin.cpu_ps, "free": end.free}

    def run(self, point, keys):
        """Transfer, unpack, compare every byte."""
        result = EXCHANGES.get(point.operation, Worker._transfer)(self, point, keys)
        if 1 - self.node in point.senders:
            memory = self.target.memory[:point.extent(point.target)]
            point.unpack(memory)
            result.update(bytes_wrong=int(np.count_nonzero(memory != self.wanted)), guards=point.guards)
        return result
