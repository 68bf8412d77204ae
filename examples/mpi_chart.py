"""Charts of the MPI examples: packed by the engine against strided by the card.

    build/venv/bin/python -P examples/mpi_chart.py [heat] [mpi_transpose] [mpi_objects] [--mpi4py]

It runs each example with `dibber mpirun`, with and without --strided, and writes a table and
out/NAME.svg. The engine's packing takes no simulated time. So a third series adds to the engine's
times what the CPU's model of copies (dibber_cli/bench/cpu.py) charges for packing and unpacking.
Open MPI does not pack what it puts: objects go by a put each.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"

import matplotlib.pyplot as plt  # noqa: E402
from dibber_cli import paths, profile  # noqa: E402
from dibber_cli.bench import cpu  # noqa: E402
from dibber_cli.bench.pattern import Pattern  # noqa: E402

HERE = Path(__file__).resolve().parent
ENGINE, PACKED, CARD = "by the engine", "by the engine, its packing charged", "by the card"
SAID = re.compile(r"(\d+) \w+: ([\d.]+) us an? \w+, (\d+) \w+ wrong\n")
SECONDS = 1800  # until a run that hangs is ended
ELEMENT = 8  # bytes
COLUMNS = 8  # of a rank's plate, without its border
OBJECTS = 1024  # of mpi_objects


@dataclass(frozen=True)
class Example:
    """A program of this folder.

    Attributes
    ----------
    axis    : what a size is
    sizes   : the first word of the program
    rest    : the words behind it
    payload : size → bytes that a rank sends in the time that the program prints
    places  : size → list of Patterns that the engine packs or unpacks one after the other, or ()
    """

    axis: str
    sizes: tuple
    rest: tuple
    payload: callable
    places: callable


def column(rows):
    return Pattern(ELEMENT, ((rows, (COLUMNS + 2) * ELEMENT),), rows * ELEMENT, 1)


def blocks(rows):
    """Of a transpose on two ranks: one leaves by columns and one lands by rows."""
    side, row, length = rows // 2, rows * ELEMENT, rows * rows // 4 * ELEMENT
    leaving = Pattern(ELEMENT, ((side, row), (side, ELEMENT)), length, 1)
    return [leaving, Pattern(side * ELEMENT, ((side, row),), length, 1)]


EXAMPLES = {
    # On two ranks a column goes each way; in each of two calls one rank packs, then one unpacks.
    "heat": Example(
        "rows of a column of doubles",
        (1024, 4096, 16384),
        (COLUMNS, 3),
        lambda rows: rows * ELEMENT,
        lambda rows: [column(rows)] * 4,
    ),
    "mpi_transpose": Example(
        "rows of a square matrix of doubles",
        (64, 128, 256),
        (2,),
        lambda rows: rows * rows // 4 * ELEMENT,
        blocks,
    ),
    "mpi_objects": Example(
        f"bytes of each of {OBJECTS} objects",
        (8, 32, 128),
        (OBJECTS, 2),
        lambda size: OBJECTS * size,
        lambda size: (),
    ),
}


def command(name, with_python):
    if with_python:
        return [sys.executable, str(HERE / f"{name}.py")]
    return [str(paths.BUILD / "ofi" / name)]


def run(name, size, strided, with_python=False):
    """Simulated microseconds that a program prints. Raises RuntimeError if it fails."""
    example = EXAMPLES[name]
    words = [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", "2"]
    words += ["--strided"] * strided + command(name, with_python)
    done = subprocess.run(
        [*words, str(size), *map(str, example.rest)],
        timeout=SECONDS,
        capture_output=True,
        text=True,
    )
    said = SAID.fullmatch(done.stdout)
    if done.returncode or not said or int(said[3]):
        raise RuntimeError(f"{name} {size}: {done.stdout}{done.stderr}")
    return float(said[2])


def packing_us(example, size, host):
    """Microseconds of the CPU for all packing and unpacking, by the model of the profile."""
    flat = Pattern.contiguous(example.payload(size))
    return sum(cpu.copy_ns(host, place, flat) for place in example.places(size)) / 1e3


def measure(name, with_python=False, sizes=None):
    """{series: {size: MB/s}} of an example."""
    example, host = EXAMPLES[name], profile.load("gen2x4")
    found = {ENGINE: {}, PACKED: {}, CARD: {}}
    for size in sizes or example.sizes:
        length, copies = example.payload(size), packing_us(example, size, host)
        engine = run(name, size, False, with_python)
        found[ENGINE][size] = length / engine
        if copies:
            found[PACKED][size] = length / (engine + copies)
        found[CARD][size] = length / run(name, size, True, with_python)
    return {series: values for series, values in found.items() if values}


def draw(name, found, path):
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for series, marker in zip(found, "os^"):
        axes.plot(list(found[series]), list(found[series].values()), marker=marker, label=series)
    axes.set_xscale("log", base=2)
    axes.set_xlabel(EXAMPLES[name].axis)
    axes.set_ylabel("MB/s of a rank's bytes")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{name}, 2 ranks, profile gen2x4")
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXAMPLES)}")
    parser.add_argument("--mpi4py", action="store_true", help="run the programs in Python")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder (default out)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(EXAMPLES):
        parser.error(f"no such example: {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or EXAMPLES:
        found = measure(name, arguments.mpi4py)
        print(f"{name}: {EXAMPLES[name].axis}; MB/s")
        for size in found[ENGINE]:
            row = "  ".join(f"{series}: {values[size]:.1f}" for series, values in found.items())
            print(f"  {size:6}  {row}")
        draw(name, found, arguments.out / f"{name}.svg")
        print(f"  written: {arguments.out / name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
