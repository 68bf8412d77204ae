"""Digests of inline puts, against a model that knows what was entered and what is gone."""

# SPDX-License-Identifier: BSD-2-Clause

import random

import pytest

from dibber.interface.description import C
from dibber.fastpath.digests import PutDigests

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.drive import drive

FIELDS = ("slot", "node", "solicit", "length")


def some_digest(rng, endpoint):
    return dict(
        endpoint=endpoint,
        slot=rng.randrange(C.SLOTS),
        node=rng.randrange(C.NODES),
        solicit=rng.getrandbits(1),
        length=rng.randrange(C.INLINE_BYTES + 1),
        cookie=rng.getrandbits(32),
    )


def read(record, names=FIELDS):
    values = {}
    for name in names:
        values[name] = yield getattr(record, name)
    return values


@pytest.mark.parametrize("endpoints", [C.ENDPOINTS, 4])
def test_what_is_shown_and_found_was_entered_and_every_endpoint_has_its_turn(seed, endpoints):
    rng, dut = random.Random(seed), PutDigests(endpoints)
    known = {}  # by endpoint
    cookies = {}  # by tag
    shown = {n: 0 for n in range(endpoints)}
    under_way = {n: [] for n in range(endpoints)}

    def bench():
        able, waited = 0, {n: 0 for n in range(endpoints)}
        for _ in range(4000):
            # In the cycle that ends here.
            assert (yield dut.known) == sum(1 << n for n in known)
            assert (yield dut.busy) == sum(1 << n for n, tags in under_way.items() if tags)
            valid, endpoint = (yield dut.valid), (yield dut.shown.endpoint)
            assert not valid or (endpoint in known and able >> endpoint & 1)
            started = ended = entered = None
            if valid:
                assert (yield from read(dut.shown)) == {
                    name: known[endpoint][name] for name in FIELDS
                }
                shown[endpoint] += 1
                if rng.random() < 0.3:
                    started = endpoint
            for n in known:
                waited[n] = waited[n] + 1 if able >> n & 1 and not (valid and endpoint == n) else 0
            # What happens next: a start, or the end of one, a new digest, others able.
            busy = [n for n, tags in under_way.items() if tags]
            if busy and rng.random() < 0.2:
                ended = rng.choice(busy)
            free = [n for n in range(endpoints) if n not in known and len(under_way[n]) < C.SLOTS]
            if free and rng.random() < 0.4:
                entered = some_digest(rng, rng.choice(free))
                entered["slot"] = next(
                    s for s in range(C.SLOTS) if s not in under_way[entered["endpoint"]]
                )
            if rng.random() < 0.1:
                able = rng.getrandbits(endpoints) | rng.getrandbits(endpoints)
            passed = rng.random() < 0.2
            yield from drive(
                dut, able=able, skip=passed, gone=0 if started is None else 1 << started
            )
            yield from drive(dut.start, strobe=started is not None, endpoint=started or 0)
            yield from drive(dut.end, strobe=ended is not None, endpoint=ended or 0)
            yield from drive(dut.digest, strobe=entered is not None, **(entered or {}))
            ask = rng.choice(sorted(known) or [0])
            tag = rng.choice(sorted(cookies) or [0])
            yield dut.ask.eq(ask)
            yield dut.tag.eq(tag)
            yield
            if ask in known:
                assert (yield from read(dut.found)) == {name: known[ask][name] for name in FIELDS}
            expected = cookies.get(tag)
            if entered is not None and tag == entered["endpoint"] * C.SLOTS + entered["slot"]:
                expected = None  # it is just being written
            if started is not None:
                digest = known.pop(started)
                under_way[started].append(digest["slot"])
                waited = {n: 0 if n == started else cycles for n, cycles in waited.items()}
            if ended is not None:
                under_way[ended].pop(0)
            if entered is not None:
                known[entered["endpoint"]] = entered
                cookies[entered["endpoint"] * C.SLOTS + entered["slot"]] = entered["cookie"]
            yield from drive(dut, skip=0, gone=0)
            yield dut.start.strobe.eq(0)
            yield dut.end.strobe.eq(0)
            yield dut.digest.strobe.eq(0)
            yield
            if expected is not None:
                assert (yield dut.cookie) == expected
            yield
            assert max(waited.values()) < 150, "an endpoint starves"

    run_simulation(dut, bench())
    assert min(shown.values()) > 50 and len(cookies) > 100


def test_one_that_is_passed_over_comes_again_behind_the_others():
    dut, seen = PutDigests(), []

    def bench():
        yield dut.able.eq(0xFF)
        for endpoint in (1, 4, 6):
            yield from drive(dut.digest, strobe=1, endpoint=endpoint, slot=endpoint)
            yield
        yield dut.digest.strobe.eq(0)
        yield
        yield
        for _ in range(6):
            assert (yield dut.valid)
            seen.append((yield dut.shown.endpoint))
            yield dut.skip.eq(1)
            yield
            yield dut.skip.eq(0)
            yield
            yield
        yield dut.able.eq(1 << 4)
        for _ in range(3):
            yield
        assert (yield dut.valid) and (yield dut.shown.endpoint) == 4
        yield dut.skip.eq(1)
        for _ in range(4):
            yield
            assert (yield dut.valid) and (yield dut.shown.endpoint) == 4

    run_simulation(dut, bench())
    assert seen == [1, 4, 6, 1, 4, 6]
