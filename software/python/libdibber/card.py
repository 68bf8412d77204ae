"""Cards and endpoints as objects; each may be used in a `with` statement."""

# SPDX-License-Identifier: BSD-2-Clause

import atexit
import contextlib
import ctypes
import os
import threading
import time

import numpy as np
from dibber.interface.description import DOORBELL, FLAG, HOST, OPCODE, RIGHT, C

from libdibber import arguments
from libdibber.arguments import U32, contiguous, host_register, switch, whole
from libdibber.background import FOR_EVER, Caller, Worker
from libdibber.binding import (
    Atomic,
    CardInfo,
    CardOptions,
    Clock,
    Completion,
    Delivery,
    EndpointOptions,
    Event,
    FlashInfo,
    Network,
    Routes,
    check,
    library,
)
from libdibber.mailbox import Mailbox
from libdibber.memory import Handle, Indexed, PagedRegion, Region
from libdibber.walk import Walk

STEP_NS = 1_000_000  # of simulated time: dib_wait() cuts a wait into such steps


def routes_to(network, node):
    """Ways to a node of a map that cannot deadlock, the best first; () where there is none."""
    if not isinstance(network, Network):
        raise TypeError(f"network = {network!r} is not what Card.map() gives")
    routes = (ctypes.c_uint32 * C.ROUTES)()
    return tuple(
        routes[
            : check(
                library().dib_network_routes(network, whole("node", node, kind="map node"), routes)
            )
        ]
    )


# The interpreter's end ----------------------------------------------------------------------------

# Cards that are open. They hold references to the memory that they can reach, so it stays until
# they are closed.
_open_cards: set["Card"] = set()

CLOSE_SECONDS = 2


@atexit.register
def _close_cards():
    """Close open cards before Python frees its memory.

    A card stays open when another thread may be inside a call, or when closing it takes too long,
    for example because time stands still in its simulator. Then its memory stays in its place until
    the process has ended, and the system closes the card.
    """
    cards = [card for card in _open_cards if card._process == os.getpid()]
    others = [
        t
        for t in threading.enumerate()
        if t is not threading.current_thread() and not isinstance(t, Worker)
    ]
    if not others:
        jobs = [card._caller.start(card._close) for card in cards if not card._is_busy()]
        end = time.monotonic() + CLOSE_SECONDS
        for job in jobs:
            job.wait(max(0, end - time.monotonic()))
    if _open_cards:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_open_cards))


