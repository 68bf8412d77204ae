"""`mpi`: MPI programs on simulated cards: messages, types, collectives, patterns, b_eff, puts.

The programs are in software/ofi/bench and run with Open MPI. Each point is a run of them with cards
of its own; one run gives the values of several series.
"""

# SPDX-License-Identifier: BSD-2-Clause

import math
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dibber_cli import fabric, paths
from dibber_cli.bench import charges, session
from dibber_cli.bench.bound import Side, bound, message_seconds
from dibber_cli.bench.link import VERSIONS
from dibber_cli.bench.stride import STRIDES
from dibber_cli.bench.views import Panel, Table, of_series
from dibber_cli.errors import CommandError
from dibber_cli.link.side import Ends
from dibber_cli.output import Progress
from dibber_cli.profile import Profile

NAME = "mpi"

PROGRAM = paths.BUILD / "ofi" / "dibber-mpi-bench"
SECONDS = 1800  # until a run that hangs is ended
SIZES = (8, 64, 512, 4096, 16384, 65536, 262144)  # bytes of messages
RANKS = (2, 4, 8)
HOPS = (0, 1, 2, 4, 6)  # switches between two ranks
ELEMENT, ELEMENTS = 8, 8192  # of a put, bytes
DENSE = 65536  # bytes of a message of the dense patterns
# Of b_eff: bytes of the longest message, random patterns of 30, repetitions of 3.
LONGEST, RANDOMS, REPETITIONS = 32768, 1, 1
LENGTHS = 21  # of b_eff
# What makes a strided command of a put with a vector type: (setting of the coalescer, library).
WAYS = {"engine": ("0", ()), "coalesced": ("1", ()), "pmpi": ("0", (fabric.PMPI,))}

FREE = "free-cpu"  # of series without charges
TYPED = ("engine", "pmpi")
# Bytes of the patterns of `typed`, whose numbers are the places here (software/ofi/bench/typed.c).
PATTERNS = {
    "MILC su3_zdown 16^4": 98304,
    "NAS LU_y 1020": 40800,
    "NAS MG_x 130,66,66": 32768,
    "NAS MG_y 130,66,66": 65536,
    "WRF_y nx 11": 52008,
    "FFT2 256 over 4": 65536,
    "SPECFEM3D_mt 5600": 67200,
    "SPECFEM3D_oc 8192 of 88881": 32768,
    "LAMMPS_full 1662": 106368,
}

CHOICE = ("messages", "put", "typed", "ranks", "switches")  # series of jobs
EACH = tuple(range(len(PATTERNS)))

QUICK = {
    "sizes": (8, 4096, 65536),
    "strides": (1, 2, 64),
    "ranks": (2, 4),
    "hops": (0, 1),
    "patterns": (1, 2, 4),
}


@dataclass(frozen=True)
class Job:
    """A run of the programs.

    Attributes
    ----------
    series, x : of the job; its values have series of their own
    ranks     : each on a card
    shape     : the topology of the cards
    words     : the tests with their numbers
    way       : of WAYS
    charged   : instructions of library, provider and engine take simulated time
    """

    series: str
    x: object
    ranks: int
    shape: str
    words: tuple
    way: str = "coalesced"
    charged: bool = True


def _collectives(ranks: int) -> tuple[str, ...]:
    sizes = "8,4096"
    tests = ["barrier", f"reduce={sizes}", f"alltoall={sizes},16384"]
    tests += [f"{name}={DENSE}" for name in DENSES if ranks > 2]
    return (*tests, f"b_eff={LONGEST},{RANDOMS},{REPETITIONS}")


def points(
    sizes: Sequence[int] = SIZES,
    strides: Sequence[int] = STRIDES,
    ranks: Sequence[int] = RANKS,
    hops: Sequence[int] = HOPS,
    patterns: Sequence[int] = EACH,
    series: Collection[str] = CHOICE,
) -> list[Job]:
    """One Job for the messages, one for each way of strided puts and of typed messages, each number
    of ranks, and each number of switches.
    """
    comma = lambda numbers: ",".join(str(number) for number in numbers)
    both = (f"restricted={comma(sizes)}", f"postal={comma(sizes)}")
    jobs = [
        Job("messages", 2, 2, "pair", both),
        Job("messages", FREE, 2, "pair", (*both, "barrier"), charged=False),
        *(Job("put", way, 2, "pair", (f"put={comma(strides)}",), way) for way in WAYS),
        *(Job("typed", way, 2, "pair", (f"typed={comma(patterns)}",), way) for way in TYPED),
        *(Job("ranks", n, n, fabric.shape_for(n), _collectives(n)) for n in ranks),
        *(Job("switches", n, 2, f"line:{n}", (f"distance={n}",)) for n in hops),
    ]
    return [job for job in jobs if job.series in series]


