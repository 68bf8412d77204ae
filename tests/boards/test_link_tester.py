"""Two link testers at the ends of a cable, each symbol going through the pairs of a transceiver."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.host.flash import flash_pads
from dibber.interface.description import BRIDGE, HOST, LINK_REASON, LINK_STATE, C
from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.phy.absent import AbsentSerialPHY
from dibber.phy.pairs import PairsToWords, WordsToPairs
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Signal

from boards.linktest import LinkTester
from tests.boards import frames
from tests.gateware.models.compiled import run_simulation
from tests.gateware.models.flash import IDENTITY, Flash, Pins


class Bytes:
    """The two streams of a UART."""

    def __init__(self):
        self.sink, self.source = stream.Endpoint([("data", 8)]), stream.Endpoint([("data", 8)])


class End(LiteXModule):
    """A tester, and its transceiver as far as the pairs."""

    def __init__(self):
        self.sink, self.source = (
            stream.Endpoint(serial_tx_layout()),
            stream.Endpoint(serial_rx_layout()),
        )
        self.signal = Signal(reset=1)
        self.bytes = Bytes()
        self.tester = LinkTester(None, self.bytes, self, 65e6)
        self.out = WordsToPairs()
        self.into = PairsToWords()
        self.comb += [self.sink.connect(self.out.sink), self.into.source.connect(self.source)]

    number = 0

    def exchange(self, address, words=1, data=None):
        self.number += 1
        frame = frames.request(self.number, address, words, data)
        yield from frames.send(self.bytes.source, frame)
        answer = yield from frames.take(self.bytes.sink, frames.reply_bytes(frame))
        found = frames.words(answer)[1:-2]
        assert answer == frames.reply(frame, found)
        return found

    def read(self, name):
        (word,) = yield from self.exchange(HOST[name].offset)
        return word

    def write(self, name, value):
        yield from self.exchange(HOST[name].offset, data=[value])


class Alone(End):
    """A tester in a build that has no transceiver."""

    def __init__(self):
        self.bytes = Bytes()
        self.phy = AbsentSerialPHY()
        self.tester = LinkTester(None, self.bytes, self.phy, 65e6)


def test_two_testers_know_each_other_measure_the_cable_and_count_prbs():
    top = LiteXModule()
    top.a = a = End()
    top.b = b = End()
    top.comb += [b.into.pair.eq(a.out.pair), a.into.pair.eq(b.out.pair)]

    def scenario():
        assert (yield from a.read("MAGIC")) == C.MAGIC
        yield from a.write("LINK_NONCE", 0x1111)
        yield from b.write("LINK_NONCE", 0x2222)
        wanted, shown = [(LINK_STATE.UP, 1 << 16 | 0x2222), (LINK_STATE.UP, 1 << 16 | 0x1111)], None
        # each read takes some 50 cycles; a nonce is told again after 1,024 words
        for _ in range(400):
            shown = []
            for end in (a, b):
                state = yield from end.read("LINK_STATUS")
                shown.append((state & 0xF, (yield from end.read("LINK_PEER"))))
            if shown == wanted:
                break
        assert shown == wanted
        yield from a.write("LINK_COMMAND", 1 << 2)  # ping
        for _ in range(10):
            round_trip = yield from a.read("LINK_ROUND_TRIP")
        assert 0 < round_trip < 50
        # PRBS7 both ways, then one bit turned over at the far end.
        for end in (a, b):
            yield from end.write("LINK_CONTROL", 1 | 1 << 3)
        for _ in range(10):
            assert (yield from a.read("LINK_PRBS_ERRORS")) == 0
        assert (yield from a.read("LINK_PRBS_WORDS")) > 0
        yield from b.write("LINK_COMMAND", 1)  # error
        for _ in range(4):
            errors = yield from a.read("LINK_PRBS_ERRORS")
        assert errors == 1

    run_simulation(top, scenario())


def test_without_a_transceiver_there_is_no_signal_and_a_loopback_that_prbs_goes_through():
    alone = Alone()
    status = {field.name: field for field in HOST["LINK_STATUS"].fields}

    def field(name):
        value = yield from alone.read("LINK_STATUS")
        return value >> status[name].lsb & (1 << status[name].bits) - 1

    def scenario():
        assert (yield from field("absent")) == 1
        assert (yield from field("signal")) == 0
        assert (yield from field("state")) == LINK_STATE.DOWN
        assert (yield from field("reason")) == LINK_REASON.NO_SIGNAL
        control = {f.name: f.lsb for f in HOST["LINK_CONTROL"].fields}
        yield from alone.write("LINK_CONTROL", 1 << control["transmit"] | 1 << control["check"])
        assert (yield from alone.read("LINK_PRBS_WORDS")) == 0
        yield from alone.write(
            "LINK_CONTROL", 1 << control["transmit"] | 1 << control["check"] | 1 << control["phy"]
        )
        for _ in range(10):
            words = yield from alone.read("LINK_PRBS_WORDS")
        assert words > 0 and (yield from alone.read("LINK_PRBS_ERRORS")) == 0
        yield from alone.write("LINK_COMMAND", 1)  # error
        for _ in range(4):
            errors = yield from alone.read("LINK_PRBS_ERRORS")
        assert errors == 1 and (yield from field("signal")) == 0

    run_simulation(alone, scenario())


class Flashed(LiteXModule):
    """A tester with a flash in Python at its pins."""

    number, exchange, read, write = 0, End.exchange, End.read, End.write

    def __init__(self):
        self.bytes = Bytes()
        self.phy = AbsentSerialPHY()
        self.pads = flash_pads(8e6)
        self.model = Flash()
        self.tester = LinkTester(None, self.bytes, self.phy, 64e6, "versa_ecp5", self.pads)

    def wires(self, finished):
        pins = Pins(self.model)
        while not finished:
            levels = []
            for name in ["cs_n", "clk", "mosi"]:
                levels.append((yield getattr(self.pads, name)))
            yield self.pads.miso.eq(pins.step(*levels))
            yield


def test_the_flash_is_reached_through_a_tester_too():
    end, finished = Flashed(), []

    def scenario():
        assert (yield from end.read("FEATURES")) == 1
        name = yield from end.exchange(HOST["BOARD"].offset, words=4)
        assert b"".join(word.to_bytes(4, "little") for word in name).rstrip(b"\0") == b"versa_ecp5"
        yield from end.write("FLASH_TRANSFER", IDENTITY | 3 << 8)
        for _ in range(100):
            if not (yield from end.read("FLASH_STATUS")) & 1:
                break
        (word,) = yield from end.exchange(C.FLASH_BUFFER)
        assert word & 0xFFFFFF == int.from_bytes(end.model.jedec, "little")
        # The registers are there as before, and the buffer is nowhere else.
        assert (yield from end.read("MAGIC")) == C.MAGIC
        assert (yield from end.exchange(C.FLASH_BUFFER + C.FLASH_BYTES)) == [0]
        finished.append(True)

    run_simulation(end, [scenario(), end.wires(finished)])


def test_a_build_with_a_transceiver_says_so():
    end = End()

    def scenario():
        status = yield from end.read("LINK_STATUS")
        assert not status >> HOST["LINK_STATUS"].fields[-1].lsb & 1

    assert HOST["LINK_STATUS"].fields[-1].name == "absent"
    run_simulation(end, scenario())


def test_what_libdibber_greets_a_card_with_is_answered_by_one_that_has_no_memory():
    end = End()

    def scenario():
        assert (yield from end.exchange(C.BRIDGE_BASE, words=2)) == [C.BRIDGE_SIGNATURE, 0]
        yield from end.exchange(C.BRIDGE_BASE + BRIDGE["HOLD"].offset, data=[0])
        yield from end.exchange(C.BRIDGE_BASE + BRIDGE["CHANGED"].offset, data=[0xFFFFFFFF] * 8)
        assert (yield from end.exchange(C.BRIDGE_BASE + BRIDGE["CHANGED"].offset, words=8)) == [
            0
        ] * 8
        assert (yield from end.exchange(C.FIRMWARE_BASE, words=16)) == [0] * 16

    run_simulation(end, scenario())