class Card(Handle):
    """A card, opened by its URI ("sim:PATH_OF_SOCKET", "vfio:0000:01:00.0" or "uart:/dev/ttyUSB1").

    iova_base : first bus address that the library gives to memory; 0: below 4 GiB
    observe   : watch and administer a card that another program may be driving

    Every call of a card, its endpoints and mailboxes checks its arguments before anything is sent:
    TypeError for a wrong type, ValueError for a value outside its range, which the error names.
    Ctrl-C ends a call that waits with KeyboardInterrupt; the card can be used afterwards.
    """

    def __init__(self, uri, iova_base=0, observe=False):
        options = CardOptions(whole("iova_base", iova_base), switch("observe", observe))
        encoded = arguments.path("uri", uri)
        handle = self._handle = ctypes.c_void_p()
        self._caller = Caller(simulated=encoded.startswith(b"sim:"))
        self._process = os.getpid()
        self._reachable, self._callers = set(), []  # memory; of endpoints with own_clock

        def open_it():
            check(library().dib_open(encoded, options, ctypes.byref(handle)))
            _open_cards.add(self)

        self._caller.long(open_it, undo=lambda _: self._close())

    def close(self):
        """Close the card: it reaches no memory of this program afterwards. dib_close()."""
        self._caller.long(self._close)
        self._caller.end()
        for caller in self._callers:
            caller.end()

    def _close(self):
        handle, self._handle = self._handle, ctypes.c_void_p()
        library().dib_close(handle)
        _open_cards.discard(self)
        self._reachable.clear()

    def _is_busy(self):
        return any(caller.is_busy for caller in (self._caller, *self._callers))

    def _ask(self, function, *values):
        """A call that waits for an answer of the card."""
        return self._caller.long(lambda: check(function(self._handle, *values)))

    def info(self):
        """Identity, geometry, state and `counters` (by name) as a dictionary."""
        raw = CardInfo()
        self._ask(library().dib_card_info, raw)
        info = {name: getattr(raw, name) for name, _ in CardInfo._fields_ if name != "counters"}
        info["counters"] = {c.name.decode(): c.value for c in raw.counters}
        return info

    def read_register(self, name, index=0):
        """A register of bank `host` by its name; `index` where there are several."""
        value = ctypes.c_uint32()
        self._ask(library().dib_register_read, host_register(name, index), value)
        return value.value

    def board(self):
        """The name of its board, or "" if the card does not report it."""
        words = (self.read_register("BOARD", n) for n in range(HOST["BOARD"].count))
        return (
            b"".join(word.to_bytes(4, "little") for word in words)
            .rstrip(b"\0")
            .decode("ascii", "replace")
        )

    def write_register(self, name, value):
        """Write a register of bank `host` by its name."""
        self._ask(library().dib_register_write, host_register(name), whole("value", value))

    def set_node(self, node):
        """Set the card's node number, before its control program is loaded."""
        self._ask(library().dib_node_set, whole("node", node, kind="map node"))

    def load_firmware(self, path):
        """Load and start a control program."""
        self._ask(library().dib_firmware_load, arguments.path("path", path))

    @property
    def sram_bytes(self):
        """Bytes of the control program's SRAM. It asks nothing of the card."""
        return library().dib_firmware_size(self._handle)

    def read_firmware(self, offset, length):
        """Bytes of the control program's SRAM."""
        offset, length = (
            whole("offset", offset, kind="firmware offset"),
            whole("length", length, kind="firmware length"),
        )
        data = np.zeros(length, dtype=np.uint8)
        self._ask(library().dib_firmware_read, offset, arguments.address(data), length)
        return data.tobytes()

    def write_firmware(self, offset, data):
        """Write the bytes of an object: for tests of a control program whose memory changes."""
        offset, found = whole("offset", offset, kind="firmware offset"), contiguous("data", data)
        self._ask(library().dib_firmware_write, offset, arguments.address(found), len(found))

    def read_doorbell(self, endpoint, name):
        """A register of bank `doorbell` of an endpoint, open or not."""
        value = ctypes.c_uint32()
        self._ask(
            library().dib_doorbell_read,
            whole("endpoint", endpoint),
            arguments.register(DOORBELL, name),
            value,
        )
        return value.value

    # Flash ----------------------------------------------------------------------------------------

    def flash_info(self):
        """dib_flash_info(): jedec, bytes, status."""
        info = FlashInfo()
        self._ask(library().dib_flash_info, info)
        return info

    def flash_allow(self, address, length):
        """dib_flash_allow(): set the part that may be changed."""
        self._ask(
            library().dib_flash_allow,
            whole("address", address),
            whole("length", length, kind="flash length"),
        )

    def flash_read(self, address, length):
        """dib_flash_read(): bytes of the flash."""
        address, length = whole("address", address), whole("length", length, kind="flash length")
        data = np.zeros(length, dtype=np.uint8)  # takes no memory until bytes are read
        self._ask(library().dib_flash_read, address, arguments.address(data), length)
        return data.tobytes()

    def flash_erase(self, address, length):
        """dib_flash_erase(): whole sectors."""
        self._ask(
            library().dib_flash_erase,
            whole("address", address),
            whole("length", length, kind="flash length"),
        )

    def flash_write(self, address, data):
        """dib_flash_write(): the bytes of an object, from a page's start on."""
        address, found = whole("address", address), contiguous("data", data)
        self._ask(library().dib_flash_write, address, arguments.address(found), len(found))

    # Network --------------------------------------------------------------------------------------

    def scout(self, route=0, back=0, timeout=2500):
        """Number of the node at the end of a route; `timeout` in the card's cycles."""
        node = ctypes.c_uint()
        self._ask(
            library().dib_scout,
            whole("route", route),
            whole("back", back),
            whole("timeout", timeout),
            node,
        )
        return node.value

    def map(self, attempts=1):
        """Hosts and switches that the card can reach, as a libdibber.binding.Network."""
        network = Network()
        self._ask(library().dib_network_map, whole("attempts", attempts), network)
        return network

    def set_route(self, node, place, route):
        """Enter a route to a node; None removes it."""
        self._ask(
            library().dib_route_set,
            whole("node", node, kind="map node"),
            whole("place", place),
            0 if route is None else whole("route", route),
            route is not None,
        )

    def routes(self, node):
        """The control program's routes: (routes by place, None for an empty place; current place,
        age in cycles, changes).
        """
        known = Routes()
        self._ask(library().dib_routes_get, whole("node", node, kind="map node"), known)
        age = (self.read_register("CYCLES_LOW") - known.heard) & U32
        return (
            [route if known.valid >> n & 1 else None for n, route in enumerate(known.route)],
            known.current,
            age,
            known.changes,
        )

    # Endpoints ------------------------------------------------------------------------------------

    def endpoint(self, number, cq_entries=0, eq_entries=0, own_clock=False):
        """Open endpoint `number`; `own_clock` when another thread than the card's drives it."""
        return Endpoint(self, number, cq_entries, eq_entries, own_clock)


