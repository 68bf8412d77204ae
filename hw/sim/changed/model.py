"""Verilator's output for a card: its variables, and the statements of each phase.

Verilator 5 evaluates inputs in the region `ico` and a clock edge in the region `nba`. Each has a
function that calls others; each class is a module with one instance. The rest of Verilator's code
decides whether there was an edge. It is not needed, because the simulator knows that.
"""

# SPDX-License-Identifier: BSD-2-Clause

import re
import typing

from changed import statements
from changed.statements import UnknownForm

# phase of this package: region of Verilator
REGIONS = {"settle": "ico", "clock": "nba"}

SCALAR = r"(?:CData|SData|IData|QData|VlWide<\d+>)"
TYPE = rf"(?:{SCALAR}|VlUnpacked<{SCALAR}, \d+>)"
COMMENT = re.compile(r"/\*.*?\*/")
PORT = re.compile(r"VL_(IN|OUT|INOUT)(8|16|64|W|)\(&?(\w+),\d+,\d+(?:,(\d+))?\);")
MEMBER = re.compile(rf"({TYPE}) (\w+);")
PORT_TYPES = {"8": "CData", "16": "SData", "": "IData", "64": "QData"}


class Instance(typing.NamedTuple):
    """A module's instance: C++ class, and member of the symbol table. Its variables are iN.name."""

    kind: str
    member: str


class Model(typing.NamedTuple):
    """prefix    : of Verilator's names
    instances : list of Instance; number 0 is the top with the ports
    types     : variable → C++ type
    inputs    : variables that are inputs of the card
    constants : name of a table → its declaration
    phases    : "settle" and "clock" → list of statements
    """

    prefix: str
    instances: list
    types: dict
    inputs: list
    constants: dict
    phases: dict

    def words(self, variable):
        """Words of a wide variable, 0 for all others."""
        found = re.fullmatch(r"VlWide<(\d+)>", self.types.get(variable, ""))
        return int(found[1]) if found else 0

    def is_array(self, variable):
        return self.types[variable].startswith("VlUnpacked")


def read(folder, top):
    """The Model of the card in a folder. Raises UnknownForm."""
    return _Reader(folder, f"V{top}").model()


