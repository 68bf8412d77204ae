"""A ring node: a port whose wire goes on to the next node. docs/design/ring.md."""

# SPDX-License-Identifier: BSD-2-Clause
