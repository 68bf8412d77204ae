"""Send engine, packets handed over whole, scatter engine: from one host's memory to the other's."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from litex.gen import *

from dibber.deposit.regions import RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send_engine import SendEngine
from dibber.interface.description import C, COMMAND, RIGHT

from tests.gateware.models.compiled import run_simulation, shared
from tests.gateware.models.drive import finish, growing, sink, source
from tests.gateware.models.hostread import HostRead
from tests.gateware.models.hostwrite import HostWrite
from tests.gateware.models.walk import Walk, touched

SOURCE, TARGET = 2**35 + 0x31, 2**37 + 0xF47
LENGTH = 2**20
REGIONS = (  # key, base, rights; all of endpoint 2
    (1, SOURCE, RIGHT.LOCAL_READ),
    (2, TARGET, RIGHT.REMOTE_WRITE),
    (3, SOURCE, 15 - RIGHT.LOCAL_READ),
)
PACKET = ("node", "incarnation", "psn", "flags", "levels", "endpoint", "slot", "skip", "length")


def memory(address):
    return (address * 0x9E3779B1 >> 11) & 0xFF


class Pair(LiteXModule):
    """Both engines and one region table."""

    def __init__(self, data_width, tags):
        self.regions = RegionTable()
        # Long enough for a host that is asked for all its tags at once and answers them in any
        # order.
        self.send = SendEngine(data_width, tags=tags, timeout=1200)
        self.scatter = ScatterEngine(data_width)
        self.comb += [
            self.send.lookup.connect(self.regions.ports[0]),
            self.scatter.lookup.connect(self.regions.ports[1]),
        ]


class Path:
    """Slots, host memories and the way between the engines.

    jobs : list of (command bytes, job fields); packets and payload, block by block, are recorded as
           they come

    Attributes
    ----------
    regions : as REGIONS
    """

    regions = REGIONS

    def __init__(
        self, jobs, data_width, seed=1, busy=1.0, request=256, fault=None, latency=(10, 40), tags=16
    ):
        self.dut = shared(Pair, data_width, tags)
        self.width = data_width // 8
        self.busy = busy
        self.random = Random(seed)
        self.request = request
        self.slots = {}
        self.jobs = []
        for n, (data, fields) in enumerate(jobs):
            # Node and length come with the job; the slot names another node by now.
            length = int.from_bytes(data[COMMAND["length"].offset :][:4], "little")
            fields = (
                dict(
                    endpoint=2,
                    slot=n,
                    psn=10 * n,
                    incarnation=5,
                    epoch=0,
                    node=1,
                    length=length,
                    skip=0,
                    tag=n,
                    response=0,
                    message=0,
                )
                | fields
            )
            self.slots[fields["endpoint"] * C.SLOTS + fields["slot"]] = (
                data[:4] + b"\x09" + data[5:]
            )
            self.jobs.append(fields)
        send, scatter = self.dut.send, self.dut.scatter
        self.reads = HostRead(
            send.reads, send.completions, memory, self.random, latency, fault=fault
        )
        self.writes = HostWrite(scatter.writes, scatter.marked, self.random, 256, busy)
        self.lines, self.packets, self.ended, self.done, self.arrivals = [], [], [], [], []
        self.deposits, self.payload = [], []
        self.started = []
        self.cycle = []

    @passive
    def slot_memory(self):
        port, pipe = self.dut.send.slot, [0, 0]
        while True:
            yield port.ready.eq(int(self.random.random() < self.busy))
            yield port.dat_r.eq(pipe.pop(0))
            yield
            value = self.random.getrandbits(8 * self.width)
            if (yield port.valid) and (yield port.ready):
                slot, line = divmod((yield port.adr), C.SLOT_BYTES // self.width)
                value = int.from_bytes(
                    self.slots[slot][line * self.width : (line + 1) * self.width], "little"
                )
            # Accepted in cycle t; this value is on the port in cycle t + 2.
            pipe.append(value)

    def hand_over(self, values):
        """A packet of the send engine whose lines have all come: make a deposit of it."""
        packet = dict(zip(PACKET, values))
        data = b""
        while len(data) < packet["length"]:
            dat, count, last, error = self.lines.pop(0)
            assert not error
            data += dat.to_bytes(self.width, "little")[:count]
            assert last == (len(data) == packet["length"]) and (last or count == self.width)
        slot = self.slots[packet["endpoint"] * C.SLOTS + packet["slot"]]
        word = lambda offset, size: int.from_bytes(slot[offset : offset + size], "little")
        base = COMMAND["target"].offset
        fields = dict(
            source=1,
            incarnation=packet["incarnation"],
            flags=packet["flags"],
            psn=packet["psn"],
            levels=packet["levels"],
            key=word(base, 4),
            offset=word(base + 8, 8) + (0 if packet["levels"] else packet["skip"]),
            skip=packet["skip"],
            block=word(base + 4, 4),
            length=packet["length"],
            notice=word(COMMAND["notice"].offset, 4),
            notice_length=word(COMMAND["length"].offset, 4),
            notice_endpoint=slot[COMMAND["endpoint"].offset],
        )
        for i in range(3):
            fields[f"stride{i}"] = word(base + 16 + 8 * i, 8)
            fields[f"count{i}"] = word(base + 40 + 4 * i, 4)
        self.deposits.append(fields)
        lines, per_block = [], C.BLOCK_BYTES // self.width
        for at in range(0, len(data), self.width):
            part = data[at : at + self.width]
            lines.append(
                dict(
                    dat=int.from_bytes(part, "little"),
                    bytes=len(part),
                    error=0,
                    last=int(at + self.width >= len(data)),
                )
            )
        self.payload += [lines[at : at + per_block] for at in range(0, len(lines), per_block)]

    def blocks(self):
        """Lines for the scatter engine, with gaps only between blocks, as the receiver lets them
        out.
        """
        for block in growing(self.payload):
            while self.random.random() > self.busy:
                yield None
            yield from block or [None]

    @passive
    def way(self):
        handed = 0
        while True:
            yield
            while handed < len(self.packets):
                values = self.packets[handed]
                if values[PACKET.index("length")]:
                    end = next((n for n, (_, _, last, _) in enumerate(self.lines) if last), None)
                    if end is None:
                        break
                    if self.lines[end][3]:
                        # The packet became void.
                        del self.lines[: end + 1]
                        del self.packets[handed]
                        continue
                self.hand_over(values)
                handed += 1

    def set_up(self):
        """What is done before the first job."""
        yield

    def beside(self):
        """Processes that run beside all others."""
        return []

    def run(self, finished, cycles=8000, settle=40):
        dut, random = self.dut, self.random
        ready = []

        def main():
            yield dut.send.max_request.eq(self.request)
            yield dut.send.extended_tags.eq(1)
            yield dut.scatter.max_payload.eq(256)
            for name, value in dict(node=1, incarnation=5, reset=1).items():
                yield getattr(dut.send.epochs, name).eq(value)
            yield
            yield dut.send.epochs.reset.eq(0)
            table = dut.regions
            for key, base, rights in self.regions:
                for name, value in dict(
                    index=key,
                    key=key,
                    base=base,
                    length=LENGTH,
                    rights=rights,
                    owner=2,
                    valid=1,
                    write=1,
                ).items():
                    yield getattr(table, name).eq(value)
                yield
            yield table.write.eq(0)
            yield from self.set_up()
            yield
            ready.append(True)
            yield from finish(lambda: finished(self), cycles)
            for _ in range(settle):
                yield

        def jobs():
            while not ready:
                yield None
            yield from self.jobs

        send, scatter = dut.send, dut.scatter
        run_simulation(
            dut,
            [
                main(),
                self.slot_memory(),
                self.reads.run(),
                self.writes.run(),
                self.way(),
                *self.beside(),
                source(send.jobs, jobs(), random, self.busy),
                sink(
                    send.payload,
                    ("dat", "bytes", "last", "error"),
                    self.lines,
                    random,
                    self.busy,
                    self.cycle,
                ),
                sink(send.packets, PACKET, self.packets, random, self.busy),
                sink(send.done, ("tag", "status", "psn"), self.ended, random, self.busy),
                source(scatter.deposits, growing(self.deposits), random, self.busy),
                source(scatter.payload, self.blocks(), random),
                sink(
                    scatter.done, ("node", "psn", "refused", "reason"), self.done, random, self.busy
                ),
                sink(
                    scatter.arrivals, ("node", "endpoint", "value", "length"), self.arrivals, random
                ),
            ],
        )
        return self


def walk_of(base, walk, length):
    key, offset, block, strides, counts = walk
    return Walk(base + offset, base, base + LENGTH, block, strides, counts, length)


def expected_memory(puts, walk_of=walk_of):
    """Bytes at the target after puts of (source, target, length), in order; `walk_of` as the one
    here.
    """
    result = {}
    for origin, target, length in puts:
        data = [memory(a) for a in touched(walk_of(SOURCE, origin, length))]
        result.update(zip(touched(walk_of(TARGET, target, length)), data))
    return result


PUTS = [
    # source, target: key, offset, block, strides, counts; length
    ((1, 5, 0, (), ()), (2, 1000, 0, (), ()), 1),
    ((1, 77, 0, (), ()), (2, 4000, 8, (24,), (40,)), 320),
    ((1, 900, 8, (-16,), (50,)), (2, 6001, 0, (), ()), 400),
    ((1, 3000, 7, (11, 100), (5, 8)), (2, 9000, 14, (40, -1000), (4, 5)), 280),
    ((1, 9000, 3, (5, 50, 500), (4, 3, 5)), (2, 20000, 45, (60,), (4,)), 180),
    ((1, 12, 0, (), ()), (2, 30000, 0, (), ()), 0),
]