# Runs ---------------------------------------------------------------------------------------------


def check() -> None:
    """Raise CommandError if Open MPI or the programs are missing."""
    if not shutil.which("mpirun"):
        raise CommandError("there is no mpirun", "install openmpi-bin and libopenmpi-dev")
    for file in (PROGRAM, fabric.PMPI):
        if not file.exists():
            raise CommandError(f"{file} is not built", "run 'make ofi'")


def parse(text: str) -> tuple[list[tuple[str, float, float]], int, int]:
    """([(series, x, value), …], bytes compared, bytes wrong) of what the programs print."""
    values: list[tuple[str, float, float]] = []
    compared: int | None = None
    wrong = 0
    for line in text.splitlines():
        name, *numbers = line.split()
        if name == "compared":
            compared, wrong = map(int, numbers)
        else:
            x, value = map(float, numbers)
            values.append((name, x, value))
    if compared is None:
        raise CommandError("bench mpi: the programs did not print their last line")
    return values, compared, wrong


def run(job: Job, uris: Sequence[str], seed: int) -> str:
    """Run a job on cards; what the programs print. Raises CommandError when they fail."""
    coalesce, libraries = WAYS[job.way]
    command = fabric.mpirun_command(job.ranks, [str(PROGRAM), str(seed), *job.words], libraries)
    settings = {
        **fabric.environment(uris),
        **fabric.mpirun_environment(),
        "FI_DIBBER_COALESCE": coalesce,
        **({} if job.charged else fabric.FREE_CPU),
    }
    try:
        done = subprocess.run(
            command, env=settings, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise CommandError(f"bench mpi: no end after {SECONDS} s: {job.series} {job.x}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise CommandError(
            f"bench mpi: {job.series} {job.x} ended with {done.returncode}: "
            f"{said[-1] if said else 'no message'}"
        )
    return done.stdout


def measure(
    profile: Profile, seed: int, points: Sequence[Job], progress: Progress | None = None
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """Cards for each job; results are dictionaries with the job and what the programs printed."""
    results: list[dict[str, Any]] = []
    versions: dict[str, str] = {}
    for job in points:
        if progress:
            progress.draw(f"{job.series}, {job.x}")
        with fabric.cards(profile.path, job.shape, seed, charged=job.charged) as network:
            if not versions:
                with Ends(network.uris) as ends:
                    info = ends.both(lambda side: side.card.info())[0]
                versions = session.versions_of(*(info[name] for name in VERSIONS))
            values, compared, wrong = parse(run(job, network.uris, seed))
        results.append(
            {"point": job, "values": values, "bytes_compared": compared, "bytes_wrong": wrong}
        )
        if progress:
            progress.step(f"{job.series}, {job.x}")
    counts = {
        "bytes_compared": sum(r["bytes_compared"] for r in results),
        "guard_bytes_compared": 0,
        "bytes_wrong": sum(r["bytes_wrong"] for r in results),
    }
    return results, versions, counts


# Bounds -------------------------------------------------------------------------------------------


def _rate(profile: Profile, length: int, both_ways: bool = False) -> tuple[float, str]:
    """Bytes a second of contiguous messages, and the name of the term."""
    side = Side(max(length, ELEMENT), address=session.BUS_ADDRESS)
    found = bound(profile, side, side, both_ways)
    return found.value, found.name


def _message(profile: Profile, length: int, both_ways: bool = False) -> tuple[float, str]:
    """Seconds that a message takes at least: the way of its first bytes, or its bytes at the
    bound's rate. Returns (seconds, name of the term).
    """
    rate, name = _rate(profile, length, both_ways)
    way = message_seconds(profile, min(length, ELEMENT))
    return (way, "wire") if way > length / rate else (length / rate, name)


def _steps(profile: Profile, length: int, ranks: int) -> tuple[float, str]:
    """Microseconds of the ceil(log2(ranks)) steps that no algorithm can do without."""
    seconds, name = _message(profile, length)
    return math.ceil(math.log2(ranks)) * seconds * 1e6, name


def _alltoall(profile: Profile, length: int, ranks: int) -> tuple[float, str]:
    rate, name = _rate(profile, length, both_ways=True)
    way, sent = message_seconds(profile, min(length, ELEMENT)), (ranks - 1) * length / rate
    return (way * 1e6, "wire") if way > sent else (sent * 1e6, name)


def _effective(profile: Profile, ranks: int) -> tuple[float, str]:
    """b_eff of processes that all send to both neighbours at the bound's rate."""
    lengths = [1 << n for n in range(13)]
    lengths += [round(4096 * (LONGEST / 4096) ** (n / 8)) for n in range(1, 9)]
    times = [_message(profile, 2 * length, both_ways=True)[0] for length in lengths]
    return (
        ranks * sum(2 * n / t for n, t in zip(lengths, times)) / LENGTHS / 1e6,
        _rate(profile, LONGEST, True)[1],
    )


def _put(profile: Profile, stride: int) -> tuple[float, str]:
    source = Side(ELEMENT * ELEMENTS, address=session.BUS_ADDRESS)
    target = Side(ELEMENT, ((ELEMENTS, ELEMENT * stride),), session.BUS_ADDRESS)
    found = bound(profile, source, target)
    return found.value / 1e6, found.name


def limit(profile: Profile, series: str, x: float, ranks: int) -> tuple[float, str]:
    """(bound of a value in its unit, name of its term)."""
    length, series = int(x), series.removesuffix(f"-{FREE}")
    if series in ("restricted", "postal"):
        seconds, name = _message(profile, length, series == "postal")
        return length / seconds / 1e6, name
    if series == "half-round-trip":
        seconds, name = _message(profile, length)
        return seconds * 1e6, name
    if series == "distance":
        # Each switch adds a cable.
        return message_seconds(profile, ELEMENT) * 1e6 + length * profile.cable_ns / 1000, "wire"
    if series.startswith("put-"):
        return _put(profile, length)
    if series.startswith("typed"):
        bytes_moved = tuple(PATTERNS.values())[length]
        seconds, name = _message(profile, bytes_moved)
        return bytes_moved / seconds / 1e6, name
    if series == "barrier":
        return _steps(profile, 1, ranks)
    if series.startswith("reduce-"):
        return _steps(profile, length, ranks)
    if series.startswith("alltoall-"):
        return _alltoall(profile, length, ranks)
    if series.startswith("b_eff"):
        if series.endswith("-longest"):
            rate, name = _rate(profile, LONGEST, True)
            return ranks * rate / 1e6, name
        return _effective(profile, ranks)
    seconds, name = _message(profile, DENSE, both_ways=True)
    return DENSE / seconds / 1e6, name


# Report -------------------------------------------------------------------------------------------

MESSAGES = ("restricted", "postal")
DENSES = ("aapc", "simple", "cumulative", "random")
TIMES = ("half-round-trip", "distance", "barrier", "reduce", "alltoall")
EFFECTIVE = ("b_eff", "b_eff-longest", "b_eff-rings", "b_eff-rings-longest")
X_UNITS = {
    "barrier": "ranks",
    "distance": "switches",
    "put": "elements",
    "typed": "pattern",
    "typed-contiguous": "pattern",
    **dict.fromkeys(EFFECTIVE, "ranks"),
    **dict.fromkeys(DENSES, "phase"),
}


def _name(series: str, job: Job) -> str:
    """The name of a program's series in the report, where several jobs have it."""
    if not job.charged:
        return f"{series}-{FREE}"
    if series == "put" or series.startswith("typed"):
        return f"{series}-{job.way}"
    if series in ("reduce", "alltoall", *DENSES):
        return f"{series}-{job.ranks}"
    return series


def _points(profile: Profile, results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for result in results:
        job = result["point"]
        for series, x, value in result["values"]:
            name = _name(series, job)
            most, term = limit(profile, name, x, job.ranks)
            yield {
                "series": name,
                "x": int(x),
                "x_unit": X_UNITS.get(series, "bytes"),
                "value": round(value, 4),
                "unit": "us" if series in TIMES else "MB/s",
                "bound": round(most, 4),
                "bound_by": term,
                "limit": None,
                "limited_by": None,
                "cycles": None,
                "cpu_percent": None,
            }


def _findings(report: dict[str, Any]) -> Iterator[str]:
    contiguous = {p["series"]: p["value"] for p in report["points"] if p["x"] == 1}
    for way in WAYS:
        strided = [p for p in of_series(report, f"put-{way}") if p["x"] > 1]
        if strided and contiguous.get(f"put-{way}"):
            least = min(strided, key=lambda p: p["value"])
            share = 100 * least["value"] / contiguous[f"put-{way}"]
            yield (
                f"MPI_Put of 64 KiB in elements of {ELEMENT} bytes, {way}: at least {share:.1f} % "
                f"of contiguous (stride {least['x']})"
            )
            if way == "coalesced":
                most = 1000 * ELEMENT / charges.nanoseconds("TRANSFER", "ENTRY")
                yield (
                    f"coalesced: {100 * least['value'] / most:.1f} % of the {most:.1f} MB/s that "
                    "the charge of a transfer and its completion for each element allows"
                )
    plain = {p["x"]: p["value"] for p in of_series(report, "typed-contiguous-engine")}
    for way in TYPED:
        shares = {
            p["x"]: 100 * p["value"] / plain[p["x"]]
            for p in of_series(report, f"typed-{way}")
            if p["x"] in plain
        }
        if shares:
            lowest = min(shares, key=lambda x: shares[x])
            yield (
                f"typed MPI_Send and MPI_Recv, {way}: at least {shares[lowest]:.1f} % of "
                f"contiguous ({tuple(PATTERNS)[lowest]})"
            )
    pairs = {p["x"]: p["value"] for p in of_series(report, "postal")}
    for p in of_series(report, "restricted"):
        if p["x"] in pairs and p["x"] == max(pairs):
            loss = 100 * (1 - pairs[p["x"]] / p["value"])
            yield (
                f"{p['x']} bytes in full postal semantics: {loss:.1f} % slower than restricted; "
                "each message meets the oncoming one and waits until its receive is posted"
            )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    parts = {"points": list(_points(profile, results))}
    return {
        **parts,
        "findings": list(_findings(parts)),
        "notes": [
            "Open MPI; its own instructions, the provider's and libdibber's are charged; with "
            "'free-cpu' none are",
            f"b_eff: longest message {LONGEST} bytes, {RANDOMS} of 30 random patterns, "
            f"{REPETITIONS} of 3 repetitions, 1 loop a measurement",
            f"dense patterns: {DENSE} bytes; MB/s of one rank in one direction, of the slowest",
            f"put: {ELEMENTS} elements of {ELEMENT} bytes; 'engine': a transfer for each element; "
            "'coalesced': joined by the provider; 'pmpi': one command by libdibber-pmpi.so",
            "typed: "
            + "; ".join(f"{n}: {name}" for n, name in enumerate(PATTERNS))
            + "; the engine's packing takes no simulated time",
            "bounds of barrier and reduce: ceil(log2 ranks) messages one after the other",
        ],
    }


def _present(report: dict[str, Any], names: Iterable[str]) -> list[str]:
    found = dict.fromkeys(p["series"] for p in report["points"])
    return [one for name in names for one in found if one == name or one.startswith(f"{name}-")]


GROUPS = (
    ("bytes", ("restricted", "postal"), "message (bytes)"),
    ("bytes", ("half-round-trip",), "message (bytes)"),
    ("stride", ("put",), "stride (elements of 8 bytes; 1 is contiguous)"),
    ("pattern", ("typed",), "pattern"),
    ("ranks", ("barrier",), "ranks"),
    ("bytes", ("reduce", "alltoall"), "bytes a rank"),
    ("ranks", ("b_eff",), "ranks"),
    ("phase", DENSES, "phase"),
    ("switches", ("distance",), "switches between two ranks"),
)


def tables(report: dict[str, Any]) -> list[Table]:
    groups = [(heading, _present(report, names)) for heading, names, _ in GROUPS]
    return [Table(heading, series) for heading, series in groups if series]


def panels(report: dict[str, Any]) -> list[Panel]:
    groups = [(_present(report, names), label) for _, names, label in GROUPS]
    return [
        Panel(
            f"MPI, profile {report['profile']}",
            series,
            label,
            history=series[0] == "restricted",
        )
        for series, label in groups
        if series
    ]
