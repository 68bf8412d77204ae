# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Random transfers of all kinds between two cards, compared with a model byte by byte."""
