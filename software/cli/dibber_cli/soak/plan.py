"""Random commands for the soak test, with the expected result of each.

A round is a list of commands for each side. If commands of one endpoint overlap in memory, they are
in an order that libdibber defines: puts after puts, inline puts after inline puts, anything after a
FENCE. All others have places of their own. No command may write the gaps between them.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from dibber.interface.description import OPCODE, C
from libdibber import List
from libdibber.late import np

from dibber_cli.soak import layout
from dibber_cli.soak.commands import Command, Notice, Walk
from dibber_cli.soak.layout import ENDPOINTS, Shape
from dibber_cli.soak.memory import Memory, digest, internet_checksum
from dibber_cli.soak.mistakes import ATOMICS, Mistakes
from dibber_cli.soak.shapes import random_length, random_shape

COUNTER = layout.TARGET + layout.COUNTERS

Keys = Sequence[Mapping[str, int]]  # of both sides, by region name


class Round(Mistakes):
    """The commands of a round: `commands[side]`, and the events `notices[side]` by their values.

    Parameters
    ----------
    memory : Memory at the round's start; at its end when this is done
    keys   : of both sides, by region name; "gone" is the key of a region that was unregistered
    """

    def __init__(self, seed: int, number: int, memory: Memory, keys: Keys, size: int) -> None:
        self.choice = random.Random(f"{seed}/{number}")
        self.number = number
        self.memory = memory
        self.keys = keys
        self.regions = {r.name: r for r in layout.regions()}
        self.commands: list[list[Command]] = [[], []]
        self.notices: list[dict[int, Notice]] = [{}, {}]
        self.depth = self.choice.choice((1, 2, 4, 8, 16, C.SLOTS))
        # values added to the counter of that side, by the index of the command
        self.added: list[dict[int, int]] = [{}, {}]
        # of each side, for its commands and the other's
        self.lists = [bytearray(), bytearray()]
        self._free = [COUNTER + 8 + self.choice.randrange(256) for _ in range(2)]
        # (side, endpoint): the last command that another one may overlap
        self._last: dict[tuple[int, int], Command | None] = {}
        self._edge = [False, False]
        makers, weights = zip(
            *(
                (self._put, 38),
                (self._get, 15),
                (self._inline, 18),
                (self._atomic, 13),
                (self._add, 3),
                (self._nothing, 4),
                (self._bad, 9),
            )
        )
        for _ in range(size):
            for side in range(2):
                maker = self.choice.choices(makers, weights)[0]
                maker(side, self.choice.choice(ENDPOINTS))

    # Places ---------------------------------------------------------------------------------------

    def _place(self, node: int, length: int, apart: bool = True) -> Shape | None:
        """A target Shape in a place of its own, or None if no place is left."""
        room = min(layout.EDGE - self._free[node] - 8192, max(4 * length, 1 << 16))
        if room < length:
            return None
        shape, low, high = random_shape(self.choice, length, room, apart)
        start = self._free[node] + self.choice.choice(
            (0, 1, self.choice.randrange(64), self.choice.randrange(4096))
        )
        self._free[node] = start + high - low
        return shape.moved(start - low)

    def _cell(self, node: int, size: int) -> int | None:
        """A naturally aligned place for an atomic operation."""
        place = self._free[node] + self.choice.randrange(40)
        place += -place % size
        if place + 8 > layout.EDGE:
            return None
        self._free[node] = place + size + self.choice.randrange(9)
        return place

    def _read(self, name: str, length: int) -> Shape:
        """A source Shape somewhere in a region."""
        region = self.regions[name]
        shape, low, high = random_shape(self.choice, length, region.end - region.start, False)
        return shape.moved(
            region.start - low + self.choice.randrange(region.end - region.start - (high - low) + 1)
        )

    def _walk(self, node: int, name: str, shape: Shape) -> Walk:
        key, start = self.keys[node][name], self.regions[name].start
        return (
            key,
            shape.block,
            shape.place - start,
            shape.levels,
            self._list(node, name[-1], shape.entries),
        )

    def _list(self, node: int, owner: str, entries: Sequence[int]) -> List | None:
        """A List of an endpoint, added to those of the round; None for None."""
        if not entries:
            return None
        offset = len(self.lists[node])
        self.lists[node] += np.array(entries, dtype=np.int64).tobytes()
        return List(self.keys[node][f"lists{owner}"], len(entries), offset)

    # Commands -------------------------------------------------------------------------------------

    def _enter(self, side: int, command: Command, *, last: bool = True) -> None:
        """Append it; `last`: the next command of its endpoint may overlap its target."""
        if not command.options.get("fence") and self.choice.random() < 0.03:
            command.options["fence"] = True
        command.options["solicit"] = self.choice.random() < 0.1
        self.commands[side].append(command)
        self._last[side, command.endpoint] = command if last else None

    def _met(self, side: int, endpoint: int) -> Command | None:
        """The last command if the next one must overlap it, else None. The last command's
        announcements are then void.
        """
        last = self._last.get((side, endpoint))
        if last is None or self.choice.random() > 0.3:
            return None
        return last

    def _void(self, side: int, last: Command) -> None:
        """Write the target of `last` again. After the notice, no check may use the former bytes."""
        last.digest = ()
        value = last.options.get("notice")
        if value in self.notices[1 - side]:
            old = self.notices[1 - side][value]
            self.notices[1 - side][value] = Notice(old.endpoint, old.length, old.key, ())

    def _part(self, shape: Shape, most: int) -> Shape:
        """A contiguous part of a shape's span, from one of its blocks on."""
        places = shape.bytes()
        start = int(self.choice.choice(places))
        return Shape(self.choice.randint(1, min(most, int(places.max()) - start + 1)), start)

    def _notify(self, side: int, command: Command, shape: Shape) -> None:
        """Request an event with some of the puts."""
        if self.choice.random() > 0.4:
            return
        value, endpoint = (
            self.number % 4096 << 16 | len(self.commands[side]),
            self.choice.choice(ENDPOINTS),
        )
        command.options.update(
            notice=value, endpoint=endpoint, interrupt=self.choice.random() < 0.2
        )
        self.notices[1 - side][value] = Notice(
            endpoint,
            command.length,
            command.target[0],
            (shape, digest(self.memory.arena[1 - side], shape)),
        )

    def _put(self, side: int, endpoint: int) -> None:
        length, target, fence, name = random_length(self.choice), None, False, f"source{endpoint}"
        last = self._met(side, endpoint)
        if last and last.kind in ("put", "inline"):
            # Over the bytes of the command before, in the same target.
            target, fence = self._part(last.written[1], 1 << 15), last.kind != "put"
            self._void(side, last)
        source = self._read(name, target.length if target else length)
        if last and last.kind == "get":
            # Continue with the bytes that the command before fetched.
            source, fence, name = last.written[1], True, f"target{endpoint}"
        target = target or self._place(1 - side, source.length)
        if target is None:
            return
        data = self.memory.copy(side, source, 1 - side, target)
        command = Command(
            endpoint,
            "put",
            self._walk(side, name, source),
            self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", target),
            options={"fence": fence},
            length=len(data),
            written=(1 - side, target),
        )
        if self.choice.random() < 0.2:
            command.options["checksum"], command.value = True, internet_checksum(data.tobytes())
        self._notify(side, command, target)
        self._enter(side, command)

    def _inline(self, side: int, endpoint: int) -> None:
        last, fence, target = self._met(side, endpoint), False, None
        if last and last.kind in ("put", "inline"):
            target, fence = self._part(last.written[1], C.INLINE_BYTES), last.kind != "inline"
            self._void(side, last)
        else:
            length = self.choice.randint(1, C.INLINE_BYTES)
            target = self._place(1 - side, length)
            if target is None:
                return
            if target.levels or target.entries:
                target = Shape(length, int(target.bytes().min()))
        data = self.choice.randbytes(target.length)
        self.memory.store(1 - side, target, data)
        walk = self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", target)
        command = Command(
            endpoint,
            "inline",
            (),
            walk,
            data,
            options={"fence": fence},
            length=len(data),
            written=(1 - side, target),
        )
        self._notify(side, command, target)
        self._enter(side, command)

    def _get(self, side: int, endpoint: int) -> None:
        last, fence = self._met(side, endpoint), False
        name = f"source{self.choice.choice(ENDPOINTS)}"
        source = self._read(name, random_length(self.choice))
        if last and last.kind in ("put", "inline"):
            # Fetch back the bytes that the command before wrote.
            source, fence, name = last.written[1], True, f"target{self.choice.choice(ENDPOINTS)}"
        target = self._place(side, source.length)
        if target is None:
            return
        self.memory.copy(1 - side, source, side, target)
        self._enter(
            side,
            Command(
                endpoint,
                "get",
                self._walk(1 - side, name, source),
                self._walk(side, f"target{endpoint}", target),
                options={"fence": fence},
                length=target.length,
                written=(side, target),
                digest=(target, digest(self.memory.arena[side], target)),
            ),
        )

    def _atomic(self, side: int, endpoint: int) -> None:
        last, size, fence = self._met(side, endpoint), self.choice.choice((4, 8)), False
        place = self._cell(1 - side, size)
        if last and last.kind == "atomic":
            size, place, fence = last.atomic[1], last.written[1].place, True
        if place is None:
            return
        opcode = self.choice.choice(ATOMICS)
        ones = (1 << 8 * size) - 1
        operand, mask = self.choice.getrandbits(64) & ones, self.choice.getrandbits(64) & ones
        compare = self.choice.choice(
            (self.memory.word(1 - side, place, size), self.choice.getrandbits(64) & ones)
        )
        value = self.memory.atomic(1 - side, place, opcode, size, operand, compare, mask)
        shape = Shape(size, place)
        self._enter(
            side,
            Command(
                endpoint,
                "atomic",
                (),
                self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", shape),
                atomic=(opcode, size, operand, compare, mask),
                options={"fence": fence},
                value=value,
                written=(1 - side, shape),
            ),
        )

    def _add(self, side: int, endpoint: int) -> None:
        """Add to the common counter: each old value is unique, and the sum is exact."""
        operand, shape = self.choice.getrandbits(64), Shape(8, COUNTER)
        self.memory.atomic(1 - side, COUNTER, OPCODE.FETCH_ADD, 8, operand, 0, 0)
        self.added[1 - side][len(self.commands[side])] = operand
        self._enter(
            side,
            Command(
                endpoint,
                "atomic",
                (),
                self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", shape),
                atomic=(OPCODE.FETCH_ADD, 8, operand, 0, 0),
                value=None,
                written=(1 - side, shape),
            ),
            last=False,
        )

    def _nothing(self, side: int, endpoint: int) -> None:
        """A NOP, and transfers without bytes; their events must still come."""
        kind = self.choice.choice(("nop", "empty put", "empty inline", "empty get"))
        shape = Shape(0, layout.SOURCE + 64)
        here = self._walk(side, f"source{endpoint}", shape)
        there = self._walk(
            1 - side, f"target{self.choice.choice(ENDPOINTS)}", Shape(0, layout.TARGET + 64)
        )
        command = Command(endpoint, kind, here, there)
        if kind == "empty get":
            command.source = self._walk(1 - side, "source1", shape)
            command.target = self._walk(side, f"target{endpoint}", Shape(0, layout.TARGET + 64))
        elif kind != "nop":
            self._notify(side, command, Shape(0, 0))
        self._enter(side, command, last=False)
