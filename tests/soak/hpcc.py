"""HPC Challenge of Debian, unmodified, on two simulated cards: its latency-bandwidth part measures,
and its other parts have to end well on the way there.

The matrix of the other parts is as small as they allow. They print no rates, because computing
takes no simulated time.
"""

# SPDX-License-Identifier: BSD-2-Clause

import re
import subprocess
import sys

INPUT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out
8            device out
1            # of problems sizes (N)
16           Ns
1            # of NBs
8            NBs
0            PMAP process mapping
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs
1            # of recursive stopping criterium
4            NBMINs
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs
1            # of broadcast
1            BCASTs
1            # of lookahead depth
1            DEPTHs
2            SWAP
64           swapping threshold
0            L1 in
0            U  in
1            Equilibration
8            memory alignment in double
#### a separator ####
0            additional problem sizes for PTRANS
16           values of N
0            additional blocking sizes for PTRANS
8            values of NB
"""


def test_hpcc_measures_latency_and_bandwidth_in_simulated_time(tmp_path, figure):
    (tmp_path / "hpccinf.txt").write_text(INPUT, encoding="ascii")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", "2", "hpcc"],
        cwd=tmp_path,
        timeout=7200,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = (tmp_path / "hpccoutf.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(\w+)=(\S+)$", said, re.MULTILINE))
    assert found["Success"] == "1", said[-4000:]
    latency = float(found["MaxPingPongLatency_usec"])
    assert figure("hpcc-gen2x4-latency", latency, "µs", at_most=2.0, profile="gen2x4")
    rate = 1000 * float(found["MinPingPongBandwidth_GBytes"])
    assert figure("hpcc-gen2x4-bandwidth", rate, "MB/s", at_least=0.9 * 483, profile="gen2x4")
    for ring in ("NaturallyOrderedRing", "RandomlyOrderedRing"):
        assert 1 < float(found[f"{ring}Latency_usec"]) < 20
        assert 0.05 < float(found[f"{ring}Bandwidth_GBytes"]) < 0.5
