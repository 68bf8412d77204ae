"""Checks of the tree, and what several of its programs need that is no part of the product."""

# SPDX-License-Identifier: BSD-2-Clause
