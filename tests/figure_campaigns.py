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

from dibber_cli.bench import mpi

from tests.figure_rows import NO_GOAL, of_wide, row

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDE = "gen3x8"  # profile of cards with 256 bits


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


# A line of 10 Gb/s carries 1,250 MB/s; 4096 bytes have 48 of a packet, and 46 of each frame.
ETHERNET_BOUNDS = {
    profile: 1250 * 4096 / (4096 + 48 + 46 * frames)
    for profile, frames in {"eth10g": 1, "eth10g-1500": 3}.items()
}
# Faults of a cable: name, options, least share of the loss-free rate in percent or None.
ETHERNET_FAULTS = (
    ("loss-0.1%", ("--count", "4", "--loss", "0.001"), 50),
    ("late-0.1%", ("--count", "4", "--late", "0.001"), 50),
    ("loss-1%", ("--loss", "0.01"), None),
    ("late-1%", ("--late", "0.01"), None),
    ("loss-5%", ("--count", "2", "--loss", "0.05"), None),
)


def ethernet_rate(ethernet, faults):
    """Rate and one way over Ethernet: a direct cable, a switch, and a cable with faults."""
    name = f"soak-ethernet-rate-{ethernet}"
    bound = ETHERNET_BOUNDS[ethernet]

    def group(run, profile, seed):
        rows, wrong, clean = [], 0, None

        def measure(*words):
            nonlocal wrong
            command = [sys.executable, "tests/soak/ethernet_rate.py", "--profile", ethernet, *words]
            command += ["--seed", str(seed)]
            found = result_of(run, command)
            wrong += found["bytes_wrong"] + found["failed"]
            return command, found

        def add(what, value, unit, command, least):
            new = row(f"{name}-{what}", value, unit, ">=", least or 0, command, ethernet, seed)
            rows.append(new if least else {**new, "target": NO_GOAL})

        for place, shape in {"cable": "pair", "switch": "star:2"}.items():
            command, found = measure("--count", "2", "--shape", shape)
            rate = found["MB_per_second"]
            clean = clean or rate
            share = round(100 * rate / bound, 1)
            add(f"{place}-contiguous", share, f"% of {bound:.0f} MB/s, 1 MiB", command, 95)
            unit = "ns one way, inline, from the call to the notice"
            add(f"{place}-8-bytes", found["one_way_ns"], unit, command, None)
        for what, words, least in faults:
            command, found = measure(*words)
            share = round(100 * found["MB_per_second"] / clean, 1)
            add(what, share, f"% of {clean} MB/s without faults", command, least)
        command = [sys.executable, "tests/figures.py", "--only", name]
        unit = "bytes wrong, or puts that failed, in all of these runs"
        rows.append(row(f"{name}-wrong", wrong, unit, "<=", 0, command, ethernet, seed))
        return rows

    return group


def ethernet_star(ethernet):
    """Four cards by one switch, all to all: whether each has its share, and nothing is lost."""

    def group(run, profile, seed):
        command = [sys.executable, "tests/soak/ethernet_star.py", "--profile", ethernet]
        command += ["--megabytes", "2.4", "--seed", str(seed)]
        found = result_of(run, command)
        wrong = found["bytes_wrong"] + len(found["failed"])

        def of(what, value, unit, sign, limit):
            name = f"soak-ethernet-star-{ethernet}-{what}"
            return row(name, value, unit, sign, limit, command, ethernet, seed)

        least = of("least", min(found["MB_per_second"]), "MB/s sent, least of four cards", ">=", 0)
        return [
            of("jain", found["jain"], "Jain's index of four cards", ">=", 0.95),
            {**least, "target": NO_GOAL},
            of("wrong", wrong, "bytes wrong, or puts that failed", "<=", 0),
        ]

    return group


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


def wide(run, profile, seed):
    """`stride` of the wide cards: contiguous with the longest transfers, because four of 64 KiB
    take only 18 times the delay of one.
    """
    run([sys.executable, "hw/sim/build.py", "--profile", WIDE])
    run([sys.executable, "hw/sim/reference/build_reference.py", "litepcie-rate"])
    reports = []
    for words in (["--size", "262144", "--stride", "1", "--series", "put-dst-strided"], []):
        out = ROOT / "out" / ("wide-long" if words else "wide")
        words = ["--profile", WIDE, "--seed", str(seed), *words, "--out", str(out)]
        run(["dibber", "bench", "stride", *words])
        reports.append(json.loads((out / f"stride-{WIDE}.json").read_text()))
    return of_wide(*reports)


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


def mpi_ranks(ranks):
    """Barrier and b_eff of Open MPI on so many ranks, with CPU time. b_eff has fewer repetitions
    than its definition asks for: those of `dibber bench mpi`, which the row tells.
    """

    def group(run, profile, seed):
        effective = f"b_eff={mpi.LONGEST},{mpi.RANDOMS},{mpi.REPETITIONS}"
        command = ["dibber", "mpirun", "--profile", profile, "-n", str(ranks)]
        command += ["build/ofi/dibber-mpi-bench", str(seed), "barrier", effective]
        values, compared, wrong = mpi.parse(run(command))
        found = {name: value for name, _, value in values}
        few = f"1 of 3 repetitions, {mpi.RANDOMS} of 30 random patterns"
        parts = (
            ("barrier", "µs", None, ">=", 0),
            ("b_eff", f"MB/s, messages up to {mpi.LONGEST} bytes, {few}", None, ">=", 0),
            ("bytes-wrong", f"of {compared} compared", wrong, "<=", 0),
        )
        rows = []
        for name, unit, value, sign, limit in parts:
            value = round(found[name], 3) if value is None else value
            new = row(f"mpi-{ranks}-ranks-{name}", value, unit, sign, limit, command, profile, seed)
            rows.append(new if sign == "<=" else {**new, "target": NO_GOAL})
        return rows

    return group


# Name: (minutes on two idle cores, function of run, profile and seed; None: the name is a file of
# tests that record their figures).
CAMPAIGNS = {
    **{f"mpi-{ranks}-ranks": (10, mpi_ranks(ranks)) for ranks in mpi.RANKS},
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
    "soak-ethernet-rate-eth10g": (5, ethernet_rate("eth10g", ETHERNET_FAULTS)),
    "soak-ethernet-rate-eth10g-1500": (3, ethernet_rate("eth10g-1500", ETHERNET_FAULTS[-1:])),
    "soak-ethernet-star-eth10g": (2, ethernet_star("eth10g")),
    "soak-ethernet-star-eth10g-1500": (2, ethernet_star("eth10g-1500")),
    "tests/soak/link_figures.py": (10, None),
    "bench-wide": (20, wide),
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
