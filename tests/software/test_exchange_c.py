"""The exchange in C, against itself and against libdibber.exchange of Python. Each error that
exchange.h documents is provoked.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import ctypes
import os
import pathlib
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import time

import pytest
from libdibber import binding
from libdibber import exchange_wire as wire
from libdibber.exchange import Exchange, ExchangeError

from tests.software.c_exchange import CExchange, Options, library
from tests.software.test_exchange import together

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "software" / "lib" / "man"))

from header import Header  # noqa: E402

from tests.fuzz import sanitized  # noqa: E402

FOLDER = ROOT / "software" / "lib" / "include" / "dibber"
HEADER = Header(FOLDER / "exchange.h", Header(FOLDER / "dibber.h").errors)
SECONDS = 20
KINDS = [(CExchange, CExchange), (Exchange, CExchange), (CExchange, Exchange)]
names = lambda kinds: "-".join("C" if kind is CExchange else "Python" for kind in kinds)


@contextlib.contextmanager
def meeting(port, kinds, **options):
    """Exchanges of these kinds that have found each other; the first one listens."""
    where, options = f"127.0.0.1:{port}", {"timeout": SECONDS, "parties": len(kinds), **options}
    found = together(
        lambda: kinds[0].listen(where, **options),
        *(
            lambda n=n, kind=kind: kind.connect(where, party=n, **options)
            for n, kind in enumerate(kinds[1:], 1)
        ),
    )
    with contextlib.ExitStack() as opened:
        for one in found:
            assert not isinstance(one, Exception), found
            opened.enter_context(one)
        yield found


# What it does -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [*KINDS, (CExchange, Exchange, CExchange, Exchange)], ids=names)
def test_each_party_finds_what_every_other_published(port, kinds):
    data = [random.Random(n).randbytes(1 << 20) for n in range(len(kinds))]

    def one(exchange):
        exchange.publish("memory", data[exchange.party])
        exchange.publish("empty", b"")
        exchange.barrier()
        found = [exchange.look_up(n, "memory") for n in range(len(kinds))]
        assert exchange.look_up(0, "empty") == b""
        exchange.barrier()
        return found

    with meeting(port, kinds) as found:
        assert together(*(lambda x=x: one(x) for x in found)) == [data] * len(kinds)


@pytest.mark.parametrize("kinds", [kinds + (Exchange,) for kinds in KINDS], ids=names)
def test_nobody_passes_a_barrier_before_all_have_come(port, kinds):
    passed = []

    def one(exchange):
        for n in range(30):
            passed.append(n)
            exchange.barrier()
            assert passed.count(n) == 3
            exchange.barrier()

    with meeting(port, kinds) as found:
        assert together(*(lambda x=x: one(x) for x in found)) == [None] * 3


@pytest.mark.parametrize("kinds", KINDS, ids=names)
def test_many_small_values_of_odd_lengths_arrive(port, kinds):
    values = {f"name {n}": bytes([n % 256]) * (n % 37) for n in range(1000)}
    with meeting(port, kinds) as (a, b):
        for name, data in values.items():
            a.publish(name, data)
        assert together(
            lambda: [b.look_up(0, name) for name in values] and b.barrier(), lambda: a.barrier()
        ) == [None, None]
        assert {name: b.look_up(0, name) for name in values} == values


@pytest.mark.parametrize("kinds", KINDS, ids=names)
def test_a_value_that_comes_late_is_waited_for(port, kinds):
    def late(exchange):
        time.sleep(0.3)
        exchange.publish("key", b"1")

    with meeting(port, kinds) as (a, b):
        assert together(lambda: late(a), lambda: b.look_up(0, "key"))[1] == b"1"


@pytest.mark.parametrize("kinds", KINDS, ids=names)
def test_a_rendezvous_file_is_private_and_goes_when_all_are_there(tmp_path, kinds):
    path = tmp_path / "meet"
    modes = []

    def connect():
        while not path.exists():
            time.sleep(0.01)
        modes.append(path.stat().st_mode & 0o777)
        with kinds[1].connect(f"file:{path}", timeout=SECONDS) as b:
            return b.party

    def listen():
        with kinds[0].listen(f"file:{path}", timeout=SECONDS) as a:
            return a.party

    assert together(listen, connect) == [0, 1]
    assert modes == [0o600] and os.listdir(tmp_path) == []


def until_it_listens(port):
    """A connection to a port of this host, as soon as something listens there."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port))
        time.sleep(0.01)
    raise TimeoutError


