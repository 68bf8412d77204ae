# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The two programs of the stride benchmark: one process and one card each.

Each is driven over a pipe by the process that started both. While a worker waits for that pipe it is outside the simulator's
clock; both leave and both come back for each point, so that simulated time stands in between.
"""

import traceback

import libdibber
import numpy as np

from dibber.interface.description import RIGHT, STATUS
from dibber_cli.bench import shapes
from libdibber import DibberError

TIMEOUT_NS = 100_000_000    # of simulated time, for one point


class Worker:
    """What both have: a card with its control program, an endpoint, memory for the largest point."""

    side = None

    def __init__(self, uri, node, firmware, seed, points):
        self.seed     = seed
        self.card     = libdibber.Card(uri)
        self.card.set_node(node)
        self.card.load_firmware(firmware)
        self.endpoint = self.card.endpoint(1)
        self.memory   = libdibber.alloc(max(p.extent(self.side) for p in points))
        self.region   = self.endpoint.register(self.memory, RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE)

    def close(self):
        self.region.close()
        self.endpoint.close()
        self.card.close()


class Sender(Worker):
    side = 0

    def prepare(self, point):
        self.memory[:point.extent(0)] = point.source(self.seed)

    def run(self, point, key):
        """Have all transfers under way at once; the last carries the notice. Returns times and a status."""
        begin = self.endpoint.clock()
        for n in range(shapes.TRANSFERS):
            last = n == shapes.TRANSFERS - 1
            self.endpoint.put_strided(point.walk(0, self.region.key, n), point.walk(1, key, n), node=1,
                                      tag=n, notice=point.number if last else None, endpoint=1)
        status, left = STATUS.OK, shapes.TRANSFERS
        while left:
            if not self.endpoint.wait(TIMEOUT_NS):
                return {"failed": f"{left} of {shapes.TRANSFERS} transfers did not complete"}
            for done in self.endpoint.poll():
                left  -= 1
                status = status or done.status
        end = self.endpoint.clock()
        if status:
            return {"failed": f"a transfer ended with {STATUS.name_of(status)}"}
        return {"elapsed_ps": end.now_ps - begin.now_ps, "cpu_ps": end.cpu_ps - begin.cpu_ps, "free": end.free}


class Receiver(Worker):
    side = 1

    def prepare(self, point):
        self.memory[:point.extent(1)] = shapes.FILL
        self.wanted = point.expected(self.seed)

    def run(self, point, _key):
        """Wait for the notice, then compare every byte."""
        if not self.endpoint.wait(TIMEOUT_NS):
            return {"failed": "no notice came"}
        [event] = self.endpoint.poll_events()
        if event.notice != point.number:
            return {"failed": f"notice {event.notice} came instead of {point.number}"}
        wrong = int(np.count_nonzero(self.memory[:point.extent(1)] != self.wanted))
        return {"bytes_wrong": wrong, "guards": point.extent(1) - point.length}


def _next_order(pipe, worker):
    """The next (point, key of the target), its memory prepared; None when there are no more."""
    order = pipe.recv()
    if order:
        worker.prepare(order[0])
    return order


def main(kind, pipe, uri, node, firmware, seed, points):
    """A worker's process: open, then do each point that comes over the pipe, until None comes."""
    try:
        worker = kind(uri, node, firmware, seed, points)
        info   = worker.card.info()
        with worker.endpoint.outside_clock():
            pipe.send({"key": worker.region.key, "build": info["build"], "identity": info["mcp_identity"],
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
