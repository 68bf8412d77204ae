"""Compute only changed logic: a step between Verilator's C++ and the compiler.

Verilator computes all logic of a card in each cycle. But only a part has changed inputs: 12 % of
the logic when the card is idle, 20 % under load. This package reads Verilator's C++ and writes
other C++ with the same result, which skips logic that cannot have changed.

1. `model` reads Verilator's files: variables, and the assignments of each phase, in order.
   There are two phases. `settle` follows the inputs; `clock` is the rising edge.
2. `units` divides the assignments: all assignments to a variable in a phase make one unit.
   Conditions that enclose several variables are repeated in each unit.
3. `schedule` groups units into chunks and keeps the order that their data need.
   `activity` tells which units are busy, so a chunk has units that change together.
4. `emit` writes a C++ function for each chunk.

A bitmap has a bit for each chunk: an input of the chunk changed. A chunk clears its bit, computes,
and compares its outputs with their old values. It sets the bits of the chunks that read a changed
output. A chunk that nearly always has work stands in the straight line: it has no bit and always
runs.

Why a skipped chunk would have changed nothing: a chunk's outputs depend only on variables that it
reads before it writes them. Each write that changes such a variable, by any chunk in any phase,
sets the bit; so does a change of an output by another chunk that writes it too. All bits are set at
first.

An unknown form of C++ ends the build with a sentence (`UnknownForm`).
"""

# SPDX-License-Identifier: BSD-2-Clause

from changed import activity, emit, model, schedule, units
from changed.emit import VARIABLES
from changed.statements import UnknownForm

__all__ = ["VARIABLES", "UnknownForm", "write"]


def write(verilated, output, top, counted=False):
    """Write the C++ of a card into the folder `output`: evaluator.h, evaluator.cc, variables.cc,
    chunks_N.cc.

    verilated : folder of Verilator's C++
    top       : name of the top module
    counted   : for measuring activity: each unit is a chunk of its own and counts its runs, and
                units.txt lists the names of each

    Raises UnknownForm.
    """
    card = model.read(verilated, top)
    levels = activity.Levels() if counted else activity.read()
    chunks = []
    for phase, statements in card.phases.items():
        found = units.of_phase(phase, statements)
        chunks += schedule.chunks(found, levels, single=counted)
    emit.write(card, chunks, output, counted)
