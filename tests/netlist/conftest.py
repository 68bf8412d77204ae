"""The pair of the system tests and the programs that make netlists are found here; `make
test-netlist` has built what is needed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hw" / "synthesis"))
