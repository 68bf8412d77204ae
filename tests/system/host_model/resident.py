"""How much memory a process has in use."""

# SPDX-License-Identifier: BSD-2-Clause

import os


def resident(process):
    """Bytes of memory of `process` that are resident (proc(5), statm)."""
    with open(f"/proc/{process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
