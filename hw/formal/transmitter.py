"""A link transmitter with all inputs free, for the proofs about its output.
"""

# SPDX-License-Identifier: BSD-2-Clause

def free_inputs(harness, tx, channels):
    """Free every input of `tx`. The proof constructs `tx` itself, because a mutant replaces the
    name in the proof's own module.
    """
    for n, sink in enumerate(tx.sinks):
        harness.free_all(f"sink{n}", sink)
    harness.comb += [
        tx.up.eq(harness.free("up")),
        tx.go.eq(harness.free("go", channels)),
        tx.flow.eq(harness.free("flow", 8)),
        tx.nonce.eq(harness.free("nonce", 16)),
        tx.ping.valid.eq(harness.free("ping")),
        tx.pong.valid.eq(harness.free("pong")),
        tx.ping.number.eq(harness.free("number", 8)),
        tx.pong.number.eq(harness.free("number_back", 8)),
        tx.source.ready.eq(harness.free("ready")),
    ]
