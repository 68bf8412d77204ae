"""Some hundred random transfers of all kinds, both ways at once; `make soak` runs 20,000."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber_cli.soak.run import Soak

COUNT = 320

KINDS = {
    "put",
    "get",
    "inline",
    "atomic",
    "put, wrong",
    "get, wrong",
    "fence",
    "checksum",
    "notice",
    "source list",
    "target list",
}


@pytest.mark.parametrize("profile", ["gen2x4", "gen2x1"])
def test_random_transfers_leave_what_the_model_says_and_nothing_else(profile, seed):
    soak = Soak(COUNT, seed, profile).run()
    assert soak.trouble == [] and soak.wrong_bytes == 0
    assert soak.transfers >= COUNT and soak.bytes > 250_000
    assert set(soak.operations) >= KINDS