@pytest.mark.parametrize("kinds", KINDS, ids=names)
def test_strangers_that_say_nothing_keep_no_party_out(port, kinds):
    def connect():
        silent = [until_it_listens(port) for _ in range(40)]
        with kinds[1].connect(f"127.0.0.1:{port}", timeout=SECONDS) as b:
            for one in silent:
                one.close()
            return b.party

    def listen():
        with kinds[0].listen(f"127.0.0.1:{port}", timeout=SECONDS) as a:
            return a.party

    assert together(listen, connect) == [0, 1]


@pytest.mark.parametrize("kind", [CExchange, Exchange])
def test_a_fifo_in_place_of_a_rendezvous_file_stops_no_program(tmp_path, kind):
    os.mkfifo(tmp_path / "meet")
    with pytest.raises(ExchangeError):
        kind.connect(f"file:{tmp_path / 'meet'}", timeout=0.3)


def test_a_file_that_was_there_stays_if_the_rendezvous_file_cannot_be_made(tmp_path):
    path = tmp_path / "meet"
    path.write_text("other", encoding="utf-8")
    (tmp_path / f"meet.{os.getpid()}").write_text("in the way", encoding="utf-8")
    failing(lambda: CExchange.listen(f"file:{path}", timeout=1), "ARGUMENT")
    assert path.read_text(encoding="utf-8") == "other"


def test_the_one_that_connects_may_come_first(port):
    def late():
        time.sleep(0.3)
        return CExchange.listen(str(port), timeout=SECONDS)

    a, b = together(late, lambda: CExchange.connect(f"localhost:{port}", timeout=SECONDS))
    a.close()
    b.close()


def test_a_connection_by_ipv6(port):
    where = f"[::1]:{port}"
    found = together(
        lambda: CExchange.listen(where, timeout=SECONDS),
        lambda: CExchange.connect(where, timeout=3),
    )
    if isinstance(found[0], ExchangeError) and found[0].name == "ARGUMENT":
        pytest.skip(f"no IPv6 here: {found[0]}")
    for one in found:
        one.close()


# Errors -------------------------------------------------------------------------------------------
# Each case makes a call of exchange.h fail: (call, error) → function of (port, tmp_path).

CASES = {}
pair = lambda port: meeting(port, (Exchange, CExchange))


def case(call, *errors):
    def keep(function):
        for error in errors:
            CASES[call, error] = function
        return function

    return keep


def failing(call, name):
    """The call's error, which has this name and a reason."""
    with pytest.raises(ExchangeError) as raised:
        call()
    assert raised.value.name == name and str(raised.value), raised.value
    return str(raised.value)


@case("dib_exchange_listen", "ARGUMENT")
def listening_makes_no_sense(port, tmp_path):
    for where in ("", "host:", "70000", "1:2:3", "nobody.invalid:1", f"file:{tmp_path}/a/b"):
        failing(lambda where=where: CExchange.listen(where, timeout=1), "ARGUMENT")
    failing(lambda: CExchange.listen(str(port), parties=65), "ARGUMENT")
    failing(lambda: CExchange.listen(str(port), parties=1), "ARGUMENT")
    failing(lambda: CExchange.listen(str(port), token="x" * 65), "ARGUMENT")
    assert library().dib_exchange_listen(None, None, ctypes.byref(ctypes.c_void_p())) == -1
    assert library().dib_exchange_listen(b"1", None, None) == -1
    assert os.listdir(tmp_path) == []


