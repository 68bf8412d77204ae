"""Bitstreams into boards: `dibber flash`, and what the boards' own command lines do."""

# SPDX-License-Identifier: BSD-2-Clause
