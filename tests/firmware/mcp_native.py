"""The control program built for this machine, with the register fake around it, driven from
Python.
"""

# SPDX-License-Identifier: BSD-2-Clause

import _ctypes
import ctypes
import functools
import os
import pathlib
import struct
import subprocess
from collections import namedtuple

from dibber.interface.description import (
    ADMIN,
    ATOMIC,
    COMMAND,
    HANDLER,
    INLINE,
    LANE,
    MCP,
    MCP_STATE,
    OPCODE,
    QUEUE_ENTRY,
    ROUTE_COMMAND,
    ROUTES,
    SHARED,
    WALK,
    C,
)
from dibber.interface.generate import c_header, write_if_changed

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRMWARE = ROOT / "firmware"
# A folder for each size of a build: tests of several may run at once.
OUT = ROOT / "build" / "tests" / f"firmware-{C.NODES}-{C.ENDPOINTS}"
IDENTITY = 0x1D1D1D1D
SCALARS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}

REFUSAL, ARRIVAL, ATOMIC_DONE, SCOUT = range(1, 5)  # FIFOs of the fake

BULK = LANE.BULK * C.NODES  # number of the BULK flow to node 0
FAST = 1 << 31  # in the log: an action of the fast path, not of the program

Job = namedtuple(
    "Job",
    "tag endpoint slot epoch response indirect levels target psn incarnation node message length "
    "skip fast",
)
Express = namedtuple("Express", "endpoint slot length epoch message psn incarnation node word")
Scout = namedtuple("Scout", "target reply route back number")
Entry = namedtuple(
    "Entry", [m.name for m in QUEUE_ENTRY.members] + ["address", "vector", "interrupt"]
)

# Structures ---------------------------------------------------------------------------------------


def pack_struct(description, values, known=()):
    """Bytes of a structure of the interface; members that are not in `values` are 0."""
    known = {s.name: s for s in known}
    out = bytearray(description.size)
    for m in description.members:
        if m.name not in values:
            continue
        value = values[m.name]
        if m.kind in known:
            out[m.offset : m.offset + m.size] = pack_struct(known[m.kind], value)
        else:
            items = [value] if m.count == 1 else list(value)
            struct.pack_into(f"<{len(items)}{SCALARS[m.kind]}", out, m.offset, *items)
    return bytes(out)


def walk(block=0, counts=(), key=1, offset=0, strides=()):
    """One side of a put."""
    return dict(
        key=key,
        block=block,
        offset=offset,
        count=list(counts),
        stride=[word for s in strides for word in (s & 0xFFFFFFFF, s >> 32 & 0xFFFFFFFF)],
    )


def indexed(block=0, counts=(), key=1, offset=0, strides=(), list_key=2, list_offset=0):
    """One side of a put: nests of blocks at the entries of a list."""
    side = walk(
        block,
        (*counts, *(1,) * (C.LIST_LEVELS - len(counts))),
        key,
        offset,
        (*strides, *(0,) * (C.LIST_LEVELS - len(strides)), list_offset),
    )
    side["count"].append(list_key)
    return side | {"levels": C.LIST + len(counts)}


def levels_of(side):
    """A side's half of a command's `levels`."""
    return side.get("levels", len(side["count"]))


def transfer(
    opcode,
    length=8,
    node=1,
    flags=0,
    cookie=0,
    source=None,
    target=None,
    levels=None,
    endpoint=0,
    notice=0,
    **more,
):
    """The bytes of a PUT or GET; without walks it is contiguous on both sides."""
    source = source or walk(length)
    target = target or walk(length)
    if levels is None:
        levels = levels_of(source) | levels_of(target) << 4
    return pack_struct(
        COMMAND,
        dict(
            opcode=opcode,
            flags=flags,
            levels=levels,
            endpoint=endpoint,
            node=node,
            length=length,
            cookie=cookie,
            source=source,
            target=target,
            notice=notice,
            **more,
        ),
        known=(WALK,),
    )