@case("dib_exchange_listen", "IN_USE")
def the_port_is_taken(port, _):
    with socket.create_server(("127.0.0.1", port)):
        failing(lambda: CExchange.listen(f"127.0.0.1:{port}"), "IN_USE")


@case("dib_exchange_listen", "TIMEOUT")
def a_party_does_not_come_but_strangers_do(port, _):
    """One says nothing, one sends bytes of another protocol, one has another version."""

    def strangers():
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                silent = socket.create_connection(("127.0.0.1", port))
                break
        web = socket.create_connection(("127.0.0.1", port))
        web.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".ljust(100))
        hello = wire.HELLO.pack(wire.MAGIC, 7, 1, 2, b"")
        old = socket.create_connection(("127.0.0.1", port))
        old.sendall(hello)
        magic, version, error, why = wire.REPLY.unpack(old.recv(200, socket.MSG_WAITALL)[:128])
        for one in (silent, web, old):
            one.close()
        return version, wire.REFUSALS[error], why.rstrip(b"\0")

    reason, told = together(
        lambda: failing(lambda: CExchange.listen(f"127.0.0.1:{port}", timeout=2), "TIMEOUT"),
        strangers,
    )
    assert told == (1, "VERSION", b"it speaks version 7, this side 1")
    assert "party 1 did not connect" in reason and "connections were refused, the last" in reason


def _without_descriptors(call):
    """Make a call while the process may open no descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open("/dev/null", os.O_RDONLY)
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
    try:
        return failing(call, "NO_MEMORY")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@case("dib_exchange_listen", "NO_MEMORY")
def a_listener_gets_no_descriptor(port, _):
    _without_descriptors(lambda: CExchange.listen(f"127.0.0.1:{port}"))


@case("dib_exchange_connect", "NO_MEMORY")
def a_connection_gets_no_descriptor(port, _):
    _without_descriptors(lambda: CExchange.connect(f"127.0.0.1:{port}"))


@case("dib_exchange_connect", "ARGUMENT")
def connecting_makes_no_sense(port, tmp_path):
    for where in ("", "1", ":1", "host:70000", "::1:5"):
        failing(lambda where=where: CExchange.connect(where, timeout=1), "ARGUMENT")
    failing(lambda: CExchange.connect(f"localhost:{port}", party=2), "ARGUMENT")
    (tmp_path / "odd").write_text("x" * 100)
    failing(lambda: CExchange.connect(f"file:{tmp_path}/odd"), "ARGUMENT")
    failing(lambda: CExchange.connect(f"file:{tmp_path}"), "ARGUMENT")
    with three(port):
        failing(lambda: CExchange.connect(f"127.0.0.1:{port}", timeout=SECONDS), "ARGUMENT")


@contextlib.contextmanager
def three(port, **options):
    """An exchange of Python with three parties that waits for the third, and party 1 in C."""
    where = f"127.0.0.1:{port}"
    found = []

    def listen():
        with contextlib.suppress(ExchangeError):
            found.append(Exchange.listen(where, parties=3, timeout=3, **options))

    import threading

    thread = threading.Thread(target=listen)
    thread.start()
    one = CExchange.connect(where, parties=3, timeout=SECONDS, **options)
    try:
        yield where
    finally:
        one.close()
        thread.join()


@case("dib_exchange_connect", "IN_USE")
def the_partys_number_is_taken(port, _):
    with three(port) as where:
        failing(lambda: CExchange.connect(where, parties=3, timeout=SECONDS), "IN_USE")


@case("dib_exchange_connect", "DENIED")
def the_token_is_wrong(port, _):
    with three(port, token="secret") as where:
        failing(lambda: CExchange.connect(where, 2, 3, token="guess", timeout=SECONDS), "DENIED")


@case("dib_exchange_connect", "TIMEOUT")
def nobody_listens(port, tmp_path):
    reason = failing(lambda: CExchange.connect(f"127.0.0.1:{port}", timeout=0.3), "TIMEOUT")
    assert "refused" in reason
    failing(lambda: CExchange.connect(f"file:{tmp_path}/none", timeout=0.3), "TIMEOUT")


def _answered(port, answer):
    """Connect to something that answers so: (call's name of the error, its reason)."""

    def serve():
        with socket.create_server(("127.0.0.1", port)) as server:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)
                connection.recv(80, socket.MSG_WAITALL)
                time.sleep(0.2)

    def connect():
        with pytest.raises(ExchangeError) as raised:
            CExchange.connect(f"127.0.0.1:{port}", timeout=SECONDS)
        return raised.value.name

    return together(serve, connect)[1]


