# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The golden models stand beside the test folders, in tests/gateware/models."""

import pathlib
import sys

MODELS = str(pathlib.Path(__file__).resolve().parents[1] / "models")
if MODELS not in sys.path:
    sys.path.insert(0, MODELS)
