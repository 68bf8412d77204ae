"""Row transmitter: interleave the packets of all channels, row by row."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import row_layout
from dibber.link.row_packer import sealed_line_layout
from dibber.link.rows import (CONTROL_ROW, DATA_ROW, LANES, T_END, T_FLOW, T_NONCE, T_PING, T_PONG,
    T_RESUME, T_START, WORDS, control_word)
from dibber.link.stop_state import FlowSchedule
from dibber.link.symbols import NONCE_PERIOD_WORDS, NONCE_TRAIN_WORDS, PONG_REST_WORDS

# Rows that the lower-priority channels get after a whole packet, if they want them: the 32 words of
# LinkTransmitter.
TURN_ROWS = 4

# Gate ---------------------------------------------------------------------------------------------

class PacketGate(LiteXModule):
    """Let lines pass while the link is UP. Drop the rest of a packet whose part was lost with the
    link.

    A line with `first` inside a packet shows that its sender was reset: a line without words ends
    the old packet as bad. While the link is not UP, the first line of a packet waits.

    Attributes
    ----------
    sink, source : Endpoint(sealed_line_layout())
    up           : Signal(), in

    Cycles: 0; a line a cycle.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(sealed_line_layout())
        self.source = source = stream.Endpoint(sealed_line_layout())
        self.up     = Signal()

        # # #

        in_packet = Signal()  # a line of the packet was taken, not its last one
        dropping  = Signal()  # with `in_packet`: a part of it was lost with the link
        begins    = Signal()  # the first line of another packet is offered inside a packet
        drops     = Signal()
        self.comb += [
            begins.eq(in_packet & sink.valid & sink.first),
            drops.eq(in_packet & (dropping | ~self.up)),
            sink.connect(source, omit={"valid", "ready"}),
            If(drops,
                sink.ready.eq(~sink.first)
            ).Elif(begins,
                source.valid.eq(1),
                source.first.eq(0),
                source.last.eq(1),
                source.words.eq(0),
                source.seal.eq(0),
                source.bad.eq(1)
            ).Elif(self.up,
                source.valid.eq(sink.valid),
                sink.ready.eq(source.ready)
            ),
        ]
        self.sync += [
            If(sink.valid & sink.ready,
                in_packet.eq(~sink.last)
            ).Elif(begins & (drops | source.ready),
                in_packet.eq(0)
            ),
            dropping.eq(drops),
        ]

# Transmitter --------------------------------------------------------------------------------------

