# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The sending engine: from a command slot to packets of payload."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, COMMAND, FLAG, PACKET_FLAG, RIGHT, STATUS, WALK
from dibber.layouts import (completion_layout, job_done_layout, job_layout, payload_layout, read_layout,
    send_layout, slot_port)

from dibber.deposit.gather import Gather
from dibber.deposit.packetizer import Packetizer, transfer_layout
from dibber.deposit.regions import lookup_port
from dibber.deposit.walker import Walker

# Fetch --------------------------------------------------------------------------------------------

class Fetch(LiteXModule):
    """Read the head of a command, up to the end of its source walk, from the slots.

    Attributes
    ----------
    port    : slot_port(data_width)
    start   : Signal(), in    one cycle
    slot    : Signal, in      slot number, counted over all endpoints; stable while the fetch goes on
    done    : Signal(), out   one cycle, the words are there
    command : Signal, out     the bytes fetched; `member` finds its way in them

    Cycles: lines + 2, with a port that is always ready.
    """
    def __init__(self, data_width):
        used  = COMMAND["source"].offset + COMMAND["source"].size
        width = data_width//8
        lines = -(-used//width)

        self.port    = port = slot_port(data_width)
        self.start   = Signal()
        self.slot    = Signal(max=C.ENDPOINTS*C.SLOTS)
        self.done    = Signal()
        self.command = Signal(8*width*lines)

        # # #

        busy     = Signal()
        asked    = Signal(max=lines)
        answered = Signal(max=lines + 1)
        accepted = Signal()
        coming   = Signal(2)
        self.comb += [
            port.valid.eq(busy),
            port.adr.eq(self.slot*(C.SLOT_BYTES//width) + asked),
            accepted.eq(port.valid & port.ready),
            self.done.eq(answered == lines),
        ]
        self.sync += [
            coming.eq(Cat(accepted, coming[0])),
            If(self.start, busy.eq(1)),
            If(accepted,
                asked.eq(asked + 1),
                If(asked == lines - 1,
                    asked.eq(0),
                    busy.eq(0)
                )
            ),
            If(self.done, answered.eq(0)),
            If(coming[1],
                answered.eq(answered + 1),
                Case(answered, {n:
                    self.command[8*width*n:8*width*(n + 1)].eq(port.dat_r) for n in range(lines)})
            )
        ]

    def member(self, name, inner=None, index=0):
        """A member of the command, or of a walk in it: a slice of `command`."""
        outer  = COMMAND[name]
        offset = outer.offset
        size   = outer.size//outer.count
        if inner is not None:
            size    = WALK[inner].size//WALK[inner].count
            offset += WALK[inner].offset
        offset += size*index
        return self.command[8*offset:8*(offset + size)]

# Send ---------------------------------------------------------------------------------------------

class SendEngine(LiteXModule):
    """Turn send jobs into packets: fetch, look up, walk, read, cut.

    The slot belongs to a process that may write it at any time, so everything that the engine itself
    relies on is checked here, though the control program has checked it before: BAD_LEVELS, BAD_COUNT,
    BAD_LENGTH (`skip` is not within the transfer), BAD_KEY, NOT_OWNER, NOT_PERMITTED; the walker finds
    BOUNDS. The next job is set up and its reads leave while the data of the one before is in flight.

    Parameters
    ----------
    data_width : 64 or 128
    gather     : further parameters of `Gather`

    Attributes
    ----------
    jobs          : Endpoint(job_layout), in
    slot          : slot_port(data_width)
    lookup        : lookup_port(), to the region table
    reads         : Endpoint(read_layout), out
    completions   : Endpoint(completion_layout), in   always ready
    payload       : Endpoint(payload_layout), out
    packets       : Endpoint(send_layout), out        behind the packet's payload
    done          : Endpoint(job_done_layout), out    behind the job's packets
    max_request   : Signal(13), in                    bytes a read, a power of two
    extended_tags : Signal(), in
    crowded       : Signal(), in                      a write waits to leave the card, see `Cover`
    pulses        : dict counter name -> Signal()

    Cycles: 23 from job to first read at 128 bits, 27 at 64, when `skip` is 0 (see `Skip`); 9 from the
    last completion of 8 bytes to their payload, 10 to the packet's entry in `packets`.
    """
    def __init__(self, data_width, **gather):
        self.jobs          = jobs = stream.Endpoint(job_layout())
        self.lookup        = lookup = lookup_port()
        self.reads         = stream.Endpoint(read_layout())
        self.completions   = stream.Endpoint(completion_layout(data_width))
        self.payload       = stream.Endpoint(payload_layout(data_width))
        self.packets       = stream.Endpoint(send_layout())
        self.done          = stream.Endpoint(job_done_layout())
        self.max_request   = Signal(13)
        self.extended_tags = Signal()
        self.crowded       = Signal()

        # # #

        self.fetch      = fetch  = Fetch(data_width)
        self.walker     = walker = Walker()
        self.gather     = gather = Gather(data_width, **gather)
        self.packetizer = packetizer = Packetizer(data_width)
        self.transfers  = transfers  = stream.SyncFIFO(transfer_layout(), 4)
        self.slot       = fetch.port
        self.pulses     = gather.pulses
        self.comb += [
            walker.max_piece.eq(self.max_request),
            walker.abort.eq(gather.abort),
            walker.source.connect(gather.sink),
            gather.max_request.eq(self.max_request),
            gather.crowded.eq(self.crowded),
            gather.extended_tags.eq(self.extended_tags),
            gather.reads.connect(self.reads),
            self.completions.connect(gather.completions),
            gather.source.connect(packetizer.sink),
            transfers.source.connect(packetizer.transfers),
            packetizer.payload.connect(self.payload),
            packetizer.packets.connect(self.packets),
            packetizer.done.connect(self.done),
        ]

        # Command.
        flags   = fetch.member("flags")
        levels  = fetch.member("levels")
        total   = jobs.length
        key     = fetch.member("source", "key")
        block   = fetch.member("source", "block")
        offset  = fetch.member("source", "offset")
        stride  = [Cat(fetch.member("source", "stride", 2*i), fetch.member("source", "stride", 2*i + 1))
            for i in range(C.LEVELS)]
        count   = [fetch.member("source", "count", i) for i in range(C.LEVELS)]
        inner   = levels[:4]
        outer   = levels[4:]

        # Checks.
        reason  = Signal(8)
        status  = Signal(8)
        address = Signal(64)
        low     = Signal(64)
        high    = Signal(64)
        length  = Signal(32)
        walk    = walker.sink
        empty   = Signal()
        self.comb += [
            reason.eq(STATUS.OK),
            If((total != 0) & (jobs.skip >= total),
                reason.eq(STATUS.BAD_LENGTH)),
            If((lookup.rights & RIGHT.LOCAL_READ) == 0,
                reason.eq(STATUS.NOT_PERMITTED)),
            If(lookup.owner != jobs.endpoint,
                reason.eq(STATUS.NOT_OWNER)),
            If(~lookup.found,
                reason.eq(STATUS.BAD_KEY)),
            If((total != 0) & (inner != 0) & ((block == 0) | (count[0] == 0) |
                ((inner > 1) & (count[1] == 0)) | ((inner > 2) & (count[2] == 0))),
                reason.eq(STATUS.BAD_COUNT)),
            If((inner > C.LEVELS) | (outer > C.LEVELS),
                reason.eq(STATUS.BAD_LEVELS)),
            empty.eq(total == 0),
        ]

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            fetch.start.eq(jobs.valid),
            If(jobs.valid, NextState("FETCH"))
        )
        fsm.act("FETCH",
            If(fetch.done, NextState("LOOKUP"))
        )
        fsm.act("LOOKUP",
            lookup.valid.eq(1),
            NextState("ANSWER")
        )
        fsm.act("ANSWER",
            NextValue(low, lookup.base),
            NextValue(high, lookup.base + lookup.length),
            NextValue(address, lookup.base + offset),
            NextValue(length, total - jobs.skip),
            NextValue(status, reason),
            If(lookup.done, NextState("TRANSFER"))
        )
        fsm.act("TRANSFER",
            transfers.sink.valid.eq(1),
            If(transfers.sink.ready,
                If(empty | (status != STATUS.OK),
                    jobs.ready.eq(1),
                    NextState("IDLE")
                ).Else(
                    NextState("WALK")
                )
            )
        )
        fsm.act("WALK",
            walk.valid.eq(1),
            If(walk.ready,
                jobs.ready.eq(1),
                NextState("IDLE")
            )
        )
        self.comb += [
            fetch.slot.eq(Cat(jobs.slot[:log2_int(C.SLOTS)], jobs.endpoint)),
            lookup.key.eq(key),
            walk.last.eq(1),
            walk.address.eq(address),
            walk.low.eq(low),
            walk.high.eq(high),
            walk.block.eq(block),
            walk.levels.eq(inner),
            walk.length.eq(length),
            walk.skip.eq(jobs.skip),
            *[getattr(walk, f"stride{i}").eq(stride[i]) for i in range(C.LEVELS)],
            *[getattr(walk, f"count{i}").eq(count[i]) for i in range(C.LEVELS)],

            transfers.sink.node.eq(jobs.node),
            transfers.sink.incarnation.eq(jobs.incarnation),
            transfers.sink.psn.eq(jobs.psn),
            transfers.sink.levels.eq(outer),
            transfers.sink.endpoint.eq(jobs.endpoint),
            transfers.sink.slot.eq(jobs.slot),
            transfers.sink.tag.eq(jobs.tag),
            transfers.sink.skip.eq(jobs.skip),
            transfers.sink.length.eq(Mux(empty, 0, length)),
            transfers.sink.status.eq(status),
            # The control program knows these two bits by names of its own.
            If((flags & FLAG.NOTICE) != 0,
                transfers.sink.flags.eq(PACKET_FLAG.NOTICE),
                If((flags & FLAG.INTERRUPT) != 0,
                    transfers.sink.flags.eq(PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT)
                )
            ),
        ]
