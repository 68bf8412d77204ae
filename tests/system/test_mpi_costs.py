"""What the provider charges for itself and for Open MPI, against callgrind: no entry may be more
than a tenth too low.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli.bench import charges

from tests.system import mpi_costs

SHARE = 0.9  # of callgrind's, at least


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return mpi_costs.measure(tmp_path_factory.mktemp("costs"))


def test_no_call_of_provider_or_engine_is_charged_too_little(counted):
    table = charges.table()
    assert set(table) == set(counted)
    for kind, values in counted.items():
        for charged, value in zip(table[kind], values):
            assert charged >= SHARE * value, f"{kind}: {charged} charged, {value:.0f} counted"


def test_what_callgrind_counts_is_plausible(counted):
    """A function that was renamed would count as nothing."""
    assert all(50 < own < 3000 for own, _ in counted.values()), counted
    assert all(engine > 100 for kind, (_, engine) in counted.items() if kind in ("SEND", "LOOK"))
