"""What a proof is written in: a block, what may happen to it, and what must hold."""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from migen import *
from migen.fhdl.tools import list_signals

from litex.gen import *

# Harness ------------------------------------------------------------------------------------------

class Harness(LiteXModule):
    """A block under proof. A proof subclasses it, adds the block and says what must hold.

    Free signals and constants are the solver's to choose. What is assumed restricts them; what is
    proven must be 1 in every cycle of every run from reset that the assumptions allow. Lemmas tell
    the induction which states can be reached; they are proven with the rest, so a wrong one fails.
    """
    def __init__(self):
        self.cd_sys    = ClockDomain()
        self.frees     = []
        self.constants = []
        self.assumed   = []
        self.proven    = []
        self.lemmas    = []
        # of an induction apart: which lemmas of the cycle before a conclusion needs, or none
        self.given     = {}

    def free(self, name, bits=1):
        """A signal that may have any value in any cycle."""
        signal = Signal(bits, name_override=f"free_{name}")
        self.frees.append(signal)
        return signal

    def free_all(self, name, record, omit=()):
        """Drive the fields of a record that another drives in the card, but those in `omit`."""
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
        """`now`: it follows from the lemmas of the same cycle, where the cycle before need not be
        searched.
        """
        self._add(self.proven, f"assert_{name}", condition)
        if now:
            self.given[name] = []

    def lemma(self, name, condition, given=()):
        """`given`: the lemmas of the cycle before that it follows from, where not all of them have
        to be searched.
        """
        self._add(self.lemmas, f"lemma_{name}", condition)
        if given:
            self.given[name] = list(given)

    def _add(self, signals, name, condition):
        signal = Signal(name_override=name)
        self.comb += signal.eq(condition)
        signals.append(signal)

    def before(self, expression, bits=1, reset=0):
        """What `expression` was one cycle ago."""
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
    """For `sys.setprofile`: keep what the constructors of modules have in their local variables."""
    if event == "return" and frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), Module):
        # The base class's constructor returns first.
        _locals.setdefault(id(frame.f_locals["self"]), {}).update(frame.f_locals)


def inner(module, name):
    """What a block keeps to itself, by its name in the source; only for lemmas."""
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
    """A block's memory, by the name that it was given."""
    for special in module._fragment.specials:
        if isinstance(special, Memory) and special.name_override == name:
            return special
    raise LookupError(f"{type(module).__name__} has no {name} any more")

# Properties ---------------------------------------------------------------------------------------

@dataclass
class Mutant:
    """The design with one mistake: in the source of `module`, `old` becomes `new`.

    `old` must be there exactly once, so that a mutant cannot die without being noticed. `depth`:
    cycles in which the proof must find a run that breaks the property. `harness`: another one than
    the property's, where a smaller block breaks sooner.
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

    `says` in a few words; `harness` the name of a Harness in the same file; `widths` as proven;
    `k` of the induction, or `bound` cycles where docs/proofs.md says why no longer run is needed.
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
    apart   : bool = False   # the induction's conclusions are asked for one at a time
    arrays  : bool = False   # memories stay arrays for the solver instead of becoming registers
