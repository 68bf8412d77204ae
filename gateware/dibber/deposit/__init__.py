"""Deposit: regions, walkers, gather (host memory to payload), scatter (payload to host memory)."""

# SPDX-License-Identifier: BSD-2-Clause
