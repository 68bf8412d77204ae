# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A plain model of the fast path's flows, and a world around the block that compares each cycle with it."""

from collections import Counter, deque
from dataclasses import dataclass
from random import Random

from migen import *

from dibber.interface.description import C, ENTRY, LANE, STATUS
from dibber.mcp.contexts import Contexts

from compiled import run_simulation
from cut import packets_of

FLOWS   = C.LANES*C.NODES
EXPRESS = LANE.EXPRESS*C.NODES  # a lane's first flow
BULK    = LANE.BULK*C.NODES
PSNS    = 1 << 16
SHOWN   = 6   # cycles from a claim or pop until `claimed` is valid

# Model --------------------------------------------------------------------------------------------

@dataclass(eq=False)
class Put:
    flow    : int
    tag     : int
    cookie  : int
    length  : int
    solicit : int
    end     : int  = 0      # PSN after its last packet
    ended   : bool = False  # its job, well
    refused : bool = False

    @property
    def bulk(self):
        return self.flow//C.NODES == LANE.BULK

    @property
    def packets(self):
        return packets_of(self.length) if self.bulk else 1


class Flow:
    def __init__(self):
        self.armed, self.next, self.acked = False, 0, PSNS - 1
        self.place = (0, 0)   # incarnation, epoch
        self.under = deque()  # taken; neither an entry nor popped

    def covers(self, put):
        return (self.acked + 1 - put.end) % PSNS < PSNS//2


