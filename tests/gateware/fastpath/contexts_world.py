"""A plain model of the fast path's flows, and a world around the block that compares each cycle
with it.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections import Counter, deque
from dataclasses import dataclass
from random import Random

from migen import *

from dibber.interface.description import C, ENTRY, FAST_KIND, LANE, MESSAGE, STATUS
from dibber.fastpath.asks import PLACES
from dibber.fastpath.contexts import Contexts

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.cut import packets_of
from tests.gateware.models.flows import flow_bit

FLOWS = C.LANES * C.NODES
EXPRESS = LANE.EXPRESS * C.NODES  # a lane's first flow
BULK = LANE.BULK * C.NODES
PSNS = 1 << 16
SHOWN = 6  # cycles from a claim or pop until `claimed` is valid

# Model --------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Put:
    flow: int
    tag: int
    cookie: int
    length: int
    solicit: int
    kind: int = FAST_KIND.PUT
    atomic: int = 0
    generation: int = 0
    left: int = 0  # cycle in which an ask left the ring
    value: int = None  # of the answer that ended it
    end: int = 0  # PSN after its last packet
    ended: bool = False  # its job, well
    refused: bool = False

    @property
    def bulk(self):
        return self.flow // C.NODES == LANE.BULK

    @property
    def command(self):
        return self.kind in (FAST_KIND.PUT, FAST_KIND.ASK)

    @property
    def word(self):
        """Its message word, if it is an ask or a reply."""
        if self.kind == FAST_KIND.REPLY:
            return self.cookie
        return (
            (MESSAGE.ATOMIC if self.atomic else MESSAGE.GET)
            | self.tag // C.SLOTS << 8
            | self.tag << 16
            | self.generation << 26
        )

    @property
    def packets(self):
        return packets_of(self.length) if self.bulk else 1


class Flow:
    def __init__(self):
        self.armed, self.next, self.acked = False, 0, PSNS - 1
        self.place = (0, 0)  # incarnation, epoch
        self.under = deque()  # taken; neither an entry nor popped
        self.waits = []  # asks that have left it, and wait for their answers

    @property
    def asks(self):
        return [put for put in self.under if put.kind == FAST_KIND.ASK] + self.waits

    def covers(self, put):
        return (self.acked + 1 - put.end) % PSNS < PSNS // 2


class World:
    """The block and all that is around it.

    What the block does in a cycle is compared with the model; then each part, a generator, looks at
    `seen` and sets `inputs` of the next cycle.
    """

    seen_of_all = (
        "put.ready taken missed express.valid job.valid job_done_in.ready job_done.valid "
        "entry.valid free.strobe "
        "ended.valid ended.kind ended.tag ended.node active busy full "
        "asks.change.strobe asks.change.end asks.change.node answer.ready mine forget.strobe "
        "forget.tag"
    ).split()

    def __init__(self, seed, endpoints=C.ENDPOINTS):
        contexts = Contexts(endpoints)
        # What the table of flows says.
        contexts.flow_acked = [Signal(16, name=f"acked{n}") for n in range(FLOWS)]
        contexts.comb += contexts.acked.psn.eq(Array(contexts.flow_acked)[contexts.acked.flow])
        self.dut = ResetInserter()(contexts)
        self.random = Random(seed)
        self.flows = [Flow() for _ in range(FLOWS)]
        self.inputs = {
            "fast": (1 << endpoints) - 1,
            "express.ready": 1,
            "job.ready": 1,
            "job_done.ready": 1,
            "entry.ready": 1,
            "ended.ready": 1,
        }
        self.now = {}  # the inputs of this cycle
        self.seen = {}
        self.show = False  # `claimed` is wanted
        self.more = []  # parts to be begun
        self.offer = None  # the put that waits for an answer
        self.answer = None
        self.jobs = deque()  # (put or None, tag) in the engine
        self.given = set()
        self.count = Counter()
        self.cycle = 0
        self.since = 0  # cycles since a refusal waits
        self.held = False  # an entry that was not taken
        self.times = {}  # what -> cycle
        self.moves = set()  # EXPRESS flows of which something ends in the next cycle
        self.closing = None  # an ask that was answered, until its entry is taken

    def signal(self, name):
        signal = self.dut
        for part in name.split("."):
            signal = signal[int(part)] if part.isdigit() else getattr(signal, part)
        return signal

    def fields(self, name):
        values = {}
        for field, *_ in (
            self.signal(name).layout
            if name == "claimed"
            else self.signal(name).description.payload_layout
        ):
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
                self.now = now
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
        """Puts of the flow that have ended, and whose end waits to be taken."""
        waits = self.seen["entry.valid"] or self.seen["ended.valid"]
        return int(waits and any(put.tag == self.seen["ended.tag"] for put in self.flows[n].under))

    def observe(self):
        seen, now = self.seen, self.now
        for name in self.seen_of_all:
            seen[name] = yield self.signal(name)
        for name, events in (
            ("changed_out", [self.dut.changed_out]),
            ("moved", self.dut.moved),
            ("given", [self.dut.given]),
        ):
            seen[name] = 0
            for event in events:
                seen[name] |= yield from flow_bit(event)
        if seen["given"]:
            n = seen["given"].bit_length() - 1
            assert seen["given"] == 1 << n and self.flows[n].armed
            assert self.bad and self.bad.flow == n
            self.flows[n].armed = False
            self.given.add(n)
            self.count["given"] += 1

        # What is always shown.
        changed = now.get("changed.strobe", 0) << now.get("changed.flow", 0)
        armed = sum(flow.armed << n for n, flow in enumerate(self.flows))
        assert (seen["moved"] >> BULK, seen["changed_out"]) == (
            (changed & armed) >> BULK,
            changed & ~armed,
        )
        assert seen["active"] & ~armed == 0
        for n, flow in enumerate(self.flows):
            assert (
                not flow.armed
                or len(flow.under) <= self.leaving(n)
                and not flow.waits
                or seen["active"] >> n & 1
            )
        taken = [
            put for flow in self.flows for put in [*flow.under, *flow.waits] if put.command
        ] + [self.closing] * bool(self.closing)
        assert seen["busy"] == sum(1 << n for n in {put.tag // C.SLOTS for put in taken})

        # What happens in this cycle.
        program = now.get("arm.strobe") or now.get("claim.strobe") or now.get("pop")
        assert seen["put.ready"] or not (seen["taken"] or seen["missed"])
        assert seen["express.valid"] + seen["job.valid"] == seen["taken"]
        self.answer = None
        if seen["put.ready"]:
            assert not program
            yield from self.answered()
        ends = [name for name in ("entry", "ended") if seen[name + ".valid"]]
        assert len(ends) < 2
        if ends and not self.held:
            self.times[ends[0]] = self.cycle
            assert self.since < 2 or self.closing, "a put ended while a refusal waits"
            (tag,) = [put for put in taken if put.tag == seen["ended.tag"]] or [None]
            if tag and tag is not self.closing and not tag.bulk and not self.flows[tag.flow].waits:
                assert tag.flow in self.moves
        elif self.moves and self.held_before == self.held:
            assert False, "something moved, and nothing ended"
        self.moves.clear()
        self.since = self.since + 1 if now.get("refusal_waiting") else 0
        self.held = any(not now[name + ".ready"] for name in ends)
        assert seen["free.strobe"] == (seen["entry.valid"] and now["entry.ready"])
        commands = seen["taken"] and self.offer.command
        for name, strobe in (
            ("FAST_COMMANDS", commands),
            ("FAST_COMPLETIONS", seen["free.strobe"]),
        ):
            assert (yield self.dut.counters[name]) == strobe
        popped = self.popped() if now.get("pop") else None
        if ends and not self.held:
            yield from self.left(ends[0])
        moved = {n for n in range(C.NODES) if seen["moved"] >> n & 1}
        if seen["asks.change.strobe"] and not program:
            moved.discard(self.ask_changed())
        else:
            assert not seen["forget.strobe"]
            if seen["answer.ready"]:
                self.not_answered()
        assert all(self.flows[n].armed and not self.flows[n].waits for n in moved)
        self.moves = moved
        if popped:
            flow = self.flows[popped.flow]
            (flow.under if popped in flow.under else flow.waits).remove(popped)
            self.count["popped"] += 1
        if seen["job_done_in.ready"]:
            yield from self.job_ended()
        if now.get("claim.strobe"):
            self.flows[now["claim.flow"]].armed = False
            self.claimed = now["claim.flow"]
        if now.get("arm.strobe"):
            flow = self.flows[now["arm.flow"]]
            flow.armed, flow.next, flow.place = (
                True,
                now["arm.psn"],
                (now["arm.incarnation"], now["arm.epoch"]),
            )
        if self.show:
            self.seen["claimed"] = yield from self.fields("claimed")

    def answered(self):
        put, seen, now = self.offer, self.seen, self.now
        flow = self.flows[put.flow]
        allowed = flow.armed and (not put.command or now["fast"] >> put.tag // C.SLOTS & 1)
        assert seen["missed"] == (not allowed)
        self.answer = "taken" if seen["taken"] else "missed" if seen["missed"] else "wait"
        self.count[self.answer] += 1
        ready = now["job.ready" if put.bulk else "express.ready"]
        if self.answer == "wait":
            # An entry that has left the ring may not have been taken, and the ring was looked at a
            # cycle ago.
            assert (
                not ready
                or len(flow.under) >= C.FAST_PUTS
                or put.kind == FAST_KIND.ASK
                and (
                    len(flow.asks) >= PLACES
                    or self.times.get(("free", put.flow), -9) > self.cycle - 3
                )
            )
        if self.answer != "taken":
            return
        assert allowed and ready
        assert len(flow.under) - self.leaving(put.flow) < C.FAST_PUTS
        order = yield from self.fields("job" if put.bulk else "express")
        said = dict(
            endpoint=put.tag // C.SLOTS,
            slot=put.tag % C.SLOTS,
            psn=flow.next,
            incarnation=flow.place[0],
            epoch=flow.place[1],
            node=put.flow % C.NODES,
            length=put.length,
        )
        if put.bulk:
            said.update(tag=put.tag, response=int(put.kind == FAST_KIND.ANSWER), message=put.cookie)
            self.jobs.append((put, put.tag))
        if put.kind == FAST_KIND.ASK:
            assert len(flow.asks) < PLACES
            self.count["asked"] += 1
        if put.kind in (FAST_KIND.ASK, FAST_KIND.REPLY):
            said.update(message=1, word=put.word)
        elif not put.bulk:
            said["word"] = order["word"]
        assert order == {**dict.fromkeys(order, 0), **said}
        self.count["wrapped"] += flow.next + put.packets >= PSNS
        put.end = flow.next = (flow.next + put.packets) % PSNS
        flow.under.append(put)
        self.times["taken"] = self.cycle

    def left(self, name):
        """A put is completed, something else has left its flow."""
        tag = self.seen["ended.tag"]
        if self.closing:
            return (yield from self.closed(name))
        (flow,) = [flow for flow in self.flows if any(put.tag == tag for put in flow.under)]
        put = flow.under.popleft()
        said = yield from self.fields(name)
        assert put.tag == tag, "out of order"
        assert (name == "entry") == (put.kind == FAST_KIND.PUT)
        assert said == (
            dict(kind=put.kind, tag=tag, node=put.flow % C.NODES)
            if name == "ended"
            else dict(
                queue=tag // C.SLOTS,
                cookie=put.cookie,
                length=put.length,
                node=put.flow % C.NODES,
                kind=ENTRY.COMPLETION,
                status=STATUS.OK,
                key=0,
                interrupt=put.solicit,
            )
        )
        assert name == "ended" or (yield self.dut.free.tag) == tag
        assert flow.covers(put) and not put.refused and (put.ended or not put.bulk)
        self.count["completed" if name == "entry" else "ended"] += 1

    def ask_changed(self):
        """An ask's message has left the ring, or its answer has ended it. Returns its flow if that
        may be told as a move.
        """
        seen, now = self.seen, self.now
        n = seen["asks.change.node"]
        flow = self.flows[n]
        assert flow.armed
        assert (
            seen["forget.strobe"]
            == seen["asks.change.end"]
            == (seen["answer.ready"] and seen["mine"])
        )
        if not seen["asks.change.end"]:
            ask = flow.under[self.leaving(n)]
            assert (
                ask.kind == FAST_KIND.ASK
                and flow.covers(ask)
                and not ask.refused
                and self.since < 2
            )
            assert (seen["moved"] >> n & 1) == (not flow.waits)
            flow.under.remove(ask)
            flow.waits.append(ask)
            ask.left = self.cycle
            return n
        (ask,) = self.answers(n)
        assert seen["moved"] >> n & 1 and seen["forget.tag"] == ask.tag and not self.closing
        flow.waits.remove(ask)
        ask.value, self.closing = now["answer.value"], ask
        self.times["free", n] = self.cycle
        self.count["answered"] += 1
        return n

    def answers(self, n):
        """The asks of a flow that wait for this answer."""
        now = self.now
        return [
            ask
            for ask in self.flows[n].waits
            if all(
                getattr(ask, name) == now.get("answer." + name, 0)
                for name in ("tag", "generation", "atomic")
            )
        ]

    def not_answered(self):
        n = self.now["answer.node"]
        if self.flows[n].armed:
            assert all(ask.left > self.cycle - 12 for ask in self.answers(n)), (
                "an answer was not taken"
            )
        self.count["strange"] += 1

    def closed(self, name):
        """An ask is completed."""
        ask, self.closing = self.closing, None
        entry = yield from self.fields("entry")
        value = ask.value if ask.atomic else ask.length
        assert name == "entry" and (yield self.dut.free.tag) == ask.tag
        assert entry == dict(
            queue=ask.tag // C.SLOTS,
            cookie=ask.cookie,
            length=value & 0xFFFFFFFF,
            key=value >> 32,
            node=ask.flow,
            kind=ENTRY.COMPLETION,
            status=STATUS.OK,
            interrupt=ask.solicit,
        )
        self.count["completed"] += 1

    def popped(self):
        flow, claimed = self.flows[self.claimed], self.seen["claimed"]
        if claimed["entries"]:
            return flow.under[self.leaving(self.claimed)]
        (ask,) = [ask for ask in flow.waits if ask.tag == claimed["tag"]]
        return ask

    def job_ended(self):
        """It was ended correctly by the fast path, or by the program."""
        put, tag = self.jobs.popleft()
        good = put is not None and self.bad is not put
        flow = put and self.flows[put.flow]
        if self.seen["job_done.valid"]:
            assert not (good and flow.armed and put in flow.under)
            done = yield from self.fields("job_done")
            assert done == {name: self.now["job_done_in." + name] for name in done}
            self.count["passed"] += 1
        else:
            assert good and flow.armed and put in flow.under and not put.ended
            assert all(other.ended for other in list(flow.under)[: flow.under.index(put)])
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
        self.flows[n].acked = self.inputs[f"flow_acked.{n}"] = (psn - 1) % PSNS
        self.set(
            arm__strobe=1, arm__flow=n, arm__psn=psn, arm__incarnation=incarnation, arm__epoch=epoch
        )
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
            under = list(flow.under)[self.leaving(n) :]
            claimed = self.seen["claimed"]
            assert (claimed["entries"], claimed["asks"], claimed["psn"]) == (
                len(under),
                len(flow.waits),
                flow.next,
            )
            if not under and not flow.waits:
                break
            put = under[0] if under else [ask for ask in flow.waits if ask.tag == claimed["tag"]][0]
            assert claimed == dict(
                entries=len(under),
                asks=len(flow.waits),
                psn=flow.next,
                tag=put.tag,
                cookie=put.cookie,
                entry_psn=put.end if under else claimed["entry_psn"],
                ended=int(put.ended or not put.bulk),
                length=put.length,
                solicit=put.solicit,
                kind=put.kind,
                atomic=put.atomic,
                generation=put.generation,
            )
            puts.append(put)
            yield from self.wait(self.random.randrange(4))
            self.set(pop=1)
            yield
            self.set(pop=0)
        self.show = False
        self.given.discard(n)
        self.count["claimed"] += 1
        return puts

    def send(self, n, tag, length=8, ask=False, atomic=0, ahead=None):
        """Offer a put until it is answered, or an ask, or what is in a slot of the INBOX; returns
        the answer.
        It comes `ahead` cycles, or as many as chance says, and perhaps another one before it that
        is not offered."""
        kind = FAST_KIND.ASK if ask else FAST_KIND.PUT
        if tag // C.SLOTS == C.INBOX:
            kind = FAST_KIND.REPLY if n < BULK else FAST_KIND.ANSWER
        put = Put(
            n,
            tag,
            self.random.getrandbits(32),
            length,
            self.random.randrange(2),
            kind,
            atomic,
            self.random.getrandbits(6),
        )
        if ahead is None:
            ahead = self.random.choice([0, 0, 1, 2, 3])
            if not self.random.randrange(8):
                self.set(
                    coming=1,
                    put__lane=self.random.randrange(C.LANES),
                    put__node=self.random.randrange(C.NODES),
                    put__length=70000,
                )
                for _ in range(self.random.randint(1, 3)):
                    yield
                self.set(coming=0)
                yield
        self.set(
            put__kind=kind,
            put__atomic=atomic,
            put__generation=put.generation,
            put__lane=n // C.NODES,
            put__node=n % C.NODES,
            put__endpoint=tag // C.SLOTS,
            put__slot=tag % C.SLOTS,
            put__cookie=put.cookie,
            put__length=length,
            put__solicit=put.solicit,
            coming=int(ahead > 0),
        )
        for _ in range(ahead):
            yield
        self.offer = put
        self.set(put__valid=1, coming=0)
        self.times["offered"] = self.cycle + 1
        yield
        while not self.answer:
            yield
        self.set(put__valid=0)
        self.offer = None
        return self.answer

    def reply(self, ask=None, **other):
        """Offer an answer to an ask, or another one; whether it ended an ask."""
        fields = (
            dict(node=ask.flow, tag=ask.tag, generation=ask.generation, atomic=ask.atomic)
            if ask
            else {}
        )
        fields.update(other, value=self.random.getrandbits(64))
        self.set(answer__valid=1, **{"answer__" + name: value for name, value in fields.items()})
        before = self.cycle
        yield
        while not self.seen["answer.ready"]:
            yield
        self.times["answer"] = self.cycle - before
        self.set(answer__valid=0)
        return bool(self.seen["mine"])

    def acknowledge(self, n, psn, judging=None):
        """A change is found in any case, later if it was not seen to come."""
        if self.random.randrange(8) if judging is None else judging:
            self.set(judging__strobe=1, judging__flow=n)
            self.times["judging"] = self.cycle + 1
            yield
        self.flows[n].acked = psn
        self.inputs[f"flow_acked.{n}"] = psn
        self.set(changed__strobe=1, changed__flow=n, judging__strobe=0)
        yield
        self.set(changed__strobe=0)

    def end_job(self, good=True):
        """The engine's oldest job ends."""
        put, tag = self.jobs[0]
        if put is None:
            self.set(job_done_in__status=0, job_done_in__psn=self.random.randrange(PSNS))
        else:
            status = 0 if good or self.random.random() < 0.5 else STATUS.BOUNDS
            self.bad = None if good else put
            self.set(
                job_done_in__status=status,
                job_done_in__psn=(put.end - (status == 0 and not good)) % PSNS,
            )
        self.set(
            job_done_in__valid=1,
            job_done_in__tag=tag,
            job_done_in__node=put.flow % C.NODES if put else 0,
            job_done_in__checksum=self.random.getrandbits(16),
        )
        before = self.count["own"] + self.count["passed"]
        yield
        while self.count["own"] + self.count["passed"] == before:
            yield
        self.set(job_done_in__valid=0)
