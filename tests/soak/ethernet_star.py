"""Cards around one Ethernet switch: each puts to all others at once, and every byte is compared.

    python tests/soak/ethernet_star.py --megabytes 64 [--cards 4] [--loss 0.01] [--late 0.01]

Prints what each card sent in a second, and Jain's index of these shares: 1 if all are equal. Exit
code 1 if a put failed or a byte is wrong.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys

import numpy as np
from dibber.interface.description import STATUS

from tests.system.network import SECOND, opened, register

BLOCK = 1 << 16  # bytes of a put
FILL = 0xEE


def fill(seed):
    """A step: random bytes to send, and nothing of others yet; what will be sent."""

    def step(side):
        side.memory[:] = FILL
        random = np.random.default_rng((seed, side.node))
        side.memory[:BLOCK] = random.integers(0, 256, BLOCK, np.uint8)
        return bytes(side.memory[:BLOCK])

    return step


def put_all(keys, targets, rounds):
    """A step: `rounds` puts to each of the targets, of which one is under way for each. Returns the
    statuses that are not OK, and nanoseconds.
    """

    def step(side):
        def put(node):
            side.endpoint.put(
                side.region.key, 0, keys[node], (1 + side.node) * BLOCK, BLOCK, node=node, tag=node
            )

        left = dict.fromkeys(targets, rounds)
        begun = side.now()
        failed = []
        for node in targets:
            put(node)
        while any(left.values()):
            done = side.endpoint.poll()
            if not done and not side.endpoint.wait(SECOND):
                raise RuntimeError(f"puts of card {side.node} did not end: {left}")
            for entry in done:
                failed += [] if entry.status == STATUS.OK else [STATUS.name_of(entry.status)]
                left[entry.tag] -= 1
                if left[entry.tag]:
                    put(entry.tag)
        return failed, side.now() - begun

    return step


def compare(sent, pairs):
    """A step: how many bytes are wrong of what came, for (source, target) pairs."""

    def step(side):
        wrong = 0
        for source in range(len(sent)):
            came = side.memory[(1 + source) * BLOCK : (2 + source) * BLOCK]
            wanted = np.frombuffer(sent[source], np.uint8)
            wrong += int(
                np.count_nonzero(came != (wanted if (source, side.node) in pairs else FILL))
            )
        return wrong

    return step


def jain(shares):
    """Jain's index of fairness (DEC Research Report TR-301, 1984)."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def lost(side):
    return side.card.info()["counters"]["link_lost"]


def run(rounds, cards=4, seed=1, loss=0.0, late=0.0, profile_name="eth10g"):
    """All cards to all others; a report as a dictionary."""
    settings = {"link.frame_loss": loss, "link.frame_late": late}
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with opened(f"star:{cards}", seed, options, profile_name) as network:
        # A card that no scout reached would be in no map.
        maps = network.map(8 if loss or late else 2)
        assert [found["hosts"] for found in maps] == [list(range(cards))] * cards, maps
        keys = network.together(register((1 + cards) * BLOCK))
        sent = network.together(fill(seed))
        pairs = {(n, m) for n in range(cards) for m in range(cards) if n != m}
        ended = network.together(
            *(put_all(keys, [m for m in range(cards) if m != n], rounds) for n in range(cards))
        )
        wrong = network.together(compare(sent, pairs))
        links_lost = network.together(lost)
    shares = [rounds * (cards - 1) * BLOCK / nanoseconds * 1e3 for _, nanoseconds in ended]
    return {
        "cards": cards,
        **settings,
        "seed": seed,
        "megabytes": round(rounds * len(pairs) * BLOCK / 1e6, 1),
        "failed": sum((failed for failed, _ in ended), []),
        "bytes_wrong": sum(wrong),
        "link_lost": sum(links_lost),
        "MB_per_second": [round(share, 1) for share in shares],
        "jain": round(jain(shares), 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=64, help="in all (default 64)")
    parser.add_argument("--cards", type=int, default=4, help="2 to 9 (default 4)")
    parser.add_argument("--loss", type=float, default=0.0, help="share of frames (default 0)")
    parser.add_argument("--late", type=float, default=0.0, help="share of frames (default 0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", default="eth10g", help="default eth10g")
    arguments = parser.parse_args()
    pairs = arguments.cards * (arguments.cards - 1)
    rounds = max(1, round(arguments.megabytes * 1e6 / (pairs * BLOCK)))
    report = run(
        rounds,
        arguments.cards,
        arguments.seed,
        arguments.loss,
        arguments.late,
        arguments.profile,
    )
    print(json.dumps(report, indent=2))
    return 1 if report["failed"] or report["bytes_wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
