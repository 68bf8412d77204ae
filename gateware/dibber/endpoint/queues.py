"""Completion and event queues in host memory."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import C
from dibber.layouts import count_layout, entry_layout, post_layout

# Layouts ------------------------------------------------------------------------------------------

SIZE  = 5  # bits of the logarithm of a queue's length
# bits of an index in the longest queue, and one for the parity of the pass
INDEX = log2_int(C.QUEUE_MAX_ENTRIES) + 1
ALIGN = log2_int(C.QUEUE_ENTRY_BYTES)

def queue_open_layout():
    """In a cycle with `strobe`: queue `queue` is opened, empty, with 2**`size` entries from address
    `base` on; or it is `closed`.
    """
    return [("strobe", 1), ("queue", log2_int(C.QUEUES)), ("base", 64), ("size", SIZE),
        ("vector", log2_int(C.VECTORS)), ("closed", 1)]

# Queue Writer -------------------------------------------------------------------------------------

class QueueWriter(LiteXModule):
    """Writes the entries of several sources to completion and event queues in host memory.

    A completion always finds room, because a command is not taken before there is room. An event
    may find its queue full or closed. Then the event is lost: it is counted here, and in `overruns`
    of the later entries of that queue. An invalid consumer count is treated as a full queue. A
    completion for a closed queue is dropped.

    A queue may be opened or closed while an entry for it is under way. That entry belongs as a
    whole to the old queue or to the new one.

    Parameters
    ----------
    sinks     : how many sources
    endpoints : of the card, a power of two; queues of other endpoints stay closed
    address_bits : 64, or less. If less, a queue stays closed whose base is not in the lower half of
                   all addresses

    Attributes
    ----------
    cycles      : Signal(64), in                the card's clock
    open        : Record(queue_open_layout), in
    eq_consumer : Record(count_layout), `endpoint` out, `count` in   doorbell EQ_CONSUMER
    sinks       : list of Endpoint(entry_layout), in     round robin
    source      : Endpoint(post_layout), out    struct queue_entry
    counters    : EVENTS_LOST

    After a reset all queues are closed.

    Cycles: 2 from a sink to the source; an entry every 3.
    """
    def __init__(self, sinks=3, endpoints=C.ENDPOINTS, address_bits=64):
        self.cycles      = Signal(64)
        self.open        = open = Record(queue_open_layout())
        self.eq_consumer = Record(count_layout())
        self.sinks       = [stream.Endpoint(entry_layout()) for _ in range(sinks)]
        self.source      = source = stream.Endpoint(post_layout())
        self.counters    = {"EVENTS_LOST": Signal()}

        # # #

        # Turns ------------------------------------------------------------------------------------

        # Round robin in one cycle; Migen's RoundRobin would take a cycle more for each grant.
        idle   = Signal()
        chosen = stream.Endpoint(entry_layout())
        grant  = Signal(max=sinks)
        last   = Signal(max=sinks)
        def first_after(n):
            turn = [(n + k) % sinks for k in range(1, sinks + 1)]
            statement = grant.eq(turn[-1])
            for m in reversed(turn[:-1]):
                statement = If(self.sinks[m].valid, grant.eq(m)).Else(statement)
            return statement
        self.comb += [
            Case(last, {n: first_after(n) for n in range(sinks)}),
            Case(grant, {n: sink.connect(chosen) for n, sink in enumerate(self.sinks)}),
            chosen.ready.eq(idle),
        ]
        entry = Record(entry_layout().payload_layout)
        about = Signal(len(entry.queue))  # the queue that is looked up
        self.comb += about.eq(Mux(idle, chosen.queue, entry.queue))
        self.sync += If(chosen.valid & chosen.ready,
            last.eq(grant),
            entry.eq(chosen.payload),
        )

        # Queues -----------------------------------------------------------------------------------

        # `fixed` does not change while a queue is open; each entry changes `written`.
        fixed   = Record([("base", address_bits - ALIGN), ("size", SIZE), ("vector", log2_int(C.VECTORS))])
        written = Record([("total", 32), ("index", INDEX), ("overruns", 32)])
        after   = Record(written.layout)
        opened  = Signal(C.QUEUES)
        look    = Signal()
        update  = Signal()
        self.fixed   = Memory(len(fixed), C.QUEUES, name="block_queues")
        self.written = Memory(len(written), C.QUEUES)
        fixed_write, fixed_read = self.fixed.get_port(write_capable=True, mode=READ_FIRST), self.fixed.get_port(has_re=True, mode=READ_FIRST)
        write, read = self.written.get_port(write_capable=True), self.written.get_port(async_read=True)
        self.specials += fixed_write, fixed_read, write, read
        self.comb += [
            fixed_read.adr.eq(about),
            fixed_read.re.eq(look),
            fixed.raw_bits().eq(fixed_read.dat_r),
            read.adr.eq(about),
            fixed_write.adr.eq(open.queue),
            write.adr.eq(Mux(open.strobe, open.queue, about)),
        ]

        # A queue that is opened starts at its host's count. This uses the lookup of an entry's
        # count.
        event    = Signal()
        consumer = self.eq_consumer.count
        self.comb += [
            event.eq(entry.queue >= C.ENDPOINTS),
            self.eq_consumer.endpoint.eq(write.adr),
            fixed_write.we.eq(open.strobe),
            fixed_write.dat_w.eq(Cat(open.base[ALIGN:address_bits], open.size, open.vector)),
            write.we.eq(open.strobe | update),
            If(open.strobe,
                write.dat_w.eq(Cat(consumer, Constant(0, INDEX + 32)))
            ).Else(
                write.dat_w.eq(after.raw_bits())
            )
        ]
        self.sync += If(open.strobe,
            Case(open.queue, {n: opened[n].eq(~open.closed & (1 if address_bits == 64 else open.base[address_bits - 1:] == 0)) for n in range(C.QUEUES) if n % C.ENDPOINTS < endpoints})
        )

        # Room and Place ---------------------------------------------------------------------------

        read_by   = Signal(32)     # the host's count
        mask      = Signal(INDEX)  # ones at the bits of an entry's number in the queue
        known     = Signal()
        unread    = Signal(32)
        full_bits = Signal(32)     # the queue is full if `unread` has one of these bits
        place     = Signal(INDEX)
        lost      = Signal()
        stamp     = Signal(64)
        phase     = Signal()
        self.comb += [
            lost.eq(~known | (event & ((unread & full_bits) != 0))),
            after.eq(written),
            If(lost,
                after.overruns.eq(written.overruns + 1)
            ).Else(
                after.total.eq(written.total + 1),
                after.index.eq(written.index + 1),
            ),
        ]

        self.fsm = fsm = FSM(reset_state="IDLE")
        # While a queue is opened, an entry is looked up again: its lookup may have read old values.
        fsm.act("IDLE",
            idle.eq(1),
            If(chosen.valid,
                NextState("COUNT"),
                If(open.strobe, NextState("LOOK"))
            )
        )
        fsm.act("LOOK",
            If(~open.strobe, NextState("COUNT"))
        )
        fsm.act("COUNT",
            If(open.strobe, NextState("LOOK")).Else(NextState("DECIDE"))
        )
        fsm.act("DECIDE",
            If(open.strobe,
                NextState("LOOK")
            ).Else(
                source.valid.eq(~lost),
                update.eq(1),
                If(lost | source.ready, NextState("IDLE")).Else(NextState("WRITE"))
            )
        )
        fsm.act("WRITE",
            source.valid.eq(1),
            If(source.ready, NextState("IDLE"))
        )
        self.comb += [
            look.eq(idle | fsm.ongoing("LOOK")),
            Case(fixed.size, {**{n: mask.eq(2**n - 1) for n in range(INDEX)}, "default": mask.eq(0)}),
        ]
        self.sync += [
            If(look,
                written.raw_bits().eq(read.dat_r),
                read_by.eq(consumer),
            ),
            If(fsm.ongoing("COUNT"),
                known.eq(opened >> entry.queue),
                unread.eq(written.total - read_by),
                full_bits.eq(~mask),
                place.eq(written.index & mask),
                stamp.eq(self.cycles),
                phase.eq(~Array(written.index)[fixed.size]),  # the bit above the place
            ),
            self.counters["EVENTS_LOST"].eq(update & lost & event),
        ]

        # Entry ------------------------------------------------------------------------------------

        at = fixed.base + place
        self.comb += [
            source.address.eq(Cat(Constant(0, ALIGN), at if address_bits == 64 else at[:address_bits - ALIGN])),
            source.dat.eq(Cat(entry.cookie, entry.length, entry.node, entry.kind, entry.status, entry.key,
                stamp, written.overruns, phase, Constant(0, 31))),
            source.vector.eq(fixed.vector),
            source.interrupt.eq(entry.interrupt),
        ]
