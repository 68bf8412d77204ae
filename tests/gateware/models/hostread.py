"""Host memory that answers reads: split at 64 bytes, in any order across tags, late, wrong, or
never.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *


class HostRead:
    """A generator for Migen's simulator between `reads` and `completions`.

    memory    : function address -> byte
    latency   : (least, most) cycles from request to its first completion
    split     : whether a read may come in several completions
    fault     : function (address) -> None, "error", "never", or cycles of delay; asked for each
                byte of a read until one has a fault, which is then the read's
    pause     : share of cycles without a beat between those of a completion
    among     : an answer goes to one of so many tags that wait longest; 1: in their order
    issued    : list of (address, length, tag), as requested
    """

    def __init__(
        self,
        reads,
        completions,
        memory,
        random,
        latency=(10, 60),
        split=True,
        fault=None,
        busy=1.0,
        pause=0.0,
        among=4,
    ):
        self.reads, self.completions = reads, completions
        self.memory, self.random = memory, random
        self.latency, self.split = latency, split
        self.fault, self.busy = fault or (lambda address: None), busy
        self.pause = pause
        self.among = among
        self.width = len(completions.dat) // 8
        self.issued = []
        self.flight = {}  # tag -> list of (cycle due, completion as list of beats)
        self.phases = {}  # tag -> phase of its last read
        self.most = 0  # reads in flight at once

    def beats(self, tag, address, count, length):
        """One completion of `length` bytes, `count` outstanding before it."""
        result, first = [], address - address % self.width
        for start in range(first, address + length, self.width):
            dat = sum(
                (self.memory(a) if address <= a < address + length else self.random.randrange(256))
                << 8 * (a - start)
                for a in range(start, start + self.width)
            )
            result.append(
                dict(
                    dat=dat,
                    tag=tag,
                    tag_phase=self.phases.get(tag, 0),
                    status=0,
                    lower=address % 128,
                    count=count,
                    bytes=length,
                    last=int(start + self.width >= address + length),
                )
            )
        return result

    def answer(self, now, address, length, tag):
        fault = next(filter(None, map(self.fault, range(address, address + length))), None)
        if fault == "never":
            return
        due = now + self.random.randint(*self.latency) + (fault if isinstance(fault, int) else 0)
        queue, left = [], length
        while left:
            part = left
            if self.split and self.random.random() < 0.6:
                part = min(left, 64 * self.random.randint(1, 3) - address % 64)
            if fault == "error":
                refusal = dict(dat=0, status=1, lower=0, count=left, bytes=0, last=1)
                queue.append((due, [dict(refusal, tag=tag, tag_phase=self.phases[tag])]))
                break
            queue.append((due, self.beats(tag, address, left, part)))
            address += part
            left -= part
        self.flight.setdefault(tag, []).extend(queue)

    @passive
    def run(self):
        now, sending, begun = 0, [], False
        while True:
            yield self.reads.ready.eq(int(self.random.random() < self.busy))
            if not sending:
                ready = [tag for tag, queue in self.flight.items() if queue[0][0] <= now]
                if ready:
                    # One of those that wait longest, so that none waits for ever.
                    tag = self.random.choice(ready[: self.among])
                    sending = self.flight[tag].pop(0)[1]
                    if not self.flight[tag]:
                        del self.flight[tag]
            if sending and not (begun and self.pause and self.random.random() < self.pause):
                for name, value in sending.pop(0).items():
                    yield getattr(self.completions, name).eq(value)
                yield self.completions.valid.eq(1)
                begun = bool(sending)
            else:
                yield self.completions.valid.eq(0)
            yield
            now += 1
            if (yield self.reads.valid) and (yield self.reads.ready):
                address = yield self.reads.address
                length = yield self.reads.length
                tag = yield self.reads.tag
                assert tag not in self.flight, f"tag {tag} is in flight"
                self.issued.append((address, length, tag))
                self.phases[tag] = yield self.reads.tag_phase
                self.answer(now, address, length, tag)
                self.most = max(self.most, len(self.flight))
