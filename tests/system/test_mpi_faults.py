"""Typed messages and alltoalls of MPI under faults. `make soak` runs all cases of mpi_faults.py."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest

from tests.system import mpi_faults


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return mpi_faults.build(tmp_path_factory.mktemp("faults"))


def test_calls_with_a_rank_that_is_killed_fail_and_the_others_go_on(program, seed):
    mpi_faults.a_rank_dies(program, mpi_faults.one_of(mpi_faults.KILLED, seed))


def test_a_send_that_has_failed_gives_no_later_receive_other_bytes(program, seed, tmp_path):
    mpi_faults.a_receive_comes_too_late(program, mpi_faults.one_of(mpi_faults.LATE, seed), tmp_path)


def test_typed_calls_are_late_and_whole_after_a_cable_was_away_for_ten_milliseconds(program):
    events = ["--at", "3000 pull cable0", "--at", "13000 plug cable0"]
    said, errors = mpi_faults.run(program, 2, ["--strided", *events], "cable", 13_500)
    assert said and said[0].startswith("whole "), errors
    assert 10_000 < int(said[0].split()[1]) < 12_000


def test_typed_calls_fail_when_a_cable_is_away_for_a_second_or_a_card_is_reset(program, seed):
    mpi_faults.typed_calls_end(program, mpi_faults.one_of(mpi_faults.TYPED_ENDS, seed))
