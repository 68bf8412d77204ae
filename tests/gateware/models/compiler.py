"""Python source of Migen's expressions and statements."""

# SPDX-License-Identifier: BSD-2-Clause

from migen.fhdl.structure import (
    Case,
    Cat,
    ClockSignal,
    Constant,
    If,
    Replicate,
    ResetSignal,
    Signal,
    _ArrayProxy,
    _Assign,
    _Operator,
    _Part,
    _Slice,
)
from migen.fhdl.bitcontainer import value_bits_sign
from migen.fhdl.tools import flat_iteration, list_targets

OPERATORS = {">>>": ">>", "<<<": "<<"}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Compiler:
    """Python source of expressions and statements. Values stand in the list `S`, indexed by a
    signal's duid.

    Attributes
    ----------
    tables : name -> tuple of duids: the choices of an array
    reads  : duids of what the source since the last unit() reads
    """

    def __init__(self, clock_domains):
        self.clock_domains = clock_domains
        self.tables = {}
        self.names = {}  # tuple of duids -> name
        self.reads = set()
        self.assigned = {}  # id of a statement -> duids that it may assign

    def unit(self, lines, *arguments):
        """What a method makes, and the duids that it reads."""
        self.reads = set()
        return lines(*arguments), self.reads

    def targets(self, s):
        """Duids that a statement may assign."""
        if id(s) not in self.assigned:
            self.assigned[id(s)] = frozenset(signal.duid for signal in list_targets(s))
        return self.assigned[id(s)]

    # Expressions ------------------------------------------------------------------------------

    def table(self, signals):
        duids = tuple(signal.duid for signal in signals)
        if duids not in self.names:
            self.names[duids] = f"T{len(self.tables)}"
            self.tables[self.names[duids]] = duids
        self.reads.update(duids)
        return self.names[duids]

    def bits(self, node):
        """Source of a value that is not negative and has the bits of `node`, no more."""
        safe = (
            isinstance(node, (_Slice, _Part, Cat, Replicate))
            or isinstance(node, Signal)
            and not node.signed
            or isinstance(node, _Operator)
            and node.op in COMPARISONS
        )
        return (
            self.expression(node) if safe else f"({self.expression(node)} & {(1 << len(node)) - 1})"
        )

    def expression(self, node):
        if isinstance(node, Constant):
            return f"({node.value})"
        if isinstance(node, Signal):
            self.reads.add(node.duid)
            return f"S[{node.duid}]"
        if isinstance(node, _Operator):
            values = [self.expression(operand) for operand in node.operands]
            if node.op == "m":
                return f"({values[1]} if {values[0]} else {values[2]})"
            if node.op == "~":
                # A comparison is a bool, on which Python 3.12 and later do not like ~.
                return f"(-1 ^ {values[0]})"
            if len(values) == 1:
                return f"({node.op}{values[0]})"
            return f"({values[0]} {OPERATORS.get(node.op, node.op)} {values[1]})"
        if isinstance(node, _Slice):
            shift = f" >> {node.start}" if node.start else ""
            return (
                f"(({self.expression(node.value)}{shift}) & {(1 << (node.stop - node.start)) - 1})"
            )
        if isinstance(node, _Part):
            return (
                f"(({self.expression(node.value)} >> {self.expression(node.offset)})"
                f" & {(1 << node.width) - 1})"
            )
        if isinstance(node, Cat):
            parts, shift = [], 0
            for element in node.l:
                bits = len(element)
                parts.append(f"({self.bits(element)} << {shift})" if shift else self.bits(element))
                shift += bits
            return f"({' | '.join(parts) or '0'})"
        if isinstance(node, Replicate):
            bits = len(node.v)
            return f"({self.bits(node.v)}*{sum(1 << i * bits for i in range(node.n))})"
        if isinstance(node, _ArrayProxy):
            if all(isinstance(choice, Signal) for choice in node.choices):
                return (
                    f"S[{self.table(node.choices)}[min({len(node.choices) - 1}, "
                    f"{self.expression(node.key)})]]"
                )
            choices = ", ".join(f"lambda: {self.expression(choice)}" for choice in node.choices)
            return f"({choices},)[min({len(node.choices) - 1}, {self.expression(node.key)})]()"
        if isinstance(node, ClockSignal):
            return self.expression(self.clock_domains[node.cd].clk)
        if isinstance(node, ResetSignal):
            reset = self.clock_domains[node.cd].rst
            return "0" if reset is None else self.expression(reset)
        raise NotImplementedError(node)

    # Statements -------------------------------------------------------------------------------

    def statements(self, items, indent, assign, only=None):
        """Lines for statements; `assign(target, value, indent)` makes those of an assignment.
        `only`: duid of a signal.
        """
        lines, pad = [], "    " * indent
        for s in flat_iteration(items):
            if only is not None and only not in self.targets(s):
                continue
            if isinstance(s, _Assign):
                lines += assign(s.l, s.r, indent)
            elif isinstance(s, If):
                yes, no = (
                    self.statements(branch, indent + 1, assign, only) for branch in (s.t, s.f)
                )
                if yes or no:
                    lines += [f"{pad}if {self.bits(s.cond)}:", *(yes or [pad + "    pass"])]
                if no:
                    lines += [f"{pad}else:", *no]
            elif isinstance(s, Case):
                lines += self.case(s, indent, assign, only)
            else:
                raise NotImplementedError(s)
        return lines

    def case(self, s, indent, assign, only):
        pad, branches = "    " * indent, []
        for key, body in s.cases.items():
            if isinstance(key, Constant):
                branches.append((key.value, self.statements(body, indent + 1, assign, only)))
        default = (
            self.statements(s.cases["default"], indent + 1, assign, only)
            if "default" in s.cases
            else []
        )
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
            lines += (
                [f"{pad}else:", *default]
                if word == "elif"
                else self.statements(s.cases["default"], indent, assign, only)
            )
        return lines

    def truncated(self, signal, value):
        """Source of a value as it is in a signal. `value` is a node, or source already."""
        mask = (1 << signal.nbits) - 1
        if not isinstance(value, str):
            if (
                not signal.signed
                and isinstance(value, (Signal, _Slice))
                and len(value) <= signal.nbits
            ):
                return self.bits(value)
            value = self.expression(value)
        if signal.signed:
            return f"((({value}) & {mask}) ^ {1 << (signal.nbits - 1)}) - {1 << (signal.nbits - 1)}"
        return f"({value}) & {mask}"

    def store(self, target, value, indent, read, write):
        """Assignment to any target. `read(signal)`: its value with what was assigned so far."""
        pad = "    " * indent
        if isinstance(target, Signal):
            return write(target, value, indent)
        if not isinstance(value, str):
            value = self.expression(value)
        if isinstance(target, Cat):
            lines, shift, name = [], 0, f"v{indent}_{id(target)}"
            for element in target.l:
                lines += self.store(
                    element, f"({name} >> {shift}) & {(1 << len(element)) - 1}", indent, read, write
                )
                shift += len(element)
            return [f"{pad}{name} = {value}", *lines] if lines else []
        if isinstance(target, _Slice):
            mask = (1 << (target.stop - target.start)) - 1
            return self.store(
                target.value,
                f"({read(target.value)} & {~(mask << target.start)})"
                f" | ((({value}) & {mask}) << {target.start})",
                indent,
                read,
                write,
            )
        if isinstance(target, _ArrayProxy):
            lines, key = [], f"k{indent}_{id(target)}"
            for i, choice in enumerate(target.choices):
                body = self.store(choice, value, indent + 1, read, write)
                lines += [f"{pad}if {key} == {i}:", *body] if body else []
            return (
                [
                    f"{pad}{key} = min({len(target.choices) - 1}, {self.expression(target.key)})",
                    *lines,
                ]
                if lines
                else []
            )
        raise NotImplementedError(target)

    # Units ------------------------------------------------------------------------------------

    def sync(self, items, indent):
        """Lines that put what changes at the clock edge into the dict `M`."""

        def read(value):
            if isinstance(value, Signal):
                self.reads.add(value.duid)
                return f"M.get({value.duid}, S[{value.duid}])"
            if isinstance(value, _ArrayProxy):
                name, key = self.table(value.choices), self.expression(value.key)
                duid = f"{name}[min({len(value.choices) - 1}, {key})]"
                return f"M.get({duid}, S[{duid}])"
            return (
                f"(({read(value.value)} >> {value.start}) & "
                f"{(1 << (value.stop - value.start)) - 1})"
            )

        def write(signal, value, indent):
            return [f"{'    ' * indent}M[{signal.duid}] = {self.truncated(signal, value)}"]

        def assign(target, value, indent):
            # A memory has many words, all alike: no comparison for each.
            if (
                isinstance(target, _ArrayProxy)
                and all(isinstance(c, Signal) for c in target.choices)
                and len({(c.nbits, c.signed) for c in target.choices}) == 1
            ):
                last = len(target.choices) - 1
                return [
                    f"{'    ' * indent}M[{self.table(target.choices)}[min({last}, "
                    f"{self.expression(target.key)})]]"
                    f" = {self.truncated(target.choices[0], value)}"
                ]
            return self.store(target, value, indent, read, write)

        return self.statements(items, indent, assign)

    def comb(self, signal, items, indent):
        """Lines that compute one combinational signal, as `r`, from what is assigned to it."""

        def read(value):
            if isinstance(value, Signal):
                return "r" if value is signal else f"S[{value.duid}]"
            return (
                f"(({read(value.value)} >> {value.start}) & "
                f"{(1 << (value.stop - value.start)) - 1})"
            )

        def write(target, value, indent):
            return (
                [f"{'    ' * indent}r = {self.truncated(target, value)}"]
                if target is signal
                else []
            )

        def assign(target, value, indent):
            return self.store(target, value, indent, read, write)

        return [
            f"{'    ' * indent}r = {signal.reset.value}",
            *self.statements(items, indent, assign, signal.duid),
        ]
