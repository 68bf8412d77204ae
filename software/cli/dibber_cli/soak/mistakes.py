"""Commands of the soak test that must fail: each has one mistake, and the status for it."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dibber.interface.description import OPCODE, STATUS, C

from dibber_cli.soak import layout
from dibber_cli.soak.commands import Command, Walk
from dibber_cli.soak.layout import ENDPOINTS, Region, Shape
from dibber_cli.soak.memory import Memory
from dibber_cli.soak.shapes import random_length

ATOMICS = (OPCODE.FETCH_ADD, OPCODE.SWAP, OPCODE.COMPARE_SWAP, OPCODE.MASKED_SWAP)


class Mistakes:
    """The part of a Round that makes them."""

    if TYPE_CHECKING:  # a Round has these
        choice: random.Random
        keys: Sequence[Mapping[str, int]]
        memory: Memory
        regions: Mapping[str, Region]
        _edge: list[bool]

        def _place(self, node: int, length: int, apart: bool = True) -> Shape | None: ...
        def _read(self, name: str, length: int) -> Shape: ...
        def _walk(self, node: int, name: str, shape: Shape) -> Walk: ...
        def _enter(self, side: int, command: Command, *, last: bool = True) -> None: ...

    def _bad(self, side: int, endpoint: int) -> None:
        maker = self.choice.choice(
            (self._bad_source, self._bad_target, self._bad_target, self._bad_atomic)
        )
        maker(side, endpoint, self.choice.choice(("put", "get", "inline")))

    def _bad_source(self, side: int, endpoint: int, kind: str) -> None:
        """A put or get whose source may not be read; the target is right."""
        get = kind == "get"
        reader = 1 - side if get else side
        writer = 1 - reader
        other = endpoint % len(ENDPOINTS) + 1
        target = self._place(writer, random_length(self.choice))
        if target is None:
            return
        name = f"source{endpoint}"
        source = self._read(name, target.length)
        mistake = self.choice.choice(
            ("key", "right", "bounds", "bounds", "far")
            + ("owner",) * (not get)
            + ("list",) * 3 * bool(source.entries)
        )
        walk, status = {
            "list": (
                self._with_a_list_of(reader, other, self._walk(reader, name, source)),
                "BAD_LIST",
            ),
            "key": ((self.keys[reader]["gone"], *self._walk(reader, name, source)[1:]), "BAD_KEY"),
            "right": (
                (self.keys[reader][f"blind{endpoint}"], target.length, 0, (), None),
                "NOT_PERMITTED",
            ),
            "owner": (self._walk(reader, f"source{other}", source), "NOT_OWNER"),
            "bounds": (self._walk(reader, name, source), "BOUNDS"),
            "far": (
                self._walk(
                    reader,
                    name,
                    Shape(target.length, C.MAX_OFFSET - self.choice.randrange(1 << 30)),
                ),
                "BOUNDS",
            ),
        }[mistake]
        if mistake == "bounds":
            # Its last byte, or its first, lies outside.
            region, places = self.regions[name], source.bytes()
            distance = self.choice.randint(1, int(places.max() - places.min()) + 1)
            over = region.end - 1 - int(places.max()) + distance
            source = source.moved(over)
            walk = self._walk(reader, name, source)
            if walk[2] < 0:
                return
            self.memory.copy_in_part(
                reader, source, region, writer, target, self.regions["target1"]
            )
        target_name = f"target{endpoint if get else self.choice.choice(ENDPOINTS)}"
        command = Command(
            endpoint,
            "get" if get else "put",
            walk,
            self._walk(writer, target_name, target),
            status=getattr(STATUS, ("REMOTE_" if get else "") + status),
            length=target.length,
            value=None,
            written=(writer, target),
            mistake=f"source {mistake}",
        )
        self._enter(side, command, last=False)

    def _with_a_list_of(self, node: int, other: int, walk: Walk) -> Walk:
        """The walk with a forbidden list: of another endpoint, or of a region that was removed."""
        key = self.keys[node][self.choice.choice((f"lists{other}", "gone"))]
        return (*walk[:4], walk[4] and dataclasses.replace(walk[4], key=key))

    def _bad_target(self, side: int, endpoint: int, kind: str) -> None:
        """A put, get or inline put whose target may not be written; the source is right."""
        get = kind == "get"
        writer = side if get else 1 - side
        reader = 1 - writer
        length = (
            self.choice.randint(1, C.INLINE_BYTES)
            if kind == "inline"
            else random_length(self.choice)
        )
        name = f"source{endpoint}"
        source = self._read(name, length)
        region = self.regions[f"target{endpoint}"]
        mistake = self.choice.choice(
            ("key", "right", "far", "bounds") + ("owner",) * get + ("list",) * (kind != "inline")
        )
        other = endpoint % len(ENDPOINTS) + 1
        shape = Shape(length, layout.TARGET + 4096)
        key, status = {
            "key": (self.keys[writer]["gone"], "BAD_KEY"),
            "right": (self.keys[writer][f"blind{endpoint}" if get else name], "NOT_PERMITTED"),
            "owner": (self.keys[writer][f"target{other}"], "NOT_OWNER"),
            "far": (self.keys[writer][region.name], "BOUNDS"),
            "list": (self.keys[writer][region.name], "BAD_LIST"),
            "bounds": (self.keys[writer][region.name], "BOUNDS"),
        }[mistake]
        if mistake == "far":
            shape = Shape(
                length, region.end + self.choice.choice((0, 1, self.choice.randrange(1 << 40)))
            )
        if mistake == "bounds":
            # Across the region's end; bytes before it may be written. One for each round and side.
            if self._edge[writer]:
                return
            self._edge[writer] = True
            length = min(length, 32768)
            inside = self.choice.randrange(length)
            shape = Shape(length, region.end - inside)
            source = self._read(name, length)
            self.memory.copy_in_part(reader, source, self.regions[name], writer, shape, region)
        walk: Walk = (key, shape.block, shape.place - region.start, shape.levels, None)
        if mistake == "list":
            walk = self._with_a_list_of(
                writer,
                other,
                self._walk(writer, region.name, dataclasses.replace(shape, entries=(0,))),
            )
        data = self.memory.arena[reader][source.bytes()].tobytes() if kind == "inline" else b""
        command = Command(
            endpoint,
            kind,
            () if kind == "inline" else self._walk(reader, name, source),
            walk,
            data,
            status=getattr(STATUS, ("" if get else "REMOTE_") + status),
            length=length,
            value=None,
            written=(writer, shape),
            mistake=f"target {mistake}",
        )
        self._enter(side, command, last=False)

    def _bad_atomic(self, side: int, endpoint: int, _: str) -> None:
        opcode, size = self.choice.choice(ATOMICS), self.choice.choice((4, 8))
        region = self.regions[f"target{endpoint}"]
        aligned = region.end + -region.end % 8
        mistake, key, place, status = self.choice.choice(
            (
                ("key", "gone", layout.TARGET + 64, "REMOTE_BAD_KEY"),
                ("right", f"source{endpoint}", layout.TARGET + 64, "REMOTE_NOT_PERMITTED"),
                ("right", f"blind{endpoint}", layout.TARGET + 64, "REMOTE_NOT_PERMITTED"),
                ("bounds", region.name, aligned - size, "REMOTE_BOUNDS"),
                (
                    "bounds",
                    region.name,
                    aligned + 8 * self.choice.randrange(1 << 30),
                    "REMOTE_BOUNDS",
                ),
                (
                    "place",
                    region.name,
                    layout.EDGE + self.choice.randrange(1, size),
                    "REMOTE_ALIGNMENT",
                ),
            )
        )
        if mistake == "bounds" and place + size <= region.end:
            place += size
        offset = 0 if key == "gone" else place - self.regions[key].start
        offset = max(offset, 0)
        command = Command(
            endpoint,
            "atomic",
            (),
            (self.keys[1 - side][key], size, offset, (), None),
            atomic=(
                opcode,
                size,
                self.choice.getrandbits(64) >> 64 - 8 * size,
                0,
                self.choice.getrandbits(64) >> 64 - 8 * size,
            ),
            status=getattr(STATUS, status),
            value=None,
            written=(1 - side, Shape(size, place)),
            mistake=f"atomic {mistake}",
        )
        self._enter(side, command, last=False)
