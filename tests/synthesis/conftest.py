"""The measuring programs are no package: they are found here."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "hw" / "synthesis"))
