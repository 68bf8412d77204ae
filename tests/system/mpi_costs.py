"""Instructions of the provider's calls and of Open MPI between them, counted by callgrind.

    build/venv/bin/python -P tests/system/mpi_costs.py

prints what software/ofi/src/charges.h charges beside what is counted. Rank 0 of
tests/system/provider/costs.c runs under Valgrind, on a pair of simulated cards.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from dibber_cli import fabric
from dibber_cli.bench import charges

HERE = pathlib.Path(__file__).resolve().parent
PROVIDER = "libdibber-fi.so"
SECONDS = 600

# What libdibber does is charged by itself, and messages to the simulator cost nothing.
LIBRARY = ("/software/lib/", "/software/ofi/src/charge.c")


@dataclass(frozen=True)
class Function:
    """place : the object's name; file : of its source; name"""

    place: str
    file: str
    name: str

    @property
    def of_provider(self):
        return self.place == PROVIDER

    @property
    def of_library(self):
        return self.of_provider and any(part in self.file for part in LIBRARY)


class Dump:
    """What callgrind collected in the calls of one kind (Valgrind's manual, "Callgrind Format
    Specification", without compressed names).

    Attributes
    ----------
    edges : {(Function, Function that it calls): (calls, instructions with all callees)}
    """

    def __init__(self, text):
        self.edges = collections.defaultdict(lambda: (0, 0))
        lines = iter(text.splitlines())
        place = file = callee_place = callee_file = None
        for line in lines:
            key, _, value = line.partition("=")
            if key == "ob":
                place = pathlib.Path(value).name
            elif key in ("fl", "fi", "fe"):
                file = value
            elif key == "fn":
                caller = Function(place, file, value)
            elif key == "cob":
                callee_place = pathlib.Path(value).name
            elif key in ("cfi", "cfl"):
                callee_file = value
            elif key == "cfn":
                callee = Function(callee_place or place, callee_file or file, value)
                callee_place = callee_file = None
            elif key == "calls":
                calls, cost = self.edges[caller, callee]
                count = int(value.split()[0])
                self.edges[caller, callee] = calls + count, cost + int(next(lines).split()[1])

    def sum(self, chosen):
        """(calls, instructions) of all edges for which `chosen(caller, callee)` is true."""
        found = [cost for edge, cost in self.edges.items() if chosen(*edge)]
        return sum(calls for calls, _ in found), sum(cost for _, cost in found)

    def calls(self):
        """Calls that the program measures: of its functions call_…"""
        return self.sum(lambda _, to: to.name.startswith("call_"))[0]

    def of(self, name):
        """Instructions of a function with all that it calls."""
        return self.sum(lambda _, to: to.name == name)[1]

    def entered(self, leave):
        """Calls of the provider; `leave`: instructions at the end of each. Callgrind counts calls
        outside of call_… too, but not their instructions.
        """
        return round(self.of("dfi_leave") / leave)

    def copies(self):
        """Instructions of the provider's copies."""
        return self.sum(
            lambda by, to: by.of_provider and not by.of_library and "memcpy" in to.name
        )[1]

    def provider(self):
        """Instructions of the provider, with libdibber."""
        return self.sum(lambda by, to: to.of_provider and not by.of_provider)[1]

    def library(self):
        return self.sum(lambda by, to: to.of_library and not by.of_library)[1]

    def own(self):
        """Instructions of the provider without libdibber."""
        return self.provider() - self.library()

    def engine(self):
        """Instructions of what is above the provider."""
        return self.sum(lambda _, to: to.name.startswith("call_"))[1] - self.provider()


