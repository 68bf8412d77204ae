"""Frames to send: status, and the fragments of all channels in turn."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.one_hot import lowest_one, value_of
from dibber.interface.description import CHANNEL
from dibber.interface.ethernet import ETHERNET_KIND
from dibber.layouts import fragment_layout
from dibber.link.ethernet.frames import (FRAME_TYPE, TAG_TYPE, UnitShifter, big_endian,
    header_index)
from dibber.link.ethernet.sender import Credit, Packer

STATUS_UNITS = 2

def held_channels(paused, vlan, priorities):
    """For each channel, whether the priority of its frames is paused.

    A frame without a tag has priority 0: IEEE 802.1Q-2018, 6.8.1, with the default of a port.

    Parameters
    ----------
    paused     : Signal(8)
    vlan       : None: frames have no tag
    priorities : of the channels' tags, 0 to 7
    """
    return [paused[0 if vlan is None else priority] for priority in priorities]

# Scheduler ----------------------------------------------------------------------------------------

class FrameScheduler(LiteXModule):
    """Which channel's fragment goes next: CONTROL, then the others in turn.

    Attributes
    ----------
    may    : Signal(channels), in   the channel has a fragment and credit for it
    sent   : Signal(), in           the chosen channel's fragment goes
    choice : Signal(channels), out  one-hot; 0 if no channel may send
    """
    def __init__(self, channels):
        self.may    = may    = Signal(channels)
        self.sent   = Signal()
        self.choice = choice = Signal(channels)

        # # #

        # After a channel has sent, those up to it wait until no later one may send.
        later  = Signal(channels)
        turn   = Signal(channels)
        self.comb += [
            turn.eq(may & (later | 1)),
            choice.eq(Mux(turn != 0, lowest_one(turn), lowest_one(may))),
        ]
        self.sync += If(self.sent, Case(choice, {
            **{1 << n: later.eq((1 << channels) - (2 << n)) for n in range(1, channels)},
            "default": later.eq(later)}))

# Status -------------------------------------------------------------------------------------------

# 256 units are half of the longest packet. A buffer of 2,048 has room for three of these, and the
# fourth waits for its credit through a switch: docs/design/ethernet.md, "Through a switch".
TOLD_UNITS = 256

def told_at(depth):
    """Units of room that the other end does not know of, from which on a STATUS frame is due.

    A quarter of the buffer of `depth` units, but at most TOLD_UNITS.
    """
    return min(depth//4, TOLD_UNITS)

class StatusSchedule(LiteXModule):
    """When a STATUS frame is due, which channel's position it tells, and which channel's credit the
    next DATA frame tells.

    Positions are told in turn: of the channels that wait for credit, if there is one, else of all.
    Credit may be what lost frames had, and only a position gives it back.

    Parameters
    ----------
    depths : units in the receive buffer of each channel
    period : cycles between STATUS frames
    state_bits : of `state`

    Attributes
    ----------
    state   : Signal(state_bits), in   what STATUS frames tell beside credits
    up      : Signal(), in
    credits : list of Signal(16), in
    sent    : Signal(), in             a STATUS frame begins: it tells all of this
    told    : Signal(), in             a DATA frame tells the credit of `channel`
    stopped : Signal(channels), in     the channel waits for credit
    turn    : Signal(channels), out    one-hot: the channel whose position the next STATUS frame tells
    due     : Signal(), out
    channel : Signal(2), out           the next one, in turn, of those whose credit has changed
    """
    def __init__(self, depths, period, state_bits=18):
        channels = len(depths)
        self.state   = Signal(state_bits)
        self.up      = Signal()
        self.credits = [Signal(16) for _ in depths]
        self.sent    = Signal()
        self.told    = Signal()
        self.due     = Signal()
        self.channel = Signal(2)
        self.stopped = Signal(channels)
        self.turn    = turn = Signal(channels)

        # # #

        may     = Signal(channels)
        later   = Signal(channels)  # those behind the channel whose position was told last
        age     = Signal(max=period)
        state   = Signal(state_bits) # that was told last
        lags    = Signal(channels)  # so much room was not told that a STATUS frame is due
        changed = Signal(channels)
        behind  = Signal(channels)  # of these, those behind the present channel
        pick    = Signal(channels)
        for n, (depth, credit) in enumerate(zip(depths, self.credits)):
            known = Signal(16, name=f"known{n}")  # that was told last
            lag   = Signal(16, name=f"lag{n}")
            self.comb += lag.eq(credit - known)
            self.sync += [
                lags[n].eq(lag >= told_at(depth)),
                changed[n].eq(lag != 0),
                If(self.sent | (self.told & (self.channel == n)), known.eq(credit)),
            ]
        self.comb += [
            Case(self.channel, {
                n: behind.eq(changed & ~((2 << n) - 1)) for n in range(channels)}),
            pick.eq(Mux(behind != 0, lowest_one(behind), lowest_one(changed))),
            may.eq(Mux(self.stopped != 0, self.stopped, (1 << channels) - 1)),
            turn.eq(Mux((may & later) != 0, lowest_one(may & later), lowest_one(may))),
            self.due.eq((age == period - 1) | (self.state != state) | (self.up & (lags != 0))),
        ]
        self.sync += [
            If(age != period - 1, age.eq(age + 1)),
            If(self.sent,
                age.eq(0),
                state.eq(self.state),
                *[If(turn[n], later.eq((1 << channels) - (2 << n))) for n in range(channels)],
            ),
            # Between two frames the choice has many cycles.
            If(self.told, *[If(pick[n], self.channel.eq(n)) for n in range(channels)]),
        ]

# Frame --------------------------------------------------------------------------------------------

class FrameBuilder(LiteXModule):
    """Make the frames of one station: addresses, header, payload.

    A frame that has begun goes on without a gap if its units come without one.

    Parameters
    ----------
    vlan, priorities : of the tag, by channel; None: no tag. STATUS frames have that of CONTROL

    Attributes
    ----------
    source   : Endpoint(frame_layout), out
    mac      : Signal(48), in    own address
    busy     : Signal(), out     a frame is being made
    begins_data, begins_status : Signal(), in   while not busy: a frame begins. In the same cycle:
    peer_mac : Signal(48), in    destination
    session  : Signal(8), in     of the destination
    fragment : Record(fragment_layout), in      DATA
    channel, position : Signal, in              of DATA, or what STATUS tells
    state, credits : Signal(64), in             STATUS: the two units of the payload
    credit_channel, credit : Signal, in         DATA: read when the header is sent, with `told`
    told     : Signal(), out
    ends     : Signal(), out     the frame's last unit is taken
    units    : Endpoint([data]), in             DATA: the payload

    Cycles: 2 from `begins_data` to the frame's first word; 2 between two frames.
    """
    def __init__(self, vlan=None, priorities=(0,)):
        tagged = vlan is not None
        self.mac           = Signal(48)
        self.busy          = busy = Signal()
        self.begins_data   = Signal()
        self.begins_status = Signal()
        self.peer_mac      = Signal(48)
        self.session       = Signal(8)
        self.fragment      = stream.Endpoint(fragment_layout())
        self.channel       = Signal(2)
        self.position      = Signal(16)
        self.state         = Signal(64)
        self.credits       = Signal(64)
        self.credit_channel = Signal(2)
        self.credit        = Signal(16)
        self.told          = Signal()
        self.ends          = Signal()
        self.units         = units = stream.Endpoint([("data", 64)])

        # # #

        self.shifter = shifter = UnitShifter(tagged)
        self.source  = shifter.source
        unit         = shifter.sink

        header   = header_index(tagged)
        index    = Signal(3)    # unit of the head; header + 1: payload
        left     = Signal(12)   # units of payload to send
        is_data  = Signal()
        target   = Signal(48)
        session  = Signal(8)
        fragment = stream.Endpoint(fragment_layout())
        position = Signal(16)
        channel  = Signal(2)
        status   = [Signal(64), Signal(64)]
        self.sync += [
            If(self.begins_status | self.begins_data,
                busy.eq(1),
                index.eq(0),
                is_data.eq(self.begins_data),
                target.eq(self.peer_mac),
                session.eq(self.session),
                position.eq(self.position),
                channel.eq(self.channel),
            ),
            If(self.begins_status,
                left.eq(STATUS_UNITS),
                status[0].eq(self.state),
                status[1].eq(self.credits),
            ),
            If(self.begins_data,
                left.eq(self.fragment.units),
                *[getattr(fragment, name).eq(getattr(self.fragment, name))
                    for name in ["half", "starts", "ends", "bad"]],
            ),
            If(unit.valid & unit.ready,
                If(unit.last, busy.eq(0)),
                If(index <= header, index.eq(index + 1)).Else(left.eq(left - 1)),
            ),
        ]
        # A STATUS frame tells the credits of its begin, and its receiver ignores its header's.
        self.comb += [
            self.told.eq(unit.valid & unit.ready & (index == header) & is_data),
            self.ends.eq(unit.valid & unit.ready & unit.last),
        ]

        # Units ------------------------------------------------------------------------------------
        lead    = Signal(64)
        head    = Signal(64)
        payload = Signal(64)
        ready   = Signal()     # the unit is there
        kind    = Mux(is_data, Constant(ETHERNET_KIND.DATA, 3), Constant(ETHERNET_KIND.STATUS, 3))
        flag    = lambda name: getattr(fragment, name) & is_data
        self.comb += head.eq(Cat(
            channel, flag("starts"), flag("ends"), flag("bad"), kind,
            session,
            left, flag("half"), Constant(0, 1), self.credit_channel,
            position,
            self.credit))
        if tagged:
            tag, *others = [Constant(big_endian(priority << 13 | vlan), 16)
                for priority in priorities]
            if len({*priorities}) > 1:
                first, tag = tag, Signal(16)
                self.comb += [
                    tag.eq(first),
                    If(is_data, Case(channel, {n: tag.eq(other) for n, other in enumerate(others, 1)}))
                ]
            leads = [
                Cat(Constant(0, 48), target[:16]),
                Cat(target[16:], self.mac[:32]),
                Cat(self.mac[32:], Constant(TAG_TYPE, 16),
                    tag, Constant(FRAME_TYPE, 16)),
            ]
        else:
            leads = [
                Cat(Constant(0, 16), target),
                Cat(self.mac, Constant(FRAME_TYPE, 16)),
            ]
        self.comb += [
            Case(index, {
                **{n: lead.eq(value) for n, value in enumerate([*leads, head])},
                "default": lead.eq(payload),
            }),
            payload.eq(Mux(is_data, units.data, Mux(left == STATUS_UNITS, status[0], status[1]))),
            ready.eq(~is_data | (index <= header) | units.valid),
            unit.valid.eq(busy & ready),
            unit.data.eq(lead),
            unit.whole.eq(1),
            unit.first.eq(index == 0),
            unit.last.eq((index > header) & (left == 1)),
            units.ready.eq(is_data & busy & (index > header) & unit.ready),
        ]

# Transmitter --------------------------------------------------------------------------------------

class FrameTransmitter(LiteXModule):
    """Send the fragments of all channels, and STATUS frames.

    A STATUS frame is due when what it says of the state has changed, when `period` cycles have
    passed since the last one, when a channel has as much room as told_at() says that the other end
    does not know of, and for a ping and its answer. It goes before DATA. Each DATA frame tells
    the credit of one channel, if possible of one whose credit has changed.

    A frame that has begun goes on without a gap, because all of it is here.

    Parameters
    ----------
    depths : units in the receive buffer of each channel of this port
    queues : (limit, depth) of each channel's Packer
    period : cycles between STATUS frames
    vlan, priorities : of the tag, by channel; None: no tag
    obeys  : there is `paused`
    bulk_width : bits of a word of channel BULK, 32 or 64

    Attributes
    ----------
    sinks   : list of Endpoint(word_layout), in
    source  : Endpoint(frame_layout), out
    mac, peer_mac : Signal(48), in        source and destination address
    nonce, session, peer, peer_session, known, up, clear : Signal, in   of the training
    credits : list of Signal(16), in      what the other end may send
    credit_came, credit_values : Signal(channels), list of Signal(16), in   what it gave
    ping, pong : Endpoint([number]), in   `ready`: a STATUS frame with it begins
    stopped : Signal(channels), out       the channel's fragment waits for credit
    paused  : Signal(8), in               with `obeys`: no frame of this priority begins
    frame_sent : Signal(), out            one cycle for each frame

    Cycles: 5 from a packet's last word to the frame's first one; two between two frames.
    """
    def __init__(self, depths, queues, period, vlan=None, priorities=(0,), obeys=False,
                 bulk_width=32):
        channels = len(depths)
        self.builder      = builder = FrameBuilder(vlan, priorities)
        self.source       = builder.source
        self.mac          = builder.mac
        self.peer_mac     = Signal(48)
        self.nonce        = Signal(16)
        self.session      = Signal(8)
        self.peer         = Signal(16)
        self.peer_session = Signal(8)
        self.known        = Signal()
        self.up           = Signal()
        self.clear        = Signal()
        self.credits      = [Signal(16) for _ in depths]
        self.credit_came  = Signal(channels)
        self.credit_values = [Signal(16) for _ in depths]
        self.ping         = stream.Endpoint([("number", 8)])
        self.pong         = stream.Endpoint([("number", 8)])
        self.stopped      = Signal(channels)
        self.frame_sent   = Signal()

        # # #

        # Channels ---------------------------------------------------------------------------------
        self.scheduler = scheduler = FrameScheduler(channels)
        widths  = [bulk_width if n == CHANNEL.BULK else 32 for n in range(channels)]
        packers = [Packer(*queue, width=width) for queue, width in zip(queues, widths)]
        limits  = [Credit() for _ in depths]
        self.sinks = [packer.sink for packer in packers]
        chosen  = Signal(channels)  # one-hot: the channel whose frame is sent
        begins  = Signal()          # a DATA frame begins
        was_there = Signal(channels)
        waits   = Signal(channels)  # it has a fragment to send
        for n, (packer, limit) in enumerate(zip(packers, limits)):
            self.add_module(f"packer{n}", packer)
            self.add_module(f"credit{n}", limit)
            self.comb += [
                packer.up.eq(self.up),
                packer.busy.eq(chosen[n]),
                packer.fragments.ready.eq(begins & scheduler.choice[n]),
                limit.clear.eq(self.clear),
                limit.came.eq(self.credit_came[n]),
                limit.offered.eq(self.credit_values[n]),
                limit.units.eq(packer.fragments.units),
                limit.sends.eq(begins & scheduler.choice[n]),
                # `allowed` is of the fragment that was there in the cycle before.
                waits[n].eq(self.up & ~packer.stale & packer.fragments.valid & was_there[n]),
                *([] if obeys else [scheduler.may[n].eq(waits[n] & limit.allowed)]),
            ]
            self.sync += [
                was_there[n].eq(packer.fragments.valid),
                self.stopped[n].eq(waits[n] & ~limit.allowed),
            ]

        # Status -----------------------------------------------------------------------------------
        self.schedule = schedule = StatusSchedule(depths, period)
        begins_status = Signal()  # a STATUS frame begins
        status_due    = Signal()
        status_goes   = status_due
        if obeys:
            self.paused = Signal(8)
            held = held_channels(self.paused, vlan, priorities)
            status_goes = status_due & ~held[CHANNEL.CONTROL]
            self.comb += [may.eq(waits[n] & limit.allowed & ~held[n])
                for n, (may, limit) in enumerate(zip(scheduler.may, limits))]
        self.comb += [
            schedule.state.eq(Cat(self.session, self.peer_session, self.known, self.up)),
            schedule.up.eq(self.up),
            schedule.sent.eq(begins_status),
            schedule.stopped.eq(self.stopped),
            *[told.eq(credit) for told, credit in zip(schedule.credits, self.credits)],
        ]
        self.sync += status_due.eq(
            ~begins_status & (schedule.due | self.ping.valid | self.pong.valid))

        # Frame ------------------------------------------------------------------------------------
        tells     = Signal(channels)  # one-hot: the channel that the header names
        of_choice = lambda name: value_of(
            scheduler.choice, [getattr(packer.fragments, name) for packer in packers])
        self.comb += [
            begins_status.eq(~builder.busy & status_goes),
            begins.eq(~builder.busy & ~status_goes & (scheduler.choice != 0)),
            builder.begins_status.eq(begins_status),
            builder.begins_data.eq(begins),
            scheduler.sent.eq(begins),
            self.frame_sent.eq(begins_status | begins),
            # One number in a frame: see RoundTrip.
            self.ping.ready.eq(begins_status & self.ping.valid & ~self.pong.valid),
            self.pong.ready.eq(begins_status),
            builder.peer_mac.eq(self.peer_mac),
            builder.session.eq(self.peer_session),
            *[getattr(builder.fragment, name).eq(of_choice(name))
                for name in ["units", "half", "starts", "ends", "bad"]],
            tells.eq(Mux(begins, scheduler.choice, schedule.turn)),
            builder.position.eq(value_of(tells, [limit.position for limit in limits])),
            builder.channel.eq(value_of(tells, range(channels))),
            builder.state.eq(Cat(
                self.nonce, self.session,
                Cat(self.known, self.ping.ready, self.pong.valid, self.up, Constant(0, 4)),
                self.peer, self.ping.number, self.pong.number)),
            builder.credits.eq(Cat(*self.credits)),
            schedule.told.eq(builder.told),
            builder.credit_channel.eq(schedule.channel),
            Case(schedule.channel, {n: builder.credit.eq(now) for n, now in enumerate(self.credits)}),
            builder.units.valid.eq(value_of(chosen, [packer.units.valid for packer in packers])),
            builder.units.data.eq(value_of(chosen, [packer.units.data for packer in packers])),
            *[packer.units.ready.eq(chosen[n] & builder.units.ready)
                for n, packer in enumerate(packers)],
        ]
        self.sync += [
            If(begins, chosen.eq(scheduler.choice)),
            If(builder.ends, chosen.eq(0)),
        ]
