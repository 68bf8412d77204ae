"""Words of 64-bit XGMII as blocks of 64b/66b, and back: IEEE 802.3-2018, 49.2.4 and 49.2.13."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import value_of
from dibber.layouts import block_layout, xgmii_layout
from dibber.link.bonding import CONTROL_BLOCK, DATA_BLOCK

# Characters of XGMII with their control bit: IEEE 802.3-2018, table 46-3.
IDLE, START, TERMINATE, ERROR, SEQUENCE, SIGNAL = 0x07, 0xfb, 0xfd, 0xfe, 0x9c, 0x5c

# IEEE 802.3-2018, table 49-1: the code of a control character in a block, and of an ordered set.
CONTROL_CODES = {
    IDLE: 0x00, 0x06: 0x06, ERROR: 0x1e,
    0x1c: 0x2d, 0x3c: 0x33, 0x7c: 0x4b, 0xbc: 0x55, 0xdc: 0x66, 0xf7: 0x78,
}
ORDER_CODES = {SEQUENCE: 0x0, SIGNAL: 0xf}

# IEEE 802.3-2018, figure 49-7: the type of a control block, and what its eight characters are. D:
# data, C: control, O: ordered set, S: start, T: terminate.
BLOCK_TYPES = {
    0x1e: "CCCCCCCC", 0x2d: "CCCCODDD", 0x33: "CCCCSDDD", 0x66: "ODDDSDDD", 0x55: "ODDDODDD",
    0x78: "SDDDDDDD", 0x4b: "ODDDCCCC", 0x87: "TCCCCCCC", 0x99: "DTCCCCCC", 0xaa: "DDTCCCCC",
    0xb4: "DDDTCCCC", 0xcc: "DDDDTCCC", 0xd2: "DDDDDTCC", 0xe1: "DDDDDDTC", 0xff: "DDDDDDDT",
}

# Words that stand for what cannot be sent or was not understood, as (data, control).
ERRORS       = (int.from_bytes(bytes([ERROR]*8), "little"), 0xff)
LOCAL_FAULT  = (int.from_bytes(bytes([SEQUENCE, 0, 0, 1]*2), "little"), 0x11)
REMOTE_FAULT = (int.from_bytes(bytes([SEQUENCE, 0, 0, 2]*2), "little"), 0x11)
IDLES        = (int.from_bytes(bytes([IDLE]*8), "little"), 0xff)
ERROR_BLOCK  = 0x1e | sum(0x1e << 8 + 7*n for n in range(8))

OUTSIDE, INSIDE, BROKEN = range(3)  # of a frame: states of both figures

def fields(kinds):
    """Where a control block has its characters: {lane: (first bit, bits)}. The ordered sets' data
    stand before their code, and S and T have no bits.
    """
    places, at = {}, 8
    order = list(range(8))
    if kinds[0] == "O":
        # D1 D2 D3, the codes of both halves (4 bits each), D5 D6 D7; or C4 to C7 of 7 bits.
        order = [1, 2, 3, 0, *range(4, 8)]
    if "T" in kinds:
        at_control = 64 - 7*kinds.count("C")
    for lane in order:
        kind = kinds[lane]
        if kind == "T" or (kind == "S" and lane == 0):
            continue
        if kind == "C" and "T" in kinds:
            at = max(at, at_control)
        bits = {"D": 8, "C": 7, "O": 4, "S": 4}[kind]
        places[lane] = (at, bits)
        at += bits
    return places

# Encoder ------------------------------------------------------------------------------------------

class BlockEncoder(LiteXModule):
    """Make a block of each word.

    A word that is no block, and one that is out of place, becomes a block of eight errors: a frame
    begins outside of a frame, and only inside of it are data and an end.

    Attributes
    ----------
    sink   : Endpoint(xgmii_layout), in
    source : Endpoint(block_layout), out

    Cycles: 1; a word a cycle.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(xgmii_layout())
        self.source = source = stream.Endpoint(block_layout())

        # # #

        code, is_code, order, is_order = [], [], [], []
        is_char = lambda n, char: sink.control[n] & (sink.data[8*n:8*n + 8] == char)
        for n in range(8):
            byte = sink.data[8*n:8*n + 8]
            code.append(Signal(7, name=f"code{n}"))
            is_code.append(Signal(name=f"is_code{n}"))
            order.append(Signal(4, name=f"order{n}"))
            is_order.append(Signal(name=f"is_order{n}"))
            self.comb += [
                Case(byte, {char: [code[n].eq(value), is_code[n].eq(sink.control[n])]
                    for char, value in CONTROL_CODES.items() if char != ERROR}),
                Case(byte, {char: [order[n].eq(value), is_order[n].eq(sink.control[n])]
                    for char, value in ORDER_CODES.items()}),
            ]
        matches = Signal(len(BLOCK_TYPES))
        values  = []
        for index, (number, kinds) in enumerate(BLOCK_TYPES.items()):
            tests, bits = [], [Constant(0, 1)]*64
            places = fields(kinds)
            for n, kind in enumerate(kinds):
                tests.append({
                    "D": ~sink.control[n], "C": is_code[n], "O": is_order[n],
                    "S": is_char(n, START), "T": is_char(n, TERMINATE)}[kind])
                value = {"D": sink.data[8*n:8*n + 8], "C": code[n], "O": order[n]}.get(kind)
                if value is not None:
                    at, width = places[n]
                    bits[at:at + width] = [value[k] for k in range(width)]
            bits[:8] = [Constant(number >> k & 1, 1) for k in range(8)]
            values.append(Cat(*bits))
            self.comb += matches[index].eq(Reduce("AND", tests))
        starts, ends, data, known = [Signal() for _ in range(4)]
        of = lambda letter: Cat(*[
            matches[n] for n, kinds in enumerate(BLOCK_TYPES.values()) if letter in kinds])
        state = Signal(2, reset=OUTSIDE)
        fits  = Signal()
        block = Signal(64)
        self.comb += [
            starts.eq(of("S") != 0),
            ends.eq(of("T") != 0),
            data.eq(sink.control == 0),
            known.eq(data | (matches != 0)),
            fits.eq(known & Mux(starts, state == OUTSIDE,
                Mux(data | ends, state != OUTSIDE, state != INSIDE))),
            block.eq(value_of(matches, values)),
            sink.ready.eq(~source.valid | source.ready),
        ]
        self.sync += If(sink.ready,
            source.valid.eq(sink.valid),
            source.header.eq(Mux(data & fits, DATA_BLOCK, CONTROL_BLOCK)),
            source.data.eq(Mux(fits, Mux(data, sink.data, block), ERROR_BLOCK)),
            If(sink.valid,
                If(~fits,
                    state.eq(BROKEN)
                ).Elif(starts | data,
                    state.eq(INSIDE)
                ).Else(
                    state.eq(OUTSIDE)
                )
            ),
        )

