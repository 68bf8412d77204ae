"""The sending engine: a command in its slot becomes packets of payload."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C, COMMAND, FLAG, PACKET_FLAG, RIGHT, STATUS, WALK
from dibber.layouts import (completion_layout, glance_layout, job_end_layout, job_layout, payload_layout, read_layout,
    send_layout)

from dibber.deposit.cover import HEAD_REQUEST
from dibber.deposit.departures import Departures
from dibber.deposit.epochs import Epochs, flow_of_layout
from dibber.deposit.fetch import Fetch, flat_source_spans
from dibber.deposit.gather import Gather
from dibber.deposit.job_turns import part_layout
from dibber.deposit.lists import ListLookup, ListReader
from dibber.deposit.packer import dense_layout
from dibber.deposit.packetizer import Packetizer, transfer_layout
from dibber.deposit.pages import PagedPieces
from dibber.deposit.regions import lookup_port
from dibber.deposit.walker import Walker
from dibber.packet.split import linked_send_layout
from dibber.common.places import Row, Skid

# Command ------------------------------------------------------------------------------------------

TRANSFERS = 4  # transfers under way at once

def source_member(fetch, name, index=0):
    """A member of the command's source walk."""
    member = WALK[name]
    size   = member.size//member.count
    return fetch.bytes(COMMAND["source"].offset + member.offset + index*size, size)

# Send ---------------------------------------------------------------------------------------------

