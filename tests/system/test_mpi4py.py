"""A fixed part of mpi4py's own tests on simulated cards. `make soak` runs all of them."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).parents[1] / "mpi4py" / "suite.py"
SPEC = importlib.util.spec_from_file_location("mpi4py_suite", PATH)
suite = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(suite)

# Modules, and the least number of their tests that must run: fewer would mean that the suite found
# less than it should.
PARTS = {
    2: ("test_(msgzero|p2p_obj_matched|pack|status|rma_nb)[.]py$", 30),
    4: ("test_(msgzero|p2p_obj_matched)[.]py$", 15),
}


@pytest.fixture(scope="module", autouse=True)
def brought():
    suite.bring()


def test_each_pattern_that_is_left_out_has_a_reason():
    assert all(len(reason) > 20 for reason in suite.left_out().values())


@pytest.mark.parametrize("ranks", PARTS)
def test_mpi4py_s_own_tests_pass(ranks):
    modules, least = PARTS[ranks]
    found = suite.run(ranks, modules, seconds=600)
    assert found.good, f"{found.failed}\n{found.text[-4000:]}"
    assert found.ran == [found.ran[0]] * ranks and found.ran[0] >= least
