"""A sample of the faults of the control program of tests/soak/program_faults.py."""

# SPDX-License-Identifier: BSD-2-Clause

from tests.system.soak_sample import sample

RUNS = 26
# µs: the watchdog stops whatever it has to within 2 ms; `make soak` waits twice as long
PATIENCE = 2500


def test_no_fault_of_a_control_program_harms_the_other_card(seed):
    result = sample("program_faults.py", seed, "--runs", str(RUNS), "--patience", str(PATIENCE))
    assert result["runs"] == RUNS and all(
        result["kinds"][kind]["runs"] for kind in ("wild writes", "illegal", "loop")
    )
    assert sum(kind.get("stopped", 0) for kind in result["kinds"].values()) > RUNS // 2
