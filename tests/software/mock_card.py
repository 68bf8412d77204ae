"""A card with its control program in Python, behind mock_vfio_user.Server: registers, slots,
queues, transfers.

Every node is the card itself, so a transfer goes from its regions to its regions.

While its clock has participants, it takes commands only when a program waits for an answer, because
simulated time stands while a program runs. So no entry comes to a queue between a poll and the WAIT
after it, unless a test posts the entry.
"""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import os
import struct
import zlib

from dibber.interface.description import (
    ADMIN,
    ATOMIC,
    CLOCK_OP,
    CLOCK_REPLY,
    CLOCK_REQUEST,
    COMMAND,
    DOORBELL,
    ENTRY,
    FIRMWARE_HEADER,
    FLAG,
    HOST,
    INLINE,
    INTERFACE,
    MCP_STATE,
    OPCODE,
    QUEUE_ENTRY,
    RIGHT,
    ROUTE_COMMAND,
    STATUS,
    WALK,
    C,
)

SRAM_BYTES = 0x20000  # of the control program, unless a test says otherwise

HEAD, PROGRAM = (C.DOORBELL_OFFSET + DOORBELL[name].offset for name in ("COMMAND_HEAD", "PROGRAM"))

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}


def decode(layout, data):
    """A structure of the interface description as a dictionary; walks are dictionaries too, arrays
    tuples.
    """
    values = {}
    for m in layout.members:
        if m.kind == "walk":
            values[m.name] = decode(WALK, data[m.offset : m.offset + m.size])
        else:
            array = struct.unpack_from(f"<{m.count}{CODES[m.kind]}", data, m.offset)
            values[m.name] = array if m.count > 1 else array[0]
    return values


def encode(layout, **values):
    """Bytes of a structure; members that are not named are 0."""
    data = bytearray(layout.size)
    for name, value in values.items():
        m = layout[name]
        if m.kind == "walk":
            data[m.offset : m.offset + m.size] = encode(WALK, **value)
        else:
            array = value if isinstance(value, (tuple, list)) else (value,)
            struct.pack_into(f"<{len(array)}{CODES[m.kind]}", data, m.offset, *array)
    return bytes(data)


def firmware_image(words=1000, identity=0xD1BB0001, sram=SRAM_BYTES, **header):
    """A control program image, good unless `header` says otherwise."""
    body = struct.pack(f"<{words}I", *range(words))
    fields = dict(
        magic=C.FIRMWARE_MAGIC,
        version=INTERFACE.version_word,
        hash=INTERFACE.hash,
        bytes=len(body),
        identity=identity,
        sram=sram,
    )
    file = encode(FIRMWARE_HEADER, **{**fields, **header}) + body
    crc = zlib.crc32(file[FIRMWARE_HEADER["entry"].offset :])
    return encode(FIRMWARE_HEADER, **{**fields, "crc": crc, **header}) + body


class Queue:
    """The queues to which the control program posts."""

    def __init__(self, base, entries):
        self.base, self.entries, self.index = base, entries, 0


