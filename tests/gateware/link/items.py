"""Packets as items of word streams, and back."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *


def word_items(packets):
    """(words, bad) packets as items for a word stream."""
    return [
        dict(
            data=word,
            first=int(i == 0),
            last=int(i == len(words) - 1),
            bad=int(bad and i == len(words) - 1),
        )
        for words, bad in packets
        for i, word in enumerate(words)
    ]


def random_words(random, longest=40):
    return [random.getrandbits(32) for _ in range(random.randrange(1, longest))]


def collect(endpoint, packets):
    """Look at a word stream in this cycle, and append to `packets`: [(words, good), …, words of a
    begun one].
    """
    if (yield endpoint.valid) and (yield endpoint.ready):
        if not packets or isinstance(packets[-1], tuple):
            packets.append([])
        assert (yield endpoint.first) == (not packets[-1])
        packets[-1].append((yield endpoint.data))
        if (yield endpoint.last):
            packets[-1] = (packets[-1], not (yield endpoint.bad))
