"""Benchmarks: what is measured, and the bound beside it. docs/benchmarks.md says how."""

# SPDX-License-Identifier: BSD-2-Clause

# Each is a module of this name: points(), evaluate(), tables(), panels(); QUICK: arguments of
# points() for fewer of them; CHOICE, where points() takes names of series; PROGRAM or measure(),
# where session.run() needs them.
TESTS = {
    "stride": "8-byte elements at strides, beside packing, descriptors, LitePCIe and a local copy.",
    "block": "Contiguous puts, gets and messages of 4 B to 1 MiB, streamed and one at a time, "
    "with N½.",
    "element": "Elements of 1 to 256 bytes at twice and eight times their size, direct and packed.",
    "bidir": "Both cards send at once, beside one way alone.",
    "latency": "An 8-byte inline put from memory to memory, percentiles, idle and under bulk.",
    "rate": "8-byte inline puts a second, by how many are under way, of 1 to 8 endpoints.",
    "matrix": "A column, the faces of a halo, a transpose; direct and packed.",
    "link": "Round trip, rate, STOP/GO and payload's share by cable length; bit errors found, and "
    "what they cost.",
    "soak": "Random transfers of all kinds over a bad cable that is pulled now and then, every "
    "byte compared.",
}
