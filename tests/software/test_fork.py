"""A card belongs to the process that opened it: limits for its children, and effects on the parent.

That each call returns FORKED in a child is tested with the other documented errors.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import ctypes
import os
import platform
import signal
import subprocess
import sys
import textwrap

import libdibber
import numpy as np
import pytest
from dibber.interface.description import OPCODE, RIGHT, STATUS, C
from libdibber.binding import library

from tests.software.expect import matrix

pytestmark = pytest.mark.fault

FORKED = -22
NOP = bytes([OPCODE.NOP]).ljust(C.SLOT_BYTES, b"\0")
CLONE = {"x86_64": 56, "aarch64": 220}  # numbers of clone(2)


def in_child(function):
    """Run it in a child: its exit code."""
    child = os.fork()
    if child == 0:
        code = 255
        with contextlib.suppress(BaseException):
            code = function()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def works(mock):
    """Whether a transfer of the parent goes well."""
    memory = np.arange(64, dtype="u1")
    with mock.endpoint.register(memory, RIGHT.LOCAL_READ | RIGHT.REMOTE_WRITE) as region:
        mock.endpoint.put(region.key, 0, region.key, 32, 32, node=1)
        mock.endpoint.wait()
        done = mock.endpoint.poll()
    return [c.status for c in done] == [STATUS.OK] and bytes(memory[32:]) == bytes(range(32))


def wait_code(mock):
    return -library().dib_wait(mock.endpoint._handle, 0)


@pytest.mark.parametrize("clock", [True, False])
def test_calls_of_a_child_are_refused_and_the_parent_goes_on(loaded, clock):
    mock = loaded(clock=clock)
    mock.endpoint.event_fd()
    with mock.endpoint.register(matrix(2, 2)) as region:
        seen = len(mock.server.messages)

        def child():
            lib = library()
            codes = [
                lib.dib_wait(mock.endpoint._handle, 0),
                lib.dib_unregister(region._handle),
                lib.dib_endpoint_close(mock.endpoint._handle),
                lib.dib_close(mock.card._handle),
                lib.dib_register(
                    mock.endpoint._handle, ctypes.create_string_buffer(64), 64, 1, ctypes.c_void_p()
                ),
            ]
            return 0 if codes == [FORKED] * 5 and lib.dib_key(region._handle) == 0 else 1

        assert in_child(child) == 0
        assert len(mock.server.messages) == seen
    assert works(mock)


RAW_CLONE = """
    import ctypes, os, sys
    import libdibber
    from libdibber.binding import library
    card = libdibber.Card(sys.argv[1])
    card.load_firmware(sys.argv[2])
    endpoint = card.endpoint(1)
    # PyDLL keeps Python's lock, here and in the next call.
    wait     = ctypes.PyDLL(library()._name).dib_wait
    wait.argtypes = ctypes.c_void_p, ctypes.c_uint64
    child = ctypes.PyDLL(None).syscall(int(sys.argv[3]), 17, 0, 0, 0, 0)     # SIGCHLD
    if child == 0:
        os._exit(-wait(endpoint._handle, 0))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), wait(endpoint._handle, 0))