put = functools.partial(transfer, OPCODE.PUT)
get = functools.partial(transfer, OPCODE.GET)


def send(length=8, source=None, **more):
    """The bytes of a SEND; without a walk it is from contiguous memory."""
    source = source or walk(length)
    return transfer(
        OPCODE.SEND, length, source=source, levels=more.pop("levels", levels_of(source)), **more
    )


def receive(length=8, target=None, **more):
    """The bytes of a RECEIVE."""
    target = target or walk(length)
    return transfer(
        OPCODE.RECEIVE,
        length,
        target=target,
        levels=more.pop("levels", levels_of(target) << 4),
        **more,
    )


def head(opcode, length, node=1, flags=0, cookie=0, levels=0, endpoint=0, notice=0, reserved0=0):
    """The first six words of every command of an endpoint."""
    return list(
        struct.unpack(
            "<6I",
            pack_struct(
                COMMAND,
                dict(
                    opcode=opcode,
                    flags=flags,
                    levels=levels,
                    endpoint=endpoint,
                    node=node,
                    reserved0=reserved0,
                    length=length,
                    cookie=cookie,
                    notice=notice,
                ),
            )[:24],
        )
    )


def inline(data=bytes(8), key=1, offset=0, length=None, **more):
    """The bytes of a PUT_INLINE."""
    length = len(data) if length is None else length
    return pack_struct(
        INLINE,
        dict(
            head=head(OPCODE.PUT_INLINE, length, **more),
            key=key,
            block=length,
            offset=offset,
            data=data.ljust(C.INLINE_BYTES, b"\0"),
        ),
    )


def atomic(
    opcode=OPCODE.FETCH_ADD, length=8, key=1, offset=0, operand=1, compare=0, mask=0, **more
):
    """The bytes of an atomic command."""
    return pack_struct(
        ATOMIC,
        dict(
            head=head(opcode, length, **more),
            key=key,
            offset=offset,
            operand=operand,
            compare=compare,
            mask=mask,
        ),
    )


def admin(opcode, **values):
    """The bytes of an administrator's command."""
    return pack_struct(ADMIN, dict(opcode=opcode, **values))


def route(opcode, **values):
    """The bytes of a SCOUT or ROUTE_SET."""
    return pack_struct(ROUTE_COMMAND, dict(opcode=opcode, **values))


# Build --------------------------------------------------------------------------------------------


def program_sources():
    """Paths of the control program's C files in a native build."""
    return [path for path in sorted(FIRMWARE.rglob("*.c")) if path.name != "asm_offsets.c"]


@functools.cache
def build():
    """Compile sources and fake into a shared library; undefined behaviour ends the process.
    MCP_LIBRARY names another one.
    """
    if "MCP_LIBRARY" in os.environ:
        return pathlib.Path(os.environ["MCP_LIBRARY"])
    write_if_changed(OUT / "dibber_interface.h", c_header())
    write_if_changed(OUT / "identity.h", f"#define MCP_IDENTITY 0x{IDENTITY:08x}u\n")
    library = OUT / "mcp.so"
    sources = [*program_sources(), *sorted(pathlib.Path(__file__).parent.glob("*.c"))]
    headers = [
        h for folder in (FIRMWARE, OUT, pathlib.Path(__file__).parent) for h in folder.rglob("*.h")
    ]
    newest = max(p.stat().st_mtime for p in [*sources, *headers])
    if not library.exists() or library.stat().st_mtime < newest:
        # It has another name until it is complete, because tests in other processes load it too.
        partial = OUT / f"mcp.{os.getpid()}.so"
        subprocess.run(
            [
                "gcc",
                "-std=gnu11",
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-DMCP_NATIVE",
                "-fsanitize=undefined",
                "-fno-sanitize-recover=all",
                "-shared",
                "-fPIC",
                f"-I{FIRMWARE}",
                f"-I{OUT}",
                "-o",
                str(partial),
                *map(str, sources),
            ],
            check=True,
        )
        partial.replace(library)
    return library


