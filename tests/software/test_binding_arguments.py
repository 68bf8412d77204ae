"""Arguments that the binding refuses before anything is sent: integers that do not fit, unsuitable
memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

import array
import ast
import ctypes
import inspect
import mmap
import pathlib
import re
import textwrap

import libdibber
import numpy as np
import pytest
from dibber.interface.description import FLAG, OPCODE, RIGHT, STATUS, C
from libdibber import Card, Endpoint, Flag, List, Mailbox, Opcode, Right, Status, Walk, arguments
from libdibber.binding import Clock, Completion, Event, Network, library

pytestmark = pytest.mark.fault

ROOT = pathlib.Path(__file__).resolve().parents[2]

U8, U16, U32, U64 = ((0, (1 << bits) - 1) for bits in (8, 16, 32, 64))
S16, S64 = (-(1 << 15), (1 << 15) - 1), (-(1 << 63), (1 << 63) - 1)
ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


# Integers -----------------------------------------------------------------------------------------

DELIVERY = {"node": U16, "tag": U64, "notice": U32, "endpoint": U8}
SIDES = {"source_key": U32, "source_offset": U64, "target_key": U32, "target_offset": U64}
WALK = {"key": U32, "block": U32, "offset": U64, "count": U32, "stride": S64}
LIST = {"list key": U32, "list count": U32, "list offset": U64}

# Every integer of every public call, with its range. Walks are spelled out. "options" are those of
# DELIVERY.
CALLS = {
    (Card, "read_register"): {"index": (0, 0)},
    (Card, "write_register"): {"value": U32},
    (Card, "set_node"): {"node": U32},
    (Card, "read_firmware"): {"offset": U32, "length": (0, C.BAR0_SIZE)},
    (Card, "write_firmware"): {"offset": U32},
    (Card, "read_doorbell"): {"endpoint": U8},
    (Card, "flash_allow"): {"address": U32, "length": U32},
    (Card, "flash_read"): {"address": U32, "length": U32},
    (Card, "flash_erase"): {"address": U32, "length": U32},
    (Card, "flash_write"): {"address": U32},
    (Card, "scout"): {"route": U32, "back": U32, "timeout": U32},
    (Card, "ask_switch"): {"route": U32, "back": U32, "question": U32},
    (Card, "map"): {"attempts": U32},
    (Card, "set_route"): {"node": U32, "place": U32, "route": U32},
    (Card, "routes"): {"node": U32},
    (Card, "endpoint"): {"number": U32, "cq_entries": U32, "eq_entries": U32},
    (Endpoint, "register"): {"rights": U32},
    (Endpoint, "register_pages"): {
        "shift": U32,
        "first": U32,
        "length": U64,
        "rights": U32,
        "page": U64,
    },
    (Endpoint, "put"): {**SIDES, "length": U32, **DELIVERY},
    (Endpoint, "get"): {**SIDES, "length": U32, **DELIVERY},
    (Endpoint, "put_strided"): {**WALK, **DELIVERY},
    (Endpoint, "get_strided"): {**WALK, **DELIVERY},
    (Endpoint, "put_indexed"): {**WALK, **LIST, "length": U32, **DELIVERY},
    (Endpoint, "get_indexed"): {**WALK, **LIST, "length": U32, **DELIVERY},
    (Endpoint, "put_array"): {"key": U32, "offset": U64, **DELIVERY},
    (Endpoint, "get_array"): {"key": U32, "offset": U64, **DELIVERY},
    (Endpoint, "put_inline"): {"target_key": U32, "target_offset": U64, **DELIVERY},
    (Endpoint, "send"): {"source_key": U32, "source_offset": U64, "length": U32, **DELIVERY},
    (Endpoint, "send_strided"): {**WALK, **DELIVERY},
    (Endpoint, "send_indexed"): {**WALK, **LIST, "length": U32, **DELIVERY},
    (Endpoint, "receive"): {"target_key": U32, "target_offset": U64, "length": U32, **DELIVERY},
    (Endpoint, "receive_strided"): {**WALK, **DELIVERY},
    (Endpoint, "receive_indexed"): {**WALK, **LIST, "length": U32, **DELIVERY},
    (Endpoint, "atomic"): {
        "opcode": U8,
        "key": U32,
        "offset": U64,
        "operand": U64,
        "size": U32,
        "compare": U64,
        "mask": U64,
        **DELIVERY,
    },
    (Endpoint, "fetch_add"): {"key": U32, "offset": U64, "operand": U64, **DELIVERY},
    (Endpoint, "compare_swap"): {
        "key": U32,
        "offset": U64,
        "compare": U64,
        "operand": U64,
        **DELIVERY,
    },
    (Endpoint, "submit"): {"tag": U64},
    (Endpoint, "poll"): {"limit": (1, C.QUEUE_MAX_ENTRIES)},
    (Endpoint, "poll_events"): {"limit": (1, C.QUEUE_MAX_ENTRIES)},
    (Endpoint, "wait"): {"timeout_ns": U64},
    (Endpoint, "window"): {"key": U32, "length": U64, "node": U16, "offset": U64, "add": S16},
    (Endpoint, "mailbox"): {"peers": U32, "slots": U32, "slot_bytes": U32, "max_length": U32},
    (Mailbox, "address"): {"peer": U32},
    (Mailbox, "connect"): {"peer": U32},
    (Mailbox, "send"): {"peer": U32},
    (Mailbox, "wait"): {"news": U32, "timeout_ns": U64},
}

# Calls and parameters that are no integers.
NONE = (
    {(Card, name) for name in ("close", "info", "board", "load_firmware", "flash_info")}
    | {(Endpoint, name) for name in ("close", "indexed", "event_fd", "clock", "outside_clock")}
    | {(Mailbox, name) for name in ("close", "receive", "receive_into")}
)
OTHERS = {
    "self",
    "name",
    "data",
    "array",
    "source",
    "target",
    "memory",
    "pages",
    "options",
    "how",
    "sizes",
    "command",
    "own_clock",
}


def test_the_table_of_this_test_has_every_public_call_and_every_parameter():
    calls = {
        (kind, name)
        for kind in (Card, Endpoint, Mailbox)
        for name, member in vars(kind).items()
        if not name.startswith("_") and callable(member)
    }
    assert calls == set(CALLS) | NONE
    for (kind, name), integers in CALLS.items():
        parameters = inspect.signature(getattr(kind, name)).parameters
        named = set(parameters) - OTHERS
        if kind is Mailbox and name == "connect":
            named -= {"address"}
        assert named <= set(integers), (name, named - set(integers))


GOOD = {
    "source_key": 1,
    "source_offset": 0,
    "target_key": 2,
    "target_offset": 0,
    "length": 8,
    "node": 1,
    "value": 0,
    "offset": 0,
    "address": 0,
    "route": 0,
    "number": 2,
    "shift": 12,
    "opcode": OPCODE.FETCH_ADD,
    "key": 1,
    "operand": 1,
    "compare": 0,
    "place": 0,
    "endpoint": 1,
}


def _walk(changed):
    """A valid Walk, except for the changed members."""
    values = {"key": 1, "block": 8, "offset": 0, "count": 1, "stride": 8, **changed}
    entries = None
    if any(name.startswith("list ") for name in changed):
        entries = List(
            changed.get("list key", 3), changed.get("list count", 1), changed.get("list offset", 0)
        )
    return Walk(
        values["key"],
        values["block"],
        values["offset"],
        ((values["count"], values["stride"]),),
        entries,
    )


def _call(kind, name, owner, memory, wrong, value):
    """A valid call, except for one integer."""
    parameters = inspect.signature(getattr(kind, name)).parameters
    given = {}
    parts = {wrong: value} if wrong in {**WALK, **LIST} and wrong not in parameters else {}
    for parameter, described in parameters.items():
        if parameter in ("source", "target"):
            given[parameter] = (
                _walk(parts)
                if name.endswith(("strided", "indexed"))
                else value
                if wrong == "key"
                else 1
            )
        elif parameter == "array":
            given[parameter] = memory
        elif parameter == "data":
            given[parameter] = b"12345678"
        elif parameter == "memory":
            given[parameter] = memory
        elif parameter == "pages":
            given[parameter] = [value] if wrong == "page" else [4096]
        elif parameter == "command":
            given[parameter] = bytes(C.SLOT_BYTES)
        elif parameter == "name":
            given[parameter] = "COMMAND_HEAD" if name == "read_doorbell" else "SCRATCH"
        elif kind is Mailbox and parameter == "address":
            given[parameter] = owner.address()
        elif parameter in GOOD and described.default is inspect.Parameter.empty:
            given[parameter] = GOOD[parameter]
    if not parts and wrong not in ("page",) and not (wrong == "key" and name.endswith("_array")):
        given[wrong] = value
    return getattr(owner, name)(**given)


def _wrong(low, high):
    """Values that no argument of this range may have."""
    values = [
        low - 1,
        high + 1,
        1.5,
        float("nan"),
        float("inf"),
        "3",
        True,
        np.bool_(True),
        np.float64(2),
        [1],
        high + 1 << 64,
    ]
    return values + [
        number for number in (1 << 32, 1 << 64, np.int64(-1)) if not low <= number <= high
    ]


CASES = [
    (kind, name, argument) for (kind, name), integers in CALLS.items() for argument in integers
]


@pytest.fixture(scope="module")
def owners(tmp_path_factory):
    """A mock card with an endpoint and a mailbox, for all cases: none of them may change it."""
    import tempfile

    from tests.software.mock_card import Card as MockCard
    from tests.software.mock_card import firmware_image
    from tests.software.mock_vfio_user import Server

    with tempfile.TemporaryDirectory(prefix="dib") as folder:
        device = MockCard()
        server = Server(f"{folder}/card", device, C.BAR0_SIZE, C.CLOCK_MESSAGE, offers_clock=True)
        with open(f"{folder}/image", "wb") as file:
            file.write(firmware_image())
        with Card(f"sim:{folder}/card") as card:
            card.load_firmware(f"{folder}/image")
            with (
                card.endpoint(1) as endpoint,
                card.endpoint(3) as other,
                other.mailbox() as mailbox,
            ):
                memory = libdibber.alloc(64)
                with endpoint.register(memory, ALL):
                    yield {
                        Card: card,
                        Endpoint: endpoint,
                        Mailbox: mailbox,
                        "memory": memory,
                        "device": device,
                    }
        server.stop()


@pytest.mark.parametrize(
    "kind, name, argument", CASES, ids=[f"{k.__name__}.{n}-{a}" for k, n, a in CASES]
)
def test_an_integer_that_does_not_fit_is_an_error_by_name_and_nothing_is_sent(
    owners, kind, name, argument
):
    low, high = CALLS[kind, name][argument]
    device = owners["device"]
    before = (
        len(device.writes),
        len(device.calls),
        len(device.commands),
        len(owners[Endpoint].regions),
    )
    for value in _wrong(low, high):
        if name == "register_pages" and argument == "page" and isinstance(value, (str, list)):
            continue  # that is no page, and no number either
        with pytest.raises((ValueError, TypeError)) as error:
            _call(kind, name, owners[kind], owners["memory"], argument, value)
        text = str(error.value)
        assert argument.split()[-1] in text and f"{low} … {high}" in text, (value, text)
    assert (
        len(device.writes),
        len(device.calls),
        len(device.commands),
        len(owners[Endpoint].regions),
    ) == before


@pytest.mark.parametrize("flag", ["interrupt", "solicit", "fence", "checksum"])
def test_a_flag_is_true_or_false_and_does_not_become_another_one(owners, flag):
    before = len(owners["device"].writes)
    for value in (2, -1, 8, 1.0, "yes", None, np.int64(1)):
        with pytest.raises(TypeError, match=flag):
            owners[Endpoint].put(1, 0, 2, 0, 8, node=1, **{flag: value})
    assert len(owners["device"].writes) == before


def test_integers_of_numpy_and_of_the_enumerations_are_integers(loaded):
    mock = loaded()
    memory = libdibber.alloc(64)
    region = mock.endpoint.register(memory, Right.LOCAL_READ | Right.REMOTE_WRITE)
    mock.endpoint.put(
        np.uint32(region.key),
        np.int8(0),
        region.key,
        np.uint64(32),
        np.int16(8),
        node=np.uint8(1),
        tag=np.uint64(5),
    )
    assert mock.endpoint.wait() and mock.endpoint.poll()[0].tag == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: Card("sim:/nowhere", iova_base=-1),
        lambda: Card("sim:/nowhere", iova_base=1 << 64),
        lambda: Card("sim:/nowhere", observe=2),
        lambda: Card("sim:/nowhere\0/else"),
        lambda: libdibber.alloc(-1),
        lambda: libdibber.alloc(1 << 64),
        lambda: libdibber.alloc(1.5),
        lambda: libdibber.alloc(True),
        lambda: libdibber.routes_to(Network(), 1 << 32),
        lambda: libdibber.routes_to(Network(), -1),
        lambda: libdibber.routes_to(None, 1),
    ],
)
def test_what_belongs_to_no_object_is_checked_too(make):
    with pytest.raises((ValueError, TypeError)):
        make()


def test_a_four_byte_atomic_has_operands_of_four_bytes(owners):
    for name in ("operand", "compare", "mask"):
        with pytest.raises(ValueError, match=f"{name} = 4294967296 is outside 0 … 4294967295"):
            owners[Endpoint].atomic(
                **{
                    "opcode": OPCODE.SWAP,
                    "key": 1,
                    "offset": 0,
                    "operand": 0,
                    "size": 4,
                    "node": 1,
                    name: 1 << 32,
                }
            )


def test_a_register_that_there_is_not_is_an_error(owners):
    for call in (
        lambda: owners[Card].read_register("NOTHING"),
        lambda: owners[Card].read_register("BOARD", 99),
        lambda: owners[Card].read_register("BOARD", -1),
        lambda: owners[Card].read_doorbell(1, "NOTHING"),
    ):
        with pytest.raises(ValueError):
            call()


# Bytes of an object -------------------------------------------------------------------------------

NUMBERS = np.arange(1, 7, dtype="<u2")

BYTES = {
    "bytes": (bytes(range(12)), bytes(range(12))),
    "bytearray": (bytearray(range(12)), bytes(range(12))),
    "memoryview": (memoryview(bytes(range(12))), bytes(range(12))),
    "part": (memoryview(bytes(range(20)))[4:16], bytes(range(4, 16))),
    "cast memoryview": (memoryview(bytearray(NUMBERS.tobytes())).cast("H"), NUMBERS.tobytes()),
    "shaped memoryview": (memoryview(bytearray(range(12))).cast("B", (3, 4)), bytes(range(12))),
    "memoryview of none": (memoryview(np.array(7, "<u4")), (7).to_bytes(4, "little")),
    "array": (array.array("I", [1, 2, 3]), array.array("I", [1, 2, 3]).tobytes()),
    "ctypes": ((ctypes.c_uint32 * 3)(1, 2, 3), np.array([1, 2, 3], "u4").tobytes()),
    "u4": (np.array([1, 2, 300], "u4"), np.array([1, 2, 300], "u4").tobytes()),
    "two axes": (NUMBERS.reshape(2, 3), NUMBERS.tobytes()),
    "no axis": (np.array(7.0), np.array(7.0).tobytes()),
    "scalar": (np.float64(7.0), np.array(7.0).tobytes()),
    "big endian": (NUMBERS.astype(">u2"), NUMBERS.astype(">u2").tobytes()),
    "dates": (np.array([1, 2], "M8[ns]"), np.array([1, 2], "u8").tobytes()),
    "records": (np.array([(1, 2.0)], "u4, f8"), np.array([(1, 2.0)], "u4, f8").tobytes()),
    "one of a stride": (np.arange(12, dtype="u4")[::12], bytes(4)),
}

REFUSED = {
    "strides": (np.arange(8, dtype="u1")[::2], ValueError),
    "backwards": (np.arange(8, dtype="u1")[::-1], ValueError),
    "column": (np.arange(16, dtype="u1").reshape(4, 4)[:, 1], ValueError),
    "Fortran": (np.asfortranarray(np.arange(16, dtype="u1").reshape(4, 4)), ValueError),
    "strided memoryview": (memoryview(bytes(8))[::2], ValueError),
    "negative memoryview": (memoryview(bytes(8))[::-1], ValueError),
    "objects": (np.array([None, 1], dtype=object), TypeError),
    "records of objects": (np.zeros(2, dtype=[("O", "u4"), ("x", object)]), TypeError),
    "py_object": ((ctypes.py_object * 2)(1, 2), TypeError),
    "masked": (np.ma.array(np.arange(4, dtype="u1"), mask=[0, 1, 0, 0]), TypeError),
    "text": ("text", TypeError),
    "number": (5, TypeError),
    "list": ([1, 2, 3], TypeError),
    "nothing": (None, TypeError),
}


@pytest.mark.parametrize("kind", BYTES)
def test_an_objects_bytes_are_those_of_its_memory_in_order(kind):
    data, expected = BYTES[kind]
    assert arguments.contiguous("data", data).tobytes() == expected


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_contiguous_bytes_is_refused_by_every_call(owners, kind):
    data, error = REFUSED[kind]
    before = len(owners["device"].writes)
    card, endpoint, mailbox = owners[Card], owners[Endpoint], owners[Mailbox]
    for call in (
        lambda: endpoint.put_inline(data, 1, 0, node=1),
        lambda: card.write_firmware(0, data),
        lambda: card.flash_write(0, data),
        lambda: endpoint.submit(data),
        lambda: mailbox.send(data),
        lambda: mailbox.receive_into(data),
        lambda: mailbox.connect(data),
        lambda: endpoint.register(data, ALL),
        lambda: endpoint.register(data, RIGHT.LOCAL_READ),
    ):
        with pytest.raises(error):
            call()
    assert len(owners["device"].writes) == before


@pytest.mark.parametrize("kind", BYTES)
def test_an_inline_put_sends_every_byte_of_an_object(loaded, kind):
    data, expected = BYTES[kind]
    mock = loaded()
    memory = libdibber.alloc(64)
    region = mock.endpoint.register(memory, RIGHT.REMOTE_WRITE)
    mock.endpoint.put_inline(data, region.key, 3, node=1)
    assert mock.endpoint.wait() and mock.endpoint.poll()[0].status == STATUS.OK
    assert memory.tobytes() == (bytes(3) + expected).ljust(64, b"\0")


def test_a_write_to_the_control_programs_memory_has_every_byte(loaded):
    mock, words = loaded(), np.array([1, 0x10203040, 3], "<u4")
    mock.card.write_firmware(64, words)
    assert mock.card.read_firmware(64, 12) == words.tobytes() == bytes(mock.device.sram[64:76])


def test_a_command_has_the_bytes_of_a_slot(owners):
    for length in (0, 1, C.SLOT_BYTES - 1, C.SLOT_BYTES + 1):
        with pytest.raises(ValueError, match=f"{length} bytes"):
            owners[Endpoint].submit(bytes(length))


def test_an_address_of_a_mailbox_has_the_bytes_of_one(owners):
    address = owners[Mailbox].address()
    for wrong in (b"", address[:-1], address + b"\0"):
        with pytest.raises(ValueError, match="bytes"):
            owners[Mailbox].connect(wrong)


# A message into views -----------------------------------------------------------------------------


@pytest.fixture
def talking(loaded):
    """Two mailboxes of one mock card, connected."""
    mock = loaded()
    ours = mock.endpoint.mailbox()
    second = mock.card.endpoint(2)
    theirs = second.mailbox()
    ours.connect(theirs.address())
    theirs.connect(ours.address())
    yield ours, theirs
    theirs.close()
    second.close()
    ours.close()


def _received(mailbox, room):
    while (found := mailbox.receive_into(room)) is None:
        mailbox.wait()
    return found


ROOMS = {
    "bytearray": lambda: bytearray(16),
    "memoryview": lambda: memoryview(bytearray(32))[8:24],
    "array": lambda: array.array("d", [0, 0]),
    "ctypes": lambda: (ctypes.c_uint16 * 8)(),
    "two axes": lambda: np.zeros((2, 2), "u4"),
    "u8": lambda: np.zeros(2, "u8"),
    "mmap": lambda: mmap.mmap(-1, 16),
}


@pytest.mark.parametrize("kind", ROOMS)
def test_a_message_fills_all_bytes_of_whatever_it_is_received_into(talking, kind):
    ours, theirs = talking
    room, data = ROOMS[kind](), bytes(range(100, 116))
    theirs.send(np.frombuffer(data, "u4"))
    assert _received(ours, room) == (16, 0)
    assert arguments.contiguous("room", room).tobytes() == data


@pytest.mark.parametrize(
    "view",
    [lambda base: base[::2], lambda base: base[8::-1], lambda base: base.reshape(4, 16)[:, :4]],
)
def test_a_message_into_a_view_with_strides_is_refused_and_stays(talking, view):
    ours, theirs = talking
    base = np.full(64, 9, "u1")
    theirs.send(b"abcd")
    with pytest.raises(ValueError, match="not contiguous"):
        ours.receive_into(view(base))
    assert (base == 9).all()
    assert _received(ours, bytearray(4))[0] == 4


@pytest.mark.parametrize("room", [bytes(16), memoryview(bytes(16)), np.frombuffer(bytes(16), "u1")])
def test_a_message_into_read_only_memory_is_refused_and_stays(talking, room):
    ours, theirs = talking
    theirs.send(b"abcd")
    with pytest.raises(ValueError, match="read-only"):
        ours.receive_into(room)
    assert bytes(room) == bytes(16) and _received(ours, bytearray(4))[0] == 4


# Read-only memory ---------------------------------------------------------------------------------


def _read_only(tmp_path):
    (tmp_path / "file").write_bytes(bytes(4096))
    frozen = np.zeros(4096, "u1")
    frozen.flags.writeable = False
    with open(tmp_path / "file", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return [
        np.memmap(tmp_path / "file", mode="r"),
        np.frombuffer(bytes(4096), "u1"),
        frozen,
        bytes(4096),
        memoryview(bytes(4096)),
        memoryview(bytearray(4096)).toreadonly(),
        mapped,
        np.broadcast_to(np.zeros(4096, "u1"), (1, 4096)),
    ]


def test_read_only_memory_is_not_registered_with_any_right_to_write(owners, tmp_path):
    before = len(owners["device"].writes)
    for memory in _read_only(tmp_path):
        for rights in range(1, 16):
            if rights & (RIGHT.LOCAL_WRITE | RIGHT.REMOTE_WRITE):
                with pytest.raises(ValueError, match="read-only.*Right.LOCAL_READ"):
                    owners[Endpoint].register(memory, rights)
        with pytest.raises(ValueError, match="read-only"):
            owners[Endpoint].register(memory)
    page = libdibber.alloc(4096)
    page.flags.writeable = False
    for how in ({}, {"rights": RIGHT.LOCAL_WRITE}):
        with pytest.raises(ValueError, match=r"pages\[0\] is read-only"):
            owners[Endpoint].register_pages([page], 12, **how)
    assert len(owners["device"].writes) == before


def test_read_only_memory_can_be_read(loaded, tmp_path):
    mock = loaded()
    target = libdibber.alloc(4096)
    there = mock.endpoint.register(target, RIGHT.REMOTE_WRITE)
    (tmp_path / "file").write_bytes(bytes(range(256)) * 16)
    with mock.endpoint.register(np.memmap(tmp_path / "file", mode="r"), Right.LOCAL_READ) as here:
        mock.endpoint.put(here.key, 0, there.key, 0, 4096, node=1)
        assert mock.endpoint.wait() and mock.endpoint.poll()[0].status == STATUS.OK
    assert target.tobytes() == bytes(range(256)) * 16


def test_nothing_is_fetched_into_a_read_only_view(loaded):
    mock = loaded()
    memory = libdibber.alloc(4096)
    region = mock.endpoint.register(memory, ALL)
    frozen = memory[:64]
    frozen.flags.writeable = False
    rows = mock.endpoint.indexed(frozen.reshape(8, 8), [1, 3])
    before = len(mock.device.commands)
    with pytest.raises(ValueError, match="read-only"):
        mock.endpoint.get_array(region.key, frozen, node=1)
    with pytest.raises(ValueError, match="read-only"):
        mock.endpoint.get_array(region.key, rows, node=1)
    assert len(mock.device.commands) == before


def test_of_two_regions_that_hold_an_array_the_one_with_the_right_is_taken(loaded):
    mock = loaded()
    memory = libdibber.alloc(4096)
    memory[:64] = np.arange(64)
    mock.endpoint.register(memory, RIGHT.REMOTE_WRITE)
    both = mock.endpoint.register(memory, ALL)
    mock.endpoint.get_array(both.key, memory[128:192], node=1)
    assert (
        mock.endpoint.wait() and mock.endpoint.poll()[0].status == STATUS.OK and memory[191] == 63
    )


# What is shown ------------------------------------------------------------------------------------


def test_enumerations_have_the_descriptions_names_and_values():
    for ours, theirs in ((Right, RIGHT), (Flag, FLAG), (Opcode, OPCODE), (Status, STATUS)):
        assert {member.name: member.value for member in ours} == {
            name: value for name, value, _ in theirs.values
        }
        assert all(text in ours.__doc__ for _, _, text in theirs.values)


def test_completions_events_and_clocks_say_what_they_hold():
    assert "REMOTE_BOUNDS" in repr(
        Completion(tag=7, status=STATUS.REMOTE_BOUNDS)
    ) and "tag 7" in repr(Completion(tag=7))
    assert "0xfe" in repr(Completion(status=0xFE))
    assert "notice 9" in repr(Event(notice=9, key=0x105)) and "0x105" in repr(Event(key=0x105))
    assert "2.5" in repr(Clock(now_ps=2_500_000, simulated=1)) and "simulated" in repr(
        Clock(simulated=1)
    )


def test_the_header_and_so_the_man_pages_have_every_right_flag_and_status():
    header = (ROOT / "software" / "lib" / "include" / "dibber" / "dibber.h").read_text()
    header = re.sub(r"\s*\n \*\s*", " ", header)
    for kind in (RIGHT, FLAG, STATUS):
        for name, _, _ in kind.values:
            assert re.search(rf"\b(DIBBER_{kind.name.upper()}_)?{name}\b", header), name
    calls = [
        text for text in header.split("/**") if re.search(r"int dib_register(_pages)?\(", text)
    ]
    for call in calls:
        assert all(f"DIBBER_RIGHT_{name} ({value}," in call for name, value, _ in RIGHT.values)
    assert len(calls) == 2


def test_the_example_at_the_head_of_the_package_is_python():
    lines = [line for line in libdibber.__doc__.splitlines() if line.startswith("    ")]
    names = {
        node.attr
        for node in ast.walk(ast.parse(textwrap.dedent("\n".join(lines))))
        if isinstance(node, ast.Attribute)
    }
    assert {"register", "put_array", "indexed", "wait", "poll"} <= names


def test_why_the_own_node_is_refused_stands_at_the_calls_and_in_the_status():
    header = (ROOT / "software" / "lib" / "include" / "dibber" / "dibber.h").read_text()
    of = {
        call: re.search(rf"/\*\*\n \* {call}\(\) - .*?\*/", header, re.S)[0]
        for call in ("dib_put", "dib_get", "dib_atomic")
    }
    assert all("own" in text and "BAD_NODE" in text for text in of.values())
    assert "memcpy(3)" in of["dib_put"]
    say = library().dib_status_string
    say.restype = ctypes.c_char_p
    assert b"itself" in say(STATUS.BAD_NODE) and b"copy there with the CPU" in say(STATUS.BAD_NODE)