# Decoder ------------------------------------------------------------------------------------------

class BlockDecoder(LiteXModule):
    """Make a word of each block.

    A block that is none, and one that is out of place, becomes eight errors. The end of a frame
    counts only if the block behind it is no data, no end and no error: so an end that bit errors
    made is no end. Without `up`, words say that the link has a local fault.

    Attributes
    ----------
    sink   : Endpoint(block_layout), in    without backpressure
    up     : Signal(), in                  blocks are whole, and few are damaged
    source : Endpoint(xgmii_layout), out   without backpressure

    Cycles: 2 blocks; a block a cycle.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(block_layout())
        self.up     = Signal()
        self.source = source = stream.Endpoint(xgmii_layout())

        # # #

        # What the block is ------------------------------------------------------------------------
        char, is_code, symbol, is_order = {}, {}, {}, {}

        def control(at):
            """The control character of the seven bits at `at`, and whether it is one."""
            if at not in char:
                char[at], is_code[at] = Signal(8, name=f"char{at}"), Signal(name=f"is_code{at}")
                self.comb += Case(sink.data[at:at + 7], {
                    value: [char[at].eq(byte), is_code[at].eq(1)]
                    for byte, value in CONTROL_CODES.items()})
            return char[at], is_code[at], (char[at] == ERROR)

        def ordered(at):
            if at not in symbol:
                symbol[at], is_order[at] = Signal(8, name=f"set{at}"), Signal(name=f"is_set{at}")
                self.comb += Case(sink.data[at:at + 4], {
                    value: [symbol[at].eq(byte), is_order[at].eq(1)]
                    for byte, value in ORDER_CODES.items()})
            return symbol[at], is_order[at]

        matches = Signal(len(BLOCK_TYPES))
        words, controls = [], []
        for index, (number, kinds) in enumerate(BLOCK_TYPES.items()):
            places = fields(kinds)
            tests  = [sink.data[:8] == number]
            word   = []
            for n, kind in enumerate(kinds):
                at, width = places.get(n, (0, 0))
                if kind == "C":
                    value, good, bad = control(at)
                    tests += [good, ~bad]
                elif kind == "O":
                    value, good = ordered(at)
                    tests.append(good)
                elif kind == "D":
                    value = sink.data[at:at + 8]
                else:
                    value = Constant({"S": START, "T": TERMINATE}[kind], 8)
                word.append(value)
            words.append(Cat(*word))
            controls.append(sum(1 << n for n, kind in enumerate(kinds) if kind != "D"))
            self.comb += matches[index].eq(
                (sink.header == CONTROL_BLOCK) & Reduce("AND", tests))
        of = lambda letter: Cat(*[
            matches[n] for n, kinds in enumerate(BLOCK_TYPES.values()) if letter in kinds])
        data_now = Signal()
        goes_on  = Signal()  # the block that comes may follow an end
        self.comb += [
            data_now.eq(sink.header == DATA_BLOCK),
            goes_on.eq((matches != 0) & (of("T") == 0)),
        ]

        # What it is here --------------------------------------------------------------------------
        held    = Signal()
        word    = Signal(64)
        control_bits = Signal(8)
        starts, ends, data, known = [Signal() for _ in range(4)]
        state = Signal(2, reset=OUTSIDE)
        fits  = Signal()
        self.comb += fits.eq(known & Mux(starts, state == OUTSIDE,
            Mux(data, state != OUTSIDE, Mux(ends, (state != OUTSIDE) & goes_on, state != INSIDE))))
        self.sync += [
            source.valid.eq(sink.valid & held),
            If(sink.valid,
                held.eq(1),
                word.eq(Mux(data_now, sink.data, value_of(matches, words))),
                control_bits.eq(value_of(matches, controls)),
                starts.eq(of("S") != 0),
                ends.eq(of("T") != 0),
                data.eq(data_now),
                known.eq(data_now | (matches != 0)),
                source.data.eq(Mux(fits, word, ERRORS[0])),
                source.control.eq(Mux(fits, control_bits, ERRORS[1])),
                If(~held,
                    state.eq(OUTSIDE)
                ).Elif(~fits,
                    state.eq(BROKEN)
                ).Elif(starts | data,
                    state.eq(INSIDE)
                ).Else(
                    state.eq(OUTSIDE)
                ),
                If(~self.up,
                    state.eq(OUTSIDE),
                    source.data.eq(LOCAL_FAULT[0]),
                    source.control.eq(LOCAL_FAULT[1])
                ),
            ),
        ]
