# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The host side: PCIe TLPs as LitePCIe's PHY carries them, turned into lines, requests and posts."""
