"""A task of link.side.Side that can also be named to another host: a function and its arguments."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable
from typing import Any


class Task:
    """function(side, *arguments), when it is called with a Side."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    @property
    def name(self) -> str:
        return self.function.__name__

    def __call__(self, side: Any) -> Any:
        return self.function(side, *self.arguments)


def nothing(side: object) -> None:
    """The task of a side that waits for the other one."""


IDLE = Task(nothing)
