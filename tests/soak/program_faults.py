"""Faults of the control program: it is diagnosed, the card is loaded again, and the other card is
unharmed.

    python tests/soak/program_faults.py --runs 1000 --seed 1 [--patience 5000] [--json] [--batch N]

In each run one card's control program is spoilt under traffic in both directions: random words
anywhere in its memory, or its code becomes illegal instructions or endless loops, with its trap
handler or without. Then it must stop and say why, or do its work. It is loaded again, and traffic
in both directions must be right to the byte. A simulator process serves a batch of runs. The same
seed gives the same runs; --batch repeats one alone.
"""

# SPDX-License-Identifier: BSD-2-Clause

import functools
import random
import struct
import subprocess
import sys

from dibber_cli import paths, profile
from dibber_cli.fw import trap
from dibber_cli.link import measure
from dibber_cli.link.side import Ends
from dibber_cli.pipe import quiet
from dibber_cli.simulator import Pair
from libdibber import DibberError

from tests.soak import fault_traffic, faults
from tests.soak.batches import Soak

BATCH = 13  # runs of a simulator process
GUARD = 4096  # bytes beside the memory that is offered
HANDLER = 0x200  # start.S, with the trap handler, ends below
# µs from a fault to its diagnosis; later ones count as silent
LIMIT = 5_000
ALLOWED = 100_000_000  # ns that a diagnosis may take

# A word that fills the code, and the first address; None: random words.
KINDS = {
    "wild writes": None,
    "illegal": (0x00000000, HANDLER),
    "loop": (0x0000006F, HANDLER),  # j .
    "illegal, no trap": (0x00000000, 0),
    "loop, no trap": (0x0000006F, 0),
}
WEIGHTS = (6, 2, 2, 1, 1)


@functools.cache
def code_end():
    """Where the program's code ends. Its constants behind that stay: code that is in the cache
    still uses them.
    """
    names = subprocess.run(
        ["riscv64-unknown-elf-nm", paths.elf()], capture_output=True, text=True, check=True
    )
    return next(
        int(line.split()[0], 16) for line in names.stdout.splitlines() if line.endswith(" code_end")
    )


# In the tasks of a side ---------------------------------------------------------------------------


