"""Packets: header, sequence, checks and acknowledgement between the deposit engines and the link.
"""

# SPDX-License-Identifier: BSD-2-Clause
