"""Host memory that takes writes, one TLP at a time, and says when marked ones have gone."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *


class HostWrite:
    """A generator for Migen's simulator behind `writes`.

    memory  : dict address -> byte, of what was written
    tlps    : list of (address, length, mark)
    landed  : marks given so far
    cycles  : cycle of each TLP's last line
    """

    def __init__(self, writes, marked, random, max_payload, busy=1.0, delay=(0, 20)):
        self.writes, self.marked = writes, marked
        self.random, self.busy = random, busy
        self.max_payload = max_payload
        self.delay = delay
        self.memory, self.tlps = {}, []
        self.cycles, self.landed = [], 0
        self.width = len(writes.dat) // 8

    def take(self, address, length, mark, lines):
        assert 1 <= length <= self.max_payload
        assert address // 4096 == (address + length - 1) // 4096
        first = address - address % self.width
        assert len(lines) == (address + length - 1) // self.width - address // self.width + 1
        data = b"".join(line.to_bytes(self.width, "little") for line in lines)
        for i in range(length):
            self.memory[address + i] = data[address - first + i]
        self.tlps.append((address, length, mark))

    @passive
    def run(self):
        lines, header, due, now, last_due = [], None, [], 0, 0
        while True:
            # Lines of a TLP follow each other without a gap, once the first is taken.
            yield self.writes.ready.eq(int(self.random.random() < self.busy))
            landing = bool(due) and due[0] <= now
            yield self.marked.eq(int(landing))
            yield
            if landing:
                due.pop(0)
                self.landed += 1
            now += 1
            if (yield self.writes.valid):
                this = (
                    (yield self.writes.address),
                    (yield self.writes.length),
                    (yield self.writes.mark),
                )
                assert header in (None, this), "a TLP's address, length or mark changed"
                header = this
                if (yield self.writes.ready):
                    lines.append((yield self.writes.dat))
                    if (yield self.writes.last):
                        self.take(*header, lines)
                        self.cycles.append(now)
                        if header[2]:
                            last_due = max(last_due + 1, now + self.random.randint(*self.delay))
                            due.append(last_due)
                        lines, header = [], None
            else:
                assert not lines, "a gap within a TLP"
