"""A task of link.side.Side that can also be named to another host: a function and its arguments."""

# SPDX-License-Identifier: BSD-2-Clause


class Task:
    """function(side, *arguments), when it is called with a Side."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    @property
    def name(self):
        return self.function.__name__

    def __call__(self, side):
        return self.function(side, *self.arguments)


def nothing(side):
    """The task of a side that waits for the other one."""


IDLE = Task(nothing)
