# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Migen's `run_simulation`, with the design compiled to Python instead of interpreted.

Migen 0.10 walks every combinational statement again and again until nothing changes, which makes two
cards on a cable run at some 70 cycles a second. Here each combinational signal becomes straight code,
in the order of the dependencies; synchronous statements become one function a clock domain. Values,
generators, and what one sees in which cycle are Migen's own: this only replaces how its simulator
executes a design. One loop of signals that depend on each other is repeated until it settles.
"""

from migen.fhdl.structure import (Case, Cat, ClockSignal, Constant, If, Replicate, ResetSignal, Signal,
    _ArrayProxy, _Assign, _Operator, _Part, _Slice)
from migen.fhdl.bitcontainer import value_bits_sign
from migen.fhdl.tools import flat_iteration, list_signals, list_targets
from migen.sim.core import Simulator

OPERATORS = {">>>": ">>", "<<<": "<<"}


class Compiler:
    """Python source of expressions and statements. Values stand in the list `S`, indexed by a signal's duid."""
    def __init__(self, evaluator):
        self.evaluator = evaluator
        self.tables    = {}  # name -> tuple of duids: the choices of an array

    # Expressions ------------------------------------------------------------------------------

    def table(self, signals):
        name = f"T{len(self.tables)}"
        self.tables[name] = tuple(signal.duid for signal in signals)
        return name

    def expression(self, node):
        if isinstance(node, Constant):
            return f"({node.value})"
        if isinstance(node, Signal):
            return f"S[{node.duid}]"
        if isinstance(node, _Operator):
            values = [self.expression(operand) for operand in node.operands]
            if node.op == "m":
                return f"({values[1]} if {values[0]} else {values[2]})"
            if len(values) == 1:
                return f"({node.op}{values[0]})"
            return f"({values[0]} {OPERATORS.get(node.op, node.op)} {values[1]})"
        if isinstance(node, _Slice):
            return f"(({self.expression(node.value)} >> {node.start}) & {(1 << (node.stop - node.start)) - 1})"
        if isinstance(node, _Part):
            return (f"(({self.expression(node.value)} >> {self.expression(node.offset)})"
                    f" & {(1 << node.width) - 1})")
        if isinstance(node, Cat):
            parts, shift = [], 0
            for element in node.l:
                bits = len(element)
                parts.append(f"(({self.expression(element)} & {(1 << bits) - 1}) << {shift})")
                shift += bits
            return f"({' | '.join(parts) or '0'})"
        if isinstance(node, Replicate):
            bits = len(node.v)
            return f"(({self.expression(node.v)} & {(1 << bits) - 1})*{sum(1 << i*bits for i in range(node.n))})"
        if isinstance(node, _ArrayProxy):
            if all(isinstance(choice, Signal) for choice in node.choices):
                return f"S[{self.table(node.choices)}[min({len(node.choices) - 1}, {self.expression(node.key)})]]"
            choices = ", ".join(f"lambda: {self.expression(choice)}" for choice in node.choices)
            return f"({choices},)[min({len(node.choices) - 1}, {self.expression(node.key)})]()"
        if isinstance(node, ClockSignal):
            return self.expression(self.evaluator.clock_domains[node.cd].clk)
        if isinstance(node, ResetSignal):
            reset = self.evaluator.clock_domains[node.cd].rst
            return "0" if reset is None else self.expression(reset)
        raise NotImplementedError(node)

    # Statements -------------------------------------------------------------------------------

    def statements(self, items, indent, assign):
        """Lines for statements; `assign(target, source, indent)` makes those of an assignment."""
        lines, pad = [], "    "*indent
        for s in flat_iteration(items):
            if isinstance(s, _Assign):
                lines += assign(s.l, self.expression(s.r), indent)
            elif isinstance(s, If):
                yes, no = (self.statements(branch, indent + 1, assign) for branch in (s.t, s.f))
                if yes or no:
                    lines += [f"{pad}if {self.expression(s.cond)} & {(1 << len(s.cond)) - 1}:", *(yes or [pad + "    pass"])]
                if no:
                    lines += [f"{pad}else:", *no]
            elif isinstance(s, Case):
                lines += self.case(s, indent, assign)
            else:
                raise NotImplementedError(s)
        return lines

    def case(self, s, indent, assign):
        pad, branches = "    "*indent, []
        for key, body in s.cases.items():
            if isinstance(key, Constant):
                branches.append((key.value, self.statements(body, indent + 1, assign)))
        default = self.statements(s.cases["default"], indent + 1, assign) if "default" in s.cases else []
        if not default and not any(body for _, body in branches):
            return []
        bits, signed = value_bits_sign(s.test)
        lines = [f"{pad}t{indent} = {self.expression(s.test)} & {(1 << bits) - 1}"]
        if signed:
            lines.append(f"{pad}t{indent} -= (t{indent} & {1 << (bits - 1)}) << 1")
        word = "if"
        for value, body in branches:
            if body or default:
                lines += [f"{pad}{word} t{indent} == {value}:", *(body or [pad + "    pass"])]
                word = "elif"
        if default:
            lines += ([f"{pad}else:", *default] if word == "elif" else self.statements(s.cases["default"], indent, assign))
        return lines

    def truncated(self, signal, value):
        mask = (1 << signal.nbits) - 1
        if signal.signed:
            return f"((({value}) & {mask}) ^ {1 << (signal.nbits - 1)}) - {1 << (signal.nbits - 1)}"
        return f"({value}) & {mask}"

    def store(self, target, value, indent, read, write):
        """Assignment to any target. `read(signal)`: its value with what was assigned so far."""
        pad = "    "*indent
        if isinstance(target, Signal):
            return write(target, self.truncated(target, value), indent)
        if isinstance(target, Cat):
            lines, shift, name = [], 0, f"v{indent}_{id(target)}"
            for element in target.l:
                lines += self.store(element, f"({name} >> {shift}) & {(1 << len(element)) - 1}", indent, read, write)
                shift += len(element)
            return [f"{pad}{name} = {value}", *lines] if lines else []
        if isinstance(target, _Slice):
            mask = (1 << (target.stop - target.start)) - 1
            return self.store(target.value, f"({read(target.value)} & {~(mask << target.start)})"
                              f" | ((({value}) & {mask}) << {target.start})", indent, read, write)
        if isinstance(target, _ArrayProxy):
            lines, key = [], f"k{indent}_{id(target)}"
            for i, choice in enumerate(target.choices):
                body = self.store(choice, value, indent + 1, read, write)
                lines += [f"{pad}if {key} == {i}:", *body] if body else []
            return [f"{pad}{key} = min({len(target.choices) - 1}, {self.expression(target.key)})", *lines] if lines else []
        raise NotImplementedError(target)

    def sync(self, items):
        """Body of a function that puts what changes at the clock edge into the dict `M`."""
        def read(value):
            if isinstance(value, Signal):
                return f"M.get({value.duid}, S[{value.duid}])"
            if isinstance(value, _ArrayProxy):
                name, key = self.table(value.choices), self.expression(value.key)
                duid = f"{name}[min({len(value.choices) - 1}, {key})]"
                return f"M.get({duid}, S[{duid}])"
            return f"(({read(value.value)} >> {value.start}) & {(1 << (value.stop - value.start)) - 1})"

        def write(signal, value, indent):
            return [f"{'    '*indent}M[{signal.duid}] = {value}"]

        def assign(target, value, indent):
            # A memory has many words, all alike: no comparison for each.
            if isinstance(target, _ArrayProxy) and all(isinstance(c, Signal) for c in target.choices) \
                    and len({(c.nbits, c.signed) for c in target.choices}) == 1:
                last = len(target.choices) - 1
                return [f"{'    '*indent}M[{self.table(target.choices)}[min({last}, {self.expression(target.key)})]]"
                        f" = {self.truncated(target.choices[0], value)}"]
            return self.store(target, value, indent, read, write)
        return self.statements(items, 1, assign)

    def comb(self, signal, items, indent):
        """Lines that compute one combinational signal from what is assigned to it."""
        def read(value):
            if isinstance(value, Signal):
                return "r" if value is signal else f"S[{value.duid}]"
            return f"(({read(value.value)} >> {value.start}) & {(1 << (value.stop - value.start)) - 1})"

        def write(target, value, indent):
            return [f"{'    '*indent}r = {value}"] if target is signal else []

        def assign(target, value, indent):
            return self.store(target, value, indent, read, write) if signal in list_targets_of(target) else []
        pad = "    "*indent
        return [f"{pad}r = {signal.reset.value}", *self.statements(items, indent, assign),
                f"{pad}S[{signal.duid}] = r"]

