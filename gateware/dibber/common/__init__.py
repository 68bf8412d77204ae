"""Blocks and helpers that more than one layer uses. They know no layer."""

# SPDX-License-Identifier: BSD-2-Clause
