"""libdibber.exchange: values by name and barriers between programs that share nothing but TCP."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import os
import random
import socket
import stat
import struct
import threading
import time

import pytest
from libdibber import exchange_wire as wire
from libdibber.exchange import Exchange, ExchangeError

SECONDS = 20


def together(*functions):
    """Run each in a thread of its own: what they return, or the errors that they raise."""
    results = [None] * len(functions)

    def run(n):
        try:
            results[n] = functions[n]()
        except Exception as error:
            results[n] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * SECONDS)
        assert not thread.is_alive()
    return results


@pytest.fixture
def parties(port):
    """parties(n, **options): n exchanges that have found each other."""
    with contextlib.ExitStack() as opened:

        def start(count=2, **options):
            options = {"parties": count, "timeout": SECONDS, **options}
            found = together(
                lambda: Exchange.listen(f"127.0.0.1:{port}", **options),
                *(
                    lambda n=n: Exchange.connect(f"127.0.0.1:{port}", party=n, **options)
                    for n in range(1, count)
                ),
            )
            assert all(isinstance(one, Exchange) for one in found), found
            for one in found:
                opened.callback(one.close)
            return found

        yield start


# What it does -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 4])
def test_each_party_finds_what_every_other_published(parties, count):
    data = [random.Random(n).randbytes(1 << 20) for n in range(count)]

    def one(exchange):
        exchange.publish("memory", data[exchange.party])
        exchange.barrier()
        found = [exchange.look_up(n, "memory") for n in range(count)]
        exchange.barrier()
        return found

    assert together(*(lambda x=x: one(x) for x in parties(count))) == [data] * count


def test_nobody_passes_a_barrier_before_all_have_come(parties):
    passed = []

    def one(exchange):
        for n in range(50):
            passed.append(n)
            exchange.barrier()
            assert passed.count(n) == 3
            exchange.barrier()

    assert together(*(lambda x=x: one(x) for x in parties(3))) == [None] * 3


def test_a_value_of_no_bytes_is_one(parties):
    a, b = parties()
    a.publish("empty", b"")
    assert b.look_up(0, "empty") == b""


def test_what_was_published_outlives_its_publisher(parties):
    a, b = parties()
    b.publish("last words", b"x" * (1 << 20))
    assert together(b.close, lambda: a.look_up(1, "last words"))[1] == b"x" * (1 << 20)


def test_a_connection_by_ipv6(port):
    where = f"[::1]:{port}"
    a, b = together(lambda: Exchange.listen(where), lambda: Exchange.connect(where))
    if isinstance(a, ExchangeError):
        pytest.skip(f"no IPv6 here: {a}")
    with a, b:
        a.publish("key", b"1")
        assert b.look_up(0, "key") == b"1"


def test_a_rendezvous_file_is_private_and_goes_when_all_are_there(tmp_path):
    path = tmp_path / "meet"
    modes = []

    def listen():
        with Exchange.listen(f"file:{path}", timeout=SECONDS) as a:
            return a.party

    def connect():
        while not path.exists():
            time.sleep(0.01)
        modes.append(stat.S_IMODE(path.stat().st_mode))
        with Exchange.connect(f"file:{path}", timeout=SECONDS) as b:
            return b.party

    assert together(listen, connect) == [0, 1]
    assert modes == [0o600] and os.listdir(tmp_path) == []


def test_the_one_that_connects_may_come_first(port):
    def late():
        time.sleep(0.5)
        return Exchange.listen(f"127.0.0.1:{port}", timeout=SECONDS)

    a, b = together(late, lambda: Exchange.connect(f"127.0.0.1:{port}", timeout=SECONDS))
    a.close()
    b.close()


class Endpoint:
    """Counts how often the clock is left and entered."""

    def __init__(self):
        self.states = []

    @contextlib.contextmanager
    def outside_clock(self, pause=False):
        self.states.append("paused" if pause else "left")
        yield
        self.states.append("back")


def test_a_barrier_is_outside_the_simulators_clock(parties):
    endpoint = Endpoint()
    a, b = parties(endpoint=endpoint)
    endpoint.states.clear()
    together(a.barrier, b.barrier)
    assert endpoint.states.count("left") == endpoint.states.count("back") == 2


def test_a_value_that_is_here_costs_no_pause_of_the_clock_and_another_one_does(parties):
    endpoint = Endpoint()
    a, b = parties(endpoint=endpoint)
    a.publish("key", b"1")
    together(a.barrier, b.barrier)
    endpoint.states.clear()
    assert b.look_up(0, "key") == b"1" and endpoint.states == []

    def late():
        time.sleep(0.2)
        a.publish("late", b"2")

    assert together(late, lambda: b.look_up(0, "late"))[1] == b"2"
    assert endpoint.states == ["paused", "back"]


# What goes wrong ----------------------------------------------------------------------------------


def named(error):
    assert isinstance(error, ExchangeError), error
    return error.name


def test_a_wrong_token_is_refused_and_the_right_party_still_gets_in(port):
    where = f"127.0.0.1:{port}"

    def both():
        with pytest.raises(ExchangeError, match="wrong token") as refused:
            Exchange.connect(where, token="guess", timeout=SECONDS)
        with Exchange.connect(where, token="secret", timeout=SECONDS):
            return refused.value.name

    a, name = together(lambda: Exchange.listen(where, token="secret", timeout=SECONDS), both)
    assert name == "DENIED"
    a.close()


STRANGERS = [
    b"",
    b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    random.Random(1).randbytes(4096),
    wire.HELLO.pack(wire.MAGIC, 99, 1, 2, b""),
    wire.HELLO.pack(wire.MAGIC, wire.VERSION, 7, 2, b""),
    wire.HELLO.pack(wire.MAGIC, wire.VERSION, 0, 2, b""),
    wire.HELLO.pack(wire.MAGIC, wire.VERSION, 1, 3, b""),
    wire.HELLO.pack(wire.MAGIC, wire.VERSION, 1, 2, b"")[:40],
]


def test_strangers_and_those_who_say_nothing_keep_nobody_out(port):
    def disturb_then_connect():
        held = []
        for words in STRANGERS * 2:
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    held.append(socket.create_connection(("127.0.0.1", port), SECONDS))
                    break
                time.sleep(0.01)
            with contextlib.suppress(OSError):
                held[-1].sendall(words)
        with Exchange.connect(f"127.0.0.1:{port}", timeout=SECONDS) as b:
            b.publish("key", b"1")
            b.barrier()
        for one in held:
            one.close()

    def listen():
        with Exchange.listen(f"127.0.0.1:{port}", timeout=SECONDS) as a:
            a.barrier()
            return a.look_up(1, "key")

    assert together(listen, disturb_then_connect) == [b"1", None]


def test_who_did_not_come_is_named_with_the_last_stranger(port):
    def stranger():
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", port)) as one:
            one.sendall(b"x" * 200)
            one.recv(1)

    error, _ = together(lambda: Exchange.listen(f"127.0.0.1:{port}", timeout=1), stranger)
    assert named(error) == "TIMEOUT" and "party 1 did not connect" in str(error)
    assert "no party of an exchange" in str(error)


def server(port, answer):
    """Something that listens and answers with these bytes."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(SECONDS)
        connection, _ = listener.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(answer)
            time.sleep(0.2)