@case("dib_exchange_connect", "VERSION")
def the_other_side_speaks_another_version(port, _):
    assert _answered(port, wire.REPLY.pack(wire.MAGIC, 9, 1, b"")) == "VERSION"


@case("dib_exchange_connect", "PROTOCOL")
def the_other_side_is_no_exchange(port, _):
    assert _answered(port, b"SSH-2.0-OpenSSH_9.2\r\n".ljust(128)) == "PROTOCOL"
    assert _answered(port, b"half a reply") == "PROTOCOL"
    assert _answered(port, wire.REPLY.pack(wire.MAGIC, 1, 77, b"")) == "PROTOCOL"


@case("dib_exchange_publish", "ARGUMENT")
def what_is_published_makes_no_sense(port, _):
    with pair(port) as (_, c):
        for name, data in (("", b""), ("x" * 64, b""), ("x", bytes(wire.DATA_BYTES + 1))):
            failing(lambda name=name, data=data: c.publish(name, data), "ARGUMENT")
        for n in range(wire.ENTRIES):
            c.publish(f"{n}", b"")
        failing(lambda: c.publish("more", b""), "ARGUMENT")


@case("dib_exchange_publish", "IN_USE")
def a_name_is_published_twice(port, _):
    with pair(port) as (_, c):
        c.publish("name", b"1")
        failing(lambda: c.publish("name", b"2"), "IN_USE")


