"""One channel of a switch: packets pass whole and once, and a blocked output stops nobody else."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from dibber.fabric.switch.crossbar import Crossbar
from dibber.fabric.switch.output import PacketTurn
from dibber.fabric.switch.prefix import FAULT_NONE, order_layout

from harness import Harness, Mutant, Property, implies, inner

PORTS      = 4
TURN_PORTS = 16

def one_hot(value):
    return (value & (value - 1)) == 0

class Free(Harness):
    """The block with free packets, consumers, links that come and go, and a free limit."""
    ports = PORTS
    guest = False

    def __init__(self):
        super().__init__()
        ports      = self.ports
        self.block = block = Crossbar(ports, self.guest)
        self.count = count = len(block.inputs)
        for n, sink in enumerate(block.sinks):
            self.free_all(f"sink{n}", sink, omit=("channel", "prefix"))
            # The slack buffer: `first` is the first word after a `last`, and an offer stands.
            inside  = Signal()
            waiting = Signal()
            word    = Signal(35)
            held    = Signal(35)
            self.comb += word.eq(Cat(sink.data, sink.first, sink.last, sink.bad))
            self.sync += [
                If(sink.valid & sink.ready, inside.eq(~sink.last)),
                waiting.eq(sink.valid & ~sink.ready),
                held.eq(word),
            ]
            self.assume(f"framed{n}", implies(sink.valid, sink.first == ~inside))
            self.assume(f"stands{n}", implies(waiting, sink.valid & (word == held)))
            busy, discard = inner(block.inputs[n], "busy"), inner(block.inputs[n], "discard")
            self.lemma(f"one_state{n}", ~(busy & discard))
            self.lemma(f"inside{n}", inside == (busy | discard))
        for n, source in enumerate(block.sources):
            self.comb += source.ready.eq(self.free(f"ready{n}"))
        self.comb += [
            block.down.eq(self.free("down", ports)),
            block.disabled.eq(self.free("disabled", ports)),
            block.tick.eq(self.free("tick")),
        ]
        self.busy   = [inner(one, "busy") for one in block.inputs]
        self.target = [inner(one, "target") for one in block.inputs]
        self.grants = [output.grant for output in block.outputs]
        for o, output in enumerate(block.outputs):
            self.lemma(f"one_holder{o}", one_hot(output.grant))
            for i in range(count):
                # Who holds an output is busy and wants it.
                self.lemma(f"holder{o}_{i}", implies(output.grant[i], self.busy[i] & self.target[i][o]))
        for i in range(count):
            self.lemma(f"one_target{i}", one_hot(self.target[i]) & implies(self.busy[i], self.target[i] != 0))


class Whole(Free):
    """For each output: what leaves is packets of single inputs, word by word and whole, or ended
    as bad; each word once.
    """
    def __init__(self):
        super().__init__()
        block = self.block
        for i, one in enumerate(block.inputs):
            # Beside it, the packet: where it must go, by the order that was taken.
            sink  = one.sink
            order = Record(order_layout())
            self.comb += order.raw_bits().eq(sink.data)
            takes_order = Signal()
            output = Signal(log2_int(self.ports))  # of the packet at the head
            behind = Signal(3)
            good   = Signal()
            drops  = Signal()
            self.comb += [
                takes_order.eq(sink.valid & sink.ready & sink.first),
                drops.eq(one.drop.strobe),
            ]
            self.sync += If(takes_order,
                # The guest has no port: its turn is the output.
                output.eq(order.turn + (i if i < self.ports else 0)),
                behind.eq(order.behind),
                good.eq(order.fault == FAULT_NONE),
            )
            taken = Signal()   # a word behind the order is taken
            loads = [Signal(name=f"load{i}_{o}") for o in range(self.ports)]
            self.comb += [
                taken.eq(sink.valid & sink.ready & ~sink.first),
                *[load.eq(out.grant[i] & one.lane.valid & out.free)
                    for load, out in zip(loads, block.outputs)],
            ]
            # Each word goes to one output, that of its order, or it is discarded: then its packet
            # was dropped, and counted once.
            discarding = Signal()
            self.sync += [
                If(drops, discarding.eq(1)),
                If(sink.valid & sink.ready & sink.last, discarding.eq(0)),
            ]
            self.prove(f"to_its_output{i}", implies(taken & ~discarding,
                Cat(*loads) == (1 << output)))
            self.prove(f"discarded{i}", implies(discarding, Cat(*loads) == 0))
            self.prove(f"not_invented{i}", implies(Cat(*loads) != 0, taken))
            self.prove(f"good_prefix{i}", implies(Cat(*loads) != 0, good & (one.lane.behind == behind)))
            self.prove(f"counted_once{i}", implies(drops, ~discarding))
            self.prove(f"passed{i}", implies(one.passed, taken & ~discarding & sink.last & ~sink.bad))
            self.prove(f"each_end{i}", implies(taken & sink.last & ~discarding, one.passed | one.bad))
            discard, fault, target = (inner(one, name) for name in ("discard", "fault", "target"))
            self.lemma(f"discarding{i}", discarding == discard)
            self.lemma(f"output{i}", implies(self.busy[i], (target == (1 << output)) & (one.lane.behind == behind)
                & (good == (fault == FAULT_NONE))))
            self.lemma(f"granted_good{i}", implies(reduce(or_, [grant[i] for grant in self.grants]), good))

        for o, output in enumerate(block.outputs):
            source = output.source
            # The word that was loaded is shown until it is taken, unchanged.
            lane   = Signal(34)
            lanes  = [Mux(output.grant[i] & one.lane.valid, Cat(one.lane.data, one.lane.last, one.lane.bad), 0)
                for i, one in enumerate(block.inputs)]
            loads  = Signal()
            owner  = Signal(self.count)  # whose packet leaves
            open_  = Signal()            # its last word was not loaded yet
            cut    = Signal()
            self.comb += [
                lane.eq(reduce(or_, lanes)),
                loads.eq(reduce(or_, [output.grant[i] & one.lane.valid for i, one in enumerate(block.inputs)]) & output.free),
                cut.eq(reduce(or_, [output.grant[i] & one.drop.strobe for i, one in enumerate(block.inputs)])),
            ]
            # A packet that is cut ends with a bad word of its own.
            cutting = Signal()
            self.sync += [
                If(loads, owner.eq(output.grant), open_.eq(~lane[32])),
                If(cutting & output.free, cutting.eq(0), open_.eq(0)),
                If(cut, cutting.eq(open_)),
            ]
            loaded, shown = Signal(), Signal(35)
            ended  = Signal()
            self.sync += [
                If(loads,
                    loaded.eq(1), ended.eq(0), shown.eq(Cat(lane, ~open_))
                ).Elif(cutting & output.free,
                    loaded.eq(0), ended.eq(1)
                ).Elif(output.free,
                    loaded.eq(0), ended.eq(0)
                ),
            ]
            self.prove(f"shown{o}", source.valid == (loaded | ended))
            self.prove(f"word{o}", implies(loaded, Cat(source.data, source.last, source.bad, source.first) == shown))
            self.prove(f"cut_word{o}", implies(ended, source.last & source.bad & ~source.first))
            self.prove(f"not_mixed{o}", implies(loads & open_, (output.grant == owner) & ~cutting))
            self.prove(f"cut_ends{o}", implies(cutting, ~loads & open_))
            begun, is_cutting = inner(output, "begun"), inner(output, "cutting")
            self.lemma(f"open{o}", begun == open_)
            # While the cut word waits, the output is stuck or its register is free. So it grants
            # nothing.
            self.lemma(f"cutting{o}", (is_cutting == cutting) & implies(cutting,
                open_ & (output.grant == 0) & (output.stuck | ~source.valid)))
            self.lemma(f"holds{o}", implies(open_ & ~cutting, (output.grant == owner) & (owner != 0)))
            self.lemma(f"register{o}", ~(loaded & ended))


class Apart(Free):
    """One input's packet for an output that is UP, takes words, and is wanted by nobody else. All
    other outputs may be blocked for ever, and all other inputs do what they like there.
    """
    def __init__(self):
        super().__init__()
        block = self.block
        i = self.constant("input", log2_int(self.ports))
        o = self.constant("output", log2_int(self.ports))
        at   = lambda signals, n: Array(signals)[n]
        busy, wants, granted, taken, offered, discards = (Signal() for _ in range(6))
        self.comb += [
            busy.eq(at(self.busy, i)),
            wants.eq(busy & at([target[n] for target in self.target for n in range(self.ports)], Cat(o, i))),
            granted.eq(at([grant[n] for grant in self.grants for n in range(self.ports)], Cat(i, o))),
            offered.eq(at([one.valid for one in block.sinks], i)),
            taken.eq(at([one.ready for one in block.sinks], i)),
            discards.eq(at([one.drop.strobe for one in block.inputs], i)),
        ]
        self.assume("taken", at([source.ready for source in block.sources], o))
        self.assume("up",    ~at([block.down[n] for n in range(self.ports)], o))
        self.assume("no_limit", ~block.tick)
        for n in range(self.count):
            self.assume(f"alone{n}", implies(self.busy[n] & at([self.target[n][m] for m in range(self.ports)], o), n == i))
        # A packet without a fault is granted in the second cycle, and then each word passes at once.
        fault  = at([inner(one, "fault") != FAULT_NONE for one in block.inputs], i)
        good   = Signal()
        before = Signal()
        self.comb += good.eq(wants & ~fault)
        self.sync += before.eq(good & ~(granted & offered & taken & at([one.last for one in block.sinks], i)))
        self.prove("granted_at_once", implies(good & before, granted))
        self.prove("passes_at_once", implies(good & granted & offered, taken))
        self.prove("not_dropped", implies(good, ~discards))
        stuck = at([output.stuck for output in block.outputs], o)
        cutting = at([inner(output, "cutting") for output in block.outputs], o)
        self.lemma("free", ~stuck & ~cutting)
        self.lemma("no_other", implies(at([grant != 0 for grant in self.grants], o), granted))
        self.lemma("on_time", implies(granted, before | ~good))
        for n, one in enumerate(block.inputs):
            self.lemma(f"in_time{n}", ~inner(one, "overdue"))


class WholeGuest(Whole):
    """Channel CONTROL: the switch's own answers have an input, too."""
    guest = True