class World:
    """The block and all that is around it.

    What the block does in a cycle is compared with the model; then each part, a generator, looks at `seen` and
    sets `inputs` of the next cycle.
    """
    seen_of_all = ("put.ready taken missed express.valid job.valid job_done_in.ready job_done.valid entry.valid free.strobe "
        "free.tag changed_out moved active given busy").split()

    def __init__(self, seed):
        self.dut    = ResetInserter()(Contexts())
        self.random = Random(seed)
        self.flows  = [Flow() for _ in range(FLOWS)]
        self.inputs = {"fast": (1 << C.ENDPOINTS) - 1, "express.ready": 1, "job.ready": 1, "job_done.ready": 1,
                       "entry.ready": 1}
        self.now    = {}       # the inputs of this cycle
        self.seen   = {}
        self.show   = False    # `claimed` is wanted
        self.more   = []       # parts to be begun
        self.offer  = None     # the put that waits for an answer
        self.answer = None
        self.jobs   = deque()  # (put or None, tag) in the engine
        self.given  = set()
        self.count  = Counter()
        self.cycle  = 0
        self.since  = 0        # cycles since a refusal waits
        self.held   = False    # an entry that was not taken
        self.times  = {}       # what -> cycle

    def signal(self, name):
        signal = self.dut
        for part in name.split("."):
            signal = signal[int(part)] if part.isdigit() else getattr(signal, part)
        return signal

    def fields(self, name):
        values = {}
        for field, *_ in self.signal(name).layout if name == "claimed" else self.signal(name).description.payload_layout:
            values[field] = yield self.signal(f"{name}.{field}")
        return values

    # Cycles -----------------------------------------------------------------------------------

    def run(self, *parts):
        """Until the first part has ended."""
        def process():
            now, active = {}, list(parts)
            while parts[0] in active:
                for name, value in self.inputs.items():
                    if now.get(name, 0) != value:
                        yield self.signal(name).eq(value)
                now = dict(self.inputs)
                yield
                self.now    = now
                self.cycle += 1
                yield from self.observe()
                active += self.more
                self.more.clear()
                for part in list(active):
                    if next(part, self) is self:
                        active.remove(part)
        run_simulation(self.dut, process())
        return self

    def set(self, **values):
        for name, value in values.items():
            self.inputs[name.replace("__", ".")] = value

    def leaving(self, n):
        """Puts of the flow that have ended, and whose entry waits to be taken."""
        return int(self.seen["entry.valid"] and any(put.tag == self.seen["free.tag"] for put in self.flows[n].under))

    def observe(self):
        seen, now = self.seen, self.now
        for name in self.seen_of_all:
            seen[name] = yield self.signal(name)
        if seen["given"]:
            n = seen["given"].bit_length() - 1
            assert seen["given"] == 1 << n and self.flows[n].armed
            assert self.bad and self.bad.flow == n
            self.flows[n].armed = False
            self.given.add(n)
            self.count["given"] += 1

        # What is always shown.
        changed = now.get("changed", 0)
        armed   = sum(flow.armed << n for n, flow in enumerate(self.flows))
        assert (seen["moved"], seen["changed_out"]) == (changed & armed, changed & ~armed)
        assert seen["active"] & ~armed == 0
        for n, flow in enumerate(self.flows):
            assert not flow.armed or len(flow.under) <= self.leaving(n) or seen["active"] >> n & 1
        assert seen["busy"] == sum(1 << n for n in {put.tag//C.SLOTS for flow in self.flows for put in flow.under})

        # What happens in this cycle.
        program = now.get("arm.strobe") or now.get("claim.strobe") or now.get("pop")
        assert seen["put.ready"] or not (seen["taken"] or seen["missed"])
        assert seen["express.valid"] + seen["job.valid"] == seen["taken"]
        self.answer = None
        if seen["put.ready"]:
            assert not program
            yield from self.answered()
        if seen["entry.valid"] and not self.held:
            self.times["entry"] = self.cycle
            assert self.since < 2, "a put ended while a refusal waits"
        self.since = self.since + 1 if now.get("refusal_waiting") else 0
        self.held  = seen["entry.valid"] and not now["entry.ready"]
        assert seen["free.strobe"] == (seen["entry.valid"] and now["entry.ready"])
        for name, what in (("FAST_COMMANDS", "taken"), ("FAST_COMPLETIONS", "free.strobe")):
            assert (yield self.dut.counters[name]) == seen[what]
        popped = self.popped() if now.get("pop") else None
        if seen["free.strobe"]:
            yield from self.completed()
        if popped:
            self.flows[popped.flow].under.remove(popped)
            self.count["popped"] += 1
        if seen["job_done_in.ready"]:
            yield from self.job_ended()
        if now.get("claim.strobe"):
            self.flows[now["claim.flow"]].armed = False
            self.claimed = now["claim.flow"]
        if now.get("arm.strobe"):
            flow = self.flows[now["arm.flow"]]
            flow.armed, flow.next, flow.place = True, now["arm.psn"], (now["arm.incarnation"], now["arm.epoch"])
        if self.show:
            self.seen["claimed"] = yield from self.fields("claimed")

    def answered(self):
        put, seen, now = self.offer, self.seen, self.now
        flow    = self.flows[put.flow]
        allowed = flow.armed and now["fast"] >> put.tag//C.SLOTS & 1
        assert seen["missed"] == (not allowed)
        self.answer = "taken" if seen["taken"] else "missed" if seen["missed"] else "wait"
        self.count[self.answer] += 1
        ready = now["job.ready" if put.bulk else "express.ready"]
        if self.answer == "wait":
            # An entry that has left the ring may not have been taken, and the ring was looked at a cycle ago.
            assert not ready or len(flow.under) >= C.FAST_PUTS
        if self.answer != "taken":
            return
        assert allowed and ready
        assert len(flow.under) - self.leaving(put.flow) < C.FAST_PUTS
        order = yield from self.fields("job" if put.bulk else "express")
        said  = dict(endpoint=put.tag//C.SLOTS, slot=put.tag % C.SLOTS, psn=flow.next, incarnation=flow.place[0],
            epoch=flow.place[1], node=put.flow % C.NODES, length=put.length)
        if put.bulk:
            said["tag"] = put.tag
            self.jobs.append((put, put.tag))
        assert order == {**dict.fromkeys(order, 0), **said}
        self.count["wrapped"] += flow.next + put.packets >= PSNS
        put.end = flow.next = (flow.next + put.packets) % PSNS
        flow.under.append(put)
        self.times["taken"] = self.cycle

    def completed(self):
        tag    = self.seen["free.tag"]
        flow,  = [flow for flow in self.flows if any(put.tag == tag for put in flow.under)]
        put    = flow.under.popleft()
        entry  = yield from self.fields("entry")
        assert put.tag == tag, "out of order"
        assert entry == dict(queue=tag//C.SLOTS, cookie=put.cookie, length=put.length, node=put.flow % C.NODES,
            kind=ENTRY.COMPLETION, status=STATUS.OK, key=0, interrupt=put.solicit)
        assert flow.covers(put) and not put.refused and (put.ended or not put.bulk)
        self.count["completed"] += 1

    def popped(self):
        return self.flows[self.claimed].under[self.leaving(self.claimed)]

    def job_ended(self):
        """Its end was the fast path's, or the program's, as it must be."""
        put, tag = self.jobs.popleft()
        good     = put is not None and self.bad is not put
        flow     = put and self.flows[put.flow]
        if self.seen["job_done.valid"]:
            assert not (good and flow.armed and put in flow.under)
            done = yield from self.fields("job_done")
            assert done == {name: self.now["job_done_in." + name] for name in done}
            self.count["passed"] += 1
        else:
            assert good and flow.armed and put in flow.under and not put.ended
            assert all(other.ended for other in list(flow.under)[:flow.under.index(put)])
            put.ended = True
            self.count["own"] += 1
        self.bad = None

    bad = None  # the put whose job's end is not the expected one

    # Parts ------------------------------------------------------------------------------------

    def wait(self, cycles):
        for _ in range(cycles):
            yield

    def arm(self, n, psn, incarnation=1, epoch=0):
        """All before `psn` is acknowledged."""
        self.flows[n].acked = self.inputs[f"acked.{n}"] = (psn - 1) % PSNS
        self.set(arm__strobe=1, arm__flow=n, arm__psn=psn, arm__incarnation=incarnation, arm__epoch=epoch)
        yield
        self.set(arm__strobe=0)

    def claim(self, n):
        """Claim a flow and pop all it had under way; returns the puts."""
        flow, puts = self.flows[n], []
        self.set(claim__strobe=1, claim__flow=n)
        yield
        self.set(claim__strobe=0)
        self.show = True
        while True:
            yield from self.wait(SHOWN)
            under   = list(flow.under)[self.leaving(n):]
            claimed = self.seen["claimed"]
            assert (claimed["entries"], claimed["psn"]) == (len(under), flow.next)
            if not under:
                break
            put = under[0]
            assert claimed == dict(entries=len(under), psn=flow.next, entry_psn=put.end, tag=put.tag, cookie=put.cookie,
                ended=int(put.ended or not put.bulk), length=put.length, solicit=put.solicit)
            puts.append(put)
            yield from self.wait(self.random.randrange(4))
            self.set(pop=1)
            yield
            self.set(pop=0)
        self.show = False
        self.given.discard(n)
        self.count["claimed"] += 1
        return puts

    def send(self, n, tag, length=8):
        """Offer a put until it is answered; returns the answer."""
        put = Put(n, tag, self.random.getrandbits(32), length, self.random.randrange(2))
        self.offer = put
        self.set(put__valid=1, put__lane=n//C.NODES, put__node=n % C.NODES, put__endpoint=tag//C.SLOTS,
            put__slot=tag % C.SLOTS, put__cookie=put.cookie, put__length=length, put__solicit=put.solicit)
        self.times["offered"] = self.cycle + 1
        yield
        while not self.answer:
            yield
        self.set(put__valid=0)
        self.offer = None
        return self.answer

    def acknowledge(self, n, psn):
        self.flows[n].acked = psn
        self.inputs[f"acked.{n}"] = psn
        self.set(changed=1 << n)
        self.times["changed"] = self.cycle + 1
        yield
        self.set(changed=0)

    def end_job(self, good=True):
        """The engine's oldest job ends."""
        put, tag = self.jobs[0]
        if put is None:
            self.set(job_done_in__status=0, job_done_in__psn=self.random.randrange(PSNS))
        else:
            status = 0 if good or self.random.random() < 0.5 else STATUS.BOUNDS
            self.bad = None if good else put
            self.set(job_done_in__status=status, job_done_in__psn=(put.end - (status == 0 and not good)) % PSNS)
        self.set(job_done_in__valid=1, job_done_in__tag=tag, job_done_in__checksum=self.random.getrandbits(16))
        before = self.count["own"] + self.count["passed"]
        yield
        while self.count["own"] + self.count["passed"] == before:
            yield
        self.set(job_done_in__valid=0)
