"""Deposit: region table, walkers, gather (host memory to payload) and scatter (payload to host
memory).
"""

# SPDX-License-Identifier: BSD-2-Clause
