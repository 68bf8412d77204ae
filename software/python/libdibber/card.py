# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Cards and endpoints as objects; each may be used in a `with` statement."""

import contextlib
import ctypes
import os

from dibber.interface.description import C, DOORBELL, FLAG, HOST, OPCODE, RIGHT
from libdibber.binding import (Atomic, CardInfo, CardOptions, Clock, Completion, Delivery, EndpointOptions, Event, FlashInfo, Network,
                               Routes, check, library)
from libdibber.mailbox import Mailbox
from libdibber.memory import Handle, Indexed, PagedRegion, Region
from libdibber.walk import Walk

FOR_EVER = (1 << 64) - 1


def routes_to(network, node):
    """Ways to a node of a map that cannot deadlock, the best first; () where there is none."""
    routes = (ctypes.c_uint32*C.ROUTES)()
    return tuple(routes[:check(library().dib_network_routes(network, node, routes))])


class Card(Handle):
    """A card, opened by its URI ("sim:PATH_OF_SOCKET", "vfio:0000:01:00.0" or "uart:/dev/ttyUSB1").

    iova_base : first bus address that the library gives to memory; 0: below 4 GiB
    observe   : watch and administer a card that another program may be driving
    """

    def __init__(self, uri, iova_base=0, observe=False):
        self._handle = ctypes.c_void_p()
        check(library().dib_open(os.fsencode(uri), CardOptions(iova_base, observe), ctypes.byref(self._handle)))

    def close(self):
        handle, self._handle = self._handle, ctypes.c_void_p()
        library().dib_close(handle)

    def info(self):
        """Identity, geometry, state and `counters` (by name) as a dictionary."""
        raw = CardInfo()
        check(library().dib_card_info(self._handle, raw))
        info = {name: getattr(raw, name) for name, _ in CardInfo._fields_ if name != "counters"}
        info["counters"] = {c.name.decode(): c.value for c in raw.counters}
        return info

    def read_register(self, name, index=0):
        """A register of bank `host` by its name; `index` where there are several."""
        value = ctypes.c_uint32()
        check(library().dib_register_read(self._handle, HOST[name].offset + 4*index, value))
        return value.value

    def board(self):
        """The name of its board, "" where it does not tell."""
        words = (self.read_register("BOARD", n) for n in range(HOST["BOARD"].count))
        return b"".join(word.to_bytes(4, "little") for word in words).rstrip(b"\0").decode("ascii", "replace")

    def write_register(self, name, value):
        check(library().dib_register_write(self._handle, HOST[name].offset, value))

    def set_node(self, node):
        check(library().dib_node_set(self._handle, node))

    def load_firmware(self, path):
        check(library().dib_firmware_load(self._handle, os.fsencode(path)))

    @property
    def sram_bytes(self):
        """Bytes of the control program's SRAM. It asks nothing of the card."""
        return library().dib_firmware_size(self._handle)

    def read_firmware(self, offset, length):
        """Bytes of the control program's SRAM."""
        data = ctypes.create_string_buffer(length)
        check(library().dib_firmware_read(self._handle, offset, data, length))
        return data.raw

    def write_firmware(self, offset, data):
        """Write bytes into it: what a program does that finds its memory changed."""
        check(library().dib_firmware_write(self._handle, offset, bytes(data), len(data)))

    def read_doorbell(self, endpoint, name):
        """A register of bank `doorbell` of an endpoint, open or not."""
        value = ctypes.c_uint32()
        check(library().dib_doorbell_read(self._handle, endpoint, DOORBELL[name].offset, value))
        return value.value

    # Flash ----------------------------------------------------------------------------------------

    def flash_info(self):
        """dib_flash_info(): jedec, bytes, status."""
        info = FlashInfo()
        check(library().dib_flash_info(self._handle, info))
        return info

    def flash_allow(self, address, length):
        check(library().dib_flash_allow(self._handle, address, length))

    def flash_read(self, address, length):
        data = ctypes.create_string_buffer(length)
        check(library().dib_flash_read(self._handle, address, data, length))
        return data.raw

    def flash_erase(self, address, length):
        check(library().dib_flash_erase(self._handle, address, length))

    def flash_write(self, address, data):
        check(library().dib_flash_write(self._handle, address, bytes(data), len(data)))

    # Network --------------------------------------------------------------------------------------

    def scout(self, route=0, back=0, timeout=2500):
        """Number of the node at the end of a route; `timeout` in the card's cycles."""
        node = ctypes.c_uint()
        check(library().dib_scout(self._handle, route, back, timeout, node))
        return node.value

    def map(self, attempts=1):
        """What the card can reach, as a libdibber.binding.Network."""
        network = Network()
        check(library().dib_network_map(self._handle, attempts, network))
        return network

    def set_route(self, node, place, route):
        """Enter a route to a node, None for taking it out."""
        check(library().dib_route_set(self._handle, node, place, route or 0, route is not None))

    def routes(self, node):
        """What the control program knows: (routes by place, None where there is none; current place, age in cycles, changes)."""
        known = Routes()
        check(library().dib_routes_get(self._handle, node, known))
        age = (self.read_register("CYCLES_LOW") - known.heard) & 0xffffffff
        return ([route if known.valid >> n & 1 else None for n, route in enumerate(known.route)], known.current, age,
                known.changes)

    # Endpoints ------------------------------------------------------------------------------------

    def endpoint(self, number, cq_entries=0, eq_entries=0, own_clock=False):
        """Open endpoint `number`; `own_clock` when another thread than the card's drives it."""
        return Endpoint(self, number, cq_entries, eq_entries, own_clock)


