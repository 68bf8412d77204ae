"""Provoke each error that dibber.h documents for a call. The list of cases comes from the header,
so a documented error that is not provoked here fails.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import errno
import os
import pathlib
import re
import resource
import sys

import pytest
from dibber.interface.description import COMMAND, HOST, OPCODE, STATUS, C
from libdibber import binding
from libdibber.binding import (
    Atomic,
    CardInfo,
    CardOptions,
    Clock,
    Completion,
    CSide,
    CWalk,
    Delivery,
    Event,
    MailboxAddress,
    Message,
    Pages,
    library,
)

from tests.gateware.models.flash import Flash
from tests.software.mock_card import encode
from tests.software.mock_vfio_user import (
    DMA_MAP,
    DMA_UNMAP,
    ERROR,
    HEADER,
    REGION_INFO,
    REGION_READ,
    REPLY,
    SET_IRQS,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "software" / "lib" / "man"))

from header import Header  # noqa: E402

HEADER_FILE = ROOT / "software" / "lib" / "include" / "dibber" / "dibber.h"
FUNCTIONS = Header(HEADER_FILE).functions
CASES = [(name, error) for name, function in FUNCTIONS.items() for error in function.errors]

SCRATCH = HOST["SCRATCH"].offset
NOP = encode(COMMAND, opcode=OPCODE.NOP)
MEMORY = ctypes.create_string_buffer(8192)  # reached by message
PAGES = Pages(
    memory=(ctypes.c_void_p * 2)(None, (ctypes.addressof(MEMORY) + 4095) & ~4095),
    count=2,
    shift=12,
    length=8192,
)

# Calls that succeed, on a mock as `prepare` leaves it ---------------------------------------------

walk, swap = CWalk(key=1, block=8), Atomic(opcode=OPCODE.SWAP, size=8, key=1)
side = CSide(walk=walk, list_key=2)

CALLS = {
    "dib_close": lambda lib, m: lib.dib_close(m.card),
    "dib_endpoint_close": lambda lib, m: lib.dib_endpoint_close(m.endpoint),
    "dib_mailbox_close": lambda lib, m: lib.dib_mailbox_close(m.mailbox),
    "dib_open": lambda lib, m: lib.dib_open(m.uri.encode(), CardOptions(), ctypes.c_void_p()),
    "dib_card_info": lambda lib, m: lib.dib_card_info(m.card, CardInfo()),
    "dib_register_read": lambda lib, m: lib.dib_register_read(m.card, SCRATCH, ctypes.c_uint32()),
    "dib_register_write": lambda lib, m: lib.dib_register_write(m.card, SCRATCH, 1),
    "dib_node_set": lambda lib, m: lib.dib_node_set(m.card, 1),
    "dib_firmware_load": lambda lib, m: lib.dib_firmware_load(m.card, m.image.encode()),
    "dib_doorbell_read": lambda lib, m: lib.dib_doorbell_read(m.card, 1, 0, ctypes.c_uint32()),
    "dib_firmware_write": lambda lib, m: lib.dib_firmware_write(m.card, 0, MEMORY, 4),
    "dib_firmware_read": lambda lib, m: lib.dib_firmware_read(m.card, 0, MEMORY, 4),
    "dib_endpoint_open": lambda lib, m: lib.dib_endpoint_open(m.card, 2, None, ctypes.c_void_p()),
    "dib_alloc": lambda lib, m: lib.dib_alloc(m.length, ctypes.c_void_p()),
    "dib_register": lambda lib, m: lib.dib_register(m.endpoint, MEMORY, 4096, 1, ctypes.c_void_p()),
    "dib_register_pages": lambda lib, m: lib.dib_register_pages(
        m.endpoint, PAGES, 1, ctypes.c_void_p()
    ),
    "dib_unregister": lambda lib, m: lib.dib_unregister(m.region),
    "dib_put": lambda lib, m: lib.dib_put(m.endpoint, Delivery(), 1, 0, 1, 0, 8),
    "dib_put_strided": lambda lib, m: lib.dib_put_strided(m.endpoint, Delivery(), walk, walk),
    "dib_put_inline": lambda lib, m: lib.dib_put_inline(
        m.endpoint, Delivery(), b"12345678", 1, 0, 8
    ),
    "dib_get": lambda lib, m: lib.dib_get(m.endpoint, Delivery(), 1, 0, 1, 0, 8),
    "dib_get_strided": lambda lib, m: lib.dib_get_strided(m.endpoint, Delivery(), walk, walk),
    "dib_send": lambda lib, m: lib.dib_send(m.endpoint, Delivery(), 1, 0, 8),
    "dib_send_strided": lambda lib, m: lib.dib_send_strided(m.endpoint, Delivery(), walk),
    "dib_receive": lambda lib, m: lib.dib_receive(m.endpoint, Delivery(), 1, 0, 8),
    "dib_receive_strided": lambda lib, m: lib.dib_receive_strided(m.endpoint, Delivery(), walk),
    "dib_put_indexed": lambda lib, m: lib.dib_put_indexed(m.endpoint, Delivery(), side, side, 64),
    "dib_get_indexed": lambda lib, m: lib.dib_get_indexed(m.endpoint, Delivery(), side, side, 64),
    "dib_send_indexed": lambda lib, m: lib.dib_send_indexed(m.endpoint, Delivery(), side, 64),
    "dib_receive_indexed": lambda lib, m: lib.dib_receive_indexed(m.endpoint, Delivery(), side, 64),
    "dib_atomic": lambda lib, m: lib.dib_atomic(m.endpoint, Delivery(), swap),
    "dib_submit": lambda lib, m: lib.dib_submit(m.endpoint, NOP, 0),
    "dib_poll": lambda lib, m: lib.dib_poll(m.endpoint, Completion(), 1),
    "dib_poll_events": lambda lib, m: lib.dib_poll_events(m.endpoint, Event(), 1),
    "dib_wait": lambda lib, m: lib.dib_wait(m.endpoint, 0),
    "dib_event_fd": lambda lib, m: lib.dib_event_fd(m.endpoint),
    "dib_scout": lambda lib, m: lib.dib_scout(m.card, 0, 0, 100, ctypes.c_uint()),
    "dib_switch_ask": lambda lib, m: lib.dib_switch_ask(m.card, 0, 0, 0, ctypes.c_uint32()),
    "dib_network_map": lambda lib, m: lib.dib_network_map(m.card, 1, m.network),
    "dib_network_routes": lambda lib, m: lib.dib_network_routes(
        m.network, 1, (ctypes.c_uint32 * C.ROUTES)()
    ),
    "dib_network_circle": lambda lib, m: lib.dib_network_circle(m.network, None, 0, None),
    "dib_route_set": lambda lib, m: lib.dib_route_set(m.card, 2, 0, 0, 1),
    "dib_routes_get": lambda lib, m: lib.dib_routes_get(m.card, 2, binding.Routes()),
    "dib_flash_info": lambda lib, m: lib.dib_flash_info(m.card, binding.FlashInfo()),
    "dib_flash_allow": lambda lib, m: lib.dib_flash_allow(m.card, 0, 1 << 16),
    "dib_flash_read": lambda lib, m: lib.dib_flash_read(m.card, 0, MEMORY, 1000),
    "dib_flash_erase": lambda lib, m: lib.dib_flash_erase(m.card, 0, 1 << 16),
    "dib_flash_write": lambda lib, m: lib.dib_flash_write(m.card, 0, bytes(1000), 1000),
    "dib_clock_leave": lambda lib, m: lib.dib_clock_leave(m.endpoint),
    "dib_clock_pause": lambda lib, m: lib.dib_clock_pause(m.endpoint),
    "dib_clock_enter": lambda lib, m: lib.dib_clock_enter(m.endpoint),
    "dib_clock_now": lambda lib, m: lib.dib_clock_now(m.endpoint, Clock()),
    "dib_clock_charge": lambda lib, m: lib.dib_clock_charge(m.endpoint, 1, 1),
    "dib_mailbox_open": lambda lib, m: lib.dib_mailbox_open(
        m.endpoint, None, ctypes.byref(m.mailbox)
    ),
    "dib_mailbox_address": lambda lib, m: lib.dib_mailbox_address(
        m.mailbox, m.peer, MailboxAddress()
    ),
    "dib_mailbox_connect": lambda lib, m: lib.dib_mailbox_connect(m.mailbox, m.peer, m.address),
    "dib_mailbox_send": lambda lib, m: lib.dib_mailbox_send(m.mailbox, m.peer, MEMORY, 8),
    "dib_mailbox_receive": lambda lib, m: lib.dib_mailbox_receive(
        m.mailbox, MEMORY, m.length, m.message and Message()
    ),
    "dib_mailbox_wait": lambda lib, m: lib.dib_mailbox_wait(m.mailbox, 1 + 4 * m.peer, m.timeout),
}

UNLOADED = ("dib_node_set", "dib_firmware_load")  # want a card without a control program


class Mock:
    """Raw handles on a mock: card, endpoint (1), region. They are closed at the end in any case."""

    def __init__(self, served, image, iova_base):
        self.lib, self.device, self.server, self.uri = (
            library(),
            served.device,
            served.server,
            served.uri,
        )
        self.new_image, self.image, self.iova_base = image, image(), iova_base
        self.card, self.endpoint, self.region = (
            ctypes.c_void_p(),
            ctypes.c_void_p(),
            ctypes.c_void_p(),
        )
        self.child, self.closes = False, False
        self.opened, self.length, self.network = None, 4096, binding.Network()
        self.mailbox, self.address, self.peer, self.message = (
            ctypes.c_void_p(),
            MailboxAddress(),
            0,
            True,
        )
        self.timeout = 0

    def prepare(self, name):
        """Bring it to the state in which the call `name` succeeds."""
        self.closes = name == "dib_endpoint_close"
        if name == "dib_open":
            return
        self.device.fit_flash(Flash())
        self.device.switch = {0: C.SWITCH_SIGNATURE} if name == "dib_switch_ask" else None
        binding.check(
            self.lib.dib_open(
                self.uri.encode(), CardOptions(self.iova_base), ctypes.byref(self.card)
            )
        )
        if name in UNLOADED:
            return
        binding.check(self.lib.dib_firmware_load(self.card, self.image.encode()))
        binding.check(self.lib.dib_endpoint_open(self.card, 1, None, ctypes.byref(self.endpoint)))
        if name.startswith("dib_mailbox_") and name != "dib_mailbox_open":
            # Its own peer.
            binding.check(
                self.lib.dib_mailbox_open(self.endpoint, None, ctypes.byref(self.mailbox))
            )
            binding.check(self.lib.dib_mailbox_address(self.mailbox, 0, self.address))
            if name != "dib_mailbox_connect":
                binding.check(self.lib.dib_mailbox_connect(self.mailbox, 0, self.address))
        if name in ("dib_flash_erase", "dib_flash_write"):
            binding.check(self.lib.dib_flash_allow(self.card, 0, 1 << 16))
        if name == "dib_unregister":
            binding.check(
                self.lib.dib_register(self.endpoint, MEMORY, 4096, 1, ctypes.byref(self.region))
            )

    def refuse(self, *commands):
        """Let the server answer these with an error."""
        self.server.tamper = lambda command, m: (
            HEADER.pack(
                int.from_bytes(m[:2], "little"), command, HEADER.size, REPLY | ERROR, errno.EIO
            )
            if command in commands
            else None
        )

    def forget(self):
        """The call gets no handles; close() does."""
        self.opened = self.endpoint, self.card
        self.endpoint, self.card, self.network = ctypes.c_void_p(), ctypes.c_void_p(), None

    def call_in_child(self, name):
        """What the call returns in a child of this process."""
        child = os.fork()
        if child == 0:
            os._exit(-CALLS[name](self.lib, self) & 0xFF)
        return -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def close(self):
        self.server.tamper = None
        endpoint, card = self.opened or (self.endpoint, self.card)
        self.device.silent, self.device.fail_clock = False, 0
        self.lib.dib_mailbox_close(self.mailbox)
        self.lib.dib_endpoint_close(endpoint)
        self.lib.dib_close(card)


# How each error is provoked -----------------------------------------------------------------------


def closed(m):
    """The mailbox, or else the card with all its objects; a region alone, because it may be closed
    as an orphan.
    """
    for close in (m.lib.dib_unregister, m.lib.dib_mailbox_close):
        handle = m.region if close is m.lib.dib_unregister else m.mailbox
        assert close(handle) == 0
    if m.closes:
        assert m.lib.dib_endpoint_close(m.endpoint) == 0
    assert m.lib.dib_close(m.card) == 0


def forked(m):
    """The call is made in a child of this process."""
    m.child = True


def other_kind(m):
    m.opened = m.endpoint, m.card
    m.card, m.endpoint, m.region, m.mailbox = m.endpoint, m.card, m.card, m.card


def timeout(m):
    m.device.silent = True


def distrusted(m):
    """The control program once did not answer."""
    m.device.silent = True
    assert m.lib.dib_register(m.endpoint, MEMORY, 4096, 1, ctypes.c_void_p()) == -8
    m.device.silent = False


def halted(m):
    """The program stopped by itself, and the library has found that out."""
    m.device.halt()
    assert m.lib.dib_wait(m.endpoint, 2_000_000) == -20


def clock(m):
    # Silent, so that an administrator's command must be waited for.
    m.device.silent, m.device.fail_clock = True, errno.EBUSY


def full(m):
    m.device.silent = True
    for _ in range(C.SLOTS):
        binding.check(m.lib.dib_submit(m.endpoint, NOP, 0))


def all_regions(m):
    for _ in range(C.REGIONS):
        binding.check(m.lib.dib_register(m.endpoint, MEMORY, 4096, 1, ctypes.c_void_p()))


def no_descriptor(m):
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (lowest, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )


def set_device(**attributes):
    return lambda m: [setattr(m.device, name, value) for name, value in attributes.items()]


def set_register(name, value):
    return lambda m: m.device.registers.update({HOST[name].offset: value})


def set_image(**header):
    return lambda m: setattr(m, "image", m.new_image(**header))


def peer_is(status):
    """A message to the peer ended so."""

    def provoke(m):
        m.device._execute = lambda *_: status
        binding.check(m.lib.dib_mailbox_send(m.mailbox, 0, MEMORY, 8))
        assert m.lib.dib_mailbox_wait(m.mailbox, 1, 1000) == 1

    return provoke


def hostile_peer(m):
    m.server.write_memory(
        m.device.regions[m.address.key]["base"] + m.address.slots * m.address.slot_bytes,
        bytes([255]),
    )


def lost_peer(then=lambda m: None, under_way=False):
    """The mailbox has given its peer up, with or without a command to it under way; `then` comes
    behind that.
    """

    def provoke(m):
        if m.lib.dib_mailbox_connect(m.mailbox, 0, m.address) == 0:
            binding.check(m.lib.dib_mailbox_address(m.mailbox, 0, m.address))
        m.device.silent = under_way
        binding.check(m.lib.dib_mailbox_send(m.mailbox, 0, MEMORY, 8))
        m.lib.dib_mailbox_wait(m.mailbox, 1, 1000)
        hostile_peer(m)
        assert m.lib.dib_mailbox_send(m.mailbox, 0, MEMORY, 8) == -(
            1 + binding.ERRORS.index("PROTOCOL")
        )
        then(m)

    return provoke


def told(status):
    """The only peer's end was told, and the call waits for ever."""

    def provoke(m):
        peer_is(status)(m)
        assert m.lib.dib_mailbox_receive(m.mailbox, MEMORY, m.length, Message()) < 0
        m.timeout = 2**64 - 1

    return provoke


