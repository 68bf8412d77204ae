"""The fast path's flows: each taken operation ends once, in its turn, by its completion, in the way
of its kind, or by the program.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import C, FAST_KIND, LANE, STATUS
from dibber.fastpath import completer as looks
from dibber.layouts import tag_bits
from dibber.fastpath.contexts import Contexts

from harness import Harness, Mutant, Property, implies, inner, memory_of

class Puts(Harness):
    """One slot of the solver's choice, of an endpoint or the INBOX, and all events: operations of
    this slot and of others except asks, acknowledgements, ends of jobs, refusals, claims, pops.

    Assumed of the surroundings:

    - A slot is put again only when its put has ended, its completion was taken or popped, and no
      end of a job of it waits.
    - The program arms a flow only when that put is not under way there. It arms the flow that it
      claimed last only when it has popped all of it. It writes one register at a time.
    - An offered put and an end of a job stay unchanged until they are taken. A coming put stays
      unchanged until it is offered or withdrawn.
    - Jobs end in the order of their flow, and the engine gives their flow.
    """
    nodes, slots, puts = 2, 4, 3

    def __init__(self):
        super().__init__()
        C.NODES, C.ENDPOINTS, C.SLOTS, C.FAST_PUTS = self.nodes, 1, self.slots, self.puts
        C.OUTBOX, C.INBOX, C.SLOT_SETS = 1, 2, 3
        flows = C.LANES*C.NODES
        size  = C.FAST_PUTS + 1
        self.block = block = Contexts(C.ENDPOINTS)
        rings, completer   = block.rings, block.completer
        put, job           = block.put, block.job_done_in
        entry, ended       = block.entry, block.ended
        arm, claim         = block.arm, block.claim
        acked = [Signal(16, name=f"acked{n}") for n in range(flows)]
        self.comb += block.acked.psn.eq(Array(acked)[block.acked.flow])
        tag = self.constant("tag", tag_bits())

        def named(bits, value):
            signal = Signal(bits)
            self.comb += signal.eq(value)
            return signal

        # Surroundings.
        for name, endpoint in (("put", put), ("job_done", job)):
            self.free_all(name, endpoint, omit=("first", "last"))
            fields = Cat(*[getattr(endpoint, field) for field, *_ in endpoint.description.payload_layout])
            kept   = self.before(fields, len(fields))
            self.assume(f"{name}_stays", implies(self.before(endpoint.valid & ~endpoint.ready), endpoint.valid & (fields == kept)))
        shows   = named(1, put.valid | block.coming)
        looked  = self.before(shows & ~put.ready)
        offer   = Cat(*[getattr(put, field) for field, *_ in put.description.payload_layout])
        before  = self.before(offer, len(offer))
        self.comb += block.coming.eq(self.free("coming"))
        self.assume("coming_stays", implies(looked & shows, offer == before))
        self.assume("small", (put.node < C.NODES) & (put.slot < C.SLOTS))
        self.comb += block.answer.valid.eq(0)
        self.assume("kinds", Array([put.endpoint == 0, 0,
            (put.endpoint == C.INBOX) & (put.lane == LANE.BULK), (put.endpoint == C.INBOX) & (put.lane == LANE.EXPRESS)])[put.kind])
        for name, signal in (("express_ready", block.express.ready), ("job_ready", block.job.ready),
                ("job_done_ready", block.job_done.ready), ("entry_ready", entry.ready), ("ended_ready", ended.ready), ("fast", block.fast),
                ("changed", block.changed.strobe), ("changed_flow", block.changed.flow), ("judging", block.judging.strobe), ("judging_flow", block.judging.flow),
                ("refusal", block.refusal_waiting), ("pop", block.pop),
                *[(f"acked{n}", signal) for n, signal in enumerate(acked)],
                *[(f"arm_{field}", getattr(arm, field)) for field, *_ in arm.layout],
                *[(f"claim_{field}", getattr(claim, field)) for field, *_ in claim.layout]):
            self.comb += signal.eq(self.free(name, len(signal)))
        self.assume("one_write", arm.strobe + claim.strobe + block.pop < 2)

        # The put of that slot.
        place    = log2_int(size)
        offered  = named(1, put.valid & (Cat(put.slot[:log2_int(C.SLOTS)], put.endpoint) == tag))
        taken    = named(1, block.taken & offered)
        gone     = named(1, ((entry.valid & entry.ready) | (ended.valid & ended.ready)) & (ended.tag == tag))
        popped   = named(1, inner(block, "popped") & (block.claimed.tag == tag))
        ending   = inner(completer, "end")
        judged   = inner(completer, "judged")
        seen     = inner(completer, "place")
        ends     = named(1, ending & (seen.tag == tag))
        where    = inner(block, "where")
        inside   = Signal()       # in the ring of `flow`
        # ended, and its entry (or its kind's replacement) waits to be taken
        out      = Signal()
        kind     = Signal(2)
        flow     = Signal(log2_int(flows))
        last     = Signal(16)
        cookie, length, solicit = Signal(32), Signal(32), Signal()
        index    = Signal(place)
        ahead    = Signal(place + 1)   # puts of the flow before it
        over     = Signal()       # its job has ended well
        move     = rings.move
        removed  = named(1, move.head & (move.flow == flow))
        close    = named(1, inner(completer, "close") & (job.tag == tag))
        # All flows: how many puts, and the PSN of the next.
        count    = [Signal(place + 1, name=f"count{n}") for n in range(flows)]
        following = [Signal(16, name=f"following{n}") for n in range(flows)]
        begun    = Signal(flows)  # it was armed once
        claimed  = Signal()       # and not armed again since
        less     = inner(block, "less")
        more     = named(16, Mux(put.lane == LANE.BULK, less[log2_int(C.PACKET_PAYLOAD):], 0))
        for n in range(flows):
            appends = named(1, block.taken & (where == n))
            removes = named(1, move.head & (move.flow == n))
            self.sync += [
                count[n].eq(count[n] + appends - removes),
                If(appends, following[n].eq(following[n] + more + 1)),
                If(arm.strobe & (arm.flow == n), count[n].eq(0), following[n].eq(arm.psn), begun[n].eq(1)),
            ]
        self.sync += [
            If(removed & (ahead != 0), ahead.eq(ahead - 1)),
            If(close, over.eq(1)),
            If(taken,
                inside.eq(1),
                flow.eq(where),
                last.eq(Array(following)[where] + more),
                cookie.eq(put.cookie),
                length.eq(put.length),
                solicit.eq(put.solicit),
                kind.eq(put.kind),
                index.eq(inner(rings, "tail")),
                ahead.eq(Array(count)[where] - (move.head & (move.flow == where))),
                over.eq(0),
            ),
            If(ends, inside.eq(0), out.eq(1)),
            If(popped, inside.eq(0)),
            If(gone, out.eq(0)),
            If(arm.strobe & (arm.flow == completer.asked), claimed.eq(0)),
            If(claim.strobe, claimed.eq(1)),
        ]
        heads, marks, tails = ([], [], [])
        for name, values in (("heads", heads), ("marks", marks), ("tails", tails)):
            ports = [memory_of(rings, name).get_port(async_read=True) for _ in range(flows)]
            self.specials += ports
            self.comb += [port.adr.eq(n) for n, port in enumerate(ports)]
            values += [port.dat_r for port in ports]

        # Excluded: the slot again before it is free, clearing a ring that is not empty, jobs out of
        # order.
        shown, asked, asking = completer.shown, completer.asked, completer.asking
        armed   = inner(block, "armed")
        is_mine = named(1, (armed >> flow)[0])   # the flow is the fast path's
        bulk    = named(1, flow[log2_int(C.NODES):] == LANE.BULK)
        mark    = named(place, Array(marks)[flow] - Array(heads)[flow])
        due     = named(1, job.valid & (job.tag == tag) & inside & bulk & ~over)
        self.assume("slot_is_free", implies(offered, ~inside & ~out & ~(job.valid & (job.tag == tag))))
        self.assume("arms_empty",   implies(arm.strobe, ~((arm.flow == asked) & (asking | (shown.entries != 0)))
            & ~(inside & (arm.flow == flow))))
        self.assume("jobs_in_order", implies(due & is_mine, ahead == mark))
        self.assume("job_node", implies(job.valid & (job.tag == tag) & inside & bulk, job.node == flow[:log2_int(C.NODES)]))

        # Each put ends once: the oldest one leaves the ring of its flow, and has ended or is
        # popped.
        self.prove("once",      implies(ends | popped, inside & (ahead == 0)) & implies(gone, out) & ~(ends & popped)
            & ~(inside & out))
        self.prove("in_order",  implies(removed & inside & (ahead == 0), ends | popped))
        self.prove("waits",     implies(out, Mux(kind == FAST_KIND.PUT, entry.valid, ended.valid) & (ended.tag == tag)))
        self.prove("apart",     ~(entry.valid & ended.valid) & (block.free.strobe == (entry.valid & entry.ready))
            & implies(entry.valid, block.free.tag == ended.tag))
        # A claim is a border, and nothing behind it is lost: each entry is shown to the program
        # until it has popped it.
        self.prove("not_claimed", implies(ends, is_mine & ~(claim.strobe & (claim.flow == flow))))
        self.prove("taken",     implies(block.taken, (armed >> where)[0] & ~(claim.strobe & (claim.flow == where))
            & (block.fast[0] | (put.kind >= FAST_KIND.ANSWER))))
        self.prove("missed",    implies(block.missed, ~block.taken
            & ~((armed >> where)[0] & (block.fast[0] | (put.kind >= FAST_KIND.ANSWER)))))
        self.prove("shown",     implies(inside & claimed & (asked == flow) & ~asking, (shown.entries != 0)
            & implies(ahead == 0, (shown.tag == tag) & (shown.entry_psn == named(16, last + 1)) & (shown.cookie == cookie)
                & (shown.length == length) & (shown.solicit == solicit) & (shown.kind == kind) & (shown.ended == (over | ~bulk)))))
        self.prove("next_psn",  implies(claimed & ~asking & (begun >> asked)[0], block.claimed.psn == Array(following)[asked]))
        # A put that ends is acknowledged, its job has ended well, and no refusal waits.
        covered = named(1, ~named(16, Array(acked)[flow] - last)[15])
        was     = self.before(covered & inside)
        self.prove("acknowledged", implies(ends, self.before(was) & (over | ~bulk) & ~block.refusal_waiting))
        self.prove("job_ended", implies(close, inside & is_mine & bulk & (job.status == STATUS.OK)
            & (job.psn == named(16, last + 1))))
        self.prove("job_routed", implies(due & block.job_done.valid, ~is_mine))
        self.prove("entry",     implies(out & (kind == FAST_KIND.PUT), (entry.cookie == cookie) & (entry.length == length)
            & (entry.interrupt == solicit) & (entry.node == flow[:log2_int(C.NODES)])))
        self.prove("ended",     implies(out & (kind != FAST_KIND.PUT), (ended.kind == kind)
            & (ended.node == flow[:log2_int(C.NODES)])))
        # Orders.
        express, bulks = block.express, block.job
        self.prove("ordered",   ((express.valid | bulks.valid) == block.taken) & ~(express.valid & bulks.valid)
            & implies(express.valid, (express.psn == Array(following)[where]) & (express.slot == put.slot) & express.ready
                & (express.endpoint == put.endpoint) & (express.message == (put.kind == FAST_KIND.REPLY))
                & implies(express.message, express.word == put.cookie))
            & implies(bulks.valid, (bulks.psn == Array(following)[where]) & (bulks.tag[:len(tag)] == Cat(put.slot[:log2_int(C.SLOTS)], put.endpoint)) & bulks.ready
                & (bulks.response == (put.kind == FAST_KIND.ANSWER)) & (bulks.message == put.cookie)))

        # Rings. The slot is in no other place of any of them.
        filled = rings.filled
        nexts, puts = inner(block, "nexts"), inner(rings, "puts")
        held   = []
        for n in range(flows):
            ports = [nexts.get_port(async_read=True)] + [puts.get_port(async_read=True) for _ in range(size)]
            self.specials += ports
            self.comb += [ports[0].adr.eq(n)] + [port.adr.eq(n*size + i) for i, port in enumerate(ports[1:])]
            held += [port.dat_r for port in ports[1:]]
            used  = named(place, tails[n] - heads[n])
            known = armed[n] | filled[n]
            self.lemma(f"count{n}", (count[n] <= C.FAST_PUTS) & implies(~filled[n], count[n] == 0)
                & implies(known, (count[n] == used)))
            self.lemma(f"mark{n}",  implies(known & (n >= C.NODES), named(place, marks[n] - heads[n]) <= count[n]))
            self.lemma(f"next{n}",  implies(armed[n], begun[n]) & implies(begun[n], ports[0].dat_r == following[n])
                & implies(filled[n], begun[n]))
            for i in range(size):
                self.lemma(f"only{n}_{i}", implies((named(place, i - heads[n]) < count[n])
                    & (ports[1 + i].dat_r[:len(tag)] == tag), inside & (flow == n) & (index == i)))
        # There are no asks.
        asks = block.asks
        for n in range(C.NODES):
            ports = [memory_of(asks, name).get_port(async_read=True) for name in ("asks_taken", "asks_ended")]
            self.specials += ports
            self.comb += [port.adr.eq(n) for port in ports]
            self.lemma(f"none{n}", implies(armed[n] | filled[n], ports[1].dat_r == Cat(ports[0].dat_r, ports[0].dat_r)))
        for n in range(flows):
            for i in range(size):
                self.lemma(f"kind{n}_{i}", implies(named(place, i - heads[n]) < count[n],
                    held[n*size + i][len(tag):len(tag) + 2] != FAST_KIND.ASK))
        self.lemma("no_ask", implies(rings.found.alive & (inner(completer, "reading").flow[log2_int(C.NODES):] == LANE.EXPRESS),
            asks.found.waits == 0) & (inner(completer, "state").asks == 0) & (completer.shown.asks == 0))
        at      = lambda flow, index: Array(held)[Cat(index, flow)]
        of      = lambda values, flow: Array(values)[flow]
        entries = named(place + 1, of(count, flow))
        self.lemma("inside", implies(inside, (named(place, index - of(heads, flow)) == ahead) & (ahead < entries)
            & (at(flow, index) == Cat(tag, kind, last)) & implies(bulk, over == (ahead < mark))))

        # The block's memory of the put.
        kept = inner(completer, "memory").get_port(async_read=True)
        self.specials += kept
        self.comb += kept.adr.eq(tag)
        details = Cat(cookie, length, solicit)
        self.lemma("kept",  implies(inside, kept.dat_r[:len(details)] == details))
        self.lemma("entry_of", implies((entry.valid | ended.valid) & (ended.tag == tag), out))

        # Lookups: their results still hold.
        look, reading   = inner(completer, "look"), inner(completer, "reading")
        found, detail   = rings.found, inner(completer, "detail")
        done, mine, good, before, reached, is_armed, prepared, theirs, at_index = (inner(completer, name)
            for name in ("has_ended", "job_matches", "job_succeeded", "job_last_psn", "reached", "is_armed", "prepared", "theirs", "index"))
        was_acked = [self.before(signal, 16) for signal in acked]
        stages = (look, reading, judged)
        for kind in (looks.JOB, looks.SHOW):
            a, b, c = (named(1, stage.valid & (stage.kind == kind)) for stage in stages)
            self.lemma(f"one{kind}", ~(a & b) & ~(a & c) & ~(b & c))
        for name, stage in zip(("look", "reading", "judged"), stages):
            self.lemma(f"{name}_kind", stage.kind <= looks.SHOW)
            self.lemma(f"{name}_show", implies(stage.valid & (stage.kind == looks.SHOW), asking & (stage.flow == asked)))
            self.lemma(f"{name}_job",  implies(stage.valid & (stage.kind == looks.JOB), job.valid & prepared & ~theirs
                & (stage.flow[log2_int(C.NODES):] == LANE.BULK) & implies((job.tag == tag) & inside & bulk, stage.flow == flow)))
        self.lemma("prepared", implies(prepared, job.valid & (before == named(16, job.psn - 1))) & implies(theirs, job.valid))
        def oldest(stage, there, index, ended, put, entries):
            """At the head of its ring, or at the mark, as at the lookup."""
            f, job_ = stage.flow, stage.kind == looks.JOB
            distance = named(place, of(marks, f) - of(heads, f))
            is_bulk  = f[log2_int(C.NODES):] == LANE.BULK
            show     = stage.kind == looks.SHOW
            alive    = (armed >> f)[0]
            return implies(stage.valid, (index == Mux(job_, of(marks, f), of(heads, f)))
                & implies(there & alive, (put == at(f, index)) & Mux(job_, distance < of(count, f), of(count, f) != 0)
                    & implies(~job_ & ended & is_bulk, distance != 0))
                & implies(show, (entries == of(count, f)) & implies(entries != 0, there & (put == at(f, index))
                    & implies(is_bulk, ended == (distance != 0)))))
        self.lemma("found",   oldest(reading, found.there, found.index, found.ended, Cat(found.tag, found.kind, found.last), found.entries)
            & implies(reading.valid, (is_armed == (armed >> reading.flow)[0]) & (reached == of(was_acked, reading.flow)))
            & implies(reading.valid & (reading.kind == looks.JOB) & due & is_mine, found.there))
        self.lemma("was",     implies(reading.valid & (reading.kind == looks.OLDEST) & found.there & is_armed
            & (found.tag == tag),
            was == ~named(16, reached - last)[15]))
        there = Signal()
        self.sync += there.eq(found.there)
        self.lemma("judged",  oldest(judged, there, at_index, seen.ended, Cat(seen.tag, seen.kind, seen.last), seen.entries))
        self.lemma("express", implies(judged.valid & (judged.flow[log2_int(C.NODES):] == LANE.EXPRESS), seen.ended))
        self.lemma("done",    implies(judged.valid & (judged.kind == looks.OLDEST) & done, there & seen.ended
            & (armed >> judged.flow)[0] & implies(seen.tag == tag, self.before(was))))
        self.lemma("job",     implies(judged.valid & (judged.kind == looks.JOB), (mine == (there & (armed >> judged.flow)[0]
            & (seen.tag == job.tag))) & (good == ((seen.last == before) & (job.status == STATUS.OK)))
            & implies(due & is_mine, there)))
        self.lemma("detail",  implies(judged.valid & Mux(judged.kind == looks.OLDEST, done, seen.entries != 0)
            & (judged.kind != looks.JOB) & (seen.tag == tag),
            Cat(detail.cookie, detail.length, detail.solicit) == details))

        # Values that are shown to the program.
        self.lemma("claimed", implies(claimed, ~(armed >> asked)[0]) & implies(asking, claimed)
            & implies(~claimed, shown.entries == 0))
        self.lemma("shows",   implies(claimed & ~asking, (shown.entries == of(count, asked)))
            & implies(claimed & ~asking & (shown.entries != 0), (shown.index == of(heads, asked))
            & (Cat(shown.tag, shown.kind, named(16, shown.entry_psn - 1)) == at(asked, shown.index))
            & (shown.ended == ((asked[log2_int(C.NODES):] == LANE.EXPRESS) | (of(marks, asked) != of(heads, asked))))
            & implies(shown.tag == tag, Cat(shown.cookie, shown.length, shown.solicit) == details)))

        # The put that is offered, or comes.
        settled, added = inner(block, "settled"), inner(block, "more")
        self.lemma("settled", (settled != 2) & implies(settled != 0, looked) & implies((settled != 0) & shows, (added == more)
            & (inner(block, "is_armed") == (armed >> where)[0])
            & implies((armed >> where)[0] & Mux(settled[1], inner(block, "room"), rings.room), of(count, where) != C.FAST_PUTS)
            & implies((armed >> where)[0] & rings.room, of(count, where) != C.FAST_PUTS)))
        is_ask, is_reply, command, quick, owner = (inner(block, name) for name in ("is_ask", "is_reply", "command", "quick", "owner"))
        self.lemma("what",    implies((settled != 0) & shows, (is_ask == (put.kind == FAST_KIND.ASK)) & (is_reply == (put.kind == FAST_KIND.REPLY))
            & (command == (is_ask | (put.kind == FAST_KIND.PUT))) & (quick == (put.lane == LANE.EXPRESS)) & (owner == put.endpoint)))
        self.lemma("last",    implies(settled[1] & shows & (armed >> where)[0], inner(block, "last") ==
            named(16, of(following, where) + more)))


class PutsSmall(Puts):
    """For mutants with a late effect: puts on one inline flow, armed in the first cycle, and no
    job.
    """
    slots, puts = 2, 1

    def __init__(self):
        super().__init__()
        block = self.block
        self.assume("armed_once", (block.arm.strobe == ~self.before(1)) & (block.arm.flow == 0) & (block.arm.psn == 0))
        self.assume("one_flow",   (block.put.lane == LANE.EXPRESS) & (block.put.node == 0) & (block.put.kind == FAST_KIND.PUT))
        self.assume("all_well",   ~block.job_done_in.valid & block.express.ready)


class AsksSmall(Harness):
    """One slot of the solver's choice on one EXPRESS flow, which is armed in the first cycle and
    may be claimed and armed again: puts and asks of it and of other slots, acknowledgements,
    answers of any node, tag, generation and kind, refusals, claims, pops.

    Assumed as for Puts; an answer stays unchanged until it is taken.
    """
    def __init__(self):
        super().__init__()
        C.NODES, C.ENDPOINTS, C.SLOTS, C.FAST_PUTS = 2, 1, 4, 1
        C.OUTBOX, C.INBOX, C.SLOT_SETS = 1, 2, 3
        self.block = block = Contexts(C.ENDPOINTS)
        completer, put, answer = block.completer, block.put, block.answer
        entry, arm, claim      = block.entry, block.arm, block.claim
        shown, asking = completer.shown, completer.asking
        acked = Signal(16)  # of flow 0
        self.comb += If(block.acked.flow == 0, block.acked.psn.eq(acked))
        tag = self.constant("tag", 2)

        def named(bits, value):
            signal = Signal(bits)
            self.comb += signal.eq(value)
            return signal

        for name, endpoint in (("put", put), ("answer", answer)):
            self.free_all(name, endpoint, omit=("first", "last"))
            fields = Cat(*[getattr(endpoint, field) for field, *_ in endpoint.description.payload_layout])
            kept   = self.before(fields, len(fields))
            self.assume(f"{name}_stays", implies(self.before(endpoint.valid & ~endpoint.ready), endpoint.valid & (fields == kept)))
        self.assume("small", (put.slot < C.SLOTS) & (put.endpoint == 0) & (put.lane == LANE.EXPRESS) & (put.node == 0)
            & (put.kind <= FAST_KIND.ASK) & (answer.node < C.NODES) & (answer.tag < C.SLOTS))
        for name, signal in (("entry_ready", entry.ready), ("changed", block.changed.strobe), ("judging", block.judging.strobe), ("refusal", block.refusal_waiting),
                ("pop", block.pop), ("acked", acked), ("arm_strobe", arm.strobe), ("claim", claim.strobe)):
            self.comb += signal.eq(self.free(name, len(signal)))
        self.comb += [block.fast.eq(1), block.express.ready.eq(1), block.job.ready.eq(1), block.job_done.ready.eq(1),
            block.ended.ready.eq(1)]
        self.assume("one_write", arm.strobe + claim.strobe + block.pop < 2)
        self.assume("begins",    implies(~self.before(1), arm.strobe))

        sent, waits, out, known = Signal(), Signal(), Signal(), Signal()
        cookie, length, generation, atomic, kind = Signal(32), Signal(32), Signal(6), Signal(), Signal()
        value, last, following  = Signal(64), Signal(16), Signal(16)
        asks     = Signal(3)
        offered  = named(1, put.valid & (put.slot == tag))
        taken    = named(1, block.taken & offered)
        judged   = inner(completer, "place")
        leave    = named(1, inner(completer, "leave") & (judged.tag == tag))
        ends     = named(1, inner(completer, "ends") & (judged.tag == tag))
        done     = named(1, inner(completer, "end") & (judged.tag == tag))
        any_pop  = inner(block, "popped")
        popped   = named(1, any_pop & (shown.tag == tag))
        gone     = named(1, block.free.strobe & (block.free.tag == tag))
        armed    = inner(block, "armed")
        covered  = named(1, ~named(16, acked - last)[15])
        claimed  = Signal()
        self.sync += [
            If(taken, sent.eq(1), cookie.eq(put.cookie), length.eq(put.length), generation.eq(put.generation), atomic.eq(put.atomic),
                kind.eq(put.kind), last.eq(following)),
            If(arm.strobe, following.eq(arm.psn), claimed.eq(0)),
            If(claim.strobe, claimed.eq(1)),
            If(block.taken, following.eq(following + 1)),
            If(leave, sent.eq(0), waits.eq(1)),
            If(ends, waits.eq(0), out.eq(1), value.eq(answer.value), known.eq(1)),
            If(done, sent.eq(0), out.eq(1), known.eq(0)),
            If(popped, sent.eq(0), waits.eq(0)),
            If(gone, out.eq(0)),
            asks.eq(asks + (block.taken & (put.kind == FAST_KIND.ASK)) - inner(completer, "ends")
                - (any_pop & (shown.kind == FAST_KIND.ASK))),
        ]
        self.assume("slot_is_free", implies(offered, ~sent & ~waits & ~out))
        self.assume("arms_empty",   implies(arm.strobe, ~armed[0] & ~asking & (shown.entries == 0) & (shown.asks == 0) & ~sent & ~waits))
        self.assume("arm_psn",      implies(arm.strobe, arm.psn == 0))

        self.prove("once",   implies(leave | done, sent) & implies(ends, waits) & implies(popped, sent | waits) & implies(gone, out)
            & (leave + ends + done + popped < 2) & (sent + waits + out < 2))
        self.prove("kind",   implies(leave | ends, kind) & implies(done, ~kind))
        self.prove("acknowledged", implies(leave | done, self.before(self.before(covered & sent)) & ~block.refusal_waiting))
        self.prove("answered", implies(ends, answer.valid & answer.ready & block.mine & (answer.node == 0) & (answer.tag == tag)
            & (answer.generation == generation) & (answer.atomic == atomic) & armed[0] & ~claim.strobe))
        self.prove("answer", implies(answer.valid & answer.ready & block.mine & (answer.tag == tag), ends))
        self.prove("forget", (block.forget.strobe == (answer.ready & block.mine)) & implies(ends, block.forget.tag == tag))
        self.prove("entry",  implies(out, entry.valid & (block.free.tag == tag) & (entry.cookie == cookie)
            & (Cat(entry.length, entry.key) == Mux(known & atomic, value, length))))
        self.prove("two",    asks <= 2)
        self.prove("order",  implies(taken & put.valid & (put.kind == FAST_KIND.ASK), block.express.valid & block.express.message
            & (block.express.word[16:26] == tag) & (block.express.word[26:] == put.generation) & (asks < 2)))
        self.prove("shown",  implies(claimed & ~asking & (sent | waits), Mux(sent, shown.entries != 0, shown.asks != 0)
            & implies(shown.tag == tag, (shown.cookie == cookie) & (shown.length == length) & (shown.generation == generation)
                & (shown.atomic == atomic) & (shown.kind == kind))
            & implies((shown.entries == 0) & (shown.asks == 1), shown.tag == tag)))
        self.prove("busy",   implies(sent | waits | out, block.busy[0]) & implies((sent | waits) & armed[0],
            ~self.before(sent | waits) | block.active[0]))


PROPERTIES = [
    Property("fast-puts", "fastpath/contexts", "every put or answer that is taken ends once, in order, acknowledged, or is the program's",
        f"{C.LANES} lanes, {Puts.nodes} nodes, {Puts.slots} slots, {Puts.puts} puts a flow", "Puts", k=1, mutants=[
            Mutant("a put is taken in the cycle of a claim", "dibber.fastpath.contexts",
                "put.valid & settled[1] & ~still & ~give.strobe", "put.valid & settled[1] & ~give.strobe", depth=8),
            Mutant("what was looked up stays when it comes no more", "dibber.fastpath.contexts",
                "If(~(put.valid | self.coming) | put.ready", "If(put.ready", depth=8),
            Mutant("a put is taken on what was armed before", "dibber.fastpath.contexts",
                "If(~(put.valid | self.coming) | put.ready | still | give.strobe,", "If(~(put.valid | self.coming) | put.ready,", depth=8),
            Mutant("a put ends in the cycle of a claim", "dibber.fastpath.completer", "judges.eq(judged.valid & ~still)",
                "judges.eq(judged.valid)", depth=14),
            Mutant("a put ends on what was seen before a claim", "dibber.fastpath.completer",
                "If(still | (changes & (look.flow == judged.flow)), reading.valid.eq(0))",
                "If(changes & (look.flow == judged.flow), reading.valid.eq(0))", depth=14),
            Mutant("a put ends twice", "dibber.fastpath.completer",
                "If(still | (changes & (reading.flow == judged.flow)), judged.valid.eq(0))",
                "If(still, judged.valid.eq(0))", depth=14),
            Mutant("a refusal is not waited for", "dibber.fastpath.completer", " & ~self.refusal_waiting", "", depth=14,
                harness="PutsSmall"),
            Mutant("the job is not waited for", "dibber.fastpath.completer",
                "job_has_ended.eq(found.there & is_armed & (found.ended | express))",
                "job_has_ended.eq(found.there & is_armed)", depth=14),
            Mutant("a job's end at any PSN", "dibber.fastpath.completer", "job_succeeded.eq((found.last == job_last_psn) & ",
                "job_succeeded.eq(", depth=14),
            Mutant("the former claim is shown", "dibber.fastpath.completer", "look.valid.eq(~still)", "look.valid.eq(1)", depth=16, harness="PutsSmall"),
            Mutant("an entry is written over", "dibber.fastpath.completer", "(place.kind != FAST_KIND.ASK) & output_free", "(place.kind != FAST_KIND.ASK)", depth=18, harness="PutsSmall"),
            Mutant("what is no put is completed", "dibber.fastpath.completer", "entry.valid.eq(ends | (place.kind == FAST_KIND.PUT))", "entry.valid.eq(1)",
                depth=14),
            Mutant("a slot is freed again while it waits to be", "dibber.fastpath.completer", "If(ended.ready, ended.valid.eq(0))",
                "ended.valid.eq(ended.valid)", depth=14),
            Mutant("a reply goes as a put", "dibber.fastpath.contexts", "express.message.eq(is_ask | is_reply)", "express.message.eq(is_ask)", depth=8),
            Mutant("a reply with a word of its own", "dibber.fastpath.contexts", "Mux(is_reply, put.cookie, ", "Mux(0, put.cookie, ", depth=8),
            Mutant("a ring has room for ever", "dibber.fastpath.rings", "room.eq(used != C.FAST_PUTS)", "room.eq(1)", depth=14, harness="PutsSmall"),
    ]),
    Property("fast-asks", "fastpath/contexts", "an ask ends once, acknowledged and answered in this order by its own answer, or is the program's",
        "1 flow, 4 slots, 1 entry in its ring, 2 asks", "AsksSmall", bound=16, mutants=[
            Mutant("any generation", "dibber.fastpath.completer", "(detail.generation == answer.generation) & ", "", depth=16),
            Mutant("any kind", "dibber.fastpath.completer", " & (detail.atomic == answer.atomic)", "", depth=16),
            Mutant("an answer before the acknowledgement", "dibber.fastpath.completer", "((hit & asks.found.waits) != 0)", "(hit != 0)", depth=16),
            Mutant("an answer to a claimed flow", "dibber.fastpath.completer", "state.ours.eq(is_armed & ", "state.ours.eq(", depth=16),
            Mutant("the comparison of an answer before", "dibber.fastpath.completer", "still | answer.ready | enter", "still | enter", depth=16),
            Mutant("the comparison with a command before", "dibber.fastpath.completer", " | enter.strobe | entered, looked", ", looked", depth=16),
            Mutant("a third ask", "dibber.fastpath.contexts", " & (~is_ask | asks.room)", "", depth=16),
            Mutant("what waits is not shown", "dibber.fastpath.completer", "state.asks.eq(waits[0] + waits[1])", "state.asks.eq(0)", depth=16),
        ]),
]
