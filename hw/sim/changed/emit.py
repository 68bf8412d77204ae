"""The C++ of the chunks, and the class Evaluator that runs them."""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import re

from changed import activity, statements
from changed.statements import Assignment, Condition

FILES = 16  # of chunks, which are compiled in parallel
WORD = 64  # bits of a word of the bitmap
VARIABLES = "variables.cc"  # a file with code that runs once, to be compiled without optimisation

HEAD = """/* Written by hw/sim/changed: only what changed is computed. */

"""


class Writer:
    """State while the files are written.

    Attributes
    ----------
    needs     : of each chunk, variables that it may read before it writes them
    readers   : variable → chunks with a bit, to be marked when the variable changed
    bits      : chunk → number of its bit. Those of a phase begin with a word of their own
    kept      : locals that live from one chunk or cycle to another
    """

    def __init__(self, card, chunks, counted):
        self.card, self.chunks, self.counted = card, chunks, counted
        self.writes = [chunk.writes for chunk in chunks]
        self.reads = [chunk.reads for chunk in chunks]
        self.needs = [statements.needs(chunk.statements, card.words, set()) for chunk in chunks]
        self.bits, self.words = {}, 0
        for phase in card.phases:
            bit = self.words * WORD
            for number, chunk in enumerate(chunks):
                if chunk.phase == phase and not chunk.straight:
                    self.bits[number] = bit
                    bit += 1
            self.words = -(-bit // WORD)
        self.readers = self._readers()
        self.kept = self._kept_locals()

    def _readers(self):
        found, writers = collections.defaultdict(set), collections.defaultdict(set)
        for number, needed in enumerate(self.needs):
            if number in self.bits:
                for variable in needed:
                    found[variable].add(number)
        # Variables that two phases write: each must write them again after the other has changed
        # them.
        for number, written in enumerate(self.writes):
            for variable in written:
                writers[variable].add(number)
        for variable, numbers in writers.items():
            if len(numbers) > 1:
                found[variable] |= numbers & self.bits.keys()
        return {variable: sorted(numbers) for variable, numbers in found.items()}

    def _kept_locals(self):
        chunks_of = collections.defaultdict(set)
        for number in range(len(self.chunks)):
            for variable in self.writes[number] | self.reads[number]:
                if variable.startswith("L"):
                    chunks_of[variable].add(number)
        return {
            variable
            for variable, numbers in chunks_of.items()
            if len(numbers) > 1 or variable in self.needs[min(numbers)]
        }

    # Pieces of C++ --------------------------------------------------------------------------------

    def marks(self, numbers):
        """Code that sets the bits of chunks."""
        masks = collections.defaultdict(int)
        for number in numbers:
            masks[self.bits[number] // WORD] |= 1 << self.bits[number] % WORD
        return " ".join(
            f"changed[{word}] |= 0x{mask:x}ull;" for word, mask in sorted(masks.items())
        )

    def difference(self, old, variable):
        """Expression that is not 0 if a variable has changed."""
        words = self.card.words(variable)
        if words:
            return " | ".join(f"({old}[{n}] ^ {variable}[{n}])" for n in range(words))
        return f"({old} ^ {variable})"

    def statement(self, statement, depth=1):
        """A statement. A write of an array's element counts as a change."""
        indent = "    " * depth
        if isinstance(statement, Assignment):
            text = f"{indent}{statement.text};\n"
            if self.card.is_array(statement.target) and statement.target in self.readers:
                text += f"{indent}{self.marks(self.readers[statement.target])}\n"
            return text
        then = "".join(self.statement(inner, depth + 1) for inner in statement.then)
        text = f"{indent}if ({statement.text}) {{\n{then}"
        if statement.other:
            other = "".join(self.statement(inner, depth + 1) for inner in statement.other)
            text += f"{indent}}} else {{\n{other}"
        return text + f"{indent}}}\n"

    def instances(self, used):
        """References to the instances whose variables are used."""
        numbers = {found[1] for name in used if (found := re.match(r"i(\d+)\.", name))}
        return "".join(
            f"    auto& i{number} = symbols->{self.card.instances[int(number)].member};\n"
            for number in sorted(numbers)
        )

    def chunk(self, number):
        """The function of a chunk."""
        chunk = self.chunks[number]
        used = self.writes[number] | self.reads[number]
        watched = sorted(
            variable
            for variable in self.writes[number]
            if variable in self.readers and not self.card.is_array(variable)
        )
        text = f"void Evaluator::chunk_{number}()\n{{\n{self.instances(used)}"
        if self.counted:
            text += f"    runs[{number}]++;\n"
        for variable in sorted(used):
            if variable.startswith("L") and variable not in self.kept:
                text += f"    {self.card.types[variable]} {variable};\n"
        for place, variable in enumerate(watched):
            text += f"    const {self.card.types[variable]} old_{place} = {variable};\n"
        text += "".join(map(self.statement, joined(chunk.statements)))
        same_readers = collections.defaultdict(list)
        for place, variable in enumerate(watched):
            same_readers[tuple(self.readers[variable])].append(
                self.difference(f"old_{place}", variable)
            )
        for numbers, differences in same_readers.items():
            text += f"    if ({' | '.join(differences)})"
            text += f" {{ {self.marks(numbers)} }}\n"
        return text + "}\n\n"

    def run(self, phase):
        """Code that runs the chunks of a phase: straight ones, and between them those with a bit."""
        text, first = "", None
        following = None
        for number, chunk in enumerate(self.chunks):
            if chunk.phase != phase:
                continue
            if chunk.straight:
                if first is not None:
                    text += f"    run<{first}, {following}>();\n"
                    first = None
                text += f"    chunk_{number}();\n"
            else:
                following = self.bits[number] + 1
                first = self.bits[number] if first is None else first
        if first is not None:
            text += f"    run<{first}, {following}>();\n"
        return text

    # Files ----------------------------------------------------------------------------------------

    def header(self):
        prefix = self.card.prefix
        text = HEAD + "#pragma once\n\n"
        text += "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n#include <vector>\n\n"
        text += f'#include "{prefix}__pch.h"\n'
        text += "".join(f'#include "{instance.kind}.h"\n' for instance in self.card.instances)
        text += f"""
class Evaluator {{
public:
    explicit Evaluator({prefix}& model);

    /* Let the logic follow the inputs. */
    void settle();

    /* The rising edge. */
    void clock();

    /* A memory was written from outside: anything may have changed. */
    void touch() {{ std::memset(changed, 0xff, sizeof(changed)); }}

    struct Variable {{
        const char* name; /* in Verilog */
        const void* at;
        size_t bytes;
    }};

    /* All variables of the Verilog that the chunks write, but for memories. */
    std::vector<Variable> variables() const;

    static constexpr size_t chunks = {len(self.chunks)};
    uint64_t runs[{len(self.chunks) if self.counted else 1}] = {{}}; /* of each chunk, if counted */

private:
    template <unsigned first, unsigned end> void run();
    void nothing() {{}}

    using Chunk = void (Evaluator::*)();
    static const Chunk table[{self.words * WORD}];

    {prefix}& model;
    {prefix}__Syms* const symbols;
    bool started = false;
    uint64_t changed[{self.words}]; /* a bit for each chunk: an input of it changed */

    /* The inputs as they were. */
"""
        for variable in self.card.inputs:
            text += f"    {self.card.types[variable]} in_{variable.partition('.')[2]} = {{}};\n"
        text += "\n    /* Temporaries that several chunks use. */\n"
        for variable in sorted(self.kept):
            text += f"    {self.card.types[variable]} {variable} = {{}};\n"
        text += "\n" + "".join(f"    void chunk_{n}();\n" for n in range(len(self.chunks)))
        return text + "};\n"

    def evaluator(self):
        prefix = self.card.prefix
        at = {bit: number for number, bit in self.bits.items()}
        entries = (
            f"    &Evaluator::{f'chunk_{at[bit]}' if bit in at else 'nothing'},\n"
            for bit in range(self.words * WORD)
        )
        text = (
            HEAD
            + f"""#include "evaluator.h"

const Evaluator::Chunk Evaluator::table[] = {{
{"".join(entries)}}};

/* Verilator's own evaluation is not compiled. Its wrapper initialises the model at the first eval(),
 * and then calls this function. */
void {prefix}___024root___eval({prefix}___024root*) {{}}

Evaluator::Evaluator({prefix}& model) : model(model), symbols(model.rootp->vlSymsp)
{{
    touch();
}}

/* Run the chunks whose bits are set, of the bits from `first` to before `end`. A chunk may set bits
 * of later ones, which then run, and of itself and earlier ones, which run in the next cycle. */
template <unsigned first, unsigned end> inline void Evaluator::run()
{{
    for (unsigned word = first / {WORD}; word <= (end - 1) / {WORD}; word++) {{
        uint64_t window = ~0ull;
        if (word == first / {WORD})
            window &= ~0ull << first % {WORD};
        if (word == (end - 1) / {WORD} && end % {WORD})
            window &= ~(~0ull << end % {WORD});
        while (uint64_t due = changed[word] & window) {{
            unsigned bit = unsigned(__builtin_ctzll(due));
            changed[word] &= ~(1ull << bit);
            window &= ~0ull << bit << 1;
            (this->*table[{WORD} * word + bit])();
        }}
    }}
}}

void Evaluator::settle()
{{
    if (!started) {{
        model.eval();
        started = true;
    }}
"""
        )
        text += self.instances(self.card.inputs)
        for variable in self.card.inputs:
            if variable not in self.readers:
                continue
            old = f"in_{variable.partition('.')[2]}"
            text += f"    if ({self.difference(old, variable)}) {{\n        {old} = {variable};\n"
            text += f"        {self.marks(self.readers[variable])}\n    }}\n"
        text += self.run("settle") + "}\n\nvoid Evaluator::clock()\n{\n"
        return text + self.run("clock") + "}\n"

    def variables(self):
        """The file with the table of the Verilog's variables. Of the locals and of the names that
        Verilator invents, none is in it.
        """
        written = sorted(set().union(*self.writes))
        found = [
            variable
            for variable in written
            if re.match(r"i\d+\.(?!__V)", variable.replace("__PVT__", ""))
            and not self.card.is_array(variable)
        ]
        text = HEAD + '#include "evaluator.h"\n\n'
        text += "std::vector<Evaluator::Variable> Evaluator::variables() const\n{\n"
        text += self.instances(found) + "    return {\n"
        for variable in found:
            text += f'        {{"{activity.name(variable)}", &{variable}, sizeof({variable})}},\n'
        return text + "    };\n}\n"

    def files(self):
        """Texts of the files with chunks, of about equal weight."""
        share = sum(chunk.weight for chunk in self.chunks) / FILES
        texts, text, weight = [], "", 0
        for number, chunk in enumerate(self.chunks):
            text += self.chunk(number)
            weight += chunk.weight
            if weight >= share or number == len(self.chunks) - 1:
                texts.append(text)
                text, weight = "", 0
        constants = re.compile(r"\bV\w+__ConstPool__\w+")
        for text in texts:
            used = sorted(set(constants.findall(text)))
            declarations = "".join(f"{self.card.constants[name]}\n" for name in used)
            yield f'{HEAD}#include "evaluator.h"\n\n{declarations}\n{text}'


def joined(found):
    """Statements, with conditions of the same text joined where the order allows."""
    result = []  # [statement, reads, writes]
    for statement in found:
        read, written = statements.reads(statement), statements.writes(statement)
        if isinstance(statement, Condition):
            for place in reversed(range(len(result))):
                earlier, earlier_reads, earlier_writes = result[place]
                if isinstance(earlier, Condition) and earlier.text == statement.text:
                    if not earlier_writes & statement.reads:
                        both = Condition(
                            earlier.text,
                            earlier.reads,
                            earlier.then + statement.then,
                            earlier.other + statement.other,
                        )
                        result[place] = [both, earlier_reads | read, earlier_writes | written]
                        statement = None
                    break
                if earlier_writes & (read | written) or earlier_reads & written:
                    break
        if statement is not None:
            result.append([statement, read, written])
    return [
        Condition(s.text, s.reads, joined(s.then), joined(s.other))
        if isinstance(s, Condition)
        else s
        for s, _, _ in result
    ]


def write(card, chunks, output, counted):
    """Write all files into the empty folder `output`."""
    output.mkdir(parents=True, exist_ok=True)
    writer = Writer(card, chunks, counted)
    (output / "evaluator.h").write_text(writer.header())
    (output / "evaluator.cc").write_text(writer.evaluator())
    (output / VARIABLES).write_text(writer.variables())
    for number, text in enumerate(writer.files()):
        (output / f"chunks_{number}.cc").write_text(text)
    if counted:
        lines = (
            " ".join(sorted(filter(None, map(activity.name, chunk.writes)))) for chunk in chunks
        )
        (output / "units.txt").write_text("".join(f"{line}\n" for line in lines))
