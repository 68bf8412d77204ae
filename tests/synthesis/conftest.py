# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The measuring programs are no package: they are found here."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]/"hw"/"synthesis"))
