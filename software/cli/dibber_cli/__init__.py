"""The `dibber` command."""

# SPDX-License-Identifier: BSD-2-Clause
