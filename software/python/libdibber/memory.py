"""Memory that a card reaches: regions, and rows of arrays by an index."""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import abc
import ctypes
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Self, SupportsIndex, cast

from dibber.interface.description import RIGHT, C

from libdibber import arguments
from libdibber.arguments import WRITE_RIGHTS, Memory, whole
from libdibber.binding import Pages, check, library
from libdibber.late import np
from libdibber.walk import List, Walk

LEAST, MOST = 12, 30  # log2 of a page's bytes, dib_register_pages()

READ_ONLY = (
    ": rights that let somebody write need memory that may be written. Give "
    "rights=Right.LOCAL_READ, or with Right.REMOTE_READ"
)


def alloc(length: SupportsIndex) -> np.ndarray:
    """`length` zeroed bytes that a simulated card reaches without messages, as a NumPy array of
    bytes.

    The memory lives as long as the array or a view of it.
    """
    length = whole("length", length, kind="alloc length")
    address = ctypes.c_void_p()
    check(library().dib_alloc(length, ctypes.byref(address)))
    memory = (ctypes.c_uint8 * length).from_address(address.value or 0)
    # Not at the interpreter's end: a card that is still open may reach the memory, and the system
    # frees it anyway.
    weakref.finalize(memory, library().dib_free, address.value).atexit = False
    return np.frombuffer(memory, dtype=np.uint8)  # type: ignore[call-overload]


class Handle(abc.ABC):
    """An object that is opened and closed once."""

    @abc.abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _hold(data: Memory) -> list:
    """An object that keeps the memory of another one in its place, beside a reference to it.

    A buffer export, which contiguous() takes, does that for all objects except NumPy's arrays.
    ndarray.resize() moves memory in spite of exports, but refuses an array with a weak reference.
    """
    held = []
    while isinstance(data, np.ndarray):
        held.append(weakref.ref(data))
        data = data.base
    return held


