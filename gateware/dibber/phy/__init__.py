"""Serial PHYs: a vendor's transceiver under the link's words of four symbols. The one place for
primitives.
"""

# SPDX-License-Identifier: BSD-2-Clause
