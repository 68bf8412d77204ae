# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The control program's side: processor, command slots, doorbells, registers, identity."""
