# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Packets: header, sequence, checks and acknowledgement between the deposit engines and the link."""