def full_mailbox(m):
    for _ in range(m.address.slots):
        binding.check(m.lib.dib_mailbox_send(m.mailbox, 0, MEMORY, 8))


def full_and_no_clock(m):
    full_mailbox(m)
    m.device.fail_clock = errno.EBUSY


def lost_with_a_full_mailbox(m):
    full_mailbox(m)
    m.server.disconnect()


def no_flash(m):
    """The card that is opened next has none."""
    m.device.registers[HOST["FEATURES"].offset] = 0
    m.lib.dib_endpoint_close(m.endpoint)
    m.lib.dib_close(m.card)
    m.endpoint, m.card = ctypes.c_void_p(), ctypes.c_void_p()
    binding.check(m.lib.dib_open(m.uri.encode(), CardOptions(), ctypes.byref(m.card)))


def set_flash(**attributes):
    return lambda m: [setattr(m.device.flash, name, value) for name, value in attributes.items()]


def commands_under_way(m):
    binding.check(m.lib.dib_submit(m.endpoint, NOP, 0))


EVERYWHERE = {
    **{
        (name, "ARGUMENT"): other_kind
        for name in ("dib_close", "dib_endpoint_close", "dib_unregister", "dib_mailbox_close")
    },
    "ARGUMENT": Mock.forget,
    "LOST": lambda m: m.server.disconnect(),
    "PROTOCOL": lambda m: setattr(
        m.server, "tamper", lambda command, _: HEADER.pack(0, command, 3, REPLY, 0)
    ),
    "SYSTEM": lambda m: m.refuse(REGION_READ, REGION_INFO, DMA_MAP, DMA_UNMAP, SET_IRQS),
    "CLOSED": closed,
    "FORKED": forked,
    "TIMEOUT": timeout,
    "NO_FIRMWARE": distrusted,
    "HALTED": halted,
    "CLOCK": clock,
    "COMMAND": set_device(_administer=lambda command: STATUS.IN_USE),
    "AGAIN": full,
    "NO_MEMORY": no_descriptor,
}

