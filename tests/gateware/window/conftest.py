"""The golden models stand in tests/gateware/models, the world of these tests beside them."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
for folder in (HERE, HERE.parent / "models"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