@pytest.mark.parametrize(
    "answer, name",
    [
        (b"", "PROTOCOL"),
        (b"SSH-2.0-OpenSSH_9.2\r\n".ljust(200), "PROTOCOL"),
        (wire.REPLY.pack(wire.MAGIC, 2, 1, b""), "VERSION"),
        (wire.REPLY.pack(wire.MAGIC, 1, 77, b""), "PROTOCOL"),
    ],
)
def test_what_listens_there_and_is_no_exchange_is_named(port, answer, name):
    _, error = together(
        lambda: server(port, answer),
        lambda: Exchange.connect(f"127.0.0.1:{port}", timeout=SECONDS),
    )
    assert named(error) == name


def test_nobody_listens(port):
    with pytest.raises(ExchangeError, match="nobody listens") as error:
        Exchange.connect(f"127.0.0.1:{port}", timeout=0.3)
    assert error.value.name == "TIMEOUT"


def test_a_port_that_is_taken(port):
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ExchangeError) as error:
        Exchange.listen(f"127.0.0.1:{port}", timeout=1)
    assert error.value.name == "IN_USE"


def test_a_party_that_leaves_ends_the_others_wait_at_once(parties):
    a, b, c = parties(3)

    def leave():
        time.sleep(0.2)
        c._links[0].connection.close()

    begin = time.monotonic()
    errors = together(a.barrier, lambda: b.look_up(2, "nothing"), leave)
    assert [named(error) for error in errors[:2]] == ["LOST", "LOST"]
    assert all("party 2 has left" in str(error) for error in errors[:2])
    assert time.monotonic() - begin < SECONDS / 2


