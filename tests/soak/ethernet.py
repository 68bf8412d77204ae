"""Small puts over an Ethernet that loses and reorders frames: every byte compared at the end.

    python tests/soak/ethernet.py --count 100000 [--loss 0.01] [--late 0.01] [--seed 1]

Exit code 1 if a put failed or a byte is wrong.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import random
import sys

from dibber.interface.description import STATUS

from tests.system.pair import SECOND, Pair, Side

SIZE = 1 << 16
UNDER_WAY = 16
FILL = 0xEE


def put_many(side, key, count, seed):
    """Inline puts of 1 to 64 bytes to random places, UNDER_WAY at once. Returns the memory that
    must result, how many failed, and picoseconds.
    """
    generator, wanted = random.Random(seed), bytearray([FILL]) * SIZE
    sent = done = failed = 0
    begun = side.endpoint.clock().now_ps
    while done < count:
        while sent < min(count, done + UNDER_WAY):
            data = generator.randbytes(generator.randrange(1, 65))
            place = generator.randrange(SIZE - len(data))
            side.endpoint.put_inline(data, key, place, node=1)
            wanted[place : place + len(data)] = data
            sent += 1
        ended = side.endpoint.poll()
        if not ended and not side.endpoint.wait(SECOND):
            raise RuntimeError(f"{sent - done} puts did not end")
        done += len(ended)
        failed += sum(entry.status != STATUS.OK for entry in ended)
    return bytes(wanted), failed, side.endpoint.clock().now_ps - begun


def key_of_target(side):
    return side.regions["target"].key


def run(count, seed=1, loss=0.01, late=0.01):
    """A campaign on a pair of profile eth10g; a report as a dictionary."""
    settings = {"link.frame_loss": loss, "link.frame_late": late}
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with Pair("eth10g", seed=seed, options=options) as pair:
        pair.second(Side.register, "target", SIZE)
        pair.second(Side.fill, "target", None, FILL)
        wanted, failed, picoseconds = pair.first(put_many, pair.second(key_of_target), count, seed)
        memory = pair.second(Side.read, "target")
        counters = pair.second(Side.info)["counters"]
    return {
        "puts": count,
        **settings,
        "seed": seed,
        "failed": failed,
        "bytes_wrong": sum(one != other for one, other in zip(wanted, memory)),
        "millions_per_second": round(count / picoseconds * 1e6, 3),
        "packets_behind_a_gap": counters["packet_gap"],
        "packets_twice": counters["packet_duplicate"],
        "link_lost": counters["link_lost"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100000, help="puts (default 100000)")
    parser.add_argument("--loss", type=float, default=0.01, help="share of frames (default 0.01)")
    parser.add_argument("--late", type=float, default=0.01, help="share of frames (default 0.01)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    report = run(arguments.count, arguments.seed, arguments.loss, arguments.late)
    print(json.dumps(report, indent=2))
    return 1 if report["failed"] or report["bytes_wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
