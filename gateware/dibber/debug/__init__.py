"""Debugger access to the control program: RISC-V External Debug Support 0.13.2 over VexRiscv's bus.

VexRiscv has a debug bus of its own; these blocks translate between it and the standard. Section
numbers in this package are those of that specification.
"""

# SPDX-License-Identifier: BSD-2-Clause
