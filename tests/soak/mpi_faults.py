"""All cases of tests/system/mpi_faults.py."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.system import mpi_faults


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return mpi_faults.build(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("case", mpi_faults.KILLED)
def test_calls_with_a_rank_that_is_killed_fail_and_the_others_go_on(program, case):
    mpi_faults.a_rank_dies(program, case)


@pytest.mark.parametrize("way", mpi_faults.LATE)
def test_a_send_that_has_failed_gives_no_later_receive_other_bytes(program, way, tmp_path):
    mpi_faults.a_receive_comes_too_late(program, way, tmp_path)


@pytest.mark.parametrize("case", mpi_faults.TYPED_ENDS)
def test_typed_calls_fail_when_a_cable_is_away_for_a_second_or_a_card_is_reset(program, case):
    mpi_faults.typed_calls_end(program, case)


@pytest.mark.parametrize("case", mpi_faults.ENDS)
def test_an_alltoall_ends_with_an_error_when_a_cable_stays_away_or_a_card_is_reset(tmp_path, case):
    mpi_faults.an_alltoall_ends(mpi_faults.build(tmp_path, "cable"), case)
