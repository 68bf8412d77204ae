"""The link: symbols, flow control, slack and training between the packet layer and the serial PHY.
"""

# SPDX-License-Identifier: BSD-2-Clause
