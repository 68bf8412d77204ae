"""Instructions that the libfabric provider charges for a call: software/ofi/src/charges.h."""

# SPDX-License-Identifier: BSD-2-Clause

import re

from dibber_cli import paths

TABLE = paths.ROOT / "software" / "ofi" / "src" / "charges.h"
PER_NS = 4.5  # instructions; Profile::instructions_per_ns of hw/sim/profile.h
ROW = r"^CHARGE\((\w+),\s*(\d+), (\d+)\)"


def table() -> dict[str, tuple[int, int]]:
    """{kind: (instructions of the provider, of Open MPI)}."""
    rows = re.findall(ROW, TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    return {kind: (int(own), int(engine)) for kind, own, engine in rows}


def nanoseconds(*kinds: str) -> float:
    """CPU time of a call of each of these kinds, with Open MPI above the provider."""
    found = table()
    return sum(sum(found[kind]) for kind in kinds) / PER_NS
