"""`dibber selftest`: the test to run after flashing a card."""

# SPDX-License-Identifier: BSD-2-Clause