class SendEngine(LiteXModule):
    """Turn send jobs into packets: fetch the command, look up its region, walk, read, cut.

    The slot belongs to a process, which may write it at any time. So the engine checks everything
    that it relies on, although the control program has checked it before: BAD_LEVELS, BAD_COUNT,
    BAD_LENGTH (`skip` is not within the transfer), BAD_KEY, NOT_OWNER, NOT_PERMITTED and BAD_LIST.
    Later errors are BOUNDS from the walker, BAD_LIST for a list that is too short, and READ_ERROR
    for a page table or list.

    All packets of a `response` have the flag RESPONSE, and its last one is a notice. A response
    reads with the right REMOTE_READ from a region of any owner. An `indirect` response is
    different: its source belongs to the slot's owner, as for a put, and only the target's walk
    comes from another node. While the data of a job are in flight, the next job is set up and its
    reads are issued.

    A job whose incarnation or epoch differs from its flow's is stale and ends as REWOUND. If it
    still waits, this happens before its first read. Otherwise its walk ends early, and the data in
    flight go into packets that are dropped later. The reads of the next job follow at once.

    Parameters
    ----------
    data_width   : 64, 128 or 256
    walked       : dict, further parameters of `PagedPieces`
    listed       : dict, further parameters of `ListReader`
    address_bits : 64 or 32. If an offset or stride has more bits, the region counts as empty and
                   the walk fails at once
    links        : of the card, 1 or 2
    gather       : further parameters of `Gather`

    Attributes
    ----------
    jobs          : Endpoint(job_layout), in; with two links Endpoint(part_layout), from `JobTurns`
    epochs        : Epochs; `reset`, `rewind`, `node`, `incarnation` and `epoch` are inputs
    slot          : slot_port(data_width)
    glance        : Record(glance_layout()), in       the slot that `FastCommands` reads
    lookup        : lookup_port(), to the region table; first the source's region, then its index
                    list's
    reads         : Endpoint(read_layout), out
    completions   : Endpoint(completion_layout), in   always ready
    payload       : Endpoint(payload_layout), out
    packets       : Endpoint(send_layout), out        before the packet's payload, which may still
                    make it void: see `Packetizer`. With two links Endpoint(linked_send_layout)
    done          : Endpoint(job_end_layout), out     after the job's packets
    max_request   : Signal(13), in                    bytes a read, a power of two
    extended_tags : Signal(), in
    crowded       : Signal(), in                      a write waits to leave the card, see `Cover`
    departures    : Departures of transfers
    pages         : PagedPieces   the core connects its `directory`, `reads` and `completions`
    lists         : ListReader    the core connects its `reads`, `completions` and `departures`, and
                    its `pages` to the page finder
    pulses        : dict counter name -> Signal()

    `FastCommands` may have read the slot already. For a source without levels these lines are
    enough: they are not read again, and the region is looked up before the job arrives. This holds
    only for the very next job, and only if no region is written until it starts.

    Cycles, if `skip` is 0 (otherwise see `Skip`): 18 from job to first read at 128 bits, 19 at 64;
    10 after a glance, but at least 12 from the glance. A walk with levels takes 3 more at 128 bits
    and 5 at 64, and 6 to its list's look-up. 6 from a first piece to the packet's entry in
    `packets`, 9 from the last completion of 8 bytes to their payload.
    """
    def __init__(self, data_width, walked={}, listed={}, address_bits=64, links=1, **gather):
        self.jobs          = jobs = stream.Endpoint(job_layout() if links == 1 else part_layout())
        self.lookup        = lookup = lookup_port()
        self.glance        = glance = Record(glance_layout())
        self.reads         = stream.Endpoint(read_layout())
        self.completions   = stream.Endpoint(completion_layout(data_width))
        self.payload       = stream.Endpoint(payload_layout(data_width))
        self.packets       = stream.Endpoint(send_layout() if links == 1 else linked_send_layout())
        self.done          = stream.Endpoint(job_end_layout())
        self.max_request   = Signal(13)
        self.extended_tags = Signal()
        self.crowded       = Signal()

        # # #

        flat_spans  = flat_source_spans()
        source_walk = COMMAND["source"].offset
        self.fetch  = fetch = Fetch(
            data_width, flat_spans + [(source_walk, source_walk + WALK.size)],
            enough=len(flat_spans), least=2)
        self.epochs     = epochs     = Epochs(3)
        self.walker     = walker     = Walker(address_bits)
        self.pages      = pages      = PagedPieces(data_width, address_bits, **walked)
        self.lists      = lists      = ListReader(data_width, address_bits=address_bits, **listed)
        self.gather     = gather     = Gather(data_width, **gather)
        self.packetizer = packetizer = Packetizer(data_width, links)
        self.transfers  = transfers  = Row(transfer_layout(links), TRANSFERS)
        self.dense      = dense      = Skid(dense_layout(data_width))
        self.walks      = walks      = stream.SyncFIFO(flow_of_layout(), TRANSFERS)
        # Whether the first piece of a transfer is good. Up to 2*TRANSFERS wait here, because a
        # transfer enters `transfers` before its walk begins.
        self.begins     = piece_starts     = stream.SyncFIFO([("good", 1)], 2*TRANSFERS)
        next_is_first = Signal(reset=1)
        self.slot     = fetch.port
        self.pulses   = gather.pulses
        waiting, walked, cut = epochs.ports
        self.comb += [
            # Short pieces are enough here, because `Cover` merges them into longer reads.
            walker.max_piece.eq(HEAD_REQUEST),
            # If a transfer's last piece has left the walker, no abort is needed.
            walker.abort.eq((gather.abort & ~pages.ending) | walked.stale),
            walker.order.connect(lists.sink),
            lists.source.connect(walker.base),
            lists.drop.eq(walker.drop),
            lists.extended_tags.eq(self.extended_tags),
            walker.source.connect(pages.sink),
            pages.source.connect(gather.sink),
            piece_starts.sink.valid.eq(pages.source.valid & pages.source.ready & next_is_first),
            piece_starts.sink.good.eq(~pages.source.error),
            piece_starts.source.connect(packetizer.begins),
            gather.max_request.eq(self.max_request),
            gather.crowded.eq(self.crowded),
            gather.extended_tags.eq(self.extended_tags),
            pages.extended_tags.eq(self.extended_tags),
            gather.reads.connect(self.reads),
            self.completions.connect(gather.completions),
            # Skid buffer: `ready` would go from the packetizer back to the picks in one cycle.
            gather.source.connect(dense.sink),
            dense.source.connect(packetizer.sink),
            transfers.source.connect(packetizer.transfers),
            packetizer.payload.connect(self.payload),
            packetizer.packets.connect(self.packets),
            packetizer.done.connect(self.done),
        ]

        self.sync += If(pages.source.valid & pages.source.ready,
            next_is_first.eq(pages.source.last)
        )

        # Stale jobs are watched in three places: the job in set-up, the walk whose pieces leave,
        # and the transfer that is cut.
        flow_fields = [name for name, _ in flow_of_layout()]
        self.comb += [
            waiting.valid.eq(jobs.valid),
            waiting.leave.eq(jobs.ready),
            walked.valid.eq(walks.source.valid),
            walked.leave.eq(walks.source.ready),
            walks.source.ready.eq(walker.source.valid & walker.source.ready & walker.source.last),
            *[getattr(waiting, name).eq(getattr(jobs, name)) for name in flow_fields],
            *[getattr(walked, name).eq(getattr(walks.source, name)) for name in flow_fields],
            *[getattr(walks.sink, name).eq(getattr(jobs, name)) for name in flow_fields],
            *[
                getattr(cut, name).eq(getattr(packetizer.watch, name))
                for name in flow_fields + ["valid", "leave"]],
            packetizer.watch.stale.eq(cut.stale),
        ]

        # Command.
        self.fsm = fsm = FSM(reset_state="IDLE")
        flags  = fetch.bytes(COMMAND["flags"].offset, 1)
        levels = fetch.bytes(COMMAND["levels"].offset, 1)
        total  = jobs.length
        block  = source_member(fetch, "block")
        count  = [source_member(fetch, "count", i) for i in range(C.LEVELS)]
        stride = [
            Cat(source_member(fetch, "stride", 2*i), source_member(fetch, "stride", 2*i + 1))
            for i in range(C.LEVELS)]
        # Without levels no byte after the offset is needed; strides and counts are left over.
        self.comb += fetch.all.eq(fetch.port.dat_r[8*COMMAND["levels"].offset:][:4] == 0)
        source_levels = levels[:4]
        target_levels = levels[4:]
        listed        = source_levels[log2_int(C.LIST)]
        strides       = source_levels[:log2_int(C.LIST)]  # number of strides

        # Region: it is looked up while the rest of the slot is fetched, so the answer is early
        # enough.
        found          = Signal()
        owned          = Signal()
        permitted      = Signal()
        foreign_source = Signal()  # the source's owner did not write the slot
        low            = Signal(address_bits)
        region_length  = Signal(address_bits)
        high           = Signal(address_bits)
        address        = Signal(address_bits)
        owner          = Signal(8)

        # Glance: while `FastCommands` checks the next job's command, its lines are copied here and
        # its region is looked up.
        glanced   = Record(
            [("slot", len(fetch.slot)), ("endpoint", len(jobs.endpoint)), ("response", 1)])
        glance_begun    = Signal()    # the slot's first line was copied
        lines_had       = Signal(len(fetch.glance))
        lines_seen      = Signal(len(fetch.glance))
        glance_complete = Signal() # this cycle brings the last needed line
        ready           = Signal()    # all needed lines are here
        looking_up      = Signal()    # the region is being looked up
        hit             = Signal()    # the job is the glanced one, and has no levels
        remote_read     = Signal()    # `foreign_source` of the job whose region is looked up
        job_starts      = Signal()    # the set-up of a job starts
        region_written  = Signal()
        idle            = Signal()
        self.comb += [
            idle.eq(fsm.ongoing("IDLE") & ~jobs.valid),
            fetch.glance.eq(Mux(idle & (glance_begun | glance.begin), glance.lines, 0)),
            lines_seen.eq(Mux(glance.begin, 0, lines_had) | fetch.glance),
            hit.eq(ready & ~region_written & (glanced.slot == fetch.slot) & (source_levels == 0)),
        ]
        self.sync += [
            lines_had.eq(lines_seen),
            glance_begun.eq(idle & ~glance.drop & (glance_begun | glance.begin)),
            # A region that is written meanwhile may have changed, and the control program does not
            # wait for a job that has not started. So the glance is invalid then.
            ready.eq(
                ~job_starts & ~glance.drop & ~glance.begin & ~region_written &
                (ready | glance_complete)),
            looking_up.eq(glance_complete),
            If(glance_complete,
                glanced.slot.eq(Cat(glance.slot[:log2_int(C.SLOTS)], glance.endpoint)),
                glanced.endpoint.eq(glance.endpoint),
                glanced.response.eq(glance.response),
            ),
        ]
        self.comb += glance_complete.eq(
            (fetch.glance != 0) & (lines_seen == 2**len(lines_seen) - 1))

        # The look-up of the index list follows when the rest of the slot is here.
        self.list = list_ = ListLookup(address_bits)
        listing   = Signal()
        self.comb += [
            list_.key.eq(count[2]),
            list_.offset.eq(stride[2]),
            list_.owner.eq(owner),
            list_.lookup.connect(
                lookup, keep={"done", "found", "base", "length", "rights", "owner"}),

            foreign_source.eq(jobs.response & ~jobs.indirect),
            remote_read.eq(Mux(ready, glanced.response, foreign_source)),
            # During a glance, the line with the key may still be on the port.
            lookup.valid.eq(fetch.first | glance_complete | list_.lookup.valid),
            lookup.key.eq(Mux(listing, list_.lookup.key, source_member(fetch, "key"))),
            If(fetch.glance[0],
                lookup.key.eq(fetch.coming(source_walk + WALK["key"].offset, WALK["key"].size))
            ),
        ]
        self.sync += [
            If(lookup.done & ~listing,
                owner.eq(lookup.owner),
                found.eq(lookup.found),
                owned.eq(
                    (lookup.owner == Mux(ready, glanced.endpoint, jobs.endpoint)) | remote_read),
                permitted.eq(
                    (lookup.rights & Mux(remote_read, RIGHT.REMOTE_READ, RIGHT.LOCAL_READ)) != 0),
                low.eq(lookup.base),
                region_length.eq(lookup.length),
            ),
            high.eq(low + region_length),
            address.eq(low + source_member(fetch, "offset")),
        ]

        # Values that do not fit: the offset's upper bits are not 0, or a stride's upper bits are
        # not its sign.
        if address_bits < 64:
            not_sign_extended = lambda value: value[address_bits:] != Replicate(
                value[address_bits - 1], 64 - address_bits)
            too_wide    = [source_member(fetch, "offset")[address_bits:] != 0] + [
                (strides > i) & not_sign_extended(stride[i]) for i in range(C.LEVELS)]
            self.sync += If(Reduce("OR", too_wide), high.eq(0))
            self.comb += list_.far.eq(stride[2][address_bits:] != 0)

        # Checks: comparisons in one cycle, their consequences in the next.
        length     = Signal(32)
        empty      = Signal()
        too_far    = Signal()
        no_level   = Signal()
        zero_count = Signal()
        status     = Signal(8)
        self.sync += [
            length.eq(total - jobs.skip),
            empty.eq(total == 0),
            too_far.eq(jobs.skip >= total),
            no_level.eq(
                (source_levels > C.LIST + C.LIST_LEVELS) |
                (target_levels > C.LIST + C.LIST_LEVELS)),
            zero_count.eq(
                ((source_levels != 0) & (block == 0)) |
                Reduce("OR", [(strides > i) & (count[i] == 0) for i in range(C.LEVELS)])),
        ]

        # At once: a job in set-up, TRANSFERS waiting walks, TRANSFERS being cut, one waiting end.
        self.departures = Departures(
            job_starts, [self.done.valid & self.done.ready], 2*TRANSFERS + 2)
        self.comb += region_written.eq(self.departures.mark)

        walk     = walker.sink
        has_walk = Signal()
        self.comb += has_walk.eq(~empty & (status == STATUS.OK))
        fsm.act("IDLE",
            job_starts.eq(jobs.valid & ~(hit & looking_up)),
            fetch.start.eq(job_starts & ~hit),
            If(job_starts,
                NextState("FETCH"),
                If(hit, NextState("JUDGE"))
            )
        )
        fsm.act("FETCH",
            If(fetch.done,
                NextState("JUDGE"),
                If(listed, NextState("LIST"))
            )
        )
        fsm.act("LIST",
            listing.eq(1),
            list_.start.eq(1),
            NextState("LISTED")
        )
        fsm.act("LISTED",
            listing.eq(1),
            If(list_.done, NextState("JUDGE"))
        )
        fsm.act("JUDGE",
            NextValue(status, STATUS.OK),
            If(waiting.stale,
                NextValue(status, STATUS.REWOUND)
            ).Elif(no_level,
                NextValue(status, STATUS.BAD_LEVELS)
            ).Elif(zero_count & ~empty,
                NextValue(status, STATUS.BAD_COUNT)
            ).Elif(~found,
                NextValue(status, STATUS.BAD_KEY)
            ).Elif(~owned,
                NextValue(status, STATUS.NOT_OWNER)
            ).Elif(~permitted,
                NextValue(status, STATUS.NOT_PERMITTED)
            ).Elif(too_far & ~empty,
                NextValue(status, STATUS.BAD_LENGTH)
            ).Elif(listed & ~list_.good & ~empty,
                NextValue(status, STATUS.BAD_LIST)
            ),
            NextState("TRANSFER")
        )
        # The transfer and its walk, if it has one, enter their queues together.
        fsm.act("TRANSFER",
            walk.valid.eq(has_walk & walks.sink.ready & transfers.sink.ready),
            transfers.sink.valid.eq(~has_walk | (walk.ready & walks.sink.ready)),
            If(transfers.sink.valid & transfers.sink.ready,
                walks.sink.valid.eq(has_walk),
                jobs.ready.eq(1),
                NextState("IDLE")
            )
        )
        self.comb += [
            fetch.slot.eq(Cat(jobs.slot[:log2_int(C.SLOTS)], jobs.endpoint)),
            walks.sink.last.eq(1),
            walk.last.eq(1),
            walk.address.eq(address),
            walk.low.eq(low),
            walk.high.eq(high),
            walk.block.eq(block),
            walk.levels.eq(strides),
            walk.listed.eq(listed),
            walk.length.eq(length),
            walk.skip.eq(jobs.skip),
            *[getattr(walk, f"stride{i}").eq(stride[i]) for i in range(C.LEVELS)],
            *[getattr(walk, f"count{i}").eq(count[i]) for i in range(C.LEVELS)],
            If(listed,
                walk.stride2.eq(list_.address),
                walk.count2.eq(list_.entries)
            ),

            jobs.connect(
                transfers.sink,
                keep={"node", "incarnation", "epoch", "psn", "endpoint", "slot", "tag",
                "skip", "response", "indirect", "target", "message",
                *([] if links == 1 else ["more", "link"])}),
            transfers.sink.last.eq(1),
            transfers.sink.levels.eq(Mux(jobs.indirect, jobs.target_levels, target_levels)),
            transfers.sink.length.eq(Mux(empty, 0, length)),
            transfers.sink.status.eq(status),
            # Flags of a command and flags of a packet have their own numbering.
            If(jobs.response,
                transfers.sink.flags.eq(PACKET_FLAG.NOTICE)
            ).Elif((flags & FLAG.NOTICE) != 0,
                transfers.sink.flags.eq(PACKET_FLAG.NOTICE),
                If((flags & FLAG.INTERRUPT) != 0,
                    transfers.sink.flags.eq(PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT)
                )
            ),
        ]
