"""The interface description, shared by all layers."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import *  # noqa: F401,F403
