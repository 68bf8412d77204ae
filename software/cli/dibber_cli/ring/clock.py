"""Simulated time in whole picoseconds, on SimPy's event queue.

A packet makes an event at each hop, so an event is one of SimPy's with a callback. A process (a
Python generator) is used where something waits several times: an open source of traffic.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import Event, Timeout

Callback = Callable[[Event], None]
# Priorities among events of the same time.
FIRST = simpy.events.URGENT
LAST = simpy.events.NORMAL + 1


class Clock:
    """
    Attributes
    ----------
    env    : SimPy's environment; its `now` is in picoseconds, and always whole
    events : events that were scheduled
    """

    def __init__(self) -> None:
        self.env: Any = simpy.Environment()
        self.events = 0

    def after(self, delay: int, callback: Callback, value: Any = None) -> None:
        """Call callback(event) after `delay` picoseconds; `event.value` is `value`."""
        self.events += 1
        event = Timeout(self.env, delay, value)
        event.callbacks.append(callback)  # type: ignore[union-attr]  # it is not processed yet

    def before_others(self, delay: int, callback: Callback, value: Any = None) -> None:
        """The same, but before other events of that time."""
        self._with(FIRST, delay, callback, value)

    def after_others(self, delay: int, callback: Callback, value: Any = None) -> None:
        """The same, but after other events of that time."""
        self._with(LAST, delay, callback, value)

    def _with(self, priority: int, delay: int, callback: Callback, value: Any) -> None:
        self.events += 1
        event = Event(self.env)
        event._ok, event._value = True, value
        event.callbacks.append(callback)  # type: ignore[union-attr]
        self.env.schedule(event, priority, delay)
