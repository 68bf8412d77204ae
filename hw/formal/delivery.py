"""Exhaustive model checks by Spin: the delivery protocol (delivery.pml), ends that restart
(restart.pml), and echo, retry and scrubber of a ring (ring.pml).
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re
import subprocess
import time
from dataclasses import dataclass

FOLDER = pathlib.Path(__file__).parent

@dataclass
class Check:
    """One run of Spin. The run of a mutant must find an error."""
    name    : str
    says    : str
    widths  : str
    defines : tuple
    quick   : bool = False
    mutant  : bool = False
    model   : str = "delivery.pml"

# All of them at once are too many states: 90 s of processor time were not enough.
LOSSES_AND_TIMER    = ("TIMEOUTS=1", "LOSSES=2", "DUPLICATES=0")
DUPLICATE_AND_TIMER = ("TIMEOUTS=1", "LOSSES=0", "DUPLICATES=1")

RESTART             = ("SOURCES=0", "TARGETS=1", "MESSAGES=3")

RING                = ("SOURCES=1", "PACKETS=3")

MODELS = [
    Check("delivery-both-ways", "exactly once, in order, no deadlock",
        "2 flows, window 4 of 8 numbers, endless; 2 losses, 1 duplicate", ("TIMEOUTS=0",)),
    Check("delivery-timer-losses", "the same with a timer that ran out without need",
        "2 flows, window 4 of 8 numbers, endless; 2 losses, 1 timeout", LOSSES_AND_TIMER),
    Check("delivery-timer-duplicate", "the same with a timer that ran out without need",
        "2 flows, window 4 of 8 numbers, endless; 1 duplicate, 1 timeout", DUPLICATE_AND_TIMER),
    Check("delivery-one-way", "the same to its end, wrapping twice",
        "1 flow, window 4 of 8, 17 packets; 2 losses, 1 duplicate, 1 timeout", ("FLOWS=1", "MESSAGES=17"), quick=True),
    Check("restart-target", "a target that begins anew at any moment: nothing twice, OK means executed, all end",
        "1 flow, 3 packets; target twice, 1 loss, 1 timeout", ("SOURCES=0", "MESSAGES=3"), model="restart.pml"),
    Check("restart-both", "the same of both ends",
        "1 flow, 3 packets; target and source once, 1 loss", ("TARGETS=1", "MESSAGES=3", "TIMEOUTS=0"), quick=True, model="restart.pml"),
    Check("restart-both-timer", "the same with a timer that ran out without need",
        "1 flow, 3 packets; target and source once, 1 loss, 1 timeout", ("TARGETS=1", "MESSAGES=3"), model="restart.pml"),
    Check("ring-losses", "accepted once and in order, or reported; no deadlock",
        "1 source, 3 packets, 3 nodes; 2 losses of any word", (*RING, "LOSSES=2"), quick=True, model="ring.pml"),
    Check("ring-sources", "the same, and no source refused after a reservation",
        "2 sources, 2 packets each, 3 nodes; no loss", ("PACKETS=2", "LOSSES=0"), quick=True, model="ring.pml"),
    Check("ring-scrubber", "the same with a packet of no target and no source: twice round at most",
        "2 sources, 2 packets each, 3 nodes; 1 stray", ("PACKETS=2", "LOSSES=0", "STRAYS=1"), model="ring.pml"),
]

# Mutants that must be found: in the model of one flow, unless the name says more.
MUTANTS = [
    Check("window as large as the sequence space", "", "", ("FLOWS=1", "MUTANT_WINDOW"), quick=True, mutant=True),
    Check("acknowledgement beyond what was sent", "", "", ("FLOWS=1", "MUTANT_ACK"), quick=True, mutant=True),
    Check("receiver executes a higher number", "", "", ("FLOWS=1", "MUTANT_HIGHER"), quick=True, mutant=True),
    Check("duplicate not acknowledged again", "", "", ("FLOWS=1", "MUTANT_DUPLICATE"), quick=True, mutant=True),
    Check("window as large as the sequence space, both ways with timer", "", "",
        (*DUPLICATE_AND_TIMER, "MUTANT_WINDOW"), mutant=True),
    Check("duplicate not acknowledged again, both ways with timer", "", "",
        (*LOSSES_AND_TIMER, "MUTANT_DUPLICATE"), mutant=True),
    Check("what a rewind sent again is not in doubt", "", "",
        (*RESTART, "MUTANT_DOUBT"), quick=True, mutant=True, model="restart.pml"),
    Check("target takes up a flow without having been asked", "", "",
        (*RESTART, "MUTANT_OPEN"), quick=True, mutant=True, model="restart.pml"),
    Check("source does not ask after its flow was refused", "", "",
        (*RESTART, "MUTANT_SURE"), quick=True, mutant=True, model="restart.pml"),
    Check("an answer overtakes the second telling of a refusal", "", "",
        (*RESTART, "MUTANT_ORDER"), quick=True, mutant=True, model="restart.pml"),
    Check("a packet without an echo is sent again", "", "", (*RING, "MUTANT_AGAIN"), quick=True, mutant=True, model="ring.pml"),
    Check("a later packet is accepted before a retry", "", "", (*RING, "MUTANT_ORDER"), quick=True, mutant=True, model="ring.pml"),
    Check("a packet is sent behind one that is doomed", "", "",
        (*RING, "LOSSES=0", "MUTANT_DOOM"), quick=True, mutant=True, model="ring.pml"),
    Check("an echo counts for the oldest packet", "", "", (*RING, "MUTANT_GAP"), quick=True, mutant=True, model="ring.pml"),
    Check("the scrubber lets old packets pass", "", "",
        (*RING, "LOSSES=0", "STRAYS=1", "MUTANT_SCRUB"), quick=True, mutant=True, model="ring.pml"),
    Check("NAK forgotten, and no timer", "", "", ("FLOWS=1", "MUTANT_NAK", "MUTANT_TIMER"), quick=True, mutant=True),
]


def run(check, folder, timeout):
    """dict(verdict, seconds, depth, states, failed) of one run; raises RuntimeError if Spin
    failed.
    """
    folder = folder/re.sub(r"\W+", "_", check.name)
    folder.mkdir(parents=True, exist_ok=True)
    start  = time.monotonic()
    (folder/check.model).write_text((FOLDER/check.model).read_text())
    def step(*command):
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout)
        if result.returncode:
            raise RuntimeError(f"{command[0]}: {(result.stdout + result.stderr)[-1000:]}")
        return result.stdout
    step("spin", "-a", *[f"-D{define}" for define in check.defines], check.model)
    # All states exactly: no hashing (BITSTATE, HC) and no reduction. Mutants by breadth first, for
    # the shortest run to the error.
    step("gcc", "-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", *(["-DBFS"] if check.mutant else []),
        "-o", "pan", "pan.c")
    out = step("./pan", "-m1000000", "-w22")
    (folder/"pan.log").write_text(out)
    errors   = int(re.search(r"errors: (\d+)", out).group(1))
    complete = not re.search(r"Search not completed|max search depth too small|out of memory|resource limit", out)
    if not errors and not complete:
        raise RuntimeError("pan: the search was not complete")
    depth = re.search(r"depth reached (\d+)", out).group(1)
    found = re.search(r"pan:\d+: (.*?) \(at depth (\d+)\)", out)
    return dict(
        verdict = ("rejected" if errors else "SURVIVED") if check.mutant else ("FAILED" if errors else "proven"),
        seconds = round(time.monotonic() - start, 1),
        depth   = int(found.group(2) if found else depth),
        states  = int(float(re.search(r"([\d.e+]+) states, stored", out).group(1))),
        failed  = [found.group(1)] if found else [])
