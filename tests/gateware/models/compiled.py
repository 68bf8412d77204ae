"""Migen's `run_simulation`, with the design compiled to Python instead of interpreted.

Migen 0.10 walks every combinational statement again and again until nothing changes, which makes
two cards on a cable run at some 70 cycles a second. Here each combinational signal becomes straight
code, in the order of the dependencies, and so do the synchronous statements, by the signals that
they assign. Each such unit has a flag, and is executed when something that it reads has changed: in
most cycles most of a design stands still. Values, generators, and what one sees in which cycle are
Migen's own: this only replaces how its simulator executes a design. A loop of signals that depend
on each other is repeated until it settles.

A design is compiled once, however often it is simulated: tests that need the same one get it from
`shared`.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import functools
import inspect
import itertools

from migen.fhdl.structure import Signal, _Assign, _Fragment
from migen.fhdl.tools import flat_iteration, list_signals, list_targets
from migen.fhdl.simplify import MemoryToArray
from migen.sim.core import Simulator

from tools.graphs import components

from tests.gateware.models.compiler import Compiler

BLOCK = 16  # units that have a flag in common besides their own

# Dependencies -------------------------------------------------------------------------------------

def connected(statements, targets):
    """Statements in groups, such that no signal is assigned in two; each group in the order given.
    """
    leader = {}  # duid -> duid, towards one that stands for its group

    def find(duid):
        while leader.setdefault(duid, duid) != duid:
            leader[duid] = duid = leader[leader[duid]]
        return duid

    for s in statements:
        first, *others = targets(s)
        for duid in others:
            leader[find(duid)] = find(first)
    groups = {}
    for s in statements:
        groups.setdefault(find(next(iter(targets(s)))), []).append(s)
    return list(groups.values())

# Design -------------------------------------------------------------------------------------------

class Design:
    """A design as Python functions.

    Attributes
    ----------
    reset         : duid -> value at the start
    marks         : duid -> flags of the units, and of their blocks, that read it
    drives        : duid -> flags of the unit that assigns it, likewise
    flags         : how many there are
    comb          : function (S, F): what combinational signals are; `F` are the flags
    sync          : clock domain -> function (S, F, M): what changes at its edge goes to the dict
                    `M`
    clock_domains, memories : as Migen's simulator has them
    """
    def __init__(self, module, clocks):
        memories = MemoryToArray()
        fragment = module if isinstance(module, _Fragment) else module.get_fragment()
        memories.transform_fragment(None, fragment)
        self.memories = memories.replacements
        for storage in self.memories.values():
            for word in storage:
                word.reset_less = True  # as in an FPGA
        fragment = Simulator(fragment, [], clocks).fragment
        self.clock_domains = fragment.clock_domains
        compiler = Compiler(self.clock_domains)
        signals  = {signal.duid: signal for signal in list_signals(fragment)}
        signals |= {signal.duid: signal for storage in self.memories.values() for signal in storage}
        signals |= {cd.rst.duid: cd.rst for cd in self.clock_domains if cd.rst is not None}
        self.reset = {duid: signal.reset.value for duid, signal in signals.items()}
        self.marks, self.drives, self.flags = {}, {}, 0

        # Numbers of the flags: those of the blocks, then those of the units.
        assigned = {}  # comb target -> its statements
        for s in flat_iteration(fragment.comb):
            for duid in compiler.targets(s):
                assigned.setdefault(duid, []).append(s)
        bodies  = {duid: compiler.unit(compiler.comb, signals[duid], items, 3) for duid, items in sorted(assigned.items())}
        depends = {duid: sorted(reads & assigned.keys() - {duid}) for duid, (_, reads) in bodies.items()}
        order   = components(depends)
        edges   = {}
        drivers = {}  # duid -> clock domains that assign it
        for cd, items in fragment.sync.items():
            statements = [s for s in flat_iteration(items) if compiler.targets(s)]
            edges[cd]  = [(group, frozenset().union(*map(compiler.targets, group)),
                           *compiler.unit(compiler.sync, group, 3)) for group in connected(statements, compiler.targets)]
            for duid in set().union(*(targets for _, targets, _, _ in edges[cd])):
                drivers.setdefault(duid, []).append(cd)
        parts = [[(component, set().union(*(bodies[duid][1] for duid in component))) for component in order]]
        parts += [[(targets, reads | {duid for duid in targets if len(drivers[duid]) > 1}) for _, targets, _, reads in units]
                  for units in edges.values()]
        numbers = [self._number(part) for part in parts]

        source = ["def comb(S, F):"]
        for n, (component, flag) in enumerate(zip(order, numbers[0])):
            source += self._guard(n, flag, numbers[0])
            source += self._comb_unit(component, flag, [bodies[duid][0] for duid in component])
        source.append("    return")
        for (cd, units), flags in zip(edges.items(), numbers[1:]):
            source.append(f"def sync_{cd}(S, F, M):")
            for n, ((_, _, body, _), flag) in enumerate(zip(units, flags)):
                source += [*self._guard(n, flag, flags), *body]
            source.append("    return")
        scope = dict(compiler.tables)
        exec(compile("\n".join(source), "<design>", "exec"), scope)
        self.comb = scope["comb"]
        self.sync = {cd: scope[f"sync_{cd}"] for cd in edges}

    def _number(self, units):
        """Number the flags of units (targets, reads) and of their blocks: (unit's, block's) of
        each.
        """
        result = []
        for n, (targets, reads) in enumerate(units):
            if n % BLOCK == 0:
                block, self.flags = self.flags, self.flags + 1
            unit, self.flags = self.flags, self.flags + 1
            result.append((unit, block))
            for duid in reads:
                self.marks.setdefault(duid, {}).update({unit: None, block: None})
            for duid in targets:
                self.drives[duid] = (*self.drives.get(duid, ()), unit, block)
        return result

    def _guard(self, n, flag, flags):
        """Lines before a unit; with the first one of a block, those before the block."""
        unit, block = flag
        lines = [f"    if F[{block}]:", f"        F[{block}] = 0"] if n % BLOCK == 0 else []
        return [*lines, f"        if F[{unit}]:", f"            F[{unit}] = 0"]

    def _marked(self, duid, flag, pad):
        """Lines that mark the readers of a signal, except for the unit that assigns it."""
        flags = [f"F[{n}]" for n in self.marks.get(duid, ()) if n not in flag]
        return [f"{pad}{' = '.join(flags)} = 1"] if flags else []

    def _comb_unit(self, component, flag, bodies):
        pad = "    "*3
        if len(component) == 1:
            duid = component[0]
            return [*bodies[0], f"{pad}if r != "
                                f"S[{duid}]:", f"{pad}    S[{duid}] = r", *self._marked(duid, flag, pad + "    ")]
        names = ", ".join(f"S[{duid}]" for duid in component)
        lines = [f"{pad}first = ({names})", f"{pad}while True:", f"{pad}    before = ({names})"]
        for duid, body in reversed(list(zip(component, bodies))):
            lines += [*("    " + line for line in body), f"{pad}    S[{duid}] = r"]
        lines.append(f"{pad}    if before == ({names}): break")
        for n, duid in enumerate(component):
            if marked := self._marked(duid, flag, pad + "    "):
                lines += [f"{pad}if first[{n}] != S[{duid}]:", *marked]
        return lines

# Simulator ----------------------------------------------------------------------------------------

class Write:
    """A generator's assignment of a number to a signal, without Migen's objects for both. It is no
    statement of a design.
    """
    __slots__ = ("signal", "value")

    def __init__(self, signal, value):
        self.signal, self.value = signal, value


def _eq(signal, value):
    """What `signal.eq(value)` is in a generator while a design runs."""
    return Write(signal, int(value)) if isinstance(value, int) else _Assign(signal, value)


@contextlib.contextmanager
def quick_assignments():
    """Signals make a Write of an assignment of a number."""
    before = vars(Signal).get("eq")
    Signal.eq = _eq
    try:
        yield
    finally:
        if before is None:
            del Signal.eq
        else:
            Signal.eq = before


def edges(time):
    """Migen's TimeManager, endlessly: (clocks that rise, clocks that fall) of each tick. What was
    before comes again, so each tick is computed once.
    """
    ticks, seen = [], {}
    while (state := tuple((c.high, c.time_before_trans) for c in time.clocks.values())) not in seen:
        seen[state] = len(ticks)
        _, rising, falling = time.tick()
        ticks.append((sorted(rising), sorted(falling)))
        yield ticks[-1]
    yield from itertools.cycle(ticks[seen[state]:])


class CompiledSimulator(Simulator):
    """One run of a design, from its reset values on."""
    def __init__(self, design, generators, clocks={"sys": 10}):
        if not hasattr(design, "compiled"):
            design.compiled = Design(design, clocks)
        self.design = design.compiled
        # Statements are functions here: what Migen's simulator has to see are the clocks.
        Simulator.__init__(self, _Fragment(clock_domains=self.design.clock_domains), generators, clocks)
        self.evaluator.replaced_memories = self.design.memories
        self.flags = [1]*self.design.flags
        for duid, value in self.design.reset.items():
            self.evaluator.signal_values[duid] = value

    def _write(self, signal, value):
        """A generator assigns a signal: what drives it in the design has its say again."""
        duid = signal.duid
        for flag in self.design.drives.get(duid, ()):
            self.flags[flag] = 1
        value &= (1 << signal.nbits) - 1
        if signal.signed and value >> (signal.nbits - 1):
            value -= 1 << signal.nbits
        self.evaluator.modifications[duid] = value

    def _evalexec_nested_lists(self, x):
        """As Migen's, with short ways for what generators ask most."""
        if type(x) is Signal:
            value = self.evaluator.signal_values[x.duid] if x.duid < len(self.evaluator.signal_values) else None
            return x.reset.value if value is None else value
        if type(x) is Write:
            return self._write(x.signal, x.value)
        if type(x) is _Assign:
            for signal in list_targets(x):
                for flag in self.design.drives.get(signal.duid, ()):
                    self.flags[flag] = 1
            self.evaluator.assign(x.l, self.evaluator.eval(x.r))
            return None
        return Simulator._evalexec_nested_lists(self, x)

    def _process_generators(self, cd):
        """As Migen's. Returns whether a generator ended, or became passive or active."""
        values, write, other = self.evaluator.signal_values, self._write, self._evalexec_nested_lists
        known, ended, changed = len(values), [], False
        for generator in self.generators[cd]:
            send, reply = generator.send, None
            try:
                while (request := send(reply)) is not None:
                    kind = type(request)
                    if kind is Signal:
                        duid  = request.duid
                        reply = values[duid] if duid < known else None
                        if reply is None:
                            reply = request.reset.value
                    elif kind is Write:
                        reply = write(request.signal, request.value)
                    elif kind is str:
                        changed = True
                        change  = {"passive": self.passive_generators.add, "active": self.passive_generators.discard}
                        change[request](generator)
                    else:
                        try:
                            reply = other(request)
                        except Exception as error:
                            frame = inspect.getframeinfo(generator.gi_frame)
                            error.add_note(f"asked by the generator at {frame.filename}:{frame.lineno}")
                            raise
            except StopIteration:
                ended.append(generator)
        for generator in ended:
            self.generators[cd].remove(generator)
        return changed or bool(ended)

    def _commit_and_comb_propagate(self):
        values, flags, marks = self.evaluator.signal_values, self.flags, self.design.marks
        for duid, value in self.evaluator.modifications.items():
            if values[duid] != value:
                values[duid] = value
                for flag in marks.get(duid, ()):
                    flags[flag] = 1
        self.evaluator.modifications.clear()
        self.design.comb(values, flags)

    def run(self):
        """Until all generators ended that are not passive."""
        with quick_assignments():
            self._run()

    def _run(self):
        values, changes = self.evaluator.signal_values, self.evaluator.modifications
        sync, marks     = self.design.sync, self.design.marks
        clocks          = {cd: self.design.clock_domains[cd].clk.duid for cd in self.time.clocks}
        self._commit_and_comb_propagate()
        changed = True
        for rising, falling in edges(self.time):
            for cd in rising:
                changes[clocks[cd]] = 1
                if cd in sync:
                    sync[cd](values, self.flags, changes)
                if cd in self.generators:
                    changed = self._process_generators(cd) or changed
            for cd in falling:
                # No logic reads most clocks: their edge changes nothing else.
                if clocks[cd] in marks:
                    changes[clocks[cd]] = 0
                else:
                    values[clocks[cd]] = 0
            if changes:
                self._commit_and_comb_propagate()
            if rising and changed:
                if not self._continue_simulation():
                    break
                changed = False


def run_simulation(*args, **kwargs):
    """As migen.run_simulation, without traces."""
    with CompiledSimulator(*args, **kwargs) as simulator:
        simulator.run()


@functools.lru_cache(maxsize=6)
def shared(design, *args, **kwargs):
    """design(*args, **kwargs), the same one for all callers. No caller may add statements to it."""
    return design(*args, **kwargs)
