"""A host made of gateware, for boards without PCIe: a root complex, on-card memory, and a bus into
both.
"""

# SPDX-License-Identifier: BSD-2-Clause