class WholeGuestSmall(WholeGuest):
    ports = 2


class WholeSmall(Whole):
    """For mutants: counter-examples are searched from reset."""
    ports = 2


class ApartSmall(Apart):
    ports = 2


class Turns(Harness):
    """Any requests, in any cycles. While a client waits, each other client gets the grant once at
    most.
    """
    def __init__(self):
        super().__init__()
        self.turn = turn = PacketTurn(TURN_PORTS)
        self.comb += [
            turn.request.eq(self.free("request", TURN_PORTS)),
            turn.closed.eq(self.free("closed")),
            turn.end.eq(self.free("end")),
        ]
        one    = self.constant("waits", TURN_PORTS)  # one-hot: the client that waits
        asks   = Signal()
        asked  = Signal()        # it asked in the cycle before
        waits  = Signal()        # and did not get the grant
        new    = Signal()        # the grant may have changed in the last cycle
        gets   = Signal(TURN_PORTS)   # who got the grant in the last cycle
        had    = Signal(TURN_PORTS)   # who got it while this client waited, without `gets`
        self.comb += [
            asks.eq((turn.request & one) != 0),
            gets.eq(Mux(new, turn.grant, 0)),
            waits.eq(asked & ((turn.grant & one) == 0)),
        ]
        self.sync += [
            asked.eq(asks),
            new.eq(((turn.grant == 0) | turn.end) & ~turn.closed),
            had.eq(Mux(asks & waits, had | gets, 0)),
        ]
        self.assume("one", one_hot(one) & (one != 0))
        # A client whose packet ends, or that holds the grant, does not ask.
        self.assume("holder", (turn.request & turn.grant) == 0)
        self.prove("one_hot", one_hot(turn.grant))
        self.prove("who_asked", implies(gets != 0, (gets & self.before(turn.request, TURN_PORTS)) != 0))
        self.prove("once_each", implies(waits, (had & gets & ~one) == 0))

        # In the turn's order, which begins behind the last holder, those that had the grant come
        # behind the client that waits.
        above = inner(turn, "above")  # the clients above the last holder
        below = Signal(TURN_PORTS)    # the clients below the one that waits
        those = Signal(TURN_PORTS)
        self.comb += [
            below.eq(one - 1),
            those.eq((had | gets) & ~one),
        ]
        self.lemma("last",  implies(gets != 0, above == ~(gets | (gets - 1))[:TURN_PORTS]))
        # They are the upper ones: with each client all clients above it.
        self.lemma("above", ((above << 1)[:TURN_PORTS] & ~above) == 0)
        self.lemma("order", implies(waits, Mux((above & one) != 0,
            (those & above & below) == 0,
            (those & (above | below)) == 0)))


