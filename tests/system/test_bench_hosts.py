"""Benchmarks on cards that are there already: a server and a client that share nothing but TCP and
the cable between their cards, and two cards of one host.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import signal
import socket
import subprocess
import sys
import time

import libdibber
import pytest
from dibber_cli import profile
from dibber_cli.bench import link, session, stride
from dibber_cli.simulator import Pair

SERIES = "put-dst-strided"
POINTS = ("--quick", "--series", SERIES)


@pytest.fixture
def pair():
    with Pair(profile.load("gen2x4")) as found:
        yield found


def dibber(*words):
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "dibber_cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def values(report):
    return [
        {key: value for key, value in point.items() if key != "wall_seconds"}
        for point in report["points"]
        if point["series"] == SERIES
    ]


@pytest.fixture(scope="module")
def expected(litepcie_rate):
    """What a simulated pair of the benchmark's own measures."""
    points = stride.points(series=(SERIES,), **stride.QUICK)
    return values(session.run(stride, profile.load("gen2x4"), 1, "test", points))


def test_server_and_client_give_the_table_of_a_pair(pair, port, tmp_path, expected):
    server = dibber("bench", "stride", "--server", "--port", port, "--token", "word", pair.uris[1])
    client = dibber(
        *("bench", "stride", *POINTS, "--client", "localhost", "--port", port),
        *("--token", "word", "--json", "--out", tmp_path, pair.uris[0]),
    )
    code, out, err = ended(client)
    assert code == 0, err
    report = json.loads(out)
    assert values(report) == expected
    assert report["bytes_wrong"] == 0 and report["time_base"] == "simulated"
    assert f"--client localhost {pair.uris[0]}" in report["command"]
    code, out, err = ended(server)
    assert code == 0 and "the run is over" in out, err


def test_two_cards_of_this_host_give_the_same_table(pair, tmp_path, expected):
    code, out, err = ended(
        dibber("bench", "stride", *POINTS, "--json", "--out", tmp_path, *pair.uris)
    )
    assert code == 0, err
    assert values(json.loads(out)) == expected


def test_the_server_tells_the_line_for_the_other_host(pair, port):
    server = dibber("bench", "stride", "--server", "--port", port, pair.uris[1])
    line = server.stdout.readline()
    assert f"dibber bench stride --client {socket.gethostname()} --port {port} --token " in line
    server.send_signal(signal.SIGINT)
    assert ended(server)[0] == 130


@pytest.mark.parametrize(
    "words, reason",
    [
        (("stride", *POINTS, "--token", "guess"), "DENIED"),
        (("rate", "--token", "word"), "this server measures stride, not rate"),
    ],
)
def test_a_client_that_is_refused_says_why(pair, port, tmp_path, words, reason):
    server = dibber("bench", "stride", "--server", "--port", port, "--token", "word", pair.uris[1])
    client = dibber(
        "bench", *words, "--client", "localhost", "--port", port, "--out", tmp_path, pair.uris[0]
    )
    code, out, err = ended(client)
    assert (code, out) == (1, "") and reason in err
    server.send_signal(signal.SIGTERM)
    ended(server)


def test_a_wrong_profile_is_told_before_anything_is_measured(pair, tmp_path):
    code, out, err = ended(
        dibber("bench", "stride", *POINTS, "--profile", "gen2x1", "--out", tmp_path, *pair.uris)
    )
    assert (code, out) == (1, "") and "data_width 128, profile gen2x1 64" in err


@pytest.mark.parametrize("killed", ["server", "client"])
def test_a_side_that_is_killed_ends_the_other_one_by_name(pair, port, tmp_path, killed):
    """The one that is left ends within seconds. The simulator's clock goes on without the other."""
    server = dibber("bench", "stride", "--server", "--port", port, "--token", "word", pair.uris[1])
    client = dibber(
        *("bench", "stride", "--client", "localhost", "--port", port, "--token", "word"),
        *("--out", tmp_path, pair.uris[0]),
    )
    end = time.monotonic() + 120
    while not _transfers(pair) and time.monotonic() < end:
        assert server.poll() is None and client.poll() is None
        time.sleep(0.1)
    victim, other = (server, client) if killed == "server" else (client, server)
    victim.kill()
    victim.communicate()
    code, _, err = ended(other)
    assert code == 1 and ("LOST" in err or "has left" in err), err


def _transfers(pair):
    """Whether the run is in the middle of its points."""
    with libdibber.Card(pair.uris[0], observe=True) as card:
        return card.info()["counters"]["packets_sent"] > 200


