"""A short run of the fuzzer on all parsers of commands and packets; `python tests/fuzz/fuzz.py
firmware` runs for long.
"""

# SPDX-License-Identifier: BSD-2-Clause

from tests.fuzz import fuzz

RUNS = 1000


def test_whatever_comes_each_command_completes_once_and_each_endpoint_can_be_closed(seed):
    code, said, reached = fuzz.run("firmware", seed, RUNS)
    assert code == 0, said
    # Inputs reach the critical places.
    assert reached["runs"] == reached["completed"] == RUNS
    assert (
        min(reached["stray"], reached["claimed"]) > RUNS // 2 and reached["timed_out"] > RUNS // 5
    )


def test_puts_that_were_given_up_while_their_flow_was_rewound_leave_no_gap():
    """Found by the fuzzer: their PSNs were sent by nobody, and the flow was given to the fast path
    behind them.
    """
    code, said, reached = fuzz.run("firmware", 2002, 1, 6418)
    assert code == 0 and reached["completed"] == 1, said