class _Registered(Handle):
    """A handle of registered memory, and its `key`.

    The endpoint's card holds a reference to it until it is closed or the card is. So the memory
    stays while the card can reach it, even if the program keeps no reference.
    """

    key: int
    rights: int

    def _open(self, endpoint: Any, call: Callable[[Any], int], kept: Any) -> None:
        """Register by call(handle), and keep `kept` alive from before the card can reach it."""
        handle = ctypes.c_void_p()
        self._endpoint, self._kept = endpoint, kept

        def register() -> None:
            check(call(ctypes.byref(handle)))
            self._handle, self.key = handle, library().dib_key(handle)
            endpoint.regions.append(self)
            endpoint.card._reachable.add(self)

        endpoint._caller.long(register, undo=lambda _: self._withdraw())

    def _withdraw(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        try:
            check(library().dib_unregister(handle))
        finally:
            # The library guarantees that the card no longer reaches the memory, even if the card
            # did not answer.
            if self in self._endpoint.regions:
                self._endpoint.regions.remove(self)
            self._endpoint.card._reachable.discard(self)

    def close(self) -> None:
        """Unregister it: the card no longer reaches the memory. dib_unregister()."""
        self._endpoint._caller.long(self._withdraw)

    def holds(self, array: np.ndarray) -> bool:
        return False


class PagedRegion(_Registered):
    """Registered pages; made by Endpoint.register_pages(). It holds the arrays, so their memory
    stays.
    """

    def __init__(
        self,
        endpoint: Any,
        pages: Iterable[Memory | SupportsIndex | None],
        shift: SupportsIndex,
        first: SupportsIndex,
        length: SupportsIndex | None,
        rights: SupportsIndex,
    ) -> None:
        self.pages = list(pages)
        shift = whole("shift", shift)
        size = 1 << min(shift, 31)  # the library refuses larger ones
        count = whole("the number of pages", len(self.pages), *arguments.RANGES["count"])
        first = whole("first", first)
        rights = self.rights = whole("rights", rights)
        if length is None:
            length = max(0, count * size - first)
        described = Pages(
            count=count,
            shift=shift,
            first=first,
            length=whole("length", length, kind="region length"),
        )
        kept: list[Any] = []
        if all(page is not None and not _has_bytes(page) for page in self.pages):
            described.bus = (ctypes.c_uint64 * count)(
                *[
                    whole(f"pages[{n}]", cast(SupportsIndex, page), kind="page")
                    for n, page in enumerate(self.pages)
                ]
            )
        else:
            for n, page in enumerate(self.pages):
                kept.append(
                    page
                    if page is None
                    else self._bytes_of(f"pages[{n}]", page, size, rights, LEAST <= shift <= MOST)
                )
            described.memory = (ctypes.c_void_p * count)(
                *[page if page is None else arguments.address(page) for page in kept]
            )
            kept += [_hold(page) for page in self.pages]
        self._open(
            endpoint,
            lambda handle: library().dib_register_pages(
                endpoint._handle, described, rights, handle
            ),
            kept,
        )

    @staticmethod
    def _bytes_of(name: str, page: Memory, size: int, rights: int, possible: bool) -> np.ndarray:
        found = (
            arguments.writeable(name, page, READ_ONLY)
            if rights & WRITE_RIGHTS
            else arguments.contiguous(name, page)
        )
        if possible and len(found) != size:
            raise ValueError(
                f"{name} has {len(found)} bytes: an array of {size} bytes for each page"
            )
        return found


def _has_bytes(page: Any) -> bool:
    """Whether a page is memory rather than a bus address. NumPy's integers have a buffer, too."""
    if isinstance(page, np.generic):
        return False
    try:
        memoryview(page)
    except (TypeError, ValueError):
        return isinstance(page, np.ndarray)
    return True


class Region(_Registered):
    """Registered memory; made by Endpoint.register(). It holds the memory, so the memory stays.

    Attributes
    ----------
    memory : the registered object
    key    : names it in walks, here and on other nodes
    rights : Right, or'ed
    """

    def __init__(self, endpoint: Any, memory: Memory, rights: SupportsIndex) -> None:
        self.rights = rights = whole("rights", rights)
        if rights & WRITE_RIGHTS:
            found = arguments.writeable("memory", memory, READ_ONLY)
        else:
            found = arguments.contiguous("memory", memory)
        if not len(found):
            raise ValueError("memory has no bytes: there is nothing to register")
        self.memory = memory
        self.address = arguments.address(found)
        self.nbytes = len(found)
        self._open(
            endpoint,
            lambda handle: library().dib_register(
                endpoint._handle, self.address, self.nbytes, rights, handle
            ),
            (found, _hold(memory)),
        )

    def holds(self, array: np.ndarray) -> bool:
        """Whether every byte of `array` lies in this memory; True for an array without bytes."""
        if array.nbytes == 0:
            return True
        first = last = arguments.address(array)
        for count, stride in zip(array.shape, array.strides):
            first += min(0, (count - 1) * stride)
            last += max(0, (count - 1) * stride)
        return self.address <= first and last + array.itemsize <= self.address + self.nbytes

    def walk(self, array: np.ndarray) -> Walk:
        """The Walk over `array`, a view of the registered memory."""
        return Walk.of(self.key, array, self.address)


class Indexed(Handle):
    """Rows of an array, in the order of an index; made by Endpoint.indexed(). An index is anything
    that NumPy takes as an index of one axis.

    Attributes
    ----------
    walk    : the Walk over them, for another node to put there or get from there
    entries : the list, a NumPy array of distances in bytes from the first row. While no transfer
              uses it, it may be changed
    region  : of the list
    array   : the array of the rows
    """

    def __init__(self, endpoint: Any, array: np.ndarray, index: Any) -> None:
        owner = endpoint._region_of(array)
        places = np.arange(len(array))[index].ravel()
        row = owner.walk(array[:1])
        if len(row.levels) > C.LIST_LEVELS:
            raise ValueError(
                f"a row of this array needs {len(row.levels)} stride levels, {C.LIST_LEVELS} are "
                f"possible"
            )
        memory = alloc(max(1, len(places)) * C.LIST_ENTRY_BYTES)
        self.array = array
        self.entries = memory.view(np.int64)[: len(places)]
        self.entries[:] = places * array.strides[0]
        self.region = endpoint.register(memory, RIGHT.LOCAL_READ)
        self.walk = Walk(
            row.key, row.block, row.offset, row.levels, List(self.region.key, len(places))
        )

    def close(self) -> None:
        self.region.close()