class _Reader:
    def __init__(self, folder, prefix):
        self.folder, self.prefix = folder, prefix
        self.types, self.inputs, self.constants = {}, [], {}
        self.functions = {}  # name → (class, text)
        self.locals = 0
        self._read_instances()
        for number in range(len(self.instances)):
            self._read_variables(number)
        for path in sorted(folder.glob(f"{prefix}_*.cpp")):
            if not path.name.endswith("Slow.cpp"):
                self._read_functions(path.read_text())

    def model(self):
        phases = {phase: self._phase(region) for phase, region in REGIONS.items()}
        return Model(self.prefix, self.instances, self.types, self.inputs, self.constants, phases)

    def _read_instances(self):
        text = (self.folder / f"{self.prefix}__Syms.h").read_text()
        found = re.findall(rf"^ +({self.prefix}_\w+) +(TOP\w*);", text, re.M)
        self.instances = [Instance(*names) for names in found]
        kinds = [instance.kind for instance in self.instances]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise UnknownForm(f"the module of {kind} has more than one instance")
        if not kinds or kinds[0] != f"{self.prefix}___024root":
            raise UnknownForm(f"{self.prefix}__Syms.h does not begin with the root's instance")

    def _read_variables(self, number):
        text = (self.folder / f"{self.instances[number].kind}.h").read_text()
        for line in COMMENT.sub("", text).splitlines():
            line = line.strip()
            if port := PORT.fullmatch(line):
                way, size, name, words = port.groups()
                variable = f"i{number}.{name}"
                self.types[variable] = f"VlWide<{words}>" if words else PORT_TYPES[size]
                if number == 0 and way == "IN":
                    self.inputs.append(variable)
                elif way == "INOUT":
                    raise UnknownForm(f"the port {name} is an inout")
            elif member := MEMBER.fullmatch(line):
                self.types[f"i{number}.{member[2]}"] = member[1]

    def _read_functions(self, text):
        for declaration in re.finditer(r"^extern const .*? (\w+);$", text, re.M):
            self.constants[declaration[1]] = declaration[0]
        for function in re.finditer(
            r"^(?:VL_INLINE_OPT )?void (\w+)\((\w+)\* vlSelf\) \{\n(.*?)^\}", text, re.M | re.S
        ):
            self.functions[function[1]] = function[2], function[3]

    # Phases ---------------------------------------------------------------------------------------

    def _normal(self, kind, text):
        """Text in the form of `statements`: of a function of the class `kind`."""
        number = [instance.kind for instance in self.instances].index(kind)
        text = re.sub(r"\s+", " ", text)
        text = re.sub(r"(->|\.) ", r"\1", text).replace("vlSelfRef.", f"i{number}.")
        members = {instance.member: n for n, instance in enumerate(self.instances)}
        return re.sub(
            r"vlSymsp->(TOP\w*)\.",
            lambda found: f"i{members[found[1]]}.",
            text,
        )

    def _phase(self, region):
        """Statements of a region: those of its function, and of the functions that it calls."""
        name = f"{self.prefix}___024root___eval_{region}"
        head, body = self._parts(name)
        whole = re.fullmatch(
            rf" if \(\(1ULL & i0\.__V{region}Triggered\[0U\]\)\) \{{(.*)\}} ?", body
        )
        if not whole:
            raise UnknownForm(f"{name} is not one condition over all that the region does")
        # A list of texts, with the names of the called functions between them.
        pieces = re.split(r"(\w+)\(\(?(?:vlSelf|&vlSymsp->TOP\w*)\)?\);", whole[1])
        names = self._local_names(head)
        texts = [self._parsed(name, self._renamed(text, names)) for text in pieces[::2]]
        found = self._zeroed(name, head, [s for text in texts for s in text], names)
        for text, called in zip(texts, [*pieces[1::2], None]):
            found += text
            if called:
                head, body = self._parts(called)
                names = self._local_names(head)
                inner = self._parsed(called, self._renamed(body, names))
                found += self._zeroed(called, head, inner, names) + inner
        for statement in found:
            for variable in statements.reads(statement) | statements.writes(statement):
                if variable not in self.types:
                    raise UnknownForm(f"the variable {variable} is declared in no known way")
        return found

    def _parts(self, name):
        """Head and body of a function; the body in the form of `statements`."""
        if name not in self.functions:
            raise UnknownForm(f"the function {name} is not in a fast file")
        kind, text = self.functions[name]
        head, _, body = text.partition("// Body")
        return head, self._normal(kind, body)

    def _local_names(self, head):
        """Old name → new name of the locals that a function's head declares."""
        self.locals += 1
        names = {}
        for kind, old in re.findall(rf"^ *({TYPE}) (\w+);", COMMENT.sub("", head), re.M):
            names[old] = f"L{self.locals}_{old}"
            self.types[names[old]] = kind
        return names

    def _renamed(self, body, names):
        return re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), body)

    def _parsed(self, function, text):
        """Statements of a function's body, or of a part of it."""
        try:
            return statements.parse(text)
        except UnknownForm as unknown:
            raise UnknownForm(f"in {function} {unknown}") from None

    def _zeroed(self, function, head, found, names):
        """Assignments of 0 that come before the statements of a function.

        Verilator first sets scalar locals to 0. That matters only for locals that may be read
        before they are written. Wide temporaries are written word by word before their use.
        """
        needed = statements.needs(found, self._words, set())
        result = []
        for old, new in names.items():
            if new in needed and not self._words(new):
                if not re.search(rf"^ *{old} = 0;", head, re.M):
                    raise UnknownForm(f"in {function} the local {old} is read before it is written")
                result.append(statements.assignment(f"{new} = 0U"))
        return result

    def _words(self, variable):
        found = re.fullmatch(r"VlWide<(\d+)>", self.types.get(variable, ""))
        return int(found[1]) if found else 0

    def _check(self, found):
        for statement in found:
            for variable in statements.reads(statement) | statements.writes(statement):
                if variable not in self.types:
                    raise UnknownForm(f"the variable {variable} is declared in no known way")
