"""The traffic of a fault run: strided puts, inline puts with notices, gets and atomics, both ways
at once.

All of a side's memory is one region. After a run, every byte is compared with the expected one.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import random

import libdibber
import numpy as np
from dibber.interface.description import RIGHT, STATUS
from libdibber import Walk

AREA = 16 << 10  # bytes of each of the first three
SOURCE, TARGET, FETCHED, INLINE = (AREA * n for n in range(4))
SLOT = 16  # place of the 8 bytes of an inline put; the other bytes must stay
COUNTER = INLINE + 64 * SLOT
SIZE = COUNTER + 1024
FILL = 0xEE
BESIDE = 0x5A  # bytes outside of the region
LIMIT = 100_000_000  # ns; a transfer that takes longer hangs
STEP = 20_000  # ns of a wait that lets time go on
SETTLE = 5_000  # ns; after this time duplicates have come


@dataclasses.dataclass
class Plan:
    """The work of one side in a run.

    put, get : (walk of the source, walk of the target) without keys
    inline   : bytes of each inline put; its notice is its number, from `notice` on
    adds     : operands of the fetch-adds
    order    : kinds of operations in the order in which they are started, with the pause before in
               nanoseconds
    """

    put: tuple
    get: tuple
    inline: list
    notice: int
    adds: list
    order: list


def walks(choice, source, target):
    """Two walks of as many bytes, in the areas that begin at `source` and `target`."""
    block = choice.choice((1, 3, 8, 8, 24, 64, 200, 256, 1000))
    count = choice.randint(1, min(400, 5000 // block))
    stride = block + choice.choice((0, 1, 8, block))
    stride = min(stride, AREA // count)
    offset = choice.randrange(AREA - count * stride + 1)
    spread = Walk(0, block, target + offset, ((count, stride),))
    return Walk(0, block * count, source + choice.randrange(AREA - block * count + 1)), spread


def plan(choice, number):
    """A Plan for run `number`."""
    inline = [choice.randbytes(8) for _ in range(choice.randint(4, 10))]
    adds = [choice.getrandbits(40) for _ in range(choice.randint(3, 6))]
    kinds = ["inline"] * len(inline) + ["add"] * len(adds) + ["put", "get"]
    choice.shuffle(kinds)
    return Plan(
        walks(choice, SOURCE, TARGET),
        walks(choice, SOURCE, FETCHED),
        inline,
        number * 64,
        adds,
        [(kind, choice.choice((0, 0, 1_000, 5_000, 10_000))) for kind in kinds],
    )


def keyed(walk, key):
    return dataclasses.replace(walk, key=key)


def places(walk):
    """Index of each byte of a walk, in the order of the transfer."""
    return (np.array(walk.blocks())[:, None] + np.arange(walk.block)).ravel()


# In the tasks of a side ---------------------------------------------------------------------------


def offer(side, seed, guard=0):
    """Register the memory. Returns its key. `guard` bytes on both sides belong to no region."""
    side.whole = libdibber.alloc(SIZE + 2 * guard)
    side.whole[:] = BESIDE
    side.memory = side.whole[guard : guard + SIZE]
    side.content = np.frombuffer(random.Random(seed).randbytes(AREA), np.uint8)
    side.total = 0
    side.region = side.endpoint.register(
        side.memory, RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
    )
    reset(side)
    return side.region.key


def reset(side):
    """The memory as before a run."""
    side.memory[:] = FILL
    side.memory[:AREA] = side.content
    side.memory[COUNTER : COUNTER + 8].view("<u8")[0] = side.total


def sleep_until(side, nanoseconds):
    if side.now() < nanoseconds:
        side.sleep(nanoseconds - side.now())


def traffic(side, mine, their_key, expected, begin=0, before=None, after=0):
    """Execute a Plan and wait for the transfers of the other side.

    expected : number of notices. begin, after : start time, and time to stay until, ns.
    before   : (when, task), a task of the side in the middle. Returns a dictionary for check().
    """
    me, key, node = side.endpoint, side.region.key, 1 - side.node
    sleep_until(side, begin)
    found = {"begin": side.now(), "statuses": {}, "notices": [], "values": {}, "hang": None}
    counts = {"inline": 0, "add": 0, "put": 0, "get": 0}

    def collect():
        for done in me.poll():
            found["statuses"].setdefault(done.tag, []).append(STATUS.name_of(done.status))
            found["values"][done.tag] = done.value
        found["notices"] += [event.notice for event in me.poll_events()]

    def pause(until):
        while (left := until - side.now()) > 0:
            me.wait(left)
            collect()

    for kind, wait in mine.order:
        pause(side.now() + wait)
        n, counts[kind] = counts[kind], counts[kind] + 1
        number = TAGS[kind] + n
        if kind == "inline":
            me.put_inline(
                mine.inline[n],
                their_key,
                INLINE + n * SLOT,
                node=node,
                notice=mine.notice + n,
                endpoint=1,
                tag=number,
            )
        elif kind == "add":
            me.fetch_add(their_key, COUNTER, mine.adds[n], node=node, tag=number)
        elif kind == "put":
            me.put_strided(
                keyed(mine.put[0], key), keyed(mine.put[1], their_key), node=node, tag=number
            )
        else:
            me.get_strided(
                keyed(mine.get[0], their_key), keyed(mine.get[1], key), node=node, tag=number
            )
        if before and side.now() >= before[0]:
            before[1](side)
            before = None
    if before:
        pause(before[0])
        before[1](side)
    while len(found["statuses"]) < len(mine.order) or len(found["notices"]) < expected:
        if side.now() > found["begin"] + LIMIT:
            found["hang"] = (
                f"{len(mine.order) - len(found['statuses'])} commands, "
                f"{expected - len(found['notices'])} notices"
            )
            break
        me.wait(LIMIT // 20)
        collect()
    found["end"] = side.now()
    pause(max(after, side.now() + SETTLE))
    return found


TAGS = {"inline": 100, "add": 200, "put": 300, "get": 400}

# Checks -------------------------------------------------------------------------------------------


def check(sides, plans, found):
    """Faults after a run, as sentences; the fetch-adds' total is kept for the next run."""
    faults = []
    for n, _ in enumerate(sides):
        mine, theirs = plans[n], plans[1 - n]
        if found[n]["hang"]:
            faults.append(f"card {n} hangs: {found[n]['hang']}")
            continue
        bad = {tag: status for tag, status in found[n]["statuses"].items() if status != ["OK"]}
        if bad or len(found[n]["statuses"]) != len(mine.order):
            faults.append(f"card {n}: completions {bad}")
        notices = [theirs.notice + i for i in range(len(theirs.inline))]
        if found[n]["notices"] != notices:
            faults.append(f"card {n}: notices {found[n]['notices']}, not {notices}")
        # Each value before is the sum of some: in the order in which they were started, from one
        # side alone.
        total = sides[1 - n].total
        for i, operand in enumerate(mine.adds):
            if found[n]["values"].get(TAGS["add"] + i) != total:
                faults.append(
                    f"card {n}: fetch-add {i} found {found[n]['values'].get(TAGS['add'] + i)}, "
                    f"not {total}"
                )
            total = total + operand & (1 << 64) - 1
    for n, side in enumerate(sides):
        side.total = (side.total + sum(plans[1 - n].adds)) & (1 << 64) - 1
        wrong = wrong_bytes(side, sides[1 - n], plans[n], plans[1 - n])
        if len(wrong) and not any(f["hang"] for f in found):
            faults.append(
                f"card {n}: {len(wrong)} bytes are wrong, from {wrong[0]} to {wrong[-1]}; "
                f"put {plans[1 - n].put}, get {plans[n].get}"
            )
    return faults


def wrong_bytes(side, other, mine, theirs):
    """Places where a side's memory differs from the result of the two plans."""
    image = np.full(SIZE, FILL, np.uint8)
    image[:AREA] = side.content
    for content, (source, target) in ((other.content, theirs.put), (other.content, mine.get)):
        image[places(target)] = content[places(source)]
    for n, data in enumerate(theirs.inline):
        image[INLINE + n * SLOT : INLINE + n * SLOT + 8] = np.frombuffer(data, np.uint8)
    image[COUNTER : COUNTER + 8].view("<u8")[0] = side.total
    return np.flatnonzero(image != side.memory)
