"""A discrete-event simulation of a ring: packets, echoes, go bits (docs/ring-model.md)."""

# SPDX-License-Identifier: BSD-2-Clause
