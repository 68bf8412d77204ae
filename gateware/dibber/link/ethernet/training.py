"""State of a link over Ethernet: which card the other end is, and whether both hear each other."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.interface.description import LINK_REASON, LINK_STATE
from dibber.interface.ethernet import ETHERNET_STATE
from dibber.link.ethernet.frames import BROADCAST

# The link goes DOWN after so many periods of STATUS frames without a good frame of the peer. If
# every second frame is lost, this happens by chance once in 2³² periods.
SILENT_PERIODS = 32

class EthernetTraining(LiteXModule):
    """DOWN until a STATUS frame of another card comes, ALIGN until the card hears us, then UP.

    A session begins when the port leaves DOWN, and ends when it goes DOWN; then `session` counts. A
    STATUS frame says the sender's session and the one that it knows of its receiver. The port is UP
    after one came that knows this port's nonce and session. So two ports are UP in the same pair of
    sessions, and no frame of an earlier session is taken for one of this session. If the peer has
    another session, or does not hear this one, the port goes DOWN.

    After its power-up, a port may have the nonce and the session of before. So numbers do not show
    everything. STATUS frames also say whether their sender is UP (BEGUN):

    - A peer that was UP and no longer says so has begun anew: the port goes DOWN.
    - A peer that is UP may be so with the port of before the power-up. So a port comes UP only if a
      frame in this session showed the peer when it was not UP. Else it takes the next session.

    In DOWN, STATUS frames go to all stations. The first sender of one is the peer until the port is
    DOWN again.

    Parameters
    ----------
    period : cycles between STATUS frames

    Attributes
    ----------
    signal  : Signal(), in      the MAC can send and receive
    retrain : Signal(), in      pulse: go DOWN
    test    : Signal(), in      stay in TEST
    mac     : Signal(48), in    own address
    nonce   : Signal(16), in
    status  : Signal(), in      a STATUS frame came, and its fields:
    sender, said_nonce, said_session, said_state, heard, heard_session : Signal, in
    alive   : Signal(), in      a frame of the peer came
    got_data : Signal(), in     a good DATA frame of this session came
    of_peer : Signal(), out     the STATUS frame is the peer's
    state   : Signal(4), out    enum link_state
    reason  : Signal(4), out    enum link_reason
    up      : Signal(), out
    clear   : Signal(), out     there is no session: DOWN or TEST
    session : Signal(8), out
    peer_mac     : Signal(48), out   where frames go: the peer, or all stations
    peer_session : Signal(8), out
    peer    : Signal(16), out   nonce of the peer
    known   : Signal(), out     the peer is known
    trained, lost : Signal(), out    one cycle when the state becomes UP, and when it leaves UP
    """
    def __init__(self, period):
        self.signal  = Signal()
        self.retrain = Signal()
        self.test    = Signal()
        self.mac     = Signal(48)
        self.nonce   = Signal(16)
        self.status  = Signal()
        self.sender        = Signal(48)
        self.said_nonce    = Signal(16)
        self.said_session  = Signal(8)
        self.said_state    = Signal(8)
        self.heard         = Signal(16)
        self.heard_session = Signal(8)
        self.alive   = Signal()
        self.got_data = Signal()
        self.state   = state = Signal(4, reset=LINK_STATE.DOWN)
        self.reason  = Signal(4)
        self.up      = Signal()
        self.clear   = Signal()
        self.session = Signal(8)
        self.peer_mac     = Signal(48, reset=BROADCAST)
        self.peer_session = Signal(8)
        self.peer    = Signal(16)
        self.known   = Signal()
        self.trained = Signal()
        self.lost    = Signal()

        # # #

        limit    = SILENT_PERIODS*period
        silence  = Signal(max=limit)
        silenced = Signal()
        looped   = Signal()  # the frame is our own
        self.of_peer = of_peer = Signal()
        renewed  = Signal()  # the peer has begun anew, or thinks that this port has
        hears_us = Signal()
        begun    = Signal()  # the peer is UP, as it says
        begins   = Signal()  # it hears a port at this address, and is not UP
        met      = Signal()  # a frame of the peer's session said that it was not UP
        same     = Signal()  # the peer's session is that of its frames before
        stale    = Signal()  # the peer may be UP with this port of before its power-up
        was_up   = Signal()  # the peer said that it is UP, or sent DATA
        down     = Signal()  # to DOWN or TEST, from each state
        loopback = Signal()  # our own frames came
        verdict  = Signal(4, reset=LINK_REASON.NO_HELLO)
        self.comb += [
            self.up.eq(state == LINK_STATE.UP),
            self.clear.eq(~self.known),
            self.known.eq(self.up | (state == LINK_STATE.ALIGN)),
            silenced.eq(silence == limit - 1),
            looped.eq(self.status & ((self.sender == self.mac) |
                ((self.said_nonce == self.nonce) & (self.nonce != 0)))),
            of_peer.eq(self.status & ~looped & self.known & (self.sender == self.peer_mac)),
            same.eq((self.said_session == self.peer_session) & (self.said_nonce == self.peer)),
            begun.eq((self.said_state & ETHERNET_STATE.BEGUN) != 0),
            begins.eq(((self.said_state & ETHERNET_STATE.HEARD) != 0) & ~begun),
            renewed.eq(of_peer & (~hears_us | ~same | (was_up & ~begun))),
            stale.eq(of_peer & hears_us & begun & ~(met & same)),
            hears_us.eq(((self.said_state & ETHERNET_STATE.HEARD) != 0) &
                (self.heard == self.nonce) & (self.heard_session == self.session)),
            down.eq(~self.signal | self.retrain | self.test | (self.known & silenced) |
                (self.up & renewed) | ((state == LINK_STATE.ALIGN) & stale)),
            self.trained.eq((state == LINK_STATE.ALIGN) & of_peer & hears_us & ~down),
            self.lost.eq(self.up & down),
        ]
        self.sync += [
            silence.eq(silence + 1),
            If(self.alive | ~self.known, silence.eq(0)),
            Case(state, {
                LINK_STATE.DOWN: If(self.status & ~looped,
                    self.peer_mac.eq(self.sender),
                    self.peer_session.eq(self.said_session),
                    self.peer.eq(self.said_nonce),
                    met.eq(begins),
                    state.eq(LINK_STATE.ALIGN),
                ),
                LINK_STATE.ALIGN: If(of_peer,
                    self.peer_session.eq(self.said_session),
                    self.peer.eq(self.said_nonce),
                    met.eq(begins | (met & same)),
                    If(hears_us, state.eq(LINK_STATE.UP)),
                ),
                LINK_STATE.TEST:  state.eq(LINK_STATE.DOWN),
            }),
            If((of_peer & begun) | self.got_data, was_up.eq(1)),
            If(~self.known, was_up.eq(0)),
            If(looped, loopback.eq(1)),
            If((self.status & ~looped) | ~self.signal, loopback.eq(0)),
            If(self.known & silenced, verdict.eq(LINK_REASON.SILENCE)),
            If(~self.signal | self.retrain | self.trained, verdict.eq(LINK_REASON.NO_HELLO)),
            If(down,
                state.eq(LINK_STATE.DOWN),
                self.peer_mac.eq(BROADCAST),
                If(self.known, self.session.eq(self.session + 1)),
                If(self.test, state.eq(LINK_STATE.TEST)),
            ),
        ]
        self.comb += Case(state, {
            LINK_STATE.DOWN: If(~self.signal,
                self.reason.eq(LINK_REASON.NO_SIGNAL)
            ).Elif(loopback,
                self.reason.eq(LINK_REASON.LOOPBACK)
            ).Else(
                self.reason.eq(verdict)
            ),
            LINK_STATE.ALIGN: self.reason.eq(LINK_REASON.NOT_HEARD),
            LINK_STATE.UP:    self.reason.eq(LINK_REASON.NONE),
            LINK_STATE.TEST:  self.reason.eq(LINK_REASON.TEST),
        })
