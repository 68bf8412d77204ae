"""The pair of cards stands in tests/system, the observers' client in tests/system/host_model."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

SYSTEM = pathlib.Path(__file__).parents[1] / "system"
sys.path[:0] = [str(SYSTEM), str(SYSTEM / "host_model")]
