"""The parts of a proof: a block, its free inputs and assumptions, and properties that must hold."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from migen import *
from migen.fhdl.tools import list_signals

from litex.gen import *

# Harness ------------------------------------------------------------------------------------------

class Harness(LiteXModule):
    """A block under proof. A proof subclasses it, adds the block and the properties.

    The solver chooses free signals and constants. Assumptions restrict them. Properties must be 1
    in every cycle of every run from reset that the assumptions allow. Lemmas tell
    the induction which states can be reached; they are proven with the rest, so a wrong one fails.
    """
    def __init__(self):
        self.cd_sys    = ClockDomain()
        self.frees     = []
        self.constants = []
        self.assumed   = []
        self.proven    = []
        self.lemmas    = []
        # of an induction apart: lemmas of the cycle before that a conclusion needs, or None
        self.given     = {}

    def free(self, name, bits=1):
        """A signal that may have any value in any cycle."""
        signal = Signal(bits, name_override=f"free_{name}")
        self.frees.append(signal)
        return signal

    def free_all(self, name, record, omit=()):
        """Drive the fields of a record that another block drives in the card, except those in
        `omit`.
        """
        for field_, signal in _leaves(record):
            if field_ not in omit:
                self.comb += signal.eq(self.free(f"{name}_{field_}", len(signal)))

    def constant(self, name, bits=1):
        """A signal that may have any value, the same in all cycles."""
        signal = Signal(bits, name_override=f"any_{name}")
        self.constants.append(signal)
        return signal

    def assume(self, name, condition):
        self._add(self.assumed, f"assume_{name}", condition)

    def prove(self, name, condition, now=False):
        """`now`: it follows from the lemmas of the same cycle, so the cycle before need not be
        searched.
        """
        self._add(self.proven, f"assert_{name}", condition)
        if now:
            self.given[name] = []

    def lemma(self, name, condition, given=()):
        """`given`: the lemmas of the cycle before from which it follows, if not all of them must be
        searched.
        """
        self._add(self.lemmas, f"lemma_{name}", condition)
        if given:
            self.given[name] = list(given)

    def _add(self, signals, name, condition):
        signal = Signal(name_override=name)
        self.comb += signal.eq(condition)
        signals.append(signal)

    def before(self, expression, bits=1, reset=0):
        """Value of `expression` one cycle ago."""
        past = Signal(bits, reset=reset)
        self.sync += past.eq(expression)
        return past


def _leaves(record):
    """(name, signal) of an endpoint's fields, `valid`, `first`, `last` among them, `ready` not."""
    found = [("valid", record.valid), ("first", record.first), ("last", record.last)]
    for part in (record.payload, record.param):
        found += [(name, getattr(part, name)) for name, *_ in part.layout]
    return found


def implies(a, b):
    return ~a | b


_locals = {}  # id of a module -> the local variables of its constructor

def record_locals(frame, event, argument):
    """For `sys.setprofile`: keep the local variables of the modules' constructors."""
    if event == "return" and frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), Module):
        # The base class's constructor returns first.
        _locals.setdefault(id(frame.f_locals["self"]), {}).update(frame.f_locals)


def inner(module, name):
    """A block's internal signal, by its name in the source; only for lemmas."""
    try:
        return _locals[id(module)][name]
    except KeyError:
        raise LookupError(f"{type(module).__name__} has no {name} any more") from None


def inner_all(module, name):
    """All signals that a constructor made under one name, in a loop; in their order."""
    found = {s.duid: s for s in list_signals(module._fragment) if s.backtrace[-1][0] == name}
    if not found:
        raise LookupError(f"{type(module).__name__} has no {name} any more")
    return [found[duid] for duid in sorted(found)]

def memory_of(module, name):
    """A block's memory, by its name."""
    for special in module._fragment.specials:
        if isinstance(special, Memory) and special.name_override == name:
            return special
    raise LookupError(f"{type(module).__name__} has no {name} any more")

# Properties ---------------------------------------------------------------------------------------

@dataclass
class Mutant:
    """The design with one mistake: in the source of `module`, `old` becomes `new`.

    `old` must be there exactly once, so a vanished mutant is noticed. `depth`: cycles in which the
    proof must find a run that breaks the property. `harness`: another one than the property's, if a
    smaller block breaks sooner.
    """
    name    : str
    module  : str
    old     : str
    new     : str
    depth   : int
    harness : str = ""


@dataclass
class Property:
    """One line of the table.

    `says`: the property in a few words; `harness`: the name of a Harness in the same file; `widths`
    as proven; `k` of the induction, or `bound` cycles if docs/proofs.md explains why that is
    enough.
    """
    name    : str
    block   : str
    says    : str
    widths  : str
    harness : str
    k       : int = 0
    bound   : int = 0
    mutants : list = field(default_factory=list)
    quick   : bool = False   # in the sample of `make test-quick`
    apart   : bool = False   # the induction's conclusions are proven one at a time
    arrays  : bool = False   # memories stay arrays for the solver instead of becoming registers
