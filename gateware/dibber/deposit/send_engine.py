"""The sending engine: from a command slot to packets of payload."""

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
from dibber.deposit.lists import ListLookup, ListReader
from dibber.deposit.packer import dense_layout
from dibber.deposit.packetizer import Packetizer, transfer_layout
from dibber.deposit.pages import PagedPieces
from dibber.deposit.regions import lookup_port
from dibber.deposit.walker import Walker
from dibber.common.places import Row, Skid

# Command ------------------------------------------------------------------------------------------

TRANSFERS = 4  # that may be under way at once

def source_member(fetch, name, index=0):
    """A member of the command's source walk."""
    member = WALK[name]
    size   = member.size//member.count
    return fetch.bytes(COMMAND["source"].offset + member.offset + index*size, size)

# Send ---------------------------------------------------------------------------------------------

class SendEngine(LiteXModule):
    """Turn send jobs into packets: fetch, look up, walk, read, cut.

    The slot belongs to a process that may write it at any time, so everything that the engine
    itself relies on is checked here, though the control program has checked it before: BAD_LEVELS,
    BAD_COUNT, BAD_LENGTH (`skip` is not within the transfer), BAD_KEY, NOT_OWNER, NOT_PERMITTED,
    BAD_LIST; the walker finds BOUNDS, a list that is too short BAD_LIST, page table and list
    READ_ERROR. All packets of a `response` are flagged RESPONSE, and its last one is a notice. It
    reads by the right REMOTE_READ from a region of any owner, unless it is `indirect`: then the
    source is this slot's owner's, as for a put, and only the target's walk is another's. The next
    job is set up and its reads leave while the data of the one before is in flight.

    A job of another incarnation or epoch than its flow's is stale and ends as REWOUND: before its
    first read when it still waits, else its walk ends where it is, and the reads in flight are
    passed on to packets that nobody will send; the next job's reads leave behind them at once.

    Parameters
    ----------
    data_width : 64 or 128
    walked     : dict, further parameters of `PagedPieces`
    listed     : dict, of `ListReader`
    address_bits : 64 or 32. What the source has of more lies in no region: its walk leaves it at
                   once
    gather     : of `Gather`

    Attributes
    ----------
    jobs          : Endpoint(job_layout), in
    epochs        : Epochs                            `reset`, `rewind` and what goes with them are
                    inputs
    slot          : slot_port(data_width)
    glance        : Record(glance_layout()), in       what comes from it for `FastCommands`
    lookup        : lookup_port(), to the region table; for the source's region, then for its index
                    list's
    reads         : Endpoint(read_layout), out
    completions   : Endpoint(completion_layout), in   always ready
    payload       : Endpoint(payload_layout), out
    packets       : Endpoint(send_layout), out        before the packet's payload, and it may be
                    made void yet: see `Packetizer`
    done          : Endpoint(job_end_layout), out    behind the job's packets
    max_request   : Signal(13), in                    bytes a read, a power of two
    extended_tags : Signal(), in
    crowded       : Signal(), in                      a write waits to leave the card, see `Cover`
    departures    : Departures of transfers
    pages         : PagedPieces                       its `directory`, `reads` and `completions` are
                    the core's to connect
    lists         : ListReader                        its `reads`, `completions` and `departures`
                    likewise; its `pages` to the page finder
    pulses        : dict counter name -> Signal()

    What a source without levels needs of the slot may have been there for `FastCommands` already.
    Then it is not read again, and its region is looked up while the job is still on its way; but
    only of the very next job, and if no region is written until it starts.

    Cycles, when `skip` is 0 (see `Skip`): 18 from job to first read at 128 bits, 19 at 64; 10 when
    its slot was glanced at, but 12 at least from the glance. A walk with levels takes 3 more at 128
    bits and 5 at 64, and 6 to its list's look-up. 6 from a first piece to the packet's entry in
    `packets`, 9 from the last completion of 8 bytes to their payload.
    """
    def __init__(self, data_width, walked={}, listed={}, address_bits=64, **gather):
        self.jobs          = jobs = stream.Endpoint(job_layout())
        self.lookup        = lookup = lookup_port()
        self.glance        = glance = Record(glance_layout())
        self.reads         = stream.Endpoint(read_layout())
        self.completions   = stream.Endpoint(completion_layout(data_width))
        self.payload       = stream.Endpoint(payload_layout(data_width))
        self.packets       = stream.Endpoint(send_layout())
        self.done          = stream.Endpoint(job_end_layout())
        self.max_request   = Signal(13)
        self.extended_tags = Signal()
        self.crowded       = Signal()

        # # #

        flat        = flat_source_spans()
        source_walk = COMMAND["source"].offset
        self.fetch  = fetch = Fetch(data_width, flat + [(source_walk, source_walk + WALK.size)], enough=len(flat))
        self.epochs     = epochs     = Epochs(3)
        self.walker     = walker     = Walker(address_bits)
        self.pages      = pages      = PagedPieces(data_width, address_bits, **walked)
        self.lists      = lists      = ListReader(data_width, address_bits=address_bits, **listed)
        self.gather     = gather     = Gather(data_width, **gather)
        self.packetizer = packetizer = Packetizer(data_width)
        self.transfers  = transfers  = Row(transfer_layout(), TRANSFERS)
        self.dense      = dense      = Skid(dense_layout(data_width))
        self.walks      = walks      = stream.SyncFIFO(flow_of_layout(), TRANSFERS)
        # Whether a transfer has a first piece to be read. A transfer waits in `transfers` before
        # its walk begins.
        self.begins     = begins     = stream.SyncFIFO([("good", 1)], 2*TRANSFERS)
        beginning       = Signal(reset=1)
        self.slot       = fetch.port
        self.pulses     = gather.pulses
        waiting, walked, cut = epochs.ports
        self.comb += [
            # `Cover` joins what may be read at once.
            walker.max_piece.eq(HEAD_REQUEST),
            # A transfer whose last piece has left the walker needs no abort any more.
            walker.abort.eq((gather.abort & ~pages.ending) | walked.stale),
            walker.order.connect(lists.sink),
            lists.source.connect(walker.base),
            lists.drop.eq(walker.drop),
            lists.extended_tags.eq(self.extended_tags),
            walker.source.connect(pages.sink),
            pages.source.connect(gather.sink),
            begins.sink.valid.eq(pages.source.valid & pages.source.ready & beginning),
            begins.sink.good.eq(~pages.source.error),
            begins.source.connect(packetizer.begins),
            gather.max_request.eq(self.max_request),
            gather.crowded.eq(self.crowded),
            gather.extended_tags.eq(self.extended_tags),
            pages.extended_tags.eq(self.extended_tags),
            gather.reads.connect(self.reads),
            self.completions.connect(gather.completions),
            # Whether a line is taken goes through the packetizer as far as the picks: it is
            # registered here.
            gather.source.connect(dense.sink),
            dense.source.connect(packetizer.sink),
            transfers.source.connect(packetizer.transfers),
            packetizer.payload.connect(self.payload),
            packetizer.packets.connect(self.packets),
            packetizer.done.connect(self.done),
        ]

        self.sync += If(pages.source.valid & pages.source.ready, beginning.eq(pages.source.last))

        # Who is stale: the job that is set up, the walk whose pieces leave, the transfer that is
        # cut.
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
            *[getattr(cut, name).eq(getattr(packetizer.watch, name)) for name in flow_fields + ["valid", "leave"]],
            packetizer.watch.stale.eq(cut.stale),
        ]

        # Command.
        self.fsm = fsm = FSM(reset_state="IDLE")
        flags  = fetch.bytes(COMMAND["flags"].offset, 1)
        levels = fetch.bytes(COMMAND["levels"].offset, 1)
        total  = jobs.length
        block  = source_member(fetch, "block")
        count  = [source_member(fetch, "count", i) for i in range(C.LEVELS)]
        stride = [Cat(source_member(fetch, "stride", 2*i), source_member(fetch, "stride", 2*i + 1)) for i in range(C.LEVELS)]
        # Without levels there is nothing behind the offset; strides and counts are of former slots.
        self.comb += fetch.all.eq(fetch.port.dat_r[8*COMMAND["levels"].offset:][:4] == 0)
        inner  = levels[:4]
        outer  = levels[4:]
        listed = inner[log2_int(C.LIST)]
        deep   = inner[:log2_int(C.LIST)]  # strides

        # Region: it is looked up while the rest of the slot is fetched, so that the answer is there
        # before that.
        found     = Signal()
        owned     = Signal()
        permitted = Signal()
        foreign   = Signal()  # who owns the source has not written the slot
        low       = Signal(address_bits)
        size      = Signal(address_bits)
        high      = Signal(address_bits)
        address   = Signal(address_bits)
        owner     = Signal(8)

        # A glance at the slot of the job that comes next, and the look-up of its region, while the
        # command is checked.
        about   = Record([("slot", len(fetch.slot)), ("endpoint", len(jobs.endpoint)), ("response", 1)])
        begun   = Signal()    # its first line was there
        had     = Signal(len(fetch.glance))
        seen    = Signal(len(fetch.glance))
        whole   = Signal()    # all that is needed is there
        ready   = Signal()    # it was
        looks   = Signal()    # the region is looked up
        hit     = Signal()    # it is that job, and has no levels
        asker   = Signal()    # `foreign` of whose region is looked up
        starts  = Signal()    # a job is set up
        written = Signal()    # a region is
        idle    = Signal()
        self.comb += [
            idle.eq(fsm.ongoing("IDLE") & ~jobs.valid),
            fetch.glance.eq(Mux(idle & (begun | glance.begin), glance.lines, 0)),
            seen.eq(Mux(glance.begin, 0, had) | fetch.glance),
            hit.eq(ready & ~written & (about.slot == fetch.slot) & (inner == 0)),
        ]
        self.sync += [
            had.eq(seen),
            begun.eq(idle & ~glance.drop & (begun | glance.begin)),
            # A region that is written meanwhile may be another one by now, and nobody would wait
            # for the job's departure.
            ready.eq(~starts & ~glance.drop & ~glance.begin & ~written & (ready | whole)),
            looks.eq(whole),
            If(whole,
                about.slot.eq(Cat(glance.slot[:log2_int(C.SLOTS)], glance.endpoint)),
                about.endpoint.eq(glance.endpoint),
                about.response.eq(glance.response),
            ),
        ]
        self.comb += whole.eq((fetch.glance != 0) & (seen == 2**len(seen) - 1))

        # Its list's, when the rest of the slot is here.
        self.list = list_ = ListLookup(address_bits)
        listing   = Signal()
        self.comb += [
            list_.key.eq(count[2]),
            list_.offset.eq(stride[2]),
            list_.owner.eq(owner),
            list_.lookup.connect(lookup, keep={"done", "found", "base", "length", "rights", "owner"}),

            foreign.eq(jobs.response & ~jobs.indirect),
            asker.eq(Mux(ready, about.response, foreign)),
            # Of a glance the key's line may be the last.
            lookup.valid.eq(fetch.first | whole | list_.lookup.valid),
            lookup.key.eq(Mux(listing, list_.lookup.key, source_member(fetch, "key"))),
            If(fetch.glance[0], lookup.key.eq(fetch.coming(source_walk + WALK["key"].offset, WALK["key"].size))),
        ]
        self.sync += [
            If(lookup.done & ~listing,
                owner.eq(lookup.owner),
                found.eq(lookup.found),
                owned.eq((lookup.owner == Mux(ready, about.endpoint, jobs.endpoint)) | asker),
                permitted.eq((lookup.rights & Mux(asker, RIGHT.REMOTE_READ, RIGHT.LOCAL_READ)) != 0),
                low.eq(lookup.base),
                size.eq(lookup.length),
            ),
            high.eq(low + size),
            address.eq(low + source_member(fetch, "offset")),
        ]

        # What does not fit: an offset that is not zero above, a stride that is not its sign.
        if address_bits < 64:
            signed = lambda value: value[address_bits:] != Replicate(value[address_bits - 1], 64 - address_bits)
            far    = [source_member(fetch, "offset")[address_bits:] != 0] + [
                (deep > i) & signed(stride[i]) for i in range(C.LEVELS)]
            self.sync += If(Reduce("OR", far), high.eq(0))
            self.comb += list_.far.eq(stride[2][address_bits:] != 0)

        # Checks: what they compare in one cycle, what follows from it in the next.
        length   = Signal(32)
        empty    = Signal()
        too_far  = Signal()
        no_level = Signal()
        zero     = Signal()
        status   = Signal(8)
        self.sync += [
            length.eq(total - jobs.skip),
            empty.eq(total == 0),
            too_far.eq(jobs.skip >= total),
            no_level.eq((inner > C.LIST + C.LIST_LEVELS) | (outer > C.LIST + C.LIST_LEVELS)),
            zero.eq(((inner != 0) & (block == 0)) | Reduce("OR", [(deep > i) & (count[i] == 0) for i in range(C.LEVELS)])),
        ]

        # A job that is set up, those whose walks wait, those that are cut, and one whose end waits.
        self.departures = Departures(starts, [self.done.valid & self.done.ready], 2*TRANSFERS + 2)
        self.comb += written.eq(self.departures.mark)

        walk    = walker.sink
        walked_ = Signal()
        self.comb += walked_.eq(~empty & (status == STATUS.OK))
        fsm.act("IDLE",
            starts.eq(jobs.valid & ~(hit & looks)),
            fetch.start.eq(starts & ~hit),
            If(starts,
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
            ).Elif(zero & ~empty,
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
        # With its walk, if it has one.
        fsm.act("TRANSFER",
            walk.valid.eq(walked_ & walks.sink.ready & transfers.sink.ready),
            transfers.sink.valid.eq(~walked_ | (walk.ready & walks.sink.ready)),
            If(transfers.sink.valid & transfers.sink.ready,
                walks.sink.valid.eq(walked_),
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
            walk.levels.eq(deep),
            walk.listed.eq(listed),
            walk.length.eq(length),
            walk.skip.eq(jobs.skip),
            *[getattr(walk, f"stride{i}").eq(stride[i]) for i in range(C.LEVELS)],
            *[getattr(walk, f"count{i}").eq(count[i]) for i in range(C.LEVELS)],
            If(listed,
                walk.stride2.eq(list_.address),
                walk.count2.eq(list_.entries)
            ),

            jobs.connect(transfers.sink, keep={"node", "incarnation", "epoch", "psn", "endpoint", "slot", "tag",
                "skip", "response", "indirect", "target", "message"}),
            transfers.sink.last.eq(1),
            transfers.sink.levels.eq(Mux(jobs.indirect, jobs.target_levels, outer)),
            transfers.sink.length.eq(Mux(empty, 0, length)),
            transfers.sink.status.eq(status),
            # The control program knows these two bits by names of its own.
            If(jobs.response,
                transfers.sink.flags.eq(PACKET_FLAG.NOTICE)
            ).Elif((flags & FLAG.NOTICE) != 0,
                transfers.sink.flags.eq(PACKET_FLAG.NOTICE),
                If((flags & FLAG.INTERRUPT) != 0,
                    transfers.sink.flags.eq(PACKET_FLAG.NOTICE | PACKET_FLAG.INTERRUPT)
                )
            ),
        ]
