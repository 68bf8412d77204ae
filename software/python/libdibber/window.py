"""Remote windows: loads and stores that reach another node's memory.

window = endpoint.window(key, 1 << 20, node=1)
window.store(8, (42).to_bytes(8, "little"))
window.barrier()                  # the value is in the other node's memory
window.load(8, 8)
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import ctypes
from typing import Any, SupportsIndex, TypedDict

from libdibber import arguments
from libdibber.arguments import Memory, contiguous, switch, whole
from libdibber.binding import WindowOptions, check, library
from libdibber.late import np
from libdibber.memory import Handle

LOAD, STORE, ADD = 1, 2, 4  # enum dib_window_access


class How(TypedDict, total=False):
    """What Endpoint.window() maps.

    load, store : what is allowed; both are by default
    add         : a load of 4 or 8 bytes adds this, and returns the value before
    """

    load: bool
    store: bool
    add: SupportsIndex | None


class Window(Handle):
    """A window; made by Endpoint.window().

    Attributes
    ----------
    array : the window as a NumPy array of bytes, where the processor reaches the card by itself;
            else None. It must not be used after close()
    """

    def __init__(
        self,
        endpoint: Any,
        key: SupportsIndex,
        length: SupportsIndex,
        offset: SupportsIndex,
        node: SupportsIndex,
        load: bool = True,
        store: bool = True,
        add: SupportsIndex | None = None,
    ) -> None:
        access = (LOAD if switch("load", load) else 0) | (STORE if switch("store", store) else 0)
        options = WindowOptions(
            offset=whole("offset", offset),
            length=whole("length", length, kind="window length"),
            key=whole("key", key),
            node=whole("node", node),
            addend=0 if add is None else whole("add", add),
            access=access if add is None else access | ADD,
        )
        handle = self._handle = ctypes.c_void_p()
        self._caller = endpoint._caller
        self._caller.long(
            lambda: check(
                library().dib_window_map(endpoint._handle, options, ctypes.byref(handle))
            ),
            undo=lambda _: library().dib_window_unmap(handle),
        )
        self.array: np.ndarray | None = None
        place = library().dib_window_pointer(handle)
        if place:
            memory = (ctypes.c_uint8 * options.length).from_address(place)
            self.array = np.frombuffer(memory, dtype=np.uint8)  # type: ignore[call-overload]

    def close(self) -> None:
        """Wait for its stores, and give it back. dib_window_unmap()."""
        handle, self._handle, self.array = self._handle, ctypes.c_void_p(), None
        self._caller.long(lambda: check(library().dib_window_unmap(handle)))

    def store(self, offset: SupportsIndex, data: Memory) -> None:
        """Store one value of 1, 2, 4 or 8 bytes, as an assignment does. dib_window_store()."""
        self._write(library().dib_window_store, offset, data)

    def copy(self, offset: SupportsIndex, data: Memory) -> None:
        """Store all bytes of an object, by whole lines of 64 bytes. dib_window_copy()."""
        self._write(library().dib_window_copy, offset, data)

    def _write(self, function: Any, offset: SupportsIndex, data: Memory) -> None:
        found, handle = contiguous("data", data), self._handle
        place = whole("offset", offset, kind="window offset")
        self._caller.long(
            lambda: check(function(handle, place, arguments.address(found), len(found)))
        )

    def load(self, offset: SupportsIndex, length: SupportsIndex) -> bytes:
        """Load bytes. dib_window_load()."""
        place = whole("offset", offset, kind="window offset")
        data, handle = np.zeros(whole("length", length), dtype=np.uint8), self._handle
        self._caller.long(
            lambda: check(
                library().dib_window_load(handle, place, arguments.address(data), len(data))
            )
        )
        return data.tobytes()

    def flush(self) -> None:
        """Let all stores before it leave now. dib_window_flush()."""
        self._ask(library().dib_window_flush)

    def barrier(self) -> None:
        """Wait for all stores before it; raise DibberError for a fault. dib_window_barrier()."""
        self._ask(library().dib_window_barrier)

    def check(self) -> None:
        """Raise DibberError for a fault since the last check or barrier. dib_window_check()."""
        self._ask(library().dib_window_check)

    def _ask(self, function: Any) -> None:
        handle = self._handle
        self._caller.long(lambda: check(function(handle)))