@case("dib_exchange_publish", "NO_MEMORY")
def memory_is_refused(_, tmp_path):
    source = pathlib.Path(__file__).with_name("exchange_memory.c")
    wrapped = re.findall(r"^WRAP\(.*?, (\w+), ", source.read_text(encoding="utf-8"), re.MULTILINE)
    program = sanitized.build(
        [source], tmp_path / "program", options=[f"-Wl,--wrap={name}" for name in wrapped]
    )
    done = subprocess.run([program, tmp_path / "meet"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) >= 10


@case("dib_exchange_look_up", "ARGUMENT")
def a_look_up_makes_no_sense(port, _):
    with pair(port) as (python, c):
        python.publish("key", b"1234")
        failing(lambda: c.look_up(2, "key"), "ARGUMENT")
        failing(lambda: c.look_up(0, ""), "ARGUMENT")
        word, length = ctypes.create_string_buffer(8), ctypes.c_size_t()
        look_up = library().dib_exchange_look_up
        assert look_up(c.handle, 0, b"key", word, 8, None) == -1
        assert look_up(c.handle, 0, b"key", word, 3, ctypes.byref(length)) == -1
        assert length.value == 4
        assert look_up(c.handle, 0, b"key", word, 4, None) == 0 and word.value == b"1234"


@case("dib_exchange_look_up", "TIMEOUT")
@case("dib_exchange_barrier", "TIMEOUT")
def the_others_do_nothing(port, _):
    with meeting(port, (Exchange, CExchange), timeout=0.5) as (_, c):
        assert "has not published" in failing(lambda: c.look_up(0, "key"), "TIMEOUT")
        failing(c.barrier, "TIMEOUT")


@case("dib_exchange_look_up", "LOST")
@case("dib_exchange_barrier", "LOST")
def a_party_has_left(port, _):
    with meeting(port, (Exchange, CExchange, CExchange)) as (listener, one, other):
        one.publish("last words", b"x")
        one.close()
        time.sleep(0.1)
        listener._handle()
        assert other.look_up(1, "last words") == b"x"
        failing(lambda: other.look_up(1, "key"), "LOST")
        reason = failing(other.barrier, "LOST")
        assert "party 1 has left" in reason


def closed(port, _):
    with pair(port) as (_, c):
        handle = c.handle
        c.close()
        lib = library()
        assert lib.dib_exchange_close(handle) == -17
        assert lib.dib_exchange_publish(handle, b"name", b"", 0) == -17
        assert lib.dib_exchange_look_up(handle, 0, b"name", None, 0, None) == -17
        assert lib.dib_exchange_barrier(handle) == -17


def forked(port, _):
    """A child has the handle and no connection; the parent's exchange goes on."""
    with pair(port) as (python, c):
        child = os.fork()
        if child == 0:
            lib = library()
            codes = {
                lib.dib_exchange_publish(c.handle, b"name", b"", 0),
                lib.dib_exchange_look_up(c.handle, 0, b"name", None, 0, None),
                lib.dib_exchange_barrier(c.handle),
                lib.dib_exchange_close(c.handle),
            }
            os._exit(0 if codes == {-22} else 1)
        assert os.waitpid(child, 0)[1] == 0
        c.publish("name", b"1")
        assert python.look_up(1, "name") == b"1"


def of_another_kind(port, _):
    lib = library()
    assert lib.dib_exchange_close(None) == 0
    assert lib.dib_exchange_barrier(None) == -1
    with pair(port) as (_, c):
        assert binding.library().dib_close(c.handle) == -1
        assert b"exchange was given as the card" in lib.dib_last_reason()


for each in ("close", "publish", "look_up", "barrier"):
    case(f"dib_exchange_{each}", "CLOSED")(closed)
    case(f"dib_exchange_{each}", "FORKED")(forked)
for each in ("close", "barrier"):
    case(f"dib_exchange_{each}", "ARGUMENT")(of_another_kind)


def test_each_documented_error_has_a_case():
    documented = {(name, error) for name, f in HEADER.functions.items() for error in f.errors}
    assert set(CASES) == documented


@pytest.mark.fault
@pytest.mark.parametrize("provoke", dict.fromkeys(CASES.values()), ids=lambda f: f.__name__)
def test_a_documented_error_comes(provoke, port, tmp_path):
    provoke(port, tmp_path)


@pytest.mark.fault
@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<IIII", 9, 1, 0, 0),
        struct.pack("<IIII", 1, 1, 64, 0),
        struct.pack("<IIII", 1, 1, 3, 1 << 21),
        struct.pack("<IIII", 1, 0, 1, 0) + b"x",
        struct.pack("<IIII", 1, 7, 1, 0) + b"x",
        struct.pack("<IIII", 1, 1, 0, 4) + b"data",
        struct.pack("<IIII", 3, 1, 0, 0),
        2 * struct.pack("<IIII", 2, 1, 0, 0),
        2 * (struct.pack("<IIII", 1, 1, 1, 0) + b"x"),
    ],
)
def test_a_party_that_breaks_the_protocol_is_lost_by_name(port, frame):
    def broken():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionRefusedError):
                connection = socket.create_connection(("127.0.0.1", port))
                break
            time.sleep(0.01)
        connection.sendall(wire.HELLO.pack(wire.MAGIC, wire.VERSION, 1, 2, b"") + frame)
        connection.recv(1000)
        return connection

    c, connection = together(lambda: CExchange.listen(f"127.0.0.1:{port}", timeout=SECONDS), broken)
    with c, connection:
        reason = failing(lambda: c.look_up(1, "key"), "LOST")
        assert "party 1 has left (it " in reason and "closed the connection" not in reason


def test_the_options_are_those_of_the_header():
    program = "#include <dibber/exchange.h>\nint size = sizeof(struct dib_exchange_options);\n"
    done = subprocess.run(
        [
            *("cc", "-x", "c", "-", "-S", "-o", "-", f"-I{FOLDER.parent}"),
            f"-I{ROOT / 'build' / 'generated'}",
        ],
        input=program,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"\.long\s+(\d+)", done.stdout)[1] == str(ctypes.sizeof(Options))
