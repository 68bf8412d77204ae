"""The last stage of each packet: its CRCs, and its early end if its flow was reset."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import word_layout
from dibber.common.crc import CRC32C, block_seed
from dibber.packet.flow_table import flow_reset_layout

def body_layout(width=32):
    """A packet without its CRCs: a CRC follows each word with `seal`. The `last` word has `seal`,
    too. With a `width` of 64, two words go at once, and one with `half`. With 256, each word of the
    header goes alone, in the low bits, and payload by lines of `words` words.
    """
    amount = {32: [], 64: [("half", 1)], 256: [("words", 4)]}[width]
    return [("data", width), ("seal", 1), *amount]

# Sealer -------------------------------------------------------------------------------------------

class PacketSealer(LiteXModule):
    """Insert the CRCs into packets.

    The first `seal` of a packet ends its header, the others end its blocks. The CRC of a block
    starts from the header's CRC, XOR the block's number. With `dead` the packet ends as bad at its
    next word. The rest of it is discarded, so that it cannot reach the target, however long the
    link is stopped.

    Parameters
    ----------
    channel : the link's channel
    blocks  : whether packets have blocks; otherwise each is only a header, whose `last` word has
              `seal`
    width   : 32, or 64: two words in a cycle. A CRC goes alone

    Attributes
    ----------
    sink      : Endpoint(body_layout(width)), in
    source    : Endpoint(word_layout(width)), out   with a width of 64, any word may have `half`. A
                last one without it is bad
    dead      : Signal(), in    end the packet; may rise at any time, and stays until `ended`
    sent      : Signal(), out   one cycle: a whole packet has left
    word_sent : Signal(width//32), out   number of payload words that leave in this cycle
    ended     : Signal(), out   one cycle: a packet has left or was discarded; the next one may come

    Cycles: 1 from `sink` to `source`, the register before the CRC's XOR tree; then each takes 1.
    """
    def __init__(self, channel, blocks=True, width=32):
        self.buffer    = buffer = stream.Buffer(body_layout(width))
        self.sink      = buffer.sink
        self.source    = source = stream.Endpoint(word_layout(width))
        self.dead      = Signal()
        self.sent      = Signal()
        self.word_sent = Signal(width//32)
        self.ended     = Signal()

        # # #

        body       = buffer.source
        self.crc   = crc = CRC32C(width)
        taken      = Signal()
        first      = Signal(reset=1)
        final      = Signal(reset=not blocks)  # this CRC is the packet's last word
        in_payload = Signal()
        header_crc = Signal(32)
        # Number of the block that follows this CRC.
        block      = Signal(max=C.PACKET_PAYLOAD//C.BLOCK_BYTES + 1, reset=1)
        sealed     = Signal()    # a CRC is being taken
        self.comb += [
            taken.eq(source.valid & source.ready),
            source.channel.eq(channel),
            source.first.eq(first),
            source.bad.eq(self.dead),
            crc.word.eq(body.data),
            *([crc.half.eq(body.half)] if width == 64 else []),
        ]
        self.sync += [
            If(taken, first.eq(0)),
            If(self.ended, first.eq(1)),
        ]
        if blocks:
            self.sync += [
                If(sealed,
                    in_payload.eq(1),
                    If(in_payload,
                        block.eq(block + 1)
                    ).Else(
                        header_crc.eq(crc.value)
                    )
                ),
                If(self.ended,
                    in_payload.eq(0),
                    block.eq(1),
                ),
            ]

        self.fsm = fsm = FSM(reset_state="BODY")
        fsm.act("BODY",
            source.valid.eq(body.valid),
            source.data.eq(body.data),
            *([source.half.eq(body.half)] if width == 64 else []),
            source.last.eq(self.dead),
            body.ready.eq(source.ready),
            crc.step.eq(taken),
            self.word_sent.eq(taken & in_payload if width == 32 else
                Mux(taken & in_payload, Mux(body.half, 1, 2), 0)),
            *([NextValue(final, body.last)] if blocks else []),
            If(taken,
                If(self.dead,
                    NextState("FORGET"),
                    If(body.last,
                        self.ended.eq(1),
                        NextState("BODY")
                    )
                ).Elif(body.seal,
                    NextState("CRC")
                )
            ),
            crc.load.eq(self.ended),
            crc.seed.eq(0xffffffff)
        )
        fsm.act("CRC",
            source.valid.eq(1),
            source.data.eq(crc.value),
            *([source.half.eq(1)] if width == 64 else []),
            source.last.eq(final | self.dead),
            sealed.eq(taken),
            crc.load.eq(taken),
            crc.seed.eq(Mux(in_payload, block_seed(header_crc, block), crc.value) if blocks else 0xffffffff),
            If(taken,
                NextState("BODY"),
                If(final,
                    self.sent.eq(~self.dead),
                    self.ended.eq(1),
                    crc.seed.eq(0xffffffff)
                ).Elif(self.dead,
                    NextState("FORGET")
                )
            )
        )
        fsm.act("FORGET",
            body.ready.eq(1),
            crc.load.eq(1),
            crc.seed.eq(0xffffffff),
            If(body.valid & body.last,
                self.ended.eq(1),
                NextState("BODY")
            )
        )

# Under Way ----------------------------------------------------------------------------------------

class UnderWay(LiteXModule):
    """The packet between its gate and the end of its last word: whether there is one, and its
    flow's state.

    Parameters
    ----------
    lane : enum lane

    Attributes
    ----------
    begin             : Signal(), in    a packet passes its gate; not while `busy`
    node, incarnation : Signals, in     of this packet
    ended             : Signal(), in    from PacketSealer
    reset             : Record(flow_reset_layout), in
    busy              : Signal(), out   a packet is under way
    dead              : Signal(), out   its flow has a new incarnation
    flow              : Signal(8), out  its flow, from the cycle after `begin` on
    """
    def __init__(self, lane):
        self.begin       = Signal()
        self.node        = Signal(log2_int(C.NODES))
        self.incarnation = Signal(8)
        self.ended       = Signal()
        self.reset       = reset = Record(flow_reset_layout())
        self.busy        = Signal()
        self.dead        = Signal()
        self.flow        = Signal(8)

        # # #

        # `begin` is late in its cycle, so the fields at the gate are loaded in each cycle without a
        # packet.
        incarnation = Signal(8)
        self.sync += [
            self.busy.eq(self.begin | (self.busy & ~self.ended)),
            self.dead.eq(self.busy & (self.dead |
                (reset.strobe & (reset.flow == self.flow) & (reset.incarnation != incarnation)))),
            If(~self.busy,
                self.flow.eq(lane*C.NODES + self.node),
                incarnation.eq(self.incarnation),
            ),
        ]
