"""Endpoints as objects: transfers, completions and events."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, TypedDict, Unpack

from dibber.interface.description import FLAG, OPCODE, RIGHT, C

from libdibber import arguments
from libdibber.arguments import Memory, contiguous, switch, whole
from libdibber.background import FOR_EVER, Caller
from libdibber.binding import (
    Atomic,
    Clock,
    Completion,
    Delivery,
    EndpointOptions,
    Event,
    check,
    library,
)
from libdibber.late import np
from libdibber.mailbox import Mailbox
from libdibber.memory import Handle, Indexed, PagedRegion, Region
from libdibber.walk import Walk
from libdibber.window import How, Window

STEP_NS = 1_000_000  # of simulated time: dib_wait() cuts a wait into such steps


class Options(TypedDict, total=False):
    """Options of the transfers: members and flags of struct dib_delivery.

    notice : value for the target's `endpoint`; None: no notice
    """

    tag: SupportsIndex
    notice: SupportsIndex | None
    endpoint: SupportsIndex
    interrupt: bool
    solicit: bool
    fence: bool
    checksum: bool


class Endpoint(Handle):
    """An endpoint of a card; made by Card.endpoint().

    regions : memory that is registered at this endpoint
    """

    def __init__(
        self,
        card: Any,
        number: SupportsIndex,
        cq_entries: SupportsIndex,
        eq_entries: SupportsIndex,
        own_clock: bool,
    ) -> None:
        options = EndpointOptions(
            whole("cq_entries", cq_entries),
            whole("eq_entries", eq_entries),
            switch("own_clock", own_clock),
        )
        number = whole("number", number)
        self.card, self.number = card, number
        self.regions: list[Region | PagedRegion] = []
        handle = self._handle = ctypes.c_void_p()
        self._completions: list[Completion] = []  # taken by a call that a signal ended
        self._events: list[Event] = []  # the same
        self._caller = card._caller
        if options.own_clock:
            self._caller = Caller(card._caller.simulated)
            card._callers.append(self._caller)
        self._caller.long(
            lambda: check(
                library().dib_endpoint_open(card._handle, number, options, ctypes.byref(handle))
            ),
            undo=lambda _: library().dib_endpoint_close(handle),
        )

    def close(self) -> None:
        """Close the endpoint. Its regions stay registered until they are closed, or the card is.
        dib_endpoint_close().
        """
        handle, self._handle = self._handle, ctypes.c_void_p()
        self._caller.long(lambda: library().dib_endpoint_close(handle))
        if self._caller is not self.card._caller:
            self._caller.end()

    def register(
        self, memory: Memory, rights: SupportsIndex = RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE
    ) -> Region:
        """Register contiguous memory: a NumPy array of any shape, or another object with the buffer
        protocol.

        rights : Right, or'ed

        The card refers to the memory until the Region is closed or the card is, and it cannot be
        resized meanwhile. Raises ValueError for memory that is not contiguous or is empty, and for
        read-only memory with LOCAL_WRITE or REMOTE_WRITE, which the default has. Raises TypeError
        for an object without bytes, or with Python objects in it.
        """
        return Region(self, memory, rights)

    def register_pages(
        self,
        pages: Iterable[Memory | SupportsIndex | None],
        shift: SupportsIndex,
        first: SupportsIndex = 0,
        length: SupportsIndex | None = None,
        rights: SupportsIndex = RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE,
    ) -> PagedRegion:
        """dib_register_pages(): arrays of one page each, None for an absent page; or their bus
        addresses.

        `length` None: up to the last page's end. Each page follows the rules of register().
        """
        return PagedRegion(self, pages, shift, first, length, rights)

    def put(
        self,
        source_key: SupportsIndex,
        source_offset: SupportsIndex,
        target_key: SupportsIndex,
        target_offset: SupportsIndex,
        length: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_put(): contiguous. `notice` is the value for the target's `endpoint`, None for no
        notice.
        """
        self._issue(
            library().dib_put,
            self._delivery(node, **options),
            *self._contiguous_sides(source_key, source_offset, target_key, target_offset),
            whole("length", length),
        )

    def put_strided(
        self, source: Walk, target: Walk, *, node: SupportsIndex, **options: Unpack[Options]
    ) -> None:
        """dib_put_strided(): from one Walk to another."""
        self._issue(
            library().dib_put_strided, self._delivery(node, **options), source.as_c(), target.as_c()
        )

    def put_indexed(
        self,
        source: Walk,
        target: Walk,
        length: SupportsIndex | None = None,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_put_indexed(): between two Walks; each may have a list. `length` None: the length of
        both.
        """
        self._issue(
            library().dib_put_indexed,
            self._delivery(node, **options),
            source.as_side(),
            target.as_side(),
            whole("length", self._length_of(source, target) if length is None else length),
        )

    def get_indexed(
        self,
        source: Walk,
        target: Walk,
        length: SupportsIndex | None = None,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_get_indexed(): from a Walk on `node` to a local one. As put_indexed()."""
        self._issue(
            library().dib_get_indexed,
            self._delivery(node, **options),
            source.as_side(),
            target.as_side(),
            whole("length", self._length_of(source, target) if length is None else length),
        )

    @staticmethod
    def _length_of(source: Walk, target: Walk) -> int:
        if source.length != target.length:
            raise ValueError(f"the source has {source.length} bytes, the target {target.length}")
        return source.length

    def put_array(
        self,
        target: Walk | SupportsIndex,
        array: np.ndarray | Indexed,
        offset: SupportsIndex = 0,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """Put an array in its own layout, such as a column: its strides become the walk.

        `array` is a view of memory that is registered here, or the result of indexed(). `target`
        is a Walk, or a key. With a key, the elements are contiguous there from `offset` on. Raises
        ValueError for an array without elements.
        """
        walk = self._walk_over(array, RIGHT.LOCAL_READ)
        other = self._other_side(target, offset, walk)
        (self.put_indexed if walk.list or other.list else self.put_strided)(
            walk, other, node=node, **options
        )

    def get_array(
        self,
        source: Walk | SupportsIndex,
        array: np.ndarray | Indexed,
        offset: SupportsIndex = 0,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """Fetch into an array in its own layout: put_array() in the other direction. Raises
        ValueError for a read-only array.
        """
        memory = array.array if isinstance(array, Indexed) else array
        if isinstance(memory, np.ndarray) and not memory.flags.writeable:
            raise ValueError("array is read-only: nothing can be fetched into it")
        walk = self._walk_over(array, RIGHT.LOCAL_WRITE)
        other = self._other_side(source, offset, walk)
        (self.get_indexed if walk.list or other.list else self.get_strided)(
            other, walk, node=node, **options
        )

    def indexed(self, array: np.ndarray, index: Any) -> Indexed:
        """`array[index]` in place, along the first axis: for put_array() and get_array(), or for
        another node. Only the index is copied, into a registered list. It lives until the list
        is closed.
        """
        return Indexed(self, array, index)

    def _walk_over(self, array: np.ndarray | Indexed, right: int) -> Walk:
        return (
            array.walk if isinstance(array, Indexed) else self._region_of(array, right).walk(array)
        )

    def _region_of(self, array: np.ndarray, right: int = 0) -> Region:
        """The region that holds an array; if there are several, one with the `right`."""
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"array is a {type(array).__name__}: a NumPy array or what indexed() gives is "
                f"needed"
            )
        if array.dtype.hasobject:
            raise TypeError(
                f"array has Python objects in it (dtype {array.dtype}): their addresses mean "
                f"nothing elsewhere"
            )
        arguments.some_bytes("array", array)
        found = [r for r in self.regions if isinstance(r, Region) and r.holds(array)]
        if not found:
            raise ValueError("the array's memory is not registered at this endpoint")
        return next((region for region in found if region.rights & right), found[0])

    @staticmethod
    def _other_side(where: Walk | SupportsIndex, offset: SupportsIndex, walk: Walk) -> Walk:
        if isinstance(where, Walk):
            if whole("offset", offset):
                raise ValueError(f"offset = {offset} beside a Walk, which has its own")
            return where
        return Walk(whole("key", where), walk.length, whole("offset", offset))

    def put_inline(
        self,
        data: Memory,
        target_key: SupportsIndex,
        target_offset: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_put_inline(): all bytes of `data`, 1 to INLINE_BYTES of them.

        data : bytes, bytearray, memoryview, array.array, a contiguous NumPy array of any shape and
               type …
        """
        found = contiguous("data", data)
        length = whole("length of data", len(found), kind="length")
        self._issue(
            library().dib_put_inline,
            self._delivery(node, **options),
            arguments.address(found),
            whole("target_key", target_key),
            whole("target_offset", target_offset),
            length,
        )

    def get(
        self,
        source_key: SupportsIndex,
        source_offset: SupportsIndex,
        target_key: SupportsIndex,
        target_offset: SupportsIndex,
        length: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_get(): contiguous."""
        self._issue(
            library().dib_get,
            self._delivery(node, **options),
            *self._contiguous_sides(source_key, source_offset, target_key, target_offset),
            whole("length", length),
        )

    def get_strided(
        self, source: Walk, target: Walk, *, node: SupportsIndex, **options: Unpack[Options]
    ) -> None:
        """dib_get_strided(): from a Walk on `node` to a local one."""
        self._issue(
            library().dib_get_strided, self._delivery(node, **options), source.as_c(), target.as_c()
        )

    def send(
        self,
        source_key: SupportsIndex,
        source_offset: SupportsIndex,
        length: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_send(): contiguous, to the next receive of the other node's `endpoint` from here."""
        self._issue(
            library().dib_send,
            self._delivery(node, **options),
            whole("source_key", source_key),
            whole("source_offset", source_offset),
            whole("length", length),
        )

    def send_strided(
        self, source: Walk, *, node: SupportsIndex, **options: Unpack[Options]
    ) -> None:
        """dib_send_strided(): from a Walk."""
        self._issue(library().dib_send_strided, self._delivery(node, **options), source.as_c())

    def send_indexed(
        self,
        source: Walk,
        length: SupportsIndex | None = None,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_send_indexed(): from a Walk, which may have a list; `length` None: all of it."""
        self._issue(
            library().dib_send_indexed,
            self._delivery(node, **options),
            source.as_side(),
            whole("length", source.length if length is None else length),
        )

    def receive(
        self,
        target_key: SupportsIndex,
        target_offset: SupportsIndex,
        length: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_receive(): contiguous, the next message of the other node's `endpoint`."""
        self._issue(
            library().dib_receive,
            self._delivery(node, **options),
            whole("target_key", target_key),
            whole("target_offset", target_offset),
            whole("length", length),
        )

    def receive_strided(
        self, target: Walk, *, node: SupportsIndex, **options: Unpack[Options]
    ) -> None:
        """dib_receive_strided(): to a Walk; a shorter message fills it from its start."""
        self._issue(library().dib_receive_strided, self._delivery(node, **options), target.as_c())

    def receive_indexed(
        self,
        target: Walk,
        length: SupportsIndex | None = None,
        *,
        node: SupportsIndex,
        **options: Unpack[Options],
    ) -> None:
        """dib_receive_indexed(): to a Walk, which may have a list; `length` None: its whole
        length.
        """
        self._issue(
            library().dib_receive_indexed,
            self._delivery(node, **options),
            target.as_side(),
            whole("length", target.length if length is None else length),
        )

    def atomic(
        self,
        opcode: SupportsIndex,
        key: SupportsIndex,
        offset: SupportsIndex,
        operand: SupportsIndex,
        *,
        node: SupportsIndex,
        size: SupportsIndex = 8,
        compare: SupportsIndex = 0,
        mask: SupportsIndex = 0,
        **options: Unpack[Options],
    ) -> None:
        """dib_atomic(): `opcode` is FETCH_ADD, SWAP, COMPARE_SWAP or MASKED_SWAP of enum opcode.

        size : 4 or 8 bytes; operand, compare and mask have as many. To subtract n, add 2**(8*size)
               - n
        """
        size = whole("size", size)
        bits = 32 if size == 4 else 64
        values = [
            whole(name, value, 0, (1 << bits) - 1)
            for name, value in (("operand", operand), ("compare", compare), ("mask", mask))
        ]
        self._issue(
            library().dib_atomic,
            self._delivery(node, **options),
            Atomic(
                whole("opcode", opcode), size, whole("key", key), whole("offset", offset), *values
            ),
        )

    def fetch_add(
        self,
        key: SupportsIndex,
        offset: SupportsIndex,
        operand: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Any,
    ) -> None:
        """The old value is in the completion's `value`."""
        self.atomic(OPCODE.FETCH_ADD, key, offset, operand, node=node, **options)

    def compare_swap(
        self,
        key: SupportsIndex,
        offset: SupportsIndex,
        compare: SupportsIndex,
        operand: SupportsIndex,
        *,
        node: SupportsIndex,
        **options: Any,
    ) -> None:
        """Store `operand` if the value is `compare`."""
        self.atomic(
            OPCODE.COMPARE_SWAP, key, offset, operand, compare=compare, node=node, **options
        )

    def submit(self, command: Memory, tag: SupportsIndex = 0) -> None:
        """dib_submit(): the SLOT_BYTES of a command, unchanged."""
        found = contiguous("command", command)
        if len(found) != C.SLOT_BYTES:
            raise ValueError(f"command has {len(found)} bytes; a slot has {C.SLOT_BYTES}")
        self._issue(library().dib_submit, found.tobytes(), whole("tag", tag))

    def _issue(self, function: Any, *values: Any) -> None:
        self._caller.now(function, self._handle, *values)

    @staticmethod
    def _contiguous_sides(
        source_key: SupportsIndex,
        source_offset: SupportsIndex,
        target_key: SupportsIndex,
        target_offset: SupportsIndex,
    ) -> tuple[int, int, int, int]:
        return (
            whole("source_key", source_key),
            whole("source_offset", source_offset),
            whole("target_key", target_key),
            whole("target_offset", target_offset),
        )

    def poll(self, limit: SupportsIndex = 16) -> list[Completion]:
        """Completions that have come, as a list."""
        return self._look(library().dib_poll, Completion, self._completions, whole("limit", limit))

    def poll_events(self, limit: SupportsIndex = 16) -> list[Event]:
        """Events that have come, as a list."""
        return self._look(library().dib_poll_events, Event, self._events, whole("limit", limit))

    def _look(self, function: Any, kind: Any, before: list, limit: int) -> list:
        """Entries of a queue. `before` has those that an interrupted call took."""
        if before:
            entries, before[:limit] = before[:limit], []
            return entries
        entries, handle = (kind * limit)(), self._handle
        return entries[
            : self._caller.look(
                lambda: check(function(handle, entries, limit)),
                undo=lambda count: before.extend(entries[:count]),
            )
        ]

    def wait(self, timeout_ns: SupportsIndex = FOR_EVER) -> bool:
        """Sleep until there is an entry to poll; False if the time has passed. Ctrl-C ends it with
        KeyboardInterrupt.
        """
        if self._completions or self._events:
            return True
        timeout_ns, handle = whole("timeout_ns", timeout_ns), self._handle
        return self._caller.wait(
            lambda ns: check(library().dib_wait(handle, ns)) == 1, timeout_ns, STEP_NS
        )

    def mailbox(self, **sizes: SupportsIndex) -> Mailbox:
        """Open a Mailbox. From now on it owns the endpoint's commands, completions and events."""
        return Mailbox(self, **sizes)

    def window(
        self,
        key: SupportsIndex,
        length: SupportsIndex,
        offset: SupportsIndex = 0,
        *,
        node: SupportsIndex,
        **how: Unpack[How],
    ) -> Window:
        """Map `length` bytes of another node's region, from `offset` on: dib_window_map()."""
        return Window(self, key, length, offset, node, **how)

    def event_fd(self) -> int:
        """dib_event_fd(): a descriptor that becomes readable at an interrupt of this endpoint."""
        return self._caller.long(lambda: check(library().dib_event_fd(self._handle)))

    def clock(self) -> Clock:
        """The time: now_ps, cpu_ps, simulated, free."""
        clock = Clock()
        self._caller.long(lambda: check(library().dib_clock_now(self._handle, clock)))
        return clock

    @contextlib.contextmanager
    def outside_clock(self, pause: bool = False) -> Iterator[None]:
        """Leave the simulator's clock while the program waits for something else.

        pause : no other participant waits for the return of this one (dib_clock_pause()), for a
                wait of this program alone. A run with pauses need not repeat.
        """
        handle = self._handle
        enter = lambda: check(library().dib_clock_enter(handle))
        leave = library().dib_clock_pause if pause else library().dib_clock_leave
        self._caller.long(lambda: check(leave(handle)), undo=lambda _: enter())
        try:
            yield
        finally:
            self._caller.long(enter)

    @staticmethod
    def _delivery(
        node: SupportsIndex,
        tag: SupportsIndex = 0,
        notice: SupportsIndex | None = None,
        endpoint: SupportsIndex = 0,
        interrupt: bool = False,
        solicit: bool = False,
        fence: bool = False,
        checksum: bool = False,
    ) -> Delivery:
        """Flags of the operation; `notice` None: no notice."""
        flags = 0
        for flag, name, value in (
            (FLAG.FENCE, "fence", fence),
            (FLAG.CHECKSUM, "checksum", checksum),
            (FLAG.INTERRUPT, "interrupt", interrupt),
            (FLAG.SOLICIT, "solicit", solicit),
        ):
            if switch(name, value):
                flags |= flag
        if notice is not None:
            flags |= FLAG.NOTICE
        return Delivery(
            whole("tag", tag),
            whole("node", node),
            whole("endpoint", endpoint),
            flags,
            0 if notice is None else whole("notice", notice),
        )
