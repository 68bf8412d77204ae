# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The one description of everything that two layers share."""

from dibber.interface.description import *  # noqa: F401,F403
