"""A mock card behind a socket, and the library opened on it."""

# SPDX-License-Identifier: BSD-2-Clause

import itertools
import pathlib
import subprocess
import sys
import tempfile
import types

import libdibber
import pytest
from dibber.interface.description import C
from dibber_cli.main import main

from tests.software.mock_card import Card as MockCard
from tests.software.mock_card import firmware_image
from tests.software.mock_vfio_user import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]

numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def built_library():
    """The library under test is the one of this tree, built now."""
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "software" / "lib"), f"PYTHON={sys.executable}"], check=True
    )


@pytest.fixture
def folder():
    """A short folder name: a socket's path has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="dib") as name:
        yield name


@pytest.fixture(autouse=True)
def own_run_directory(monkeypatch, folder):
    """Each test has its own state of cards and simulators."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)


@pytest.fixture
def serve(folder):
    """serve(clock=True, **attributes of the mock card) → a namespace of card, server, uri."""
    servers = []

    def start(clock=True, **attributes):
        device = MockCard()
        for name, value in attributes.items():
            setattr(device, name, value)
        path = f"{folder}/{next(numbers)}"
        servers.append(Server(path, device, C.BAR0_SIZE, C.CLOCK_MESSAGE, offers_clock=clock))
        return types.SimpleNamespace(device=device, server=servers[-1], uri=f"sim:{path}")

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def run(capsys):
    """run(*words) → exit code, stdout, stderr of the command line `dibber WORDS`."""

    def call(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def image(folder):
    """image(**header) → path of a control program image."""

    def write(cut=0, **header):
        path = f"{folder}/{next(numbers)}.img"
        data = firmware_image(**header)
        with open(path, "wb") as f:
            f.write(data[: len(data) - cut] if cut >= 0 else data + bytes(-cut))
        return path

    return write


@pytest.fixture
def loaded(serve, image):
    """A mock card that runs a control program, opened: namespace of device, server, uri, card,
    endpoint (1).
    """

    def start(**options):
        mock = serve(**options)
        mock.card = libdibber.Card(mock.uri)
        mock.card.load_firmware(image())
        mock.endpoint = mock.card.endpoint(1)
        return mock

    started = []
    yield lambda **options: started.append(start(**options)) or started[-1]
    for mock in started:
        mock.endpoint.close()
        mock.card.close()