def test_duration_and_both_directions_are_agreed_upon(pair, port, tmp_path):
    server = dibber("bench", "block", "--server", "--port", port, "--token", "word", pair.uris[1])
    client = dibber(
        *("bench", "block", "--quick", "--series", "put-one-at-a-time", "--duration", "0.3"),
        *("--both", "--depth", "16"),
        *("--client", "localhost", "--port", port, "--token", "word", "--json"),
        *("--out", tmp_path, pair.uris[0]),
    )
    code, out, err = ended(client)
    assert code == 0, err
    report = json.loads(out)
    assert report["bytes_wrong"] == 0 and "--duration 0.3 --both --depth 16" in report["command"]
    found = {point["x"]: point for point in report["points"]}
    # 0.3 ms are 37,500 cycles; the transfers under way at its end are awaited. Transfers of 64 KiB
    # take longer than that once.
    assert all(37_500 < found[x]["cycles"] < 80_000 for x in (4, 64, 1024, 8192)), found
    # Two directions carry more than the link carries in one.
    assert 600 < found[8192]["value"] <= found[8192]["bound"]
    assert ended(server)[0] == 0


@pytest.mark.parametrize("hosts", [1, 2])
def test_size_iterations_and_stride_give_one_point_with_so_many_transfers(
    pair, port, tmp_path, hosts
):
    """256 transfers of 4 KiB at a stride of 3 elements. There are places for four; each further
    transfer writes the same bytes again.
    """
    words = (
        *("bench", "bidir", "--series", "put-both-strided", "--size", "4096"),
        *("--stride", "3", "--iterations", "256", "--json", "--out", tmp_path),
    )
    if hosts == 1:
        code, out, err = ended(dibber(*words, *pair.uris))
    else:
        server = dibber(
            "bench", "bidir", "--server", "--port", port, "--token", "word", pair.uris[1]
        )
        client = dibber(
            *(*words, "--client", "localhost", "--port", port, "--token", "word", pair.uris[0])
        )
        code, out, err = ended(client)
        assert ended(server)[0] == 0
    assert code == 0, err
    report = json.loads(out)
    assert report["options"] == {"size": 4096, "iterations": 256, "stride": 3}
    assert "--size 4096 --iterations 256 --stride 3" in report["command"]
    assert report["bytes_wrong"] == 0 and {p["x"] for p in report["points"]} == {3}
    # 1 MiB of each direction, of which a byte takes 1 / value microseconds of 125 cycles.
    for point in report["points"]:
        assert point["cycles"] * point["value"] / 125 == pytest.approx(256 * 4096, rel=0.01), point
        assert point["value"] < point["bound"]


def test_the_cable_between_two_hosts_is_measured_as_that_of_a_pair(pair, port, tmp_path):
    server = dibber("bench", "link", "--server", "--port", port, "--token", "word", pair.uris[1])
    client = dibber(
        *("bench", "link", "--client", "localhost", "--port", port, "--token", "word", "--json"),
        *("--out", tmp_path, pair.uris[0]),
    )
    code, out, err = ended(client)
    assert code == 0, err
    report = json.loads(out)
    found = {point["series"]: point["value"] for point in report["points"]}
    assert ended(server)[0] == 0 and report["bytes_wrong"] == 0
    assert found.pop("errors-found") == 0
    own = session.run(
        link, profile.load("gen2x4"), 1, "test", [link.Cable("length", 3)]
    )  # the cable of the profile has 3 m too
    expected = {point["series"]: point["value"] for point in own["points"]}
    # Training begins at another time of the other end's flow words.
    assert abs(found.pop("training") - expected.pop("training")) < 10
    assert found == pytest.approx(expected, rel=0.01)


def test_a_soak_between_two_hosts_compares_both_memories(pair, port, tmp_path):
    server = dibber("bench", "soak", "--server", "--port", port, "--token", "word", pair.uris[1])
    client = dibber(
        *("bench", "soak", "--quick", "--client", "localhost", "--port", port, "--token", "word"),
        *("--json", "--out", tmp_path, pair.uris[0]),
    )
    code, out, err = ended(client)
    assert code == 0, err
    report = json.loads(out)
    assert ended(server)[0] == 0 and report["bytes_wrong"] == 0
    # Three rounds, of which each compares 2.2 MB on either side.
    assert report["bytes_compared"] + report["guard_bytes_compared"] > 12_000_000
    assert sum(report["operations"].values()) >= 240
    assert "the cable is as it is" in report["notes"]
