"""The remote window: a second BAR whose stores and loads reach other nodes. docs/design/window.md."""

# SPDX-License-Identifier: BSD-2-Clause
