"""The serial side of a link port, as generators for Migen's simulator."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

RX = ("data", "k", "code_error", "disparity_error")


@passive
def cable(tx, rx, delay=4, rotate=0, fault=None, busy=None, log=None):
    """Carry words from a serial_tx to a serial_rx endpoint.

    delay  : words on their way
    rotate : symbols by which the words arrive shifted, 0…3
    fault  : (data, k) -> (data, k, code_error, disparity_error), or None where the word is lost
    busy   : () -> whether the transmitter takes a word in this cycle
    log    : list to which (data, k) of every word sent is appended
    """
    pipe, rest, driven = [None] * delay, [], {}
    while True:
        ready = int(busy is None or busy())
        yield tx.ready.eq(ready)
        yield
        sent = None
        if ready and (yield tx.valid):
            sent = ((yield tx.data), (yield tx.k))
            if log is not None:
                log.append(sent)
            sent = fault(*sent) if fault else (*sent, 0, 0)
        pipe.append(sent)
        word = pipe.pop(0)
        if word is not None and rotate:
            symbols = [(word[0] >> 8 * n & 0xFF, *(f >> n & 1 for f in word[1:])) for n in range(4)]
            rest += symbols
            symbols, rest = (rest[:4], rest[4:]) if len(rest) >= 4 + rotate else (None, rest)
            word = symbols and tuple(
                sum(s[i] << (8 * n if i == 0 else n) for n, s in enumerate(symbols))
                for i in range(4)
            )
        values = dict(zip(RX, word), valid=1) if word else dict(valid=0)
        for name, value in values.items():
            if driven.get(name) != value:
                yield getattr(rx, name).eq(value)
                driven[name] = value


@passive
def play(rx, words):
    """Present (data, k) or (data, k, code_error, disparity_error) words to a serial_rx, one a
    cycle.
    """
    for word in words:
        for name, value in zip(RX, (*word, 0, 0)):
            yield getattr(rx, name).eq(value)
        yield rx.valid.eq(1)
        yield
    yield rx.valid.eq(0)
    while True:
        yield
