"""Flows between two switches use all cables between them."""

# SPDX-License-Identifier: BSD-2-Clause

import pytest
from dibber.interface.description import STATUS

from tests.system.network import completions, opened, register

BLOCK = 1 << 16
UNDER_WAY = 3

# Two switches with two cards each, and two cables between them.
TOPOLOGY = """
cards = 4
[[switch]]
ports = 4
[[switch]]
ports = 4
[[cable]]
ends = ["card0", "switch0:0"]
[[cable]]
ends = ["card1", "switch0:1"]
[[cable]]
ends = ["card2", "switch1:0"]
[[cable]]
ends = ["card3", "switch1:1"]
[[cable]]
ends = ["switch0:2", "switch1:3"]
[[cable]]
ends = ["switch0:3", "switch1:2"]
"""


def rate(network, keys, senders):
    """MB/s of these cards together, each of which puts to the card after the next."""

    def put(side):
        target = (side.node + 2) % 4
        begin = side.now()
        for _ in range(UNDER_WAY):
            side.endpoint.put(side.region.key, 0, keys[target], BLOCK, BLOCK, node=target)
        statuses = completions(side, UNDER_WAY)
        assert statuses == [STATUS.OK] * UNDER_WAY
        return begin, side.now()

    times = network.on(dict.fromkeys(senders, put)).values()
    nanoseconds = max(end for _, end in times) - min(begin for begin, _ in times)
    return 1000 * UNDER_WAY * BLOCK * len(senders) / nanoseconds


@pytest.mark.parametrize("senders", [(0, 1), (0, 1, 2, 3)])
def test_flows_to_two_cards_have_twice_the_rate_of_one_over_two_cables(
    senders, tmp_path, figure, capsys
):
    (tmp_path / "two.toml").write_text(TOPOLOGY)
    with opened(str(tmp_path / "two.toml")) as network:
        for one in network.map():
            assert [len(sw["peers"]) for sw in one["switches"]] == [4, 4]
        keys = network.together(register(2 * BLOCK))
        alone = rate(network, keys, senders[:1])
        together = rate(network, keys, senders)
    with capsys.disabled():
        print(f"\n{alone:.1f} MB/s of one flow, {together:.1f} MB/s of {len(senders)}")
    ratio = round(together / alone, 2)
    if len(senders) == 2:
        assert figure("two-cables", ratio, "times one flow, two cables", at_least=1.9)
    assert ratio >= 0.95 * len(senders)
