"""A debugger's way to the control program: RISC-V External Debug Support 0.13.2 in front of
VexRiscv's own debug bus.

Section numbers in this package are those of that specification.
"""

# SPDX-License-Identifier: BSD-2-Clause
