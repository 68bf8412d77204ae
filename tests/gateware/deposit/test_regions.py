"""The region table: the whole key must match, the answer comes 2 cycles later, one a cycle."""

# SPDX-License-Identifier: BSD-2-Clause

from random import Random

from migen import *

from dibber.deposit.regions import RegionTable

from tests.gateware.models.compiled import run_simulation

ANSWER = ("found", "base", "length", "rights", "owner")


def write(table, key, base=0, length=0, rights=0, owner=0, valid=1):
    for name, value in dict(
        index=key % 64,
        key=key,
        base=base,
        length=length,
        rights=rights,
        owner=owner,
        valid=valid,
        write=1,
    ).items():
        yield getattr(table, name).eq(value)
    yield
    yield table.write.eq(0)


def look(port, keys, answers):
    """Ask for a key in each cycle; answers by cycle of the question."""
    for n in range(len(keys) + 3):
        yield port.valid.eq(int(n < len(keys)))
        yield port.key.eq(keys[n] if n < len(keys) else 0)
        yield
        assert (yield port.done) == int(n >= 2 and n < len(keys) + 2)
        if (yield port.done):
            values = []
            for name in ANSWER:
                values.append((yield getattr(port, name)))
            answers.append(tuple(values))


def after(cycles, process):
    for _ in range(cycles + 1):
        yield
    yield from process


def test_every_entry_on_all_ports():
    random = Random(1)
    entries = {}
    for index in range(64):
        key = index | random.randrange(1, 2**24) << 8
        entries[key] = (
            random.getrandbits(64),
            random.getrandbits(64),
            random.getrandbits(4),
            random.getrandbits(8),
        )
    keys = list(entries)
    other = [key ^ 0x100 for key in keys]
    table, answers = RegionTable(ports=4), [[] for _ in range(4)]

    def test():
        for key, entry in entries.items():
            yield from write(table, key, *entry)

    # Pairs of ports ask in the same cycles for different keys.
    run_simulation(
        table,
        [
            test(),
            *[
                after(64, look(port, *asked))
                for port, asked in zip(table.ports, zip((keys + other, other + keys) * 2, answers))
            ],
        ],
    )
    good = [(1,) + entries[key] for key in keys]
    for n in (0, 2):
        assert answers[n][:64] == answers[n + 1][64:] == good
        assert not any(a[0] for a in answers[n][64:] + answers[n + 1][:64])


def test_empty_and_removed_entries_are_not_found():
    table, answers = RegionTable(), []

    def test():
        yield from write(table, 0x705, 1, 2, 3, 4)
        yield from write(table, 0x705, 1, 2, 3, 4, valid=0)
        yield
        yield from look(table.ports[0], [0x705, 5, 0, 9], answers)

    run_simulation(table, [test()])
    assert [a[0] for a in answers] == [0, 0, 0, 0]


def test_a_lookup_in_the_cycle_of_its_entrys_write_finds_nothing_and_others_all():
    table, answers, others = RegionTable(), [], []

    def test():
        yield from write(table, 0x705, 1, 2, 3, 4)
        yield from write(table, 0x906, 5, 6, 7, 8)
        yield
        yield from write(table, 0x705, 9, 2, 3, 4)

    # The entry is written again in the cycle of the second question.
    run_simulation(
        table,
        [
            test(),
            after(1, look(table.ports[0], [0x705] * 4, answers)),
            after(1, look(table.ports[1], [0x906] * 4, others)),
        ],
    )
    at = [found for found, *_ in answers].index(0)
    assert at == 1
    assert [a[:2] for a in answers[:at]] == [(1, 1)] * at
    assert [a[:2] for a in answers[at + 1 :]] == [(1, 9)] * (3 - at)
    assert [a[:2] for a in others] == [(1, 5)] * 4
