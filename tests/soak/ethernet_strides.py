"""Two cards over Ethernet: contiguous puts and each stride, against the bound of wire and PCIe.

    python tests/soak/ethernet_strides.py [--profile eth10g] [--shape star:2] [--kib 64] [--json]

Prints a line for each point, or with `--json` one document. The bound is that of `dibber bench
stride`. Every byte of a target is compared. The exit code is 1 if one is wrong, a put failed, or a
point is below 95 % of its bound.
"""

# SPDX-License-Identifier: BSD-2-Clause

import argparse
import json
import sys

import numpy as np
from dibber.interface.description import STATUS
from dibber_cli import profile
from dibber_cli.bench import bound
from libdibber import Walk

from tests.system.network import opened, paced, register

GOAL = 0.95
# (bytes of an element, bytes from one to the next)
STRIDES = ((8, 16), (8, 64), (64, 128), (64, 512), (256, 1024))
SIDES = {"target": (False, True), "source": (True, False), "both": (True, True)}


def levels(length, element, stride):
    return ((length // element, stride),)


def view(memory, length, element, stride):
    """The elements of a walk, as they lie in the memory."""
    count = length // element
    return np.lib.stride_tricks.as_strided(memory, (count, element), (stride, 1))


def walk(key, length, shape):
    return Walk(key, shape[0], 0, levels(length, *shape)) if shape else Walk(key, length)


def send(key, length, source, target, count):
    """A step: strided puts, as paced()."""
    return paced(
        lambda side: side.endpoint.put_strided(
            walk(side.region.key, length, source), walk(key, length, target), node=1
        ),
        count,
    )


def run(profile_name, shape, kib, count, seed):
    """Points as (name, MB/s, bound in MB/s, its name, bytes wrong, puts that failed)."""
    length = kib << 10
    size = max(length * stride // element for element, stride in STRIDES)
    host = profile.load(profile_name)
    side_of = lambda form: (
        bound.Side(form[0], levels(length, *form)) if form else bound.Side(length)
    )
    points = [("contiguous", None, None)] + [
        (f"{element} of {stride}, {name}", *[(element, stride) if s else None for s in sides])
        for element, stride in STRIDES
        for name, sides in SIDES.items()
    ]
    with opened(shape, seed, [], profile_name) as network:
        network.map()
        keys = network.together(register(size))
        for number, (name, source, target) in enumerate(points):

            def fill(side, number=number):
                random = np.random.default_rng((seed, number, side.node))
                side.memory[:] = random.integers(0, 256, size, np.uint8)
                return np.frombuffer(bytes(side.memory), np.uint8)

            ours, theirs = network.together(fill)
            statuses, nanoseconds = network.on({0: send(keys[1], length, source, target, count)})[0]
            came = np.frombuffer(network.on({1: lambda side: bytes(side.memory)})[1], np.uint8)
            wanted = theirs.copy()
            data = view(ours, length, *source) if source else ours[:length]
            if target:
                view(wanted, length, *target)[:] = data.reshape(-1, target[0])
            else:
                wanted[:length] = data.reshape(-1)
            limit = bound.bound(host, side_of(source), side_of(target))
            yield (
                name,
                (count - 1) * length / nanoseconds * 1e3,
                limit.value / 1e6,
                limit.name,
                int((came != wanted).sum()),
                sum(status != STATUS.OK for status in statuses),
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="eth10g", help="default eth10g")
    parser.add_argument("--shape", default="pair", help="pair or star:2 (default pair)")
    parser.add_argument("--kib", type=int, default=64, help="KiB of a put (default 64)")
    parser.add_argument("--count", type=int, default=4, help="puts of a point (default 4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    a = parser.parse_args()
    bad, points = False, []
    for name, rate, limit, why, wrong, failed in run(a.profile, a.shape, a.kib, a.count, a.seed):
        points.append(
            {"point": name, "share": rate / limit, "bytes_wrong": wrong, "failed": failed}
        )
        bad |= bool(wrong or failed) or rate < GOAL * limit
        if a.json:
            continue
        print(
            f"{name:22} {rate:8.1f} MB/s {100 * rate / limit:6.1f} % of {limit:.1f} ({why})"
            f" {wrong} bytes wrong, {failed} failed",
            flush=True,
        )
    if a.json:
        print(json.dumps({"profile": a.profile, "shape": a.shape, "points": points}, indent=2))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
