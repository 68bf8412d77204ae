"""How the nodes of a ring find their scrubber, their addresses and the size of the ring."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.fabric.ring.transit import ring_symbols_layout
from dibber.fabric.ring.words import ADDRESS_BITS
from dibber.link.symbols import (K_NONCE, K_PING, K_PONG, NONCE_TRAIN_WORDS, nonce_word, ping_word,
    pong_word)

# Most nodes of a ring: the targets of a turn of 4 bits.
NODES = 1 << ADDRESS_BITS

# Words between two of NUMBER and SIZE while the ring is UP.
KEEP_WORDS = 1024

# Cycles without a NUMBER after which a node forgets its address. A NUMBER may wait in the bypass
# FIFO of each node.
FORGET_CYCLES = 65536

# A NUMBER counts the nodes in its low bits. The others are the scrubber's epoch: it changes when
# the scrubber leaves UP, so a NUMBER from before does not close the ring. A NUMBER's last byte is
# the exclusive or of the scrubber's two nonce bytes. So a NUMBER of another scrubber does not close
# the ring either: both nodes of a card may be scrubbers for a while, or two rings may be joined.
COUNT_BITS = 5
EPOCH_BITS = 8 - COUNT_BITS

# Of SIZE: the scrubber's mark, behind the number of nodes.
MARK_BIT = 5

class RingElection(LiteXModule):
    """The lowest nonce that goes all the way round makes its node the scrubber (Chang and Roberts,
    CACM 22(5), 1979). Its NUMBER counts the nodes.

    Attributes
    ----------
    nonce    : Signal(16), in    0: this node is never the scrubber
    aligned  : Signal(), in      words that come are good: the node is not DOWN
    up       : Signal(), in
    lost     : Signal(), in      pulse: the node leaves UP
    came     : Record(valid, data), in    a nonce, ping or pong; a nonce of 0 is dropped
    keep     : Record(valid, data), out   in the same cycle: what to pass on for it
    single   : Endpoint(ring_symbols_layout), out   the own words
    scrubber : Signal(), out
    address  : Signal(ADDRESS_BITS), out
    size     : Signal(5), out    0: unknown
    known    : Signal(), out     address and size are known, and other nodes are there
    closed   : Signal(), out     this is the scrubber, and its NUMBER came back
    loopback : Signal(), out     the next node is this one
    mark     : Signal(), in      of the scrubber: SIZE has MARK_BIT. docs/design/ring-pair.md
    marked   : Signal(), out     SIZE had it; of the scrubber: `mark`
    heard    : Record(valid, nonce), out   a nonce came
    peer     : Signal(16), out   the last nonce of another node
    peer_known : Signal(), out   there was one since the state was DOWN
    """
    def __init__(self):
        self.nonce      = Signal(16)
        self.aligned    = Signal()
        self.up         = Signal()
        self.lost       = Signal()
        self.came       = came = Record([("valid", 1), ("data", 32)])
        self.keep       = keep = Record([("valid", 1), ("data", 32)])
        self.single     = single = stream.Endpoint(ring_symbols_layout())
        self.scrubber   = Signal()
        self.address    = Signal(ADDRESS_BITS)
        self.size       = Signal(5)
        self.known      = Signal()
        self.closed     = Signal()
        self.loopback   = Signal()
        self.mark       = Signal()
        self.marked     = Signal()
        self.heard      = heard  = Record([("valid", 1), ("nonce", 16)])
        self.peer       = Signal(16)
        self.peer_known = Signal()

        # # #

        # Words of Others --------------------------------------------------------------------------
        nonce     = Signal(16)
        value     = Signal(8)
        is_nonce, is_number, is_size = Signal(), Signal(), Signal()
        numbered  = Signal()
        epoch     = Signal(EPOCH_BITS)
        tag       = Signal(8)               # of this node
        own       = Signal()                # a NUMBER is that of this node, and of this epoch
        last      = Signal(8 + EPOCH_BITS)  # epoch and tag of the last NUMBER
        new       = Signal(8 + EPOCH_BITS)
        told      = Signal()                # the last SIZE had the mark
        count     = value[:COUNT_BITS]
        next_copy = Signal(8)
        self.comb += [
            nonce.eq(came.data[8:24]),
            value.eq(came.data[8:16]),
            next_copy.eq(value + 1),
            tag.eq(self.nonce[:8] ^ self.nonce[8:]),
            new.eq(Cat(value[COUNT_BITS:], came.data[24:])),
            own.eq(new == Cat(epoch, tag)),
            is_nonce.eq(
                came.valid & self.aligned & (came.data[:8] == K_NONCE) & (nonce != 0)),
            is_number.eq(came.valid & self.aligned & (came.data[:8] == K_PING)),
            is_size.eq(came.valid & self.aligned & (came.data[:8] == K_PONG)),
            keep.data.eq(came.data),
            If(is_nonce,
                keep.valid.eq(~self.up & ((nonce < self.nonce) | (self.nonce == 0)))
            ).Elif(is_number,
                keep.valid.eq(~self.scrubber & (count < NODES)),
                keep.data.eq(ping_word(next_copy, came.data[24:]))
            ).Elif(is_size,
                keep.valid.eq(~self.scrubber)
            ),
        ]
        fresh = Signal(max=FORGET_CYCLES)  # cycles since a NUMBER came
        self.comb += [
            heard.valid.eq(is_nonce),
            heard.nonce.eq(nonce),
            self.marked.eq(Mux(self.scrubber, self.mark, told)),
            self.known.eq(numbered & (self.size > 1) & (self.closed | ~self.scrubber)),
        ]
        self.sync += [
            fresh.eq(fresh + 1),
            If(is_nonce,
                If(nonce == self.nonce,
                    self.scrubber.eq(1),
                    If(~self.scrubber,
                        epoch.eq(epoch + 1),
                        self.closed.eq(0),
                        self.size.eq(0)
                    )
                ).Else(
                    self.peer.eq(nonce),
                    self.peer_known.eq(1)
                ),
                If(nonce < self.nonce,
                    self.scrubber.eq(0),
                    self.closed.eq(0),
                    # It was the size of the own ring.
                    If(self.scrubber, self.size.eq(0))
                ),
            ),
            If(is_number,
                fresh.eq(0),
                If(self.scrubber,
                    If(own,
                        numbered.eq(1),
                        self.address.eq(0),
                        self.size.eq(count),
                        self.closed.eq(count > 1),
                        self.loopback.eq(count == 1)
                    ),
                ).Elif(count < NODES,
                    numbered.eq(1),
                    self.address.eq(count),
                    last.eq(new),
                    # A SIZE from before is not that of this ring. While UP, `lost` comes soon.
                    If((last != new) & ~self.up, self.size.eq(0))
                ),
            ),
            If(is_size & ~self.scrubber,
                self.size.eq(value[:COUNT_BITS]),
                told.eq(value[MARK_BIT])
            ),
            # A new NUMBER must come before this node is UP again. Otherwise a WHOLE without a
            # scrubber could go round for ever.
            If(self.lost,
                numbered.eq(0),
                self.closed.eq(0),
                epoch.eq(epoch + 1),
                If(~self.scrubber, self.size.eq(0))
            ),
            If(~self.aligned | (fresh == FORGET_CYCLES - 1),
                fresh.eq(0),
                numbered.eq(0),
                self.size.eq(0),
                self.scrubber.eq(0),
                self.closed.eq(0),
                self.loopback.eq(0)
            ),
            If(~self.aligned, self.peer_known.eq(0)),
        ]

        # Own Words --------------------------------------------------------------------------------
        # Before UP: nonce, NUMBER and SIZE in turn. While UP the scrubber sends the last two.
        timer = Signal(max=KEEP_WORDS)
        turn  = Signal(2)
        due   = Signal()
        self.comb += [
            due.eq(timer >= Mux(self.up, KEEP_WORDS - 1, NONCE_TRAIN_WORDS - 1)),
            single.k.eq(1),
            Case(turn, {
                0: [
                    single.valid.eq(~self.up & (self.nonce != 0)),
                    single.data.eq(nonce_word(self.nonce))],
                1: [
                    single.valid.eq(self.scrubber),
                    single.data.eq(ping_word(Cat(Constant(1, COUNT_BITS), epoch), tag))],
                2: [
                    single.valid.eq(self.scrubber & self.closed),
                    single.data.eq(pong_word(Cat(self.size, self.mark, Constant(0, 2))))],
                3: [],
            }),
        ]
        self.sync += [
            If(~due, timer.eq(timer + 1)),
            If((turn == 3) & due,
                turn.eq(0),
                timer.eq(0)
            ).Elif((turn != 3) & (single.ready | ~single.valid),
                turn.eq(turn + 1)
            ),
        ]
