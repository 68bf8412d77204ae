"""SIGTERM and SIGHUP end a program as Ctrl-C does: its folders are removed, and processes that it
started are ended.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
# a terminal and its shell both send SIGHUP: the second one must not stop the cleaning up
AGAIN_SECONDS = 2


class Ended(KeyboardInterrupt):
    """A signal of ENDING came: its `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def code_of(interrupt: BaseException) -> int:
    """The exit code after a KeyboardInterrupt: 130, 143 or 129."""
    return 128 + getattr(interrupt, "number", signal.SIGINT)


_last: float = -AGAIN_SECONDS  # time of the last signal, seconds


def _end(number: int, _: FrameType | None) -> None:
    global _last
    before, _last = _last, time.monotonic()
    if _last - before >= AGAIN_SECONDS:
        raise Ended(number)


def install() -> None:
    """Let signals of ENDING raise Ended, except those that the caller ignores, as nohup does.
    In other threads than the main thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Signals that end the program wait for the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """Processes that are started in the block do not get SIGINT and SIGHUP, which a terminal sends
    to all. This program ends them.
    """
    from multiprocessing import resource_tracker

    # Starting this process of Python's own would unblock SIGINT.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
