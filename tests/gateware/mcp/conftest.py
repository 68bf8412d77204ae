"""The golden models stand beside the test folders, in tests/gateware/models; the card and its
control program.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

import pytest

MODELS = str(pathlib.Path(__file__).resolve().parents[1] / "models")
if MODELS not in sys.path:
    sys.path.insert(0, MODELS)

from card import build, compile_probe


@pytest.fixture(scope="session")
def card():
    """The path of the bench program for a 64-bit card."""
    return build()


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    """The words of the probe program."""
    return compile_probe(tmp_path_factory.mktemp("probe"))
