"""PCIe of UltraScale and UltraScale+, whose block has four streams."""

# SPDX-License-Identifier: BSD-2-Clause
