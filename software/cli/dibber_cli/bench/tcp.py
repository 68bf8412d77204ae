"""`tcp`: TCP over the network device of two cards in a guest, by write size, socket buffer and MTU.

A guest in QEMU has dibber.ko and two simulated cards. It sends streams between two network
namespaces, and puts beside them (software/driver/guest/tcp.c). One guest measures all points.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dibber.interface.description import INTERFACE

from dibber_cli import machine, paths
from dibber_cli.bench import session
from dibber_cli.bench.bound import Side, bound
from dibber_cli.bench.views import Panel, Table, of_series
from dibber_cli.errors import CommandError
from dibber_cli.output import Progress
from dibber_cli.profile import Profile

NAME = "tcp"

SECONDS = 6 * 3600  # until a guest that hangs is ended
MTU = 65520  # the driver's largest
KIB, MIB = 1024, 1024 * 1024
HELD_USECS = 300  # hold-off of the series "held"

SERIES = ("write", "held", "buffer-1k", "buffer-40k", "mtu", "put")
CHOICE = SERIES
WRITES = (1, 64, 1024, 8192, 40960, MIB)
BUFFERS = (16 * KIB, 128 * KIB, MIB)
MTUS = (1500, 9000, MTU)
PUTS = (64, 1024, 65536)
STREAM = 256 * KIB  # bytes of a stream, except those of "write" and "held"
# Of these two, because the last bytes of a stream wait for a held interrupt, which is much of the
# time of a short one.
LONG = MIB
BUFFER = MIB  # bytes of the socket buffers of "write" and "held"
QUICK = {"writes": (1024, 65536), "buffers": (128 * KIB,), "mtus": (1500,), "puts": (65536,)}
FULL = {
    "writes": tuple(4**n for n in range(11)),
    "buffers": tuple(16 * KIB << n for n in range(7)),
    "puts": tuple(4**n for n in range(3, 11)),
    "stream": MIB,
}
LEAST_WRITES = 4096  # of a stream of short writes, which is shorter than STREAM


@dataclass(frozen=True)
class Stream:
    """A stream, or puts, of `bytes` bytes.

    Attributes
    ----------
    series, x : of the report
    mtu       : bytes
    buffer    : bytes of the sender's and of the receiver's socket buffer; 0: the kernel chooses
    write     : bytes of a write, or of a put
    usecs     : hold-off of interrupts, microseconds; 0: none
    """

    series: str
    x: int
    bytes: int
    write: int
    mtu: int = MTU
    buffer: int = 0
    usecs: int = 0

    @property
    def line(self) -> str:
        """The point in the file that the guest reads."""
        words = (self.x, self.mtu, self.buffer, self.write, self.bytes, self.usecs)
        return " ".join([self.series, *map(str, words)])


def points(
    series: Sequence[str] = SERIES,
    writes: Sequence[int] = WRITES,
    buffers: Sequence[int] = BUFFERS,
    mtus: Sequence[int] = MTUS,
    puts: Sequence[int] = PUTS,
    stream: int = STREAM,
) -> list[Stream]:
    """Streams by series; those of the socket buffers have writes of 1 KiB and of 40 KiB."""
    size = lambda most, write: max(min(most, LEAST_WRITES * write), write)
    found = []
    for name, usecs in (("write", 0), ("held", HELD_USECS)):
        found += [Stream(name, n, size(LONG, n), n, buffer=BUFFER, usecs=usecs) for n in writes]
    for name, write in (("buffer-1k", KIB), ("buffer-40k", 40 * KIB)):
        found += [Stream(name, n, stream, write, buffer=n) for n in buffers]
    found += [Stream("mtu", n, stream, 40 * KIB, mtu=n) for n in mtus]
    found += [Stream("put", n, size(stream, n), n) for n in puts]
    return [point for point in found if point.series in series]


# Measurement --------------------------------------------------------------------------------------


def check() -> None:
    """Raise CommandError if the guest's parts are missing."""
    for part in (machine.QEMU / "root", machine.QEMU / "vmlinux", machine.DRIVER):
        if not part.exists():
            raise CommandError(
                f"bench tcp needs QEMU with a kernel, and the driver for it: there is no {part}",
                "run 'make qemu driver'",
            )
    if not (paths.BUILD / "lib/libdibber.a").exists():
        raise CommandError("libdibber is not built", "run 'make library'")
    if not shutil.which("gcc"):
        raise CommandError("there is no gcc to build the guest's program", "install gcc")


