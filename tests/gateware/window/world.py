"""What stands around the window in a card: its endpoint, and other nodes that take its commands."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import passive

from dibber.interface.description import DOORBELL, OPCODE, STATUS, WINDOW, C
from dibber.window.layouts import LINE_BITS
from dibber.window.window import RemoteWindow

from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.window import LINE, Page, Stores, command

ENDPOINT = 7
SCRATCH, SCRATCH_KEY = 0x12_3456_7000, 0x5C2A7C11
PAGES = C.ENDPOINT_STRIDE


class World:
    """A RemoteWindow, and generators that play host, fast path, and the memory of other nodes.

    Parameters
    ----------
    busy  : share of cycles in which the host's own accesses hold up the window's writes
    delay : the largest number of cycles from a doorbell to a command's completion
    refuse : of a command, the status with which it ends

    Attributes
    ----------
    puts    : [(cycle, Command)], in the order in which they were executed
    commands : how many came
    replies : {tag: (status, bytes from `lower` on, count)}
    """

    def __init__(self, data_width, random, busy=0.3, delay=60, refuse=lambda c: STATUS.OK):
        self.dut = self.make(data_width)
        self.width = data_width // 8
        self.random, self.busy, self.delay, self.refuse = random, busy, delay, refuse
        self.pages = {}
        self.stores = Stores(self.pages)
        self.memory = {}  # (node, key, offset) -> byte, for loads
        self.slots = bytearray(C.SLOTS * C.SLOT_BYTES)
        self.producer = self.consumer = self.given = self.commands = 0
        self.waiting = []  # (cycle of completion, Command)
        self.puts, self.replies, self.executed = [], {}, []
        self.cycle = 0
        self.deaf = False  # no command ends, and no byte of a get comes
        self.unended = False  # no command ends
        self.halted = False  # the pages ignore writes
        self.life = self.ended = 0  # of the window; completions that were given to it in this life
        self.begun = 0, 0  # `given` and `consumer` at its start
        self.bells = []  # (register, value) that the host writes to the endpoint's doorbell page

    def make(self, data_width):
        return RemoteWindow(data_width, ENDPOINT)

    # Host -----------------------------------------------------------------------------------------

    def write(self, name, value):
        port, offset = self.dut.port, WINDOW[name].offset
        yield port.adr.eq(offset // self.width)
        yield port.dat_w.eq(value << 8 * (offset % self.width))
        yield port.be.eq(0xF << offset % self.width)
        yield port.we.eq(1)
        yield
        yield port.we.eq(0)

    def read(self, name):
        port, offset = self.dut.port, WINDOW[name].offset
        yield port.adr.eq(offset // self.width)
        yield port.be.eq(0xF << offset % self.width)
        yield port.re.eq(1)
        yield
        yield port.re.eq(0)
        yield
        yield
        return (yield port.dat_r) >> 8 * (offset % self.width) & 0xFFFFFFFF

    def map(self, number, page: Page):
        self.pages[number] = page
        access = (
            page.node
            | page.owner << 8
            | page.load << 12
            | page.store << 13
            | page.atomic << 14
            | 1 << 15
            | (page.addend & 0xFFFF) << 16
        )
        yield from self.write("PAGE_KEY", page.key)
        yield from self.write("PAGE_OFFSET_LOW", page.offset & 0xFFFFFFFF)
        yield from self.write("PAGE_OFFSET_HIGH", page.offset >> 32)
        yield from self.write("PAGE_ACCESS", access)
        yield from self.write("PAGE_WRITE", number)

    def start(self, hold=32, limit=1_250_000):
        yield from self.write("SCRATCH_LOW", SCRATCH & 0xFFFFFFFF)
        yield from self.write("SCRATCH_HIGH", SCRATCH >> 32)
        yield from self.write("SCRATCH_KEY", SCRATCH_KEY)
        yield from self.write("HOLD", hold)
        yield from self.write("LOAD_LIMIT", limit)
        yield from self.write("CONTROL", 1)
        yield

    def store(self, address, enables, credit=True):
        """Store the enabled bytes from `address` on, as lines in a row; data from the model.

        credit : wait for room first, as libdibber does
        """
        while credit and (yield self.dut.queue.room) < 16:
            yield
        data = self.stores.store(address, enables)
        sink = self.dut.stores
        first = address // self.width
        for line in range(first, (address + len(data) - 1) // self.width + 1):
            word = be = 0
            for lane in range(self.width):
                offset = line * self.width + lane - address
                if 0 <= offset < len(data) and enables[offset]:
                    word |= data[offset] << 8 * lane
                    be |= 1 << lane
            yield sink.adr.eq(line)
            yield sink.dat.eq(word)
            yield sink.be.eq(be)
            yield sink.valid.eq(1)
            yield
        yield sink.valid.eq(0)

    def ask(self, address, count, tag=0):
        """A read TLP of `count` bytes at `address`; the answer is replies[tag]."""
        sink = self.dut.requests
        first, last = address // 4, (address + max(count, 1) - 1) // 4
        first_be = 0xF << address % 4 & 0xF
        last_be = 0xF >> 3 - (address + count - 1) % 4
        if first == last:
            first_be, last_be = first_be & last_be, 0
        yield sink.offset.eq(first)
        yield sink.length.eq((last - first + 1) & 0x3FF)
        yield sink.first_be.eq(first_be if count else 0)
        yield sink.last_be.eq(last_be)
        yield sink.tag.eq(tag)
        yield sink.memory.eq(1)
        yield sink.valid.eq(1)
        yield
        yield sink.valid.eq(0)

    def load(self, address, count, tag=0, cycles=20_000):
        """(status, bytes) of a load."""
        self.replies.pop(tag, None)
        yield from self.ask(address, count, tag)
        for _ in range(cycles):
            if tag in self.replies:
                break
            yield
        status, data, left = self.replies[tag]
        assert status or left == max(count, 1)
        return status, data[: max(count, 1)]

    # Card -----------------------------------------------------------------------------------------

    @passive
    def endpoint(self):
        """Takes what the window writes, executes commands in their order, and ends them in any
        order.
        """
        dut, random = self.dut, self.random
        ends = dut.ends
        offered = [None, None]
        written = []
        while True:
            ready = random.random() >= self.busy
            if self.bells:
                yield from self.ring(*self.bells.pop(0))
                continue
            yield dut.pages.we.eq(not ready)
            yield
            self.cycle += 1
            if (yield dut.endpoints.we) and not (yield dut.pages.we) and not self.halted:
                port = dut.endpoints
                self.take((yield port.adr), (yield port.dat_w), (yield port.be))
            while self.given != self.producer:
                at = self.given % C.SLOTS * C.SLOT_BYTES
                self.execute(command(bytes(self.slots[at : at + C.SLOT_BYTES])), written)
                self.given = (self.given + 1) & 0xFFFFFFFF
                owed = self.given - self.begun[0], self.consumer - self.begun[1]
                unread = (owed[0] - owed[1] + 2**31) % 2**32 - 2**31
                assert unread <= 2 * C.SLOTS, "no room for completions"

            # Writes of gets, a line a cycle and with pauses.
            if written and not self.deaf and random.random() >= self.busy:
                address, length, dat, last = written.pop(0)
                yield dut.written.valid.eq(1)
                yield dut.written.ready.eq(1)
                yield dut.written.address.eq(address)
                yield dut.written.length.eq(length)
                yield dut.written.dat.eq(dat)
                yield dut.written.last.eq(last)
            else:
                yield dut.written.valid.eq(written != [] and random.random() < 0.5)
                yield dut.written.ready.eq(0)

            for n in range(2):
                if offered[n] and (yield ends[n].ready):
                    offered[n] = None
                due = [e for e in self.waiting if e[0] <= self.cycle and not written]
                if offered[n] is None and due and not (self.deaf or self.unended):
                    offered[n] = random.choice(due)
                    self.waiting.remove(offered[n])
                    self.ended += life_of(offered[n][1]) == self.life
                    _, cookie, status, value = offered[n]
                    yield ends[n].cookie.eq(cookie)
                    yield ends[n].status.eq(status)
                    yield ends[n].length.eq(value & 0xFFFFFFFF)
                    yield ends[n].key.eq(value >> 32)
                yield ends[n].valid.eq(offered[n] is not None)

    def begin(self, consumer=0):
        """The host has opened the endpoint: a new life of the window."""
        self.life += 1
        self.ended, self.begun = 0, (self.given, consumer)

    def ring(self, register, value):
        """The host writes a doorbell of the window's endpoint; 1 cycle."""
        at = ENDPOINT * PAGES + C.DOORBELL_OFFSET + DOORBELL[register].offset
        pages, lane = self.dut.pages, at % self.width
        yield pages.adr.eq(at // self.width)
        yield pages.dat_w.eq(value << 8 * lane)
        yield pages.be.eq(0xF << lane)
        yield pages.we.eq(1)
        yield
        self.cycle += 1
        yield pages.we.eq(0)
        yield pages.be.eq(0)

    def take(self, line, dat, be):
        """A line that the window writes to the endpoints' pages."""
        at = line * self.width - ENDPOINT * PAGES
        assert 0 <= at < PAGES
        if at < C.DOORBELL_OFFSET:
            assert be == (1 << self.width) - 1
            slot = at // C.SLOT_BYTES
            assert slot == self.producer % C.SLOTS, "not the next slot"
            self.slots[at : at + self.width] = dat.to_bytes(self.width, "little")
        else:
            assert at == C.DOORBELL_OFFSET and be in (0xFF, 0xF0)
            producer, self.consumer = dat & 0xFFFFFFFF, dat >> 32 & 0xFFFFFFFF
            if be == 0xFF:
                assert producer == (self.producer + 1) & 0xFFFFFFFF
                self.producer = producer

    def execute(self, command, written):
        assert command.cookie % C.SLOTS == self.given % C.SLOTS
        cookies = [w[1] for w in self.waiting if life_of(w[1]) == self.life]
        assert all(c % C.SLOTS != command.cookie % C.SLOTS for c in cookies), "slot in use"
        self.commands += 1
        status, value = self.refuse(command), 0
        if status == STATUS.OK:
            byte = lambda n: self.memory.get((command.node, command.key, command.offset + n), 0)
            if command.opcode == OPCODE.PUT_INLINE:
                self.stores.put(command)
                self.puts.append((self.cycle, command))
                for n, stored in enumerate(command.data):
                    self.memory[command.node, command.key, command.offset + n] = stored
            elif command.opcode == OPCODE.GET:
                assert command.local_key == SCRATCH_KEY
                at = SCRATCH + command.local_offset
                assert at // LINE == (SCRATCH + command.cookie % C.SLOTS * LINE) // LINE
                first = at // self.width
                last = (at + command.length - 1) // self.width
                for line in range(first, last + 1):
                    lanes = [line * self.width + lane - at for lane in range(self.width)]
                    dat = sum(
                        (byte(n) if 0 <= n < command.length else 0x5A) << 8 * lane
                        for lane, n in enumerate(lanes)
                    )
                    written.append((at, command.length, dat, line == last))
            else:
                value = sum(byte(n) << 8 * n for n in range(command.length))
                total = value + command.addend
                for n in range(command.length):
                    where = (command.node, command.key, command.offset + n)
                    self.memory[where] = total >> 8 * n & 0xFF
        due = self.cycle + self.random.randrange(1, self.delay)
        self.waiting.append((due, command.cookie, status, value))

    @passive
    def answers(self):
        """Takes replies, and keeps them by their tags."""
        replies = self.dut.replies
        data = b""
        while True:
            yield replies.ready.eq(self.random.random() >= self.busy)
            yield
            if (yield replies.valid) and (yield replies.ready):
                data += (yield replies.dat).to_bytes(self.width, "little")
                if (yield replies.last):
                    lower = yield replies.lower
                    first = lower % self.width
                    tag, status = (yield replies.tag), (yield replies.status)
                    count = yield replies.count
                    self.replies[tag] = status, data[first : first + count], count
                    data = b""

    def run(self, *generators):
        run_simulation(self.dut, [*generators, self.endpoint(), self.answers()])


def life_of(cookie):
    """The life of the window, modulo 256, in which it made the command with this cookie."""
    return cookie // (2 * C.SLOTS) % 256


def control(owner=0, barrier=True):
    """Address of an owner's barrier, or of its sequence alone."""
    return C.APERTURE_BYTES - C.APERTURE_PAGE + (owner << LINE_BITS) + (0 if barrier else 4)
