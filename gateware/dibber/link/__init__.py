"""The link between packet layer and serial PHY: symbols, flow control, slack buffers, training."""

# SPDX-License-Identifier: BSD-2-Clause
