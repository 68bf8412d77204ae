"""Received frames: which are ours, and what they bring."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import CHANNEL
from dibber.interface.ethernet import (ETHERNET_CONTROL, ETHERNET_KIND, ETHERNET_LENGTH,
    ETHERNET_STATE)
from dibber.layouts import fragment_layout
from dibber.link.ethernet.buffer import ChannelReceiver, PacketReader
from dibber.link.ethernet.frames import (BROADCAST, FRAME_TYPE, TAG_TYPE, UnitAligner,
    header_index)

# Parser -------------------------------------------------------------------------------------------

class FrameParser(LiteXModule):
    """Check addresses, EtherType and header of each frame, and give its payload in units.

    It has no backpressure and waits for nothing: each frame is judged by its own units, and the
    next one is judged from its first unit on. Of a frame that is not ours there is only `foreign`.

    Parameters
    ----------
    vlan : VLAN identifier of the tag that each frame must have; None: frames have no tag

    Attributes
    ----------
    sink     : Endpoint(frame_layout), in   without backpressure
    mac      : Signal(48), in    own address, byte 0 of the wire in bits 7:0
    start    : Signal(), out     a frame with a good header begins; the following fields are valid
               until its `end`
    source   : Signal(48), out   its source address
    kind     : Signal(3), out    enum ethernet_kind
    channel  : Signal(2), out
    session  : Signal(8), out
    fragment : Record(fragment_layout), out
    position : Signal(16), out
    credit_channel : Signal(2), out
    credit   : Signal(16), out
    unit     : Signal(), out     a whole unit of payload or padding is on `data`
    data     : Signal(64), out
    end      : Signal(), out     the frame has ended, a cycle after its last unit
    good     : Signal(), out     with `end`: its FCS was right
    foreign  : Signal(), out     one cycle for each frame that is not ours
    bad      : Signal(), out     one cycle for each frame of ours that has an error, no whole
               header, or a header that contradicts itself

    Cycles: 3 from the header's last byte to `start`, then 1 from each word to its unit.
    """
    def __init__(self, vlan=None):
        tagged = vlan is not None
        self.mac      = Signal(48)
        self.start    = Signal()
        self.source   = Signal(48)
        self.kind     = Signal(3)
        self.channel  = Signal(2)
        self.session  = Signal(8)
        self.fragment = fragment = stream.Endpoint(fragment_layout())
        self.position = Signal(16)
        self.credit_channel = Signal(2)
        self.credit   = Signal(16)
        self.unit     = Signal()
        self.data     = Signal(64)
        self.end      = Signal()
        self.good     = Signal()
        self.foreign  = Signal()
        self.bad      = Signal()

        # # #

        self.aligner = aligner = UnitAligner(tagged)
        self.sink    = aligner.sink
        unit         = aligner.source
        data         = unit.data

        # Addresses and EtherType ------------------------------------------------------------------
        header  = header_index(tagged)
        index   = Signal(3)   # of the unit; header + 1: payload
        to_us   = Signal()
        to_all  = Signal()
        ours    = Signal()    # both addresses' and the types' units were good
        address = Signal(48)  # of the sender
        at      = lambda n: unit.valid & (index == n)
        if tagged:
            self.sync += [
                If(at(0),
                    to_us.eq(data[48:] == self.mac[:16]),
                    to_all.eq(data[48:] == BROADCAST & 0xffff),
                ),
                If(at(1),
                    to_us.eq(to_us & (data[:32] == self.mac[16:])),
                    to_all.eq(to_all & (data[:32] == BROADCAST & 0xffffffff)),
                    address[:32].eq(data[32:]),
                ),
                If(at(2),
                    address[32:].eq(data[:16]),
                    # IEEE 802.1Q, 9.6: the identifier is the low 12 bits of the tag.
                    ours.eq((to_us | to_all) & (data[16:32] == TAG_TYPE) &
                        (Cat(data[40:48], data[32:36]) == vlan) & (data[48:] == FRAME_TYPE)),
                ),
            ]
        else:
            self.sync += [
                If(at(0),
                    to_us.eq(data[16:] == self.mac),
                    to_all.eq(data[16:] == BROADCAST),
                ),
                If(at(1),
                    address.eq(data[:48]),
                    ours.eq((to_us | to_all) & (data[48:] == FRAME_TYPE)),
                ),
            ]
        self.sync += If(unit.valid,
            If(unit.last,
                index.eq(0)
            ).Elif(index <= header,
                index.eq(index + 1)
            ),
        )

        # Header -----------------------------------------------------------------------------------
        control = data[:8]
        length  = data[16:32]
        has_header = Signal()  # the unit before was a header of ours, and not the frame's last
        malformed  = Signal()
        self.comb += malformed.eq(
            (self.kind > ETHERNET_KIND.STATUS) |
            ((self.kind == ETHERNET_KIND.DATA) & ((fragment.units == 0) |
                (fragment.bad & ~fragment.ends) | (fragment.half & ~fragment.ends))) |
            ((self.kind == ETHERNET_KIND.STATUS) & (fragment.units != 2)))
        self.sync += [
            has_header.eq(at(header) & ours & ~unit.last),
            If(at(header),
                self.source.eq(address),
                self.channel.eq(control[:2]),
                fragment.starts.eq((control & ETHERNET_CONTROL.FIRST) != 0),
                fragment.ends.eq((control & ETHERNET_CONTROL.LAST) != 0),
                fragment.bad.eq((control & ETHERNET_CONTROL.BAD) != 0),
                self.kind.eq(control[5:]),
                self.session.eq(data[8:16]),
                fragment.units.eq(length[:12]),
                fragment.half.eq((length & ETHERNET_LENGTH.HALF) != 0),
                self.credit_channel.eq(length[14:]),
                self.position.eq(data[32:48]),
                self.credit.eq(data[48:]),
            ),
        ]

        # Payload ----------------------------------------------------------------------------------
        # A second register: `start` comes while the first unit of payload is in the first one.
        begun    = Signal()  # `start` was given for this frame
        ended    = Signal()  # the unit in the second register is the frame's last
        is_ours  = Signal()
        payload  = Signal()  # the unit in the second register is payload
        error    = Signal()
        self.comb += [
            self.start.eq(has_header & ~malformed),
            self.unit.eq(payload & begun),
            self.foreign.eq(ended & ~is_ours),
            self.bad.eq(ended & is_ours & (~begun | error)),
        ]
        self.sync += [
            payload.eq(unit.valid & unit.whole & (index > header)),
            self.data.eq(data),
            error.eq(unit.error),
            ended.eq(unit.valid & unit.last),
            # The types' unit was seen, so `ours` is this frame's.
            is_ours.eq(ours & (index >= header)),
            self.end.eq(ended & begun),
            self.good.eq(~error),
            If(self.start, begun.eq(1)).Elif(ended, begun.eq(0)),
        ]

# Status -------------------------------------------------------------------------------------------

class StatusReader(LiteXModule):
    """The payload of STATUS frames.

    Attributes
    ----------
    start, unit, end, good : Signal(), in   as FrameParser has them; `start` of a STATUS frame
    other : Signal(), in      another frame starts
    data  : Signal(64), in
    collects : Signal(), out  the present frame is STATUS
    short : Signal(), out     with `end`: it has ended, and a unit of it is missing
    whole : Signal(), out     a good STATUS frame has ended; of it:
    nonce, their_session, state, heard, ping, pong : Signal, out
    offered : Signal(64), out   credits of the four channels
    """
    def __init__(self):
        self.start    = Signal()
        self.other    = Signal()
        self.unit     = Signal()
        self.data     = Signal(64)
        self.end      = Signal()
        self.good     = Signal()
        self.collects = collects = Signal()
        self.short    = Signal()
        self.whole    = Signal()
        self.nonce         = Signal(16)
        self.their_session = Signal(8)
        self.state         = Signal(8)
        self.heard         = Signal(16)
        self.ping          = Signal(8)
        self.pong          = Signal(8)
        self.offered       = offered = Signal(64)

        # # #

        units = Signal(2)  # that came of it; 2: both
        said  = Signal(64)
        self.sync += [
            If(self.unit & collects & (units != 2),
                units.eq(units + 1),
                If(units == 0, said.eq(self.data)).Else(offered.eq(self.data)),
            ),
            If(self.end | self.other, collects.eq(0)),
            If(self.start, collects.eq(1), units.eq(0)),
        ]
        self.comb += [
            Cat(self.nonce, self.their_session, self.state, self.heard, self.ping,
                self.pong).eq(said),
            self.short.eq(collects & (units != 2)),
            self.whole.eq(self.end & self.good & collects & (units == 2)),
        ]

# Receiver -----------------------------------------------------------------------------------------

class FrameReceiver(LiteXModule):
    """The packets of each channel, and the other end's status, from received frames.

    Parameters
    ----------
    depths : units in the buffer of each channel, powers of two
    vlan   : as in FrameParser
    bulk_width : bits of a word of channel BULK, 32 or 64

    Attributes
    ----------
    sink    : Endpoint(frame_layout), in   without backpressure
    sources : list of Endpoint(word_layout), out
    mac     : Signal(48), in     own address
    peer    : Signal(48), in     address of the other end
    session : Signal(8), in      own session
    up      : Signal(), in       DATA frames are accepted
    clear   : Signal(), in       the session has not begun
    status  : Signal(), out      a good STATUS frame came, for whatever session; of it:
    sender, nonce, their_session, state, heard, heard_session, ping, pong : Signal, out
    alive   : Signal(), out      a good frame of the peer came: DATA of this session, or STATUS
    got_data : Signal(), out     a good DATA frame of this session came
    credit_came   : Signal(channels), out   the peer gave credit in this session
    credit_values : list of Signal(16), out
    credits : list of Signal(16), out   what the other end may send
    levels  : list of Signal, out       units in the buffers
    counters : dict of pulses, names of enum ethernet_counter
    """
    def __init__(self, depths, vlan=None, bulk_width=32):
        channels = len(depths)
        self.parser  = parser = FrameParser(vlan)
        self.sink    = parser.sink
        self.mac     = parser.mac
        self.peer    = Signal(48)
        self.session = Signal(8)
        self.up      = Signal()
        self.clear   = Signal()
        self.status  = Signal()
        self.sender  = parser.source
        self.said = said   = StatusReader()
        self.nonce         = said.nonce
        self.their_session = said.their_session
        self.state         = said.state
        self.heard         = said.heard
        self.heard_session = parser.session
        self.ping          = said.ping
        self.pong          = said.pong
        self.alive         = Signal()
        self.got_data      = Signal()
        self.credit_came   = Signal(channels)
        self.credit_values = [Signal(16) for _ in range(channels)]

        # # #

        receivers = [ChannelReceiver(depth) for depth in depths]
        widths    = [bulk_width if n == CHANNEL.BULK else 32 for n in range(channels)]
        readers   = [PacketReader(width) for width in widths]
        for n, (receiver, reader) in enumerate(zip(receivers, readers)):
            self.add_module(f"channel{n}", receiver)
            self.add_module(f"reader{n}", reader)
        self.sources = [reader.source for reader in readers]
        self.credits = [receiver.credit for receiver in receivers]
        self.levels  = [receiver.level for receiver in receivers]

        # DATA -------------------------------------------------------------------------------------
        from_peer = Signal()
        in_session = Signal()
        is_data   = Signal()
        is_status = Signal()
        accepted  = Signal()  # the present frame is DATA of the peer in this session
        stranger  = Signal()
        tells     = Signal()  # a STATUS frame tells the position of its channel
        self.comb += [
            from_peer.eq(parser.source == self.peer),
            in_session.eq(from_peer & (parser.session == self.session)),
            is_data.eq(parser.start & (parser.kind == ETHERNET_KIND.DATA)),
            is_status.eq(parser.start & (parser.kind == ETHERNET_KIND.STATUS)),
            tells.eq(said.whole & in_session & ((said.state & ETHERNET_STATE.HEARD) != 0)),
        ]
        takes = is_data & in_session & self.up
        self.sync += [
            If(parser.start, accepted.eq(0), stranger.eq(0)),
            If(takes, accepted.eq(1)),
            If(is_data & ~(in_session & self.up), stranger.eq(1)),
        ]
        for n, (receiver, reader) in enumerate(zip(receivers, readers)):
            self.comb += [
                receiver.clear.eq(self.clear),
                receiver.start.eq(takes & (parser.channel == n)),
                parser.fragment.connect(receiver.fragment, omit={"ready"}),
                receiver.position.eq(parser.position),
                receiver.unit.eq(parser.unit),
                receiver.data.eq(parser.data),
                receiver.end.eq(parser.end),
                receiver.good.eq(parser.good),
                receiver.source.connect(reader.sink),
                reader.waits.eq(receiver.waits),
                reader.up.eq(self.up),
                reader.source.channel.eq(n),
            ]
            # The fields of a frame are valid until the next one's header, some cycles later.
            self.sync += receiver.told.eq(tells & (parser.channel == n))

        # STATUS -----------------------------------------------------------------------------------
        whole = said.whole
        self.comb += [
            said.start.eq(is_status),
            said.other.eq(parser.start),
            said.unit.eq(parser.unit),
            said.data.eq(parser.data),
            said.end.eq(parser.end),
            said.good.eq(parser.good),
            self.status.eq(whole),
        ]

        # Both -------------------------------------------------------------------------------------
        got = self.got_data
        self.comb += [
            got.eq(parser.end & parser.good & accepted),
            self.alive.eq((whole & from_peer) | got),
            *[self.credit_came[n].eq(
                (whole & in_session) | (got & (parser.credit_channel == n)))
                for n in range(channels)],
            *[value.eq(Mux(whole, said.offered[16*n:16*n + 16], parser.credit))
                for n, value in enumerate(self.credit_values)],
        ]
        any_of = lambda name: Reduce("OR", [getattr(receiver, name) for receiver in receivers])
        self.counters = {
            "FRAMES_RECEIVED": (whole & (from_peer | self.clear)) | any_of("taken"),
            "FRAMES_FOREIGN":  parser.foreign,
            "FRAMES_STRANGER": parser.end & parser.good & (stranger |
                (said.collects & ~said.short & ~from_peer & ~self.clear)),
            "FRAMES_BAD":      parser.bad | any_of("short") |
                (parser.end & parser.good & said.short),
            "FRAMES_GAP":      any_of("gap"),
            "FRAMES_LATE":     any_of("late"),
            "FRAMES_NO_ROOM":  any_of("no_room"),
        }
