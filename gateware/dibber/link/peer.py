"""The other end of the link: its nonce, and the round-trip time."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Peer ---------------------------------------------------------------------------------------------

class LinkPeer(LiteXModule):
    """Store the other end's nonce. If it is our own nonce (other than 0, which means unknown), the
    link is looped back.

    Attributes
    ----------
    nonce      : Signal(16), in   our own
    heard      : Signal(), in     a nonce was received
    said       : Signal(16), in   with `heard`: its value
    forget     : Signal(), in
    peer       : Signal(16), out
    peer_known : Signal(), out
    loopback   : Signal(), out    the peer's nonce is our own
    """
    def __init__(self):
        self.nonce      = Signal(16)
        self.heard      = Signal()
        self.said       = Signal(16)
        self.forget     = Signal()
        self.peer       = Signal(16)
        self.peer_known = Signal()
        self.loopback   = Signal()

        # # #

        self.sync += [
            If(self.heard,
                self.peer.eq(self.said),
                self.peer_known.eq(1),
                self.loopback.eq((self.said == self.nonce) & (self.nonce != 0)),
            ),
            If(self.forget,
                self.peer_known.eq(0),
                self.loopback.eq(0)
            ),
        ]

# Round Trip ---------------------------------------------------------------------------------------

# From a ping's word on `serial_rx` to the pong's on `serial_tx`: decode, register, send.
ANSWER_CYCLES = 3
# From a pong's word on `serial_rx` to its decoded event.
DECODE_CYCLES = 1

class RoundTrip(LiteXModule):
    """Answer pings, and measure the time from our ping to its pong.

    If pings come faster than pongs may be sent, the last one is answered.

    Attributes
    ----------
    start      : Signal(), in    pulse: measure; an earlier ping without answer is abandoned
    heard_ping : Signal(), in    a ping was received
    heard_pong : Signal(), in    a pong was received
    number     : Signal(8), in   with either: its number
    ping       : Endpoint([number]), out  to the transmitter
    pong       : Endpoint([number]), out
    round_trip : Signal(32), out  cycles from a ping on `serial_tx` to its pong on `serial_rx`,
                 minus the ANSWER_CYCLES of the other end; 0 from `start` until the pong

    The other end adds a cycle for each cycle in which its PHY does not take a word. An end whose
    lanes are not aligned adds one more, because a word is complete only with the first symbols of
    the next.
    """
    def __init__(self):
        self.start      = Signal()
        self.heard_ping = Signal()
        self.heard_pong = Signal()
        self.number     = Signal(8)
        self.ping       = ping = stream.Endpoint([("number", 8)])
        self.pong       = pong = stream.Endpoint([("number", 8)])
        self.round_trip = Signal(32)

        # # #

        cycles  = Signal(32)
        waiting = Signal()
        matches = Signal()
        self.comb += matches.eq(waiting & self.heard_pong & (self.number == ping.number))
        self.sync += [
            If(self.heard_ping,
                pong.valid.eq(1),
                pong.number.eq(self.number),
            ).Elif(pong.ready,
                pong.valid.eq(0)
            ),
            cycles.eq(cycles + 1),
            If(matches,
                waiting.eq(0),
                self.round_trip.eq(cycles)
            ),
            If(ping.ready,
                ping.valid.eq(0),
                waiting.eq(1),
                # `ready` comes one cycle before the ping is on `serial_tx`.
                cycles.eq(-(ANSWER_CYCLES + DECODE_CYCLES) & 0xffffffff),
            ),
            If(self.start,
                ping.valid.eq(1),
                ping.number.eq(ping.number + 1),
                waiting.eq(0),
                self.round_trip.eq(0),
            ),
        ]
