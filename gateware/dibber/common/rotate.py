"""Rotation of the bytes of a line."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *


def rotate(line, by):
    """`line` with lane i moved to lane (i + by) modulo its lanes: a barrel shifter.

    `by` has log2(lanes) bits. Each stage uses two of them, because a 4:1 multiplexer is one 6-input
    LUT or two 4-input LUTs on FPGAs.
    """
    lanes = [line[8*i:8*i + 8] for i in range(len(line)//8)]
    if len(by) != log2_int(len(lanes)):
        raise ValueError(f"{len(lanes)} lanes cannot be rotated by {len(by)} bits")
    for bit in range(0, len(by), 2):
        select = by[bit:bit + 2]
        lanes  = [
            Array([lanes[(i - (n << bit)) % len(lanes)] for n in range(2**len(select))])[select]
            for i in range(len(lanes))]
    return Cat(*lanes)