def spoil(side, kind, choice):
    """The fault."""
    if KINDS[kind] is None:
        for _ in range(choice.randint(1, 16)):
            side.card.write_firmware(
                4 * choice.randrange(side.card.sram_bytes // 4),
                struct.pack("<I", choice.getrandbits(32)),
            )
        return
    word, begin = KINDS[kind]
    end = code_end()
    side.card.write_firmware(begin, struct.pack("<I", word) * ((end - begin) // 4))


def work(side, their_key, choice):
    """Start transfers of every kind; returns how many. Fetch-adds need the other card's control
    program; half of the times what is
    asked for has a fence, and needs this one's."""
    me, node, key = side.endpoint, 1 - side.node, side.region.key
    fence = choice.random() < 0.5
    put, get = (
        fault_traffic.walks(choice, fault_traffic.SOURCE, target)
        for target in (fault_traffic.TARGET, fault_traffic.FETCHED)
    )
    keyed = fault_traffic.keyed
    todo = [
        lambda: me.put_strided(keyed(put[0], key), keyed(put[1], their_key), node=node),
        lambda: me.get_strided(
            keyed(get[0], their_key), keyed(get[1], key), node=node, fence=fence
        ),
        lambda: me.fetch_add(their_key, fault_traffic.COUNTER, 1, node=node, fence=fence),
        *[
            lambda n=n: me.put_inline(
                bytes(8),
                their_key,
                fault_traffic.INLINE + n * fault_traffic.SLOT,
                node=node,
                notice=n,
                endpoint=1,
            )
            for n in range(3)
        ],
    ]
    choice.shuffle(todo)
    for start in todo:
        start()
    return len(todo)


def victim(side, their_key, kind, choice, limit):
    """Transfers, the fault, and more transfers: (outcome, nanoseconds until it was diagnosed,
    diagnosis).
    """
    count = work(side, their_key, choice)
    side.endpoint.wait(choice.randint(1, 20_000))
    spoil(side, kind, choice)
    begin = side.now()
    count += work(side, their_key, choice)
    while side.now() < begin + 1000 * limit:
        found = trap.diagnose(side.card)
        if found["stopped"]:
            return "stopped", side.now() - begin, found
        try:
            count -= len(side.endpoint.poll())
            side.endpoint.poll_events()
            side.endpoint.wait(50_000 if count else 5_000)
        except DibberError as error:
            # The library has noticed first; the next look says why.
            if error.name != "HALTED":
                raise
            continue
        # Hardware ends transfers without the program. Spoilt code is executed at the next tick at
        # the latest.
        if not count and KINDS[kind] is None:
            return "harmless", None, found
    return "silent", None, found


def witness(side, their_key, choice):
    """Puts to the card that fails: all of them end, whatever their end is. Returns how many did
    not.
    """
    count, begin = work_puts(side, their_key, choice), side.now()
    while count and side.now() < begin + fault_traffic.LIMIT:
        side.endpoint.wait(fault_traffic.LIMIT // 20)
        count -= len(side.endpoint.poll())
        side.endpoint.poll_events()
    return count


def work_puts(side, their_key, choice):
    """Inline puts, one every few microseconds, into the time of the fault."""
    for n in range(16):
        side.endpoint.put_inline(
            bytes(8), their_key, fault_traffic.INLINE + n * fault_traffic.SLOT, node=1 - side.node
        )
        side.endpoint.wait(choice.randint(1, 4_000))
    return 16


def reload(side):
    """Load the card's program again, as `dibber reset` does, and open an endpoint with memory."""
    side.card.load_firmware(str(paths.FIRMWARE))
    side.endpoint.close()
    side.region.close()
    side.endpoint = side.card.endpoint(1)
    return fault_traffic.offer(side, side.node, GUARD)


def again(side):
    """The witness registers its memory again, because the broken program may have written there."""
    side.region.close()
    return fault_traffic.offer(side, side.node, GUARD)


def forget(side):
    """Drop events of the broken program's last packets; they do not belong to the next traffic."""
    side.sleep(fault_traffic.SETTLE)


def guards(side):
    """Bytes beside the offered memory that were changed."""
    return int(
        (side.whole[:GUARD] != fault_traffic.BESIDE).sum()
        + (side.whole[-GUARD:] != fault_traffic.BESIDE).sum()
    )


# Runs ---------------------------------------------------------------------------------------------


def one(ends, keys, choice, number, limit):
    """One run: (kind, faults, outcome, nanoseconds to the diagnosis or None)."""
    kind, broken = choice.choices(list(KINDS), WEIGHTS)[0], choice.choice((0, 1))
    streams = [random.Random(choice.getrandbits(32)) for _ in range(2)]
    tasks = [lambda side: witness(side, keys[broken], streams[0])] * 2
    tasks[broken] = lambda side: victim(side, keys[1 - broken], kind, streams[1], limit)
    found = ends.both(*tasks)
    left, (outcome, after, said) = found[1 - broken], found[broken]
    wrong = [f"the other card waits for {left} puts"] * bool(left)
    if KINDS[kind] is not None and outcome != "stopped":
        wrong.append(f"it did not stop: {outcome}, {said['sentence']}")
    if outcome == "stopped" and after > ALLOWED:
        wrong.append(f"a diagnosis after {after / 1e6:.1f} ms")
    if (
        kind == "illegal"
        and outcome == "stopped"
        and (said["trap"] is None or said["trap"]["cause"] != 2)
    ):
        wrong.append(f"illegal instructions, and {said['sentence']}")
    if (
        kind == "loop"
        and outcome == "stopped"
        and (said["trap"] is None or said["trap"]["cause"] != trap.WATCHDOG)
    ):
        wrong.append(f"an endless loop, and {said['sentence']}")
    changed = ends.both(guards)
    wrong += [
        f"card {n}: {bytes_} guard bytes changed" for n, bytes_ in enumerate(changed) if bytes_
    ]
    keys[:] = ends.both(*[reload if n == broken else again for n in range(2)])
    ends.both(forget)
    return (
        kind,
        wrong + faults.one(ends, keys, choice, number, faults.Fault("restart"))[0],
        outcome,
        after,
    )


def batch(seed, number, runs, limit=LIMIT):
    """Yields the result of one() for each run of a batch."""
    choice = random.Random(f"{seed}/{number}")
    with Pair(profile.load("gen2x4"), seed=choice.getrandbits(32)) as pair, Ends(pair.uris) as ends:
        ends.both(measure.wait_up)
        keys = ends.both(lambda side: fault_traffic.offer(side, side.node, GUARD))
        for n in range(runs):
            result = one(ends, keys, choice, n + 1, limit)
            yield result
            if any("hangs" in fault for fault in result[1]):
                return


def main():
    patience = {
        "type": int,
        "default": LIMIT,
        "help": f"microseconds in which a fault has to show, or it is silent (default {LIMIT})",
    }
    soak = Soak(
        "Faults of the control program under traffic in both directions.",
        BATCH,
        KINDS,
        {"--patience": patience},
    )
    longest = 0
    for kind, outcome, after in soak.runs(
        lambda seed, number, runs: batch(seed, number, runs, soak.arguments.patience)
    ):
        soak.kinds[kind][outcome] += 1
        longest = max(longest, after or 0)
    columns = ("runs", "stopped", "harmless", "silent", "failed")
    return soak.report(
        ["kind", *columns],
        lambda kind, counts: (kind, *(counts[name] for name in columns)),
        "each card was loaded again, no wrong byte, no guard byte changed",
        f", a diagnosis within {longest / 1e3:.0f} µs",
        longest_diagnosis_us=longest / 1e3,
    )


if __name__ == "__main__":
    sys.exit(quiet(main))
