"""The host side: PCIe TLPs as LitePCIe's PHY carries them, turned into lines, requests and posts.
"""

# SPDX-License-Identifier: BSD-2-Clause
