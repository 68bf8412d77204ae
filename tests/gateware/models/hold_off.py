"""Model of interrupt hold-off: vectors as plain objects, cycle by cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface import C


class Vector:
    def __init__(self):
        self.count = self.time = 0  # settings
        self.seen = self.left = 0  # interrupts held, and units until they are due


class HoldOffModel:
    """What HoldOff answers to the inputs of a cycle."""

    def __init__(self, unit):
        self.unit = unit
        self.window = unit // C.VECTORS
        self.vectors = [Vector() for _ in range(C.VECTORS)]
        self.clock = 0
        self.late = False
        self.due = set()  # shown in the next cycle

    def cycle(self, request=None, settings=None, opened=None):
        """(whether the request is kept, set of vectors that are due in this cycle).

        request  : vector or None
        settings : (vector, count, time) or None
        opened   : vector or None
        """
        shown, self.due = self.due, set()
        keep = False
        comes = self.clock % self.window == 0 or self.late
        if request is not None:
            vector = self.vectors[request]
            if not vector.seen:
                vector.left = vector.time
            vector.seen += 1
            keep = vector.time != 0 and vector.seen != vector.count
            if not keep:
                vector.seen = 0
        elif comes:
            visited = self.clock // self.window
            vector = self.vectors[visited]
            if vector.seen:
                vector.left -= 1
                if vector.left == 0:
                    self.release(visited)
        self.late = comes and request is not None
        if settings is not None and settings[0] < C.VECTORS:
            number, count, time = settings
            self.release(number)
            self.vectors[number].count, self.vectors[number].time = count, time
        if opened is not None:
            self.release(opened)
            self.vectors[opened].time = 0
        self.clock = (self.clock + 1) % self.unit
        return keep, shown

    def release(self, number):
        if self.vectors[number].seen:
            self.vectors[number].seen = 0
            self.due.add(number)
