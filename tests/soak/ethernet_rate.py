"""Two cards over Ethernet: the rate of puts of 1 MiB, and how long 8 bytes take one way.

    python tests/soak/ethernet_rate.py [--profile eth10g] [--shape star:2] [--loss 0.01]

`--shape pair` is a direct cable, `star:2` has an Ethernet switch in it. Every byte is compared. The
exit code is 1 if one is wrong or a put failed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys

import numpy as np
from dibber.interface.description import STATUS
from dibber_cli import profile

from tests.system.network import opened, paced, put_word, register, wait_notice

SIZE = 1 << 20
WORDS = 4  # puts of 8 bytes; the best one counts


def send(key, count):
    """A step: puts of all the memory, as paced()."""
    return paced(lambda side: side.endpoint.put(side.region.key, 0, key, 0, SIZE, node=1), count)


def run(profile_name="eth10g", shape="pair", count=3, seed=1, loss=0.0, late=0.0):
    """A report as a dictionary."""
    settings = {"link.frame_loss": loss, "link.frame_late": late}
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    def fill(side):
        side.memory[:] = np.random.default_rng((seed, side.node)).integers(0, 256, SIZE, np.uint8)
        return bytes(side.memory)

    with opened(shape, seed, options, profile_name) as network:
        network.map()
        keys = network.together(register(SIZE))
        one_way = []
        for number in range(WORDS):
            word = bytes([number + 1] * 8)
            answers = network.on({0: put_word(1, keys[1], word), 1: wait_notice})
            assert answers[0][1] == STATUS.OK
            one_way.append((answers[1] - answers[0][0]) / 1000)
        sent = network.together(fill)[0]
        waits = lambda: network.on(
            {0: lambda side: side.card.info()["counters"]["stopped_cycles"]}
        )[0]
        before = waits()
        statuses, nanoseconds = network.on({0: send(keys[1], count)})[0]
        stopped = waits() - before
        came = network.on({1: lambda side: bytes(side.memory)})[1]
    return {
        "profile": profile_name,
        "shape": shape,
        **settings,
        "seed": seed,
        "failed": sum(status != STATUS.OK for status in statuses),
        "bytes_wrong": sum(one != other for one, other in zip(sent, came)),
        "one_way_ns": round(min(one_way)),
        # Of all puts, and of any channel.
        "waits_for_credit_us": round(stopped / profile.load(profile_name).clock_hz * 1e6),
        "MB_per_second": round((count - 1) * SIZE / nanoseconds * 1e3, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="eth10g", help="default eth10g")
    parser.add_argument("--shape", default="pair", help="pair or star:2 (default pair)")
    parser.add_argument("--count", type=int, default=3, help="puts of 1 MiB, 2 or more (default 3)")
    parser.add_argument("--loss", type=float, default=0.0, help="share of frames (default 0)")
    parser.add_argument("--late", type=float, default=0.0, help="share of frames (default 0)")
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    report = run(a.profile, a.shape, a.count, a.seed, a.loss, a.late)
    print(json.dumps(report, indent=2))
    return 1 if report["failed"] or report["bytes_wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
