# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The link: symbols, flow control, slack and training between the packet layer and the serial PHY."""
