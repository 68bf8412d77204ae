# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Serial PHYs: a vendor's transceiver under the link's words of four symbols. The one place for primitives."""
