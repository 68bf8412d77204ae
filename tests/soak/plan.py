# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Random commands for the soak test, with what each must come to.

A round is a list of commands for each side. Those of one endpoint that meet in memory are in an order that
libdibber defines: puts after puts, inline puts after inline puts, anything after a FENCE. All others
have places of their own, with gaps between them that nobody may write.
"""

import math
import random

from dataclasses import dataclass, field

from dibber.interface.description import C, OPCODE, STATUS

import layout

from layout import ENDPOINTS, Shape
from memory import digest, internet_checksum

ATOMICS = (OPCODE.FETCH_ADD, OPCODE.SWAP, OPCODE.COMPARE_SWAP, OPCODE.MASKED_SWAP)
COUNTER = layout.TARGET + layout.COUNTERS


@dataclass
class Command:
    """A command of an endpoint, and how it must end.

    Attributes
    ----------
    endpoint : of the side whose command it is
    kind     : "put", "get", "inline", "atomic", "nop", "empty put" …: a transfer of nothing
    source, target : (key, block, offset, levels) as Walk takes them; an atomic and an inline put have a target alone
    data     : inline: the bytes
    atomic   : (opcode, size, operand, compare, mask)
    options  : of the endpoint's method
    status   : enum status
    length   : in the completion
    value    : in the completion; None: not looked at
    written  : (node, Shape) of what it may write; for reports
    digest   : get: (Shape, CRC) that must be in memory at its completion
    mistake  : what is wrong with it, or ""
    """
    endpoint : int
    kind     : str
    source   : tuple = ()
    target   : tuple = ()
    data     : bytes = b""
    atomic   : tuple = ()
    options  : dict  = field(default_factory=dict)
    status   : int   = STATUS.OK
    length   : int   = 0
    value    : int   = 0
    written  : tuple = ()
    digest   : tuple = ()
    mistake  : str   = ""


@dataclass(frozen=True)
class Notice:
    """What an event must tell; `digest` is (Shape, CRC) of what it announces, () if that is written again later."""
    endpoint : int
    length   : int
    key      : int
    digest   : tuple


def factors(number):
    found, p = [], 2
    while p*p <= number:
        while number % p == 0:
            found.append(p)
            number //= p
        p += 1
    return found + [number]*(number > 1)


def random_length(choice):
    """Log-uniform up to 32 KiB, some up to 256 KiB; many with small factors, for walks of many kinds."""
    length = int(math.exp(choice.random()*math.log(choice.choices((1 << 15, 1 << 18), (9, 1))[0])))
    if choice.random() < 0.6:
        smooth = 1
        while smooth < length:
            smooth *= choice.choice((2, 2, 2, 3, 5, 7, 11, 13))
        length = min(smooth, 1 << 18)
    return max(length, 1)


def random_shape(choice, length, room, apart):
    """A Shape of `length` bytes within `room`, and its first and last place from that of its first block.

    apart : blocks do not overlap
    """
    block, counts = 1, [1]*choice.choices(range(C.LEVELS + 1), (3, 4, 2, 2))[0]
    for p in factors(length):
        n = choice.randrange(-2, len(counts))
        if n < 0:
            block *= p
        else:
            counts[n] *= p
    while math.prod(counts) > choice.choice((64, 512, 8192)):
        n = counts.index(max(counts))
        block, counts[n] = block*counts[n], 1
    levels, low, high = [], 0, block
    for count in counts:
        extent = high - low
        spare  = (room - extent*count)//max(count - 1, 1)
        if spare < 0:
            return Shape(length, 0), 0, length
        gap    = choice.choice((0, 0, 1, 3, 8, -extent % 64, choice.randrange(4096), choice.randrange(1 << 16)))
        stride = extent + min(gap, spare)
        if not apart and choice.random() < 0.2:
            stride = choice.randrange(min(extent, 100) + 1)
        stride *= choice.choice((1, 1, -1))
        levels.append((count, stride))
        low, high = low + min(0, stride*(count - 1)), high + max(0, stride*(count - 1))
    if choice.random() < 0.3:
        choice.shuffle(levels)
    return Shape(block, 0, tuple(levels)), low, high


class Round:
    """The commands of a round: `commands[side]`, and the events `notices[side]` by their values.

    Parameters
    ----------
    memory : Memory at the round's start; at its end when this is done
    keys   : of both sides, by region name; "gone" is that of a region that was unregistered
    """

    def __init__(self, seed, number, memory, keys, size):
        self.choice   = random.Random(f"{seed}/{number}")
        self.number   = number
        self.memory   = memory
        self.keys     = keys
        self.regions  = {r.name: r for r in layout.regions()}
        self.commands = [[], []]
        self.notices  = [{}, {}]
        self.depth    = self.choice.choice((1, 2, 4, 8, 16, C.SLOTS))
        self.added    = [{}, {}]    # values added to the counter of that side, by the index of the command
        self._free    = [COUNTER + 8 + self.choice.randrange(256) for _ in range(2)]
        self._last    = {}          # (side, endpoint): the command before, where another may meet it
        self._edge    = [False, False]
        makers, weights = zip(*((self._put, 38), (self._get, 15), (self._inline, 18), (self._atomic, 13), (self._add, 3),
                                (self._nothing, 4), (self._bad, 9)))
        for _ in range(size):
            for side in range(2):
                maker = self.choice.choices(makers, weights)[0]
                maker(side, self.choice.choice(ENDPOINTS))

    # Places ---------------------------------------------------------------------------------------

    def _place(self, node, length, apart=True):
        """A target Shape in a place of its own, or None when there is none left."""
        room = min(layout.EDGE - self._free[node] - 8192, max(4*length, 1 << 16))
        if room < length:
            return None
        shape, low, high = random_shape(self.choice, length, room, apart)
        start = self._free[node] + self.choice.choice((0, 1, self.choice.randrange(64), self.choice.randrange(4096)))
        self._free[node] = start + high - low
        return shape.moved(start - low)

    def _cell(self, node, size):
        """A naturally aligned place for an atomic operation."""
        place = self._free[node] + self.choice.randrange(40)
        place += -place % size
        if place + 8 > layout.EDGE:
            return None
        self._free[node] = place + size + self.choice.randrange(9)
        return place

    def _read(self, name, length):
        """A source Shape somewhere in a region."""
        region = self.regions[name]
        shape, low, high = random_shape(self.choice, length, region.end - region.start, False)
        return shape.moved(region.start - low + self.choice.randrange(region.end - region.start - (high - low) + 1))

    def _walk(self, node, name, shape):
        return self.keys[node][name], shape.block, shape.place - self.regions[name].start, shape.levels

    # Commands -------------------------------------------------------------------------------------

    def _enter(self, side, command, *, last=True):
        """Append it; `last`: the next command of its endpoint may meet what it writes."""
        if not command.options.get("fence") and self.choice.random() < 0.03:
            command.options["fence"] = True
        command.options["solicit"] = self.choice.random() < 0.1
        self.commands[side].append(command)
        self._last[side, command.endpoint] = command if last else None

    def _met(self, side, endpoint):
        """The command before when the next one is to meet it, else None. Its announcements are void then."""
        last = self._last.get((side, endpoint))
        if last is None or self.choice.random() > 0.3:
            return None
        return last

    def _void(self, side, last):
        """What `last` wrote is written again: nobody may look for it any more when it is announced."""
        last.digest = ()
        value = last.options.get("notice")
        if value in self.notices[1 - side]:
            old = self.notices[1 - side][value]
            self.notices[1 - side][value] = Notice(old.endpoint, old.length, old.key, ())

    def _part(self, shape, most):
        """A contiguous part of what a shape spans, from one of its blocks on."""
        places = shape.bytes()
        start  = int(self.choice.choice(places))
        return Shape(self.choice.randint(1, min(most, int(places.max()) - start + 1)), start)

    def _notify(self, side, command, shape):
        """Ask for an event with some of the puts."""
        if self.choice.random() > 0.4:
            return
        value, endpoint = self.number % 4096 << 16 | len(self.commands[side]), self.choice.choice(ENDPOINTS)
        command.options.update(notice=value, endpoint=endpoint, interrupt=self.choice.random() < 0.2)
        self.notices[1 - side][value] = Notice(
            endpoint, command.length, command.target[0], (shape, digest(self.memory.arena[1 - side], shape)))

    def _put(self, side, endpoint):
        length, target, fence, name = random_length(self.choice), None, False, f"source{endpoint}"
        last = self._met(side, endpoint)
        if last and last.kind in ("put", "inline"):
            # Over what the one before wrote, which lies in the same target.
            target, fence = self._part(last.written[1], 1 << 15), last.kind != "put"
            self._void(side, last)
        source = self._read(name, target.length if target else length)
        if last and last.kind == "get":
            # On with what the one before fetched.
            source, fence, name = last.written[1], True, f"target{endpoint}"
        target = target or self._place(1 - side, source.length)
        if target is None:
            return
        data    = self.memory.copy(side, source, 1 - side, target)
        command = Command(endpoint, "put", self._walk(side, name, source),
                          self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", target),
                          options={"fence": fence}, length=len(data), written=(1 - side, target))
        if self.choice.random() < 0.2:
            command.options["checksum"], command.value = True, internet_checksum(data.tobytes())
        self._notify(side, command, target)
        self._enter(side, command)

    def _inline(self, side, endpoint):
        last, fence, target = self._met(side, endpoint), False, None
        if last and last.kind in ("put", "inline"):
            target, fence = self._part(last.written[1], C.INLINE_BYTES), last.kind != "inline"
            self._void(side, last)
        else:
            length = self.choice.randint(1, C.INLINE_BYTES)
            target = self._place(1 - side, length)
            if target is None:
                return
            if target.levels:
                target = Shape(length, min(target.bytes()))
        data = self.choice.randbytes(target.length)
        self.memory.store(1 - side, target, data)
        command = Command(endpoint, "inline", (), self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", target),
                          data, options={"fence": fence}, length=len(data), written=(1 - side, target))
        self._notify(side, command, target)
        self._enter(side, command)

    def _get(self, side, endpoint):
        last, fence = self._met(side, endpoint), False
        name   = f"source{self.choice.choice(ENDPOINTS)}"
        source = self._read(name, random_length(self.choice))
        if last and last.kind in ("put", "inline"):
            # What the one before wrote is fetched back.
            source, fence, name = last.written[1], True, f"target{self.choice.choice(ENDPOINTS)}"
        target = self._place(side, source.length)
        if target is None:
            return
        self.memory.copy(1 - side, source, side, target)
        self._enter(side, Command(
            endpoint, "get", self._walk(1 - side, name, source), self._walk(side, f"target{endpoint}", target),
            options={"fence": fence}, length=target.length, written=(side, target),
            digest=(target, digest(self.memory.arena[side], target))))

    def _atomic(self, side, endpoint):
        last, size, fence = self._met(side, endpoint), self.choice.choice((4, 8)), False
        place = self._cell(1 - side, size)
        if last and last.kind == "atomic":
            size, place, fence = last.atomic[1], last.written[1].place, True
        if place is None:
            return
        opcode  = self.choice.choice(ATOMICS)
        operand, mask = self.choice.getrandbits(64), self.choice.getrandbits(64)
        compare = self.choice.choice((self.memory.word(1 - side, place, size), self.choice.getrandbits(64)))
        value   = self.memory.atomic(1 - side, place, opcode, size, operand, compare, mask)
        shape   = Shape(size, place)
        self._enter(side, Command(
            endpoint, "atomic", (), self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", shape),
            atomic=(opcode, size, operand, compare, mask), options={"fence": fence}, value=value,
            written=(1 - side, shape)))

    def _add(self, side, endpoint):
        """To the counter that everybody adds to: each value before is of its own, the sum is exact."""
        operand, shape = self.choice.getrandbits(64), Shape(8, COUNTER)
        self.memory.atomic(1 - side, COUNTER, OPCODE.FETCH_ADD, 8, operand, 0, 0)
        self.added[1 - side][len(self.commands[side])] = operand
        self._enter(side, Command(
            endpoint, "atomic", (), self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", shape),
            atomic=(OPCODE.FETCH_ADD, 8, operand, 0, 0), value=None, written=(1 - side, shape)), last=False)

    def _nothing(self, side, endpoint):
        """A NOP, and transfers without bytes, whose events must come all the same."""
        kind  = self.choice.choice(("nop", "empty put", "empty inline", "empty get"))
        shape = Shape(0, self.regions["source1"].start)
        here  = self._walk(side, f"source{endpoint}", shape)
        there = self._walk(1 - side, f"target{self.choice.choice(ENDPOINTS)}", Shape(0, layout.TARGET + 64))
        command = Command(endpoint, kind, here, there)
        if kind == "empty get":
            command.source = self._walk(1 - side, "source1", shape)
            command.target = self._walk(side, f"target{endpoint}", Shape(0, layout.TARGET + 64))
        elif kind != "nop":
            self._notify(side, command, Shape(0, 0))
        self._enter(side, command, last=False)

    # Mistakes -------------------------------------------------------------------------------------

    def _bad(self, side, endpoint):
        maker = self.choice.choice((self._bad_source, self._bad_target, self._bad_target, self._bad_atomic))
        maker(side, endpoint, self.choice.choice(("put", "get", "inline")))

    def _bad_source(self, side, endpoint, kind):
        """A put or get whose source may not be read; the target is right."""
        get    = kind == "get"
        reader = 1 - side if get else side
        writer = 1 - reader
        other  = endpoint % len(ENDPOINTS) + 1
        target = self._place(writer, random_length(self.choice))
        if target is None:
            return
        name    = f"source{endpoint}"
        source  = self._read(name, target.length)
        mistake = self.choice.choice(("key", "right", "bounds", "bounds", "far") + ("owner",)*(not get))
        walk, status = {
            "key"    : ((self.keys[reader]["gone"], *self._walk(reader, name, source)[1:]), "BAD_KEY"),
            "right"  : (self._walk(reader, f"blind{endpoint}", Shape(1, self.regions["blind1"].end - 64)), "NOT_PERMITTED"),
            "owner"  : (self._walk(reader, f"source{other}", source), "NOT_OWNER"),
            "bounds" : (self._walk(reader, name, source), "BOUNDS"),
            "far"    : (self._walk(reader, name, Shape(target.length, C.MAX_OFFSET - self.choice.randrange(1 << 30))),
                        "BOUNDS"),
        }[mistake]
        if mistake == "right":
            walk = (walk[0], target.length, 0, ())
        if mistake == "bounds":
            # Its last byte, or its first, lies outside.
            region, places = self.regions[name], source.bytes()
            distance = self.choice.randint(1, int(places.max() - places.min()) + 1)
            over     = region.end - 1 - int(places.max()) + distance
            source   = source.moved(over)
            walk     = self._walk(reader, name, source)
            if walk[2] < 0:
                return
            inside = source.bytes() < region.end
            self.memory.copy_in_part(reader, source, writer, target, self.regions["target1"])
            assert not inside.all()
        target_name = f"target{endpoint if get else self.choice.choice(ENDPOINTS)}"
        command = Command(endpoint, "get" if get else "put", walk, self._walk(writer, target_name, target),
                          status=STATUS[("REMOTE_" if get else "") + status], length=target.length, value=None,
                          written=(writer, target), mistake=f"source {mistake}")
        self._enter(side, command, last=False)

    def _bad_target(self, side, endpoint, kind):
        """A put, get or inline put whose target may not be written; the source is right."""
        get    = kind == "get"
        writer = side if get else 1 - side
        reader = 1 - writer
        length = self.choice.randint(1, C.INLINE_BYTES) if kind == "inline" else random_length(self.choice)
        name   = f"source{endpoint}"
        source = self._read(name, length)
        region = self.regions[f"target{endpoint}"]
        mistake = self.choice.choice(("key", "right", "far", "bounds") + ("owner",)*get)
        other  = endpoint % len(ENDPOINTS) + 1
        shape  = Shape(length, layout.TARGET + 4096)
        key, status = {
            "key"    : (self.keys[writer]["gone"],     "BAD_KEY"),
            "right"  : (self.keys[writer][f"blind{endpoint}" if get else name], "NOT_PERMITTED"),
            "owner"  : (self.keys[writer][f"target{other}"],  "NOT_PERMITTED"),
            "far"    : (self.keys[writer][region.name], "BOUNDS"),
            "bounds" : (self.keys[writer][region.name], "BOUNDS"),
        }[mistake]
        if mistake == "far":
            shape = Shape(length, region.end + self.choice.choice((0, 1, self.choice.randrange(1 << 40))))
        if mistake == "bounds":
            # Across the region's end; what lies before it may be written. One such a round and side.
            if self._edge[writer]:
                return
            self._edge[writer] = True
            length  = min(length, 32768)
            inside  = self.choice.randrange(length)
            shape   = Shape(length, region.end - inside)
            source  = self._read(name, length)
            self.memory.copy_in_part(reader, source, writer, shape, region)
        walk    = (key, shape.block, shape.place - region.start, shape.levels)
        data    = self.memory.arena[reader][source.bytes()].tobytes() if kind == "inline" else b""
        command = Command(endpoint, kind, () if kind == "inline" else self._walk(reader, name, source), walk, data,
                          status=STATUS[("" if get else "REMOTE_") + status], length=length, value=None,
                          written=(writer, shape), mistake=f"target {mistake}")
        self._enter(side, command, last=False)

    def _bad_atomic(self, side, endpoint, _):
        opcode, size = self.choice.choice(ATOMICS), self.choice.choice((4, 8))
        region  = self.regions[f"target{endpoint}"]
        aligned = region.end + -region.end % 8
        mistake, key, place, status = self.choice.choice((
            ("key",    "gone",              layout.TARGET + 64,                               "REMOTE_BAD_KEY"),
            ("right",  f"source{endpoint}", layout.TARGET + 64,                               "REMOTE_NOT_PERMITTED"),
            ("right",  f"blind{endpoint}",  layout.TARGET + 64,                               "REMOTE_NOT_PERMITTED"),
            ("bounds", region.name,         aligned - size,                                   "REMOTE_BOUNDS"),
            ("bounds", region.name,         aligned + 8*self.choice.randrange(1 << 30),       "REMOTE_BOUNDS"),
            ("place",  region.name,         layout.EDGE + self.choice.randrange(1, size),     "REMOTE_ALIGNMENT")))
        if mistake == "bounds" and place + size <= region.end:
            place += size
        offset  = 0 if key == "gone" else place - self.regions[key].start
        offset  = max(offset, 0)
        command = Command(endpoint, "atomic", (), (self.keys[1 - side][key], size, offset, ()),
                          atomic=(opcode, size, self.choice.getrandbits(64), 0, self.choice.getrandbits(64)),
                          status=STATUS[status], value=None, written=(1 - side, Shape(size, place)),
                          mistake=f"atomic {mistake}")
        self._enter(side, command, last=False)
