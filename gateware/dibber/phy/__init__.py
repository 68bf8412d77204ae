"""PHYs: vendor transceivers, PCIe and pins. Only this folder uses vendor primitives."""

# SPDX-License-Identifier: BSD-2-Clause
