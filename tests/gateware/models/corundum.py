"""Corundum's DMA interface as it is promised to an application, written from its description.

The engine takes a write descriptor and a read descriptor in two cycles each at most. It fetches the
bytes of a write from the segmented RAM and writes them to host memory; writes keep their order. It
reads host memory in any order, stores the bytes in the segmented RAM, and waits until all are
stored. Each descriptor gets one status with its tag and an error code, in any order.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import passive

NO_ERROR, TIMEOUT, PARITY, POISONED, UNSUPPORTED, ABORTED = 0, 1, 2, 9, 10, 11
AXI_ERRORS, RESET = (4, 5, 6, 7), 8
ERRORS = (TIMEOUT, PARITY, *AXI_ERRORS, RESET, POISONED, UNSUPPORTED, ABORTED)


class Engine:
    """One direction of the engine: descriptors in, statuses out. `begin(descriptor)` starts one.

    taken  : number of descriptors; `cycles` when each was taken
    stuck  : nothing is taken, and nothing ends
    busy   : share of cycles in which it would take a descriptor
    delay  : (least, most) cycles from the end of the work to the status
    """

    def __init__(self, descriptors, status, random, ring, busy, delay):
        self.descriptors, self.status = descriptors, status
        self.random, self.ring = random, ring
        self.busy, self.delay = busy, delay
        self.stuck = False
        self.pending, self.due = {}, []
        self.cycles, self.cycle = [], 0
        self.offer = None
        self.ready = self.shown = 0
        self.strays = []  # statuses of descriptors that there are not

    def places(self, descriptor):
        """The bytes of the RAM that a descriptor uses, as a range and its length."""
        return descriptor["ram_addr"] % self.ring, descriptor["len"]

    def check(self, descriptor):
        assert descriptor["tag"] not in self.pending, "two descriptors with one tag"
        assert 1 <= descriptor["len"] <= 4096
        start, length = self.places(descriptor)
        for other in self.pending.values():
            begin, size = self.places(other)
            apart = (begin - start) % self.ring >= length and (start - begin) % self.ring >= size
            assert apart, f"{descriptor} and {other} share bytes of the RAM"

    def step(self):
        """One cycle, before the clock edge; a generator."""
        self.cycle += 1
        descriptors, status = self.descriptors, self.status
        if (yield descriptors.valid):
            offer = {}
            for name in ("dma_addr", "ram_addr", "len", "tag"):
                offer[name] = yield getattr(descriptors, name)
            assert self.offer in (None, offer), f"{self.offer} became {offer}"
            self.offer = offer
            if self.ready:
                self.check(offer)
                self.pending[offer["tag"]] = offer
                self.cycles.append(self.cycle)
                self.begin(offer)
                self.offer = None
        else:
            assert self.offer is None, "a descriptor was withdrawn"
        # At most one descriptor in two cycles.
        ready = int(not self.stuck and not self.ready and self.random.random() < self.busy)
        if ready != self.ready:
            self.ready = ready
            yield descriptors.ready.eq(ready)
        ended = [entry for entry in self.due if entry[0] <= self.cycle and not self.stuck]
        if self.strays and self.random.random() < 0.3:
            tag, error = self.strays.pop()
        elif ended:
            entry = self.random.choice(ended)
            self.due.remove(entry)
            _, tag, error = entry
            del self.pending[tag]
        elif self.shown:
            self.shown = 0
            yield status.valid.eq(0)
            return
        else:
            return
        self.shown = 1
        yield status.valid.eq(1)
        yield status.tag.eq(tag)
        yield status.error.eq(error)

    def end(self, descriptor, error):
        self.due.append((self.cycle + self.random.randint(*self.delay), descriptor["tag"], error))


class CorundumDMA:
    """The engine between a CorundumHost and a memory.

    Parameters
    ----------
    host    : the CorundumHost
    memory  : dict address -> byte
    random  : Random
    busy    : share of cycles in which RAM and descriptors move
    delay   : (least, most) cycles to a status, and to the data of a read
    lag     : (least, most) cycles that a write waits before it reaches the memory
    refuse  : function (kind, address) -> error code; kind is "write" or "read"

    Attributes
    ----------
    writes, reads : Engine
    landed  : list of (address, bytes), in the order in which they reached the memory
    """

    def __init__(self, host, memory, random, busy=0.7, delay=(4, 60), lag=(0, 0), refuse=None):
        self.host, self.memory, self.random = host, memory, random
        self.busy, self.delay, self.lag = busy, delay, lag
        self.refuse = refuse or (lambda kind, address: NO_ERROR)
        self.segments = len(host.departures.commands)
        self.width = len(host.departures.responses[0].data) // 8
        self.landed = []
        ports = (host.departures.commands[0].addr, host.arrivals.commands[0].addr)
        self.depths = [2 ** len(address) for address in ports]
        rings = [depth * self.segments * self.width for depth in self.depths]
        self.writes = Engine(
            host.write_descriptors, host.write_status, random, rings[0], busy, delay
        )
        self.reads = Engine(host.read_descriptors, host.read_status, random, rings[1], busy, delay)
        self.writes.begin, self.reads.begin = self.begin_write, self.begin_read
        self.fetches = [[] for _ in range(self.segments)]  # commands: (address, word)
        self.awaited = [[] for _ in range(self.segments)]  # words that come, in order
        self.order = []  # writes that are not in memory
        self.stores = [[] for _ in range(self.segments)]  # (address, data, be, read)
        self.storing = [[] for _ in range(self.segments)]
        self.later = []  # reads that wait for their data: (cycle, descriptor)
        self.commanded = [0] * self.segments
        self.taking = [0] * self.segments
        self.storing_now = [0] * self.segments

    def words(self, descriptor, depth):
        """Segment words of a descriptor: (segment, address, first byte in it, place, count)."""
        place = 0
        start, length = descriptor["ram_addr"], descriptor["len"]
        while place < length:
            byte = start + place
            count = min(self.width - byte % self.width, length - place)
            word = byte // self.width
            yield (
                word % self.segments,
                word // self.segments % depth,
                byte % self.width,
                place,
                count,
            )
            place += count

    # Writes ---------------------------------------------------------------------------------------

    def begin_write(self, descriptor):
        work = dict(descriptor, data=bytearray(descriptor["len"]), left=0)
        for segment, address, byte, place, count in self.words(descriptor, self.depths[0]):
            self.fetches[segment].append((address, (work, byte, place, count)))
            work["left"] += 1
        self.order.append(work)

    def finish_writes(self):
        """Whole writes reach the memory, in their order."""
        while self.order and not self.order[0]["left"] and not self.writes.stuck:
            lands = self.writes.cycle + self.random.randint(*self.lag)
            if self.order[0].setdefault("lands", lands) > self.writes.cycle:
                break
            work = self.order.pop(0)
            error = self.refuse("write", work["dma_addr"])
            if not error:
                for n, byte in enumerate(work["data"]):
                    self.memory[work["dma_addr"] + n] = byte
                self.landed.append((work["dma_addr"], bytes(work["data"])))
            self.writes.end(work, error)

    def fetch(self, segment):
        command = self.host.departures.commands[segment]
        response = self.host.departures.responses[segment]
        if self.commanded[segment] and (yield command.ready):
            self.awaited[segment].append(self.fetches[segment].pop(0)[1])
            self.commanded[segment] = 0
            yield command.valid.eq(0)
        if self.taking[segment] and (yield response.valid):
            data = (yield response.data).to_bytes(self.width, "little")
            work, byte, place, count = self.awaited[segment].pop(0)
            work["data"][place : place + count] = data[byte : byte + count]
            work["left"] -= 1
        if self.fetches[segment] and not self.commanded[segment]:
            if self.random.random() < self.busy:
                self.commanded[segment] = 1
                yield command.valid.eq(1)
                yield command.addr.eq(self.fetches[segment][0][0])
        taking = int(self.random.random() < self.busy)
        if taking != self.taking[segment]:
            self.taking[segment] = taking
            yield response.ready.eq(taking)

    # Reads ----------------------------------------------------------------------------------------

    def begin_read(self, descriptor):
        self.later.append((self.reads.cycle + self.random.randint(*self.delay), descriptor))

    def read_memory(self, descriptor):
        error = self.refuse("read", descriptor["dma_addr"])
        if error and error != POISONED:
            return self.reads.end(descriptor, error)
        work = dict(descriptor, left=0, error=error)
        data = [self.memory.get(work["dma_addr"] + n, 0) for n in range(work["len"])]
        if error:
            data = [byte ^ 0xFF for byte in data]
        for segment, address, byte, place, count in self.words(descriptor, self.depths[1]):
            value = int.from_bytes(bytes(data[place : place + count]), "little") << 8 * byte
            be = (1 << count) - 1 << byte
            self.stores[segment].append((address, value, be, work))
            work["left"] += 1

    def store(self, segment):
        command = self.host.arrivals.commands[segment]
        if self.storing_now[segment]:
            assert (yield command.ready)
            self.storing[segment].append(self.stores[segment].pop(0)[3])
            self.storing_now[segment] = 0
            yield command.valid.eq(0)
        if self.stores[segment] and self.random.random() < self.busy:
            address, value, be, _ = self.stores[segment][0]
            self.storing_now[segment] = 1
            yield command.valid.eq(1)
            yield command.addr.eq(address)
            yield command.data.eq(value)
            yield command.be.eq(be)

    # Run ------------------------------------------------------------------------------------------

    @passive
    def run(self):
        done = self.host.arrivals.done
        while True:
            yield from self.writes.step()
            yield from self.reads.step()
            if any(self.fetches) or any(self.awaited):
                for segment in range(self.segments):
                    yield from self.fetch(segment)
            self.finish_writes()
            if self.later and not self.reads.stuck:
                due = [entry for entry in self.later if entry[0] <= self.reads.cycle]
                if due:
                    entry = self.random.choice(due)
                    self.later.remove(entry)
                    self.read_memory(entry[1])
            if any(self.storing):
                stored = yield done
                for segment in range(self.segments):
                    if stored >> segment & 1:
                        work = self.storing[segment].pop(0)
                        work["left"] -= 1
                        if not work["left"]:
                            self.reads.end(work, work["error"])
            if any(self.stores) or any(self.storing_now):
                for segment in range(self.segments):
                    yield from self.store(segment)
            yield