class Endpoint(Handle):
    """An endpoint of a card; made by Card.endpoint().

    regions : memory that is registered here
    """

    def __init__(self, card, number, cq_entries, eq_entries, own_clock):
        options = EndpointOptions(cq_entries, eq_entries, own_clock)
        self.card, self.number, self.regions = card, number, []
        self._handle = ctypes.c_void_p()
        check(library().dib_endpoint_open(card._handle, number, options, ctypes.byref(self._handle)))

    def close(self):
        handle, self._handle = self._handle, ctypes.c_void_p()
        library().dib_endpoint_close(handle)

    def register(self, memory, rights=RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE):
        """Register a contiguous NumPy array."""
        return Region(self, memory, rights)

    def register_pages(self, pages, shift, first=0, length=None, rights=RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE):
        """dib_register_pages(): NumPy arrays of a page each, None where there is none; or their bus addresses.

        `length` None: up to the last page's end.
        """
        return PagedRegion(self, pages, shift, first, length, rights)

    # `options` of the transfers: those of _delivery().

    def put(self, source_key, source_offset, target_key, target_offset, length, *, node, **options):
        """dib_put(): contiguous. `notice` is the value for the target's `endpoint`, None for no notice."""
        check(library().dib_put(self._handle, self._delivery(node, **options),
                                source_key, source_offset, target_key, target_offset, length))

    def put_strided(self, source, target, *, node, **options):
        """dib_put_strided(): from one Walk to another."""
        check(library().dib_put_strided(self._handle, self._delivery(node, **options), source.as_c(), target.as_c()))

    def put_indexed(self, source, target, length=None, *, node, **options):
        """dib_put_indexed(): between Walks of which either may have a list. `length` None: that of both."""
        check(library().dib_put_indexed(self._handle, self._delivery(node, **options), source.as_side(), target.as_side(),
                                        self._length_of(source, target) if length is None else length))

    def get_indexed(self, source, target, length=None, *, node, **options):
        """dib_get_indexed(): from a Walk on `node` to one here. As put_indexed()."""
        check(library().dib_get_indexed(self._handle, self._delivery(node, **options), source.as_side(), target.as_side(),
                                        self._length_of(source, target) if length is None else length))

    @staticmethod
    def _length_of(source, target):
        if source.length != target.length:
            raise ValueError(f"the source has {source.length} bytes, the target {target.length}")
        return source.length

    def put_array(self, target, array, offset=0, *, node, **options):
        """Deposit an array as it lies, a column say: its strides become the walk.

        `array` is a view of memory that is registered here, or what indexed() made of one. `target` is a Walk, or a key:
        then the elements follow each other there from `offset` on.
        """
        walk  = self._walk_over(array)
        other = self._other_side(target, offset, walk)
        (self.put_indexed if walk.list or other.list else self.put_strided)(walk, other, node=node, **options)

    def get_array(self, source, array, offset=0, *, node, **options):
        """Fetch into an array as it lies. As put_array(), the other way round."""
        walk  = self._walk_over(array)
        other = self._other_side(source, offset, walk)
        (self.get_indexed if walk.list or other.list else self.get_strided)(other, walk, node=node, **options)

    def indexed(self, array, index):
        """`array[index]` as it lies, along the first axis: for put_array() and get_array(), or for who names it from another
        node. Nothing is copied but the index, which becomes a registered list; it lives until that is closed.
        """
        return Indexed(self, array, index)

    def _walk_over(self, array):
        return array.walk if isinstance(array, Indexed) else self._region_of(array).walk(array)

    def _region_of(self, array):
        for region in self.regions:
            if region.holds(array):
                return region
        raise ValueError("the array's memory is not registered at this endpoint")

    @staticmethod
    def _other_side(where, offset, walk):
        return where if isinstance(where, Walk) else Walk(where, walk.length, offset)

    def put_inline(self, data, target_key, target_offset, *, node, **options):
        """dib_put_inline(): `data` is bytes, at most INLINE_BYTES."""
        check(library().dib_put_inline(self._handle, self._delivery(node, **options), bytes(data),
                                       target_key, target_offset, len(data)))

    def get(self, source_key, source_offset, target_key, target_offset, length, *, node, **options):
        """dib_get(): contiguous."""
        check(library().dib_get(self._handle, self._delivery(node, **options),
                                source_key, source_offset, target_key, target_offset, length))

    def get_strided(self, source, target, *, node, **options):
        """dib_get_strided(): from a Walk on `node` to one here."""
        check(library().dib_get_strided(self._handle, self._delivery(node, **options), source.as_c(), target.as_c()))

    def send(self, source_key, source_offset, length, *, node, **options):
        """dib_send(): contiguous, to the next receive of the other node's `endpoint` from here."""
        check(library().dib_send(self._handle, self._delivery(node, **options), source_key, source_offset, length))

    def send_strided(self, source, *, node, **options):
        """dib_send_strided(): from a Walk."""
        check(library().dib_send_strided(self._handle, self._delivery(node, **options), source.as_c()))

    def send_indexed(self, source, length=None, *, node, **options):
        """dib_send_indexed(): from a Walk, which may have a list; `length` None: all of it."""
        check(library().dib_send_indexed(self._handle, self._delivery(node, **options), source.as_side(),
                                         source.length if length is None else length))

    def receive(self, target_key, target_offset, length, *, node, **options):
        """dib_receive(): contiguous, what the other node's `endpoint` sends here next."""
        check(library().dib_receive(self._handle, self._delivery(node, **options), target_key, target_offset, length))

    def receive_strided(self, target, *, node, **options):
        """dib_receive_strided(): to a Walk, which a shorter message fills from its start."""
        check(library().dib_receive_strided(self._handle, self._delivery(node, **options), target.as_c()))

    def receive_indexed(self, target, length=None, *, node, **options):
        """dib_receive_indexed(): to a Walk, which may have a list; `length` None: as much as it takes."""
        check(library().dib_receive_indexed(self._handle, self._delivery(node, **options), target.as_side(),
                                            target.length if length is None else length))

    def atomic(self, opcode, key, offset, operand, *, node, size=8, compare=0, mask=0, **options):
        """dib_atomic(): `opcode` is FETCH_ADD, SWAP, COMPARE_SWAP or MASKED_SWAP of enum opcode."""
        check(library().dib_atomic(self._handle, self._delivery(node, **options),
                                   Atomic(opcode, size, key, offset, operand, compare, mask)))

    def fetch_add(self, key, offset, operand, *, node, **options):
        """The value before is in the completion's `value`."""
        self.atomic(OPCODE.FETCH_ADD, key, offset, operand, node=node, **options)

    def compare_swap(self, key, offset, compare, operand, *, node, **options):
        """Store `operand` if the value is `compare`."""
        self.atomic(OPCODE.COMPARE_SWAP, key, offset, operand, compare=compare, node=node, **options)

    def submit(self, command, tag=0):
        """dib_submit(): a command of 128 bytes as it stands."""
        check(library().dib_submit(self._handle, bytes(command), tag))

    def poll(self, limit=16):
        """Completions that are there, as a list."""
        entries = (Completion*limit)()
        return entries[:check(library().dib_poll(self._handle, entries, limit))]

    def poll_events(self, limit=16):
        """Events that are there, as a list."""
        entries = (Event*limit)()
        return entries[:check(library().dib_poll_events(self._handle, entries, limit))]

    def wait(self, timeout_ns=FOR_EVER):
        """Sleep until there is something to poll; False when the time is over."""
        return check(library().dib_wait(self._handle, timeout_ns)) == 1

    def mailbox(self, **sizes):
        """Open a Mailbox, to which the endpoint's commands, completions and events belong from now on."""
        return Mailbox(self, **sizes)

    def event_fd(self):
        return check(library().dib_event_fd(self._handle))

    def clock(self):
        """The time: now_ps, cpu_ps, simulated, free."""
        clock = Clock()
        check(library().dib_clock_now(self._handle, clock))
        return clock

    @contextlib.contextmanager
    def outside_clock(self):
        """Leave the simulator's clock for as long as the program waits for something else."""
        check(library().dib_clock_leave(self._handle))
        try:
            yield
        finally:
            check(library().dib_clock_enter(self._handle))

    @staticmethod
    def _delivery(node, tag=0, notice=None, endpoint=0, interrupt=False, solicit=False, fence=False, checksum=False):
        """Flags as the operation knows them; `notice` None for none."""
        flags = FLAG.FENCE*fence | FLAG.CHECKSUM*checksum
        if notice is not None:
            flags |= FLAG.NOTICE
        if interrupt:
            flags |= FLAG.INTERRUPT
        if solicit:
            flags |= FLAG.SOLICIT
        return Delivery(tag, node, endpoint, flags, notice or 0)
