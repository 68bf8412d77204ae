# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""`dibber selftest`: what a card's owner runs after flashing it."""