# Card ---------------------------------------------------------------------------------------------


class Fake:
    """The register fake: it records the program's writes and gives the engines' answers."""

    class Log(ctypes.Structure):
        _fields_ = [
            ("offset", ctypes.c_uint32),
            ("value", ctypes.c_uint32),
            ("cycles", ctypes.c_uint32),
            ("words", ctypes.c_uint32 * 12),
        ]

    def __init__(self, library):
        self.library = library
        self.registers = (ctypes.c_uint32 * (MCP.size // 4)).in_dll(library, "fake_registers")
        self.slots = (ctypes.c_uint8 * (C.SLOT_SETS * C.SLOTS * C.SLOT_BYTES)).in_dll(
            library, "fake_slots"
        )
        self.log = (self.Log * 65536).in_dll(library, "fake_log")
        self.logged = ctypes.c_uint32.in_dll(library, "fake_logged")
        self.accesses = ctypes.c_uint32.in_dll(library, "fake_accesses")
        self.consumers = {
            name: (ctypes.c_uint32 * C.ENDPOINTS).in_dll(library, f"fake_{name.lower()}")
            for name in ("CQ_CONSUMER", "EQ_CONSUMER")
        }
        self.names = {r.offset: r.name for r in MCP.registers}
        library.fake_now.restype = ctypes.c_uint64
        library.fake_advance.argtypes = [ctypes.c_uint64]
        self.reset()

    def reset(self):
        self.library.fake_reset()
        self.jobs, self.express, self.resets, self.rewinds, self.regions, self.posted = (
            [],
            [],
            [],
            [],
            [],
            [],
        )
        self.expected, self.freed, self.scouts = [], [], []
        self.routes = {}  # the gateware's table, from the program's writes
        self["NODE_ID"] = 0
        self["CLOCK_HZ"] = 125_000_000

    def __getitem__(self, name):
        name, index = name if isinstance(name, tuple) else (name, 0)
        if name in self.consumers:
            return self.consumers[name][index]
        return self.registers[MCP[name].offset // 4 + index]

    def __setitem__(self, name, value):
        name, index = name if isinstance(name, tuple) else (name, 0)
        if name in self.consumers:
            self.consumers[name][index] = value & 0xFFFFFFFF
            return
        self.registers[MCP[name].offset // 4 + index] = value & 0xFFFFFFFF

    def mark(self, name, *flows):
        """Set the bits of flows in a register that has one for each."""
        for flow in flows:
            self[name, flow // 32] |= 1 << flow % 32

    def collect(self):
        """Move the program's actions from the log to `jobs`, `resets`, `regions` and `posted`."""
        for entry in self.log[: self.logged.value]:
            words, value, fast = entry.words, entry.value & ~FAST, bool(entry.value & FAST)
            match self.names[entry.offset]:
                case "JOB_START":
                    of = {
                        f.name: words[0] >> f.lsb & (1 << f.bits) - 1
                        for f in MCP["JOB_SLOT"].fields
                    }
                    self.jobs.append(
                        Job(
                            value,
                            of["endpoint"],
                            of["slot"],
                            of["epoch"],
                            of["response"],
                            of["indirect"],
                            of["target_levels"],
                            of["target"],
                            words[1] & 0xFFFF,
                            words[1] >> 16 & 0xFF,
                            words[1] >> 24,
                            words[2],
                            words[3],
                            words[4],
                            fast,
                        )
                    )
                case "EXPRESS_START":
                    self.express.append(
                        Express(
                            value >> 8 & 0xFF,
                            value & 0xFF,
                            value >> 16 & 0xFF,
                            value >> 24 & 15,
                            value >> 28,
                            words[0] & 0xFFFF,
                            words[0] >> 16 & 0xFF,
                            words[0] >> 24,
                            words[1],
                        )
                    )
                    self["EXPRESS_SPACE"] += not fast
                case "FLOW_RESET":
                    self.resets.append((value & 0xFF, value >> 8))
                case "FLOW_REWIND":
                    self.rewinds.append((value & 0xFF, value >> 8))
                case "EXPECT_WRITE":
                    self.expected.append(
                        (value & 0xFFFF, value >> 16 & 0xFF, value >> 24, words[0])
                    )
                case "INBOX_FREE":
                    self.freed.append(value)
                case "ROUTE_WRITE":
                    self.routes[value] = words[0]
                case "SCOUT_START":
                    self.scouts.append(
                        Scout(value & 0xFFFF, value >> 16, words[0], words[1], words[2])
                    )
                    self["SCOUT_SPACE"] += 1
                case "REGION_WRITE":
                    self.regions.append((value, *words[:8]))
                case "POST_START":
                    fields = struct.unpack(
                        "<" + "".join(SCALARS[m.kind] for m in QUEUE_ENTRY.members),
                        struct.pack("<8I", *words[2:10]),
                    )
                    if not fast:
                        self.post_space()
                    self.posted.append(
                        Entry(*fields, words[0] | words[1] << 32, value & 0xFF, value >> 8)
                    )
        self.logged.value = 0

    def post_space(self):
        """A post that was seen has left the gateware's queue."""
        self["POST_SPACE"] += 1

    def job_done(self, tag, psn, status=0, checksum=0):
        self.library.fake_job_done(tag, status, psn & 0xFFFF, checksum)

    def refuse(self, flow, psn, reason):
        self.library.fake_push(REFUSAL, (psn & 0xFFFF) | reason << 16 | flow << 24, 0, 0, 0)

    def arrive(self, node, endpoint, value, length=8, key=1, interrupt=False):
        """A notice."""
        self.library.fake_push(ARRIVAL, node | endpoint << 8 | interrupt << 24, value, length, key)

    def message(self, node, word, slot, content=bytes(C.SLOT_BYTES)):
        """A message; its content goes into a slot of the inbox."""
        self.write_slot(C.INBOX, slot, content)
        self.library.fake_push(ARRIVAL, node | slot << 16 | 1 << 25, word, 0, 0)

    def respond(self, node, word, length=0):
        """The end of the answer to a get or receive."""
        self.library.fake_push(ARRIVAL, node | 1 << 26, word, length, 0)

    def atomic_done(self, status, value):
        """The oldest received atomic was executed or refused; returns its slot of the inbox."""
        return self.library.fake_atomic_done(status, value & 0xFFFFFFFF, value >> 32)

    def scout(self, source, number, back=0, reply=False):
        """A scout or an answer to a scout came."""
        self.library.fake_push(SCOUT, source | reply << 16, number, back, 0)

    def ack(self, flow, psn):
        self.library.fake_ack(flow, psn & 0xFFFF)

    def left(self, flow, psn):
        """The flow's packets up to `psn` have left the card completely."""
        self.library.fake_left(flow, psn & 0xFFFF)

    def nak(self, flow, psn):
        """All packets up to `psn` are acknowledged, and a later one is missing."""
        self.library.fake_ack(flow, psn & 0xFFFF)
        self.library.fake_nak(flow)

    def word(self, name):
        """A word of the fake."""
        return ctypes.c_uint32.in_dll(self.library, f"fake_{name}").value

    def allow(self, opcodes=3):
        """Operations that the host allows to the fast path: 1 inline puts, 2 puts, 8 gets (its own
        and others'), 16 atomics.
        """
        ctypes.c_uint32.in_dll(self.library, "fake_fast").value = opcodes

    def link(self, up):
        self.library.fake_link(up)

    def links(self, up):
        """Two links, a bit each; those whose bit changes are told."""
        self.library.fake_links(up)


class Card(Fake):
    """A newly loaded control program with zeroed data, and a correct host.

    The administrator's completion queue is at ADMIN_CQ, and endpoint n's queues at cq(n) and eq(n).
    """

    ADMIN_CQ = 0x1_0000_0000
    loaded = None

    def __init__(self, boot=True):
        if Card.loaded:
            _ctypes.dlclose(Card.loaded)
        library = ctypes.CDLL(str(build()))
        Card.loaded = library._handle
        super().__init__(library)
        self.shared_bytes = (ctypes.c_uint8 * SHARED.size).in_dll(library, "mcp_shared")
        if boot:
            self.boot()

    def boot(self):
        self["ADMIN_CQ_LOW"], self["ADMIN_CQ_HIGH"] = (
            self.ADMIN_CQ & 0xFFFFFFFF,
            self.ADMIN_CQ >> 32,
        )
        self["ADMIN_CQ_ENTRIES"], self["ADMIN_VECTOR"] = 64, 0
        self.library.mcp_boot()
        self.collect()

    def shared(self, name):
        """A word of struct mcp_shared."""
        return int.from_bytes(bytes(self.shared_bytes)[SHARED[name].offset :][:4], "little")

    def routes_to(self, node):
        """The program's routes to a node, as a dict."""
        offset = SHARED["routes"].offset + ROUTES.size * node
        words = struct.unpack_from("<6I2B", bytes(self.shared_bytes), offset)
        return dict(
            route=words[:4], heard=words[4], changes=words[5], valid=words[6], current=words[7]
        )

    def handler(self, state):
        """The account of a handler, as a dict."""
        offset = SHARED["handler"].offset + HANDLER.size * getattr(MCP_STATE, state)
        words = struct.unpack_from("<4I", bytes(self.shared_bytes), offset)
        return dict(zip((m.name for m in HANDLER.members), words))

    def step(self, count=8):
        """Turns of the event loop; queued posts leave after each."""
        for _ in range(count):
            self.library.mcp_step()
            self.collect()

    def write_slot(self, endpoint, number, command):
        base = (endpoint * C.SLOTS + number % C.SLOTS) * C.SLOT_BYTES
        self.slots[base : base + C.SLOT_BYTES] = command

    def ring(self, endpoint, *commands):
        """Write commands into the endpoint's next slots and ring its doorbell once."""
        for number, command in enumerate(commands, self["PRODUCER", endpoint]):
            self.write_slot(endpoint, number, command)
        self["PRODUCER", endpoint] += len(commands)

    def entries(self):
        """The entries that were posted since the last call. The host has read them, so the consumer
        counts move.
        """
        self.collect()
        posted, self.posted = self.posted, []
        for entry in posted:
            endpoint = (
                0 if entry.address < self.ADMIN_CQ + 0x1000000 else (entry.address >> 24 & 0xFF)
            )
            queue = "EQ_CONSUMER" if entry.address & 0x800000 else "CQ_CONSUMER"
            self[queue, endpoint] += 1
        return posted

    def cq(self, endpoint):
        return self.ADMIN_CQ + endpoint * 0x1000000

    def eq(self, endpoint):
        return self.cq(endpoint) + 0x800000

    def administrate(self, opcode, **values):
        """Run one command of the administrator; its status."""
        self.ring(0, admin(opcode, cookie=0xADAD, **values))
        self.step()
        entries = [e for e in self.entries() if e.cookie == 0xADAD]
        assert len(entries) == 1, entries
        return entries[0].status

    def open(self, endpoint, cq_entries=64, eq_entries=64, vector=None):
        """Open an endpoint with its queues at cq() and eq(); the status."""
        return self.administrate(
            OPCODE.ENDPOINT_OPEN,
            endpoint=endpoint,
            cq_base=self.cq(endpoint),
            eq_base=self.eq(endpoint),
            cq_entries=cq_entries,
            eq_entries=eq_entries,
            vector=endpoint if vector is None else vector,
        )

    def wait(self, cycles, step=6000, present=()):
        """Let time pass, with turns of the loop. The nodes `present` acknowledge the packets of
        their EXPRESS flow.
        """
        end = self.library.fake_now() + cycles
        while self.library.fake_now() < end:
            self.library.fake_advance(step)
            self.step(2)
            for node in present:
                for packet in [p for p in self.express if p.node == node][-1:]:
                    self.ack(node, packet.psn)
