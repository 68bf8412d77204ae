"""Elaboration in less time: what Migen and LiteX do again and again is done once."""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import contextlib
import gc

from litex.gen.fhdl import verilog
from migen.fhdl import tracer, visit
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
    _Fragment,
    _Operator,
    _Slice,
)
from migen.util.misc import flat_iteration

OBJECTS = 50_000  # new ones between two searches for garbage; Python's own number is 700

# Migen's and LiteX's own, which these functions stand for.
get_var_name = tracer.get_var_name
list_targets = verilog.list_targets


def elaborate_quickly() -> None:
    """Let this process elaborate designs and write Verilog in less time. The result is the same.

    - Python searches for cycles of garbage seldom. A design is very many small objects that live
      until its Verilog is written, so a search finds nothing and looks at all of them again.
    - Migen names a signal by the variables of all callers. Here the name that a place in the code
      gives is kept. In Python 3.11 and later each look at a place copies the caller's code.
    - Migen compares the type of each node with up to 15 classes: the right one is kept.
    - LiteX compares all groups of statements with each new one, and appends to one long string.

    The Verilog of a card of 128 bits takes 8.5 s of CPU time. With seldom searches alone it takes
    13.1 s.
    """
    gc.set_threshold(OBJECTS, 10, 2)
    tracer.get_var_name = KeptNames()
    tracer.classname_to_objs = Classes()
    tracer.index_id = index_id
    visit.NodeVisitor.visit = visit.NodeTransformer.visit = visit_node
    verilog._list_comb_wires = comb_wires
    verilog._generate_combinatorial_logic_sim = combinatorial_logic


# Names --------------------------------------------------------------------------------------------


class KeptNames:
    """Migen's get_var_name: the variable that gets the result of the call in a frame.

    It depends on the code and on the place in it alone, so it is kept by both.
    """

    def __init__(self):
        self.names = {}  # (id of the code, place) -> (the code, which keeps the id, the name)

    def __call__(self, frame):
        key = id(frame.f_code), frame.f_lasti
        if key not in self.names:
            self.names[key] = frame.f_code, get_var_name(frame)
        return self.names[key][1]


class Instances(list):
    """The objects of a class, and the place of each in this list."""

    def __init__(self, objects):
        super().__init__()
        self.places = {}  # id of an object -> its place
        for instance in objects:
            self.append(instance)

    def append(self, instance):
        self.places.setdefault(id(instance), len(self))
        super().append(instance)


class Classes(dict):
    """Migen's classname_to_objs: the Instances of each class, by its name."""

    def __setitem__(self, name, objects):
        super().__setitem__(name, Instances(objects))


def index_id(instances, wanted):
    """Migen's index_id: the place of an object among the Instances of its class, or ValueError."""
    place = instances.places.get(id(wanted))
    if place is None:
        raise ValueError
    return place


# Nodes --------------------------------------------------------------------------------------------

# In Migen's order. What is none of these is `unknown`, a _Part too.
NODES = (
    (Constant, "visit_Constant"),
    (Signal, "visit_Signal"),
    (ClockSignal, "visit_ClockSignal"),
    (ResetSignal, "visit_ResetSignal"),
    (_Operator, "visit_Operator"),
    (_Slice, "visit_Slice"),
    (Cat, "visit_Cat"),
    (Replicate, "visit_Replicate"),
    (_Assign, "visit_Assign"),
    (If, "visit_If"),
    (Case, "visit_Case"),
    (_Fragment, "visit_Fragment"),
    ((list, tuple), "visit_statements"),
    (dict, "visit_clock_domains"),
    (_ArrayProxy, "visit_ArrayProxy"),
    (object, "visit_unknown"),
)
methods = {}  # type of a node -> name of its method


def visit_node(self, node):
    """Migen's NodeVisitor.visit and NodeTransformer.visit."""
    kind = type(node)
    if kind not in methods:
        methods[kind] = next(name for classes, name in NODES if issubclass(kind, classes))
    return getattr(self, methods[kind])(node)


# Verilog ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def kept_targets():
    """LiteX asks for the targets of a statement once for each of them: they are kept meanwhile."""
    kept = {}  # id of a statement -> (the statement, which keeps the id, its targets)

    def targets(statement):
        if id(statement) not in kept:
            kept[id(statement)] = statement, list_targets(statement)
        return kept[id(statement)][1]

    verilog.list_targets = targets
    try:
        yield targets
    finally:
        verilog.list_targets = list_targets


def comb_wires(fragment):
    """LiteX's _list_comb_wires: signals that one assignment drives, and nothing else does."""
    assigned = [(s, list_targets(s)) for s in flat_iteration(fragment.comb)]
    times = collections.Counter(signal for _, targets in assigned for signal in targets)
    result = set()
    for statement, targets in assigned:
        whole = isinstance(statement, _Assign) and not isinstance(statement.l, _Slice)
        if whole and all(times[signal] == 1 for signal in targets):
            result |= targets
    return result


def combinatorial_logic(fragment, names):
    """LiteX's _generate_combinatorial_logic_sim: one block for each signal."""
    text, statements = [], collections.defaultdict(list)
    with kept_targets() as targets:
        for statement in flat_iteration(fragment.comb):
            for signal in targets(statement):
                statements[signal].append(statement)
        for signal, items in statements.items():
            if verilog._use_wire(items):
                blocking = verilog.AssignType.BLOCKING
                text += ["assign ", verilog._generate_node(names, blocking, 0, items[0])]
                continue
            reset = verilog._generate_expression(names, signal.reset)[0]
            later = verilog.AssignType.NON_BLOCKING
            text += [
                "always @(*) begin\n",
                f"{verilog._tab}{names.get_name(signal)} <= {reset};\n",
                verilog._generate_node(names, later, 1, items, signal),
                "end\n",
            ]
    return "".join(text) + "\n"
