"""Cards as objects; they and their endpoints may be used in a `with` statement."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Iterable
from typing import Any, SupportsIndex

from dibber.interface.description import DOORBELL, HOST, C

from libdibber import arguments
from libdibber.arguments import U32, Memory, Name, contiguous, host_register, switch, whole
from libdibber.background import Caller, Worker
from libdibber.binding import (
    CardInfo,
    CardOptions,
    FlashInfo,
    Network,
    Peer,
    Routes,
    Way,
    check,
    library,
)
from libdibber.endpoint import Endpoint
from libdibber.late import np
from libdibber.memory import Handle


def routes_to(network: Network, node: SupportsIndex) -> tuple[int, ...]:
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


def circle_of(
    network: Network, ways: Iterable[tuple[int, int, int]] | None = None
) -> list[tuple[int, int]]:
    """Outputs of switches, (switch, port), that routes let wait for one another; [] if these routes
    cannot deadlock.

    ways : (source node, target node, route) of each; None: all that routes_to() gives to all nodes
    """
    if not isinstance(network, Network):
        raise TypeError(f"network = {network!r} is not what Card.map() gives")
    circle = (Peer * (len(network.sw) * len(network.sw[0].peer)))()
    given = None if ways is None else [Way(*way) for way in ways]
    array = None if given is None else (Way * max(1, len(given)))(*given)
    count = check(library().dib_network_circle(network, array, len(given or ()), circle))
    return [(output.number, output.port) for output in circle[:count]]


# The interpreter's end ----------------------------------------------------------------------------

# Cards that are open. They hold references to the memory that they can reach, so it stays until
# they are closed.
_open_cards: set[Card] = set()

CLOSE_SECONDS = 2


@atexit.register
def _close_cards() -> None:
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

    def __init__(self, uri: Name, iova_base: SupportsIndex = 0, observe: bool = False) -> None:
        options = CardOptions(whole("iova_base", iova_base), switch("observe", observe))
        encoded = arguments.path("uri", uri)
        handle = self._handle = ctypes.c_void_p()
        self._caller = Caller(simulated=encoded.startswith(b"sim:"))
        self._process = os.getpid()
        self._reachable: set[Handle] = set()  # memory
        self._callers: list[Caller] = []  # of endpoints with own_clock

        def open_it() -> None:
            check(library().dib_open(encoded, options, ctypes.byref(handle)))
            _open_cards.add(self)

        self._caller.long(open_it, undo=lambda _: self._close())

    def close(self) -> None:
        """Close the card: it reaches no memory of this program afterwards. dib_close()."""
        self._caller.long(self._close)
        self._caller.end()
        for caller in self._callers:
            caller.end()

    def _close(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        library().dib_close(handle)
        _open_cards.discard(self)
        self._reachable.clear()

    def _is_busy(self) -> bool:
        return any(caller.is_busy for caller in (self._caller, *self._callers))

    def _ask(self, function: Any, *values: Any) -> int:
        """A call that waits for an answer of the card."""
        return self._caller.long(lambda: check(function(self._handle, *values)))

    def info(self) -> dict[str, Any]:
        """Identity, geometry, state and `counters` (by name) as a dictionary."""
        raw = CardInfo()
        self._ask(library().dib_card_info, raw)
        info = {name: getattr(raw, name) for name, *_ in CardInfo._fields_ if name != "counters"}
        info["counters"] = {c.name.decode(): c.value for c in raw.counters}
        return info

    def read_register(self, name: str, index: SupportsIndex = 0) -> int:
        """A register of bank `host` by its name; `index` where there are several."""
        value = ctypes.c_uint32()
        self._ask(library().dib_register_read, host_register(name, index), value)
        return value.value

    def board(self) -> str:
        """The name of its board, or "" if the card does not report it."""
        words = (self.read_register("BOARD", n) for n in range(HOST["BOARD"].count))
        return (
            b"".join(word.to_bytes(4, "little") for word in words)
            .rstrip(b"\0")
            .decode("ascii", "replace")
        )

    def write_register(self, name: str, value: SupportsIndex) -> None:
        """Write a register of bank `host` by its name."""
        self._ask(library().dib_register_write, host_register(name), whole("value", value))

    def set_node(self, node: SupportsIndex) -> None:
        """Set the card's node number, before its control program is loaded."""
        self._ask(library().dib_node_set, whole("node", node, kind="map node"))

    def load_firmware(self, path: Name) -> None:
        """Load and start a control program."""
        self._ask(library().dib_firmware_load, arguments.path("path", path))

    @property
    def sram_bytes(self) -> int:
        """Bytes of the control program's SRAM. It asks nothing of the card."""
        return library().dib_firmware_size(self._handle)

    def read_firmware(self, offset: SupportsIndex, length: SupportsIndex) -> bytes:
        """Bytes of the control program's SRAM."""
        offset, length = (
            whole("offset", offset, kind="firmware offset"),
            whole("length", length, kind="firmware length"),
        )
        data = np.zeros(length, dtype=np.uint8)
        self._ask(library().dib_firmware_read, offset, arguments.address(data), length)
        return data.tobytes()

    def write_firmware(self, offset: SupportsIndex, data: Memory) -> None:
        """Write the bytes of an object: for tests of a control program whose memory changes."""
        offset, found = whole("offset", offset, kind="firmware offset"), contiguous("data", data)
        self._ask(library().dib_firmware_write, offset, arguments.address(found), len(found))

    def read_doorbell(self, endpoint: SupportsIndex, name: str) -> int:
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

    def flash_info(self) -> FlashInfo:
        """dib_flash_info(): jedec, bytes, status."""
        info = FlashInfo()
        self._ask(library().dib_flash_info, info)
        return info

    def flash_allow(self, address: SupportsIndex, length: SupportsIndex) -> None:
        """dib_flash_allow(): set the part that may be changed."""
        self._ask(
            library().dib_flash_allow,
            whole("address", address),
            whole("length", length, kind="flash length"),
        )

    def flash_read(self, address: SupportsIndex, length: SupportsIndex) -> bytes:
        """dib_flash_read(): bytes of the flash."""
        address, length = whole("address", address), whole("length", length, kind="flash length")
        data = np.zeros(length, dtype=np.uint8)  # takes no memory until bytes are read
        self._ask(library().dib_flash_read, address, arguments.address(data), length)
        return data.tobytes()

    def flash_erase(self, address: SupportsIndex, length: SupportsIndex) -> None:
        """dib_flash_erase(): whole sectors."""
        self._ask(
            library().dib_flash_erase,
            whole("address", address),
            whole("length", length, kind="flash length"),
        )

    def flash_write(self, address: SupportsIndex, data: Memory) -> None:
        """dib_flash_write(): the bytes of an object, from a page's start on."""
        address, found = whole("address", address), contiguous("data", data)
        self._ask(library().dib_flash_write, address, arguments.address(found), len(found))

    # Network --------------------------------------------------------------------------------------

    def scout(
        self, route: SupportsIndex = 0, back: SupportsIndex = 0, timeout: SupportsIndex = 2500
    ) -> int:
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

    def ask_switch(
        self, route: SupportsIndex = 0, back: SupportsIndex = 0, question: SupportsIndex = 0
    ) -> int:
        """A word of the switch at the end of a route; `question` as for dib_switch_ask()."""
        word = ctypes.c_uint32()
        self._ask(
            library().dib_switch_ask,
            whole("route", route),
            whole("back", back),
            whole("question", question),
            word,
        )
        return word.value

    def map(self, attempts: SupportsIndex = 1) -> Network:
        """Hosts and switches that the card can reach, as a libdibber.binding.Network."""
        network = Network()
        self._ask(library().dib_network_map, whole("attempts", attempts), network)
        return network

    def set_route(
        self, node: SupportsIndex, place: SupportsIndex, route: SupportsIndex | None
    ) -> None:
        """Enter a route to a node; None removes it."""
        self._ask(
            library().dib_route_set,
            whole("node", node, kind="map node"),
            whole("place", place),
            0 if route is None else whole("route", route),
            route is not None,
        )

    def routes(self, node: SupportsIndex) -> tuple[list[int | None], int, int, int]:
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

    def endpoint(
        self,
        number: SupportsIndex,
        cq_entries: SupportsIndex = 0,
        eq_entries: SupportsIndex = 0,
        own_clock: bool = False,
    ) -> Endpoint:
        """Open endpoint `number`; `own_clock` when another thread than the card's drives it."""
        return Endpoint(self, number, cq_entries, eq_entries, own_clock)
