"""Bitstreams into boards: `dibber flash`, and the same from the boards' own command lines."""

# SPDX-License-Identifier: BSD-2-Clause
