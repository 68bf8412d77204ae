"""`dibber selftest`: what a card's owner runs after flashing it."""

# SPDX-License-Identifier: BSD-2-Clause
