"""Strided transfers between two simulated cards on a cable without errors: what left the cards, and
how long it took.

The users of a case are endpoints of card 0. Each of them starts its transfers at the same time as
the others.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import random
from dataclasses import dataclass, field

import libdibber
import numpy as np
from dibber.deposit.tags import UNEXTENDED
from dibber.interface.description import RIGHT, STATUS, C
from dibber_cli import profile
from dibber_cli.bench.bound import COVER, bound
from dibber_cli.bench.bound import Side as BoundSide
from libdibber import Walk

from tests.system.pair import SECOND, Pair

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
SIZES = (1, 2, 3, 4, 8, 64)  # bytes of an element
# bytes from one element to the next; those below the element's size are multiplied by it
STRIDES = (7, 66, 1000, -9, -66)
FAR = 0x1000_0000  # a bus address, for the bound
# seconds from the call to the first payload and from the last to the completion, at most
STARTS = 12e-6
# Cycles of the card's clock in which a tag is neither free nor at the host: from the allocation to
# the request's departure, and from the completion's arrival to the tag's return. Measured on gen2x4
# (a tag takes 480 ns, of which the host's latency is 400 ns).
TAG_CYCLES = 10
READ_LATENCY = 400e-9  # seconds: pcie.read_latency_ns of every profile
# Share of the limit that each transfer reaches.
LEAST_SHARE = 0.9

# Machines: a profile, what is changed of it, and the same for the bound.
REQUESTS = {"pcie.max_payload": 128, "pcie.max_read_request": 128, "pcie.extended_tags": "false"}
MACHINES = {
    "gen2x4": ("gen2x4", {}),
    "gen2x1": ("gen2x1", {}),
    "gen1x1": ("gen1x1", {}),
    "gen2x1 slow": ("gen2x1", {"pcie.rate_gbps": 2.5}),  # as gen1x1, with the card of gen2x1
    "gen2x4 short": ("gen2x4", REQUESTS),
    "gen2x1 short": ("gen2x1", REQUESTS),
    "gen1x1 short": ("gen1x1", REQUESTS),
}


def options(machine):
    """Of dibber-sim."""
    return [
        word for key, value in MACHINES[machine][1].items() for word in ("--set", f"{key}={value}")
    ]


def profile_of(machine):
    """The Profile of a machine."""
    name, changes = MACHINES[machine]
    known = {
        "pcie.max_payload": "max_payload",
        "pcie.max_read_request": "max_read_request",
        "pcie.rate_gbps": "pcie_rate",
    }
    values = {
        known[key]: value * (1e9 if key == "pcie.rate_gbps" else 1)
        for key, value in changes.items()
        if key in known
    }
    return dataclasses.replace(profile.load(name), **values)


def open_pair(machine, seed):
    """A Pair of this machine."""
    return Pair(MACHINES[machine][0], seed, options(machine))


@dataclass(frozen=True)
class Case:
    """Elements of `size` bytes, `count` for each user. A stride of 0: the side is contiguous.

    way      : "put" or "get"
    source, target : stride in bytes
    checksum : the put has CHECKSUM
    """

    size: int
    count: int
    source: int = 0
    target: int = 0
    users: int = 1
    way: str = "put"
    checksum: bool = False

    @property
    def length(self):
        return self.size * self.count

    @property
    def words(self):
        """Payload words that have to leave both cards, packet by packet; a get is a message."""
        full, rest = divmod(self.length, C.PACKET_PAYLOAD)
        message = 0 if self.way == "put" else C.MESSAGE_BYTES // 4
        return self.users * (full * C.PACKET_PAYLOAD // 4 + (rest + 3) // 4 + message)

    def span(self, stride):
        """Bytes of memory of a side, for one user."""
        return abs(stride) * (self.count - 1) + self.size if stride else self.length

    def first(self, stride):
        """Offset of the first element in that memory."""
        return self.span(stride) - self.size if stride < 0 else 0

    def places(self, stride):
        """Offsets of all bytes of a side, in the order of the transfer."""
        step = stride or self.size
        return (
            self.first(stride) + step * np.arange(self.count)[:, None] + np.arange(self.size)
        ).ravel()

    def walk(self, key, stride):
        if not stride:
            return Walk(key, self.length)
        return Walk(key, self.size, self.first(stride), ((self.count, stride),))

    def bound_side(self, stride):
        if not stride:
            return BoundSide(self.length, address=FAR)
        return BoundSide(self.size, ((self.count, stride),), FAR + self.first(stride))

    def tag_limit(self, machine):
        """Bytes a second that this card's tags allow where the host has no extended tags. It counts
        for elements so far apart that each has a read of its own.
        """
        changes = MACHINES[machine][1]
        if changes.get("pcie.extended_tags") != "false" or abs(self.source) - self.size <= COVER:
            return float("inf")
        held = READ_LATENCY + TAG_CYCLES / profile_of(machine).clock_hz
        return UNEXTENDED / held * self.size

    def walk_limit(self, machine):
        """Bytes a second that the walkers allow: each of them gives one element a cycle. The bound
        lets several near elements come by one beat of a covering read.
        """
        strided = self.source or self.target
        return self.size * profile_of(machine).clock_hz if strided else float("inf")

    def limit(self, machine):
        """Bytes a second: the bound, which no card passes (dibber_cli/bench/bound.py), or what the
        tags or the walkers of this card allow, if that is less.
        """
        sides = self.bound_side(self.source), self.bound_side(self.target)
        return min(
            bound(profile_of(machine), *sides).value,
            self.tag_limit(machine),
            self.walk_limit(machine),
        )


@dataclass
class Outcome:
    """What a case did.

    sent     : payload words that left both cards
    fast     : completions and answers without the control program
    seconds  : from the first start to the last completion
    statuses : of all completions, in their order
    wrong    : bytes of the targets that are not as they should be
    """

    case: Case
    sent: int
    fast: int
    seconds: float
    statuses: list = field(repr=False)
    wrong: int

    def share(self, machine):
        """Of the limit, without the time in which nothing moves yet or any more."""
        return (
            self.case.users
            * self.case.length
            / max(self.seconds - STARTS, 1e-9)
            / self.case.limit(machine)
        )

    def trouble(self, machine):
        """What is wrong with it, as sentences."""
        case, said = self.case, []
        if any(self.statuses):
            said.append(
                "ended with " + ", ".join(sorted({str(STATUS(s)) for s in self.statuses if s}))
            )
        if self.wrong:
            said.append(f"{self.wrong} bytes wrong")
        if self.sent != case.words:
            said.append(f"{self.sent} words sent for {case.words}")
        if not self.is_fast():
            said.append(f"{self.fast} ended without the control program")
        if (share := self.share(machine)) < LEAST_SHARE:
            said.append(f"{100 * share:.1f} % of the limit, and {100 * LEAST_SHARE:.0f} % is asked")
        return said

    def is_fast(self):
        """No transfer was claimed. An answer counts at its target, and its command at the card that
        asked.
        """
        return self.fast == self.case.users * (2 if self.case.way == "get" else 1)


# On the sides -------------------------------------------------------------------------------------


def _endpoints(side, users):
    if not hasattr(side, "more"):
        side.more = {1: side.endpoint}
    for number in range(users):
        if number not in side.more:
            side.more[number] = side.card.endpoint(number)
    return [side.more[number] for number in range(users)]


def _prepare(side, users, span, fill):
    """Memory for each user; returns the keys."""
    for region in getattr(side, "held", []):
        region.close()
    side.held = []
    for number, endpoint in enumerate(_endpoints(side, users)):
        memory = libdibber.alloc(span)
        memory[:] = np.random.default_rng(number).integers(1, 256, span, np.uint8) if fill else 0
        side.held.append(endpoint.register(memory, ALL))
    return [region.key for region in side.held]


def _counts(side):
    counters = side.card.info()["counters"]
    return [counters["bytes_sent"], counters["fast_completions"] + counters["fast_answers"]]


def _transfer(side, case, keys):
    endpoints = _endpoints(side, case.users)
    begin = endpoints[0].clock().now_ps
    for endpoint, region, key in zip(endpoints, side.held, keys):
        if case.way == "put":
            endpoint.put_strided(
                case.walk(region.key, case.source),
                case.walk(key, case.target),
                node=1,
                checksum=case.checksum,
            )
        else:
            endpoint.get_strided(
                case.walk(key, case.source), case.walk(region.key, case.target), node=1
            )
    statuses = []
    for endpoint in endpoints:
        while not (done := endpoint.poll()):
            if not endpoint.wait(20 * SECOND):
                raise TimeoutError(f"no completion in 20 s: {case}")
        statuses += [entry.status for entry in done]
    return statuses, (endpoints[0].clock().now_ps - begin) * 1e-12


def _memory(side, places):
    return [region.memory[places].tobytes() for region in side.held]


def run(pair, case):
    """Do a case on an open Pair."""
    here, there = (case.source, case.target) if case.way == "put" else (case.target, case.source)
    reads = case.way == "put"
    mine, keys = pair.together(
        (_prepare, case.users, case.span(here), reads),
        (_prepare, case.users, case.span(there), not reads),
    )
    before = pair.together((_counts,), (_counts,))
    statuses, seconds = pair.first(_transfer, case, keys)
    after = pair.together((_counts,), (_counts,))
    left, right = pair.together((_memory, case.places(here)), (_memory, case.places(there)))
    wrong = sum(
        np.count_nonzero(np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8))
        for a, b in zip(left, right)
    )
    sent, fast = (sum(a[n] - b[n] for a, b in zip(after, before)) for n in range(2))
    return Outcome(case, sent, fast, seconds, statuses, int(wrong))


# Cases --------------------------------------------------------------------------------------------


def stride_of(size, stride):
    """A stride at which no two elements share a byte."""
    return stride if abs(stride) >= size else stride * size


def grid(length=12_288, most=8192, users=(1, C.ENDPOINTS), ways=("put", "get")):
    """Each element size by each stride, at the source, at the target, and at both.

    length, most : bytes and elements that all users move together, at most
    """
    for number in users:
        for size in SIZES:
            count = max(8, min(most, length // size) // number)
            for stride in STRIDES:
                there = stride_of(size, stride)
                for way in ways:
                    for source, target in ((there, 0), (0, there), (there, stride_of(size, 66))):
                        yield Case(size, count, source, target, number, way)


def sample(seed, number, **how):
    """So many cases of the grid: of each element size in turn."""
    cases, chosen = list(grid(**how)), random.Random(seed)
    return [
        chosen.choice([case for case in cases if case.size == SIZES[n % len(SIZES)]])
        for n in range(number)
    ]
