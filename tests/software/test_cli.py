"""The `dibber` command: its output, its exit codes, and errors with advice."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import stat

import pytest
from dibber.interface.description import HOST, C
from dibber_cli import cards, output, paths, profile, simulator
from dibber_cli.errors import ProfileError

# Cards --------------------------------------------------------------------------------------------


def test_info_for_people_and_for_programs(serve, run):
    mock = serve()
    mock.device.registers[HOST["COUNT_POSTS"].offset] = 12
    code, out, _ = run("info", mock.uri)
    assert code == 0 and "8 endpoints of 32 slots" in out and "up" in out.split() and "posts" in out
    code, out, _ = run("info", "--json", mock.uri)
    assert code == 0 and json.loads(out)["counters"]["posts"] == 12


@pytest.fixture
def machine(monkeypatch, folder):
    """machine(devices, {address: driver}): such files of /dev, such cards in sysfs."""

    def install(devices, drivers):
        dev, pci = paths.Path(folder) / "dev", paths.Path(folder) / "pci"
        for name in devices:
            (dev / name).parent.mkdir(parents=True, exist_ok=True)
            (dev / name).touch()
        for address, (vendor, driver) in drivers.items():
            (pci / address).mkdir(parents=True)
            (pci / address / "vendor").write_text(f"{vendor:#06x}\n")
            (pci / address / "device").write_text(f"{C.PCI_DEVICE:#06x}\n")
            if driver:
                (pci / address / "driver").symlink_to(f"/sys/bus/pci/drivers/{driver}")
        monkeypatch.setattr(cards, "DEVICES", dev)
        monkeypatch.setattr(cards, "PCI_DEVICES", pci)

    return install


def test_info_without_a_uri_lists_cards_of_the_driver_of_vfio_and_of_the_simulator(
    machine, serve, run, monkeypatch
):
    machine(
        ["dibber10", "dibber2", "dibber-old"],
        {
            "0000:01:00.0": (C.PCI_VENDOR, "dibber"),
            "0000:02:00.0": (C.PCI_VENDOR, "vfio-pci"),
            "0000:03:00.0": (C.PCI_VENDOR, None),
            "0000:04:00.0": (0x8086, "vfio-pci"),
        },
    )
    mock = serve()
    socket = paths.Path(mock.uri.removeprefix("sim:"))
    (paths.run_directory()).mkdir(exist_ok=True)
    (paths.run_directory() / "card0.sock").symlink_to(socket)
    monkeypatch.setattr(simulator, "running", lambda: 1)
    code, out, _ = run("info", "--json")
    found = {card.pop("uri"): card for card in json.loads(out)}
    assert code == 0
    assert [uri.rpartition("/")[2] for uri in found] == [
        "dibber2",
        "dibber10",
        "vfio:0000:02:00.0",
        "vfio:0000:03:00.0",
        "card0.sock",
    ]
    assert found["vfio:0000:02:00.0"] == {"state": "driver vfio-pci"}
    assert found["vfio:0000:03:00.0"] == {"state": "no driver"}
    assert found[f"sim:{paths.run_directory()}/card0.sock"]["link_state"] == "UP"
    # The files in place of the devices are no cards, and that is said.
    assert "error" in list(found.values())[0]
    code, out, _ = run("info")
    assert code == 0 and "vfio-pci" in out and "UP" in out


def test_info_without_a_uri_says_that_there_is_no_card(machine, run):
    machine([], {})
    code, out, _ = run("info")
    assert code == 0 and "no card was found" in out and "1209:d1bb" in out
    assert json.loads(run("info", "--json")[1]) == []


def test_fw_load(serve, run, image):
    code, out, _ = run("fw", "load", image(), serve().uri)
    assert code == 0 and "d1bb0001" in out


@pytest.mark.parametrize(
    "words, code, reason, advice",
    [
        (("info", "sim:/nowhere"), 1, "NOT_FOUND", "dibber sim start"),
        (("info", "tcp:1"), 2, "'tcp:1' names no", "sim:PATH_OF_SOCKET"),
        (("bench", "stride", "--profile", "gen9"), 2, "no profile 'gen9'", "gen2x4"),
        (("bench", "nothing"), 2, "nothing", "stride"),
        (("sim",), 2, "missing", "--help"),
        (("map", "tcp:1", "--json", "tcp:2"), 2, "'tcp:1' names no", "sim:PATH_OF_SOCKET"),
        (("flash", "tcp:1", "--golden"), 1, "manifest.json", "make bitstream"),
        (("flash", "--golden"), 2, "FILE", "usage"),
        ((), 2, "COMMAND", "usage"),
    ],
)
def test_errors_say_what_to_do(run, words, code, reason, advice):
    ended, out, err = run(*words)
    assert (ended, out) == (code, "") and reason in err and advice in err


def test_a_truncated_image(serve, run, image):
    code, _, err = run("fw", "load", image(cut=8), serve().uri)
    assert code == 1 and "FIRMWARE_FILE" in err and "make firmware" in err


# Profiles -----------------------------------------------------------------------------------------


def test_every_profile_can_be_read():
    assert {"gen2x4", "gen2x1", "gen1x1"} <= set(profile.names())
    for name in profile.names():
        assert profile.load(name).name == name


def test_a_profile_without_a_key_names_it(tmp_path):
    text = (paths.PROFILES / "gen2x4.toml").read_text()
    (tmp_path / "p.toml").write_text(text.replace("max_payload ", "max_payloda "))
    with pytest.raises(ProfileError, match="'pcie.max_payload' is missing"):
        profile.load(str(tmp_path / "p.toml"))


def test_a_profile_that_is_no_toml(tmp_path):
    (tmp_path / "p.toml").write_text("[card\n")
    with pytest.raises(ProfileError, match="p.toml"):
        profile.load(str(tmp_path / "p.toml"))


# Simulator ----------------------------------------------------------------------------------------


@pytest.fixture
def fake_simulator(monkeypatch, folder):
    """fake_simulator(script): a script in place of dibber-sim, with a run folder of its own."""

    def install(script):
        path = f"{folder}/dibber-sim-fake"
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        paths.Path(path).chmod(stat.S_IRWXU)
        monkeypatch.setattr(paths, "simulator", lambda _: paths.Path(path))
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)

    return install


def test_sim_start_status_stop(fake_simulator, run):
    fake_simulator("echo ready\nwhile :; do sleep 0.05; done\n")
    assert run("sim", "status")[1] == "no simulator is running\n"
    code, out, _ = run("sim", "start")
    assert code == 0 and "card1.sock" in out
    code, _, err = run("sim", "start")
    assert code == 1 and "running already" in err
    status = json.loads(run("sim", "status", "--json")[1])
    assert status["running"] and status["profile"] == "gen2x4"
    assert run("sim", "stop")[0] == 0
    code, _, err = run("sim", "stop")
    assert code == 1 and "no simulator is running" in err


def test_a_simulator_that_does_not_start_says_why(fake_simulator, run):
    fake_simulator("echo 'dibber-sim: profile x: unknown key y' >&2\nexit 1\n")
    code, _, err = run("sim", "start")
    assert code == 1 and "unknown key y" in err


def test_a_simulator_that_is_not_built(monkeypatch, run):
    monkeypatch.setattr(paths, "simulator", lambda _: paths.Path("/nowhere/dibber-sim"))
    code, _, err = run("sim", "start")
    assert code == 1 and "make simulator" in err


def test_a_pair_that_fails_is_noticed(fake_simulator):
    fake_simulator("echo ready\necho 'it broke' >&2\nexit 3\n")
    with pytest.raises(simulator.SimulatorError, match="it broke"):
        with simulator.Pair(profile.load("gen2x4")) as pair:
            pair.process.wait()


# Tables -------------------------------------------------------------------------------------------


def test_a_table_puts_numbers_to_the_right(capsys):
    output.table(["name", "n"], [("a", 1), ("b", 100)])
    assert capsys.readouterr().out.splitlines()[2:] == ["a       1", "b     100"]
