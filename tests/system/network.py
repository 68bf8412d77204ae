"""Simulated cards of any topology, each in the hands of a thread, that tests drive.

with opened("star:4") as network:
    network.together(step)                a step is a function of a Side; all cards do it at once
    network.on(0, step), network.on({0: send, 1: receive})     the others stay where they are
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import json

import libdibber
from dibber.interface.description import RIGHT
from dibber_cli import paths, profile
from dibber_cli.link.side import Ends
from dibber_cli.map import survey
from dibber_cli.simulator import Network as Simulated

SECOND = 1_000_000_000  # of simulated time, in nanoseconds


class Network:
    """Cards that run; the control program is there already.

    statistics : of the simulator, when it has ended
    """

    def __init__(self, ends):
        self.ends, self.cards = ends, len(ends.sides)
        self.statistics = None

    def together(self, *steps):
        """All cards do one step, or one each; what they return."""
        return self.ends.both(*steps)

    def on(self, steps):
        """Some cards do a step: {card: step}. What those return, by card."""
        answers = self.together(*(steps.get(card, idle) for card in range(self.cards)))
        return {card: answers[card] for card in steps}

    def map(self, attempts=2):
        """All cards look at the network and enter their routes; what each found.

        attempts : scouts to a place where nobody answers; more where packets are lost
        """
        return self.together(lambda side: survey(side.card, attempts, True))


@contextlib.contextmanager
def opened(shape, seed=1, options=(), profile_name="gen2x4"):
    """A Network of a topology, by name or file."""
    options = ["--preload", str(paths.FIRMWARE), *map(str, options)]
    with Simulated(profile.load(profile_name), shape, seed=seed, options=options) as simulated:
        with Ends(simulated.uris) as ends:
            network = Network(ends)
            yield network
        simulated.stop()
        network.statistics = json.loads(simulated.stats.read_text())


# Steps --------------------------------------------------------------------------------------------


def idle(side):
    """Nothing to do in this step."""


def register(length):
    """A step: register memory for all that puts need; its key."""

    def step(side):
        side.region = side.endpoint.register(
            libdibber.alloc(length), RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE
        )
        side.memory = side.region.memory
        return side.region.key

    return step


def completions(side, count):
    """Wait for so many completions; their statuses."""
    found = []
    while len(found) < count:
        done = side.endpoint.poll()
        if not done and not side.endpoint.wait(SECOND):
            break
        found += [entry.status for entry in done]
    return found


def paced(put, count):
    """A step: `count` calls of put(side), two under way at a time. Returns the statuses, and
    nanoseconds from the first one's end to the last one's.
    """

    def step(side):
        statuses, first = [], None
        for n in range(count + 1):
            if n < count:
                put(side)
            if n:
                statuses += completions(side, 1)
                first = first or side.now()
        return statuses, side.now() - first

    return step


def put_word(node, key, word, offset=0):
    """A step: put 8 bytes with a notice; (time of the call in ps, status)."""

    def step(side):
        begin = side.endpoint.clock().now_ps
        side.endpoint.put_inline(word, key, offset, node=node, notice=1, endpoint=1)
        return begin, completions(side, 1)[0]

    return step


def wait_notice(side):
    """A step: wait for a notice; its time in ps, or None after a second."""
    while not side.endpoint.poll_events():
        if not side.endpoint.wait(SECOND):
            return None
        side.endpoint.poll()
    return side.endpoint.clock().now_ps


def put_blocks(node, key, length, until_ns):
    """A step: put the first half of the memory to the second half of another's, in pieces of
    `length`, again and again until a simulated time. Returns (statuses, nanoseconds between two
    completions at most, when it began).
    """

    def step(side):
        half = len(side.memory) // 2
        statuses, longest, place = [], 0, 0
        begin = last = now = side.now()
        while now < until_ns or place:
            side.endpoint.put(side.region.key, place, key, half + place, length, node=node)
            statuses += completions(side, 1)
            now = side.now()
            longest, last = max(longest, now - last), now
            place = (place + length) % half
        return statuses, longest, begin

    return step
