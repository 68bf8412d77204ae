"""What a board file says of its board, for the table in docs/boards.md."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses


@dataclasses.dataclass(frozen=True)
class Description:
    """
    name     : of the file, and what BOARD= takes
    title    : of the board
    part     : the FPGA, with its speed grade
    designs  : dict of the name of each design -> what it is: host, width, link
    verified : dict of the name of each design -> what was checked without the board
    """
    name:     str
    title:    str
    part:     str
    designs:  dict
    verified: dict
