"""dibber/dibber.h in ctypes. tests/software/test_binding.py compares every size and offset with the
C compiler's.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import (
    POINTER,
    c_char_p,
    c_int,
    c_int16,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

from dibber.interface.description import COUNTERS, STATUS, C
from dibber.interface.sizes import PLACE

# Errors -------------------------------------------------------------------------------------------

ERRORS = (
    "ARGUMENT",
    "NOT_FOUND",
    "IDENTITY",
    "VERSION",
    "PROTOCOL",
    "LOST",
    "AGAIN",
    "TIMEOUT",
    "NO_MEMORY",
    "FIRMWARE_FILE",
    "FIRMWARE_CRC",
    "FIRMWARE_START",
    "NO_FIRMWARE",
    "LIMIT",
    "IN_USE",
    "COMMAND",
    "CLOSED",
    "CLOCK",
    "SYSTEM",
    "HALTED",
    "FLASH",
    "FORKED",
    "DENIED",
)


class DibberError(Exception):
    """A libdibber call failed.

    Attributes
    ----------
    code   : the negative number
    name   : "NOT_FOUND" …, without DIB_ERR_
    reason : dib_last_reason()
    """

    def __init__(self, code: int, meaning: str, reason: str) -> None:
        super().__init__(f"{meaning}: {reason}" if reason else meaning)
        self.code, self.reason = code, reason
        self.name = ERRORS[-code - 1] if 0 < -code <= len(ERRORS) else str(code)


# Structures ---------------------------------------------------------------------------------------


class CardOptions(ctypes.Structure):
    _fields_ = [("iova_base", c_uint64), ("observe", c_uint32), ("reserved", c_uint32)]


class Counter(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_uint32)]


class CardInfo(ctypes.Structure):
    _fields_ = [
        *(
            (name, c_uint32)
            for name in (
                "interface_version",
                "interface_hash",
                "features",
                "build",
                "clock_hz",
                "endpoints",
                "slots",
                "regions",
                "nodes",
                "data_width",
                "sram_bytes",
                "image_limit",
                "node",
                "mcp_state",
                "mcp_identity",
                "link_state",
                "link_stopped",
                "max_payload",
                "max_request",
            )
        ),
        ("cycles", c_uint64),
        ("simulated_clock", c_uint32),
        ("copies", c_uint32),
        ("shared_bytes", c_uint32),
        ("counters", Counter * len(COUNTERS)),
    ]


class FlashInfo(ctypes.Structure):
    _fields_ = [("jedec", c_uint32), ("bytes", c_uint32), ("status", c_uint32)]


class EndpointOptions(ctypes.Structure):
    _fields_ = [("cq_entries", c_uint32), ("eq_entries", c_uint32), ("own_clock", c_uint32)]


class Pages(ctypes.Structure):
    _fields_ = [
        ("memory", POINTER(c_void_p)),
        ("bus", POINTER(c_uint64)),
        ("length", c_uint64),
        ("count", c_uint32),
        ("shift", c_uint32),
        ("first", c_uint32),
    ]


class CWalk(ctypes.Structure):
    _fields_ = [
        ("key", c_uint32),
        ("block", c_uint32),
        ("offset", c_uint64),
        ("levels", c_uint32),
        ("count", c_uint32 * C.LEVELS),
        ("stride", c_int64 * C.LEVELS),
    ]


class CSide(ctypes.Structure):
    _fields_ = [("walk", CWalk), ("list_offset", c_uint64), ("list_key", c_uint32)]


class Delivery(ctypes.Structure):
    _fields_ = [
        ("tag", c_uint64),
        ("node", c_uint16),
        ("endpoint", c_uint8),
        ("flags", c_uint8),
        ("notice", c_uint32),
    ]


class Atomic(ctypes.Structure):
    _fields_ = [
        ("opcode", c_uint32),
        ("size", c_uint32),
        ("key", c_uint32),
        ("offset", c_uint64),
        ("operand", c_uint64),
        ("compare", c_uint64),
        ("mask", c_uint64),
    ]


class Completion(ctypes.Structure):
    """tag, cycles (card's clock), value (atomics: before; CHECKSUM), length (bytes), node, status
    (enum status).
    """

    _fields_ = [
        ("tag", c_uint64),
        ("cycles", c_uint64),
        ("value", c_uint64),
        ("length", c_uint32),
        ("node", c_uint16),
        ("status", c_uint8),
    ]

    @property
    def status_name(self) -> str:
        """ "OK", "REMOTE_BOUNDS" …: the name of `status`."""
        return STATUS.name_of(self.status)

    def __repr__(self) -> str:
        return (
            f"<Completion {self.status_name}, tag {self.tag}, node {self.node}, {self.length} "
            f"bytes, value {self.value:#x}, "
            f"cycle {self.cycles}>"
        )


class Event(ctypes.Structure):
    """cycles (card's clock), notice (its value), length (bytes), key, overruns, node."""

    _fields_ = [
        ("cycles", c_uint64),
        ("notice", c_uint32),
        ("length", c_uint32),
        ("key", c_uint32),
        ("overruns", c_uint32),
        ("node", c_uint16),
    ]

    def __repr__(self) -> str:
        return (
            f"<Event notice {self.notice}, node {self.node}, {self.length} bytes, key "
            f"{self.key:#x}, overruns {self.overruns}, "
            f"cycle {self.cycles}>"
        )


class Clock(ctypes.Structure):
    """now_ps, cpu_ps (picoseconds), simulated, free."""

    _fields_ = [
        ("now_ps", c_uint64),
        ("cpu_ps", c_uint64),
        ("simulated", c_uint32),
        ("free", c_uint32),
    ]

    def __repr__(self) -> str:
        kind = (
            "simulated time" + (", with a client without the clock" if self.free else "")
            if self.simulated
            else "the system's time"
        )
        return (
            f"<Clock {self.now_ps / 1e6:.6f} µs of {kind}, {self.cpu_ps / 1e6:.6f} µs of CPU "
            f"charged>"
        )


class Peer(ctypes.Structure):
    """The other end of a cable; `kind` is one of PEERS."""

    _fields_ = [("kind", c_uint8), ("port", c_uint8), ("number", c_uint16)]


PEERS = ("none", "host", "switch")


class Switch(ctypes.Structure):
    _fields_ = [
        ("ports", c_uint8),
        ("level", c_uint8),
        ("tells", c_uint8),
        ("first", c_uint8),
        ("peer", Peer * 16),
    ]


class Network(ctypes.Structure):
    """own, truncated, uplink (by link), links, hosts and conflicts (a bit for each node), scouts,
    switches, sw.
    """

    _fields_ = [
        ("own", c_uint16),
        ("truncated", c_uint16),
        ("uplink", Peer * 2),
        ("links", c_uint32),
        ("hosts", c_uint64),
        ("conflicts", c_uint64),
        ("scouts", c_uint32),
        ("switches", c_uint32),
        ("sw", Switch * 16),
    ]


class Way(ctypes.Structure):
    """A route between two nodes of a map."""

    _fields_ = [("source", c_uint16), ("target", c_uint16), ("route", c_uint32)]


class Routes(ctypes.Structure):
    """route, valid (a bit for each of them), current, heard (card's clock, low word), changes."""

    _fields_ = [
        ("route", c_uint32 * C.ROUTES),
        ("valid", c_uint32),
        ("current", c_uint32),
        ("heard", c_uint32),
        ("changes", c_uint32),
    ]


class MailboxOptions(ctypes.Structure):
    _fields_ = [
        ("peers", c_uint32),
        ("slots", c_uint32),
        ("slot_bytes", c_uint32),
        ("max_length", c_uint32),
    ]


class MailboxAddress(ctypes.Structure):
    _fields_ = [
        ("key", c_uint32),
        ("node", c_uint16),
        ("endpoint", c_uint16),
        ("slots", c_uint32),
        ("slot_bytes", c_uint32),
        ("max_length", c_uint32),
    ]


class Message(ctypes.Structure):
    """peer, length (bytes)."""

    _fields_ = [("peer", c_uint32), ("length", c_uint32)]


class WindowOptions(ctypes.Structure):
    _fields_ = [
        ("offset", c_uint64),
        ("length", c_uint64),
        ("key", c_uint32),
        ("node", c_uint16),
        ("addend", c_int16),
        ("access", c_uint32),
    ]


STRUCTURES = {
    "dib_card_options": CardOptions,
    "dib_counter": Counter,
    "dib_card_info": CardInfo,
    "dib_endpoint_options": EndpointOptions,
    "dib_pages": Pages,
    "dib_walk": CWalk,
    "dib_side": CSide,
    "dib_delivery": Delivery,
    "dib_atomic": Atomic,
    "dib_completion": Completion,
    "dib_event": Event,
    "dib_clock": Clock,
    "dib_neighbour": Peer,
    "dib_switch": Switch,
    "dib_network": Network,
    "dib_way": Way,
    "dib_routes": Routes,
    "dib_mailbox_options": MailboxOptions,
    "dib_mailbox_address": MailboxAddress,
    "dib_message": Message,
    "dib_window_options": WindowOptions,
}

# Functions ----------------------------------------------------------------------------------------

_SIGNATURES = {
    "dib_strerror": (c_char_p, [c_int]),
    "dib_last_reason": (c_char_p, []),
    "dib_version": (c_char_p, []),
    "dib_open": (c_int, [c_char_p, POINTER(CardOptions), POINTER(c_void_p)]),
    "dib_close": (c_int, [c_void_p]),
    "dib_card_info": (c_int, [c_void_p, POINTER(CardInfo)]),
    "dib_register_read": (c_int, [c_void_p, c_uint32, POINTER(c_uint32)]),
    "dib_register_write": (c_int, [c_void_p, c_uint32, c_uint32]),
    "dib_node_set": (c_int, [c_void_p, c_uint]),
    "dib_firmware_load": (c_int, [c_void_p, c_char_p]),
    "dib_firmware_read": (c_int, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "dib_firmware_size": (c_uint32, [c_void_p]),
    "dib_firmware_write": (c_int, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "dib_doorbell_read": (c_int, [c_void_p, c_uint, c_uint32, POINTER(c_uint32)]),
    "dib_endpoint_open": (c_int, [c_void_p, c_uint, POINTER(EndpointOptions), POINTER(c_void_p)]),
    "dib_endpoint_close": (c_int, [c_void_p]),
    "dib_event_fd": (c_int, [c_void_p]),
    "dib_alloc": (c_int, [c_size_t, POINTER(c_void_p)]),
    "dib_free": (None, [c_void_p]),
    "dib_register": (c_int, [c_void_p, c_void_p, c_size_t, c_uint, POINTER(c_void_p)]),
    "dib_register_pages": (c_int, [c_void_p, POINTER(Pages), c_uint, POINTER(c_void_p)]),
    "dib_key": (c_uint32, [c_void_p]),
    "dib_unregister": (c_int, [c_void_p]),
    "dib_put": (
        c_int,
        [c_void_p, POINTER(Delivery), c_uint32, c_uint64, c_uint32, c_uint64, c_uint32],
    ),
    "dib_put_strided": (c_int, [c_void_p, POINTER(Delivery), POINTER(CWalk), POINTER(CWalk)]),
    "dib_put_inline": (
        c_int,
        [c_void_p, POINTER(Delivery), c_void_p, c_uint32, c_uint64, c_uint32],
    ),
    "dib_get": (
        c_int,
        [c_void_p, POINTER(Delivery), c_uint32, c_uint64, c_uint32, c_uint64, c_uint32],
    ),
    "dib_get_strided": (c_int, [c_void_p, POINTER(Delivery), POINTER(CWalk), POINTER(CWalk)]),
    "dib_send": (c_int, [c_void_p, POINTER(Delivery), c_uint32, c_uint64, c_uint32]),
    "dib_send_strided": (c_int, [c_void_p, POINTER(Delivery), POINTER(CWalk)]),
    "dib_receive": (c_int, [c_void_p, POINTER(Delivery), c_uint32, c_uint64, c_uint32]),
    "dib_receive_strided": (c_int, [c_void_p, POINTER(Delivery), POINTER(CWalk)]),
    "dib_put_indexed": (
        c_int,
        [c_void_p, POINTER(Delivery), POINTER(CSide), POINTER(CSide), c_uint32],
    ),
    "dib_get_indexed": (
        c_int,
        [c_void_p, POINTER(Delivery), POINTER(CSide), POINTER(CSide), c_uint32],
    ),
    "dib_send_indexed": (c_int, [c_void_p, POINTER(Delivery), POINTER(CSide), c_uint32]),
    "dib_receive_indexed": (c_int, [c_void_p, POINTER(Delivery), POINTER(CSide), c_uint32]),
    "dib_atomic": (c_int, [c_void_p, POINTER(Delivery), POINTER(Atomic)]),
    "dib_submit": (c_int, [c_void_p, c_char_p, c_uint64]),
    "dib_poll": (c_int, [c_void_p, POINTER(Completion), c_int]),
    "dib_poll_events": (c_int, [c_void_p, POINTER(Event), c_int]),
    "dib_wait": (c_int, [c_void_p, c_uint64]),
    "dib_scout": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32, POINTER(c_uint)]),
    "dib_switch_ask": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32, POINTER(c_uint32)]),
    "dib_network_map": (c_int, [c_void_p, c_uint, POINTER(Network)]),
    "dib_network_routes": (c_int, [POINTER(Network), c_uint, POINTER(c_uint32)]),
    "dib_network_circle": (c_int, [POINTER(Network), POINTER(Way), c_uint, POINTER(Peer)]),
    "dib_route_set": (c_int, [c_void_p, c_uint, c_uint, c_uint32, c_int]),
    "dib_routes_get": (c_int, [c_void_p, c_uint, POINTER(Routes)]),
    "dib_flash_info": (c_int, [c_void_p, POINTER(FlashInfo)]),
    "dib_flash_allow": (c_int, [c_void_p, c_uint32, c_uint32]),
    "dib_flash_read": (c_int, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "dib_flash_erase": (c_int, [c_void_p, c_uint32, c_uint32]),
    "dib_flash_write": (c_int, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "dib_clock_leave": (c_int, [c_void_p]),
    "dib_clock_pause": (c_int, [c_void_p]),
    "dib_clock_enter": (c_int, [c_void_p]),
    "dib_clock_act_for": (None, [c_int]),
    "dib_clock_now": (c_int, [c_void_p, POINTER(Clock)]),
    "dib_clock_charge": (c_int, [c_void_p, c_uint32, c_uint32]),
    "dib_mailbox_open": (c_int, [c_void_p, POINTER(MailboxOptions), POINTER(c_void_p)]),
    "dib_mailbox_close": (c_int, [c_void_p]),
    "dib_mailbox_address": (c_int, [c_void_p, c_uint32, POINTER(MailboxAddress)]),
    "dib_mailbox_connect": (c_int, [c_void_p, c_uint32, POINTER(MailboxAddress)]),
    "dib_mailbox_send": (c_int, [c_void_p, c_uint32, c_void_p, c_uint32]),
    "dib_mailbox_receive": (c_int, [c_void_p, c_void_p, c_uint32, POINTER(Message)]),
    "dib_mailbox_wait": (c_int, [c_void_p, c_uint, c_uint64]),
    "dib_window_map": (c_int, [c_void_p, POINTER(WindowOptions), POINTER(c_void_p)]),
    "dib_window_unmap": (c_int, [c_void_p]),
    "dib_window_pointer": (c_void_p, [c_void_p]),
    "dib_window_store": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "dib_window_copy": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "dib_window_flush": (c_int, [c_void_p]),
    "dib_window_load": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t]),
    "dib_window_check": (c_int, [c_void_p]),
    "dib_window_barrier": (c_int, [c_void_p]),
}

_library: ctypes.CDLL | None = None


def library_path() -> str | None:
    """The path of libdibber.so: $LIBDIBBER, else the build folder of this source tree, else the
    system's.
    """
    if "LIBDIBBER" in os.environ:
        return os.environ["LIBDIBBER"]
    build = pathlib.Path(__file__).resolve().parents[3] / "build"
    built = build / PLACE / "lib" / "libdibber.so"
    return str(built) if built.exists() else ctypes.util.find_library("dibber")


def library() -> ctypes.CDLL:
    """The loaded library. If there is none, raises OSError, which says what to build."""
    global _library
    if _library is None:
        path = library_path()
        if path is None:
            raise OSError(
                "libdibber.so is not built: run 'make -C software/lib', or set LIBDIBBER to its "
                "path"
            )
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        _library = loaded
    return _library


def version() -> str:
    """The library's version, and the interface's that it speaks, as text. dib_version()."""
    return library().dib_version().decode()


def check(code: int) -> int:
    """Return `code` if it is no error; else raise DibberError."""
    if code < 0:
        lib = library()
        raise DibberError(
            code,
            lib.dib_strerror(code).decode(),
            lib.dib_last_reason().decode(errors="surrogateescape"),
        )
    return code
