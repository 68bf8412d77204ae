"""Wrong uses of handles: every call of dibber.h with every handle that it takes, NULL, closed,
closed twice, with its owner closed, and of another kind. The list of calls comes from the header.
"""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import pathlib
import re
import subprocess

import libdibber
import pytest
from libdibber import binding

from tests.fuzz import sanitized
from tests.software.expect import matrix
from tests.software.test_documented_errors import CALLS, FUNCTIONS, MEMORY, Mock

pytestmark = pytest.mark.fault

ARGUMENT, CLOSED = -1, -17

# Calls that take a handle: {name: its kind}.
HANDLES = {
    name: found[1]
    for name, function in FUNCTIONS.items()
    if (
        found := re.search(
            r"struct dib_(card|endpoint|region|mailbox) \*\w+[,)]", function.prototype
        )
    )
}
VALUES = {"dib_key", "dib_firmware_size"}  # 0 is their only error
CLOSES = {
    "card": "dib_close",
    "endpoint": "dib_endpoint_close",
    "region": "dib_unregister",
    "mailbox": "dib_mailbox_close",
}
OTHER = {"card": "endpoint", "endpoint": "card", "region": "endpoint", "mailbox": "region"}
OWNERS = [
    (name, owner)
    for name, kind in HANDLES.items()
    for owner in {"endpoint": ["card"], "region": ["card"], "mailbox": ["endpoint", "card"]}.get(
        kind, []
    )
]


@pytest.fixture
def m(serve, image):
    """Raw handles of every kind on a mock card."""
    mock = Mock(serve(), image, 0)
    mock.prepare("dib_mailbox_send")
    binding.check(mock.lib.dib_register(mock.endpoint, MEMORY, 4096, 1, ctypes.byref(mock.region)))
    yield mock
    mock.close()


def call(m, name):
    """The call's result. If its value is no error code and is 0: CLOSED or ARGUMENT, by the reason
    that it left.
    """
    if name not in VALUES:
        return CALLS[name](m.lib, m)
    value = getattr(m.lib, name)(getattr(m, HANDLES[name]))
    return value or (CLOSED if b"closed" in m.lib.dib_last_reason() else ARGUMENT)


def close(m, kind):
    return getattr(m.lib, CLOSES[kind])(getattr(m, kind))


def test_every_call_but_those_without_a_handle_is_tried():
    assert set(FUNCTIONS) - set(HANDLES) == {
        "dib_strerror",
        "dib_last_reason",
        "dib_version",
        "dib_status_name",
        "dib_status_string",
        "dib_open",
        "dib_alloc",
        "dib_free",
        "dib_network_routes",
        "dib_network_circle",
        "dib_clock_act_for",
    }
    assert set(HANDLES) - set(CALLS) == VALUES


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_of_null_is_an_error_and_nothing_to_close(m, name):
    setattr(m, HANDLES[name], ctypes.c_void_p())
    assert call(m, name) == (0 if name in CLOSES.values() else ARGUMENT)


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_of_another_kind_is_an_error(m, name):
    kind, right = HANDLES[name], getattr(m, HANDLES[name])
    setattr(m, kind, getattr(m, OTHER[kind]))
    assert call(m, name) == ARGUMENT
    setattr(m, kind, right)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_that_was_closed_says_so(m, name, times):
    assert [close(m, HANDLES[name]) for _ in range(times)] == [0, CLOSED][:times]
    for _ in range(2):
        assert call(m, name) == CLOSED


@pytest.mark.parametrize("name, owner", OWNERS)
def test_a_handle_whose_owner_was_closed_says_so_and_can_be_closed_once(m, name, owner):
    assert close(m, owner) == 0
    if name in CLOSES.values():
        assert call(m, name) == 0
    assert call(m, name) == CLOSED
    assert close(m, HANDLES[name]) == (CLOSED if name in CLOSES.values() else 0)
    assert close(m, HANDLES[name]) == CLOSED


def test_a_region_outlives_its_endpoint(m):
    key = m.lib.dib_key(m.region)
    assert key and close(m, "endpoint") == 0 and m.lib.dib_key(m.region) == key
    assert [close(m, "region") for _ in range(2)] == [0, CLOSED]


def test_an_old_handle_is_not_a_new_one(m):
    old = [m.endpoint.value]
    assert close(m, "mailbox") == 0 and close(m, "endpoint") == 0
    for _ in range(50):
        new = ctypes.c_void_p()
        assert m.lib.dib_endpoint_open(m.card, 1, None, ctypes.byref(new)) == 0
        assert new.value not in old
        assert [m.lib.dib_wait(handle, 0) for handle in old] == [CLOSED] * len(old)
        assert m.lib.dib_endpoint_close(new) == 0
        old.append(new.value)


def test_closing_a_card_gives_back_all_that_it_had(serve, image):
    mock = serve()
    for _ in range(3):
        card = libdibber.Card(mock.uri)
        card.load_firmware(image())
        endpoint = card.endpoint(1)
        endpoint.mailbox()
        endpoint.register(matrix(2, 2))
        card.close()
        assert mock.device.regions == {} and list(mock.device.queues) == [0]


def test_what_was_closed_costs_address_space_and_no_memory(tmp_path):
    source = pathlib.Path(__file__).with_name("handles.c")
    program = sanitized.build([source], tmp_path / "handles", sanitizer="")
    done = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
