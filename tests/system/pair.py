"""Two simulated cards, each in the hands of a process of its own, that tests drive.

A test hands each side a function of this kind, and gets what they return:

    def put(side, key): …
    answers = pair.together((put, key), (wait_for_notice,))

Both functions run at once, in simulated time. Between such steps both processes are outside the
clock, so that time stands while the test computes.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import multiprocessing
import traceback

import libdibber
import numpy as np
from dibber.interface.description import HOST, RIGHT, C
from dibber_cli import paths, profile
from dibber_cli.simulator import Pair as Simulator
from libdibber import DibberError, Walk

SECOND = 1_000_000_000  # of simulated time, in nanoseconds
PRELOAD = ["--preload", str(paths.FIRMWARE)]  # of dibber-sim
STAY = 20_000  # ns between two looks of a side that lets time go on


class Side:
    """What a process has: card, endpoint `number`, and regions by name."""

    number = 1

    def __init__(self, uri, node):
        self.uri, self.node = uri, node
        self.card = libdibber.Card(uri)
        self.card.set_node(node)
        self.card.load_firmware(paths.FIRMWARE)
        self.endpoint = self.card.endpoint(self.number)
        self.regions = {}

    def idle(self):
        """Nothing to do in this step."""

    def fast_path(self, allowed):
        """Let hardware take what it can, or leave all to the control program."""
        self.card.write_register("FAST_PATH", HOST["FAST_PATH"].reset if allowed else 0)

    def register(self, name, length, shared=True, rights=RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE):
        """Register memory, from the library or (not `shared`) NumPy's heap. Returns its key."""
        memory = libdibber.alloc(length) if shared else np.zeros(length + 3, dtype=np.uint8)[3:]
        self.regions[name] = self.endpoint.register(memory, rights)
        return self.regions[name].key

    def fill(self, name, seed=None, value=0):
        """Fill a region with random bytes or with one value."""
        memory = self.regions[name].memory
        memory[:] = (
            value
            if seed is None
            else np.random.default_rng(seed).integers(0, 256, len(memory), np.uint8)
        )

    def read(self, name):
        return bytes(self.regions[name].memory)

    def put_strided(self, source, target, **how):
        """A put, waited for: its status."""
        self.endpoint.put_strided(Walk(*source), Walk(*target), node=1, **how)
        return self.completion()

    def submit(self, command):
        self.endpoint.submit(command)
        return self.completion()

    def completion(self):
        while not (done := self.endpoint.poll()):
            if not self.endpoint.wait(SECOND):
                return None
        return done[0].status

    def event(self):
        """The next event as (notice, length, key, node), waited for."""
        while not (events := self.endpoint.poll_events()):
            if not self.endpoint.wait(SECOND):
                return None
        return events[0].notice, events[0].length, events[0].key, events[0].node

    def info(self):
        return self.card.info()

    def shared(self, offset, length):
        """Bytes of struct mcp_shared."""
        return self.card.read_firmware(self.card.sram_bytes - C.SHARED_FROM_END + offset, length)

    def event_fd(self):
        return self.endpoint.event_fd()

    def unregister(self, name):
        self.regions.pop(name).close()


def open_again(side, over):
    """Close the card with all that belongs to it, open it, and tell the side that stays."""
    for name in list(side.regions):
        side.unregister(name)
    side.endpoint.close()
    side.card.close()
    side.__init__(side.uri, side.node)
    over.touch()


def stay(side, over, each=None):
    """Let time go on until the file `over` is there, because a participant that joins needs it.

    `each`, if given, is called with the side after each wait.
    """
    while not over.exists():
        side.endpoint.wait(STAY)
        if each:
            each(side)
    over.unlink()


def _serve(pipe, uri, node, kind):
    try:
        side = kind(uri, node)
        with side.endpoint.outside_clock():
            pipe.send(("ready", None))
            step = pipe.recv()
        while step:
            try:
                result = step[0](side, *step[1:])
                answer = ("done", result)
            except DibberError as error:
                answer = ("dibber", (error.name, error.reason))
            with side.endpoint.outside_clock():
                pipe.send(answer)
                step = pipe.recv()
        side.endpoint.close()
        side.card.close()
    except Exception:
        pipe.send(("broken", traceback.format_exc()))


class Refused(Exception):
    """A library call on one side failed; `name` and `reason` as in DibberError."""

    def __init__(self, name, reason):
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


class Pair:
    """Both sides for the length of a `with` statement; arguments are dibber-sim's.

    kind    : class of the sides
    preload : the control program lies in each card from the start, which saves a second of CPU
              time. Without it each side loads the program, as a host of a real card does
    """

    def __init__(self, profile_name="gen2x4", seed=1, options=(), kind=Side, preload=False):
        self.kind = kind
        options = [*(PRELOAD if preload else ()), *options]
        self.simulator = Simulator(profile.load(profile_name), seed=seed, options=options)
        # Forked off one that has imported what costs time: that is half a second of a pair.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["libdibber", "dibber_cli.simulator", "pytest"])
        self.pipes, self.processes = [], []
        for node in range(len(self.simulator.uris)):
            ours, process = self._start(context, node)
            self.pipes.append(ours)
            self.processes.append(process)
        try:
            for node in range(2):
                self._answer(node)
        except BaseException:
            self.close()
            raise

    def _start(self, context, node):
        """Start the process of a card; returns the pipe to it and the process."""
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, self.simulator.uris[node], node, self.kind), daemon=True
        )
        process.start()
        theirs.close()
        return ours, process

    def replace(self, node, over, each=None):
        """Another process opens the card, in place of one that has ended. The other side stays
        meanwhile, see stay()."""
        self.pipes[1 - node].send((stay, over, each))
        self._start_again(node)
        self._answer(node)
        over.touch()
        self._answer(1 - node)

    def replace_both(self):
        """Other processes open both cards at the same time; the former ones have ended."""
        for node in range(2):
            self._start_again(node)
        for node in range(2):
            self._answer(node)

    def _start_again(self, node):
        context = multiprocessing.get_context("forkserver")
        self.pipes[node], self.processes[node] = self._start(context, node)

    def _answer(self, node, timeout=600):
        if not self.pipes[node].poll(timeout):
            self.simulator.check()
            raise TimeoutError(f"card {node} gave no answer in {timeout} s")
        kind, value = self.pipes[node].recv()
        if kind == "broken":
            raise RuntimeError(f"card {node}: {value}")
        return kind, value

    def together(self, first, second=(Side.idle,)):
        """Run a step on both sides; returns both results. Raises Refused when a library call
        failed.
        """
        for pipe, step in zip(self.pipes, (first, second)):
            pipe.send(step)
        answers = [self._answer(node) for node in range(2)]
        for kind, value in answers:
            if kind == "dibber":
                raise Refused(*value)
        return [value for _, value in answers]

    def first(self, *step):
        """Run a step on card 0 alone."""
        return self.together(step)[0]

    def second(self, *step):
        """Run a step on card 1 alone."""
        return self.together((Side.idle,), step)[1]

    def __enter__(self):
        return self

    def close(self):
        """End both processes, then the simulator; what hangs is ended by force."""
        for pipe in self.pipes:
            with contextlib.suppress(BrokenPipeError):
                pipe.send(None)
        for process in self.processes:
            process.join(60)
            if process.is_alive():
                process.terminate()
        self.simulator.__exit__(None)

    def __exit__(self, *_):
        self.close()
