"""Description of a board in its file, for the table in docs/boards.md."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses


@dataclasses.dataclass(frozen=True)
class Description:
    """
    name     : of the file, and the value of BOARD=
    title    : of the board
    part     : the FPGA, with its speed grade
    designs  : dict of the name of each design -> its description: host, width, link
    verified : dict of the name of each design -> the checks without the board
    """
    name:     str
    title:    str
    part:     str
    designs:  dict
    verified: dict
