"""The program of `window`: its processor stores to the other card's memory, and loads from there.

Card 0 does, card 1 compares every byte. `remote-store` has a program on both sides that looks at
the clock.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from typing import Any

import libdibber
from dibber.interface.description import RIGHT
from libdibber import arguments
from libdibber.binding import check, library

from dibber_cli.bench.point import FILL, GUARD, Point
from dibber_cli.bench.program import TIMEOUT_NS, Failed, reap
from dibber_cli.bench.worker import Worker

STORE, MEMCPY = "window-store", "window-memcpy"  # operations of points
LOAD, VISIBLE, BARRIER = "remote-load", "remote-store", "barrier"
STREAMS, PROBES = (STORE, MEMCPY), (LOAD, VISIBLE, BARRIER)
ELEMENT = 8  # bytes of a processor's store
ROUND_NS = 10_000  # from one probe to the next one
LOOK_NS = 16  # between two looks at memory
QUIET_NS = 8_000  # after a store was seen, the next one does not come sooner


class WindowProgram(Worker):
    """A Worker with points of its own: those of STREAMS and of PROBES. One window reaches all of
    the other card's target memory.
    """

    window: libdibber.Window

    def __init__(
        self, uri: str, node: int, firmware: str, seed: int, points: Sequence[Point]
    ) -> None:
        super().__init__(uri, node, firmware, seed, points)
        self.reach = max(p.extent(p.target) for p in points)
        self.window = None  # type: ignore[assignment]

    def allocate(self, source_bytes: int, target_bytes: int, owner: int = 1) -> None:
        """The target can be read from the other card, too."""
        self.source = self.endpoint.register(libdibber.alloc(source_bytes), RIGHT.LOCAL_READ)
        self.target = self.endpoint.register(
            libdibber.alloc(target_bytes),
            RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE,
        )

    def close(self) -> None:
        if self.window:
            self.window.close()
        super().close()

    def run(self, point: Point, keys: dict[str, Any]) -> dict[str, Any]:
        if point.operation not in STREAMS + PROBES:
            return super().run(point, keys)
        if self.node == 1:
            return (
                self._see(point, keys) if point.operation == VISIBLE else super().run(point, keys)
            )
        if self.window is None:
            self.window = self.endpoint.window(keys["target"], self.reach, node=1)
        # A flow is armed after its first puts; so is the first point's.
        self.window.barrier()
        answer = (self._stream if point.operation in STREAMS else self._probe)(point)
        self._end(point, keys)
        return answer

    def _places(self, point: Point) -> list[tuple[int, int]]:
        """(offset in the window, address of the bytes here) of each element."""
        base = arguments.address(self.source.memory) + GUARD
        places = []
        for n in range(point.transfers):
            first = GUARD + n * point.target.span
            places += [first + int(offset) for offset in point.target.blocks()]
        return [(place, base + n * point.target.block) for n, place in enumerate(places)]

    def _end(self, point: Point, keys: dict[str, Any]) -> None:
        """Tell the other side that all has come: the last bytes again, with a notice."""
        place, address = self._places(point)[-1]
        last = point.target.block - ELEMENT
        data = self.source.memory[GUARD + point.payload - ELEMENT : GUARD + point.payload]
        self.endpoint.put_inline(
            data.tobytes(), keys["target"], place + last, node=1, notice=point.number, endpoint=1
        )
        while not reap(self.endpoint):
            if not self.endpoint.wait(TIMEOUT_NS):
                raise Failed("the last put did not complete")

    def _issue_stores(self, point: Point, place: int, address: int, length: int) -> None:
        """One block: by stores of 8 bytes each, or as memcpy() does."""
        handle, lib = self.window._handle, library()
        if point.operation == MEMCPY:
            check(lib.dib_window_copy(handle, place, address, length))
            return
        for at in range(0, length, ELEMENT):
            check(lib.dib_window_store(handle, place + at, address + at, ELEMENT))

    def _stream(self, point: Point) -> dict[str, Any]:
        """All transfers, `outstanding` of them between two barriers."""
        blocks = len(point.target.blocks())
        begin = self.endpoint.clock()
        for n, (place, address) in enumerate(self._places(point), 1):
            self._issue_stores(point, place, address, point.target.block)
            if n % (blocks * point.outstanding) == 0:
                self.window.barrier()
        end = self.endpoint.clock()
        return {
            "elapsed_ps": end.now_ps - begin.now_ps,
            "cpu_ps": end.cpu_ps - begin.cpu_ps,
            "free": end.free,
            "transfers": point.transfers,
        }

    # Times of one access --------------------------------------------------------------------------

    def _probe(self, point: Point) -> dict[str, Any]:
        """Picoseconds of each round. Of VISIBLE: when each store was made; its time is that until
        the other side sees it.
        """
        rounds, wrong, places = [], 0, self._places(point)
        if point.operation == LOAD:
            for place, address in places:
                self.window.copy(place, self._element(address))
            self.window.barrier()
        cpu_ps = 0
        for place, address in places:
            self.endpoint.wait(ROUND_NS)
            begin = self.endpoint.clock()
            if point.operation == LOAD:
                wrong += self.window.load(place, ELEMENT) != self._element(address)
            else:
                self.window.store(place, self._element(address))
                self.window.barrier() if point.operation == BARRIER else self.window.flush()
            end = self.endpoint.clock()
            cpu_ps += end.cpu_ps - begin.cpu_ps
            rounds.append(begin.now_ps if point.operation == VISIBLE else end.now_ps - begin.now_ps)
        self.window.barrier()
        if wrong:
            raise Failed(f"{wrong} loads returned wrong bytes")
        return {"rounds_ps": rounds, "cpu_ps": cpu_ps, "free": end.free}

    def _element(self, address: int) -> bytes:
        first = address - arguments.address(self.source.memory)
        return self.source.memory[first : first + ELEMENT].tobytes()

    def _see(self, point: Point, keys: dict[str, Any]) -> dict[str, Any]:
        """Look at each place until its bytes are there: the times, then what a Worker does."""
        seen = []
        for place, _ in self._places(point):
            word = self.target.memory[place : place + ELEMENT]
            waited = 0
            while (word == FILL).all():
                self.endpoint.wait(LOOK_NS)
                waited += LOOK_NS
                if waited > TIMEOUT_NS:
                    raise Failed("a store was not seen")
            seen.append(self.endpoint.clock().now_ps)
            self.endpoint.wait(QUIET_NS)
        return {**super().run(point, keys), "seen_ps": seen}
