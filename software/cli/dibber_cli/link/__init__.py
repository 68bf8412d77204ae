# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""`dibber link`: what a cable does between two cards."""
