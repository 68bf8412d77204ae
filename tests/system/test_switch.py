"""A card asks simulated switches in band, and controls their ports."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import subprocess

import pytest
from dibber.interface.description import STATUS, C
from dibber_cli import paths, profile, switch, topology
from dibber_cli.link import measure

from tests.system.network import opened, put_word, register, wait_notice

LINK = measure.transceivers(profile.load("gen2x4"))
METERS = {"cable0": 3.0, "cable1": 20.0, "cable2": 50.0}


def dibber(*words):
    return subprocess.run(
        [paths.ROOT / "build" / "venv" / "bin" / "dibber", *words],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def long_cables(tmp_path):
    """A file: two cards and two switches in a row, with cables of different lengths."""
    text = topology.named("line:2").toml("line:2")
    for name, meters in METERS.items():
        text = text.replace(f'name = "{name}"', f'name = "{name}"\nlength_m = {meters}')
    (tmp_path / "line.toml").write_text(text)
    return tmp_path / "line.toml"


def test_a_switch_tells_its_ports_cables_and_counters(long_cables):
    done = dibber("switch", "status", "--topology", str(long_cables), "--json")
    assert done.returncode == 0, done.stderr
    near, far = json.loads(done.stdout)
    assert near["identity"] != far["identity"]
    for one, lengths in ((near, (3.0, 20.0)), (far, (20.0, 50.0))):
        assert (one["ports"], one["clock_hz"], one["limit_us"]) == (4, 125_000_000, 8388.6)
        states = [port["state"] for port in one["port"]]
        assert states[:2] == ["UP", "UP"] and "UP" not in states[2:]
        for port, meters in zip(one["port"], lengths):
            assert abs(port["cable_m"] - meters) <= 1.0, (port["cable_m"], meters)
            assert port["counters"]["link_trained"] == 1
        assert [port["cable_m"] for port in one["port"][2:]] == [None, None]
        # The map's scouts, and the first questions of the command.
        assert one["port"][0]["counters"]["asked"] > 10
    assert (near["asked_at"], far["asked_at"]) == (0, 0)
    shown = dibber("switch", "status", "--switch", "1", "--topology", str(long_cables))
    assert "node 1" in shown.stdout and "switch 0 port 1" in shown.stdout


def test_the_port_by_which_a_card_asks_is_not_disabled_and_others_are():
    refused = dibber("switch", "port", "0:0", "disable", "--topology", "star:3")
    assert refused.returncode == 2 and "would lose it" in refused.stderr
    done = dibber("switch", "port", "0:2", "disable", "--topology", "star:3")
    assert (done.returncode, done.stdout) == (0, "switch 0 port 2: disabled\n"), done.stderr
    absent = dibber("switch", "port", "1:2", "disable", "--topology", "star:3")
    assert absent.returncode == 1 and "there is no switch 1" in absent.stderr


@pytest.mark.fault
def test_a_put_waits_while_its_port_is_disabled_and_ends_when_it_is_enabled_again():
    with opened("star:3") as network:
        network.map()
        keys = network.together(register(4096))

        def asks(function):
            """Card 2 asks the switch; the others stay where they are."""
            return network.on({2: lambda side: function(switch.remotes(side.card)[1][0])})[2]

        def enable(remote, bits):
            return remote.write("ENABLE", bits)

        def put(side):
            status = put_word(1, keys[1], b"12345678")(side)[1]
            return status, side.now()

        assert asks(lambda remote: enable(remote, 0xFFFD)) == 0xFFFD

        def later(side):
            side.sleep(300_000)
            enable(switch.remotes(side.card)[1][0], 0xFFFF)
            return side.now()

        answers = network.on({0: put, 1: wait_notice, 2: later})
        (status, ended), enabled = answers[0], answers[2]
        assert status == STATUS.OK and ended > enabled - 50_000
        dropped = asks(lambda remote: switch.describe(remote, lambda ns: None, LINK))
        assert dropped["port"][0]["counters"]["dropped_disabled"] > 0
        assert network.on({1: lambda side: bytes(side.memory[:8])})[1] == b"12345678"
        assert dropped["limit_us"] == round(1024 * C.SWITCH_LIMIT_UNIT / 125, 1)
