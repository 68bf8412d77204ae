"""`dibber timeline`: one transfer of a file that a simulator wrote with --timeline."""

# SPDX-License-Identifier: BSD-2-Clause
