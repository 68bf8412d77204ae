"""A host in gateware, for boards without PCIe: a root complex, on-card memory and a bus."""

# SPDX-License-Identifier: BSD-2-Clause
