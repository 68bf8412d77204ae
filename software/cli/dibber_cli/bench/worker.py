# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The two programs of a benchmark: one process and one card each.

Each is driven over a pipe by the process that started both. While a worker waits for that pipe it is outside the simulator's
clock; both leave and both come back for each point, so that simulated time stands in between.
"""

import traceback

import libdibber
import numpy as np

from dibber.interface.description import RIGHT, STATUS
from dibber_cli.bench.point import FILL
from libdibber import DibberError

TIMEOUT_NS = 100_000_000    # of simulated time, for one wait


# Operations ---------------------------------------------------------------------------------------

def put(sender, source, target, **how):
    """One transfer from the Walk `source` to the Walk `target`, by the call that a program would take for it."""
    if source.levels or target.levels:
        sender.put_strided(source, target, **how)
    else:
        sender.put(source.key, source.offset, target.key, target.offset, source.length, **how)


OPERATIONS = {"put": put}


# Workers ------------------------------------------------------------------------------------------

class Failed(Exception):
    """A point did not end as it must."""


class Worker:
    """A card with its control program, an endpoint, and memory for the largest point on either side."""

    def __init__(self, uri, node, firmware, seed, points):
        self.node, self.seed = node, seed
        self.card = libdibber.Card(uri)
        self.card.set_node(node)
        self.card.load_firmware(firmware)
        self.endpoint = self.card.endpoint(1)
        self.source = self._region(max((p.extent(p.source) for p in points if node in p.senders), default=1))
        self.target = self._region(max((p.extent(p.target) for p in points if 1 - node in p.senders), default=1))

    def _region(self, length):
        return self.endpoint.register(libdibber.alloc(length), RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE)

    def close(self):
        self.source.close()
        self.target.close()
        self.endpoint.close()
        self.card.close()

    def prepare(self, point):
        """Before time goes on: fill memory, pack."""
        if self.node in point.senders:
            memory = self.source.memory[:point.extent(point.source)]
            memory[:] = point.source_memory(self.seed, self.node)
            point.pack(memory)
        if 1 - self.node in point.senders:
            self.target.memory[:point.extent(point.target)] = FILL
            self.wanted = point.expected(self.seed, 1 - self.node)

    def _issue(self, point, n, key):
        source, source_base = point.moved(point.source)
        target, target_base = point.moved(point.target)
        last = n == point.transfers - 1
        OPERATIONS[point.operation](
            self.endpoint, source.walk(self.source.key, source_base, n), target.walk(key, target_base, n),
            node=1 - self.node, tag=n, notice=point.number if last else None, endpoint=1)

    def _completed(self):
        """How many transfers have completed."""
        entries = self.endpoint.poll()
        for entry in entries:
            if entry.status != STATUS.OK:
                raise Failed(f"a transfer ended with {STATUS.name_of(entry.status)}")
        return len(entries)

    def _noticed(self, point):
        """Whether the other side's last transfer has come."""
        events = self.endpoint.poll_events()
        for event in events:
            if event.notice != point.number:
                raise Failed(f"notice {event.notice} came instead of {point.number}")
        return bool(events)

    def _transfer(self, point, key):
        """Send, with `outstanding` commands under way, and wait for what comes. Times from the first call to the
        poll that took the last completion."""
        begin = end = self.endpoint.clock()
        issued, left = 0, point.transfers if self.node in point.senders else 0
        awaited = 1 - self.node in point.senders
        while left or awaited:
            while left and issued < point.transfers and issued - (point.transfers - left) < point.outstanding:
                self._issue(point, issued, key)
                issued += 1
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed(f"{left} of {point.transfers} transfers did not complete" if left else "no notice came")
            if left:
                left -= self._completed()
                if not left:
                    end = self.endpoint.clock()
            if awaited:
                awaited = not self._noticed(point)
        return {"elapsed_ps": end.now_ps - begin.now_ps, "cpu_ps": end.cpu_ps - begin.cpu_ps, "free": end.free}

    def run(self, point, key):
        """Transfer, unpack, compare every byte: what came of it, as a dictionary."""
        try:
            result = self._transfer(point, key)
        except Failed as failed:
            return {"failed": str(failed)}
        if 1 - self.node in point.senders:
            memory = self.target.memory[:point.extent(point.target)]
            point.unpack(memory)
            result.update(bytes_wrong=int(np.count_nonzero(memory != self.wanted)), guards=point.guards)
        return result


def _next_order(pipe, worker):
    """The next (point, key of the target), its memory prepared; None when there are no more."""
    order = pipe.recv()
    if order:
        worker.prepare(order[0])
    return order


def main(pipe, uri, node, firmware, seed, points):
    """A worker's process: open, then do each point that comes over the pipe, until None comes."""
    try:
        worker = Worker(uri, node, firmware, seed, points)
        info   = worker.card.info()
        with worker.endpoint.outside_clock():
            pipe.send({"key": worker.target.key, "build": info["build"], "identity": info["mcp_identity"],
                       "interface": info["interface_version"], "hash": info["interface_hash"]})
            order = _next_order(pipe, worker)
        while order:
            result = worker.run(*order)
            with worker.endpoint.outside_clock():
                pipe.send(result)
                order = _next_order(pipe, worker)
        worker.close()
    except (DibberError, OSError, EOFError) as error:
        pipe.send({"failed": str(error), "name": getattr(error, "name", "")})
    except Exception:
        pipe.send({"failed": traceback.format_exc()})
