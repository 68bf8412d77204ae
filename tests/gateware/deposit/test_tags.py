"""Tags against a plain model: answers at any time, more than once, in quarantine, for what was
never asked, and for a former use of a tag.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass
from random import Random

import pytest

from migen import *

from dibber.deposit.tags import Tags

from tests.gateware.models.compiled import run_simulation


@dataclass
class Use:
    """A tag in use."""

    since: int
    expired: bool = False


@pytest.mark.parametrize("tags, timeout, quarantine", [(1, 40, 150), (4, 60, 300), (32, 300, 900)])
def test_a_tag_is_in_one_place_only_and_its_time_is_kept(tags, timeout, quarantine, seed):
    dut, random = Tags(tags, timeout, quarantine), Random(seed)
    late = 3 * 3 * tags + timeout // 4 + 8  # three rounds, and releases that held judgements up
    used, phases = {}, {}
    kinds = ("release", "late answer", "stray", "repeated", "former", "expire", "quarantine")
    seen = dict.fromkeys(kinds, 0)

    def process():
        yield dut.extended.eq(1)
        previous = None
        for now in range(4500):
            # What the completion of this cycle is of.
            pick = random.random()
            release = 0
            if pick < 0.1 and previous is not None:
                answered, release = previous, 1
            elif pick < 0.14:
                answered, release = (
                    random.choice((random.randrange(tags), random.randrange(256))),
                    1,
                )
            elif pick < 0.3 and used:
                answered = random.choice(sorted(used))
                release = int(random.random() < (0.05 if answered % 3 == 0 else 0.5))
            else:
                answered = random.randrange(tags)
            if now // 500 % 2 and answered in used and used[answered].expired:
                release = 0
            # The answer is of the tag's last use, or of the one before.
            former = random.random() < 0.2
            yield dut.answered.eq(answered)
            yield dut.answered_phase.eq(phases.get(answered, 0) ^ former)
            yield dut.release.eq(release)
            yield dut.source.ready.eq(int(random.random() < 0.3))
            yield
            use = used.get(answered)
            known = yield dut.known
            live = yield dut.live
            # A quarantine ends by itself, which is not seen from outside.
            if use and not known and not former:
                assert use.expired and now - use.since >= quarantine
                del used[answered]
                use = None
                seen["quarantine"] += 1
            if former:
                assert (known, live) == (0, 0)
                seen["former"] += release and use is not None
                release = 0
            else:
                assert (known, live) == (
                    int(use is not None),
                    int(use is not None and not use.expired),
                )
            if (yield dut.expire):
                tag = yield dut.expire_tag
                assert not (yield dut.release) and not used[tag].expired
                assert timeout <= now - used[tag].since <= timeout + late
                used[tag].expired = True
                seen["expire"] += 1
            if release:
                seen[
                    "stray"
                    if use is None and answered != previous
                    else "repeated"
                    if use is None
                    else "late answer"
                    if use.expired
                    else "release"
                ] += 1
                used.pop(answered, None)
            previous = answered if release else None
            if (yield dut.source.valid) and (yield dut.source.ready):
                tag = yield dut.source.tag
                if tag in used:
                    assert used[tag].expired and now - used[tag].since >= quarantine
                    seen["quarantine"] += 1
                assert now >= timeout
                phase = yield dut.source.phase
                assert phase != phases.get(tag, 1), "it has the phase of the use before"
                phases[tag] = phase
                used[tag] = Use(now)
            for tag, use in used.items():
                assert use.expired or now - use.since <= timeout + late, "it was forgotten"

    run_simulation(dut, process())
    assert min(seen.values()) > 0, seen


@pytest.mark.parametrize("tags", [8, 32])
def test_every_tag_comes_back_once(tags, seed):
    """All are taken, answered in any order, also in cycles that follow each other, and taken
    again.
    """
    dut, random = Tags(tags, 50, 5000), Random(seed)

    def take():
        taken = []
        yield dut.source.ready.eq(1)
        for _ in range(6 * tags + 300):
            yield
            if (yield dut.source.valid):
                taken.append((yield dut.source.tag))
        yield dut.source.ready.eq(0)
        yield
        return taken

    def process():
        yield dut.extended.eq(1)
        for n in range(3):
            taken = yield from take()
            yield dut.answered_phase.eq(n % 2)
            assert sorted(taken) == list(range(tags))
            random.shuffle(taken)
            for tag in taken:
                yield dut.answered.eq(tag)
                yield dut.release.eq(1)
                yield
                yield dut.release.eq(int(random.random() < 0.5))  # once more: it is unknown by now
                yield
                yield dut.release.eq(0)
                for _ in range(random.randrange(2)):
                    yield

    run_simulation(dut, process())