HERE = {
    **{
        (name, "ARGUMENT"): other_kind
        for name in ("dib_close", "dib_endpoint_close", "dib_unregister", "dib_mailbox_close")
    },
    ("dib_open", "ARGUMENT"): lambda m: setattr(m, "uri", "card:1"),
    ("dib_open", "NOT_FOUND"): lambda m: setattr(m, "uri", "vfio:0000:ff:1f.7"),
    ("dib_open", "IDENTITY"): set_register("MAGIC", 1),
    ("dib_open", "VERSION"): set_register("INTERFACE_HASH", 1),
    ("dib_open", "LOST"): lambda m: setattr(m.server, "tamper", lambda *_: m.server.disconnect()),
    ("dib_firmware_load", "NOT_FOUND"): lambda m: setattr(m, "image", m.image + ".none"),
    ("dib_firmware_load", "FIRMWARE_FILE"): set_image(magic=1),
    ("dib_firmware_load", "VERSION"): set_image(hash=1),
    ("dib_firmware_load", "FIRMWARE_CRC"): set_device(flips=100),
    ("dib_firmware_load", "FIRMWARE_START"): set_device(identity=0),
    ("dib_endpoint_open", "IN_USE"): lambda m: binding.check(
        m.lib.dib_endpoint_open(m.card, 2, None, ctypes.c_void_p())
    ),
    ("dib_register", "LIMIT"): all_regions,
    ("dib_register_pages", "LIMIT"): all_regions,
    ("dib_scout", "NOT_FOUND"): set_device(neighbour=None),
    ("dib_switch_ask", "NOT_FOUND"): set_device(switch=None),
    ("dib_alloc", "ARGUMENT"): lambda m: setattr(m, "length", 0),
    ("dib_mailbox_open", "LIMIT"): all_regions,
    ("dib_mailbox_open", "IN_USE"): commands_under_way,
    ("dib_mailbox_connect", "IN_USE"): lambda m: binding.check(
        m.lib.dib_mailbox_connect(m.mailbox, 0, m.address)
    ),
    ("dib_mailbox_send", "AGAIN"): full_mailbox,
    ("dib_mailbox_send", "CLOCK"): full_and_no_clock,
    ("dib_mailbox_send", "LOST"): lost_with_a_full_mailbox,
    ("dib_mailbox_receive", "ARGUMENT"): lambda m: setattr(m, "message", None),
    **{
        (f"dib_mailbox_{call}", error): lost_peer(EVERYWHERE.get(error, lambda m: None))
        for call in ("address", "connect")
        for error in (
            "LIMIT",
            "NO_FIRMWARE",
            "COMMAND",
            "TIMEOUT",
            "CLOCK",
            "LOST",
            "PROTOCOL",
            "SYSTEM",
        )
    },
    **{
        (f"dib_mailbox_{call}", "AGAIN"): lost_peer(under_way=True)
        for call in ("address", "connect")
    },
    ("dib_mailbox_wait", "TIMEOUT"): told(STATUS.TIMEOUT),
    ("dib_mailbox_wait", "COMMAND"): told(STATUS.REMOTE_BOUNDS),
    **{
        (f"dib_flash_{call}", "NOT_FOUND"): no_flash
        for call in ("info", "allow", "read", "erase", "write")
    },
    **{
        (f"dib_flash_{call}", "FLASH"): set_flash(jedec=bytes(3))
        for call in ("info", "allow", "read")
    },
    **{(f"dib_flash_{call}", "FLASH"): set_flash(status=0x1C) for call in ("erase", "write")},
    **{
        (f"dib_mailbox_{call}", "ARGUMENT"): lambda m: setattr(m, "peer", 1)
        for call in ("address", "connect", "send", "wait")
    },
    **{
        (f"dib_mailbox_{call}", error): provoke
        for call in ("send", "receive")
        for error, provoke in (
            ("TIMEOUT", peer_is(STATUS.TIMEOUT)),
            ("COMMAND", peer_is(STATUS.REMOTE_BOUNDS)),
            ("PROTOCOL", hostile_peer),
        )
    },
}

