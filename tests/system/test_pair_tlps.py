"""Every TLP that two cards emit during puts keeps the rules of PCI Express, by a checker that we
did not write.
"""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess
import sys

import pytest
from dibber.interface.description import STATUS
from dibber_cli import paths

from tests.system import tlp_checker
from tests.system.pair import Pair, Side

SIZE = 1 << 17

# (block, levels) of source and target: contiguous, strided on one side and on both, three levels,
# odd places; and blocks as long as a TLP, which have a DW too many for one where they are not
# aligned.
SHAPES = [
    ((65536,), (65536,)),
    ((8192,), (8, ((1024, 64),))),
    ((8, ((1024, 64),)), (8192,)),
    ((8, ((512, 128),)), (8, ((512, 200),))),
    ((3, ((7, 5), (11, 100), (13, 4097))), (7, ((3, 9), (11, 1000), (13, 21)))),
    ((1,), (1,)),
    ((4095,), (4095,)),
    ((8192,), (256, ((32, 301),))),
    ((512, ((16, 777),)), (8192,)),
]

# Completions cut and ordered as a host may; with `False` the card has 32 tags.
HOSTS = {
    "in-order": {},
    "random": {"completion_split": '"random"', "completion_reorder_ns": "300.0"},
    "few-tags": {
        "completion_split": '"random"',
        "completion_reorder_ns": "300.0",
        "extended_tags": "false",
    },
    "small-payload": {"max_payload": "128", "max_read_request": "128"},
}


@pytest.fixture(scope="module", params=["gen2x4", "gen2x1"])
def profile_name(request):
    """The profile, with its simulator up to date."""
    build = paths.ROOT / "hw" / "sim" / "build.py"
    subprocess.run(
        [sys.executable, build, "--profile", request.param], check=True, stdout=subprocess.DEVNULL
    )
    return request.param


def put_all(side, source, target):
    """Statuses of all shapes' puts, one after the other, from odd addresses."""
    return [
        side.put_strided(
            (source, s[0], 4097, *s[1:]), (target, t[0], 4099, *t[1:]), notice=1 if n == 0 else None
        )
        for n, (s, t) in enumerate(SHAPES)
    ]


@pytest.mark.parametrize("host", HOSTS)
def test_every_tlp_is_legal(profile_name, seed, tmp_path, host):
    trace = tmp_path / "trace"
    changes = [
        word for key, value in HOSTS[host].items() for word in ("--set", f"pcie.{key}={value}")
    ]
    with Pair(profile_name, seed=seed, options=["--tlp-trace", str(trace), *changes]) as pair:
        source, target = pair.together(
            (Side.register, "source", SIZE), (Side.register, "target", SIZE)
        )
        pair.first(Side.fill, "source", seed)
        assert pair.first(put_all, source, target) == [STATUS.OK] * len(SHAPES)
    limits = {
        "max_payload": int(HOSTS[host].get("max_payload", 256)),
        "max_request": int(HOSTS[host].get("max_read_request", 512)),
        "extended_tags": host != "few-tags",
    }
    cards = tlp_checker.check(trace, **limits)
    for number, checker in cards.items():
        assert checker.errors == [], f"card {number}"
    reads = sum(
        n
        for (way, kind), n in cards[0].counts.items()
        if way == "from card" and kind.startswith("MEM_READ")
    )
    writes = sum(
        n
        for (way, kind), n in cards[1].counts.items()
        if way == "from card" and kind.startswith("MEM_WRITE")
    )
    assert reads > 65536 // 512 and writes > 65536 // 256
    assert cards[0].most_in_flight > 1