# Dependencies -------------------------------------------------------------------------------------

def list_targets_of(target):
    return list_targets(_Assign(target, Constant(0)))


def relevant(items, signal):
    """The signals on which `signal` depends through these statements."""
    inputs = set()
    for s in flat_iteration(items):
        if signal not in list_targets(s):
            continue
        if isinstance(s, _Assign):
            inputs |= list_signals(s.r)
            inputs |= list_signals(s.l) - list_targets_of(s.l)
        elif isinstance(s, If):
            inputs |= list_signals(s.cond) | relevant(s.t, signal) | relevant(s.f, signal)
        elif isinstance(s, Case):
            inputs |= list_signals(s.test)
            for body in s.cases.values():
                inputs |= relevant(body, signal)
    return inputs


def components(depends):
    """Strongly connected components of a graph {node: successors needed first}, in order (Tarjan, without recursion)."""
    index, low, stack, on, order = {}, {}, [], set(), []
    for root in depends:
        if root in index:
            continue
        work = [(root, iter(depends[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for successor in rest:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on.add(successor)
                    work.append((successor, iter(depends[successor])))
                    break
                if successor in on:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on.discard(component[-1])
                    order.append(component)
    return order

# Simulator ----------------------------------------------------------------------------------------

class CompiledSimulator(Simulator):
    def __init__(self, *args, **kwargs):
        Simulator.__init__(self, *args, **kwargs)
        values   = self.evaluator.signal_values
        compiler = Compiler(self.evaluator)
        for signal in list_signals(self.fragment):
            values[signal.duid] = signal.reset.value
        for storage in self.evaluator.replaced_memories.values():
            for signal in storage:
                values[signal.duid] = signal.reset.value

        assigned = {}  # comb target -> its statements
        signals  = {}
        for s in flat_iteration(self.fragment.comb):
            for target in list_targets(s):
                signals[target.duid] = target
                assigned.setdefault(target.duid, []).append(s)
        depends = {duid: sorted(s.duid for s in relevant(items, signals[duid]) if s.duid in assigned and s.duid != duid)
                   for duid, items in sorted(assigned.items())}
        body = []
        for component in components(depends):
            if len(component) == 1:
                body += compiler.comb(signals[component[0]], assigned[component[0]], 1)
                continue
            names = ", ".join(f"S[{duid}]" for duid in component)
            body += ["    while True:", f"        before = ({names})"]
            for duid in reversed(component):
                body += compiler.comb(signals[duid], assigned[duid], 2)
            body += [f"        if before == ({names}): break"]
        source = ["def comb():", *(body or ["    pass"])]
        for cd, items in self.fragment.sync.items():
            source += [f"def sync_{cd}():", *(compiler.sync(items) or ["    pass"])]
        scope = {"S": values, "M": self.evaluator.modifications, **compiler.tables}
        exec(compile("\n".join(source), "<design>", "exec"), scope)
        self._comb = scope["comb"]
        # What the base class executes as statements is now a call.
        evaluator, execute = self.evaluator, self.evaluator.execute
        functions = {id(items): scope[f"sync_{cd}"] for cd, items in self.fragment.sync.items()}
        functions[id(self.fragment.comb)] = lambda: None
        evaluator.execute = lambda items: functions[id(items)]() if id(items) in functions else execute(items)

    def _commit_and_comb_propagate(self):
        self.evaluator.commit_changed()
        self._comb()


def run_simulation(*args, **kwargs):
    """As migen.run_simulation, without traces."""
    with CompiledSimulator(*args, **kwargs) as simulator:
        simulator.run()
