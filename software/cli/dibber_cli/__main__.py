# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

import sys

from dibber_cli.main import main
from dibber_cli.pipe import quiet

sys.exit(quiet(main))
