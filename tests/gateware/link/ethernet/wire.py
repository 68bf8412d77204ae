"""A MAC's frame streams, and two ports with a wire for frames between them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.link.ethernet.port import EthernetPort

from tests.gateware.link.pair import Pair
from tests.gateware.models.ethernet import MINIMUM

# Cycles of a 64-bit MAC for preamble, FCS and the gap between frames: 24 bytes.
GAP_CYCLES = 3


def mac_number(address):
    return int.from_bytes(address, "little")


def words_of(data, error=False):
    """The words of a frame: (data, bytes, last, error)."""
    words = []
    for at in range(0, len(data), 8):
        part, last = data[at : at + 8], at + 8 >= len(data)
        words.append((int.from_bytes(part, "little"), len(part), int(last), int(last and error)))
    return words


@passive
def take_frames(tx, frames, busy=None):
    """Append to `frames` what a port sends. Once a frame has begun, each word must be there."""
    data, gap = b"", 0
    while True:
        ready = int(gap == 0 and (busy is None or busy()))
        gap = max(gap - 1, 0)
        yield tx.ready.eq(ready)
        yield
        valid = yield tx.valid
        assert valid or not data, "a frame has a hole"
        if ready and valid:
            assert (yield tx.first) == (not data)
            size = yield tx.bytes
            data += (yield tx.data).to_bytes(8, "little")[:size]
            if (yield tx.last):
                frames.append(data + bytes(max(0, MINIMUM - len(data))))
                data, gap = b"", GAP_CYCLES
            else:
                assert size == 8


@passive
def give_frames(rx, frames, holes=lambda: False, gap=GAP_CYCLES):
    """Give a port the frames of a list to which others append: bytes, or (bytes, FCS is wrong)."""
    given = 0
    while True:
        if given == len(frames):
            yield
            continue
        frame = frames[given]
        given += 1
        for data, size, last, error in words_of(*(frame if isinstance(frame, tuple) else (frame,))):
            while holes():
                yield
            yield rx.valid.eq(1)
            yield rx.data.eq(data)
            yield rx.bytes.eq(size)
            yield rx.last.eq(last)
            yield rx.error.eq(error)
            yield
            assert (yield rx.ready)
            yield rx.valid.eq(0)
        for _ in range(gap):
            yield


class FramePair(Pair):
    """Ports a and b over a wire that carries frames; attributes as of `Pair`.

    wire : (frame, towards b) -> list of frames that come in its place, as give_frames has them
    sent, came : frames from a that it sent, and that came at b
    """

    MACS = (b"\x02\0\0\0\0\xaa", b"\x02\0\0\0\0\xbb")

    def __init__(self, random, wire=None, busy=None, mtu=72, period=64, ports=None, **options):
        ports = ports or (lambda: EthernetPort(mtu=mtu, period=period, **options))
        self.submodules.a = ports()
        self.submodules.b = ports()
        self.random = random
        channels = range(len(self.a.sinks))
        self.packets = [[] for _ in channels]
        self.counts = {
            name: dict.fromkeys([*port.counters, *port.frame_counters], 0)
            for name, port in (("a", self.a), ("b", self.b))
        }
        self.take = [lambda: True for _ in channels]
        self.signal = True
        self.wire = wire or (lambda frame, there: [frame])
        self.sent, self.came = [], []
        back, returned = [], []
        self.processes = [
            take_frames(self.a.frame_tx, self.sent, busy),
            take_frames(self.b.frame_tx, back, busy),
            self._carry(self.sent, self.came, True),
            self._carry(back, returned, False),
            give_frames(self.b.frame_rx, self.came),
            give_frames(self.a.frame_rx, returned),
            self._drive(),
            self._watch(),
            self._addresses(),
            *[self._take(n) for n in channels],
        ]

    @passive
    def _carry(self, sent, came, there):
        done = 0
        while True:
            while done < len(sent):
                frame = sent[done]
                done += 1
                if self.signal:
                    came += self.wire(frame, there)
            yield

    @passive
    def _addresses(self):
        for port, mac in zip((self.a, self.b), self.MACS):
            yield port.mac.eq(mac_number(mac))
        while True:
            yield

    @passive
    def _watch(self):
        while True:
            for name, port in (("a", self.a), ("b", self.b)):
                for counters in (port.counters, port.frame_counters):
                    for counter, pulse in counters.items():
                        self.counts[name][counter] += yield pulse
            yield

    def state(self, a, b, cycles=1000):
        yield from super().state(a, b, cycles)
