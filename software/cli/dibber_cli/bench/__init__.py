# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Benchmarks: what is measured, and the bound beside it. docs/benchmarks.md says how."""
