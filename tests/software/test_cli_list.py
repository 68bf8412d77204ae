"""`dibber list` and `dibber --version`: which cards there are, who uses them, which versions."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import socket

import pytest
from dibber.interface.description import INTERFACE, C
from dibber_cli import find, unix_peers, version

# Simulated cards ----------------------------------------------------------------------------------


def table(tmp_path, *paths, flags="00010000"):
    """/proc/net/unix with sockets of these names that listen."""
    head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
    rows = [
        f"0000000000000000: 00000002 00000000 {flags} 0001 01 {n} {path}\n"
        for n, path in enumerate(paths)
    ]
    (tmp_path / "unix").write_text(head + "".join(rows))
    return tmp_path / "unix"


def test_a_simulated_card_is_found_with_its_state(serve, tmp_path, folder, monkeypatch):
    mock = serve()
    path = f"{folder}/card0.sock"
    os.symlink(mock.uri.removeprefix("sim:"), path)
    os.symlink(mock.uri.removeprefix("sim:"), f"{path}.admin")
    monkeypatch.setattr(find.simulator, "clock_state_at", lambda _: "time goes on")
    (card,) = find.simulated(table(tmp_path, path, f"{folder}/other", "/nowhere/card0.sock"))
    assert card["uri"] == f"sim:{path}" and card["kind"] == "simulated"
    assert "node 0" in card["state"] and "control program RESET" in card["state"]


def test_a_simulator_that_hangs_is_listed_and_not_waited_for(tmp_path, folder, monkeypatch):
    path = f"{folder}/card1.sock"
    for name in (path, f"{path}.admin"):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
    monkeypatch.setattr(find.simulator, "ANSWER_SECONDS", 0.1)
    (card,) = find.simulated(table(tmp_path, path))
    assert card["state"] == "the simulator does not answer"


def test_sockets_that_do_not_listen_are_no_cards(tmp_path, folder):
    assert list(find.simulated(table(tmp_path, f"{folder}/card0.sock", flags="00000000"))) == []


def test_who_is_connected_to_a_socket(folder):
    path = f"{folder}/card0.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        assert unix_peers.clients([path]) == {path: set()}
        client.connect(path)
        server, _ = listener.accept()
        with server:
            if not unix_peers.sockets():
                pytest.skip("this kernel has no unix_diag")
            assert unix_peers.clients([path]) == {path: {os.getpid()}}


# PCI functions ------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path):
    """machine(address, driver, vendor=, node=): a PCI function in a sysfs of the test."""

    def add(address, driver=None, vendor=C.PCI_VENDOR, node=None):
        function = tmp_path / "sys/bus/pci/devices" / address
        function.mkdir(parents=True)
        (function / "vendor").write_text(f"{vendor:#06x}\n")
        (function / "device").write_text(f"{C.PCI_DEVICE:#06x}\n")
        if driver:
            (tmp_path / "drivers" / driver).mkdir(parents=True, exist_ok=True)
            (function / "driver").symlink_to(tmp_path / "drivers" / driver)
        if driver == "vfio-pci":
            (tmp_path / "groups/7").mkdir(parents=True)
            (function / "iommu_group").symlink_to(tmp_path / "groups/7")
        if node:
            (function / "misc" / node).mkdir(parents=True)

    add.list = lambda: list(find.pci(tmp_path / "sys", tmp_path / "dev", tmp_path / "proc"))
    return add


def test_each_pci_function_is_listed_with_what_its_driver_allows(machine, monkeypatch):
    monkeypatch.setattr(find, "state_of", lambda uri: f"asked {uri}")
    machine("0000:01:00.0")
    machine("0000:02:00.0", "dibber", node="dibber0")
    machine("0000:03:00.0", "vfio-pci")
    machine("0000:04:00.0", "other")
    machine("0000:05:00.0", vendor=0x8086)
    bare, driven, vfio, other = machine.list()
    assert bare["uri"] is None and "no driver" in bare["state"]
    assert driven["uri"].endswith("/dev/dibber0") and driven["state"].startswith("asked")
    # Opening a card by VFIO resets it, so it is not asked.
    assert (vfio["uri"], vfio["state"]) == ("vfio:0000:03:00.0", "not in use")
    assert other["uri"] is None and "driver other" in other["state"]


def test_a_card_that_a_process_has_by_vfio_is_in_use_and_not_asked(machine, tmp_path):
    machine("0000:03:00.0", "vfio-pci")
    folder = tmp_path / "proc/42/fd"
    folder.mkdir(parents=True)
    (folder / "3").symlink_to(tmp_path / "dev/vfio/7")
    (card,) = machine.list()
    assert card["state"] == "in use" and card["users"] == [42]


# Commands -----------------------------------------------------------------------------------------


def test_the_list_for_people_and_for_programs(run, monkeypatch):
    cards = [find.entry("sim:/a/card0.sock", "simulated", "this machine", "up", {os.getpid()})]
    monkeypatch.setattr(find, "found", lambda _: cards)
    code, out, _ = run("list")
    assert code == 0 and "sim:/a/card0.sock" in out and f"({os.getpid()})" in out
    assert json.loads(run("list", "--json")[1]) == cards
    cards.clear()
    assert "dibber sim start" in run("list")[1]


def test_versions_of_the_library_the_interface_and_the_firmware(run):
    code, out, _ = run("--version")
    assert code == 0
    for name in ("library", "interface", "firmware"):
        assert any(line.startswith(name) for line in out.splitlines())
    assert out.count(f"{INTERFACE.hash:08x}") >= 2


def test_an_image_for_another_interface_is_told(image, tmp_path):
    assert "ANOTHER INTERFACE" in version.firmware(image(hash=1))
    assert "ANOTHER" not in version.firmware(image())
    assert "not built" in version.firmware(tmp_path / "none")
    (tmp_path / "short").write_bytes(b"DIBM")
    assert "no image" in version.firmware(tmp_path / "short")