class RowTransmitter(LiteXModule):
    """Interleave the rows of packets; insert the flow state between them.

    For each row the arbiter grants the lowest channel that offers a row and is not stopped. A row
    has a START, a RESUME or an END in place 0, or eight words of the packet that has the link.
    After the end of a packet of any channel except CONTROL, the channels of lower priority get up
    to TURN_ROWS rows before that channel, or one between, may start again.

    Priority of rows: twin of a flow row, pong, flow row that is due, ping, nonce that is due (only
    in place of a filler), packets, filler flow row. At least PONG_REST_WORDS other rows follow a
    pong.

    Parameters
    ----------
    sinks : list of Endpoint, 2 to 4: `source` of each channel's RowPacker

    Attributes
    ----------
    fronts : list of Signal(), out  `front` of each channel's RowPacker
    source : Endpoint(row_layout(4)), out   always valid after reset
    up, go, flow, told, nonce, ping, pong, waits : as LinkTransmitter

    Cycles: 1; a row a cycle.
    """
    def __init__(self, sinks):
        channels    = len(sinks)
        assert 2 <= channels <= 4
        self.fronts = [Signal(name=f"front{n}") for n in range(channels)]
        self.source = source = stream.Endpoint(row_layout(LANES))
        self.up     = Signal()
        self.go     = Signal(channels)
        self.flow   = Signal(8)
        self.told   = Signal(8)
        self.nonce  = Signal(16)
        self.ping   = stream.Endpoint([("number", 8)])
        self.pong   = stream.Endpoint([("number", 8)])
        self.waits  = Signal()

        # # #

        step = Signal()  # the output register takes a row
        self.schedule = schedule = FlowSchedule()
        self.comb += [
            step.eq(~source.valid | source.ready),
            schedule.flow.eq(self.flow),
            schedule.step.eq(step),
            self.told.eq(schedule.told),
        ]

        # Channels ---------------------------------------------------------------------------------
        all_channels = range(channels)
        allowed      = Signal(channels)  # the other end accepts the channel
        wants        = Signal(channels)  # offers a row, and may send it
        choice       = Signal(channels)  # one-hot: the lowest of these
        active       = Signal(channels)  # one-hot: channel of the last packet row; 0 after an end
        begun        = Signal(channels)  # START was sent, the end not yet
        start_held   = Signal(channels)  # must not start a packet: lower priorities have a turn
        not_packet   = Signal()          # the row is no packet's row
        free         = Signal()          # a packet's row may be sent
        sends        = Signal()          # a packet's row is sent
        ends         = Signal()          # the chosen row is its packet's last one
        valid        = Cat(*[sink.valid for sink in sinks])
        of_choice    = lambda values: reduce(
            or_, [Mux(choice[n], value, 0) for n, value in enumerate(values)])
        self.comb += [
            wants.eq(valid & allowed & (begun | ~start_held)),
            *[choice[n].eq(wants[n] & (wants[:n] == 0) if n else wants[n]) for n in all_channels],
            *[front.eq(~active[n]) for n, front in enumerate(self.fronts)],
            free.eq(step & self.up & ~not_packet),
            sends.eq(free & (wants != 0)),
            ends.eq(of_choice([sink.last for sink in sinks])),
            *[sink.ready.eq(free & choice[n]) for n, sink in enumerate(sinks)],
        ]
        self.sync += [
            allowed.eq(self.go),
            self.waits.eq(self.up & ((valid & ~self.go) != 0)),
            If(sends,
                active.eq(Mux(ends, 0, choice)),
                begun.eq(Mux(ends, begun & ~choice, begun | choice)),
            ),
            If(~self.up,
                active.eq(0),
                begun.eq(0),
            ),
        ]

        # Turns ------------------------------------------------------------------------------------
        turn_left = Signal(max=TURN_ROWS)
        served    = Signal(channels)  # channels that have the turn, while others are held
        offer     = Signal(channels)
        serves    = Signal()          # a row of a served channel is sent
        self.comb += [
            served.eq(~start_held & ((1 << channels) - 2)),
            offer.eq(valid & allowed),
            serves.eq(sends & ((choice & served) != 0)),
        ]
        self.sync += [
            If(serves, turn_left.eq(turn_left - 1)),
            If((serves & (turn_left == 0)) | (free & ((offer & served) == 0)),
                start_held.eq(0)
            ),
            *[If(sends & ends & choice[n] & (offer[n + 1:] != 0),
                turn_left.eq(TURN_ROWS - 1),
                start_held.eq((2 << n) - 2),
            ) for n in all_channels[1:-1]],
        ]

        # Nonce ------------------------------------------------------------------------------------
        nonce_due   = Signal()
        sends_nonce = Signal()
        is_filler   = Signal()  # the row is only a filler
        age         = Signal(max=NONCE_PERIOD_WORDS)
        nonce_old   = Signal()
        self.comb += nonce_old.eq(
            (age == NONCE_PERIOD_WORDS - 1) | (~self.up & (age >= NONCE_TRAIN_WORDS - 1)))
        self.sync += If(step,
            If(sends_nonce,
                age.eq(0),
                nonce_due.eq(0)
            ).Else(
                If(nonce_old & is_filler, nonce_due.eq(1)),
                If(age != NONCE_PERIOD_WORDS - 1, age.eq(age + 1))
            ),
        )

        # Pongs ------------------------------------------------------------------------------------
        sends_pong   = Signal()
        pong_blocked = Signal()               # no pong for `block_left` + 1 more rows
        block_left   = Signal(max=PONG_REST_WORDS)
        self.sync += If(step,
            If(sends_pong,
                block_left.eq(PONG_REST_WORDS - 1),
                pong_blocked.eq(1)
            ).Elif(pong_blocked,
                block_left.eq(block_left - 1),
                pong_blocked.eq(block_left != 0)
            ),
        )

        # Rows -------------------------------------------------------------------------------------
        # Octets 0 to 2 of the control word, if the row has one; `packet` is the row of the choice.
        kind    = Signal(8)
        octets  = Signal(16)
        packet  = Signal(32*WORDS)
        of_kind = Signal(8)   # of the chosen row
        of_row  = Signal(16)
        has_control = Signal()
        self.comb += [
            not_packet.eq(1),
            If(self.pong.valid & ~pong_blocked & ~schedule.twin,
                kind.eq(T_PONG),
                octets.eq(self.pong.number),
                self.pong.ready.eq(step),
                sends_pong.eq(1)
            ).Elif(schedule.due,
                kind.eq(T_FLOW),
                octets.eq(self.flow),
                schedule.sent.eq(1)
            ).Elif(self.ping.valid,
                kind.eq(T_PING),
                octets.eq(self.ping.number),
                self.ping.ready.eq(step)
            ).Elif(nonce_due,
                kind.eq(T_NONCE),
                octets.eq(self.nonce),
                sends_nonce.eq(1)
            ).Else(
                not_packet.eq(0),
                kind.eq(of_kind),
                octets.eq(of_row),
                If(~self.up | (wants == 0),
                    is_filler.eq(1),
                    kind.eq(T_FLOW),
                    octets.eq(self.told)
                )
            ),
            schedule.filled.eq(is_filler),
            of_kind.eq(of_choice([
                Mux(begun[n], Mux(active[n], T_END, T_RESUME), T_START) for n in all_channels])),
            of_row.eq(of_choice([
                Cat(
                    Constant(n, 4), Mux(begun[n], Constant(0, 3), sink.prefix), Constant(0, 1),
                    Mux(sink.last, sink.words, 0)[:4], sink.last, sink.last & sink.bad,
                    Constant(0, 2))
                for n, sink in enumerate(sinks)])),
            packet.eq(of_choice([sink.data for sink in sinks])),
            has_control.eq(not_packet | is_filler | ends | ((choice & active) == 0)),
        ]
        self.sync += If(step,
            source.valid.eq(1),
            source.header.eq(Mux(has_control, CONTROL_ROW, DATA_ROW)),
            source.data[32:].eq(Mux(not_packet | is_filler, 0, packet[32:])),
            source.data[:32].eq(Mux(has_control, control_word(kind, octets[:8], octets[8:]),
                packet[:32]))
        )
