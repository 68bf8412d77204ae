"""The remote window: its stores, loads, pages and registers in one block."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BlockFIFO
from dibber.host import tlp
from dibber.host.tlp import line_layout
from dibber.interface.description import C, WINDOW
from dibber.interface.register_bank import RegisterBank, line_port
from dibber.layouts import entry_layout
from dibber.window.buffers import StreamBuffers
from dibber.window.layouts import PAGE_BITS
from dibber.window.loads import LoadUnit, waiting_layout
from dibber.window.stores import QUEUE_LINES, StoreQueue
from dibber.window.table import PageTable
from dibber.window.writer import CommandWriter

LOADS = 256  # loads that can wait: as many as a requester's tags

class RemoteWindow(LiteXModule):
    """Turn stores and loads of the aperture into commands of one endpoint.

    Parameters
    ----------
    data_width : 64, 128 or 256
    endpoint   : number of the endpoint that belongs to the window
    endpoints  : of the card; each has a sequence

    Attributes
    ----------
    stores   : Endpoint(line_layout), in      lines that the host stores; `ready` is always 1
    requests : Endpoint(request_layout), in   reads of the aperture
    replies  : Endpoint(reply_layout), out
    port     : line_port(data_width)          bank `window`
    pages    : line_port(data_width), in      the host's accesses to the endpoints' pages
    endpoints : line_port(data_width), out    those and the window's own, to Endpoints
    ends     : list of 2 Endpoint(entry_layout), in   completions of the window's endpoint
    written  : Endpoint(write_layout), in     see LoadUnit
    halted   : Signal(), in                   the control program is halted
    """
    def __init__(self, data_width, endpoint, endpoints=C.ENDPOINTS):
        width = data_width//8
        self.stores   = stores   = stream.Endpoint(
            line_layout(data_width, log2_int(C.APERTURE_BYTES//width)))
        self.requests = requests = stream.Endpoint(tlp.request_layout(log2_int(C.APERTURE_BYTES) - 2))
        self.ends     = [stream.Endpoint(entry_layout()) for _ in range(2)]
        self.halted   = halted   = Signal()
        self.endpoint  = endpoint
        self.pages     = pages = line_port(data_width)
        self.endpoints = ends  = line_port(data_width)

        # # #

        self.queue   = queue   = StoreQueue(data_width)
        self.buffers = buffers = ResetInserter()(StreamBuffers(data_width))
        self.table   = table   = PageTable()
        self.writer  = writer  = ResetInserter()(CommandWriter(data_width, endpoint))
        self.loads   = loads   = LoadUnit(data_width)
        self.waiting = waiting = BlockFIFO(waiting_layout(), LOADS)
        self.bank    = bank    = RegisterBank(WINDOW, data_width)
        self.port    = bank.port
        self.replies = loads.replies
        self.written = loads.written

        storage = {name: signals[0] for name, signals in bank.storage.items()}
        status  = {name: signals[0] for name, signals in bank.status.items()}

        # Enabled ----------------------------------------------------------------------------------

        # A halt of the control program forgets all commands. So the window is off until the host has
        # opened its endpoint again. So does a host that opens the endpoint: its queue begins anew.
        # Until the store queue is empty, stores are dropped, because they are those of before.
        enable  = Signal()
        renewed = Signal()
        empties = Signal()
        stopped = Signal()
        bells   = (endpoint*C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET)//width
        counts  = Signal(2)  # the host writes COMMAND_PRODUCER, CQ_CONSUMER
        self.comb += [
            [counts[n].eq(pages.we & (pages.adr == bells) & (pages.be[4*n:4*n + 4] == 0xf)) for n in range(2)],
            renewed.eq(counts[1]),
            stopped.eq(halted | renewed | empties),
        ]
        self.sync += If(renewed, empties.eq(1)).Elif(queue.level == 0, empties.eq(0))
        self.sync += If(halted | renewed,
            enable.eq(0)
        ).Elif(bank.strobe["CONTROL"][0],
            enable.eq(bank.written["CONTROL"][0][0])
        )

        # Stores -----------------------------------------------------------------------------------

        # A store to the control page closes all buffers, and goes no further.
        parts   = log2_int(C.APERTURE_PAGE//width)
        control = queue.source.adr[parts:] == 2**(log2_int(C.APERTURE_BYTES) - PAGE_BITS) - 1
        flush   = Signal()
        soon    = Signal()
        self.comb += [
            stores.connect(queue.sink),
            flush.eq(queue.source.valid & control),
            queue.source.connect(buffers.sink, omit={"valid", "ready"}),
            buffers.sink.valid.eq(queue.source.valid & ~control & ~stopped),
            queue.source.ready.eq(buffers.sink.ready | control | stopped),
            buffers.reset.eq(stopped),
            buffers.hold.eq(storage["HOLD"]),
            buffers.close.eq(loads.close | flush | (soon & (queue.level == 0))),
        ]
        # A load or barrier that has come will close the buffers in its turn. As soon as the queue is
        # empty, they are closed at once: a barrier behind one store gains 3 cycles.
        at_once = (requests.offset[PAGE_BITS - 2:] == 2**(log2_int(C.APERTURE_BYTES) - PAGE_BITS) - 1) & requests.offset[0]
        self.sync += If(requests.valid & requests.ready & ~at_once,
            soon.eq(1)
        ).Elif(queue.level == 0,
            soon.eq(0)
        )

        # Commands ---------------------------------------------------------------------------------

        self.comb += [
            buffers.source.connect(writer.closed),
            writer.mask.eq(buffers.mask),
            buffers.at.eq(writer.at),
            writer.dat.eq(buffers.dat),
            writer.enable.eq(enable),
            writer.reset.eq(halted),
            writer.rung.eq(counts[0]),
            writer.renewed.eq(renewed),
            writer.counts.eq(pages.dat_w[:64]),
            writer.scratch_key.eq(storage["SCRATCH_KEY"]),
            table.page.eq(writer.page),
            writer.found.eq(table.found),
            # Both sources of completions may wait for each other.
            If(self.ends[1].valid,
                self.ends[1].connect(writer.ends)
            ).Else(
                self.ends[0].connect(writer.ends)
            ),
        ]

        # The host's accesses never wait, so the window writes when there is none.
        writes = writer.writes
        self.comb += [
            writes.ready.eq(~(pages.we | pages.re)),
            ends.adr.eq(Mux(writes.ready, writes.adr, pages.adr)),
            ends.dat_w.eq(Mux(writes.ready, writes.dat, pages.dat_w)),
            ends.be.eq(Mux(writes.ready, writes.be, pages.be)),
            ends.we.eq(Mux(writes.ready, writes.valid, pages.we)),
            ends.re.eq(pages.re),
            pages.dat_r.eq(ends.dat_r),
        ]

        # Loads ------------------------------------------------------------------------------------

        now = Signal(64)
        self.sync += now.eq(now + 1)
        self.comb += [
            requests.connect(waiting.sink),
            waiting.sink.arrived.eq(now),
            waiting.source.connect(loads.sink),
            loads.now.eq(now),
            loads.limit.eq(storage["LOAD_LIMIT"]),
            loads.off.eq(stopped | ~enable),
            loads.queued.eq(queue.level),
            loads.moved.eq(queue.moved),
            loads.buffers.eq(buffers.used),
            loads.freed.eq(buffers.freed),
            loads.slots.eq(writer.used),
            loads.ended.eq(writer.ended),
            loads.load.connect(writer.load),
            *[getattr(loads, name).eq(getattr(writer, name))
                for name in ["refused", "sent", "is_atomic", "slot", "loaded"]],
            loads.scratch.eq(Cat(storage["SCRATCH_LOW"][12:], storage["SCRATCH_HIGH"])),
        ]

        # Pages ------------------------------------------------------------------------------------

        access = bank.fields(WINDOW, "PAGE_ACCESS")
        self.comb += [
            table.write.strobe.eq(bank.strobe["PAGE_WRITE"][0]),
            table.write.page.eq(bank.written["PAGE_WRITE"][0]),
            table.entry.offset.eq(Cat(storage["PAGE_OFFSET_LOW"], storage["PAGE_OFFSET_HIGH"])),
            table.entry.key.eq(storage["PAGE_KEY"]),
            *[getattr(table.entry, name).eq(field) for name, field in access.items()],
        ]

        # Sequences --------------------------------------------------------------------------------

        # Faults of mapped pages count for their owner. All others count for every owner: a page
        # without an owner, a store that was lost before its page was looked up, and what a halt or
        # a new owner of the endpoint has lost.
        errors = [Signal(32, name=f"errors{n}") for n in range(endpoints)]
        shared = Signal(32)
        was_stopped = Signal()
        faults = [writer.forbidden, writer.refusal]
        self.sync += [
            was_stopped.eq(stopped),
            shared.eq(shared + writer.unmapped + queue.overflow + loads.late + loads.misshaped +
                writer.misshaped + (stopped & ~was_stopped)),
            *[count.eq(count + sum(fault.strobe & (fault.owner == n) for fault in faults))
                for n, count in enumerate(errors)],
        ]
        self.comb += loads.sequence.eq(Array(errors)[loads.owner] + shared)

        # Registers --------------------------------------------------------------------------------

        counts = {
            "STORES":    queue.stored,
            "PACKETS":   writer.packet,
            "LOADS":     loads.answered,
            "OVERFLOWS": queue.overflow,
            "UNMAPPED":  writer.unmapped,
            "FORBIDDEN": writer.forbidden.strobe,
            "MISSHAPED": loads.misshaped | writer.misshaped,
            "REFUSALS":  writer.refusal.strobe,
            "LATE":      loads.late,
        }
        self.comb += [
            status["GEOMETRY"].eq(endpoint | QUEUE_LINES << 8),
            status["ROOM"].eq(queue.room),
        ]
        self.sync += [
            *[If(pulse, status[name].eq(status[name] + 1)) for name, pulse in counts.items()],
            If(writer.refusal.strobe, status["LAST"].eq(writer.status)),
        ]