class Endpoint(Handle):
    """An endpoint of a card; made by Card.endpoint().

    regions : memory that is registered at this endpoint
    """

    def __init__(self, card, number, cq_entries, eq_entries, own_clock):
        options = EndpointOptions(
            whole("cq_entries", cq_entries),
            whole("eq_entries", eq_entries),
            switch("own_clock", own_clock),
        )
        number = whole("number", number)
        self.card, self.number, self.regions = card, number, []
        handle = self._handle = ctypes.c_void_p()
        self._completions, self._events = [], []  # taken by a call that a signal ended
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

    def close(self):
        """Close the endpoint. Its regions stay registered until they are closed, or the card is.
        dib_endpoint_close().
        """
        handle, self._handle = self._handle, ctypes.c_void_p()
        self._caller.long(lambda: library().dib_endpoint_close(handle))
        if self._caller is not self.card._caller:
            self._caller.end()

    def register(self, memory, rights=RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE):
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
        self, pages, shift, first=0, length=None, rights=RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE
    ):
        """dib_register_pages(): arrays of one page each, None for an absent page; or their bus
        addresses.

        `length` None: up to the last page's end. Each page follows the rules of register().
        """
        return PagedRegion(self, pages, shift, first, length, rights)

    # `options` of the transfers: those of _delivery().

    def put(self, source_key, source_offset, target_key, target_offset, length, *, node, **options):
        """dib_put(): contiguous. `notice` is the value for the target's `endpoint`, None for no
        notice.
        """
        self._issue(
            library().dib_put,
            self._delivery(node, **options),
            *self._contiguous_sides(source_key, source_offset, target_key, target_offset),
            whole("length", length),
        )

    def put_strided(self, source, target, *, node, **options):
        """dib_put_strided(): from one Walk to another."""
        self._issue(
            library().dib_put_strided, self._delivery(node, **options), source.as_c(), target.as_c()
        )

    def put_indexed(self, source, target, length=None, *, node, **options):
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

    def get_indexed(self, source, target, length=None, *, node, **options):
        """dib_get_indexed(): from a Walk on `node` to a local one. As put_indexed()."""
        self._issue(
            library().dib_get_indexed,
            self._delivery(node, **options),
            source.as_side(),
            target.as_side(),
            whole("length", self._length_of(source, target) if length is None else length),
        )

    @staticmethod
    def _length_of(source, target):
        if source.length != target.length:
            raise ValueError(f"the source has {source.length} bytes, the target {target.length}")
        return source.length

    def put_array(self, target, array, offset=0, *, node, **options):
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

    def get_array(self, source, array, offset=0, *, node, **options):
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

    def indexed(self, array, index):
        """`array[index]` in place, along the first axis: for put_array() and get_array(), or for
        another node. Only the index is copied, into a registered list. It lives until the list
        is closed.
        """
        return Indexed(self, array, index)

    def _walk_over(self, array, right):
        return (
            array.walk if isinstance(array, Indexed) else self._region_of(array, right).walk(array)
        )

    def _region_of(self, array, right=0):
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
        found = [region for region in self.regions if region.holds(array)]
        if not found:
            raise ValueError("the array's memory is not registered at this endpoint")
        return next((region for region in found if region.rights & right), found[0])

    @staticmethod
    def _other_side(where, offset, walk):
        if isinstance(where, Walk):
            if whole("offset", offset):
                raise ValueError(f"offset = {offset} beside a Walk, which has its own")
            return where
        return Walk(whole("key", where), walk.length, whole("offset", offset))

    def put_inline(self, data, target_key, target_offset, *, node, **options):
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

    def get(self, source_key, source_offset, target_key, target_offset, length, *, node, **options):
        """dib_get(): contiguous."""
        self._issue(
            library().dib_get,
            self._delivery(node, **options),
            *self._contiguous_sides(source_key, source_offset, target_key, target_offset),
            whole("length", length),
        )

    def get_strided(self, source, target, *, node, **options):
        """dib_get_strided(): from a Walk on `node` to a local one."""
        self._issue(
            library().dib_get_strided, self._delivery(node, **options), source.as_c(), target.as_c()
        )

    def send(self, source_key, source_offset, length, *, node, **options):
        """dib_send(): contiguous, to the next receive of the other node's `endpoint` from here."""
        self._issue(
            library().dib_send,
            self._delivery(node, **options),
            whole("source_key", source_key),
            whole("source_offset", source_offset),
            whole("length", length),
        )

    def send_strided(self, source, *, node, **options):
        """dib_send_strided(): from a Walk."""
        self._issue(library().dib_send_strided, self._delivery(node, **options), source.as_c())

    def send_indexed(self, source, length=None, *, node, **options):
        """dib_send_indexed(): from a Walk, which may have a list; `length` None: all of it."""
        self._issue(
            library().dib_send_indexed,
            self._delivery(node, **options),
            source.as_side(),
            whole("length", source.length if length is None else length),
        )

    def receive(self, target_key, target_offset, length, *, node, **options):
        """dib_receive(): contiguous, the next message of the other node's `endpoint`."""
        self._issue(
            library().dib_receive,
            self._delivery(node, **options),
            whole("target_key", target_key),
            whole("target_offset", target_offset),
            whole("length", length),
        )

    def receive_strided(self, target, *, node, **options):
        """dib_receive_strided(): to a Walk; a shorter message fills it from its start."""
        self._issue(library().dib_receive_strided, self._delivery(node, **options), target.as_c())

    def receive_indexed(self, target, length=None, *, node, **options):
        """dib_receive_indexed(): to a Walk, which may have a list; `length` None: its whole
        length.
        """
        self._issue(
            library().dib_receive_indexed,
            self._delivery(node, **options),
            target.as_side(),
            whole("length", target.length if length is None else length),
        )

    def atomic(self, opcode, key, offset, operand, *, node, size=8, compare=0, mask=0, **options):
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

    def fetch_add(self, key, offset, operand, *, node, **options):
        """The old value is in the completion's `value`."""
        self.atomic(OPCODE.FETCH_ADD, key, offset, operand, node=node, **options)

    def compare_swap(self, key, offset, compare, operand, *, node, **options):
        """Store `operand` if the value is `compare`."""
        self.atomic(
            OPCODE.COMPARE_SWAP, key, offset, operand, compare=compare, node=node, **options
        )

    def submit(self, command, tag=0):
        """dib_submit(): the SLOT_BYTES of a command, unchanged."""
        found = contiguous("command", command)
        if len(found) != C.SLOT_BYTES:
            raise ValueError(f"command has {len(found)} bytes; a slot has {C.SLOT_BYTES}")
        self._issue(library().dib_submit, found.tobytes(), whole("tag", tag))

    def _issue(self, function, *values):
        self._caller.now(function, self._handle, *values)

    @staticmethod
    def _contiguous_sides(source_key, source_offset, target_key, target_offset):
        return (
            whole("source_key", source_key),
            whole("source_offset", source_offset),
            whole("target_key", target_key),
            whole("target_offset", target_offset),
        )

    def poll(self, limit=16):
        """Completions that have come, as a list."""
        return self._look(library().dib_poll, Completion, self._completions, whole("limit", limit))

    def poll_events(self, limit=16):
        """Events that have come, as a list."""
        return self._look(library().dib_poll_events, Event, self._events, whole("limit", limit))

    def _look(self, function, kind, before, limit):
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

    def wait(self, timeout_ns=FOR_EVER):
        """Sleep until there is an entry to poll; False if the time has passed. Ctrl-C ends it with
        KeyboardInterrupt.
        """
        if self._completions or self._events:
            return True
        timeout_ns, handle = whole("timeout_ns", timeout_ns), self._handle
        return self._caller.wait(
            lambda ns: check(library().dib_wait(handle, ns)) == 1, timeout_ns, STEP_NS
        )

    def mailbox(self, **sizes):
        """Open a Mailbox. From now on it owns the endpoint's commands, completions and events."""
        return Mailbox(self, **sizes)

    def event_fd(self):
        """dib_event_fd(): a descriptor that becomes readable at an interrupt of this endpoint."""
        return self._caller.long(lambda: check(library().dib_event_fd(self._handle)))

    def clock(self):
        """The time: now_ps, cpu_ps, simulated, free."""
        clock = Clock()
        self._caller.long(lambda: check(library().dib_clock_now(self._handle, clock)))
        return clock

    @contextlib.contextmanager
    def outside_clock(self):
        """Leave the simulator's clock while the program waits for something else."""
        handle = self._handle
        enter = lambda: check(library().dib_clock_enter(handle))
        self._caller.long(lambda: check(library().dib_clock_leave(handle)), undo=lambda _: enter())
        try:
            yield
        finally:
            self._caller.long(enter)

    @staticmethod
    def _delivery(
        node,
        tag=0,
        notice=None,
        endpoint=0,
        interrupt=False,
        solicit=False,
        fence=False,
        checksum=False,
    ):
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
