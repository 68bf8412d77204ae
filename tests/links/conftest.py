"""The cards of a topology stand in tests/system."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))
