"""The one description of everything that two layers share."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import *  # noqa: F401,F403
