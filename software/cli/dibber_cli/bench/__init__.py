"""Benchmarks: measured values, with the bound beside each. docs/benchmarks.md explains them."""

# SPDX-License-Identifier: BSD-2-Clause

# Each is a module of this name with points(), evaluate(), tables() and panels(). QUICK has the
# arguments of points() for fewer points. CHOICE exists if points() takes names of series. PROGRAM
# or measure() exist if session.run() needs them.
TESTS = {
    "stride": "8-byte elements at strides, beside packing, descriptors, LitePCIe and a local copy.",
    "block": "Contiguous puts, gets and messages of 4 B to 1 MiB, streamed and one at a time, "
    "with N½.",
    "element": "Elements of 1 to 256 bytes at twice and eight times their size, direct and packed.",
    "bidir": "Both cards send at once, beside one direction alone.",
    "latency": "An 8-byte inline put from memory to memory, percentiles, idle and under bulk.",
    "rate": "8-byte inline puts per second, by the number under way, from 1 to 8 endpoints.",
    "matrix": "A column, the faces of a halo, a transpose; direct and packed.",
    "patterns": "What applications send, by the geometry of DDTBench: direct, packed, contiguous.",
    "link": "Round trip, rate, STOP/GO and payload's share by cable length; bit errors found, and "
    "the rate with them.",
    "mpi": "MPI programs: ping-pong, collectives, dense patterns, b_eff, puts of vector types.",
    "soak": "Random transfers of all kinds over a bad cable that is sometimes unplugged, every "
    "byte compared.",
}

# Benchmarks of simulated networks of switches, which 'bench all' leaves out: they need the switches
# of 'make switches', and minutes.
NETWORK_TESTS = {
    "hops": "Latency and rate by the number of switches between two cards, and strided deposits "
    "through three switches.",
    "pattern": "All cards of a network put at once: shift, random permutation, hot spot, all to "
    "all; rate, fairness, bound by cut and link.",
}

# Of cards that are a build of their own (hw/sim/build.py --window); left out likewise.
WINDOW_TESTS = {
    "window": "The processor's stores and loads that reach the other card's memory, at strides and "
    "by lines, beside the engine; the times of a load, a store and a barrier.",
}

# Benchmarks in a guest, left out likewise: they need QEMU, and many minutes.
GUEST_TESTS = {
    "tcp": "TCP over the network device in a guest: write size, socket buffer, MTU; rate and "
    "interrupts, beside puts.",
}
LEFT_OUT = {**NETWORK_TESTS, **WINDOW_TESTS, **GUEST_TESTS}

# Benchmarks that always start simulated cards of their own: they take no URIs and no --timeline.
OWN_CARDS = {*LEFT_OUT, "mpi"}

# Module of a benchmark that is not the one of its name.
MODULES = {"pattern": "traffic"}
