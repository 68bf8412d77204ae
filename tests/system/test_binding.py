"""The Python binding with two simulated cards: memory without references, and Ctrl-C."""

# SPDX-License-Identifier: BSD-2-Clause

import gc
import os
import signal
import threading

import numpy as np
import pytest
from dibber.interface.description import RIGHT, STATUS

from tests.system.pair import Pair

pytestmark = pytest.mark.fault

ALL = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE


@pytest.fixture(scope="module")
def pair():
    with Pair(preload=True) as both:
        yield both


def _page():
    """A page of the heap."""
    memory = np.zeros(8192, "u1")
    start = -memory.ctypes.data % 4096
    return memory[start : start + 4096]


def _fetch_into_forgotten_pages(side, key):
    own = side.endpoint.register_pages([_page(), _page()], 12, rights=ALL).key
    gc.collect()
    others = [np.zeros(4096, "u1") for _ in range(64)]
    side.endpoint.get(key, 0, own, 0, 8192, node=1)
    status = side.completion()
    return (
        status,
        sum(bool(other.any()) for other in others),
        side.endpoint.regions[-1].pages[1].tobytes(),
    )


def test_a_get_into_pages_that_nobody_keeps_writes_these_pages_and_no_other_memory(pair):
    key = pair.second(_registered)
    assert pair.first(_fetch_into_forgotten_pages, key) == (STATUS.OK, 0, b"\x77" * 4096)


def _registered(side):
    key = side.register("source", 8192, rights=ALL)
    side.fill("source", value=0x77)
    return key


def _interrupted(side):
    """Whether a wait ends with KeyboardInterrupt, and a command's status afterwards."""
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        side.endpoint.wait()
        ended = False
    except KeyboardInterrupt:
        ended = True
    timer.join()
    return ended, side.submit(bytes(128))


def test_ctrl_c_ends_a_wait_and_the_card_works_afterwards(pair):
    assert pair.first(_interrupted) == (True, STATUS.OK)
