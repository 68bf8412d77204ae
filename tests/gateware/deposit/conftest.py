"""The golden models stand beside the test folders, in tests/gateware/models; one file here uses the
benches of others.
"""

# SPDX-License-Identifier: BSD-2-Clause

from pathlib import Path
import sys

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "models"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
