"""Expressions of one-hot choices."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

def lowest_one(bits):
    """One-hot, as wide as the Signal `bits`: its lowest 1, or 0 if it has none.

    Example: 0b0110 gives 0b0010.
    """
    return Cat(*[bits[n] & (bits[:n] == 0) if n else bits[0] for n in range(len(bits))])

def number_of(one_hot):
    """Number of the only 1 of a Signal, or of a list of signals of one bit; 0 if it has none.

    Example: 0b0100 gives 2.
    """
    width = max(1, (len(one_hot) - 1).bit_length())
    bits  = [one_hot[n] for n in range(len(one_hot))]
    return Cat(*[
        reduce(or_, [bit for n, bit in enumerate(bits) if n >> place & 1], Constant(0, 1))
        for place in range(width)])

def value_of(one_hot, values):
    """The value at the place of the only 1 of the Signal `one_hot`; 0 if it has none.

    values : list of signals or numbers, one for each bit
    """
    return reduce(or_, [Mux(one_hot[n], value, 0) for n, value in enumerate(values)])