def parse(console: str, points: Sequence[Stream]) -> tuple[list[dict[str, Any]], int]:
    """[{point, cycles, interrupts, wrong}] and the clock in Hz, of what the guest wrote. Raises
    CommandError when a point is missing.
    """
    lines = [line.split() for line in console.splitlines()]
    clock = [int(words[1]) for words in lines if words[:1] == ["clock"] and len(words) == 2]
    rows = [words[1:] for words in lines if words[:1] == ["tcp"] and len(words) == 7]
    names = ("bytes", "cycles", "interrupts", "wrong")
    results = []
    for point, (series, x, *numbers) in zip(points, rows):
        if (series, x) != (point.series, str(point.x)):
            break
        results.append({"point": point, **dict(zip(names, map(int, numbers)))})
    if len(results) < len(points) or not clock:
        last = [line for line in console.splitlines() if line.strip()][-1:]
        raise CommandError(
            f"bench tcp: the guest measured {len(results)} of {len(points)} points",
            f"its last line: {last[0] if last else 'none'}",
        )
    return results, clock[0]


def _run(directory: pathlib.Path, seed: int, wanted: pathlib.Path, profile: Profile) -> str:
    """What a guest wrote that measured the points of the file `wanted`. Raises CommandError."""
    if not paths.simulator(profile).exists():
        raise CommandError(
            f"{paths.simulator(profile)} is not built",
            f"run 'make simulator PROFILE={profile.name}'",
        )
    try:
        return machine.boot_with_driver(
            directory,
            seed,
            {"0_tcp": [machine.GUEST / "tcp.c"]},
            {"points": wanted},
            timeout=SECONDS,
            profile=profile.path,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(f"bench tcp: the guest did not end in {SECONDS} s") from None
    except (subprocess.CalledProcessError, AssertionError, OSError) as error:
        raise CommandError(f"bench tcp: guest or simulator failed: {error}") from None


def measure(
    profile: Profile, seed: int, points: Sequence[Stream], progress: Progress | None = None
) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, int]]:
    """One guest for all points; results are dictionaries as parse() has them, with the clock."""
    if progress:
        progress.draw("a guest boots and measures")
    with tempfile.TemporaryDirectory(prefix="dibber-tcp-") as folder:
        directory = pathlib.Path(folder)
        wanted = directory / "points"
        wanted.write_text("".join(f"{point.line}\n" for point in points), encoding="utf-8")
        console = _run(directory, seed, wanted, profile)
    results, clock = parse(console, points)
    for result in results:
        result["clock_hz"] = clock
        if progress:
            progress.step(f"{result['point'].series}, {result['point'].x}")
    versions = {
        "driver": f"{INTERFACE.version_word >> 16}.{INTERFACE.version_word & 0xFFFF}"
        f"-{INTERFACE.hash:08x}"
    }
    counts = {
        "bytes_compared": sum(r["bytes"] for r in results),
        "guard_bytes_compared": 0,
        "bytes_wrong": sum(r["wrong"] for r in results),
    }
    return results, versions, counts


# Report -------------------------------------------------------------------------------------------

RATE, PER_SECOND, PER_MB = "", " irq/s", " irq/MB"