def test_a_party_that_is_silent_is_waited_for_until_the_time_is_over(parties):
    a, b = parties()
    for call in (lambda: a.look_up(1, "nothing", timeout=0.2), lambda: b.barrier(timeout=0.2)):
        with pytest.raises(ExchangeError) as error:
            call()
        assert error.value.name == "TIMEOUT"


FRAMES = [
    wire.FRAME.pack(9, 1, 0, 0),
    wire.FRAME.pack(wire.PUBLISH, 1, 64, 0) + bytes(64),
    wire.FRAME.pack(wire.PUBLISH, 1, 1, wire.DATA_BYTES + 1),
    wire.FRAME.pack(wire.PUBLISH, 0, 1, 0) + b"a",
    wire.FRAME.pack(wire.PUBLISH, 7, 1, 0) + b"a",
    (wire.FRAME.pack(wire.PUBLISH, 1, 1, 0) + b"a") * 2,
    wire.FRAME.pack(wire.ARRIVED, 1, 0, 0) * 2,
    wire.FRAME.pack(wire.RELEASED, 1, 0, 0),
    random.Random(3).randbytes(1000),
]


@pytest.mark.parametrize("frame", FRAMES, ids=range(len(FRAMES)))
def test_a_party_that_breaks_the_protocol_is_given_up_by_name(parties, frame):
    a, b = parties()
    b._links[0].connection.sendall(frame)
    with pytest.raises(ExchangeError) as error:
        a.look_up(1, "nothing", timeout=SECONDS)
    assert error.value.name == "LOST" and "party 1" in str(error.value)


def test_random_bytes_never_crash_a_party(parties):
    a, b = parties()
    link, seed = a._links[1], random.Random(5)
    for _ in range(300):
        size = seed.choice((0, 1, 5, 63, 64, 2000))
        kind = seed.randrange(6)
        link.received[:] = struct.pack(
            "<IIII", kind, seed.randrange(3), seed.randrange(70), size
        ) + seed.randbytes(size)
        with contextlib.suppress(ExchangeError):
            while (frame := link.frame()) is not None:
                a._take(1, *frame)
    b.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Exchange.listen("host"),
        lambda: Exchange.listen("::1:80"),
        lambda: Exchange.listen("1:99999"),
        lambda: Exchange.connect("7471"),
        lambda: Exchange.connect("host:1", party=0),
        lambda: Exchange.connect("host:1", party=2),
        lambda: Exchange.listen("0", parties=65),
        lambda: Exchange.listen("0", parties=1),
        lambda: Exchange.connect("host:1", token="x" * 65),
        lambda: Exchange.connect("host:1", token="a\0b"),
        lambda: Exchange.listen("file:/nowhere/at/all", timeout=1),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_at_once(call):
    with pytest.raises(ExchangeError) as error:
        call()
    assert error.value.name == "ARGUMENT"


def test_names_and_values_have_limits(parties):
    a, _ = parties()
    a.publish("n" * wire.NAME_BYTES, bytes(wire.DATA_BYTES))
    for name, data in (("", b""), ("n" * 64, b""), ("x", bytes(wire.DATA_BYTES + 1))):
        with pytest.raises(ExchangeError, match="ARGUMENT|bytes"):
            a.publish(name, data)
    a.publish("twice", b"1")
    with pytest.raises(ExchangeError) as error:
        a.publish("twice", b"1")
    assert error.value.name == "IN_USE"
    with pytest.raises(ExchangeError):
        a.look_up(2, "x")


def test_calls_on_a_closed_exchange(parties):
    a, _ = parties()
    a.close()
    a.close()
    for call in (lambda: a.publish("x", b""), lambda: a.look_up(1, "x"), a.barrier):
        with pytest.raises(ExchangeError) as error:
            call()
        assert error.value.name == "CLOSED"
