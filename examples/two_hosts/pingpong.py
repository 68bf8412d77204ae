"""Eight bytes to and fro, 100 times: half of a round trip, by the notice of each put."""

# SPDX-License-Identifier: BSD-2-Clause

from libdibber import alloc
from party import Party

ROUNDS = 100

party = Party()
memory = alloc(8)
region = party.endpoint.register(memory)
key = party.key_of_other(region)

begin = party.endpoint.clock()
for n in range(ROUNDS):
    if party.node == 0:
        party.endpoint.put_inline(n.to_bytes(8, "little"), key, 0, node=1, notice=n, endpoint=1)
    assert party.await_notice() == n
    assert int.from_bytes(memory.tobytes(), "little") == n
    if party.node == 1:
        party.endpoint.put_inline(n.to_bytes(8, "little"), key, 0, node=0, notice=n, endpoint=1)
    party.endpoint.poll()
end = party.endpoint.clock()
if party.node == 0:
    kind = "simulated time" if end.simulated else "the host's clock"
    print(f"{(end.now_ps - begin.now_ps) / 2e6 / ROUNDS:.2f} µs half a round trip, {kind}")
party.close()
