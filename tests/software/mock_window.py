"""mock_card.Card with the remote window: page table, sequences, counters; stores arrive at once."""

# SPDX-License-Identifier: BSD-2-Clause

import struct

from dibber.interface.description import HOST, RIGHT, STATUS, WINDOW, C

from tests.software import mock_card

QUEUE = 512  # stores
FAULTS = ("OVERFLOWS", "FORBIDDEN", "REFUSALS", "UNMAPPED", "MISSHAPED", "LATE")
OWN = ("FORBIDDEN", "REFUSALS")  # count for the owner of the page alone
CONTROL_PAGE = C.APERTURE_BYTES - C.APERTURE_PAGE


class Card(mock_card.Card):
    """Attributes for tests: `window` (registers of bank window, by name), `table` (entries by
    page), `sequences` (by endpoint), `shared` (added to each), `full` (looks at ROOM that find no
    room), `late` (loads of the control page are not answered in time), `stored` ((offset, bytes)
    of all stores), `flushes`."""

    aperture_bytes = C.APERTURE_BYTES

    def __init__(self):
        super().__init__()
        self.registers[HOST["FEATURES"].offset] = 2
        self.table, self.stored, self.flushes, self.full, self.late = {}, [], 0, 0, False
        self.sequences, self.shared = [0] * C.ENDPOINTS, 0
        self.window = {register.name: 0 for register in WINDOW.registers}
        self.window["GEOMETRY"] = C.ENDPOINTS - 1 | QUEUE << 8
        self.window["ROOM"] = QUEUE

    def fault(self, name, owner=None, status=0):
        self.window[name] += 1
        if status:
            self.window["LAST"] = status
        if name in OWN:
            self.sequences[owner] += 1
        else:
            self.shared += 1

    # Registers ------------------------------------------------------------------------------------

    @staticmethod
    def _register(offset):
        return next(
            (r.name for r in WINDOW.registers if r.offset == offset - C.APERTURE_REGISTERS), None
        )

    def bar_read(self, offset, length):
        name = self._register(offset)
        if name is None:
            return super().bar_read(offset, length)
        if name == "ROOM" and self.full:
            self.full -= 1
            return bytes(4)
        return struct.pack("<I", self.window[name])

    def bar_write(self, offset, data):
        name = self._register(offset)
        if name is None:
            return super().bar_write(offset, data)
        value = self.window[name] = struct.unpack("<I", data)[0]
        if name == "PAGE_WRITE":
            words = ("PAGE_KEY", "PAGE_OFFSET_LOW", "PAGE_OFFSET_HIGH", "PAGE_ACCESS")
            key, low, high, access = (self.window[word] for word in words)
            self.table[value] = key, low | high << 32, access

    def _run(self, run):
        super()._run(run)
        if not run:
            self.window["CONTROL"] = 0

    # Aperture -------------------------------------------------------------------------------------

    def _place(self, offset, right, region_right):
        """(address in memory, entry's access), or None with the fault counted."""
        key, start, access = self.table.get(offset // C.APERTURE_PAGE, (0, 0, 0))
        owner = access >> 8 & 15
        if not access >> 15 & 1 or not self.window["CONTROL"]:
            return self.fault("UNMAPPED")
        if not access >> right & 1:
            return self.fault("FORBIDDEN", owner)
        scratch = self.regions.get(self.window["SCRATCH_KEY"])
        assert scratch and scratch["endpoint"] == C.ENDPOINTS - 1 and C.ENDPOINTS - 1 in self.queues
        region = self.regions.get(key)
        if region is None or not region["rights"] & region_right:
            wrong = STATUS.REMOTE_BAD_KEY if region is None else STATUS.REMOTE_NOT_PERMITTED
            return self.fault("REFUSALS", owner, wrong)
        return region["base"] + start + offset % C.APERTURE_PAGE, access

    def aperture_write(self, offset, data):
        if offset >= CONTROL_PAGE:
            self.flushes += 1
            return
        self.stored.append((offset, data))
        place = self._place(offset, 13, RIGHT.REMOTE_WRITE)
        if place:
            self.server.write_memory(place[0], data)

    def aperture_read(self, offset, count):
        ones = b"\xff" * count
        if offset >= CONTROL_PAGE:
            owner = (offset - CONTROL_PAGE) // 64
            if self.late or not self.window["CONTROL"]:
                return ones
            return struct.pack("<I", self.sequences[owner] + self.shared & 0xFFFFFFFF)
        place = self._place(offset, 12, RIGHT.REMOTE_READ)
        if not place:
            return ones
        data = self.server.read_memory(place[0], count)
        if place[1] >> 14 & 1:
            addend = struct.unpack("<h", struct.pack("<H", place[1] >> 16))[0]
            added = int.from_bytes(data, "little") + addend & (1 << 8 * count) - 1
            self.server.write_memory(place[0], added.to_bytes(count, "little"))
        return data
