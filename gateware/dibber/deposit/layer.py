"""The deposit layer: host memory to packets, and packets to host memory."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.express_lander import ExpressLander
from dibber.deposit.host_memory import HostMemory
from dibber.deposit.job_turns import JobTurns
from dibber.deposit.reach import FAR
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send_engine import SendEngine
from dibber.interface.description import C
from dibber.packet.flow_table import flow_reset_layout, flow_rewind_layout

class DepositLayer(LiteXModule):
    """The four engines that read and write host memory, and that memory.

    `send` gathers a transfer's bytes and cuts them into packets. `scatter` writes the packets of
    lane BULK, `lander` those of lane EXPRESS and messages. `atomic` executes the atomics of other
    nodes.

    Parameters
    ----------
    data_width : 64, 128 or 256
    reach      : FAR or NEAR (deposit/reach.py): where the memory is that the PHY reads
    links      : of the card, 1 or 2

    Attributes
    ----------
    memory        : HostMemory
    jobs          : Endpoint(job_layout), in
    job_ends      : Endpoint(job_end_layout), out
    turns         : JobTurns before the send engine; None with one link
    sending       : list of modules that are reset when the sending side is halted
    send, scatter, lander, atomic : the engines; their streams are the core's to connect
    flow_reset    : Record(flow_reset_layout), in
    flow_rewind   : Record(flow_rewind_layout), in
    extended_tags : list of Signal(), in    the host takes reads with more than 32 tags
    busy          : Signal(), out           something is under way that began before the last region
                    was entered
    moved         : Signal(), out           the send engine makes progress
    counters      : dict of pulses by their names in the interface description
    """
    def __init__(self, data_width, reach=FAR, links=1):
        bits = reach.address
        self.memory  = memory  = HostMemory(data_width, reach, lookups=4, finders=4, writers=3)
        self.send    = send    = SendEngine(data_width, reach.walked.parameters, reach.listed.parameters, bits, links, tags=reach.gather.tags)
        self.scatter = scatter = ScatterEngine(data_width, reach.walked.parameters, reach.listed.parameters, bits)
        self.lander  = lander  = ExpressLander(data_width, bits)
        self.atomic  = atomic  = AtomicUnit(data_width, reach.atomic.tags, reach.atomic.base, address_bits=bits)

        self.turns   = turns   = JobTurns() if links > 1 else None
        self.sending           = [send]
        self.jobs, self.job_ends = send.jobs, send.done

        self.flow_reset    = Record(flow_reset_layout())
        self.flow_rewind   = Record(flow_rewind_layout())
        self.extended_tags = [engine.extended_tags for engine in [send, scatter.pages, scatter.lists, memory.finder, atomic]]
        self.busy          = Signal()
        self.moved         = Signal()
        self.counters      = {
            "ATOMICS": atomic.pulses["ATOMICS"],
            **memory.count([send, atomic, send.lists, scatter.lists, send.pages, scatter.pages])}

        # # #

        if turns is not None:
            self.jobs, self.job_ends = turns.sink, turns.done
            self.sending.append(turns)
            self.comb += [
                turns.parts.connect(send.jobs),
                send.done.connect(turns.ends),
            ]

        # Tables -----------------------------------------------------------------------------------

        lists   = [send.lists, scatter.lists]
        engines = [send, scatter, lander, atomic, *lists]
        self.comb += [
            *[engine.lookup.connect(port)
                for engine, port in zip([send, scatter, lander, atomic], memory.lookups, strict=True)],
            *[engine.pages.connect(port)
                for engine, port in zip([lander, atomic, *lists], memory.pages, strict=True)],
            *[memory.connect_directory(pages) for pages in [send.pages, scatter.pages]],
            scatter.expected.connect(memory.expected),
            *[engine.departures.mark.eq(memory.entry.we) for engine in engines],
            self.busy.eq(Cat(*[engine.departures.busy for engine in engines]) != 0),
        ]

        # Reads and Writes -------------------------------------------------------------------------

        users = [send, atomic, send.pages, scatter.pages, memory.finder, *lists]
        for user, (reads, completions) in zip(users, memory.readers, strict=True):
            if user is not memory.finder:
                self.comb += [
                    user.reads.connect(reads),
                    completions.connect(user.completions),
                ]
        for engine, writes, landed in zip([lander, atomic, scatter], memory.writers, memory.landed, strict=True):
            self.comb += [
                engine.writes.connect(writes),
                engine.marked.eq(landed),
            ]
        self.comb += send.crowded.eq(memory.writes.valid & ~memory.writes.ready)
        progress   = send.payload, send.done
        self.sync += self.moved.eq(Reduce("OR", [stage.valid & stage.ready for stage in progress]))

        # Flows ------------------------------------------------------------------------------------

        # A cycle later, as at the flow table's gates.
        lane = log2_int(C.NODES)  # the bit of a flow's number that is 1 for lane BULK
        reset, rewind = Record(flow_reset_layout()), Record(flow_rewind_layout())
        self.sync += [
            reset.eq(self.flow_reset),
            rewind.eq(self.flow_rewind),
        ]
        self.comb += [
            send.epochs.reset.eq(reset.strobe & reset.flow[lane]),
            send.epochs.rewind.eq(rewind.strobe & rewind.flow[lane]),
            send.epochs.node.eq(Mux(reset.strobe, reset.flow, rewind.flow)),
            send.epochs.incarnation.eq(reset.incarnation),
            send.epochs.epoch.eq(rewind.epoch),
        ]