class Card:
    """Attributes for tests: `registers` (by offset), `sram`, `doorbells` and `writes` (all BAR
    writes as (offset, length)), `commands` (slots taken), `silent` (takes no commands), `on_ring`
    (called at each COMMAND_PRODUCER), `identity` (what a started program publishes), `flips`
    (offset in SRAM that reads wrong), `calls` (clock requests), `neighbour` (node
    at the other end of the cable), `switch` (words by number of one there), `flash` (model of it,
    by fit_flash())."""

    aperture_bytes = 0  # of BAR 2: mock_window.Card has one

    def __init__(self, identity=0xD1BB0001, sram_bytes=SRAM_BYTES):
        self.registers = {}
        for name, value in (
            ("MAGIC", C.MAGIC),
            ("INTERFACE_VERSION", INTERFACE.version_word),
            ("INTERFACE_HASH", INTERFACE.hash),
            ("CLOCK_HZ", 125_000_000),
            ("DATA_WIDTH", 128),
            ("GEOMETRY", C.ENDPOINTS | C.SLOTS << 8 | C.REGIONS << 16 | C.NODES << 26),
            ("SRAM", sram_bytes >> 10 | sram_bytes >> 11 << 16),
            ("PCIE_STATUS", 256 | 512 << 16),
            ("LINK_STATUS", 2),
            ("KEYS_LEFT", 2**32 - 1),
        ):
            self.registers[HOST[name].offset] = value
        self.drawn = False
        self.config, self.sram = bytearray(256), bytearray(sram_bytes)
        self.vectors, self.doorbells, self.writes, self.commands, self.calls = {}, [], [], [], []
        self.slots = [bytearray(C.SLOTS * C.SLOT_BYTES) for _ in range(C.ENDPOINTS)]
        self.heads = [0] * C.ENDPOINTS
        self.queues, self.regions, self.written, self.waiting, self.rung = {}, {}, [], [], []
        self.identity, self.silent, self.flips, self.fail_clock = identity, False, None, 0
        self.now, self.cycles, self.joined, self.on_ring = 0, 0, set(), lambda: None
        self.neighbour = 1
        self.switch = None
        self.halts = 0
        self.flash, self.buffer, self.came = None, bytearray(C.FLASH_BYTES), bytes(C.FLASH_BYTES)

    def fit_flash(self, flash, board="sim"):
        """Give it access to a flash, and a board."""
        self.flash = flash
        self.registers[HOST["FEATURES"].offset] = 1
        for n, word in enumerate(struct.unpack("<4I", board.encode().ljust(16, b"\0"))):
            self.registers[HOST["BOARD"].offset + 4 * n] = word

    def lose_power(self):
        """Clear the state that only a loss of power clears; the client has gone before."""
        self.drawn = False
        self.registers[HOST["KEY_NEXT"].offset] = 0
        self.registers[HOST["KEYS_LEFT"].offset] = 2**32 - 1

    def reset(self):
        """The client has gone, with all its participants in the clock."""
        self.joined = set()

    # Registers ------------------------------------------------------------------------------------

    def get(self, name):
        return self.registers.get(HOST[name].offset, 0)

    def bar_read(self, offset, length):
        self._go_on()
        if C.FIRMWARE_BASE <= offset < C.FIRMWARE_BASE + len(self.sram):
            data = bytearray(self.sram[offset - C.FIRMWARE_BASE :][:length])
            if self.flips is not None and 0 <= self.flips - (offset - C.FIRMWARE_BASE) < length:
                data[self.flips - (offset - C.FIRMWARE_BASE)] ^= 1
            return bytes(data)
        if C.FLASH_BUFFER <= offset < C.FLASH_BUFFER + C.FLASH_BYTES:
            return self.came[offset - C.FLASH_BUFFER :][:length]
        if offset == HOST["CYCLES_LOW"].offset:
            self.cycles += 500_000
            return struct.pack("<I", self.cycles & 0xFFFFFFFF)
        if offset >= C.ENDPOINT_BASE and (offset - C.ENDPOINT_BASE) % C.ENDPOINT_STRIDE == PROGRAM:
            return struct.pack("<I", self.halts | bool(self.get("MCP_IDENTITY")) << 8)
        if (
            offset >= C.ENDPOINT_BASE
            and (offset - C.ENDPOINT_BASE) % C.ENDPOINT_STRIDE == HEAD
            and offset not in self.registers
        ):
            return struct.pack(
                "<I", self.heads[(offset - C.ENDPOINT_BASE) // C.ENDPOINT_STRIDE] % 2**32
            )
        return struct.pack("<I", self.registers.get(offset, 0))[:length]

    def bar_write(self, offset, data):
        self.writes.append((offset, len(data)))
        if C.FIRMWARE_BASE <= offset < C.FIRMWARE_BASE + len(self.sram):
            at = offset - C.FIRMWARE_BASE
            self.sram[at : at + len(data)] = data
            return
        if offset >= C.ENDPOINT_BASE:
            endpoint, inside = divmod(offset - C.ENDPOINT_BASE, C.ENDPOINT_STRIDE)
            if inside < C.DOORBELL_OFFSET:
                self.slots[endpoint][inside : inside + len(data)] = data
                return
            self.registers[offset] = value = struct.unpack("<I", data)[0]
            if inside - C.DOORBELL_OFFSET == DOORBELL["COMMAND_PRODUCER"].offset:
                self.doorbells.append((endpoint, value))
                self.on_ring()
                self.rung.append((endpoint, value))
                if not self.joined:
                    self._go_on()
            return
        if C.FLASH_BUFFER <= offset < C.FLASH_BUFFER + C.FLASH_BYTES:
            at = offset - C.FLASH_BUFFER
            self.buffer[at : at + len(data)] = data
            return
        self.registers[offset] = value = struct.unpack("<I", data)[0]
        if offset == HOST["MCP_CONTROL"].offset:
            self._run(value & 1)
        if offset == HOST["KEY_DRAW"].offset and not self.drawn:
            self.drawn = True
            self.registers[HOST["KEY_NEXT"].offset] = value
            self.registers[HOST["KEYS_LEFT"].offset] = 2**32 - 1
        if offset == HOST["FLASH_UNLOCK"].offset:
            self.registers[HOST["FLASH_STATUS"].offset] = 2 * (value == C.FLASH_KEY)
        if offset == HOST["FLASH_TRANSFER"].offset and self.flash:
            self._flash_transfer(value & 0xFF, value >> 8)

    # Flash ----------------------------------------------------------------------------------------

    def _flash_transfer(self, command, length):
        """As gateware/dibber/host/flash.py, but without any time."""
        unlocked = self.get("FLASH_STATUS") & 2
        refused = not unlocked and command not in (0x03, 0x13, 0x05, 0x9F, 0xFF)
        last = 0
        if not refused:
            back = self.flash.transfer(bytes([command]) + self.buffer[:length])
            self.came, last = back[1:] + self.came[length:], back[-1]
        self.registers[HOST["FLASH_STATUS"].offset] = unlocked | refused << 2 | last << 3

    # Control program ------------------------------------------------------------------------------

    def halt(self, state=MCP_STATE.TRAP):
        """It stops by itself."""
        self._run(False)
        self.registers[HOST["MCP_STATE"].offset] = state

    def _run(self, run):
        if self.get("MCP_STATE") != MCP_STATE.RESET and not run:
            self.halts = (self.halts + 1) % 256
            for vector in self.queues.keys() & self.vectors.keys():
                os.write(self.vectors[vector], struct.pack("<Q", 1))
        self.registers[HOST["MCP_IDENTITY"].offset] = self.identity if run else 0
        self.registers[HOST["MCP_STATE"].offset] = MCP_STATE.IDLE if run else MCP_STATE.RESET
        if not run:
            for offset in [offset for offset in self.registers if offset >= C.ENDPOINT_BASE]:
                self.registers[offset] = 0
        self.regions, self.heads = {}, [0] * C.ENDPOINTS
        self.queues, self.rung = {}, []
        self._attach()

    def _attach(self):
        """The administrator has a queue when the host has named one."""
        base = self.get("ADMIN_CQ_LOW") | self.get("ADMIN_CQ_HIGH") << 32
        if self.get("ADMIN_CQ_ENTRIES"):
            self.queues[0] = (Queue(base, self.get("ADMIN_CQ_ENTRIES")), None)

    def _go_on(self):
        while self.rung:
            self._take_commands(*self.rung.pop(0))

    def _take_commands(self, endpoint, producer):
        if endpoint == 0 and 0 not in self.queues:
            self._attach()
        if endpoint not in self.queues:
            self.heads[endpoint] = producer
        while endpoint in self.queues and self.heads[endpoint] != producer and not self.silent:
            at = self.heads[endpoint] % C.SLOTS * C.SLOT_BYTES
            slot = bytes(self.slots[endpoint][at : at + C.SLOT_BYTES])
            self.heads[endpoint] += 1
            self.commands.append((endpoint, slot))
            if endpoint == 0 and (slot[0] >= OPCODE.ENDPOINT_OPEN or not self.queues[0][1]):
                command = decode(ADMIN, slot)
                more = (
                    self._scout(decode(ROUTE_COMMAND, slot))
                    if command["opcode"] == OPCODE.SCOUT
                    else {}
                )
                self.post(0, command["cookie"], **{"status": self._administer(command), **more})
            else:
                command = decode(COMMAND, slot)
                if command["opcode"] in (OPCODE.SEND, OPCODE.RECEIVE):
                    self._meet(endpoint, command, slot)
                    continue
                if OPCODE.FETCH_ADD <= command["opcode"] <= OPCODE.MASKED_SWAP:
                    status, value = self._atomic(command, decode(ATOMIC, slot))
                    result = {"length": value & 0xFFFFFFFF, "key": value >> 32}
                else:
                    status = self._execute(endpoint, command, slot)
                    result = {"length": command["length"]}
                self.post(
                    endpoint, command["cookie"], node=command["node"], status=status, **result
                )

    def post(self, endpoint, cookie, kind=ENTRY.COMPLETION, queue=0, vector=None, **values):
        """Write a queue entry (queue 0: completions, 1: events), then signal `vector`."""
        q = self.queues[endpoint][queue]
        entry = encode(
            QUEUE_ENTRY,
            cookie=cookie,
            kind=kind,
            cycles=self.cycles,
            phase=1 - q.index // q.entries % 2,
            **values,
        )
        address = q.base + q.index % q.entries * C.QUEUE_ENTRY_BYTES
        self.server.write_memory(address, entry)
        self.written.append(address)
        q.index += 1
        if vector in self.vectors:
            os.write(self.vectors[vector], struct.pack("<Q", 1))

    def _administer(self, command):
        if command["opcode"] == OPCODE.ENDPOINT_OPEN and command["endpoint"] == 0:
            self.queues[0] = self.queues[0][0], Queue(command["eq_base"], command["eq_entries"])
        elif command["opcode"] == OPCODE.ENDPOINT_CLOSE and command["endpoint"] == 0:
            self.queues[0] = self.queues[0][0], None
        elif command["opcode"] == OPCODE.ENDPOINT_OPEN:
            self.heads[command["endpoint"]] = self.registers.get(
                C.ENDPOINT_BASE + command["endpoint"] * C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET, 0
            )
            self.queues[command["endpoint"]] = (
                Queue(command["cq_base"], command["cq_entries"]),
                Queue(command["eq_base"], command["eq_entries"]),
            )
        elif command["opcode"] == OPCODE.ENDPOINT_CLOSE:
            del self.queues[command["endpoint"]]
        elif command["opcode"] == OPCODE.REGION_ADD:
            distance = (command["key"] - self.get("KEY_NEXT")) % 2**32
            if distance >= self.get("KEYS_LEFT"):
                return STATUS.IN_USE
            self.registers[HOST["KEY_NEXT"].offset] = (command["key"] + 1) % 2**32
            self.registers[HOST["KEYS_LEFT"].offset] = self.get("KEYS_LEFT") - distance - 1
            self.regions[command["key"]] = command
        elif command["opcode"] == OPCODE.REGION_REMOVE:
            del self.regions[command["key"]]
        elif command["opcode"] not in (OPCODE.SCOUT, OPCODE.ROUTE_SET):
            return STATUS.BAD_OPCODE
        return STATUS.OK

    def _scout(self, command):
        """What answers at the end of the cable: the switch of which `switch` has words, or node
        `neighbour`. Nobody is behind it.
        """
        if self.switch is not None and not command["route"]:
            return {"key": 2, "length": self.switch.get(command["question"] & C.SWITCH_ASK_WORD, 0)}
        if command["route"] or self.neighbour is None:
            return {"status": STATUS.TIMEOUT} if self._administer(command) == STATUS.OK else {}
        return {"node": self.neighbour}

    def _pieces(self, walk, levels, length):
        """(offset, bytes) of each piece of a side, or None if its list is invalid."""
        strides = struct.unpack("<3q", struct.pack("<6I", *walk["stride"]))
        offsets, entries = [walk["offset"]], [0]
        for i in range(levels % C.LIST):
            offsets = [o + n * strides[i] for n in range(walk["count"][i]) for o in offsets]
        if levels & C.LIST:
            entries = self._entries(
                walk, strides[C.LIST_LEVELS], -(-length // (walk["block"] * len(offsets)))
            )
            if entries is None:
                return None
        pieces = []
        for offset in (entry + o for entry in entries for o in offsets):
            pieces.append((offset, min(walk["block"], length)))
            length -= pieces[-1][1]
        return [piece for piece in pieces if piece[1]]

    def _entries(self, walk, offset, count):
        walked, found = self.regions[walk["key"]], self.regions.get(walk["count"][C.LIST_LEVELS])
        size = C.LIST_ENTRY_BYTES * count
        if (
            found is None
            or found["endpoint"] != walked["endpoint"]
            or not found["rights"] & RIGHT.LOCAL_READ
            or offset % C.LIST_ENTRY_BYTES
            or not 0 <= offset <= found["length"] - size
        ):
            return None
        return struct.unpack(f"<{count}q", self.server.read_memory(found["base"] + offset, size))

    def _atomic(self, command, atomic):
        """(status, value before)."""
        region, size = self.regions.get(atomic["key"]), command["length"]
        if region is None:
            return STATUS.REMOTE_BAD_KEY, 0
        ones = (1 << 8 * size) - 1
        address = region["base"] + atomic["offset"]
        before = int.from_bytes(self.server.read_memory(address, size), "little")
        operand, compare, mask = (atomic[name] & ones for name in ("operand", "compare", "mask"))
        after = {
            OPCODE.FETCH_ADD: before + operand & ones,
            OPCODE.SWAP: operand,
            OPCODE.COMPARE_SWAP: operand if before == compare else before,
            OPCODE.MASKED_SWAP: before & ~mask | operand & mask,
        }[command["opcode"]]
        self.server.write_memory(address, after.to_bytes(size, "little"))
        return STATUS.OK, before

    def _execute(self, endpoint, command, slot):
        if command["opcode"] not in (OPCODE.PUT, OPCODE.PUT_INLINE, OPCODE.GET):
            return STATUS.OK if command["opcode"] == OPCODE.NOP else STATUS.BAD_OPCODE
        target = self.regions.get(command["target"]["key"])
        if target is None:
            return STATUS.REMOTE_BAD_KEY
        if not target["rights"] & (
            RIGHT.LOCAL_WRITE if command["opcode"] == OPCODE.GET else RIGHT.REMOTE_WRITE
        ):
            return STATUS.REMOTE_NOT_PERMITTED
        if command["opcode"] == OPCODE.PUT_INLINE:
            inline = decode(INLINE, slot)
            self.server.write_memory(
                target["base"] + inline["offset"], bytes(inline["data"][: command["length"]])
            )
            self._notice(command)
            return STATUS.OK
        source = self.regions.get(command["source"]["key"])
        if source is None:
            return STATUS.REMOTE_BAD_KEY if command["opcode"] == OPCODE.GET else STATUS.BAD_KEY
        read = self._pieces(command["source"], command["levels"] & 15, command["length"])
        written = self._pieces(command["target"], command["levels"] >> 4, command["length"])
        if read is None or written is None:
            return STATUS.BAD_LIST if read is None else STATUS.REMOTE_BAD_LIST
        payload = b""
        for offset, size in read:
            if not 0 <= offset <= source["length"] - size:
                return STATUS.BOUNDS
            payload += self.server.read_memory(source["base"] + offset, size)
        for offset, size in written:
            if not 0 <= offset <= target["length"] - size:
                return STATUS.REMOTE_BOUNDS
            self.server.write_memory(target["base"] + offset, payload[:size])
            payload = payload[size:]
        self._notice(command)
        return STATUS.OK

    def _notice(self, command):
        if command["flags"] & FLAG.NOTICE and command["endpoint"] in self.queues:
            vector = command["endpoint"] if command["flags"] & FLAG.INTERRUPT else None
            self.post(
                command["endpoint"],
                command["notice"],
                ENTRY.NOTICE,
                1,
                vector,
                length=command["length"],
                node=command["node"],
                key=command["target"]["key"],
            )

    def _meet(self, endpoint, command, slot):
        """A send meets the oldest receive of its pair of endpoints, or the reverse, or waits for
        it.
        """
        pair = (
            (endpoint, command["endpoint"])
            if command["opcode"] == OPCODE.SEND
            else (command["endpoint"], endpoint)
        )
        for n, (known, other, *_) in enumerate(self.waiting):  # noqa: B007
            if known == pair and other["opcode"] != command["opcode"]:
                break
        else:
            self.waiting.append((pair, command, endpoint))
            return
        _, other, there = self.waiting.pop(n)
        sent, got = (command, other) if command["opcode"] == OPCODE.SEND else (other, command)
        status = STATUS.TRUNCATED
        if sent["length"] <= got["length"]:
            source, target = (
                self.regions[walk["key"]]["base"] for walk in (sent["source"], got["target"])
            )
            payload = b"".join(
                self.server.read_memory(source + offset, size)
                for offset, size in self._pieces(sent["source"], sent["levels"], sent["length"])
            )
            for offset, size in self._pieces(got["target"], got["levels"] >> 4, sent["length"]):
                self.server.write_memory(target + offset, payload[:size])
                payload = payload[size:]
            status = STATUS.OK
        for number, ended in ((endpoint, command), (there, other)):
            self.post(
                number, ended["cookie"], node=ended["node"], status=status, length=sent["length"]
            )

    # Clock ----------------------------------------------------------------------------------------

    def clock(self, payload, wants_answer):
        request = decode(CLOCK_REQUEST, payload)
        self.calls.append((request["op"], request["call"], request["count"], wants_answer))
        if self.fail_clock:
            return self.fail_clock
        if (request["endpoint"] in self.joined) == (request["op"] == CLOCK_OP.JOIN):
            return errno.EEXIST if request["op"] == CLOCK_OP.JOIN else errno.ENOTCONN
        if request["op"] == CLOCK_OP.JOIN:
            self.joined.add(request["endpoint"])
        elif request["op"] == CLOCK_OP.LEAVE and request["count"]:
            self.joined.remove(request["endpoint"])
        self.written = []
        if wants_answer:
            self._go_on()
        woken = 0
        if request["op"] == CLOCK_OP.CHARGE:
            self.now += 1000 * request["count"]
        elif request["op"] == CLOCK_OP.WAIT:
            woken = any(0 <= a - request["watch"] < request["length"] for a in self.written)
            if not woken:
                self.now += request["deadline"]
        elif request["op"] not in (CLOCK_OP.JOIN, CLOCK_OP.LEAVE, CLOCK_OP.ENTER, CLOCK_OP.NOW):
            return errno.EINVAL
        return encode(CLOCK_REPLY, now=self.now, woken=int(woken), cpu=self.now)
