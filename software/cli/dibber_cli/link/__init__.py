"""`dibber link`: what a cable does between two cards."""

# SPDX-License-Identifier: BSD-2-Clause
