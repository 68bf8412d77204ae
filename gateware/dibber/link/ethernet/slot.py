"""What a port with several peers has for each of them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.link.ethernet.buffer import ChannelReceiver
from dibber.link.ethernet.sender import Credit
from dibber.link.ethernet.training import EthernetTraining
from dibber.link.ethernet.transmitter import StatusSchedule
from dibber.layouts import TURN_BITS

NUMBER_LSB = 4  # of ETHERNET_STATE.NUMBER

# Slot ---------------------------------------------------------------------------------------------

class PeerSlot(LiteXModule):
    """The session with one peer: its state, its credits, its received packets.

    The slot is free while its training is DOWN. The port gives `status` to it for a frame of its
    peer, and while it is free for a frame of a card that has no slot.

    Parameters
    ----------
    depths : units in the buffer of each channel
    period : cycles between STATUS frames

    Attributes
    ----------
    training : EthernetTraining, with inputs `signal`, `test`, `mac`, `nonce`, `retrain`, `status`
               and what the frame says
    own_number : Signal(4), in  of this card, as STATUS frames tell it
    got_data : Signal(), in     a good DATA frame of this session came
    taken    : Signal(), in     with a STATUS frame: another peer has the number that it tells
    number   : Signal(4), out   of the peer
    named    : Signal(), out    no other peer had this number before
    matches  : Signal(), out    the present frame's sender is the peer
    receivers : list of ChannelReceiver
    limits   : list of Credit
    schedule : StatusSchedule
    """
    def __init__(self, depths, period):
        self.training   = training = EthernetTraining(period)
        self.schedule   = schedule = StatusSchedule(depths, period, 18 + TURN_BITS)
        self.own_number = Signal(TURN_BITS)
        self.got_data   = Signal()
        self.taken      = Signal()
        self.number     = Signal(TURN_BITS)
        self.named      = Signal()
        self.matches    = Signal()
        self.receivers  = [ChannelReceiver(depth, whole=True) for depth in depths]
        self.limits     = [Credit() for _ in depths]

        # # #

        for n, (receiver, limit) in enumerate(zip(self.receivers, self.limits)):
            self.add_module(f"channel{n}", receiver)
            self.add_module(f"credit{n}", limit)
            self.comb += [
                receiver.clear.eq(training.clear),
                limit.clear.eq(training.clear),
                schedule.credits[n].eq(receiver.credit),
            ]

        self.comb += [
            self.matches.eq(training.known & (training.sender == training.peer_mac)),
            training.got_data.eq(self.got_data),
            training.alive.eq(training.status | self.got_data),
            schedule.state.eq(Cat(training.session, training.peer_session, training.known,
                training.up, self.own_number)),
            schedule.up.eq(training.up),
        ]
        self.sync += [
            If(training.status,
                self.number.eq(training.said_state[NUMBER_LSB:]),
                self.named.eq(~self.taken),
            ),
            If(training.clear & ~training.status, self.named.eq(0)),
        ]
