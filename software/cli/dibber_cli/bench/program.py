# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""One of the two programs of a benchmark: a process with a card of its own.

Each is driven over a pipe by the process that started both. While it waits for that pipe it is outside the simulator's
clock; both leave and both come back for each order, so that simulated time stands in between.
"""

import traceback

import libdibber

from dibber.interface.description import RIGHT, STATUS
from dibber_cli.bench import stages
from libdibber import DibberError

TIMEOUT_NS = 100_000_000    # of simulated time, for one wait
COUNT      = "count"        # the order to read counters; any other is (point, keys of the other side)


class Failed(Exception):
    """A point did not end as it must."""


class Program:
    """A card with its control program, an endpoint, and memory to read from and to write to.

    A program prepares a point while time stands (prepare), does its part of it (run: a dictionary, with "failed" when it
    went wrong), and ends (close).

    keys : of the regions that the other side may name: {"source": …, "target": …}
    """

    def __init__(self, uri, node, firmware, seed, source_bytes, target_bytes):
        self.node, self.seed = node, seed
        self.card = libdibber.Card(uri)
        self.card.set_node(node)
        self.card.load_firmware(firmware)
        self.endpoint = self.card.endpoint(1)
        self.source   = self.region(source_bytes, RIGHT.LOCAL_READ | RIGHT.REMOTE_READ)
        self.target   = self.region(target_bytes, RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE)

    def region(self, length, rights):
        return self.endpoint.register(libdibber.alloc(length), rights)

    @property
    def keys(self):
        return {"source": self.source.key, "target": self.target.key}

    def prepare(self, point):
        """Before time goes on."""

    def run(self, point, keys):
        raise NotImplementedError

    def close(self):
        self.source.close()
        self.target.close()
        self.endpoint.close()
        self.card.close()


def reap(endpoint):
    """Take completions; returns how many. Raises Failed when one tells of an error."""
    entries = endpoint.poll()
    for entry in entries:
        if entry.status != STATUS.OK:
            raise Failed(f"a transfer ended with {STATUS.name_of(entry.status)}")
    return len(entries)


def _next_order(pipe, program):
    """The next order, its point prepared; None when there are no more."""
    order = pipe.recv()
    if order and order != COUNT:
        program.prepare(order[0])
    return order


def _obey(program, order):
    if order == COUNT:
        return stages.read(program.card)
    try:
        return program.run(*order)
    except Failed as failed:
        return {"failed": str(failed)}


def main(pipe, kind, uri, node, firmware, seed, points):
    """The process of a program of class `kind`: open, then do each order that comes over the pipe, until None comes."""
    try:
        program = kind(uri, node, firmware, seed, points)
        info    = program.card.info()
        with program.endpoint.outside_clock():
            pipe.send({"keys": program.keys, "build": info["build"], "identity": info["mcp_identity"],
                       "interface": info["interface_version"], "hash": info["interface_hash"]})
            order = _next_order(pipe, program)
        while order:
            result = _obey(program, order)
            with program.endpoint.outside_clock():
                pipe.send(result)
                order = _next_order(pipe, program)
        program.close()
    except (DibberError, OSError, EOFError) as error:
        pipe.send({"failed": str(error), "name": getattr(error, "name", "")})
    except Exception:
        pipe.send({"failed": traceback.format_exc()})
