# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A host made of gateware, for boards without PCIe: a root complex, on-card memory, and a bus into both."""
