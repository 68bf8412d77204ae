# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The `dibber` command."""