ELSEWHERE = {("dib_open", "IN_USE"): "tests/system/qemu/vfio_refusals.c"}  # needs VFIO

# Wrong from the beginning: bus addresses begin where there is room for so many pages, and no more.
END = 1 << 48
LAST_PAGES = {("dib_firmware_load", "LIMIT"): 0, ("dib_endpoint_open", "LIMIT"): 7}

# Wrong from the beginning: so many keys are left, those of a mailbox.
USED_UP = {("dib_mailbox_address", "LIMIT"): 2, ("dib_mailbox_connect", "LIMIT"): 2}

# Wrong is that the control program runs.
RUNNING = {("dib_node_set", "IN_USE")}


@pytest.mark.fault
def test_dibber_7_says_of_each_status_what_may_have_been_written():
    text = HEADER_FILE.read_text(encoding="utf-8")
    failures = text[text.index("* Failures\n") : text.index("* Handles\n")]
    statuses = {name for name, *_ in STATUS.values} - {"OK"}
    assert statuses - set(re.findall(r"[A-Z_]+", failures)) == set()


@pytest.mark.parametrize("name, error", [case for case in CASES if case not in ELSEWHERE])
def test_a_documented_error_comes(serve, image, name, error):
    case = (name, error)
    m = Mock(serve(), image, END - 4096 * LAST_PAGES[case] if case in LAST_PAGES else 0)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if case in USED_UP:
        m.device.drawn = True
        set_register("KEY_NEXT", 1)(m)
        set_register("KEYS_LEFT", USED_UP[case])(m)
    m.prepare("" if case in RUNNING else name)
    try:
        if case not in LAST_PAGES and case not in RUNNING:
            (HERE.get(case) or EVERYWHERE[error])(m)
        result = m.call_in_child(name) if m.child else CALLS[name](m.lib, m)
        assert result < 0 and binding.ERRORS[-result - 1] == error, m.lib.dib_last_reason()
        assert m.child or m.lib.dib_last_reason()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        m.close()


@pytest.mark.parametrize("case", ELSEWHERE)
def test_what_is_provoked_elsewhere_is(case):
    assert case in CASES and f"DIB_ERR_{case[1]}" in (ROOT / ELSEWHERE[case]).read_text()


@pytest.mark.parametrize("name", CALLS)
def test_the_same_call_succeeds_when_nothing_is_wrong(serve, image, name):
    m = Mock(serve(), image, 0)
    m.prepare(name)
    try:
        assert CALLS[name](m.lib, m) >= 0, m.lib.dib_last_reason()
    finally:
        m.close()