"""


def test_a_child_of_raw_clone_is_refused_as_well(serve, image):
    """The C library does not know of such a child, so the kernel wipes the handles."""
    with program(RAW_CLONE, serve().uri, image(), str(CLONE[platform.machine()])) as parent:
        assert parent.communicate(timeout=60)[0].split() == ["22", "0"]


def test_a_grandchild_is_refused_as_well(loaded):
    mock = loaded()
    assert in_child(lambda: in_child(lambda: wait_code(mock))) == -FORKED
    assert works(mock)


def test_a_child_opens_a_card_of_its_own_beside(loaded, serve, image):
    mock, other = loaded(), serve()
    memory = libdibber.alloc(4096)

    def child():
        with libdibber.Card(other.uri) as card:
            card.load_firmware(image())
            with (
                card.endpoint(1) as endpoint,
                endpoint.register(memory) as region,
                endpoint.register(matrix(2, 2)),
            ):
                memory[:8] = 7
                endpoint.put(region.key, 0, region.key, 64, 8, node=1)
                endpoint.wait()
                done = endpoint.poll()[0].status
                return 0 if done == STATUS.OK and wait_code(mock) == -FORKED else 1

    assert in_child(child) == 0
    assert bytes(memory[64:72]) == bytes([7] * 8), "memory of dib_alloc() is shared with children"
    assert works(mock)


DESCRIPTORS = """
    import os, sys
    import libdibber, numpy
    kinds = ("socket:", "anon_inode:", "/memfd:dibber")
    def ours():
        names = {}
        for fd in os.listdir("/proc/self/fd"):
            try:
                names[fd] = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:     # that of the folder itself
                pass
        return sorted(name for name in names.values() if name.startswith(kinds))
    if sys.argv[1] == "exec":
        print(ours())
        sys.exit()
    before = ours()
    card = libdibber.Card(sys.argv[1])
    card.load_firmware(sys.argv[2])
    endpoint = card.endpoint(1)
    endpoint.event_fd()
    regions  = endpoint.register(libdibber.alloc(4096)), endpoint.register(numpy.zeros(100, "u1"))
    print(len(ours()) - len(before), flush=True)
    child = os.fork()
    if child == 0:
        left = [name for name in ours() if not name.startswith("/memfd")]
        os._exit(left != before)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[3], "exec"])
"""


def test_neither_children_nor_exec_keep_a_descriptor_of_the_library(serve, image):
    text = textwrap.dedent(DESCRIPTORS)
    with program(text, serve().uri, image(), text) as parent:
        ours, child, left = parent.communicate(timeout=60)[0].splitlines()
    # Socket, three eventfds, two epolls, and memory of queues and of the program.
    assert int(ours) >= 9 and child == "0" and left == "[]"


CHILD_OUTLIVES_PARENT = """
    import os, sys, time
    import libdibber
    card = libdibber.Card(sys.argv[1])
    card.load_firmware(sys.argv[2])
    endpoint = card.endpoint(1)
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(1)     # as when it is killed
"""

MULTIPROCESSING = """
    import multiprocessing, sys
    import libdibber, numpy
    from dibber.interface.description import RIGHT
    card = libdibber.Card(sys.argv[1])
    card.load_firmware(sys.argv[2])
    endpoint = card.endpoint(1)
    memory   = libdibber.alloc(4096)
    region   = endpoint.register(memory)

    def work(n):
        try:
            endpoint.wait(0)
        except libdibber.DibberError as error:
            memory[n] = n + 1
            return error.name

    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(work, range(20)) == ["FORKED"]*20
        pool.close()
        pool.join()
    assert list(memory[:20]) == list(range(1, 21))
    endpoint.put(region.key, 0, region.key, 64, 20, node=1)
    endpoint.wait()
    assert endpoint.poll()[0].status == 0 and list(memory[64:84]) == list(range(1, 21))
    region.close()
    endpoint.close()
    card.close()
    print("good")
"""


def program(text, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_the_end_of_the_parent_ends_the_connection_though_a_child_lives(serve, image):
    mock = serve()
    with program(CHILD_OUTLIVES_PARENT, mock.uri, image()) as parent:
        child = int(parent.stdout.readline())
        try:
            assert parent.wait(60) == 1
            os.kill(child, 0)
            with libdibber.Card(mock.uri) as card:  # the mock has one client at a time
                assert card.info()["endpoints"] == C.ENDPOINTS
        finally:
            os.kill(child, signal.SIGKILL)


def test_multiprocessing_by_fork(serve, image):
    with program(MULTIPROCESSING, serve().uri, image()) as parent:
        assert parent.communicate(timeout=120)[0] == "good\n" and parent.returncode == 0
