# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Bitstreams into boards: `dibber flash`, and what the boards' own command lines do."""
