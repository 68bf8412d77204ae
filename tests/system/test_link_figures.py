"""What the cable carries: how much of it is payload, what acknowledgements take, how long a small
put waits for a long one.
"""

# SPDX-License-Identifier: BSD-2-Clause

import libdibber
import pytest
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import profile
from dibber_cli.link import measure
from dibber_cli.link.side import Ends
from dibber_cli.simulator import Pair

WINDOW_NS = 2_000_000
ACK_WORDS = 9  # start, header, CRC, end
CHUNK = 64 << 10


@pytest.fixture(scope="module")
def ends():
    """Both cards; card 1 offers memory, whose key is `ends.key`."""

    def target(side):
        side.memory = libdibber.alloc(CHUNK + 4096)
        return side.endpoint.register(side.memory, RIGHT.REMOTE_WRITE).key

    def source(side):
        side.memory = libdibber.alloc(CHUNK)
        side.region = side.endpoint.register(side.memory, RIGHT.LOCAL_READ)

    with Pair(profile.load("gen2x4")) as pair, Ends(pair.uris) as both:
        both.both(measure.wait_up)
        _, both.key = both.both(source, target)
        yield both


class Bulk:
    """Keeps two long puts of card 0 under way; other completions are in `others`, by their tag."""

    def __init__(self, side, key):
        self.side, self.key, self.under_way, self.others = side, key, 0, {}

    def top_up(self):
        while self.under_way < 2:
            self.side.endpoint.put(self.side.region.key, 0, self.key, 0, CHUNK, node=1)
            self.under_way += 1

    def collect(self):
        for done in self.side.endpoint.poll():
            assert done.status == STATUS.OK
            if done.tag:
                self.others[done.tag] = self.side.now()
            else:
                self.under_way -= 1

    def run(self, until):
        """Keep on until the time, in nanoseconds."""
        while (left := until - self.side.now()) > 0:
            self.top_up()
            self.side.endpoint.wait(left)
            self.collect()

    def end(self):
        while self.under_way:
            self.side.endpoint.wait(100_000_000)
            self.collect()


def test_shares_of_the_link_under_one_way_load(ends, figure):
    names = ("BYTES_RECEIVED", "WORDS_RECEIVED", "ACKS_SENT")
    read = lambda side: {name: side.card.read_register(f"COUNT_{name}") for name in names}
    at = max(ends.both(lambda side: side.now())) + 100_000

    def load(side):
        bulk = Bulk(side, ends.key)
        bulk.run(at)
        words = side.card.read_register("COUNT_WORDS_RECEIVED")
        bulk.run(at + WINDOW_NS)
        words = side.card.read_register("COUNT_WORDS_RECEIVED") - words
        bulk.end()
        return words

    def at_packet_end(side):
        """The counters just after a packet was counted; between two of them is a whole number of
        packets.
        """
        before = side.card.read_register("COUNT_BYTES_RECEIVED")
        while side.card.read_register("COUNT_BYTES_RECEIVED") == before:
            pass
        return read(side)

    def watch(side):
        side.sleep(at - side.now())
        first = at_packet_end(side)
        side.sleep(at + WINDOW_NS - side.now())
        after = at_packet_end(side)
        return {name: after[name] - first[name] for name in names}

    back, there = ends.both(load, watch)
    payload = 100 * there["BYTES_RECEIVED"] / there["WORDS_RECEIVED"]
    acks = 100 * there["ACKS_SENT"] * ACK_WORDS / back
    # Flow words and what frames a packet take all but 97.2 %, idle words between packets some more:
    # it is close to the target, which is recorded, and less than this would be a fault.
    figure(
        "link-payload-share",
        round(payload, 2),
        "% of the words, one-way contiguous puts",
        at_least=97,
        profile="gen2x4",
    )
    assert payload > 96.8
    assert figure(
        "link-ack-share",
        round(acks, 3),
        "% of the reverse direction's words, one-way load",
        at_most=2,
        profile="gen2x4",
    )


def test_a_small_put_hardly_waits_for_long_ones(ends, figure):
    """From the call to the completion."""

    def one(side, bulk, tag):
        begin = side.now()
        side.endpoint.put_inline(bytes(8), ends.key, CHUNK + 8 * tag, node=1, tag=tag)
        while tag not in bulk.others:
            assert side.endpoint.wait(10_000_000)
            bulk.collect()
        return bulk.others[tag] - begin

    def measured(side):
        bulk = Bulk(side, ends.key)
        idle = [one(side, bulk, tag) for tag in range(1, 21)]
        bulk.run(side.now() + 100_000)
        loaded = []
        for tag in range(21, 61):
            loaded.append(one(side, bulk, tag))
            # A long put keeps its slot, and the ring of slots must not come round to it.
            bulk.run(side.now() + 15_300)
        bulk.end()
        return sorted(idle)[10], sorted(loaded)[20]

    (idle, loaded), _ = ends.both(measured, lambda side: None)
    figure(
        "small-put-completion",
        round(idle),
        "ns, call to completion, median, unloaded",
        profile="gen2x4",
    )
    assert figure(
        "small-put-under-bulk",
        round(loaded / idle, 2),
        f"times the unloaded {idle:.0f} ns, medians",
        at_most=2,
        profile="gen2x4",
    )
