"""What a measurement needs of an end of a cable, and of both ends. link.side, bench.distant and
selftest.examinee have such ends.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import libdibber
from libdibber.late import np


class End(Protocol):
    """A card at one end of a cable.

    Attributes
    ----------
    card     : its registers
    node     : number of the card, 0 or 1
    clock_hz : of the card
    """

    card: libdibber.Card
    node: int
    clock_hz: int

    def now(self) -> int:
        """Nanoseconds."""

    def sleep(self, nanoseconds: int) -> None:
        """Wait for so much time."""


class Sender(End, Protocol):
    """An end whose control program runs, so that it can put.

    Attributes
    ----------
    endpoint      : for the puts
    chunk         : bytes of a put
    store, region : memory that measure.offer() registered
    """

    endpoint: libdibber.Endpoint
    chunk: int
    store: np.ndarray
    region: libdibber.Region


class Both(Protocol):
    """Both ends of a cable."""

    def both(self, *tasks: Callable[[Any], Any]) -> list[Any]:
        """The results of a task on both ends at once, or of one for each."""
