"""Work for the control programs of two cards, so a debugger finds them busy."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import libdibber
from dibber.interface.description import LINK_STATE
from libdibber import Right

from dibber_cli import paths

BYTES = 4096  # of a put and a get
STEP_NS = 10_000_000  # of simulated time, between two checks of `ending`
RIGHTS = Right.LOCAL_READ | Right.LOCAL_WRITE | Right.REMOTE_READ | Right.REMOTE_WRITE


class Exercise(threading.Thread):
    """A thread that opens both cards, loads their control programs, and then puts, gets and adds in
    both directions without a pause. The fast path is off, so the control programs do all of it.

    Attributes
    ----------
    ready  : Event; set when the first transfer begins, or when the thread has failed
    error  : the exception that ended it, or None
    ending : set it before the simulator is stopped; then losing the cards is no failure
    """

    def __init__(self, uris: Sequence[str]) -> None:
        super().__init__(daemon=True, name="exercise")
        self._uris = uris
        self.ready, self.ending = threading.Event(), False
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                cards = [stack.enter_context(libdibber.Card(uri)) for uri in self._uris]
                self._drive(cards)
        except Exception as error:  # it belongs to the thread that waits for `ready`
            if not self.ending:
                self.error = error
        finally:
            self.ready.set()

    def _drive(self, cards: Sequence[libdibber.Card]) -> None:
        for node, card in enumerate(cards):
            card.set_node(node)
            card.load_firmware(paths.FIRMWARE)
            card.write_register("FAST_PATH", 0)
        while any(card.info()["link_state"] != LINK_STATE.UP for card in cards):
            pass
        ends = [card.endpoint(1) for card in cards]
        keys = [end.register(libdibber.alloc(BYTES), RIGHTS).key for end in ends]
        self.ready.set()
        while not self.ending:
            for node, end in enumerate(ends):
                other = 1 - node
                there = {"node": other, "notice": 1, "endpoint": 1}
                self._end(end, end.put, keys[node], 0, keys[other], 0, BYTES, **there)
                self._end(end, end.put_inline, bytes(8), keys[other], 0, **there)
                self._end(end, end.get, keys[other], 0, keys[node], 0, BYTES, node=other)
                self._end(end, end.fetch_add, keys[other], 0, 1, node=other)
                ends[other].poll_events()

    def _end(
        self,
        end: libdibber.Endpoint,
        transfer: Callable[..., None],
        *arguments: Any,
        **delivery: int,
    ) -> None:
        """Begin a transfer and wait for its end, which may be a failure: a debugger may have
        stopped a program for longer than a transfer's timeout.
        """
        transfer(*arguments, **delivery)
        while not self.ending and not end.poll():
            end.wait(STEP_NS)
