"""The endpoints' pages in BAR 0: command slots and doorbells."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from math import log2
from operator import or_

from migen import *

from litex.gen import *

from dibber.endpoint.turns import command_layout
from dibber.interface.description import C, DOORBELL
from dibber.interface.register_bank import line_port
from dibber.layouts import count_layout

# Helpers ------------------------------------------------------------------------------------------

def connect_count(user, table):
    """Statements that connect the Record(count_layout) of a user to that of the block with the
    counts.
    """
    return [table.endpoint.eq(user.endpoint), user.count.eq(table.count)]

# Doorbells ----------------------------------------------------------------------------------------

class Doorbells(LiteXModule):
    """Bank `doorbell` of all endpoints, without PROGRAM. Each register is a memory by endpoint,
    with a read port for each reader.

    No reset reaches the memories. So `held` is 1 while the module is in reset, and `index` counts
    through all entries.

    Parameters
    ----------
    data_width : bits of a line

    Attributes
    ----------
    port        : line_port(data_width)      the page of `endpoint`; bytes are written one by one
    endpoint    : Signal, in
    producer    : list of 2 Record(count_layout), in and out   lookups of COMMAND_PRODUCER
    cq_consumer, eq_consumer : Record(count_layout), in and out
    head        : Record(count_layout), `endpoint` out, `count` in   COMMAND_HEAD
    rung        : Record(command_layout), out  COMMAND_PRODUCER of this endpoint was written
    held        : Signal, in                 the host writes nothing, and all counts of endpoint
                  `index` become 0
    index       : Signal, in

    Cycles: as line_port; 1 from a write to the lookups and to `rung`.
    """
    def __init__(self, data_width):
        self.port        = port = line_port(data_width)
        self.endpoint    = Signal(log2_int(C.ENDPOINTS))
        self.producer    = [Record(count_layout()) for _ in range(2)]
        self.cq_consumer = Record(count_layout())
        self.eq_consumer = Record(count_layout())
        self.head        = head = Record(count_layout())
        self.rung        = rung = Record(command_layout())
        self.held        = held = Signal()
        self.index       = Signal(log2_int(C.ENDPOINTS))

        # # #

        # A read is looked up one cycle later.
        lanes = data_width//32
        whose = Signal(log2_int(C.ENDPOINTS))
        where = Signal(log2_int(C.ENDPOINTS))  # to write
        value = Signal(data_width)
        place = lambda name: divmod(DOORBELL[name].offset//4, lanes)
        shown = {"COMMAND_HEAD": head}
        self.comb += [
            head.endpoint.eq(whose),
            where.eq(Mux(held, self.index, self.endpoint)),
            value.eq(Mux(held, 0, port.dat_w)),
        ]
        self.sync += whose.eq(self.endpoint)
        for name, users in ("COMMAND_PRODUCER", self.producer), ("CQ_CONSUMER", [self.cq_consumer]), ("EQ_CONSUMER", [self.eq_consumer]):
            line, lane = place(name)
            memory = Memory(32, C.ENDPOINTS, name=name.lower())
            write  = memory.get_port(write_capable=True, we_granularity=8)
            taken  = Signal(4)
            shown[name] = Record(count_layout())
            self.specials += memory, write
            self.comb += [
                taken.eq(port.be[4*lane:4*lane + 4] & Replicate(port.we & (port.adr == line), 4)),
                write.we.eq(taken | Replicate(held, 4)),
                write.adr.eq(where),
                write.dat_w.eq(value[32*lane:32*lane + 32]),
                shown[name].endpoint.eq(whose),
            ]
            for look in [*users, shown[name]]:
                read = memory.get_port(async_read=True)
                self.specials += read
                self.comb += [read.adr.eq(look.endpoint), look.count.eq(read.dat_r)]
            if name == "COMMAND_PRODUCER":
                self.comb += rung.endpoint.eq(whose)
                self.sync += rung.strobe.eq(taken != 0)

        answers = []
        for line in sorted({line for line, _ in map(place, shown)}):
            words, asked = [Constant(0, 32)]*lanes, Signal()
            for name, look in shown.items():
                if place(name)[0] == line:
                    words[place(name)[1]] = look.count
            self.sync += asked.eq(port.re & ~port.we & (port.adr == line))
            answers.append(Cat(*words) & Replicate(asked, data_width))
        self.sync += port.dat_r.eq(reduce(or_, answers))

# Endpoint Pages -----------------------------------------------------------------------------------

class EndpointPages(LiteXModule):
    """Divides the endpoints' window into a slot page and a doorbell page for each endpoint.

    A doorbell is a count, not an event. If it is rung twice before it is read, the later value
    replaces the first one, and nothing is lost. So a doorbell write needs no queue and never waits.

    Parameters
    ----------
    data_width : bits of a line
    endpoints  : how many, a power of two; the pages of others read as 0 and ignore writes

    Attributes
    ----------
    port        : line_port(data_width)       the window, from the first endpoint's first page
    slots       : line_port(data_width), out  to `Slots.port`
    doorbells   : Doorbells; the core resets and holds it while the control program is halted
    producer, cq_consumer, eq_consumer, head, rung : those of `doorbells`
    program     : Record, in                  the fields of PROGRAM
    counters    : DOORBELLS

    Cycles: as line_port. Addresses outside the pages read as 0 and ignore writes. PROGRAM is not
    part of `doorbells`, because it says that the control program has stopped.
    """
    def __init__(self, data_width, endpoints=C.ENDPOINTS):
        self.port        = port  = line_port(data_width)
        self.slots       = slots = line_port(data_width)
        self.doorbells   = doorbells = Doorbells(data_width)
        self.producer    = doorbells.producer
        self.cq_consumer = doorbells.cq_consumer
        self.eq_consumer = doorbells.eq_consumer
        self.head        = doorbells.head
        self.rung        = doorbells.rung
        self.program     = Record([(f.name, f.bits) for f in DOORBELL["PROGRAM"].fields])
        self.counters    = {"DOORBELLS": Signal()}

        # # #

        line          = int(log2(data_width//8))
        stride_bits   = int(log2(C.ENDPOINT_STRIDE)) - line
        page_bits     = int(log2(C.DOORBELL_OFFSET)) - line
        endpoint_bits = int(log2(endpoints))
        endpoint      = port.adr[stride_bits:stride_bits + endpoint_bits]
        absent        = port.adr[stride_bits + endpoint_bits:] != 0
        in_page       = port.adr[:page_bits]
        doorbell      = Signal()
        assert C.ENDPOINT_STRIDE == 2*C.DOORBELL_OFFSET and C.SLOT_OFFSET == 0
        assert C.SLOTS*C.SLOT_BYTES == C.DOORBELL_OFFSET

        # Slots ------------------------------------------------------------------------------------

        self.comb += [
            doorbell.eq(port.adr[page_bits]),
            slots.adr.eq(Cat(in_page, endpoint)),
            slots.dat_w.eq(port.dat_w),
            slots.be.eq(port.be),
            slots.we.eq(port.we & ~doorbell & ~absent),
            slots.re.eq(port.re & ~doorbell & ~absent),
        ]

        # Doorbells --------------------------------------------------------------------------------

        hit = Signal()
        self.comb += [
            hit.eq(doorbell & ~absent),
            doorbells.endpoint.eq(endpoint),
            doorbells.port.adr.eq(in_page),
            doorbells.port.dat_w.eq(port.dat_w),
            doorbells.port.be.eq(port.be),
            doorbells.port.we.eq(port.we & hit),
            doorbells.port.re.eq(port.re & hit),
        ]
        self.sync += self.counters["DOORBELLS"].eq(doorbells.rung.strobe)

        # Answers ----------------------------------------------------------------------------------

        # PROGRAM has one value for all endpoints. It has a line of its own; at 256 bits it shares the
        # line of the others, which give 0 in its place.
        assert DOORBELL["PROGRAM"] is DOORBELL.registers[-1]
        lane = 8*(DOORBELL["PROGRAM"].offset % (data_width//8))
        said = Cat(Constant(0, lane), self.program.raw_bits()) if lane else self.program.raw_bits()
        program = in_page == DOORBELL["PROGRAM"].offset//(data_width//8)

        # The slots, or PROGRAM, were read two cycles ago; a doorbell that was not read gives 0.
        where = [Cat(program & doorbell & ~absent, ~doorbell & ~absent) & Replicate(port.re, 2)]
        for _ in range(2):
            later = Signal(2)
            self.sync += later.eq(where[-1])
            where.append(later)
        chosen = where[-1]
        self.comb += port.dat_r.eq(reduce(or_, [doorbells.port.dat_r, Mux(chosen[0], said, 0), Mux(chosen[1], slots.dat_r, 0)]))
