"""The command line of benchmarks on cards that are there already, and what goes over TCP."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import time

import pytest
from dibber_cli.bench import commands, hosts, options, remote, stride
from dibber_cli.errors import CommandError
from dibber_cli.soak import distant
from dibber_cli.soak.memory import Memory
from libdibber.binding import MailboxAddress
from libdibber.exchange import ExchangeError


@pytest.mark.parametrize(
    "words, reason",
    [
        (("--server",), "take one URI"),
        (("--server", "--client", "host", "sim:a"), "one host has one part"),
        (("--client", "host", "sim:a", "sim:b"), "take one URI"),
        (("sim:a",), "give two cards"),
        (("sim:a", "sim:b", "sim:c"), "give two cards"),
        (("--token", "word"), "belong to --server and --client"),
        (("--port", "1", "sim:a", "sim:b"), "belong to --server and --client"),
        (("--server", "tcp:1"), "names no card"),
    ],
)
def test_options_that_make_no_sense_together(run, words, reason):
    code, out, err = run("bench", "stride", *words)
    assert (code, out) == (2, "") and reason in err


@pytest.mark.parametrize(
    "words, reason",
    [
        (("bidir", "--both"), "in both directions without --both"),
        (("latency", "--both"), "has no --both"),
        (("rate", "--depth", "2"), "has no --depth"),
        (("rate", "--duration", "1"), "has no --duration"),
        (("block", "--series", "sendrecv-postal", "--duration", "1"), "has no --duration"),
        (("block", "--series", "sendrecv-postal", "--iterations", "3"), "has no --iterations"),
        (("link", "--iterations", "3"), "has no --iterations"),
        (("soak", "--size", "8"), "bench soak has no --size"),
        (("latency", "--size", "8"), "bench latency has no --size"),
        (("rate", "--stride", "2"), "bench rate has no --stride"),
        (("matrix", "--stride", "2"), "bench matrix has no --stride"),
        (("mpi", "--size", "8"), "bench mpi has no --size"),
        (("window", "--stride", "2"), "bench window has no --stride"),
        (("stride", "--size", "12"), "outside 8 … 262144, a multiple of 8"),
        (("element", "--size", "65537"), "outside 1 … 65536"),
        (("stride", "--size", "262144", "--stride", "256"), "MiB of memory, more than 256"),
        (("block", "--series", "put-inline", "--size", "4096"), "no point is left"),
        (("stride", "--iterations", "3", "--duration", "1"), "exclude each other"),
        (("link", "--timeline", "x"), "starts several simulators"),
        (("mpi", "sim:a", "sim:b"), "sim:a"),
        (("mpi", "--server", "sim:a"), "--server"),
        (("stride", "--timeline", "x", "sim:a", "sim:b"), "dibber sim start --timeline"),
        (("stride", "--timeline", "x", "--server", "sim:a"), "dibber sim start --timeline"),
    ],
)
def test_options_that_a_benchmark_cannot_have(run, words, reason, folder):
    code, out, err = run("bench", *words, "--out", folder)
    assert (code, out) == (2, "") and reason in err


def test_keys_and_answers_come_back_as_they_were():
    address = MailboxAddress(key=7, node=1, endpoint=3, slots=16, slot_bytes=128, max_length=99)
    value = {"source": 5, "mailbox": address, "none": None, "list": [1.5, "text"]}
    back = remote.decode(remote.encode(value), "it")
    assert bytes(back.pop("mailbox")) == bytes(value.pop("mailbox")) and back == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b'{"structure": "Nothing", "bytes": "00"}',
        b'{"structure": "MailboxAddress", "bytes": "00"}',
        b'{"structure": "MailboxAddress", "bytes": 1}',
        b'{"structure": "MailboxAddress"}',
        b'{"structure": ["MailboxAddress"], "bytes": "00"}',
    ],
)
def test_json_that_makes_no_sense_is_an_error_by_name(data):
    with pytest.raises(ExchangeError, match="it makes no sense"):
        remote.decode(data, "it")


class Sent:
    """An exchange in which the other side has published these values."""

    def __init__(self, **values):
        self.values = {name.replace("_", "-"): data for name, data in values.items()}

    def look_up(self, party, name, timeout=None):
        return self.values[name]


@pytest.mark.parametrize(
    "order", [b"7", b"{}", b'{"point": 99, "keys": {}}', b'{"point": 0, "keys": 3}', b'["count"]']
)
def test_an_order_that_makes_no_sense_ends_the_server_by_name(order):
    client = remote.Client(Sent(order_1=order), stride.points(**stride.QUICK))
    with pytest.raises(ExchangeError, match="order-1 makes no sense"):
        client.recv()


def test_an_answer_that_makes_no_sense_ends_the_client_by_name():
    assert "makes no sense" in remote.Server(Sent(answer_1=b"{")).recv()["failed"]
    assert "that is none" in remote.Server(Sent(answer_1=b"3")).recv()["failed"]


def test_the_digest_tells_other_points_apart():
    few, all_of_them = stride.points(**stride.QUICK), stride.points()
    assert remote.digest(few) == remote.digest(stride.points(**stride.QUICK))
    assert remote.digest(few) != remote.digest(all_of_them)


# Soak between hosts -------------------------------------------------------------------------------


class Orders:
    """An exchange in which the client has published these orders; what the server publishes."""

    def __init__(self, *orders):
        self.orders, self.published = list(orders), {}

    def look_up(self, party, name, timeout):
        return remote.encode(self.orders.pop(0))

    def publish(self, name, data):
        self.published[name] = remote.decode(data, name)


def test_the_server_of_a_soak_names_each_wrong_place_of_its_memory():
    exchange = Orders()
    client = distant.Client(exchange, seed=3)
    memory = Memory(3).arena[1].copy()
    client.send({"memory": memory.tobytes(), "free": False})
    memory[[77, 5000]] ^= 1
    client.send({"memory": memory.tobytes(), "free": False})
    told = [exchange.published[f"answer-{n}"] for n in (1, 2)]
    assert [(one["wrong"], one["places"]) for one in told] == [(0, []), (2, [77, 5000])]
    assert told[0]["compared"] == len(memory)


@pytest.mark.parametrize(
    "order",
    [
        [],
        {"kind": "dance"},
        {"kind": "turn", "round": 0, "size": 0, "keys": [{}, {}]},
        {"kind": "turn", "round": 0, "size": 1 << 40, "keys": [{}, {}]},
        {"kind": "turn", "round": 0, "size": 5, "keys": [{}, {}]},
        {"kind": "turn", "round": 0, "size": 5, "keys": 7},
    ],
)
def test_an_order_of_a_soak_that_makes_no_sense_is_refused(order):
    client = distant.Client(Orders(order), seed=1)
    with pytest.raises(ExchangeError, match="order-1 makes no sense"):
        client.recv()


WRONG = [
    {"depth": -1},
    {"depth": 1 << 40},
    {"duration": float("nan")},
    {"size": -8},
    {"size": 1 << 21},
    {"iterations": float("inf")},
    {"iterations": 1 << 40},
    {"stride": 257},
    {"stride": "wide"},
]


def _run_of(**wrong):
    """What a client sends to a server, with some values in place of the right ones."""
    run = {"test": "stride", "series": "", "quick": True, "seed": 1, "digest": ""}
    return {**run, **options.NONE.told_to_others(), **wrong}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_server_refuses_a_run_whose_numbers_are_out_of_range(wrong):
    exchange = Orders(_run_of(**wrong))
    with pytest.raises(CommandError, match="refused: it makes no sense"):
        hosts._agree(exchange, stride, None)
    assert "refused" in exchange.published["taken"]


def test_a_server_takes_the_points_that_the_clients_options_give():
    wanted = options.Options(size=512, iterations=3, stride=5)
    points = commands._points(stride, "put-dst-strided", True, wanted)
    run = _run_of(series="put-dst-strided", digest=remote.digest(points), **wanted.told_to_others())
    assert hosts._agree(Orders(run), stride, commands._points) == (1, points)
    other = dataclasses.replace(wanted, iterations=4)
    with pytest.raises(CommandError, match="not this side's"):
        hosts._agree(Orders({**run, **other.told_to_others()}), stride, commands._points)


@pytest.mark.parametrize("part", [["--server"], ["--client", "localhost"]])
def test_a_card_that_is_not_there_is_named_before_the_other_host_is_waited_for(run, part):
    start = time.monotonic()
    code, out, err = run("bench", "latency", *part, "sim:/none")
    assert (code, out) == (1, "") and "no simulator at /none" in err
    assert time.monotonic() - start < 10
