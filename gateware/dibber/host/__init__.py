"""Host: PCIe transaction layer, BAR 0, MSI-X, and the host's access to the flash."""

# SPDX-License-Identifier: BSD-2-Clause
