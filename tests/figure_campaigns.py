"""Rows of `make figures` that take from ten minutes to hours: the campaigns of `make soak` and
`make synthesis`, a bitstream by four seeds, and the whole suite.

    python tests/figures.py --long [--only soak-transfers,…]

Without `--long` their rows are kept ones, measured with this simulator and this control program, or
say that there are none.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import sys
import time

from tests.figure_rows import row

ROOT = pathlib.Path(__file__).resolve().parents[1]


def result_of(run, command):
    """The JSON that a program prints. It may end with 1; then the JSON describes the fault."""
    return json.loads(run(command, codes=(0, 1)))


def soak(name, reader, *words):
    """A campaign of tests/soak: `reader` makes (what, value, unit, sign, limit) of its result."""

    def group(run, profile, seed):
        command = [sys.executable, f"tests/soak/{name}.py", *words, "--seed", str(seed)]
        found = result_of(run, command)
        return [
            row(
                f"soak-{name.replace('_', '-')}-{what}",
                value,
                unit,
                sign,
                limit,
                command,
                profile,
                seed,
            )
            for what, value, unit, sign, limit in reader(found)
        ]

    return group


def of_transfers(found):
    # Most kinds of faults are not wrong bytes: a status, a lost notice. They count here too.
    return [
        ("count", found["transfers"], "random transfers in one run", ">=", 20_000),
        ("bytes-wrong", found["bytes_wrong"], f"of {found['bytes_compared']} compared", "<=", 0),
        (
            "trouble",
            len(found["trouble"]),
            "transfers that did not do what the model says",
            "<=",
            0,
        ),
    ]


def of_ethernet_strides(found):
    points = found["points"]
    least = min(points, key=lambda point: point["share"])
    return [
        ("least", round(100 * least["share"], 1), f"% of the bound: {least['point']}", ">=", 95),
        (
            "bytes-wrong",
            sum(point["bytes_wrong"] + point["failed"] for point in points),
            f"bytes, or puts that failed, at {len(points)} points",
            "<=",
            0,
        ),
    ]


def of_faults(found):
    return [
        ("runs", found["runs"], "faults of the cable", ">=", 1000),
        ("failures", len(found["failures"]), "hangs, wrong bytes, notices, counts", "<=", 0),
    ]


def of_program_faults(found):
    return [
        ("runs", found["runs"], "faults of the control program", ">=", 1000),
        (
            "failures",
            len(found["failures"]),
            "cards not loaded again, guard bytes changed, next transfers that failed",
            "<=",
            0,
        ),
        (
            "diagnosis",
            round(found["longest_diagnosis_us"] / 1000, 2),
            "ms until the last one was diagnosed",
            "<=",
            100,
        ),
    ]


def of_threads(found):
    return [
        (
            "seconds",
            found["seconds"],
            "s of wall time, 8 endpoints and 8 threads a card",
            ">=",
            300,
        ),
        ("bytes-wrong", found["bytes_wrong"], f"of {found['bytes']} moved", "<=", 0),
    ]


def suite(run, profile, seed):
    """Wall time of all benchmarks, with warm caches."""
    command = [
        "dibber",
        "bench",
        "all",
        "--profile",
        profile,
        "--seed",
        str(seed),
        "--out",
        str(ROOT / "out" / "all"),
    ]
    begin = time.monotonic()
    run(command)
    return [
        row(
            "bench-all-wall-time",
            round(time.monotonic() - begin),
            "s, warm",
            "<=",
            600,
            command,
            profile,
            seed,
        )
    ]


def synthesis(program, *words):
    """A program of hw/synthesis makes its rows itself, and keeps its results."""

    def group(run, profile, seed):
        return result_of(run, [sys.executable, f"hw/synthesis/{program}.py", "--json", *words])[
            "figures"
        ]

    return group


def bitstreams(board, seeds, targets):
    """A board's bitstream by each of `seeds`: the worst of each clock, against {clock: MHz}.
    Placements are kept.
    """

    def group(run, profile, seed):
        command = [
            sys.executable,
            f"boards/{board}.py",
            "--build",
            "--json",
            "--seed",
            *map(str, seeds),
        ]
        found = result_of(run, command)["worst"]
        return [
            row(
                f"bitstream-{board}-{clock.replace('_', '-')}",
                found[clock],
                f"MHz, the worst of {len(seeds)} seeds",
                ">=",
                mhz,
                command,
                "",
                0,
            )
            for clock, mhz in targets.items()
        ]

    return group


# Name: (minutes on two idle cores, function of run, profile and seed; None: the name is a file of
# tests that record their figures).
CAMPAIGNS = {
    "soak-transfers": (30, soak("transfers", of_transfers, "--json", "--count", "20000")),
    "soak-faults": (25, soak("faults", of_faults, "--json", "--runs", "1000")),
    "soak-program-faults": (
        60,
        soak("program_faults", of_program_faults, "--json", "--runs", "1000"),
    ),
    "soak-threads": (5, soak("threads", of_threads, "--seconds", "300")),
    "soak-ethernet-strides": (
        1,
        soak("ethernet_strides", of_ethernet_strides, "--json"),
    ),
    "tests/soak/link_figures.py": (10, None),
    "bench-all": (10, suite),
    "synthesis-engines": (60, synthesis("engines")),
    "synthesis-boards": (60, synthesis("xilinx")),
    "synthesis-core": (60, synthesis("ecp5")),
    # The link's clocks have 125 MHz at 2.5 Gb/s, and 10 % more.
    "bitstream-ecpix5": (
        160,
        bitstreams("ecpix5", [1, 2, 3, 4], {"sys_clk": 80, "tx_clk": 137.5, "rx_clk": 137.5}),
    ),
}
