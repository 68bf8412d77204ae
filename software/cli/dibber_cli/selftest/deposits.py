"""DMA patterns: one card reads from its host and the other one writes, in both directions at once.
Each byte is compared.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import libdibber
from dibber.interface.description import RIGHT, STATUS, C
from libdibber import Walk
from libdibber.late import np

from dibber_cli.selftest.examinee import Examinee, Impossible, Wrong

SIZE = 16 * 1024  # bytes of a source …
SMALL = 4 * 1024  # … on a card behind a UART, which has little memory
SPARSE = 4  # a target is so many times larger, because strided transfers leave gaps in it
FILL = 0xA5  # the target's bytes before the transfers
ADDS = 8
WAIT_NS = 100_000_000
LINE_NS = 10_000_000_000  # the same through a UART

# Contents of the source by name: functions of the number of bytes and the sender's seed.
CONTENTS = {
    "walking ones": lambda random, size: np.tile(
        1 << (np.arange(64, dtype=np.uint64)), size // 512
    ).view(np.uint8),
    "walking zeros": lambda random, size: np.tile(
        ~(1 << (np.arange(64, dtype=np.uint64))), size // 512
    ).view(np.uint8),
    "all and none": lambda random, size: np.repeat(
        np.tile(np.array([0, 255], dtype=np.uint8), size // 32), 16
    ),
    "random": lambda random, size: random.integers(0, 256, size, dtype=np.uint8),
}


def _strided(key: int, block: int, stride: int, offset: int, length: int) -> Walk:
    return Walk(key, block, offset, ((length // block, stride),))


def shapes(source: int, target: int, size: int = SIZE) -> list[tuple[str, Walk, Walk]]:
    """Pairs of walks from region `source` to region `target`: name, both walks. They do not
    overlap in the target.
    """
    half, part = size // 2, size // 8
    return [
        ("contiguous", Walk(source, half), Walk(target, half)),
        ("odd addresses", Walk(source, 1021, 3), Walk(target, 1021, size + 1)),
        ("target strided", Walk(source, part, half), _strided(target, 8, 24, size + 2048, part)),
        ("source strided", _strided(source, 4, 12, half, part), Walk(target, part, half + 1024)),
        ("bytes", _strided(source, 1, 2, half, 700), _strided(target, 1, 3, 2 * size, 700)),
    ]


def content(name: str, seed: int, node: int, size: int = SIZE) -> np.ndarray:
    """Source bytes of card `node` for the pattern `name`."""
    return CONTENTS[name](np.random.default_rng((seed, list(CONTENTS).index(name), node)), size)


def expected(data: np.ndarray) -> np.ndarray:
    """A target after all shapes of a source that holds `data`."""
    memory = np.full(SPARSE * len(data), FILL, dtype=np.uint8)
    for _, source, target in shapes(0, 0, len(data)):

        def places(walk: Walk) -> np.ndarray:
            return (np.array(walk.blocks())[:, None] + np.arange(walk.block)).ravel()

        memory[places(target)] = data[places(source)]
    return memory


def _finish(self: Examinee, count: int) -> None:
    """Take `count` completions."""
    while count:
        if not self.endpoint.wait(LINE_NS if self.copies else WAIT_NS):
            raise Wrong(f"{count} transfers did not complete")
        for completion in self.endpoint.poll():
            if completion.status != STATUS.OK:
                raise Wrong(f"a transfer ended with {STATUS.name_of(completion.status)}")
            count -= 1


def _compare(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    wrong = np.flatnonzero(found != wanted)
    if len(wrong):
        first = int(wrong[0])
        raise Wrong(
            f"{name}: {len(wrong)} bytes wrong, the first at {first}: {found[first]:02x}, not "
            f"{wanted[first]:02x}; "
            f"bits {int(np.bitwise_or.reduce(found[wrong] ^ wanted[wrong])):02x} differ"
        )


def deposits(self: Examinee) -> str:
    """Puts of all shapes with all contents, gets, inline puts and atomics; gaps and guards are
    compared too.
    """
    self.needs_program()
    if self.cable != "direct":
        raise Impossible("no other card is there")
    own = SMALL if self.copies else SIZE
    size = min(own, self.meet(own))  # raises Impossible when nobody answers
    other, compared = 1 - self.node, 0
    everything = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
    with (
        self.endpoint.register(
            libdibber.alloc(size), RIGHT.LOCAL_READ | RIGHT.REMOTE_READ
        ) as source,
        self.endpoint.register(libdibber.alloc(SPARSE * size), everything) as target,
        self.endpoint.register(libdibber.alloc(size), RIGHT.LOCAL_WRITE) as fetched,
    ):
        for name in CONTENTS:
            source.memory[:] = content(name, self.seed, self.node, size)
            target.memory[:] = FILL
            theirs = self.meet({"source": source.key, "target": target.key})
            for _, walk, there in shapes(source.key, theirs["target"], size):
                self.endpoint.put_strided(walk, there, node=other)
            self.endpoint.get(theirs["source"], 0, fetched.key, 0, size, node=other)
            _finish(self, len(shapes(0, 0)) + 1)
            self.meet()  # the other card's puts have arrived
            data = content(name, self.seed, other, size)
            _compare(name, target.memory, expected(data))
            _compare(f"{name}, fetched", fetched.memory, data)
            compared += (SPARSE + 1) * size
        compared += _small(self, target, theirs["target"])
        self.meet()  # no memory is released that the other card still reads
    return (
        f"{len(CONTENTS)} patterns in {len(shapes(0, 0))} shapes, gets, inline puts, atomics: "
        f"{compared} bytes right"
    )


def _small(self: Examinee, target: libdibber.Region, key: int) -> int:
    """Inline puts of every length, and additions to one counter."""
    target.memory[:] = FILL
    self.meet()
    wanted, place = np.full(len(target.memory), FILL, dtype=np.uint8), 64
    for length in range(1, C.INLINE_BYTES + 1):
        data = bytes((length + n) & 0xFF for n in range(length))
        wanted[place : place + length] = np.frombuffer(data, np.uint8)
        self.endpoint.put_inline(data, key, place, node=1 - self.node)
        _finish(self, 1)
        place += length + 1
    self.meet()
    _compare("inline puts", target.memory, wanted)
    target.memory[:8] = 0
    self.meet()
    for n in range(ADDS):
        self.endpoint.fetch_add(key, 0, n + 1, node=1 - self.node)
        _finish(self, 1)
    self.meet()
    total = int(target.memory[:8].view("<u8")[0])
    if total != ADDS * (ADDS + 1) // 2:
        raise Wrong(f"the sum of {ADDS} additions is {total}, not {ADDS * (ADDS + 1) // 2}")
    return len(target.memory) + 8