def count(folder, program, *words, preload=()):
    """Run the program; returns {kind: Dump}."""
    out = folder / "callgrind"
    valgrind = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]
    valgrind += ["--instr-atstart=no", "--collect-atstart=no", f"--callgrind-out-file={out}"]
    with fabric.cards("gen2x4", "pair", 1) as network:
        settings = {**fabric.environment(network.uris), **fabric.mpirun_environment()}
        command = fabric.mpirun_command(1, [*valgrind, str(program), *words], preload)
        command += [":", *fabric.mpirun_command(1, [str(program), *words], preload)[1:]]
        done = subprocess.run(
            command,
            env={**settings, "DEBUGINFOD_URLS": "", "LD_BIND_NOW": "1"},
            timeout=SECONDS,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    dumps = {}
    for path in sorted(folder.glob("callgrind.*")):
        text = path.read_text()
        kind = re.search(r"^desc: Trigger: Client Request: (\S+)$", text, re.MULTILINE)
        if kind:
            dumps[kind[1]] = Dump(text)
    return dumps


def build(folder):
    program = folder / "costs"
    source = HERE / "provider" / "costs.c"
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["mpicc", *flags, "-o", program, source], check=True)
    return program


def _slope(long, short, leave):
    """(own, engine) instructions of a look that finds nothing, by waits with many and few."""
    looks = long.entered(leave) - short.entered(leave)
    return (long.own() - short.own()) / looks, (long.engine() - short.engine()) / looks


def costs(dumps):
    """{kind of charges.h: (instructions of the provider, of Open MPI)} of one call each."""
    each = {
        kind: (dump.own() / dump.calls(), dump.engine() / dump.calls())
        for kind, dump in dumps.items()
        if dump.calls()
    }
    receive, look, entry, command = (
        dumps[kind] for kind in ("receive", "look", "entry", "command")
    )
    leave = receive.of("dfi_leave") / receive.calls()
    found = {"SEND": each["send"], "RECEIVE": each["receive"], "TRANSFER": each["transfer"]}
    found["LOOK"] = _slope(dumps["idle"], entry, leave)
    glance = (look.provider() - look.of("dfi_progress")) / look.entered(leave)
    found["GLANCE"] = glance, found["LOOK"][1]
    copied = dumps["send-copied"]
    found["LONG"] = (
        max(each["send-copied"][0] - copied.copies() / copied.calls(), each["send-offered"][0])
        - each["send"][0],
        max(each["send-copied"][1], each["send-offered"][1]) - each["send"][1],
    )
    # The end of a command and its entry. The other reads of the engine find nothing.
    in_vain = command.entered(leave) / command.calls() - 1
    ended = command.of("dfi_commands_poll") - command.of("dib_poll")
    found["COMMAND"] = ended / command.calls(), 0
    found["ENTRY"] = (
        each["command"][0] - found["COMMAND"][0] - in_vain * glance,
        each["entry"][1] - (entry.entered(leave) / entry.calls() - 1) * found["LOOK"][1],
    )
    found["MESSAGE"] = each["entry"][0] - found["ENTRY"][0] - found["LOOK"][0] - glance, 0
    atomic = dumps["atomic"]
    started = atomic.sum(lambda by, to: not by.of_provider and to.name.startswith("atomic_"))[1]
    reads = atomic.entered(leave) / atomic.calls() - 1
    found["ATOMIC"] = (
        started / atomic.calls() - dumps["send"].library() / dumps["send"].calls(),
        each["atomic"][1] - reads * found["LOOK"][1],
    )
    if "move" in dumps:
        found["MOVE"] = each["move"]
        sent = each["typed-send"]
        found["HOLD"] = tuple(sent[k] - found["SEND"][k] for k in (0, 1))
    return found


def measure(folder):
    """{kind: (instructions of the provider, of Open MPI)} as counted."""
    program, dumps = build(folder), {}
    for mode, libraries in (("plain", ()), ("strided", (fabric.PMPI,))):
        place = folder / mode
        place.mkdir()
        dumps.update(count(place, program, mode, preload=libraries))
    return costs(dumps)


def main():
    with tempfile.TemporaryDirectory() as folder:
        counted = measure(pathlib.Path(folder))
    table = charges.table()
    print(f"{'kind':10}{'provider':>10}{'counted':>10}{'Open MPI':>10}{'counted':>10}")
    for kind, (own, engine) in counted.items():
        print(f"{kind:10}{table[kind][0]:10}{own:10.0f}{table[kind][1]:10}{engine:10.0f}")


if __name__ == "__main__":
    sys.exit(main())