PROPERTIES = [
    Property("switch-whole", "fabric/switch/crossbar", "packets pass whole, once and unmixed, or end as bad and are counted",
        f"{PORTS} ports × 32", "Whole", k=1, quick=True, mutants=[
            Mutant("a cut packet gets no end", "dibber.fabric.switch.output",
                "cutting.eq(begun),", "cutting.eq(0),", depth=12, harness="WholeSmall"),
            Mutant("a word is taken that the register has no room for", "dibber.fabric.switch.crossbar",
                "output.grant[n] & output.free", "output.grant[n]", depth=12, harness="WholeSmall"),
            Mutant("a word passes while its packet is cut", "dibber.fabric.switch.input",
                "lane.valid.eq(sink.valid & busy & ~cut),", "lane.valid.eq(sink.valid & busy),", depth=12, harness="WholeSmall"),
            Mutant("the output is the turn", "dibber.fabric.switch.input",
                "order.turn[:len(output)] + number", "order.turn[:len(output)]", depth=12, harness="WholeSmall"),
            Mutant("the next packet may begin before the cut one ends", "dibber.fabric.switch.output",
                "turn.closed.eq(lane.cut),", "turn.closed.eq(0),", depth=16, harness="WholeSmall"),
    ]),
    Property("switch-guest", "fabric/switch/crossbar", "the same with the input of the switch's own answers",
        f"{PORTS} ports × 32", "WholeGuest", k=1, mutants=[
            Mutant("the guest has a port's number", "dibber.fabric.switch.crossbar",
                "[0]*guest", "[1]*guest", depth=12, harness="WholeGuestSmall"),
    ]),
    Property("switch-apart", "fabric/switch/crossbar", "a blocked output holds up no packet for another one",
        f"{PORTS} ports × 32", "Apart", k=2, mutants=[
            Mutant("one register for all outputs", "dibber.fabric.switch.crossbar",
                "one.taken.eq(reduce(or_, [output.grant[n] & output.free for output in outputs])),",
                "one.taken.eq(reduce(or_, [output.grant[n] & output.free for output in outputs]) & outputs[0].free),",
                depth=10, harness="ApartSmall"),
            Mutant("all outputs are stuck together", "dibber.fabric.switch.crossbar",
                "one.stuck.eq(self.stuck),", "one.stuck.eq(Replicate(self.stuck != 0, ports)),", depth=14, harness="ApartSmall"),
    ]),
    Property("switch-turns", "fabric/switch/output", "while an input waits, each other one gets the output once at most",
        f"{TURN_PORTS} ports", "Turns", k=1, quick=True, mutants=[
            Mutant("the lowest input goes first", "dibber.fabric.switch.output",
                "choice.eq(Mux(later != 0, lowest_one(later), lowest_one(request))),",
                "choice.eq(lowest_one(request)),", depth=10),
            Mutant("the last holder is forgotten", "dibber.fabric.switch.output",
                "If(request != 0,", "If(0,", depth=10),
    ]),
]
