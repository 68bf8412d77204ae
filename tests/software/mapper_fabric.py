"""A network of switches in C (mapper_fabric.c) and the mapper of libdibber in it."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import functools
import pathlib
import subprocess

from dibber.interface.description import C
from dibber.interface.generate import c_header, write_if_changed

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "tests" / "mapper"
SWITCHES, PORTS, LINKS = 16, 16, 2
NONE, HOST, SWITCH = range(3)


class Peer(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("port", ctypes.c_uint8), ("number", ctypes.c_uint16)]


class Switch(ctypes.Structure):
    _fields_ = [
        ("ports", ctypes.c_uint8),
        ("level", ctypes.c_uint8),
        ("tells", ctypes.c_uint8),
        ("first", ctypes.c_uint8),
        ("peer", Peer * PORTS),
    ]


class Way(ctypes.Structure):
    _fields_ = [
        ("source", ctypes.c_uint16),
        ("target", ctypes.c_uint16),
        ("route", ctypes.c_uint32),
    ]


class Network(ctypes.Structure):
    _fields_ = [
        ("own", ctypes.c_uint16),
        ("truncated", ctypes.c_uint16),
        ("uplink", Peer * LINKS),
        ("links", ctypes.c_uint32),
        ("hosts", ctypes.c_uint64),
        ("conflicts", ctypes.c_uint64),
        ("scouts", ctypes.c_uint32),
        ("switches", ctypes.c_uint32),
        ("sw", Switch * SWITCHES),
    ]


@functools.cache
def library():
    """The mapper and the network in C, of this tree."""
    OUT.mkdir(parents=True, exist_ok=True)
    write_if_changed(OUT / "dibber_interface.h", c_header())
    source = ROOT / "software" / "lib"
    subprocess.run(
        [
            "gcc",
            "-std=c11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover=all",
            "-shared",
            "-fPIC",
            f"-I{OUT}",
            f"-I{source / 'include'}",
            f"-I{source / 'src'}",
            "-o",
            str(OUT / "mapper.so"),
            str(ROOT / "tests" / "software" / "mapper_fabric.c"),
            str(source / "src" / "mapper.c"),
            str(source / "src" / "updown.c"),
            str(source / "src" / "deadlock.c"),
            str(source / "src" / "error.c"),
        ],
        check=True,
    )
    return ctypes.CDLL(str(OUT / "mapper.so"))


class Fabric:
    """A network; ports are numbered through as in mapper_fabric.c."""

    def __init__(self, library, sizes, hosts, cables, loss=0):
        """`sizes`: ports of each switch. `hosts`: {node: port}, `cables`: pairs of ports. A host
        with two links has two ports, of which None is one without a cable.
        """
        self.library, self.sizes, self.cables = library, sizes, list(cables)
        library.fabric_clear(loss)
        self.first = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
        for n, size in enumerate(sizes):
            library.fabric_switch(n, self.first[n], size)
        self.hosts, self.second = {}, {}  # {node: port of the host's link 0}, of its link 1
        free = self.first[-1]
        for node, port in hosts.items():
            self.hosts[node], free = free, free + 1
            if isinstance(port, int):
                library.fabric_host(node, self.hosts[node])
                self.plug(self.hosts[node], port)
                continue
            self.second[node], free = free, free + 1
            library.fabric_host_of_two(node, self.hosts[node], self.second[node], node)
            for end, at in zip((self.hosts[node], self.second[node]), port):
                if at is not None:
                    self.plug(end, at)
        for one, other in cables:
            self.plug(one, other)
        self.at = dict(hosts)

    def plug(self, one, other):
        self.library.fabric_plug(one, other)

    def unplug(self, cable):
        self.library.fabric_unplug(cable[0])
        self.cables.remove(cable)

    def switch_of(self, port):
        return max(n for n in range(len(self.sizes)) if self.first[n] <= port)

    def reachable(self, node):
        """Nodes in the same part of the network."""
        group, todo = set(), {self.switch_of(self.at[node])}
        while todo:
            n = todo.pop()
            group.add(n)
            for one, other in self.cables:
                for a, b in ((one, other), (other, one)):
                    if self.switch_of(a) == n and self.switch_of(b) not in group:
                        todo.add(self.switch_of(b))
        return {node for node, port in self.at.items() if self.switch_of(port) in group}, group

    def farthest(self, node):
        """Links between switches from the node's own switch to the farthest one."""
        seen, now, steps = set(), {self.switch_of(self.at[node])}, -1
        while now:
            seen |= now
            ends = [(self.switch_of(a), self.switch_of(b)) for a, b in self.cables]
            now = {m for a, b in ends for n, m in ((a, b), (b, a)) if n in now} - seen
            steps += 1
        return steps

    def map(self, node, attempts=1):
        network = Network()
        assert self.library.fabric_map(node, attempts, ctypes.byref(network)) == 0
        return network

    def routes(self, network, node):
        routes = (ctypes.c_uint32 * C.ROUTES)()
        return list(routes[: self.library.dib_network_routes(ctypes.byref(network), node, routes)])

    def walk(self, node, route):
        """(the port where it ends or -1, ports by which it left)."""
        left = (ctypes.c_int * 16)(*[-1] * 16)
        start = (self.second if route & C.ROUTE_LINK else self.hosts)[node]
        end = self.library.fabric_walk(start, route, left)
        return end, [port for port in left if port >= 0]


def plain(network):
    """A map as plain data, without the parts that depend on the mapping host."""
    return [
        (
            sw.ports,
            sw.level,
            [(p.kind, p.number, p.port if p.kind == SWITCH else 0) for p in sw.peer[: sw.ports]],
        )
        for sw in network.sw[: network.switches]
    ]


def random_switches(random, most=4):
    """Up to `most` switches: their sizes, and of each its ports in random order."""
    sizes = [random.choice([4, 8, 16]) for _ in range(random.randrange(1, most + 1))]
    first = [sum(sizes[:n]) for n in range(len(sizes))]
    free = [list(range(f, f + s)) for f, s in zip(first, sizes)]
    for ports in free:
        random.shuffle(ports)
    return sizes, free


def assert_no_circle(waits):
    """Dally and Seitz 1987: no deadlock without a circle in the channel dependency graph."""
    done, path = set(), []

    def visit(port):
        assert port not in path, f"ports that wait for each other: {path[path.index(port) :]}"
        if port in done:
            return
        path.append(port)
        for after in waits.get(port, ()):
            visit(after)
        path.pop()
        done.add(port)

    for port in list(waits):
        visit(port)


def circle(library, network, ways=None):
    """What dib_network_circle() returns, and the outputs in the circle."""
    outputs = (Peer * (SWITCHES * PORTS))()
    array = None if ways is None else (Way * len(ways))(*[Way(*way) for way in ways])
    count = library.dib_network_circle(ctypes.byref(network), array, len(ways or ()), outputs)
    return count, [(output.number, output.port) for output in outputs[: max(0, count)]]
