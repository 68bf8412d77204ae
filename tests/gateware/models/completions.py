"""A host that sends good and bad completions, and a plain model of what must become of each."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from migen import *

from litex.gen import *

from dibber.host.completions import CompletionChecker
from dibber.layouts import FLAW_LENGTH, FLAW_POISON, FLAW_STATUS

ID = 0x0300  # of the card

# Model --------------------------------------------------------------------------------------------


@dataclass
class Read:
    """A read under way: what the host still owes of it."""

    address: int
    length: int
    requester: int
    owed: int
    failed: bool = False
    use: int = 0  # how many reads were sent with this tag before
    phase: int = 0  # that of its tag
    touched: set = field(default_factory=set)  # faults of completions with its tag


@dataclass
class Completion:
    """A completion on its way; `bytes` is how many it carries, `flaw` as in
    `raw_completion_layout`.
    """

    tag: int
    lower: int
    count: int
    bytes: int
    status: int = 0
    requester: int = ID
    modified: int = 0
    flaw: int = 0
    fault: str = ""
    read: Read = None  # for fault "late": the read whose data it carries


class Judge:
    """The rules of `CompletionChecker` in plain words of Python: one completion after the other."""

    def __init__(self):
        self.reads = {}  # tag -> Read
        self.counts = {}  # counter -> pulses

    def sent(self, tag, address, length, requester=ID):
        self.reads[tag] = Read(address, length, requester, length)
        return self.reads[tag]

    def reason(self, read, c):
        """Why a completion of a read is bad; "" when it is good, "refused" when the host gives no
        data.
        """
        at = read.address + read.length - read.owed
        if c.flaw:
            return {
                FLAW_LENGTH: "COMPLETION_BAD_LENGTH",
                FLAW_STATUS: "COMPLETION_BAD_STATUS",
                FLAW_POISON: "COMPLETION_POISONED",
            }[c.flaw]
        if c.requester != read.requester:
            return "COMPLETION_BAD_REQUESTER"
        if c.status:
            return "refused"
        if c.count != (c.bytes if c.modified else read.owed):
            return "COMPLETION_BAD_COUNT"
        if c.lower != at % 128:
            return "COMPLETION_BAD_ADDRESS"
        if c.bytes > read.owed or (c.bytes < read.owed and (at + c.bytes) % 64):
            return "COMPLETION_BAD_LENGTH"
        return ""

    def take(self, c):
        """What is delivered: "" nothing, "pass", "refused", "fail" or "close"; and the address of
        its first byte.
        """
        read = self.reads.get(c.tag)
        if read is None or read.owed == 0:
            self.count("COMPLETION_UNEXPECTED")
            return "", 0
        at = read.address + read.length - read.owed
        reason = self.reason(read, c)
        if reason == "":
            read.owed -= c.bytes
            if read.failed:
                return ("close" if read.owed == 0 else ""), at
            return "pass", at
        if read.failed:
            return "", at
        if reason == "refused":
            read.owed = 0
            return "refused", at
        read.failed = True
        self.count(reason)
        return "fail", at

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1


# Checked Reader -----------------------------------------------------------------------------------


class Checked(LiteXModule):
    """A reader of host memory behind the completion checker, as in the card. `reader` has `reads`,
    `completions` and `tags`. `delay` is how many cycles it takes from a completion to `tags`.
    """

    def __init__(self, data_width, reader, tags, delay=1):
        self.reader = reader
        self.delay = delay
        self.checker = checker = CompletionChecker(data_width, tags)
        self.comb += [
            reader.reads.connect(checker.reads),
            checker.source.connect(reader.completions),
            checker.id.eq(ID),
        ]


# Host ---------------------------------------------------------------------------------------------

FAULTS = (
    "count",
    "early",
    "address",
    "short",
    "long",
    "status",
    "poison",
    "length",
    "requester",
    "tag",
    "lost",
    "double",
    "swap",
    "stray",
    "refused",
    "late",
)


class UnrulyHost:
    """A generator for Migen's simulator behind a CompletionChecker.

    A share `rate` of the reads gets a fault of FAULTS. What the checker gives to its reader must be
    what the Judge says, line by line. Data of completions that must not be used are random.

    The reader may take a tag anew while the read waits for the host. A completion for the tag's
    former read must be unknown to the reader then.

    dut     : Checked
    memory  : function address -> byte
    hold    : share of cycles in which the host begins to take no read for up to 60 cycles
    reads   : list of Read, as they were sent
    taken   : completions that were sent, good and bad
    former  : completions that were shown for a former read of their tag
    """

    def __init__(
        self,
        dut,
        memory,
        random,
        rate=0.2,
        latency=(4, 20),
        boundary=64,
        split=0.5,
        faults=FAULTS,
        hold=0.01,
    ):
        checker = dut.checker
        self.checker, self.memory, self.random = checker, memory, random
        self.pool, self.delay, self.hold = dut.reader.tags, dut.delay, hold
        self.rate, self.latency, self.boundary, self.split, self.faults = (
            rate,
            latency,
            boundary,
            split,
            faults,
        )
        self.width = len(checker.source.dat) // 8
        self.tags = checker.requests.tag
        self.judge = Judge()
        self.reads = []
        self.queues = {}  # tag -> [(due, Completion)]
        self.kept = {}  # tag -> completions that wait until the reader takes the tag anew
        self.taken = self.former = 0
        self.sent = {}  # tag -> reads that were sent with it
        self.expected = []  # lines that the checker must show, in order
        self.hits = dict.fromkeys(faults, 0)
        self.now = 0
        self.recent = []  # completions in their first two cycles at the checker

    # Answers -------------------------------------------------------------------------------------

    def parts(self, tag, address, length):
        """A read as legal completions."""
        result, left = [], length
        while left:
            part = left
            if self.random.random() < self.split:
                part = min(
                    left, self.boundary * self.random.randint(1, 3) - address % self.boundary
                )
            result.append(Completion(tag, address % 128, left, part))
            address += part
            left -= part
        if self.random.random() < 0.05:
            result[0].modified, result[0].count = 1, result[0].bytes
        return result

    def spoil(self, parts, fault):
        """Put a fault into the completions of a read."""
        random = self.random
        n = random.randrange(len(parts))
        c = parts[n]
        c.fault = fault
        if fault == "count":
            c.count = random.choice(
                [c.count + 1, c.count - 1, c.count + 64, c.count ^ 4, 4096, random.randint(1, 4096)]
            )
            c.count = min(max(c.count, 1), 4096)
        elif fault == "early":
            c.count = c.bytes
        elif fault == "address":
            c.lower ^= random.randint(1, 127)
        elif fault == "short":
            c.bytes = random.randint(1, c.bytes)
        elif fault == "long":
            c.bytes += random.choice([1, 4, 8, 64])
        elif fault == "requester":
            c.requester ^= 1 << random.randrange(16)
        elif fault == "tag":
            c.tag = random.choice([random.randrange(256), random.choice(list(self.queues) or [0])])
        elif fault == "lost":
            del parts[n]
        elif fault == "double":
            parts.insert(n + 1, Completion(**vars(c)))
            c.fault = ""
        elif fault == "swap":
            parts[n : n + 2] = reversed(parts[n : n + 2])
        elif fault == "stray":
            parts.insert(
                n,
                Completion(
                    random.randrange(256),
                    random.randrange(128),
                    random.randint(1, 4096),
                    random.randint(1, 64),
                    fault=fault,
                ),
            )
        elif fault == "refused":
            c.status = random.choice([1, 2, 4, 7])
            c.bytes = 0
            c.count = random.choice([c.count, 4, 1])
            del parts[n + 1 :]
        elif fault == "late":
            for late in parts[n:]:
                late.fault = fault
        else:
            c.flaw = {"status": FLAW_STATUS, "poison": FLAW_POISON, "length": FLAW_LENGTH}[fault]
            c.status, c.bytes = 1, 0

    def answer(self, tag, address, length, phase):
        read = self.judge.sent(tag, address, length)
        read.phase = phase
        read.use = self.sent.get(tag, 0)
        self.sent[tag] = read.use + 1
        parts = self.parts(tag, address, length)
        self.reads.append(read)
        if self.random.random() < self.rate:
            fault = self.random.choice(self.faults)
            self.spoil(parts, fault)
            read.touched.add(fault)
        self.kept[tag] = [c for c in parts if c.fault == "late"]
        parts = [c for c in parts if c.fault != "late"]
        for c in self.kept[tag]:
            c.read = read
        due = self.now + self.random.randint(*self.latency)
        # What the host sent once too often may still be on its way when the read has ended.
        late = self.queues.get(tag, [])
        assert all(c.fault in ("double", "stray", "late") for _, c in late), (
            f"tag {tag} was used again too early"
        )
        self.queues[tag] = late + [(due, c) for c in parts]

    def lines(self, c):
        """The lines of a completion to the checker, and those that it must show."""
        read = self.judge.reads.get(c.tag)
        if read is not None and read.owed and c.fault:
            if (
                c.fault in ("tag", "stray", "double", "late")
                and c.read is not read
                and not read.failed
                and self.judge.reason(read, c) == ""
            ):
                return []  # it is a good completion of another read, and cannot be recognized
            read.touched.add(c.fault)
        if c.fault:
            self.hits[c.fault] += 1
        self.taken += 1
        owed = read.owed if read else 0
        counts_before, shown_before = dict(self.judge.counts), len(self.expected)
        verdict, at = self.judge.take(c)
        fields = dict(
            tag=c.tag,
            status=c.status,
            lower=c.lower,
            count=c.count,
            bytes=c.bytes,
            requester=c.requester,
            modified=c.modified,
            flaw=c.flaw,
        )
        begin = c.lower % self.width
        end = begin + c.bytes
        count = max(1, -(-end // self.width)) if c.bytes else 1
        result = []
        for n in range(count):
            dat = self.random.getrandbits(8 * self.width)
            if verdict == "pass":
                for place in range(max(begin, n * self.width), min(end, (n + 1) * self.width)):
                    lane = 8 * (place - n * self.width)
                    dat = dat & ~(0xFF << lane) | self.memory(at + place - begin) << lane
            result.append(dict(fields, dat=dat, last=int(n == count - 1)))
        if verdict in ("pass", "refused"):
            self.expected += [
                (
                    read,
                    (c.tag, c.status, owed, c.bytes, line["last"], 0, read.phase),
                    line["dat"] if c.bytes else None,
                )
                for line in result
            ]
        elif verdict in ("fail", "close"):
            fields_shown = (c.tag, 1, owed, c.bytes, 1, int(verdict == "fail"), read.phase)
            self.expected.append((read, fields_shown, None))
        counted = [n for n, count in self.judge.counts.items() if count != counts_before.get(n, 0)]
        self.recent.append([2, c.tag, counted, self.expected[shown_before:]])
        return result

    def overtaken(self, tag):
        """A read takes `tag` anew in the first two cycles of a completion with that tag.

        The completion is of no read then: nothing of it is shown, and it is counted as unexpected.
        """
        for _, completed, counted, shown in self.recent:
            if completed == tag:
                for name in counted:
                    self.judge.counts[name] -= 1
                self.judge.count("COMPLETION_UNEXPECTED")
                self.expected = [
                    line for line in self.expected if not any(line is gone for gone in shown)
                ]

    # Processes -----------------------------------------------------------------------------------

    @passive
    def run(self):
        checker, random = self.checker, self.random
        sending, valid, held = [], 0, 0
        requests, sink = checker.requests, checker.sink
        while True:
            if random.random() < self.hold:
                held = random.randint(1, 60)
            held -= held > 0
            yield requests.ready.eq(int(not held and random.random() < 0.8))
            while not sending:
                ready = sorted(
                    (queue[0][0], tag)
                    for tag, queue in self.queues.items()
                    if queue and queue[0][0] <= self.now
                )
                if not ready:
                    break
                # One of those that wait longest, so that no read runs out of time.
                sending = self.lines(self.queues[random.choice(ready[:4])[1]].pop(0)[1])
            if sending:
                for name, value in sending.pop(0).items():
                    yield getattr(sink, name).eq(value)
                if not valid:
                    yield sink.valid.eq(1)
                    valid = 1
            elif valid:
                yield sink.valid.eq(0)
                valid = 0
            yield
            self.now += 1
            if (yield requests.valid) and (yield requests.ready):
                self.overtaken((yield requests.tag))
                read = []
                for name in ("tag", "address", "length", "tag_phase"):
                    read.append((yield getattr(requests, name)))
                self.answer(*read)
            elif (yield requests.valid) and self.kept.get(tag := (yield requests.tag)):
                # The reader has the tag anew, and its read waits: the rest of the former one comes.
                late = [(-1, c) for c in self.kept.pop(tag)]
                self.queues[tag] = late + self.queues.get(tag, [])
            self.recent = [[left - 1, *rest] for left, *rest in self.recent if left > 1]

    @passive
    def watch(self):
        """What the checker shows is what the Judge says, and nothing else. The reader takes it only
        if it is of the read for which it took the tag last.
        """
        source, pool = self.checker.source, self.pool
        uses = {}  # tag -> how often the reader took it
        on_way = [None] * self.delay
        while True:
            yield
            read = None
            if (yield source.valid):
                got = []
                for name in ("tag", "status", "count", "bytes", "last", "failed", "tag_phase"):
                    got.append((yield getattr(source, name)))
                read, wanted, dat = self.expected.pop(0)
                assert tuple(got) == wanted, f"{got} is not {wanted}"
                if dat is not None:
                    assert (yield source.dat) == dat
                read = (read, got[0], got[4])
            on_way.append(read)
            if (shown := on_way.pop(0)) is not None:
                read, tag, last = shown
                assert (yield pool.answered) == tag
                if read.use != uses[tag] - 1:
                    assert not (yield pool.known), f"a completion of a former read of tag {tag}"
                    self.former += last
            if (yield pool.source.valid) and (yield pool.source.ready):
                tag = yield pool.source.tag
                uses[tag] = uses.get(tag, 0) + 1
