"""One side of the soak test: it issues a round's commands and records the result of each."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import libdibber
from dibber.interface.description import COMMAND, FLAG, OPCODE, RIGHT, C
from libdibber import Walk
from libdibber.binding import Completion, Event
from libdibber.late import np

from dibber_cli.soak import layout
from dibber_cli.soak.commands import Command, Notice
from dibber_cli.soak.layout import ARENA, ENDPOINTS, TARGET
from dibber_cli.soak.memory import digest

PATIENCE_PS = 60_000_000_000  # of simulated time without any progress
# wait at one endpoint before the next one: at first so long, then doubled each time
LOOK_NS = 2_000
LOOKS = 8  # time up to this power of two while nothing happens


# Status and value by the index of the command.
Ended = Mapping[int, tuple[int, int]]


class Side(Protocol):
    """The program of a side: a soak.program.Soldier."""

    node: int
    endpoint: libdibber.Endpoint
    endpoints: dict[int, libdibber.Endpoint]
    regions: dict[str, libdibber.Region]
    arena: np.ndarray
    lists: np.ndarray

    def open(self, number: int) -> libdibber.Endpoint:
        """An endpoint, opened once."""


def prepare(side: Side, seed: int) -> dict[str, int]:
    """Memory, endpoints and regions of a bench.program.Program; returns the keys by name."""
    side.arena = libdibber.alloc(ARENA)
    side.arena[:TARGET] = layout.fill_source(seed, side.node)
    gone = side.endpoint.register(side.arena)
    for region in layout.regions():
        side.regions[region.name] = side.open(region.owner).register(
            side.arena[region.start : region.end], region.rights
        )
    side.lists = libdibber.alloc(layout.LISTS)
    for endpoint in ENDPOINTS:
        side.regions[f"lists{endpoint}"] = side.open(endpoint).register(
            side.lists, RIGHT.LOCAL_READ
        )
    keys = {name: region.key for name, region in side.regions.items()} | {"gone": gone.key}
    gone.close()
    return keys


def collect(side: Side) -> bytes:
    """The memory at the end of a round."""
    return side.arena.tobytes()


def begin(side: Side, seed: int, number: int, node: int, lists: bytes) -> None:
    """Memory for the next round. No command may write or read it at this time."""
    side.arena[TARGET:] = layout.fill(seed, number, node)
    side.lists[: len(lists)] = np.frombuffer(lists, dtype=np.uint8)


class Play:
    """A round on one side; `trouble` is a list of sentences.

    Attributes
    ----------
    values : (status, value) by the index of the command
    """

    def __init__(
        self, side: Side, commands: Sequence[Command], notices: Mapping[int, Notice], depth: int
    ) -> None:
        self.side = side
        self.commands = commands
        self.notices = dict(notices)
        self.depth = depth
        self.node = 1 - side.node
        self.waiting = {
            e: deque(n for n, c in enumerate(commands) if c.endpoint == e) for e in ENDPOINTS
        }
        self.under_way: dict[int, list[int]] = {e: [] for e in ENDPOINTS}
        self.ended: dict[int, tuple[int, int]] = {}
        self.trouble: list[str] = []

    def run(self) -> tuple[Ended, list[str]]:
        turn, idle, since = 0, 0, self._now()
        while self._left():
            if sum(self._serve(e) for e in ENDPOINTS):
                idle, since = 0, self._now()
                continue
            turn += 1
            idle += 1
            busy = [e for e in ENDPOINTS if self.under_way[e]] or ENDPOINTS
            look = LOOK_NS << min(idle // len(busy), LOOKS)
            if (
                not self.side.endpoints[busy[turn % len(busy)]].wait(look)
                and self._now() - since > PATIENCE_PS
            ):
                self.trouble.append(
                    f"nothing moved for {PATIENCE_PS // 10**9} ms: under way {self.under_way}, "
                    f"events missing {[hex(n) for n in self.notices]}"
                )
                break
        return self.ended, self.trouble

    def _now(self) -> int:
        return self.side.endpoint.clock().now_ps

    def _left(self) -> bool:
        return bool(self.notices) or any(self.waiting.values()) or any(self.under_way.values())

    def _serve(self, number: int) -> int:
        """Issue and complete as many commands as possible; return their number."""
        endpoint, moved = self.side.endpoints[number], 0
        while self.waiting[number] and len(self.under_way[number]) < self.depth:
            index = self.waiting[number].popleft()
            self._issue(endpoint, index, self.commands[index])
            self.under_way[number].append(index)
            moved += 1
        for completion in endpoint.poll():
            self._ended(number, completion)
            moved += 1
        for event in endpoint.poll_events():
            self._arrived(number, event)
            moved += 1
        return moved

    def _issue(self, endpoint: libdibber.Endpoint, index: int, command: Command) -> None:
        how = dict(command.options, node=self.node, tag=index)
        if command.lists:
            name = "get_indexed" if command.kind == "get" else "put_indexed"
            getattr(endpoint, name)(
                Walk(*command.source), Walk(*command.target), command.length, **how
            )
        elif command.kind == "put":
            if not command.source[3] and not command.target[3]:
                endpoint.put(
                    command.source[0],
                    command.source[2],
                    command.target[0],
                    command.target[2],
                    command.length,
                    **how,
                )
            else:
                endpoint.put_strided(Walk(*command.source), Walk(*command.target), **how)
        elif command.kind == "get":
            endpoint.get_strided(Walk(*command.source), Walk(*command.target), **how)
        elif command.kind == "inline":
            endpoint.put_inline(command.data, command.target[0], command.target[2], **how)
        elif command.kind == "atomic":
            opcode, size, operand, compare, mask = command.atomic
            endpoint.atomic(
                opcode,
                command.target[0],
                command.target[2],
                operand,
                size=size,
                compare=compare,
                mask=mask,
                **how,
            )
        else:
            endpoint.submit(without_bytes(command, self.node), index)

    def _ended(self, number: int, completion: Completion) -> None:
        index, command = completion.tag, self.commands[completion.tag]
        under_way = self.under_way[number]
        # Puts end in their order, inline puts too, unless one had an error.
        before = under_way[: under_way.index(index)]
        if (
            command.kind in ("put", "inline")
            and completion.status == 0
            and any(
                self.commands[n].kind == command.kind and not self.commands[n].mistake
                for n in before
            )
        ):
            self.trouble.append(
                f"{command.kind} {index} of endpoint {number} ended before {before}"
            )
        if command.options.get("fence") and before:
            self.trouble.append(
                f"command {index} of endpoint {number} has a fence and ended before {before}"
            )
        under_way.remove(index)
        self.ended[index] = completion.status, completion.value
        if completion.length != command.length or completion.node != (
            0 if command.kind == "nop" else self.node
        ):
            self.trouble.append(
                f"command {index}: completion of {completion.length} bytes, node {completion.node}"
            )
        if command.digest and completion.status == 0:
            shape, expected = command.digest
            if digest(self.side.arena, shape) != expected:
                self.trouble.append(f"get {index}: its bytes are not in memory at its completion")

    def _arrived(self, number: int, event: Event) -> None:
        notice = self.notices.pop(event.notice, None)
        if notice is None:
            self.trouble.append(
                f"event {event.notice:#x} of {event.length} bytes: not sent, or the second time"
            )
            return
        found, right = (
            (number, event.length, event.key, event.node),
            (notice.endpoint, notice.length, notice.key, self.node),
        )
        if found != right:
            self.trouble.append(
                f"event {event.notice:#x}: endpoint, length, key, node {found} for {right}"
            )
        if notice.digest and digest(self.side.arena, notice.digest[0]) != notice.digest[1]:
            self.trouble.append(f"event {event.notice:#x} came before its bytes")


def without_bytes(command: Command, node: int) -> bytes:
    """A NOP, or a put, get or inline put of no bytes, which libdibber does not make."""
    opcode = {
        "nop": OPCODE.NOP,
        "empty put": OPCODE.PUT,
        "empty inline": OPCODE.PUT_INLINE,
        "empty get": OPCODE.GET,
    }[command.kind]
    how = command.options
    flags = (
        FLAG.NOTICE * ("notice" in how)
        | FLAG.INTERRUPT * how.get("interrupt", False)
        | FLAG.SOLICIT * how.get("solicit", False)
        | FLAG.FENCE * how.get("fence", False)
    )
    slot = bytearray(C.SLOT_BYTES)
    struct.pack_into(
        "<BBBBHHIIII",
        slot,
        0,
        opcode,
        flags,
        0,
        how.get("endpoint", 0),
        node,
        0,
        0,
        0,
        how.get("notice", 0),
        0,
    )
    for name, walk in (("target", command.target), ("source", command.source)):
        if name == "target" or command.kind != "empty inline":
            struct.pack_into("<IIQ", slot, COMMAND[name].offset, *walk[:3])
    return bytes(slot)


def play(
    side: Side, commands: Sequence[Command], notices: Mapping[int, Notice], depth: int
) -> tuple[Ended, list[str]]:
    """Run a round; returns ({index: (status, value)}, [faults])."""
    return Play(side, commands, notices, depth).run()
