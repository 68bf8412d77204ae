"""Figures of the cable that take minutes: much data under bit errors, long and endless
interruptions.

    python -m pytest tests/soak/link_figures.py [-k "1e-6"]
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import profile
from dibber_cli.link import measure
from dibber_cli.link.side import Ends
from dibber_cli.simulator import Pair

MEGA = 1_000_000
CHUNK = 250_000
DEPTH = 4


def moved(total, *options, seed=1):
    """Put `total` bytes with DEPTH puts under way; returns (MB/s, bytes wrong, counters of the
    target).

    Each put fills a quarter of the target's memory; after every DEPTH of them all of it is compared
    and forgotten.
    """
    with Pair(profile.load("gen2x4"), seed=seed, options=options) as pair, Ends(pair.uris) as ends:

        def target(side):
            side.memory = libdibber.alloc(DEPTH * CHUNK)
            return side.endpoint.register(side.memory, RIGHT.REMOTE_WRITE).key

        _, key = ends.both(measure.wait_up, target)
        data = measure.pattern(DEPTH * CHUNK)

        def source(side):
            side.memory = libdibber.alloc(DEPTH * CHUNK)
            side.memory[:] = data
            side.key = side.endpoint.register(side.memory, RIGHT.LOCAL_READ).key

        def put(side, rounds):
            begin, started, ended = side.now(), 0, 0
            while ended < rounds:
                while started < rounds and started - ended < DEPTH:
                    place = started % DEPTH * CHUNK
                    side.endpoint.put(side.key, place, key, place, CHUNK, node=1)
                    started += 1
                assert side.endpoint.wait(1_000_000_000), "it hangs"
                for done in side.endpoint.poll():
                    assert done.status == STATUS.OK, STATUS.name_of(done.status)
                    ended += 1
            return side.now() - begin

        ends.both(source, lambda side: None)
        nanoseconds, wrong = 0, 0
        for _ in range(total // (DEPTH * CHUNK)):
            nanoseconds += ends.both(lambda side: put(side, DEPTH), lambda side: None)[0]

            def compare(side):
                differ = int((side.memory != data).sum())
                side.memory[:] = 0
                return differ

            wrong += ends.both(lambda side: None, compare)[1]
        return total / nanoseconds * 1e3, wrong, ends.both(measure.counters)[1]["counters"]


@pytest.fixture(scope="module")
def clean():
    """MB/s of the same transfer on a good cable."""
    rate, wrong, _ = moved(4 * MEGA)
    assert wrong == 0
    return rate


@pytest.mark.parametrize("ber, megabytes, share", [("1e-6", 100, 70), ("1e-5", 10, None)])
def test_bit_errors_cost_time_and_no_byte(ber, megabytes, share, clean, seed, figure):
    rate, wrong, counters = moved(megabytes * MEGA, "--ber", ber, seed=seed)
    assert counters["code_errors"] + counters["disparity_errors"] > 0
    assert figure(
        f"link-ber-{ber}-bytes-wrong",
        wrong,
        f"of {megabytes} MB moved",
        at_most=0,
        profile="gen2x4",
    )
    assert figure(
        f"link-ber-{ber}-rate",
        round(100 * rate / clean, 1),
        f"% of the clean {clean:.0f} MB/s",
        at_least=share,
        profile="gen2x4",
    )


def test_a_cable_out_for_ten_milliseconds_costs_time_and_no_byte(figure):
    rate, wrong, counters = moved(2 * MEGA, "--fault", "unplugged:4000:14000")
    assert counters["link_lost"] == 1
    assert figure(
        "link-unplugged-10-ms-bytes-wrong",
        wrong,
        "of 2 MB, the cable out for 10 ms meanwhile",
        at_most=0,
        profile="gen2x4",
    )


def test_a_cable_that_is_gone_is_a_timeout_and_the_endpoint_lives_on(figure):
    """Out for 60 ms: longer than the control program waits, and back afterwards."""
    with (
        Pair(profile.load("gen2x4"), options=["--fault", "unplugged:3000:63000"]) as pair,
        Ends(pair.uris) as ends,
    ):

        def target(side):
            side.memory = libdibber.alloc(4096)
            return side.endpoint.register(side.memory, RIGHT.REMOTE_WRITE).key

        _, key = ends.both(measure.wait_up, target)

        def put(side):
            while not (done := side.endpoint.poll()):
                assert side.endpoint.wait(200_000_000), "it hangs"
            return STATUS.name_of(done[0].status)

        def source(side):
            side.sleep(3_100_000 - side.now())
            begin = side.now()
            side.endpoint.put_inline(b"gone for", key, 0, node=1)
            gone = put(side), side.now() - begin
            side.sleep(63_100_000 - side.now())
            side.endpoint.put_inline(b"and back", key, 8, node=1)
            return *gone, put(side)

        (gone, nanoseconds, back), _ = ends.both(source, lambda side: None)
        assert (gone, back) == ("TIMEOUT", "OK")
        assert figure(
            "link-gone-timeout",
            round(nanoseconds / 1e6, 2),
            "ms until TIMEOUT",
            at_least=40,
            at_most=45,
            profile="gen2x4",
        )
        _, memory = ends.both(lambda side: None, lambda side: bytes(side.memory[:16]))
        # What timed out is not executed later.
        assert memory == bytes(8) + b"and back"
