"""Random transfers of all kinds between two cards, compared with a model byte by byte."""

# SPDX-License-Identifier: BSD-2-Clause