def _rows(profile: Profile, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rate, and interrupts per second and per MB of a stream."""
    point, seconds = result["point"], result["cycles"] / result["clock_hz"]
    # A frame of a stream is a put of an MTU at most.
    length = point.write if point.series == "put" else min(point.mtu, result["bytes"])
    side = Side(length, address=session.BUS_ADDRESS)
    most = bound(profile, side, side)
    common = {
        "x": point.x,
        "x_unit": "bytes",
        "limit": None,
        "limited_by": None,
        "cycles": result["cycles"],
        "cpu_percent": None,
    }
    megabytes = result["bytes"] / 1e6
    yield {
        "series": point.series,
        "value": round(megabytes / seconds, 1),
        "unit": "MB/s",
        "bound": round(most.value / 1e6, 1),
        "bound_by": most.name,
        **common,
    }
    if point.series == "put":
        return
    for ending, value, unit in (
        (PER_SECOND, result["interrupts"] / seconds, "irq/s"),
        (PER_MB, result["interrupts"] / megabytes, "irq/MB"),
    ):
        yield {
            "series": point.series + ending,
            "value": round(value, 1),
            "unit": unit,
            "bound": None,
            "bound_by": None,
            **common,
        }


def _findings(report: dict[str, Any]) -> Iterator[str]:
    at = {(p["series"], p["x"]): p["value"] for p in report["points"]}
    both = [x for series, x in at if series == "held" and ("write", x) in at]
    if both:
        x = max(both)
        fewer = at[f"write{PER_SECOND}", x] / max(at[f"held{PER_SECOND}", x], 1)
        yield (
            f"hold-off of {HELD_USECS} us, writes of {x} bytes: {fewer:.1f} times fewer "
            f"interrupts a second, {at['held', x]:.0f} of {at['write', x]:.0f} MB/s"
        )
    puts = of_series(report, "put")
    streams = [p for p in report["points"] if p["series"] == "write"]
    if puts and streams:
        best, put = (max(rows, key=lambda p: p["value"]) for rows in (streams, puts))
        yield (
            f"TCP reaches {100 * best['value'] / put['value']:.0f} % of puts of the same guest: "
            f"{best['value']:.0f} of {put['value']:.0f} MB/s"
        )


def evaluate(profile: Profile, seed: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [row for result in results for row in _rows(profile, result)]
    return {
        "points": found,
        "findings": list(_findings({"points": found})),
        "notes": [
            "time: the simulated card's. A simulated card is some hundred times slower than its "
            "guest, so the guest's processor costs almost nothing",
            f"'write', 'held': MTU {MTU}, socket buffers of {BUFFER} bytes; 'held' has a hold-off "
            f"of {HELD_USECS} us",
            "'buffer-1k', 'buffer-40k': writes of 1 KiB and of 40 KiB; 'mtu': writes of 40 KiB, "
            "socket buffers as the kernel chooses",
            "'put': puts of so many bytes of a process in the same guest, 16 under way",
            "irq/s, irq/MB: interrupts of both ends together, a second of the card and a MB",
            "bound: of puts of an MTU, or of the put",
        ],
    }


HEADINGS = (
    (("write", "held"), "write (bytes)", "bytes of a write"),
    (("buffer-1k", "buffer-40k"), "socket buffer (bytes)", "bytes of the socket buffers"),
    (("mtu",), "MTU (bytes)", "MTU"),
    (("put",), "put (bytes)", "bytes of a put"),
)


def _present(report: dict[str, Any], names: Iterable[str]) -> list[str]:
    found = {point["series"] for point in report["points"]}
    return [name for name in names if name in found]


def tables(report: dict[str, Any]) -> list[Table]:
    made = []
    for names, heading, _ in HEADINGS:
        made += [Table(heading, [name]) for name in _present(report, names)]
        counts = [name + ending for name in names for ending in (PER_SECOND, PER_MB)]
        if present := _present(report, counts):
            made.append(Table(heading, present, brief=True))
    return made


def panels(report: dict[str, Any]) -> list[Panel]:
    title = f"TCP in a guest, profile {report['profile']}"
    made = []
    for names, _, label in HEADINGS:
        for ending in (RATE, PER_SECOND):
            if present := _present(report, [name + ending for name in names]):
                made.append(Panel(title, present, label, logarithmic=ending != RATE))
    return made
