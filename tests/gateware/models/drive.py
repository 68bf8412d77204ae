"""Both ends of a stream, as generators for Migen's simulator, with seeded random stalls."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *


def finish(done, cycles):
    """Run until `done()` is true, at most `cycles` cycles; then the test fails."""
    for _ in range(cycles):
        if done():
            return
        yield
    raise AssertionError(f"not finished after {cycles} cycles")


def drive(record, **values):
    """Assign fields by their names; what they are from the next cycle on."""
    for name, value in values.items():
        yield getattr(record, name).eq(value)


def growing(items):
    """Items of a list to which others append, as they come; None while there is none."""
    n = 0
    while True:
        if n < len(items):
            n += 1
            yield items[n - 1]
        else:
            yield None


@passive
def whole(endpoint, groups, random, busy=1.0):
    """Send groups of items without gaps in them, and pauses between. A group is an iterable of
    field values.
    """
    for group in groups:
        while random.random() > busy:
            yield
        for item in group:
            yield from drive(endpoint, valid=1, **item)
            yield
            while not (yield endpoint.ready):
                yield
        yield endpoint.valid.eq(0)
    while True:
        yield


@passive
def source(endpoint, items, random, busy=1.0):
    """Send dictionaries of field values. `busy`: share of cycles in which an item is offered.

    `items` is any iterable; None in it is a cycle without an offer.
    """
    fields = {}
    for item in items:
        if item is None:
            yield
            continue
        while random.random() > busy:
            yield
        for name, value in item.items():
            if fields.get(name) != value:
                yield getattr(endpoint, name).eq(value)
                fields[name] = value
        yield endpoint.valid.eq(1)
        yield
        while not (yield endpoint.ready):
            yield
        yield endpoint.valid.eq(0)
    while True:
        yield


@passive
def sink(endpoint, names, items, random, busy=1.0, cycle=None):
    """Append a tuple of the fields `names` for each transfer. `cycle` collects the cycle numbers.

    An offer must stand until it is taken, and the fields with it.
    """
    now, held = 0, None
    while True:
        yield endpoint.ready.eq(int(busy >= 1.0 or random.random() < busy))
        yield
        now += 1
        if (yield endpoint.valid):
            values = []
            for name in names:
                values.append((yield getattr(endpoint, name)))
            values = tuple(values)
            assert held in (None, values), f"{held} became {values} while it waited"
            held = values
            if (yield endpoint.ready):
                items.append(values)
                held = None
                if cycle is not None:
                    cycle.append(now)
        else:
            assert held is None, f"{held} was withdrawn"
