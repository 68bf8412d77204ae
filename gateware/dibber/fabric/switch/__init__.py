"""A source-routed cut-through switch: docs/design/switch.md."""

# SPDX-License-Identifier: BSD-2-Clause
