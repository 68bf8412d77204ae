"""Calls that may take long, and that Ctrl-C can end.

Python runs the handler of a signal in the main thread, between two of its instructions. So a signal
cannot end a call of C that waits. Therefore a second thread makes such a call, and the main thread
waits for that thread; a signal can end this wait. The interrupted call goes on in the second
thread. The next call of the same participant in the simulator's clock first waits for its end, so
two calls never overlap. Other threads call the library themselves, because no signal handler runs
in them.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from libdibber.binding import check, library

FOR_EVER = (1 << 64) - 1
HARDWARE_STEP_NS = 10_000_000  # then a wait for hardware lets Python handle signals


class Job:
    """A call on its way through a Worker.

    Attributes
    ----------
    abandoned : no thread waits for its result any more
    """

    def __init__(self, function: Callable[[], Any], undo: Callable[[Any], Any] | None) -> None:
        self._function: Callable[[], Any] | None = function
        self._undo = undo
        self._over, self._lock = threading.Lock(), threading.Lock()
        self._over.acquire()
        self._result: Any = None
        self._error: BaseException | None = None
        self._begun = self._done = False
        self.abandoned = False

    def run(self) -> None:
        """Make the call, once. Do nothing the second time, or when no thread waits any more."""
        with self._lock:
            begun, self._begun = self._begun, True
            function, wanted = self._function, not self.abandoned
        if begun:
            return
        try:
            self._result = function() if wanted and function else None
        except BaseException as error:  # it belongs to the thread that waits
            self._error = error
        with self._lock:
            self._function = None
            try:
                if wanted and self.abandoned and self._undo and self._error is None:
                    self._undo(self._result)
            finally:
                self._done = True
                self._over.release()

    def abandon(self) -> "Job | None":
        """Undo the result when the call returns. If it has returned already, return the Job that
        undoes it, or None.
        """
        with self._lock:
            self.abandoned = True
            undo = self._undo
            if not self._done or not undo or self._error is not None:
                return None
        return Job(lambda: undo(self._result), None)

    def wait(self, timeout: float = -1) -> bool:
        """Wait at most so many seconds (-1: for ever); return whether it has ended."""
        # A signal may end this method between the two calls. Then the lock stays taken, and the
        # flag shows it.
        if not self._done and self._over.acquire(timeout=timeout):
            self._over.release()
        return self._done

    def result(self) -> Any:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None
        return self._result


class Worker(threading.Thread):
    """A thread that makes the calls of one Caller, one after the other."""

    def __init__(self) -> None:
        super().__init__(name="libdibber", daemon=True)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # If the library cannot be loaded, this thread gets the error, and none waits for a result.
        self._library = library()
        self.start()

    def run(self) -> None:
        # The simulator's clock knows threads. The main thread waits while this one makes its calls.
        self._library.dib_clock_act_for(threading.main_thread().native_id)
        while (job := self._jobs.get()) is not None:
            job.run()
            del job  # and the objects that the call kept alive

    def take(self, job: Job | None) -> None:
        self._jobs.put(job)


class Caller:
    """How one participant in the clock calls the library: a card with its endpoints, or an endpoint
    with own_clock.

    simulated : a simulator keeps the time, so a call can wait until another program goes on
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        self._process = os.getpid()
        self._worker: Worker | None = None
        self._pending: Job | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an interrupted call has not returned yet."""
        return self._pending is not None and not self._pending.wait(0)

    def now(self, function: Callable[..., int], *arguments: Any) -> int:
        """Make a call that does not wait. Returns its result; raises DibberError."""
        if self._pending is not None:
            self._settle()
        return check(function(*arguments))

    def long(self, function: Callable[[], Any], undo: Callable[[Any], Any] | None = None) -> Any:
        """Call function(). In the main thread, a signal may end the call.

        undo : called with the result when no thread waits for it any more
        """
        if self._pending is not None:
            self._settle()
        if threading.current_thread() is not threading.main_thread():
            return function()
        job = Job(function, undo)
        try:
            self._start(job)
            job.wait()
        except BaseException:
            if not self._has_worker():  # it could not be started, so nothing runs
                raise
            self._pending = job
            undoing = job.abandon()
            # The signal may have come before the worker got the job. A job that it gets twice runs
            # once.
            self._start(job)
            if undoing is not None:
                self._pending = undoing
                self._start(undoing)
            raise
        return job.result()

    def look(self, function: Callable[[], Any], undo: Callable[[Any], Any]) -> Any:
        """As long(), for a call that waits only if a simulator keeps the time."""
        if self.simulated:
            return self.long(function, undo)
        if self._pending is not None:
            self._settle()
        return function()

    def wait(self, once: Callable[[int], bool], timeout_ns: int, step_ns: int) -> bool:
        """Call once(nanoseconds) in steps until it returns True; return whether it did in time.
        A signal ends it.

        once : such as dib_wait(); it may wait for the given time
        step_ns : of simulated time. The library itself cuts a wait into such steps, so a simulated
                  run stays the same
        """
        step_ns = step_ns if self.simulated else HARDWARE_STEP_NS
        if self._pending is not None:
            self._settle()
        alive = [True]

        def steps() -> bool:
            left = timeout_ns
            while alive[0]:
                step = min(left, step_ns)
                if once(step):
                    return True
                if step == left:
                    return False
                if timeout_ns != FOR_EVER:
                    left -= step
            return False

        if not self.simulated:
            return steps()
        try:
            return self.long(steps)
        except BaseException:
            alive[0] = False
            raise

    def start(self, function: Callable[[], Any]) -> Job:
        """Start a call without waiting for it. Returns its Job."""
        job = Job(function, None)
        self._start(job)
        return job

    def end(self) -> None:
        """No more calls."""
        if self._worker is not None and self._process == os.getpid():
            self._worker.take(None)
        self._worker = None

    def _has_worker(self) -> bool:
        # A child of fork() has none of its parent's threads.
        return self._worker is not None and self._process == os.getpid()

    def _start(self, job: Job) -> None:
        if not self._has_worker():
            self._worker, self._process = Worker(), os.getpid()
        assert self._worker is not None
        self._worker.take(job)

    def _settle(self) -> None:
        """Wait for the end of an interrupted call."""
        job = self._pending
        if job is not None and self._process == os.getpid():
            job.wait()
        self._pending = None
