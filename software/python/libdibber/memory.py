# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Memory that a card reaches: regions, and rows of arrays by an index."""

import ctypes
import weakref

import numpy as np

from dibber.interface.description import C, RIGHT
from libdibber.binding import Pages, check, library
from libdibber.walk import List, Walk


def alloc(length):
    """`length` zeroed bytes that a simulated card reaches without messages, as a NumPy array of bytes.

    The memory lives as long as the array or a view of it.
    """
    address = ctypes.c_void_p()
    check(library().dib_alloc(length, ctypes.byref(address)))
    memory = (ctypes.c_uint8*length).from_address(address.value)
    weakref.finalize(memory, library().dib_free, address.value)
    return np.frombuffer(memory, dtype=np.uint8)


class Handle:
    """What is opened and closed once."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Registered(Handle):
    """A handle of registered memory, and its `key`."""

    def _enter(self, endpoint):
        self.key = library().dib_key(self._handle)
        self._endpoint = endpoint

    def close(self):
        handle, self._handle = self._handle, ctypes.c_void_p()
        if self in self._endpoint.regions:
            self._endpoint.regions.remove(self)
        check(library().dib_unregister(handle))


class PagedRegion(_Registered):
    """Registered pages; made by Endpoint.register_pages(). It holds the arrays, so that the memory stays."""

    def __init__(self, endpoint, pages, shift, first, length, rights):
        self.pages = list(pages)
        described  = Pages(count=len(self.pages), shift=shift, first=first,
                           length=(len(self.pages) << shift) - first if length is None else length)
        if all(isinstance(page, int) for page in self.pages):
            described.bus = (ctypes.c_uint64*len(self.pages))(*self.pages)
        else:
            if any(page is not None and (page.nbytes != 1 << shift or not page.flags.c_contiguous) for page in self.pages):
                raise ValueError(f"an array of 2^{shift} bytes for each page")
            described.memory = (ctypes.c_void_p*len(self.pages))(
                *[page if page is None else page.__array_interface__["data"][0] for page in self.pages])
        self._handle = ctypes.c_void_p()
        check(library().dib_register_pages(endpoint._handle, described, rights, ctypes.byref(self._handle)))
        self._enter(endpoint)


class Region(_Registered):
    """Registered memory; made by Endpoint.register(). It holds the array, so that the memory stays."""

    def __init__(self, endpoint, memory, rights):
        if not memory.flags.c_contiguous:
            raise ValueError("register the whole array, then walk over a part of it")
        self.memory  = memory
        self.address = memory.__array_interface__["data"][0]
        self._handle = ctypes.c_void_p()
        check(library().dib_register(endpoint._handle, self.address, memory.nbytes, rights,
                                     ctypes.byref(self._handle)))
        self._enter(endpoint)
        endpoint.regions.append(self)

    def holds(self, array):
        """Whether every byte of `array` lies in this memory."""
        first = last = array.__array_interface__["data"][0]
        for count, stride in zip(array.shape, array.strides):
            first += min(0, (count - 1)*stride)
            last  += max(0, (count - 1)*stride)
        return self.address <= first and last + array.itemsize <= self.address + self.memory.nbytes

    def walk(self, array):
        """The Walk over `array`, a view of the registered memory."""
        return Walk.of(self.key, array, self.address)


class Indexed(Handle):
    """Rows of an array, in the order of an index; made by Endpoint.indexed(). What NumPy takes as an index of one axis is one.

    Attributes
    ----------
    walk    : the Walk over them: what another node must be told to put there or get from there
    entries : the list, a NumPy array of distances in bytes from the first row. While no transfer uses it, it may be changed
    region  : of the list
    """

    def __init__(self, endpoint, array, index):
        owner  = endpoint._region_of(array)
        places = np.arange(len(array))[index].ravel()
        row    = owner.walk(array[:1])
        if len(row.levels) > C.LIST_LEVELS:
            raise ValueError(f"a row of this array needs {len(row.levels)} stride levels, {C.LIST_LEVELS} are possible")
        memory          = alloc(max(1, len(places))*C.LIST_ENTRY_BYTES)
        self.entries    = memory.view(np.int64)[:len(places)]
        self.entries[:] = places*array.strides[0]
        self.region     = endpoint.register(memory, RIGHT.LOCAL_READ)
        self.walk       = Walk(row.key, row.block, row.offset, row.levels, List(self.region.key, len(places)))

    def close(self):
        self.region.close()
