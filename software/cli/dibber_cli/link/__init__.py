"""`dibber link`: test the cable between two cards."""

# SPDX-License-Identifier: BSD-2-Clause
