"""The control program's side: processor, command slots, doorbells, registers, identity."""

# SPDX-License-Identifier: BSD-2-Clause
