"""Cost of copies on the CPU: the model of host memory for packing, unpacking and local copies.

    time = max(elements × element_ns, lines near × line_ns + lines far × far_load_ns or
    far_store_ns)

A line of memory is charged once for any number of elements. It is near when the line before it is
touched too, because then it was prefetched; else it is far. No line is in a cache. The constants
stand in the table [benchmark] of the profile and come from `dibber bench calibrate`. The model is
kind to the CPU: the time to issue loads and stores overlaps with the time of memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

from libdibber.late import np

from dibber_cli.bench.pattern import Pattern
from dibber_cli.profile import Profile


def lines(pattern: Pattern, line_bytes: int) -> tuple[int, int]:
    """(near, far): lines of memory that one transfer of `pattern` touches."""
    begin = pattern.blocks()
    changes = np.zeros(pattern.extent // line_bytes + 2, dtype=np.int64)
    np.add.at(changes, begin // line_bytes, 1)
    np.add.at(changes, (begin + pattern.block - 1) // line_bytes + 1, -1)
    touched = np.cumsum(changes) > 0
    near = int(np.count_nonzero(touched[1:] & touched[:-1]))
    return near, int(np.count_nonzero(touched)) - near


def copy_ns(profile: Profile, source: Pattern, target: Pattern) -> float:
    """Nanoseconds to copy all transfers from Pattern `source` to Pattern `target`."""
    loads, far_loads = lines(source, profile.line)
    stores, far_stores = lines(target, profile.line)
    memory = (
        (loads + stores) * profile.copy_line_ns
        + far_loads * profile.copy_far_load_ns
        + far_stores * profile.copy_far_store_ns
    )
    elements = max(len(source.blocks()), len(target.blocks()))
    return source.transfers * max(elements * profile.copy_element_ns, memory)
